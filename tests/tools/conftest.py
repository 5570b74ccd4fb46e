"""The lab as a command in this process."""

from __future__ import annotations

import pytest

from tests.builders import CommandOutput
from tools.lab.__main__ import main


class LabCommand:
    """`python -m tools.lab`."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *words: object) -> CommandOutput:
        self._capsys.readouterr()
        code = main([str(word) for word in words])
        return CommandOutput(code, *self._capsys.readouterr())


@pytest.fixture
def run_lab(capsys: pytest.CaptureFixture[str]) -> LabCommand:
    return LabCommand(capsys)
