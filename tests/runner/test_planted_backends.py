"""Planted bad backends are driven through the whole of every run; where one escapes, nothing is said to conform."""

from collections.abc import Iterator
from contextlib import contextmanager
from inspect import unwrap
from pathlib import Path
from typing import Any

import pytest

from conformance.evidence.results import read
from conformance.isolate.backend import Isolation
from conformance.isolate.process.launch import ProcessLimits
from conformance.load.cases import load_suite
from conformance.model import Kind, OutcomeKind, Result
from conformance.plan.rows import Plan, plan_of, plan_of_cases
from conformance.run import diagnose, judge
from conformance.runner import planted_backends
from conformance.verdict import conclude, planted

from .. import builders
from ..builders import Command, mini, some_slow

NAMES = list(planted.names())


@pytest.fixture(autouse=True)
def no_planted_backends() -> None:
    """Here runs call them."""


def test_each_planted_backend_fails_in_the_evidence_of_every_run(command: Command) -> None:
    for backend in ("reference", mini("Flushes")):
        command.run(backend)
        failures = read(command.out / "results.jsonl").footer["planted"]
        assert list(failures) == NAMES
        assert all(count > 0 for count in failures.values())


@pytest.mark.parametrize("name", NAMES)
def test_a_planted_backend_that_escapes_ends_the_run_with_5(
    reporting: Command, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    plain = planted_backends._run_planted_backend

    def failures(plan: Plan, backend: planted.PlantedBackend, *more: Any) -> int:
        return 0 if name == backend.name else plain(plan, backend, *more)

    monkeypatch.setattr(planted_backends, "_run_planted_backend", failures)
    said = reporting.run("reference", "--json").expect(5)
    assert said.data["why"].startswith(f"our own planted fault was not caught: {name};")
    assert {standing["standing"] for standing in said.data["standings"]} == {"nothing shown"}
    for sentence, document in zip(said.data["sentences"], builders.DOCUMENTS, strict=True):
        assert sentence.startswith(f"{document}: nothing shown")
    for report in ("summary.md", "report.html"):
        text = (reporting.out / report).read_text(encoding="utf-8")
        assert not any(f"conforms to {document}" in text for document in builders.DOCUMENTS)
        assert not builders.conforming(text)
    assert text.count("not to be relied on: ") == len(builders.DOCUMENTS)


def test_a_planted_backend_that_escapes_shows_no_failure(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planted_backends, "_run_planted_backend", lambda *_: 0)
    said = command.run(mini("Flushes")).expect(5, text=", ".join(NAMES))
    assert {word for cells in builders.table_of(said.out).values() for word in cells[:3]} == {"nothing shown"}
    assert {len(cells) for cells in builders.table_of(said.out).values()} == {4}  # types and tests, and no failures
    command.run(mini("ClaimsNothing")).expect(5, out="no verdict of this run is reliable")


@contextmanager
def replace(owner: Any, name: str, instead: Any) -> Iterator[None]:
    """Replace an attribute or an item; planted backends are then run each time, as they may fail less often."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planted_backends, "_run_planted_backend", unwrap(planted_backends._run_planted_backend))
        (patch.setitem if isinstance(owner, dict) else patch.setattr)(owner, name, instead)
        yield


def cell(outcome: OutcomeKind, kind: Kind) -> tuple[Any, str, Any]:
    """Return a cell of the table of verdicts turned into a pass."""
    return judge.OUTCOME_VERDICTS, outcome, {**judge.OUTCOME_VERDICTS[outcome], kind: ("pass", "")}


def expect_caught(command: Command, backend: str) -> None:
    """Show that a run says yes without its planted backends, and that with them no verdict holds."""
    with replace(planted_backends, "run_all", lambda *_: dict.fromkeys(NAMES, 1)):
        command.run(backend).expect(0)
    said = command.run(backend, "--json").expect(5)
    assert said.data["why"].startswith("our own planted fault was not caught: ")
    assert not [each for each in said.data["sentences"] if each.startswith("conforms to")]


to_json = Result.to_json
LIES: dict[str, tuple[Any, str, Any]] = {
    "compares nothing": (judge, "diagnose", lambda *_: None),
    "passes everything": (judge, "judge", lambda *_: judge.Judgement("pass")),
    "finds all bytes equal": (diagnose, "are_equal", lambda *_: True),
    "writes only passes": (
        Result, "to_json", lambda result: to_json(result._replace(verdicts=dict.fromkeys(result.verdicts, "pass"))),
    ),
    "passes any answer": cell("tensor", "illegal"),
    "passes any rejection": cell("rejected", "legal"),
    "always ends with 0": (conclude, "choose_exit_code", lambda *_: (0, "done")),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("lie", LIES)
def test_a_suite_that_lies_catches_itself(command: Command, lie: str) -> None:
    with replace(*LIES[lie]):
        expect_caught(command, "reference")


def test_a_suite_without_the_case_that_catches_a_fault(command: Command) -> None:
    before, _, after = builders.CASES.partition("  - id: patterns")
    builders.write_cases(command.folder, before + after[after.index("  - {id: eight") :])
    expect_caught(command, mini("Flushes"))


@pytest.mark.slow
def test_in_processes_one_more_is_planted(tmp_path: Path) -> None:
    """Each is caught by the rule that it breaks: what it may pass, it passes. None needs the memory of a program."""
    plan = builders.plan_of_cases(tmp_path)
    caught = planted_backends.run_all(plan, "worker", ProcessLimits(memory=64 << 20))
    assert list(caught) == [*NAMES, "DiesRatherThanReject"]
    assert all(caught.values())
    assert planted.find_uncaught((), caught) == ()
    caught = planted_backends.run_all(plan, "none", ProcessLimits())
    rows = [row for row in plan.rows if row.type == "f32"]
    for backend, failures in zip(planted.list_planted("none"), caught.values(), strict=True):
        verdicts = sum(len(row.documents) for row in rows if row.case.rule in backend.rules)
        assert 0 < failures < verdicts


@pytest.mark.parametrize("isolation", some_slow(["none", "worker"], ["none"]))
def test_a_run_without_evidence_catches_each_with_few_rows(isolation: Isolation) -> None:
    """It reads a few cases only, so that a person who repeats a failure need not wait."""
    suite = load_suite()
    plan = plan_of_cases(suite, ["there-and-back"])
    caught = planted_backends.run_all(plan, isolation, ProcessLimits(), few=True)
    assert list(caught) == list(planted.names(isolation))
    assert all(caught.values())


def test_a_run_without_evidence_tries_more_rows_before_it_fails(tmp_path: Path) -> None:
    """The first cases about a rule in a suite of someone else may be such as every backend passes."""
    case = '  - {id: more-%s, rule: same-content, src: "T[2, 3]", shape: [6], special_zero: true, expect: "T[6]"}\n'
    begin = "  - id: patterns\n"
    more = "".join(case % letter for letter in "abcdef")
    plan = builders.plan_of_cases(tmp_path, builders.CASES.replace(begin, more + begin))
    caught = planted_backends.run_all(plan, "none", ProcessLimits(), few=True)
    assert list(caught) == NAMES
    assert all(caught.values())


def test_planted_backends_do_not_depend_on_the_rows_of_the_plan() -> None:
    suite = load_suite()
    of_one = planted_backends.run_all(plan_of_cases(suite, ["there-and-back"]), "none", ProcessLimits())
    assert of_one == planted_backends.run_all(plan_of(suite), "none", ProcessLimits())
