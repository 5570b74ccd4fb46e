"""`conformance list`: all rules, documents, operations, findings, cases, cells or backends, one a line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ..adapter import bundled_backends
from ..load.cases import load_cases, with_cases
from ..load.cells import DIMENSIONS, load_cells
from ..load.folders import cases_folder, spec_folder
from ..meaning.contract import contracts
from ..model import LEVELS, WEIGHTS, Spec
from ..system.terminal import columns, count_noun, cut_columns, is_terminal, paint, say, table, width
from ..system.text import describe_unknown, shorten
from .arguments import Usage, check_folder, emit, find_alike, load_spec_of, pick
from .facts import contract_of, of_document, of_finding, of_operation, of_rule, pointers_in, standing
from .parser import Parser
from .shared_options import add_suite

KINDS = ("defect", "disagreement", "silence")
_ARRANGEMENTS = DIMENSIONS["arrangement"]
_COLOURS = {"must": "bold", "may": "dim", "decided": "cyan", "silent": "yellow", "capacity": "yellow"}


class Filters(NamedTuple):
    """Only what concerns these is listed."""

    document: str | None = None
    rule: str | None = None
    level: str | None = None
    kind: str | None = None


class Folders(NamedTuple):
    """The folders of --spec and --cases."""

    spec: Path | None
    cases: Path | None


class _Listing(NamedTuple):
    """The way to list one kind of thing."""

    filters: tuple[str, ...]
    """The fields of Filters that it heeds."""
    entries: Callable[[Spec, Filters, Folders], list[dict[str, Any]]]
    header: tuple[str, ...]
    row: Callable[[Spec, dict[str, Any]], Sequence[str]]
    right: tuple[int, ...] = ()
    noun: str = ""
    """An entry in words, if it is not the singular of the name of the list."""
    notes: Callable[[list[dict[str, Any]]], list[str]] = lambda _: []
    """Lines below the table."""


EXAMPLES = """\
  conformance list rules decided               a level: must, may, silent or decided
  conformance list findings static-oneapi      a document
  conformance list findings defect             a kind: defect, disagreement or silence
  conformance list cases zero-copies           a rule; of cells too
  conformance list backends"""


def add_options(parser: Parser) -> None:
    parser.add_argument("what", nargs="?", help="rules, documents, operations, findings, cases, cells or backends")
    text = "list only what concerns this document, rule, level or kind"
    parser.add_argument("words", nargs="*", metavar="WORD", help=text)
    add_suite(parser)


def run(args: argparse.Namespace) -> int:
    """Print the list that the arguments name."""
    if args.what is None:
        raise Usage(f"say what to list: {', '.join(_LISTINGS)}; for example `conformance list rules`")
    plural = f"{args.what}s"
    what = plural.lower() if plural.lower() in _LISTINGS else pick("list", args.what, _LISTINGS)
    listing = _LISTINGS[what]
    spec = load_spec_of(args)
    cases = check_folder("--cases", args.cases)
    entries = listing.entries(spec, _read_words(spec, what, args.words), Folders(args.spec, cases))
    if args.json:
        emit({what: entries})
    else:
        _show(spec, what, listing, entries)
    return 0


def _read_words(spec: Spec, what: str, words: Sequence[str]) -> Filters:
    """Say what each word filters by; Usage if it names nothing, or nothing that this list has."""
    known = {"document": spec.documents, "level": LEVELS, "kind": KINDS, "rule": spec.rules}
    found: dict[str, str] = {}
    for word in words:
        kinds = [kind for kind, names in known.items() if find_alike(word, names)]
        fitting = [kind for kind in kinds if kind in _LISTINGS[what].filters]
        if kinds and not fitting:
            others = [name for name, other in _LISTINGS.items() if kinds[0] in other.filters]
            raise Usage(f"the {kinds[0]} {word!r} does not filter {what}; it filters {' and '.join(others)}")
        if not kinds:
            names = [name for kind in _LISTINGS[what].filters for name in known[kind]]
            if not names:
                raise Usage(f"{what} have no filter; drop {shorten(word)!r}")
            raise Usage(describe_unknown(" or ".join(_LISTINGS[what].filters), word, names, "conformance list rules"))
        if fitting[0] in found:
            raise Usage(f"{found[fitting[0]]!r} and {word!r} both name a {fitting[0]}; name one")
        found[fitting[0]] = find_alike(word, known[fitting[0]])[0]
    return Filters(**found)


def _show(spec: Spec, what: str, listing: _Listing, entries: list[dict[str, Any]]) -> None:
    rows = [list(listing.row(spec, each)) for each in entries]
    say(table(_fit_to_terminal(rows, listing.header), listing.header, listing.right))
    for line in listing.notes(entries):
        say(line)
    say()
    noun = listing.noun or what[:-1]
    first = next(iter(entries[0].values())) if entries else ""
    more = f"; conformance {'run' if what == 'backends' else 'explain'} {first}" if entries else ""
    say(paint("dim", f"{count_noun(len(entries), noun)}{more}"))


def _fit_to_terminal(rows: list[list[str]], header: Sequence[str]) -> list[list[str]]:
    """Cut the last column of the rows to the width of a terminal; a pipe gets all of it."""
    if not is_terminal(sys.stdout) or not rows:
        return rows
    before = [max(columns(row[at]) for row in [*rows, header]) + 2 for at in range(len(header) - 1)]
    return [[*row[:-1], cut_columns(row[-1], max(20, width() - sum(before)))] for row in rows]


# ── what can be listed ────────────────────────────────────────────────────────────────────────────


def _rules(spec: Spec, filters: Filters, folders: Folders) -> list[dict[str, Any]]:
    return [
        of_rule(spec, rule)
        for rule in spec.rules.values()
        if filters.level in (None, rule.level)
        and (filters.document is None or standing(rule, filters.document)["standing"] != "not bound")
    ]


def _documents(spec: Spec, filters: Filters, folders: Folders) -> list[dict[str, Any]]:
    return [of_document(spec, each) for each in spec.documents.values()]


def _operations(spec: Spec, filters: Filters, folders: Folders) -> list[dict[str, Any]]:
    chosen = (op for op in spec.operations.values() if filters.document is None or filters.document in op.documents)
    return [of_operation(each) for each in chosen]


def _findings(spec: Spec, filters: Filters, folders: Folders) -> list[dict[str, Any]]:
    compiled = contracts(spec)
    return [
        of_finding(spec, each, compiled)
        for each in sorted(spec.findings.values(), key=lambda finding: WEIGHTS.index(finding.weight))
        if filters.kind in (None, each.kind) and (filters.document is None or pointers_in(each.at, filters.document))
    ]


def _cases(spec: Spec, filters: Filters, folders: Folders) -> list[dict[str, Any]]:
    cases = load_cases(folders.cases or cases_folder(), spec)
    return [
        {
            "case": each.id,
            "place": str(each.place),
            "rule": each.rule,
            "steps": len(each.steps),
            "calls": [
                f"{s.src_type}{list(s.src)} by {' then '.join(str(list(shape)) for shape in s.shapes)}"
                for s in (each.steps[k] for k in each.shown_steps)
            ],
        }
        for each in cases.values()
        if filters.rule is None or each.rule == filters.rule
    ]


def _case_row(spec: Spec, each: dict[str, Any]) -> Sequence[str]:
    shown = "; ".join(each["calls"])
    more = f" (first and last of {each['steps']:,})" if each["steps"] > len(each["calls"]) else ""
    return each["case"], each["rule"], each["place"], f"{shown}{more}"


def _cells(spec: Spec, filters: Filters, folders: Folders) -> list[dict[str, Any]]:
    """Return the number of cases in each cell, one entry for all arrangements; None if no call can fill it."""
    from ..plan.rows import plan_of  # NumPy is slow to import, and no other list needs it
    from ..selfcheck.cells import table_of

    about = load_cells(folders.spec, spec)
    if about is None:
        return []
    suite = with_cases(spec, folders.spec or spec_folder(), folders.cases or cases_folder())
    table = table_of(plan_of(suite), about)
    counts = {cell: None if cell in table.exempt else len(cases) for cell, cases in table.cases.items()}
    return [
        {
            **{name: getattr(cell, name) for name in ("rule", "rank", "shape", "elements")},
            **{name: counts[cell._replace(arrangement=name)] for name in _ARRANGEMENTS},
        }
        for cell in counts
        if cell.arrangement == _ARRANGEMENTS[0] and filters.rule in (None, cell.rule)
    ]


def _cell_row(spec: Spec, each: dict[str, Any]) -> Sequence[str]:
    return *(each[name] for name in ("rule", "rank", "shape", "elements")), *(_count(each[n]) for n in _ARRANGEMENTS)


def _count(cases: int | None) -> str:
    if cases is None:
        return paint("dim", "-")
    return str(cases) if cases else paint("red", "0")


def _backends(spec: Spec, filters: Filters, folders: Folders) -> list[dict[str, Any]]:
    return [
        {
            "backend": name,
            "version": known.version,
            "about": known.about,
            "install": known.install,
            "not_tried": [*known.not_tried],
        }
        for name, known in bundled_backends().items()
    ]


def _backend_row(spec: Spec, each: dict[str, Any]) -> Sequence[str]:
    return (
        each["backend"],
        each["version"] or paint("dim", "not installed"),
        each["about"],
        each["install"] or "bundled",
    )


def _list_untried_ways(entries: list[dict[str, Any]]) -> list[str]:
    rows = [(each["backend"], "; ".join(each["not_tried"])) for each in entries if each["not_tried"]]
    return ["", table(rows, ("library of", "ways into its reshape that no backend here tries"))]


def _rule_row(spec: Spec, rule: dict[str, Any]) -> Sequence[str]:
    forms = [form for form in contract_of(spec.rules[rule["rule"]]) if form != "where"]
    bound = [name for name, each in rule["documents"].items() if each["standing"] != "not bound"]
    level = paint(_COLOURS[rule["level"]], rule["level"])
    return rule["rule"], level, "".join(forms) or "-", _where(spec, bound), rule["sentence"]


def _where(spec: Spec, documents: Collection[str]) -> str:
    return "all" if len(documents) == len(spec.documents) else " ".join(documents) or "-"


def _document_row(spec: Spec, each: dict[str, Any]) -> Sequence[str]:
    names = ("document", "operation", "edition", "lines", "statements")
    return *(str(each[name]) for name in names), each["licence"] or "no licence stated", each["title"]


def _operation_row(spec: Spec, each: dict[str, Any]) -> Sequence[str]:
    names = ("shape_passed_as", "types", "shape_types", "documents")
    return each["operation"], *(", ".join(each[name]) for name in names)


def _finding_row(spec: Spec, each: dict[str, Any]) -> Sequence[str]:
    return each["finding"], each["weight"], each["kind"], _where(spec, each["documents"]), each["about"]


_LISTINGS = {
    "rules": _Listing(("document", "level"), _rules, ("rule", "level", "contract", "documents", "sentence"), _rule_row),
    "documents": _Listing(
        (),
        _documents,
        ("document", "operation", "edition", "lines", "statements", "licence", "title"),
        _document_row,
        (3, 4),
    ),
    "operations": _Listing(
        ("document",), _operations, ("operation", "shape as", "types", "shape types", "documents"), _operation_row
    ),
    "findings": _Listing(
        ("document", "kind"), _findings, ("finding", "weight", "kind", "documents", "about"), _finding_row
    ),
    "cases": _Listing(("rule",), _cases, ("case", "rule", "place", "calls"), _case_row),
    "cells": _Listing(
        ("rule",),
        _cells,
        ("rule", "rank", "shape", "elements", *_ARRANGEMENTS),
        _cell_row,
        (4, 5, 6, 7),
        "row",
    ),
    "backends": _Listing(
        (), _backends, ("backend", "version", "what it is", "install"), _backend_row, notes=_list_untried_ways
    ),
}
