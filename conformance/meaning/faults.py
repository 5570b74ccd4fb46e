"""Which known faults a call may meet."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from ..model import KnownFault, Malformed, Meaning, PlainCall, Problem
from .compiled_rules import compile_fault_condition
from .expression import Invalid


class KnownFaults:
    """Some faults, with their conditions compiled."""

    def __init__(self, faults: Iterable[KnownFault]) -> None:
        self._conditions: list[tuple[KnownFault, Callable[[PlainCall], bool]]] = []
        problems = []
        for fault in faults:
            if fault.when is None:
                self._conditions.append((fault, lambda _: True))
                continue
            try:
                self._conditions.append((fault, compile_fault_condition(fault.when.text, legal=not fault.rules)))
            except Invalid as invalid:
                problems.append(Problem(fault.when.place, f"fault {fault.id!r}: {invalid}"))
        if problems:
            raise Malformed(tuple(problems))

    def of_legal_call(self, call: PlainCall) -> tuple[KnownFault, ...]:
        """Return the faults that a legal call may meet."""
        return tuple(fault for fault, holds in self._conditions if not fault.rules and holds(call))

    def of_calls(self, calls: Collection[PlainCall], meaning: Meaning) -> tuple[KnownFault, ...]:
        """Return the faults that calls of one meaning may meet, legal or not."""
        return tuple(
            fault
            for fault, holds in self._conditions
            if bool(fault.rules) == (meaning.kind != "legal")
            and (not fault.rules or (meaning.rules and set(meaning.rules) <= set(fault.rules)))
            and any(map(holds, calls))
        )
