"""--cases and --run: the calls of the nodes as cases, and a backend that makes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.load.cases import load_suite

from .files import UNKNOWN, check, static_reshape, tensor, write_graph

Captured = pytest.CaptureFixture[str]


def write(folder: Path) -> Path:
    """Two nodes with one call, and one with another, of which src is not known."""
    nodes = [static_reshape(name, tensor(0, [2, 6]), [1, 12], tensor(1, UNKNOWN)) for name in ("first", "second")]
    return write_graph(folder, *nodes, static_reshape("open", tensor(5, UNKNOWN), [0, -1], tensor(6, UNKNOWN)))


def test_each_different_call_becomes_a_case_of_the_suite(tmp_path: Path, capsys: Captured) -> None:
    code, out, _ = check(capsys, write(tmp_path), "--input", "0=1..2,6", "--cases", tmp_path / "cases")
    assert code == 1
    assert "2 cases of different calls to " in out
    assert "; 2 tries had no call that is known whole" in out
    suite = load_suite(cases=tmp_path / "cases")
    steps = [suite.cases[id_].steps[0] for id_ in sorted(suite.cases) if id_.startswith("model-node-first-")]
    assert [(step.src, step.shapes, {each.kind for each in step.expect.values()}) for step in steps] == [
        ((1, 6), ((1, 12),), {"illegal"}),
        ((2, 6), ((1, 12),), {"legal"}),
    ]


def test_a_backend_that_answers_otherwise_is_named(tmp_path: Path, capsys: Captured) -> None:
    graph = write(tmp_path)
    code, out, _ = check(capsys, graph, "--run", "numpy")
    assert (code, "pass  model-node-first-2-6[StaticReshape-f32]" in out) == (4, True)  # a node is not decided
    code, out, _ = check(capsys, graph, "--input", "0=1,6", "--run", "broken:volume-unchecked")
    assert (code, "fail  model-node-first-1-6[StaticReshape-f32]" in out) == (1, True)


def test_without_a_call_that_is_known_nothing_is_written(tmp_path: Path, capsys: Captured) -> None:
    graph = write_graph(tmp_path, static_reshape("open", tensor(5, UNKNOWN), [0, -1], tensor(6, UNKNOWN)), ports=(5,))
    code, _, err = check(capsys, graph, "--cases", tmp_path / "cases")
    assert (code, "no call of a node is known whole" in err) == (2, True)
    assert not (tmp_path / "cases").exists()
    code, _, err = check(capsys, graph, "--run", "numpy", "--json")
    assert (code, "drop --json" in err) == (2, True)
