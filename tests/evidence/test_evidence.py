"""Results files prove nothing unless they are whole."""

import json
import os
import platform
import runpy
import sys
from collections.abc import Callable
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import Any

import pytest

from conformance.evidence import machine
from conformance.evidence.results import InvalidEvidence, read, refuse_incomplete
from conformance.evidence.writer import Writer
from conformance.load.cases import load_suite
from conformance.model import NOT_CALLED, DifferingElements, EarlierSuite, Outcome, Result, Verdict
from conformance.model.results import OUTCOME_FORM, RESULT_FORM
from conformance.system.json_forms import first_mismatch

from .. import builders
from ..builders import rewrite, sign_lines
from .readers import ROWS, Lines, lines_of, path, write

__all__ = ["path"]


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
    "no footer": (lambda lines, other: lines[:-1], "has no footer: the run did not end, after "),
    "a header alone": (lambda lines, other: lines[:1], "has no footer"),
    "no header": (lambda lines, other: lines[1:], ":1: is no header"),
    "a line cut off": (lambda lines, other: [*lines[:3], lines[3][:40]], ":4: the line is cut off"),
    "the footer cut off": (lambda lines, other: [*lines[:-1], lines[-1][:-1]], ":10: the line is cut off"),
    "a line cut off in the middle": (
        lambda lines, other: [*lines[:3], lines[3][:40] + b"\n", *lines[4:]],
        ":4: is no JSON",
    ),
    "a row twice": (
        lambda lines, other: [*lines[:3], lines[2], *lines[3:]],
        ":4: the row row-1[StaticReshape-f32] occurs twice",
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
    "the footer edited": (
        replace(b'"seconds":1.0', b'"seconds":0.5', 9),
        "the footer is not as it was written; the file was changed",
    ),
    "a planted count edited": (replace(b'"Planted":3', b'"Planted":4', 9), "the footer is not as it was written"),
    "the footer of another": (lambda lines, other: [*lines[:-1], other[-1]], "two files are mixed"),
    "no verdicts": (replace(b'"verdicts"', b'"verdict"', 3), ":4: the row lacks verdicts"),
    "an id that is a number": (replace(b'"row-2[StaticReshape-f32]"', b"2", 3), ":4: row in the row is 2"),
    "a verdict that is none": (replace(b'"pass"', b'"fine"', 3), ':4: verdicts.static-oneapi in the row is "fine"'),
    "a list for a row": (insert(b"[]\n", instead=True), ":4: is no record"),
    "bytes that are no text": (insert(b"\xff\xfe\n", instead=True), "is not UTF-8; the file is damaged"),
    "zeros at the end": (lambda lines, other: [*lines[:5], b"\0" * 512], ":6: the line is cut off"),
}  # fmt: skip


@pytest.mark.parametrize("what", SPOILT)
def test_a_damaged_file_is_refused_with_its_own_message(path: Path, tmp_path: Path, what: str) -> None:
    spoil, words = SPOILT[what]
    write(tmp_path / "other.jsonl", "other")
    path.write_bytes(b"".join(spoil(lines_of(path), lines_of(tmp_path / "other.jsonl"))))
    with pytest.raises(InvalidEvidence) as refused:
        read(path)
    assert words in str(refused.value)
    assert str(refused.value).startswith(str(path))


ASKED, CALLED = {"seed": 0, "rows": 20}, {"called": 30, "failed": 0}
SHARD = {"shard": "1/1", "started": "2026-11-01T00:00:00+00:00", "drawn": 1}
FORGED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    # name: (keys of the header, keys of the footer, words of the message)
    "rows drawn with another seed": ({"drawn": {**ASKED, "seed": 7}}, {}, "another seed than 0"),
    "rows drawn in another way": ({"drawn": {**ASKED, "quick": True}}, {}, 'unknown key "quick"'),
    "drawn rows that nobody asked for": ({}, {"drawn": CALLED}, "counts more drawn rows than the header asks for"),
    "more drawn rows than were asked for": ({"drawn": ASKED}, {"drawn": CALLED}, "counts more drawn rows than"),
    "more drawn rows than were asked for, with those left out": (
        {"drawn": ASKED}, {"drawn": {"called": 15, "failed": 0, "not_called": 6}}, "counts more drawn rows than",
    ),
    "resumed rows that are not there": ({}, {"resumed": 3}, "does not count the resumed rows"),
    "a drawn row that failed and is not there": (
        {"drawn": ASKED}, {"drawn": {"called": 0, "failed": 1, "not_called": 20}}, "does not count the drawn rows",
    ),
    "one shard of many": ({"shards": [{**SHARD, "shard": "1/900", "drawn": 0}]}, {}, "does not name all shards"),
    "drawn rows of no shard": ({"shards": [SHARD]}, {}, "does not name all shards"),
    "a time of no row": ({}, {"milliseconds": {"no-row": 3}}, "has a time of no-row, which is no row of it"),
    "planted failures below zero": ({}, {"planted": {"Planted": -3}}, "planted.Planted in the footer is -3"),
}  # fmt: skip
"""With another seed, for example, an audit would call other rows again, such as those that pass."""


