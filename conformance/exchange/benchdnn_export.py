"""Rows as graph files of benchdnn, the test driver of oneDNN, in the form in which the library dumps a graph."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..model import Node, Operand
from ..model.types import WIDTH
from ..plan.memory import strides_of
from ..plan.rows import Row
from ..plan.steps import RowStep
from .choose import AlikeRows, ExportChoice, Reasons, choose_rows, dims_of_outputs

VERSION = "3.6.0"
"""The version that the files name: the oldest release that names every field below."""
LOST: tuple[str, ...] = (
    "illegal and unspecified calls: benchdnn runs what the library takes",
    "the elements of src: benchdnn fills it with its own",
    "shapes that arrive with run: the library has no operation for them",
    "dst without declared dims: each file declares those of the right answer",
    "in place, offsets, strides that repeat or reverse elements",
    "what a call does to src, to the memory around dst, and to the next call",
)
"""What these files do not test, though the suite does."""
_REASONS: Reasons = {
    "layout:reversed": "strides that repeat or reverse elements",
    "layout:broadcast": "strides that repeat or reverse elements",
    "layout:offset": "an offset of src in memory",
    "large": "a tensor of more than 2^31 elements",
}


def choose_graphs(rows: Sequence[Row]) -> ExportChoice:
    """Choose the rows of operations with shape as an attribute that can be files."""
    static = [row for row in rows if row.shape_passed_as == "attribute"]
    choice = choose_rows(static, _REASONS, None)
    choice.left_out["a shape that is no attribute"] += len(rows) - len(static)
    return choice


def write_graphs(chosen: Sequence[AlikeRows], out: Path) -> int:
    """Write a file for each different graph into a folder, and return how many there are."""
    written: set[str] = set()
    out.mkdir(parents=True, exist_ok=True)
    for group in chosen:
        for number, (step, *_) in group.graphs:
            text = json.dumps(graph_of(group.rows[0], step), indent=2) + "\n"
            if text not in written:
                written.add(text)
                name = "-".join(filter(None, (group.name_of(step), number)))
                (out / f"{name}.json").write_text(text, encoding="utf-8")
        group.rows[0].free_steps()
    return len(written)


def graph_of(row: Row, step: RowStep) -> dict[str, Any]:
    """Return the graph of a step as JSON, each output declared with the dims of the right answer."""
    type_, src = step.src_spec.type, step.graph.src
    strides = None if src.strides is None else tuple(stride // WIDTH[type_] for stride in src.strides)
    made = [_export_tensor(0, type_, step.src_spec.dims, strides)]
    ops: list[dict[str, Any]] = []
    for k, (node, dims) in enumerate(zip(step.graph.nodes, dims_of_outputs(row, step), strict=True)):
        taken = made[0] if node.takes_src else made[k]
        made.append(_export_tensor(k + 1, type_, dims))
        ops.append({
            "id": k, "name": "reshape", "kind": row.signature.kind, "attrs": dict(_export_attributes(node)),
            "inputs": [taken], "outputs": [made[-1]],
        })  # fmt: skip
    taken_ids = {op["inputs"][0]["id"] for op in ops}
    return {
        "version": VERSION,
        "engine_kind": "cpu",
        "fpmath_mode": "strict",
        "fpmath_mode_apply_to_int": "false",
        "input_ports": [0 for op in ops if op["inputs"][0]["id"] == 0],  # one for each node that takes src
        "output_ports": [tensor["id"] for tensor in made if tensor["id"] not in taken_ids],
        "graph": ops,
    }


def _export_attributes(node: Node) -> Iterator[tuple[str, Any]]:
    for name, operand in (("special_zero", node.special_zero), ("shape", node.shape)):
        assert isinstance(operand, Operand)
        assert operand.values is not None
        value: Any = list(operand.values) if operand.dims else int(operand.values[0])
        yield name, {"type": f"{operand.type}[]" if operand.dims else operand.type, "value": value}


def _export_tensor(
    id_: int, type_: str, dims: tuple[int, ...], strides: tuple[int, ...] | None = None
) -> dict[str, Any]:
    """Return a tensor; without strides it is dense."""
    return {
        "id": id_, "dtype": type_, "shape": list(dims), "stride": list(strides or strides_of(dims, "dense", 1)),
        "layout_type": "strided", "property_type": "undef",
    }  # fmt: skip
