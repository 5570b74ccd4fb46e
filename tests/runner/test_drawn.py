"""After its rows a run calls drawn ones: the same in every run, and the evidence has only those that fail."""

from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path
from threading import Barrier, Lock
from typing import Any, NamedTuple

import pytest

from adapters.reference import Reference
from conformance.adapter import FAMILIES, load_adapter
from conformance.draw import combinations
from conformance.draw.combinations import read_combinations
from conformance.draw.factors import Factors, OperationWay
from conformance.draw.rows import FIRST_SEQUENCE, SEQUENCE_EVERY, Drawn, RowDrawer, count_drawn_rows
from conformance.evidence.drawn import describe_drawn, plan_of_run
from conformance.evidence.folder import RESULTS
from conformance.evidence.results import Evidence, InvalidEvidence, Target, name_unfinished, read
from conformance.isolate.backend import run_in_isolation
from conformance.load.cases import load_suite, with_cases
from conformance.model import Case, Claims, Crashed, Graph, Program, Rejected, Result, TimedOut
from conformance.plan.quick import QUICK
from conformance.plan.rows import Plan, Row, has_many_elements, parse_drawn_id, plan_of, plan_of_cases
from conformance.report.verify import verify_report
from conformance.run.row import run_rows
from conformance.runner.drawn_run import DrawnRun
from conformance.runner.fresh_calls import FreshCalls
from conformance.runner.run_suite import RunRequest, run_suite, set_up_backend
from conformance.shrink.smallest_case import find_smallest
from conformance.verdict.conclude import conclude_evidence
from conformance.verdict.failure_kinds import list_shown_lines
from conformance.verdict.rejudge import read_and_judge

from .. import builders

SUITE = load_suite()
RULES = ("one-infer", "same-volume", "same-content", "literal-lengths")
"""Those of the planted backends of every run."""
PLAN = Plan(SUITE, tuple(row for row in plan_of(SUITE).rows if row.case.rule in RULES and row.type == "f32")[::3])
EVERYTHING = Claims(tuple(SUITE.spec.operations))
RING = "planted:eight-buffers-in-turn"
"""It passes the rows of the plan, which are one call each."""


def run_plan(folder: Path, backend: str = "reference", tick: Any = lambda *_: None, **more: Any) -> Evidence:
    """Run the plan and 60 drawn rows, if no more is said."""
    return run_suite(RunRequest(backend, PLAN, Target(), **{"drawn_rows": 60, **more}), lambda name: folder, tick)


def drawn_rows(count: int, claims: Claims = EVERYTHING) -> list[Row]:
    return list(RowDrawer(SUITE.spec, claims).rows(Drawn(0, count)))


@pytest.fixture(scope="module")
def many() -> list[Row]:
    """Rows of combinations, and random ones."""
    drawer = RowDrawer(SUITE.spec, EVERYTHING)
    whole = count_drawn_rows()
    numbers = sorted({*range(0, whole, 8), *range(FIRST_SEQUENCE, whole, SEQUENCE_EVERY), *range(whole, whole + 300)})
    return [row for number in numbers if (row := drawer.row(0, number))]


@pytest.fixture(scope="module")
def some() -> list[Row]:
    """A part of the combinations, and random ones."""
    drawer, whole = RowDrawer(SUITE.spec, EVERYTHING), count_drawn_rows()
    return [row for number in (*range(0, whole, 30), *range(whole, whole + 100)) if (row := drawer.row(0, number))]


@pytest.fixture(scope="module")
def ring(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Evidence]:
    folder = tmp_path_factory.mktemp("ring")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("conformance.shrink.smallest_case.MAX_CALLS", 2000)  # 30,000 leave out as many steps
        return folder, run_plan(folder, RING)


class PassingRun(NamedTuple):
    """A run that passes: its evidence, and what it told of its progress."""

    path: Path
    evidence: Evidence
    ticks: list[int]
    begun: list[str]


@pytest.fixture(scope="module")
def passing(tmp_path_factory: pytest.TempPathFactory) -> PassingRun:
    folder, ticks, begun = tmp_path_factory.mktemp("passing"), list[int](), list[str]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("conformance.isolate.backend.begin", begun.append)
        evidence = run_plan(folder, tick=lambda ran, failed: ticks.append(ran))
    return PassingRun(folder / RESULTS, evidence, ticks, begun)


