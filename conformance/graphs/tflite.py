"""TFLite models, which are tables of a FlatBuffer. Only constants that are shapes are decoded.

Every offset is checked, so that a bad file ends with the byte of the mistake.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..model import INTEGERS
from ..model.types import WIDTH, dtype_of
from .model_graph import GraphOperation, ModelGraph
from .nodes import Dims, InferDst, ReshapeNode, UnreadableModel, make_odd_form, read_model_bytes

MAX_BYTES = 1 << 30
MAX_ENTRIES = 1_000_000
_RESHAPE = 22
MAX_SHAPE_ENTRIES = 1000
_TYPES = {
    0: "f32", 1: "f16", 2: "s32", 3: "u8", 4: "s64", 5: "string", 6: "bool", 7: "s16", 9: "s8", 10: "f64", 12: "u64",
    15: "u32", 16: "u16", 18: "bf16",
}  # fmt: skip


def read_tflite(path: Path, answer: InferDst) -> ModelGraph:
    """Return the graphs of a file. Inputs are those of the first and of each signature, with its key if it has one."""
    content = read_model_bytes(path, MAX_BYTES)
    if content[4:8] != b"TFL3":
        raise UnreadableModel(f"byte 4: {content[4:8]!r}, where a TFLite file has b'TFL3'")
    model = FlatTable(content, _number(content, 0, "I"))
    codes = [max(code.number(0, "b"), code.number(3, "i")) for code in model.tables(1)]
    buffers = model.tables(4)
    keys = {0: "", **{signature.number(4, "I"): f"{signature.text(2)}:" for signature in model.tables(7)}}
    if len(keys) == 1:
        keys = {0: ""}
    graphs = [_Graph(table, k, keys.get(k), codes, buffers) for k, table in enumerate(model.tables(2))]
    if not graphs:
        raise UnreadableModel("there is no graph in it")
    inputs = {name: dims for k, graph in enumerate(graphs) if k in keys for name, dims in graph.inputs.items()}
    # which operator calls which graph is not read, so each of the others may get what enters the model
    others = (graph for k, graph in enumerate(graphs) if k not in keys)
    entries = (GraphOperation(tuple(inputs), tuple(graph.inputs)) for graph in others)
    operations = [*entries, *(operation for graph in graphs for operation in graph.operations())]
    dims = {name: each for graph in graphs for name, each in graph.dims.items()}
    return ModelGraph(operations, dims, inputs, answer)


class _Graph:
    """One graph of a model. Declared dims of one that others call hold if the inputs of the model have theirs."""

    def __init__(
        self, table: FlatTable, number: int, key: str | None, codes: list[int], buffers: list[FlatTable]
    ) -> None:
        """Without a key the inputs of the graph are none of the model."""
        self._table, self._place, self._codes, self._buffers = table, f"subgraphs[{number}]", codes, buffers
        self._tensors = table.tables(0)
        inputs = table.numbers(1)
        self._names = {k: f"\0{self._place}:{k}" for k in range(len(self._tensors))}
        if key is not None:
            self._names |= {k: f"{key}{self._tensors[k].text(3)}" for k in inputs if 0 <= k < len(self._tensors)}
        self.dims: dict[str, Dims | None] = {name: _read_dims(self._tensors[k]) for k, name in self._names.items()}
        self.inputs = {self._names[k]: self.dims[self._names[k]] for k in inputs if k in self._names}

    def operations(self) -> Iterator[GraphOperation]:
        for number, operator in enumerate(self._table.tables(3)):
            place = f"{self._place}.operators[{number}]"
            takes, makes = (self._check_tensors(operator.numbers(field), place) for field in (1, 2))
            index = operator.number(0, "I")
            if index >= len(self._codes):
                raise UnreadableModel(f"byte {operator.at:,}: {place} has the code {index:,} of {len(self._codes):,}")
            node = self._reshape(operator, place, takes, makes) if self._codes[index] == _RESHAPE and takes else None
            yield GraphOperation(tuple(self._names[k] for k in takes), tuple(self._names[k] for k in makes), node)

    def _check_tensors(self, indices: tuple[int, ...], place: str) -> tuple[int, ...]:
        bad = next((k for k in indices if k >= len(self._tensors) or k < -1), None)
        if bad is not None:
            raise UnreadableModel(f"{place}: there is no tensor {bad:,}; the graph has {len(self._tensors):,}")
        return tuple(k for k in indices if k >= 0)

    def _reshape(self, operator: FlatTable, place: str, takes: tuple[int, ...], makes: tuple[int, ...]) -> ReshapeNode:
        """Read the shape as TFLite does: from the options, if it has some, where the second input is no vector of s32.

        A 0 is a length, but the shape [0] of the options means rank 0.
        """
        options = operator.table(4)
        shape: Dims | None = options.numbers(0) if options is not None else None
        shape = () if shape == (0,) else shape
        form = None
        src = self._tensors[takes[0]]
        src_type = _TYPES.get(src.number(1, "b"))
        declared = _read_dims(self._tensors[makes[0]]) if makes else None
        if len(takes) > 1:
            tensor = self._tensors[takes[1]]
            type_, content = _TYPES.get(tensor.number(1, "b")), self._read_content(tensor)
            rank = len(tensor.numbers(0)) if content else 1  # a computed shape of rank 0 may be of any rank
            if rank == 1 and (type_ == "s32" or (type_ in INTEGERS and shape is None)):
                shape = () if _read_dims(tensor) == (0,) else _read_entries(content, type_)
            elif shape is None and type_ is not None:
                form = make_odd_form(src_type, declared, shape_rank=rank, shape_type=type_)
        why = "" if shape is not None else "shape is computed while it runs"
        name = self._tensors[makes[0]].text(3) if makes else ""
        return ReshapeNode(name, place, None, src_type, _read_dims(src), shape, False, declared, form, why)

    def _read_content(self, tensor: FlatTable) -> bytes | None:
        number = tensor.number(2, "I")
        return self._buffers[number].content(0, 8 * MAX_SHAPE_ENTRIES) if number < len(self._buffers) else None


def _read_entries(content: bytes | None, type_: str) -> Dims | None:
    if not content or len(content) % WIDTH[type_]:
        return None
    return tuple(np.frombuffer(content, dtype_of(type_)).tolist())


def _read_dims(tensor: FlatTable) -> Dims | None:
    """Return dims; the signature, where there is one, says which lengths are not known. [] may be any rank."""
    lengths = tensor.numbers(7) or tensor.numbers(0)
    if not lengths and not tensor.number(8, "b"):
        return None
    return tuple(length if length >= 0 else None for length in lengths)


# ── FlatBuffer ────────────────────────────────────────────────────────────────────────────────────


def _number(content: bytes, at: int, code: str) -> int:
    """Return the number at a byte; `code` is one of struct's letters."""
    if not 0 <= at <= len(content) - struct.calcsize(f"<{code}"):
        raise UnreadableModel(f"byte {at:,}: past the end of the file, which has {len(content):,} bytes")
    number: int = struct.unpack_from(f"<{code}", content, at)[0]
    return number


