"""Read a TFLite model: a flatbuffer, of which only the tables that lead to reshapes are read."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

from ..meaning.partial import Lengths
from .nodes import CannotRead, ReshapeNode, read_content
from .tensors import Operation, Tensor, TensorGraph

_RESHAPE = 22
_MOST_VALUES = 1024
_TYPES = {
    0: "f32", 1: "f16", 2: "s32", 3: "u8", 4: "s64", 5: "string", 6: "bool", 7: "s16", 8: "complex64", 9: "s8",
    10: "f64", 11: "complex128", 12: "u64", 15: "u32", 16: "u16", 17: "s4", 18: "bf16",
}  # fmt: skip
_INTEGERS = {"s32": "i", "s64": "q"}


class _Damaged(Exception):
    """The bytes at a place are no part of a flatbuffer."""

    def __init__(self, at: int, what: str) -> None:
        super().__init__(what)
        self.at = at


class _Buffer:
    """The bytes of a file. No more elements are read than it has bytes, however its parts overlap."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.left = len(content)

    def number(self, code: str, at: int) -> int:
        """Return the whole number at a byte."""
        size = struct.calcsize(f"<{code}")
        if not 0 <= at <= len(self.content) - size:
            raise _Damaged(at, f"the file has {len(self.content):,} bytes, and {size} are needed here")
        return int(struct.unpack_from(f"<{code}", self.content, at)[0])

    def follow(self, at: int) -> int:
        """Return the byte that the offset at a byte leads to."""
        return at + self.number("I", at)

    def vector(self, at: int, size: int) -> range:
        """Return the bytes at which the elements of a vector begin."""
        count = self.number("I", at)
        self.left -= count
        if self.left < 0 or at + 4 + count * size > len(self.content):
            raise _Damaged(at, f"a list of {count:,} elements does not fit the file")
        return range(at + 4, at + 4 + count * size, size)


class _Table(NamedTuple):
    """A table of a flatbuffer; its fields are numbered, and any may be left out."""

    buffer: _Buffer
    at: int

    def field(self, number: int) -> int | None:
        """Return the byte at which a field lies; None if it is left out."""
        vtable = self.at - self.buffer.number("i", self.at)
        if 4 + 2 * number + 2 > self.buffer.number("H", vtable):
            return None
        offset = self.buffer.number("H", vtable + 4 + 2 * number)
        return self.at + offset if offset else None

    def number(self, number: int, code: str) -> int:
        at = self.field(number)
        return 0 if at is None else self.buffer.number(code, at)

    def numbers(self, number: int) -> list[int] | None:
        """Return a list of 32-bit numbers."""
        at = self.field(number)
        if at is None:
            return None
        return [self.buffer.number("i", each) for each in self.buffer.vector(self.buffer.follow(at), 4)]

    def table(self, number: int) -> _Table | None:
        at = self.field(number)
        return None if at is None else _Table(self.buffer, self.buffer.follow(at))

    def tables(self, number: int) -> list[_Table]:
        at = self.field(number)
        if at is None:
            return []
        places = self.buffer.vector(self.buffer.follow(at), 4)
        return [_Table(self.buffer, self.buffer.follow(each)) for each in places]

    def bytes(self, number: int, most: int) -> bytes:
        """Return a string or a list of bytes; nothing if it is longer than `most`."""
        at = self.field(number)
        if at is None:
            return b""
        start = self.buffer.follow(at)
        count = self.buffer.number("I", start)
        return self.buffer.content[start + 4 : start + 4 + count] if count <= most else b""


def read_tflite(path: Path) -> TensorGraph:
    """Return the graph; CannotRead names the byte."""
    content = read_content(path)
    if content[4:8] != b"TFL3":
        raise CannotRead(path, "byte 4", "this is no TFLite model: TFL3 is not there")
    try:
        return _read_model(_Buffer(content))
    except _Damaged as damaged:
        raise CannotRead(path, f"byte {damaged.at}", f"the model is damaged: {damaged}") from None


def _read_model(buffer: _Buffer) -> TensorGraph:
    model = _Table(buffer, buffer.follow(0))
    codes = [max(each.number(0, "b"), each.number(3, "i")) for each in model.tables(1)]
    buffers = model.tables(4)
    tensors: dict[str, Tensor] = {}
    operations: list[Operation] = []
    inputs: dict[str, str] = {}
    for number, graph in enumerate(model.tables(2)):
        listed = graph.tables(0)
        for k, table in enumerate(listed):
            tensors[f"{number}:{k}"] = _read_tensor(table, buffers)
        names = [table.bytes(3, 1000).decode("utf-8", "replace") or str(k) for k, table in enumerate(listed)]
        for k in graph.numbers(1) or [] if number == 0 else []:
            if 0 <= k < len(names):
                inputs[names[k]] = f"{number}:{k}"
        for k, table in enumerate(graph.tables(3)):
            operations.append(_read_operator(table, f"operator {k} of subgraph {number}", number, names, codes))
    return TensorGraph(tensors, operations, inputs)


def _read_tensor(table: _Table, buffers: list[_Table]) -> Tensor:
    dims = table.numbers(7) or table.numbers(0)
    type_ = _TYPES.get(table.number(1, "b"))
    known: Lengths | None = None if dims is None else tuple(n if n >= 0 else None for n in dims)
    values = None
    index, code = table.number(2, "I"), _INTEGERS.get(type_ or "")
    if code is not None and known is not None and len(known) == 1 and 0 < index < len(buffers):
        content = buffers[index].bytes(0, _MOST_VALUES * 8)
        size = struct.calcsize(f"<{code}")
        if content and known == (len(content) // size,) and len(content) % size == 0:
            values = struct.unpack(f"<{known[0]}{code}", content)
    return Tensor(type_, known, values)


def _read_operator(table: _Table, at: str, graph: int, names: list[str], codes: list[int]) -> Operation:
    """Return an operation under the name of its output."""
    index = table.number(0, "I")
    code = codes[index] if index < len(codes) else -1
    inputs = tuple(f"{graph}:{k}" for k in table.numbers(1) or [] if k >= 0)
    made = [k for k in table.numbers(2) or [] if 0 <= k < len(names)]
    outputs = tuple(f"{graph}:{k}" for k in made)
    name = names[made[0]] if made else at
    if code != _RESHAPE:
        return Operation(name, f"builtin {code}", inputs, outputs)
    options = table.table(4)
    given = options.numbers(0) if options is not None and len(inputs) < 2 else None
    shape = None if given is None else tuple(given)
    node = ReshapeNode(name, "RESHAPE", at, None, None, None, shape, False)
    return Operation(name, "RESHAPE", inputs, outputs, node, inputs[1] if len(inputs) > 1 else None)