@pytest.mark.parametrize(("step", "outcomes"), [(0, 1), (0, 2), (3, 2)])
def test_a_row_has_an_outcome_of_the_step_that_decides_it(path: Path, step: int, outcomes: int) -> None:
    """Evidence of another suite is not judged again, and is shown all the same."""
    rewrite(path, lambda records: records[1].update(step=step, outcomes=records[1]["outcomes"] * outcomes))
    with pytest.raises(InvalidEvidence, match="has no outcome of the step that decides it"):
        read(path)


@pytest.mark.parametrize("what", FORGED)
def test_a_signed_file_that_contradicts_itself_is_refused(path: Path, what: str) -> None:
    header, footer, words = FORGED[what]
    rewrite(path, lambda records: (records[0].update(header), records[-1].update(footer)))
    with pytest.raises(InvalidEvidence, match=words):
        read(path)


@pytest.mark.parametrize(
    ("record", "key"),
    [
        *(("header", key) for key in ("suite", "backend", "claims", "target", "environment", "started")),
        *(("footer", key) for key in ("rows", "verdicts", "digest", "header", "notes", "planted", "seconds")),
    ],
)
def test_a_header_or_footer_that_lacks_something_is_refused(path: Path, record: str, key: str) -> None:
    lines = lines_of(path)
    at = {"header": 0, "footer": -1}[record]
    content = json.loads(lines[at])
    for value, words in ((None, f"{key} in the {record} is null"), ("lacking", f"the {record} lacks {key}")):
        content[key] = value
        if value == "lacking":
            del content[key]
        lines[at] = json.dumps(content).encode() + b"\n"
        path.write_bytes(b"".join(lines))
        with pytest.raises(InvalidEvidence, match=f"{words}; the file is damaged"):
            read(path)


REST_OF_LINE = b'"verdicts":{"static-oneapi":"pass"},"outcomes":[{"kind":"rejected"}]}'
UNUSUAL_LINES = {
    "an id with an escape": b'{"record":"row","row":"a\\u0022,b",' + REST_OF_LINE,
    "an id that seems to end": b'{"record":"row","row":"a\\",\\"verdicts",' + REST_OF_LINE,
    "an id with other letters": '{"record":"row","row":"ä",'.encode() + REST_OF_LINE,
    "a second id": b'{"record":"row","row":"a",' + REST_OF_LINE[:-1] + b',"row":"b"}',
    "a second id in disguise": b'{"record":"row","row":"a",' + REST_OF_LINE[:-1] + b',"\\u0072ow":"b"}',
    "verdicts twice": b'{"record":"row","row":"a","verdicts":{},' + REST_OF_LINE,
    "keys in another order": REST_OF_LINE[:-1] + b',"row":"a","record":"row"}',
    "blanks": b' {"record": "row", "row": "a", ' + REST_OF_LINE + b" ",
}


@pytest.mark.parametrize("what", UNUSUAL_LINES)
def test_a_line_is_read_as_json_whatever_stands_in_it(path: Path, what: str) -> None:
    line = UNUSUAL_LINES[what] if UNUSUAL_LINES[what].lstrip().startswith(b"{") else b"{" + UNUSUAL_LINES[what]
    lines = lines_of(path)
    path.write_bytes(sign_lines([*lines[:3], line + b"\n", *lines[3:]]))
    results, records = read(path).results, [json.loads(line) for line in lines_of(path)[1:-1]]
    assert [(result.row, result.verdicts) for result in results] == [(r["row"], r["verdicts"]) for r in records]
    kinds = [[outcome["kind"] for outcome in record["outcomes"]] for record in records]
    assert [[outcome.kind for outcome in result.outcomes] for result in results] == kinds


SECOND_ID = REST_OF_LINE[:-1] + b',"row":"b"}'


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        *(((end,), ":4: is no JSON") for end in (b"}", b"}}", b'"verdicts":{}}, {"a":1}', b"\t", b"")),
        ((b" " + REST_OF_LINE + b" {}",), ":4: is no JSON"),
        ((SECOND_ID, SECOND_ID), ":5: the row b occurs twice"),
    ],
)
def test_lines_that_are_nearly_those_of_rows_are_refused(path: Path, ends: tuple[bytes, ...], words: str) -> None:
    lines = lines_of(path)
    more = [b'{"record":"row","row":"%d",%s\n' % each for each in enumerate(ends)]
    path.write_bytes(sign_lines([*lines[:3], *more, *lines[3:]]))
    with pytest.raises(InvalidEvidence, match=words):
        read(path)


