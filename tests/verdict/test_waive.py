"""Waivers: a known failure is shown and counted apart, and a waiver that is over or not needed ends the run with 6."""

import json
import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any

import pytest

from conformance import report
from conformance.evidence.results import read
from conformance.load.cases import load_suite
from conformance.model import Identity, Malformed, Outcome
from conformance.plan.rows import plan_of
from conformance.report.judged_run import conclude_run
from conformance.report.verify import verify_report
from conformance.verdict.drawn_rows import draw_called_rows
from conformance.verdict.waive import load_all

from .. import miniatures
from ..builders import CASES, Command, bundled_plan, cut_results, mini, write_cases
from ..evidence.readers import lines_of

IN_200_DAYS = (date.today() + timedelta(days=200)).isoformat()
GIVEN = {"case": "patterns", "reason": "known", "link": "https://example.org/1", "owner": "me", "expires": IN_200_DAYS}
FLUSHES = mini("Flushes")


def waivers(folder: Path, *entries: Mapping[str, Any], name: str = "waivers.yaml") -> Path:
    """A waiver file; None takes a key out."""
    lines = ["waivers:"]
    for entry in entries:
        given = {key: value for key, value in {**GIVEN, **entry}.items() if value is not None}
        first, *others = [f"{key}: {json.dumps(value)}" for key, value in given.items()]
        lines += [f"  - {first}", *(f"    {other}" for other in others)]
    path = folder / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_a_waived_failure_is_counted_apart(command: Command, tmp_path: Path) -> None:
    path = waivers(tmp_path, {})
    said = command.run(FLUSHES, "--waivers", path, "--json").expect(0)
    assert (said.data["verdicts"]["waived"], said.data["verdicts"]["fail"]) == (8, 0)
    why = "the whole target conforms, with 8 tests waived, without drawn rows, as far as 20 cases of another suite go"
    assert said.data["why"] == why
    assert "with 1 waived" in said.data["sentences"][0]
    evidence = read(command.out / "results.jsonl")
    assert evidence.header["waivers"] == [{"number": 1, "place": f"{path}:2", **GIVEN}]
    result = next(r for r in evidence.results if r.row == "patterns[StaticReshape-f32]")
    assert set(result.verdicts.values()) == {"waived"}
    assert result.diagnosis == "subnormals flushed", "what failed is still told"
    assert (result.outcome, result.waiver) == (Outcome("tensor", "f32", (8,)), 1), "and what came of it"


@pytest.mark.slow
def test_a_waiver_covers_the_drawn_rows_that_it_names(command: Command, tmp_path: Path) -> None:
    many = ("--drawn-rows", "300", "--waivers")
    said = command.run(FLUSHES, *many, waivers(tmp_path, {"case": None, "breaks": "same-content"})).expect(0)
    assert "with some drawn rows" not in said.text
    drawn = read(command.out / "results.jsonl").drawn
    assert (drawn.failed, drawn.waived > 1) == (0, True)
    assert f"300 drawn rows, {drawn.waived} waived, none failed" in said.text
    assert command("verify", command.out, "--suite", command.folder).code == 0
    assert command.run(FLUSHES, *many, waivers(tmp_path, {})).expect(1), "a drawn row is of no case that a waiver names"


def test_a_waiver_that_drawn_rows_may_need_is_not_stale(command: Command, tmp_path: Path) -> None:
    broken = {"case": None, "breaks": "each-call-alone"}
    few = ("--drawn-rows", "20", "--waivers")
    command.run("reference", *few, waivers(tmp_path, broken)).expect(0, out="without some drawn rows")
    said = command.run("reference", *few, waivers(tmp_path, {**broken, "case": "patterns"}))
    said.expect(6, out="the waiver of patterns is stale")


