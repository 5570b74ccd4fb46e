"""The rule that a failure goes against."""

from __future__ import annotations

from collections.abc import Mapping

from ..draw.rows import entries_rule
from ..model import BAD, Result, fails
from ..plan.rows import Row

_NEVER_DUE: Mapping[str, str] = {
    "src changed": "src-is-kept",
    "shape changed": "src-is-kept",
    "wrote outside src": "src-is-kept",
    "answer changed later": "each-call-alone",
    "wrong type": "same-type",
    "crash": "refuse-illegal-calls",
    "timeout": "refuse-illegal-calls",
    "adapter error": "refuse-illegal-calls",
    "column-major order": "row-major-order",
    "same elements in another order": "row-major-order",
    "elements in the wrong places": "row-major-order",
}
"""Diagnosis → rule, for faults that no meaning of the call excuses."""
_ABOUT_DIMS = ("wrong dims", "wrong volume", "refused a legal call", "unsupported", "truncated", "too many elements")


def is_failure(result: Result) -> bool:
    return fails(result.verdicts.values())


def rule_against(row: Row, result: Result) -> str:
    """Find the rule that a row's failure goes against: the one a person would file the case under."""
    at = result.step
    meanings, step = row.steps[at].meanings, row.case.steps[at]
    failed = {document for document, verdict in result.verdicts.items() if verdict in BAD}
    meaning = next((each for each in meanings if failed & {*each.documents}), meanings[0]).meaning
    if meaning.kind == "illegal":
        return meaning.rules[0]
    diagnosis = result.diagnosis or ""
    if diagnosis in _NEVER_DUE:
        return _NEVER_DUE[diagnosis]
    if meaning.kind == "unspecified" and meaning.rules:
        return meaning.rules[0]
    if at:
        return "each-call-alone"
    if len(step.shapes) > 1:
        return "nodes-compose"
    if diagnosis in _ABOUT_DIMS:
        return "declared-output" if row.case.declared is not None else entries_rule(step)
    return "layout-is-no-content" if step.layout != "dense" else "same-content"
