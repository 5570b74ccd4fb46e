"""Adapters of a few lines, for the tests of these."""

from pathlib import Path
from typing import Any

import pytest

from conformance.plan.rows import Plan

from .. import builders

HEAD = """
from conformance.adapter import FunctionAdapter
from conformance.model import Claims, Identity

class Right(FunctionAdapter):
    name, version = "right", "1"
    def reshape(self, src, shape, special_zero):
        return src.reshape(shape)

"""


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return builders.plan_of_cases(tmp_path_factory.mktemp("few"))


@pytest.fixture
def backend(tmp_path: Path) -> Any:
    """Writes a file with a class `It` and gives its name."""

    def write(text: str) -> str:
        path = tmp_path / "mine.py"
        path.write_text(HEAD + text, encoding="utf-8")
        return f"{path}:It"

    return write
