"""OpenVINO: what the adapter hands over and takes back."""

import sys
from typing import Any

import pytest

from conformance.model import Adapter, Declared, Graph, Node, Operand, Rejected, Tensor, Unsupported
from conformance.plan.memory import TensorSpec, lay_out, lay_out_shape, patterns

from .backends import LAYOUTS, NO, answer, graph, load_or_skip

BACKENDS = ("openvino", "openvino-one-thread", "openvino-reference")


@pytest.fixture(scope="module", params=BACKENDS)
def adapter(request: pytest.FixtureRequest) -> Any:
    return load_or_skip(request.param)


def arriving(type_: str, rank: int, length: int, zero: Operand = NO) -> Graph:
    operand = Operand("s64", (length,), None)
    return Graph(Declared(type_, (None,) * rank), (Node("Reshape-1", operand, zero),))


def refusal(adapter: Adapter, graph: Graph, src: Tensor, *shapes: Tensor) -> Rejected:
    with pytest.raises(Rejected) as rejected:
        adapter.compile(graph).run(src, shapes, False)
    return rejected.value


# ── who it is ─────────────────────────────────────────────────────────────────────────────────────
def test_the_build_begins_with_the_version(adapter: Adapter) -> None:
    assert dict(adapter.identity.detail)["build"].startswith(adapter.identity.version)


def test_nothing_is_reported_to_the_makers() -> None:
    load_or_skip("openvino")
    assert sys.modules["openvino_telemetry"] is None


# ── what it hands over and takes back ─────────────────────────────────────────────────────────────
@pytest.mark.parametrize("layout", LAYOUTS)
def test_elements_are_handed_over_wherever_they_lie(layout: Any) -> None:
    source = TensorSpec("bf16", (3, 4), layout)
    assert answer(load_or_skip("openvino"), graph("bf16", (3, 4), (12,)), source)[2] == patterns(source).tobytes()


def test_padded_rows_are_handed_over_in_the_very_memory() -> None:
    load_or_skip("openvino")
    from conformance.adapters import openvino

    tensor = openvino.to_ov_tensor(lay_out(TensorSpec("f32", (2, 6), "padded")).tensor)
    assert (tuple(tensor.shape), tuple(tensor.strides), tensor.is_continuous()) == ((2, 6), (36, 4), False)


@pytest.mark.parametrize(("src", "shape"), [((1,) * 65, (1,)), ((6,), (*(1,) * 65, 6))])
def test_the_reference_takes_more_dims_than_numpy(src: tuple[int, ...], shape: tuple[int, ...]) -> None:
    source = TensorSpec("f32", src)
    got = answer(load_or_skip("openvino-reference"), graph("f32", src, shape), source)
    assert got == ("f32", shape, lay_out(source).elements)


def test_a_shape_that_arrives_is_read_at_each_call(adapter: Adapter) -> None:
    program = adapter.compile(arriving("f32", 2, 2))
    buffer = lay_out(TensorSpec("f32", (2, 6)))
    for shape in ((3, 4), (12, 1), (4, -1)):
        dst = program.run(buffer.tensor, (lay_out_shape("s64", (2,), shape).tensor,), False)
        assert isinstance(dst, Tensor)
        assert (dst.dims[0], dst.array().tobytes()) == (shape[0], buffer.elements)


def test_src_is_not_copied_into_another_program(adapter: Adapter) -> None:
    first, second = (adapter.compile(graph("f32", (6,), (2, 3))) for _ in range(2))
    one, two = (lay_out(TensorSpec("f32", (6,), start=start)) for start in (0, 7))
    before = first.run(one.tensor, (), False)
    second.run(two.tensor, (), False)
    assert isinstance(before, Tensor)
    assert before.array().tobytes() == one.elements


# ── what is refused, and by whom ──────────────────────────────────────────────────────────────────
def test_a_constant_shape_is_refused_at_compile(adapter: Adapter) -> None:
    rejected = refusal(adapter, graph("f32", (2, 3), (5,)), lay_out(TensorSpec("f32", (2, 3))).tensor)
    assert (rejected.stage, "incompatible" in rejected.message) == ("compile", True)


@pytest.mark.parametrize("backend", ["openvino", "openvino-reference"])
def test_a_shape_that_arrives_is_refused_at_run(backend: str) -> None:
    shape = lay_out_shape("s64", (2,), (4, 5)).tensor
    rejected = refusal(load_or_skip(backend), arriving("f32", 2, 2), lay_out(TensorSpec("f32", (2, 3))).tensor, shape)
    assert rejected.stage == "run"


@pytest.mark.parametrize(("length", "zero"), [((4,), NO), ((6,), None), ((6,), Operand("f32", (), (1.0,)))])
def test_a_flag_is_written_as_it_is(adapter: Adapter, length: tuple[int, ...], zero: Operand | None) -> None:
    given = graph("f32", (2, 3), length, zero=zero)
    if zero is NO:
        refusal(adapter, given, lay_out(TensorSpec("f32", (2, 3))).tensor)
    else:
        assert answer(adapter, given, TensorSpec("f32", (2, 3)))[1] == (6,)


@pytest.mark.parametrize("inputs", [0, 2])
def test_operands_too_few_and_too_many_are_connected_as_written(adapter: Adapter, inputs: int) -> None:
    src = lay_out(TensorSpec("f32", (2,))).tensor
    assert refusal(adapter, graph("f32", (2,), (2,), inputs=inputs), src).stage == "compile"


@pytest.mark.parametrize(
    ("more", "facet"),
    [
        ({"result": Declared("f32", (2,))}, "declared"), ({"result": Declared("f16", None)}, "form:types"),
        ({"outputs": 2}, "form:outputs"),
    ],
)  # fmt: skip
def test_a_declared_dst_and_two_outputs_are_unsupported(adapter: Adapter, more: dict[str, Any], facet: str) -> None:
    with pytest.raises(Unsupported) as unsupported:
        adapter.compile(graph("f32", (2,), (2,), **more))
    assert unsupported.value.facet == facet
