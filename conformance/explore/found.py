"""A call that went wrong: the rule that it went against, and the case that shows it, ready to paste into cases/."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from ..model import Case, Expected, Meaning, Operand, Result, Step
from ..plan.rows import Row
from ..plan.steps import RowStep

_FLAWED = ("fail", "error")
_NOT_DUE: Mapping[str, str] = {
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
}
"""What is wrong with a call whatever it means → the rule that it goes against."""
_ABOUT_DIMS = ("wrong dims", "wrong volume", "refused a legal call", "unsupported", "truncated", "too many elements")


def flawed(result: Result) -> bool:
    """Whether a row fails or errs in some document."""
    return any(verdict in _FLAWED for verdict in result.verdicts.values())


def rule_against(row: Row, result: Result) -> str:
    """The rule that a row's failure goes against: the one a person would file the case under."""
    at = int(result.outcome.get("step", 1)) - 1
    task, step = row.steps[at], row.case.steps[at]
    meaning = _judged_by(task, result)
    if meaning.kind == "illegal":
        return meaning.rules[0]
    diagnosis = result.diagnosis or ""
    if diagnosis in _NOT_DUE:
        return _NOT_DUE[diagnosis]
    if meaning.kind == "unspecified" and meaning.rules:
        return meaning.rules[0]
    if at:
        return "each-call-alone"
    if len(step.shapes) > 1:
        return "nodes-compose"
    if diagnosis in _ABOUT_DIMS:
        return "declared-output" if row.case.declared is not None else _entries_rule(step)
    return "layout-is-no-content" if step.layout != "dense" else "same-content"


def _judged_by(task: RowStep, result: Result) -> Meaning:
    """What the call means in the first document in which it failed."""
    failed = {document for document, verdict in result.verdicts.items() if verdict in _FLAWED}
    for judged in task.meanings:
        if failed & set(judged.documents):
            return judged.meaning
    return task.meanings[0].meaning


def _entries_rule(step: Step) -> str:
    """The rule about the most particular entry of shape."""
    (shape,), (special_zero,) = step.shapes, step.special_zero
    if 0 in shape:
        return "zero-copies" if special_zero else "zero-literal"
    if -1 in shape:
        return "infer-keeps-count"
    return "literal-lengths" if shape else "dst-has-shape-rank"


# ── as a case ─────────────────────────────────────────────────────────────────────────────────────


def case_text(case: Case, rule: str, row: Row, fact: str) -> str:
    """A case as YAML, its keys in the order of case files; what is expected is what the contracts say."""
    first, *later = case.steps
    lines = [f"id: {_name(fact)}", f"rule: {rule}"]
    if not later:
        lines += [f"{key}: {value}" for key, value in _call(first).items()]
    for key, value in _form(case).items():
        lines.append(f"{key}: {value}")
    if later:
        lines += ["steps:"]
        for step, task in zip(case.steps, row.steps, strict=True):
            inside = {**_call(step), "expect": _expected(step, task)}
            written = ", ".join(f"{key}: {_quoted(value)}" for key, value in inside.items())
            lines.append(f"  - {{{written}}}")
    else:
        lines.append(f"expect: {_expected(first, row.steps[0])}")
    return "\n".join(f"{'    ' if number else '  - '}{line}" for number, line in enumerate(lines)) + "\n"


def _name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _call(step: Step) -> dict[str, str]:
    parts = {
        "src": f"{step.src_type}{list(step.src)}",
        "shape": str(list(step.shapes[0])),
        "special_zero": _flag(step.special_zero[0]),
    }
    if len(step.shapes) > 1:
        links = zip(step.shapes[1:], step.special_zero[1:], strict=True)
        written = ", ".join(f"{{shape: {list(shape)}, special_zero: {_flag(zero)}}}" for shape, zero in links)
        parts["chain"] = f"[{written}]"
    if step.layout != "dense":
        parts["layout"] = step.layout
    if step.in_place:
        parts["in_place"] = "true"
    if step.bits is not None:
        parts["bits"] = f'"{step.bits}"'
    return parts


def _form(case: Case) -> dict[str, str]:
    parts = {}
    if case.declared is not None:
        known = case.declared if isinstance(case.declared, tuple) else ()
        entries = ", ".join("null" if length is None else str(length) for length in known)
        parts["declared"] = f"[{entries}]" if isinstance(case.declared, tuple) else case.declared
    if case.shape_type is not None:
        parts["shape_type"] = case.shape_type
    if case.shape_rank != 1:
        parts["shape_rank"] = str(case.shape_rank)
    if case.dst_type is not None:
        parts["dst_type"] = case.dst_type
    if case.attributes:
        parts["attributes"] = _flow({name: _operand(value) for name, value in case.attributes.items()})
    for key, counts in (("inputs", case.inputs), ("outputs", case.outputs)):
        if counts:
            parts[key] = _flow({name: "missing" if count == 0 else str(count) for name, count in counts.items()})
    return parts


def _flow(parts: Mapping[str, str]) -> str:
    return f"{{{', '.join(f'{key}: {value}' for key, value in parts.items())}}}"


def _operand(operand: Operand | None) -> str:
    if operand is None:
        return "missing"
    values = ", ".join(map(_value, operand.values or ()))
    return f"{{type: {operand.type}{'[]' if operand.dims else ''}, values: [{values}]}}"


def _value(value: Any) -> str:
    """A value of an attribute; text is in double quotes, with every character escaped that is no plain one."""
    if isinstance(value, str):
        plain = (c if c.isprintable() and c not in '"\\' else f"\\U{ord(c):08x}" for c in value)
        return f'"{"".join(plain)}"'
    return _flag(value) if isinstance(value, bool) else str(value)


def _flag(value: Any) -> str:
    return "true" if value else "false"


def _quoted(value: str) -> str:
    return f'"{value}"' if value[-1] == "]" and value[0].isalpha() else value


def _expected(step: Step, task: RowStep) -> str:
    """One expectation, or a map by document where they part."""
    by_document = {d: _one(step, judged.meaning) for judged in task.meanings for d in judged.documents}
    return written_by_document(by_document)


def written_by_document(by_document: Mapping[str, str]) -> str:
    """The commonest expectation for `*`, the others under their documents."""
    (common, _), *others = Counter(by_document.values()).most_common()
    if not others:
        return common
    parts = {document: _quoted(each) for document, each in by_document.items() if each != common}
    return _flow({**parts, '"*"': _quoted(common)})


def _one(step: Step, meaning: Meaning) -> str:
    if meaning.kind == "legal":
        return f"{step.src_type}{list(meaning.dst or ())}"
    return "reject" if meaning.kind == "illegal" else "unspecified"


def expected_of(rows: Iterable[Row], at: int) -> dict[str, str]:
    """What each document of several operations says of a step."""
    found: dict[str, str] = {}
    for row in rows:
        for judged in row.steps[at].meanings:
            found |= dict.fromkeys(judged.documents, _one(row.case.steps[at], judged.meaning))
    return found


def call_case(
    name: str, rule: str, src_type: str, call: tuple[tuple[int, ...], tuple[int, ...], bool], layout: Any = "dense"
) -> Case:
    """The case of one plain call."""
    from ..model import Place

    src, shape, special_zero = call
    step = Step(src_type, src, (shape,), (special_zero,), {"*": Expected("unspecified")}, None, layout)
    return Case(name, "found.yaml", rule, (step,), Place("found.yaml", 1))
