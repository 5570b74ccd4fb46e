"""The counts and failures of a block of calls, or of several blocks together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

from ..model import ERROR, Kind

KINDS: tuple[Kind, ...] = get_args(Kind)


class FailedCalls(NamedTuple):
    """Calls that failed in the same way: their number, and the smallest of them."""

    calls: int
    size: tuple[Any, ...]
    """The key by which examples are compared: the smallest is kept."""
    example: Mapping[str, Any]

    @property
    def is_error(self) -> bool:
        """Ask whether the adapter failed, and not the backend."""
        return ERROR in self.example["verdicts"].values()


class Tally(NamedTuple):
    """The counts of some calls by meaning and verdict, and their failures."""

    calls: int
    meanings: Mapping[str, Mapping[str, int]]
    """By document: how many calls were legal, illegal and unspecified."""
    verdicts: Mapping[str, Mapping[str, int]]
    """By document."""
    failures: Mapping[tuple[str, str], FailedCalls]
    """By rule and diagnosis."""

    def to_json(self) -> dict[str, Any]:
        """Return a record that does not depend on the order in which blocks were added."""
        return {
            "calls": self.calls,
            "meanings": {document: _sorted_counts(counts) for document, counts in self.meanings.items()},
            "verdicts": {document: _sorted_counts(counts) for document, counts in self.verdicts.items()},
            "failures": [
                {"rule": rule, "diagnosis": diagnosis, "calls": failed.calls, **failed.example}
                for (rule, diagnosis), failed in sorted(self.failures.items())
            ],
        }


def _sorted_counts(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: counts[name] for name in sorted(counts) if counts[name]}


EMPTY = Tally(0, {}, {}, {})


def add(one: Tally, other: Tally) -> Tally:
    """Add two tallies; the order does not matter."""
    failures = {**one.failures, **other.failures}
    for group in one.failures.keys() & other.failures.keys():
        both = one.failures[group], other.failures[group]
        smaller = min(both, key=lambda failure: failure.size)
        failures[group] = smaller._replace(calls=sum(failure.calls for failure in both))
    return Tally(
        one.calls + other.calls, _sum(one.meanings, other.meanings), _sum(one.verdicts, other.verdicts), failures
    )


def _sum(one: Mapping[str, Mapping[str, int]], other: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, int]]:
    documents = dict.fromkeys([*one, *other])
    return {d: dict(Counter(one.get(d, {})) + Counter(other.get(d, {}))) for d in documents}  # without counts of 0
