"""The counts and failures of a block of calls, or of several blocks together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..evidence.json_forms import SMALL, TEXT, Form, MapOf, OneOf
from ..model import VERDICTS
from .tabulate import KINDS


class Failure(NamedTuple):
    """Calls that failed in the same way: their number, and the smallest of them."""

    calls: int
    size: tuple[Any, ...]
    """The key by which examples are compared: the smallest is kept."""
    example: Mapping[str, Any]


class Tally(NamedTuple):
    """The counts of some calls by meaning and verdict, and their failures."""

    calls: int
    meanings: Mapping[str, Mapping[str, int]]
    """By document: how many calls were legal, illegal and unspecified."""
    verdicts: Mapping[str, Mapping[str, int]]
    """By document."""
    failures: Mapping[tuple[str, str], Failure]
    """By rule and diagnosis."""


EMPTY = Tally(0, {}, {}, {})


def add(one: Tally, other: Tally) -> Tally:
    """Add two tallies; the order does not matter."""
    failures = dict(one.failures)
    for group, failure in other.failures.items():
        known = failures.get(group)
        if known is None:
            failures[group] = failure
        else:
            smaller = min(known, failure, key=lambda failure: failure.size)
            failures[group] = smaller._replace(calls=known.calls + failure.calls)
    return Tally(
        one.calls + other.calls, _sum(one.meanings, other.meanings), _sum(one.verdicts, other.verdicts), failures
    )


def _sum(one: Mapping[str, Mapping[str, int]], other: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    documents = dict.fromkeys([*one, *other])
    return {d: dict(_counter(one.get(d)) + _counter(other.get(d))) for d in documents}


def _counter(counts: Mapping[str, int] | None) -> Counter[str]:
    return Counter({name: number for name, number in (counts or {}).items() if number})


# ── as JSON ───────────────────────────────────────────────────────────────────────────────────────


def record_of(tally: Tally) -> dict[str, Any]:
    """Make the record of a tally, which does not depend on the order in which blocks were added."""
    return {
        "calls": tally.calls,
        "meanings": {document: _sorted_counts(counts) for document, counts in tally.meanings.items()},
        "verdicts": {document: _sorted_counts(counts) for document, counts in tally.verdicts.items()},
        "failures": [
            {"rule": rule, "diagnosis": diagnosis, "calls": failure.calls, "size": failure.size, **failure.example}
            for (rule, diagnosis), failure in sorted(tally.failures.items())
        ],
    }


def _sorted_counts(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: counts[name] for name in sorted(counts) if counts[name]}


def tally_of(record: Mapping[str, Any]) -> Tally:
    """Make a tally from its record."""
    failures = {
        (failure["rule"], failure["diagnosis"]): Failure(
            failure["calls"],
            tuple(tuple(part) if isinstance(part, list) else part for part in failure["size"]),
            {key: value for key, value in failure.items() if key not in ("rule", "diagnosis", "calls", "size")},
        )
        for failure in record["failures"]
    }
    return Tally(record["calls"], record["meanings"], record["verdicts"], failures)


INTEGER = range(1 - (1 << 63), 1 << 63)


def _is_size(value: Any) -> bool:
    """True for entries, sum of lengths, src, shape, special_zero and number of the way."""
    if type(value) is not list or len(value) != 6:
        return False
    entries, lengths, src, shape, flag, way = value
    rows = type(src) is type(shape) is list and all(type(n) is int and n in INTEGER for n in (*src, *shape))
    counts = all(type(n) is int and n in SMALL for n in (entries, lengths, way))
    return rows and counts and type(flag) is bool


FORM: Mapping[str, Form] = {
    "calls": SMALL,
    "meanings": MapOf({f"{kind}?": SMALL for kind in KINDS}),
    "verdicts": MapOf({f"{verdict}?": SMALL for verdict in VERDICTS}),
    "failures": [
        {
            "rule": str, "diagnosis": str, "calls": SMALL, "size": _is_size, "call": str, "detail": OneOf(TEXT),
            "verdicts": MapOf(frozenset(VERDICTS)), "case": str,
        }
    ],
}  # fmt: skip
"""The form of a record of a tally."""
