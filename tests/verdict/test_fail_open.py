"""Other suites said yes by accident: ours would too without its guards, and does not with them.

Every test here runs something that must not conform twice: as we are, and with the guard removed. The second run
shows that it is this guard that holds.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from inspect import unwrap
from pathlib import Path
from typing import Any

import pytest

import conformance.cli.run as commands_run
from conformance.evidence import results as evidence
from conformance.evidence.writer import Writer
from conformance.model import Claims, Kind, OutcomeKind, Result
from conformance.plan.rows import Plan, Row
from conformance.run import diagnose, judge
from conformance.run import row as run
from conformance.runner import planted_backends
from conformance.verdict import conclude, planted, rejudge, standing

from .. import builders, miniatures
from ..builders import Command, CommandOutput, mini

Patch = pytest.MonkeyPatch


@pytest.fixture(autouse=True)
def no_planted_backends(monkeypatch: Patch) -> None:
    """They run, and each time: without a guard they may fail less often than is remembered."""
    monkeypatch.setattr(planted_backends, "_run_planted_backend", unwrap(planted_backends._run_planted_backend))


def says_yes(said: CommandOutput) -> bool:
    return said.code == 0 and all(sentence.startswith("conforms to") for sentence in said.data["sentences"])


def never_says_conforms(said: CommandOutput) -> bool:
    return not any("conforms to" in sentence.replace("does not conform to", "") for sentence in said.data["sentences"])


@contextmanager
def without(*guards: tuple[Any, str, Any]) -> Iterator[None]:
    """Take guards away: an attribute or an item of each owner is replaced."""
    with pytest.MonkeyPatch.context() as patch:
        for owner, name, instead in guards:
            (patch.setitem if isinstance(owner, dict) else patch.setattr)(owner, name, instead)
        yield


def as_we_are_and_without(doing: Callable[[], CommandOutput], *guards: tuple[Any, str, Any]) -> CommandOutput:
    """Show that without the guards it would be a yes, and return the output with them, which is none."""
    with without(*guards):
        assert says_yes(doing()), "the guard is not what holds"
    said = doing()
    assert not says_yes(said)
    return said


def no_failures_are_success(standings: Any, groups: Any, *more: Any) -> tuple[int, str]:
    """The exit code as it is made where absence counts as success."""
    verdicts = [each.verdicts[document] for (document, _), group in groups.items() for each in group]
    return (1, "failed") if {"fail", "error"} & set(verdicts) else (0, "no failures")


def no_failures_conform(counts: Any, optional: Any, *more: Any) -> str:
    """The word for a document where absence counts as success."""
    return "does not conform" if {"fail", "error"} & {*counts, *optional} else "conforms"


UNPLANTED = (planted_backends, "run_all", lambda *_: dict.fromkeys(planted.names(), 1))
"""No bad backend is driven."""
UNCOUNTED = (rejudge, "refuse_incomplete", lambda *_: None)
"""Rows and digest are not compared with the suite's."""
NAIVE = ((conclude, "choose_exit_code", no_failures_are_success), (standing, "_choose_name", no_failures_conform))


def cell(outcome: OutcomeKind, kind: Kind, verdict: str) -> tuple[Any, str, Any]:
    """A cell of the table turned into another verdict."""
    return judge.OUTCOME_VERDICTS, outcome, {**judge.OUTCOME_VERDICTS[outcome], kind: (verdict, "")}


# ── success where nothing, or nothing that fails, was run ─────────────────────────────────────────
@pytest.mark.parametrize(
    ("backend", "words"),
    [("reference", ("-k", "no-such")), (mini("Flushes"), ("-k", "stays")), (mini("LeavesOutEveryType"), ())],
    ids=["a filter that matches nothing", "a filter that hides what fails", "everything not claimed"],
)
def test_a_run_of_nothing_that_fails(command: Command, backend: str, words: tuple[str, ...]) -> None:
    said = as_we_are_and_without(lambda: command.run(backend, "--json", *words), *NAIVE).expect(4)
    assert never_says_conforms(said)


