"""Parts of a run make a whole."""

import dataclasses
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from conformance.evidence.results import DrawnCounts, Evidence, read
from conformance.evidence.writer import Writer
from conformance.model import Result
from conformance.run.row import make_result_without_call
from conformance.runner.shards import merge_shards
from conformance.verdict.drawn_rows import draw_called_rows

from ..builders import Command, mini, rewrite, spoil
from ..evidence.readers import merge, path, rows_in, run_once

__all__ = ["path"]


def part(command: Command, shard: str, backend: str = "reference", *more: object) -> Path:
    folder = command.folder / f"part-{shard.replace('/', '-of-')}-{backend.rpartition(':')[2]}"
    assert command.run(backend, "--shard", shard, *more, out=folder).code in (1, 4)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["reference", "Flushes"])
def test_the_parts_of_a_run_make_the_whole(command: Command, backend: str) -> None:
    name = backend if backend == "reference" else mini(backend)
    whole = command.run(name)
    parts = [part(command, f"{number}/3", name) for number in (1, 2, 3)]
    said = merge(command, parts[2], parts[0], parts[1])
    assert (said.code, said.last) == (whole.code, whole.last)
    assert rows_in(command.folder / "merged" / "results.jsonl") == rows_in(command.out / "results.jsonl")
    ran = [{r.row for r in read(p / "results.jsonl").results if "not run" not in r.verdicts.values()} for p in parts]
    assert sum(map(len, ran)) == len(set().union(*ran)) == len(rows_in(command.out / "results.jsonl"))


@pytest.mark.slow
def test_shards_share_the_drawn_rows(command: Command) -> None:
    backend, drawn = mini("Flushes"), ("--drawn-rows", "60")
    command.run(backend, *drawn)
    parts = [part(command, f"{number}/3", backend, *drawn) for number in (1, 2, 3)]
    merge(command, *parts)
    whole, merged = evidence_of(command.out), evidence_of(command.folder / "merged")
    assert merged.footer["drawn"] == whole.footer["drawn"]
    assert sum(evidence_of(each).drawn.called for each in parts) == whole.drawn.called > 20
    assert {result.row for result in whole.results} <= {result.row for result in merged.results}
    assert command("verify", command.folder / "merged", "--suite", command.folder).code == 0


@pytest.mark.slow
def test_a_shard_that_ended_early_called_its_first_drawn_rows(command: Command) -> None:
    parts = [evidence_of(part(command, f"{number}/2", "reference", "--drawn-rows", "60")) for number in (1, 2)]
    called = [list(draw_called_rows(command.plan, each)) for each in parts]
    footer = {**parts[1].footer, "drawn": {"called": 3, "failed": 0, "waived": 1}, "notes": ["it ended early"]}
    ended = dataclasses.replace(parts[1], header={**parts[1].header, "tester": "Mine Ltd"}, footer=footer)
    merged = merge_shards([Path("one"), Path("two")], [parts[0], ended])
    assert merged.drawn == DrawnCounts(len(called[0]) + 3, 0, 0, 1)
    assert merged.notes == (*parts[0].footer["notes"], "it ended early")
    assert merged.header["tester"] == "Mine Ltd"
    whole = Evidence(merged.header, tuple(merged.results), {"drawn": merged.drawn.to_json()}, "")
    assert {*draw_called_rows(command.plan, whole)} == {*called[0], *called[1][:3]}


@pytest.fixture
def parts(command: Command) -> list[Path]:
    """The two halves of a run, made once in a process."""
    folders = {f"{number}/2": command.folder / f"part-{number}-of-2-reference" for number in (1, 2)}
    return [run_once(command, "reference", "--shard", half, out=out).parent for half, out in folders.items()]


def evidence_of(folder: Path) -> Evidence:
    return read(folder / "results.jsonl")


@pytest.mark.slow
def test_parts_that_do_not_make_one_run_are_refused(command: Command, parts: list[Path]) -> None:
    for part_, other, number, missing in ((parts[0], parts[1], "1/2", "2/2"), (parts[1], parts[0], "2/2", "1/2")):
        merge(command, part_).expect(2, err=f"shard {missing} is missing; run it with --shard {missing}")
        merge(command, part_, other, part_).expect(2, err=[f"shard {number} is there 2 times", "overlap"])
    for other, words in (
        (part(command, "2/3"), "is shard 2/3, not one of 2"),
        (part(command, "2/2", mini("Bent")), "its backend.name is"),
        (part(command, "2/2", "reference", "--type", "f32"), "its target is not that of"),
    ):
        merge(command, parts[0], other).expect(2, err=words)
    command.run("reference")
    for order in ((parts[0], command.out), (command.out, parts[0])):
        merge(command, *order).expect(2, err="is a whole run and no shard")


