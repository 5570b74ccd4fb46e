"""A row that fails is called again alone. What goes right there depends on the calls before it, and is blamed so."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.evidence.results import read
from conformance.runner import fresh_calls

from ..builders import DOCUMENTS, Cli, bundled_plan, write_suite

CASES = """about: A few.
cases:
  - {id: turned-first, rule: literal-lengths, src: "T[2, 3]", shape: [3, 2], special_zero: false, expect: "T[3, 2]"}
  - {id: turned-into-five, rule: same-volume, src: "T[2, 3]", shape: [5], special_zero: false, expect: reject}
  - {id: turned-second, rule: literal-lengths, src: "T[2, 3]", shape: [6, 1], special_zero: false, expect: "T[6, 1]"}
"""
REST = "src: 'T[2, 3]', shape: [6, 1], special_zero: false, expect: 'T[6, 1]'"
SEVEN = (
    "  - {id: turned-into-seven, rule: same-volume, src: 'T[2, 3]', shape: [7], special_zero: false, expect: reject}"
)
LIBRARY = """
import fcntl, pathlib
from conformance import FunctionAdapter
lock = open(pathlib.Path(__file__).with_suffix(".lock"), "w")
class Mine(FunctionAdapter):
    name, version, rejections = "mine", "1", (ValueError, OSError)
    def reshape(self, src, shape, special_zero):
        seen = vars(self).setdefault("seen", [])
        seen.append(shape)
        return {answer}
"""
ONLY_LATER = "src.reshape(seen[0] if shape != (5,) else shape)"
ALWAYS_OR_LATER = "src.reshape((2, 3) if shape == (6, 1) or len(seen) > 1 else shape)"
ALWAYS = "src.reshape((2, 3) if shape != (5,) else shape)"
DIES_ALONE = (
    "src.reshape((2, 3) if len(seen) > 1 and shape != (5,) else"
    " __import__('os')._exit(1) if shape == (6, 1) else shape)"
)
IF_ONE_PROCESS = "fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB) or src.reshape(-1 if shape == (5,) else shape)"
"""A second process rejects all calls, as for want of memory on a device."""
NOTE = "# went right alone: it depends on the calls before it"


@pytest.fixture
def run(tmp_path: Path, cli: Cli) -> Callable[..., list[Any]]:
    """Run a library on the cases of a suite that turn something, and return the failures that the command names."""

    def run(answer: str, cases: str, isolation: str = "worker", select: str = "turned") -> list[Any]:
        (tmp_path / "mine.py").write_text(LIBRARY.format(answer=answer), encoding="utf-8")
        words = ["--suite", write_suite(tmp_path, cases), "-k", select, "--isolation", isolation]
        words += ["--type", "f32", "--operation", "StaticReshape", "--out", tmp_path / "out", "--json"]
        failures: list[Any] = cli("run", f"{tmp_path / 'mine.py'}:Mine", *words).expect(1).data["failures"]
        cli("verify", tmp_path / "out", "--suite", tmp_path).expect(0)
        return failures

    return run


def find_blamed_rules(*failures: Any) -> set[str]:
    """Return the rules that some failures break."""
    return {blame["rule"] for failure in failures for blame in failure["blames"].values()}


def case_of(failure: Any) -> str:
    return str(failure["row"]).partition("[")[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "isolation", "alone", "rules"),
    [
        (ONLY_LATER, "worker", {"turned-second"}, {"each-call-alone"}),
        (ONLY_LATER, "none", {"turned-second"}, {"each-call-alone"}),
        ("src.reshape(seen[0])", "worker", {"turned-into-five", "turned-second"}, {"each-call-alone"}),
        (ALWAYS, "worker", set(), {"literal-lengths"}),
        (ALWAYS, "none", set(), {"literal-lengths"}),
        (IF_ONE_PROCESS, "worker", set(), {"same-volume"}),
    ],
)
def test_a_row_that_goes_right_alone_breaks_no_text(
    answer: str, isolation: str, alone: set[str], rules: set[str], tmp_path: Path, run: Callable[..., list[Any]]
) -> None:
    failures = run(answer, CASES, isolation)
    assert find_blamed_rules(*failures) == rules
    results = read(tmp_path / "out" / "results.jsonl").results
    assert {result.row.partition("[")[0] for result in results if result.right_alone} == alone
    assert all((failure["repeat"] is None) == bool(alone) for failure in failures)
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert (NOTE in page) == bool(alone)


@pytest.mark.slow
def test_after_many_calls_a_row_counts_as_those_like_it(
    tmp_path: Path, run: Callable[..., list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fresh_calls, "_MAX_RIGHT", 2)
    more = "".join(f"  - {{id: turned-{k}, rule: literal-lengths, {REST}}}\n" for k in range(3, 6))
    failures = run(ONLY_LATER, CASES + more + SEVEN)
    alike = [each for each in failures if "seven" not in each["row"]]
    assert len(alike) == len(failures) - 1
    assert find_blamed_rules(*alike) == {"each-call-alone"}
    assert {each["repeat"] for each in failures} == {None}
    alone = [each.right_alone for each in read(tmp_path / "out" / "results.jsonl").results if each.is_failure]
    assert alone == ["row", "row", "row of its kind", "row of its kind", "row"], "the first of a kind is called"


@pytest.mark.slow
def test_after_many_wrong_kinds_the_next_is_called_again(run: Callable[..., list[Any]]) -> None:
    rules = [rule.id for rule in bundled_plan().suite.spec.rules.values() if {*rule.documents} == {*DOCUMENTS}][:13]
    kinds = (f"  - {{id: turned-{rule}, rule: {rule}, {REST}}}\n" for rule in rules)
    cases = CASES.partition("  - {id: turned-into-five")[0] + "".join(kinds) + SEVEN
    failures = run(ALWAYS_OR_LATER, cases, "none")
    assert len(failures) == 14
    assert find_blamed_rules(*(each for each in failures if "seven" in each["row"])) == {"each-call-alone"}


CHAIN_AND_STEPS = """about: A few.
cases:
  - id: turned-in-a-chain
    rule: literal-lengths
    src: T[2, 3]
    shape: [3, 2]
    special_zero: false
    chain: [{shape: [6, 1], special_zero: false}]
    expect: T[6, 1]
  - {id: turned-alone, rule: literal-lengths, src: "T[2, 3]", shape: [6, 1], special_zero: false, expect: "T[6, 1]"}
  - id: turned-in-steps
    rule: literal-lengths
    steps:
      - {src: "T[2, 3]", shape: [1, 6], special_zero: false, expect: "T[1, 6]"}
      - {src: "T[2, 3]", shape: [6], special_zero: false, expect: "T[6]"}
