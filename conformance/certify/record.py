"""Check the form of decoded JSON, field by field; and the forms of the records of results.jsonl."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from types import FunctionType
from typing import Any, NamedTuple, NoReturn

from ..model import VERDICTS
from ..plan.challenge import NONCE
from ..system.text import shorten


@dataclass(frozen=True)
class OneOf:
    """One of several forms."""

    forms: tuple[Any, ...]


@dataclass(frozen=True)
class Named:
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


def misfit(value: Any, form: Form, where: str = "") -> Misfit | None:
    """Compare a value with a form; None if it fits."""
    match form:
        case OneOf():
            fits = any(misfit(value, one) is None for one in form.forms)
        case Named() if isinstance(value, dict):
            return _first(misfit(inner, form.form, _inside(where, key)) for key, inner in value.items())
        case dict() if isinstance(value, dict):
            return _misfit_of_object(value, form, where)
        case list() if isinstance(value, list):
            return _first(misfit(inner, form[0], f"{where}[{at}]") for at, inner in enumerate(value))
        case re.Pattern():
            fits = isinstance(value, str) and form.fullmatch(value) is not None
        case frozenset():
            fits = isinstance(value, str) and value in form
        case range():
            fits = type(value) is int and value in form
        case Number():
            fits = type(value) in (int, float) and form.least <= value <= form.most
        case FunctionType():
            fits = form(value)
        case _:
            fits = type(value) is form
    return None if fits else Misfit(where, f"is {short(value)}")


def _misfit_of_object(value: Mapping[str, Any], form: Mapping[str, Form], where: str) -> Misfit | None:
    forms = {key.removesuffix("?"): inner for key, inner in form.items()}
    if lacking := [key for key in form if not key.endswith("?") and key not in value]:
        return Misfit(where, f"lacks {', '.join(lacking)}")
    if unknown := next((key for key in value if key not in forms), None):
        return Misfit(where, f"has an unknown key {short(unknown)}")
    return _first(misfit(inner, forms[key], _inside(where, key)) for key, inner in value.items())


def _inside(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _first(misfits: Iterable[Misfit | None]) -> Misfit | None:
    return next(filter(None, misfits), None)


def short(value: Any) -> str:
    """Write a value as JSON, cut to 100 characters."""
    return shorten(json.dumps(value), 100)


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
_VERDICTS = Named(frozenset(VERDICTS))
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
    "suite": {"version": str, "digest": str, "documents": Named(str)},
    "backend": {"name": str, "version": str, "adapter": str, "detail": Named(str), "digest": _TEXT},
    "claims": CLAIMS,
    "target": {
        "operations": _WORDS, "documents": _WORDS, "types": _WORDS, "select": _TEXT, "large": bool,
        "require": _WORDS, "shard": OneOf((SHARD, type(None))), "lf?": str,
    },
    "environment": Named(str),
    "started": is_time,
    "by?": str,
    "isolation?": frozenset(("worker", "case", "none")),
    "waivers?": [_WAIVER],
    "folders?": Named(str),
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
    "verdicts": Named(SMALL),
    "digest": str,
    "header": str,
    "notes": _WORDS,
    "canaries": Named(SMALL),
    "seconds": Number(0, 1e9),
    "milliseconds?": Named(SMALL),
    "resumed?": SMALL,
    "drawn?": {"calls": SMALL, "failures": SMALL},
    "subject?": Named(SHA256),
    "unnamed_code?": bool,
    "seal": str,
}