@pytest.mark.slow
def test_a_waiver_that_forbids_calls_forbids_drawn_rows(command: Command, tmp_path: Path) -> None:
    path = waivers(tmp_path, {"case": None, "rule": "nodes-compose", "run": False})
    command.run(FLUSHES, "--drawn-rows", "300", "--waivers", path)
    evidence = read(command.out / "results.jsonl")
    assert evidence.drawn.waived == 300 - evidence.drawn.called > 10
    called = draw_called_rows(command.plan, evidence)
    assert {row.case.rule == "nodes-compose" for row in called.values()} == {False}


def test_a_waiver_can_forbid_calls(command: Command, tmp_path: Path) -> None:
    stale = waivers(tmp_path, {"case": "flattens"}, name="more.yaml")
    path = waivers(tmp_path, {"run": False})
    said = command.run(FLUSHES, "--waivers", stale, "--waivers", path, "--json").expect(6)
    assert said.data["verdicts"]["waived"] == 8
    assert said.data["failures"] == []  # nobody knows whether these rows fail
    assert f"{stale}:2: the waiver of flattens is stale" in said.data["why"]
    result = next(r for r in read(command.out / "results.jsonl").results if r.waiver == 2)
    assert (result.outcome.kind, result.detail) == ("none", f"{path}:2: `run: false`")
    assert not verify_report(command.out, plan_of(load_suite(command.folder))).mismatches
    assert command.run(FLUSHES, "--waivers", waivers(tmp_path, {"run": False, "expires": "2020-01-01"})).code == 1
    path = waivers(tmp_path, {"case": "eight", "run": False})  # which has rows of the types that are not claimed
    assert "not claimed, crash" not in command.run(mini("LeavesOutHalf"), "--waivers", path).expect(0).text


def test_no_report_calls_a_waived_test_right(command: Command, tmp_path: Path) -> None:
    command.run(FLUSHES, "--waivers", waivers(tmp_path, {}))
    evidence, plan = read(command.out / "results.jsonl"), command.plan
    page = report.render_reports(conclude_run(plan, evidence))["report.html"]
    right, tests = re.findall(r"<strong>([\d,]+) of ([\d,]+) tests of the claimed scope pass or are observed:", page)[0]
    assert int(tests.replace(",", "")) - int(right.replace(",", "")) == 8


def test_only_failures_are_waived(command: Command, tmp_path: Path) -> None:
    row = "zero-beside-infer[StaticReshape-f32]"
    command.run(mini("Accepts"), "--waivers", waivers(tmp_path, {"case": "zero-beside-infer"}))
    result = next(r for r in read(command.out / "results.jsonl").results if r.row == row)
    assert result.verdicts == {"static-oneapi": "observed", "static-graph-v0.9": "waived", "static-spec-v0.9": "waived"}


def test_a_waiver_for_a_row_takes_its_printed_id(command: Command, tmp_path: Path) -> None:
    command.run(FLUSHES).expect(1, out="\nfailures\n")
    rows = [result.row for result in read(command.out / "results.jsonl").results if result.diagnosis]
    assert "patterns[StaticReshape-f32]" in rows
    path = waivers(tmp_path, *({"case": None, "row": row} for row in rows))
    command.run(FLUSHES, "--waivers", path).expect(0, out="\nfailures, all waived\n")


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


@pytest.mark.slow
@pytest.mark.parametrize(("entry", "code"), [*((entry, 0) for entry in WAIVED), *((entry, 1) for entry in OF_OTHERS)])
def test_a_waiver_is_for_what_its_patterns_say(
    command: Command, tmp_path: Path, entry: dict[str, str | None], code: int
) -> None:
    assert command.run(FLUSHES, "--waivers", waivers(tmp_path, entry)).code == code


@pytest.mark.parametrize("entry", [{"backend": "onednn"}, {"versions": ">=3.7"}, {"versions": "==3.7"}])
def test_a_waiver_for_another_backend_or_version(
    command: Command, tmp_path: Path, entry: dict[str, str | None]
) -> None:
    """It is as if it were not there."""
    path = waivers(tmp_path, entry)
    assert command.run(FLUSHES, "--waivers", path).code == 1
    assert read(command.out / "results.jsonl").header["waivers"] == []
    assert command.run("reference", "--waivers", path).code == 0, "nor is it stale"


