"""`conformance diff A B` of two documents: what changed as rules, and a smallest call that shows it."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from typing import Any

from ..meaning.contract import Contract, contracts
from ..meaning.domain import FAR, FULL_DOMAIN, SMALL_DOMAIN, TINY_DOMAIN, calls, far_calls
from ..model import Call, Form, Operation, Rule, Spec
from ..system.progress import Progress
from ..system.terminal import label_paragraph, paint, say, table, wrap
from .arguments import emit, folder_options
from .facts import command_of, inexpressible, of_call, of_meaning, standing
from .meaning import describe_standing, print_meanings

CHANGES = ("added", "dropped", "reworded in effect")


def diff_documents(args: argparse.Namespace, spec: Spec, a: str, b: str) -> int:
    """Print what document B changes in document A."""
    data = compare_documents(spec, a, b)
    if data["example"]:
        data["example"]["command"] += folder_options(args)
    if args.json:
        emit(data)
    else:
        _show(spec, data)
    return 0


def compare_documents(spec: Spec, a: str, b: str) -> dict[str, Any]:
    """Return every difference between two documents, as data."""
    changes: dict[str, list[dict[str, Any]]] = {kind: [] for kind in CHANGES}
    for rule in spec.rules.values():
        was, now = standing(rule, a), standing(rule, b)
        kind = _change(was["standing"], now["standing"])
        if kind:
            changes[kind].append({"rule": rule.id, "level": rule.level, "sentence": rule.sentence, a: was, b: now})
    findings = [
        {"finding": finding.id, "about": finding.about}
        for finding in spec.findings.values()
        if finding.kind == "disagreement" and {a, b} <= {pointer.document for pointer in finding.at}
    ]
    signature = _signature(spec, a, b)
    return {"a": a, "b": b, "rules": changes, "signature": signature, "findings": findings} | _example(spec, a, b)


def _change(was: str, now: str) -> str | None:
    if was == now:
        return None
    if was == "not bound":
        return "added"
    return "dropped" if now == "not bound" else "reworded in effect"


def _signature(spec: Spec, a: str, b: str) -> dict[str, dict[str, Any]]:
    """Return the differences between the documents' operations, and between the names they use."""
    pair = {name: spec.operations[spec.documents[name].operation] for name in (a, b)}
    facts = {name: _facts(operation, name) for name, operation in pair.items()}
    keys = dict.fromkeys(itertools.chain(facts[a], facts[b]))
    return {
        key: {name: facts[name].get(key) for name in (a, b)} for key in keys if facts[a].get(key) != facts[b].get(key)
    }


def _facts(operation: Operation, document: str) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "operation": operation.id,
        "shape passed as": sorted(operation.shape_passed_as),
        "types": sorted(operation.types),
        "shape types": sorted(operation.shape_types),
    }
    for part, what in (("names", "name of"), ("written", "as written:")):
        for key, value in (operation.detail.get(part, {}).get(document) or {}).items():
            facts[f"{what} {key.replace('_', ' ')}"] = value
    return facts


# ── the example ───────────────────────────────────────────────────────────────────────────────────


def _example(spec: Spec, a: str, b: str) -> dict[str, Any]:
    """Return a smallest call whose meaning differs, or the domain in which there is none."""
    compiled = contracts(spec)
    first, second = compiled[a], compiled[b]
    operations = [spec.operations[spec.documents[name].operation] for name in (a, b)]
    if first is second or _same(first, second, *operations):
        return {"example": None, "searched": "every call there is: the same contract holds in both"}
    searched = f"{FULL_DOMAIN}, and {FAR}"
    small_first = itertools.chain(calls(SMALL_DOMAIN), far_calls(), calls(FULL_DOMAIN))
    call = _first_difference(first, second, (Call(*each) for each in small_first), FULL_DOMAIN.size)
    if call is None:
        forms = list(_forms(*operations))
        searched += f", and {len(forms)} forms (types, shape types, missing and extra parts) of each of {TINY_DOMAIN}"
        varied = (Call(*each, form) for each in calls(TINY_DOMAIN) for form in forms)
        fitting = (call for call in varied if not any(inexpressible(operation, call) for operation in operations))
        call = _first_difference(first, second, fitting, TINY_DOMAIN.size * len(forms))
    if call is None:
        return {"example": None, "searched": searched}
    meanings = {name: of_meaning(spec, name, compiled[name].meaning(*call)) for name in (a, b)}
    return {"example": {"call": of_call(call), "command": command_of(call), "meanings": meanings}, "searched": searched}


