"""The lab as a command in this process."""

import pytest

from tests.builders import Cli
from tools.lab.__main__ import main


class LabCommand(Cli):
    """`python -m tools.lab` in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(capsys, main)


@pytest.fixture
def run_lab(capsys: pytest.CaptureFixture[str]) -> LabCommand:
    return LabCommand(capsys)
