"""Choose the exit code of a run from its standings, and say why; conclude.py may put a doubt in its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from ..adapter import FAMILIES
from ..evidence.results import Target
from ..model import ERROR, NOT_CLAIMED, NOT_RUN, PASS, WAIVED, Claims, covers
from ..model.verdicts import count_failed, describe_severity
from ..plan.quick import QUICK
from ..plan.rows import Plan, explain_drawn
from ..plan.select import nearest
from ..system.exit_codes import CONFORMS, FAILS, INCOMPLETE, OVERDUE
from ..system.terminal import count_noun
from ..system.text import join_names, suggest
from . import sentences
from .label import count_severities
from .standing import SimilarRows, Standing, count_tests, describe_errors, describe_gap


def choose_exit_code(
    standings: tuple[Standing, ...], groups: Mapping[tuple[str, str], list[SimilarRows]],
    claims: Claims, target: Target, overdue: tuple[str, ...], unclaimed_failures: str, plan: Plan,
) -> tuple[int, str]:  # fmt: skip
    """Choose the exit code of a whole suite, and say why.

    `overdue`: waivers that expired or are stale. `unclaimed_failures`: a sentence on failures in unclaimed types.
    """
    tests = Counter(count_tests(standings))
    if failed := count_failed(tests):
        every = count_noun(tests.total(), "test")
        number = count_noun(failed, "test") if target.row_options else f"{failed:,} of {every}"
        if failed == tests[ERROR]:
            return FAILS, f"{number} {describe_errors(failed)}; nothing is known of the backend there"
        number += " fails" if failed == 1 else " fail"
        for severity, some in count_severities(standings).items():  # the worst is enough
            who = "it" if failed == 1 else "all of them" if some == failed else f"{some:,} of them"
            errors = f", {tests[ERROR]:,} {describe_errors(tests[ERROR])}" if tests[ERROR] else ""
            is_part = target.last_failed or target.shard  # which leaves rows out, as it was asked to
            left = 0 if is_part else tests[NOT_RUN]
            not_run = f"; {left:,} {'was' if left == 1 else 'were'} not run" if left else ""
            return FAILS, f"{number}: {who} {describe_severity(severity, some)}{errors}{not_run}"
        return FAILS, number
    if unclaimed_failures:
        return FAILS, unclaimed_failures
    if overdue:
        return OVERDUE, "; ".join(overdue)
    if target.shard:
        return INCOMPLETE, f"incomplete: shard {target.shard} of the rows; `conformance report` joins the shards"
    nothing_ran = all(rows.verdicts[document] == NOT_RUN for (document, _), group in groups.items() for rows in group)
    if (target.last_failed or target.select == QUICK) and nothing_ran:
        return INCOMPLETE, f"incomplete: nothing ran; {target.row_options} chooses no row of the target"
    if target.select and nothing_ran:
        return INCOMPLETE, f"incomplete: nothing ran; {_explain_no_row(target.select, plan)}"
    if target.row_options:
        return INCOMPLETE, f"incomplete: {sentences.describe_filter(target, len(plan.suite.cases))}"
    if unmet := list(_find_unmet(standings, groups, claims, target)):
        return INCOMPLETE, f"incomplete: asked for and not shown: {', '.join(unmet)}"
    if gaps := [standing for standing in standings if standing.name not in ("conforms", NOT_CLAIMED)]:
        return INCOMPLETE, f"incomplete: {gaps[0].document} for {gaps[0].type}: {describe_gap(gaps[:1])}"
    if not any(standing.name == "conforms" for standing in standings):
        return INCOMPLETE, "incomplete: nothing was shown for any document and type"
    waived = tests[WAIVED]
    asked = [*target.operations, *target.documents, *target.types]
    only = f", asked for {join_names(asked)} only" if asked else ""
    return CONFORMS, f"the whole target conforms{only}" + (
        f", with {count_noun(waived, 'test')} waived" if waived else ""
    )


def _explain_no_row(select: str, plan: Plan) -> str:
    """Say why -k leaves no row to call, and what helps."""
    if plan.rows and all(row.case.large for row in plan.rows):
        return f"the rows of -k {select!r} are large; add --large"
    hint = explain_drawn(select) or suggest(nearest(select, plan.suite.cases), "see `conformance list cases`")
    return f"-k {select!r} is in no row of the target; {hint}"


def _find_unmet(
    standings: Sequence[Standing], groups: Mapping[tuple[str, str], list[SimilarRows]], claims: Claims, target: Target
) -> Iterator[str]:
    """Find what --require or the target demands and the run does not show.

    A facet is shown if it is claimed and a row that needs it passes; its family, if all of it is claimed.
    """
    yield from (operation for operation in target.operations if operation not in claims.operations)
    conforming = {name for each in standings if each.name == "conforms" for name in (each.document, each.type)}
    yield from (name for name in (*target.documents, *target.types) if name not in conforming)
    passing = (rows.rows for (document, _), some in groups.items() for rows in some if rows.verdicts[document] == PASS)
    shown = {facet for rows in passing for row in rows for facet in row.facets} if target.require else set()
    for demand in target.require:
        about = [s for s in standings if demand in (s.document, s.type, s.operation)]
        if demand.partition(":")[0] in FAMILIES:
            is_left_out = any(covers(name, demand) or name.partition(":")[0] == demand for name in claims.not_claimed)
            if is_left_out or not any(covers(demand, facet) for facet in shown):
                yield demand
        elif not about or any(standing.name != "conforms" for standing in about):
            yield demand
