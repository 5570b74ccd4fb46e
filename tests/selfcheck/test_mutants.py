"""A case notices every deleted rule and every change to the reference."""

import functools
from dataclasses import replace
from pathlib import Path

import pytest

from conformance.adapter import load_adapter
from conformance.load.cases import load_suite
from conformance.load.spec import load_spec
from conformance.meaning.contract import contracts
from conformance.model import Cases, Graph, Meaning, Outcome, Program, Rejected, Suite
from conformance.plan.rows import Plan, Row, plan_of, rows_of
from conformance.plan.steps import RowStep, StepMeaning
from conformance.selfcheck.check_cases import check_expectations, check_reference, reason_holds
from conformance.selfcheck.mutants import (
    EQUIVALENTS,
    KillerSearch,
    choose_rows_to_run,
    delete_rule,
    fails_on,
    find_outdated_proofs,
    find_unopposed_rules,
    list_mutants,
    planted_backends,
    time_limit,
    try_backend,
)
from conformance.selfcheck.mutate_source import Mutant, mutants
from tools.quick import rows_for_mutants

from .. import builders
from ..builders import ROOT, Cli, bundled_plan

WITH_CONTRACT = [rule.id for rule in load_spec().rules.values() if rule.has_contract]


@functools.cache
def rows() -> tuple[Row, ...]:
    return tuple(choose_rows_to_run(bundled_plan().rows))


# ── changes ───────────────────────────────────────────────────────────────────────────────────────
CHANGES = {
    "x = a == b": ["the statement dropped", "== became !="],
    "x = a < b": ["the statement dropped", "< became <=", "< became >="],
    "x = a in b": ["the statement dropped", "in became not in"],
    "x = a is None": ["the statement dropped", "is became is not"],
    "x = 0": ["the statement dropped", "0 became 1"],
    "x = -1": ["the statement dropped", "the minus dropped", "1 became 2", "1 became 0"],
    "x = 64": ["the statement dropped", "64 became 65", "64 became 63"],
    "x = True": ["the statement dropped", "True became False"],
    "x = 'a'": ["the statement dropped", "'a' became 'a~'"],
    "x = a * b": ["the statement dropped", "* became +"],
    "x = a // b": ["the statement dropped", "// became *"],
    "x = a % b": ["the statement dropped", "% became //"],
    "x *= a": ["* became +", "the statement dropped"],
    "x = not a": ["the statement dropped", "not dropped"],
    "x = a and b": ["the statement dropped", "and became or", "`a` dropped", "`b` dropped"],
    "x = a or b or c": ["the statement dropped", "or became and", "`a` dropped", "`b` dropped", "`c` dropped"],
    "x = a if b else c": ["the statement dropped", "always the first", "always the second"],
    "if a:\n    f()": ["the body dropped", "the statement dropped"],
    "if a:\n    f()\nelse:\n    g()": [
        "the body dropped", "what is else dropped", "the statement dropped", "the statement dropped",
    ],
    "raise a": ["the statement dropped"],
    "while a:\n    continue": ["the statement dropped"],
    '"""a text about it"""': [],
    "assert a == 1": [],
    "import a": [],
    "left = 1": [],
    "def f(a: 'int' = b) -> 'int':\n    return a": [],
}  # fmt: skip


@pytest.mark.parametrize("source", CHANGES)
def test_each_mutant_has_one_change(source: str) -> None:
    assert [mutant.change for mutant in mutants(source, frozenset({"left"}))] == CHANGES[source]


def test_a_mutant_says_where_it_is_and_can_be_run() -> None:
    source = "class A:\n    def f(self):\n        return 2 * 3\nnumber = A().f()\n"
    found = list(mutants(source))
    assert {(mutant.function, mutant.line) for mutant in found} == {("A.f", 3), ("", 4)}
    assert [mutant.module().number for mutant in found if mutant.line == 3] == [5, 9, 3, 8, 4]


def test_equal_changes_in_equal_lines_have_different_names() -> None:
    names = [mutant.name for mutant in mutants("x = 0\nx = 0\n")]
    assert len(set(names)) == len(names) == 4


# ── reasons ───────────────────────────────────────────────────────────────────────────────────────
def task(*meanings: Meaning) -> RowStep:
    first = rows()[0].steps[0]
    judged = tuple(StepMeaning(meaning, (f"document-{k}",)) for k, meaning in enumerate(meanings))
    return RowStep(first.graph, first.src_spec, first.shapes, False, judged, False)


ILLEGAL = Meaning("illegal", None, ("one-infer", "lower-bound"))
OPEN = Meaning("unspecified", (None,), ("rank-zero",))
LEGAL = Meaning("legal", (1,), ())


