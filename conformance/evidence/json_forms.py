"""Check the form of decoded JSON, field by field; and the forms of the records of results.jsonl."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from itertools import repeat
from types import FunctionType
from typing import Any, NamedTuple, NoReturn

from ..draw.challenge import NONCE
from ..model import VERDICTS
from ..system.text import quote_json


@dataclass(frozen=True)
class OneOf:
    """One of several forms."""

    forms: tuple[Any, ...]


@dataclass(frozen=True)
class MapOf:
    """An object whose keys are free and whose values all have one form."""

    form: Any


@dataclass(frozen=True)
class Number:
    """A number between two others."""

    least: float
    most: float


SMALL = range(1 << 63)
"""Numbers that count something."""
TEXT = (str, type(None))
Form = Any
"""A type, a range, a set of words, a pattern, a function that says yes or no, [form], {"key": form, "optional?": form},
Named(form), OneOf((…)) or Number(least, most)."""


class Misfit(NamedTuple):
    """The first place where a value differs from a form."""

    where: str
    """`claims.leaves_out[0]`; empty for the whole value."""
    what: str
    """`is 3`, `lacks record`, `has an unknown key "x"`."""


def misfit(value: Any, form: Form) -> Misfit | None:
    """Compare a value with a form; None if it fits."""
    wrong = _compare(value, form)
    return wrong and wrong._replace(where=wrong.where.removeprefix("."))


def _compare(value: Any, form: Form) -> Misfit | None:
    if isinstance(form, type):
        fits = type(value) is form
    elif isinstance(form, frozenset):
        fits = isinstance(value, str) and value in form
    elif isinstance(form, OneOf):
        fits = any(_compare(value, one) is None for one in form.forms)
    elif isinstance(form, dict) and isinstance(value, dict):
        return _compare_object(value, form)
    elif isinstance(form, MapOf) and isinstance(value, dict):
        return _compare_parts(value.items(), repeat(form.form))
    elif isinstance(form, list) and isinstance(value, list):
        return _compare_parts(enumerate(value), repeat(form[0]))
    else:
        fits = _fits(value, form)
    return None if fits else Misfit("", f"is {quote_json(value)}")


def _fits(value: Any, form: Form) -> bool:
    """True if a value fits a form that is not for parts of a value."""
    match form:
        case re.Pattern():
            return isinstance(value, str) and form.fullmatch(value) is not None
        case range():
            return type(value) is int and value in form
        case Number():
            return type(value) in (int, float) and form.least <= value <= form.most
        case FunctionType():
            return bool(form(value))
    return False


def _compare_object(value: Mapping[str, Any], form: Mapping[str, Form]) -> Misfit | None:
    forms = {key.removesuffix("?"): inner for key, inner in form.items()}
    if lacking := [key for key in form if key not in value and not key.endswith("?")]:
        return Misfit("", f"lacks {', '.join(lacking)}")
    if unknown := next((key for key in value if key not in forms), None):
        return Misfit("", f"has an unknown key {quote_json(unknown)}")
    return _compare_parts(value.items(), map(forms.__getitem__, value))


def _compare_parts(parts: Iterable[tuple[Any, Any]], forms: Iterable[Form]) -> Misfit | None:
    """Compare the parts of an object or a list, each with its key or number, with their forms."""
    for (key, inner), form in zip(parts, forms, strict=False):
        if wrong := _compare(inner, form):
            place = f"[{key}]" if isinstance(key, int) else f".{key}"
            return Misfit(place + wrong.where, wrong.what)
    return None


# ── JSON ──────────────────────────────────────────────────────────────────────────────────────────


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) < len(pairs):
        raise ValueError("a key stands twice in it")
    return record


_decode = json.JSONDecoder(parse_constant=_refuse).decode
_decode_once = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_once).decode


def decode(text: str, twice: bool = True) -> Any:
    """Decode JSON; raise ValueError for whatever cannot be decoded, also for nesting that is too deep.

    Of a key that stands twice the last value is taken, or with `twice` false none.
    """
    try:
        return _decode(text) if twice else _decode_once(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


# ── the records of results.jsonl ──────────────────────────────────────────────────────────────────

_KIND = frozenset(("tensor", "rejected", "unsupported", "crash", "timeout", "error", "none"))
_VERDICTS = MapOf(frozenset(VERDICTS))
_WORDS = [str]
_TEXT = OneOf(TEXT)
CONTENT = re.compile("[0-9a-f]{16}")
"""The first 8 bytes of the SHA-256 of an answer's elements in row-major order."""
SHA256 = re.compile("[0-9a-f]{64}")
_BITS = re.compile("[0-9a-f]{2,16}")
SHARD = re.compile(r"[1-9][0-9]{0,4}/[1-9][0-9]{0,4}")


