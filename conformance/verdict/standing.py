"""The standing of a backend for each document and element type: a word, and the counts behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ..evidence.results import Target
from ..model import BAD, BLAMES, ERROR, FAIL, NOT_CLAIMED, NOT_RUN, PASS, Blame, Claims, Result, Verdict
from ..model.verdicts import FAILED_OR_WAIVED, SEVERITIES, Severity, StandingName, count_verdicts
from ..plan.rows import Plan, Row
from ..system.terminal import count_noun
from .blame import Blamed


@dataclass(frozen=True)
class Standing:
    """The result for one document and one element type."""

    document: str
    operation: str
    type: str
    name: StandingName
    counts: Mapping[Verdict, int]
    """Verdicts of the required rows; all of them are tests."""
    unclaimed_counts: Mapping[Verdict, int]
    """Verdicts of rows in facets that are not claimed; none if the type itself is not."""
    blames: Mapping[Blame, int]
    """Tests that fail, by what they break; errors of the adapter are not among them."""
    severities: Mapping[Severity, int]
    """The same tests by what the failure does to a user."""
    unshown: tuple[str, ...]
    """Rules that bind and have required rows, but no pass."""
    not_claimed: tuple[str, ...]
    """Facets of rows of the suite that the backend does not claim; none if it does not claim the type itself."""

    @property
    def tests(self) -> int:
        return sum(count_tests([self]).values())

    @property
    def not_counted(self) -> Mapping[Verdict, int]:
        """Verdicts of the rows that are no tests: those in facets that are not claimed, and that do not fail."""
        return {verdict: number for verdict, number in self.unclaimed_counts.items() if verdict not in FAILED_OR_WAIVED}


def count_tests(standings: Iterable[Standing]) -> Mapping[Verdict, int]:
    """Count the tests of some standings by verdict; all numbers of tests that are shown come from here.

    A test is a row judged in a document. Only the required rows are tests, and other rows of the target that fail.
    """
    counts: Counter[Verdict] = Counter()
    for standing in standings:
        counts.update(standing.counts)
        counts.update({each: n for each, n in standing.unclaimed_counts.items() if each in FAILED_OR_WAIVED})
    return count_verdicts(counts)


class SimilarRows(NamedTuple):
    """Rows with the same operation, type, rule, unclaimed facets and verdicts; each group is counted once."""

    rows: list[Row]
    verdicts: Mapping[str, Verdict]
    """The verdict in each of their documents; `not run` if there is no result."""


def group_rows(rows: Iterable[Row], results: Mapping[str, Result], claims: Claims) -> list[SimilarRows]:
    """Group rows by what a conclusion depends on, in the order of the first row of each group."""
    groups: dict[tuple[object, ...], SimilarRows] = {}
    for row in rows:
        needs = claims.find_unclaimed(row.facets), "large" in row.facets
        result = results.get(row.id)
        verdicts = result.verdicts if result else {}
        key = (row.operation, row.type, row.documents, *needs, row.case.rule, *verdicts.items())
        if key not in groups:
            groups[key] = SimilarRows([], {document: verdicts.get(document, NOT_RUN) for document in row.documents})
        groups[key].rows.append(row)
    return list(groups.values())


def is_asked_for(row: Row, document: str, target: Target, claims: Claims) -> bool:
    """Ask whether a run with this target has to show a row in a document."""
    return (
        row.operation in (target.operations or claims.operations)
        and document in (target.documents or (document,))
        and row.type in (target.types or (row.type,))
        and (target.large or "large" not in row.facets)
    )


def is_in_target(row: Row, target: Target, claims: Claims) -> bool:
    """Ask whether a run with this target has to show a row in any document."""
    return any(is_asked_for(row, document, target, claims) for document in row.documents)


def has_standing(row: Row, document: str, target: Target, claims: Claims) -> bool:
    """Ask whether a row counts for a document: it is in the target, and the operation lists its type."""
    return row.has_listed_type and is_asked_for(row, document, target, claims)


def is_required(row: Row, claims: Claims) -> bool:
    """Ask whether conformity depends on a row: all its facets are claimed."""
    return not claims.find_unclaimed(row.facets)


def list_counted_documents(row: Row, target: Target, claims: Claims) -> tuple[str, ...]:
    """Return the documents for which the verdict on a row counts: operation and type are claimed, too."""
    if not (claims.has_operation(row.operation) and claims.has_type(row.type)):
        return ()
    return tuple(document for document in row.documents if has_standing(row, document, target, claims))


def tests_of(row: Row, verdicts: Mapping[str, Verdict], target: Target, claims: Claims) -> dict[str, Verdict]:
    """Return the tests that a row is, by document: those that `count_tests` counts."""
    required = is_required(row, claims)
    judged = ((document, verdicts[document]) for document in list_counted_documents(row, target, claims))
    return {document: verdict for document, verdict in judged if required or verdict in FAILED_OR_WAIVED}


Blames = Mapping[str, Mapping[str, Blamed]]
"""By row and document, the sentence that a failure breaks."""


def standings_of(
    plan: Plan, groups: Mapping[tuple[str, str], list[SimilarRows]], claims: Claims, blames: Blames
) -> tuple[Standing, ...]:
    """Return the standings of the groups by document and type, in the order of the documents."""
    position = {document: number for number, document in enumerate(plan.suite.spec.documents)}
    return tuple(
        _make_standing(plan, document, type_, group, claims, _list_blamed(group, document, blames))
        for (document, type_), group in sorted(groups.items(), key=lambda entry: (position[entry[0][0]], entry[0][1]))
    )


def _list_blamed(group: list[SimilarRows], document: str, blames: Blames) -> list[Blamed]:
    failing = (row.id for rows in group if rows.verdicts[document] in BAD for row in rows.rows)
    return [blames[row][document] for row in failing if document in blames.get(row, {})]


def _make_standing(
    plan: Plan, document: str, type_: str, group: list[SimilarRows], claims: Claims, blamed: list[Blamed]
) -> Standing:
    rules = plan.suite.spec.rules
    counts: Counter[Verdict] = Counter()
    unclaimed_counts: Counter[Verdict] = Counter()
    shown: dict[str, bool] = {}
    not_claimed: dict[str, None] = {}
    for rows in group:
        row, verdict, number = rows.rows[0], rows.verdicts[document], len(rows.rows)
        rule = rules[row.case.rule]
        if is_required(row, claims):
            counts[verdict] += number
            if document in rule.documents and rule.level not in ("silent", "capacity"):
                shown[rule.id] = shown.get(rule.id, False) or verdict == PASS
        else:
            unclaimed_counts[verdict] += number
            not_claimed.update(dict.fromkeys(sorted(claims.find_unclaimed(row.facets))))
    unshown = tuple(rule for rule, passed in shown.items() if not passed)
    word = _choose_name(counts, unclaimed_counts, unshown, plan.select is None)
    blames, severities = Counter(each.blame for each in blamed), Counter(each.severity for each in blamed)
    return Standing(
        document, plan.suite.spec.documents[document].operation, type_, word, dict(counts), dict(unclaimed_counts),
        {blame: blames[blame] for blame in BLAMES if blames[blame]},
        {severity: severities[severity] for severity in SEVERITIES if severities[severity]},
        unshown, tuple(not_claimed),
    )  # fmt: skip


def _choose_name(
    counts: Mapping[Verdict, int], unclaimed_counts: Mapping[Verdict, int], unshown: tuple[str, ...], whole: bool
) -> StandingName:
    if counts.get(FAIL) or unclaimed_counts.get(FAIL):
        return "does not conform"
    if not counts:
        return "not claimed"
    if any(counts.get(verdict) for verdict in (NOT_RUN, NOT_CLAIMED, ERROR)):  # none says anything of the backend
        return "incomplete"
    if not counts.get(PASS):
        return "nothing shown"
    return "conforms" if whole and not unshown else "incomplete"


def describe_errors(number: int) -> str:
    return f"meet{'s' if number == 1 else ''} an error of the adapter"


def describe_gap(standings: Sequence[Standing]) -> str:
    """Say what keeps standings with the same word from `conforms`."""
    tests = count_tests(standings)
    if errors := tests.get(ERROR):
        return f"{errors:,} of {count_noun(sum(tests.values()), 'test')} {describe_errors(errors)}"
    if not_run := tests.get(NOT_RUN):
        return f"{count_noun(not_run, 'test')} not run"
    if standings[0].name == "nothing shown":
        return "nothing passed"
    if unshown := list(dict.fromkeys(rule for standing in standings for rule in standing.unshown)):
        return f"no pass for the rule{'s' if len(unshown) > 1 else ''} {', '.join(unshown)}"
    return "other cases not run" if standings[0].name == "incomplete" else standings[0].name
