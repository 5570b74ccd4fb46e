"""`conformance list`: all rules, documents, operations, findings, cases, factors or backends, one a line."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from ..adapter import find_registered_backends, read_bundled_backends
from ..load.cases import with_cases
from ..meaning.contract import contracts
from ..model import FINDING_KINDS, LEVELS, WEIGHTS, Spec
from ..system.groups import group_pairs
from ..system.terminal import count_noun, paint, say, table, verbatim
from ..system.text import describe_unknown, shorten
from .arguments import Stop, emit, load_plan, load_spec_of, locate_case, pick, write_suite_option
from .facts import of_document, of_finding, of_operation, of_rule, pointers_in, treatment_of
from .parser import Parser

_LEVEL_STYLES = {"must": "bold", "may": "dim", "decided": "cyan", "silent": "yellow", "capacity": "yellow"}

EXAMPLES = """\
  conformance list rules decided               a level: must, decided, capacity, silent or may
  conformance list findings static-oneapi      a document
  conformance list findings defect             a kind: defect, disagreement or silence
  conformance list cases zero-copies           a rule
  conformance list factors                     what meets in the drawn rows
  conformance list backends"""


def add_options(parser: Parser) -> None:
    parser.usage = "conformance list WHAT [WORD ...] [--suite DIR] [--json]"
    text = "rules, documents, operations, findings, cases, factors or backends"
    parser.add_argument("what", nargs="?", metavar="WHAT", help=text)
    text = "list only what concerns this document, rule, level or kind"
    parser.add_argument("words", nargs="*", metavar="WORD", help=text)


class _Listing(NamedTuple):
    filters: tuple[str, ...]
    """What a word can choose: a document, rule, level or kind."""
    entries: Callable[[Spec, Path | None, Mapping[str, str]], Iterator[dict[str, Any]]]
    """Makes the entries from the specification, the folder of --suite, and what is chosen by the kind of filter."""
    cells: Mapping[str, str | Callable[[Spec, dict[str, Any]], str]]
    """By the name of a column: the key of an entry, or a function that writes the cell."""
    right: tuple[int, ...] = ()


def run(args: argparse.Namespace) -> int:
    if args.what is None:
        raise Stop(f"say what to list: {', '.join(LISTINGS)}; for example `conformance list rules`")
    what = pick("list", args.what, LISTINGS)
    spec = load_spec_of(args.suite)
    entries = list(LISTINGS[what].entries(spec, args.suite, _read_words(spec, what, args.words)))
    if args.json:
        emit(_with_rows(entries, args.suite) if what == "cases" else {what: entries})
    else:
        _show(spec, what, entries, write_suite_option(args.suite))
    return 0


def _read_words(spec: Spec, what: str, words: Sequence[str]) -> dict[str, str]:
    """Say what each word filters by; Stop if it names nothing, or nothing that this list has."""
    known: dict[str, Collection[str]] = {
        "document": spec.documents, "level": LEVELS, "kind": FINDING_KINDS, "rule": spec.rules,
    }  # fmt: skip
    filters = LISTINGS[what].filters
    found: dict[str, str] = {}
    for word in words:
        kinds = [kind for kind, names in known.items() if word in names]
        kind = next((kind for kind in kinds if kind in filters), None)
        if kind is None and kinds:
            others = [name for name, other in LISTINGS.items() if kinds[0] in other.filters]
            raise Stop(f"the {kinds[0]} {word!r} does not filter {what}; it filters {' and '.join(others)}")
        if not filters:
            raise Stop(f"{what} have no filter; drop {shorten(word)!r}")
        if kind is None:
            names = [name for each in filters for name in known[each]]
            shown_by = "rules" if filters == ("rule",) else what
            raise Stop(describe_unknown(" or ".join(filters), word, names, f"conformance list {shown_by}"))
        if kind in found:
            raise Stop(f"{found[kind]!r} and {word!r} both name a {kind}; name one")
        found[kind] = word
    return found


def _show(spec: Spec, what: str, entries: list[dict[str, Any]], options: str) -> None:
    listing = LISTINGS[what]
    header = [*listing.cells]
    rows = [
        [str(each[cell]) if isinstance(cell, str) else cell(spec, each) for cell in listing.cells.values()]
        for each in entries
    ]
    say(table(rows, header, listing.right))
    if what == "backends":
        untried = [(each["backend"], "; ".join(each["not_tried"])) for each in entries if each["not_tried"]]
        say()
        say(table(untried, ("library of", "ways into its reshape that no backend here tries")))
    say()
    more = ""
    if entries and what != "factors":
        first = next(iter(entries[0].values()))
        more = f"; conformance {'run' if what == 'backends' else 'explain'} {first}{options}"
    say(verbatim(paint("dim", f"{count_noun(len(entries), what[:-1])}{more}")))


def _list_rules(spec: Spec, _: Path | None, chosen: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    document = chosen.get("document")
    for rule in spec.rules.values():
        is_bound = document is None or treatment_of(rule, document)["treatment"] != "not bound"
        if is_bound and chosen.get("level", rule.level) == rule.level:
            yield of_rule(spec, rule)


def _list_operations(spec: Spec, _: Path | None, chosen: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for operation in spec.operations.values():
        if chosen.get("document") in (None, *operation.documents):
            yield of_operation(operation)


def _list_findings(spec: Spec, folder: Path | None, chosen: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    compiled, options, document = contracts(spec), write_suite_option(folder), chosen.get("document")
    for finding in sorted(spec.findings.values(), key=lambda finding: WEIGHTS.index(finding.weight)):
        is_concerned = document is None or pointers_in(finding.at, document)
        if is_concerned and chosen.get("kind", finding.kind) == finding.kind:
            yield of_finding(spec, finding, compiled, options)


def _list_cases(spec: Spec, folder: Path | None, chosen: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    suite = with_cases(spec, folder)
    for case in suite.cases.values():
        if chosen.get("rule", case.rule) == case.rule:
            calls = [
                f"{step.src_type}{list(step.src)} by {' then '.join(str(list(shape)) for shape in step.shapes)}"
                for step in (case.steps[number] for number in case.shown_steps)
            ]
            facts = {"case": case.id, "place": str(locate_case(case, suite)), "rule": case.rule}
            yield {**facts, "steps": len(case.steps), "calls": calls}


def _with_rows(entries: Iterable[dict[str, Any]], suite: Path | None) -> dict[str, Any]:
    """Return cases with the ids of their rows, and the digest of the suite that has them."""
    plan = load_plan(suite)
    rows = group_pairs((row.case.id, row.id) for row in plan.rows)
    return {"suite": plan.suite.digest, "cases": [{**entry, "rows": rows.get(entry["case"], ())} for entry in entries]}


def _list_factors(spec: Spec, *_: object) -> Iterator[dict[str, Any]]:
    from ..draw.factors import Factors  # as above

    factors = Factors(spec)
    for name, values in factors.values.items():
        designs = [design for design in factors.designs if name in design.factors]
        meets = {design.name: "threes" if name in design.threes else "pairs" for design in designs}
        yield {"factor": name, "about": factors.about[name], "meets": meets, "values": values}


def _name_columns(*names: str) -> dict[str, str]:
    """Return columns that have the names of keys."""
    return {name: name for name in names}


def _join(key: str) -> Callable[[Spec, dict[str, Any]], str]:
    return lambda _, each: ", ".join(each[key])


def _name_documents(spec: Spec, documents: Collection[str]) -> str:
    return "all" if len(documents) == len(spec.documents) else " ".join(documents) or "-"


def _format_calls(_: Spec, case: dict[str, Any]) -> str:
    more = f" (first and last of {case['steps']:,})" if case["steps"] > len(case["calls"]) else ""
    return "; ".join(case["calls"]) + more


LISTINGS = {
    "rules": _Listing(
        ("document", "level"),
        _list_rules,
        {
            "rule": "rule",
            "level": lambda _, rule: paint(_LEVEL_STYLES[rule["level"]], rule["level"]),
            "contract": lambda _, rule: "".join(form for form in rule["contract"] if form != "where") or "-",
            "documents": lambda spec, rule: _name_documents(
                spec, [name for name, each in rule["documents"].items() if each["treatment"] != "not bound"]
            ),
            "sentence": "sentence",
        },
    ),
    "documents": _Listing(
        (),
        lambda spec, *_: (of_document(spec, each) for each in spec.documents.values()),
        {
            **_name_columns("document", "operation", "edition", "lines", "statements"),
            "licence": lambda _, document: document["licence"] or "no licence stated",
            "title": "title",
        },
        right=(3, 4),
    ),
    "operations": _Listing(
        ("document",),
        _list_operations,
        {
            "operation": "operation",
            "shape as": _join("shape_passed_as"),
            "types": _join("types"),
            "shape types": _join("shape_types"),
            "documents": _join("documents"),
        },
    ),
    "findings": _Listing(
        ("document", "kind"),
        _list_findings,
        {
            **_name_columns("finding", "weight", "kind"),
            "documents": lambda spec, finding: _name_documents(spec, finding["documents"]),
            "about": "about",
        },
    ),
    "cases": _Listing(("rule",), _list_cases, {**_name_columns("case", "rule", "place"), "calls": _format_calls}),
    "factors": _Listing(
        (),
        _list_factors,
        {
            **_name_columns("factor", "about"),
            "meets in": lambda _, factor: ", ".join(f"{kind} {size}" for kind, size in factor["meets"].items()),
            "values": _join("values"),
        },
    ),
    "backends": _Listing(
        (),
        lambda *_: chain(
            (
                {"backend": name, **{key: getattr(known, key) for key in ("version", "about", "install", "not_tried")}}
                for name, known in read_bundled_backends().items()
            ),
            (
                {"backend": name, "version": "installed", "about": at, "install": "registered", "not_tried": ()}
                for name, at in find_registered_backends().items()
            ),
        ),
        {
            "backend": "backend",
            "version": lambda _, backend: backend["version"] or paint("dim", "not installed"),
            "what it is": "about",
            "install": lambda _, backend: backend["install"] or "bundled",
        },
    ),
}
