"""Rules, findings, documents, operations and meanings as plain data: printed by --json and laid out by the commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..meaning.contract import Contract
from ..model import Call, Document, Finding, Form, Meaning, Operation, Origin, Pointer, Rule, Spec

FORMS = ("requires", "where", "gives", "ensures", "when")


def contract_of(rule: Rule) -> dict[str, str]:
    """Return the rule's expressions by their form."""
    expressions = ((form, getattr(rule, form)) for form in FORMS)
    return {form: expression.text for form, expression in expressions if expression}


def pointers_in(pointers: Iterable[Pointer], document: str) -> list[dict[str, Any]]:
    """Return line and words of the pointers into one document."""
    return [{"line": each.line, "words": each.words} for each in pointers if each.document == document]


def standing(rule: Rule, document: str) -> dict[str, Any]:
    """Say how a document treats a rule, the reason if that is our ruling, and the lines."""
    kind, reason = rule.standing(document), None
    if kind == "our ruling":
        reason = rule.decided_for.get(rule.source_of(document), rule.because)
    elif kind == "stated, as we read it":
        reason = f"see the finding {rule.as_read[rule.source_of(document)]}"
    return {"standing": kind, "reason": reason, "at": pointers_in(rule.stated, document)}


def of_rule(spec: Spec, rule: Rule) -> dict[str, Any]:
    """Return everything about a rule."""
    return {
        "rule": rule.id,
        "level": rule.level,
        "sentence": rule.sentence,
        "contract": contract_of(rule),
        "implied": rule.implied,
        "because": rule.because,
        "place": str(rule.place),
        "documents": {document: standing(rule, document) for document in spec.documents},
        "findings": [each.id for each in spec.findings.values() if rule.id in each.rules],
    }


def of_finding(spec: Spec, finding: Finding, contracts: Mapping[str, Contract]) -> dict[str, Any]:
    """Return everything about a finding; its example comes with its meaning in every document."""
    example = None
    if finding.example:
        call = Call(*finding.example)
        example = {"call": of_call(call), "meanings": meanings(spec, call, contracts)}
    return {
        "finding": finding.id,
        "kind": finding.kind,
        "weight": finding.weight,
        "about": finding.about,
        "documents": {name: at for name in spec.documents if (at := pointers_in(finding.at, name))},
        "readings": list(finding.readings),
        "follows": finding.follows,
        "ruling": finding.ruling,
        "rules": list(finding.rules),
        "example": example,
        "place": str(finding.place),
    }


def of_document(spec: Spec, document: Document) -> dict[str, Any]:
    """Return everything about a document."""
    stands = {rule.id: standing(rule, document.id) for rule in spec.rules.values()}
    return {
        "document": document.id,
        "operation": document.operation,
        "title": document.title,
        "edition": document.edition,
        "licence": document.licence,
        "origin": _of_origin(document.origin) if document.origin else None,
        "newer": [page._asdict() for page in document.newer],
        "file": document.file,
        "lacks": document.lacks,
        "sha256": document.sha256,
        "lines": document.lines,
        "statements": document.statements,
        "rules": {name: each for name, each in stands.items() if each["standing"] != "not bound"},
        "findings": [each.id for each in spec.findings.values() if pointers_in(each.at, document.id)],
        "prose": [{"line": p.pointer.line, "words": p.pointer.words, "reason": p.reason} for p in document.prose],
        "place": str(document.place),
    }


def _of_origin(origin: Origin) -> dict[str, Any]:
    return {**origin._asdict(), "in_force": origin.in_force._asdict() if origin.in_force else None}


def of_operation(operation: Operation) -> dict[str, Any]:
    """Return everything about an operation: its whole entry in operations.yaml."""
    entry = {key: value for key, value in operation.detail.items() if key != "id"}
    return {"operation": operation.id, **entry, "place": str(operation.place)}


# ── calls and what they mean ──────────────────────────────────────────────────────────────────────


