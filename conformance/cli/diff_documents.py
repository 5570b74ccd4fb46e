"""`conformance diff A B` of two documents: what changed as rules, and a smallest call that shows it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from ..meaning.contract import contracts
from ..meaning.domain import CALLS_AT_LIMITS, FULL_DOMAIN, SMALL_DOMAIN, TINY_DOMAIN, calls, list_calls_at_limits
from ..model import Call, CallForm, Operation, Spec
from ..plan.rows import Plan
from ..system.progress import track
from ..system.terminal import label_paragraph, paint, say, verbatim, wrap
from .facts import command_of, of_call, of_meaning, treatment_of, why_inexpressible
from .printing import describe_treatment, format_value, print_meanings, print_section

_CHANGE_STYLES = {"added": "green", "dropped": "red", "same rule, treated otherwise": "yellow"}

_MAX_CASES = 8
"""Cases to show, so that the example stays in sight."""


def diff_documents(plan: Plan, a: str, b: str, options: str) -> dict[str, Any]:
    """Return every difference between two documents, as data; the command of the example has the options."""
    spec = plan.suite.spec
    changes: dict[str, list[dict[str, Any]]] = {kind: [] for kind in _CHANGE_STYLES}
    for rule in spec.rules.values():
        was, now = treatment_of(rule, a), treatment_of(rule, b)
        if was["treatment"] != now["treatment"]:
            is_bound = [each["treatment"] != "not bound" for each in (was, now)]
            kind = "same rule, treated otherwise" if all(is_bound) else "added" if is_bound[1] else "dropped"
            changes[kind].append({"rule": rule.id, "level": rule.level, "sentence": rule.sentence, a: was, b: now})
    data = {"a": a, "b": b, "rules": changes, "signature": _compare_signatures(spec, a, b)}
    data |= {"cases": _find_changed_cases(plan, a, b)}
    return data | _compare_findings(spec, a, b) | _find_example(spec, a, b, options)


def _find_changed_cases(plan: Plan, a: str, b: str) -> list[str]:
    """Return the cases with a call that has another kind of meaning, or another answer."""
    found: dict[str, dict[str, set[Any]]] = {}
    for row in plan.rows:
        if row.first is None and not {a, b}.isdisjoint(row.documents):  # other types say the same
            meanings = found.setdefault(row.case.id, {a: set(), b: set()})
            for number, step in enumerate(row.steps):
                for judged in step.meanings:
                    for name in meanings.keys() & judged.documents:
                        meanings[name].add((number, *judged.meaning[:2]))
            row.free_steps()
    return [case for case, meanings in found.items() if all(meanings.values()) and meanings[a] != meanings[b]]


def _compare_findings(spec: Spec, a: str, b: str) -> dict[str, list[dict[str, str]]]:
    """Return the findings in which two documents differ, those about one, and those that may be about others."""
    found: dict[str, list[dict[str, str]]] = {"findings": [], "one_named": [], "both_named": []}
    for finding in spec.findings.values():
        words: dict[str, set[str]] = {}
        for pointer in finding.at:
            words.setdefault(pointer.document, set()).add(pointer.words.strip("*`"))
        if a == b or words.keys().isdisjoint((a, b)):
            continue
        if not {a, b} <= words.keys():
            name = a if a in words else b
            found["one_named"].append({"finding": finding.id, "about": f"{name}: {finding.about}"})
            continue
        rules = [spec.rules[rule] for rule in finding.rules]
        sides = {name: [(rule.treatment_in(name), rule.authority(name)) for rule in rules] for name in words}
        if sides[a] != sides[b] or (finding.kind == "disagreement" and len(words) == 2):
            kind = "findings"
        elif finding.kind == "silence" or words[a] == words[b] or any(side != sides[a] for side in sides.values()):
            continue  # both say nothing or the same, or the rules part them from a third document
        else:
            kind = "both_named"
        found[kind].append({"finding": finding.id, "about": finding.about})
    return found


def _compare_signatures(spec: Spec, a: str, b: str) -> dict[str, dict[str, Any]]:
    """Return the differences between the documents' operations, and between the names they use."""
    pair = {name: spec.operation_of(name) for name in (a, b)}
    facts = {name: _list_facts(operation, name) for name, operation in pair.items()}
    keys = dict.fromkeys(itertools.chain(facts[a], facts[b]))
    return {
        key: {name: facts[name].get(key) for name in (a, b)} for key in keys if facts[a].get(key) != facts[b].get(key)
    }


