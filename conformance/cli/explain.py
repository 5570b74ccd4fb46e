"""`conformance explain`: one rule, finding, document, operation or case, fully."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any

from ..load.cases import with_cases
from ..meaning.contract import contracts
from ..model import Spec
from ..plan.rows import explain_drawn
from ..system.terminal import label_paragraph, lines, paint, say, table, verbatim, wrap
from ..system.text import describe_unknown, format_call
from .arguments import Stop, emit, load_spec_of, write_suite_option
from .explain_case import find_case, print_case, print_script
from .facts import of_document, of_finding, of_operation, of_rule
from .parser import Parser
from .printing import (
    describe_treatment,
    format_pointers,
    format_value,
    print_heading,
    print_meanings,
    print_paragraphs,
    print_section,
)

_HEADINGS = {
    "stated": "rules it states", "stated, as we read it": "rules it states, as we read it", "our ruling": "our rulings",
    "silent": "silent", "allowed": "allowed",
}  # fmt: skip
"""What `explain DOCUMENT` writes above the rules of each treatment."""
_TREATMENT_STYLES = {"stated": "green", "stated, as we read it": "green", "our ruling": "cyan", "silent": "yellow"}

EXAMPLES = """\
  conformance explain one-infer                       a rule: where it is stated, whom it binds
  conformance explain copies-by-index-not-in-turn     a case: its call, what it means, how to run it
  conformance explain static-oneapi                   a document
  conformance explain copies-by-index-not-in-turn --backend onnxruntime     the same case, without the suite"""


def add_options(parser: Parser) -> None:
    parser.usage = "conformance explain NAME [--backend BACKEND] [--suite DIR] [--json]"
    text = "the id of a rule, finding, document, operation, case or row"
    parser.add_argument("name", nargs="?", metavar="NAME", help=text)
    text = "of a case that you trust: print a script that makes its call with that library alone; bundled backends only"
    parser.once("--backend", "BACKEND", text)


def run(args: argparse.Namespace) -> int:
    name, backend, options = args.name or "", args.backend, write_suite_option(args.suite)
    if not name.strip():
        what = "say what to explain: a rule, a finding, a document, an operation or a case; `conformance list rules`"
        raise Stop(what)
    spec = load_spec_of(args.suite)
    things = _find_things(spec, name, options) if backend is None else []
    if not things:
        suite = with_cases(spec, args.suite)
        if backend is not None:
            print_script(suite, name, backend, args.json, options)
            return 0
        things = find_case(suite, name, options, write_suite_option(args.suite, "--conformance-suite="))
        if not things:
            names = [*spec.rules, *spec.findings, *spec.documents, *spec.operations, *suite.cases]
            raise Stop(explain_drawn(name) or describe_unknown("name", name, names, "conformance list rules"))
    if args.json:
        emit(things)
        return 0
    for number, thing in enumerate(things):
        if number:
            say()
        _PRINT[next(iter(thing))](spec, thing)
    return 0


def _find_things(spec: Spec, name: str, options: str) -> list[dict[str, Any]]:
    """Return everything that has the name: mostly one thing, but a rule and a finding may share an id."""
    things = [of_rule(spec, spec.rules[name])] if name in spec.rules else []
    if name in spec.documents:
        things.append(of_document(spec, spec.documents[name]))
    if name in spec.operations:
        things.append(of_operation(spec.operations[name]))
    if name in spec.findings:
        things.append(of_finding(spec, spec.findings[name], contracts(spec), options))
    return things


def _print_rule(spec: Spec, rule: dict[str, Any]) -> None:
    print_heading(rule["rule"], f"rule, {rule['level']}", rule["place"])
    say(wrap(rule["sentence"], 2))
    say()
    has_none = not rule["contract"] and rule["level"] != "may"
    print_paragraphs(
        [
            *rule["contract"].items(),
            ("contract", "none: no expression can decide it" if has_none else None),
            ("implied", "without it every call would mean the same" if rule["implied"] else None),
            ("because", rule["because"]),
        ]
    )
    say()
    rows = []
    for name, each in rule["documents"].items():
        kind, text = describe_treatment(each)
        rows.append((paint("bold", name), paint(_TREATMENT_STYLES.get(kind, "dim"), kind), text))
    say(table(rows))
    _print_related("findings", {name: spec.findings[name].about for name in rule["findings"]})


def _print_finding(spec: Spec, finding: dict[str, Any]) -> None:
    print_heading(finding["finding"], f"finding, {finding['kind']}", finding["place"])
    say(wrap(finding["about"], 2))
    if finding["documents"]:
        say()
        say(table([(paint("bold", name), format_pointers(at)) for name, at in finding["documents"].items()]))
    say()
    readings = ((f"reading {number}", reading) for number, reading in enumerate(finding["readings"], 1))
    print_paragraphs([*readings, ("follows", finding["follows"]), ("ruling", finding["ruling"] or "none")])
    _print_related("rules", {name: spec.rules[name].sentence for name in finding["rules"]})
    if example := finding["example"]:
        say()
        say(f"{paint('dim', 'example')}     {paint('bold', format_call(**example['call']))}")
        say()
        print_meanings(spec, example["meanings"])
        say()
        say(verbatim(paint("dim", example["command"])))


def _print_document(spec: Spec, document: dict[str, Any]) -> None:
    print_heading(document["document"], f"document of {document['operation']}", document["place"])
    say(wrap(document["title"], 2))
    say()
    origin: Mapping[str, Any] = document["origin"] or {}
    since = origin.get("in_force")
    print_paragraphs(
        [
            ("edition", document["edition"]),
            ("like", document["like"] and f"{document['like']}, from which it has what has no line here"),
            ("in force", since and f"yes: the page was still this text at commit {since['commit']} of {since['date']}"),
            ("repository", origin.get("repository")),
            ("path", origin.get("path")),
            ("releases", ", ".join(origin.get("releases", ()))),
            ("added", origin.get("added")),
            ("last change", origin.get("last_changed")),
            ("licence", document["licence"] or "none stated"),
            *(("newer", f"{newer['page']}: {newer['changed']}") for newer in document["newer"]),
            ("file", document["file"]),
            ("lacks", document["lacks"]),
            ("sha256", document["sha256"]),
            ("size", f"{document['lines']} lines, {document['statements']} statements"),
        ]
    )
    for kind, heading in _HEADINGS.items():
        rules = {name: each for name, each in document["rules"].items() if each["treatment"] == kind}
        print_section(heading, [(name, describe_treatment(each)[1]) for name, each in rules.items()])
    _print_related("findings", {name: spec.findings[name].about for name in document["findings"]})
    print_section(
        "prose, which binds nobody", [(format_pointers([each]), each["reason"]) for each in document["prose"]]
    )


def _print_operation(_: Spec, operation: dict[str, Any]) -> None:
    print_heading(operation["operation"], "operation", operation["place"])
    for key, value in operation.items():
        if key not in ("operation", "place"):
            _print_value(key.replace("_", " "), value, 0)


def _print_value(name: str, value: Any, indent: int) -> None:
    """Print a value of operations.yaml; a mapping of plain values takes one line."""
    label = " " * indent + name
    if isinstance(value, Mapping) and any(isinstance(each, Mapping) for each in value.values()):
        say(paint("dim", label))
        for key, each in value.items():
            _print_value(key, each, indent + 2)
    else:
        say(label_paragraph(label, format_value(value), 22))


def _print_related(label: str, sentences: Mapping[str, str]) -> None:
    if sentences:
        say()
        say(paint("bold", label))
        for name, sentence in sentences.items():
            say(lines((f"  {name}", wrap(sentence, 6))))


_PRINT: dict[str, Callable[[Spec, dict[str, Any]], None]] = {
    "rule": _print_rule,
    "finding": _print_finding,
    "document": _print_document,
    "operation": _print_operation,
    "case": print_case,
}