@pytest.mark.parametrize(
    ("meanings", "message", "holds"),
    [
        ((ILLEGAL,), "one-infer", True),
        ((ILLEGAL,), "lower-bound", True),
        ((ILLEGAL,), "rank-zero", False),
        ((ILLEGAL,), "one-infer ", False),
        ((ILLEGAL, LEGAL), "one-infer", True),
        ((ILLEGAL, OPEN), "rank-zero", False),  # what one document forbids is not refused for another's silence
        ((OPEN,), "rank-zero", True),
        ((OPEN, LEGAL), "one-infer", False),
        ((LEGAL,), "one-infer", False),
    ],
)
def test_a_rejection_names_a_rule_that_the_call_breaks(
    meanings: tuple[Meaning, ...], message: str, holds: bool
) -> None:
    assert reason_holds(task(*meanings), Outcome("rejected", stage="run", message=message)) is holds


def test_an_answer_needs_no_reason() -> None:
    assert reason_holds(task(ILLEGAL), Outcome("tensor", "f32", (1,), b""))


class Excuse:
    """Refuses every call for a reason that nobody states."""

    identity, claims = load_adapter("reference").identity, load_adapter("reference").claims

    def compile(self, graph: Graph) -> Program:
        raise Rejected("compile", "the-moon-is-full")


def test_a_reason_that_no_contract_gives_is_named_in_every_row(tmp_path: Path) -> None:
    plan = builders.plan_of_cases(tmp_path)
    told = {each.what for each in check_reference(plan, Excuse())}
    for row in plan.rows:
        assert any(each.startswith(f"{row.id}: the reference rejects by the-moon-is-full") for each in told), row.id


# ── rules deleted ─────────────────────────────────────────────────────────────────────────────────
@pytest.mark.slow
@pytest.mark.parametrize("rule", WITH_CONTRACT)
def test_deleting_a_rule_contradicts_a_case(rule: str) -> None:
    deleted = delete_rule(bundled_plan().suite, rule)
    assert deleted.wrong is None
    assert bool(deleted.proof) == bundled_plan().suite.spec.rules[rule].implied


def test_deleting_a_rule_without_cases_is_a_problem() -> None:
    cases = {name: case for name, case in bundled_plan().suite.cases.items() if case.rule != "one-infer"}
    assert "write a witness" in (
        delete_rule(Suite(bundled_plan().suite.spec, Cases(cases), ""), "one-infer").wrong or ""
    )


# ── mutants of the reference ────────────────────────────────────────────────────────────────────────
def find_mutant(words: str) -> Mutant:
    return next(mutant for mutant in list_mutants() if words in mutant.name)


@pytest.mark.slow
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.exhaustive), 5])
def test_every_mutant_is_noticed_or_proved_equivalent(step: int) -> None:
    search = KillerSearch(rows())
    unproved = [mutant for mutant in list_mutants() if mutant.name not in EQUIVALENTS]
    assert len(unproved) > 100
    assert [(mutant.line, mutant.name) for mutant in unproved[::step] if search.find_killer(mutant).wrong] == []


@pytest.mark.slow
@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.exhaustive), 97])
def test_no_row_notices_a_mutant_proved_equivalent(step: int) -> None:
    search = KillerSearch(rows()[::step])
    proved = (mutant for mutant in list_mutants() if mutant.name in EQUIVALENTS)
    assert [(mutant.line, mutant.name) for mutant in proved if search.find_killer(mutant).wrong] == []


def test_every_proof_is_of_an_existing_mutant() -> None:
    assert list(find_outdated_proofs(list_mutants())) == []
    assert len(list(find_outdated_proofs(list(list_mutants())[:1]))) >= len(EQUIVALENTS) - 1


