"""The severity of a failing result: what it does to a user, whatever sentence it breaks."""

from __future__ import annotations

from ..model import Kind, Outcome
from ..model.verdicts import Severity


def severity_of(outcome: Outcome, kind: Kind) -> Severity:
    """Say what a failing outcome of a call of this kind does to a user."""
    if outcome.kind in ("crash", "timeout"):
        return "ends the process"
    if outcome.kind != "tensor" and not outcome.faults:
        return "rejects a legal call"
    return "accepts an illegal call" if kind == "illegal" and not outcome.faults else "wrong answer"
