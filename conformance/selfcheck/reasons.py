"""Check the reasons of the reference: the message of a rejection is the id of a rule that the call breaks."""

from __future__ import annotations

from ..model import Outcome
from ..plan.steps import RowStep


def reason_holds(task: RowStep, outcome: Outcome, unknown: frozenset[str] = frozenset()) -> bool:
    """A rejection must name a rule that speaks against the call."""
    return outcome.kind != "rejected" or outcome.message in reasons(task, unknown)


def reasons(task: RowStep, unknown: frozenset[str] = frozenset()) -> set[str]:
    """Return the rules that a call breaks, or else those that leave it unspecified, or else those of capacity.

    Unknown documents do not count.
    """
    by_kind: dict[str, set[str]] = {"illegal": set(), "unspecified": set(), "legal": set()}
    for judged in task.meanings:
        if unknown.issuperset(judged.documents):
            continue
        by_kind[judged.meaning.kind].update(judged.meaning.rules)
    return by_kind["illegal"] or by_kind["unspecified"] or by_kind["legal"]