# ── one of them ───────────────────────────────────────────────────────────────────────────────────


def test_a_drawn_row_is_called_by_its_name(cli: builders.Cli, tmp_path: Path) -> None:
    row = drawn_rows(1)[0]
    for name in (row.id, row.case.id, f"combinations.txt::{row.id}"):
        said = cli("run", "reference", "-k", name, "--out", str(tmp_path)).expect(4, out="1 drawn row, none failed")
        assert f"-k {name!r} chose some rows" in said.last
        (result,) = read(tmp_path / RESULTS).results
        assert (result.row, result.is_failure) == (row.id, False)
        cli("verify", str(tmp_path)).expect(0, out="incomplete")


# ── in the evidence ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_rows_that_pass_are_only_counted(passing: PassingRun, tmp_path: Path) -> None:
    assert passing.evidence.header["drawn"] == {"seed": 0, "rows": 60}
    assert passing.evidence.footer["drawn"] == {"called": 60, "failed": 0}
    assert len(passing.evidence.results) == len(PLAN.rows)
    none = run_suite(RunRequest("reference", replace(PLAN, rows=PLAN.rows[:1]), Target()), lambda name: tmp_path)
    assert "drawn" not in none.header
    assert "drawn" not in none.footer


WHOLE = count_drawn_rows()


@pytest.mark.parametrize(
    ("select", "asked", "called", "left_out", "shard", "says"),
    [
        (None, 60, 60, 0, None, False), (None, 60, 50, 10, None, False), (None, WHOLE, WHOLE - 1, 0, None, False),
        (None, WHOLE, WHOLE - 2, 1, None, False), (None, WHOLE, WHOLE - 2, 2, None, True),
        (None, WHOLE, WHOLE, 0, None, True),
        (QUICK, 180, 180, 0, None, True), (QUICK, 180, 170, 10, None, True), (QUICK, 180, 90, 90, "1/2", False),
        (QUICK, 180, 0, 180, None, False), (QUICK, 180, 20, 0, None, False),
    ],
)  # fmt: skip
def test_only_a_whole_run_says_what_met(
    passing: PassingRun, select: str | None, asked: int, called: int, left_out: int, shard: str | None, says: bool
) -> None:
    """Not one of fewer rows, and not one that ended before its last row."""
    evidence = passing.evidence.with_target(select=select, shard=shard)
    header = {**evidence.header, "drawn": {"seed": 0, "rows": asked}}
    footer = {**evidence.footer, "drawn": {"called": called, "failed": 0, "not_called": left_out}}
    said = describe_drawn(replace(evidence, header=header, footer=footer), SUITE)
    assert ("factors met" in str(said)) == says


@pytest.mark.slow
def test_rows_left_out_are_not_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run is whole, and its progress reaches the end, although the second half shows nothing more."""
    lines = combinations._read_lines()[:40] * 2
    monkeypatch.setattr(combinations, "_read_lines", lambda: lines)
    ticks: list[int] = []
    evidence = run_plan(tmp_path, drawn_rows=count_drawn_rows(), tick=lambda ran, failed: ticks.append(ran))
    assert evidence.footer["drawn"] == {"called": 41, "failed": 0, "not_called": 40}
    assert ticks[-1] == len(PLAN.rows) + count_drawn_rows()
    assert "41 drawn rows, none failed: every three of 17 factors met" in str(describe_drawn(evidence, SUITE))
    assert not [result.row for result in read_and_judge(tmp_path / RESULTS, PLAN).results if result.is_failure]


def test_drawn_rows_come_before_many_elements(passing: PassingRun) -> None:
    cases = [row.partition("[")[0] for row in passing.begun if row]
    kinds = ["drawn" if id_ not in SUITE.cases else has_many_elements(SUITE.cases[id_]) for id_ in cases]
    assert [kind for kind, _ in groupby(kinds)] == [False, "drawn", True]


@pytest.mark.slow
def test_drawn_rows_run_in_all_jobs(
    ring: tuple[Path, Evidence], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two processes call rows at the same time, except those with many elements; the evidence is that of one."""
    two_at_once, alone, last = Barrier(2), Lock(), list[int]()

    def wait_for_another(rows: list[Row], *more: Any) -> Iterator[Result]:
        if rows[0].id.startswith(("drawn-0-30[", "drawn-0-31[")):
            two_at_once.wait(20)
        if has_many_elements(rows[0].case):
            last.append(len(rows))
            assert alone.acquire(blocking=False)
        yield from run_in_isolation(rows, *more)
        if has_many_elements(rows[0].case):
            alone.release()

    monkeypatch.setattr("conformance.isolate.backend.run_in_isolation", wait_for_another)
    monkeypatch.setattr("conformance.isolate.backend._MIN_CHUNK_ROWS", 1)
    monkeypatch.setattr(
        "conformance.shrink.smallest_case.find_smallest", lambda row, result, *_: result._replace(smallest_case=row.id)
    )
    evidence = run_plan(tmp_path, RING, jobs=2)
    assert sum(last) == sum(has_many_elements(row.case) for row in PLAN.rows)
    assert len(last) > 1, "they are written as they end"
    both = ([each._replace(milliseconds=0, smallest_case=None) for each in run.results] for run in (evidence, ring[1]))
    assert next(both) == next(both)
    assert evidence.footer["drawn"] == ring[1].footer["drawn"]