class FlatTable:
    """A table; its fields are numbered as in the schema."""

    def __init__(self, content: bytes, at: int) -> None:
        self._content, self.at = content, at
        self._fields = at - _number(content, at, "i")
        self._size = _number(content, self._fields, "H")

    def _place(self, field: int) -> int | None:
        slot = 4 + 2 * field
        offset = _number(self._content, self._fields + slot, "H") if slot + 2 <= self._size else 0
        return self.at + offset if offset else None

    def _follow(self, place: int) -> int:
        """Return the byte to which the offset at a byte leads."""
        return place + _number(self._content, place, "I")

    def _read_bytes(self, at: int, size: int) -> bytes:
        if not 0 <= at <= len(self._content) - size:
            raise UnreadableModel(f"byte {at:,}: {size:,} bytes from here are past the end of the file")
        return self._content[at : at + size]

    def number(self, field: int, code: str) -> int:
        """Return a number; 0 if the field is not there."""
        place = self._place(field)
        return 0 if place is None else _number(self._content, place, code)

    def table(self, field: int) -> FlatTable | None:
        """Return a table inside; None if there is none."""
        place = self._place(field)
        return None if place is None else FlatTable(self._content, self._follow(place))

    def _read_vector(self, field: int, width: int) -> tuple[int, int]:
        """Return the first byte and the number of entries of a list."""
        place = self._place(field)
        if place is None:
            return 0, 0
        start = self._follow(place)
        count = _number(self._content, start, "I")
        if count * width > MAX_ENTRIES * 8 and width > 1:
            raise UnreadableModel(f"byte {start:,}: a list of {count:,} entries, at most {MAX_ENTRIES:,} are read")
        return start + 4, count

    def numbers(self, field: int) -> tuple[int, ...]:
        """Return a list of numbers of 32 bits."""
        start, count = self._read_vector(field, 4)
        return struct.unpack(f"<{count}i", self._read_bytes(start, count * 4)) if count else ()

    def tables(self, field: int) -> list[FlatTable]:
        start, count = self._read_vector(field, 4)
        self._read_bytes(start, 4 * count)
        places = range(start, start + 4 * count, 4)
        return [FlatTable(self._content, self._follow(place)) for place in places]

    def content(self, field: int, most: int) -> bytes | None:
        """Return a list of bytes; None if it is longer than `most`."""
        start, count = self._read_vector(field, 1)
        return self._read_bytes(start, count) if count <= most else None

    def text(self, field: int) -> str:
        """Return a text, cut if it is long."""
        start, count = self._read_vector(field, 1)
        return self._read_bytes(start, min(count, 1000)).decode("utf-8", "replace")
