"""The shell steps of action.yml and of docs/ci.md, run as a runner would run them."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from tests import builders
from tests.builders import ROOT

ACTION = ROOT / "action.yml"
pytestmark = pytest.mark.skipif(not ACTION.is_file(), reason="the action stays in the clone")
RIGHT = (
    "from conformance import Identity\nfrom conformance.adapters.reference import Reference\n\n\n"
    "class Mine(Reference):\n    identity = Identity('mine', '1')\n    pass\n"
)
FEW_DRAWN = """from conformance.cli import main, request
from conformance.runner import planted_backends
from tests.without_planted import run_all
request.count_drawn_rows, planted_backends.run_all = lambda: 20, run_all
raise SystemExit(main.main())
"""
"""The command, which has no option for fewer drawn rows in a certificate; the planted backends are not called."""
UNTRUE = RIGHT.replace("    pass\n", "    def check(self, node, type_):\n        pass\n")


def action() -> dict[str, Any]:
    return dict(yaml.safe_load(ACTION.read_text(encoding="utf-8")))


def steps() -> dict[str, dict[str, Any]]:
    return {step["id"]: step for step in action()["runs"]["steps"]}


class StepOutcome(NamedTuple):
    """The result of a step."""

    code: int
    out: str
    summary: str
    outputs: dict[str, str]


class Runner:
    """Runs single shell steps in a folder, with inputs for the expressions in their environment.

    `conformance` is the real command, until `rehearse` puts one in its place that knows the words that were rehearsed.
    """

    def __init__(self, folder: Path, **inputs: str) -> None:
        self.folder = folder
        given: dict[str, str] = {name: value.get("default", "") for name, value in action()["inputs"].items()}
        commands = folder / "bin"
        self.inputs: dict[str, str] = given | {"python": str(commands / "python")} | inputs
        self.outputs: dict[str, str] = {}
        self.rehearsed: dict[str, str] = {}
        commands.mkdir(exist_ok=True)
        python = shlex.quote(sys.executable)
        to_command = '[ "$1 $2" != "-c $START" ] || { shift 2; exec conformance "$@"; }'
        self.stand_in("python", f'{to_command}\nexec {python} "$@"')
        self.stand_in("conformance", f'exec {python} -m conformance "$@"')
        python_path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        self.environment = os.environ | {
            "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": python_path,
            "GITHUB_OUTPUT": str(folder / "output"), "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        }  # fmt: skip

    def stand_in(self, command: str, script: str = "") -> None:
        """Put a command of that name in front of all others."""
        path = self.folder / "bin" / command
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def rehearse(self, words: str, said: builders.CommandOutput) -> None:
        """From now on `conformance` says what it said in this process, and leaves its files, if the words agree."""
        out, report = self.folder / f"said-{len(self.rehearsed)}", self.folder / "conformance-report"
        out.write_text(said.out, encoding="utf-8")
        left = shutil.copytree(report, f"{out}-left") if report.exists() else None
        again = f"mkdir -p {shlex.quote(str(report))}; cp -R {left}/. {shlex.quote(str(report))}; " if left else ""
        self.rehearsed[words] = f"{shlex.quote(words)}) {again}cat {shlex.quote(str(out))}; exit {said.code};;"
        self.stand_in("conformance", "\n".join(['case "$*" in', *self.rehearsed.values(), "*) exit 99;;", "esac"]))

    def expression(self, text: str) -> str:
        """The few expressions that the action uses."""
        match re.fullmatch(r"\$\{\{ (.+) \}\}", text):
            case None:
                return text
            case found if found[1].startswith("inputs.") and " || " in found[1]:
                name, _, other = found[1].partition(" || ")
                return self.inputs[name.removeprefix("inputs.")] or other.strip("'")
            case found if found[1].startswith("inputs."):
                return self.inputs[found[1].removeprefix("inputs.")]
            case found if found[1].startswith("steps.run.outputs."):
                return self.outputs[found[1].removeprefix("steps.run.outputs.")]
            case found:
                assert found[1] == "github.action_path"
                return str(ROOT)

    def run(self, step: str) -> StepOutcome:
        for name in ("output", "summary"):
            (self.folder / name).write_text("", encoding="utf-8")
        entry = steps()[step]
        given = {name: self.expression(text) for name, text in entry.get("env", {}).items()}
        script = self.folder / f"{step}.sh"
        script.write_text(entry["run"], encoding="utf-8")
        done = self.bash(["--noprofile", "--norc", "-eo", "pipefail", str(script)], given)
        lines = (self.folder / "output").read_text(encoding="utf-8").splitlines()
        outputs = dict(line.split("=", 1) for line in lines)
        self.outputs |= outputs
        return StepOutcome(done.returncode, done.stdout, (self.folder / "summary").read_text(encoding="utf-8"), outputs)

    def bash(self, words: list[str], given: Mapping[str, str] = {}) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", *words], cwd=self.folder, env=self.environment | dict(given), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False, timeout=300,  # a workflow reads commands in both
        )  # fmt: skip


@pytest.fixture
def few(tmp_path: Path) -> str:
    return f"--suite {builders.write_suite(tmp_path)} --isolation none --drawn-rows 0"


Rehearse = Callable[[Runner, str], builders.CommandOutput]


@pytest.fixture
def rehearse(tmp_path: Path, cli: builders.Cli, monkeypatch: pytest.MonkeyPatch) -> Rehearse:
    """Runs a command in this process, in the folder of the runner, for a step that gives the very same words."""
    monkeypatch.chdir(tmp_path)

    def rehearse(runner: Runner, words: str) -> builders.CommandOutput:
        said = cli(*shlex.split(words))
        runner.rehearse(words, said)
        return said

    return rehearse


@pytest.mark.slow
def test_a_backend_that_conforms_passes_through_every_step(tmp_path: Path, few: str, rehearse: Rehearse) -> None:
    runner = Runner(tmp_path, backend="reference", arguments=few)
    rehearse(runner, f"run reference --out conformance-report {few}")
    ran = runner.run("run")
    assert ran.code == 0
    assert ran.outputs["report"] == "conformance-report/report.html"
    assert ran.summary.startswith("# Reshape conformance")
    assert "::error" not in runner.run("annotate").out
    assert runner.run("compare").summary == ""  # there was no run before
    assert runner.run("keep").code == 0
    assert runner.run("conclude").code == int(ran.outputs["exit-code"]) == 0
    kept = (tmp_path / ".reshape-conformance-last" / "results.jsonl").read_bytes()
    assert kept == (tmp_path / "conformance-report" / "results.jsonl").read_bytes()
    rehearse(runner, "diff .reshape-conformance-last conformance-report --out conformance-report/diff.md").expect(0)
    compared = runner.run("compare")
    assert compared.code == 0
    assert compared.summary
    assert "::warning" not in compared.out


def test_failures_are_annotations_and_the_code_is_1(tmp_path: Path, few: str, rehearse: Rehearse) -> None:
    (tmp_path / "mine.py").write_text(UNTRUE, encoding="utf-8")
    runner = Runner(tmp_path, backend="mine.py:Mine", arguments=few)
    rehearse(runner, f"run mine.py:Mine --out conformance-report {few}")
    ran = runner.run("run")
    assert (ran.code, ran.outputs["exit-code"]) == (0, "1")
    said = [line for line in runner.run("annotate").out.splitlines() if line]
    assert 1 <= len(said) <= 10
    for line in said:
        assert re.match(r"::error title=reshape conformance, rule [a-z-]+::\S+\[\S+\]: .+%0Acall: .+%0Agot: ", line)
    assert runner.run("conclude").code == 1


def test_a_run_worse_than_the_last_is_a_warning(tmp_path: Path, rehearse: Rehearse) -> None:
    runner = Runner(tmp_path, backend="reference")
    for folder in ("conformance-report", ".reshape-conformance-last"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "results.jsonl").touch()
    words = "diff .reshape-conformance-last conformance-report --out conformance-report/diff.md"
    (tmp_path / "conformance-report" / "diff.md").write_text("some rows are worse\n", encoding="utf-8")
    runner.rehearse(words, builders.CommandOutput(1, "", ""))
    compared = runner.run("compare")
    assert (compared.code, compared.summary) == (0, "some rows are worse\n")
    assert compared.out.startswith("::warning title=reshape conformance::worse than the run before")


def test_no_output_of_a_library_is_a_command_of_the_workflow(tmp_path: Path) -> None:
    runner = Runner(tmp_path, backend="mine.py:Mine")
    printed = "\n::error::x\n::stop-commands::y\n"
    runner.rehearse("run mine.py:Mine --out conformance-report", builders.CommandOutput(1, printed, ""))
    ran = runner.run("run")
    assert (ran.code, ran.outputs["exit-code"]) == (0, "1")
    first, *between = (line for line in ran.out.splitlines() if line)
    token = first.removeprefix("::stop-commands::")
    assert re.fullmatch("[0-9a-f]{32}", token)
    assert "::error::x" in between, "the library did print"
    assert [line for line in between if token in line] == between[-1:] == [f"::{token}::"]


@pytest.mark.slow
def test_a_backend_that_cannot_start_ends_with_its_code(tmp_path: Path, rehearse: Rehearse) -> None:
    runner = Runner(tmp_path, backend="nunpy")
    rehearse(runner, "run nunpy --out conformance-report")
    code = runner.run("run").outputs["exit-code"]
    assert code == "3"
    assert "the backend starts: cannot start%0Aunknown backend 'nunpy'; did you mean" in runner.run("annotate").out
    for step in ("compare", "keep"):
        assert runner.run(step).code == 0
    assert runner.run("conclude").code == int(code)


@pytest.mark.slow
@pytest.mark.parametrize("names", ["conformance.py secrets.py", "conformance/__main__.py", "conformance/__init__.py"])
def test_a_module_of_the_workspace_is_not_the_suite(tmp_path: Path, names: str) -> None:
    for name in names.split():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("print('hello')\n", encoding="utf-8")
    ran = Runner(tmp_path, backend="nunpy", python=sys.executable).run("run")
    assert "hello" not in ran.out
    assert ran.outputs["exit-code"] == "3"


def test_a_command_that_tests_nothing_does_not_pass(tmp_path: Path) -> None:
    """The results of an earlier run in the same folder do not count."""
    runner = Runner(tmp_path, backend="numpy")
    (tmp_path / "conformance-report").mkdir()
    (tmp_path / "conformance-report" / "results.jsonl").touch()
    runner.stand_in("conformance", "exit 0")
    ran = runner.run("run")
    assert "::error title=reshape conformance::the command ended with 0" in ran.out
    assert runner.run("conclude").code == 4


@pytest.mark.slow
def test_a_mistake_shows_no_report_of_an_earlier_run(tmp_path: Path, few: str, rehearse: Rehearse) -> None:
    runner = Runner(tmp_path, backend="reference", arguments=few)
    rehearse(runner, f"run reference --out conformance-report {few}")
    assert runner.run("run").summary
    runner.inputs["arguments"] = "--document nope"
    runner.rehearse("run reference --out conformance-report --document nope", builders.CommandOutput(2, "", ""))
    ran = runner.run("run")
    assert (ran.summary, ran.outputs["exit-code"]) == ("", "2")
    assert "::error title=reshape conformance::nothing began" in ran.out
    reads_reports = [name for name, step in steps().items() if "OUT" in step.get("env", {}) or name == "upload"]
    assert {name for name in reads_reports if "exit-code != '2'" not in steps()[name].get("if", "")} == {"run"}


@pytest.mark.parametrize("many", [False, True], ids=["few files", "many files"])
def test_the_predicate_names_the_digests_of_all_files(tmp_path: Path, many: bool) -> None:
    """A statement names each of a few files; it has one digest for many, which the evidence names."""
    digests = {"mine.py": "a" * 64, "lib\nmine.so": "b" * 64}
    named = {"mine.py and 1 more": "c" * 64} if many else digests
    subject = [{"name": name, "digest": {"sha256": digest}} for name, digest in named.items()]
    statement = {"predicateType": "https://type.example/v1", "predicate": {"result": "PASSED"}, "subject": subject}
    out = tmp_path / "conformance-report"
    out.mkdir()
    (out / "statement.json").write_text(json.dumps(statement), encoding="utf-8")
    footer = {"rows": 1, **({"subject": digests} if many else {})}
    (out / "results.jsonl").write_text(f'{{"rows": 0}}\n{json.dumps(footer)}\n', encoding="utf-8")
    outputs = Runner(tmp_path, backend="reference", attest="true").run("predicate").outputs
    assert outputs == {"type": "https://type.example/v1"}
    assert json.loads((out / "predicate.json").read_text(encoding="utf-8")) == {"result": "PASSED"}
    lines = (out / "subjects.sha256").read_text(encoding="utf-8").splitlines()
    assert lines == [f"{'a' * 64}  mine.py", f"{'b' * 64}  lib mine.so"]


@pytest.mark.slow
def test_an_attested_run_names_the_predicate_and_the_files(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(RIGHT, encoding="utf-8")
    backend, suite = f"{tmp_path / 'mine.py'}:Mine", builders.write_suite(tmp_path)
    runner = Runner(tmp_path, backend=backend, arguments=f"--suite {suite}", attest="true")
    (tmp_path / "few_drawn.py").write_text(FEW_DRAWN, encoding="utf-8")
    runner.stand_in("conformance", f'exec {shlex.quote(sys.executable)} {tmp_path / "few_drawn.py"} "$@"')
    assert runner.run("run").outputs["exit-code"] == "0"
    out = runner.folder / "conformance-report"
    statement = json.loads((out / "statement.json").read_text(encoding="utf-8"))
    assert runner.run("predicate").outputs == {"type": statement["predicateType"]}
    assert json.loads((out / "predicate.json").read_text(encoding="utf-8")) == statement["predicate"]
    lines = (out / "subjects.sha256").read_text(encoding="utf-8").splitlines()
    assert lines
    assert all(re.fullmatch(r"[0-9a-f]{64}  \S.*", line) for line in lines)
    named = [f"{file['digest']['sha256']}  {file['name']}" for file in statement["subject"]]
    assert set(named) <= set(lines) or len(lines) > 6


@pytest.mark.slow
def test_a_run_that_did_not_start_attests_nothing(tmp_path: Path, rehearse: Rehearse) -> None:
    runner = Runner(tmp_path, backend="nunpy", attest="true")
    rehearse(runner, "certify nunpy --out conformance-report")
    assert runner.run("run").outputs["exit-code"] == "3"
    assert runner.run("predicate").outputs == {}


def test_the_attestation_gets_what_the_step_before_wrote() -> None:
    attest, predicate = steps()["attest"], steps()["predicate"]
    given = attest["with"]
    assert given["predicate-type"] == "${{ steps.predicate.outputs.type }}"
    for name, file in (("predicate-path", "predicate.json"), ("subject-checksums", "subjects.sha256")):
        assert given[name] == f"${{{{ inputs.out }}}}/{file}"
        assert file in predicate["run"]
    workflow = yaml.safe_load(snippet("Attested by GitHub", "yaml"))
    assert workflow["permissions"] == {"contents": "read", "id-token": "write", "attestations": "write"}
    assert set(workflow["jobs"]["reshape"]["steps"][-1]["with"]) <= set(action()["inputs"])


def test_an_output_folder_of_two_lines_adds_no_output(tmp_path: Path, few: str) -> None:
    ran = Runner(tmp_path, backend="reference", arguments=few, out="out\nexit-code=0").run("run")
    assert ran.code != 0
    assert ran.outputs == {}
    assert ran.out.count("::error") == 1


def test_the_steps_are_safe_and_the_last_one_concludes() -> None:
    """An expression inside a script would let an input write shell."""
    assert all("${{" not in step.get("run", "") for step in steps().values())
    assert list(steps())[-1] == "conclude"
    bare = [name for name, step in steps().items() if re.search(r"(?<!-m )\bconformance \S", step.get("run", ""))]
    assert bare == [], "the environment of the Python that is given may not be on the path"
    assert all(("uses" in step) != (step.get("shell") == "bash") for step in steps().values())
    assert steps()["install"]["env"]["SUITE"] == "${{ github.action_path }}"


# ── docs/ci.md ────────────────────────────────────────────────────────────────────────────────────
def snippet(title: str, language: str) -> str:
    part = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8").partition(f"# {title}\n")[2]
    found = re.search(rf"```{language}\n(.*?)```", part, re.DOTALL)
    assert found
    return found[1]


def test_the_docs_show_inputs_and_outputs_as_they_are() -> None:
    """The workflow uses inputs that exist, and the tables have all of them."""
    used = yaml.safe_load(snippet("GitHub Actions", "yaml"))["jobs"]["reshape"]["steps"][-1]["with"]
    assert {"backend"} <= set(used) <= set(action()["inputs"])
    part = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8").partition("## GitHub Actions\n")[2]
    inputs, outputs = (
        part.partition("\n##")[0].partition("| input | meaning | default |\n")[2].split("| output | meaning |\n")
    )
    shown = [re.findall(r"^\| `([a-z-]+)` \|(.*) \|$", table, re.MULTILINE) for table in (inputs, outputs)]
    assert [[name for name, _ in rows] for rows in shown] == [[*action()["inputs"]], [*action()["outputs"]]]
    defaults = {name: cells.rpartition("| ")[2].strip('`"') for name, cells in shown[0]}
    for name, entry in action()["inputs"].items():
        assert entry.get("required") or entry["default"] == "" or defaults[name] == entry["default"], name


SCRIPTS = {
    "GitLab": lambda: "\n".join(yaml.safe_load(snippet("GitLab CI", "yaml"))["reshape"]["script"]),
    "Jenkins": lambda: textwrap.dedent(re.search(r"'''(.*?)'''", snippet("Jenkins", "groovy"), re.DOTALL)[1]),  # type: ignore[index]
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_the_scripts_of_the_docs_run_as_they_stand(name: str, tmp_path: Path) -> None:
    """But for installing, which needs an index: pip and the environment are stood in for. And of few cases."""
    runner = Runner(tmp_path)
    (tmp_path / "ci").mkdir()
    (tmp_path / "ci" / "mine.py").write_text(RIGHT, encoding="utf-8")
    few = shlex.quote(str(builders.write_suite(tmp_path)))
    runner.stand_in(
        "conformance", f'exec {shlex.quote(sys.executable)} -m tests.without_planted "$@" --suite {few} --drawn-rows 0'
    )
    for command in ("pip", "python3"):
        runner.stand_in(command)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "activate").write_text("", encoding="utf-8")
    done = runner.bash(["-e", "-c", SCRIPTS[name]()])
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "conformance-report" / "junit.xml").is_file()
