"""PyTorch .pt2: the exported graph is read from JSON, and a zip bomb or a bad one is reported."""

import contextlib
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from conformance.graphs import pt2
from conformance.graphs.lengths import evaluate
from conformance.graphs.nodes import UnreadableModel
from conformance.graphs.pt2 import read_pt2
from tests.builders import Cli
from tests.graphs.graph_files import kinds

NAME = "m/models/model.json"


def sizes(*lengths: int | str) -> list[dict[str, Any]]:
    return [{"as_int": n} if isinstance(n, int) else {"as_expr": {"expr_str": n}} for n in lengths]


def value(*lengths: int | str, dtype: int = 7) -> dict[str, Any]:
    return {"dtype": dtype, "sizes": sizes(*lengths)}


def program(shape: list[int], src: tuple[int | str, ...], target: str = "view") -> dict[str, Any]:
    """An exported graph of one node, after the schema of torch.export."""
    node = {
        "target": f"torch.ops.aten.{target}.default",
        "inputs": [
            {"name": "self", "arg": {"as_tensor": {"name": "x"}}, "kind": 1},
            {"name": "size", "arg": {"as_ints": shape}, "kind": 1},
        ],
        "outputs": [{"as_tensor": {"name": "view"}}],
        "metadata": {},
    }
    graph = {
        "inputs": [{"as_tensor": {"name": "x"}}],
        "nodes": [node],
        "tensor_values": {"x": value(*src), "view": value("s9", "s9")},
    }
    return {"graph_module": {"graph": graph}, "schema_version": {"major": 8}}


def branching(data: dict[str, Any], depth: int = 1, name: str = "true_graph_0") -> dict[str, Any]:
    """A graph with a torch.cond that has another graph as a branch, and that one another, as often as told."""
    graph = data["graph_module"]["graph"]
    for _ in range(depth):
        branch = {"as_graph": {"name": name, "graph": graph}}
        arguments = {"as_tensor": {"name": "p"}}, branch, {"as_tensors": [{"name": "x"}]}
        node = {"target": "torch.ops.higher_order.cond", "inputs": [{"name": "", "arg": each} for each in arguments]}
        graph = {**graph, "nodes": [{**node, "outputs": [{"as_tensor": {"name": "y"}}]}]}
    return {"graph_module": {"graph": graph}}


def archive(folder: Path, data: Any, name: str = NAME, packed: int = zipfile.ZIP_DEFLATED) -> str:
    path = folder / "model.pt2"
    with zipfile.ZipFile(path, "w", packed) as file:
        file.writestr("m/version", "0")
        file.writestr(name, data if isinstance(data, str | bytes) else json.dumps(data))
    return str(path)


@pytest.mark.parametrize("name", [NAME, "serialized_exported_program.json"])
def test_a_baked_in_batch_is_found(tmp_path: Path, cli: Cli, name: str) -> None:
    path = archive(tmp_path, program([1, 12], ("s0", 3, 4)), name)
    assert "conditional: legal if and only if s0 = 1; otherwise" in cli("check-graph", path).expect(4).out
    said = cli("check-graph", path, "--input", "x=1..4,3,4").expect(1).out
    assert "nodes[0]  view  f32[1..4, 3, 4] by [1, 12]" in said
    assert "illegal for x[0] = 2..4: same-volume" in said


def test_a_zero_is_a_length(tmp_path: Path, cli: Cli) -> None:
    assert kinds(cli, 1, archive(tmp_path, program([0, 12], (1, 12)))) == ["illegal"]
    assert kinds(cli, 0, archive(tmp_path, program([0, 12], (0, 12)))) == ["legal"]


def test_a_symbol_has_one_length_in_every_tensor_and_shape(tmp_path: Path, cli: Cli) -> None:
    data = program([1, 12], ("s0", 3, 4))
    graph = data["graph_module"]["graph"]
    (node,) = graph["nodes"]
    graph["tensor_values"] |= {"h": value("s0", 12), "view": value("s0", 6, 2)}
    graph["sym_int_values"] = {"size": {"as_expr": {"expr_str": "s0"}}}
    entries = [{"as_name": "size"}, {"as_int": 6}, {"as_int": 2}]
    other = {
        "target": "torch.ops.aten.linear.default",
        "inputs": node["inputs"],
        "outputs": [{"as_tensor": {"name": "h"}}],
    }
    node["inputs"] = [{"arg": {"as_tensor": {"name": "h"}}}, {"arg": {"as_sym_ints": entries}}]
    graph["nodes"] = [other, node]
    path = archive(tmp_path, data)
    assert "f32[s0, 12] by [s0, 6, 2]  legal for every length from 1" in cli("check-graph", path).expect(0).out
    assert "f32[1..4, 12] by [1..4, 6, 2]" in cli("check-graph", path, "--input", "x=1..4,3,4").expect(0).out
    cli("check-graph", path, "--input", "x=1..4,3,5").expect(4, out="the dims of src are not inferred for this length")


