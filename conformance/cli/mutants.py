"""`conformance mutants`: does the suite notice every planted backend, deleted rule and turned line of the reference?"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ..load.cases import load_suite
from ..model import Suite
from ..plan.rows import plan_of
from ..prove.mutants import (
    Deleted,
    Hunt,
    Planted,
    Turned,
    broken_backends,
    delete,
    outdated,
    plant,
    reference_mutants,
    rows_to_run,
    unopposed,
)
from ..system.terminal import Progress, counted, cut, paint, say, table
from .arguments import Usage, emit, folder_given


class Findings(NamedTuple):
    """What came of everything that was tried."""

    planted: tuple[Planted, ...]
    deleted: tuple[Deleted, ...]
    turned: tuple[Turned, ...]
    amiss: tuple[str, ...]
    """What is wrong with the lists of beliefs and of proofs themselves."""

    @property
    def problems(self) -> Iterator[str]:
        """What the suite did not notice, or noticed where it should not."""
        for planted in self.planted:
            if planted.wrong:
                yield f"broken:{planted.name} {planted.wrong}"
        for deleted in self.deleted:
            if deleted.wrong:
                yield f"rule {deleted.rule!r}: {deleted.wrong}"
        for turned in self.turned:
            if turned.wrong:
                mutant = turned.mutant
                yield f"adapters/numpy_reference.py:{mutant.line}: {mutant.name}: {turned.wrong}"
        yield from self.amiss


def run(args: argparse.Namespace) -> int:
    """Tries everything, or what -k selects; 1 where something survives."""
    suite = load_suite(folder_given("--spec", args.spec), folder_given("--cases", args.cases))
    findings = _found(suite, args.select or "")
    problems = list(findings.problems)
    if args.json:
        emit(_data(findings, problems))
    else:
        _show(findings, problems)
    return 1 if problems else 0


def _found(suite: Suite, select: str) -> Findings:
    backends = {name: backend for name, backend in broken_backends().items() if select in name}
    rules = [rule.id for rule in suite.spec.rules.values() if rule.has_contract and select in rule.id]
    mutants = [mutant for mutant in reference_mutants() if select in mutant.name or select == mutant.function]
    if not (backends or rules or mutants):
        raise Usage(f"-k {select!r} is in no name of a planted backend, rule or line of the reference; try `-k zero`")
    rows = rows_to_run(plan_of(suite).rows)
    hunt = Hunt(rows)
    return Findings(
        tuple(plant(backend, rows) for backend in _watched("planted backend", list(backends.values()))),
        tuple(delete(suite, rule) for rule in _watched("rule", rules)),
        tuple(hunt.hunted(mutant) for mutant in _watched("mutant", mutants)),
        () if select else (*unopposed(suite, backends), *outdated(mutants)),
    )


def _watched(label: str, things: list[Any]) -> Iterator[Any]:
    """The things one after another, counted up for a person who waits."""
    progress = Progress(label, len(things))
    for done, thing in enumerate(things):
        progress.at(done)
        yield thing
    progress.close()


# ── for machines ──────────────────────────────────────────────────────────────────────────────────


def _data(findings: Findings, problems: list[str]) -> dict[str, Any]:
    return {
        "ok": not problems,
        "problems": problems,
        "planted": [_planted_data(planted) for planted in findings.planted],
        "deleted": [each._asdict() for each in findings.deleted],
        "turned": [_turned_data(turned) for turned in findings.turned],
    }


def _planted_data(planted: Planted) -> dict[str, Any]:
    failed, rows = planted.elsewhere
    data = planted._asdict() | {"elsewhere": {"failed": failed, "rows": rows}}
    return {**data, "killers": {rule: list(cases) for rule, cases in planted.killers.items()}}


def _turned_data(turned: Turned) -> dict[str, Any]:
    mutant = turned.mutant
    return {
        "line": mutant.line,
        "function": mutant.function,
        "text": mutant.text,
        "change": mutant.change,
        "killer": turned.killer,
        "by_reason": turned.by_reason,
        "proof": turned.proof,
    }


# ── for people ────────────────────────────────────────────────────────────────────────────────────


def _show(findings: Findings, problems: list[str]) -> None:
    if findings.planted:
        _heading("Planted backends", "each with one false belief, and the cases of the rule it breaks that notice it")
        say(
            table(map(_planted_row, findings.planted), ("backend", "breaks", "cases", "the first", "elsewhere"), [2, 4])
        )
        say()
    if findings.deleted:
        _heading("Rules deleted", "the cases whose expectation no longer holds")
        say(table(map(_deleted_row, findings.deleted), ("rule", "cases", "the first"), [1]))
        say()
    if findings.turned:
        _heading("The reference, turned", _turned_counts(findings.turned))
        for proof, turned in _by_proof(findings.turned):
            say(f"  equivalent: {proof}")
            for each in turned:
                say(f"    {each.mutant.line}: {cut(each.mutant.text, 60)} · {each.mutant.change}")
        say()
    for problem in problems:
        say(paint("red", problem))
    tried = (
        f"{counted(len(findings.planted), 'planted backend')}, {counted(len(findings.deleted), 'deleted rule')} and "
    )
    tried += f"{counted(len(findings.turned), 'mutant')} of the reference"
    if problems:
        say(paint("red", f"{counted(len(problems), 'problem')} with {tried}"))
    else:
        say(paint("green", f"the suite notices {tried}"))


def _heading(title: str, about: str) -> None:
    say(f"{paint('bold', title)}: {about}")


def _planted_row(planted: Planted) -> tuple[str, ...]:
    cases = planted.killers.get(planted.breaks, ())
    failed, rows = planted.elsewhere
    share = f"{100 * failed / rows:.0f} %" if rows else ""
    return planted.name, planted.breaks, str(len(cases)), cases[0] if cases else paint("red", "none"), share


def _deleted_row(deleted: Deleted) -> tuple[str, ...]:
    first = deleted.cases[0] if deleted.cases else "equivalent: implied by the other rules" if deleted.proof else ""
    return deleted.rule, str(len(deleted.cases)), first or paint("red", "none")


def _turned_counts(turned: tuple[Turned, ...]) -> str:
    verdict = sum(each.killer is not None and not each.by_reason for each in turned)
    reason = sum(each.by_reason for each in turned)
    proved = sum(each.proof is not None for each in turned)
    return (
        f"{counted(len(turned), 'mutant')}: {verdict} noticed by a verdict, {reason} by the reason of a refusal, "
        f"{proved} proved equivalent, {len(turned) - verdict - reason - proved} left"
    )


def _by_proof(turned: Iterable[Turned]) -> list[tuple[str, list[Turned]]]:
    found: dict[str, list[Turned]] = {}
    for each in turned:
        if each.proof:
            found.setdefault(each.proof, []).append(each)
    return list(found.items())
