"""Rows as backend node tests of ONNX: for each a folder that onnx's own runner reads."""

from __future__ import annotations

import importlib
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..graphs.onnx_model import TYPES
from ..model import Graph, Node
from ..plan.memory import patterns
from ..plan.rows import Row
from ..plan.steps import RowStep
from ..system.exit_codes import CommandError
from .choose import AlikeRows, ExportChoice, Reasons, choose_rows, dims_of_outputs

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
_MAX_BYTES = 1 << 20
_OPSET, _IR_VERSION = 21, 10
"""The first opset with bf16 tests of Reshape that libraries of 2024 read."""
_TYPES = {ours: theirs for theirs, ours in TYPES.items()}


def load_onnx() -> Any:
    """Return the package onnx; CommandError, which says what to install, if it is missing."""
    try:
        importlib.import_module("onnx.numpy_helper")
        return importlib.import_module("onnx")
    except ImportError:
        what = "node tests of ONNX are written with the package onnx"
        raise CommandError(f"{what}; pip install 'reshape-conformance[graphs]'") from None


def choose_node_tests(rows: Sequence[Row]) -> ExportChoice:
    return choose_rows(rows, _REASONS, _MAX_BYTES)


def write_node_tests(chosen: Sequence[AlikeRows], out: Path) -> int:
    """Write a folder for each graph of each chosen row into an empty folder, and return how many there are."""
    onnx, written = load_onnx(), 0
    for group in chosen:
        for number, steps in group.graphs:
            shape = "input" if group.rows[0].shape_passed_as == "runtime" else "constant"
            name = "_".join(filter(None, ("test_reshape", group.name_of(steps[0]), shape, number)))
            _write(onnx, out / name.replace("-", "_"), group, steps)
            written += 1
        group.rows[0].free_steps()
    return written


def _write(onnx: Any, folder: Path, group: AlikeRows, steps: Sequence[RowStep]) -> None:
    row = group.rows[0]
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(_make_model(onnx, row, steps).SerializeToString(deterministic=True))
    facts = {"atol": 0.0, "rtol": 0.0, "rows": [row.id for row in group.rows], "rule": row.case.rule}
    (folder / "data.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    for number, step in enumerate(steps):
        type_, elements = _TYPES[step.src_spec.type], patterns(step.src_spec).tobytes()
        inputs = [("src", type_, step.src_spec.dims, elements)]
        nodes = enumerate(step.graph.nodes)
        late = [(k, node) for k, node in nodes if node.shape is not None and node.shape.values is None]
        for (k, node), (_, dims, values) in zip(late, step.shapes, strict=True):
            if not node.shares_shape:
                inputs.append((_name_shape(step.graph, k), "INT64", dims, struct.pack(f"<{len(values)}q", *values)))
        tensors = {f"input_{k}": tensor for k, tensor in enumerate(inputs)}
        tensors["output_0"] = "dst", type_, dims_of_outputs(row, step)[-1], elements
        data = folder / f"test_data_set_{number}"
        data.mkdir()
        for file, (name, kind, dims, content) in tensors.items():
            tensor = onnx.helper.make_tensor(name, getattr(onnx.TensorProto, kind), dims, content, raw=True)
            (data / f"{file}.pb").write_bytes(tensor.SerializeToString())


def _make_model(onnx: Any, row: Row, steps: Sequence[RowStep]) -> Any:
    helper, graph = onnx.helper, steps[0].graph
    type_ = getattr(onnx.TensorProto, _TYPES[graph.src.type])
    inputs = [helper.make_tensor_value_info("src", type_, _find_common_dims([step.src_spec.dims for step in steps]))]
    constants, nodes = [], []
    value, shape = "src", ""
    for k, node in enumerate(graph.nodes):
        operand = node.shape
        assert operand is not None
        if not node.shares_shape:
            shape = _name_shape(graph, k)
            if operand.values is None:
                inputs.append(helper.make_tensor_value_info(shape, onnx.TensorProto.INT64, operand.dims))
            else:
                entries = operand.values
                constants.append(helper.make_tensor(shape, onnx.TensorProto.INT64, [len(entries)], entries))
        output = "dst" if k == len(graph.nodes) - 1 else f"between{k}"
        nodes.append(
            helper.make_node(
                "Reshape", ["src" if node.takes_src else value, shape], [output], **_export_attributes(node)
            )
        )
        value = output
    declared = graph.nodes[-1].result
    dims = declared.dims if declared is not None else None
    dims = _find_common_dims([dims_of_outputs(row, step)[-1] for step in steps]) if dims is None else dims
    dst = helper.make_tensor_value_info("dst", type_, dims)
    whole = helper.make_graph(nodes, row.case.id, inputs, [dst], constants)
    opsets = [helper.make_opsetid("", _OPSET)]
    return helper.make_model(whole, opset_imports=opsets, ir_version=_IR_VERSION, doc_string=row.id)


def _name_shape(graph: Graph, k: int) -> str:
    return "shape" if len(graph.nodes) == 1 else f"shape{k}"


def _export_attributes(node: Node) -> dict[str, int]:
    """`allowzero` is `not special_zero`; 0 is its default."""
    zero = node.special_zero
    assert zero is not None
    assert zero.values is not None
    return {} if zero.values[0] else {"allowzero": 1}


def _find_common_dims(dims: Sequence[tuple[int, ...]]) -> tuple[int | None, ...]:
    """Return the lengths that dims of one rank share, None for the others; ONNX wants the rank of every tensor."""
    return tuple(lengths[0] if len(set(lengths)) == 1 else None for lengths in zip(*dims, strict=True))