def test_two_lengths_of_one_symbol_are_a_mistake_of_the_command(tmp_path: Path, cli: Cli) -> None:
    said = "model.pt2: --input gives 's0' two lengths: 2 before, and 3 in x[1]"
    path = archive(tmp_path, program([-1], ("s0", "s0")))
    cli("check-graph", path, "--input", "x=2,3").expect(2, err=said, lines=1)


@pytest.mark.parametrize(
    ("text", "unbound", "bound"),
    [
        ("Mul(Integer(64), Symbol('s77', positive=True, integer=True))", "64*s77", 192),
        ("2*s77*s1", "2*s1*s77", "6*s1"), ("s77 + 1", None, 4), ("Add(Symbol('s77'), Integer(-4))", None, None),
        ("FloorDiv(Symbol('s77'), Integer(2))", None, 1), ("FloorDiv(s77, Integer(0))", None, None),
        ("Max(Integer(9), s77)", None, 9), ("9" * 30, None, None), ("(" * 3000, None, None), ("s77.x", None, None),
        ("__import__('os')", None, None), ("Symbol('a b')", None, None),
    ],
)  # fmt: skip
def test_a_length_that_is_an_expression_is_computed(text: str, unbound: str | None, bound: int | str | None) -> None:
    assert (evaluate(text, {}), evaluate(text, {"s77": 3})) == (unbound, bound)


@pytest.mark.parametrize("dtype", [[], {}, None, "f32", 99])
def test_a_type_that_is_none_is_not_known(tmp_path: Path, cli: Cli, dtype: Any) -> None:
    data = program([1, 12], (1, 12))
    data["graph_module"]["graph"]["tensor_values"]["x"]["dtype"] = dtype
    assert "the element type is not known" in cli("check-graph", archive(tmp_path, data)).expect(4).out


def test_weights_are_no_inputs_that_can_be_given(tmp_path: Path, cli: Cli) -> None:
    data = program([1, 12], (1, 12))
    data["graph_module"]["graph"]["inputs"].append({"as_tensor": {"name": "w"}})
    specs = [{"parameter": {"arg": {"name": "w"}}}, {"user_input": {"arg": {"as_tensor": {"name": "x"}}}}]
    data["graph_module"]["signature"] = {"input_specs": specs}
    assert "inputs: x[1, 12]\n" in cli("check-graph", archive(tmp_path, data)).expect(0).out


@pytest.mark.parametrize("target", ["view", "view_copy"])
def test_a_view_as_another_type_is_no_reshape(tmp_path: Path, cli: Cli, target: str) -> None:
    data = program([], (1, 12))
    (node,) = data["graph_module"]["graph"]["nodes"]
    node |= {"target": f"torch.ops.aten.{target}.dtype"}
    node["inputs"][1] = {"name": "dtype", "arg": {"as_scalar_type": 4}}
    assert kinds(cli, 0, archive(tmp_path, data)) == []


def test_a_reshape_in_a_graph_inside_is_found_with_its_place(tmp_path: Path, cli: Cli) -> None:
    path = archive(tmp_path, branching(program([1, 12], (1, 3, 4)), 2))
    place = "nodes[0].true_graph_0.nodes[0].true_graph_0.nodes[0]"
    assert f"{place}  view  f32[1, 3, 4] by [1, 12]" in cli("check-graph", path).out
    path = archive(tmp_path, branching(program([1, 12], (1, 3, 4)), name="\x1b[2J"))
    assert "nodes[0].inputs[1].nodes[0]  view" in cli("check-graph", path).out