def _list_facts(operation: Operation, document: str) -> dict[str, Any]:
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


def _find_example(spec: Spec, a: str, b: str, options: str) -> dict[str, Any]:
    """Return a smallest call with different meanings, or the domain in which there is none."""
    compiled = contracts(spec)
    first, second = compiled[a], compiled[b]
    operations = [spec.operation_of(name) for name in (a, b)]
    same_types = len({(each.types, each.shape_types) for each in operations}) == 1
    if first is second or (first.source == second.source and same_types):
        return {"example": None, "searched": "every call there is: the same contract holds in both"}
    forms = list(_list_forms(*operations))
    searched = (
        f"{FULL_DOMAIN}, and {CALLS_AT_LIMITS}, and {len(forms)} forms (types, shape types, missing and extra parts) "
        f"of each of {TINY_DOMAIN}"
    )
    varied = (Call(*each, form) for each in calls(TINY_DOMAIN) for form in forms)
    domain: Iterator[Call] = (
        call for call in varied if not any(why_inexpressible(operation, call) for operation in operations)
    )
    if first.source != second.source:  # a form shows a difference sooner than a large domain
        small, large = itertools.chain(calls(SMALL_DOMAIN), list_calls_at_limits()), calls(FULL_DOMAIN)
        domain = itertools.chain((Call(*each) for each in small), domain, (Call(*each) for each in large))
    tried = track("searching", domain, FULL_DOMAIN.size)  # another kind of meaning, or another answer
    call = next((call for call in tried if first.meaning(*call)[:2] != second.meaning(*call)[:2]), None)
    if call is None:
        return {"example": None, "searched": searched}
    meanings = {name: of_meaning(spec, name, compiled[name].meaning(*call)) for name in (a, b)}
    example = {"call": of_call(call), "command": command_of(call) + options, "meanings": meanings}
    return {"example": example, "searched": searched}


def _list_forms(a: Operation, b: Operation) -> Iterator[CallForm]:
    """Return forms that differ from a well-formed one in one thing; the likeliest to show a difference come first."""
    listed = _sort_shared_first(a.types, b.types)
    shapes = _sort_shared_first(a.shape_types, b.shape_types)
    plain = CallForm(listed[0], listed[0], shapes[0])
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


def _sort_shared_first(a: tuple[str, ...], b: tuple[str, ...]) -> list[str]:
    """Return the types of both; the types that both list come first."""
    return sorted(dict.fromkeys((*a, *b)), key=lambda each: (each not in a) + (each not in b))


def print_document_diff(spec: Spec, data: dict[str, Any]) -> None:
    a, b = data["a"], data["b"]
    if a == b:
        say(f"{paint('bold', a)} is one document, and was compared with itself; name another one")
        return
    say(f"{paint('bold', a)} → {paint('bold', b)}")
    for kind, changes in data["rules"].items():
        if changes:
            say()
            say(paint("bold", kind))
        for change in changes:
            say(f"  {paint(_CHANGE_STYLES[kind], change['rule'])}  {paint('dim', change['level'])}")
            say(wrap(change["sentence"], 4))
            for name in (a, b):
                label, text = describe_treatment(change[name])
                if label != "not bound":
                    say(wrap(f"{name}: {label}{f', {text}' if text else ''}", 4, 6))
    if not any(data["rules"].values()):
        say()
        say("the same rules bind in both")
    stated = {
        key: ["not stated" if each[name] is None else format_value(each[name]) for name in (a, b)]
        for key, each in data["signature"].items()
    }
    print_section("signature", [(key, was, "→", now) for key, (was, now) in stated.items()])
    headings = {
        "findings": "findings in which they differ",
        "one_named": "findings about one of them only",
        "both_named": "both are named, and may agree",
    }
    for key, heading in headings.items():
        print_section(heading, [(each["finding"], each["about"]) for each in data[key]])
    cases = [(each,) for each in data["cases"]]
    more = [(f"and {len(cases) - _MAX_CASES:,} more; --json has all",)] if len(cases) > _MAX_CASES else []
    print_section("cases that mean something else", cases[:_MAX_CASES] + more)
    say()
    if data["example"] is None:
        say("no call was found that means something else")
        say(wrap(f"searched: {data['searched']}", 0, 2))
        return
    say(paint("bold", "smallest call that means something else"))
    say(verbatim(f"  {data['example']['command']}"))
    say()
    print_meanings(spec, data["example"]["meanings"])
    say()
    say(label_paragraph("searched", f"{data['searched']}, the smallest first"))
