"""The sentences of a conclusion: one a document, with the verdict and its limits."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from importlib import import_module

from ..adapter.claims import NO_REJECTIONS
from ..evidence.results import Target
from ..model import BAD, BLAMES, ERROR, NOT_RUN, PASS, RIGHT, WAIVED, Claims, Result, Suite
from ..model.verdicts import STANDING_NAMES, describe_severity
from ..plan.quick import QUICK, quick_rows
from ..plan.rows import Row
from ..run.row import REPEAT_SECONDS, lacks_calls
from ..system.groups import group_pairs
from ..system.terminal import count_noun
from ..system.text import join_names, join_neighbours, pick_error_line
from .label import count_severities, name_limits
from .standing import SimilarRows, Standing, count_tests, describe_errors, describe_gap

_MIN_REJECTED = 10
"""Rows that have to be rejected before they say something of all calls."""
LARGE_TENSORS = "tensors of more than 2^31 elements"
_NUMBER = r"([1-9][0-9]{0,2}(?:,[0-9]{3}){0,5})"
_FEWER_CALLS = re.compile(f"(.+): {_NUMBER} of {_NUMBER} calls had time in ")
"""In a note of a run: a row, and its calls that were made, as those of a slow backend take long, and those due."""


def note_fewer_calls(row: Row, result: Result) -> Iterator[str]:
    """Note how many calls of a row that passed had time, if it would have had more."""
    if lacks_calls(row, result) and PASS in result.verdicts.values():
        yield f"{row.id}: {result.outcome.call_number:,} of {row.case.times:,} calls had time in {REPEAT_SECONDS} s"


def name_missing_calls(notes: Iterable[str], results: Mapping[str, Result]) -> dict[str, str]:
    """Name, by document, the calls of passing rows that had no time: those of the row that lacks the largest share.

    Under "" is what all documents have of it together: a row is a test in several.
    """
    found: dict[str, list[tuple[int, int]]] = {}
    for row, *numbers in (match.groups() for note in notes if (match := _FEWER_CALLS.match(note))):
        calls, due = (int(number.replace(",", "")) for number in numbers)
        verdicts = results[row].verdicts if row in results else {}
        if passing := [document for document, verdict in verdicts.items() if verdict == PASS]:
            for document in ("", *passing):
                found.setdefault(document, []).append((calls, due))
    names = {}
    for document, some in found.items():
        calls, due = min(some, key=lambda each: each[0] / each[1])
        noun = "test" if document else "row"
        others = f", and some of {count_noun(len(some) - 1, f'other {noun}')}" if len(some) > 1 else ""
        names[document] = (
            f"{due - calls:,} of the {due:,} equal calls of a {noun} ({REPEAT_SECONDS} s were over){others}"
        )
    return names


def write_verdict(document: str, group: Sequence[Standing], target: Target) -> str:
    """Write the verdict on a document, with which its sentence begins."""
    by_word = group_pairs((standing.name, standing) for standing in group)
    parts = []
    for word in STANDING_NAMES:
        types = [standing.type for standing in by_word.get(word, ())]
        if not types or word == "not claimed":
            continue
        is_whole = word == "conforms" and len(types) == len(group) and not target.types
        about = "" if is_whole else f" for {join_names(types)}"
        detail = ""
        if word == "does not conform":
            detail = f" ({describe_failures(group)})"
        elif word == "incomplete":
            detail = f" ({describe_gap(by_word[word])})"
        if waived := count_tests(by_word[word]).get(WAIVED):
            detail += f" with {waived} waived"
        preposition = {"conforms": f"conforms to {document}", "does not conform": f"does not conform to {document}"}
        parts.append(f"{preposition.get(word, f'{document}: {word}')}{about}{detail}")
    return ", ".join(parts) or f"{document}: not claimed"


def describe_failures(group: Iterable[Standing]) -> str:
    """Say how many tests of some standings fail: what they do to a user, then what they break. Empty if none fails.

    `54 of 1,596 tests end the process, 3 give a wrong answer; breaks the text in 30, breaks only our ruling in 27`
    """
    group = list(group)
    tests = count_tests(group)
    does = [(number, describe_severity(severity, number)) for severity, number in count_severities(group).items()]
    if errors := tests.get(ERROR, 0):
        does.append((errors, describe_errors(errors)))
    of_all = f" of {count_noun(sum(tests.values()), 'test')}"
    said = ", ".join(f"{number:,}{'' if place else of_all} {words}" for place, (number, words) in enumerate(does))
    blames = {blame: sum(standing.blames.get(blame, 0) for standing in group) for blame in BLAMES}
    breaks = (f"{blame} in {number:,}" for blame, number in blames.items() if number)
    return "; ".join(filter(None, (said, ", ".join(breaks))))


def describe_failures_in_unclaimed_types(groups: Iterable[SimilarRows]) -> str:
    """Say how many rows fail although their type is not claimed: they crash, hang or damage memory. Empty if none."""
    failing: Counter[str] = Counter()
    for group in groups:
        failing[group.rows[0].type] += len(group.rows)
    if not failing:
        return ""
    types = f"{join_names(sorted(failing))}, which {'are' if len(failing) > 1 else 'is'} not claimed"
    if failing.total() == 1:
        return f"one row in {types}, crashes, hangs or damages memory"
    return f"{failing.total():,} rows in {types}, crash, hang or damage memory"


def note_unclaimed_operations(operations: Iterable[str], claims: Claims, target: Target) -> Iterator[str]:
    """Note the operations that were not tested because the backend does not claim them."""
    asked = target.operations or (() if target.documents else operations)
    if names := [name for name in asked if not claims.has_operation(name)]:
        yield f"not claimed, and so not called: {join_names(names)}"


def note_failures_in_unlisted_types(groups: Iterable[SimilarRows]) -> Iterator[str]:
    """Note failures in types that no document of the row lists. They are not counted."""
    failing: Counter[str] = Counter()
    for group in groups:
        if failed := sum(verdict in BAD for verdict in group.verdicts.values()):
            failing[group.rows[0].type] += failed * len(group.rows)
    if failing:
        types = f"{join_names(sorted(failing))}, which the documents do not list"
        yield f"not counted: {count_noun(failing.total(), 'failure')} in {types}"


def describe_rejections(results: Iterable[Result], failing: Container[str], explained: Container[str]) -> str:
    """Say that (nearly) every legal call is rejected for no known cause, and how; empty if it is not so.

    The cause is then often outside all calls, such as a device that is missing.
    """
    said: Counter[str] = Counter()
    others = 0
    for result in results:
        is_unexplained = result.row in failing and result.row not in explained
        is_answered = any(outcome.kind == "tensor" for outcome in result.outcomes)
        if is_unexplained and result.outcome.only_rejects and not is_answered:
            said[result.outcome.message or "no message"] += 1
        else:
            others += result.row in failing or (result.outcome.kind == "tensor" and PASS in result.verdicts.values())
    if said.total() < max(_MIN_REJECTED, 9 * others):
        return ""
    nearly, mostly = "nearly " * bool(others), "mostly " * (len(said) > 1)
    return f"{nearly}every legal call is rejected, {mostly}with: {pick_error_line(said.most_common(1)[0][0])}"


def note_adapter_errors(results: Iterable[Result]) -> Iterator[str]:
    """Note how often the adapter raised what. No library is blamed for it: this may be its way to reject."""
    raised, bugs = Counter[str](), {kind.__name__ for kind in NO_REJECTIONS}
    for result in results:
        if ERROR in result.verdicts.values():
            raised[(result.outcome.message or "").partition(":")[0]] += 1
    for name, number in raised.most_common():
        if name.isidentifier() and name != "ProtocolError":  # which is the suite's own
            rows = f"{number:,} rows" if number > 1 else "one row"
            advice = "; if the library rejects calls so, add it to `rejections`" * (name not in bugs)
            yield f"the adapter raised {name} in {rows}{advice}"


def note_resumed(results: Iterable[Result]) -> Iterator[str]:
    """Note that rows were called before the run began, if some were."""
    called = [result for result in results if result.was_called]
    if resumed := sum(result.resumed for result in called):
        yield f"{resumed:,} of {len(called):,} rows are from an earlier run that was interrupted"


def describe_limits(
    group: Iterable[Standing], claims: Claims, target: Target, not_run: Sequence[str], answered: Sequence[str]
) -> Iterator[str]:
    """Say what limits the verdict on a document. `answered`: what the adapter answers instead of the library."""
    if limits := name_limits(group, claims):
        yield f"not claimed: {', '.join(join_neighbours(limits))}"
    if target.types:
        yield f"no more than {join_names(target.types)} was asked for"
    if target.shard:
        yield f"only shard {target.shard}"
    if target.row_options:
        yield f"only the cases of {target.row_options}"
    if not_run:
        yield f"not run: {join_names(not_run)}"
    if answered:
        yield f"{join_names(answered)} answered by the adapter"


def note_unclaimed_passes(groups: Iterable[SimilarRows], claims: Claims) -> Iterator[str]:
    """Note the unclaimed facets that the backend could claim, because all their rows pass."""
    passes: dict[str, bool] = {}
    for group in groups:
        row, verdicts = group.rows[0], {*group.verdicts.values()} - {NOT_RUN}
        unclaimed = claims.find_unclaimed(row.facets)
        if len(unclaimed) == 1 and row.operation in claims.operations and verdicts:
            (facet,) = unclaimed
            passes[facet] = passes.get(facet, True) and verdicts <= RIGHT
    if facets := sorted(facet for facet, all_pass in passes.items() if all_pass):
        yield f"not claimed, and every row of it is right: {', '.join(facets)}"


def scope_phrase(suite: Suite) -> str:
    """Return the words that limit a verdict if the suite is not the whole bundled one; else an empty text."""
    if suite.lost:
        return f" as far as {len(suite.cases)} cases go, of a suite that lacks {len(suite.lost)} of the bundled ones"
    if suite.whole:
        return ""
    cases = (
        f"{len(suite.cases)} cases of another suite go" if len(suite.cases) != 1 else "one case of another suite goes"
    )
    return f" as far as {cases}"


def describe_filter(target: Target, cases: int) -> str:
    """Say what -k, --quick or --last-failed chose of all cases, and that this is not enough."""
    if target.row_options != QUICK:
        return f"{target.row_options} chose some rows, and only the whole suite shows conformity"
    few, planted = quick_rows(), len(import_module("conformance.adapters.planted").PLANTED)
    noticed = f"{planted - len(few.unnoticed)} of {planted} planted backends"
    some = f"{len(few.rows)} rows of {len(few.cases)} cases; together with all its drawn rows they notice {noticed}"
    if target.operations or target.documents or target.types:  # fewer of them, and none is drawn
        some = f"those of {len(few.rows)} rows that are asked for"
    return f"{QUICK}: {some}; a full run has {cases:,} cases"


def describe_missing_cases(suite: Suite) -> str:
    number = f"{len(suite.lost)} cases are" if len(suite.lost) > 1 else "one case is"
    return f"{number} missing from the bundled suite, first {suite.lost[0]}; install the suite again"
