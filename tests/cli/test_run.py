"""`conformance run` through the public door: what is written and said."""

import re
import shlex
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn

import pytest

from conformance.adapters.reference import Reference
from conformance.evidence.results import Target, read
from conformance.isolate.process.launch import CAN_LIMIT_MEMORY
from conformance.load.cases import load_suite
from conformance.load.folders import find_cases_folder
from conformance.load.spec import load_spec
from conformance.model import Claims, Crashed, Outcome, Result
from conformance.plan.rows import Plan, plan_of
from conformance.run.row import run_row
from conformance.runner import run_suite
from conformance.verdict.conclude import conclude

from .. import builders, miniatures
from ..builders import DOCUMENTS, Cli, Command, interrupt, mini, spare_planted, table_of
from .run_output import TYPES, sentences


def add_case(command: Command, keys: str) -> None:
    builders.write_cases(command.folder, builders.CASES, f"about: One.\ncases:\n  - {{{keys}, special_zero: false}}\n")


def test_a_right_backend_conforms_for_every_document_and_type(reporting: Command) -> None:
    said = reporting.run("reference").expect(0, out="the specification or the cases are not the bundled ones")
    assert said.last == "exit 0: the whole target conforms, without drawn rows, as far as 20 cases of another suite go"
    assert said.err == ""
    assert [cells[:3] for cells in table_of(said.out).values()] == [["yes"] * 3] * len(DOCUMENTS)
    limits = "as far as 20 cases of another suite go not run: drawn rows and tensors of more than 2^31 elements"
    assert limits in said.text
    for name in ("results.jsonl", "report.html", "junit.xml", "summary.md"):
        assert (reporting.out / name).stat().st_size > 200, name


def test_no_output_takes_other_cases_for_the_suite(reporting: Command) -> None:
    said, within = reporting.run("reference", "--json").expect(0), "as far as 20 cases of another suite go"
    assert all(within in sentence for sentence in (*said.data["sentences"], said.data["why"]))
    for name, line in {
        "report.html": "<title>", "junit.xml": "<testsuites ", "summary.md": "# ", "badge.svg": "<title>",
    }.items():  # fmt: skip
        text = (reporting.out / name).read_text(encoding="utf-8")
        assert within in next(each for each in text.splitlines() if line in each), name
    assert 'fill="#7d4e00"' in (reporting.out / "badge.svg").read_text(), "the colour of what is incomplete"


def test_every_report_repeats_a_row_with_the_folders_of_the_run(reporting: Command) -> None:
    reporting.run("planted:any-negative-infers")
    assert f"--suite {reporting.folder}" in (reporting.out / "summary.md").read_text(encoding="utf-8")
    for name in ("junit.xml", "report.html"):
        text = (reporting.out / name).read_text(encoding="utf-8")
        assert f"conformance run planted:any-negative-infers --suite {reporting.folder} -k" in text, name
    in_pytest = f"pytest --adapter planted:any-negative-infers --conformance-suite={reporting.folder} -k"
    assert in_pytest in (reporting.out / "junit.xml").read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_suite_that_lost_cases_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    cut = shutil.copytree(find_cases_folder(), tmp_path / "cases")
    (cut / "zero.yaml").unlink()
    for module in ("load.cases", "load.folders", "verdict.conclude"):
        monkeypatch.setattr(f"conformance.{module}.find_cases_folder", lambda: cut)
    suite = load_suite()
    conclusion = conclude(plan_of(suite), {}, Claims(("StaticReshape",)), Target())
    assert conclusion.exit_code == 4
    assert f"{len(suite.lost)} cases are missing from the bundled suite" in conclusion.why
    cli("run", "reference", "--out", tmp_path / "out").expect(2, err="install the suite again")
    (cut / "ids.lock").unlink()
    assert load_suite().lost == ("ids.lock",)


def test_a_claimed_row_that_is_called_not_claimed_is_no_success(plan: Plan) -> None:
    """No run writes one. Each rule has a pass all the same, of another operation or row."""
    passing = {row.id: Result(row.id, dict.fromkeys(row.documents, "pass"), (Outcome("none"),)) for row in plan.rows}
    first = passing[plan.rows[0].id]
    one_less = passing | {first.row: first._replace(verdicts=dict.fromkeys(first.verdicts, "not claimed"))}
    claims = Claims(tuple(plan.suite.spec.operations))
    names = [{each.name for each in conclude(plan, some, claims, Target()).standings} for some in (passing, one_less)]
    assert names == [{"conforms"}, {"conforms", "incomplete"}]


