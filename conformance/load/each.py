"""Write out a case with `each`: one step for every combination of the values of its names."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .strict_yaml import YamlMap

SETTING = ("layout", "in_place", "bits")
"""Names in `each` that give the key of the same name its value; all others are names of lengths."""
MAX_GENERATED_STEPS = 4096
_RANGE = re.compile(r"([0-9]{1,9}) to ([0-9]{1,9})")
_LENGTHS = re.compile(r"(?<=\[).*(?=\])")
_NAME = re.compile(r"[a-z]{2,}")
_TENSOR = re.compile(r"([A-Za-z][A-Za-z0-9]*)\[((?:[a-z]{2,}|[0-9]{1,39})(?:, *(?:[a-z]{2,}|[0-9]{1,39}))*|)\]")
Value = Any
"""A length, a tuple of lengths, or the value of a key."""
_Items = tuple[int | str, ...]
"""Lengths, or entries of shape; text is the name of a value."""


class UnusableSteps(Exception):
    """The steps of a case cannot be written out; the message says why."""


def write_out(entry: YamlMap) -> list[tuple[dict[str, Any], dict[str, Value]]]:
    """Return the keys of the case that each step replaces, and the values from which they come."""
    steps: list[tuple[dict[str, Any], dict[str, Value]]] = []
    template = _Template.of(entry)
    for values in _list_combinations(list(entry["each"].items()), {}):
        if len(steps) == MAX_GENERATED_STEPS:
            raise UnusableSteps(f"each makes more than {MAX_GENERATED_STEPS:,} steps; give fewer values")
        steps.append((template.fill(values), values))
    if not steps:
        raise UnusableSteps("each makes no step; give every name a value")
    return steps


def format_values(values: Mapping[str, Value]) -> str:
    """Return the values of a step in words, for a message about it."""
    return ", ".join(f"{name} {_write_text(value)}" for name, value in values.items())


def find_first_name(value: Any) -> str | None:
    """Return the first name of a length in src, shape or expect; None if there is none."""
    if isinstance(value, list):
        return next((item for item in value if isinstance(item, str)), None)
    lengths = _LENGTHS.search(value) if isinstance(value, str) else None
    name = _NAME.search(lengths[0]) if lengths else None
    return name[0] if name else None


def _list_combinations(names: Sequence[tuple[str, Any]], values: dict[str, Value]) -> Iterator[dict[str, Value]]:
    """Yield all combinations of values; the last name changes fastest."""
    if not names:
        yield dict(values)
        return
    (name, given), *rest = names
    for value in _put_entries(given, values) if isinstance(given, Mapping) else _list_values(given):
        yield from _list_combinations(rest, {**values, name: value})


def _list_values(given: Any) -> Iterator[Value]:
    """Yield the values of a list, or of a single range."""
    for item in given if isinstance(given, list) else [given]:
        if isinstance(item, str) and (ends := _RANGE.fullmatch(item)):
            if int(ends[1]) > int(ends[2]):
                raise UnusableSteps(f"the range {item} ends before it begins; write the smaller number first")
            yield from range(int(ends[1]), int(ends[2]) + 1)
        else:
            yield tuple(item) if isinstance(item, list) else item


def _put_entries(given: Mapping[str, Any], values: Mapping[str, Value]) -> Iterator[Value]:
    """Yield the lengths of `in`, with one of them replaced by `put`; with `all`, all of them together.

    With `like`, only in places where that name has the same length.
    """
    lengths, like = (_find_lengths(given.get(key), values) for key in ("in", "like"))
    places = [i for i, n in enumerate(lengths) if n >= 0 and ("like" not in given or like[i : i + 1] == (n,))]
    chosen = [places] if given.get("all") else [[place] for place in places]
    for group in chosen:
        if group:
            yield tuple(given["put"] if i in group else n for i, n in enumerate(lengths))


def _find_lengths(name: str | None, values: Mapping[str, Value]) -> tuple[int, ...]:
    if name is None:
        return ()
    _require_name(name, [known for known in values if known not in SETTING])
    value = values[name]
    return value if isinstance(value, tuple) else (value,)


def _require_name(name: str, known: Sequence[str]) -> None:
    if name not in known:
        raise UnusableSteps(f"{name!r} is no name of lengths; each has {', '.join(known) or 'none'}")


class _Template(NamedTuple):
    """The keys of a case that hold names of lengths, parsed once for all steps."""

    tensors: Mapping[str, tuple[str, _Items]]
    shape: _Items | None
    chain: Sequence[tuple[Mapping[str, Any], _Items]]

    @classmethod
    def of(cls, entry: YamlMap) -> _Template:
        """Parse the keys of a case; UnusableSteps if a name is not in its `each`."""
        known = [name for name in entry["each"] if name not in SETTING]
        texts = {key: _TENSOR.fullmatch(entry[key]) for key in ("src", "expect") if isinstance(entry.get(key), str)}
        template = cls(
            {key: (found[1], _parse_items(found[2].split(","), known)) for key, found in texts.items() if found},
            _parse_items(entry["shape"], known) if "shape" in entry else None,
            [(link, _parse_items(link["shape"], known)) for link in entry.get("chain", ())],
        )
        items = [*(items for _, items in (*template.tensors.values(), *template.chain)), template.shape or ()]
        puts = [given for given in entry["each"].values() if isinstance(given, Mapping)]
        used = {*itertools.chain.from_iterable(items), *(put.get(key) for put in puts for key in ("in", "like"))}
        if unused := [name for name in known if name not in used]:
            raise UnusableSteps(f"no length is {unused[0]!r}, which would only repeat calls; use the name or drop it")
        return template

    def fill(self, values: Mapping[str, Value]) -> dict[str, Any]:
        """Return the keys of a step; a tensor is its type and dims, or text if it cannot have such dims."""
        step: dict[str, Any] = {name: values[name] for name in SETTING if name in values}
        for key, (type_, items) in self.tensors.items():
            dims = _replace_names(items, values)
            step[key] = (type_, dims) if min(dims, default=0) >= 0 else f"{type_}[{_write_text(dims)}]"
        if self.shape is not None:
            step["shape"] = _replace_names(self.shape, values)
        if self.chain:
            step["chain"] = [{**link, "shape": _replace_names(items, values)} for link, items in self.chain]
        return step


def _parse_items(items: Sequence[Any], known: Sequence[str]) -> _Items:
    """Return lengths as numbers and names as text."""
    parsed: list[int | str] = []
    for item in (str(item).strip() for item in items):
        if _NAME.fullmatch(item):
            _require_name(item, known)
            parsed.append(item)
        elif item:
            parsed.append(int(item))
    return tuple(parsed)


def _replace_names(items: _Items, values: Mapping[str, Value]) -> tuple[int, ...]:
    entries: list[int] = []
    for item in items:
        value = values[item] if isinstance(item, str) else item
        if isinstance(value, tuple):
            entries += value
        else:
            entries.append(value)
    return tuple(entries)


def _write_text(value: Value) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
