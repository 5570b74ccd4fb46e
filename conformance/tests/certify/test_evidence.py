"""Results files prove nothing unless they are whole; a run that was killed can be finished; parts make a whole."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import platform
import random
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from conformance.adapter import digest_of_adapter
from conformance.certify import evidence as evidence_module
from conformance.certify import waive
from conformance.certify.evidence import Evidence, Refused, Target, Writer, complete, header_of, part_of, read
from conformance.certify.shards import find_shard_gap
from conformance.cli import main as cli
from conformance.isolate.backend import run_rows
from conformance.model import IDLE, Claims, Identity, Outcome, Result, Verdict
from conformance.plan.rows import Row
from conformance.run.row import result_without_call

from .. import small
from ..processes import run_command, wait
from ..small import Command, command, mini

__all__ = ["command"]
ROWS = [f"row-{number}[StaticReshape-f32]" for number in range(8)]


def write(path: Path, backend: str = "it", rows: list[str] = ROWS, close: bool = True) -> dict[str, Any]:
    """A results file of a few rows, and its header."""
    suite = small.suite(None, small.cases(path.parent / "suite"))
    header = header_of(suite, Identity(backend, "1"), Claims(("StaticReshape",)), Target(), backend)
    writer = Writer(path, header)
    for row in rows:
        outcomes = (Outcome("tensor", "f32", (2,)),)
        writer.row(Result(row, {"static-2022": "pass"}, outcomes, content=("0123456789abcdef",)))
    if close:
        writer.close(1.0, (), {"Planted": 3})
    else:
        writer.leave()
    return header


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "results.jsonl"
    write(path)
    return path


Lines = list[bytes]


def lines_of(path: Path) -> Lines:
    return path.read_bytes().splitlines(keepends=True)


def replace(old: bytes, new: bytes, at: int) -> Callable[[Lines, Lines], Lines]:
    """Replace words in a line that has them."""

    def change(lines: Lines, _: Lines) -> Lines:
        assert old in lines[at]
        return [*lines[:at], lines[at].replace(old, new), *lines[at + 1 :]]

    return change


def insert(*new: bytes, at: int = 3, instead: bool = False) -> Callable[[Lines, Lines], Lines]:
    """Put lines before a line, or in its place."""
    return lambda lines, _: [*lines[:at], *new, *lines[at + instead :]]


SPOILT: dict[str, tuple[Callable[[Lines, Lines], Lines], str]] = {
    # name: (how the lines are spoilt, given those of another file too; words of the message)
    "nothing in it": (lambda lines, other: [], "is empty; run again"),
    "no footer": (lambda lines, other: lines[:-1], "has no footer: the run did not end; run again"),
    "a header alone": (lambda lines, other: lines[:1], "has no footer"),
    "no header": (lambda lines, other: lines[1:], ":1: is no header"),
    "an older format": (
        replace(b"results-3", b"results-1", 0),
        ':1: is in the format "reshape-conformance-results-1", as suite "0.1.0" wrote it, and this suite reads'),
    "a line cut off": (lambda lines, other: [*lines[:3], lines[3][:40]], ":4: the line is cut off"),
    "the footer cut off": (lambda lines, other: [*lines[:-1], lines[-1][:-1]], ":10: the line is cut off"),
    "a line cut off in the middle": (
        lambda lines, other: [*lines[:3], lines[3][:40] + b"\n", *lines[4:]],
        ":4: is no JSON",
    ),
    "a row twice": (
        lambda lines, other: [*lines[:3], lines[2], *lines[3:]],
        ":4: the row row-1[StaticReshape-f32] stands twice",
    ),
    "a row missing": (lambda lines, other: [*lines[:3], *lines[4:]], "the footer counts 8 rows, there are 7"),
    "rows in another order": (lambda lines, other: [lines[0], lines[2], lines[1], *lines[3:]], "the file was changed"),
    "a verdict changed": (replace(b"pass", b"fail", 3), "the file was changed"),
    "an outcome changed": (replace(b"[2]", b"[3]", 3), "the file was changed"),
    "the header changed": (replace(b'"it"', b'"IT"', 0), "two files are mixed"),
    "the header of another": (lambda lines, other: [other[0], *lines[1:]], "two files are mixed"),
    "two files in one": (lambda lines, other: [*lines, *other], ':10: a "footer" among the rows; two files are mixed'),
    "two runs begun": (lambda lines, other: [*lines[:4], *other], ':5: a "header" among the rows; two files are mixed'),
    "a row of another": (
        lambda lines, other: [*lines[:3], other[3].replace(b"row-2", b"row-9"), *lines[3:]],
        "counts 8 rows, there are 9",
    ),
    "the footer of another": (lambda lines, other: [*lines[:-1], other[-1]], "two files are mixed"),
    "no verdicts": (replace(b'"verdicts"', b'"verdict"', 3), ":4: the row lacks verdicts"),
    "an id that is a number": (replace(b'"row-2[StaticReshape-f32]"', b"2", 3), ":4: row in the row is 2"),
    "a verdict that is none": (replace(b'"pass"', b'"fine"', 3), ':4: verdicts.static-2022 in the row is "fine"'),
    "a list for a row": (insert(b"[]\n", instead=True), ":4: is no record"),
    "bytes that are no text": (insert(b"\xff\xfe\n", instead=True), "is not UTF-8; the file is damaged"),
    "zeros at the end": (lambda lines, other: [*lines[:5], b"\0" * 512], ":6: the line is cut off"),
}  # fmt: skip


@pytest.mark.parametrize("what", SPOILT)
def test_a_file_that_is_not_whole_is_refused_with_its_own_message(path: Path, tmp_path: Path, what: str) -> None:
    spoil, words = SPOILT[what]
    write(tmp_path / "other.jsonl", "other")
    path.write_bytes(b"".join(spoil(lines_of(path), lines_of(tmp_path / "other.jsonl"))))
    with pytest.raises(Refused) as refused:
        read(path)
    assert words in str(refused.value)
    assert str(refused.value).startswith(str(path))


@pytest.mark.parametrize(
    ("record", "key"),
    [
        *(("header", key) for key in ("suite", "backend", "claims", "target", "environment", "started")),
        *(("footer", key) for key in ("rows", "verdicts", "digest", "header", "notes", "canaries", "seconds")),
    ],
)
def test_a_file_whose_header_or_footer_lacks_something_is_refused(path: Path, record: str, key: str) -> None:
    lines = lines_of(path)
    at = {"header": 0, "footer": -1}[record]
    content = json.loads(lines[at])
    for value, words in ((None, f"{key} in the {record} is null"), ("lacking", f"the {record} lacks {key}")):
        content[key] = value
        if value == "lacking":
            del content[key]
        lines[at] = json.dumps(content).encode() + b"\n"
        path.write_bytes(b"".join(lines))
        with pytest.raises(Refused, match=f"{words}; the file is damaged"):
            read(path)


def test_a_whole_file_is_taken(path: Path) -> None:
    evidence = read(path)
    assert [result.row for result in evidence.results] == ROWS
    assert evidence.footer["verdicts"]["pass"] == 8


def signed(lines: Lines) -> bytes:
    """The lines with a footer that is true of them."""
    footer = json.loads(lines[-1])
    footer |= {"rows": len(lines) - 2, "digest": hashlib.sha256(b"".join(lines[1:-1])).hexdigest()}
    footer["seal"] = evidence_module.seal_of(footer)
    return b"".join([*lines[:-1], json.dumps(footer).encode() + b"\n"])


REST = b'"verdicts":{"static-2022":"pass"},"outcomes":[{"kind":"rejected"}]}'
TWISTED = {
    "an id with an escape": b'{"record":"row","row":"a\\u0022,b",' + REST,
    "an id that seems to end": b'{"record":"row","row":"a\\",\\"verdicts",' + REST,
    "an id with other letters": '{"record":"row","row":"ä",'.encode() + REST,
    "a second id": b'{"record":"row","row":"a",' + REST[:-1] + b',"row":"b"}',
    "a second id in disguise": b'{"record":"row","row":"a",' + REST[:-1] + b',"\\u0072ow":"b"}',
    "verdicts twice": b'{"record":"row","row":"a","verdicts":{},' + REST,
    "keys in another order": REST[:-1] + b',"row":"a","record":"row"}',
    "blanks": b' {"record": "row", "row": "a", ' + REST + b" ",
}


@pytest.mark.parametrize("what", TWISTED)
def test_a_line_is_read_as_json_whatever_stands_in_it(path: Path, what: str) -> None:
    line = TWISTED[what] if TWISTED[what].lstrip().startswith(b"{") else b"{" + TWISTED[what]
    lines = lines_of(path)
    path.write_bytes(signed([*lines[:3], line + b"\n", *lines[3:]]))
    results, records = read(path).results, [json.loads(line) for line in lines_of(path)[1:-1]]
    assert [(result.row, result.verdicts) for result in results] == [(r["row"], r["verdicts"]) for r in records]
    kinds = [[outcome["kind"] for outcome in record["outcomes"]] for record in records]
    assert [[outcome.kind for outcome in result.outcomes] for result in results] == kinds


@pytest.mark.parametrize("end", [b"}", b"}}", b" " + REST + b" {}", b'"verdicts":{}}, {"a":1}', b"\t", b""])
def test_a_line_that_is_nearly_json_is_refused(path: Path, end: bytes) -> None:
    lines = lines_of(path)
    path.write_bytes(signed([*lines[:3], b'{"record":"row","row":"a",' + end + b"\n", *lines[3:]]))
    with pytest.raises(Refused, match=":4: is no JSON"):
        read(path)


def test_rows_whose_second_ids_are_the_same_are_one_row(path: Path) -> None:
    lines = lines_of(path)
    two = [b'{"record":"row","row":"' + id_ + b'",' + REST[:-1] + b',"row":"b"}\n' for id_ in (b"x", b"y")]
    path.write_bytes(signed([*lines[:3], *two, *lines[3:]]))
    with pytest.raises(Refused, match=":5: the row b stands twice"):
        read(path)


def test_rows_that_were_not_called_are_written_as_any_others(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    header = write(tmp_path / "other.jsonl")
    writer = Writer(path, header)
    said: list[dict[str, Verdict]] = [{"d": "not run"}, {"d": "not claimed", "e": "not run"}]
    said.append(dict(reversed(said[1].items())))
    results = [
        Result(row, verdicts, IDLE, 0, *wrong)
        for row in ("a", 'a"\\\n', "ä", "a")
        for verdicts in said
        for wrong in ((), ("diagnosis", "detail"))
    ]
    for result in results:
        writer.row(result)
    with pytest.raises(Refused, match="the row a stands twice"):
        writer.close(0.0)
    rows = path.read_text(encoding="utf-8").splitlines()[1:-1]
    assert rows == [json.dumps(evidence_module.row_record(result), separators=(",", ":")) for result in results]


@pytest.mark.parametrize("cut", [1, 2, 50, 400, 900, 1500])
def test_no_beginning_of_a_file_is_taken(path: Path, cut: int) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) - cut])
    with pytest.raises(Refused):
        read(path)
    with pytest.raises(Refused, match="cannot be read: No such file"):
        read(path.parent / "none")


def test_the_header_pins_what_was_run_and_where(path: Path) -> None:
    header = read(path).header
    documents = {document.id: document.sha256 for document in small.spec().documents.values()}
    assert header["suite"].keys() == {"version", "digest", "documents"}
    assert header["suite"]["documents"] == documents
    assert header["backend"].keys() == {"name", "version", "adapter", "detail", "digest"}
    assert header["environment"]["python"] == platform.python_version()
    assert header["environment"].keys() == {
        "python", "implementation", "numpy", "ml_dtypes", "system", "machine", "byteorder",
        "processor", "instructions", "variables",
    }  # fmt: skip


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64") or sys.platform != "linux", reason="Linux tells")
def test_the_header_names_the_processor_and_what_it_computes_with(path: Path) -> None:
    environment = read(path).header["environment"]
    assert environment["processor"] != "unknown"
    assert {"sse4_2", "asimd"} & set(environment["instructions"].split())
    assert "sse2" not in environment["instructions"].split(), "every processor has it"


def test_the_header_names_variables_that_tell_libraries_to_compute_otherwise_and_no_path(tmp_path: Path) -> None:
    given = {"ONEDNN_MAX_CPU_ISA": "AVX2", "PYTENSOR_FLAGS": "compiledir=/home/me/c,mode=JAX", "HOME_OF_ONEDNN_": "/x"}
    words = "run", "numpy", "--isolation", "none", "--cases", small.cases(tmp_path), "--out", tmp_path / "out"
    bare = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "OPENBLAS_"))}
    run_command(*words, cwd=small.ROOT, env=bare | given)
    said = read(tmp_path / "out" / "results.jsonl").header["environment"]["variables"]
    assert said == "ONEDNN_MAX_CPU_ISA=AVX2 PYTENSOR_FLAGS=compiledir=c,mode=JAX"


def test_another_suite_and_other_rows_are_refused(path: Path) -> None:
    evidence = read(path)
    digest = evidence.header["suite"]["digest"]
    complete(evidence, ROWS, digest, path)
    for rows, suite, words in (
        (ROWS, "0" * 64, "is of a suite with digest"),
        ([*ROWS, "new"], digest, "lacks 1 rows of the suite, first new"),
        (ROWS[1:], digest, "has rows that the suite does not, such as row-0"),
    ):
        with pytest.raises(Refused, match=words):
            complete(evidence, rows, suite, path)


def test_evidence_without_planted_backends_shows_nothing(command: Command) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("conformance.certify.canary.count_failures", lambda *_: {})
        said = command.run("numpy", "--json")
    assert said.code == 5
    assert not any("conforms to" in sentence for sentence in said.data["sentences"])


# ── going on with a run ───────────────────────────────────────────────────────────────────────────
def test_what_is_left_of_a_run_is_its_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    header = write(path, close=False)
    left = part_of(path)
    whole = left.read_bytes()
    for content, rows in ((whole, 8), (whole[:-3], 7), (whole + b"\xff", 8), (whole[:10], 0), (b"", 0)):
        left.write_bytes(content)
        found = evidence_module.salvage(path, header)
        assert len(found) == rows
        assert all(result.resumed for result in found)


@pytest.mark.parametrize("key", ["backend", "claims", "target", "suite", "environment", "isolation", "waivers"])
def test_a_run_of_something_else_is_not_gone_on_with(tmp_path: Path, key: str) -> None:
    path = tmp_path / "results.jsonl"
    header = write(path, close=False)
    with pytest.raises(Refused, match=f"{key}.* was .* and is .*; begin a new run"):
        evidence_module.salvage(path, {**header, key: {"other": 1}})
    assert evidence_module.salvage(path, {**header, "started": "later"})


def test_a_run_that_ended_is_not_gone_on_with(command: Command) -> None:
    command.run("numpy")
    command.run("numpy", "--resume", command.out).expect(2, err="the run ended; there is nothing to resume")
    assert len(read(command.out / "results.jsonl").results) > 300


def test_rows_out_of_place_are_not_gone_on_with(command: Command) -> None:
    command.run("numpy")
    path = command.out / "results.jsonl"
    lines = lines_of(path)
    cut(path, [lines[0], lines[2], lines[1]])
    command.run("numpy", "--resume", command.out).expect(2, err="is not where the suite has it; begin a new run")


def cut(path: Path, lines: Iterable[bytes]) -> None:
    """Leave a results file as an interruption leaves it, with these lines."""
    path.unlink()
    part_of(path).write_bytes(b"".join(lines))


def rows_in(path: Path) -> list[bytes]:
    """The rows of a results file, whether resumed or not."""
    return [line.replace(b',"resumed":true}', b"}") for line in path.read_bytes().splitlines()[1:-1]]


@pytest.mark.parametrize("kept", [0, 1, 2, 77, 200, -1])
def test_a_run_gone_on_with_comes_to_the_same(command: Command, kept: int) -> None:
    whole = command.run(mini("Flushes"))
    path = command.out / "results.jsonl"
    rows, lines = rows_in(path), lines_of(path)
    cut(path, [*lines[:kept], lines[kept][: 30 if kept else 0]])
    assert command.run(mini("Flushes"), "--resume", command.out).last == whole.last
    assert rows_in(path) == rows


def test_an_adapter_is_pinned_with_all_that_it_imports_from_beside_it(tmp_path: Path) -> None:
    adapter, shared, deeper, other = (tmp_path / f"{name}.py" for name in ("adapter", "shared", "deeper", "other"))
    adapter.write_text("from .shared import array_of\nfrom . import deeper\n")
    shared.write_text("def later():\n    from . import (\n        adapter,\n        deeper,\n    )\n")
    deeper.write_text("import other\nfrom .other_that_is_not_there import nothing\n")
    other.write_text("")
    digests = [digest_of_adapter(f"{adapter}:It")]
    for path in (adapter, shared, deeper, other):
        path.write_text(f"{path.read_text()}# changed\n")
        digests.append(digest_of_adapter(f"{adapter}:It"))
    assert len(set(digests)) == 5, "each counts, also the one that is imported by its name alone"
    files = (adapter, deeper, other, shared)
    assert digests[4] == hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def test_an_adapter_in_one_file_is_pinned_by_the_digest_of_that_file(tmp_path: Path) -> None:
    path = tmp_path / "adapter.py"
    path.write_text("import numpy\n")
    assert digest_of_adapter(f"{path}:It") == hashlib.sha256(path.read_bytes()).hexdigest()
    assert digest_of_adapter(f"cmd:{path} --fast") == hashlib.sha256(path.read_bytes()).hexdigest()


def test_what_was_done_is_not_done_again(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    command.run("numpy")
    path = command.out / "results.jsonl"
    lines = lines_of(path)
    cut(path, lines[:101])
    seen: list[int] = []

    def counted(rows: list[Row], *more: Any) -> Any:
        seen.append(len(rows))
        return run_rows(rows, *more)

    monkeypatch.setattr("conformance.certify.certify.run_rows", counted)
    assert command.run("numpy", "--resume", command.out).code == 0
    assert seen == [len(lines) - 2 - 100]


SLOWED = """
import time
from conformance.adapters.numpy_reference import NumpyReference
class It(NumpyReference):
    def compile(self, graph):
        time.sleep(0.02)
        return super().compile(graph)
