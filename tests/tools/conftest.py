"""The lab as a command in this process."""

import pytest

from tests.builders import Cli
from tools.lab.__main__ import main


@pytest.fixture
def run_lab(capsys: pytest.CaptureFixture[str]) -> Cli:
    """`python -m tools.lab` in this process."""
    return Cli(capsys, main)
