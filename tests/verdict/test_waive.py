"""Waivers: a known failure is shown and counted apart, and a waiver that is over or not needed ends the run with 6."""

from __future__ import annotations

import json
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from conformance.evidence.results import read
from conformance.load.cases import load_suite
from conformance.model import Identity, Malformed, Outcome
from conformance.plan.rows import plan_of
from conformance.report.verify import verify
from conformance.verdict.waive import load_all

from .. import miniatures
from ..builders import Command, mini

SOON = (date.today() + timedelta(days=200)).isoformat()
GIVEN = {"case": "patterns", "reason": "known", "link": "https://example.org/1", "owner": "me", "expires": SOON}
FLUSHES = mini("Flushes")


def waivers(folder: Path, *entries: dict[str, str | None]) -> Path:
    """A waiver file; None takes a key out."""
    lines = ["waivers:"]
    for entry in entries:
        given = {key: value for key, value in {**GIVEN, **entry}.items() if value is not None}
        first, *others = [f"{key}: {json.dumps(value)}" for key, value in given.items()]
        lines += [f"  - {first}", *(f"    {other}" for other in others)]
    path = folder / "waivers.yaml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_waived_failure_is_counted_apart_and_the_rest_conforms(command: Command, tmp_path: Path) -> None:
    assert command.run(FLUSHES).code == 1
    said = command.run(FLUSHES, "--waivers", waivers(tmp_path, {}), "--json").expect(0)
    assert said.data["verdicts"]["waived"] == 8
    assert said.data["verdicts"]["fail"] == 0
    why = "the whole target conforms, with 8 tests waived, as far as 20 cases of another suite go"
    assert said.data["why"] == why
    assert "with 1 waived" in said.data["sentences"][0]
    result = next(r for r in read(command.out / "results.jsonl").results if r.row == "patterns[StaticReshape-f32]")
    assert set(result.verdicts.values()) == {"waived"}
    assert result.diagnosis == "subnormals flushed", "what failed is still told"
    assert (result.outcome, result.waiver) == (Outcome("tensor", "f32", (8,)), 1), "and what came of it"


def test_only_failures_are_waived_and_not_what_a_row_shows_in_other_documents(command: Command, tmp_path: Path) -> None:
    row = "zero-beside-infer[StaticReshape-f32]"
    command.run(mini("Accepts"), "--waivers", waivers(tmp_path, {"case": "zero-beside-infer"}))
    result = next(r for r in read(command.out / "results.jsonl").results if r.row == row)
    assert result.verdicts == {"static-oneapi": "observed", "static-graph-v0.9": "waived", "static-spec-v0.9": "waived"}


def test_the_header_holds_the_waivers(command: Command, tmp_path: Path) -> None:
    path = waivers(tmp_path, {})
    command.run(FLUSHES, "--waivers", path)
    assert read(command.out / "results.jsonl").header["waivers"] == [{"number": 1, "place": f"{path}:2", **GIVEN}]


def test_a_waiver_for_a_row_takes_its_id_as_every_command_prints_it(command: Command, tmp_path: Path) -> None:
    assert command.run(FLUSHES).code == 1
    rows = [result.row for result in read(command.out / "results.jsonl").results if result.diagnosis]
    assert "patterns[StaticReshape-f32]" in rows
    path = waivers(tmp_path, *({"case": None, "row": row} for row in rows))
    assert command.run(FLUSHES, "--waivers", path).code == 0


WAIVED: tuple[dict[str, str | None], ...] = (
    {"case": "pat*"}, {"case": None, "rule": "same-content"}, {"case": None, "rule": "same-*"},
    {"case": None, "row": "patterns[[]*"}, {"case": "patterns", "rule": "same-content"}, {"backend": "flush*"},
    {"rule": "same-content", "case": "*"}, {"breaks": "same-content"}, {"case": None, "breaks": "same-*"},
    {"versions": ">=3.6,<3.7"}, {"versions": "==3.6.1"},
)  # fmt: skip
OF_OTHERS: tuple[dict[str, str | None], ...] = (
    {"case": "flattens"}, {"rule": "one-infer"}, {"case": "stays"}, {"case": None, "breaks": "one-infer"},
    {"breaks": "one-infer"},
)  # fmt: skip


