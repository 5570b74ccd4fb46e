"""Whether the reference refuses a call for a reason that holds: its message is a rule's id, as data."""

from __future__ import annotations

from ..model import Outcome
from ..plan.steps import RowStep


def reason_holds(task: RowStep, outcome: Outcome, unknown: frozenset[str] = frozenset()) -> bool:
    """Whether a refusal, if it is one, names a rule that speaks against the call."""
    return outcome.kind != "rejected" or outcome.message in reasons(task, unknown)


def reasons(task: RowStep, unknown: frozenset[str] = frozenset()) -> set[str]:
    """The rules that a call breaks, in any document but the unknown; where it breaks none, those that leave it open."""
    by_kind: dict[str, set[str]] = {"illegal": set(), "unspecified": set(), "legal": set()}
    for judged in task.meanings:
        if unknown.issuperset(judged.documents):
            continue
        by_kind[judged.meaning.kind].update(judged.meaning.rules)
    return by_kind["illegal"] or by_kind["unspecified"]