@pytest.mark.parametrize(
    ("words", "rule", "is_proved", "by_reason", "wrong"),
    [
        ("no length is None · != became ==", None, False, False, None),
        ("'one-infer' became 'one-infer~'", "one-infer", False, True, None),
        ("free > 1: · the body dropped", "zero-copies", False, False, "no row notices it"),
        ("free > 1: · the body dropped", None, True, False, "take it off the list"),
    ],
    ids=["by a row", "by its reason", "by nothing, without a proof", "although there is a proof"],
)
def test_how_a_mutant_is_noticed(
    words: str, rule: str | None, is_proved: bool, by_reason: bool, wrong: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant, asked = find_mutant(words), [row for row in rows() if rule in (None, row.case.rule)]
    if is_proved:
        monkeypatch.setitem(EQUIVALENTS, mutant.name, "nobody would write two")
    found = KillerSearch(asked).find_killer(mutant)
    assert (bool(found.killer), found.by_reason) == (wrong != "no row notices it", by_reason)
    assert found.wrong is None if wrong is None else wrong in (found.wrong or "")


def test_a_mutant_that_cannot_be_imported_is_noticed() -> None:
    broken = next(mutants("1 + x\nclass Reference: pass\n"))._replace(source="1 // 0")
    assert KillerSearch(rows()).find_killer(broken).killer == "ZeroDivisionError when it is imported"


@pytest.mark.slow
def test_a_row_that_fails_on_the_reference_notices_nothing() -> None:
    """Each mutant, and each planted backend, was noticed by a row of an added rule."""
    suite = load_suite(ROOT / "examples" / "dialect")
    added = [row for row in plan_of(suite).rows if row.case.id in suite.added]
    failing = [row for row in added if fails_on(row, load_adapter("reference"))]
    assert failing
    assert KillerSearch(failing).find_killer(find_mutant("== became !=")).killer is None
    assert try_backend(planted_backends()["zero-flag-ignored"], failing).killers == {}
    assert list(find_unopposed_rules(suite, planted_backends())) == [], "nobody can plant one that breaks an added rule"


def test_an_endless_mutant_is_named_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """The end of its time was an error of the backend, as if a verdict had noticed it."""
    monkeypatch.setattr("conformance.selfcheck.mutants.MAX_SECONDS", 0.05)
    head = "from conformance.adapters.reference import Reference as Right\n"
    loop = "class Reference(Right):\n    def compile(self, graph):\n        while True: pass\n"
    row = rows()[0]
    assert KillerSearch([row]).find_killer(Mutant("", 1, "", "", head + loop)).killer == f"{row.id} (endless)"


SLOW = """
from time import process_time
from conformance.adapters.reference import Reference as Right
class Reference(Right):
    def compile(self, graph):
        end = process_time() + 0.1
        while process_time() < end:
            sum(range(20_000))  # the clock itself takes time of the kernel, which does not count
        return super().compile(graph)
"""


@pytest.mark.slow
def test_a_mutant_that_is_only_slow_is_not_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time was for all rows together, and the reference alone needs a third of it."""
    some, mutant = [row for row in rows() if row.first is None][:6], Mutant("", 1, "", "", SLOW)
    monkeypatch.setattr("conformance.selfcheck.mutants.MAX_SECONDS", 0.3)
    assert KillerSearch(some).find_killer(mutant).killer is None
    monkeypatch.setattr("tools.quick.MAX_SECONDS", 0.3)
    monkeypatch.setattr("tools.quick.list_mutants", lambda: [mutant])
    assert rows_for_mutants([], some) == []


def test_an_endless_loop_is_ended() -> None:
    with time_limit(0.05) as late:
        while True:
            pass
    assert late  # type: ignore[unreachable]


# ── the command ───────────────────────────────────────────────────────────────────────────────────
@pytest.mark.slow
def test_the_command_shows_what_it_planted_and_what_noticed_it(
    tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conformance.selfcheck.mutants.count_drawn_rows", lambda *_: 1)
    said = cli("check", "--mutants", "zero-flag-ignored", "--suite", builders.write_suite(tmp_path)).expect(0).out
    assert "zero-flag-ignored" in said
    assert "the suite notices 1 planted backend, 0 deleted rules and 0 mutants of the reference" in said


@pytest.mark.slow
@pytest.mark.exhaustive
def test_the_command_fails_where_the_cases_lack_one(tmp_path: Path, cli: Cli) -> None:
    suite = builders.write_suite(tmp_path, builders.CASES.partition("  - {id: two-infers")[0])
    problems = cli("check", "--mutants", "zero", "--json", "--suite", suite).expect(1).data["problems"]
    assert any(each.startswith("planted:zeros-taken-in-turn is noticed by no case of") for each in problems)
    assert any(each.startswith("rule 'zero-copies': deleting it changes what no case expects") for each in problems)
    assert any(each.startswith("adapters/reference.py:") and "no row notices it" in each for each in problems)


def test_a_selection_of_nothing_is_a_usage_error(cli: Cli) -> None:
    cli("check", "--mutants", "no-such-thing").expect(2, err="--mutants 'no-such-thing' is in no name")


# ── a rule that no longer binds in one of its documents ────────────────────────────────────────────
def bindings() -> list[tuple[str, str]]:
    """Return every rule that has a contract and is not implied, with each of its documents."""
    rules = bundled_plan().suite.spec.rules.values()
    return [
        (rule.id, document)
        for rule in rules
        if rule.level in ("must", "decided") and rule.has_contract and not rule.implied
        for document in sorted(rule.documents)
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "document"), bindings(), ids=lambda name: name)
def test_a_rule_that_no_longer_binds_contradicts_a_case(rule: str, document: str) -> None:
    suite = bundled_plan().suite
    unbound = replace(suite.spec.rules[rule], documents=suite.spec.rules[rule].documents - {document})
    spec = replace(suite.spec, rules={**suite.spec.rules, rule: unbound})
    citing = {case.id: case for case in suite.cases.values() if case.rule == rule}
    rows = tuple(rows_of(citing.values(), spec, contracts(spec)))
    found = [str(problem) for problem in check_expectations(Plan(replace(suite, spec=spec), rows))]
    assert any(f"in {document} " in problem for problem in found), found[:3]
