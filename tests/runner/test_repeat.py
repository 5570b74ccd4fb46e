"""Rows that an audit calls again."""

import pytest

from conformance.run import row
from conformance.runner.repeat import repeat
from conformance.verdict.rejudge import read_and_judge

from ..builders import Command

OFTEN = """about: A call that is made again and again.
cases:
  - id: often
    rule: same-content
    src: f32[6]
    shape: [2, 3]
    special_zero: false
    times: 60000
    expect: f32[2, 3]
"""


@pytest.mark.slow
def test_a_row_may_be_called_more_often_than_before(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of calls that fit into the time is no part of an answer."""
    monkeypatch.setattr(row, "MAX_SECONDS", 0.02)
    (command.cases / "often.yaml").write_text(OFTEN, encoding="utf-8")
    backend = "broken:zero-flag-ignored"
    command.run(backend, "--type", "f32", "-k", "often")
    evidence = read_and_judge(command.out / "results.jsonl", command.plan)
    again = repeat(evidence, command.plan, backend, 100)
    assert again.rows > 0
    assert again.differences == ()
