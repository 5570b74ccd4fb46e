"""Rules, findings, documents, operations and meanings as plain data: printed by --json and laid out by the commands."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..meaning.contract import Contract
from ..meaning.partial import Branch, PartialCall, answer_of, decide, describe, find_folded_names, kind_of, rules_of
from ..model import INTEGERS, Call, CallForm, Document, Finding, Meaning, Operation, Pointer, Rule, Spec
from ..model.types import range_of

FORMS = ("requires", "where", "gives", "ensures", "when")


def pointers_in(pointers: Iterable[Pointer], document: str) -> list[dict[str, Any]]:
    return [{"line": each.line, "words": each.words} for each in pointers if each.document == document]


def treatment_of(rule: Rule, document: str) -> dict[str, Any]:
    """Say how a document treats a rule, the reason if that is our ruling, and the lines."""
    kind, reason = rule.treatment_in(document), None
    if kind == "our ruling":
        reason = rule.reason_in(document)
    elif kind == "allowed":
        reason = rule.decided_for.get(rule.source_of(document))
    elif kind == "stated, as we read it":
        reason = f"see the finding {rule.as_read[rule.source_of(document)]}"
    return {"treatment": kind, "reason": reason, "at": pointers_in(rule.stated, document)}


def _pick_fields(thing: object, *names: str) -> dict[str, Any]:
    return {name: getattr(thing, name) for name in names}


def of_rule(spec: Spec, rule: Rule) -> dict[str, Any]:
    return {
        "rule": rule.id,
        **_pick_fields(rule, "level", "sentence"),
        "contract": {form: expression.text for form in FORMS if (expression := getattr(rule, form))},
        **_pick_fields(rule, "implied", "because"),
        "place": str(rule.place),
        "documents": {document: treatment_of(rule, document) for document in spec.documents},
        "findings": [each.id for each in spec.findings.values() if rule.id in each.rules],
    }


def of_finding(spec: Spec, finding: Finding, contracts: Mapping[str, Contract], options: str = "") -> dict[str, Any]:
    """Return everything about a finding. Its example comes with its meaning in every document, and with a command."""
    call = Call(*finding.example) if finding.example else None
    return {
        "finding": finding.id,
        **_pick_fields(finding, "kind", "weight", "about"),
        "documents": {name: at for name in spec.documents if (at := pointers_in(finding.at, name))},
        **_pick_fields(finding, "readings", "follows", "ruling", "rules"),
        "example": call
        and {
            "call": of_call(call),
            "meanings": {name: describe_call_meaning(spec, name, call, contracts[name]) for name in spec.documents},
            "command": command_of(call) + options,
        },
        "place": str(finding.place),
    }


def of_document(spec: Spec, document: Document) -> dict[str, Any]:
    treatments = {rule.id: treatment_of(rule, document.id) for rule in spec.rules.values()}
    origin, models = document.origin, (rule.like.get(document.id) for rule in spec.rules.values())
    return {
        "document": document.id,
        **_pick_fields(document, "operation", "title", "edition", "licence"),
        "like": next(filter(None, models), None),
        "origin": origin and {**origin._asdict(), "in_force": origin.in_force and origin.in_force._asdict()},
        "newer": [page._asdict() for page in document.newer],
        **_pick_fields(document, "file", "lacks", "sha256", "lines", "statements"),
        "rules": {name: each for name, each in treatments.items() if each["treatment"] != "not bound"},
        "findings": [each.id for each in spec.findings.values() if pointers_in(each.at, document.id)],
        "prose": [{"line": p.pointer.line, "words": p.pointer.words, "reason": p.reason} for p in document.prose],
        "place": str(document.place),
    }


def of_operation(operation: Operation) -> dict[str, Any]:
    entry = {key: value for key, value in operation.detail.items() if key != "id"}
    return {"operation": operation.id, **entry, "place": str(operation.place)}


def of_call(call: Call) -> dict[str, Any]:
    data: dict[str, Any] = {"src": list(call.src), "shape": list(call.shape), "special_zero": call.special_zero}
    if call.form is not None:
        data["form"] = {name: list(v) if isinstance(v, tuple) else v for name, v in call.form._asdict().items()}
    return data


def describe_call_meaning(spec: Spec, document: str, call: Call, contract: Contract) -> dict[str, Any]:
    """Return the meaning of a call in a document, or why the document's operation has no such call."""
    operation = spec.operation_of(document)
    if reason := why_inexpressible(operation, call):
        return {"operation": operation.id, "kind": "not expressible", "dst": None, "because": [], "reason": reason}
    if any(isinstance(length, str) for length in (*call.src, *call.shape)):
        return _describe_named_call(spec, document, call, contract)
    return of_meaning(spec, document, contract.meaning(*call))


