"""Which known faults a legal call may meet."""

from __future__ import annotations

from collections.abc import Iterable

from ..model import KnownFault, LegalCall, Malformed, Problem
from .compiled_rules import legal_condition
from .expression import Invalid


class KnownFaults:
    """Some faults, with their conditions compiled."""

    def __init__(self, faults: Iterable[KnownFault]) -> None:
        self._conditions = []
        problems = []
        for fault in faults:
            try:
                self._conditions.append((fault, legal_condition(fault.when.text)))
            except Invalid as invalid:  # noqa: PERF203 - every problem is wanted, not the first
                problems.append(Problem(fault.when.place, f"fault {fault.id!r}: {invalid}"))
        if problems:
            raise Malformed(tuple(problems))

    def hitting(self, call: LegalCall) -> tuple[KnownFault, ...]:
        return tuple(fault for fault, holds in self._conditions if holds(call))
