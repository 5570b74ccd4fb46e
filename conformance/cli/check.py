"""`conformance check`: check that spec/ and cases/ are complete, consistent and true to the documents."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from ..adapter import load_adapter
from ..load.cases import load_suite, with_cases
from ..load.faults import load_faults
from ..load.folders import digest_of_folders, find_cases_folder, find_folders, find_spec_folder
from ..load.schema import check_bundled_files
from ..load.spec import load_spec
from ..load.strict_yaml import raise_problems
from ..meaning.compiled_rules import compile_rules
from ..meaning.contract import contracts
from ..meaning.faults import KnownFaults
from ..model import FINDING_KINDS, LEVELS, Malformed, Problem, Spec, Suite
from ..plan.rows import plan_of
from ..selfcheck import check_cases
from ..selfcheck.documents import Coverage, DocumentCoverage, verify_documents
from ..selfcheck.meetings import DesignCount, check_meetings, count_meetings
from ..selfcheck.same_rows import lock_suite
from ..system.terminal import count_noun, paint, say, table, verbatim
from .arguments import Stop, check_folder, emit, load_spec_of, locate, write_suite_option
from .mutants import try_mutants
from .parser import Parser
from .prove import try_proof

_MAX_PROBLEMS = 100
"""Problems on the terminal."""

EXAMPLES = """\
  conformance check                                   the bundled suite
  conformance check --suite my --lock                 cases of yours in my/cases; lock the ids of new ones
  conformance check --mutants zero                    wrong backends, rules and lines with zero in their name
  conformance check --prove                           the reference against the documents, for all lengths
  conformance check --sources DIR                     hold it against the documents themselves
