"""ONNX Runtime, onnx's evaluator, tract and TVM: what the adapters hand over and take back."""

from typing import Any

import pytest

from conformance.load.cases import load_suite
from conformance.model import Adapter, Declared, Graph, Node, Operand, Rejected, Unsupported
from conformance.plan.memory import TensorSpec, lay_out, patterns
from conformance.plan.rows import plan_of
from conformance.run.row import run_rows

from .backends import NO, YES, answer, graph, load_or_skip, node

BACKENDS = ("onnxruntime", "onnxruntime-plain", "onnxruntime-opset-18", "onnx-reference", "tract", "tvm")


@pytest.fixture(scope="module", params=BACKENDS)
def adapter(request: pytest.FixtureRequest) -> Any:
    return load_or_skip(request.param)


# ── the model ─────────────────────────────────────────────────────────────────────────────────────
def write_model(graph: Graph) -> Any:
    load_or_skip("onnx-reference")
    from conformance.adapters import onnx_model

    return onnx_model.model(graph).graph


def test_a_shape_known_beforehand_is_an_initializer() -> None:
    model = write_model(graph("f32", (2, 3), (0, -1), zero=YES))
    assert [node.op_type for node in model.node] == ["Reshape"]
    assert [(each.name, list(each.dims)) for each in model.initializer] == [("shape0", [2])]
    assert [each.name for each in model.input] == ["src"]
    assert not model.node[0].attribute  # an allowzero of 0 is the default


@pytest.mark.parametrize(
    ("operation", "written"), [("DynamicReshape-1", ["Cast", "Reshape"]), ("Reshape-14", ["Reshape"])]
)
def test_a_shape_of_s32_that_arrives_is_an_input(operation: str, written: list[str]) -> None:
    """It is cast, except for an operation of ONNX."""
    model = write_model(Graph(Declared("f32", (None, 3)), (Node(operation, Operand("s32", (2,), None), NO),)))
    assert [node.op_type for node in model.node] == written
    assert [each.name for each in model.input] == ["src", "arriving0"]
    assert model.node[-1].attribute[0].i == 1


def test_each_output_has_a_type_and_no_dims() -> None:
    """ONNX wants a type of it; dims are declared where the case declares them."""
    given = graph("bf16", (2, 3), (6,))
    model = write_model(given._replace(nodes=(*given.nodes, given.nodes[0]._replace(takes_src=True))))
    types = [each.type.tensor_type for each in model.output]
    assert [(type_.elem_type, type_.HasField("shape")) for type_ in types] == [(16, False)] * 2


def test_what_a_branch_declares_is_declared_of_its_output_alone() -> None:
    given = graph("f32", (2, 3), (6,), result=Declared("bf16", (6,)))
    model = write_model(given._replace(nodes=(*given.nodes, given.nodes[0]._replace(takes_src=True, result=None))))
    assert {each.name: each.type.tensor_type.elem_type for each in model.output} == {"dst": 1, "between0": 16}
    assert not model.value_info


def test_a_chain_is_one_graph() -> None:
    given = graph("f32", (2, 3), (6,))
    model = write_model(given._replace(nodes=given.nodes * 3))
    assert [next(iter(node.input)) for node in model.node] == ["src", "between0", "between1"]
    assert list(model.node[2].output) == ["dst"]


def test_what_is_declared_of_dst_is_written_as_it_is() -> None:
    (dst,) = write_model(graph("f32", (2, 3), (6,), result=Declared("f16", (None, 6)))).output
    assert dst.type.tensor_type.elem_type == 10
    assert [dim.dim_value for dim in dst.type.tensor_type.shape.dim] == [0, 6]


@pytest.mark.parametrize("zero", [None, Operand("s64", (), (1,)), Operand("string", (), ("true",))])
def test_a_flag_that_is_no_boolean_is_not_supported(adapter: Adapter, zero: Operand | None) -> None:
    with pytest.raises(Unsupported, match="form:attributes"):
        adapter.compile(graph("f32", (2,), (2,), zero=zero))


def test_a_model_has_the_opset_of_its_backend() -> None:
    load_or_skip("onnx-reference")
    from conformance.adapters import onnx_model

    known = graph("f32", (2, 3), (6,))
    assert [onnx_model.model(known, *opset).opset_import[0].version for opset in ((), (18,))] == [21, 18]
    of_onnx = known._replace(nodes=(known.nodes[0]._replace(operation="Reshape-5"),))
    assert onnx_model.model(of_onnx, 18).opset_import[0].version == 5
    assert dict(load_or_skip("onnxruntime-opset-18").identity.detail)["opset"] == "18"