def test_a_changed_length_makes_those_inside_unknown(tmp_path: Path, cli: Cli) -> None:
    data = program([1, 12], (1, 3, 4))
    data["graph_module"]["graph"]["tensor_values"]["view"] = value(1, 12)
    path = archive(tmp_path, branching(data))
    assert kinds(cli, 0, path) == ["legal"]
    said = cli("check-graph", path, "--input", "x=2,3,4").expect(4).out
    assert "not decided: the dims of src are not inferred for this length" in said


@pytest.mark.parametrize(
    "argument",
    [
        {"as_tensor": {"name": "x"}},
        {"as_tensors": [{"name": "x"}]},
        {"as_optional_tensor": {"as_tensor": {"name": "x"}}},
        {"as_optional_tensors": [{"as_none": True}, {"as_tensor": {"name": "x"}}]},
        {"as_nested_tensors": [[{"name": "x"}]]},
    ],
)
def test_a_changed_length_enters_by_every_kind_of_argument(argument: Any, tmp_path: Path, cli: Cli) -> None:
    data = program([1, 12], (1, 3, 4))
    graph = data["graph_module"]["graph"]
    other = {"target": "torch.ops.aten.cat.default", "inputs": [{"name": "h", "arg": argument}]}
    graph["nodes"].insert(0, {**other, "outputs": [{"as_tensor": {"name": "h"}}]})
    graph["nodes"][1]["inputs"][0]["arg"] = {"as_tensor": {"name": "h"}}
    graph["tensor_values"] |= {"h": value(1, 3, 4), "view": value(1, 12)}
    path = archive(tmp_path, data)
    assert kinds(cli, 0, path) == ["legal"]
    assert kinds(cli, 4, path, "--input", "x=2,3,4") == ["not decided"]


def test_a_zip_bomb_is_not_unpacked(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of a sixteenth is met as soon as that of 256 MiB, and packed in a sixteenth of the time."""
    assert pt2.MAX_BYTES == 1 << 28
    monkeypatch.setattr(pt2, "MAX_BYTES", 1 << 24)
    path = archive(tmp_path, b" " * ((1 << 24) + 1))
    assert Path(path).stat().st_size < 1 << 16
    assert "it unpacks to more than 16,777,216 bytes" in cli("check-graph", path).expect(2).out


BAD = {
    "no JSON": ("{", "not JSON"),
    "another JSON": ({"a": 1}, "there is no graph_module.graph"),
    "no nodes": ({"graph_module": {"graph": {"tensor_values": {}}}}, "graph.nodes: None"),
    "a node of text": (
        {"graph_module": {"graph": {"tensor_values": {}, "nodes": ["a"], "inputs": []}}},
        "nodes[0]: 'a'",
    ),
    "nested deep": (branching(program([1], (1,)), 52), "true_graph_0.nodes: nested too deep"),
    "no nodes inside": (
        branching({"graph_module": {"graph": {"inputs": [], "tensor_values": {}}}}),
        "nodes[0].true_graph_0.graph.nodes: None",
    ),
    "a length of text": (
        {"graph_module": {"graph": {"tensor_values": {"x": {"sizes": ["a"]}}, "nodes": [], "inputs": []}}},
        "lengths are whole numbers",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_json_is_reported(tmp_path: Path, cli: Cli, what: str) -> None:
    data, why = BAD[what]
    assert why in cli("check-graph", archive(tmp_path, data)).expect(2).out


@pytest.mark.parametrize("packed", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_a_zip_file_that_is_cut_or_changed_is_reported(tmp_path: Path, cli: Cli, packed: int) -> None:
    path = Path(archive(tmp_path, program([1, 12], (1, 12)), packed=packed))
    whole = path.read_bytes()
    for end in range(0, len(whole), 7):
        path.write_bytes(whole[:end])
        with pytest.raises(UnreadableModel, match="not a zip file, or cut short"):
            read_pt2(path, lambda _: None)
    assert "not a zip file, or cut short" in cli("check-graph", str(path)).expect(2).out
    for at in range(0, len(whole), 3):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        with contextlib.suppress(UnreadableModel):
            read_pt2(path, lambda _: None).nodes({})


def test_a_zip_file_without_a_program_is_reported(tmp_path: Path, cli: Cli) -> None:
    path = archive(tmp_path, "{}", "data.pkl")
    assert "there is no serialized_exported_program.json" in cli("check-graph", path).expect(2).out