def test_maxfail_counts_each_drawn_row_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that fail like one before, though the evidence has only their number."""
    monkeypatch.setattr("conformance.shrink.smallest_case.can_be_smaller", lambda result: False)
    plan = plan_of_cases(SUITE, ["there-and-back"])
    evidence = run_suite(RunRequest("planted:accepts-everything", plan, Target(), drawn_rows=100, maxfail=4), None)
    assert evidence.footer["drawn"]["failed"] == 4
    assert "no row was called after 4 failed, as --maxfail asks" in evidence.footer["notes"]


def test_progress_counts_the_drawn_rows_too(passing: PassingRun) -> None:
    assert passing.ticks == [*range(1, len(PLAN.rows) + 61)]


def shrink_failing(rows: Iterable[Row], adapter: Any, **more: Any) -> Iterator[tuple[Row, Result]]:
    """Call rows, and make each that fails as small as possible."""
    for row in rows:
        (result,) = run_rows([row], adapter, EVERYTHING)
        if result.is_failure:
            yield row, find_smallest(row, result, adapter, EVERYTHING, **more)


class FailsAlways(Reference):
    """Raises for each call; counts the processes that it would have had."""

    processes = 0

    def compile(self, graph: Graph) -> Program:
        raise RuntimeError("no")

    def renew(self) -> None:
        self.processes += 1

    restart = close = renew


def test_a_call_that_always_fails_shrinks_in_few_processes() -> None:
    adapter = FailsAlways()
    row = next(row for row in drawn_rows(60) if len(row.steps) > 3)
    ((_, found),) = shrink_failing([row], adapter)
    assert str(found.smallest_case).count("shape:") == 1
    assert adapter.processes == 2


def test_the_smallest_case_so_far_is_written_after_many_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    row, texts = next(row for row in drawn_rows(60) if len(row.steps) > 3), set[str | None]()
    for count in (1, 5):
        monkeypatch.setattr("conformance.shrink.smallest_case.MAX_CALLS", count)
        texts |= {found.smallest_case for _, found in shrink_failing([row], FailsAlways())}
    assert len(texts) == 2


class HangsOnOthers(FailsAlways):
    """Raises for a call of its own, and hangs on any other one."""

    def __init__(self, own: Graph) -> None:
        self.own, self.hangs = own, 0

    def compile(self, graph: Graph) -> Program:
        if graph == self.own:
            raise RuntimeError("no")
        self.hangs += 1
        raise TimedOut("late")


def test_no_smaller_case_is_looked_for_after_a_hang(some: list[Row]) -> None:
    """No other limit would end the search: its calls are in no budget for hangs."""
    row = next(row for row in some if len(row.case.steps) == 1 and len(row.case.steps[0].src) > 3)
    adapter = HangsOnOthers(row.steps[0].graph)
    assert [found.right_alone for _, found in shrink_failing([row], adapter)] == [None]
    assert adapter.hangs == 2  # the same call is made again, as a hang always is


class FailsOnce(FailsAlways):
    """Raises for the first call only, as what depends on the turns of threads may."""

    def compile(self, graph: Graph) -> Program:
        if self.processes:
            return Reference.compile(self, graph)
        raise RuntimeError("no")


@pytest.mark.parametrize("quick", [False, True])
@pytest.mark.parametrize(("threads", "on"), [(True, "which thread comes first"), (False, "the calls before it, which")])
def test_a_call_that_goes_right_alone_says_what_it_may_depend_on(
    some: list[Row], threads: bool, on: str, quick: bool
) -> None:
    one = next(row for row in some if (row.case.concurrent > 1) == threads)
    ((row, found),) = shrink_failing([one], FailsOnce(), quick=quick)
    assert list_shown_lines(row, found, True)[0].startswith(f"# went right alone: it depends on {on}")


class FailsOtherwise(FailsAlways):
    """Raises for the first call, and crashes in a fresh process."""

    def compile(self, graph: Graph) -> Program:
        raise Crashed("dead") if self.processes else RuntimeError("no")


@pytest.mark.parametrize("threads", [True, False])
def test_a_call_that_fails_otherwise_alone_does_not_go_right(some: list[Row], threads: bool) -> None:
    one = next(row for row in some if (row.case.concurrent > 1) == threads)
    assert [found.right_alone for _, found in shrink_failing([one], FailsOtherwise())] == [None]


class RightOnce(Reference):
    """Rejects each call after the first."""

    def compile(self, graph: Graph) -> Program:
        if vars(self).setdefault("compiled", 0):
            raise Rejected("compile", "no")
        self.compiled = 1
        return super().compile(graph)


def test_a_call_in_this_process_is_made_on_another_instance(some: list[Row]) -> None:
    row, adapter = next(row for row in some if len(row.case.steps) == 1), RightOnce()
    adapter.compiled = 1
    assert [found.right_alone for _, found in shrink_failing([row], adapter, open_another=RightOnce)] == ["row"]


def test_a_quick_run_writes_one_call_with_nothing_around_it(some: list[Row]) -> None:
    adapter = FailsAlways()
    row = next(row for row in some if row.case.concurrent > 1 and len(row.case.steps[0].shapes) > 1)
    ((_, found),) = shrink_failing([row], adapter, quick=True)
    assert not any(f"{key}:" in str(found.smallest_case) for key in ("steps", "concurrent", "chain", "layout"))
    assert adapter.processes == 2


@pytest.mark.parametrize("select", [None, QUICK])
def test_one_more_backend_finds_the_small_cases_of_a_run(select: str | None) -> None:
    adapter, opened = FailsAlways(), list[FailsAlways]()
    setup = set_up_backend(RunRequest("reference", PLAN, Target()), adapter, [])
    drawn = DrawnRun(replace(PLAN, select=select), setup, 60, Target())

    def call(lists: Iterable[list[Row]]) -> Generator[Result]:
        for rows in lists:
            yield from run_rows(rows, adapter, EVERYTHING)

    def open_another() -> FailsAlways:
        opened.append(FailsAlways())
        return opened[-1]

    fresh = FreshCalls(open_another, EVERYTHING, "worker", drawn.notes.append)
    written = [result.smallest_case for _, result in drawn.run(call, fresh) if result]
    assert len(written) > 1
    assert all(written)
    assert len(opened) == 1


class RejectsInfers(Reference):
    """Rejects each constant shape that has a -1."""

    def compile(self, graph: Graph) -> Program:
        if any(node.shape and node.shape.values and -1 in node.shape.values for node in graph.nodes):
            raise Rejected("compile", "no")
        return super().compile(graph)


def test_a_smallest_case_has_nothing_but_what_fails(some: list[Row]) -> None:
    rows = (row for row in some if row.case.declared is not None and row.shape_passed_as != "runtime")
    unusual = (row for row in rows if row.case.steps[0].layout != "dense" and -1 in row.case.steps[0].shapes[0])
    smallest = [found.smallest_case for _, found in islice(shrink_failing(unusual, RejectsInfers()), 5)]
    assert smallest
    assert all("rule: infer-keeps-count\n" in str(each) for each in smallest)


class RejectsOpenLengths(Reference):
    """Rejects each graph that leaves lengths of src open."""

    def compile(self, graph: Graph) -> Program:
        if None in (graph.src.dims or (None,)):
            raise Rejected("compile", "no")
        return super().compile(graph)


def test_one_call_of_a_sequence_leaves_the_same_lengths_open() -> None:
    """Number 4584 calls a program with src of several ranks."""
    row = RowDrawer(SUITE.spec, EVERYTHING).row(0, 4584)
    assert row is not None
    assert row.steps[0].graph.src.dims is None
    assert not row.case.unknown_rank
    ((_, found),) = shrink_failing([row], RejectsOpenLengths())
    assert str(found.smallest_case).count("src:") == 1
    assert "unknown_rank: true\n" in str(found.smallest_case)


class TakesListedShapes(Reference):
    """Raises for each shape of a type that is not listed."""

    def compile(self, graph: Graph) -> Program:
        if any(node.shape is not None and node.shape.type not in ("s32", "s64") for node in graph.nodes):
            raise RuntimeError("no")
        return super().compile(graph)


def test_a_case_about_a_type_of_shape_keeps_that_type(some: list[Row]) -> None:
    failing = list(shrink_failing((row for row in some if row.case.shape_type), TakesListedShapes()))
    assert failing
    assert all(f"shape_type: {row.case.shape_type}\n" in str(found.smallest_case) for row, found in failing)


@pytest.mark.slow
def test_a_row_that_fails_stands_in_the_evidence_and_decides(ring: tuple[Path, Evidence]) -> None:
    _, evidence = ring
    failing = [result for result in evidence.results if parse_drawn_id(result.row)]
    assert [result for result in evidence.results if result.is_failure] == failing
    assert {result.diagnosis for result in failing} == {"answer changed later"}
    assert all(result.row.startswith("drawn-0-") for result in failing)
    assert evidence.drawn.failed >= len(failing) > 0
    assert conclude_evidence(PLAN, evidence).exit_code == 1


@pytest.mark.slow
def test_the_case_that_is_written_fails_again(ring: tuple[Path, Evidence], tmp_path: Path) -> None:
    result = [result for result in ring[1].results if result.smallest_case][-1]
    row = plan_of_run(PLAN, ring[1]).rows[-1]
    assert result.smallest_case is not None
    assert result.smallest_case.count("src:") < len(row.case.steps) / 2
    folder = builders.write_suite(tmp_path, f"about: Found.\ncases:\n{result.smallest_case}")
    rows = plan_of(with_cases(SUITE.spec, folder)).rows
    again = next(
        r
        for r in rows
        if (r.operation, r.shape_passed_as, r.shape_type) == (row.operation, row.shape_passed_as, row.shape_type)
    )
    assert next(run_rows([again], load_adapter(RING))).is_failure
    assert not next(run_rows([again], load_adapter("reference"))).is_failure


@pytest.mark.slow
def test_the_evidence_is_read_judged_and_verified_again(ring: tuple[Path, Evidence]) -> None:
    folder, evidence = ring
    assert read_and_judge(folder / RESULTS, PLAN) == evidence
    assert verify_report(folder, PLAN).mismatches == ()


def test_the_footer_counts_the_drawn_rows_it_holds(ring: tuple[Path, Evidence], tmp_path: Path) -> None:
    (tmp_path / RESULTS).write_bytes((ring[0] / RESULTS).read_bytes())
    builders.rewrite(tmp_path / RESULTS, lambda records: records[-1]["drawn"].update(failed=0))
    with pytest.raises(InvalidEvidence, match="does not count the drawn rows"):
        read(tmp_path / RESULTS)


def test_a_row_that_the_suite_would_not_draw_is_refused(ring: tuple[Path, Evidence]) -> None:
    for drawn in ({"seed": 1, "rows": 60}, {"seed": 0, "rows": 3}):
        with pytest.raises(InvalidEvidence, match="is not what this suite draws"):
            plan_of_run(PLAN, replace(ring[1], header={**ring[1].header, "drawn": drawn}))


def test_a_resumed_run_draws_again(
    ring: tuple[Path, Evidence], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "conformance.shrink.smallest_case.find_smallest", lambda row, result, *_: result._replace(smallest_case=row.id)
    )
    lines = (ring[0] / RESULTS).read_bytes().splitlines(keepends=True)
    name_unfinished(tmp_path / RESULTS).write_bytes(b"".join(lines[:-1]))
    evidence = run_plan(tmp_path, RING, resume=True)
    assert evidence.footer["resumed"] == len(PLAN.rows)
    assert [result.row for result in evidence.results] == [result.row for result in ring[1].results]


# ── what is drawn ─────────────────────────────────────────────────────────────────────────────────


def test_the_same_number_gives_the_same_row() -> None:
    first, second = drawn_rows(40), drawn_rows(40)
    assert [(row.id, row.case) for row in first] == [(row.id, row.case) for row in second]
    assert RowDrawer(SUITE.spec, EVERYTHING).row(0, 17) is not None
    assert first[17].case != drawn_rows(18)[16].case


def test_rows_are_drawn_within_the_claims() -> None:
    claims = Claims(("Reshape-1",), ("layout", "chain", "type:bf16"))
    rows = drawn_rows(120, claims)
    assert len(rows) > 110
    assert {row.operation for row in rows} == {"Reshape-1"}
    assert not [facet for row in rows for facet in row.facets if claims.excludes(facet)]
    assert drawn_rows(10, Claims(())) == []


@pytest.mark.parametrize("facet", builders.some_slow(dict.fromkeys(FAMILIES), ("unknown-src",)))
def test_a_facet_that_is_not_claimed_ends_no_drawing(facet: str) -> None:
    """A constant node beside others leaves lengths of src open, whatever the factor `known` says."""
    claims = EVERYTHING._replace(not_claimed=(facet,))
    rows = drawn_rows(100, claims)
    assert len(rows) > 20 or facet in ("type", "shape-type")
    assert not [row.id for row in rows if claims.find_unclaimed(row.facets)]


@pytest.mark.slow
@pytest.mark.parametrize("facet", ["rank:1", "rank:2"])
def test_rows_for_a_backend_of_low_rank_are_drawn_in_few_tries(facet: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nearly all calls are beyond its limits; to try them all for each row would take minutes."""
    tries, make = list[str](), RowDrawer._make_row

    def try_row(drawer: RowDrawer, case: Case, way: OperationWay) -> Row | None:
        tries.append(case.id)
        return make(drawer, case, way)

    monkeypatch.setattr(RowDrawer, "_make_row", try_row)
    rows = drawn_rows(200, EVERYTHING._replace(not_claimed=(facet,)))
    assert len(tries) < 200 * 20
    assert {"rank:1"} >= {name for row in rows for name in row.facets if name.startswith("rank:")}