"""


def test_the_time_of_a_row_is_in_the_evidence(command: Command, tmp_path: Path) -> None:
    (tmp_path / "slowed.py").write_text(SLOWED, encoding="utf-8")
    command.run(f"{tmp_path / 'slowed.py'}:It")
    results = read(command.out / "results.jsonl").results
    assert all(result.milliseconds >= 20 for result in results if result.outcomes != IDLE)
    assert not any(result.milliseconds for result in results if result.outcomes == IDLE)


def test_a_time_of_an_unknown_row_is_refused(path: Path) -> None:
    lines = lines_of(path)
    lines[-1] = json.dumps(json.loads(lines[-1]) | {"milliseconds": {"no-row[StaticReshape-f32]": 3}}).encode() + b"\n"
    path.write_bytes(signed(lines))
    with pytest.raises(Refused, match=r"the footer has a time of no-row\[StaticReshape-f32\], which is no row of it"):
        read(path)


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL and fork")
def test_a_run_killed_at_any_moment_is_refused_and_can_be_finished(command: Command, tmp_path: Path) -> None:
    backend, whole = mini("Flushes"), tmp_path / "whole"
    assert command.run(backend, out=whole).code == 1
    rows = rows_in(whole / "results.jsonl")
    out, path, left = tmp_path / "killed", tmp_path / "killed" / "results.jsonl", set()
    for moment in random.Random(2021).sample(range(len(rows)), 20):
        resume = ("--resume", out) if part_of(path).exists() else ("--out", out)
        child = os.fork()
        if not child:  # a process that has read everything already, so that twenty of them take no time
            try:
                die_at(moment)
                words = ["--isolation", "none", "--hunt", "0", "--cases", str(command.cases), *map(str, resume)]
                cli.main(["run", backend, *words])
            finally:
                os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.WIFSIGNALED(status), "it was killed in the middle"
        assert not path.exists()
        with pytest.raises(Refused):
            read(part_of(path))
        left.add(part_of(path).stat().st_size)
        assert not (out / "report.html").exists()
    assert len(left) > 5, "they were killed at moments that differ"
    assert command.run(backend, "--resume", out).code == 1
    assert rows_in(path) == rows


def die_at(moment: int) -> None:
    """Has this process killed once so many rows of its run have been judged."""
    counted, plain = iter(range(moment)), waive.apply_waivers

    def waived(*given: Any) -> Result:
        if next(counted, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return plain(*given)

    waive.apply_waivers = waived  # type: ignore[assignment]


def test_a_killed_process_of_its_own_leaves_a_refused_file(tmp_path: Path) -> None:
    (tmp_path / "slowed.py").write_text(SLOWED, encoding="utf-8")
    words = [sys.executable, "-m", "conformance", "run", f"{tmp_path / 'slowed.py'}:It", "--isolation", "none"]
    words += ["--cases", str(small.cases(tmp_path)), "--out", str(tmp_path / "out")]
    child = subprocess.Popen(words, cwd=small.ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    path = tmp_path / "out" / "results.jsonl"
    wait(part_of(path).exists)
    child.kill()
    child.wait()
    assert not path.exists()
    with pytest.raises(Refused):
        read(part_of(path))


# ── parts ─────────────────────────────────────────────────────────────────────────────────────────
def part(command: Command, shard: str, backend: str = "numpy", *more: object) -> Path:
    folder = command.folder / f"part-{shard.replace('/', '-of-')}-{backend.rpartition(':')[2]}"
    said = command.run(backend, "--shard", shard, *more, out=folder)
    assert said.code in (1, 4)
    return folder


def merge(command: Command, *folders: Path) -> Any:
    return command("merge", *folders, "--cases", command.cases, "--out", command.folder / "merged")


@pytest.mark.parametrize("backend", ["numpy", "Flushes"])
def test_the_parts_of_a_run_make_the_whole(command: Command, backend: str) -> None:
    name = backend if backend == "numpy" else mini(backend)
    whole = command.run(name)
    parts = [part(command, f"{number}/3", name) for number in (1, 2, 3)]
    said = merge(command, parts[2], parts[0], parts[1])
    assert (said.code, said.last) == (whole.code, whole.last)
    assert rows_in(command.folder / "merged" / "results.jsonl") == rows_in(command.out / "results.jsonl")
    ran = [{r.row for r in read(p / "results.jsonl").results if "not run" not in r.verdicts.values()} for p in parts]
    assert sum(map(len, ran)) == len(set().union(*ran)) == len(rows_in(command.out / "results.jsonl"))


def test_a_shard_that_lacks_a_row_has_a_gap(command: Command) -> None:
    evidence, plan = evidence_of(part(command, "1/2")), small.plan_once(small.suite(None, command.cases))
    assert find_shard_gap(plan, evidence) is None
    ran = [number for number, result in enumerate(evidence.results) if "pass" in result.verdicts.values()]
    rows = {row.id: row for row in plan.rows}
    for number in (ran[0], ran[-1]):
        results = list(evidence.results)
        results[number] = result_without_call(rows[results[number].row], "not run")
        assert (
            find_shard_gap(plan, dataclasses.replace(evidence, results=tuple(results))) == "1 of its rows did not run"
        )


@pytest.fixture
def parts(command: Command) -> list[Path]:
    return [part(command, f"{number}/2") for number in (1, 2)]


def evidence_of(folder: Path) -> Evidence:
    return read(folder / "results.jsonl")


def test_a_gap_a_part_twice_another_count_and_a_whole_run_are_refused(command: Command, parts: list[Path]) -> None:
    for part_, other, number, missing in ((parts[0], parts[1], "1/2", "2/2"), (parts[1], parts[0], "2/2", "1/2")):
        merge(command, part_).expect(2, err=f"shard {missing} is missing; run it with --shard {missing}")
        merge(command, part_, other, part_).expect(2, err=[f"shard {number} is there 2 times", "overlap"])
    merge(command, parts[0], part(command, "2/3")).expect(2, err="is shard 2/3, not one of 2")
    command.run("numpy")
    for order in ((parts[0], command.out), (command.out, parts[0])):
        merge(command, *order).expect(2, err="is a whole run and no shard")


def test_parts_of_other_backends_and_targets_are_refused(command: Command, parts: list[Path]) -> None:
    for backend, more, words in (
        (mini("Bent"), (), "its backend.name is"),
        ("numpy", ("--type", "f32"), "its target is not that of"),
    ):
        merge(command, parts[0], part(command, "2/2", backend, *more)).expect(2, err=words)


@pytest.mark.parametrize("key", ["suite", "backend", "claims", "isolation", "waivers", "environment"])
def test_parts_whose_headers_differ_are_refused(command: Command, parts: list[Path], key: str) -> None:
    header = evidence_of(parts[1]).header
    waiver = {"number": 1, "place": "w:1", "reason": "x", "link": "x", "owner": "x", "expires": "2099-01-01"}
    other = {
        "suite": {**header["suite"], "version": "9"}, "backend": {**header["backend"], "version": "9"},
        "claims": {**header["claims"], "answers_special_zero": True}, "isolation": "worker", "waivers": [waiver],
        "environment": {**header["environment"], "python": "2"},
    }  # fmt: skip
    again(parts[1], {key: other[key]}, evidence_of(parts[1]).results)
    said = merge(command, *parts).expect(2)
    assert re.search(rf"its {key}[.\w]* is .*, that of {re.escape(str(parts[0]))}", said.err)


def test_parts_may_be_of_other_processors_and_all_of_them_are_named(command: Command, parts: list[Path]) -> None:
    first, second = evidence_of(parts[0]).header["environment"], {"processor": "another", "instructions": "sve"}
    again(parts[1], {"environment": {**first, **second}}, evidence_of(parts[1]).results)
    assert merge(command, *parts).code == 0
    whole = evidence_of(command.folder / "merged").header["environment"]
    assert whole == {**first, **{key: f"{first[key]}; {value}" for key, value in second.items()}}
    again(parts[1], {"environment": first}, evidence_of(parts[1]).results)
    assert merge(command, *parts).code == 0
    assert evidence_of(command.folder / "merged").header["environment"] == first


def test_parts_that_do_not_have_the_same_rows_are_refused(command: Command, parts: list[Path]) -> None:
    again(parts[1], {}, evidence_of(parts[1]).results[:-1])
    merge(command, *parts).expect(2, err="its rows are not those of")


def again(part: Path, header: dict[str, Any], results: Iterable[Result], **canaries: int) -> None:
    """A part written anew by somebody who gets the digests right."""
    evidence = evidence_of(part)
    writer = Writer(part / "results.jsonl", {**evidence.header, **header})
    for result in results:
        writer.row(result)
    writer.close(1.0, (), {**evidence.footer["canaries"], **canaries})


def test_parts_of_another_suite_are_refused(command: Command, parts: list[Path]) -> None:
    text = (command.cases / "few0.yaml").read_text(encoding="utf-8")
    (command.cases / "few0.yaml").write_text(text.replace("about: A few.", "about: A few more."), encoding="utf-8")
    merge(command, *parts).expect(2, err="is of a suite with digest")
    merge(command, parts[0], part(command, "2/2")).expect(2, err="its suite.digest is")


def test_rows_run_by_two_parts_overlap(command: Command, parts: list[Path]) -> None:
    first, second = (evidence_of(folder).results for folder in parts)
    again(parts[1], {}, [first[0], *second[1:]])
    merge(command, *parts).expect(2, err="was run by another shard too; the shards overlap")


def test_a_part_that_did_not_end_is_refused(command: Command, parts: list[Path]) -> None:
    path = parts[1] / "results.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    merge(command, *parts).expect(2, err="the line is cut off")


def test_a_whole_does_not_go_where_a_part_lies(command: Command, parts: list[Path]) -> None:
    command("merge", *parts, "--cases", command.cases, "--out", parts[0]).expect(2, err="holds one of the shards")


def test_a_planted_backend_that_escaped_from_a_part_escaped_from_the_whole(command: Command, parts: list[Path]) -> None:
    again(parts[1], {}, evidence_of(parts[1]).results, FlushesSubnormals=0)
    merge(command, *parts).expect(5)
