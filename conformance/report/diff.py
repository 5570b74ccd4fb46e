"""Find what changed between two runs, and why: compare their headers, then their rows one by one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from ..draw.nonce import is_of_nonce, plan_under_nonce
from ..evidence.drawn import plan_of_run
from ..evidence.results import Evidence, name_with_version
from ..model import BAD, ERROR, FAIL, NOT_CLAIMED, NOT_RUN, OBSERVED, RIGHT, WAIVED, Claims, Result, StandingName
from ..model.verdicts import FAILED_OR_WAIVED, SEVERITIES, Severity
from ..plan.rows import Plan, parse_drawn_id
from ..system.groups import group_pairs
from ..verdict.blame import Blamed
from ..verdict.conclude import Conclusion, conclude_evidence
from ..verdict.drawn_rows import find_comparable
from ..verdict.sentences import describe_failures
from ..verdict.standing import is_in_target
from ..verdict.waive import KEYS
from .judged_run import JudgedRun, conclude_run
from .summary import DocumentState, describe_documents

Direction = Literal["worse", "better", "set aside", "other"]
DIRECTIONS: Mapping[Direction, str] = {
    "worse": "what did not fail now fails, is waived, or is no longer shown; or a failure has a worse severity",
    "better": "what was wrong or not shown is now right, or rejected where neither run claims the call",
    "set aside": "a failure that no longer counts: waived, no longer claimed or not run; it is not mended",
    "other": "another or a first answer to an unspecified call, a failure that is no worse, or tests of only one run",
}
Cause = Literal[
    "backend", "claims", "suite", "ruling", "waiver", "environment", "target", "stopped", "flaky",
    "another build or flaky",
]  # fmt: skip
CAUSES: Mapping[Cause, str] = {
    "backend": "the backend is another, or another version",
    "claims": "the backend claims more or less",
    "suite": "the specification or the cases changed",
    "ruling": "the same answer is judged otherwise, under a rule that is our own ruling",
    "waiver": "a waiver came, ended or was dropped",
    "environment": "the machine, the interpreter or a library changed",
    "target": "the run was asked for something else",
    "stopped": "a run did not call it, as after --maxfail or many hangs",
    "flaky": "a crash did not come again when the call was made alone in a fresh process",
    "another build or flaky": "nothing that the evidence names differs: the library changed under the same version, or "
    "goes wrong by chance; run the row again, several times",
}
_UNNAMED: Cause = "another build or flaky"
_NOT_FAILED = "did not fail"
"""The word for a drawn row that the evidence does not hold: it passed, or is observed."""
_WORDS: tuple[StandingName, ...] = ("conforms", "not claimed", "nothing shown", "incomplete", "does not conform")
_GOOD = (*RIGHT, _NOT_FAILED)
_IDLE = (NOT_RUN, NOT_CLAIMED)


class HeaderChange(NamedTuple):
    """One thing that the headers say and that differs."""

    cause: Cause
    what: str
    was: str
    now: str


HeaderChanges = tuple[HeaderChange, ...]


class Change(NamedTuple):
    """One row that is not what it was, in the documents in which it changed in the same way: a test in each."""

    row: str
    case: str
    rule: str
    documents: tuple[str, ...]
    direction: Direction
    was: str
    now: str
    was_answer: str
    now_answer: str
    causes: tuple[Cause, ...]


class WhatFailed(NamedTuple):
    """The severity of a failing row, and its cause, or its diagnosis if none is known."""

    severity: Severity
    title: str


Ends = tuple[tuple[str, str], tuple[str, str]]
"""The verdict and the answer before, and both after."""


class StandingChange(NamedTuple):
    """The words about a document and a type, before and after."""

    document: str
    type: str
    was: StandingName
    now: StandingName

    @property
    def worse(self) -> bool:
        """A new claim takes nothing back, even if only a part of it ran, or none."""
        new = self.was == "not claimed" and self.now != "does not conform"
        return not new and _WORDS.index(self.now) > _WORDS.index(self.was)


class BlamesOfDocument(NamedTuple):
    """The tests of a document that break its text, answer what it forbids, or break only our rulings, in words."""

    document: str
    was: str
    now: str


class DiffSide(NamedTuple):
    name: str
    """The backend and its version."""
    started: str
    note: str
    """Why its verdicts were not judged again; empty if they were."""
    suite: Mapping[str, str]
    """Its version and its digest."""

    def __str__(self) -> str:
        return f"{self.name}, {self.started}{self.note}"


@dataclass(frozen=True)
class Difference:
    """All that changed between two runs."""

    old: DiffSide
    new: DiffSide
    header_changes: HeaderChanges
    standings: tuple[StandingChange, ...] | None
    """By the rows that are compared. None if the runs are of different suites, or of one that is not at hand."""
    documents: tuple[tuple[DocumentState, DocumentState], ...]
    """The results of both runs in every document of the suite; none where `standings` is None."""
    blames: tuple[BlamesOfDocument, ...]
    """Documents with another number of failures, or with failures that break other sentences."""
    changes: tuple[Change, ...]
    failed: Mapping[str, WhatFailed]
    """What failed in each row, in some document: in the new run, or in the old one if the new one passes."""
    tests: int
    """The tests that both runs made: what neither claims is none."""
    asked_once: int
    """Tests that only one run was asked for. They are not compared."""
    not_compared: int
    """Drawn rows that failed in one run, and for which the other gives no result."""

    def find_what_failed(self, change: Change) -> WhatFailed | None:
        """Return what failed in the documents of a change; None if nothing did there."""
        words = {*change.was.split("/"), *change.now.split("/")}  # of a row that only one run has, all are together
        return self.failed.get(change.row) if words & FAILED_OR_WAIVED else None

    @property
    def worse(self) -> bool:
        return self.counts["worse"] > 0 or any(each.worse for each in self.standings or ())

    @property
    def counts(self) -> dict[Direction, int]:
        """Tests by the direction in which they changed."""
        tests = dict.fromkeys(DIRECTIONS, 0)
        for change in self.changes:
            tests[change.direction] += len(change.documents)
        return tests


def compare_runs(old: Evidence, new: Evidence, plan: Plan) -> Difference:
    """Compare two runs. `plan`: of the suite at hand, which names the rules."""
    header_changes = tuple(_compare_headers(old.header, new.header))
    was, now = ({result.row: result for result in each.results} for each in (old, new))
    plans = [plan_of_run(plan, each) if each.can_be_judged_by(plan.suite) else None for each in (old, new)]
    not_asked = [_find_unasked(each, plan, own) if own else {} for each, own in zip((old, new), plans, strict=True)]
    left_out = {**not_asked[0], **not_asked[1]}
    asked_once = sum(left_out[row] for row in not_asked[0].keys() ^ not_asked[1].keys())
    rules = {row.id: row.case.rule for each in [*filter(None, plans)] or [plan] for row in each.rows}
    comparable = find_comparable(plan, old, new)
    not_compared = {row for row in (*now, *was) if parse_drawn_id(row) and row not in comparable}
    is_judged = all(plans)
    runs = [conclude_run(plan, each) for each in (old, new)] if is_judged else []
    blames = [run.conclusion.blames for run in runs] or [{}, {}]
    changes: list[Change] = []
    tests = 0
    for row in dict.fromkeys((*now, *was)):
        if is_of_nonce(row) and old.header.get("nonce") != new.header.get("nonce"):
            continue  # another nonce draws other calls
        if row in not_compared or row in left_out:
            continue
        rule, held = rules.get(row, ""), now.get(row) or was[row]
        if (row in was and row in now) or row in comparable:
            both = was.get(row, held), now.get(row, held)
            tests += sum(any(each.verdicts.get(document) != NOT_CLAIMED for each in both) for document in held.verdicts)
        if row in was and row in now:
            changes += _compare(rule, was[row], now[row], header_changes, plan, [each.get(row, {}) for each in blames])
        elif row in comparable:
            changes += _compare_drawn_row(rule, held, row in now, header_changes)
        else:
            changes.append(_make_lone(rule, held, row in now))
    compared = [run.conclusion for run in runs]
    if runs and (not_compared or asked_once):
        compared = _conclude_on_common(old, new, plan, not_compared | left_out.keys())
    return Difference(
        _name(old, plan),
        _name(new, plan),
        header_changes,
        _compare_words(compared) if compared else None,
        tuple(zip(*(describe_documents(run.with_drawn) for run in runs), strict=True)),
        tuple(_compare_blames(compared)) if compared else (),
        tuple(changes),
        _name_failures(runs),
        tests,
        asked_once,
        len(not_compared),
    )


def _find_unasked(evidence: Evidence, plan: Plan, own: Plan) -> Mapping[str, int]:
    """Find the rows that a run did not call because of its target, with the number of tests. `own`: its plan."""
    target, every = evidence.target, Claims(tuple(plan.suite.spec.operations))
    chosen = {row.id for row in own.rows}
    called = {result.row for result in evidence.results if not result.is_not_run or result.outcome.message}
    return {
        row.id: len(row.documents)
        for number, row in enumerate(plan_under_nonce(plan, evidence.header.get("nonce")).rows)
        if row.id not in called
        and (
            not target.has_in_shard(number)
            or target.last_failed
            or row.id not in chosen
            or not is_in_target(row, target, every)
        )
    }


def _name(evidence: Evidence, plan: Plan) -> DiffSide:
    backend, suite = evidence.header["backend"], evidence.header["suite"]
    unjudged = "" if evidence.can_be_judged_by(plan.suite) else ", of another suite, not judged again"
    judged_by = suite if unjudged else {**suite, "digest": plan.suite.digest}
    return DiffSide(name_with_version(backend), evidence.header["started"], unjudged, judged_by)


_PARTS: Mapping[str, Cause] = {
    "backend": "backend", "isolation": "backend", "claims": "claims", "suite": "suite", "waivers": "waiver",
    "nonce": "suite", "environment": "environment", "limits": "environment", "target": "target", "drawn": "target",
}  # fmt: skip


def _compare_headers(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[HeaderChange]:
    for key, cause in _PARTS.items():
        was, now = _flatten(old.get(key), key), _flatten(new.get(key), key)
        for name in dict.fromkeys((*was, *now)):
            if was.get(name) != now.get(name):
                yield HeaderChange(cause, name, was.get(name, "nothing"), now.get(name, "nothing"))


def _flatten(value: Any, name: str) -> dict[str, str]:
    """Return names and values of all levels; a list of names is one value."""
    if isinstance(value, Mapping):
        return {key: text for part, each in value.items() for key, text in _flatten(each, f"{name} · {part}").items()}
    if name == "waivers":
        return {
            f"waiver of {', '.join(each[key] for key in KEYS if key in each)}": "; ".join(
                f"{key}: {text}" for key, text in each.items() if key not in ("number", "place")
            )
            for each in value or ()
        }
    if isinstance(value, list | tuple):
        every = name in ("target · operations", "target · documents", "target · types")
        return {name: ", ".join(map(str, value)) or ("all" if every else "none")}
    return {} if value is None else {name: str(value)}


def _name_failures(runs: Iterable[JudgedRun]) -> Mapping[str, WhatFailed]:
    failed: dict[str, WhatFailed] = {}
    for run in runs:
        for result in run.evidence.results:
            cause = run.conclusion.causes.get(result.row)
            if worst := run.conclusion.find_worst(result.row):
                title = cause.title if cause else result.diagnosis or "no diagnosis"
                failed[result.row] = WhatFailed(worst.severity, title)
    return failed


def _conclude_on_common(old: Evidence, new: Evidence, plan: Plan, left_out: Set[str]) -> list[Conclusion]:
    """Conclude as if both runs had been asked for the rows that are compared, and for nothing else."""
    select = old.target.select or new.target.select

    def conclude_on(evidence: Evidence) -> Conclusion:
        whole = plan_under_nonce(plan, evidence.header.get("nonce"))
        rows = tuple(row for row in whole.rows if row.id not in left_out)
        results = tuple(result for result in evidence.results if result.row not in left_out)
        asked = evidence.with_target(operations=[], documents=[], types=[], select=select)
        return conclude_evidence(replace(whole, rows=rows, select=select), replace(asked, results=results))

    return [conclude_on(old), conclude_on(new)]


def _compare_words(concluded: Iterable[Conclusion]) -> tuple[StandingChange, ...]:
    was, now = ({(s.document, s.type): s.name for s in each.standings} for each in concluded)
    return tuple(
        StandingChange(
            document, type_, was.get((document, type_), "not claimed"), now.get((document, type_), "not claimed")
        )
        for document, type_ in dict.fromkeys((*was, *now))
        if was.get((document, type_)) != now.get((document, type_))
    )


def _compare_blames(concluded: Iterable[Conclusion]) -> Iterator[BlamesOfDocument]:
    was, now = (group_pairs((s.document, s) for s in each.standings) for each in concluded)
    for document in dict.fromkeys((*was, *now)):
        before, after = (describe_failures(each.get(document, ())) or "no failure" for each in (was, now))
        if before != after:
            yield BlamesOfDocument(document, before, after)


def _make_lone(rule: str, held: Result, is_new: bool) -> Change:
    """Make the change of a row that only one run has. It is neither better nor worse."""
    ends = ("/".join(dict.fromkeys(held.verdicts.values())), held.describe()), ("no such row", "")
    return _make_change(rule, held, tuple(held.verdicts), "other", ends[::-1] if is_new else ends, ("suite",))


def _compare_drawn_row(rule: str, held: Result, is_new: bool, headers: HeaderChanges) -> Iterator[Change]:
    """Yield the changes of a drawn row that both runs called. The evidence of one holds it: it failed only there."""
    causes = _find_other_causes(dict.fromkeys(each.cause for each in headers)) or (_UNNAMED,)
    failed = group_pairs((verdict, document) for document, verdict in held.verdicts.items() if verdict not in RIGHT)
    for verdict, documents in failed.items():
        ends = (verdict, held.describe()), (_NOT_FAILED, "not kept")
        was, now = ends[::-1] if is_new else ends
        yield _make_change(rule, held, documents, find_direction(was[0], now[0]), (was, now), causes)


def _make_change(
    rule: str, held: Result, documents: tuple[str, ...], way: Direction, ends: Ends, causes: tuple[Cause, ...]
) -> Change:
    (was, was_answer), (now, now_answer) = ends
    case = held.row.partition("[")[0]
    return Change(held.row, case, rule, documents, way, was, now, was_answer, now_answer, causes)


def _compare(
    rule: str, was: Result, now: Result, header_changes: HeaderChanges, plan: Plan, blamed: list[Mapping[str, Blamed]]
) -> Iterator[Change]:
    """Yield the changes of a row that both runs have: one for all documents that changed in the same way."""
    same, is_same_scope = _strip(was) == _strip(now), all(each.cause != "claims" for each in header_changes)
    alike: dict[tuple[str, str, Direction], list[str]] = {}
    for document in dict.fromkeys((*was.verdicts, *now.verdicts)):
        before, after = (each.verdicts.get(document, NOT_RUN) for each in (was, now))
        if before != after or (not same and before not in _IDLE):
            rank, new_rank = map(_rank_severity, (was, now), (each.get(document) for each in blamed))
            way = find_direction(before, after)
            if before == after == FAIL and new_rank < rank:
                way = "worse"
            elif (before, after) == (FAIL, NOT_CLAIMED) and now.outcome.reached_library and is_same_scope:
                way = "better"
            alike.setdefault((before, after, way), []).append(document)
    for (old, new, way), documents in alike.items():
        if old == new and (was.describe(), was.diagnosis) == (now.describe(), now.diagnosis):
            continue  # a message in other words, or a step beside the one that decided
        known = plan.suite.spec.rules.get(rule)
        ruled = known is not None and any(document in known.decided_for for document in documents)
        causes = _find_causes((old, new), was, now, same, header_changes, ruled)
        ends = (old, _answer(was, old)), (new, _answer(now, new))
        yield _make_change(rule, now, tuple(documents), way, ends, causes)


def _answer(result: Result, verdict: str) -> str:
    """Say what a run did; what is wrong with that, only for documents in which it fails."""
    return (result if verdict in FAILED_OR_WAIVED else result._replace(diagnosis=None)).describe()


def _rank_severity(result: Result, blamed: Blamed | None) -> int:
    """Return a number for what a failure does, the worst lowest. Without blame only the end of the process is known."""
    return SEVERITIES.index(blamed.severity) if blamed else int(not result.ends_process)


def find_direction(was: str, now: str) -> Direction:
    if was in BAD and now in (WAIVED, *_IDLE):
        return "set aside"
    if now in _GOOD:
        return "other" if was in _GOOD or (was in _IDLE and now == OBSERVED) else "better"
    is_same = was == now or {was, now} == {*_IDLE} or (was, now) == (ERROR, FAIL)
    return "other" if is_same else "worse"


def _strip(result: Result) -> tuple[Any, ...]:
    """Return the part of a result that verdicts and waivers leave as it is."""
    return result.outcomes, result.step, result.digests, result.diagnosis, result.detail


def _find_causes(
    verdicts: tuple[str, str], was: Result, now: Result, same: bool, header_changes: HeaderChanges, ruled: bool
) -> tuple[Cause, ...]:
    """Return the likely causes of a change: as few as the headers allow."""
    before, after = verdicts
    differs = dict.fromkeys(each.cause for each in header_changes)
    if was.is_flaky or now.is_flaky:
        return ("flaky",)
    if WAIVED in (before, after) and (same or "waiver" in differs):
        return ("waiver",) if same else ("waiver", *_find_other_causes(differs))
    if NOT_CLAIMED in (before, after) and "claims" in differs:
        return ("claims",)
    if NOT_RUN in (before, after):
        return ("stopped",)
    if same and before != after:
        return ("ruling",) if ruled and "suite" in differs else ("suite",) if "suite" in differs else (_UNNAMED,)
    return _find_other_causes(differs) or (_UNNAMED,)


def _find_other_causes(differs: Mapping[Cause, None]) -> tuple[Cause, ...]:
    return tuple(cause for cause in differs if cause in ("backend", "environment", "suite"))
