"""Small values of an OpenVINO network: constants of model.bin, and what is computed from them and from known dims."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..system.files import leaves_its_folder, open_regular
from ..system.text import quote
from .onnx_values import MAX_ELEMENTS, Value, compute
from .xml_tree import XmlElement, dims_of, read_whole

MAX_DEPTH = 50
_CODES = {
    "i64": "<i8", "i32": "<i4", "i16": "<i2", "i8": "<i1", "u64": "<u8", "u32": "<u4", "u16": "<u2", "u8": "<u1",
}  # fmt: skip
_COMPUTED = "shape is computed while it runs"
_SAME = {"Add": "Add", "Subtract": "Sub", "Multiply": "Mul", "Divide": "Div", "Concat": "Concat"}
"""Operations that ONNX has too, by its names."""
Port = tuple[str, str]
"""The ids of a layer and of one of its ports."""


class Known(NamedTuple):
    """A value, or why it is not known."""

    value: Value | None
    why: str = ""


class NetworkValues:
    """The values of a network, each computed when it is first needed."""

    def __init__(self, layers: Mapping[str, XmlElement], edges: Mapping[Port, Port], weights: Path) -> None:
        self._layers, self._edges, self._weights = layers, edges, weights
        self._known: dict[Port, Known] = {}

    def of(self, port: Port, depth: int = 0) -> Known:
        if port not in self._known:
            self._known[port] = Known(None, _COMPUTED)  # for a circle
            if depth < MAX_DEPTH:
                self._known[port] = self._compute(port, depth + 1)
        return self._known[port]

    def _compute(self, port: Port, depth: int) -> Known:
        layer = self._layers[port[0]]
        kind = layer.attributes.get("type", "")
        data: dict[str, str] = next((each.attributes for each in layer.find("data")), {})
        if kind == "Const":
            return self._read(layer, data)
        inputs = [*layer.find("input", "port")]
        if kind == "ShapeOf":
            dims = dims_of(inputs[0]) if inputs else (None,)
            return Known(None, _COMPUTED) if None in dims else Known(np.array(dims, np.int64))
        if kind not in _SAME and kind not in ("Convert", "VariadicSplit", "Broadcast"):
            return Known(None, _COMPUTED)
        sources = [self._edges.get((port[0], each.attributes.get("id", ""))) for each in inputs]
        values = [self.of(each, depth).value if each and each[0] in self._layers else None for each in sources]
        if not values or any(value is None for value in values):
            return Known(None, _COMPUTED)
        outputs = [each.attributes.get("id", "") for each in layer.find("output", "port")]
        result = _apply(kind, data, values, outputs.index(port[1]) if port[1] in outputs else 0)
        return Known(result, "" if result is not None else _COMPUTED)

    def _read(self, layer: XmlElement, data: Mapping[str, str]) -> Known:
        """Read a constant, if it is small and lies in model.bin."""
        code = _CODES.get(data.get("element_type", ""))
        if code is None:
            return Known(None, f"shape has the type {quote(data.get('element_type'))}")
        offset, size = (read_whole(layer, data.get(name, "")) for name in ("offset", "size"))
        lengths = [read_whole(layer, part) for part in data.get("shape", "").split(",") if part.strip()]
        count = math.prod(lengths)
        if count > MAX_ELEMENTS or size != count * np.dtype(code).itemsize:
            return Known(None, f"line {layer.line}: {size:,} bytes are no shape of {count:,} entries")
        if count == 0:
            return Known(np.zeros(lengths, np.int64))
        try:
            if leaves_its_folder(self._weights):
                return Known(None, f"shape is in {self._weights.name}, a link to another folder")
            with open_regular(self._weights) as stream:
                stream.seek(offset)
                content = stream.read(size)
        except (OSError, ValueError, OverflowError):
            return Known(None, f"shape is in {self._weights.name}, which cannot be read")
        if len(content) < size:
            return Known(None, f"shape is past the end of {self._weights.name}, at byte {offset:,}")
        return Known(np.frombuffer(content, code).reshape(lengths))


def _apply(kind: str, data: Mapping[str, str], values: list[Any], output: int) -> Value | None:
    """Return an output of an operation; None if its attributes or values allow none."""
    try:
        if kind == "Convert":
            return values[0] if data.get("destination_type") in ("i64", "i32", "f32", "f64") else None
        if kind == "Broadcast":
            small = math.prod(values[1].tolist()) <= MAX_ELEMENTS
            return np.broadcast_to(values[0], tuple(values[1].tolist())) if small else None
        if kind == "VariadicSplit":
            lengths = values[2].tolist()
            rest = values[0].size - sum(length for length in lengths if length >= 0)
            lengths = [rest if length == -1 else length for length in lengths]
            bounds = np.cumsum(lengths)
            fits = values[0].ndim == 1 and min(lengths) >= 0 and bounds[-1] == values[0].size
            return values[0][bounds[output] - lengths[output] : bounds[output]] if fits else None
        return compute(_SAME[kind], {"axis": int(data.get("axis", "0"))}, values)
    except (ValueError, IndexError, TypeError, OverflowError):
        return None
