"""Write out a case with `each`: one step for every combination of the values of its names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .strict_yaml import Map

SETTING = ("layout", "in_place", "bits")
"""Names in `each` that give the key of the same name its value; other names stand for lengths."""
MOST_STEPS = 4096
_RANGE = re.compile(r"([0-9]{1,9}) to ([0-9]{1,9})")
_LENGTHS = re.compile(r"(?<=\[).*(?=\])")
_NAME = re.compile(r"[a-z]{2,}")
Value = Any
"""A length, a tuple of lengths, or the value of a key."""


class Unusable(Exception):
    """A case whose steps cannot be written out, and why."""


def write_out(entry: Map) -> list[tuple[dict[str, Any], dict[str, Value]]]:
    """Return the keys that each step sets in place of the case's own, and the values from which they come."""
    steps: list[tuple[dict[str, Any], dict[str, Value]]] = []
    for values in _combinations(list(entry["each"].items()), {}):
        if len(steps) == MOST_STEPS:
            raise Unusable(f"each makes more than {MOST_STEPS:,} steps; give fewer values")
        steps.append((_step(entry, values), values))
    if not steps:
        raise Unusable("each makes no step; give every name a value")
    return steps


def format_values(values: Mapping[str, Value]) -> str:
    """Return the values of a step in words, for a message about it."""
    return ", ".join(f"{name} {_text(value)}" for name, value in values.items())


def first_name(value: Any) -> str | None:
    """Return the first name that stands for a length in src, shape or expect; None if there is none."""
    if isinstance(value, list):
        return next((item for item in value if isinstance(item, str)), None)
    lengths = _LENGTHS.search(value) if isinstance(value, str) else None
    name = _NAME.search(lengths[0]) if lengths else None
    return name[0] if name else None


def _combinations(names: Sequence[tuple[str, Any]], values: dict[str, Value]) -> Iterator[dict[str, Value]]:
    """Yield all combinations of values; the last name changes fastest."""
    if not names:
        yield dict(values)
        return
    (name, given), *rest = names
    for value in _put_entries(given, values) if isinstance(given, Mapping) else _list_values(given):
        yield from _combinations(rest, {**values, name: value})


def _list_values(given: Any) -> Iterator[Value]:
    """Yield the values of a list, or of a single range."""
    for item in given if isinstance(given, list) else [given]:
        if isinstance(item, str) and (ends := _RANGE.fullmatch(item)):
            yield from range(int(ends[1]), int(ends[2]) + 1)
        else:
            yield tuple(item) if isinstance(item, list) else item


def _put_entries(given: Mapping[str, Any], values: Mapping[str, Value]) -> Iterator[Value]:
    """Yield the lengths of `in` with `put` in the place of one of them, or of `all` together.

    With `like`, only in places where that name has the same length.
    """
    lengths, like = (_lengths(given.get(key), values) for key in ("in", "like"))
    places = [i for i, n in enumerate(lengths) if n >= 0 and ("like" not in given or like[i : i + 1] == (n,))]
    chosen = [places] if given.get("all") else [[place] for place in places]
    for group in chosen:
        if group:
            yield tuple(given["put"] if i in group else n for i, n in enumerate(lengths))


def _lengths(name: str | None, values: Mapping[str, Value]) -> tuple[int, ...]:
    if name is None:
        return ()
    value = _value(name, values)
    return value if isinstance(value, tuple) else (value,)


def _value(name: str, values: Mapping[str, Value]) -> Value:
    if name not in values or name in SETTING:
        known = ", ".join(known for known in values if known not in SETTING) or "none"
        raise Unusable(f"{name!r} is no name of lengths; each has {known}")
    return values[name]


def _step(entry: Map, values: Mapping[str, Value]) -> dict[str, Any]:
    step: dict[str, Any] = {name: value for name, value in values.items() if name in SETTING}
    for key in ("src", "expect"):
        if isinstance(entry.get(key), str):
            step[key] = _LENGTHS.sub(lambda found: _text(_entries(found[0].split(", "), values)), entry[key])
    if "shape" in entry:
        step["shape"] = _entries(entry["shape"], values)
    if "chain" in entry:
        step["chain"] = [{**link, "shape": _entries(link["shape"], values)} for link in entry["chain"]]
    return step


def _entries(items: Sequence[Any], values: Mapping[str, Value]) -> tuple[Any, ...]:
    """Return lengths or entries of shape, each name replaced by its value."""
    named = (_lengths(item, values) if _NAME.fullmatch(str(item)) else (item,) for item in items)
    return tuple(entry for entries in named for entry in entries)


def _text(value: Value) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
