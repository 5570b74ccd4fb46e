"""Draw the drawn rows of a run again, and say which failures are of one kind: evidence holds the first of each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import tee

from ..evidence.drawn import drew_all, suite_of_run
from ..evidence.results import Evidence, InvalidEvidence, Target
from ..model import Result, Suite
from ..model.verdicts import FAILED_OR_WAIVED
from ..plan.rows import Plan, Row, parse_drawn_id
from .waive import find_forbidding


def find_comparable(plan: Plan, old: Evidence, new: Evidence) -> frozenset[str]:
    """Find the drawn rows that can be compared: one run holds a failure, and both show how the call ended.

    Another suite, other claims, another row of -k or fewer calls can make one of the runs call other rows.
    """
    both = (old, new)
    held = [{result.row for result in each.results if parse_drawn_id(result.row)} for each in both]
    if not any(held) or not all(each.can_be_judged_by(plan.suite) for each in both):
        return frozenset()
    rows, again = tee(_draw_rows(plan, old))
    old_called = _pick_called(old, rows, plan.suite)
    calls = [
        (each.claims, each.header.get("drawn"), each.target.select, suite_of_run(plan.suite, each).combinations)
        for each in both
    ]
    draws_the_same = calls[0] == calls[1]
    new_called = _pick_called(new, again if draws_the_same else _draw_rows(plan, new), plan.suite)
    same = {id_ for id_, row in old_called.items() if id_ in new_called and new_called[id_].case == row.case}
    unknown = _find_unknown(old, old_called, held[0]) | _find_unknown(new, new_called, held[1])
    return frozenset((same & (held[0] | held[1])) - unknown)


def make_failure_key(row: Row, result: Result) -> tuple[str | None, str, tuple[str, ...]]:
    """Return what failures of a kind have in common, waived or not. Evidence holds the first drawn row of each."""
    failing = tuple(document for document, verdict in result.verdicts.items() if verdict in FAILED_OR_WAIVED)
    return result.diagnosis, row.case.rule, failing


def draw_called_rows(plan: Plan, evidence: Evidence) -> dict[str, Row]:
    """Draw again the rows that a run called, in their order; InvalidEvidence if it lacks some and does not say so."""
    return _pick_called(evidence, _draw_rows(plan, evidence), plan.suite)


def _draw_rows(plan: Plan, evidence: Evidence) -> Iterator[Row]:
    """Yield the rows one by one: a run may end long before the last one that was asked for."""
    if "drawn" in evidence.footer:
        from ..draw.rows import Drawn, RowDrawer  # slow to import

        drawn = Drawn(**evidence.header["drawn"], select=evidence.target.select)
        combinations = suite_of_run(plan.suite, evidence).combinations
        yield from RowDrawer(plan.suite.spec, evidence.claims, combinations).rows(drawn)


def _pick_called(evidence: Evidence, rows: Iterable[Row], suite: Suite) -> dict[str, Row]:
    if "drawn" not in evidence.footer:
        return {}
    is_whole = drew_all(evidence, suite) and not evidence.drawn.failed
    shards = evidence.header.get("shards") or [{"shard": evidence.target.shard, "drawn": evidence.drawn.called}]
    left = {Target(shard=shard["shard"]): shard.get("drawn", 0) for shard in shards}
    called: dict[str, Row] = {}
    for number, row in enumerate(rows):
        shard = next((each for each in left if each.has_in_shard(number)), None)
        if shard is None or find_forbidding(evidence.header, row) is not None:
            continue
        if left[shard]:
            left[shard] -= 1
            called[row.id] = row
        elif is_whole:
            what = "the evidence says that all drawn rows were called"
            raise InvalidEvidence(f"{what}, and {row.id} was not; run again")
        if not (is_whole or any(left.values())):
            break
    return called


def _find_unknown(evidence: Evidence, called: Mapping[str, Row], held: set[str]) -> set[str]:
    """Find the called rows that may have failed although the evidence does not hold them.

    It holds the first failure of each kind. So an unknown row comes after one that is held and is about the same rule.
    """
    if evidence.drawn.failed + evidence.drawn.waived == len(held):
        return set()
    unknown: set[str] = set()
    rules: set[str] = set()
    for id_, row in called.items():
        if id_ in held:
            rules.add(row.case.rule)
        elif row.case.rule in rules:
            unknown.add(id_)
    return unknown
