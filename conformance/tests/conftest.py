"""Makes our marker known where no pyproject.toml does: under `pytest --pyargs conformance`."""

from __future__ import annotations

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "slow: takes more than a few seconds; `-m 'not slow'` leaves it out")