def test_a_backend_of_one_shape_type_misses_no_combination() -> None:
    """A constant shape beside others has the other type: such a row has a graph of one node instead."""
    drawer = RowDrawer(SUITE.spec, EVERYTHING._replace(not_claimed=("shape-type:s64",)))
    mixed = [n for n, each in enumerate(read_combinations(Factors(SUITE.spec))) if each.chosen["node"] == "mixed"]
    made = [drawer.draw_claimed_row(number, "row") for number in mixed[:40]]
    assert {len(row.case.steps[0].shapes) for row, _ in filter(None, made)} == {1}
    assert None not in made


@pytest.mark.slow
def test_every_kind_of_call_is_drawn(many: list[Row]) -> None:
    """Legal and illegal ones, of every facet, chain and rank; and long sequences, in which calls come again."""
    facets = Counter(facet.partition(":")[0] for row in many for facet in row.facets)
    assert {"type", "shape-type", "runtime-shape", "layout", "in-place", "chain", "declared", "form"} <= set(facets)
    kinds = Counter(step.meanings[0].meaning.kind for row in many for step in row.steps)
    assert kinds["legal"] > 3000
    assert kinds["illegal"] > 500
    assert max(len(step.shapes) for row in many for step in row.case.steps) == 5
    pairs = {(len(step.src), len(step.shapes[0])) for row in many for step in row.case.steps}
    assert not {(src, shape) for src in range(1, 9) for shape in range(1, 9)} - pairs
    long = [row for row in many if len(row.case.steps) >= 200]
    assert len(long) == len(range(FIRST_SEQUENCE, count_drawn_rows() + 300, SEQUENCE_EVERY))
    assert max(len(row.case.steps) for row in long) == 999


@pytest.mark.slow
def test_the_reference_passes_every_drawn_row(many: list[Row]) -> None:
    reference = load_adapter("reference")
    assert [row.id for row in many if next(run_rows([row], reference)).is_failure] == []