@pytest.mark.parametrize(("entry", "code"), [*((entry, 0) for entry in WAIVED), *((entry, 1) for entry in OF_OTHERS)])
def test_a_waiver_is_for_what_its_patterns_say_and_waives_nothing_else(
    command: Command, tmp_path: Path, entry: dict[str, str | None], code: int
) -> None:
    assert command.run(FLUSHES, "--waivers", waivers(tmp_path, entry)).code == code


@pytest.mark.parametrize("entry", [{"backend": "onednn"}, {"versions": ">=3.7"}, {"versions": "==3.7"}])
def test_a_waiver_for_another_backend_or_version_is_as_if_it_were_not_there(
    command: Command, tmp_path: Path, entry: dict[str, str | None]
) -> None:
    path = waivers(tmp_path, entry)
    assert command.run(FLUSHES, "--waivers", path).code == 1
    assert read(command.out / "results.jsonl").header["waivers"] == []
    assert command.run("reference", "--waivers", path).code == 0, "nor is it stale"


def test_an_expired_waiver_waives_nothing_and_is_told_once_nothing_fails(command: Command, tmp_path: Path) -> None:
    path = waivers(tmp_path, {"expires": "2020-02-29"})
    red = command.run(FLUSHES, "--waivers", path).expect(1)
    assert f"note: {path}:2: the waiver of patterns expired on 2020-02-29; mend the backend or renew it" in red.out
    said = command.run("reference", "--waivers", path).expect(6)
    assert f"{path}:2: the waiver of patterns expired on 2020-02-29" in said.last


def test_a_part_of_the_target_tells_expired_waivers_and_cannot_tell_stale_ones(
    command: Command, tmp_path: Path
) -> None:
    path = waivers(tmp_path, {"expires": "2020-02-29"}, {"rule": "one-infer"})
    said = command.run("reference", "--waivers", path, "--operation", "StaticReshape")
    assert "expired on 2020-02-29" in said.out
    assert "stale" not in said.out
    assert said.code == 0


def test_what_is_waived_is_not_shown_as_failing(command: Command, tmp_path: Path) -> None:
    path = waivers(tmp_path, {})
    assert "\nfailures, all waived\n" in command.run(FLUSHES, "--waivers", path).out
    assert "\nfailures\n" in command.run(FLUSHES).out


def test_a_waiver_holds_on_its_last_day(command: Command, tmp_path: Path) -> None:
    today = read_started(command)[:10]
    assert command.run(FLUSHES, "--waivers", waivers(tmp_path, {"expires": today})).code == 0
    yesterday = (date.fromisoformat(today) - timedelta(days=1)).isoformat()
    assert command.run(FLUSHES, "--waivers", waivers(tmp_path, {"expires": yesterday})).code == 1
    assert f"expired on {yesterday}" in command.run("reference", "--waivers", tmp_path / "waivers.yaml").last


def test_a_waiver_ends_within_two_years(tmp_path: Path) -> None:
    today = datetime.now(timezone.utc).date()
    plan, all_cases = plan_of(load_suite()), {"case": "*-*"}
    load_all(waivers(tmp_path, {**all_cases, "expires": (today + timedelta(days=2 * 366)).isoformat()}), plan)
    with pytest.raises(Malformed, match="more than two years ahead"):
        load_all(waivers(tmp_path, {**all_cases, "expires": (today + timedelta(days=2 * 366 + 2)).isoformat()}), plan)


def read_started(command: Command) -> str:
    command.run("reference", "-k", "flattens")
    return str(read(command.out / "results.jsonl").header["started"])


@pytest.mark.parametrize("entry", [{}, {"case": None, "breaks": "one-infer"}, {"case": None, "rule": "one-infer"}])
def test_a_waiver_that_nothing_needs_is_stale(command: Command, tmp_path: Path, entry: dict[str, str | None]) -> None:
    path = waivers(tmp_path, entry)
    said = command.run("reference", "--waivers", path).expect(6)
    assert f"{path}:2: the waiver of" in said.last
    assert "is stale, nothing that it is for fails; delete it" in said.last


