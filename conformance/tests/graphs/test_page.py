"""--out: a page with a picture of each call, in which names of a file only show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from .files import UNKNOWN, check, static_reshape, tensor, write_graph

Captured = pytest.CaptureFixture[str]


def test_the_page_draws_each_call_and_says_what_it_means(tmp_path: Path, capsys: Captured) -> None:
    nodes = [
        static_reshape("flatten", tensor(0, [1, 6]), [1, 6], tensor(1, UNKNOWN)),
        static_reshape("open", tensor(2, UNKNOWN), [0, -1], tensor(3, UNKNOWN)),
    ]
    page = tmp_path / "page.html"
    code, out, _ = check(capsys, write_graph(tmp_path, *nodes), "--input", "0=1..3,6", "--out", page)
    text = page.read_text(encoding="utf-8")
    assert (code, f"page: {page}" in out) == (1, True)
    assert "illegal for 0[0] = 2..3: same-volume" in text
    assert text.count("<svg") == 2  # one illegal, one legal; `open` is not known
    labels = re.findall(r'aria-label="(src [^"]*)"', text)
    assert labels == ["src [2, 6]; shape [1, 6]; want a refusal", "src [1, 6]; shape [1, 6]; want 1, 6"]
    assert "dst holds as many elements as src." in text


def test_names_of_a_file_cannot_act_on_the_page(tmp_path: Path, capsys: Captured) -> None:
    node = static_reshape("<script>alert(1)</script>\u202e", tensor(0, [6]), [6], tensor(1, UNKNOWN))
    check(capsys, write_graph(tmp_path, node), "--out", tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script" not in text
    assert "\u202e" not in text
    assert "&lt;script&gt;alert(1)" in text


def test_a_call_that_is_illegal_for_another_reason_than_its_lengths_is_not_drawn(
    tmp_path: Path, capsys: Captured
) -> None:
    graph = write_graph(tmp_path, static_reshape("split", tensor(0, [6]), [2, 3], tensor(1, [3, 2])))
    check(capsys, graph, "--out", tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "illegal: declared-output" in text
    assert "<svg" not in text
