"""The label of a result: the one name that landing, report, certificate, terminal, badge and JUnit give it."""

from __future__ import annotations

from collections.abc import Collection

from ..model import ERROR, WAIVED, Claims
from ..model.verdicts import Label
from ..system.exit_codes import CONFORMS, FAILS, OVERDUE
from .sentences import count_severities, name_limits
from .standing import Standing, count_tests


def label_of(standings: Collection[Standing], claims: Claims, exit_code: int = CONFORMS) -> Label:
    """Name the result of some standings by the worst that failed; `exit_code`: that of the run, if it is about all."""
    words = {standing.word for standing in standings}
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
    return "not claimed" if words else "not run"
