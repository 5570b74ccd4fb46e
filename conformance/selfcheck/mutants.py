"""Check that the suite notices planted backends, deleted rules and mutants of the reference."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

from ..draw.rows import Drawn, RowDrawer, count_drawn_rows
from ..meaning.contract import contracts
from ..meaning.domain import SMALL_DOMAIN, calls
from ..model import RIGHT, Adapter, Claims, Suite
from ..plan.memory import volume_of
from ..plan.rows import SEED, Row
from ..plan.steps import SHARED_FROM_ELEMENTS
from ..run.row import call_parts, judge_row, lacks_calls, run_row
from .check_cases import reason_holds, witnesses
from .mutate_source import Mutant, mutants

MAX_SECONDS = 20.0
"""Time of this process that a mutant may take for a row; the reference takes seconds for all rows together."""

_SAME_BYTES = (
    "a flat row and a reshaped array are two ways to the same dims and bytes; which one is taken shows nowhere"
)
_SETTLED_LATER = "dst is then settled at the run, where the same check rejects or answers the same call"
_NOTHING_THERE = "where there are no elements, strides and offset lead nowhere"
_MOVED = "if len(src.dims) <= MOST_DIMS and len(dst) <= MOST_DIMS:"
_EMPTY = "return Tensor(src.type, dst, (0,) * len(dst), bytearray(), 0)"
_EARLY = 'return ReferenceProgram(self, graph, self.settle("compile", nodes, dims, ()) if early else None)'
_BOTH_OBSERVED = "under strides of dst that overlap, an answer of the reference is observed as its rejection is"
EQUIVALENTS: Mapping[str, str] = {
    "MOST_DIMS = 32 · 32 became 33": _SAME_BYTES,
    "MOST_DIMS = 32 · 32 became 31": _SAME_BYTES,
    f"{_MOVED} · the body dropped": _SAME_BYTES,
    f"{_MOVED} · <= became <": _SAME_BYTES,
    f"{_MOVED} · <= became < (2)": _SAME_BYTES,
    f"{_EMPTY} · 0 became 1": _NOTHING_THERE,
    f"{_EMPTY} · 0 became 1 (2)": _NOTHING_THERE,
    f"{_EARLY}  # type: ignore[arg-type] · always the second": _SETTLED_LATER,
    "dst = known_lengths(src, shape, special_zero) if free or 0 in shape else shape · always the first": (
        "the known lengths of a shape without -1 and 0 are the shape itself"
    ),
    "for want, length in zip(declared.dims, dims, strict=True): · True became False": (
        "two lines above, dims of different ranks have been told apart"
    ),
    'raise Rejected("run", "strides-of-dst-overlap") · the statement dropped': _BOTH_OBSERVED,
    "if dst.array().tobytes() != answer.tobytes(): · the body dropped": _BOTH_OBSERVED,
    "step *= max(length, 1) · 1 became 0": (
        "it differs where a length is 0, and then no element is reached by any stride"
    ),
    "axes = [(length, stride) for length, stride in zip(src.dims, src.strides, strict=True) if length != 1]"
    " · True became False": "a tensor has as many strides as dims",
}
"""Mutants of the reference that no call can tell from it, each with the proof."""


def choose_rows_to_run(rows: Iterable[Row]) -> list[Row]:
    """Drop large rows, which need gigabytes; keep one row of a case of many elements."""
    seen: set[str] = set()
    kept = []
    for row in rows:
        has_many = any(volume_of(step.src) >= SHARED_FROM_ELEMENTS for step in row.case.steps)
        if not (row.case.large or (has_many and row.case.id in seen)):
            kept.append(row)
        seen.add(row.case.id)
    return kept


def takes_long(row: Row) -> bool:
    """Ask whether a row has so many calls, or waits so long, that many backends are tried on it last."""
    return row.case.generated or row.case.times > 1 or row.case.pause_ms > 0


def fails_on(row: Row, backend: Adapter) -> bool:
    """Ask whether the verdict on a row is not right in some document."""
    return not RIGHT.issuperset(run_row(row, backend).verdicts.values())


@cache
def passes_reference(row: Row) -> bool:
    """Ask whether the reference passes a row. Otherwise the row tells nothing of what differs from the reference.

    The reference knows no added rule or operation, so that their rows fail on every backend made of it.
    """
    return find_wrong(row, importlib.import_module("conformance.adapters.reference").Reference()) is None


# ── planted backends ──────────────────────────────────────────────────────────────────────────────


class PlantedResult(NamedTuple):
    """The cases that notice a backend with one false belief."""

    name: str
    belief: str
    breaks: str
    classes: str
    killers: Mapping[str, tuple[str, ...]]
    """By rule, the cases that notice it."""
    elsewhere: tuple[int, int]
    """Rows of other rules: how many fail, of how many."""
    without_time: str | None = None
    """A row of the rule that lacks calls, as its time was over."""

    @property
    def wrong(self) -> str | None:
        """The problem with the suite or with the backend."""
        failed, rows = self.elsewhere
        if self.breaks not in self.killers:
            if late := self.without_time:
                return f"is not noticed, but {late} had no time for all its calls; repeat it on an idle machine"
            seen = f"only by cases of {', '.join(self.killers)}" if self.killers else "by no case at all"
            return f"is noticed by no case of {self.breaks}, the rule that it breaks, {seen}; write that case"
        if 2 * failed > rows and "R" not in self.classes:
            return f"fails {failed} of {rows} rows of other rules; make its belief a smaller one"
        return None


def planted_backends() -> Mapping[str, Any]:
    backends: Mapping[str, Any] = importlib.import_module("conformance.adapters.planted").PLANTED
    return backends


def drawn_rows(suite: Suite) -> list[Row]:
    """Return the rows that a run draws for a backend that claims everything."""
    return list(RowDrawer(suite.spec, Claims(tuple(suite.spec.operations))).rows(Drawn(SEED, count_drawn_rows())))


def try_backend(backend: Any, rows: Sequence[Row], drawn: Sequence[Row] = ()) -> PlantedResult:
    """Run a backend over the rows. Only if none of them notices it, try those that take long, and drawn rows."""
    adapter = backend()
    killers: dict[str, dict[str, None]] = {}
    failed = others = 0
    for row in rows:
        if takes_long(row):
            continue
        bad = fails_on(row, adapter) and passes_reference(row)
        rule = row.case.rule
        if bad:
            killers.setdefault(rule, {})[row.case.id] = None
        if rule != backend.breaks:
            failed, others = failed + bad, others + 1
    without_time: str | None = None
    if backend.breaks not in killers:
        for row in chain(filter(takes_long, rows), drawn):
            if row.case.rule == backend.breaks:
                result = run_row(row, adapter)
                if not RIGHT.issuperset(result.verdicts.values()) and passes_reference(row):
                    killers[backend.breaks] = {row.case.id: None}
                    break
                if lacks_calls(row, result):
                    without_time = row.id
    belief = inspect.getdoc(backend) or ""
    by_rule = {rule: tuple(cases) for rule, cases in killers.items()}
    return PlantedResult(backend.name, belief, backend.breaks, backend.classes, by_rule, (failed, others), without_time)


def find_unopposed_rules(suite: Suite, backends: Mapping[str, Any]) -> Iterator[str]:
    """Find rules that no planted backend breaks, and classes of bugs without a planted backend.

    An implied rule needs none: what breaks it breaks the rules that imply it. For a rule that binds only documents
    which are added to the bundled ones, nobody can plant one.
    """
    module = importlib.import_module("conformance.adapters.planted")
    broken = {backend.breaks for backend in backends.values()}
    for rule in suite.spec.rules.values():
        obliges = rule.level in ("must", "decided") and not rule.implied and not rule.documents <= suite.spec.added
        if obliges and rule.id not in broken:
            yield f"rule {rule.id!r} has no planted backend; write a backend that breaks it in adapters/planted/"
    for rule_id in sorted(broken - suite.spec.rules.keys()):
        yield f"adapters/planted/: some backend breaks {rule_id!r}, which is no rule"
    covered = {letter for backend in backends.values() for letter in backend.classes}
    for letter, about in module.CLASSES.items():
        if letter not in covered:
            yield f"class {letter} ({about}) has no planted backend; write one of that class in adapters/planted/"


# ── rules deleted ─────────────────────────────────────────────────────────────────────────────────


class DeletedRule(NamedTuple):
    rule: str
    cases: tuple[str, ...]
    """The cases that expect something else."""
    proof: str | None
    """Why nothing can change, if the other rules imply it."""

    @property
    def wrong(self) -> str | None:
        return None if self.cases or self.proof else "deleting it changes what no case expects; write a witness"


def delete_rule(suite: Suite, rule_id: str) -> DeletedRule:
    rule = suite.spec.rules[rule_id]
    whole = contracts(suite.spec)
    if not rule.implied:
        return DeletedRule(rule_id, tuple(dict.fromkeys(row.case.id for row in witnesses(rule, suite, whole))), None)
    lacking = contracts(suite.spec, without=rule_id)
    for document in sorted(rule.documents):
        one, other = whole[document].meaning, lacking[document].meaning
        if one is not other and any(one(*call)[:2] != other(*call)[:2] for call in calls(SMALL_DOMAIN)):
            return DeletedRule(rule_id, (), None)
    return DeletedRule(rule_id, (), f"implied by the other rules: without it {SMALL_DOMAIN} mean the same")


# ── mutants of the reference ────────────────────────────────────────────────────────────────────────


class MutantResult(NamedTuple):
    mutant: Mutant
    killer: str | None
    """The row that notices it."""
    by_reason: bool
    """Whether that row passes, and only the reason for its rejection is wrong."""
    proof: str | None

    @property
    def wrong(self) -> str | None:
        if self.killer and self.proof:
            return f"is listed as equivalent, but {self.killer} notices it; take it off the list"
        if self.killer or self.proof:
            return None
        return "no row notices it; write the case, or prove in conformance/selfcheck/mutants.py that no call can"


_UNTOUCHED = frozenset({"identity", "claims", "Decided"})
"""Parts of the reference that describe itself, or a type; no row depends on them."""


def list_mutants() -> Iterator[Mutant]:
    yield from mutants(inspect.getsource(importlib.import_module("conformance.adapters.reference")), _UNTOUCHED)


def find_outdated_proofs(mutants_: Iterable[Mutant]) -> Iterator[str]:
    for name in sorted(EQUIVALENTS.keys() - {mutant.name for mutant in mutants_}):
        yield f"conformance/selfcheck/mutants.py: {name!r} is proved equivalent, but is no mutant; take it off the list"


class KillerSearch:
    """Finds rows that notice mutants. It tries rows that noticed one before first, and those that take long last.

    The reference treats all types alike, so one type of each case is enough.
    """

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = sorted((row for row in rows if row.first is None), key=takes_long)

    def find_killer(self, mutant: Mutant) -> MutantResult:
        """Find the first row that notices a mutant, or its proof; move that row to the front for the next one."""
        proof = EQUIVALENTS.get(mutant.name)
        try:
            backend = mutant.module().Reference()
        except Exception as error:
            return MutantResult(mutant, f"{type(error).__name__} when it is imported", False, proof)
        for at, row in enumerate(self.rows):
            wrong = None
            with time_limit(MAX_SECONDS) as late:
                wrong = find_wrong(row, backend)
            if late:
                row.free_steps()  # the call may have left its memory changed
            if (late or wrong) and passes_reference(row):
                self.rows.insert(0, self.rows.pop(at))
                return MutantResult(mutant, f"{row.id}{' (endless)' * bool(late)}", wrong == "reason", proof)
        return MutantResult(mutant, None, False, proof)


def find_wrong(row: Row, backend: Adapter) -> str | None:
    """Say what is wrong with a row: its verdict, or only its reason, if a call does not break the rule it names."""
    if all(judged.meaning.kind == "legal" for step in row.steps for judged in step.meanings):
        return "verdict" if fails_on(row, backend) else None
    parts = list(call_parts(row, backend))
    if not RIGHT.issuperset(judge_row(row, backend, parts, frozenset()).verdicts.values()):
        return "verdict"
    outcomes = {number: outcome for first, part in parts for number, outcome in enumerate(part, first)}
    return None if all(map(reason_holds, row.steps, outcomes.values())) else "reason"


class _Late(KeyboardInterrupt):
    """Passes through whatever catches exceptions: any other one would be an error of the backend that is called."""


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[list[str]]:
    """Stop the block after some seconds; the list then has an entry. Only the main thread of a Unix process can."""
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