EXPIRED = "{path}:2: the waiver of patterns expired on 2020-02-29"
STALE = ("{path}:2: the waiver of", "is stale, nothing that it is for fails; delete it")
TOLD: dict[str, tuple[str, list[dict[str, str | None]], int, tuple[str, ...]]] = {
    "expired, and it fails": (
        FLUSHES, [{"expires": "2020-02-29"}], 1, (f"note: {EXPIRED}; mend the backend or renew it",)
    ),
    "expired, and nothing fails": ("reference", [{"expires": "2020-02-29"}], 6, (EXPIRED,)),
    "a stale case": ("reference", [{}], 6, STALE),
    "a stale broken rule": ("reference", [{"case": None, "breaks": "one-infer"}], 6, STALE),
    "a stale rule": ("reference", [{"case": None, "rule": "one-infer"}], 6, STALE),
    "one of two is stale": (FLUSHES, [{}, {"case": "stays"}], 6, ("waivers.yaml:7: the waiver of stays is stale",)),
}  # fmt: skip


@pytest.mark.parametrize("what", TOLD)
def test_a_waiver_that_is_over_or_not_needed_is_told(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Rules may break in drawn rows too, so that those are called; they are ten here."""
    monkeypatch.setattr("conformance.draw.rows.count_drawn_rows", lambda *_: 10)
    backend, entries, code, words = TOLD[what]
    path = waivers(tmp_path, *entries)
    drawn = 10 if backend == "reference" else 0
    said = command.run(backend, "--waivers", path, "--drawn-rows", drawn).expect(code)
    for part in words:
        assert part.format(path=path) in (said.last if code == 6 else " ".join(said.out.split()))


def test_a_part_of_the_target_tells_expired_waivers_only(command: Command, tmp_path: Path) -> None:
    path = waivers(tmp_path, {"expires": "2020-02-29"}, {"rule": "one-infer"})
    said = command.run("reference", "--waivers", path, "--operation", "StaticReshape").expect(0)
    assert "expired on 2020-02-29" in said.out
    assert "stale" not in said.out


def test_a_waiver_holds_on_its_last_day(command: Command, tmp_path: Path) -> None:
    command.run("reference", "-k", "flattens")
    today = str(read(command.out / "results.jsonl").header["started"])[:10]
    assert command.run(FLUSHES, "--waivers", waivers(tmp_path, {"expires": today})).code == 0
    yesterday = (date.fromisoformat(today) - timedelta(days=1)).isoformat()
    assert command.run(FLUSHES, "--waivers", waivers(tmp_path, {"expires": yesterday})).code == 1
    assert f"expired on {yesterday}" in command.run("reference", "--waivers", tmp_path / "waivers.yaml").last


def test_a_waiver_may_expire_before_a_run_goes_on(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Yesterday:
        @staticmethod
        def now(zone: tzinfo) -> datetime:
            return datetime.now(zone) - timedelta(days=1)

    yesterday = (datetime.now(timezone.utc) - timedelta(days=1)).date().isoformat()
    named = ("--waivers", waivers(tmp_path, {"expires": yesterday}))
    with monkeypatch.context() as patch:
        patch.setattr("conformance.evidence.journal.datetime", Yesterday)
        command.run(FLUSHES, *named).expect(0)
    path = command.out / "results.jsonl"
    cut_results(path, lines_of(path)[:-1])
    said = command.run(FLUSHES, *named, "--resume", command.out).expect(1)
    assert f"expired on {yesterday}" in said.out


def test_a_waiver_ends_within_two_years(tmp_path: Path) -> None:
    today = datetime.now(timezone.utc).date()
    plan, all_cases = bundled_plan(), {"case": "*-of-*"}
    load_all([waivers(tmp_path, {**all_cases, "expires": (today + timedelta(days=2 * 366)).isoformat()})], plan)
    with pytest.raises(Malformed, match="more than two years ahead"):
        load_all([waivers(tmp_path, {**all_cases, "expires": (today + timedelta(days=2 * 366 + 2)).isoformat()})], plan)


@pytest.mark.slow
def test_a_part_of_a_run_tells_no_waiver_stale(command: Command, tmp_path: Path) -> None:
    for path in (waivers(tmp_path, {}), waivers(tmp_path, {"case": None, "rule": "same-content"})):
        assert command.run("reference", "--waivers", path, "-k", "flattens or eight").code == 4
        assert command.run("reference", "--waivers", path, "--shard", "1/2").code == 4
        for part in (("--type", "f16"), ("--operation", "Reshape-1"), ("--document", "static-oneapi")):
            assert command.run("reference", "--waivers", path, *part).code == 0


def test_a_waiver_for_what_was_not_run_is_not_stale(command: Command, tmp_path: Path) -> None:
    large = '  - {id: enormous, rule: same-volume, src: "T[2147483649]", shape: [-1], special_zero: false, '
    large += 'large: true, expect: "T[2147483649]"}\n'
    write_cases(command.folder, CASES + large)
    for case, code in (("enormous", 0), ("e*", 6)):  # the second is for `eight` too
        command.run("reference", "--waivers", waivers(tmp_path, {"case": case})).expect(code)


def test_waiving_everything_shows_nothing(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of the adapter cannot be waived at all, and a rule that is waived whole has no pass."""
    path = waivers(tmp_path, {"case": "[a-z]*"})
    monkeypatch.setattr(miniatures.RaisesInRun, "what", "KeyError")
    said = command.run(mini("RaisesInRun"), "--waivers", path, "--json").expect(1)
    assert said.data["verdicts"]["waived"] == 0
    said = command.run(mini("Unable"), "--waivers", path, "--json").expect(4)
    assert not any("conforms to" in sentence for sentence in said.data["sentences"])
    path = waivers(tmp_path, {"case": None, "row": "[a-z]*"})
    said = command.run(mini("Accepts"), "--waivers", path, "--json").expect(4)
    assert "no pass for the rule" in said.data["why"]


MALFORMED: dict[str, tuple[dict[str, Any] | str, str]] = {
    "everything": ({"case": "*", "rule": "**"}, ":2: the waiver is for everything; name what fails"),
    "all that ends with a bracket": ({"case": None, "row": "*]"}, ":2: the waiver is for everything; name what fails"),
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
    "a date without dashes": ({"expires": "20270630"}, "is no date"),
    "no such case": ({"case": "paterns"}, ":2: unknown case 'paterns'; did you mean 'patterns'?"),
    "no such rule": ({"rule": "same-volumes"}, ":7: unknown rule 'same-volumes'; did you mean 'same-volume'?"),
    "no such broken rule": ({"breaks": "one-infers"}, ":7: unknown rule 'one-infers'; did you mean 'one-infer'?"),
    "no such row": ({"row": "patterns[Reshape"}, ":7: unknown row 'patterns[Reshape'"),
    "a drawn row": ({"row": "drawn-0-*"}, ":7: 'drawn-0-*': only `breaks` waives drawn rows; name the rule"),
    "no such backend": ({"backend": "onedn"}, ":7: unknown backend 'onedn'; did you mean 'onednn'?"),
    "a list of broken rules": ({"breaks": ["one-infer"]}, "is no string; write one text, and put a number"),
    "a broken rule of no call": (
        {"case": None, "breaks": "one-infer", "run": False},
        ":6: only a call shows what it breaks",
    ),
    "a call that is due": ({"run": True}, ":7: waivers.0.run: true is not false"),
    "no range": ({"versions": "3.6 or so"}, ":7: versions '3.6 or so' is no range"),
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


def test_a_file_from_which_the_last_waiver_was_deleted(command: Command, tmp_path: Path) -> None:
    path = tmp_path / "waivers.yaml"
    path.write_text("waivers: []\n", encoding="utf-8")
    command.run("reference", "--waivers", path).expect(0)


def test_all_mistakes_of_a_file_are_told_at_once(command: Command, tmp_path: Path) -> None:
    bad = {"case": "paterns", "rule": "one-infers", "expires": "soon", "versions": "new", "cases": "x"}
    said = command.run("reference", "--waivers", waivers(tmp_path, bad, {"reason": None}, {"case": None})).expect(2)
    for words in (
        "unknown key 'cases'", "unknown case 'paterns'", "unknown rule 'one-infers'", "expires 'soon'",
        "versions 'new'", "missing key 'reason'", "names no case",
    ):  # fmt: skip
        assert said.err.count(words) == 1, words


def test_a_waiver_of_a_broken_rule_covers_every_case(command: Command, tmp_path: Path) -> None:
    steps = '[{shape: [4], expect: "T[4]"}, {shape: [-2], expect: reject}]'
    later = f'  - {{id: later, rule: each-call-alone, src: "T[4]", special_zero: false, steps: {steps}}}\n'
    write_cases(command.folder, CASES + later)
    backend, path = "planted:any-negative-infers", waivers(tmp_path, {"case": None, "rule": "lower-bound"})
    assert command.run(backend, "--waivers", path).code == 1
    said = command.run(backend, "--waivers", waivers(tmp_path, {"case": None, "breaks": "lower-bound"}), "--json")
    assert said.data["verdicts"]["fail"] == 0
    waived = {result.row for result in read(command.out / "results.jsonl").results if result.waiver}
    assert {"later[StaticReshape-f32]", "minus-two[StaticReshape-f32]"} <= waived
    assert not verify_report(command.out, plan_of(load_suite(command.folder))).mismatches


FLIPS = """from conformance.adapter import FunctionAdapter
class Flips(FunctionAdapter):
    name, version = 'flips', '1'
    def reshape(self, src, shape, special_zero):
        return (src[::-1] if min(src.strides) < 0 else src).reshape(shape).copy()
"""


@pytest.mark.parametrize(("rule", "code"), [("layout-is-no-content", 1), ("row-major-order", 4)])
def test_a_rule_that_a_failure_only_needs_waives_nothing(
    command: Command, tmp_path: Path, rule: str, code: int
) -> None:
    (tmp_path / "flips.py").write_text(FLIPS, encoding="utf-8")
    path = waivers(tmp_path, {"case": None, "breaks": rule})
    said = command.run(f"{tmp_path}/flips.py:Flips", "-k", "mirrored", "--waivers", path, "--json").expect(code)
    note = (
        f"{path}:2: `breaks: {rule}` waives nothing: mirrored[StaticReshape-f32] only needs that rule, and breaks row"
    )
    assert (note in "".join(said.data["notes"])) == (code == 1)


def test_a_name_close_to_that_of_the_backend_is_noted(command: Command, tmp_path: Path) -> None:
    path = waivers(tmp_path, {"backend": "flushs"})
    said = command.run(FLUSHES, "--waivers", path, "--json").expect(1)
    note = f"{path}:2: the waiver is for the backend 'flushs', and this is 'flushes'"
    assert note in "".join(said.data["notes"])


def test_waived_rows_are_not_listed_among_failing_ones(command: Command, tmp_path: Path) -> None:
    path = waivers(tmp_path, {"case": None, "rule": "one-infer"})
    said = command.run(mini("Accepts"), "--waivers", path).expect(1)
    listed = said.out.partition("\nfailures\n")[2]
    assert "two-infers[" not in listed
    assert "minus-two[" in listed


@pytest.mark.parametrize(
    ("version", "range_", "code", "words"),
    [
        ("nightly build", ">=1", 2, "the backend's version 'nightly build' cannot be compared; drop `versions`"),
        ("3.7.0rc1", ">=3.6", 0, ""),  # a range has the versions before a release too
    ],
)
def test_a_version_is_compared_with_a_range(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, range_: str, code: int, words: str
) -> None:
    monkeypatch.setattr(miniatures.Flushes, "identity", Identity("flushes", version))
    command.run(FLUSHES, "--waivers", waivers(tmp_path, {"versions": range_})).expect(code, err=words)