def test_one_of_two_waivers_may_be_stale(command: Command, tmp_path: Path) -> None:
    said = command.run(FLUSHES, "--waivers", waivers(tmp_path, {}, {"case": "stays"})).expect(6)
    assert "waivers.yaml:7: the waiver of stays is stale" in said.last


def test_a_part_of_a_run_tells_no_waiver_stale(command: Command, tmp_path: Path) -> None:
    for path in (waivers(tmp_path, {}), waivers(tmp_path, {"case": None, "rule": "same-content"})):
        assert command.run("reference", "--waivers", path, "-k", "flattens or eight").code == 4
        assert command.run("reference", "--waivers", path, "--shard", "1/2").code == 4
        for part in (("--type", "f16"), ("--operation", "Reshape-1"), ("--document", "static-oneapi")):
            assert command.run("reference", "--waivers", path, *part).code == 0


def test_a_waiver_for_what_was_not_run_is_not_stale(command: Command, tmp_path: Path) -> None:
    large = '  - {id: enormous, rule: same-volume, src: "T[2147483649]", shape: [-1], special_zero: false, '
    large += 'large: true, expect: "T[2147483649]"}\n'
    text = (command.cases / "few0.yaml").read_text(encoding="utf-8")
    (command.cases / "few0.yaml").write_text(text + large, encoding="utf-8")
    assert command.run("reference", "--waivers", waivers(tmp_path, {"case": "enormous"})).code == 0


