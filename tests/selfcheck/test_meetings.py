"""`conformance check` counts which values of factors meet in cases/combinations.txt, and names those that do not."""

import itertools
import random
from collections.abc import Callable, Iterable, Sequence

import pytest

from conformance.draw import combinations
from conformance.draw.calls import DrawnCall
from conformance.draw.combinations import case_of, read_combinations
from conformance.draw.factors import CombinationCodes, Design, Factors, Values, find_factors
from conformance.draw.rows import FIRST_SEQUENCE, Drawn, RowDrawer
from conformance.load.cases import load_suite
from conformance.meaning.contract import contracts
from conformance.model import Claims, Declared, Graph
from conformance.plan.rows import Row
from conformance.plan.steps import RowStep
from conformance.selfcheck.meetings import check_meetings, count_meetings
from tools.combine import Builder, draw_calls

SUITE = load_suite()
FACTORS = Factors(SUITE.spec)


# ── what meets ────────────────────────────────────────────────────────────────────────────────────


def test_three_values_of_most_factors_meet() -> None:
    """`conformance check` shows that all meet which can."""
    assert [len(design.threes) for design in FACTORS.designs] == [17, 8], "on legal calls, and on illegal ones"


@pytest.mark.slow
def test_lines_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """No f16 is far on legal calls, and no shape of illegal ones has no entries."""
    kept = tuple(each for each in combinations._read_lines() if each[1:3] != "2a" and not each.endswith(" - false"))
    monkeypatch.setattr(combinations, "_read_lines", lambda: kept)
    problems = list(check_meetings(count_meetings(SUITE)))
    assert [str(problem.place) for problem in problems] == ["cases/combinations.txt:1"] * 2
    for problem, said in zip(problems, ("layout far", "illegal calls"), strict=True):
        assert said in problem.what
        assert "`python -m tools.combine`" in problem.what


@pytest.mark.slow
def test_the_tool_adds_rows_until_all_meets() -> None:
    """A small design, from no row and from some: it ends with every two and three values that can meet."""
    design = Design("legal", ("src_rank", "dst_rank", "special_zero", "layout", "way"), ("threads",))
    calls = [
        DrawnCall(src, shape, flag)
        for src in ((), (6,), (2, 3))
        for shape in ((6,), (-1,), (3, 2), (1, 6))
        for flag in (False, True)
    ]
    found = draw_calls(random.Random("few"), contracts(SUITE.spec), calls, 60)["legal"]
    cores: dict[tuple[tuple[str, str], ...], list[DrawnCall]] = {}
    for core, examples in found.items():
        few = tuple((name, value) for name, value in core if name in design.of_call)
        cores.setdefault(few, []).extend(examples)
    builder = Builder(FACTORS, design, cores)
    possible = builder.open.copy()
    rows = list(builder.rows())
    assert 0 < len(rows) < int(possible.sum())
    again = Builder(FACTORS, design, cores)
    again.close(rows[::2])
    assert 0 < again.open.sum() < possible.sum()
    assert not any(again.open[again.codes.of(again.places(row))].sum() for row in rows[::2])


# ── the rows have the values that their lines name ────────────────────────────────────────────────


def result_of(row: Row) -> Declared | None:
    return row.steps[-1].graph.nodes[-1].result


def dims_of(row: Row) -> object:
    declared = result_of(row)
    assert declared is not None
    return declared.dims


LAST: dict[tuple[str, str], Callable[[Row], bool]] = {
    ("known", "none"): lambda row: set(row.steps[-1].graph.src.dims or ()) <= {None},
    ("known", "all"): lambda row: row.shape_passed_as == "runtime" or None not in (row.steps[-1].graph.src.dims or ()),
    ("declared", "nothing"): lambda row: result_of(row) is None,
    ("declared", "rank-unknown"): lambda row: dims_of(row) is None,
    ("declared", "exact"): lambda row: dims_of(row) == row.steps[-1].meanings[0].meaning.dst,
    ("in_place", "yes"): lambda row: row.steps[-1].may_overwrite,
    ("shape_step", "-1"): lambda row: row.steps[-1].shape_step == -1 and row.shape_passed_as == "runtime",
    ("node", "last-of-5"): lambda row: len(row.steps[-1].graph.nodes) == 5,
    ("node", "fork"): lambda row: row.steps[-1].graph.nodes[-1].takes_src,
    ("node", "shared-shape"): lambda row: row.steps[-1].graph.nodes[-1].shares_shape,
    ("before", "nothing"): lambda row: len(row.steps) == 1 or row.case.concurrent > 1,
    ("before", "rejection"): lambda row: row.steps[0].meanings[0].meaning.kind == "illegal",
    ("before", "larger"): lambda row: len(row.steps[0].src.elements) >= 2000,
    ("before", "repeated"): lambda row: row.steps[0].graph == row.steps[1].graph,
    ("threads", "one-program"): lambda row: row.case.one_program and row.case.concurrent == 4,
    ("before", "other-lengths"): lambda row: takes_two_sources(row.steps),
    ("node", "mixed"): lambda row: has_two_kinds_of_shapes(row.steps[-1].graph),
    ("content", "zeros"): lambda row: not any(row.steps[-1].src.elements[:]),
    ("content", "constant"): lambda row: len({*words_of(row)}) == 1,
    ("content", "sorted"): lambda row: [*words_of(row)[:61]] == sorted(words_of(row)[:61]),
    ("content", "small"): lambda row: max(words_of(row)) < 61,
}  # fmt: skip
"""What is true of a row with a value."""


