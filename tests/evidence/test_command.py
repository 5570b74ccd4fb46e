"""The limits under which rows are called again."""

from __future__ import annotations

import pytest

from conformance.evidence.command import limits_again
from conformance.isolate.process.launch import DEFAULT_LIMITS


@pytest.mark.parametrize(
    ("limits", "seconds"), [({}, DEFAULT_LIMITS.seconds), ({"timeout": 60.0}, 60.0), ({"timeout": 1e9}, 600.0)]
)
def test_rows_are_called_again_under_the_limit_of_their_run(limits: dict[str, float], seconds: float) -> None:
    assert limits_again({"limits": limits}) == DEFAULT_LIMITS._replace(seconds=seconds)