def is_time(value: Any) -> bool:
    """True for a time in ISO format."""
    return isinstance(value, str) and value.isascii() and len(value) <= 40 and _read(datetime.fromisoformat, value)


def _is_date(value: Any) -> bool:
    return isinstance(value, str) and value.isascii() and len(value) == 10 and _read(date.fromisoformat, value)


def _read(read: Callable[[str], Any], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


_OUTCOME: Form = {
    "kind": _KIND, "type?": str, "dims?": [int], "stage?": str, "message?": str, "faults?": _WORDS, "shares?": bool,
}  # fmt: skip
_WAIVER: Form = {
    "number": SMALL, "place": str, "reason": str, "link": str, "owner": str, "expires": _is_date,
    "case?": str, "rule?": str, "row?": str, "breaks?": str, "backend?": str, "versions?": str,
}  # fmt: skip
CLAIMS: Form = {"operations": _WORDS, "leaves_out": _WORDS, "answers_special_zero": bool}
HEADER: Form = {
    "record": frozenset(("header",)),
    "format": str,
    "suite": {"version": str, "digest": str, "documents": MapOf(str)},
    "backend": {"name": str, "version": str, "adapter": str, "detail": MapOf(str), "digest": _TEXT},
    "claims": CLAIMS,
    "target": {
        "operations": _WORDS, "documents": _WORDS, "types": _WORDS, "select": _TEXT, "large": bool,
        "require": _WORDS, "shard": OneOf((SHARD, type(None))), "lf?": str,
    },
    "environment": MapOf(str),
    "started": is_time,
    "by?": str,
    "isolation?": frozenset(("worker", "case", "none")),
    "waivers?": [_WAIVER],
    "folders?": MapOf(str),
    "limits?": {"timeout?": Number(0, 1e9), "memory?": SMALL},
    "shards?": [{"shard": SHARD, "started": is_time}],
    "drawn?": {"seed": SMALL, "calls": SMALL},
    "nonce?": NONCE,
}  # fmt: skip
ROW: Form = {
    "record": frozenset(("row",)),
    "row": str,
    "content?": [OneOf((CONTENT, type(None)))],
    "verdicts": _VERDICTS,
    "outcomes": [_OUTCOME],
    "step?": SMALL,
    "diagnosis?": str,
    "detail?": _TEXT,
    "differing?": {"number": SMALL, "places": [SMALL], "got": [_BITS]},
    "waiver?": SMALL,
    "resumed?": bool,
    "case?": str,
}
FOOTER: Form = {
    "record": frozenset(("footer",)),
    "rows": SMALL,
    "verdicts": MapOf(SMALL),
    "digest": str,
    "header": str,
    "notes": _WORDS,
    "canaries": MapOf(SMALL),
    "seconds": Number(0, 1e9),
    "milliseconds?": MapOf(SMALL),
    "resumed?": SMALL,
    "drawn?": {"calls": SMALL, "failures": SMALL},
    "subject?": MapOf(SHA256),
    "unnamed_code?": bool,
    "seal": str,
}
