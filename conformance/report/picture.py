"""A reshape drawn: the lengths of src, the entries of shape and what becomes of each, what was due, what came."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from math import prod
from typing import Any, Literal, NamedTuple

from ..model import Meaning, Step
from .facts import lengths

Kind = Literal["length", "copied", "inferred", "literal", "illegal", "differs", "words"]
_MOST = 9
"""Boxes in a line; of more the first and the last are drawn."""
_HIGH, _GAP, _STEP, _LEFT = 22, 6, 56, 66
_WORDS: Mapping[Kind, str] = {
    "copied": "copied",
    "inferred": "inferred",
    "literal": "literal",
    "illegal": "no length",
    "differs": "✗ differs",
}


class Box(NamedTuple):
    """One length or entry, what it is, and the number of the box above that it comes from."""

    text: str
    kind: Kind
    source: int | None = None


class Line(NamedTuple):
    """A name and its boxes."""

    name: str
    boxes: tuple[Box, ...]


def picture(step: Step, meaning: Meaning, outcome: Mapping[str, Any], answer: str) -> str:
    """The call of a step as SVG, with the same in words for those who do not see it."""
    lines = [Line("src", _lengths(step.src))]
    told = [f"src {lengths(step.src)}"]
    dims: Sequence[int | None] = step.src
    many = len(step.shapes) > 1
    for number, (shape, zero) in enumerate(zip(step.shapes, step.special_zero, strict=True), 1):
        entries, result = _resolved(dims, shape, zero)
        name = f"shape {number}" if many else "shape"
        lines.append(Line(name, entries))
        told.append(f"{name} {lengths(shape)}{_said(entries, result)}")
        dims = result
        if number < len(step.shapes):
            lines.append(Line("between", _lengths(result)))
    due = _due(meaning)
    lines += [due, _came(outcome, answer, meaning)]
    told += [f"{line.name} {', '.join(box.text for box in line.boxes) or 'no dims'}" for line in lines[-2:]]
    return _svg([_shortened(line) for line in lines], "; ".join(told))


# ── what becomes of each entry ────────────────────────────────────────────────────────────────────


def _lengths(dims: Sequence[int | None]) -> tuple[Box, ...]:
    return tuple(Box("?" if length is None else str(length), "length", k) for k, length in enumerate(dims))


def _resolved(
    dims: Sequence[int | None], shape: Sequence[int], zero: bool
) -> tuple[tuple[Box, ...], tuple[int | None, ...]]:
    """The entries of shape, and the lengths that they come to, as far as that can be told."""
    boxes: list[Box] = []
    found: list[int | None] = []
    for k, entry in enumerate(shape):
        if entry == 0 and zero:
            boxes.append(Box("0", "copied", k if k < len(dims) else None))
            found.append(dims[k] if k < len(dims) else None)
        else:
            boxes.append(Box(str(entry), "inferred" if entry == -1 else "illegal" if entry < 0 else "literal"))
            found.append(entry if entry >= 0 else None)
    inferred = [k for k, entry in enumerate(shape) if entry == -1]
    rest = [length for k, length in enumerate(found) if k not in inferred]
    if len(inferred) == 1 and None not in rest and None not in dims:
        known, whole = prod(length or 0 for length in rest), prod(length or 0 for length in dims)
        found[inferred[0]] = whole // known if known and whole % known == 0 else None
    return tuple(boxes), tuple(found)


def _said(entries: Sequence[Box], result: Sequence[int | None]) -> str:
    parts = [
        f"entry {k} is {box.text}, {_WORDS[box.kind]}{'' if length is None else f': {length}'}"
        for k, (box, length) in enumerate(zip(entries[:_MOST], result, strict=False))
        if box.kind in ("copied", "inferred", "illegal")
    ]
    return f" ({'; '.join(parts)})" if parts else ""


def _due(meaning: Meaning) -> Line:
    if meaning.kind == "illegal":
        return Line("want", (Box("a refusal", "words"),))
    if meaning.dst is None:
        return Line("want", (Box("left open", "words"),))
    return Line("want", _lengths(meaning.dst))


def _came(outcome: Mapping[str, Any], answer: str, meaning: Meaning) -> Line:
    if outcome.get("kind") != "tensor":
        words = {"rejected": "a refusal", "none": "not called"}.get(str(outcome.get("kind")), str(outcome.get("kind")))
        return Line("got", (Box(words, "words"),))
    dims = list(outcome.get("dims") or ())
    due = meaning.dst if meaning.kind != "illegal" else None
    boxes = []
    for k, length in enumerate(dims):
        right = due is None or (k < len(due) and len(due) == len(dims) and due[k] in (None, length))
        boxes.append(Box(str(length), "length" if right else "differs", k))
    return Line("got", tuple(boxes))


def _shortened(line: Line) -> Line:
    """A line of many boxes with most of them left out."""
    if len(line.boxes) <= _MOST:
        return line
    left = len(line.boxes) - _MOST + 1
    middle = Box(f"… {left} more", "words")
    kept = (*line.boxes[: _MOST - 2], middle, line.boxes[-1])
    return Line(line.name, tuple(b._replace(source=None) if k >= _MOST - 2 else b for k, b in enumerate(kept)))


# ── drawing ───────────────────────────────────────────────────────────────────────────────────────


def _svg(lines: Sequence[Line], told: str) -> str:
    placed = [list(_placed(line)) for line in lines]
    width = max([_LEFT + 90, *(x + w for boxes in placed for x, w in boxes)]) + 4
    height = _STEP * (len(lines) - 1) + _HIGH + 16
    parts = [
        f'<svg class="pic" role="img" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'aria-label="{escape(told)}">'
    ]
    for number, line in enumerate(lines):
        top = 2 + _STEP * number
        parts.append(f'<text x="0" y="{top + 15}" class="name">{line.name}</text>')
        if not line.boxes:
            parts.append(f'<text x="{_LEFT}" y="{top + 15}" class="name">rank 0</text>')
        for box, (x, w) in zip(line.boxes, placed[number], strict=True):
            parts.append(f'<rect class="{box.kind}" x="{x}" y="{top}" width="{w}" height="{_HIGH}" rx="4"/>')
            parts.append(f'<text x="{x + w / 2:g}" y="{top + 15}">{escape(box.text)}</text>')
            if box.kind in _WORDS:
                parts.append(f'<text x="{x + w / 2:g}" y="{top + _HIGH + 11}" class="what">{_WORDS[box.kind]}</text>')
            if box.kind == "copied" and number and box.source is not None and box.source < len(placed[number - 1]):
                above, wide = placed[number - 1][box.source]
                parts.append(f'<path d="M{above + wide / 2:g} {top - _STEP + _HIGH}L{x + w / 2:g} {top}"/>')
    return "".join(parts) + "</svg>"


def _placed(line: Line) -> Iterator[tuple[int, int]]:
    """Where each box begins, and how wide it is."""
    x = _LEFT
    for box in line.boxes:
        wide = max(54, 8 * len(box.text) + 14)
        yield x, wide
        x += wide + _GAP
