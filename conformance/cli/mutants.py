"""`conformance check --mutants`: does the suite notice planted backends, deleted rules and mutants of the reference?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ..model import Suite
from ..plan.rows import plan_of
from ..selfcheck import mutants as selfcheck
from ..system.progress import track
from ..system.terminal import count_noun, cut_columns, paint, say, table
from .arguments import Stop, emit


class MutantResults(NamedTuple):
    """The results of every planted backend, deleted rule and mutant."""

    planted: tuple[selfcheck.PlantedResult, ...]
    deleted: tuple[selfcheck.DeletedRule, ...]
    mutants: tuple[selfcheck.MutantResult, ...]
    list_problems: tuple[str, ...]
    """Problems of the lists of planted backends and of proofs."""

    @property
    def problems(self) -> Iterator[str]:
        """Describe what the suite did not notice, or noticed where it should not."""
        for planted in self.planted:
            if planted.wrong:
                yield f"planted:{planted.name} {planted.wrong}"
        for deleted in self.deleted:
            if deleted.wrong:
                yield f"rule {deleted.rule!r}: {deleted.wrong}"
        for result in self.mutants:
            if result.wrong:
                mutant = result.mutant
                yield f"adapters/reference.py:{mutant.line}: {mutant.name}: {result.wrong}"
        yield from self.list_problems


def try_mutants(suite: Suite, select: str, as_json: bool) -> int:
    """Try everything with `select` in its name; return 1 if the suite does not notice something."""
    results = _try_all(suite, select)
    problems = list(results.problems)
    if as_json:
        emit(_collect_data(results, problems))
    else:
        _show(results, problems)
    return 1 if problems else 0


def _try_all(suite: Suite, select: str) -> MutantResults:
    backends = {name: backend for name, backend in selfcheck.planted_backends().items() if select in name}
    rules = [rule.id for rule in suite.spec.rules.values() if rule.has_contract and select in rule.id]
    mutants = [mutant for mutant in selfcheck.list_mutants() if select in mutant.name or select == mutant.function]
    if not (backends or rules or mutants):
        raise Stop(f"--mutants {select!r} is in no name of a planted backend, rule or line of the reference; try zero")
    rows = selfcheck.choose_rows_to_run(plan_of(suite).rows)
    drawn = selfcheck.drawn_rows(suite) if backends else ()
    search = selfcheck.KillerSearch(rows)
    return MutantResults(
        tuple(
            selfcheck.try_backend(each, rows, drawn)
            for each in track("planted backend", backends.values(), len(backends))
        ),
        tuple(selfcheck.delete_rule(suite, rule) for rule in track("rule", rules, len(rules))),
        tuple(search.find_killer(mutant) for mutant in track("mutant", mutants, len(mutants))),
        () if select else (*selfcheck.find_unopposed_rules(suite, backends), *selfcheck.find_outdated_proofs(mutants)),
    )


def _collect_data(results: MutantResults, problems: list[str]) -> dict[str, Any]:
    return {
        "ok": not problems,
        "problems": problems,
        "planted": [
            {**each._asdict(), "elsewhere": dict(zip(("failed", "rows"), each.elsewhere, strict=True))}
            for each in results.planted
        ],
        "deleted": [each._asdict() for each in results.deleted],
        "turned": [
            {name: getattr(result.mutant, name) for name in ("line", "function", "text", "change")}
            | {name: getattr(result, name) for name in ("killer", "by_reason", "proof")}
            for result in results.mutants
        ],
    }


def _show(results: MutantResults, problems: list[str]) -> None:
    if results.planted:
        about = "each with one false belief, and the cases of the rule it breaks that notice it"
        say(f"{paint('bold', 'Planted backends')}: {about}")
        header = ("backend", "breaks", "cases", "the first", "elsewhere")
        say(table(map(_describe_planted, results.planted), header, [2, 4]))
        say()
    if results.deleted:
        say(f"{paint('bold', 'Rules deleted')}: the cases that then expect something else")
        say(table(map(_describe_deleted, results.deleted), ("rule", "cases", "the first"), [1]))
        say()
    if results.mutants:
        say(f"{paint('bold', 'Mutants of the reference')}: {_count_mutants(results.mutants)}")
        for proof in dict.fromkeys(result.proof for result in results.mutants if result.proof):
            say(f"  equivalent: {proof}")
            for mutant in (result.mutant for result in results.mutants if result.proof == proof):
                say(f"    {mutant.line}: {cut_columns(mutant.text, 60)} · {mutant.change}")
        say()
    for problem in problems:
        say(paint("red", problem))
    planted = count_noun(len(results.planted), "planted backend")
    deleted = count_noun(len(results.deleted), "deleted rule")
    tried = f"{planted}, {deleted} and {count_noun(len(results.mutants), 'mutant')} of the reference"
    if problems:
        say(paint("red", f"{count_noun(len(problems), 'problem')} with {tried}"))
    else:
        say(paint("green", f"the suite notices {tried}"))


def _describe_planted(planted: selfcheck.PlantedResult) -> tuple[str, ...]:
    cases = planted.killers.get(planted.breaks, ())
    failed, rows = planted.elsewhere
    share = f"{100 * failed / rows:.0f} %" if rows else ""
    return planted.name, planted.breaks, str(len(cases)), cases[0] if cases else paint("red", "none"), share


def _describe_deleted(deleted: selfcheck.DeletedRule) -> tuple[str, ...]:
    first = deleted.cases[0] if deleted.cases else "equivalent: implied by the other rules" if deleted.proof else ""
    return deleted.rule, str(len(deleted.cases)), first or paint("red", "none")


def _count_mutants(results: tuple[selfcheck.MutantResult, ...]) -> str:
    verdict = sum(each.killer is not None and not each.by_reason for each in results)
    reason = sum(each.by_reason for each in results)
    proved = sum(each.proof is not None and each.killer is None for each in results)
    return (
        f"{count_noun(len(results), 'mutant')}: {verdict} noticed by a verdict, {reason} by the reason of a rejection, "
        f"{proved} proved equivalent, {len(results) - verdict - reason - proved} left"
    )
