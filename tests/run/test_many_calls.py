"""A case with `times` calls a step again and again, and one with `pause_ms` waits before its last step."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from conformance.isolate.backend import Isolation, use_backend
from conformance.isolate.protocol.session import Session
from conformance.load.cases import load_suite
from conformance.model import FAIL, NOT_CLAIMED, PASS, Rejected, Result, Tensor, Verdict
from conformance.plan.rows import Row, plan_of_cases
from conformance.run import row as row_module
from conformance.run.row import run_row
from conformance.verdict.sentences import name_missing_calls

from .. import miniatures
from ..builders import Cli, mini

FIRST_LOST = "6 of 6 elements differ, first at 0 in row-major order: want 2629d12d, got 00000000"


class Counting(miniatures.Bent):
    """The reference, with a function of the number of the call and of the seconds since the one before."""

    def __init__(self, act: Callable[[Any, int, float], Any]) -> None:
        self.act, self.calls, self.last = act, 0, time.monotonic()

    def bent(self, answer: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
        self.calls, before, self.last = self.calls + 1, self.last, time.monotonic()
        return self.act(answer, self.calls, self.last - before)


@pytest.fixture(autouse=True)
def time_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_module, "REPEAT_SECONDS", 60)


def row_of(case: str) -> Row:
    return plan_of_cases(load_suite(), [case]).rows[0]


def refuse(answer: Any, call: int, _: float) -> Any:
    if call == 65536:
        raise Rejected("run", "0 calls")
    return answer


@pytest.mark.parametrize(("act", "said"), [
    (refuse, "rejected at run: 0 calls, at call 65,536"),
    (lambda answer, call, _: answer if call < 700 else 0 * abs(answer), "all zero: 6 of 6 elements differ"),
    (lambda answer, call, _: answer if call != 2 else 0 * abs(answer), "all zero: 6 of 6 elements differ"),
    (lambda answer, call, _: answer if call % 2 else 0 * abs(answer), "all zero: 6 of 6 elements differ"),
    (lambda answer, call, _: refuse(answer, 65536 if call == 2 else 1, 0), "rejected at run: 0 calls, at call 2"),
    (lambda answer, call, _: refuse(answer, 65536 if call > 1 else 1, 0), "rejected at run: 0 calls, at call 2"),
    (lambda answer, call, _: answer[:5] if call == 1 else answer, "answered [5], due is [6], at call 1"),
])  # fmt: skip
def test_the_first_call_that_differs_is_judged(act: Callable[[Any, int, float], Any], said: str) -> None:
    backend = Counting(act)
    result = run_row(row_of("more-calls-than-16-bits-count"), backend)
    assert set(result.verdicts.values()) == {"fail"}
    assert said in str(result.detail)
    assert f"at call {backend.calls:,}" in str(result.detail)


@pytest.mark.parametrize("isolation", ["none", "worker"])
def test_an_illegal_call_that_is_answered_the_third_time_fails(isolation: Isolation) -> None:
    row = plan_of_cases(load_suite(), ["a-thousand-equal-calls-make-no-constant"]).rows[-1]
    with use_backend(mini("YieldsOnce"), isolation) as adapter:
        result = run_row(row, adapter)
    assert set(result.verdicts.values()) == {"fail"}
    assert str(result.detail).endswith("at call 3")


def test_all_calls_are_made() -> None:
    backend = Counting(lambda answer, *_: answer)
    assert run_row(row_of("more-calls-than-16-bits-count"), backend).outcome.call_number == backend.calls == 65600


def test_a_call_that_is_rejected_at_compile_is_not_made_again() -> None:
    """It has no program to run; the other steps are called as often as the case says."""
    backend = Counting(lambda answer, *_: answer)
    result = run_row(row_of("a-thousand-equal-calls-make-no-constant"), backend)
    assert (set(result.verdicts.values()), backend.calls) == ({"pass"}, 4 * 1100)


def test_fewer_calls_are_noted(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that pass are equal, however many calls there was time for; only the note has the number."""
    records = []
    for seconds in (0.001, float("inf")):
        monkeypatch.setattr(row_module, "REPEAT_SECONDS", seconds)
        out = tmp_path / str(seconds)
        said = cli("run", "reference", "-k", "more-calls-than-16-bits-count", "--out", out).out
        assert (
            ("65,600 equal calls of a test (" in said)
            == ("65,600 equal calls of a row (" in (out / "report.html").read_text())
            == (seconds < 1)
        )
        records.append((out / "results.jsonl").read_text().splitlines())
    few, all_ = records
    assert re.search(r"\[StaticReshape-f32\]: [0-9,]+ of 65,600 calls had time in 3 s", few[-1])
    assert "calls had time" not in all_[-1]
    assert [line for line in few if '"record":"row"' in line] == [line for line in all_ if '"record":"row"' in line]


