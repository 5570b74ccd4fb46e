"""The backends that examples/javascript makes of the template for JavaScript and of libraries."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from conformance.isolate.backend import use_backend
from conformance.isolate.process.launch import ProcessLimits
from conformance.model import Declared, Graph, Rejected, Unsupported
from conformance.plan.memory import TensorSpec, lay_out

from ..processes import works
from .backends import YES, answer, graph, node

EXAMPLES = Path(__file__).parents[2] / "examples" / "javascript"
LIMITS = ProcessLimits(seconds=20)
pytestmark = pytest.mark.skipif(not works("node"), reason="needs node")


@pytest.fixture(scope="module")
def start() -> Iterator[Callable[[str], Any]]:
    """Start the program of a library; skip if the libraries are not installed."""
    if not (EXAMPLES / "node_modules").is_dir():
        pytest.skip("needs npm install --prefix examples/javascript")
    with ExitStack() as started:
        yield lambda name: started.enter_context(use_backend(f"cmd:node {EXAMPLES / name}.mjs", "worker", LIMITS))


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.mjs")), ids=lambda path: path.stem)
def test_an_example_is_javascript(path: Path) -> None:
    done = subprocess.run(["node", "--check", str(path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["onnxruntime-web", "tfjs"])
def test_libraries_in_javascript_answer_and_reject(start: Callable[[str], Any], name: str) -> None:
    library, source = start(name), TensorSpec("f32", (2, 6), "offset")
    elements = lay_out(source).elements
    assert answer(library, graph("f32", (2, 6), (0, 3, -1), zero=YES), source) == ("f32", (2, 3, 2), elements)
    chain = Graph(Declared("f32", (2, 6)), (node((12,)), node((4, 3))))
    assert answer(library, chain, source) == ("f32", (4, 3), elements)
    with pytest.raises(Rejected):
        answer(library, graph("f32", (2, 6), (5,)), source)
    for other, facet in (
        (TensorSpec("f32", (2, 6), "transposed"), "layout"),
        (TensorSpec("f32", (1 << 60, 0)), "length"),
    ):
        with pytest.raises(Unsupported, match=facet):
            answer(library, graph("f32", other.dims, (0,)), other)


def test_onnxruntime_web_gets_what_a_graph_declares(start: Callable[[str], Any]) -> None:
    library, source = start("onnxruntime-web"), TensorSpec("f32", (2, 6))
    for result, words in (
        (Declared("f16", None), "does not match expected type"),
        (Declared("f32", (3, 4)), "declared"),
    ):
        for nodes in ((node((12,), result=result), node((4, 3))), (node((12,)), node((4, 3), result=result))):
            with pytest.raises(Rejected, match=words):
                answer(library, Graph(Declared("f32", (2, 6)), nodes), source)