def of_call(call: Call) -> dict[str, Any]:
    """Return a call, and its form if it has one."""
    data: dict[str, Any] = {"src": list(call.src), "shape": list(call.shape), "special_zero": call.special_zero}
    if call.form is not None:
        data["form"] = {name: list(v) if isinstance(v, tuple) else v for name, v in call.form._asdict().items()}
    return data


INEXPRESSIBLE = "not expressible"


def meaning_in(spec: Spec, document: str, call: Call, contract: Contract) -> dict[str, Any]:
    """Return the meaning of a call in a document, or why the document's operation has no such call."""
    operation = spec.operations[spec.documents[document].operation]
    if reason := inexpressible(operation, call):
        return {"operation": operation.id, "kind": INEXPRESSIBLE, "dst": None, "because": [], "reason": reason}
    return of_meaning(spec, document, contract.meaning(*call))


def meanings(spec: Spec, call: Call, contracts: Mapping[str, Contract]) -> dict[str, Any]:
    """Return the meaning of a call in every document."""
    return {name: meaning_in(spec, name, call, contracts[name]) for name in spec.documents}


def of_meaning(spec: Spec, document: str, meaning: Meaning) -> dict[str, Any]:
    """Return a meaning, with the sentence of each rule that decides it."""
    return {
        "operation": spec.documents[document].operation,
        "kind": meaning.kind,
        "dst": None if meaning.dst is None else list(meaning.dst),
        "because": [
            {"rule": name, "sentence": spec.rules[name].sentence, **standing(spec.rules[name], document)}
            for name in meaning.rules
        ],
    }


def command_of(call: Call) -> str:
    """Return the command that shows the meaning of a call, ready to be pasted."""
    words = ["conformance meaning", f"--src {_format_lengths(call.src)}", f"--shape={_format_lengths(call.shape)}"]
    words.append(f"--special-zero {str(call.special_zero).lower()}")
    if call.form is not None:
        words += _form_options(call.form)
    return " ".join(words)


def _format_lengths(lengths: Iterable[int | None]) -> str:
    return ",".join("?" if each is None else str(each) for each in lengths) or "'()'"


def _form_options(form: Form) -> Iterator[str]:
    values: dict[str, object] = {}
    for key in ("src_type", "dst_type", "shape_type", "shape_rank", "special_zero_type"):
        value = getattr(form, key)
        if value != Form._field_defaults.get(key) and not (key == "dst_type" and value == form.src_type):
            values[key] = value
    values["missing"] = ",".join((*form.missing_attributes, *form.missing_operands))
    values |= {key: ",".join(getattr(form, key)) for key in ("extra_attributes", "extra_operands")}
    if form.declared is not None:
        values["declared"] = _format_lengths(form.declared).strip("'")
    yield from (f"--form {shlex.quote(f'{key}={value}')}" for key, value in values.items() if value)


# ── what an operation can express ─────────────────────────────────────────────────────────────────


def _bounds(integer: str) -> tuple[int, int]:
    bits = int(integer[1:])
    return (0, 2**bits - 1) if integer[0] == "u" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def _misfit(integer: str, shape: tuple[int, ...]) -> int | None:
    """Return the first entry that a type of integers cannot hold."""
    if integer[0] not in "su" or not integer[1:].isdigit():
        return None
    lowest, highest = _bounds(integer)
    return next((d for d in shape if not lowest <= d <= highest), None)


def holding_type(operation: Operation, shape: tuple[int, ...]) -> str:
    """Return the first listed type that holds every entry, or else the first."""
    fitting = (each for each in operation.shape_types if _misfit(each, shape) is None)
    return next(fitting, operation.shape_types[0])


def inexpressible(operation: Operation, call: Call) -> str | None:
    """Say why the operation has no such call; None if it has."""
    shape_type = call.form.shape_type if call.form else holding_type(operation, call.shape)
    misfit = _misfit(shape_type, call.shape)
    return None if misfit is None else f"its shape is {shape_type}, which cannot hold {misfit}"
