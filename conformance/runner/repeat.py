"""Call random rows of some evidence again, and say where the backend does not do what the evidence says."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ..adapter import CannotStart, resolve_claims
from ..evidence.command import read_process_limits
from ..evidence.drawn import plan_of_run
from ..evidence.results import Evidence
from ..evidence.subject import Subject
from ..isolate.backend import isolation_of, note_opened_files, run_in_isolation, use_backend
from ..model import Claims, Identity, Result
from ..plan.rows import Plan, Row, parse_drawn_id
from ..run.ended_process import HangPolicy
from ..system.progress import track
from ..system.text import name_first, quote_json
from ..verdict.drawn_rows import draw_called_rows, make_failure_key
from .run_suite import order_rows, read_subject_of

_EVERY_ROW = HangPolicy(max_hangs=0, budget_seconds=float("inf"))
"""A row that is not called would be a difference, and the run may have had other limits, or several processes."""

_MAX_DETAILS_SHOWN = 4


class Repetition(NamedTuple):
    """A backend, the number of rows called on it again, and the differences from the evidence."""

    backend: str
    rows: int
    differences: tuple[str, ...]
    subject: Subject
    """The files under test, here."""
    details: str
    """How the backend describes itself here, in other words than in the evidence; empty if in the same."""

    def record(self) -> dict[str, Any]:
        return {**self._asdict(), "subject": dict(self.subject.files)}


def repeat(evidence: Evidence, plan: Plan, backend: str, number: int) -> Repetition:
    """Call `number` rows again, chosen at random among those that were called, in the order of a run.

    CannotStart if the backend does not start, or is not the one that the evidence names.
    """
    called = {result.row: result for result in evidence.results if result.was_called}
    of_run = plan_of_run(plan, evidence)
    written = {row.id: row for row in of_run.rows if row.id in called and parse_drawn_id(row.id) is None}
    every = written | draw_called_rows(plan, evidence)
    chosen = set(random.SystemRandom().sample(sorted(every), min(number, len(every))))
    rows = order_rows(replace(of_run, rows=tuple([row for id_, row in every.items() if id_ in chosen])))
    isolation = isolation_of(backend, evidence.header.get("isolation"))
    with (
        note_opened_files() as opened,
        use_backend(backend, isolation, read_process_limits(evidence.header, backend), opened) as adapter,
    ):
        claims = resolve_claims(adapter, plan.suite.spec.operations)
        _refuse_another(adapter.identity, claims, evidence, backend)
        details = _compare_details(evidence.header["backend"], adapter.identity, backend)
        again = track("calling again", run_in_isolation(rows, adapter, claims, isolation, _EVERY_ROW), len(rows))
        differences = tuple(_find_differences(called, every, again))
        subject = read_subject_of(adapter, backend, opened)
    return Repetition(backend, len(rows), differences, subject, details)


def _refuse_another(identity: Identity, claims: Claims, evidence: Evidence, backend: str) -> None:
    """Raise CannotStart if a backend has another name, version or claims than the evidence says."""
    named = evidence.header["backend"]
    if (identity.name, identity.version) != (named["name"], named["version"]):
        raise CannotStart(
            f"{backend} is {identity.name} {identity.version}, the evidence is of {named['name']} {named['version']}"
        )
    if claims != evidence.claims:
        raise CannotStart(f"{backend} does not claim what the evidence says it claimed")


def _compare_details(named: Mapping[str, Any], identity: Identity, backend: str) -> str:
    """Say where a backend's name on the command line, without folders, and its details differ from the evidence.

    The name has the class and the device; details are those of its identity, such as device or build.
    """
    there = {**named["detail"], "called as": named["adapter"].rpartition("/")[2]}
    here = {**dict(identity.detail), "called as": backend.rpartition("/")[2]}
    different = [
        f"{quote_json(key)} was {quote_json(here.get(key))}, not {quote_json(there.get(key))}"
        for key in dict.fromkeys((*there, *here)) if here.get(key) != there.get(key)
    ]  # fmt: skip
    return name_first(different, _MAX_DETAILS_SHOWN)


def _find_differences(before: Mapping[str, Result], every: Mapping[str, Row], again: Iterator[Result]) -> Iterator[str]:
    kinds = {make_failure_key(row, before[id_]) for id_, row in every.items() if parse_drawn_id(id_) and id_ in before}
    for now in again:
        was, row = before.get(now.row), every[now.row]
        if was is None:  # a drawn row that did not fail, or not as the first of its kind
            if now.is_failure and make_failure_key(row, now) not in kinds:
                yield f"{row.id}: the evidence says that no drawn row fails so, now {now.describe()}"
        elif _pick_comparable(was) != _pick_comparable(now):
            then, here = was.describe(), now.describe()
            other = ", with other content or in another step" if then == here else ""
            yield f"{now.row}: the evidence says {then}, now {here}{other}"


def _pick_comparable(result: Result) -> Any:
    """Return the part of a result that is the same in every run: no message, no number of calls, no waiver."""
    outcomes = [outcome._replace(message=None, call_number=1) for outcome in result.outcomes]
    return outcomes, result.step, result.digests, result.diagnosis
