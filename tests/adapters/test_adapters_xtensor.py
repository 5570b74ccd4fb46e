"""The backend that examples/xtensor makes of the template for C++ and the library xtensor."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.isolate.backend import use_backend
from conformance.isolate.process.launch import ProcessLimits
from conformance.model import Declared, Graph, Node, Operand, Rejected
from conformance.plan.memory import TensorSpec, lay_out, lay_out_shape, patterns

from ..processes import works
from .backends import LAYOUTS, YES, answer, graph, node, parts_of

EXAMPLE = Path(__file__).parents[2] / "examples" / "xtensor"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not works("c++") or not works("make"), reason="needs a compiler and make"),
    pytest.mark.skipif(not Path("/usr/include/xtensor").is_dir(), reason="needs libxtensor-dev"),
]


@pytest.fixture(scope="module")
def xtensor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    program = tmp_path_factory.mktemp("xtensor") / "xtensor"
    words = ["make", "-C", str(EXAMPLE), f"OUT={program}", "CXXFLAGS=-O0 -Wall -Wextra -Werror"]
    subprocess.run(words, check=True, capture_output=True, timeout=120)
    with use_backend(f"cmd:{program}", "worker", ProcessLimits(seconds=20)) as adapter:
        yield adapter


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("type_", ["bool", "s8", "bf16", "u32", "f64"])
def test_elements_of_each_width_come_back(xtensor: Any, type_: str, layout: Any) -> None:
    source = TensorSpec(type_, (3, 4), layout)
    got = answer(xtensor, graph(type_, (3, 4), (0, 2, -1), zero=YES), source)
    assert got == (type_, (3, 2, 2), lay_out(source).elements)


@pytest.mark.parametrize(("shape", "dims"), [((-2, 3), (1, 3)), ((-2, -3), (-2, -3))])
def test_an_answer_to_an_illegal_call_is_reported_as_it_is(xtensor: Any, shape: Any, dims: Any) -> None:
    source = TensorSpec("f32", (6,))
    type_, got, elements = answer(xtensor, graph("f32", (6,), shape), source)
    assert (type_, got) == ("f32", dims)
    assert patterns(source).tobytes().startswith(elements)
    chain = Graph(Declared("f32", (6,)), (node(shape), node((6,))))
    if min(dims) < 0:  # the next node counts the same elements, so that the library takes them
        assert answer(xtensor, chain, source)[1] == (6,)


def test_a_number_past_63_bits_is_no_negative_number(xtensor: Any) -> None:
    """The template reads it as the smallest number, and xtensor would divide by it."""
    for values in ((2**64 - 1, 2), None):
        shape = Operand("u64", (2,), values)
        program = xtensor.compile(Graph(Declared("f32", (6,)), (Node("Reshape-1", shape, YES),)))
        late = () if values else (lay_out_shape("u64", (2,), (2**64 - 1, 2)).tensor,)
        with pytest.raises(Rejected, match="more than 63 bits"):
            parts_of(program.run(lay_out(TensorSpec("f32", (6,))).tensor, late, False))
