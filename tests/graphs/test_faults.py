"""Known faults of backends: data, and the reshapes of a model that they may hit."""

import json
from pathlib import Path

from tests.builders import Cli
from tests.graphs.graph_files import dump, static, tensor


def test_a_known_fault_is_shown_with_its_backend_and_reshape(tmp_path: Path, cli: Cli) -> None:
    hit = static(tensor(0, 20, 1, 2, 512), [0, 0, -1], tensor(1, 20, 1, 1024), 1)
    path = dump(tmp_path, hit, static(tensor(0, 20, 1, 2, 512), [20, 1024], tensor(2, 20, 1024)))
    assert "known faults" not in cli("check-graph", path).expect(0).text
    said = cli("check-graph", path, "--faults").expect(0).text
    assert "ncnn 1.0.20240410, 1.0.20261020: A 0 copies from a dimension counted from the end" in said
    assert "(graph[0])" in said
    nodes = json.loads(cli("check-graph", path, "--faults", "--json").out)["files"][0]["nodes"]
    first, second = ([fault["id"] for fault in node["faults"]] for node in nodes)
    assert ("ncnn-copies-from-another-dimension" in first, "ncnn-rejects-ranks-above-4" in first) == (True, False)
    assert "sparse-0-15-loses-the-sign-of-zero" in second, "it depends on values, so that any call may meet it"
    assert "ncnn-copies-from-another-dimension" not in second


def test_an_illegal_or_undecided_reshape_has_no_faults(tmp_path: Path, cli: Cli) -> None:
    path = dump(
        tmp_path, static(tensor(0, 2, 3, 4), [0, 5], tensor(1, 2, 5), 1),
        static(tensor(2, -(2**63)), [0, 5], tensor(3, 2, 5), 1),
    )  # fmt: skip
    nodes = json.loads(cli("check-graph", path, "--faults", "--json").expect(1).out)["files"][0]["nodes"]
    assert [(node["kind"], node["faults"]) for node in nodes] == [("illegal", []), ("not decided", [])]


def test_a_fault_that_only_some_lengths_meet_is_named(tmp_path: Path, cli: Cli) -> None:
    path = dump(tmp_path, static(tensor(0, 1, 4), [-1, 4], tensor(1, 1, 4)))
    for lengths, is_hit in (("1..2", False), ("0..2", True)):
        said = cli("check-graph", path, "--input", f"0={lengths},4", "--faults").expect(0).out
        assert ("without elements is rejected" in said) == is_hit
