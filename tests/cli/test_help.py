"""The help: every command on one screen, with examples of itself that run."""

import pytest

from conformance.cli.commands import COMMANDS, load_command, parser_of

from ..builders import Cli

EXAMPLES = {command: load_command(command).EXAMPLES for command in COMMANDS}


def test_help_tells_the_story_on_one_screen(cli: Cli) -> None:
    lines = cli("--help").expect(0).out.splitlines()
    assert len(lines) <= 49
    assert max(map(len, lines)) <= 110
    assert all(any(line.startswith(f"  {name} ") for line in lines) for name in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_examples_of_itself(command: str, cli: Cli) -> None:
    assert f"conformance {command}" in EXAMPLES[command]
    cli(command, "--help").expect(0, out=EXAMPLES[command].splitlines()[0])


@pytest.mark.parametrize(
    ("command", "said"), [("list", "list WHAT ["), ("explain", "explain NAME ["), ("meaning", "--special-zero BOOL [")]
)
def test_what_must_be_given_is_in_no_brackets(command: str, said: str, cli: Cli) -> None:
    assert said in cli(command, "--help").expect(0).out.partition("\n\n")[0]


def test_examples_use_options_that_there_are() -> None:
    for command, text in EXAMPLES.items():
        for line in (line for line in text.splitlines() if f"conformance {command} " in line):
            for word in (word for word in line.split() if word.startswith("--")):
                assert word in parser_of(command).options, f"conformance {command} has no {word}"


def test_the_version_names_the_suite(cli: Cli) -> None:
    from conformance.load.cases import load_suite

    cli("--version").expect(0, out=load_suite().digest)


def test_every_command_speaks_to_machines() -> None:
    for command in COMMANDS:
        assert "--json" in parser_of(command).options
