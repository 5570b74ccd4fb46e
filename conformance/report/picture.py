"""A call as a picture: the lengths of src, the rule behind each entry of shape, what is due and what came."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from ..meaning.chains import fill_unknown
from ..meaning.contract import Contract
from ..model import Call, Meaning, Outcome, Step
from ..plan.memory import volume_of
from ..system.text import format_dims

Dims = tuple[int | None, ...]
BoxKind = Literal["length", "copied", "inferred", "literal", "illegal", "differs", "words"]
MAX_BOXES = 9
"""If a line has more, the first ones and the last are drawn."""
_HIGH, _GAP, _STEP, _LEFT = 22, 6, 56, 66
_WORDS: Mapping[BoxKind, str] = {
    "copied": "copied",
    "inferred": "inferred",
    "literal": "literal",
    "illegal": "no length",
    "differs": "✗ differs",
}
_OUTCOMES: Mapping[str, str] = {"rejected": "a rejection", "none": "not called"}


class Box(NamedTuple):
    """A length or an entry, its kind, and the index of the box above that it is copied from."""

    text: str
    kind: BoxKind
    source: int | None = None


Line = tuple[str, tuple[Box, ...]]
"""A name and its boxes."""


class PlacedBox(NamedTuple):
    """A box with its place; `above` is the middle of the box that it is copied from."""

    text: str
    kind: BoxKind
    word: str
    x: int
    width: int
    above: float | None

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


class Picture(NamedTuple):
    """A picture ready to be drawn, with the same in words for those who do not see it."""

    label: str
    lines: tuple[tuple[str, int, tuple[PlacedBox, ...]], ...]
    """The name of a line, its top, and its boxes."""

    @property
    def width(self) -> int:
        return max([_LEFT + 90, *(box.x + box.width for _, _, boxes in self.lines for box in boxes)]) + 4

    @property
    def height(self) -> int:
        return _STEP * (len(self.lines) - 1) + _HIGH + 16


def draw_call(step: Step, contract: Contract, meaning: Meaning, outcome: Outcome) -> Picture:
    """Draw the call of a step as the contract of a document reads it."""
    lines: list[Line] = [("src", _draw_lengths(step.src))]
    label = [f"src {format_dims(step.src)}"]
    dims: Dims = step.src
    for number, (shape, zero) in enumerate(zip(step.shapes, step.special_zero, strict=True), 1):
        entries, result = _read_shape(contract, dims, shape, zero, volume_of(step.src))
        name = f"shape {number}" if len(step.shapes) > 1 else "shape"
        lines.append((name, entries))
        label.append(f"{name} {format_dims(shape)}{_describe(entries, result)}")
        dims = step.src if step.shared_src else result
        if number < len(step.shapes):
            lines.append(("src" if step.shared_src else "between", _draw_lengths(dims)))
    if outcome.kind == "tensor" and outcome.dims == meaning.dst:
        last = [("dst", _draw_want(meaning))]
    else:
        last = [("want", _draw_want(meaning)), ("got", _draw_outcome(outcome, meaning))]
    label += [f"{name} {', '.join(box.text for box in boxes) or 'no dims'}" for name, boxes in last]
    return Picture("; ".join(label), tuple(_place_lines([*lines, *last])))


def draw_reading(call: Call, contract: Contract, meaning: Meaning) -> Picture:
    """Draw how the contract of a document reads a call that nobody made."""
    entries, lengths = _read_shape(contract, call.src, call.shape, call.special_zero, volume_of(call.src))
    dst = (Box("illegal", "words"),) if meaning.kind == "illegal" else _draw_want(meaning)
    label = (
        f"src {format_dims(call.src)}; shape {format_dims(call.shape)}{_describe(entries, lengths)}; "
        f"dst {', '.join(box.text for box in dst) or 'no dims'}"
    )
    lines = (("src", _draw_lengths(call.src)), ("shape", entries), ("dst", dst))
    return Picture(label, tuple(_place_lines(lines)))


def _draw_lengths(dims: Sequence[int | None]) -> tuple[Box, ...]:
    return tuple(Box("?" if length is None else str(length), "length") for length in dims)


def _read_shape(
    contract: Contract, dims: Dims, shape: tuple[int, ...], zero: bool, volume: int
) -> tuple[tuple[Box, ...], Dims]:
    """Return the entries of shape by the rule that gives each, and their lengths, as far as both are known."""
    known = None not in dims
    src = fill_unknown(dims, volume)
    solved = contract.meaning(src, shape, zero).dst if known else None
    boxes: list[Box] = []
    lengths: list[int | None] = []
    for k, (entry, given) in enumerate(zip(shape, contract.entries(src, shape, zero), strict=True)):
        kind: BoxKind = "illegal"
        source = length = None
        if given.copied_from is not None:
            kind, source = "copied", given.copied_from if given.copied_from < len(dims) else None
            length = None if source is None else dims[source]
        elif given.length is not None:
            kind, length = "literal", given.length
        elif given.rule is not None:
            kind, length = "inferred", solved[k] if solved else None
        boxes.append(Box(str(entry), kind, source))
        lengths.append(length)
    return tuple(boxes), tuple(lengths)


def _describe(entries: Sequence[Box], lengths: Dims) -> str:
    parts = [
        f"entry {k} is {box.text}, {_WORDS[box.kind]}{'' if length is None else f': {length}'}"
        for k, (box, length) in enumerate(zip(entries[:MAX_BOXES], lengths, strict=False))
        if box.kind in ("copied", "inferred", "illegal")
    ]
    return f" ({'; '.join(parts)})" if parts else ""


def _draw_want(meaning: Meaning) -> tuple[Box, ...]:
    if meaning.kind == "illegal":
        return (Box("a rejection", "words"),)
    if meaning.dst is None:
        return (Box("unspecified", "words"),)
    return _draw_lengths(meaning.dst)


def _draw_outcome(outcome: Outcome, meaning: Meaning) -> tuple[Box, ...]:
    if outcome.kind != "tensor":
        return (Box(_OUTCOMES.get(outcome.kind, outcome.kind), "words"),)
    dims = list(outcome.dims or ())
    want = meaning.dst
    if want is None:
        return _draw_lengths(dims)
    right = [len(want) == len(dims) and want[k] in (None, length) for k, length in enumerate(dims)]
    return tuple(Box(str(length), "length" if same else "differs") for length, same in zip(dims, right, strict=True))


def _place_lines(lines: Sequence[Line]) -> Iterator[tuple[str, int, tuple[PlacedBox, ...]]]:
    above: tuple[PlacedBox, ...] = ()
    count = 0
    for number, (name, boxes) in enumerate(lines):
        above, count = tuple(_place_boxes(_leave_out_middle(boxes), above, count)), len(boxes)
        yield name, 2 + _STEP * number, above


def _leave_out_middle(boxes: tuple[Box, ...]) -> tuple[Box, ...]:
    if len(boxes) <= MAX_BOXES:
        return boxes
    middle = Box(f"… {len(boxes) - MAX_BOXES + 1} more", "words")
    return (*boxes[: MAX_BOXES - 2], middle, boxes[-1]._replace(source=None))


def _place_boxes(boxes: Sequence[Box], above: Sequence[PlacedBox], count: int) -> Iterator[PlacedBox]:
    """Place the boxes of a line. `count`: the boxes that the line above has, also those that are not drawn."""
    x = _LEFT
    for box in boxes:
        width, source = max(54, 8 * len(box.text) + 14), None
        if box.source is not None and box.source < count:
            in_middle = count > MAX_BOXES and MAX_BOXES - 2 <= box.source < count - 1
            source = above[MAX_BOXES - 2 if in_middle else min(box.source, MAX_BOXES - 1)].middle
        yield PlacedBox(box.text, box.kind, _WORDS.get(box.kind, ""), x, width, source)
        x += width + _GAP
