"""`conformance check`: whether spec/ and cases/ are whole, consistent and true to the documents."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..contract import clauses, contracts
from ..documents import Coverage, DocumentCoverage, verify
from ..load import load_spec
from ..model import Malformed, Problem, Spec
from ..terminal import counted, paint, say, table
from . import emit, folder_given, located

LEVELS = ("must", "may", "decided", "silent")
KINDS = ("defect", "disagreement", "silence")


def run(args: argparse.Namespace) -> int:
    """Checks everything, prints each problem and a summary; 0 where there is no problem."""
    folders = [folder_given("--spec", args.spec), folder_given("--cases", args.cases)]
    sources = folder_given("--sources", args.sources)
    spec, coverage, problems = _checked(folders[0], sources)
    problems = [located(problem, folders) for problem in sorted(problems)]
    if args.json:
        emit(_data(spec, coverage, problems))
    else:
        _show(spec, coverage, problems)
    return 1 if problems else 0


def _checked(folder: Path | None, sources: Path | None) -> tuple[Spec | None, Coverage | None, list[Problem]]:
    """What could be loaded, how the documents are covered, and every problem."""
    try:
        spec = load_spec(folder)
        clauses(spec.rules.values())  # every expression, where `contracts` would stop at one document's
        contracts(spec)
    except Malformed as malformed:
        return None, None, list(malformed.problems)
    if sources is None:
        return spec, None, []
    problems, coverage = verify(spec, sources)
    return spec, coverage, problems


# ── for machines ──────────────────────────────────────────────────────────────────────────────────


def _data(spec: Spec | None, coverage: Coverage | None, problems: list[Problem]) -> dict[str, Any]:
    return {
        "ok": not problems,
        "problems": [{"path": each.place.path, "line": each.place.line, "what": each.what} for each in problems],
        "summary": _summary(spec) if spec else None,
        "coverage": {name: _covered(each) for name, each in coverage.documents.items()} if coverage else None,
    }


def _summary(spec: Spec) -> dict[str, Any]:
    rules, findings = spec.rules.values(), spec.findings.values()
    return {
        "digest": spec.digest,
        "documents": len(spec.documents),
        "operations": len(spec.operations),
        "rules": _by(LEVELS, (rule.level for rule in rules)),
        "contracts": sum(rule.has_contract for rule in rules),
        "implied": sum(rule.implied for rule in rules),
        "findings": _by(KINDS, (finding.kind for finding in findings)),
    }


def _by(names: tuple[str, ...], found: Iterable[str]) -> dict[str, int]:
    counts = Counter(found)
    return {name: counts[name] for name in names}


def _covered(coverage: DocumentCoverage) -> dict[str, int]:
    names = ("statements", "by_rule", "by_finding", "by_prose", "uncovered")
    return {name: getattr(coverage, name) for name in names}


# ── for people ────────────────────────────────────────────────────────────────────────────────────


def _show(spec: Spec | None, coverage: Coverage | None, problems: list[Problem]) -> None:
    for problem in problems:
        say(f"{paint('bold', str(problem.place))}: {problem.what}")
    if problems:
        say()
    if spec is None:
        files = len({problem.place.path for problem in problems})
        say(
            paint("red", f"{counted(len(problems), 'problem')} in {counted(files, 'file')}: nothing was checked beyond")
        )
        say(f"next: mend {problems[0].place}, then `conformance check` again")
        return
    _show_summary(spec)
    say()
    _show_coverage(spec, coverage)
    say()
    if problems:
        say(paint("red", counted(len(problems), "problem")))
        say(f"next: mend {problems[0].place}, then the same command again")
        return
    say(paint("green", "the specification is whole" + (" and true to its documents" if coverage else "")))
    say("next: conformance meaning --src 3,4,5 --shape 0,-1 --special-zero true")


def _show_summary(spec: Spec) -> None:
    data = _summary(spec)
    rules, findings = data["rules"], data["findings"]
    contract = f"({data['contracts']} with a contract, {data['implied']} of them implied by others)"
    levels = " · ".join(f"{number} {level}" for level, number in rules.items())
    rows = [
        ("documents", str(data["documents"]), f"of {counted(data['operations'], 'operation')}"),
        ("rules", str(sum(rules.values())), f"{levels}  {contract}"),
        (
            "findings",
            str(sum(findings.values())),
            " · ".join(counted(number, kind) for kind, number in findings.items()),
        ),
    ]
    say(table([(paint("bold", name), number, rest) for name, number, rest in rows], right=[1]))


def _show_coverage(spec: Spec, coverage: Coverage | None) -> None:
    if coverage is None:
        say(table([_row(spec, name) for name in spec.documents], ("document", "operation", "year", "lines"), [2, 3]))
        say()
        say("coverage     not verified; give the folder with the documents: conformance check --sources DIR")
        return
    header = ("document", "operation", "year", "lines", "statements", "in rules", "in findings", "prose", "covered")
    rows = [(*_row(spec, name), *_coverage_row(coverage.documents.get(name))) for name in spec.documents]
    say(table(rows, header, range(2, 9)))


def _row(spec: Spec, name: str) -> tuple[str, ...]:
    document = spec.documents[name]
    return name, document.operation, str(document.year), str(document.lines)


def _coverage_row(each: DocumentCoverage | None) -> tuple[str, ...]:
    if each is None:
        return "", "", "", "", paint("red", "no text")
    counts = (each.statements, each.by_rule, each.by_finding, each.by_prose)
    share = 100 * (each.statements - each.uncovered) // each.statements if each.statements else 0
    return *map(str, counts), paint("green" if not each.uncovered and share else "red", f"{share} %")
