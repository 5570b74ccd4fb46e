"""`conformance check`: whether spec/ and cases/ are whole, consistent and true to the documents."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from ..adapter import load_adapter
from ..load.cases import with_cases
from ..load.folders import cases_folder, spec_folder
from ..load.spec import load_spec
from ..meaning.contract import clauses, contracts
from ..model import Malformed, Problem, Spec
from ..plan.rows import plan_of
from ..prove import check_cases
from ..prove.documents import Coverage, DocumentCoverage, verify
from ..system.terminal import counted, paint, say, table
from .arguments import emit, folder_given, located

LEVELS = ("must", "may", "decided", "silent")
KINDS = ("defect", "disagreement", "silence")


def run(args: argparse.Namespace) -> int:
    """Checks everything, prints each problem and a summary; 0 where there is no problem."""
    folders = [folder_given("--spec", args.spec), folder_given("--cases", args.cases)]
    sources = folder_given("--sources", args.sources)
    found = _checked(folders[0], folders[1], sources, args.lock)
    found = found._replace(problems=[located(problem, folders) for problem in sorted(found.problems)])
    if args.json:
        emit(_data(found))
    else:
        _show(found)
    return 1 if found.problems else 0


class _Found(NamedTuple):
    """What could be loaded, how the documents are covered, and every problem."""

    spec: Spec | None
    cases: int
    coverage: Coverage | None
    problems: list[Problem]


def _checked(folder: Path | None, cases: Path | None, sources: Path | None, lock: bool) -> _Found:
    try:
        spec = load_spec(folder)
        clauses(spec.rules.values())  # every expression, where `contracts` would stop at one document's
        contracts(spec)
    except Malformed as malformed:
        return _Found(None, 0, None, list(malformed.problems))
    number, problems = _cases(spec, folder, cases, lock)
    if sources is None:
        return _Found(spec, number, None, problems)
    more, coverage = verify(spec, sources)
    return _Found(spec, number, coverage, problems + more)


def _cases(spec: Spec, folder: Path | None, cases: Path | None, lock: bool) -> tuple[int, list[Problem]]:
    """How many cases there are, and what is wrong with them."""
    path = cases or cases_folder()
    try:
        suite = with_cases(spec, folder or spec_folder(), path)
    except Malformed as malformed:
        return 0, list(malformed.problems)
    plan = plan_of(suite)
    problems = list(check_cases.problems(suite, path, plan))
    problems += check_cases.reference_problems(plan, load_adapter("numpy"))
    if lock and set(problems) <= set(check_cases.lock_problems(suite, path)):  # what is locked stays for ever
        check_cases.lock(suite, path)
        problems = list(check_cases.lock_problems(suite, path))
    return len(suite.cases), problems


# ── for machines ──────────────────────────────────────────────────────────────────────────────────


def _data(found: _Found) -> dict[str, Any]:
    by_document = found.coverage.documents.items() if found.coverage else ()
    return {
        "ok": not found.problems,
        "problems": [{"path": each.place.path, "line": each.place.line, "what": each.what} for each in found.problems],
        "summary": {**_summary(found.spec), "cases": found.cases} if found.spec else None,
        "coverage": {name: _covered(each) for name, each in by_document} if found.coverage else None,
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


def _show(found: _Found) -> None:
    spec, problems = found.spec, found.problems
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
    _show_summary(spec, found.cases)
    say()
    _show_coverage(spec, found.coverage)
    say()
    if problems:
        say(paint("red", counted(len(problems), "problem")))
        say(f"next: mend {problems[0].place}, then the same command again")
        return
    say(paint("green", "the specification is whole" + (" and true to its documents" if found.coverage else "")))
    say("next: conformance meaning --src 3,4,5 --shape 0,-1 --special-zero true")


def _show_summary(spec: Spec, cases: int) -> None:
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
        ("cases", str(cases), "" if cases else "none could be checked"),
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
