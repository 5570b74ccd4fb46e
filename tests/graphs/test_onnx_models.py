"""ONNX models: lengths reach every reshape through inference, and nothing outside the file is read."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.builders import Cli
from tests.graphs.graph_files import kinds

onnx = pytest.importorskip("onnx")
FLOAT, INT64 = 1, 7


def value(name: str, *dims: int | str | None, type_: int = FLOAT) -> Any:
    return onnx.helper.make_tensor_value_info(name, type_, list(dims))


def constant(name: str, *entries: int) -> Any:
    return onnx.helper.make_tensor(name, INT64, [len(entries)], entries)


def node(operation: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    return onnx.helper.make_node(operation, inputs.split(), outputs.split(), name=f"the-{outputs}", **attributes)


def save_model(
    folder: Path, *nodes: Any, x: Any, constants: Any = (), dst: Any = None, inner: Any = (), opset: int = 19
) -> str:
    inputs, outputs = x if isinstance(x, list) else [x], [dst or value(nodes[-1].output[0])]
    graph = onnx.helper.make_graph(list(nodes), "g", inputs, outputs, list(constants), value_info=list(inner))
    if dst is None:
        graph.output[0].type.tensor_type.ClearField("shape")
    path = folder / "model.onnx"
    opsets = [onnx.helper.make_opsetid("", opset), onnx.helper.make_opsetid("own", 1)]
    path.write_bytes(onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString())
    return str(path)


def flatten(folder: Path, *shape: int, x: Any, **more: Any) -> str:
    """A model that convolves nothing: ReLU, then a reshape by a constant."""
    nodes = (node("Relu", "x", "h"), node("Reshape", "h s", "y", **more))
    return save_model(folder, *nodes, x=x, constants=[constant("s", *shape)])


def test_a_baked_in_batch_is_found_behind_other_operations(tmp_path: Path, cli: Cli) -> None:
    path = flatten(tmp_path, 1, 12, x=value("x", "batch", 3, 4))
    said = cli("check-graph", path).expect(4).out
    assert "conditional: legal if and only if batch = 1; otherwise illegal: same-volume" in said
    said = cli("check-graph", path, "--input", "x=1..8,3,4").expect(1).out
    assert "f32[1..8, 3, 4] by [1, 12] special_zero" in said
    assert "illegal for x[0] = 2..8: same-volume; legal for x[0] = 1" in said


def test_a_type_that_no_document_lists_is_unspecified(tmp_path: Path, cli: Cli) -> None:
    eight_bits = flatten(tmp_path, 3, 2, x=value("x", 2, 3, type_=onnx.TensorProto.FLOAT8E4M3FN))
    cli("check-graph", eight_bits).expect(0, out="float8e4m3fn[2, 3] by [3, 2] special_zero  unspecified: types-listed")


def test_a_length_is_given_by_its_name(tmp_path: Path, cli: Cli) -> None:
    nodes = (node("Add", "x y", "h"), node("Reshape", "h s", "z"))
    path = save_model(
        tmp_path, *nodes, x=[value(name, "batch", 3, "n") for name in "xy"], constants=[constant("s", 1, -1)]
    )
    said = cli("check-graph", path, "--input", "batch=1..2").expect(0).text
    assert "f32[1..2, 3, n] by [1, -1] special_zero legal for every length tried; n is folded into -1" in said
    assert cli("check-graph", path, "--input", "x=1..2,3,4", "--input", "y=1..2,3,4").expect(0).out.count("legal") == 3
    assert "names of lengths are batch, n" in cli("check-graph", path, "--input", "bath=1").expect(2).err
    said = cli("check-graph", path, "--input", "batch=1,3").expect(2).err
    assert "'batch' names one length, and --input gives 2; write batch=1..8" in said
    said = cli("check-graph", path, "--input", "batch=1", "--input", "batch=3").expect(2).err
    assert "names 'batch' twice; give it once" in said


def test_a_declared_length_gives_way_to_the_one_that_is_tried(tmp_path: Path, cli: Cli) -> None:
    nodes = (node("Relu", "x", "h"), node("Reshape", "h s", "y"))
    path = save_model(
        tmp_path, *nodes, x=value("x", 1, 12), constants=[constant("s", -1, 6)], dst=value("y", 2, 6),
        inner=[value("h", 1, 12)],
    )  # fmt: skip
    assert kinds(cli, 0, path) == ["legal"]
    assert "f32[3, 12] by [-1, 6] special_zero  legal" in cli("check-graph", path, "--input", "x=3,12").expect(0).out


@pytest.mark.parametrize(
    ("declared", "given", "said"),
    [
        ((1, 6), ["--input", "n=1..4"], "f32[1..4, 6] by [6] special_zero illegal for n = 2..4: same-volume"),
        ((6,), ["--input", "n=1..4"], "f32[1..4, 6] by [6] special_zero illegal for n = 2..4: same-volume"),
        ((1, 6), [], "f32[n, 6] by [6] special_zero conditional: legal if and only if n = 1"),
        ((None, None), ["--input", "n=2"], "f32[2, 6] by [6] special_zero illegal: same-volume"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_inner", [False, True])
def test_declared_dims_count_only_where_none_are_inferred(
    declared: tuple[int, ...], given: list[str], said: str, is_inner: bool, tmp_path: Path, cli: Cli
) -> None:
    nodes, shape = (node("Relu", "x", "r"), node("Reshape", "r s", "y")), constant("s", 6)
    path = save_model(tmp_path, *nodes, x=value("x", "n", 6), constants=[shape], inner=[value("r", *declared)])
    if is_inner:
        branch = onnx.helper.make_graph(nodes, "b", [], [value("y", None)], value_info=[value("r", *declared)])
        path = save_model(
            tmp_path, node("If", "c", "z", then_branch=branch, else_branch=branch), x=value("x", "n", 6),
            constants=[onnx.helper.make_tensor("c", 9, [], [True]), shape],
        )  # fmt: skip
    assert said in cli("check-graph", path, *given).text


@pytest.mark.parametrize("declared", ["r", "q"])
def test_declared_dims_help_behind_an_unknown_operation(tmp_path: Path, cli: Cli, declared: str) -> None:
    nodes = (
        node("Unknown", "x", "r", domain="own"), node("Relu", "r", "q"), node("Shape", "q", "dims"),
        node("Reshape", "q dims", "y"), node("Relu", "x", "stale"),
    )  # fmt: skip
    inner = [value(declared, "n", 4), value("stale", 1, 6)]
    path = save_model(tmp_path, *nodes, x=value("x", "n", 6), inner=inner)
    assert "f32[n, 4] by [n, 4] special_zero  legal for every" in cli("check-graph", path).expect(0).out
    said = cli("check-graph", path, "--input", "n=1..3").expect(0).out
    assert "f32[1..3, 4] by [1..3, 4] special_zero  legal for every length tried" in said


def test_a_declared_dst_of_another_batch_is_not_judged(tmp_path: Path, cli: Cli) -> None:
    """The older exporter of PyTorch declares dims of its example for dst, whatever the input has."""
    model = {"x": value("x", "batch", 3, 4), "constants": [constant("s", -1, 12)], "dst": value("y", 1, 12)}
    path = save_model(tmp_path, node("Reshape", "x s", "y"), **model)
    assert kinds(cli, 0, path, "--input", "batch=1..4") == ["legal"]


@pytest.mark.parametrize("given", [[], ["--input", "batch=4"], ["--input", "x=4,3,4"]])
def test_declared_dims_of_another_batch_do_not_count(tmp_path: Path, cli: Cli, given: list[str]) -> None:
    """A batch was given a name in the input alone; behind an unknown operation 1 stayed, and a bad node was legal."""
    nodes = (
        node("Relu", "x", "h"), node("Unknown", "h", "q", domain="own"), node("Reshape", "q s", "z"),
        node("Unknown", "h", "r", domain="own"), node("Reshape", "r t", "w"), node("Reshape", "h t", "y"),
    )  # fmt: skip
    inner = [value(name, 1, 3, 4) for name in "hq"] + [value("r", "batch", 12)]
    path = save_model(
        tmp_path, *nodes, x=value("x", "batch", 3, 4), constants=[constant("s", 1, 12), constant("t", -1, 12)],
        inner=inner, dst=value("y", 1, 12),
    )  # fmt: skip
    assert kinds(cli, 4, path, *given) == ["not decided", "legal", "legal"]


@pytest.mark.parametrize(
    ("product", "given", "said"),
    [
        ("2*n", "n=1..3", "f32[2..6, 6] by [12] special_zero illegal for n = 2..3: same-volume; legal for n = 1"),
        ("n * 2", "x=1..3", "f32[2..6, 6] by [12] special_zero illegal for x[0] = 2..3: same-volume"),
        ("0*n", "n=1..3", "f32[0, 6] by [12] special_zero illegal for every length tried: same-volume"),
        ("n*0", "", "f32[0, 6] by [12] special_zero illegal: same-volume"),
        ("n + 1", "n=1..3", "f32[2..4, 6] by [12] special_zero illegal for n = 2..3: same-volume; legal for n = 1"),
        ("n + 1", "", "f32[n + 1, 6] by [12] special_zero conditional: legal if and only if n + 1 = 2; otherwise"),
        ("2*n", "", "f32[2*n, 6] by [12] special_zero conditional: legal if and only if n = 1; otherwise"),
    ],
)
def test_a_length_that_is_a_product_follows_its_name(
    product: str, given: str, said: str, tmp_path: Path, cli: Cli
) -> None:
    """Only another input has the name itself."""
    nodes = (node("Relu", "z", "h"), node("Reshape", "h s", "y"))
    path = save_model(tmp_path, *nodes, x=[value("x", "n"), value("z", product, 6)], constants=[constant("s", 12)])
    assert said in cli("check-graph", path, *(["--input", given] if given else [])).text


def test_lengths_that_a_product_contradicts_are_not_tried(tmp_path: Path, cli: Cli) -> None:
    inputs = [value("x", "n"), value("z", "2*n", 6)]
    path = save_model(tmp_path, node("Reshape", "z s", "y"), x=inputs, constants=[constant("s", -1, 12)])
    words = ["check-graph", path, "--input", "x=1..2", "--input"]
    assert (
        "f32[2..4, 6] by [-1, 12] special_zero  legal for every length tried" in cli(*words, "z=2..5,6").expect(0).out
    )
    said = "model.onnx: --input gives '2*n' two lengths: 2 before, and 7 in z[0]"
    cli(*words, "z=7,6").expect(2, err=said, lines=1)


def test_a_sum_is_one_name_and_in_parentheses_in_a_product(tmp_path: Path, cli: Cli) -> None:
    path = save_model(tmp_path, node("Reshape", "x s", "y"), x=value("x", "n + 1", 3), constants=[constant("s", -1, 2)])
    said = cli("check-graph", path).expect(4).out
    assert "legal if and only if n + 1 is even (dst [3*(n + 1)/2, 2]); otherwise illegal: same-volume;" in said
    assert "; n + 1 is folded into -1 with others" in said


def test_a_quotient_is_one_name(tmp_path: Path, cli: Cli) -> None:
    """As half of a whole n it was a traceback, and a multiple of 4 where n is 3."""
    nodes = (node("Reshape", "x s", "h"), node("Shape", "x", "dims"), node("Reshape", "h dims", "y"))
    path = save_model(tmp_path, *nodes, x=value("x", "n/2", "n"), constants=[constant("s", 2, -1)])
    words = ["check-graph", path, "--input", "n=3"]
    said = cli(*words).expect(4).out
    assert "f32[(n/2), 3] by [2, -1] special_zero  conditional: legal if and only if (n/2) is even" in said
    cli(*words, "--input", "(n/2)=2").expect(0, out="f32[2, 3] by [2, 3] special_zero   legal")
    cli(*words[:2], "--input", "n=4").expect(0, out="f32[2, 4] by [2, -1] special_zero  legal")


def test_a_name_that_only_a_product_has_takes_a_length(tmp_path: Path, cli: Cli) -> None:
    path = save_model(tmp_path, node("Reshape", "x s", "y"), x=value("x", "n", "3*m"), constants=[constant("s", 4, -1)])
    said = "f32[2, 6] by [4, -1] special_zero  legal"
    cli("check-graph", path, "--input", "m=2", "--input", "n=2").expect(0, out=said)


@pytest.mark.parametrize(("noop", "count"), [(0, 1), (1, 2)])
@pytest.mark.parametrize("axes", ["", " none"])
def test_a_product_over_no_axes_may_be_its_input(tmp_path: Path, cli: Cli, noop: int, count: int, axes: str) -> None:
    nodes = (
        node("ReduceProd", f"lengths{axes}", "s", keepdims=1, noop_with_empty_axes=noop), node("Reshape", "x s", "y"),
    )  # fmt: skip
    constants = [constant("lengths", 3, 4), constant("none")]
    path = save_model(tmp_path, *nodes, x=value("x", 12), constants=constants)
    assert f"f32[12] by {[12] if count == 1 else [3, 4]} special_zero  legal" in cli("check-graph", path).expect(0).out


@pytest.mark.parametrize(
    ("divisor", "fmod", "said"),
    [
        (8, 0, "by [2] special_zero  illegal: same-volume"),
        (8, 1, "by [-6] special_zero  illegal"),
        (0, 0, "not decided"),
    ],
)
def test_a_remainder_is_followed(tmp_path: Path, cli: Cli, divisor: int, fmod: int, said: str) -> None:
    """The older exporter of PyTorch writes it for unflatten."""
    nodes = node("Mod", "a b", "s", fmod=fmod), node("Reshape", "x s", "y")
    constants = [constant("a", -14), constant("b", divisor)]
    assert said in cli("check-graph", save_model(tmp_path, *nodes, x=value("x", 12), constants=constants)).out


def test_declared_dims_that_disagree_are_illegal(tmp_path: Path, cli: Cli) -> None:
    path = save_model(
        tmp_path, node("Reshape", "x s", "y"), x=value("x", 6), constants=[constant("s", 6)], dst=value("y", 5)
    )
    assert "illegal: declared-output" in cli("check-graph", path).expect(1).out


def test_declared_numbers_do_not_bind_an_open_length(tmp_path: Path, cli: Cli) -> None:
    """It was legal if and only if batch = 1, and legal for each batch that was tried."""
    path = save_model(
        tmp_path, node("Reshape", "x s", "y"), x=value("x", "batch", 3, 4), constants=[constant("s", -1, 12)],
        dst=value("y", 1, 12),
    )  # fmt: skip
    cli("check-graph", path).expect(0, out="legal for every length from 1")
    cli("check-graph", path, "--input", "batch=1..2").expect(0, out="legal for every length tried")


@pytest.mark.parametrize(
    ("declared", "code", "said"),
    [("n", 1, "  illegal"), ("2*n", 0, "  legal for every length"), ("m", 0, "  legal for every length")],
)
def test_a_declared_name_of_src_is_compared(tmp_path: Path, cli: Cli, declared: str, code: int, said: str) -> None:
    """It was legal for every length, although each length that was tried was illegal. A new name can be any length."""
    path = save_model(
        tmp_path, node("Reshape", "x s", "y"), x=value("x", "n", 6), constants=[constant("s", -1, 3)],
        dst=value("y", declared, 3),
    )  # fmt: skip
    cli("check-graph", path).expect(code, out=said)
    cli("check-graph", path, "--input", "n=1..3").expect(code, out=said)


def test_a_shape_that_is_computed_from_dims_is_followed(tmp_path: Path, cli: Cli) -> None:
    nodes = (
        node("Shape", "x", "dims"),
        node("Gather", "dims zero", "first"),
        node("Unsqueeze", "first axis", "batch"),
        node("Concat", "batch rest", "s", axis=0),
        node("Reshape", "x s", "y"),
        node("Shape", "y", "dims2"),
        node("Slice", "dims2 axis one", "b2"),
        node("Concat", "b2 rest", "s2", axis=0),
        node("Reshape", "y s2", "z"),
    )
    zero = onnx.helper.make_tensor("zero", INT64, [], [0])
    constants = [zero, constant("axis", 0), constant("one", 1), constant("rest", 3, -1)]
    path = save_model(tmp_path, *nodes, x=value("x", "n", 3, "h"), constants=constants)
    assert (
        "f32[n, 3, h] by [n, 3, -1] special_zero  legal for every length from 1"
        in cli("check-graph", path).expect(0).out
    )
    assert kinds(cli, 0, path) == ["legal", "legal"]
    assert kinds(cli, 0, path, "--input", "x=2,3,1..5") == ["legal", "legal"]


def test_a_length_that_is_not_known_is_named_once(tmp_path: Path, cli: Cli) -> None:
    nodes = node("Shape", "x", "dims"), node("Abs", "dims", "s"), node("Reshape", "x s", "y")
    said = cli("check-graph", save_model(tmp_path, *nodes, x=value("x", "n", "n"))).expect(4).out
    assert said.count("n is not known") == 1


@pytest.mark.parametrize(
    ("x", "first", "last", "said"),
    [
        (("n", 3, "h"), 3, -1, "by [9*n, -1] special_zero conditional: legal if and only if h is a multiple of 3"),
        (("n", 3, "h"), 1, -1, "by [3*n, -1] special_zero legal for every length from 1"),
        (("n", 3, 4), 1, 5, "by [3*n, 5] special_zero illegal: same-volume"),
        (("a.b", 3, 4), 1, -1, "not decided: shape is computed while it runs, a.b is not known"),
        ((None, 3, 4), 1, -1, "not decided: shape is computed while it runs, src[0] is not known"),
        (("None", 3, "None"), 1, -1, "shape is computed while it runs, src[0] is not known, src[2] is not known"),
    ],
)
def test_a_product_of_named_lengths_is_followed(
    x: tuple[int | str | None, ...], first: int, last: int, said: str, tmp_path: Path, cli: Cli
) -> None:
    """The first entry of shape is the product of two dims and of a number."""
    nodes = (
        node("Shape", "x", "dims"),
        node("Cast", "dims", "dims32", to=6),
        node("Cast", "dims32", "dims64", to=INT64),
        node("Slice", "dims64 none one", "n"),
        node("Slice", "dims64 one two", "three"),
        node("Mul", "n three", "product"),
        node("Mul", "product first", "all"),
        node("Reshape", "all flat", "vector"),
        node("Concat", "vector last", "s", axis=0),
        node("Reshape", "x s", "y"),
    )
    entries = {"none": 0, "one": 1, "two": 2, "first": first, "flat": -1, "last": last}
    constants = [constant(name, entry) for name, entry in entries.items()]
    path = save_model(tmp_path, *nodes, x=value("x", *x), constants=constants)
    assert said in cli("check-graph", path).text
    assert "2 reshapes: " in cli("check-graph", path, "--input", "x=2,3,4..5").text  # one of them computes a shape


@pytest.mark.parametrize(("allow", "kind", "code"), [(0, "legal", 0), (1, "illegal", 1)])
def test_allowzero_is_the_negation_of_special_zero(tmp_path: Path, cli: Cli, allow: int, kind: str, code: int) -> None:
    path = flatten(tmp_path, 0, 4, x=value("x", 3, 4), allowzero=allow)
    assert kinds(cli, code, path) == [kind]


def test_a_reshape_in_a_branch_is_found_with_its_place(tmp_path: Path, cli: Cli) -> None:
    inner = [node("Reshape", "x s", "r")]
    branch = onnx.helper.make_graph(inner, "b", [], [value("r", 2, 6)])
    other = onnx.helper.make_graph([node("Reshape", "x t", "r")], "c", [], [value("r", None, None)])
    condition = onnx.helper.make_tensor("c", 9, [], [True])
    path = save_model(
        tmp_path, node("If", "c", "y", then_branch=branch, else_branch=other), x=value("x", 12),
        constants=[condition, constant("s", 2, 6), constant("t", 5, -1)],
    )  # fmt: skip
    cli("check-graph", path).expect(1, out="graph.node[0].then_branch.node[0]")
    assert sorted(kinds(cli, 1, path)) == ["illegal", "legal"]


def test_a_shape_in_an_external_file_is_never_read(tmp_path: Path, cli: Cli) -> None:
    outside = tmp_path / "secret"
    outside.write_bytes((2).to_bytes(8, "little") + (6).to_bytes(8, "little"))
    tensor = onnx.TensorProto(name="s", data_type=INT64, dims=[2], data_location=onnx.TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="../secret")
    (tmp_path / "inner").mkdir()
    path = save_model(tmp_path / "inner", node("Reshape", "x s", "y"), x=value("x", 12), constants=[tensor])
    assert "shape is in an external file, which is not read" in cli("check-graph", path).expect(4).out


def test_a_reshape_before_opset_5_is_not_decided(tmp_path: Path, cli: Cli) -> None:
    path = save_model(tmp_path, node("Reshape", "x", "y", shape=[6]), x=value("x", 6), opset=4)
    assert "Reshape of opset 4 is not read, from 5 it is" in cli("check-graph", path).expect(4).out


def test_a_declared_gigabyte_takes_no_memory(tmp_path: Path, cli: Cli) -> None:
    for length in (1 << 30, 100):
        weights = onnx.TensorProto(name="s", data_type=INT64, dims=[length], raw_data=b"12345678")
        path = save_model(tmp_path, node("Reshape", "x s", "y"), x=value("x", 12), constants=[weights])
        assert kinds(cli, 4, path) == ["not decided"]


@pytest.mark.parametrize("content", [b"", b"\0", b"\x08", b"not a model at all", b"\x3a\xff\xff\xff\xff\x0f"])
def test_what_is_no_model_is_reported(tmp_path: Path, cli: Cli, content: bytes) -> None:
    path = tmp_path / "bad.onnx"
    path.write_bytes(content)
    assert "unreadable: not ONNX" in cli("check-graph", str(path)).expect(2).out


def function(name: str, *nodes: Any) -> Any:
    return onnx.helper.make_function("f", name, ["a"], ["b"], list(nodes), [onnx.helper.make_opsetid("f", 1)])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"elem_type": -1}, "a value in it is not as ONNX has it: 'Enum DataType has no name"),
        ({"functions": [function("F", node("F", "a", "b", domain="f"))]}, "onnx cannot insert its functions: 'Cycle"),
        ({"data_type": 99}, "a value in it is not as ONNX has it: 'Enum DataType has no name"),
    ],
    ids=["type", "function", "tensor"],
)
def test_what_onnx_cannot_use_is_reported(tmp_path: Path, cli: Cli, change: dict[str, Any], said: str) -> None:
    path = Path(flatten(tmp_path, 12, x=value("x", 3, 4)))
    model = onnx.ModelProto.FromString(path.read_bytes())
    model.graph.value_info.add(name="h").type.tensor_type.elem_type = change.get("elem_type", FLOAT)
    model.graph.initializer.add(name="unused", data_type=change.get("data_type", INT64))
    model.functions.extend(change.get("functions", []))
    path.write_bytes(model.SerializeToString())
    assert f"unreadable: {said}" in cli("check-graph", str(path)).expect(2).out


@pytest.mark.parametrize(("opset", "own"), [("", "ai.onnx"), ("ai.onnx", ""), ("ai.onnx", "ai.onnx")])
def test_the_long_name_of_the_domain_of_onnx(tmp_path: Path, cli: Cli, opset: str, own: str) -> None:
    path = Path(flatten(tmp_path, 1, 12, x=value("x", "batch", 3, 4)))
    model = onnx.ModelProto.FromString(path.read_bytes())
    model.opset_import[0].domain = opset
    for each in model.graph.node:
        each.domain = own
    path.write_bytes(model.SerializeToString())
    assert "conditional: legal if and only if batch = 1;" in cli("check-graph", str(path)).expect(4).out


@pytest.mark.parametrize(
    ("type_", "dims", "entry", "rule"),
    [
        *((FLOAT, [1], entry, "shape-is-integer") for entry in (float("nan"), float("inf"), 12.5, 12)),
        *((INT64, dims, 12, "shape-has-one-dimension") for dims in ([], [1, 1])),
    ],
)
def test_a_shape_of_fractions_or_another_rank_is_illegal(
    tmp_path: Path, cli: Cli, type_: int, dims: list[int], entry: float, rule: str
) -> None:
    shape = onnx.helper.make_tensor("s", type_, dims, [entry])
    path = save_model(tmp_path, node("Reshape", "x s", "y"), x=value("x", 3, 4), constants=[shape])
    assert f"special_zero  illegal: {rule}\n" in cli("check-graph", path).expect(1).out


def test_every_cut_of_a_model_is_read_or_reported(tmp_path: Path, cli: Cli) -> None:
    whole = Path(flatten(tmp_path, 1, 12, x=value("x", 1, 3, 4))).read_bytes()
    path = tmp_path / "cut.onnx"
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        said = cli("check-graph", str(path))
        assert "Traceback" not in said.out + said.err


def test_the_models_in_the_package_onnx_are_legal(cli: Cli) -> None:
    data = Path(onnx.__file__).parent / "backend/test/data"
    found = [
        path for part in ("light", "pytorch-converted", "pytorch-operator") for path in (data / part).rglob("*.onnx")
    ]
    reshaping = [str(path) for path in found if b"Reshape" in path.read_bytes()]
    if not reshaping:
        pytest.skip("this version of onnx has no models in it")
    files = json.loads(cli("check-graph", *reshaping, "--json").expect(0).out)["files"]
    assert Counter(each["kind"] for file in files for each in file["nodes"]) == {"legal": 43}
