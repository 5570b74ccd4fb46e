"""Calls that fail as cases in YAML, ready to paste into cases/, and the rule that a failure goes against."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..draw.calls import DrawnCall, step_of
from ..draw.rows import find_entries_rule
from ..model import BAD, Case, Operand, Place, Result, Step
from ..model.cases import list_given_keys
from ..plan.rows import Row
from ..plan.steps import RowStep

_PLAIN = re.compile(r"[a-z][a-z0-9-]*")
"""Texts that need no quotes."""
_NEVER_DUE: Mapping[str, str] = {
    "src changed": "src-is-kept",
    "shape changed": "src-is-kept",
    "wrote outside src": "src-is-kept",
    "answer changed later": "each-call-alone",
    "wrong type": "same-type",
    "column-major order": "row-major-order",
    "strides of dst ignored": "layout-is-no-content",
    "same elements in another order": "row-major-order",
    "elements in the wrong places": "row-major-order",
}
"""Diagnosis → rule, for faults that no meaning of the call excuses."""
_ABOUT_DIMS = ("wrong dims", "wrong volume", "truncated", "too many elements")


def find_rule_against(row: Row, result: Result) -> str:
    """Find the rule that a row's failure goes against: the one a person would file the case under.

    A call without an answer goes against what the call is about, however it ended.
    """
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
    if at or row.case.concurrent > 1:
        return "each-call-alone"
    if len(step.shapes) > 1:
        return "nodes-compose"
    if diagnosis in _ABOUT_DIMS or result.outcome_of(at).kind != "tensor":
        return "declared-output" if row.case.declared is not None else find_entries_rule(step)
    return "layout-is-no-content" if step.layout != "dense" else "same-content"


def write_case_text(row: Row, rule: str, fact: str) -> str:
    """Write the case of a row as YAML, its keys in the order of case files; the contracts say what is expected."""
    first, *later = row.case.steps
    name = re.sub(r"[^a-z0-9]+", "-", fact.lower()).strip("-")
    lines = [f"id: {name}", f"rule: {rule}"]
    if not later:
        lines += [f"{key}: {value}" for key, value in _call(first).items()]
    lines += [f"{key}: {value}" for key, value in _write_form(row.case).items()]
    if later:
        lines += ["steps:"]
        for step, row_step in zip(row.case.steps, row.steps, strict=True):
            inside = {**_call(step), "expect": _write_expectation(step, row_step)}
            written = ", ".join(f"{key}: {_quote(value)}" for key, value in inside.items())
            lines.append(f"  - {{{written}}}")
    else:
        lines.append(f"expect: {_write_expectation(first, row.steps[0])}")
    return "\n".join(f"{'    ' if number else '  - '}{line}" for number, line in enumerate(lines)) + "\n"


def _call(step: Step) -> dict[str, str]:
    parts = {
        "src": f"{step.src_type}{list(step.src)}",
        "shape": str(list(step.shapes[0])),
        "special_zero": _write_flag(step.special_zero[0]),
    }
    if len(step.shapes) > 1:
        links = zip(step.shapes[1:], step.special_zero[1:], strict=True)
        written = ", ".join(f"{{shape: {list(shape)}, special_zero: {_write_flag(zero)}}}" for shape, zero in links)
        parts["chain"] = f"[{written}]"
    return parts | _write_plain_keys(step)


def _write_form(case: Case) -> dict[str, str]:
    parts = {}
    if isinstance(case.declared, tuple):
        parts["declared"] = f"[{', '.join('null' if length is None else str(length) for length in case.declared)}]"
    elif case.declared is not None:
        parts["declared"] = case.declared
    parts |= _write_plain_keys(case)
    if case.attributes:
        parts["attributes"] = _write_flow({name: _write_operand(value) for name, value in case.attributes.items()})
    for key, counts in (("inputs", case.inputs), ("outputs", case.outputs)):
        if counts:
            parts[key] = _write_flow({name: "missing" if count == 0 else str(count) for name, count in counts.items()})
    return parts


def _write_plain_keys(part: Case | Step) -> dict[str, str]:
    return {
        key.name: value if _PLAIN.fullmatch(str(value)) else _write_value(value) for key, value in list_given_keys(part)
    }


def _write_flow(parts: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{key}: {value}' for key, value in parts.items())}}}"


def _write_operand(operand: Operand | None) -> str:
    if operand is None:
        return "missing"
    values = ", ".join(map(_write_value, operand.values or ()))
    return f"{{type: {_quote(operand.type + '[]' * bool(operand.dims))}, values: [{values}]}}"


def _write_value(value: Any) -> str:
    """Write the value of an attribute; text is in double quotes, with unprintable characters escaped."""
    if isinstance(value, str):
        plain = (c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in value)
        return f'"{"".join(plain)}"'
    return _write_flag(value) if isinstance(value, bool) else str(value)


def _write_flag(value: Any) -> str:
    return "true" if value else "false"


def _quote(value: str) -> str:
    return f'"{value}"' if value[-1] == "]" and value[0].isalpha() else value


def _write_expectation(step: Step, row_step: RowStep) -> str:
    return write_expectations(
        {
            document: write_expectation(step.src_type, judged.meaning.kind, judged.meaning.dst)
            for judged in row_step.meanings
            for document in judged.documents
        }
    )


def write_expectations(by_document: Mapping[str, str]) -> str:
    """Write one expectation, or the commonest for `*` and the others under their documents."""
    (common, _), *others = Counter(by_document.values()).most_common()
    if not others:
        return common
    parts = {document: _quote(text) for document, text in by_document.items() if text != common}
    return _write_flow({**parts, '"*"': _quote(common)})


def write_expectation(src_type: str, kind: str, dst: Sequence[object] | None) -> str:
    if kind == "legal":
        return f"{src_type}{list(dst or ())}"
    return "reject" if kind == "illegal" else "unspecified"


def make_case_of_call(
    name: str, rule: str, src_type: str, call: tuple[tuple[int, ...], tuple[int, ...], bool], layout: Any = "dense"
) -> Case:
    step = step_of(src_type, [DrawnCall(*call)], layout=layout)
    return Case(name, "found.yaml", rule, (step,), Place("found.yaml", 1))
