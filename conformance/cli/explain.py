"""`conformance explain`: one rule, finding, document, operation or case, fully."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..load.cases import with_cases
from ..load.folders import cases_folder, spec_folder
from ..meaning.contract import contracts
from ..model import Call, Spec, Suite
from ..system.terminal import label_paragraph, lines, paint, say, table, wrap
from ..system.text import describe_unknown, format_call
from . import explain_case, explain_repro
from .arguments import Usage, check_folder, emit, find_alike, folder_options, load_spec_of
from .facts import command_of, of_document, of_finding, of_operation, of_rule
from .meaning import describe_standing, print_meanings
from .parser import Parser
from .shared_options import add_suite

_HEADINGS = {
    "stated": "rules it states", "stated, as we read it": "rules it states, as we read it", "our ruling": "our rulings",
    "silent": "silent", "allowed": "allowed",
}  # fmt: skip
"""What `explain DOCUMENT` writes above the rules of each standing."""


EXAMPLES = """\
  conformance explain one-infer                       a rule: where it is stated, whom it binds
  conformance explain copies-by-index-not-in-turn     a case: its call, what it means, how to run it
  conformance explain static-oneapi                     a document"""


def add_options(parser: Parser) -> None:
    parser.add_argument("name", nargs="?", help="the id of a rule, finding, document, operation, case or row")
    parser.once(
        "--backend",
        "NAME",
        "of a case that you trust: print a script for that library, without the suite (onednn-c: in C)",
    )
    add_suite(parser)


def run(args: argparse.Namespace) -> int:
    """Print everything that has the name."""
    if not (args.name or "").strip():
        raise Usage(
            "say what to explain: a rule, a finding, a document, an operation or a case; `conformance list rules`"
        )
    spec = load_spec_of(args)
    if args.backend is not None:
        return explain_repro.run(args, _suite(args, spec))
    things = _things(spec, args.name)
    if not things:
        return _explain_case(args, spec)
    for thing in things:
        if example := thing.get("example"):
            call = Call(tuple(example["call"]["src"]), tuple(example["call"]["shape"]), example["call"]["special_zero"])
            example["command"] = command_of(call) + folder_options(args)
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
    """Return everything that has the name: mostly one thing, but a rule and a finding may share an id."""
    things = [of_rule(spec, spec.rules[each]) for each in find_alike(name, spec.rules)]
    things += [of_document(spec, spec.documents[each]) for each in find_alike(name, spec.documents)]
    things += [of_operation(spec.operations[each]) for each in find_alike(name, spec.operations)]
    findings = find_alike(name, spec.findings)
    if findings:
        compiled = contracts(spec)
        things += [of_finding(spec, spec.findings[each], compiled) for each in findings]
    return things


def _suite(args: argparse.Namespace, spec: Spec) -> Suite:
    cases = check_folder("--cases", args.cases) or cases_folder()
    return with_cases(spec, check_folder("--spec", args.spec) or spec_folder(), cases)


def _explain_case(args: argparse.Namespace, spec: Spec) -> int:
    """Explain the case of that name; Usage if there is none."""
    suite = _suite(args, spec)
    cases = explain_case.things(suite, args.name)
    if not cases:
        every = [*spec.rules, *spec.findings, *spec.documents, *spec.operations, *suite.cases]
        raise Usage(describe_unknown("name", args.name, every, "conformance list rules"))
    for case in cases:
        case["commands"] = explain_case.commands(case["case"], args)
    if args.json:
        emit(cases)
    else:
        explain_case.print_case(suite, cases[0])
    return 0


# ── a rule ────────────────────────────────────────────────────────────────────────────────────────


def _show_rule(spec: Spec, rule: dict[str, Any]) -> None:
    _show_head(rule["rule"], f"rule, {rule['level']}", rule["place"])
    say(wrap(rule["sentence"], 2))
    say()
    for form, text in rule["contract"].items():
        say(label_paragraph(form, text))
    if not rule["contract"] and rule["level"] != "may":
        say(label_paragraph("contract", "none: no expression can decide it"))
    if rule["implied"]:
        say(label_paragraph("implied", "without it every call would mean the same"))
    if rule["because"]:
        say(label_paragraph("because", rule["because"]))
    say()
    _show_standings(rule["documents"])
    _show_related(spec, "findings", rule["findings"])


def _show_standings(documents: Mapping[str, Mapping[str, Any]]) -> None:
    colours = {"stated": "green", "stated, as we read it": "green", "our ruling": "cyan", "silent": "yellow"}
    rows = []
    for name, each in documents.items():
        kind, text = describe_standing(each)
        rows.append((paint("bold", name), paint(colours.get(kind, "dim"), kind), text))
    say(table(rows))


# ── a finding ─────────────────────────────────────────────────────────────────────────────────────


def _show_finding(spec: Spec, finding: dict[str, Any]) -> None:
    _show_head(finding["finding"], f"finding, {finding['kind']}", finding["place"])
    say(wrap(finding["about"], 2))
    if finding["documents"]:
        say()
        say(table([(paint("bold", name), _format_pointers(at)) for name, at in finding["documents"].items()]))
    say()
    for number, reading in enumerate(finding["readings"], 1):
        say(label_paragraph(f"reading {number}", reading))
    say(label_paragraph("follows", finding["follows"]))
    say(label_paragraph("ruling", finding["ruling"] or "none"))
    _show_related(spec, "rules", finding["rules"])
    if finding["example"]:
        call = finding["example"]["call"]
        say()
        say(f"{paint('dim', 'example')}     {paint('bold', format_call(**call))}")
        say()
        print_meanings(spec, finding["example"]["meanings"])
        say()
        say(paint("dim", finding["example"]["command"]))


def _format_pointers(at: Iterable[Mapping[str, Any]]) -> str:
    return ", ".join(f'line {each["line"]} "{each["words"]}"' for each in at)


# ── a document and an operation ───────────────────────────────────────────────────────────────────


def _show_document(spec: Spec, document: dict[str, Any]) -> None:
    _show_head(document["document"], f"document of {document['operation']}", document["place"])
    say(wrap(document["title"], 2))
    say()
    say(label_paragraph("edition", document["edition"]))
    if document["origin"]:
        _show_origin(document["origin"])
    say(label_paragraph("licence", document["licence"] or "none stated"))
    for newer in document["newer"]:
        say(label_paragraph("newer", f"{newer['page']}: {newer['changed']}"))
    say(label_paragraph("file", document["file"]))
    if document["lacks"]:
        say(label_paragraph("lacks", document["lacks"]))
    say(label_paragraph("sha256", document["sha256"]))
    say(label_paragraph("size", f"{document['lines']} lines, {document['statements']} statements"))
    for kind, heading in _HEADINGS.items():
        rules = {name: each for name, each in document["rules"].items() if each["standing"] == kind}
        if rules:
            say()
            say(paint("bold", heading))
            say(table([(f"  {name}", describe_standing(each)[1]) for name, each in rules.items()]))
    _show_related(spec, "findings", document["findings"])
    if document["prose"]:
        say()
        say(paint("bold", "prose, which binds nobody"))
        say(table([(f'  line {each["line"]} "{each["words"]}"', each["reason"]) for each in document["prose"]]))


def _show_origin(origin: Mapping[str, Any]) -> None:
    if force := origin["in_force"]:
        what = f"yes: the page was still this text at commit {force['commit']} of {force['date']}"
        say(label_paragraph("in force", what))
    say(label_paragraph("repository", origin["repository"]))
    say(label_paragraph("path", origin["path"]))
    say(label_paragraph("releases", ", ".join(origin["releases"])))
    say(label_paragraph("added", origin["added"]))
    say(label_paragraph("last change", origin["last_changed"]))


def _show_operation(spec: Spec, operation: dict[str, Any]) -> None:
    _show_head(operation["operation"], "operation", operation["place"])
    for key, value in operation.items():
        if key not in ("operation", "place"):
            _show_value(key, value, 0)


def _show_value(key: str, value: Any, indent: int) -> None:
    """Print a value of operations.yaml; a mapping of plain values takes one line."""
    name = f"{' ' * indent}{key.replace('_', ' ') if indent == 0 else key}"
    if isinstance(value, Mapping) and any(isinstance(each, Mapping) for each in value.values()):
        say(paint("dim", name))
        for inner, each in value.items():
            _show_value(inner, each, indent + 2)
    else:
        say(label_paragraph(name, _format_value(value), 22))


def _format_value(value: Any) -> str:
    if isinstance(value, Mapping):
        return " · ".join(f"{key}: {_format_value(each)}" for key, each in value.items()) or "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(_format_value, value)) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "none" if value is None else str(value)


# ── parts of all ──────────────────────────────────────────────────────────────────────────────────


def _show_head(name: str, kind: str, place: str) -> None:
    say(f"{paint('bold', name)}  {paint('dim', f'{kind} · {place}')}")


def _show_related(spec: Spec, label: str, names: Iterable[str]) -> None:
    """Print the related rules or findings, each with its sentence."""
    sentence: Callable[[str], str] = (
        (lambda name: spec.rules[name].sentence) if label == "rules" else (lambda name: spec.findings[name].about)
    )
    rows = [(f"  {name}", sentence(name)) for name in names]
    if rows:
        say()
        say(paint("bold", label))
        for name, text in rows:
            say(lines((name, wrap(text, 6))))


_SHOW: dict[str, Callable[[Spec, dict[str, Any]], None]] = {
    "rule": _show_rule,
    "finding": _show_finding,
    "document": _show_document,
    "operation": _show_operation,
}
