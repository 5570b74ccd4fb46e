"""`conformance check-graph` on graphs of oneDNN Graph: decisions, lengths, exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from .files import UNKNOWN, check, relu, static_reshape, tensor, write_graph

Captured = pytest.CaptureFixture[str]


def test_a_legal_graph_ends_with_0_and_names_node_line_and_call(tmp_path: Path, capsys: Captured) -> None:
    graph = write_graph(tmp_path, static_reshape("flatten", tensor(0, [8, 256, 6, 6]), [0, -1], tensor(1, UNKNOWN)))
    code, out, _ = check(capsys, graph)
    assert code == 0
    assert "flatten  StaticReshape, line 3" in out
    assert "f32[8, 256, 6, 6] by [0, -1], special_zero true → [8, 9216]" in out


def test_a_baked_in_batch_is_illegal_for_every_other_length(tmp_path: Path, capsys: Captured) -> None:
    graph = write_graph(tmp_path, static_reshape("flatten", tensor(0, [1, 256, 6, 6]), [1, 9216], tensor(1, UNKNOWN)))
    assert check(capsys, graph)[0] == 0
    code, out, _ = check(capsys, graph, "--input", "0=1..8,256,6,6")
    assert code == 1
    assert "illegal for 0[0] = 2..8: same-volume\n" in out
    assert 'line 12 "The volume of"' in out


def test_lengths_that_depend_on_one_another_are_described_shortly(tmp_path: Path, capsys: Captured) -> None:
    graph = write_graph(tmp_path, static_reshape("flatten", tensor(0, [2, 6]), [2, 6], tensor(1, UNKNOWN)))
    _, out, _ = check(capsys, graph, "--input", "0=1..2,6..7")
    assert "illegal for all but 0[0] = 2, 0[1] = 6: same-volume" in out
    _, out, _ = check(capsys, graph, "--input", "0=2..6,2..6")
    assert "illegal for 21 of 25 combinations, the first 0[0] = 2, 0[1] = 2: same-volume" in out


def test_a_batch_that_is_copied_is_legal_for_every_length_tried(tmp_path: Path, capsys: Captured) -> None:
    graph = write_graph(tmp_path, static_reshape("flatten", tensor(0, [1, 256, 6, 6]), [0, 9216], tensor(1, [1, 9216])))
    code, out, _ = check(capsys, graph, "--input", "0=1..8,256,6,6")
    assert (code, "legal for every length tried" in out) == (0, True)


def test_rules_that_do_not_read_src_decide_without_it(tmp_path: Path, capsys: Captured) -> None:
    graph = write_graph(tmp_path, static_reshape("two", tensor(0, UNKNOWN), [-1, -1], tensor(1, UNKNOWN)))
    code, out, _ = check(capsys, graph)
    assert (code, "illegal: one-infer" in out) == (1, True)


def test_a_node_of_which_src_is_missing_is_not_decided(tmp_path: Path, capsys: Captured) -> None:
    first = relu("activation", tensor(0, UNKNOWN), tensor(1, UNKNOWN))
    second = static_reshape("flatten", tensor(1, UNKNOWN), [1, 9216], tensor(2, UNKNOWN))
    code, out, _ = check(capsys, write_graph(tmp_path, first, second))
    assert code == 4
    assert "not decided: missing: src, which ReLU 'activation' gives" in out


def test_dims_flow_through_reshapes_and_become_unknown_behind_other_operations(
    tmp_path: Path, capsys: Captured
) -> None:
    first = static_reshape("first", tensor(0, [1, 12]), [-1, 3], tensor(1, UNKNOWN))
    second = static_reshape("second", tensor(1, UNKNOWN), [4, 3], tensor(2, UNKNOWN))
    graph = write_graph(tmp_path, first, second)
    assert check(capsys, graph)[0] == 0
    code, out, _ = check(capsys, graph, "--input", "0=2,12")
    assert (code, "f32[8, 3] by [4, 3]" in out) == (1, True)
    behind = static_reshape("behind", tensor(1, [1, 12]), [12], tensor(2, [12]))
    graph = write_graph(tmp_path, relu("activation", tensor(0, [1, 12]), tensor(1, [1, 12])), behind)
    assert check(capsys, graph)[0] == 0
    assert check(capsys, graph, "--input", "0=1,12")[0] == 0
    code, out, _ = check(capsys, graph, "--input", "0=2,12")
    assert (code, "which ReLU 'activation' gives" in out) == (4, True)


@pytest.mark.parametrize(("shape", "special_zero"), [(None, 1), ([2, 2], None)])
def test_a_missing_attribute_is_illegal(
    tmp_path: Path, capsys: Captured, shape: list[int] | None, special_zero: int | None
) -> None:
    graph = write_graph(tmp_path, static_reshape("bare", tensor(0, [4]), shape, tensor(1, UNKNOWN), special_zero))
    code, out, _ = check(capsys, graph)
    assert (code, "illegal: attributes-required" in out) == (1, True)


def test_declared_dims_that_contradict_are_illegal_unless_a_length_was_bound(tmp_path: Path, capsys: Captured) -> None:
    graph = write_graph(tmp_path, static_reshape("flatten", tensor(0, [2, 6]), [0, 2, 3], tensor(1, [2, 3, 2])))
    code, out, _ = check(capsys, graph)
    assert (code, "illegal: declared-output" in out) == (1, True)
    assert check(capsys, graph, "--input", "0=4,6")[0] == 0


def test_documents_are_named_where_they_differ(tmp_path: Path, capsys: Captured) -> None:
    graph = write_graph(tmp_path, static_reshape("mixed", tensor(0, [0, 4]), [0, -1], tensor(1, UNKNOWN), 0))
    code, out, _ = check(capsys, graph)
    assert code == 1
    assert "illegal: zero-meets-infer in static-2020, static-2021" in out
    assert "unspecified: infer-undetermined in static-2022" in out
    assert check(capsys, graph, "--document", "static-2022")[0] == 0


def test_json_has_every_try_of_every_node(tmp_path: Path, capsys: Captured) -> None:
    graph = write_graph(tmp_path, static_reshape("flatten", tensor(0, [1, 6]), [1, 6], tensor(1, UNKNOWN)))
    code, out, _ = check(capsys, graph, "--input", "0=1..2,6", "--json")
    (node,) = json.loads(out)["files"][0]["nodes"]
    assert (code, node["decision"], len(node["tries"])) == (1, "illegal", 2)
    assert [each["decisions"]["static-2020"]["kind"] for each in node["tries"]] == ["legal", "illegal"]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("y=1,6", "there is no such input; the inputs are 0"),
        ("0=1", "has 1 lengths, the file declares 2: [1, 6]"),
        ("0=1,x", "'x' is neither a length, a range such as 1..8, nor ?"),
        ("0=8..1,6", "the range 8..1 is empty"),
        ("0=1..99999999,6", "at most 1,000 are tried"),
        ("0", "names no input"),
    ],
)
def test_a_wrong_input_says_what_to_write(tmp_path: Path, capsys: Captured, option: str, message: str) -> None:
    graph = write_graph(tmp_path, static_reshape("flatten", tensor(0, [1, 6]), [1, 6], tensor(1, UNKNOWN)))
    code, _, err = check(capsys, graph, "--input", option)
    assert code == 2
    assert message in err


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: this is no JSON"),
        ('{"graph": [\n{"id": 1,', "line 2, column 10: this is no JSON"),
        ("[]", "a graph is an object"),
        ("{}", "there is no list `graph`"),
        ('{"graph": [\n{"name": 1}\n]}', "line 2: node 0 has not the form of oneDNN Graph: 'kind' is missing"),
        ('{"graph": [\n{"kind": "ReLU", "inputs": [{"id": 0, "shape": [-5]}]}\n]}', "line 2: node 0"),
        ('{"graph": [\n7\n]}', "node 0"),
        ("[" * 200_000, "nested too deeply"),
        ('{"graph": [' + "9" * 5000 + "]}", "9" * 0),
    ],
)
def test_a_file_that_is_no_graph_ends_with_2_and_its_place(
    tmp_path: Path, capsys: Captured, text: str, message: str
) -> None:
    (tmp_path / "bad.json").write_text(text)
    code, _, err = check(capsys, tmp_path / "bad.json")
    assert code == 2
    assert "bad.json: " in err
    assert message in err


def test_operations_that_take_one_anothers_outputs_are_named(tmp_path: Path, capsys: Captured) -> None:
    there = static_reshape("there", tensor(1, [4]), [4], tensor(2, [4]))
    back = static_reshape("back", tensor(2, [4]), [4], tensor(1, [4]))
    code, _, err = check(capsys, write_graph(tmp_path, there, back))
    assert code == 2
    assert "operations take one another's outputs: " in err
    assert "'there'" in err


def test_control_characters_of_a_name_are_written_out(tmp_path: Path, capsys: Captured) -> None:
    graph = write_graph(tmp_path, static_reshape("a\x1b[2Jb\n✓ ok", tensor(0, [4]), [4], tensor(1, [4])))
    code, out, _ = check(capsys, graph)
    assert code == 0
    assert "\x1b" not in out
    assert "a\\x1b[2Jb\\n✓ ok" in out