# ── a skip or an opt-out counted as pass ──────────────────────────────────────────────────────────
def test_everything_unsupported(command: Command) -> None:
    guard = (judge.OUTCOME_VERDICTS, "unsupported", dict.fromkeys(judge.COLUMNS, ("pass", "")))
    as_we_are_and_without(lambda: command.run(mini("Unable"), "--json"), guard, UNPLANTED).expect(1)


def test_refusals_of_what_is_left_out_pass_nothing(command: Command, monkeypatch: Patch) -> None:
    monkeypatch.setattr(miniatures.Refuses, "claims", Claims(miniatures.ALL, ("type",)))
    said = as_we_are_and_without(lambda: command.run(mini("Refuses"), "--json"), *NAIVE).expect(4)
    assert said.data["verdicts"]["pass"] == 0, "not even the illegal calls, which it refused as it should"


# ── a crash, or a bug, accepted as a correct refusal ──────────────────────────────────────────────
@pytest.mark.parametrize(("backend", "outcome"), [("Crashes", "crash"), ("Errs", "error")])
def test_only_a_refusal_is_a_refusal(command: Command, backend: str, outcome: OutcomeKind) -> None:
    guard = (judge.OUTCOME_VERDICTS, outcome, judge.OUTCOME_VERDICTS["rejected"])
    as_we_are_and_without(lambda: command.run(mini(backend), "--json"), guard).expect(1)


# ── a partial run published as complete ───────────────────────────────────────────────────────────
def conclude_folder(command: Command) -> CommandOutput:
    """Let `conformance` conclude from the results in its folder."""
    plan, folder = command.plan, command.out
    try:
        found = rejudge.read_and_judge(folder / "results.jsonl", plan)
        code = commands_run.conclude_and_report(plan, found, folder, as_json=True)
    except evidence.InvalidEvidence as refused:
        return CommandOutput(2, json.dumps({"sentences": [], "why": str(refused)}), "")
    return CommandOutput(code, *command.capsys.readouterr())


def leave_out(command: Command, verdict: str) -> None:
    """Write the results of the last run again without the rows that have a verdict."""
    whole = evidence.read(command.out / "results.jsonl")
    writer = Writer(command.out / "results.jsonl", whole.header)
    for result in whole.results:
        if verdict not in result.verdicts.values():
            writer.row(result)
    writer.close(1.0, (), whole.footer["planted"])


def test_a_file_cut_off_before_its_failures(command: Command) -> None:
    command.run(mini("Flushes"))
    path = command.out / "results.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    first = next(number for number, line in enumerate(lines) if b'"fail"' in line)
    path.write_bytes(b"".join(lines[:first]))

    def careless(path: Path) -> evidence.Evidence:
        records = [json.loads(line) for line in path.read_bytes().splitlines()]
        footer = {"planted": dict.fromkeys(planted.names(), 1), "notes": [], "seconds": 1.0, "verdicts": {}}
        return evidence.Evidence(records[0], tuple(map(Result.from_json, records[1:])), footer)

    said = as_we_are_and_without(
        lambda: conclude_folder(command),
        (rejudge, "read", careless), (rejudge, "find_miscounts", lambda _: iter(())), UNCOUNTED, *NAIVE,
    )  # fmt: skip
    assert "has no footer" in said.data["why"]


def test_a_run_of_which_rows_are_missing(command: Command) -> None:
    command.run(mini("Flushes"))
    leave_out(command, "fail")
    said = as_we_are_and_without(lambda: conclude_folder(command), UNCOUNTED, *NAIVE)
    assert "lacks 6 rows of the suite" in said.data["why"]
    with without(UNCOUNTED):
        assert conclude_folder(command).code == 4, "rows come from the suite, so that even then it is incomplete"


