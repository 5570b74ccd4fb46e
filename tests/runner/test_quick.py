"""`run --quick`: few rows that notice almost every planted backend, and drawn rows in which pairs of values meet."""

from pathlib import Path

import pytest

from conformance.draw.rows import Drawn, RowDrawer
from conformance.evidence.results import read
from conformance.load.cases import load_suite
from conformance.model import Claims
from conformance.plan.quick import QUICK, quick_rows
from conformance.plan.rows import Row, has_many_elements, parse_drawn_id, plan_of, plan_of_cases
from conformance.plan.select import select_rows
from conformance.run import row as row_module
from conformance.runner.run_suite import order_rows
from conformance.selfcheck.mutants import fails_on, planted_backends
from tools.quick import numbers_of_combinations, pairs_of_rows

from ..builders import Cli, write_cases

QUICK_ROWS = quick_rows()
PLANTED = planted_backends()
SUITE = load_suite()
EVERYTHING = Claims(tuple(SUITE.spec.operations))


def draw_rows(claims: Claims) -> list[Row]:
    return list(RowDrawer(SUITE.spec, claims).rows(Drawn(0, len(QUICK_ROWS.drawn), QUICK)))


@pytest.mark.slow
def test_a_quick_run_says_what_it_shows_and_gives_4(cli: Cli, tmp_path: Path) -> None:
    said = cli("run", "reference", QUICK, "--out", tmp_path / "out")
    rows, cases = len(QUICK_ROWS.rows), len(QUICK_ROWS.cases)
    noticed = f"{len(PLANTED) - len(QUICK_ROWS.unnoticed)} of {len(PLANTED)} planted backends"
    few = f"--quick: {rows} rows of {cases} cases; together with all its drawn rows they notice {noticed}"
    said.expect(4, text=f"exit 4: incomplete: {few}; a full run has {len(SUITE.cases):,} cases")
    evidence = read(tmp_path / "out" / "results.jsonl")
    assert [result.row for result in evidence.results] == list(QUICK_ROWS.rows)
    assert evidence.drawn.failed == 0 < evidence.drawn.called <= len(QUICK_ROWS.drawn)
    cli("report", tmp_path / "out").expect(0, text="ended with exit 4: incomplete: --quick")
    cli("verify", tmp_path / "out").expect(0, text="only the cases of --quick")
    cli("verify", tmp_path / "out", "--conforms").expect(1)


@pytest.mark.slow
def test_a_planted_backend_fails_a_quick_run(cli: Cli, tmp_path: Path) -> None:
    """Its evidence holds drawn rows that failed, which are drawn again to read it."""
    cli("run", "planted:zero-is-one", QUICK, "--out", tmp_path / "out").expect(1, out="fail: ")
    assert any(parse_drawn_id(result.row) for result in read(tmp_path / "out" / "results.jsonl").results)
    cli("verify", tmp_path / "out").expect(0, out="does not conform")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("-k", "zero"), "-k and --quick both choose rows; give one of them"),
        (("--suite", "SUITE"), "--quick lists rows of the bundled suite; drop --suite"),
        (("--drawn-rows", "9"), "--drawn-rows 9 draws calls of all that is claimed"),
    ],
)
def test_quick_and_other_choices(cli: Cli, tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    write_cases(tmp_path)
    words = tuple(str(tmp_path) if word == "SUITE" else word for word in words)
    cli("run", "reference", QUICK, *words).expect(2, err=why)


def test_a_reader_finds_the_same_rows_as_a_quick_run() -> None:
    """The run reads the cases of the list only."""
    for plan in (plan_of(SUITE), plan_of_cases(SUITE, QUICK_ROWS.cases)):
        assert [row.id for row in select_rows(plan, QUICK).rows] == list(QUICK_ROWS.rows)


def test_a_full_run_calls_the_quick_rows_first() -> None:
    plan = plan_of(SUITE)
    small = [row.id for row in select_rows(plan, QUICK).rows if not has_many_elements(row.case)]
    in_order = order_rows(plan)
    assert [row.id for row in in_order[: len(small)]] == small
    assert {*in_order} == {*plan.rows}


def test_quick_draws_rows_within_claims() -> None:
    claims = EVERYTHING._replace(not_claimed=("layout", "declared", "chain", "threads", "unknown-src"))
    numbers = [parse_drawn_id(row.id) for row in draw_rows(claims) if not claims.find_unclaimed(row.facets)]
    assert len(draw_rows(claims)) == len(numbers) > len(QUICK_ROWS.drawn) // 2
    assert {*numbers} <= {(0, number) for number in QUICK_ROWS.drawn}


@pytest.mark.slow
@pytest.mark.parametrize("every", [48, pytest.param(1, marks=pytest.mark.exhaustive)])
def test_quick_rows_notice_the_planted_backends(monkeypatch: pytest.MonkeyPatch, every: int) -> None:
    """If this fails, `python -m tools.quick` makes the list again."""
    monkeypatch.setattr(row_module, "REPEAT_SECONDS", 60)  # time for all calls of a row
    rows = [*select_rows(plan_of_cases(SUITE, QUICK_ROWS.cases), QUICK).rows, *draw_rows(EVERYTHING)]
    adapters = {name: PLANTED[name]() for name in list(PLANTED)[::every]}
    unnoticed = [name for name, adapter in adapters.items() if not any(fails_on(row, adapter) for row in rows)]
    assert unnoticed == [name for name in QUICK_ROWS.unnoticed if name in adapters]


@pytest.mark.slow
def test_quick_counts_the_pairs_that_meet() -> None:
    """If this fails, other combinations were made, and `python -m tools.quick` chooses among them."""
    table = pairs_of_rows(SUITE)
    drawn = [number in QUICK_ROWS.drawn for number in numbers_of_combinations()]
    assert QUICK_ROWS.pairs == {"met": table[drawn].any(axis=0).sum(), "of": table.any(axis=0).sum()}
