"""The label that sums up a result, and what it is made from: severities and limits."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ..model import ERROR, WAIVED, Claims, covers
from ..model.verdicts import SEVERITIES, Label, Severity
from ..system.exit_codes import CONFORMS, FAILS, OVERDUE
from .standing import Standing, count_tests


def label_of(standings: Collection[Standing], claims: Claims, exit_code: int = CONFORMS) -> Label:
    """Name the result of some standings by the worst that failed; `exit_code`: that of the run, if it is about all."""
    words = {standing.name for standing in standings}
    if "does not conform" in words:
        return next(iter(count_severities(standings)))
    if count_tests(standings).get(ERROR):
        return "adapter errs"
    if exit_code == FAILS:
        return "fails outside its claims"
    if exit_code == OVERDUE and words != {"not claimed"}:
        return "waiver overdue"
    if "nothing shown" in words:
        return "nothing shown"
    if "incomplete" in words or ("conforms" in words and exit_code != CONFORMS):
        return "incomplete"
    if "conforms" in words:
        limited = name_limits(standings, claims) or claims.answers_special_zero or count_tests(standings).get(WAIVED)
        return "conforms, limited" if limited else "conforms"
    return "not claimed" if words or not claims.operations else "not run"


def count_severities(standings: Collection[Standing]) -> dict[Severity, int]:
    """Count the tests of some standings that fail by what they do to a user, the worst first."""
    numbers = {each: sum(standing.severities.get(each, 0) for standing in standings) for each in SEVERITIES}
    return {severity: number for severity, number in numbers.items() if number}


def name_limits(group: Iterable[Standing], claims: Claims) -> list[str]:
    """Name the element types of some standings that are not claimed, then the other facets, as the claims name them."""
    group = list(group)
    types = dict.fromkeys(f"type:{standing.type}" for standing in group if not claims.has_type(standing.type))
    facets = {facet for standing in group for facet in standing.not_claimed}
    named = [name for name in claims.not_claimed if any(covers(name, facet) for facet in facets)]
    return [*types, *(name for name in named if name.partition(":")[0] != "type")]
