"""Conclude from rows and results: the standings, a sentence a document, and the exit code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from ..adapter import is_own
from ..evidence.drawn import count_added, drew_all, name_missed_rows, plan_of_run
from ..evidence.results import Evidence, Target
from ..load.folders import digest_of_folders, find_cases_folder, find_spec_folder
from ..model import BAD, ERROR, FAIL, Claims, Result, Suite, Verdict, fails
from ..model.verdicts import FAILED_OR_WAIVED, Label
from ..plan.rows import Plan
from ..system.exit_codes import CONFORMS, FAILS, INCOMPLETE, OVERDUE, UNTRUSTED, VOIDS_VERDICTS
from ..system.groups import group_pairs
from . import planted, sentences, waive
from .blame import Blamed, Blamer, find_worst
from .cause import Cause, find_causes
from .exit_code import choose_exit_code
from .label import label_of
from .standing import (
    Blames,
    SimilarRows,
    Standing,
    count_tests,
    group_rows,
    has_standing,
    is_in_target,
    list_counted_documents,
    standings_of,
)


@dataclass(frozen=True)
class Conclusion:
    """The conclusion of a whole run."""

    standings: tuple[Standing, ...]
    blames: Blames
    """By row and document, the sentence that each failure in the target breaks."""
    sentences: tuple[str, ...]
    exit_code: int
    why: str
    """The reason for the exit code."""
    claims: Claims
    notes: tuple[str, ...] = ()
    """Remarks, such as facets that are not claimed and work."""
    causes: Mapping[str, Cause] = field(default_factory=dict)
    """By failing row, the known fault that explains it."""
    not_run: tuple[str, ...] = ()
    """What a run can call and this one did not: drawn rows, equal calls without time, large tensors."""
    headline: str = ""
    """The note that a summary says first, if there is one."""
    scope: str = ""
    """The words that limit every verdict, if not the whole suite ran or not apart from the suite."""
    limits: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By document, what was not claimed, not asked for or not run."""

    def find_worst(self, row: str) -> Blamed | None:
        """Return the worst that is blamed for a row in some document; None if only the adapter went wrong."""
        return find_worst(self.blames.get(row, {}).values())

    @property
    def label(self) -> Label:
        """The name of the whole result: the worst that failed, if anything did."""
        return label_of(self.standings, self.claims, self.exit_code)

    @property
    def counts(self) -> Mapping[Verdict, int]:
        """The tests of the whole run by verdict."""
        return count_tests(self.standings)

    @property
    def denial(self) -> str:
        """The words for a target that is not shown to conform; an error of the adapter alone shows nothing."""
        only_errors = ERROR in self.counts and FAIL not in self.counts
        return "does not conform" if self.exit_code == FAILS and not only_errors else "is not shown to conform"

    @property
    def tests(self) -> int:
        return sum(self.counts.values())


class VerdictLimits(NamedTuple):
    """Facts that limit every verdict of a run."""

    in_process: bool = False
    """Whether the backend is not our own and ran in our process."""
    missed_rows: str | None = None
    """The name of drawn rows that a whole run would have called, and this one did not."""
    calls: Mapping[str, str] = MappingProxyType({})
    """The name of equal calls that had no time, by document."""
    answered: Sequence[str] = ()
    """What the adapter answers instead of the library."""


_NO_LIMITS = VerdictLimits()