exit codes: 0 no problem · 1 a problem · 2 usage"""


def add_options(parser: Parser) -> None:
    text = "lock the ids of new cases, and the digest of the bundled suite, if nothing else is wrong"
    parser.add_argument("--lock", action="store_true", help=text)
    text = "the five documents (`explain ID` says where each is): verify digests and pointers, and compute coverage"
    parser.path("--sources", "DIR", text)
    text = "plant bad backends, delete rules, mutate the reference: does the suite notice? only those with WORD in"
    parser.once("--mutants", "WORD", f"{text} their name (all; takes minutes)", nargs="?", const="")
    text = "prove for all lengths, up to RANK (3) of them, that the reference decides as the documents; say where these"
    parser.once("--prove", "RANK", f"{text} differ", nargs="?", const="3")


def run(args: argparse.Namespace) -> int:
    """Check everything and print each problem and a summary; 0 if there is no problem."""
    if args.mutants is not None or args.prove is not None:
        named = "--mutants" if args.mutants is not None else "--prove"
        if args.lock or args.sources or (args.mutants is not None and args.prove is not None):
            raise Stop(f"{named} checks nothing else; drop the other options but --suite and --json")
        if args.prove is not None:
            return try_proof(load_spec_of(args.suite), args.prove, args.json, write_suite_option(args.suite))
        return try_mutants(load_suite(args.suite), args.mutants, args.json)
    sources = check_folder("--sources", args.sources)
    results = _check(args.suite, sources, args.lock)
    results = results._replace(problems=[locate(problem, args.suite) for problem in sorted(results.problems)])
    if args.json:
        emit(_collect_data(results))
    else:
        _show(results, write_suite_option(args.suite))
    return 1 if results.problems else 0


class _CheckResults(NamedTuple):
    """The loaded specification, the number of cases, what meets, the coverage of the documents, and every problem."""

    spec: Spec | None
    cases: int
    meetings: tuple[DesignCount, ...]
    """What meets in the combinations; nothing if only added cases were checked."""
    coverage: Coverage | None
    problems: list[Problem]
    added: int = 0
    """The number of cases that were added to the bundled ones, if only those were checked."""


def _check(suite: Path | None, sources: Path | None, lock: bool) -> _CheckResults:
    folders = find_folders(suite)
    try:
        raise_problems(check_bundled_files() if {find_spec_folder(), find_cases_folder()} & {*folders} else [])
        spec = load_spec(folders.spec)
        compile_rules(spec.rules.values())  # every expression, where `contracts` would stop at one document's
        contracts(spec)
        KnownFaults(load_faults())
    except Malformed as malformed:
        return _CheckResults(None, 0, (), None, list(malformed.problems))
    more, coverage = ([], None) if sources is None else verify_documents(spec, sources)
    results = _check_cases(spec, suite, lock, bool(more))
    return results._replace(coverage=coverage, problems=results.problems + more)


def _check_cases(spec: Spec, folder: Path | None, lock: bool, are_documents_wrong: bool) -> _CheckResults:
    path = find_folders(folder).cases
    try:
        suite = with_cases(spec, folder)
        raise_problems([problem for name in suite.cases for problem in _find_reading_problems(suite, name)])
        plan = plan_of(suite)
        own = check_cases.choose_part_to_check(plan)
    except Malformed as malformed:
        return _CheckResults(spec, 0, (), None, list(malformed.problems))
    problems = list(check_cases.find_problems(suite, path, plan))
    problems += check_cases.check_reference(own, load_adapter("reference"))
    # other operations and types meet as they are run
    is_bundled = spec.digest == digest_of_folders([find_spec_folder()])
    meetings = count_meetings(suite) if is_bundled and own is plan else ()
    problems += check_meetings(meetings)
    # a locked id is never unlocked
    if lock and not are_documents_wrong and set(problems) <= set(check_cases.lock_problems(suite, path)):
        check_cases.lock(suite, path)
        if suite.folder is None:
            lock_suite(plan, path)
        problems = list(check_cases.lock_problems(suite, path))
    elif lock:  # ids are locked when nothing else is wrong
        problems = [problem for problem in problems if not problem.what.endswith(check_cases.TO_LOCK)]
    return _CheckResults(spec, len(suite.cases), meetings, None, problems, 0 if own is plan else len(suite.added))


def _find_reading_problems(suite: Suite, case: str) -> tuple[Problem, ...]:
    """Return the problems of a case; a bundled one is read when it is first asked for."""
    try:
        suite.cases[case]
    except Malformed as malformed:
        return malformed.problems
    return ()


def _collect_data(results: _CheckResults) -> dict[str, Any]:
    coverage = results.coverage
    counts = ("statements", "by_rule", "by_finding", "by_prose", "uncovered")
    return {
        "ok": not results.problems,
        "problems": [
            {"path": problem.place.path, "line": problem.place.line, "what": problem.what}
            for problem in results.problems
        ],
        "summary": _summarise(results.spec, results) if results.spec else None,
        "coverage": coverage
        and {name: {count: getattr(each, count) for count in counts} for name, each in coverage.items()},
    }


def _summarise(spec: Spec, results: _CheckResults) -> dict[str, Any]:
    rules = spec.rules.values()
    levels, kinds = Counter(rule.level for rule in rules), Counter(each.kind for each in spec.findings.values())
    return {
        "digest": spec.digest,
        "documents": len(spec.documents),
        "operations": len(spec.operations),
        "rules": {level: levels[level] for level in LEVELS},
        "contracts": sum(rule.has_contract for rule in rules),
        "implied": sum(rule.implied for rule in rules),
        "findings": {kind: kinds[kind] for kind in FINDING_KINDS},
        "cases": results.cases,
        "meetings": {
            each.design.name: {
                "rows": each.rows,
                "met": each.met,
                "missing": sum(1 for _ in each.missing),
                "groups": [
                    {"factors": group.group, "met": group.met, "missing": group.missing} for group in each.groups
                ],
            }
            for each in results.meetings
        },
    }


def _show(results: _CheckResults, options: str) -> None:
    spec, problems = results.spec, results.problems
    for problem in problems[:_MAX_PROBLEMS]:
        say(f"{paint('bold', str(problem.place))}: {problem.what}")
    if len(problems) > _MAX_PROBLEMS:  # a wrong rule is one for each of thousands of cases
        say(f"and {len(problems) - _MAX_PROBLEMS:,} more; --json has all")
    if problems:
        say()
    if spec is not None:
        _show_summary(spec, results)
        if results.coverage is not None:
            _show_coverage(spec, results.coverage)
        say()
    if problems:
        rest = "; no further check was made" if spec is None else ""
        say(paint("red", f"{count_noun(len(problems), 'problem')}{rest}"))
        only_new = all(problem.what.endswith(check_cases.TO_LOCK) for problem in problems)
        correct = f"correct {problems[0].place}, then the same command again"
        say(verbatim(f"next: {f'conformance check{options} --lock' if only_new else correct}"))
        return
    say(paint("green", "the specification is whole" + (" and true to its documents" if results.coverage else "")))
    if not results.coverage:
        say(f"not compared with the documents; conformance check{options} --sources DIR does that")
    say(verbatim(f"next: conformance meaning{options} --src 3,4,5 --shape 0,-1 --special-zero true"))


def _show_summary(spec: Spec, result: _CheckResults) -> None:
    data = _summarise(spec, result)
    rules, findings = data["rules"], data["findings"]
    contract = f"({data['contracts']} with a contract, {data['implied']} of them implied by others)"
    levels = " · ".join(f"{number} {level}" for level, number in rules.items())
    kinds = " · ".join(count_noun(number, kind) for kind, number in findings.items())
    cases = f"{result.added} of them added, and only these were checked" if result.added else ""
    rows = [
        ("documents", data["documents"], f"of {count_noun(data['operations'], 'operation')}"),
        ("rules", sum(rules.values()), f"{levels}  {contract}"),
        ("findings", sum(findings.values()), kinds),
        ("cases", result.cases, cases if result.cases else "none could be checked"),
    ]
    for each in result.meetings:
        full = sum(not group.missing for group in each.groups)
        what = f"on {each.design.name} calls: {full:,} of {len(each.groups):,} threes and pairs of factors are complete"
        rows.append(("combinations", each.rows, f"{what}, {each.met:,} values met"))
    say(table([(paint("bold", name), f"{number:,}", rest) for name, number, rest in rows], right=[1]))


def _show_coverage(spec: Spec, coverage: Coverage) -> None:
    header = ("document", "operation", "edition", "lines", "statements", "in rules", "in findings", "prose", "covered")
    compared = (each for each in spec.documents.values() if each.id in (spec.added or spec.documents))
    facts = ((each.id, each.operation, each.edition, str(each.lines)) for each in compared)
    say()
    say(table([(*each, *_format_coverage(coverage.get(each[0]))) for each in facts], header, range(3, 9)))


def _format_coverage(each: DocumentCoverage | None) -> tuple[str, ...]:
    if each is None:
        return "", "", "", "", paint("red", "no text")
    counts = (each.statements, each.by_rule, each.by_finding, each.by_prose)
    share = 100 * (each.statements - each.uncovered) // each.statements if each.statements else 0
    return *(f"{count:,}" for count in counts), paint("green" if not each.uncovered and share else "red", f"{share} %")
