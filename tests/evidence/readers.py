"""Results files of a few rows, and commands that read evidence, on runs of a few cases."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.evidence.results import Target, header_of
from conformance.evidence.writer import Writer
from conformance.load.cases import load_suite
from conformance.model import Claims, Identity, Outcome, Result

from ..builders import Command, CommandOutput, Records, mini, write_suite

READERS = ("verify", "report", "diff", "publish")


_MADE: dict[tuple[str, ...], bytes] = {}


def run_once(command: Command, backend: str = "reference", *words: str, out: Path | None = None) -> Path:
    """The results of a run of the few cases, made once in a process and copied into `out`, or that of the command."""
    path, key = (out or command.out) / "results.jsonl", (backend, *words)
    if key not in _MADE:
        command.run(backend, *words, *(() if backend == "reference" else ("--isolation", "worker")), out=path.parent)
        _MADE[key] = path.read_bytes()
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(_MADE[key])
    return path


FLUSHES = mini("Flushes")


def read_by(command: Command, reader: str, folder: Path) -> CommandOutput:
    """One of the commands that read evidence, on a folder."""
    if reader == "merge":
        return merge(command, folder)
    words: dict[str, list[object]] = {
        "verify": [folder], "report": [folder], "diff": [folder, folder],
        "publish": [command.folder / "reports", folder],
    }  # fmt: skip
    return command(reader, *words[reader], "--suite", command.folder)


def verify(command: Command, *words: object) -> CommandOutput:
    return command("verify", command.out, "--suite", command.folder, *words)


def remove(key: str) -> Callable[[Records], None]:
    def change(records: Records) -> None:
        for record in records[1:-1]:
            record.pop(key, None)

    return change


def merge(command: Command, *folders: Path) -> CommandOutput:
    return command("report", *folders, "--suite", command.folder, "--out", command.folder / "merged")


WAIVER = {"number": 1, "place": "w.yaml:2", "reason": "x", "link": "x", "owner": "x", "expires": "2099-01-01"}
ODD: dict[str, Callable[[Records], object]] = {
    "seconds past any float": lambda records: records[-1].update(seconds=10**400),
    "seconds that no page can count": lambda records: records[-1].update(seconds=1.7e308),
    "seconds below zero": lambda records: records[-1].update(seconds=-1),
    "a day that is none": lambda records: records[0].update(started="9999-99-99T99:99:99Z"),
    "digits of another script": lambda records: records[0].update(started="٢٠٢٦-01-02T03:04:05+00:00"),
    "a waiver of nothing": lambda records: records[0].update(waivers=[WAIVER]),
    "a waiver of everything": lambda records: records[0].update(waivers=[{**WAIVER, "case": "*"}]),
    "a waiver of no day": lambda records: records[0].update(waivers=[{**WAIVER, "case": "x", "expires": "2026-13-13"}]),
    "counts of other rows": lambda records: records[-1]["verdicts"].update({"pass": 1}),
    "half of a character": lambda records: next(
        record for record in records if "diagnosis" in record
    ).update(diagnosis="\ud800 | b\n<!-- /counts -->"),
    "a note of no calls": lambda records: records[-1].update(notes=["x: 0 of 0 calls had time in 3 s"]),
    "a note of no numbers": lambda records: records[-1].update(notes=["x: , of , calls had time in 3 s"]),
    "a planted backend forgotten": lambda records: records[-1]["planted"].pop("DiesRatherThanReject"),
}  # fmt: skip


# ── results files of a few rows ───────────────────────────────────────────────────────────────────
ROWS = [f"row-{number}[StaticReshape-f32]" for number in range(8)]


def write(path: Path, backend: str = "it", rows: list[str] = ROWS, close: bool = True) -> dict[str, Any]:
    """A results file of a few rows, and its header."""
    suite = load_suite(write_suite(path.parent / "suite"))
    header = header_of(suite, Identity(backend, "1"), Claims(("StaticReshape",)), Target(), backend)
    writer = Writer(path, header)
    for row in rows:
        outcomes = (Outcome("tensor", "f32", (2,)),)
        writer.row(Result(row, {"static-oneapi": "pass"}, outcomes, digests=("0123456789abcdef",)))
    if close:
        writer.close(1.0, (), {"Planted": 3})
    del writer  # so that what it holds is written out
    return header


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "results.jsonl"
    write(path)
    return path


Lines = list[bytes]


def lines_of(path: Path) -> Lines:
    return path.read_bytes().splitlines(keepends=True)


def rows_in(path: Path) -> list[bytes]:
    """The rows of a results file, whether resumed or not."""
    return [line.replace(b',"resumed":true}', b"}") for line in path.read_bytes().splitlines()[1:-1]]