def takes_two_sources(steps: Sequence[RowStep]) -> bool:
    """Ask whether one graph is called with a src, another and the first again; an empty src may have no other."""
    sources = [step.src_spec.dims for step in steps]
    is_other = sources[0] == sources[2] and (sources[0] != sources[1] or 0 in sources[0])
    return is_other and len({step.graph for step in steps}) == 1


def has_two_kinds_of_shapes(graph: Graph) -> bool:
    shapes = [node.shape for node in graph.nodes if node.shape is not None]
    return len({shape.type for shape in shapes}) == 2 and [shape.values is None for shape in shapes[::2]] == [False] * 2


def words_of(row: Row) -> list[int]:
    step, width = row.steps[-1], 2 if row.type != "f32" else 4
    elements = bytes(step.src.elements[:])
    return [int.from_bytes(elements[at : at + width], "little") for at in range(0, len(elements), width)]


@pytest.mark.slow
@pytest.mark.parametrize(("factor", "value"), LAST)
def test_a_row_has_the_value_that_its_line_names(factor: str, value: str) -> None:
    drawer = RowDrawer(SUITE.spec, Claims(tuple(SUITE.spec.operations)))
    lines = [number for number, each in enumerate(read_combinations(FACTORS)) if each.chosen[factor] == value]
    made = [drawer.draw_claimed_row(number, "row") for number in lines[:: max(1, len(lines) // 25)]]
    legal = [row for row, _ in filter(None, made) if row.steps[-1].meanings[0].meaning.kind == "legal"]
    assert len(legal) > 5
    usual = [row for row in legal if factor != "content" or row.case.steps[0].layout == "dense"]
    assert [row.case.steps for row in usual if not LAST[factor, value](row)] == []


@pytest.mark.slow
def test_every_line_gives_a_row() -> None:
    drawer = RowDrawer(SUITE.spec, Claims(tuple(SUITE.spec.operations)))
    assert None not in [drawer.draw_claimed_row(number, "row") for number in range(len(combinations._read_lines()))]


def test_each_layout_is_that_of_the_line() -> None:
    for each in list(read_combinations(FACTORS))[::50]:
        case = case_of(each.call, each.chosen, 1)
        assert {step.layout for step in case.steps} == {each.chosen["layout"]}


# ── claims ────────────────────────────────────────────────────────────────────────────────────────


def pairs_of(rows: Iterable[Row]) -> set[object]:
    """Pairs of what the rows choose: operation, type, layout, place and time."""
    found = set[object]()
    for row in rows:
        step = row.case.steps[-1]
        facts = (row.operation, row.type, step.layout, len(step.shapes), step.in_place, row.case.known, len(row.steps))
        found |= {(a, b) for a, b in itertools.combinations(enumerate(facts), 2)}
    return found


@pytest.mark.slow
def test_what_is_claimed_still_meets_beside_what_is_not() -> None:
    """A row with a value that a backend does not claim has another one, and keeps the rest."""
    everything = Claims(tuple(SUITE.spec.operations))
    narrow = Claims(everything.operations, ("layout:reversed", "type:bf16", "threads", "runtime-shape", "rank:9"))
    drawers = [RowDrawer(SUITE.spec, claims) for claims in (everything, narrow)]
    all_rows, rows = (
        [made[0] for n in range(1000) if (made := drawer.draw_claimed_row(n, "row"))] for drawer in drawers
    )
    assert len(rows) == len(all_rows) == 1000
    assert not [facet for row in rows for facet in row.facets if narrow.excludes(facet)]
    claimed = pairs_of(row for row in all_rows if not narrow.find_unclaimed(row.facets))
    assert claimed <= pairs_of(rows)
    beside = pairs_of(row for row in all_rows if narrow.find_unclaimed(row.facets) == {"layout:reversed"})
    assert {pair for pair in beside if "reversed" not in str(pair)} <= pairs_of(rows)


def numbers_of(row: tuple[Row, Values] | None) -> set[tuple[str, int]]:
    """Return what meets in a row, by design."""
    if row is None:
        return set()
    design = FACTORS.designs["broken" in row[1]]
    codes = CombinationCodes(FACTORS, design)
    return {(design.name, number) for number in codes.of(codes.places(row[1])).tolist()}


def with_layout(line: str, layout: str) -> str:
    at = FACTORS.chosen.index("layout")
    return line[:at] + combinations.DIGITS[FACTORS.values["layout"].index(layout)] + line[at + 1 :]


@pytest.mark.slow
@pytest.mark.parametrize(("not_claimed", "left_out"), [((), 0), (("type:bf16",), 0), (("layout",), 50)])
def test_rows_that_show_nothing_more_are_left_out(
    not_claimed: tuple[str, ...], left_out: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a backend claims no layout, the second of two lines that differ in layout shows nothing more."""
    lines = [with_layout(line, layout) for layout in ("dense", "offset") for line in combinations._read_lines()[:50]]
    monkeypatch.setattr(combinations, "_read_lines", lambda: lines)
    drawer = RowDrawer(SUITE.spec, Claims(tuple(SUITE.spec.operations), not_claimed))
    kept = {row.case.id for row in drawer.rows(Drawn(0, 101))}
    assert f"drawn-0-{FIRST_SEQUENCE}" in kept, "long sequences stay"
    made = {f"drawn-0-{n + (n >= FIRST_SEQUENCE)}": drawer.draw_claimed_row(n, "row") for n in range(100)}
    assert len(made.keys() - kept) == left_out
    met, met_in_kept = (
        set().union(*(numbers_of(made[id_]) for id_ in ids)) for ids in (made.keys(), made.keys() & kept)
    )
    assert met == met_in_kept


@pytest.mark.parametrize(("call", "facts"), [
    (DrawnCall((2, 3), (6,), False), {"lengths": "flatten", "entries": "positive", "size": "2-15"}),
    (DrawnCall((6, 5), (2, 3, 5), False), {"lengths": "split"}),
    (DrawnCall((2, 3), (0, -1), True), {"lengths": "identity", "entries": "copy-and-infer"}),
    (DrawnCall((2, 3), (2, 1, -1), True), {"lengths": "1-middle", "entries": "infer-last"}),
    (DrawnCall((2, 3), (1, 2, 3), True), {"lengths": "1-first"}),
    (DrawnCall((5, 12, 3), (5, 3, 2, 2, 3), True), {"lengths": "three"}),
    (DrawnCall((2, 9), (2, 3, 3), False), {"lengths": "square"}),
    (DrawnCall((2, 8), (2, 4, 2), False), {"lengths": "last-two"}),
    (DrawnCall((4, 6), (6, 4), False), {"lengths": "permuted"}),
    (DrawnCall((4, 6), (2, 12), False), {"lengths": "both"}),
    (DrawnCall((1, 1, 3), (1, 0, 3), True), {"lengths": "identity", "entries": "copy-behind-one"}),
    (DrawnCall((0, 3), (0, 0), False), {"entries": "literal-zero", "size": "0"}),
    (DrawnCall((2, 3), (7,), False), {"broken": "too-long"}),
    (DrawnCall((2, 3), (-1, 4), False), {"broken": "infer-no-divide"}),
    (DrawnCall((2, 3), (-1, -1), False), {"broken": "two-infers"}),
    (DrawnCall((2, 3), (-2, -3), False), {"broken": "negative-pair"}),
    (DrawnCall((10,), (2, 7, 7, 43826197), False), {"broken": "wraps-32"}),
    (DrawnCall((10,), (2, 13, 419, 691, 823, 2977518503), False), {"broken": "wraps-64"}),
    (DrawnCall((2, 3), (0, 4), True), {"broken": "copied"}),
    (DrawnCall((2, 3), (0, 3), False), {"broken": "literal-zero"}),
])  # fmt: skip
def test_the_factors_of_a_call(call: DrawnCall, facts: dict[str, str]) -> None:
    assert facts.items() <= find_factors(call).items()
