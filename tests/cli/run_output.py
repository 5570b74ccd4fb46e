"""Read the output of a run, for the tests, and a terminal for it."""

import io

from ..builders import DOCUMENTS, CommandOutput

TYPES = {"f32", "f16", "bf16"}


class Screen(io.StringIO):
    """A terminal of 80 columns."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def sentences(said: CommandOutput) -> dict[str, str]:
    """The sentence of each document."""
    return {document: s for s in said.data["sentences"] for document in DOCUMENTS if document in s}


def words(said: CommandOutput) -> set[str]:
    return {standing["standing"] for standing in said.data["standings"]}


def never_conforms(said: CommandOutput) -> None:
    assert said.code != 0
    assert not any("conforms to" in sentence for sentence in said.data["sentences"])
    assert "conforms" not in words(said)
