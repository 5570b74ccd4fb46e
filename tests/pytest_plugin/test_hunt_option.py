"""`pytest --adapter BACKEND --hunt N` draws rows after a whole session, as `conformance run` does."""

from __future__ import annotations

from pathlib import Path

from conformance.evidence.results import read
from tests.pytest_plugin.done import HERE, Done

CASES = """\
about: One call.
cases:
  - id: our-batch-of-one
    rule: same-volume
    src: f32[1, 6]
    shape: [2, 3]
    special_zero: false
    expect: f32[2, 3]
"""
OPTIONS = ("--conformance-cases", "private", "--conformance-out", "out", "-q", "-p", "no:cacheprovider", *HERE)


def call(folder: Path, backend: str, *options: str) -> Done:
    (folder / "private").mkdir()
    (folder / "private" / "ours.yaml").write_text(CASES, encoding="utf-8")
    return Done(folder, *OPTIONS, *options, adapter=backend)


def test_a_drawn_row_that_fails(tmp_path: Path) -> None:
    done = call(tmp_path, "broken:zero-flag-ignored", "--hunt", "60")
    done.says("a drawn row failed: drawn-0-", "refused a legal call", "- id: refused-a-legal-call-zero-copies")
    assert done.code != 0
    evidence = read(tmp_path / "out" / "results.jsonl")
    assert evidence.header["drawn"] == {"seed": 0, "calls": 60}
    assert evidence.footer["drawn"]["failures"] > 0
    assert [result.row for result in evidence.results if result.case is not None]


def test_a_part_of_a_session_draws_none(tmp_path: Path) -> None:
    done = call(tmp_path, "broken:eight-buffers-in-turn", "--hunt", "60", "--type", "f32")
    assert "a drawn row failed" not in done.text
    assert "drawn" not in read(tmp_path / "out" / "results.jsonl").header