def test_evidence_has_a_line_for_every_row_or_those_of_k(command: Command) -> None:
    rows = [row.id for row in command.plan.rows]
    chosen = [row for row in rows if row.startswith("flattens[")]
    of_k = ("-k", "flattens")  # the other rows are not even named, as no run with -k shows conformity
    for more, expected in (((), rows), (("--type", "f16"), rows), ((*of_k, "--type", "f16"), chosen), (of_k, chosen)):
        command.run("reference", *more)
        assert [result.row for result in read(command.out / "results.jsonl").results] == expected
        assert command("verify", command.out, "--suite", command.folder, "--conforms").code == ("-k" in more)


def test_results_go_to_a_folder_named_after_the_backend(
    reporting: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = reporting("run", "reference", "--suite", reporting.folder, "--type", "f32")
    assert "report: conformance-report/reference/report.html" in said.out
    assert (tmp_path / "conformance-report" / "reference" / "results.jsonl").is_file()


def test_a_choice_says_what_each_row_did_and_writes_nothing(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    said = command("run", "reference", "--suite", command.folder, "-k", "flattens[StaticReshape-f32]").expect(4)
    assert "  pass  flattens[StaticReshape-f32]\n" in said.out
    assert said.out.endswith("\nnothing is written; add --out FOLDER to keep the evidence and its reports\n")
    said = command("run", "reference", "--suite", command.folder, "-k", "flattens or eight").expect(4)
    assert re.search(r"^  pass +[0-9]+ rows$", said.out, re.MULTILINE)
    words = ("--isolation", "none", "-k", "seven-of-six")
    said = command("run", mini("Accepts"), "--suite", command.folder, *words).expect(1, text="breaks same-volume")
    again = f"conformance run {mini('Accepts')} --suite {command.folder} --isolation none -k 'seven-of-six["
    assert again in said.out
    assert command("run", "reference", "--suite", command.folder, "-k", "flattens", "--json").data["out"] is None
    assert not list(Path().iterdir())


@pytest.mark.slow
def test_the_command_to_repeat_a_row_has_the_same_options(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    spare_planted(monkeypatch)
    options = ("--isolation", "worker", "--timeout", "7.5", "--memory", "1234567")
    again = f"conformance run planted:quiets-nan --suite {command.folder} {' '.join(options)} -k "
    command.run("planted:quiets-nan", *options, "-k", "patterns").expect(1, out=again)


ON_A_DEVICE = """
import resource
from conformance import Identity
from conformance.adapters.reference import Reference

class OnDevice(Reference):
    identity = Identity("mine", f"{resource.getrlimit(resource.RLIMIT_AS)[0] >> 20} MiB")

    def __init__(self, device="cpu"):
        pass
"""


@pytest.mark.slow
@pytest.mark.skipif(not CAN_LIMIT_MEMORY, reason="this system limits the memory of no process that runs")
@pytest.mark.parametrize(
    ("device", "options", "limit"),
    [("", [], 16_384), ("@cpu", [], 16_384), ("@cuda:1", [], 4_000_000), ("@cuda", ["--memory", "20000"], 20_000)],
)
def test_a_process_may_map_more_on_a_device(
    command: Command, tmp_path: Path, device: str, options: list[str], limit: int
) -> None:
    """CUDA reserves address space for the memory of all devices."""
    file = tmp_path / "mine.py"
    file.write_text(ON_A_DEVICE)
    words = (*options, "--isolation", "worker", "-k", "flattens")
    command.run(f"{file}:OnDevice{device}", *words).expect(4, out=f"mine {limit} MiB: ")


def test_without_a_terminal_progress_is_a_line_now_and_then(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.system.progress.LINE_SECONDS", 0.0)
    said = command.run(mini("Accepts"), "--type", "f32").err.splitlines()
    lines = [line for line in said if "running 0 of" not in line]  # while the worker starts
    speed = r"(?:, [0-9.,]+/s, about [0-9.]+ (?:s|min|h) left)?(?:, [-a-z0-9]+\[.*\])?"
    ran = [re.fullmatch(rf"conformance: running ([0-9]+) of ([0-9]+), ([0-9]+) failed{speed}", line) for line in lines]
    counts = [tuple(map(int, each.groups())) for each in ran if each]
    assert len(counts) == len(lines) > 10
    assert counts == sorted(counts)
    done, total, failed = counts[-1]
    assert done == total
    assert failed > 5


@pytest.mark.parametrize(
    "words",
    ["run reference --out", "run reference --resume", "certify it --out", "sweep reference --rank 1 --max-dim 1 --out"],
)
def test_a_file_is_no_folder_for_results(command: Command, words: str) -> None:
    path = command.folder / "results.jsonl"
    path.write_text("", encoding="utf-8")
    why = "is not a folder; there is no run to resume" if "resume" in words else "is a file; name a folder"
    command(*words.split(), path, "--suite", command.folder).expect(2, err=f"{path}{':' * ('resume' in words)} {why}")


def test_an_interrupted_run_says_how_to_go_on(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.runner.run_suite._run_in_order", interrupt)
    said = command.run("reference").expect(130)
    assert said.err == (
        f"conformance: interrupted; to go on, give --resume {command.out} instead of --out; "
        f"`conformance report --suite {command.folder} {command.out}` shows what was run\n"
    )
    said = command("run", "reference", "--suite", command.folder, "-k", "infer").expect(130)
    assert said.err == "conformance: interrupted; nothing is written; run again\n"
    monkeypatch.undo()
    assert command.run("reference", "--resume", command.out).code == 0


@pytest.mark.parametrize(("failure", "code"), [(KeyboardInterrupt, 130), (OSError, 2)])
def test_calls_end_before_the_backend_is_closed(
    command: Command, monkeypatch: pytest.MonkeyPatch, failure: type[BaseException], code: int
) -> None:
    """With --jobs other threads make them: a full disk was a traceback and exit code 1, and an interrupt might hang."""
    ended = list[object]()

    def call(*given: Any) -> Iterator[object]:
        try:
            yield from run_in_order(*given)
        except BaseException as error:
            ended.append(type(error))
            raise

    def fail(*_: object) -> NoReturn:
        raise failure

    run_in_order = run_suite._run_in_order
    monkeypatch.setattr(run_suite, "_run_in_order", call)
    monkeypatch.setattr("conformance.verdict.waive.apply_waivers", fail)
    monkeypatch.setattr("conformance.isolate.backend.close_backend", ended.append)
    command.run("reference").expect(code)
    assert [ended[-2], type(ended[-1])] == [failure, Reference]


def test_reports_of_an_earlier_run_do_not_outlive_its_results(
    reporting: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    reporting.run("reference")
    assert "conforms" in (reporting.out / "summary.md").read_text(encoding="utf-8")
    monkeypatch.setattr("conformance.verdict.waive.apply_waivers", interrupt)
    assert reporting.run("reference").code == 130
    assert [path.name for path in reporting.out.iterdir()] == ["results.jsonl.part"]


def test_failures_are_grouped_with_place_and_command(command: Command) -> None:
    said = command.run(mini("Flushes")).expect(
        1, text="subnormals flushed · breaks the text: same-content", out="few0.yaml:"
    )
    repeats, explains = next(pair for pair in pairwise(said.out.splitlines()) if "conformance run" in pair[0])
    assert explains.startswith(f"      conformance explain --suite {command.folder} ")
    again = command(*shlex.split(repeats)[1:], "--out", command.folder / "again").expect(1)
    assert "subnormals flushed · breaks the text: same-content · 3 tests" in again.text
    assert table_of(said.out)["static-oneapi"][:3] == ["yes", "yes", "no"]
    assert said.out.splitlines()[-1].startswith("results: "), "no report was written"


def test_rows_that_differ_in_the_rule_only_have_a_line(command: Command) -> None:
    said = command.run(mini("Accepts"), "--type", "f32").expect(1).out.splitlines()
    line = next(line for line in said if line.startswith("    also "))
    rule, tests, words = re.fullmatch(r" +also ([a-z-]+) · (\d+) tests?: conformance (run .*)", line).groups()  # type: ignore[union-attr]
    again = command(*shlex.split(words), "--json", "--out", command.folder / "again").expect(1).data
    assert {blame["rule"] for failure in again["failures"] for blame in failure["blames"].values()} == {rule}
    assert int(tests) >= len(again["failures"])
    every = command.run(mini("Accepts"), "--type", "f32", "--verbose").expect(1).out
    assert "    also " not in every


def test_failures_against_text_and_rulings_count_apart(command: Command) -> None:
    said = command.run(mini("Accepts"), "--json", "--document", "static-oneapi", "--type", "f32")
    spec, results = load_spec(), read(command.out / "results.jsonl").results
    cases = command.plan.suite.cases
    rows = [r.row for r in results if r.verdicts.get("static-oneapi") == "fail" and "-f32" in r.row]
    failed = [cases[row.partition("[")[0]].rule for row in rows]
    stated = [rule for rule in failed if spec.rules[rule].authority("static-oneapi") != "our ruling"]
    assert 0 < len(stated) < len(failed)
    ours = len(failed) - len(stated)
    sentence = sentences(said)["static-oneapi"]
    assert f"accept an illegal call; accepts what the text forbids in {len(stated)}, " in sentence
    assert f", breaks only our ruling in {ours})" in sentence


def test_a_failure_in_a_document_without_the_rule_of_its_case(command: Command) -> None:
    """It is against what the call breaks there."""
    add_case(command, "id: both, rule: zero-meets-infer, src: 'T[0, 3]', shape: [0, -1, -1], expect: reject")
    said = command.run(mini("Accepts"), "--json", "-k", "both", "--type", "f32")
    for document in ("static-oneapi", "static-graph-v0.9"):
        assert "(1 of 1 test accepts an illegal call; accepts what the text forbids in 1)" in sentences(said)[document]


def test_a_ruling_that_a_document_touches_upon_is_still_a_ruling(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(miniatures.LeavesOut, "instead", "wrong")
    said = command.run(mini("LeavesOut"), "--json")
    assert any(p.document == "static-oneapi" for p in load_spec().rules["layout-is-no-content"].stated)
    assert "(3 of 58 tests give a wrong answer; breaks only our ruling in 3)" in sentences(said)["static-oneapi"]


def test_a_type_that_no_document_lists_is_noted_if_it_fails(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    add_case(command, "id: double, rule: types-listed, src: 'f64[2, 3]', shape: [6], expect: unspecified")
    said = command.run(mini("Bent"), "--json")
    assert (said.code, {s["type"] for s in said.data["standings"]}) == (0, TYPES), said
    monkeypatch.setattr(miniatures.Bent, "bent", lambda self, a, src, _: a * 0 if src.type == "f64" else a)
    said = command.run(mini("Bent"), "--json").expect(0)
    assert {s["type"]: s["standing"] for s in said.data["standings"]} == dict.fromkeys(TYPES, "conforms")
    assert any(
        note.startswith("not counted: ") and "in f64, which the documents do not list" in note
        for note in said.data["notes"]
    )


class DiesByScript(miniatures.Bent):
    """Dies at the calls that a script names, and is started again."""

    def __init__(self, *script: str) -> None:
        self.script, self.restarts = list(script), 0

    def bent(self, answer: Any, src: Any, shapes: Any) -> Any:
        if (act := self.script.pop(0)) != "lives":
            raise Crashed("SIGSEGV" if act == "dies" else 3000 * "S")
        return answer

    def restart(self) -> None:
        self.restarts += 1


@pytest.mark.parametrize(("case", "script", "steps", "words"), [
    ("flattens", "lives", "tensor", ""),
    ("flattens", "dies dies", "crash", "SIGSEGV (deterministic: again alone in a fresh process)"),
    ("flattens", "dies-wordily dies-wordily", "crash", "(deterministic: again alone in a fresh process)"),
    ("flattens", "dies lives", "crash", "(flaky: not alone in a fresh process; the call before it was eight)"),
    ("two-calls", "lives dies lives dies", "tensor crash", "(deterministic: again alone in a fresh process)"),
    (
        "two-calls", "lives dies lives lives", "tensor crash",
        "(flaky: not alone in a fresh process; the call before"),
    ("two-calls", "lives dies dies lives", "crash crash", "SIGSEGV"),
])  # fmt: skip
def test_a_row_that_died_is_called_again_and_the_worse_counts(
    tmp_path: Path, case: str, script: str, steps: str, words: str
) -> None:
    row = next(row for row in builders.plan_of_cases(tmp_path).rows if row.case.id == case)
    adapter = DiesByScript(*script.split())
    result = run_row(row, adapter, previous=Result("eight", {}, (Outcome("tensor"),)))
    assert (adapter.restarts, adapter.script) == (int("dies" in script), [])
    assert set(result.verdicts.values()) == {"fail" if "dies" in script else "pass"}
    assert " ".join(outcome.kind for outcome in result.outcomes) == steps
    assert words in str(result.outcome.message)
    if not words:
        assert result.outcome.message is None