# ── what it hands over and takes back ─────────────────────────────────────────────────────────────
@pytest.mark.parametrize("backend", ["onnxruntime", "onnxruntime-plain"])
def test_strided_bf16_is_not_supported_and_offset_is(backend: str) -> None:
    adapter = load_or_skip(backend)
    with pytest.raises(Unsupported, match="layout"):
        answer(adapter, graph("bf16", (3, 4), (12,)), TensorSpec("bf16", (3, 4), "transposed"))
    source = TensorSpec("bf16", (3, 4), "offset")
    assert answer(adapter, graph("bf16", (3, 4), (12,)), source)[2] == patterns(source).tobytes()


@pytest.mark.parametrize("type_", ["f32", "bf16"])
@pytest.mark.parametrize("step", [2, -1])
def test_a_shape_is_read_wherever_its_entries_lie(type_: str, step: int) -> None:
    row = next(
        row for row in plan_of(load_suite()).rows
        if row.case.shape_step == step and row.type == type_ and row.shape_passed_as == "runtime"
    )  # fmt: skip
    (result,) = run_rows([row], load_or_skip("onnxruntime"))
    assert set(result.verdicts.values()) == {"pass"}, result.detail


def test_what_nodes_share_is_shared_in_the_model() -> None:
    fork = graph("f32", (2, 6), (12,))._replace(nodes=(node((3, 4)), node((3, 4), takes_src=True, shares_shape=True)))
    made = write_model(fork)
    assert [list(each.input) for each in made.node] == [["src", "shape0"], ["src", "shape0"]]
    assert [each.name for each in made.output] == ["dst", "between0"]


def test_a_fork_answers_dst_of_its_last_node(adapter: Adapter) -> None:
    if adapter.claims.excludes("shared-src"):
        pytest.skip("takes no forks")
    source = TensorSpec("f32", (2, 6))
    fork = graph("f32", (2, 6), (12,))._replace(nodes=(node((3, 4)), node((4, 3), takes_src=True)))
    assert answer(adapter, fork, source) == ("f32", (4, 3), lay_out(source).elements)


def test_more_dims_than_numpy_has_are_for_the_runtime_only() -> None:
    source = TensorSpec("f32", (1,) * 65)
    with pytest.raises(Unsupported, match="rank:65"):
        answer(load_or_skip("onnx-reference"), graph("f32", (1,) * 65, (1,)), source)
    assert answer(load_or_skip("onnxruntime"), graph("f32", (1,) * 65, (1,)), source)[1] == (1,)


@pytest.mark.parametrize("backend", ["tract", "tvm"])
def test_a_shape_at_run_time_is_not_offered_by_tract_and_tvm(backend: str) -> None:
    node = Node("DynamicReshape-1", Operand("s64", (2,), None), YES)
    with pytest.raises(Unsupported, match="runtime-shape"):
        load_or_skip(backend).compile(Graph(Declared("f32", (2, 6)), (node,)))


# ── what is refused, and by whom ──────────────────────────────────────────────────────────────────
def test_a_refusal_names_its_stage(adapter: Adapter) -> None:
    with pytest.raises(Rejected) as rejected:
        answer(adapter, graph("f32", (2, 3), (4, -1)), TensorSpec("f32", (2, 3)))
    assert rejected.value.stage == ("run" if adapter.identity.name == "onnx-reference" else "compile")


def test_a_node_without_dst_is_answered_and_fails() -> None:
    rows = [row for row in plan_of(load_suite()).rows if row.case.id == "dst-is-not-connected"]
    assert {
        verdict for result in run_rows(rows, load_or_skip("onnx-reference")) for verdict in result.verdicts.values()
    } == {"fail"}


@pytest.mark.parametrize("more", [{"inputs": 0}, {"inputs": 2}, {"outputs": 0}, {"outputs": 2}])
def test_the_runtime_rejects_too_few_and_too_many_operands(more: dict[str, Any]) -> None:
    with pytest.raises(Rejected) as rejected:
        answer(load_or_skip("onnxruntime"), graph("f32", (2,), (2,), **more), TensorSpec("f32", (2,)))
    assert rejected.value.stage == "compile"
