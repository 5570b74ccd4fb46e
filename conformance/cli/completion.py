"""`conformance --completion bash|zsh|fish`: a script that completes commands, options and the names they take."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import NamedTuple

from ..adapter import backend_names
from ..load.cases import load_suite
from .listing import LISTINGS, names_to_filter_by


class Completions(NamedTuple):
    """The words that may follow a command."""

    summary: str
    options: Mapping[str, tuple[str, ...] | None]
    """Each option and the names that it takes: none if it takes no value, None if any text or file will do."""
    names: tuple[str, ...]
    """Words without an option, beside files."""


def completions(commands: Mapping[str, tuple[str, Mapping[str, tuple[str, ...] | None]]]) -> dict[str, Completions]:
    """Return the words that may follow each command."""
    suite = load_suite()
    spec = suite.spec
    values = {
        "--document": tuple(spec.documents),
        "--operation": tuple(spec.operations),
        "--type": tuple(sorted(spec.types)),
        "--special-zero": ("true", "false"),
    }
    things = (*spec.rules, *spec.findings, *spec.documents, *spec.operations, *suite.cases)
    words = tuple(chain(LISTINGS, *names_to_filter_by(spec).values()))
    names = {"list": words, "explain": things, "diff": tuple(spec.documents)}
    names |= dict.fromkeys(("run", "check-adapter", "sweep", "hunt"), tuple(backend_names()))
    return {
        name: Completions(
            summary,
            {option: values.get(option, choices) if choices != () else () for option, choices in options.items()},
            tuple(dict.fromkeys(names.get(name, ()))),
        )
        for name, (summary, options) in commands.items()
    }


def _cases(completions: Mapping[str, Completions], files: str, names: str) -> str:
    """Write a `case` of bash and zsh over the command and the word before, with the words to offer."""
    lines = []
    for command, words in completions.items():
        for option, values in words.options.items():
            if values is None or values:
                offer = files if values is None else names.format(" ".join(values))
                lines.append(f"    '{command} {option}') {offer} ;;")
        lines += [
            f"    '{command} '*)",
            '      case "$now" in',
            f"        -*) {names.format(' '.join(words.options))} ;;",
            f"        *) {names.format(' '.join(words.names))}; {files} ;;",
            "      esac ;;",
        ]
    lines.append(f"    *) {names.format(' '.join([*completions, '--help', '--version', '--completion']))} ;;")
    return "\n".join(lines)


def _bash(completions: Mapping[str, Completions]) -> str:
    return f"""\
_conformance() {{
  local now="${{COMP_WORDS[COMP_CWORD]}}" before="${{COMP_WORDS[COMP_CWORD-1]}}" command="" names=""
  [ "$COMP_CWORD" -gt 1 ] && command="${{COMP_WORDS[1]}}"
  case "$command $before" in
{_cases(completions, "compopt -o default 2>/dev/null", 'names="{}"')}
  esac
  COMPREPLY=($(compgen -W "$names" -- "$now"))
}}
complete -F _conformance conformance
"""


def _zsh(completions: Mapping[str, Completions]) -> str:
    return f"""\
#compdef conformance
_conformance() {{
  local now="${{words[CURRENT]}}" before="${{words[CURRENT-1]}}" command=""
  (( CURRENT > 2 )) && command="${{words[2]}}"
  case "$command $before" in
{_cases(completions, "_files", "compadd -- {}")}
  esac
}}
compdef _conformance conformance
"""


def _fish(completions: Mapping[str, Completions]) -> str:
    lines = []
    for command, words in completions.items():
        summary = words.summary.replace("\\", "\\\\").replace("'", "\\'")
        lines.append(f"complete -c conformance -n __fish_use_subcommand -f -a {command} -d '{summary}'")
        within = f"complete -c conformance -n '__fish_seen_subcommand_from {command}'"
        if words.names:
            lines.append(f"{within} -a '{' '.join(words.names)}'")
        for option, values in words.options.items():
            name = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            rest = " -r" if values is None else f" -x -a '{' '.join(values)}'" if values else ""
            lines.append(f"{within} {name}{rest}")
    return "\n".join([*lines, ""])


SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
"""Write the script of each shell."""