@pytest.mark.slow
@pytest.mark.parametrize(
    "key", ["suite", "backend", "claims", "isolation", "limits", "waivers", "nonce", "drawn", "environment"]
)
def test_parts_whose_headers_differ_are_refused(command: Command, parts: list[Path], key: str) -> None:
    header = evidence_of(parts[1]).header
    waiver = {"number": 1, "place": "w:1", "reason": "x", "link": "x", "owner": "x", "expires": "2099-01-01"}
    other = {
        "suite": {**header["suite"], "version": "9"}, "backend": {**header["backend"], "version": "9"},
        "claims": {**header["claims"], "answers_special_zero": True}, "isolation": "worker",
        "limits": {"timeout": 99.0}, "waivers": [waiver], "nonce": "a" * 64, "drawn": {"seed": 0, "rows": 9},
        "environment": {**header["environment"], "python": "2"},
    }  # fmt: skip
    write_again(parts[1], {key: other[key]}, evidence_of(parts[1]).results)
    said = merge(command, *parts).expect(2)
    assert re.search(rf"its {key}[.\w]* is .*, that of {re.escape(str(parts[0]))}", said.err)


def test_all_processors_of_the_parts_are_named(command: Command, parts: list[Path]) -> None:
    first, second = evidence_of(parts[0]).header["environment"], {"processor": "another", "instructions": "sve"}
    write_again(parts[1], {"environment": {**first, **second}}, evidence_of(parts[1]).results)
    assert merge(command, *parts).code == 0
    whole = evidence_of(command.folder / "merged").header["environment"]
    assert whole == {**first, **{key: f"{first[key]}; {value}" for key, value in second.items()}}
    write_again(parts[1], {"environment": first}, evidence_of(parts[1]).results)
    assert merge(command, *parts).code == 0
    assert evidence_of(command.folder / "merged").header["environment"] == first


def test_a_whole_began_with_its_first_part(command: Command, parts: list[Path]) -> None:
    """Otherwise the order of the folders decides whether a waiver had expired, and `verify` may refuse the whole."""
    began = "2026-01-02T03:04:05+00:00"
    write_again(parts[0], {"started": began}, evidence_of(parts[0]).results)
    for order in (parts, parts[::-1]):
        merge(command, *order).expect(0)
        assert evidence_of(command.folder / "merged").header["started"] == began


def test_parts_with_lost_or_common_rows_or_no_end_are_refused(command: Command, parts: list[Path]) -> None:
    first, second = (evidence_of(folder).results for folder in parts)
    write_again(parts[1], {}, [first[0], *second[1:]])
    merge(command, *parts).expect(2, err="was run by another shard too; the shards overlap")
    write_again(parts[1], {}, second[:-1])
    merge(command, *parts).expect(2, err="its rows are not those of")
    path = parts[1] / "results.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    merge(command, *parts).expect(2, err="the line is cut off")


def test_the_whole_says_that_a_part_lacks_a_row(command: Command, parts: list[Path]) -> None:
    rows, results = {row.id: row for row in command.plan.rows}, evidence_of(parts[1]).results
    lost = next(number for number, result in enumerate(results) if "pass" in result.verdicts.values())
    write_again(
        parts[1],
        {},
        [*results[:lost], make_result_without_call(rows[results[lost].row], "not run"), *results[lost + 1 :]],
    )
    merge(command, *parts).expect(4, out="3 not run")


def write_again(part: Path, header: dict[str, Any], results: Iterable[Result], **planted: int) -> None:
    """Write a part again as somebody does who gets the digests right."""
    evidence = evidence_of(part)
    writer = Writer(part / "results.jsonl", {**evidence.header, **header})
    for result in results:
        writer.row(result)
    writer.close(1.0, (), {**evidence.footer["planted"], **planted})


def test_parts_of_another_suite_are_refused(command: Command, parts: list[Path]) -> None:
    spoil(command.cases / "few0.yaml", "about: A few.", "about: A few more.")
    merge(command, *parts).expect(2, err="is of a suite with digest")
    merge(command, parts[0], part(command, "2/2")).expect(2, err="its suite.digest is")


def test_a_whole_does_not_go_where_a_part_lies(command: Command, parts: list[Path]) -> None:
    command("report", *parts, "--suite", command.folder, "--out", parts[0]).expect(2, err="holds one of the shards")


def test_a_planted_backend_that_escaped_a_part_escaped_the_whole(command: Command, parts: list[Path]) -> None:
    write_again(parts[1], {}, evidence_of(parts[1]).results, FlushesSubnormals=0)
    merge(command, *parts).expect(5)
    rewrite(parts[1] / "results.jsonl", lambda records: records[-1]["planted"].pop("FlushesSubnormals"))
    merge(command, *parts).expect(5)