def test_the_passing_row_that_lacks_most_calls_is_named_for_its_documents() -> None:
    counts = {"few": "979 of 1,100", "fewer": "2,525 of 65,600", "not-claimed": "2 of 1,100"}
    notes = [*(f"{row}: {calls} calls had time in 3 s" for row, calls in counts.items()), "other: it ended"]
    verdicts: Mapping[str, Mapping[str, Verdict]] = {
        "few": {"a": PASS, "b": PASS}, "fewer": {"a": PASS, "b": FAIL}, "not-claimed": {"a": NOT_CLAIMED},
    }  # fmt: skip
    results = {row: Result(row, each, ()) for row, each in verdicts.items()}
    assert name_missing_calls(notes, results) == {
        "": "63,075 of the 65,600 equal calls of a row (3 s were over), and some of 1 other row",
        "a": "63,075 of the 65,600 equal calls of a test (3 s were over), and some of 1 other test",
        "b": "121 of the 1,100 equal calls of a test (3 s were over)",
    }  # fmt: skip


@pytest.mark.parametrize("counts", ["0 of 0", ", of ,", f"1 of {'9' * 5000}"])
def test_a_note_that_no_run_writes_names_no_calls(counts: str) -> None:
    results = {"few": Result("few", {"a": PASS}, ())}
    assert name_missing_calls([f"few: {counts} calls had time in 3 s"], results) == {}


def test_the_second_call_comes_after_a_pause() -> None:
    idle = list[float]()

    def note(answer: Any, _: int, seconds: float) -> Any:
        idle.append(seconds)
        return answer

    result = run_row(row_of("a-pause-changes-nothing"), Counting(note))
    assert set(result.verdicts.values()) == {"pass"}
    assert len(idle) == 2
    assert idle[1] > 1


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The requests to run a program."""
    made, read = list[object](), Session.read

    def counted(*arguments: Any) -> Tensor:
        made.append(arguments)
        return read(*arguments)

    monkeypatch.setattr(Session, "read", counted)
    return made


@pytest.mark.parametrize(("backend", "calls", "detail"), [
    ("Bent", 65600, None), ("Tires", 5000, "rejected at run: enough, at call 5,000"),
    ("StumblesOnce", 2, "rejected at run: busy, at call 2"),
    ("LosesOnce", 2, f"all zero: {FIRST_LOST}, at call 2"),
])  # fmt: skip
def test_a_worker_makes_many_calls_for_one_request(
    backend: str, calls: int, detail: str | None, requests: list[object]
) -> None:
    with use_backend(mini(backend), "worker") as adapter:
        result = run_row(row_of("more-calls-than-16-bits-count"), adapter)
    assert len(requests) == 2
    assert (result.outcome.call_number, result.detail) == (calls, detail)


@pytest.mark.slow
def test_a_worker_that_ends_does_not_say_at_which_call() -> None:
    with use_backend(mini("Falls"), "worker") as adapter:
        result = run_row(row_of("more-calls-than-16-bits-count"), adapter)
    assert str(result.detail).endswith(", at call 2 or later")


@pytest.mark.parametrize(("way", "calls", "sent"), [(0, 1, 1), (-1, 1100, 2)])  # rejected at compile, at run
def test_a_worker_rejects_many_times_for_one_request(way: int, calls: int, sent: int, requests: list[object]) -> None:
    """A request for each took a fifth of `run numpy --quick`."""
    row = plan_of_cases(load_suite(), ["a-thousand-equal-calls-make-no-constant"]).rows[way]
    with use_backend("reference", "worker") as adapter:
        result = run_row(row, adapter)
    assert [outcome.call_number for outcome in result.outcomes if outcome.kind == "rejected"] == [calls]
    assert len(requests) == 2 * (len(row.steps) - 1) + sent
