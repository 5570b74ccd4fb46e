"""Lengths of inputs: read `x=1..8,3,320,320`, list what to try, fill in names, and write which lengths are meant."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..meaning.partial import Length, Lengths
from .nodes import Bound

MOST_TRIES = 1000
_MOST_SHOWN = 64
_ENTRY = re.compile(r"([0-9]{1,18})(?:\.\.([0-9]{1,18}))?|\?")


class BadLengths(Exception):
    """An option --input or the lengths in it cannot be used; the message says why and what to write."""


class InputLengths(NamedTuple):
    """The lengths to try for one input, one range for each dimension; None leaves it as the file has it."""

    name: str
    lengths: tuple[range | None, ...]


def read_input(text: str) -> InputLengths:
    """Read `x=1..8,3,320,320`; BadLengths if it has another form."""
    name, equals, body = text.rpartition("=")
    if not equals or not name:
        raise BadLengths(f"--input {text[:60]!r} names no input; write for example --input x=1..8,3,320,320")
    ranges: list[range | None] = []
    for entry in body.strip("[]() ").split(",") if body.strip("[]() ") else []:
        match = _ENTRY.fullmatch(entry.strip())
        if match is None:
            raise BadLengths(f"--input {name}: {entry[:40]!r} is neither a length, a range such as 1..8, nor ?")
        if match[1] is None:
            ranges.append(None)
            continue
        low, high = int(match[1]), int(match[2] or match[1])
        if high < low:
            raise BadLengths(f"--input {name}: the range {entry.strip()} is empty; write the lower length first")
        ranges.append(range(low, high + 1))
    return InputLengths(name, tuple(ranges))


def list_tries(inputs: Sequence[InputLengths]) -> list[Bound]:
    """Return every combination of the lengths of all inputs; BadLengths if there are more than MOST_TRIES."""
    ranges = [each or range(1) for one in inputs for each in one.lengths]
    count = 1
    for each in ranges:
        count *= len(each)
    if count > MOST_TRIES:
        raise BadLengths(f"--input asks for {count:,} combinations of lengths; at most {MOST_TRIES:,} are tried")
    tries: list[Bound] = []
    for lengths in itertools.product(*ranges):
        rest = iter(lengths)
        bound: dict[str, tuple[int | None, ...]] = {}
        for one in inputs:
            bound[one.name] = tuple(value if each else None for each, value in zip(one.lengths, rest, strict=False))
        tries.append(bound)
    return tries


def check_inputs(inputs: Sequence[InputLengths], known: Mapping[str, Lengths | None]) -> None:
    """Compare --input with the inputs of a file; BadLengths if a name or a rank is wrong."""
    for one in inputs:
        if one.name not in known:
            names = ", ".join(list(known)[:20]) or "none"
            raise BadLengths(f"--input {one.name}: there is no such input; the inputs are {names}")
        dims = known[one.name]
        if dims is not None and len(dims) != len(one.lengths):
            raise BadLengths(
                f"--input {one.name} has {len(one.lengths)} lengths, the file declares {len(dims)}: {format_dims(dims)}"
            )


def describe_tries(tries: Sequence[Bound], among: Sequence[Bound]) -> str:
    """Say which of the lengths tried are meant: `x[0] = 2..8`, or `all but x[0] = 1`."""
    meant = {tuple(each.items()) for each in tries}
    rest = [each for each in among if tuple(each.items()) not in meant]
    if (block := _describe_block(tries, among)) is not None:
        return block
    if (block := _describe_block(rest, among)) is not None:
        return f"all but {block}"
    return f"{len(tries):,} of {len(among):,} combinations, the first {_describe_block(tries[:1], among)}"


def _describe_block(tries: Sequence[Bound], among: Sequence[Bound]) -> str | None:
    """Write lengths that vary independently; None if they depend on one another."""
    varying = [at for at in _places(among) if len({_at(each, at) for each in among}) > 1]
    chosen = [tuple(_at(each, at) for at in varying) for each in tries]
    sets = [sorted({values[k] for values in chosen}) for k in range(len(varying))]
    product = 1
    for values in sets:
        product *= len(values)
    if product != len(chosen):
        return None
    return ", ".join(f"{name}[{k}] = {_ranges(v)}" for (name, k), v in zip(varying, sets, strict=True))


def _places(tries: Sequence[Bound]) -> list[tuple[str, int]]:
    return [(name, k) for name, lengths in tries[0].items() for k in range(len(lengths))] if tries else []


def _at(bound: Bound, place: tuple[str, int]) -> int:
    return bound[place[0]][place[1]] or 0


def _ranges(values: Sequence[int]) -> str:
    """Write `1, 4..6`."""
    parts: list[list[int]] = []
    for value in values:
        if parts and value == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], value]
        else:
            parts.append([value])
    return ", ".join("..".join(map(str, part)) for part in parts)


def format_dims(dims: Lengths | None) -> str:
    """Write `[batch, 3, ?]`; `?` if not even the rank is known."""
    if dims is None:
        return "?"
    shown = ["?" if n is None else str(n) for n in dims[:_MOST_SHOWN]]
    rest = [f"… {len(dims) - _MOST_SHOWN:,} more"] if len(dims) > _MOST_SHOWN else []
    return f"[{', '.join([*shown, *rest])}]"


# ── names of lengths ──────────────────────────────────────────────────────────────────────────────


def symbols_of(inputs: Mapping[str, Lengths | None], bound: Bound) -> dict[str, int]:
    """Return the values that bound lengths give to names such as `batch`; BadLengths if two differ."""
    symbols: dict[str, int] = {}
    for name, lengths in bound.items():
        for k, (length, value) in enumerate(zip(inputs[name] or (), lengths, strict=False)):
            if isinstance(length, str) and value is not None and symbols.setdefault(length, value) != value:
                raise BadLengths(f"--input {name}[{k}] is {value}, but {length!r} is {symbols[length]} elsewhere")
    return symbols


def bind_symbols(dims: Lengths | None, symbols: Mapping[str, int]) -> Lengths | None:
    """Return dims with names and sums, products and quotients of names replaced by their values."""
    if dims is None or not symbols:
        return dims
    return tuple(_value(length, symbols) if isinstance(length, str) else length for length in dims)


def _value(text: str, symbols: Mapping[str, int]) -> Length:
    if text in symbols:
        return symbols[text]
    try:
        value = _compute(ast.parse(text[:200], mode="eval").body, symbols)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    return text if value is None or value >= 1 << 63 else value


def _compute(node: ast.expr, symbols: Mapping[str, int]) -> int | None:
    match node:
        case ast.Constant(value=int() as number) if type(number) is int:
            return number
        case ast.Name(id=name):
            return symbols.get(name)
        case ast.BinOp(left=left, op=op, right=right):
            a, b = _compute(left, symbols), _compute(right, symbols)
            if a is None or b is None or max(abs(a), abs(b)) >= 1 << 63:
                return None
            if isinstance(op, ast.Add | ast.Sub | ast.Mult):
                return a + b if isinstance(op, ast.Add) else a - b if isinstance(op, ast.Sub) else a * b
            return a // b if isinstance(op, ast.FloorDiv) and b else None
    return None


def known_lengths(dims: Iterable[Length]) -> tuple[int | None, ...]:
    """Return dims without names."""
    return tuple(n if isinstance(n, int) else None for n in dims)