def _same(first: Contract, second: Contract, a: Operation, b: Operation) -> bool:
    return first.source == second.source and (a.types, a.shape_types) == (b.types, b.shape_types)


def _first_difference(first: Contract, second: Contract, domain: Iterator[Call], size: int) -> Call | None:
    """Return the first call whose kind of meaning or answer differs between the documents."""
    progress = Progress("searching", size)
    try:
        for number, call in enumerate(domain):
            if first.meaning(*call)[:2] != second.meaning(*call)[:2]:
                return call
            if number % 4096 == 0:
                progress.at(number, "calls")
        return None
    finally:
        progress.close()


def _forms(a: Operation, b: Operation) -> Iterator[Form]:
    """Return forms that differ from a well-formed one in one thing; the likeliest to show a difference come first."""
    listed = _shared_first(a.types, b.types)
    shapes = _shared_first(a.shape_types, b.shape_types)
    plain = Form(listed[0], listed[0], shapes[0])
    yield from (plain._replace(shape_type=each) for each in shapes)
    yield from (plain._replace(src_type=each, dst_type=each) for each in listed[1:])
    yield from (plain._replace(dst_type=each) for each in listed[1:])
    yield from (plain._replace(shape_type=each) for each in ("s8", "u8", "s16", "u16", "u32", "u64", "f32", "string"))
    yield from (plain._replace(src_type=each, dst_type=each) for each in ("f64", "s32", "bool"))
    yield from (plain._replace(shape_rank=each) for each in (0, 2))
    yield plain._replace(special_zero_type="s64")
    yield plain._replace(special_zero_type="string", special_zero_is_exact=False)
    yield plain._replace(missing_attributes=("special_zero",))
    yield from (plain._replace(missing_operands=(each,)) for each in ("src", "dst"))
    yield plain._replace(extra_attributes=("mode",))
    yield plain._replace(extra_operands=("bias",))
    yield from (plain._replace(declared=each) for each in ((), (None,), (1,), (2, None)))


def _shared_first(a: tuple[str, ...], b: tuple[str, ...]) -> list[str]:
    """Return the types of both; the types that both list come first."""
    return sorted(dict.fromkeys((*a, *b)), key=lambda each: (each not in a) + (each not in b))


# ── for people ────────────────────────────────────────────────────────────────────────────────────


def _show(spec: Spec, data: dict[str, Any]) -> None:
    a, b = data["a"], data["b"]
    say(f"{paint('bold', a)} → {paint('bold', b)}")
    for kind in CHANGES:
        _show_rules(spec, kind, data["rules"][kind], a, b)
    if not any(data["rules"].values()):
        say()
        say("the same rules bind in both")
    if data["signature"]:
        say()
        say(paint("bold", "signature"))
        rows = [
            (f"  {key}", _format_value(each[a]), "→", _format_value(each[b])) for key, each in data["signature"].items()
        ]
        say(table(rows))
    if data["findings"]:
        say()
        say(paint("bold", "disagreements that name both"))
        say(table([(f"  {each['finding']}", each["about"]) for each in data["findings"]]))
    say()
    _show_example(spec, data)


def _show_rules(spec: Spec, kind: str, changes: list[dict[str, Any]], a: str, b: str) -> None:
    if not changes:
        return
    colours = {"added": "green", "dropped": "red"}
    say()
    say(paint("bold", kind))
    for change in changes:
        rule: Rule = spec.rules[change["rule"]]
        say(f"  {paint(colours.get(kind, 'yellow'), rule.id)}  {paint('dim', rule.level)}")
        say(wrap(rule.sentence, 4))
        for name in (a, b):
            label, text = describe_standing(change[name])
            if label != "not bound":
                say(wrap(f"{name}: {label}{f', {text}' if text else ''}", 4, 6))


def _show_example(spec: Spec, data: dict[str, Any]) -> None:
    if data["example"] is None:
        say("no call was found that means something else")
        say(wrap(f"searched: {data['searched']}", 0, 2))
        return
    say(paint("bold", "smallest call whose meaning differs"))
    say(f"  {data['example']['command']}")
    say()
    print_meanings(spec, data["example"]["meanings"])
    say()
    say(label_paragraph("searched", f"{data['searched']}, the smallest first"))


def _format_value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "nothing"
    return "not stated" if value is None else str(value)
