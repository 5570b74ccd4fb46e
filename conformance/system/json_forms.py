"""Decode JSON that may be hostile, and check its form field by field."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from types import FunctionType
from typing import Any, NamedTuple, NoReturn

from .text import quote_json


@dataclass(frozen=True)
class OrNull:
    """A form, or null."""

    form: Any


@dataclass(frozen=True)
class MapOf:
    """An object with any keys, and with values of one form."""

    form: Any


@dataclass(frozen=True)
class Number:
    """A number between two others."""

    least: float
    most: float


Form = Any
"""A type, a range, a set of words, a pattern, a function that says yes or no, [form], {"key": form, "optional?": form},
MapOf(form), OrNull(form) or Number(least, most)."""
COUNT = range(1 << 63)
SHA256 = re.compile("[0-9a-f]{64}")


def is_time(value: Any) -> bool:
    """Ask whether a value is a time in ISO format."""
    return _is_read_by(datetime.fromisoformat, value, 40)


def is_date(value: Any) -> bool:
    """Ask whether a value is a date as `2027-06-30`."""
    return _is_read_by(date.fromisoformat, value, 10) and len(value) == 10


def _is_read_by(read: Callable[[str], Any], value: Any, longest: int) -> bool:
    if not isinstance(value, str) or not value.isascii() or len(value) > longest:
        return False
    try:
        read(value)
    except ValueError:
        return False
    return True


class WrongPart(NamedTuple):
    """The first part of a value that differs from its form."""

    where: str
    """`claims.not_claimed[0]`; empty for the whole value."""
    what: str
    """`is 3`, `lacks record`, `has an unknown key "x"`."""


def first_mismatch(value: Any, form: Form) -> WrongPart | None:
    """Compare a value with a form; None if it fits."""
    wrong = _compare(value, form)
    return wrong and wrong._replace(where=wrong.where.removeprefix("."))


def _compare(value: Any, form: Form) -> WrongPart | None:
    match form:
        case type():
            fits = type(value) is form
        case frozenset():
            fits = isinstance(value, str) and value in form
        case OrNull():
            fits = value is None or _compare(value, form.form) is None
        case dict() if isinstance(value, dict):
            return _compare_object(value, form)
        case MapOf() if isinstance(value, dict):
            return _compare_parts(value.items(), form.form)
        case list() if isinstance(value, list):
            return _compare_parts(enumerate(value), form[0])
        case re.Pattern():
            fits = isinstance(value, str) and form.fullmatch(value) is not None
        case range():
            fits = type(value) is int and value in form
        case Number():
            fits = type(value) in (int, float) and form.least <= value <= form.most
        case FunctionType():
            fits = bool(form(value))
        case _:
            fits = False
    return None if fits else WrongPart("", f"is {quote_json(value)}")


def _compare_object(value: Mapping[str, Any], form: Mapping[str, Form]) -> WrongPart | None:
    known = 0
    for key, inner in form.items():
        name = key[:-1] if key[-1] == "?" else key
        if name in value:
            known += 1
            if wrong := _compare(value[name], inner):
                return WrongPart(f".{name}{wrong.where}", wrong.what)
        elif name is key:
            lacking = ", ".join(each for each in form if each[-1] != "?" and each not in value)
            return WrongPart("", f"lacks {lacking}")
    if known < len(value):
        unknown = next(key for key in value if key not in {key.removesuffix("?") for key in form})
        return WrongPart("", f"has an unknown key {quote_json(unknown)}")
    return None


def _compare_parts(parts: Iterable[tuple[Any, Any]], form: Form) -> WrongPart | None:
    """Compare the parts of a map or a list, each with its key or number, with their form."""
    for key, inner in parts:
        if wrong := _compare(inner, form):
            place = f"[{key}]" if isinstance(key, int) else f".{key}"
            return WrongPart(place + wrong.where, wrong.what)
    return None


# ── JSON ──────────────────────────────────────────────────────────────────────────────────────────


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("a key occurs twice in it")
    return record


_decode = json.JSONDecoder(parse_constant=_refuse).decode
_decode_once = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_once).decode


def decode(text: str, twice: bool = True) -> Any:
    """Decode JSON; raise ValueError for whatever cannot be decoded, also for nesting that is too deep.

    If a key occurs twice, the last value wins, or with `twice` false the text is refused.
    """
    try:
        return _decode(text) if twice else _decode_once(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def with_tuples(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with a tuple for each list, as our values hold them."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in record.items()}
