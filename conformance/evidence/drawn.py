"""The drawn rows of a run: readers draw those again that are in the evidence, as they failed."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from ..draw.nonce import plan_under_nonce
from ..model import EarlierSuite, Suite
from ..plan.quick import QUICK, quick_rows
from ..plan.rows import SEED, Plan, parse_drawn_id
from ..plan.select import BadExpression, select_rows
from ..system.terminal import count_noun
from .results import Evidence, InvalidEvidence


def plan_of_run(plan: Plan, evidence: Evidence, path: Path | str = "the evidence") -> Plan:
    """Return the plan of a run: that of its suite, under its nonce, the rows that it chose, and its drawn rows.

    InvalidEvidence if this suite draws other ones.
    """
    plan = plan_under_nonce(plan_of_suite(plan, evidence), evidence.header.get("nonce"))
    try:
        plan = select_rows(plan, evidence.target.select)
    except BadExpression as bad:
        raise InvalidEvidence(f"{path}: -k: {bad}; the file was changed") from None
    wanted = [result.row for result in evidence.results if parse_drawn_id(result.row)]
    there = {row.id for row in plan.rows} if wanted else set()
    wanted = [row_id for row_id in wanted if row_id not in there]
    if not wanted:
        return plan
    from ..draw.rows import Drawn, RowDrawer

    drawn = Drawn(**evidence.header.get("drawn", {"seed": SEED, "rows": 0}), select=evidence.target.select)
    drawer, rows = RowDrawer(plan.suite.spec, evidence.claims, plan.suite.combinations), []
    for row_id in wanted:
        seed, number = parse_drawn_id(row_id) or (0, 0)
        row = drawer.row(seed, number) if seed == drawn.seed and number in drawn.numbers else None
        if row is None or row.id != row_id:
            raise InvalidEvidence(
                f"{path}: {row_id} is not what this suite draws; read it with the version that wrote it"
            )
        rows.append(row)
    return replace(plan, rows=(*plan.rows, *rows))


def plan_of_suite(plan: Plan, evidence: Evidence) -> Plan:
    """Return the plan that the suite of a run had: with fewer rows if cases or combinations were added since."""
    return _as_of(plan, suite_of_run(plan.suite, evidence))


@lru_cache(2)
def _as_of(plan: Plan, earlier: EarlierSuite) -> Plan:
    return plan if earlier == EarlierSuite() else plan.as_of(earlier)


def suite_of_run(suite: Suite, evidence: Evidence) -> EarlierSuite:
    """Return what the suite of a run lacks; nothing if it is another one."""
    return suite.find_earlier(evidence.suite_digest) or EarlierSuite()


def count_added(plan: Plan, evidence: Evidence) -> str:
    """Count what was added to the suite since a run, in words; an empty text if nothing was."""
    earlier = suite_of_run(plan.suite, evidence)
    if earlier == EarlierSuite():
        return ""
    from ..draw.rows import count_drawn_rows

    drawn = count_drawn_rows() - count_drawn_rows(earlier.combinations)
    numbers = ((len(earlier.lacks), "case"), (drawn, "drawn row"))
    return " and ".join(count_noun(number, what) for number, what in numbers if number)


def describe_drawn(evidence: Evidence, suite: Suite) -> str | None:
    """Say how many drawn rows were called, what met in them and how many failed; None if none were."""
    if "drawn" not in evidence.footer:
        return None
    from ..draw.factors import Factors

    drawn = evidence.drawn
    words = count_noun(drawn.called, "drawn row")
    words += f", {drawn.waived:,} waived" if drawn.waived else ""
    if drawn.failed:
        held = sum(parse_drawn_id(result.row) is not None for result in evidence.results)
        rest = "; the first of each kind is a test" if drawn.failed + drawn.waived > held else ""
        return f"{words}, {drawn.failed:,} failed{rest}"
    met = ""
    if drawn.called and _reached_the_end(evidence) and not drawn.waived and not evidence.target.shard:
        if evidence.target.select == QUICK:
            met = "{met:,} of {of:,} pairs of values of factors met".format(**quick_rows().pairs)
        elif drew_all(evidence, suite) and suite_of_run(suite, evidence).combinations is None:
            met = f"every three of {len(next(iter(Factors(suite.spec).designs)).threes)} factors met"
    return f"{words}, none failed" + (f": {met}, as far as they are claimed" if met else "")


def name_missed_rows(evidence: Evidence, suite: Suite) -> str | None:
    """Name the drawn rows that a whole run would have called, if this one lacks some; None if one failed or all ran."""
    if "drawn" not in evidence.footer:
        return "drawn rows"
    return None if evidence.drawn.failed or drew_all(evidence, suite) else "some drawn rows"


def drew_all(evidence: Evidence, suite: Suite) -> bool:
    """Ask whether a run was of every drawn row of its suite, those of other shards too, and reached the end."""
    if not evidence.footer.get("drawn"):
        return False
    from ..draw.rows import count_drawn_rows  # slow to import

    due = count_drawn_rows(suite_of_run(suite, evidence).combinations)
    return _reached_the_end(evidence) and evidence.rows_to_draw >= due


def _reached_the_end(evidence: Evidence) -> bool:
    """Ask whether each drawn row was called, or is of another shard or waived; not so if the backend was given up."""
    return evidence.drawn.called + evidence.drawn.not_called == evidence.rows_to_draw