"""
COPIES_INTO_OPEN_LENGTHS = """
from adapters.reference import Reference
from conformance.model import Operand
class Mine(Reference):
    def compile(self, graph):
        (node,) = graph.nodes
        if None in graph.src.dims:
            node = node._replace(special_zero=Operand("bool", (), (True,)))
        return super().compile(graph._replace(nodes=(node,)))
"""


@pytest.mark.slow
@pytest.mark.parametrize("isolation", ["worker", "none"])
def test_neither_a_chain_nor_steps_hide_what_goes_right_alone(isolation: str, run: Callable[..., list[Any]]) -> None:
    """Each fails again, as it makes several calls."""
    failures = {case_of(each): each for each in run(ONLY_LATER, CHAIN_AND_STEPS, isolation)}
    assert failures.keys() == {"turned-in-a-chain", "turned-alone", "turned-in-steps"}
    assert find_blamed_rules(failures["turned-alone"], failures["turned-in-steps"]) == {"each-call-alone"}


@pytest.mark.slow
def test_the_step_that_goes_right_alone_is_repeated_with_its_row(run: Callable[..., list[Any]]) -> None:
    (failure,) = run(ONLY_LATER, CHAIN_AND_STEPS, select="turned-in-steps")
    assert "turned-in-steps" in failure["repeat"]


@pytest.mark.slow
def test_a_row_that_was_not_called_again_names_no_steps(
    run: Callable[..., list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fresh_calls, "_MAX_RIGHT", 1)
    _, id_, steps = CHAIN_AND_STEPS.partition("  - id: turned-in-steps")
    failures = run(ONLY_LATER, f"{CHAIN_AND_STEPS}{id_}-again{steps}", select="turned-in-step")
    assert [failure["repeat"] is None for failure in failures] == [False, True]


@pytest.mark.slow
def test_after_a_process_ended_later_kinds_are_called_too(run: Callable[..., list[Any]]) -> None:
    failures = run(DIES_ALONE, CASES + SEVEN)
    assert find_blamed_rules(*(each for each in failures if case_of(each) == "turned-into-seven")) == {
        "each-call-alone"
    }


def test_lengths_left_open_by_a_graph_are_no_calls_before(tmp_path: Path, cli: Cli) -> None:
    (tmp_path / "mine.py").write_text(COPIES_INTO_OPEN_LENGTHS, encoding="utf-8")
    words = ["run", f"{tmp_path / 'mine.py'}:Mine", "-k", "between-other-lengths-of-src"]
    words += ["--type", "f32", "--operation", "DynamicReshape-1", "--isolation", "none"]
    assert find_blamed_rules(*cli(*words, "--json").expect(1).data["failures"]) == {"zero-empties"}


def test_a_step_alone_has_the_same_elements(tmp_path: Path, cli: Cli) -> None:
    words = ["run", "planted:zero-without-sign", "-k", "edge-patterns-of-many-counts", "--type", "f16"]
    assert find_blamed_rules(*cli(*words, "--out", tmp_path / "out", "--json").expect(1).data["failures"]) == {
        "content-is-bits"
    }
