"""`conformance run` through the public door: files, sentences, limits, and every exit code in its order."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from conformance.certify import canary, planted
from conformance.certify.conclude import conclude, conclude_evidence
from conformance.certify.evidence import Target, read
from conformance.load.cases import load_suite
from conformance.load.folders import cases_folder
from conformance.load.spec import load_spec
from conformance.model import Claims, Crashed, Outcome, Result
from conformance.plan.rows import plan_of
from conformance.plan.select import BadExpression, ids, parse_selection
from conformance.run.row import run_row
from conformance.system.progress import Progress

from .. import miniatures, small
from ..certify.test_waive import waivers
from ..small import DOCUMENTS, Cli, Command, Said, command, mini, reporting

__all__ = ["command", "reporting"]
PLANTED = "FlushesSubnormals"
TYPES = {"f32", "f16", "bf16"}


def sentences(said: Said) -> dict[str, str]:
    """The sentence of each document."""
    return {document: s for s in said.data["sentences"] for document in DOCUMENTS if document in s}


def words(said: Said) -> set[str]:
    return {standing["verdict"] for standing in said.data["standings"]}


def never_conforms(said: Said) -> None:
    assert said.code != 0
    assert not any("conforms to" in sentence for sentence in said.data["sentences"])
    assert "conforms" not in words(said)


def add_case(command: Command, keys: str) -> None:
    small.cases(command.folder, small.CASES, f"about: One.\ncases:\n  - {{{keys}, special_zero: false}}\n")


# ── what is written and said ──────────────────────────────────────────────────────────────────────
def test_a_right_backend_conforms_to_every_document_for_every_type(reporting: Command) -> None:
    command = reporting
    said = command.run("numpy").expect(0)
    assert said.last == "exit 0: the whole target conforms, as far as 20 cases of another suite go"
    assert said.err == ""
    for document in DOCUMENTS:
        limits = "as far as 20 cases of another suite go; not run: tensors of more than 2^31 elements"
        assert f"conforms to {document} {limits}" in said.text
    assert "the specification or the cases are not those that come along" in said.out
    for name in ("results.jsonl", "report.html", "junit.xml", "summary.md"):
        assert (command.out / name).stat().st_size > 200, name


def test_no_output_takes_other_cases_for_the_suite(reporting: Command) -> None:
    said, within = reporting.run("numpy", "--json"), "as far as 20 cases of another suite go"
    assert said.code == 0
    assert all(within in sentence for sentence in (*said.data["sentences"], said.data["why"]))
    for name, line in {
        "report.html": "<title>", "junit.xml": "<testsuites ", "summary.md": "# ", "badge.json": '"message"',
        "badge.svg": "<title>", "ctrf.json": '"sentences"',
    }.items():  # fmt: skip
        text = (reporting.out / name).read_text(encoding="utf-8")
        assert within in next(each for each in text.splitlines() if line in each), name
    assert json.loads((reporting.out / "badge.json").read_text())["color"] == "bf8700"


def test_every_report_repeats_a_row_with_the_folders_of_the_run(reporting: Command) -> None:
    reporting.run("broken:any-negative-infers")
    assert f"--cases {reporting.cases}" in (reporting.out / "summary.md").read_text(encoding="utf-8")
    for name in ("junit.xml", "report.html"):
        text = (reporting.out / name).read_text(encoding="utf-8")
        assert f"conformance run broken:any-negative-infers --cases {reporting.cases} -k" in text, name
    in_pytest = f"pytest --adapter broken:any-negative-infers --conformance-cases {reporting.cases} -k"
    assert in_pytest in (reporting.out / "junit.xml").read_text(encoding="utf-8")


def test_a_suite_that_lost_cases_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    cut = shutil.copytree(cases_folder(), tmp_path / "cases")
    (cut / "zero.yaml").unlink()
    for module in ("load.cases", "certify.conclude"):
        monkeypatch.setattr(f"conformance.{module}.cases_folder", lambda: cut)
    suite = load_suite()
    conclusion = conclude(plan_of(suite), {}, Claims(("StaticReshape",)), Target())
    assert conclusion.exit_code == 4
    assert f"{len(suite.lost)} cases are missing from the bundled suite" in conclusion.why
    cli("run", "numpy", "--out", tmp_path / "out").expect(2, err="install the suite anew")
    (cut / "ids.lock").unlink()
    assert load_suite().lost == ("ids.lock",)


def test_every_row_of_the_suite_has_one_line_whatever_was_asked_for(command: Command) -> None:
    rows = [row.id for row in plan_of(small.suite(None, command.cases)).rows]
    for more in ((), ("--type", "f16"), ("-k", "flattens"), ("--operation", "Reshape-1")):
        command.run("numpy", *more)
        assert [result.row for result in read(command.out / "results.jsonl").results] == rows


def test_json_tells_what_the_text_tells(command: Command) -> None:
    said = command.run("numpy", "--json")
    assert said.out.isascii()
    assert said.data["exit_code"] == said.code == 0
    assert said.data["out"] == str(command.out)
    assert said.data["verdicts"]["fail"] == 0
    assert words(said) == {"conforms"}
    assert {(s["document"], s["type"]) for s in said.data["standings"]} == {
        (document, type_) for document in DOCUMENTS for type_ in ("f32", "f16", "bf16")
    }


def test_without_a_folder_results_go_to_one_named_after_the_backend(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = command("run", "numpy", "--cases", command.cases, "--type", "f32")
    assert "report: conformance-report/numpy/report.html" in said.out
    assert (tmp_path / "conformance-report" / "numpy" / "results.jsonl").is_file()


def test_a_choice_says_what_each_row_did_and_writes_nothing(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    said = command("run", "numpy", "--cases", command.cases, "-k", "flattens[StaticReshape-f32]").expect(4)
    assert "  pass  flattens[StaticReshape-f32]\n" in said.out
    assert said.out.endswith("\nnothing is written; add --out FOLDER to keep the evidence and its reports\n")
    said = command("run", "numpy", "--cases", command.cases, "-k", "flattens or eight").expect(4)
    assert re.search(r"^  pass +[0-9]+ rows$", said.out, re.MULTILINE)
    words = ("--isolation", "none", "-k", "seven-of-six")
    said = command("run", mini("Accepts"), "--cases", command.cases, *words).expect(1, text="breaks same-volume")
    again = f"conformance run {mini('Accepts')} --cases {command.cases} --isolation none -k 'seven-of-six["
    assert again in said.out
    assert command("run", "numpy", "--cases", command.cases, "-k", "flattens", "--json").data["out"] is None
    assert not list(Path().iterdir())


def test_the_command_that_repeats_a_row_has_the_options_of_the_run(command: Command) -> None:
    options = ("--isolation", "worker", "--timeout", "7.5", "--memory", "1234567")
    said = command.run("broken:one-nan", *options, "-k", "patterns").expect(1)
    assert f"conformance run broken:one-nan --cases {command.cases} {' '.join(options)} -k " in said.out


def test_without_a_terminal_progress_is_a_line_now_and_then(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.system.progress.LINE_SECONDS", 0.0)
    said = command.run(mini("Accepts"), "--type", "f32").err.splitlines()
    lines = [line for line in said if "running 0 of" not in line]  # while the worker starts
    speed = r"(?:, [0-9.,]+/s, about [0-9.]+ (?:s|min|h) left)?"
    ran = [re.fullmatch(rf"conformance: running ([0-9]+) of ([0-9]+), ([0-9]+) failed{speed}", line) for line in lines]
    counts = [tuple(map(int, each.groups())) for each in ran if each]
    assert len(counts) == len(lines) > 10
    assert counts == sorted(counts)
    done, total, failed = counts[-1]
    assert done == total
    assert failed > 5


@pytest.mark.parametrize("option", ["--out", "--resume"])
def test_a_file_is_no_folder_for_results(command: Command, option: str) -> None:
    path = command.folder / "results.jsonl"
    path.write_text("", encoding="utf-8")
    said = command("run", "numpy", "--cases", command.cases, option, path).expect(2)
    assert f"{option} '{path}' is a file; name a folder" in said.err


def test_an_interrupted_run_says_how_to_go_on(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*order: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("conformance.certify.certify._run_in_order", interrupted)
    said = command.run("numpy").expect(130)
    assert said.err == f"conformance: interrupted; to go on, give --resume {command.out} in place of --out\n"
    monkeypatch.undo()
    assert command.run("numpy", "--resume", command.out).code == 0


def test_two_runs_differ_only_in_the_time_of_the_header_and_in_timings(command: Command) -> None:
    lines = []
    for name in ("one", "two"):
        command.run("numpy", out=command.folder / name)
        records = [json.loads(line) for line in (command.folder / name / "results.jsonl").open(encoding="utf-8")]
        assert records[0].pop("started")
        for key in ("seconds", "milliseconds", "header", "seal"):
            records[-1].pop(key, None)
        lines.append(records)
    assert lines[0] == lines[1]


def test_reports_of_an_earlier_run_do_not_outlive_its_results(
    reporting: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = reporting
    command.run("numpy")
    assert "conforms" in (command.out / "summary.md").read_text(encoding="utf-8")

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("conformance.certify.waive.apply_waivers", killed)
    assert command.run("numpy").code == 130
    assert [path.name for path in command.out.iterdir()] == ["results.jsonl.part"]


def test_failures_are_grouped_with_their_place_and_the_command_that_repeats_one(command: Command) -> None:
    said = command.run(mini("Flushes")).expect(
        1, text="subnormals flushed · breaks the text: same-content", out="few0.yaml:"
    )
    repeats = next(line for line in said.out.splitlines() if "conformance run" in line)
    again = command(*shlex.split(repeats)[1:], "--out", command.folder / "again").expect(1)
    assert "subnormals flushed · breaks the text: same-content · 1 row" in again.text
    assert "does not conform to static-2022 for f32" in said.text
    assert "conforms to static-2022 for bf16 and f16" in said.text


def test_failures_against_a_document_are_counted_apart_from_those_against_rulings(command: Command) -> None:
    said = command.run(mini("Accepts"), "--json", "--document", "static-2022", "--type", "f32")
    spec, results = load_spec(), read(command.out / "results.jsonl").results
    cases = small.suite(None, command.cases).cases
    rows = [r.row for r in results if r.verdicts.get("static-2022") == "fail" and "-f32" in r.row]
    failed = [cases[row.partition("[")[0]].rule for row in rows]
    stated = [rule for rule in failed if spec.rules[rule].authority("static-2022") != "our ruling"]
    assert 0 < len(stated) < len(failed)
    ours = len(failed) - len(stated)
    sentence = sentences(said)["static-2022"]
    assert f"(keeps the text, answers what the text forbids in {len(stated)} of " in sentence
    assert f" tests, differs from our rulings in {ours})" in sentence


def test_a_failure_where_its_rule_does_not_bind_is_against_what_the_call_breaks_there(command: Command) -> None:
    add_case(command, "id: both, rule: zero-meets-infer, src: 'T[0, 3]', shape: [0, -1, -1], expect: reject")
    said = command.run(mini("Accepts"), "--json", "-k", "both", "--type", "f32")
    for document in ("static-2022", "static-2021"):
        assert "(keeps the text, answers what the text forbids in 1 of " in sentences(said)[document]


def test_a_ruling_that_a_document_touches_upon_is_still_a_ruling(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(miniatures.LeavesOut, "instead", "wrong")
    said = command.run(mini("LeavesOut"), "--json")
    assert any(p.document == "static-2022" for p in load_spec().rules["layout-is-no-content"].stated)
    assert "(keeps the text, differs from our rulings in 3 of 58 tests)" in sentences(said)["static-2022"]


def test_a_type_that_no_document_lists_is_said_something_of_only_where_it_fails(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_case(command, "id: double, rule: types-listed, src: 'f64[2, 3]', shape: [6], expect: unspecified")
    said = command.run(mini("Bent"), "--json")
    assert (said.code, {s["type"] for s in said.data["standings"]}) == (0, TYPES), said
    monkeypatch.setattr(miniatures.Bent, "bent", lambda self, a, src, _: a * 0 if src.type == "f64" else a)
    said = command.run(mini("Bent"), "--json").expect(0)
    assert {s["type"]: s["verdict"] for s in said.data["standings"]} == dict.fromkeys(TYPES, "conforms")
    assert any("in f64, which the documents do not list; no verdict" in note for note in said.data["notes"])


def test_an_answer_given_again_is_told_as_an_earlier_one(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[tuple[object, ...], Any] = {}

    def bent(self: object, answer: Any, src: Any, _: Any) -> Any:
        return given.setdefault((src.type, src.dims), answer).copy() if src.dims == (3, 4) else answer

    monkeypatch.setattr(miniatures.Bent, "bent", bent)
    command.run(mini("Bent"), "-k", "two-calls").expect(1, text="stale: an earlier answer · breaks")


class Dies(miniatures.Bent):
    """Dies at the calls that a script names, and is started anew."""

    def __init__(self, *script: str) -> None:
        self.script, self.restarts = list(script), 0

    def bent(self, answer: Any, src: Any, shapes: Any) -> Any:
        if self.script.pop(0) == "dies":
            raise Crashed("SIGSEGV")
        return answer

    def restart(self) -> None:
        self.restarts += 1


@pytest.mark.parametrize(("case", "script", "steps", "words"), [
    ("flattens", "lives", "tensor", ""),
    ("flattens", "dies dies", "crash", "SIGSEGV (deterministic: again alone in a fresh process)"),
    ("flattens", "dies lives", "crash", "(flaky: not alone in a fresh process; the call before it was eight)"),
    ("two-calls", "lives dies lives dies", "tensor crash", "(deterministic: again alone in a fresh process)"),
    (
        "two-calls", "lives dies lives lives", "tensor crash",
        "(flaky: not alone in a fresh process; the call before"),
    ("two-calls", "lives dies dies lives", "crash crash", "SIGSEGV"),
])  # fmt: skip
def test_a_row_in_which_a_process_died_is_called_once_more_and_the_worse_stands(
    tmp_path: Path, case: str, script: str, steps: str, words: str
) -> None:
    row = next(row for row in small.plan(tmp_path).rows if row.case.id == case)
    adapter = Dies(*script.split())
    result = run_row(row, adapter, left_out=False, previous=Result("eight", {}, (Outcome("tensor"),)))
    assert (adapter.restarts, adapter.script) == (int("dies" in script), [])
    assert set(result.verdicts.values()) == {"fail" if "dies" in script else "pass"}
    assert " ".join(outcome.kind for outcome in result.outcomes) == steps
    assert words in str(result.outcome.message)
    if not words:
        assert result.outcome.message is None


# ── never yes by accident ─────────────────────────────────────────────────────────────────────────
NOTHING = ("ClaimsNothing", "LeavesOutEveryType")


@pytest.mark.parametrize("name", ["Unable", "Refuses", "Accepts", "UnableBeyond", *NOTHING])
def test_who_does_or_claims_nothing_never_conforms(command: Command, name: str) -> None:
    never_conforms(command.run(mini(name), "--json"))


@pytest.mark.parametrize("name", NOTHING)
def test_a_claim_of_nothing_is_incomplete(command: Command, name: str) -> None:
    assert "nothing was shown" in command.run(mini(name)).expect(4).last


@pytest.mark.skipif(sys.platform == "win32", reason="has no limit on the size of a file")
def test_a_full_disk_is_one_line_that_names_the_file(tmp_path: Path) -> None:
    limited = (
        "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))\n"
        "from conformance.cli.main import main\nraise SystemExit(main('run numpy --type f32 --out out'.split()))"
    )
    done = subprocess.run([sys.executable, "-c", limited], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, f"conformance: {tmp_path}/out/results.jsonl.part: File too large\n")


def test_all_that_is_left_out_and_unsupported_reads_nothing_shown(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(miniatures.Refuses, "claims", Claims(miniatures.ALL, ("type:f32", "type:f16")))
    said = command.run(mini("Refuses"), "--json")
    never_conforms(said)
    assert said.code == 1
    assert {s["type"]: s["verdict"] for s in said.data["standings"]} == {
        "bf16": "does not conform", "f16": "not claimed", "f32": "not claimed",
    }  # fmt: skip


def test_a_document_for_which_nothing_passed_reads_nothing_shown(tmp_path: Path, command: Command) -> None:
    head, scalar = small.CASES.split("  - {id: stays")[0], small.CASES[small.CASES.index("  - {id: scalar") :]
    text = head + scalar.splitlines()[0] + "\n"
    (command.cases / "few0.yaml").write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(canary, "count_failures", lambda *_: dict.fromkeys(planted.names("worker"), 1))
        said = command.run("numpy", "--json")
    never_conforms(said)
    assert words(said) == {"nothing shown"}
    assert "static-2022: nothing shown" in sentences(said)["static-2022"]
    assert said.code == 4


def test_a_rule_without_a_pass_is_named(command: Command) -> None:
    start = "  - {id: keeps-order, rule: row-major-order, "
    lines = small.CASES.splitlines(keepends=True)
    at = next(number for number, line in enumerate(lines) if line.startswith(start))
    lines[at] = f'{start}src: "T[]", shape: [1], special_zero: true, expect: unspecified}}\n'
    (command.cases / "few0.yaml").write_text("".join(lines), encoding="utf-8")
    said = command.run("numpy", "--json")
    never_conforms(said)
    assert said.code == 4
    assert "no pass for the rule row-major-order" in said.data["why"]


@pytest.mark.parametrize("instead", ["unsupported", "refused", "error", "other type"])
def test_a_left_out_call_is_not_claimed_if_it_has_no_answer_or_one_of_another_type(
    command: Command, monkeypatch: pytest.MonkeyPatch, instead: str
) -> None:
    monkeypatch.setattr(miniatures.LeavesOut, "instead", instead)
    said = command.run(mini("LeavesOut"), "--json").expect(0)
    assert said.data["verdicts"]["not claimed"] == 24
    for sentence in sentences(said).values():
        assert "not claimed: layout:reversed" in sentence
    assert not any("left out of the claims" in note for note in said.data["notes"])


@pytest.mark.parametrize(("instead", "words"), [("wrong", "all zero"), ("crash", "crash where nothing is claimed")])
def test_a_wrong_answer_and_a_crash_fail_in_what_is_left_out(
    command: Command, monkeypatch: pytest.MonkeyPatch, instead: str, words: str
) -> None:
    monkeypatch.setattr(miniatures.LeavesOut, "instead", instead)
    said = command.run(mini("LeavesOut"), "--json").expect(1)
    assert said.data["verdicts"]["fail"] >= 8
    assert "does not conform to static-2022" in sentences(said)["static-2022"]
    assert words in {result.diagnosis for result in read(command.out / "results.jsonl").results}
    if instead == "crash":
        assert {blame for each in said.data["standings"] for blame, tests in each["blames"].items() if tests} == {
            "breaks only our ruling"
        }


def test_errors_of_the_adapter_are_counted_by_exception_and_held_against_nobody(command: Command) -> None:
    said = command.run(mini("Errs"), "--json").expect(1)
    number = said.data["verdicts"]["error"]
    assert not any(number for standing in said.data["standings"] for number in standing["blames"].values())
    assert number
    (note,) = [note for note in said.data["notes"] if "KeyError" in note]
    assert re.fullmatch(r"the adapter raised KeyError in [0-9]+ rows; .* `refusals`", note)


def test_what_is_left_out_and_works_is_said(command: Command) -> None:
    said = command.run(mini("LeavesOut"), "--json").expect(0)
    assert "left out of the claims, and every row of it is right: layout:reversed" in said.data["notes"]
    assert said.data["standings"][0]["left_out"] == {"pass": 1}, "nor does it count among what is required"


def test_what_is_claimed_and_unsupported_fails(command: Command) -> None:
    command.run(mini("UnableBeyond")).expect(1, text="unsupported · breaks only our ruling: layout-is-no-content")


def test_one_operation_claimed_is_one_operation_certified(command: Command) -> None:
    said = command.run(mini("ClaimsOne"), "--json").expect(0)
    assert set(sentences(said)) == {"static-2022", "static-2021", "static-2020"}
    assert {s["operation"] for s in said.data["standings"]} == {"StaticReshape"}


def test_the_sentence_names_every_limit(command: Command) -> None:
    said = command.run(mini("Mapped"), "--json").expect(0)
    assert sentences(said)["static-2022"] == (
        "conforms to static-2022 as far as 20 cases of another suite go as run in the suite's own process; "
        "not claimed: chain; "
        "not run: tensors of more than 2^31 elements; special_zero answered by the adapter"
    )
    said = command.run(mini("LeavesOutOneType"), "--json")
    assert sentences(said)["static-2022"] == (
        "conforms to static-2022 for bf16 and f32 as far as 20 cases of another suite go as run in the suite's own "
        "process; not claimed: type:f16; not run: tensors of more than 2^31 elements"
    )


def test_a_family_that_is_left_out_is_named_once(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(miniatures.LeavesOut, "claims", Claims(miniatures.ALL, ("layout", "chain")))
    assert "; not claimed: layout, chain; not run" in sentences(command.run(mini("LeavesOut"), "--json"))["static-2022"]


# ── the target ────────────────────────────────────────────────────────────────────────────────────
@pytest.mark.parametrize(
    ("chosen", "documents", "types"),
    [
        (("--operation", "DynamicReshape-1"), {"dynamic-2021"}, TYPES),
        (("--document", "static-2021"), {"static-2021"}, TYPES),
        (("--document", "static-2021", "--document", "reshape-2020"), {"static-2021", "reshape-2020"}, TYPES),
        (("--type", "bf16"), set(DOCUMENTS), {"bf16"}),
        (("--type", "bf16", "--type", "f32"), set(DOCUMENTS), {"bf16", "f32"}),
        (("--type", "bf16", "--document", "dynamic-2021"), {"dynamic-2021"}, {"bf16"}),
    ],
)  # fmt: skip
def test_a_target_narrows_what_is_run_and_what_is_said(
    command: Command, chosen: tuple[str, ...], documents: set[str], types: set[str]
) -> None:
    said = command.run("numpy", "--json", *chosen).expect(0)
    assert set(sentences(said)) == documents
    assert {(s["document"], s["type"]) for s in said.data["standings"]} == {(d, t) for d in documents for t in types}
    assert said.data["verdicts"]["not run"] > 0
    about = "" if len(types) == 3 else f" for {' and '.join(sorted(types))}"
    assert all(s.startswith(f"conforms to {d}{about} as far as") for d, s in sentences(said).items())


@pytest.mark.parametrize(
    ("backend", "chosen", "why"),
    [
        ("ClaimsOne", ("--operation", "Reshape-1"), "required and not shown: Reshape-1"),
        ("ClaimsOne", ("--document", "reshape-2020"), "not shown: reshape-2020"),
        ("LeavesOutOneType", ("--type", "f16"), "required and not shown: f16"),
        ("ClaimsOne", ("--operation", "StaticReshape", "--document", "reshape-2020"), "not shown: reshape-2020"),
        ("ClaimsOne", ("--document", "static-2022", "--document", "reshape-2020"), "not shown: reshape-2020"),
        ("LeavesOutOneType", ("--type", "f32", "--type", "f16"), "required and not shown: f16"),
    ],
)
def test_a_target_that_is_not_claimed_is_incomplete(
    command: Command, backend: str, chosen: tuple[str, ...], why: str
) -> None:
    assert why in command.run(mini(backend), *chosen).expect(4).last


@pytest.mark.parametrize(
    ("backend", "demand", "code"),
    [
        ("Bent", "layout:reversed", 0), ("Bent", "layout", 0), ("Bent", "chain", 0), ("Bent", "f16", 0),
        ("Bent", "static-2022", 0), ("Bent", "Reshape-1", 0), ("LeavesOut", "chain", 0),
        ("LeavesOut", "layout:reversed", 4), ("LeavesOut", "layout", 4), ("LeavesOutEveryType", "type:f16", 4),
        ("LeavesOutOneType", "f16", 4), ("LeavesOutOneType", "type:f16", 4), ("LeavesOutOneType", "type", 4),
        ("LeavesOutOneType", "f32", 0), ("LeavesOutOneType", "static-2022", 4),
        ("ClaimsOne", "Reshape-1", 4), ("ClaimsOne", "reshape-2020", 4), ("ClaimsOne", "static-2020", 0),
        ("Mapped", "chain", 4),
    ],
)  # fmt: skip
def test_a_demand_is_met_or_the_run_is_incomplete(command: Command, backend: str, demand: str, code: int) -> None:
    said = command.run(mini(backend), "--require", demand).expect(code)
    if code:
        assert said.last.endswith(f"incomplete: required and not shown: {demand}")


def test_one_case_can_be_chosen_and_shows_nothing_whole(command: Command) -> None:
    for chosen, count in (("flattens", 18), ("flattens[StaticReshape-f32]", 1), ("few0.yaml and copies and bf16", 6)):
        said = command.run("numpy", "--json", "-k", chosen)
        never_conforms(said)
        assert said.code == 4
        ran = [r for r in read(command.out / "results.jsonl").results if "not run" not in r.verdicts.values()]
        assert len(ran) == count
        assert f"-k {chosen!r}" in said.data["why"]
        assert all(f"only the cases of -k {chosen!r}" in sentence for sentence in sentences(said).values())


@pytest.mark.parametrize(
    ("chosen", "meant"),
    [("flatens", "flattens"), ("seven-of-sic[StaticReshape-f32]", "seven-of-six"), ("one-infre", "one-infer")],
)
def test_a_choice_that_matches_nothing_suggests_what_is_near(command: Command, chosen: str, meant: str) -> None:
    assert f"did you mean {meant!r}" in command.run("numpy", "-k", chosen).last


def test_a_choice_that_matches_nothing_says_so(command: Command) -> None:
    said = command.run("numpy", "-k", "no-such-case").expect(4)
    assert "nothing ran" in said.last
    assert "'no-such-case' is in no row of the target; see `conformance list cases`" in said.last
    assert "conforms to" not in said.out


def chosen(expression: str, folder: Path) -> set[str]:
    """The cases of the rows that an expression chooses."""
    rows = small.plan(folder).rows
    return {row.case.id for row in rows if parse_selection(expression, ids(rows))(row)}


@pytest.mark.parametrize(
    ("expression", "cases"),
    [
        ("flattens", {"flattens"}), ("FLAT", {"flattens"}), ("one-infer", {"two-infers", "infers"}),
        ("infers and not two", {"infers", "infers-beside-zero"}), ("copies or stays", {"copies", "stays"}),
        ("(copies or stays) and not copies", {"stays"}), ("not not copies", {"copies"}),
        ("copies or stays and flattens", {"copies"}), ("'two-calls'", {"two-calls"}), ("few0.yaml::copies", {"copies"}),
        ("cases/few0.yaml::copies[StaticReshape-f32]", {"copies"}), ("infers", {"infers"}),
        (" infers ", {"infers"}), ("infers[StaticReshape-f32]", {"infers"}), ("stays and STATICRESHAPE", {"stays"}),
        ("'copies' or 'stays'", {"copies", "stays"}), ('"copies" or "stays"', {"copies", "stays"}),
        ("'copies or stays'", set()), ('"copies or stays"', set()), ("infer and s64 and f7", set()),
    ],
)  # fmt: skip
def test_words_choose_rows(tmp_path: Path, expression: str, cases: set[str]) -> None:
    assert chosen(expression, tmp_path) == cases


@pytest.mark.parametrize(
    "expression", ["", " ", "and", "a and", "or a", "not", "(a", "a)", "()", "a b", "a (b)", "not or"]
)
def test_an_expression_that_cannot_be_read_is_told(expression: str) -> None:
    with pytest.raises(BadExpression):
        parse_selection(expression)


# ── exit codes ────────────────────────────────────────────────────────────────────────────────────
USAGE: dict[str, tuple[tuple[str, ...], str]] = {
    "operation": (("--operation", "StaticReshap"), "did you mean 'StaticReshape'"),
    "document": (("--document", "static-2O22"), "did you mean 'static-2022'"),
    "type": (("--type", "fp16"), "did you mean 'f16'"),
    "requirement": (("--require", "layuot"), "did you mean 'layout'"),
    "a bracket": (("-k", "(a or b"), "a bracket is not closed"),
    "nothing to look for": (("-k", ""), "the expression is empty"),
    "and nothing": (("-k", "a and"), "ends too early"),
    "two words": (("-k", "a b"), "'b' is one too many"),
    "a shard past the last": (("--shard", "4/3"), "write --shard 1/3"),
    "a shard of nothing": (("--shard", "0/3"), "write --shard 1/3"),
    "jobs in this process": (("--jobs", "2"), "needs processes"),
    "no jobs": (("--jobs", "0"), "write --jobs 2"),
    "no time": (("--timeout", "-1"), "write --timeout 20"),
    "no such waivers": (("--waivers", "/no/such.yaml"), "/no/such.yaml"),
    "no such claims": (("--claims", "/no/such.yaml"), "/no/such.yaml"),
    "no such run": (("--resume", "/dev/null/run"), "there is no run to resume"),
    "a folder twice": (("--resume", "/dev/null/run", "--out", "x"), "drop --out"),
    "two choices": (("-k", "a", "-k", "b"), "given twice"),
}  # fmt: skip


@pytest.mark.parametrize("what", USAGE)
def test_2_is_for_what_cannot_be_read(command: Command, what: str) -> None:
    typed, said_of_it = USAGE[what]
    said = command.run("numpy", *typed)
    assert (said.code, said.out) == (2, "")
    assert said_of_it in said.err
    assert not (command.out / "results.jsonl").exists()


def test_2_comes_before_3(command: Command, tmp_path: Path) -> None:
    assert command.run("nmupy", "--type", "fp16").code == 2
    assert command.run("nmupy", "--waivers", waivers(tmp_path, {"expires": "soon"})).code == 2
    assert command.run("nmupy").code == 3


def test_1_comes_before_6_and_4(command: Command, tmp_path: Path) -> None:
    expired = waivers(tmp_path, {"expires": "2020-01-01"})
    assert command.run(mini("Flushes"), "--waivers", expired).code == 1
    assert command.run(mini("Flushes"), "-k", "patterns").code == 1
    assert command.run(mini("Flushes"), "--require", "static-2022").code == 1


def test_6_comes_before_4(command: Command, tmp_path: Path) -> None:
    stale = waivers(tmp_path, {})
    assert command.run(mini("LeavesOut"), "--waivers", stale, "--require", "layout:reversed").code == 6
    assert command.run(mini("LeavesOut"), "--require", "layout:reversed").code == 4


def test_4_is_for_a_part_even_where_all_of_it_passed(command: Command) -> None:
    for part in (("-k", "flattens"), ("--shard", "1/2")):
        assert command.run("numpy", *part).expect(4).last.startswith("exit 4: incomplete: ")


def test_a_shard_says_that_it_is_one_even_where_it_is_the_only_one(command: Command) -> None:
    said = command.run("numpy", "--shard", "1/1", "--json").expect(4)
    assert said.data["why"].startswith("incomplete: shard 1/1 of the rows; `conformance merge` puts")
    assert all("; only shard 1/1" in sentence for sentence in said.data["sentences"])


def test_a_good_shard_is_0_only_where_it_is_asked_for(reporting: Command) -> None:
    command = reporting
    for shard in ("1/2", "2/2"):
        assert command.run("numpy", "--shard", shard).code == 4
        said = command.run("numpy", "--shard", shard, "--partial-ok").expect(0)
        assert (
            f"exit 0: --partial-ok: shard {shard}: all its rows ran and none failed; `conformance merge`" in said.text
        )
        assert "exit 4" not in said.out + said.err
        assert command.run("numpy", "--shard", shard, "--partial-ok", "--json").expect(0).data["exit_code"] == 0
        assert "Incomplete" in (command.out / "report.html").read_text(encoding="utf-8")


def test_a_shard_with_a_failure_or_with_nothing_in_the_target_is_never_0(command: Command) -> None:
    assert command.run(mini("Flushes"), "--shard", "1/1", "--partial-ok").code == 1
    for backend, shard in ((mini("ClaimsNothing"), "1/1"), ("numpy", "9999/9999")):
        said = command.run(backend, "--shard", shard, "--partial-ok").expect(4)
        assert f"exit 4: incomplete, also with --partial-ok: shard {shard}: it has no row in the target" in said.text


def test_partial_ok_is_for_shards_of_all_rows(command: Command) -> None:
    for more in ((), ("--shard", "1/2", "-k", "flattens")):
        command.run("numpy", "--partial-ok", *more).expect(2, err="give --shard I/N, without -k")


def test_5_comes_before_everything_that_ran(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canary, "_run_planted_backend", lambda plan, backend, *_: int(backend.name != PLANTED))
    for backend in ("numpy", mini("Flushes"), mini("ClaimsNothing")):
        said = command.run(backend, "--json").expect(5)
        assert f"{PLANTED}, planted and bad, was not caught; no verdict holds" in said.data["why"]
        never_conforms(said)


def test_a_finished_run_concludes_the_same_again(command: Command) -> None:
    said = command.run("numpy")
    again = conclude_evidence(plan_of(small.suite(None, command.cases)), read(command.out / "results.jsonl"))
    assert said.last == f"exit {again.exit_code}: {again.why}"


GIVES_UP = """
import json, pathlib, sys
begun = pathlib.Path(sys.argv[1])
if begun.exists():
    sys.exit("no device any more")
