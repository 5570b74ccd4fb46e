"""The words that a shell offers after `conformance`, and the help."""

import inspect
import shutil
import subprocess
from pathlib import Path

import pytest

from conformance.cli.commands import commands_and_options, load_command
from conformance.cli.completion import completions
from conformance.cli.main import main
from tests.builders import Cli

COMMANDS = sorted(commands_and_options())
EXAMPLES = {name: load_command(name).EXAMPLES for name in COMMANDS}
BASH, ZSH, FISH = shutil.which("bash"), shutil.which("zsh"), shutil.which("fish")


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("scripts")
    found = {}
    for shell in ("bash", "zsh", "fish"):
        with pytest.MonkeyPatch.context() as patch:
            from io import StringIO

            patch.setattr("sys.stdout", text := StringIO())
            assert main(["--completion", shell]) == 0
        found[shell] = folder / shell
        found[shell].write_text(text.getvalue(), encoding="utf-8")
    return found


OFFERED = [
    ("dif", {"diff"}),
    ("diff static-o", {"static-oneapi"}),
    ("run num", {"numpy"}),
    ("run --docum", {"--document"}),
    ("run reference --document static-s", {"static-spec-v0.9"}),
    ("run --isolation w", {"worker"}),
    ("list cas", {"cases"}),
    ("list fac", {"factors"}),
    ("list rules deci", {"decided"}),
    ("explain one-inf", {"one-infer"}),
]


@pytest.mark.skipif(BASH is None, reason="no bash here")
@pytest.mark.parametrize(("typed", "offered"), OFFERED)
def test_bash_offers_what_may_follow(scripts: dict[str, Path], typed: str, offered: set[str]) -> None:
    words = ["conformance", *typed.split(" ")]
    ask = f". {scripts['bash']}; COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}"
    done = subprocess.run(
        ["bash", "--norc", "-c", f'{ask}; _conformance; printf "%s\\n" "${{COMPREPLY[@]}}"'],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert set(done.stdout.split()) == offered
    assert done.stderr == ""


@pytest.mark.skipif(FISH is None, reason="no fish here")
@pytest.mark.parametrize(("typed", "offered"), OFFERED)
def test_fish_offers_what_may_follow(scripts: dict[str, Path], typed: str, offered: set[str]) -> None:
    ask = f"source {scripts['fish']}; complete -C 'conformance {typed}'"
    done = subprocess.run([str(FISH), "--no-config", "-c", ask], capture_output=True, text=True, check=True)
    assert offered <= {line.partition("\t")[0] for line in done.stdout.splitlines()}


@pytest.mark.skipif(ZSH is None, reason="no zsh here")
def test_zsh_reads_the_script(scripts: dict[str, Path]) -> None:
    subprocess.run([str(ZSH), "-f", "-n", scripts["zsh"]], check=True)


def test_the_first_word_is_a_command() -> None:
    assert sorted(completions(commands_and_options())) == COMMANDS


@pytest.mark.parametrize("shell", ["", "fsih"])
def test_an_unknown_shell_gets_a_hint(shell: str, cli: Cli) -> None:
    cli("--completion", shell).expect(2, err="fish")


# ── help ──────────────────────────────────────────────────────────────────────────────────────────
def test_help_tells_the_story_on_one_screen(cli: Cli) -> None:
    lines = cli("--help").expect(0).out.splitlines()
    assert len(lines) <= 49
    assert max(map(len, lines)) <= 110
    assert all(any(line.startswith(f"  {name} ") for line in lines) for name in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_examples_of_itself(command: str, cli: Cli) -> None:
    assert f"conformance {command}" in EXAMPLES[command]
    cli(command, "--help").expect(0, out=EXAMPLES[command].splitlines()[0])


def test_examples_use_options_that_there_are() -> None:
    options = commands_and_options()
    for command, text in EXAMPLES.items():
        for line in (line for line in text.splitlines() if f"conformance {command} " in line and command in options):
            for word in (word for word in line.split() if word.startswith("--")):
                assert word in options[command][1], f"conformance {command} has no {word}"


def test_the_version_names_the_suite(cli: Cli) -> None:
    from conformance.load.cases import load_suite

    cli("--version").expect(0, out=load_suite().digest)


def test_a_choice_misspelt_gets_the_nearest(cli: Cli) -> None:
    cli("run", "reference", "--isolation", "wroker").expect(2, err="did you mean 'worker'?")


def test_every_command_speaks_to_machines() -> None:
    assert all("--json" in options for _, options in commands_and_options().values())
    for command in COMMANDS:
        assert "args.json" in inspect.getsource(load_command(command)), command