# ── the wrong subset run or certified ─────────────────────────────────────────────────────────────
def test_results_of_another_suite_with_the_same_rows(command: Command) -> None:
    easy = builders.CASES.replace(
        "00000001 80000000 7fa00001 3f800001 007fffff", "3f800000 3f800001 7fa00001 3f800002 3f800003"
    )
    builders.write_cases(command.folder, easy.replace("00000000", "3f800004"))
    with without(UNPLANTED):
        assert command.run(mini("Flushes")).code == 0, "nothing subnormal is left in it"
    builders.write_cases(command.folder)
    unjudged = (rejudge, "find_contradictions", lambda *_: iter(()))
    said = as_we_are_and_without(lambda: conclude_folder(command), UNCOUNTED, unjudged)
    assert "is of a suite with digest" in said.data["why"]


# ── a harness that fails and reports no failures ──────────────────────────────────────────────────
_row_record = Result.to_json


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken",
    [
        (judge, "diagnose", lambda *_: None),
        (judge, "judge", lambda *_: judge.Judgement("pass")),
        (diagnose, "are_equal", lambda *_: True),
        (Result, "to_json", lambda r: _row_record(r._replace(verdicts=dict.fromkeys(r.verdicts, "pass")))),
        cell("tensor", "illegal", "pass"),
        cell("rejected", "legal", "pass"),
        (conclude, "choose_exit_code", lambda *_: (0, "done")),
    ],
    ids=["compares nothing", "passes everything", "finds all bytes equal", "writes only passes", "passes any answer",
         "passes any refusal", "always ends with 0"],
)  # fmt: skip
def test_a_harness_that_lies_catches_itself(command: Command, broken: tuple[Any, str, Any]) -> None:
    with without(broken):
        said = as_we_are_and_without(lambda: command.run("reference", "--json"), UNPLANTED).expect(5)
    assert never_says_conforms(said)


# ── a capability that no one implements vanishes ──────────────────────────────────────────────────
def test_what_no_one_implements_stays_in_sight(command: Command, monkeypatch: Patch) -> None:
    monkeypatch.setattr(miniatures.LeavesOut, "instead", "unsupported")
    command.run(mini("LeavesOut"))
    leave_out(command, "not claimed")
    plain = conclude.conclude

    def of_the_results(plan: Plan, results: Any, *more: Any, **options: Any) -> conclude.Conclusion:
        return plain(Plan(plan.suite, tuple(row for row in plan.rows if row.id in results)), results, *more, **options)

    said = as_we_are_and_without(
        lambda: conclude_folder(command),
        UNCOUNTED, (conclude, "conclude", of_the_results),
    )  # fmt: skip
    assert "lacks 18 rows of the suite" in said.data["why"]
    said = command.run(mini("LeavesOut"), "--json")
    assert all("not claimed: layout:reversed" in sentence for sentence in said.data["sentences"])


# ── the test itself disabled as flaky ─────────────────────────────────────────────────────────────
def test_no_row_can_be_skipped_and_all_data_is_the_same(command: Command) -> None:
    one, two = builders.plan_of_cases(command.folder / "one"), builders.plan_of_cases(command.folder / "two")
    for row, other in zip(one.rows, two.rows, strict=True):
        assert [task.src.before for task in row.steps] == [task.src.before for task in other.steps]

    plain = run.run_row

    def skipping(row: Row, *more: Any) -> Result:
        return run.make_result_without_call(row, "not run") if row.case.id == "patterns" else plain(row, *more)

    def without_one() -> CommandOutput:
        with without((run, "run_row", skipping), UNPLANTED):
            return command.run(mini("Flushes"), "--json")

    said = as_we_are_and_without(without_one, *NAIVE).expect(4)
    assert "1 test not run" in said.data["why"]


# ── green for the wrong reason ────────────────────────────────────────────────────────────────────
def test_a_suite_without_the_case_that_catches_a_fault(command: Command) -> None:
    before, _, after = builders.CASES.partition("  - id: patterns")
    builders.write_cases(command.folder, before + after[after.index("  - {id: eight") :])
    said = as_we_are_and_without(lambda: command.run(mini("Flushes"), "--json"), UNPLANTED).expect(5)
    assert "FlushesSubnormals" in said.data["why"]