def conclude_evidence(plan: Plan, evidence: Evidence) -> Conclusion:
    header, results = evidence.header, {result.row: result for result in evidence.results}
    added, plan = count_added(plan, evidence), plan_of_run(plan, evidence)
    claims, target = evidence.claims, evidence.target
    overdue: tuple[str, ...] = ()
    if header.get("waivers"):
        whole = not target.is_part and not _lacks_rows(plan, results, target, claims)
        overdue = waive.find_overdue(header, results, plan.rows, whole, drew_all(evidence, plan.suite))
    missed = None if target.row_options or target.shard else name_missed_rows(evidence, plan.suite)
    calls = sentences.name_missing_calls(evidence.footer.get("notes", ()), results)
    conclusion = conclude(
        plan, results, claims, target, doubt=_find_doubt(plan, evidence),
        overdue=() if target.is_part else overdue,
        limits=VerdictLimits(ran_in_suite_process(header), missed, calls, evidence.answered_by_adapter),
    )  # fmt: skip
    notes = [*conclusion.notes]
    if conclusion.exit_code != OVERDUE:  # otherwise they are in `why`
        notes += overdue
    if header.get("waivers"):
        blamer = Blamer(plan.suite.spec.rules)
        notes += waive.note_needed_rules(header, results, plan.rows, conclusion.blames, blamer)
    if ran_in_suite_process(header):
        notes.append("the backend ran in the suite's own process and could write its verdict; it proves nothing")
    notes += sentences.note_resumed(evidence.results)
    if target.row_options and conclusion.blames:
        notes.append(
            "what a failure breaks, and its cause, are judged by these rows alone; a whole run may name others"
        )
    if added:
        notes.append(f"not called, because they came to the suite later: {added}")
    backend = header["backend"]
    causes = find_causes(plan.rows, results, conclusion.blames, backend["name"], backend["version"])
    headline = sentences.describe_rejections(results.values(), conclusion.blames, causes)
    notes = [headline, *notes] if headline else notes
    conclusion = replace(conclusion, notes=tuple(notes), causes=causes, headline=headline)
    if plan.suite.digest == digest_of_folders([find_spec_folder(), find_cases_folder()]):
        return conclusion
    return replace(conclusion, notes=(*conclusion.notes, _describe_other_suite(plan.suite)))


def _find_doubt(plan: Plan, evidence: Evidence) -> tuple[int, str] | None:
    """Return the exit code and the reason if nothing conforms, whatever the rows say; None if there is no doubt."""
    if evidence.interrupted:
        ran, target, claims = sum(result.was_called for result in evidence.results), evidence.target, evidence.claims
        due = sum(is_in_target(row, target, claims) for row in plan.rows)
        return INCOMPLETE, f"incomplete: the run was interrupted after {ran:,} of {due:,} rows"
    names = planted.names(evidence.header.get("isolation", "none"))
    if uncaught := planted.find_uncaught(names, evidence.footer["planted"]):
        why = f"our own planted fault was not caught: {', '.join(uncaught)}; no verdict of this run is reliable"
        return UNTRUSTED, why
    return None


def conclude_claims(plan: Plan, evidence: Evidence) -> Conclusion:
    """Conclude about all that is claimed, also if the run was asked for less: then rows are missing."""
    return conclude_evidence(plan, evidence.with_target(operations=[], documents=[], types=[]))


def _lacks_rows(plan: Plan, results: Mapping[str, Result], target: Target, claims: Claims) -> bool:
    """Ask whether a row of the target was not run, such as those after a limit of failures."""
    return any(
        row.id not in results or results[row.id].is_not_run for row in plan.rows if is_in_target(row, target, claims)
    )


def _describe_other_suite(suite: Suite) -> str:
    if not suite.added and not suite.spec.added:
        return "the specification or the cases are not the bundled ones"
    cases = f"{len(suite.added)} cases" if len(suite.added) != 1 else "one case"
    added = [*sorted(suite.spec.added), *([cases] if suite.added else [])]
    return f"added to the bundled suite: {', '.join(added)}"


