"""Decode JSON that may be hostile, and check its form field by field."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple, NoReturn

from .text import quote_json


@dataclass(frozen=True)
class OrNull:
    form: Any


@dataclass(frozen=True)
class MapOf:
    """An object with any keys, and with values of one form."""

    form: Any


@dataclass(frozen=True)
class Number:
    least: float
    most: float


Form = Any
"""A type, a range, a set of words, a pattern, a function that says yes or no, [form], {"key": form, "optional?": form},
MapOf(form), OrNull(form) or Number(least, most)."""
COUNT = range(1 << 63)
SHA256 = re.compile("[0-9a-f]{64}")


def is_time(value: Any) -> bool:
    """Ask whether a value is a time in ISO format, so far from the first and the last year that days can be added."""
    return _is_read_by(datetime.fromisoformat, value, 40) and "0001" < value[:4] < "9999"


def is_date(value: Any) -> bool:
    """Ask whether a value is a date as `2027-06-30`."""
    return _is_read_by(date.fromisoformat, value, 10) and date.fromisoformat(value).isoformat() == value


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


Check = Callable[[Any], WrongPart | None]
_CHECKS: dict[int, tuple[Form, Check]] = {}
"""The check of each form that was asked for, which is kept with it, so that no other form gets its id."""


def first_mismatch(value: Any, form: Form) -> WrongPart | None:
    """Compare a value with a form; None if it fits."""
    if id(form) not in _CHECKS:
        _CHECKS[id(form)] = form, _check_of(form)
    wrong = _CHECKS[id(form)][1](value)
    return wrong and wrong._replace(where=wrong.where.removeprefix("."))


def _check_of(form: Form) -> Check:
    """Return the function that compares a value with a form: evidence has a million values of few forms."""
    match form:
        case dict():
            return _check_of_object(form)
        case MapOf():
            return _check_of_parts(form.form, dict, dict.items)
        case list():
            return _check_of_parts(form[0], list, enumerate)
        case type():
            return lambda value: None if type(value) is form else _reject(value)
        case frozenset():
            return lambda value: None if isinstance(value, str) and value in form else _reject(value)
        case OrNull():
            check = _check_of(form.form)
            return lambda value: None if value is None or not check(value) else _reject(value)
        case re.Pattern():
            return lambda value: None if isinstance(value, str) and form.fullmatch(value) else _reject(value)
        case range():
            return lambda value: None if type(value) is int and value in form else _reject(value)
        case Number(least, most):
            return lambda value: None if type(value) in (int, float) and least <= value <= most else _reject(value)
    return lambda value: None if form(value) else _reject(value)


def _reject(value: Any) -> WrongPart:
    return WrongPart("", f"is {quote_json(value)}")


def _check_of_object(form: Mapping[str, Form]) -> Check:
    parts = [(key.removesuffix("?"), key[-1] == "?", _check_of(inner)) for key, inner in form.items()]

    def check(value: Any) -> WrongPart | None:
        if not isinstance(value, dict):
            return _reject(value)
        known = 0
        for name, optional, check_part in parts:
            if name in value:
                known += 1
                if wrong := check_part(value[name]):
                    return WrongPart(f".{name}{wrong.where}", wrong.what)
            elif not optional:
                lacking = ", ".join(name for name, optional, _ in parts if not optional and name not in value)
                return WrongPart("", f"lacks {lacking}")
        if known < len(value):
            unknown = next(key for key in value if key not in {name for name, *_ in parts})
            return WrongPart("", f"has an unknown key {quote_json(unknown)}")
        return None

    return check


def _check_of_parts(form: Form, kind: type, items: Callable[[Any], Iterable[tuple[Any, Any]]]) -> Check:
    """Return the check of a map or a list; all parts, each with its key or number, have one form."""
    check_part = _check_of(form)

    def check(value: Any) -> WrongPart | None:
        if not isinstance(value, kind):
            return _reject(value)
        for key, inner in items(value):
            if wrong := check_part(inner):
                place = f"[{key}]" if isinstance(key, int) else f".{key}"
                return WrongPart(place + wrong.where, wrong.what)
        return None

    return check


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


class KeyTwice(ValueError):
    """A key that occurs twice in an object."""

    def __init__(self, key: str) -> None:
        self.key = key
        super().__init__("a key occurs twice in it")


def refuse_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON as a dict; KeyTwice if a value would be dropped silently."""
    record = dict(pairs)
    if len(record) < len(pairs):
        numbers = Counter(key for key, _ in pairs)
        raise KeyTwice(next(key for key in numbers if numbers[key] > 1))
    return record


_decode = json.JSONDecoder(parse_constant=_refuse).decode
_decode_once = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=refuse_twice).decode


def decode(text: str, duplicate_keys: bool = True) -> Any:
    """Decode JSON; raise ValueError for whatever cannot be decoded, also for nesting that is too deep.

    If a key occurs twice, the last value wins, or without `duplicate_keys` the text is refused.
    """
    try:
        return _decode(text) if duplicate_keys else _decode_once(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def with_tuples(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return a record with a tuple for each list, as our values hold them."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in record.items()}
