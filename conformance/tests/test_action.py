"""What others' CI runs: the shell steps of action.yml and of docs/ci.md, run here as a runner would."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

import conformance
from conformance.tests import small

ROOT = Path(conformance.__file__).parents[1]
ACTION = ROOT / "action.yml"
pytestmark = pytest.mark.skipif(not ACTION.is_file(), reason="the action stays in the clone")
UNTRUE = """
from conformance.adapters.numpy_reference import NumpyReference


class Mine(NumpyReference):
    def check(self, node, type_):
        pass
"""


def action() -> dict[str, Any]:
    return dict(yaml.safe_load(ACTION.read_text(encoding="utf-8")))


def steps() -> dict[str, dict[str, Any]]:
    return {step["id"]: step for step in action()["runs"]["steps"]}


class Done(NamedTuple):
    """What a step came to."""

    code: int
    out: str
    summary: str
    outputs: dict[str, str]


class Runner:
    """Runs single shell steps in a folder, with inputs for the expressions in their environment."""

    def __init__(self, folder: Path, **inputs: str) -> None:
        self.folder = folder
        given: dict[str, str] = {name: value.get("default", "") for name, value in action()["inputs"].items()}
        self.inputs: dict[str, str] = given | {"python": sys.executable} | inputs
        self.outputs: dict[str, str] = {}
        commands = folder / "bin"
        commands.mkdir(exist_ok=True)
        command = commands / "conformance"
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m conformance "$@"\n', encoding="utf-8")
        command.chmod(0o755)
        python_path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
        self.environment = os.environ | {
            "PATH": f"{commands}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": python_path,
            "GITHUB_OUTPUT": str(folder / "output"), "GITHUB_STEP_SUMMARY": str(folder / "summary"),
        }  # fmt: skip

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

    def run(self, step: str) -> Done:
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
        return Done(done.returncode, done.stdout, (self.folder / "summary").read_text(encoding="utf-8"), outputs)

    def bash(self, words: list[str], given: Mapping[str, str] = {}) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", *words], cwd=self.folder, env=self.environment | dict(given), capture_output=True, text=True,
            check=False, timeout=300,
        )  # fmt: skip


@pytest.fixture
def few(tmp_path: Path) -> str:
    return f"--cases {small.cases(tmp_path)} --isolation none"


def test_a_backend_that_conforms_passes_through_every_step(tmp_path: Path, few: str) -> None:
    runner = Runner(tmp_path, backend="numpy", arguments=few)
    ran = runner.run("run")
    assert ran.code == 0
    assert ran.outputs["report"] == "conformance-report/report.html"
    assert ran.summary.startswith("# Reshape conformance")
    assert "::error" not in runner.run("annotate").out
    assert runner.run("compare").summary == ""  # there was no run before
    assert runner.run("keep").code == 0
    assert runner.run("conclude").code == int(ran.outputs["exit-code"])


def test_a_backend_that_fails_is_annotated_and_ends_with_its_code(tmp_path: Path, few: str) -> None:
    (tmp_path / "mine.py").write_text(UNTRUE, encoding="utf-8")
    runner = Runner(tmp_path, backend="mine.py:Mine", arguments=few)
    ran = runner.run("run")
    assert (ran.code, ran.outputs["exit-code"]) == (0, "1")
    said = [line for line in runner.run("annotate").out.splitlines() if line]
    assert 1 <= len(said) <= 10
    assert all(line.startswith("::error title=reshape conformance, rule ") for line in said)
    assert runner.run("conclude").code == 1


def test_nothing_that_a_library_prints_is_a_command_of_the_workflow(tmp_path: Path, few: str) -> None:
    prints = "        import os\n        os.write(1, b'\\n::error::x\\n::stop-commands::y\\n')\n"
    (tmp_path / "mine.py").write_text(UNTRUE.replace("        pass\n", prints), encoding="utf-8")
    runner = Runner(tmp_path, backend="mine.py:Mine", arguments=few)
    ran = runner.run("run")
    assert (ran.code, ran.outputs["exit-code"]) == (0, "1")
    first, *between = (line for line in ran.out.splitlines() if line)
    token = first.removeprefix("::stop-commands::")
    assert re.fullmatch("[0-9a-f]{32}", token)
    assert "::error::x" in between, "the library did print"
    assert [line for line in between if token in line] == between[-1:] == [f"::{token}::"]


def test_a_run_is_compared_with_the_one_that_was_kept(tmp_path: Path) -> None:
    few = "--isolation none -k zero-copies"
    assert Runner(tmp_path, backend="numpy", arguments=few).run("run").code == 0
    assert Runner(tmp_path, backend="numpy").run("keep").code == 0
    assert (tmp_path / ".reshape-conformance-last" / "results.jsonl").is_file()
    compared = Runner(tmp_path, backend="numpy").run("compare")
    assert compared.code == 0
    assert compared.summary


def test_a_backend_that_cannot_start_still_concludes_with_its_code(tmp_path: Path) -> None:
    runner = Runner(tmp_path, backend="nunpy")
    code = runner.run("run").outputs["exit-code"]
    assert code not in ("", "0")
    for step in ("annotate", "compare", "keep"):
        assert runner.run(step).code == 0
    assert runner.run("conclude").code == int(code)


def test_an_attested_run_hands_over_the_predicate_and_the_files_that_were_tested(tmp_path: Path) -> None:
    runner = Runner(tmp_path, backend="numpy", arguments=f"--cases {small.cases(tmp_path)}", attest="true")
    assert runner.run("run").outputs["exit-code"] == "0"
    out = tmp_path / "conformance-report"
    statement = json.loads((out / "statement.json").read_text(encoding="utf-8"))
    assert runner.run("predicate").outputs == {"type": statement["predicateType"]}
    assert json.loads((out / "predicate.json").read_text(encoding="utf-8")) == statement["predicate"]
    lines = (out / "subjects.sha256").read_text(encoding="utf-8").splitlines()
    assert lines
    assert all(re.fullmatch(r"[0-9a-f]{64}  \S.*", line) for line in lines)
    named = [f"{file['digest']['sha256']}  {file['name']}" for file in statement["subject"]]
    assert set(named) <= set(lines) or len(lines) > 6


def test_a_run_that_did_not_start_attests_nothing(tmp_path: Path) -> None:
    runner = Runner(tmp_path, backend="nunpy", attest="true")
    runner.run("run")
    assert runner.run("predicate").outputs == {}


def test_the_attestation_gets_what_the_step_before_wrote_and_only_if_asked() -> None:
    attest, predicate = steps()["attest"], steps()["predicate"]
    assert attest["uses"] == "actions/attest@v4"
    assert attest["if"] == "steps.predicate.outputs.type != ''"
    assert predicate["if"] == "inputs.attest == 'true'"
    assert action()["inputs"]["attest"]["default"] == "false"
    given = attest["with"]
    assert given["predicate-type"] == "${{ steps.predicate.outputs.type }}"
    for name, file in (("predicate-path", "predicate.json"), ("subject-checksums", "subjects.sha256")):
        assert given[name] == f"${{{{ inputs.out }}}}/{file}"
        assert file in predicate["run"]
    workflow = yaml.safe_load(snippet("Attested by GitHub", "yaml"))
    assert workflow["permissions"] == {"contents": "read", "id-token": "write", "attestations": "write"}
    assert set(workflow["jobs"]["reshape"]["steps"][-1]["with"]) <= set(action()["inputs"])


def test_an_output_folder_of_two_lines_adds_no_output(tmp_path: Path, few: str) -> None:
    ran = Runner(tmp_path, backend="numpy", arguments=few, out="out\nexit-code=0").run("run")
    assert ran.code != 0
    assert ran.outputs == {}
    assert ran.out.count("::error") == 1


def test_no_step_pastes_an_input_into_its_script() -> None:
    """An expression inside a script would let an input write shell."""
    assert all("${{" not in step.get("run", "") for step in steps().values())


def test_the_last_step_concludes_and_every_shell_is_named() -> None:
    assert list(steps())[-1] == "conclude"
    assert all(("uses" in step) != (step.get("shell") == "bash") for step in steps().values())


def test_the_install_step_installs_the_folder_of_the_action() -> None:
    assert steps()["install"]["env"]["SUITE"] == "${{ github.action_path }}"


# ── docs/ci.md ────────────────────────────────────────────────────────────────────────────────────
def snippet(title: str, language: str) -> str:
    part = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8").partition(f"# {title}\n")[2]
    found = re.search(rf"```{language}\n(.*?)```", part, re.DOTALL)
    assert found
    return found[1]


def test_the_hook_of_pre_commit_checks_the_cases_that_the_docs_name(tmp_path: Path) -> None:
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    (block,) = re.findall(r"```yaml\n(repos:.*?)```", (ROOT / "docs" / "ci.md").read_text(encoding="utf-8"), re.DOTALL)
    (used,) = yaml.safe_load(block)["repos"][0]["hooks"]
    assert used["id"] == hook["id"]
    dialect = ROOT / "examples" / "dialect"
    words = [word.replace("my/", f"{dialect}/") for word in (*shlex.split(hook["entry"]), *used["args"])]
    assert words[0] == "conformance"
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(hook["files"], "my/cases/a.yaml")


def test_the_workflow_of_the_docs_gives_the_action_inputs_that_it_has() -> None:
    workflow = yaml.safe_load(snippet("GitHub Actions", "yaml"))
    used = workflow["jobs"]["reshape"]["steps"][-1]["with"]
    assert set(used) <= set(action()["inputs"])
    assert "backend" in used


SCRIPTS = {
    "GitLab": lambda: "\n".join(yaml.safe_load(snippet("GitLab CI", "yaml"))["reshape"]["script"]),
    "Jenkins": lambda: textwrap.dedent(re.search(r"'''(.*?)'''", snippet("Jenkins", "groovy"), re.DOTALL)[1]),  # type: ignore[index]
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCRIPTS)
def test_the_scripts_of_the_docs_run_as_they_stand(name: str, tmp_path: Path) -> None:
    """But for installing, which needs an index: pip and the environment are stood in for."""
    runner = Runner(tmp_path)
    (tmp_path / "ci").mkdir()
    (tmp_path / "ci" / "mine.py").write_text(
        UNTRUE.replace("def check(self, node, type_):\n        pass", "pass"), "utf-8"
    )
    for stand_in in ("pip", "python3"):
        (tmp_path / "bin" / stand_in).write_text("#!/bin/sh\n", encoding="utf-8")
        (tmp_path / "bin" / stand_in).chmod(0o755)
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / ".venv" / "bin" / "activate").write_text("", encoding="utf-8")
    done = runner.bash(["-e", "-c", SCRIPTS[name]()])
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "conformance-report" / "junit.xml").is_file()
