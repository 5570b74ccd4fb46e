"""Every reader judges evidence again, and refuses what no run writes."""

import base64
import copy
import json
import os
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.evidence.results import pack
from conformance.report import embedded

from ..builders import (
    Command,
    CommandOutput,
    Records,
    flatter,
    mini,
    mutations,
    put,
    recount,
    rest_exhaustive,
    rewrite,
    sign_records,
)
from .readers import FLUSHES, ODD, READERS, WAIVER, read_by, remove, run_once, verify

pytestmark = pytest.mark.usefixtures("only_readme")


# ── every reader judges again ─────────────────────────────────────────────────────────────────────
def zero_contents(records: Records) -> None:
    for record in records[1:-1]:
        if "digests" in record:
            record["digests"] = ["0" * 16 for _ in record["digests"]]


def note(records: Records, **notes: str) -> None:
    """Add notes to the rows that failed."""
    for record in records[1:-1]:
        record.update(notes if "diagnosis" in record else {})


def say_right_alone(records: Records) -> None:
    """Say so of a run in which no row was called again."""
    records[0]["isolation"] = "row"
    note(records, right_alone="row")


REWRITTEN: dict[str, tuple[str, Callable[[Records], object], str]] = {
    # what was rewritten: (the backend, how, words of the refusal)
    "the verdicts": (
        FLUSHES, lambda records: [change(records) for change in (flatter, recount)],
        r"pass in static-[\w.-]+, where “\w+” makes it (observed|fail)",
    ),
    "the smallest case of a failure": (
        FLUSHES, lambda records: note(records, smallest_case="  - id: it\n"), "has a smallest case that no run writes"
    ),
    "that a row went right alone": (FLUSHES, say_right_alone, "went right alone, where no row is called again"),
    "the content of the answers": ("reference", zero_contents, "pass in static-"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", REWRITTEN)
@pytest.mark.parametrize("reader", READERS)
def test_rewritten_evidence_is_refused_by_every_reader(command: Command, reader: str, what: str) -> None:
    backend, rewrite_records, words = REWRITTEN[what]
    path = run_once(command, backend)
    assert backend == "reference" or read_by(command, reader, command.out).code == 0
    rewrite(path, rewrite_records)
    said = read_by(command, reader, command.out).expect(1 if reader == "verify" else 2)
    assert re.search(words, said.out if reader == "verify" else said.err)


@pytest.mark.parametrize("reader", READERS)
def test_evidence_of_an_older_format_is_not_called_damaged(command: Command, reader: str) -> None:
    rewrite(run_once(command), lambda records: records[0].update(format="reshape-conformance-results-1"))
    said = read_by(command, reader, command.out).expect(2)
    assert 'is in the format "reshape-conformance-results-1", as the suite "' in said.err
    assert "read it with that suite, or run again" in said.err


def test_a_row_with_right_dims_and_no_content_is_refused(command: Command) -> None:
    rewrite(run_once(command), remove("digests"))
    verify(command).expect(1, out="a step that came to “tensor” has the content None")


@pytest.mark.slow
def test_an_answer_too_large_to_be_read_has_no_content(command: Command) -> None:
    said = command.run(mini("AnswersMuch"), "--isolation", "worker").expect(1, out="  accept")
    assert "error" not in said.out
    verify(command).expect(0, out="follows from them")


def test_verdicts_of_another_suite_are_not_judged_again(command: Command) -> None:
    rewrite(run_once(command), lambda records: records[0]["suite"].update(digest="0" * 64))
    read_by(command, "diff", command.out).expect(0, text="of another suite, not judged again")


# ── what a damaged file comes to ──────────────────────────────────────────────────────────────────
def run_for_reader(command: Command, reader: str) -> Path:
    """The results of a run that a reader takes."""
    return run_once(command, "reference", *(("--shard", "1/1") if reader == "merge" else ()))


def one_line(said: CommandOutput) -> bool:
    return said.err.count("\n") == 1 and said.err.startswith("conformance: ")


@pytest.mark.slow
@pytest.mark.parametrize("share", [80, pytest.param(20, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("reader", [*READERS, "merge"])
def test_no_changed_field_of_the_evidence_is_a_traceback(command: Command, reader: str, share: int) -> None:
    """A share of the changes for each reader, drawn by its name."""
    path, folder = run_for_reader(command, reader), command.folder / "changed"
    folder.mkdir()
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    several = next(number for number, record in enumerate(lines) if "step" in record)
    places = [(at, *each) for at in (0, 1, several, len(lines) - 1) for each in mutations(lines[at])]
    assert len(places) > 1000
    for at, where, value in random.Random(reader).sample(places, len(places) // share):
        records = [*lines[:at], copy.deepcopy(lines[at]), *lines[at + 1 :]]
        put(records[at], where, value)
        (folder / "results.jsonl").write_bytes(sign_records(records))
        said = read_by(command, reader, folder)
        assert said.code in (0, 1, 2, 4, 6), (where, value, said)
        assert said.code != 2 or one_line(said), (where, value, said)


def remove_file(path: Path) -> Path:
    path.unlink()
    return path


@pytest.mark.slow
@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("reader", rest_exhaustive(READERS, ("verify", "report", "publish")))
def test_evidence_that_no_run_writes_does_no_harm(command: Command, reader: str, what: str) -> None:
    """A run of a backend that fails a little; the index of what is published can still be made afterwards."""
    rewrite(run_once(command, FLUSHES), ODD[what])
    said = read_by(command, reader, command.out)
    assert said.code in (0, 1, 2)
    assert said.code != 2 or one_line(said), said
    if not what.startswith(("half of a character", "a planted backend forgotten", "a note of")):
        assert said.code == (1 if reader == "verify" else 2)
    if reader == "publish":
        reports = command.folder / "reports"
        reports.mkdir(exist_ok=True)
        (reports / "README.md").write_text("<!-- counts -->\n<!-- /counts -->\nthe end\n", encoding="utf-8")
        again = command("publish", reports, "--suite", command.folder)
        assert again.code in (0, 1)
        assert (reports / "README.md").read_text(encoding="utf-8").count("<!-- /counts -->\n") == 1


@pytest.mark.slow
def test_a_run_without_a_planted_backend_shows_nothing(command: Command) -> None:
    path = run_once(command, mini("Bent"))
    assert verify(command, "--conforms").code == 0
    rewrite(path, ODD["a planted backend forgotten"])
    assert verify(command, "--conforms").code == 1


@pytest.mark.slow
def test_rows_waived_by_a_waiver_that_had_expired_are_refused(command: Command) -> None:
    def waive(records: Records) -> None:
        records[0]["waivers"] = [{**WAIVER, "rule": "same-content", "expires": "2020-01-01"}]
        for record in records[1:-1]:
            if "diagnosis" in record:
                record["verdicts"] = {d: "waived" if v == "fail" else v for d, v in record["verdicts"].items()}
                record["waiver"] = 1
        recount(records)

    rewrite(run_once(command, FLUSHES), waive)
    assert "which had expired when the run began" in verify(command).text


def test_a_page_that_unpacks_to_too_much_is_refused(reporting: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    reporting.out.mkdir()
    page = reporting.out / "report.html"
    page.write_text(f"{embedded.BEGIN}{base64.b64encode(pack(bytes(1001))).decode()}{embedded.END}", encoding="utf-8")
    monkeypatch.setattr("conformance.evidence.results.MAX_BYTES", 1000)
    reporting("verify", page, "--suite", reporting.folder).expect(2, err="unpacks to more than 1,000 bytes")


DEEP = "[" * 100_000
DIGITS = "1" * 100_000
UNREADABLE: dict[str, Callable[[Path], object]] = {
    "JSON nested 100,000 deep": lambda path: path.write_text(f'{{"record":"header","suite":{DEEP}\n'),
    "a row nested 100,000 deep": lambda path: path.write_text(f'{path.read_text()}{{"record":"row","row":{DEEP}\n'),
    "a number of 100,000 digits": lambda path: path.write_text(f'{{"record":"header","suite":{DIGITS}}}\n'),
    "a pipe": lambda path: os.mkfifo(remove_file(path)),
    "a device": lambda path: remove_file(path).symlink_to("/dev/zero"),
    "a folder": lambda path: remove_file(path).mkdir(),
    "a file of a terabyte": lambda path: os.truncate(path, 1 << 40),
    "nothing": lambda path: path.write_bytes(b""),
}


@pytest.mark.parametrize("what", UNREADABLE)
@pytest.mark.parametrize("reader", [*READERS, "merge"])
def test_what_nobody_could_read_is_one_line(command: Command, reader: str, what: str) -> None:
    UNREADABLE[what](run_for_reader(command, reader))
    said = read_by(command, reader, command.out)
    if reader == "verify" and said.code == 1:
        assert "do not rely on this report" in said.out
    else:
        assert said.code == 2
        assert one_line(said), said


def test_a_page_in_which_nothing_can_be_read_is_one_line(command: Command, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(f"{embedded.BEGIN}{DEEP}{embedded.END}", encoding="utf-8")
    said = command("verify", page, "--suite", command.folder).expect(2)
    assert one_line(said)


@pytest.mark.slow
def test_packed_results_that_unpack_to_too_much_are_refused(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    run_once(command, FLUSHES)
    assert read_by(command, "publish", command.out).code == 0
    (command.out / "results.jsonl.xz").write_bytes(b"")
    verify(command).expect(2, err="holds both results.jsonl and results.jsonl.xz")
    (folder,) = (command.folder / "reports").glob("flushes-*/")
    packed = (folder / "results.jsonl.xz").stat().st_size
    monkeypatch.setattr("conformance.evidence.results.MAX_BYTES", packed)
    read_by(command, "verify", folder).expect(2, err=f"unpacks to more than {packed:,} bytes")
