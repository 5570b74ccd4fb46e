"""The command that the tests of sweeps call."""

from pathlib import Path

import pytest

from ..builders import Cli, CommandOutput
from .sweeps import STATIC, Sweep


@pytest.fixture
def sweep(cli: Cli) -> Sweep:
    """The command, on a small domain."""

    def run(out: Path, *more: object, backend: str = "planted:first-infer-wins") -> CommandOutput:
        return cli("sweep", backend, "--rank", 1, "--max-dim", 2, *STATIC, "--out", out, *more)

    return run
