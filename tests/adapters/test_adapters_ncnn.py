"""The adapter of ncnn: nets of layers; lengths have numbers, and zeros copy by themselves."""

from typing import Any

import pytest

from conformance.model import LAYOUTS, Declared, Graph, Rejected, Unsupported
from conformance.plan.memory import TensorSpec, lay_out

from . import backends
from .backends import load_or_skip, node


@pytest.fixture(scope="module")
def adapter() -> Any:
    return load_or_skip("ncnn")


def answer(adapter: Any, source: TensorSpec, *shapes: tuple[int, ...]) -> tuple[tuple[int, ...], bytes]:
    graph = Graph(Declared(source.type, source.dims), tuple(map(node, shapes)))
    return backends.answer(adapter, graph, source)[1:]


@pytest.mark.parametrize("shape", [(24,), (4, 6), (3, 2, 4), (2, 3, 1, 4), (-1, 8), (2, -1, 4)])
def test_blobs_of_one_to_four_axes_go_in_and_out(adapter: Any, shape: tuple[int, ...]) -> None:
    want = tuple(24 // 8 if n == -1 else n for n in shape)
    for dims in ((24,), (3, 8), (2, 3, 4), (2, 2, 3, 2)):
        source = TensorSpec("f32", dims)
        assert answer(adapter, source, shape) == (want, lay_out(source).elements)


def test_a_zero_copies_the_length_of_the_axis_with_that_name(adapter: Any) -> None:
    assert answer(adapter, TensorSpec("f32", (2, 3)), (0, 0))[0] == (2, 3)
    assert answer(adapter, TensorSpec("f32", (2, 3, 4)), (0, -1))[0] == (3, 8), (
        "the last but one, where the first is meant"
    )


def test_what_it_cannot_hold_is_refused_by_it(adapter: Any) -> None:
    for source, shape, words in (((0, 3), (3, 0), "extract: -100"), ((2, 3), (1 << 40,), "load_param_mem")):
        with pytest.raises(Rejected, match=words):
            answer(adapter, TensorSpec("f32", source), shape)
    unheld: list[tuple[int, ...]] = [(), (1, 1, 2, 3, 1)]
    for dims in unheld:
        with pytest.raises((Rejected, RuntimeError)):
            answer(adapter, TensorSpec("f32", dims), (-1,))


@pytest.mark.parametrize("layout", sorted(set(LAYOUTS) - {"dense", "offset"}))
def test_ncnn_is_given_dense_arrays_only(adapter: Any, layout: Any) -> None:
    with pytest.raises(Unsupported, match="layout"):
        answer(adapter, TensorSpec("f32", (2, 2, 3, 2), layout), (4, 6))
    source = TensorSpec("f32", (2, 3), "offset")
    assert answer(adapter, source, (3, 2)) == ((3, 2), lay_out(source).elements)
