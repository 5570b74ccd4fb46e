"""Proves that the suite notices: backends with one false belief, rules deleted, and every turn of the reference."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .check_cases import witnesses
from .contract import contracts
from .domain import SMALL, Domain, calls
from .model import Adapter, Suite
from .plan import Row
from .reasons import reason_holds
from .run import called, run_row
from .turned import Mutant, mutants, source_of

LONGEST = 10.0
"""Seconds that a mutant may take for one row."""
FINE = frozenset({"pass", "observed"})

EQUIVALENTS: Mapping[str, str] = {}
"""Mutants of the reference that no call can tell from it, each with the proof."""


def rows_to_run(rows: Iterable[Row]) -> list[Row]:
    """All but the large ones, which wants gigabytes."""
    return [row for row in rows if not row.case.large]


def noticed(row: Row, backend: Adapter) -> bool:
    """Whether a row fails or errs in some document."""
    return not FINE.issuperset(run_row(row, backend, False).verdicts.values())


# ── planted backends ──────────────────────────────────────────────────────────────────────────────


class Planted(NamedTuple):
    """What the suite found in a backend with one false belief."""

    name: str
    belief: str
    breaks: str
    classes: str
    killers: Mapping[str, tuple[str, ...]]
    """By rule, the cases that notice it."""
    elsewhere: tuple[int, int]
    """Rows of other rules: how many fail, of how many."""

    @property
    def wrong(self) -> str | None:
        """Why the suite, or the backend, is not as it should be."""
        failed, rows = self.elsewhere
        if self.breaks not in self.killers:
            seen = f"only by cases of {', '.join(self.killers)}" if self.killers else "by no case at all"
            return f"is noticed by no case of {self.breaks}, the rule that it breaks, {seen}; write that case"
        if 2 * failed > rows and "R" not in self.classes:
            return f"fails {failed} of {rows} rows of other rules; make its belief a smaller one"
        return None


def broken_backends() -> Mapping[str, Any]:
    """The planted backends by name."""
    backends: Mapping[str, Any] = importlib.import_module("conformance.adapters.broken").BROKEN
    return backends


def plant(backend: Any, rows: Iterable[Row]) -> Planted:
    """Runs a backend over all rows."""
    adapter = backend()
    killers: dict[str, dict[str, None]] = {}
    failed = others = 0
    for row in rows:
        bad = noticed(row, adapter)
        rule = row.case.rule
        if bad:
            killers.setdefault(rule, {})[row.case.id] = None
        if rule != backend.breaks:
            failed, others = failed + bad, others + 1
    belief = inspect.getdoc(backend) or ""
    found = {rule: tuple(cases) for rule, cases in killers.items()}
    return Planted(backend.name, belief, backend.breaks, backend.classes, found, (failed, others))


def unopposed(suite: Suite, backends: Mapping[str, Any]) -> Iterator[str]:
    """Rules that no planted backend breaks, and classes of bug that none stands for."""
    module = importlib.import_module("conformance.adapters.broken")
    broken = {backend.breaks for backend in backends.values()}
    for rule in suite.spec.rules.values():
        if rule.level in ("must", "decided") and rule.id not in broken:
            yield f"rule {rule.id!r} has no enemy; write a backend that breaks it in adapters/broken.py"
    for rule_id in sorted(broken - suite.spec.rules.keys()):
        yield f"adapters/broken.py: some backend breaks {rule_id!r}, which is no rule"
    covered = {letter for backend in backends.values() for letter in backend.classes}
    for letter, about in module.CLASSES.items():
        if letter not in covered:
            yield f"class {letter} ({about}) has no enemy; write a backend of that class in adapters/broken.py"


# ── rules deleted ─────────────────────────────────────────────────────────────────────────────────


class Deleted(NamedTuple):
    """A contract without one of its rules."""

    rule: str
    cases: tuple[str, ...]
    """The cases whose expectation no longer holds."""
    proof: str | None
    """Why nothing can change, where the rule is implied by the others."""

    @property
    def wrong(self) -> str | None:
        return (
            None
            if self.cases or self.proof
            else "no case's expectation changes when the rule is deleted; write a witness"
        )


def delete(suite: Suite, rule_id: str, domain: Domain = SMALL) -> Deleted:
    """Deletes one rule that has a contract, and sees which cases disagree."""
    rule = suite.spec.rules[rule_id]
    whole = contracts(suite.spec)
    if not rule.implied:
        return Deleted(rule_id, tuple(case.id for case in witnesses(rule, suite, whole)), None)
    lacking = contracts(suite.spec, without=rule_id)
    for document in sorted(rule.documents):
        one, other = whole[document].meaning, lacking[document].meaning
        if one is not other and any(one(*call)[:2] != other(*call)[:2] for call in calls(domain)):
            return Deleted(rule_id, (), None)
    return Deleted(rule_id, (), f"implied by the other rules: without it {domain} mean the same")


# ── the reference, turned ─────────────────────────────────────────────────────────────────────────


class Turned(NamedTuple):
    """A mutant of the reference, and what noticed it."""

    mutant: Mutant
    killer: str | None
    """The row that fails or errs, or for texts refuses for a reason that does not hold."""
    proof: str | None

    @property
    def wrong(self) -> str | None:
        if self.killer and self.proof:
            return f"is listed as equivalent, but {self.killer} notices it; take it off the list"
        if self.killer or self.proof:
            return None
        return "no row notices it; write the case, or prove in conformance/mutants.py that no call can"


UNTOUCHED = frozenset({"identity", "claims"})
"""What the reference says of itself, which no row depends on."""


def reference_mutants() -> Iterator[Mutant]:
    """Every mutant of the reference."""
    yield from mutants(source_of(importlib.import_module("conformance.adapters.numpy_reference")), UNTOUCHED)


class Hunt:
    """Looks for a row that notices a mutant; rows that noticed one before are asked first."""

    def __init__(self, rows: Sequence[Row], equivalents: Mapping[str, str] = EQUIVALENTS) -> None:
        kinds = [row.type for row in rows]
        first = {kind: number for number, kind in enumerate(dict.fromkeys(kinds))}
        self.rows = sorted(rows, key=lambda row: first[row.type])
        self.equivalents = equivalents

    def hunted(self, mutant: Mutant) -> Turned:
        """What becomes of one mutant."""
        killer = self._killer(_backend(mutant), _refuted if mutant.of_text else noticed)
        return Turned(mutant, killer, self.equivalents.get(mutant.name))

    def _killer(self, backend: Any, notices: Callable[[Row, Any], bool]) -> str | None:
        if isinstance(backend, str):
            return backend
        for place, row in enumerate(self.rows):
            with time_limit(LONGEST) as late:
                if notices(row, backend):
                    self.rows.insert(0, self.rows.pop(place))
                    return row.id
            if late:
                return f"{row.id} (endless)"
        return None


def _backend(mutant: Mutant) -> Any:
    """The mutant's backend, or what kept it from being one."""
    try:
        return mutant.module().NumpyReference()
    except Exception as error:
        return f"{type(error).__name__} when it is imported"


def _refuted(row: Row, backend: Adapter) -> bool:
    """Whether a row fails or errs, or refuses for a reason that does not hold."""
    if noticed(row, backend):
        return True
    return not all(map(reason_holds, row.tasks, called(row, backend)))


class _Late(BaseException):
    """Passes through whatever catches exceptions."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[list[str]]:
    """Ends what runs too long; the list has an entry then. Only the main thread of a Unix process can."""
    late: list[str] = []

    def end(*_: object) -> None:
        raise _Late

    try:
        before = signal.signal(signal.SIGVTALRM, end)
    except (ValueError, AttributeError):
        yield late
        return
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield late
    except _Late:
        late.append("late")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