def conclude(
    plan: Plan, results: Mapping[str, Result], claims: Claims, target: Target,
    doubt: tuple[int, str] | None = None, overdue: tuple[str, ...] = (), limits: VerdictLimits = _NO_LIMITS,
) -> Conclusion:  # fmt: skip
    """Conclude from results. The rows are those of the plan: a row without a result is not run.

    `doubt`: an exit code and its reason, if nothing conforms. `overdue`: waivers that expired or are stale.
    """
    by_standing: dict[tuple[str, str], list[SimilarRows]] = {}
    unlisted: list[SimilarRows] = []
    unclaimed: list[SimilarRows] = []
    groups = group_rows(plan.rows, results, claims)
    for group in groups:
        row = group.rows[0]
        within = list_counted_documents(row, target, claims)
        about = [document for document in row.documents if has_standing(row, document, target, claims)]
        for document in about:
            standing = by_standing.setdefault((document, row.type), [])
            if document in within:
                standing.append(group)
        # nobody asked for such rows and they count nowhere, but a failure in them is said
        if not within and not FAILED_OR_WAIVED.isdisjoint(group.verdicts[document] for document in about):
            unclaimed.append(group)
        if not row.has_listed_type:
            unlisted.append(group)
    failing = (each for each in unclaimed if fails(each.verdicts.values()))
    unclaimed_failures = sentences.describe_failures_in_unclaimed_types(failing)
    waived = sentences.describe_failures_in_unclaimed_types(
        each for each in unclaimed if not fails(each.verdicts.values())
    )
    waived = waived and f"waived: {waived}"
    blames = _blame(plan, results, by_standing)
    standings = standings_of(plan, by_standing, claims, blames)
    code, why = choose_exit_code(standings, by_standing, claims, target, overdue, unclaimed_failures, plan)
    # from here on a yes can only become weaker
    if waived and code == CONFORMS:
        why += f"; {waived}"
    if limits.missed_rows and code == CONFORMS:
        why += f", without {limits.missed_rows}"
    code, why = _limit_to_suite(plan.suite, code, why)
    if doubt and code == FAILS and doubt[0] == INCOMPLETE:
        why += f"; {doubt[1]}"
    elif doubt:
        code, why = doubt
    if code in VOIDS_VERDICTS:
        standings = tuple(replace(standing, name="nothing shown") for standing in standings)
    elif doubt:
        standings = tuple(replace(each, name="incomplete") if each.name == "conforms" else each for each in standings)
    scope = sentences.scope_phrase(plan.suite) + (" as run in the suite's own process" if limits.in_process else "")

    def name_not_run(document: str) -> tuple[str, ...]:
        large = None if target.large else sentences.LARGE_TENSORS
        return tuple(filter(None, (limits.missed_rows, limits.calls.get(document), large)))

    of_documents = group_pairs((standing.document, standing) for standing in standings)
    limited = {}
    for document, some in of_documents.items():
        lacking = name_not_run(document)
        limited[document] = tuple(sentences.describe_limits(some, claims, target, lacking, limits.answered))
    said = tuple(
        "; ".join([f"{sentences.write_verdict(document, group, target)}{scope}", *limited[document]])
        for document, group in of_documents.items()
    )
    notes = (
        *(remark for remark in (unclaimed_failures, waived) if remark and remark not in why),
        *sentences.note_unclaimed_operations(plan.suite.spec.operations, claims, target),
        *sentences.note_unclaimed_passes(groups, claims),
        *sentences.note_failures_in_unlisted_types(unlisted),
        *sentences.note_adapter_errors(results.values()),
    )
    return Conclusion(
        standings, blames, said, code, why, claims, notes, not_run=name_not_run(""), scope=scope, limits=limited
    )


def _blame(plan: Plan, results: Mapping[str, Result], groups: Mapping[tuple[str, str], list[SimilarRows]]) -> Blames:
    """Blame every failure of the groups, in each document in which it is one."""
    failing = [
        (document, group) for (document, _), some in groups.items() for group in some if group.verdicts[document] in BAD
    ]
    if not failing:
        return {}
    blamer = Blamer(plan.suite.spec.rules, plan.rows, results)
    blames: dict[str, dict[str, Blamed]] = {}
    for document, group in failing:
        for row in group.rows:
            if blamed := blamer.blame(row, results[row.id], document):
                blames.setdefault(row.id, {})[document] = blamed
    return blames


def ran_in_suite_process(header: Mapping[str, Any]) -> bool:
    """Ask whether a backend that is not our own ran in the suite's process, where it could change the verdict."""
    return header.get("isolation", "none") == "none" and not is_own(header["backend"]["adapter"])


def _limit_to_suite(suite: Suite, code: int, why: str) -> tuple[int, str]:
    """Limit an exit code and its reason to what the cases of the suite can show."""
    if suite.lost and code in (CONFORMS, INCOMPLETE):
        return INCOMPLETE, f"incomplete: {sentences.describe_missing_cases(suite)}"
    return code, f"{why},{sentences.scope_phrase(suite)}" if code == CONFORMS and not suite.whole else why
