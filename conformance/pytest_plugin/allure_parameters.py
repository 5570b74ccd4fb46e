"""Tell Allure the parameters of each row.

Tests with the same function name and the same parameters count as retries of one test there, and the rows of a case
differ only in the part in brackets.
"""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from .items import CaseRow


class AllureParameters:
    def __init__(self) -> None:
        self._allure: Any = importlib.import_module("allure")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if isinstance(item, CaseRow):
            row = item.row
            shape = row.given if row.given == "attribute" else f"{row.given} {row.shape_type}"
            for name, value in (("operation", row.operation), ("type", row.type), ("shape", shape)):
                self._allure.dynamic.parameter(name, value)
