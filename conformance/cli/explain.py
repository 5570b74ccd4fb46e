"""`conformance explain`: one rule, finding, document, operation or case, fully."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..load.cases import with_cases
from ..load.folders import cases_folder, spec_folder
from ..meaning.contract import contracts
from ..model import Call, Spec, Suite
from ..system.terminal import labelled, lines, paint, say, table, wrapped
from . import explain_case, explain_repro
from .arguments import Usage, emit, folder_given, resembling, spec_of, unknown
from .facts import command_of, of_document, of_finding, of_operation, of_rule
from .meaning import bracketed, show, source


def run(args: argparse.Namespace) -> int:
    """Prints all about what bears the name."""
    if not (args.name or "").strip():
        raise Usage(
            "say what to explain: a rule, a finding, a document, an operation or a case; `conformance list rules`"
        )
    spec = spec_of(args)
    if args.backend is not None:
        return explain_repro.run(args, _suite(args, spec))
    if args.c:
        raise Usage("--c goes with --backend onednn: a case as a program in C")
    things = _things(spec, args.name)
    if not things:
        return _explain_case(args, spec)
    if args.json:
        emit(things)
        return 0
    for number, thing in enumerate(things):
        if number:
            say()
        kind = next(iter(thing))
        _SHOW[kind](spec, thing)
    return 0


def _things(spec: Spec, name: str) -> list[dict[str, Any]]:
    """What bears the name: mostly one thing, but a rule and a finding may share an id."""
    found = [of_rule(spec, spec.rules[each]) for each in resembling(name, spec.rules)]
    found += [of_document(spec, spec.documents[each]) for each in resembling(name, spec.documents)]
    found += [of_operation(spec.operations[each]) for each in resembling(name, spec.operations)]
    findings = resembling(name, spec.findings)
    if findings:
        compiled = contracts(spec)
        found += [of_finding(spec, spec.findings[each], compiled) for each in findings]
    return found


def _suite(args: argparse.Namespace, spec: Spec) -> Suite:
    cases = folder_given("--cases", args.cases) or cases_folder()
    return with_cases(spec, folder_given("--spec", args.spec) or spec_folder(), cases)


def _explain_case(args: argparse.Namespace, spec: Spec) -> int:
    """Nothing in the specification bears the name; perhaps a case does."""
    suite = _suite(args, spec)
    found = explain_case.things(suite, args.name)
    if not found:
        every = [*spec.rules, *spec.findings, *spec.documents, *spec.operations, *suite.cases]
        raise Usage(unknown("name", args.name, every, "conformance list rules"))
    if args.json:
        emit(found)
    else:
        explain_case.print_case(suite, found[0])
    return 0


# ── a rule ────────────────────────────────────────────────────────────────────────────────────────


def _show_rule(spec: Spec, rule: dict[str, Any]) -> None:
    _head(rule["rule"], f"rule, {rule['level']}", rule["place"])
    say(wrapped(rule["sentence"], 2))
    say()
    for form, text in rule["contract"].items():
        say(labelled(form, text))
    if not rule["contract"] and rule["level"] != "may":
        say(labelled("contract", "none: no expression can decide it"))
    if rule["implied"]:
        say(labelled("implied", "without it every call would mean the same"))
    if rule["because"]:
        say(labelled("because", rule["because"]))
    say()
    _stands(rule["documents"])
    _names(spec, "findings", rule["findings"])


def _stands(documents: Mapping[str, Mapping[str, Any]]) -> None:
    colours = {"stated": "green", "our ruling": "cyan", "silent": "yellow"}
    rows = []
    for name, each in documents.items():
        kind, text = source(each)
        rows.append((paint("bold", name), paint(colours.get(kind, "dim"), kind), text))
    say(table(rows))


# ── a finding ─────────────────────────────────────────────────────────────────────────────────────


def _show_finding(spec: Spec, finding: dict[str, Any]) -> None:
    _head(finding["finding"], f"finding, {finding['kind']}", finding["place"])
    say(wrapped(finding["about"], 2))
    if finding["documents"]:
        say()
        say(table([(paint("bold", name), _spots(at)) for name, at in finding["documents"].items()]))
    say()
    for number, reading in enumerate(finding["readings"], 1):
        say(labelled(f"reading {number}", reading))
    say(labelled("follows", finding["follows"]))
    say(labelled("ruling", finding["ruling"] or "none"))
    _names(spec, "rules", finding["rules"])
    if finding["example"]:
        call = finding["example"]["call"]
        flag = str(call["special_zero"]).lower()
        say()
        shown = f"reshape {bracketed(call['src'])} by {bracketed(call['shape'])}, special_zero {flag}"
        say(f"{paint('dim', 'example')}     {paint('bold', shown)}")
        say()
        show(spec, finding["example"]["meanings"])
        say()
        say(paint("dim", command_of(Call(tuple(call["src"]), tuple(call["shape"]), call["special_zero"]))))


def _spots(at: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(f'line {each["line"]} "{each["words"]}"' for each in at)


# ── a document and an operation ───────────────────────────────────────────────────────────────────


def _show_document(spec: Spec, document: dict[str, Any]) -> None:
    _head(document["document"], f"document of {document['operation']}", document["place"])
    say(wrapped(document["title"], 2))
    say()
    say(labelled("year", str(document["year"])))
    say(labelled("licence", document["licence"] or "none stated"))
    say(labelled("file", document["file"]))
    say(labelled("sha256", document["sha256"]))
    say(labelled("size", f"{document['lines']} lines, {document['statements']} statements"))
    for kind in ("stated", "our ruling", "silent", "allowed"):
        rules = {name: each for name, each in document["rules"].items() if each["standing"] == kind}
        if rules:
            say()
            say(paint("bold", {"stated": "rules it states", "our ruling": "our rulings"}.get(kind, kind)))
            say(table([(f"  {name}", source(each)[1]) for name, each in rules.items()]))
    _names(spec, "findings", document["findings"])
    if document["prose"]:
        say()
        say(paint("bold", "prose, which binds nobody"))
        say(table([(f'  line {each["line"]} "{each["words"]}"', each["reason"]) for each in document["prose"]]))


def _show_operation(spec: Spec, operation: dict[str, Any]) -> None:
    _head(operation["operation"], "operation", operation["place"])
    for key, value in operation.items():
        if key not in ("operation", "place"):
            _show_value(key, value, 0)


def _show_value(key: str, value: Any, indent: int) -> None:
    """A value of operations.yaml; mappings of plain values stay on one line."""
    name = f"{' ' * indent}{key.replace('_', ' ') if indent == 0 else key}"
    if isinstance(value, Mapping) and any(isinstance(each, Mapping) for each in value.values()):
        say(paint("dim", name))
        for inner, each in value.items():
            _show_value(inner, each, indent + 2)
    else:
        say(labelled(name, _plain(value), 22))


def _plain(value: Any) -> str:
    if isinstance(value, Mapping):
        return " · ".join(f"{key}: {_plain(each)}" for key, each in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


# ── parts of all ──────────────────────────────────────────────────────────────────────────────────


def _head(name: str, kind: str, place: str) -> None:
    say(f"{paint('bold', name)}  {paint('dim', f'{kind} · {place}')}")


def _names(spec: Spec, label: str, names: Iterable[str]) -> None:
    """The related rules or findings, each with its sentence."""
    sentence: Callable[[str], str] = (
        (lambda name: spec.rules[name].sentence) if label == "rules" else (lambda name: spec.findings[name].about)
    )
    rows = [(f"  {name}", sentence(name)) for name in names]
    if rows:
        say()
        say(paint("bold", label))
        for name, text in rows:
            say(lines((name, wrapped(text, 6))))


_SHOW: dict[str, Callable[[Spec, dict[str, Any]], None]] = {
    "rule": _show_rule,
    "finding": _show_finding,
    "document": _show_document,
    "operation": _show_operation,
}