def test_an_error_of_the_adapter_cannot_be_waived(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(miniatures.RaisesInRun, "what", "KeyError")
    said = command.run(mini("RaisesInRun"), "--waivers", waivers(tmp_path, {"case": "[a-z]*"}), "--json").expect(1)
    assert said.data["verdicts"]["waived"] == 0


def test_waiving_everything_shows_nothing(command: Command, tmp_path: Path) -> None:
    said = command.run(mini("Unable"), "--waivers", waivers(tmp_path, {"case": "[a-z]*"}), "--json").expect(4)
    assert not any("conforms to" in sentence for sentence in said.data["sentences"])


def test_a_rule_that_is_waived_whole_has_no_pass(command: Command, tmp_path: Path) -> None:
    said = command.run(mini("Accepts"), "--waivers", waivers(tmp_path, {"case": None, "row": "[a-z]*"}), "--json")
    assert said.code == 4
    assert "no pass for the rule" in said.data["why"]


MALFORMED: dict[str, tuple[dict[str, Any] | str, str]] = {
    "everything": ({"case": "*", "rule": "**"}, ":2: the waiver is for everything; name what fails"),
    "everything but nothing": ({"case": "?*"}, ":2: the waiver is for everything; name what fails"),
    "nearly for ever": ({"expires": "2999-01-01"}, ":6: expires '2999-01-01' is more than two years ahead"),
    "no reason": ({"reason": None}, ":2: missing key 'reason'"),
    "no link": ({"link": None}, ":2: missing key 'link'"),
    "no owner": ({"owner": None}, ":2: missing key 'owner'"),
    "no end": ({"expires": None}, ":2: missing key 'expires'"),
    "an empty reason": ({"reason": ""}, ":3: "),
    "a link to nowhere": ({"link": "ticket 7"}, ":4: "),
    "for nothing": ({"case": None}, ":2: the waiver names no case, rule, row or broken rule"),
    "an unknown key": ({"cases": "x"}, "unknown key 'cases'"),
    "no date": ({"expires": "next year"}, ":6: expires 'next year' is no date; write it as '2027-06-30'"),
    "no such day": ({"expires": "2027-02-30"}, "is no date"),
    "a date without dashes": ({"expires": "20270630"}, "is no date"),
    "no such case": ({"case": "paterns"}, ":2: unknown case 'paterns'; did you mean 'patterns'?"),
    "no such rule": ({"rule": "same-volumes"}, ":7: unknown rule 'same-volumes'; did you mean 'same-volume'?"),
    "no such broken rule": ({"breaks": "one-infers"}, ":7: unknown rule 'one-infers'; did you mean 'one-infer'?"),
    "no such row": ({"row": "patterns[Reshape"}, ":7: unknown row 'patterns[Reshape'"),
    "no range": ({"versions": "3.6 or so"}, ":7: versions '3.6 or so' is no range"),
    "an empty list": ("waivers: []\n", ":1: "),
    "nothing": ("", ":1: the file is empty"),
    "no YAML": ("waivers: [\n", ": not YAML"),
    "a key twice": ("waivers:\n  - {case: a, case: b}\n", ":2: "),
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_file_that_cannot_be_used_is_told_with_its_line(command: Command, tmp_path: Path, what: str) -> None:
    given, words = MALFORMED[what]
    if isinstance(given, str):
        path = tmp_path / "waivers.yaml"
        path.write_text(given, encoding="utf-8")
    else:
        path = waivers(tmp_path, given)
    said = command.run("reference", "--waivers", path).expect(2)
    assert f"{path}{words}" in said.err or (f"{path}:" in said.err and words in said.err)
    assert not (command.out / "results.jsonl").exists()


def test_all_mistakes_of_a_file_are_told_at_once(command: Command, tmp_path: Path) -> None:
    bad: dict[str, str | None] = {
        "case": "paterns",
        "rule": "one-infers",
        "expires": "soon",
        "versions": "new",
        "cases": "x",
    }
    said = command.run("reference", "--waivers", waivers(tmp_path, bad, {"reason": None}, {"case": None})).expect(2)
    for words in (
        "unknown key 'cases'", "unknown case 'paterns'", "unknown rule 'one-infers'", "expires 'soon'",
        "versions 'new'", "missing key 'reason'", "names no case",
    ):  # fmt: skip
        assert said.err.count(words) == 1, words


def test_a_waiver_of_a_broken_rule_covers_that_failure_in_every_case(command: Command, tmp_path: Path) -> None:
    text = (command.cases / "few0.yaml").read_text(encoding="utf-8")
    steps = '[{shape: [4], expect: "T[4]"}, {shape: [-2], expect: reject}]'
    later = f'  - {{id: later, rule: each-call-alone, src: "T[4]", special_zero: false, steps: {steps}}}\n'
    (command.cases / "few0.yaml").write_text(text + later, encoding="utf-8")
    backend, path = "broken:any-negative-infers", waivers(tmp_path, {"case": None, "rule": "lower-bound"})
    assert command.run(backend, "--waivers", path).code == 1
    said = command.run(backend, "--waivers", waivers(tmp_path, {"case": None, "breaks": "lower-bound"}), "--json")
    assert said.data["verdicts"]["fail"] == 0
    waived = {result.row for result in read(command.out / "results.jsonl").results if result.waiver}
    assert {"later[StaticReshape-f32]", "minus-two[StaticReshape-f32]"} <= waived
    assert not verify(command.out, plan_of(load_suite(None, command.cases))).mismatches


def test_a_name_that_is_almost_that_of_the_backend_is_noted(command: Command, tmp_path: Path) -> None:
    said = command.run(FLUSHES, "--waivers", waivers(tmp_path, {"backend": "flushs"}), "--json").expect(1)
    assert f"{tmp_path / 'waivers.yaml'}:2: the waiver is for the backend 'flushs', and this is 'flushes'" in "".join(
        said.data["notes"]
    )


def test_of_waived_and_failing_rows_the_failing_ones_alone_are_listed(command: Command, tmp_path: Path) -> None:
    path = waivers(tmp_path, {"case": None, "rule": "one-infer"})
    said = command.run(mini("Accepts"), "--waivers", path).expect(1)
    listed = said.out.partition("\nfailures\n")[2]
    assert "two-infers[" not in listed
    assert "minus-two[" in listed


def test_a_version_that_cannot_be_compared_is_told(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(miniatures.Flushes, "identity", Identity("flushes", "nightly build"))
    said = command.run(FLUSHES, "--waivers", waivers(tmp_path, {"versions": ">=1"})).expect(2)
    assert "the backend's version 'nightly build' cannot be compared; drop `versions`" in said.err


def test_a_range_of_versions_has_those_before_a_release_too(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(miniatures.Flushes, "identity", Identity("flushes", "3.7.0rc1"))
    assert command.run(FLUSHES, "--waivers", waivers(tmp_path, {"versions": ">=3.6"})).code == 0