for line in sys.stdin:
    request = json.loads(line)
    result = {"protocol": request.get("protocol")}
    if request["do"] == "describe":
        result = {"name": "gives up", "version": "1", "operations": ["StaticReshape"]}
    if request["do"] in ("compile", "run"):
        begun.touch()
        sys.exit(1)
    print(json.dumps({"id": request["id"], "result": result}), flush=True)
"""


def test_a_process_that_cannot_be_started_again_is_told_and_the_rest_is_not_run(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(canary, "count_failures", lambda *_: dict.fromkeys(planted.names("worker"), 1))
    (tmp_path / "program.py").write_text(GIVES_UP, encoding="utf-8")
    backend = f"cmd:{sys.executable} -I -S {tmp_path / 'program.py'} {tmp_path / 'begun'}"
    said = command.run(backend, "--isolation", "worker", "--json").expect(1)
    never_conforms(said)
    assert said.data["verdicts"]["not run"] > 100
    assert any("given up after 3 starts that failed" in note for note in said.data["notes"])


# ── pinned claims ─────────────────────────────────────────────────────────────────────────────────
def pinned(folder: Path, text: str) -> Path:
    path = folder / "claims.yaml"
    path.write_text(text, encoding="utf-8")
    return path


EVERY = "operations: [StaticReshape, DynamicReshape-1, Reshape-1]\n"


@pytest.mark.parametrize(
    ("text", "words_"),
    [
        (
            "operations: [StaticReshape]\n",
            "operations: DynamicReshape-1, Reshape-1 are claimed and not pinned; leaves_out: ",
        ),
        (EVERY, "leaves_out: layout:reversed is claimed and not pinned"),
        (EVERY + "leaves_out: [layout:reversed, chain]\n", "leaves_out: chain is pinned and not claimed"),
        (EVERY + "leaves_out: [layout:reversed]\nanswers_special_zero: true\n", "answers_special_zero: true is pinned"),
    ],
)
def test_claims_that_differ_from_the_pinned_ones_stop_the_run(
    command: Command, tmp_path: Path, text: str, words_: str
) -> None:
    command.run(mini("LeavesOut"), "--claims", pinned(tmp_path, text)).expect(3, err=words_)
    assert not (command.out / "results.jsonl").exists()


def test_claims_as_pinned_run(command: Command, tmp_path: Path) -> None:
    path = pinned(tmp_path, EVERY + "leaves_out: [layout:reversed]\n")
    assert command.run(mini("LeavesOut"), "--claims", path).code == 0


@pytest.mark.parametrize("text", ["operations: []\n", "leaves_out: [chain]\n", "operations: x\n", "- a\n", "a: [", ""])
def test_a_file_of_claims_that_is_none_is_said_with_its_place(command: Command, tmp_path: Path, text: str) -> None:
    path = pinned(tmp_path, text)
    command.run("numpy", "--claims", path).expect(2, err=f"{path}:")


def test_on_a_small_terminal_the_verdicts_stay_on_the_screen(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    words = (mini("Accepts"), "--isolation", "none")
    whole = command.run(*words).expect(1).out.splitlines()
    small = len(whole) - 6
    monkeypatch.setattr("conformance.cli.run_summary.screen_lines", lambda: small)
    lines = command.run(*words).expect(1).out.splitlines()
    assert len(lines) < small
    assert lines[1].startswith("  does not conform to ")
    assert any("conformance explain " in line for line in lines)
    assert lines[-1].startswith("report: ")


def test_a_failure_names_the_commands_that_repeat_and_explain_it(command: Command) -> None:
    said = command.run(mini("Accepts"), "--isolation", "none").expect(1)
    lines = said.out.splitlines()
    repeat = next(number for number, line in enumerate(lines) if " -k " in line)
    assert lines[repeat + 1].startswith(f"      conformance explain --cases {command.cases} ")


class Screen(io.StringIO):
    """A terminal of 80 columns."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


def test_on_a_terminal_progress_is_a_bar_with_rate_failures_and_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    screen = Screen()
    progress = Progress("running", 200, screen)
    time.sleep(0.01)
    progress.at(100, "some-case", 3)
    assert re.fullmatch(
        r"\r\x1b\[Krunning ━{10}─{10} 100 of 200 · 3 failed · [0-9,.]+/s · about [0-9]+ s left.*", screen.getvalue()
    )
    progress.close()
    assert screen.getvalue().endswith("\r\x1b[K")


def test_while_hardly_anything_ends_progress_foretells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("conformance.system.progress._SLOWEST", 1e12)
    screen = Screen()
    Progress("running", 200, screen).at(100, "", 3)
    assert screen.getvalue().endswith(" 100 of 200 · 3 failed")


def test_a_call_that_hangs_does_not_silence_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.system.progress.LINE_SECONDS", 0.1)
    stream = io.StringIO()
    progress = Progress("running", 10, stream)
    end = time.monotonic() + 20
    while "running 0 of 10" not in stream.getvalue() and time.monotonic() < end:
        time.sleep(0.05)
    progress.close()
    assert "conformance: running 0 of 10\n" in stream.getvalue()
