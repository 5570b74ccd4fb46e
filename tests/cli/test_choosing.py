"""`--last-failed` and `--maxfail` choose rows by what failed; `-v` and `--json` choose what is printed of it."""

import json
from pathlib import Path

import pytest

from conformance.evidence.results import pack, read
from conformance.model import Result
from tests.builders import Command, mini, spare_planted

FLUSHES = mini("Flushes")
HERE = ("--isolation", "none")


def failed_rows(folder: Path) -> list[str]:
    return [r.row for r in read(folder / "results.jsonl").results if r.is_failure]


def rows_run(folder: Path) -> list[Result]:
    return [r for r in read(folder / "results.jsonl").results if set(r.verdicts.values()) != {"not run"}]


# ── --lf ──────────────────────────────────────────────────────────────────────────────────────────
def test_lf_runs_the_rows_that_failed_and_no_other(command: Command) -> None:
    command.run(FLUSHES)
    failed = failed_rows(command.out)
    assert failed
    again = command.folder / "again"
    assert command.run(FLUSHES, "--lf", command.out, out=again).code == 1
    assert [result.row for result in rows_run(again)] == failed == failed_rows(again)
    results = command.out / "results.jsonl"
    assert command("run", FLUSHES, *HERE, "--suite", command.folder, "--lf", results).code == 1
    Path(f"{results}.xz").write_bytes(pack(results.read_bytes()))  # as published
    results.unlink()
    assert command("run", FLUSHES, *HERE, "--suite", command.folder, "--lf", command.out).code == 1


@pytest.mark.parametrize(
    ("backend", "stream", "words"),
    [
        (FLUSHES, "out", " chose some rows, and only the whole suite shows conformity"),
        ("reference", "err", ": no row failed in that run; run all rows"),
    ],
    ids=["a mended one", "one that never failed"],
)
def test_lf_on_a_right_backend_shows_nothing_whole(command: Command, backend: str, stream: str, words: str) -> None:
    command.run(backend)
    before = (command.out / "results.jsonl").read_bytes()
    said = command("run", "reference", "--suite", command.folder, "--lf", command.out).expect(4)
    assert f"--last-failed {command.out}{words}" in getattr(said, stream)
    assert (command.out / "results.jsonl").read_bytes() == before


@pytest.mark.slow
def test_lf_names_the_drawn_rows_that_it_does_not_call(command: Command) -> None:
    command.run("planted:eight-buffers-in-turn", "--drawn-rows", "60").expect(1)
    drawn = [row.partition("[")[0] for row in failed_rows(command.out) if row.startswith("drawn-")]
    said = command("run", "reference", "--suite", command.folder, "--lf", command.out).expect(4)
    assert f"calls no drawn rows: {drawn[0]}" in said.err
    assert f"-k {drawn[0]} calls one" in said.err


def test_lf_does_not_clear_the_folder_that_it_reads(command: Command) -> None:
    command.run(FLUSHES)
    before = (command.out / "results.jsonl").read_bytes()
    for named in (command.out, command.out / "results.jsonl"):
        assert "would be cleared" in command.run(FLUSHES, "--lf", named).expect(2).err
    assert (command.out / "results.jsonl").read_bytes() == before


def test_lf_and_k_run_what_both_choose(command: Command) -> None:
    command.run(FLUSHES)
    first, *others = failed_rows(command.out)
    assert others
    again = command.folder / "again"
    command.run(FLUSHES, "--lf", command.out, "-k", first, out=again)
    assert [result.row for result in rows_run(again)] == [first]


def test_lf_of_a_folder_without_results_is_one_line(command: Command) -> None:
    path = command.folder / "none"
    said = command("run", "reference", "--suite", command.folder, "--lf", path).expect(2)
    assert said.err == f"conformance: --last-failed: {path}: cannot be read: No such file or directory\n"


# ── --maxfail ─────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.slow
@pytest.mark.parametrize(("jobs", "isolation"), [("1", "none"), ("2", "worker")])
def test_no_row_is_called_after_maxfail_rows_failed(
    command: Command, monkeypatch: pytest.MonkeyPatch, jobs: str, isolation: str
) -> None:
    spare_planted(monkeypatch)
    command.run(FLUSHES)
    whole = [result.row for result in rows_run(command.out)]
    second = failed_rows(command.out)[1]
    stopped = command.folder / "stopped"
    words, note = ("--maxfail", "2", "--jobs", jobs, "--isolation", isolation), "no row was called after 2 failed"
    command.run(FLUSHES, *words, out=stopped).expect(1, out=f"note: {note}, as --maxfail asks")
    assert [result.row for result in rows_run(stopped)] == whole[: whole.index(second) + 1]
    assert len(read(stopped / "results.jsonl").results) > len(rows_run(stopped))


def test_maxfail_changes_nothing_where_fewer_rows_fail(command: Command) -> None:
    assert command.run("reference", "--maxfail", "1").code == 0
    assert rows_run(command.out)


# ── what is printed ───────────────────────────────────────────────────────────────────────────────
def test_v_prints_every_row_that_failed(command: Command) -> None:
    usual, full = command.run(FLUSHES), command.run(FLUSHES, "-v")
    failed = failed_rows(command.out)
    assert len(failed) > 1
    assert all(f": {row} " in f"{full.text} " for row in failed)
    assert not all(f": {row} " in f"{usual.text} " for row in failed)


def test_json_has_the_blame_and_command_of_each_failed_row(command: Command) -> None:
    failures = json.loads(command.run(FLUSHES, "--json").out)["failures"]
    assert sorted(failure["row"] for failure in failures) == sorted(failed_rows(command.out))
    for failure in failures:
        assert failure["blames"]
        assert failure["detail"]
        assert failure["repeat"].endswith(f"-k '{failure['row']}'")
    assert json.loads(command.run("reference", "--json").out)["failures"] == []


# ── -k with the id of a case ──────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize("select", ["patterns", "there-and-back[StaticReshape-f32]", "cases/few.yaml::two-calls"])
def test_one_case_prints_what_it_prints_beside_all_others(
    command: Command, monkeypatch: pytest.MonkeyPatch, select: str
) -> None:
    """Neither the other cases nor their rows are looked at, which nobody may notice."""
    asked = ("run", FLUSHES, *HERE, "--suite", command.folder, "-k", select)
    alone = command(*asked)
    with monkeypatch.context() as patch:
        patch.setattr("conformance.cli.run.plan_of", None)  # nobody calls it
        assert command(*asked).out == alone.out
    monkeypatch.setattr("conformance.cli.run.find_case", lambda *_: None)
    whole = command(*asked)
    assert (alone.code, alone.out) == (whole.code, whole.out)


def test_a_case_without_a_row_to_run(command: Command) -> None:
    """Its name is still compared with all names."""
    said = command("run", "reference", "--suite", command.folder, "-k", "patterns[StaticReshape-f33]").expect(4)
    assert "nothing ran" in said.last or "nothing ran" in said.out
