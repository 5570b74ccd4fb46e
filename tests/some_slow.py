"""Parameters of a test of which a few are fast, and the others are left to the slow tests."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest


def some_slow(every: Iterable[str], fast: Container[str]) -> list[Any]:
    """Return all of them in order, with the mark `slow` but for the fast ones."""
    return [each if each in fast else pytest.param(each, marks=pytest.mark.slow) for each in every]
