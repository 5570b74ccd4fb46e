"""`verify` and `publish` say what evidence shows, and not more."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from conformance.evidence.results import read

from ..builders import Command, Records, mini, recount, rewrite
from .readers import FLUSHES, read_by, run_once, verify


def impersonate(command: Command, backend: str, *keys: str) -> Callable[[Records], None]:
    """Give a run the header and the counts of another backend's run."""
    header, *_, footer = (
        json.loads(line) for line in run_once(command, backend).read_text(encoding="utf-8").splitlines()
    )

    def change(records: Records) -> None:
        records[0] |= {key: header[key] for key in ("backend", *keys)} | {"isolation": "worker"}
        records[-1]["planted"] = footer["planted"]

    return change


# ── what verify can say, and what it cannot ───────────────────────────────────────────────────────
def test_verify_does_not_know_who_wrote_the_evidence(command: Command) -> None:
    run_once(command)
    assert "written by: unknown. Only a signature shows who wrote the evidence (--certificate" in verify(command).text
    data = verify(command, "--json").data
    assert data["written_by"] == "unknown"
    assert data["conforms"] is True
    assert data["repeated"] is None


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("--require", "bf16", "--require", "layout:reversed"), 0, ""),
        (("--require", "type"), 1, "--require type: incomplete: asked for and not shown: type"),
        (("--require", "reshape-spec-v0.7", "--require", "f16"), 1, "asked for and not shown: reshape-spec-v0.7"),
        (("--require", "no-such"), 2, "unknown requirement"),
    ],
)
def test_verify_demands_what_run_would_have_demanded(
    command: Command, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int, told: str
) -> None:
    run_once(command, mini("LeavesOutOneType"))
    said = verify(command, *words).expect(code)
    assert told in f"{said.text} {said.err}"


def test_verify_holds_the_claims_against_those_that_are_pinned(command: Command, tmp_path: Path) -> None:
    run_once(command, mini("LeavesOutOneType"))
    claims = read(command.out / "results.jsonl").header["claims"]
    path = tmp_path / "claims.yaml"
    path.write_text(json.dumps(claims), encoding="utf-8")
    assert verify(command, "--claims", path).code == 0
    path.write_text(json.dumps({**claims, "not_claimed": []}), encoding="utf-8")
    verify(command, "--claims", path).expect(1, text="the backend does not claim type:f16 (add it to not_claimed)")


@pytest.mark.slow
def test_rows_called_again_come_to_what_true_evidence_says(command: Command) -> None:
    backend = mini("Bent")
    run_once(command, backend)
    again = ("verify", command.out, "--suite", command.folder, "--repeat", "30", backend)
    command(*again).expect(0, text=f"30 rows called again on {backend}: 30 gave what the evidence says")
    repeated = command(*again, "--json").data["repeated"]
    assert (repeated["backend"], repeated["rows"], repeated["differences"]) == (backend, 30, [])


@pytest.mark.slow
def test_rows_called_again_show_evidence_of_another_backend(command: Command) -> None:
    """Rows copied from the reference are sound in themselves; the backend that they are said to be of is wrong."""
    change = impersonate(command, FLUSHES, "claims")
    rewrite(run_once(command), change)
    verify = ("verify", command.out, "--suite", command.folder, "--conforms")
    assert command(*verify).code == 0, "alone, evidence tells nobody who wrote it"
    said = command(*verify, "--repeat", 1000, FLUSHES).expect(1)
    assert "patterns[StaticReshape-f32]: the evidence says f32[8], now f32[8] (subnormals flushed)" in said.text


def test_rows_are_called_again_on_the_same_backend_only(command: Command) -> None:
    run_once(command)
    verify(command, "--repeat", 3, mini("Bent")).expect(3, err="the evidence is of reference")
    rewrite(command.out / "results.jsonl", lambda records: records[0]["backend"]["detail"].update(build="debug"))
    otherwise = 'the backend describes itself otherwise here: "build" was null, not "debug"'
    assert otherwise in verify(command, "--repeat", 3, "reference").expect(0).out
    rewrite(command.out / "results.jsonl", lambda records: records[0]["claims"].update(answers_special_zero=True))
    verify(command, "--repeat", 3, "reference").expect(3, err="does not claim what the evidence says it claimed")
    rewrite(command.out / "results.jsonl", lambda records: records[0]["backend"].update(version="0"))
    verify(command, "--repeat", 3, "reference").expect(3, err="the evidence is of reference 0")
    for words in (("--repeat", 3), ("--repeat", 0, "reference"), ("--repeat", "reference", 3)):
        verify(command, *words).expect(2, err="--repeat")


# ── publishing ────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.slow
def test_publishing_says_what_it_replaces(command: Command) -> None:
    change = impersonate(command, FLUSHES)
    for _ in range(2):
        assert "replaces" not in read_by(command, "publish", command.out).err, "it is the same"
    rewrite(run_once(command), change)
    said = read_by(command, "publish", command.out)
    assert re.search(r"replaces the run of \d{4}-\d\d-\d\dT\S+\n", said.err)


@pytest.mark.parametrize("name", ["..", ".", "-", "///", "../.."])
def test_a_backend_whose_name_names_no_folder_is_not_published(command: Command, name: str) -> None:
    rewrite(run_once(command, FLUSHES), lambda records: records[0]["backend"].update(name=name))
    read_by(command, "publish", command.out).expect(2, err="names no folder")
    assert not list((command.folder / "reports").glob("*"))


def test_counts_are_those_of_the_rows(command: Command) -> None:
    rewrite(run_once(command, FLUSHES), lambda records: records[-1]["verdicts"].update({"pass": 9999}))
    assert "the footer counts 9999 pass" in verify(command).out
    rewrite(command.out / "results.jsonl", recount)
    assert verify(command).code == 0
    rewrite(command.out / "results.jsonl", lambda records: records[-1]["verdicts"].pop("error"))
    assert "the footer counts None error, the rows have 0" in verify(command).out