def test_rows_that_were_not_called_are_written_as_any_others(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    header = write(tmp_path / "other.jsonl")
    writer = Writer(path, header)
    said: list[dict[str, Verdict]] = [{"d": "not run"}, {"d": "not claimed", "e": "not run"}]
    said.append(dict(reversed(said[1].items())))
    results = [
        Result(row, verdicts, NOT_CALLED, 0, *wrong)
        for row in ("a", 'a"\\\n', "ä", "a")
        for verdicts in said
        for wrong in ((), ("diagnosis", "detail"))
    ]
    for result in results:
        writer.row(result)
    with pytest.raises(InvalidEvidence, match="the row a occurs twice"):
        writer.close(0.0)
    rows = path.read_text(encoding="utf-8").splitlines()[1:-1]
    assert rows == [json.dumps(result.to_json(), separators=(",", ":")) for result in results]


def test_a_result_with_every_fact_is_read_as_it_was_written() -> None:
    answered = Outcome("tensor", "f32", (2,), side_effects=("src changed",), shares_src=True)
    rejected = Outcome("rejected", stage="run", message="no")
    result = Result(
        "row", {"d": "fail"}, (answered, rejected), 1, "wrong bits", "the first element", ("0" * 16, None), 3, True,
        "- id: x", "step", DifferingElements(1, (0,), ("00",)),
    )  # fmt: skip
    record = json.loads(json.dumps(result.to_json()))
    assert first_mismatch(record, RESULT_FORM) is None
    assert Result.from_json(record) == result
    assert record.keys() == {key.removesuffix("?") for key in RESULT_FORM}
    keys = {key for outcome in record["outcomes"] for key in outcome}
    assert keys == {key.removesuffix("?") for key in OUTCOME_FORM}


def test_a_file_that_is_not_there_is_no_unfinished_run(tmp_path: Path) -> None:
    with pytest.raises(InvalidEvidence, match="cannot be read: No such file"):
        read(tmp_path / "none")


def test_a_whole_file_is_read_and_pins_what_was_run_and_where(path: Path) -> None:
    evidence = read(path)
    assert [result.row for result in evidence.results] == ROWS
    assert evidence.footer["verdicts"]["pass"] == 8
    header = evidence.header
    documents = {document.id: document.sha256 for document in builders.spec().documents.values()}
    assert header["suite"].keys() == {"version", "digest", "documents"}
    assert header["suite"]["documents"] == documents
    assert header["backend"].keys() == {"name", "version", "adapter", "detail", "digest"}
    assert header["environment"]["python"] == platform.python_version()
    assert header["environment"]["variables"] == machine.environment()["variables"], "those of this process"
    assert header["environment"].keys() == {
        "python", "implementation", "numpy", "ml_dtypes", "system", "machine", "byteorder",
        "processor", "instructions", "variables",
    }  # fmt: skip


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64") or sys.platform != "linux", reason="Linux tells")
def test_the_header_names_the_processor(path: Path) -> None:
    environment = read(path).header["environment"]
    assert environment["processor"] != "unknown"
    assert {"sse4_2", "asimd"} & set(environment["instructions"].split())
    assert "sse2" not in environment["instructions"].split(), "every processor has it"


def test_variables_of_libraries_are_named_and_no_path(monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"ONEDNN_MAX_CPU_ISA": "AVX2", "PYTENSOR_FLAGS": "compiledir=/home/me/c,mode=JAX", "HOME_OF_ONEDNN_": "/x"}
    monkeypatch.setattr(os, "environ", given)
    begun = runpy.run_path(machine.__file__)  # as in a process that has just begun
    monkeypatch.setattr(os, "environ", {"OMP_NUM_THREADS": "set by a library"})
    assert begun["environment"]()["variables"] == "ONEDNN_MAX_CPU_ISA=AVX2 PYTENSOR_FLAGS=compiledir=c,mode=JAX"


def test_another_suite_and_other_rows_are_refused(path: Path) -> None:
    evidence = read(path)
    own = replace_fields(load_suite(), digest=evidence.header["suite"]["digest"])
    later = replace_fields(own, digest="0" * 64)
    refuse_incomplete(evidence, ROWS, own, path)
    alike = replace_fields(later, earlier={own.digest: EarlierSuite()})
    refuse_incomplete(evidence, ROWS, alike, path)
    waived = replace_fields(evidence, header={**evidence.header, "waivers": [{"rule": "same-volume"}]})
    assert waived.can_be_judged_by(own)
    assert not waived.can_be_judged_by(alike), "what a waiver covers can depend on a reading"
    for rows, suite, words in (
        (ROWS, later, "is of a suite with digest"),
        ([*ROWS, "new"], own, "lacks 1 row of the suite, first new"),
        (ROWS[1:], own, "has rows that the suite does not, such as row-0"),
    ):
        with pytest.raises(InvalidEvidence, match=words):
            refuse_incomplete(evidence, rows, suite, path)