def _describe_named_call(spec: Spec, document: str, call: Call, contract: Contract) -> dict[str, Any]:
    """Return the meaning of a call with names of lengths, and for which lengths it has it."""
    branches = decide(contract, PartialCall(*call))
    told = answer_of(branches)
    meaning = of_meaning(spec, document, Meaning("legal", None, rules_of(branches)))
    facts = {"reason": describe(branches), "branches": [of_branch(branch) for branch in branches]}
    folded = find_folded_names(call.src, call.shape, told) if told else ()
    return meaning | facts | {"kind": kind_of(branches), "dst": told, "folded": list(folded)}


def of_branch(branch: Branch) -> dict[str, Any]:
    """Return what a call means, and where it means that."""
    return {"kind": branch.kind, "when": branch.when, "rules": list(branch.rules), "dst": branch.dst}


def of_meaning(spec: Spec, document: str, meaning: Meaning) -> dict[str, Any]:
    """Return a meaning, with the sentence of each rule that decides it."""
    return {
        "operation": spec.documents[document].operation,
        "kind": meaning.kind,
        "dst": None if meaning.dst is None else list(meaning.dst),
        "because": [
            {"rule": name, "sentence": spec.rules[name].sentence, **treatment_of(spec.rules[name], document)}
            for name in meaning.rules
        ],
    }


def command_of(call: Call) -> str:
    """Return the command that shows the meaning of a call, ready to be pasted."""
    src, shape, special_zero = _format_lengths(call.src), _format_lengths(call.shape), str(call.special_zero).lower()
    form = _list_form_options(call.form) if call.form else ()
    return " ".join([f"conformance meaning --src {src} --shape={shape} --special-zero {special_zero}", *form])


def _format_lengths(lengths: Iterable[int | None]) -> str:
    return ",".join("?" if each is None else str(each) for each in lengths) or "'()'"


def _list_form_options(form: CallForm) -> Iterator[str]:
    values: dict[str, object] = {}
    for key in ("src_type", "dst_type", "shape_type", "shape_rank", "special_zero_type"):
        value = getattr(form, key)
        if value != CallForm._field_defaults.get(key) and not (key == "dst_type" and value == form.src_type):
            values[key] = value
    values["missing"] = ",".join((*form.missing_attributes, *form.missing_operands))
    values |= {key: ",".join(getattr(form, key)) for key in ("extra_attributes", "extra_operands")}
    if form.declared is not None:
        values["declared"] = _format_lengths(form.declared).strip("'")
    yield from (f"--form {shlex.quote(f'{key}={value}')}" for key, value in values.items() if value)


def _find_first_too_large(type_: str, shape: tuple[int | str, ...]) -> int | None:
    """Return the first entry that a type of integers cannot hold."""
    if type_ not in INTEGERS:
        return None
    return next((entry for entry in shape if not isinstance(entry, str) and entry not in range_of(type_)), None)


def choose_holding_type(operation: Operation, shape: tuple[int, ...]) -> str:
    """Return the first listed type that holds every entry, or else the first."""
    fitting = (each for each in operation.shape_types if _find_first_too_large(each, shape) is None)
    return next(fitting, operation.shape_types[0])


def why_inexpressible(operation: Operation, call: Call) -> str | None:
    """Say why the operation has no such call; None if it has."""
    shape_type = call.form.shape_type if call.form else choose_holding_type(operation, call.shape)
    entry = _find_first_too_large(shape_type, call.shape)
    return None if entry is None else f"its shape is {shape_type}, which cannot hold {entry}"
