"""Whether a backend that gives rule ids as its reasons refuses a call for a reason that holds: the reference must."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .model import Adapter, Outcome, Problem
from .plan import Row, Task
from .run import called


def wrong_reasons(rows: Iterable[Row], adapter: Adapter) -> Iterator[Problem]:
    """Refusals whose message is no rule that the call breaks, or that is silent on it, in any document it runs for."""
    for row in rows:
        for number, (task, outcome) in enumerate(zip(row.tasks, called(row, adapter), strict=True), 1):
            if not reason_holds(task, outcome):
                at = f"step {number}: " if len(row.tasks) > 1 else ""
                rules = ", ".join(sorted(reasons(task))) or "none"
                what = f"{at}the reference refuses with {outcome.message!r}; rules that can be named are {rules}"
                yield Problem(row.case.place, f"{row.id}: {what}")


def reason_holds(task: Task, outcome: Outcome) -> bool:
    """Whether a refusal, if it is one, names a rule that speaks against the call."""
    return outcome.kind != "rejected" or outcome.message in reasons(task)


def reasons(task: Task) -> set[str]:
    """The rules that a call breaks and those that leave it open, in every document."""
    return {rule for judged in task.meanings for rule in judged.meaning.rules}
