"""`conformance check-graph` decides the reshapes of a model file for each length, and says what it cannot decide."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Cli
from tests.graphs.graph_files import UNKNOWN, dump, kinds, static, tensor

# ── lengths ───────────────────────────────────────────────────────────────────────────────────────


def test_a_baked_in_batch_is_illegal_for_every_other_batch(tmp_path: Path, cli: Cli) -> None:
    path = dump(tmp_path, static(tensor(0, 1, 3, 4), [1, 12], tensor(1, 1, 12)))
    assert "legal\n" in cli("check-graph", path).expect(0).out
    said = cli("check-graph", path, "--input", "0=1..8,3,4").expect(1).out
    assert "illegal for 0[0] = 2..8: same-volume; legal for 0[0] = 1" in said
    assert "dst holds as many elements as src" in said


def test_dims_that_a_dump_does_not_tell_are_computed(tmp_path: Path, cli: Cli) -> None:
    first, second = (
        static(tensor(0, 4, 3), [-1, 6], tensor(1, *UNKNOWN)),
        static(tensor(1, *UNKNOWN), [5, 2], tensor(2, *UNKNOWN)),
    )
    assert kinds(cli, 1, dump(tmp_path, first, second)) == ["legal", "illegal"]


def test_attributes_of_partitions_are_not_of_the_node(tmp_path: Path, cli: Cli) -> None:
    entry = static(tensor(0, 6), [2, 3], tensor(1, *UNKNOWN))
    entry["attrs"] |= {"partition_id": {"type": "string", "value": "100008"}}
    entry["attrs"] |= {"backend": {"type": "string", "value": "dnnl_backend"}}
    assert kinds(cli, 0, dump(tmp_path, entry)) == ["legal"]
    entry["attrs"] |= {"another": {"type": "string", "value": "x"}}
    assert "extra-attributes" in cli("check-graph", dump(tmp_path, entry)).out


def test_behind_another_operation_a_length_is_not_decided(tmp_path: Path, cli: Cli) -> None:
    other = {"id": 2, "kind": "MatMul", "inputs": [tensor(0, 1, 12)], "outputs": [tensor(1, 1, 12)]}
    path = dump(tmp_path, other, static(tensor(1, 1, 12), [1, 12], tensor(2, 1, 12)))
    assert kinds(cli, 0, path) == ["legal"]
    assert kinds(cli, 0, path, "--input", "0=1,12") == ["legal"]
    said = cli("check-graph", path, "--input", "0=2,12").expect(4).out
    assert "not decided: the dims of src are not inferred for this length" in said


def with_runtime_shape() -> dict[str, Any]:
    entry = static(tensor(0, 6), [], tensor(1, 6), kind="DynamicReshape")
    del entry["attrs"]["shape"]
    entry["inputs"].append(tensor(5, 1, dtype="s32"))
    return entry


SAID: dict[str, tuple[list[dict[str, Any]], tuple[str, ...], int, str]] = {
    # name: (operations, words of the command, exit code, what is said)
    "a free batch": (
        [static(tensor(0, 1, 3, 4), [-1, 12], tensor(1, 1, 12))], ("--input", "0=1..8,3,4"), 0,
        "legal for every length tried",
    ),
    "every combination of two lengths": (
        [static(tensor(0, 2, 2), [4], tensor(1, 4))], ("--input", "0=1..2,2..3"), 1, "legal for (0[0] = 2, 0[1] = 2)"
    ),
    "a shape that arrives with run": ([with_runtime_shape()], (), 4, "not decided: shape arrives with run"),
    "a type of src that is not told": (
        [static({"id": 0, "shape": [6]}, [6], tensor(1, 6))], (), 4, "?[6] by [6]  not decided: the element type is not"
    ),
    "a type of dst that is not told": (
        [static(tensor(0, 6), [6], tensor(1, 6, dtype="undef"))], (), 4, "f32[6] by [6]  not decided: the element type"
    ),
    "a call that is illegal for every type": (
        [static(tensor(0, 6, dtype="undef"), [7], tensor(1, 7, dtype="undef"))], (), 1, "?[6] by [7]  illegal: same-vol"
    ),
    "no reshape": (
        [{"id": 2, "kind": "ReLU", "inputs": [tensor(0, 1)], "outputs": [tensor(1, 1)]}], (), 0, "0 reshapes: none"
    ),
    "a circle": (
        [
            static(tensor(0, 6), [6], tensor(1, 6)),
            {"id": 3, "kind": "Add", "inputs": [tensor(1, 6), tensor(3, 6)], "outputs": [tensor(2, 6)]},
            {"id": 4, "kind": "Add", "inputs": [tensor(2, 6)], "outputs": [tensor(3, 6)]},
        ],
        (), 2, "the graph is a circle",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SAID)
def test_check_graph_says(tmp_path: Path, cli: Cli, name: str) -> None:
    operations, words, code, said = SAID[name]
    assert said in cli("check-graph", dump(tmp_path, *operations), *words).expect(code).out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("x=1..8,3,4", "there is no input 'x' for --input; the inputs of"),
        ("0=1..8,3", "input '0' has 3 dims, and --input gives 2"),
        ("0=8..1,3,4", "write the smaller one first"),
        ("0=1..2000,3,4", "too many combinations of lengths; at most 1,000 are tried"),
        ("0=a,3,4", "'a' is not a length"),
        ("1,3,4", "names no input"),
    ],
)
def test_a_mistake_in_input_is_one_line(tmp_path: Path, cli: Cli, words: str, why: str) -> None:
    path = dump(tmp_path, static(tensor(0, 1, 3, 4), [1, 12], tensor(1, 1, 12)))
    said = cli("check-graph", path, "--input", words).expect(2)
    assert why in said.out + said.err
    assert "Traceback" not in said.out + said.err


def test_an_input_is_for_the_files_that_have_it(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "b").mkdir()
    has = dump(tmp_path, static(tensor(0, *UNKNOWN), [-1, 12], tensor(1, *UNKNOWN)))
    lacks = dump(tmp_path / "b", static(tensor(5, 6), [6], tensor(6, 6)))
    said = cli("check-graph", has, lacks, "--input", "0=1..3,3,4", "--json").expect(0)
    assert [len(file["nodes"][0]["trials"]) for file in said.data["files"]] == [3, 1]
    cli("check-graph", has, lacks, "--input", "9=1").expect(2, err="the inputs of the first of 2 files are 0")


# ── what is not known ─────────────────────────────────────────────────────────────────────────────


def test_rules_that_do_not_read_src_decide_without_it(tmp_path: Path, cli: Cli) -> None:
    unknown = tensor(0, *UNKNOWN)
    shapes = ([-1, -1], [2, -1], [0, 2])  # for the last, zero-empties would want a src without elements
    path = dump(tmp_path, *(static(unknown, shape, tensor(k, *UNKNOWN)) for k, shape in enumerate(shapes, 1)))
    assert kinds(cli, 1, path) == ["illegal", "not decided", "not decided"]
    assert "not decided: src is not known" in cli("check-graph", path).out


def test_documents_are_named_only_where_they_differ(tmp_path: Path, cli: Cli) -> None:
    path = dump(tmp_path, static(tensor(0, 0, 3), [0, -1], tensor(1, *UNKNOWN)))
    cli("check-graph", path).expect(1, out="illegal: zero-meets-infer (static-graph-v0.9, static-spec-v0.9)")
    assert "zero-meets-infer" not in cli("check-graph", path, "--document", "static-oneapi").out
    same = dump(tmp_path, static(tensor(0, 6), [7], tensor(1, *UNKNOWN)))
    assert "illegal: same-volume\n" in cli("check-graph", same).out


# ── the form of a node ────────────────────────────────────────────────────────────────────────────


def test_a_malformed_node_breaks_the_rule_about_its_form(tmp_path: Path, cli: Cli) -> None:
    without = static(tensor(0, 6), [6], tensor(1, 6))
    del without["attrs"]["special_zero"]
    other_type = static(tensor(0, 6), [6], tensor(2, 6, dtype="f16"))
    declared = static(tensor(0, 6), [2, 3], tensor(3, 3, 2))
    said = cli("check-graph", dump(tmp_path, without, other_type, declared)).expect(1).out
    assert [rule in said for rule in ("attributes-required", "declared-type-is-that-of-src", "declared-output")] == [
        True
    ] * 3


def test_two_dims_of_one_tensor_are_unreadable_if_they_differ(tmp_path: Path, cli: Cli) -> None:
    first = static(tensor(0, 4, 3), [-1, 6], tensor(1, 2, 6))
    for dims, why in (((2, 5), "[2, 5]"), ((12,), "[12]")):
        said = cli("check-graph", dump(tmp_path, first, static(tensor(1, *dims), [12], tensor(2, 12)))).expect(2).out
        assert f"unreadable: graph[1].inputs[0].shape: {why}: tensor 1 is [2, 6] before\n" in said
    for unknown in ([-1, 6], UNKNOWN):
        assert kinds(cli, 0, dump(tmp_path, first, static(tensor(1, *unknown), [0, 6], tensor(2, *UNKNOWN), 1)))


# ── bad files ─────────────────────────────────────────────────────────────────────────────────────

BAD = {
    "cut short": ('{"graph": [{"kind"', "byte 18: not JSON"),
    "no object": ("[1]", "there is no list `graph`"),
    "nested deep": ('{"graph":' + "[" * 100_000, "nested too deep"),
    "a number of many digits": ('{"graph": [' + "1" * 5000 + "]}", "not JSON"),
    "no operation": ('{"graph": [3]}', "graph[0]: 3"),
    "a shape of text": (
        '{"graph": [{"kind": "ReLU", "inputs": [{"id": 1, "shape": ["\\u001b[2J"]}]}]}',
        "graph[0].inputs[0].shape",
    ),
    "an id of text": ('{"graph": [{"kind": "ReLU", "inputs": [{"id": "a"}]}]}', "graph[0].inputs[0]"),
    "an attribute without a type": (
        '{"graph": [{"kind": "StaticReshape", "attrs": {"shape": [1]}}]}',
        "graph[0].attrs.shape",
    ),
    "entries of text": (
        '{"graph": [{"kind": "StaticReshape", "attrs": {"shape": {"type": "s64[]", "value": ["a"]}}}]}',
        "graph[0].attrs.shape",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_file_is_reported_with_its_place(tmp_path: Path, cli: Cli, what: str) -> None:
    text, why = BAD[what]
    path = tmp_path / "bad.json"
    path.write_text(text, encoding="utf-8")
    said = cli("check-graph", str(path)).expect(2)
    assert "unreadable" in said.out
    assert why in said.out
    assert "\x1b" not in said.out


def test_a_name_with_control_characters_is_written_out(tmp_path: Path, cli: Cli) -> None:
    path = dump(tmp_path, static(tensor(0, 6), [6], tensor(1, 6), name="a\x1b[2J\nb"))
    said = cli("check-graph", path).expect(0).out
    assert "\x1b" not in said
    assert "a\\x1b[2J\\nb" in said


@pytest.mark.parametrize("option", ["--cases", "--out"])
def test_what_cannot_be_written_is_the_only_json(tmp_path: Path, cli: Cli, option: str) -> None:
    path = dump(tmp_path, static(tensor(0, 6), [6], tensor(1, 6)))
    assert cli("check-graph", path, "--json", option, "/dev/null/x").expect(2).data["exit_code"] == 2


def test_one_bad_file_does_not_hide_the_others(tmp_path: Path, cli: Cli) -> None:
    good = dump(tmp_path, static(tensor(0, 6), [7], tensor(1, 7)))
    said = cli("check-graph", good, str(tmp_path / "nowhere.json"), str(tmp_path)).expect(2).out
    assert "same-volume" in said
    assert said.count("unreadable:") == 2


def test_a_missing_file_is_not_a_missing_package(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)  # as if it were not installed
    cli("check-graph", tmp_path / "no.onnx").expect(2, out="unreadable: No such file or directory")
    for option in ("--out", "--cases"):
        said = cli("check-graph", tmp_path / "no.onnx", option, tmp_path)
        assert said.expect(2, err="is a folder; name a file", lines=1).out == ""


# ── known faults of backends ───────────────────────────────────────────────────────────────────────
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
