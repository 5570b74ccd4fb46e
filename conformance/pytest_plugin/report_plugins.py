"""Give plugins that write reports what they need to show each row as a test.

Allure needs parameters. It takes tests with the same function name and the same parameters for retries of one test, and
the rows of a case differ only in the part in brackets.
"""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from .items import CaseRow


def register_reporters(config: pytest.Config) -> None:
    """Register what the plugins that write reports in this session need."""
    if config.getoption("allure_report_dir", None):
        config.pluginmanager.register(_AllureParameters())


class _AllureParameters:
    """Tells Allure the parameters of each row, which are part of the id of its history."""

    def __init__(self) -> None:
        self._allure: Any = importlib.import_module("allure")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if isinstance(item, CaseRow):
            row = item.row
            shape = row.given if row.given == "attribute" else f"{row.given} {row.shape_type}"
            for name, value in (("operation", row.operation), ("type", row.type), ("shape", shape)):
                self._allure.dynamic.parameter(name, value)
