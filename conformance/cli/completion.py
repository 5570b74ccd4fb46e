"""`conformance completion bash|zsh|fish`: a script that completes commands, options and the names they take."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..adapter import bundled_backends
from ..load.cases import load_suite
from ..system.terminal import say_raw
from .arguments import Usage, emit, folder_given, unknown
from .main import commands_and_options


class Taken(NamedTuple):
    """What may follow a command."""

    summary: str
    options: Mapping[str, tuple[str, ...] | None]
    """Each option and the names that it takes: none where it takes no value, None where any text or file will do."""
    names: tuple[str, ...]
    """What may stand without an option, beside files."""


def run(args: argparse.Namespace) -> int:
    """Prints the script for one shell."""
    if args.shell is None:
        raise Usage("say for which shell: bash, zsh or fish; for example: conformance completion bash")
    if args.shell not in SHELLS:
        raise Usage(unknown("shell", args.shell, SHELLS))
    taken = _taken(args)
    if args.json:
        emit({name: each._asdict() for name, each in taken.items()})
    else:
        say_raw(SHELLS[args.shell](taken))
    return 0


def _taken(args: argparse.Namespace) -> dict[str, Taken]:
    suite = load_suite(folder_given("--spec", args.spec), None)
    spec = suite.spec
    types = sorted({name for operation in spec.operations.values() for name in operation.types})
    lists = ("rules", "documents", "operations", "findings", "cases", "backends")
    values = {
        "--document": tuple(spec.documents),
        "--operation": tuple(spec.operations),
        "--type": tuple(types),
        "--rule": tuple(spec.rules),
        "--level": ("must", "may", "silent", "decided"),
        "--kind": ("defect", "disagreement", "silence"),
        "--special-zero": ("true", "false"),
    }
    explained = (*spec.rules, *spec.findings, *spec.documents, *spec.operations, *suite.cases)
    names = {"list": lists, "explain": explained, "diff-documents": tuple(spec.documents), "completion": tuple(SHELLS)}
    names |= dict.fromkeys(("run", "check-adapter", "sweep", "hunt"), tuple(bundled_backends()))
    return {
        name: Taken(
            summary,
            {option: values.get(option, choices) if choices != () else () for option, choices in options.items()},
            tuple(dict.fromkeys(names.get(name, ()))),
        )
        for name, (summary, options) in commands_and_options().items()
    }


# ── the shells ────────────────────────────────────────────────────────────────────────────────────


def _cases(taken: Mapping[str, Taken], files: str, names: str) -> Iterable[str]:
    """A `case` of bash and zsh over the command and the word before, with what is offered there."""
    for command, each in taken.items():
        for option, values in each.options.items():
            if values is None:
                yield f"    '{command} {option}') {files} ;;"
            elif values:
                yield f"    '{command} {option}') {names.format(' '.join(values))} ;;"
        yield f"    '{command} '*)"
        yield '      case "$now" in'
        yield f"        -*) {names.format(' '.join(each.options))} ;;"
        yield f"        *) {names.format(' '.join(each.names))}; {files} ;;"
        yield "      esac ;;"
    yield f"    *) {names.format(' '.join([*taken, '--help', '--version']))} ;;"


def _bash(taken: Mapping[str, Taken]) -> str:
    body = _cases(taken, "compopt -o default 2>/dev/null", 'names="{}"')
    return "\n".join(
        [
            "_conformance() {",
            '  local now="${COMP_WORDS[COMP_CWORD]}" before="${COMP_WORDS[COMP_CWORD-1]}" command="" names=""',
            '  [ "$COMP_CWORD" -gt 1 ] && command="${COMP_WORDS[1]}"',
            '  case "$command $before" in',
            *body,
            "  esac",
            '  COMPREPLY=($(compgen -W "$names" -- "$now"))',
            "}",
            "complete -F _conformance conformance",
            "",
        ]
    )


def _zsh(taken: Mapping[str, Taken]) -> str:
    body = _cases(taken, "_files", "compadd -- {}")
    return "\n".join(
        [
            "#compdef conformance",
            "_conformance() {",
            '  local now="${words[CURRENT]}" before="${words[CURRENT-1]}" command=""',
            '  (( CURRENT > 2 )) && command="${words[2]}"',
            '  case "$command $before" in',
            *body,
            "  esac",
            "}",
            "compdef _conformance conformance",
            "",
        ]
    )


def _fish(taken: Mapping[str, Taken]) -> str:
    lines = []
    for command, each in taken.items():
        summary = each.summary.replace("\\", "\\\\").replace("'", "\\'")
        lines.append(f"complete -c conformance -n __fish_use_subcommand -f -a {command} -d '{summary}'")
        within = f"complete -c conformance -n '__fish_seen_subcommand_from {command}'"
        if each.names:
            lines.append(f"{within} -a '{' '.join(each.names)}'")
        for option, values in each.options.items():
            name = f"-l {option[2:]}" if option.startswith("--") else f"-s {option[1:]}"
            rest = " -r" if values is None else f" -x -a '{' '.join(values)}'" if values else ""
            lines.append(f"{within} {name}{rest}")
    return "\n".join([*lines, ""])


SHELLS = {"bash": _bash, "zsh": _zsh, "fish": _fish}
