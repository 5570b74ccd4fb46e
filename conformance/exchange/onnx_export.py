"""Rows as backend node tests of ONNX: for each a folder that onnx's own runner reads."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..graphs.onnx_model import TYPES
from ..model import Declared, Graph, Node
from ..plan.memory import patterns
from ..plan.rows import Row
from ..plan.steps import RowStep
from ..system.exit_codes import CommandError
from .choose import Choice, Chosen, GraphCalls, Reasons, choose, dims_of_outputs

INSTALL = "pip install 'reshape-conformance[graphs]'"
LOST: tuple[str, ...] = (
    "illegal and unspecified calls: a node test has no word for a rejection",
    "bits of NaN and the sign of 0: the runner compares with numpy.testing.assert_allclose",
    "exact bf16: the runner of onnx 1.23 allows a relative error of 2^-6",
    "layouts, in place and strides: a tensor is a file of dense elements",
    "tensors of unknown rank: ONNX wants every rank, so that a test holds calls of one rank",
    "shape of s32: ONNX takes s64, so both are one test",
    "what a call does to src, to the memory around dst, and to the next call",
)
"""What these tests do not test, though the suite does."""
_REASONS: Reasons = {"layout:": "a layout of src in memory"}
_MOST_BYTES = 1 << 20
_OPSET, _IR_VERSION = 21, 10
"""The first opset with bf16 tests of Reshape that libraries of 2024 read."""
_TYPES = {ours: theirs for theirs, ours in TYPES.items()}
_Dims = tuple[int | None, ...]


class MissingOnnx(CommandError):
    """The package onnx is not installed; the message says what to install."""


def load_onnx() -> Any:
    """Return the package onnx."""
    try:
        importlib.import_module("onnx.numpy_helper")
        return importlib.import_module("onnx")
    except ImportError:
        raise MissingOnnx(f"node tests of ONNX are written with the package onnx; {INSTALL}") from None


def choose_node_tests(rows: Sequence[Row]) -> Choice:
    """Choose the rows that can be node tests."""
    return choose(rows, _REASONS, _MOST_BYTES)


def write_node_tests(chosen: Sequence[Chosen], out: Path) -> int:
    """Write a folder for each graph of each chosen row into an empty folder, and return how many there are."""
    writer = _Writer(load_onnx())
    number = 0
    for group in chosen:
        for program in group.programs:
            writer.write(out / _name(group, program), group, program)
            number += 1
        group.rows[0].free_steps()
    return number


def _name(group: Chosen, program: GraphCalls) -> str:
    way = "input" if group.rows[0].given == "runtime" else "constant"
    parts = ["test_reshape", group.name, way, *([str(program.number)] if program.number else [])]
    return "_".join(parts).replace("-", "_")


class _Tensor(NamedTuple):
    """A tensor of a file: its name in the graph, its type in ONNX, dims and elements."""

    name: str
    type: str
    dims: tuple[int, ...]
    elements: bytes


class _Writer:
    """Writes folders with the package onnx."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx

    def write(self, folder: Path, group: Chosen, program: GraphCalls) -> None:
        """Write one folder."""
        folder.mkdir(parents=True)
        model = self._model(group.rows[0], program)
        (folder / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))
        facts = {"atol": 0.0, "rtol": 0.0, "rows": [row.id for row in group.rows], "rule": group.rows[0].case.rule}
        (folder / "data.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        for number, step in enumerate(program.steps):
            data = folder / f"test_data_set_{number}"
            data.mkdir()
            for k, tensor in enumerate(_inputs(step)):
                (data / f"input_{k}.pb").write_bytes(self._tensor(tensor).SerializeToString())
            dst = dims_of_outputs(group.rows[0], step)[-1]
            answer = _Tensor("dst", _TYPES[step.source.type], dst, _elements(step))
            (data / "output_0.pb").write_bytes(self._tensor(answer).SerializeToString())

    def _model(self, row: Row, program: GraphCalls) -> Any:
        helper, graph = self._onnx.helper, program.steps[0].graph
        inputs = [self._info("src", _TYPES[graph.src.type], _common([step.source.dims for step in program.steps]))]
        constants, nodes = [], []
        value, shape = "src", ""
        for k, node in enumerate(graph.nodes):
            operand = node.shape
            assert operand is not None
            if not node.shares_shape:
                shape = _shape_name(graph, k)
                if operand.values is None:
                    inputs.append(self._info(shape, "INT64", operand.dims))
                else:
                    constants.append(self._constant(shape, operand.values))
            output = "dst" if k == len(graph.nodes) - 1 else f"between{k}"
            nodes.append(
                helper.make_node("Reshape", ["src" if node.takes_src else value, shape], [output], **_attributes(node))
            )
            value = output
        dst = self._info("dst", _TYPES[graph.src.type], _declared_dims(row, program))
        whole = helper.make_graph(nodes, row.case.id, inputs, [dst], constants)
        return helper.make_model(
            whole, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION, doc_string=row.id
        )

    def _info(self, name: str, type_: str, dims: _Dims) -> Any:
        return self._onnx.helper.make_tensor_value_info(name, getattr(self._onnx.TensorProto, type_), dims)

    def _constant(self, name: str, values: tuple[int, ...]) -> Any:
        return self._onnx.helper.make_tensor(name, self._onnx.TensorProto.INT64, [len(values)], values)

    def _tensor(self, tensor: _Tensor) -> Any:
        kind = getattr(self._onnx.TensorProto, tensor.type)
        return self._onnx.helper.make_tensor(tensor.name, kind, tensor.dims, tensor.elements, raw=True)


def _shape_name(graph: Graph, k: int) -> str:
    return "shape" if len(graph.nodes) == 1 else f"shape{k}"


def _attributes(node: Node) -> dict[str, int]:
    """`allowzero` is `not special_zero`; 0 is its default."""
    zero = node.special_zero
    assert zero is not None
    assert zero.values is not None
    return {} if zero.values[0] else {"allowzero": 1}


def _inputs(step: RowStep) -> Iterator[_Tensor]:
    graph = step.graph
    yield _Tensor("src", _TYPES[step.source.type], step.source.dims, _elements(step))
    for k, (node, shape) in enumerate(zip(graph.nodes, step.arriving, strict=False)):
        if not node.shares_shape:
            yield _Tensor(
                _shape_name(graph, k), "INT64", shape.tensor.dims, shape.tensor.array().astype("<i8").tobytes()
            )


def _elements(step: RowStep) -> bytes:
    return patterns(step.source).tobytes()


def _declared_dims(row: Row, program: GraphCalls) -> _Dims:
    """Return the dims that the model declares for dst: those of the case, or else what all calls have in common."""
    result: Declared | None = program.steps[0].graph.nodes[-1].result
    if result is not None and result.dims is not None:
        return result.dims
    return _common([dims_of_outputs(row, step)[-1] for step in program.steps])


def _common(dims: Sequence[tuple[int, ...]]) -> _Dims:
    """Return the lengths that dims of one rank share, None for the others; ONNX wants the rank of every tensor."""
    return tuple(lengths[0] if len(set(lengths)) == 1 else None for lengths in zip(*dims, strict=True))
