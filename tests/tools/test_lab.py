"""lab.yaml: the plan for CI, what is stale, and the commands of an environment."""

import json
import re
import shutil
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
import yaml

from conformance.adapter import REFERENCE, name_and_device, read_bundled_backends
from conformance.certificate.check import Trust, check_certificate
from conformance.evidence.results import Target, header_of, pack
from conformance.load.cases import load_suite
from conformance.model import Claims, EarlierSuite, Identity, Malformed
from conformance.site import publish as published
from tests.builders import Cli, build_site, plan_as_bundled, write_suite
from tools.lab.certificates import make_keys, sign_again
from tools.lab.environments import TESTS, Installation, lacking, list_run_words
from tools.lab.read import Environment, LabFile, SharedLibrary, load_lab
from tools.lab.state import states

CLONE = Path(__file__).parents[2]
SUITE = load_suite()
LAB_YAML = """\
by: we
runners: {default: [ubuntu-latest], gpu: [self-hosted, gpu]}
environments:
  raw: {pip: [numpy==2.4.6], backends: [numpy]}
  cuda: {pip: [torch==2.13.0], needs: [gpu], target: {types: [bf16], large: true}, timeout: 60, backends: [torch@cuda]}
"""


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    path = tmp_path / "lab.yaml"
    path.write_text(LAB_YAML, encoding="utf-8")
    return path


# ── reading ───────────────────────────────────────────────────────────────────────────────────────
def test_every_backend_of_the_clones_own_lab_has_a_version() -> None:
    lab = load_lab(CLONE / "lab.yaml")
    found = [(each.name, backend) for each in lab.environments.values() for backend in each.backends]
    assert [pair for pair in found if lab.environments[pair[0]].version_of(pair[1]) is None] == []
    assert all(each.tests for each in lab.environments.values())


def test_no_two_environments_of_the_clone_write_the_same_results(tmp_path: Path) -> None:
    folders = [state.folder for state in states(load_lab(CLONE / "lab.yaml"), tmp_path, SUITE, 90)]
    assert sorted(set(folders)) == sorted(folders)


def test_every_bundled_backend_is_in_lab_yaml() -> None:
    lab = load_lab(CLONE / "lab.yaml")
    comment = (CLONE / "lab.yaml").read_text(encoding="utf-8").partition("runners:")[0].partition("Not published:")[2]
    run = {name_and_device(backend)[0] for each in lab.environments.values() for backend in each.backends}
    assert {name for name in read_bundled_backends() if name not in {*run, REFERENCE} and name not in comment} == set()


def test_every_pattern_of_tests_finds_a_file() -> None:
    assert [pattern for pattern in TESTS if not [*(CLONE / "tests").glob(pattern)]] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[numpy-rwa]", "lab.yaml:4: environments.raw: unknown backend 'numpy-rwa'; did you mean 'numpy'?"),
        ("[numpy], need: [gpu]", "lab.yaml:4: unknown key 'need'; did you mean 'needs'?"),
        ("[numpy], needs: [a lot]", "is not gpu, program:NAME or instructions:NAME"),
        ("[mine], program: node mine.mjs", "'version' is needed beside 'program'"),
    ],
)
def test_a_mistake_in_the_lab_is_a_line(text: str, message: str, lab: Path, run_lab: Cli) -> None:
    lab.write_text(LAB_YAML.replace("[numpy]", text), encoding="utf-8")
    run_lab("plan", "--lab", lab).expect(2, err=message)
    with pytest.raises(Malformed):
        load_lab(lab)


def test_a_lab_that_is_not_there_is_a_line(tmp_path: Path, run_lab: Cli) -> None:
    run_lab("plan", "--lab", tmp_path / "none.yaml").expect(2, err="does not exist; it lies at the top of a clone")


# ── the plan ──────────────────────────────────────────────────────────────────────────────────────
def test_the_plan_is_the_matrix_of_a_ci(lab: Path, run_lab: Cli) -> None:
    jobs = run_lab("plan", "--lab", lab, "--json").expect(0).data["include"]
    assert [(job["name"], job["runner"]) for job in jobs] == [
        ("raw", ["ubuntu-latest"]),
        ("cuda", ["self-hosted", "gpu"]),
    ]
    assert jobs[1]["versions"] == {"torch@cuda": "2.13.0"}
    assert jobs[1]["target"] == {"types": ["bf16"], "large": True}


def test_the_plan_of_some_environments(lab: Path, run_lab: Cli) -> None:
    out = run_lab("plan", "cuda", "--lab", lab).expect(0).out
    assert "torch@cuda" in out
    assert "numpy" not in out
    run_lab("plan", "cudda", "--lab", lab).expect(2, err="did you mean 'cuda'?")


def test_gitlab_example_uses_the_runners_of_the_lab() -> None:
    jobs = yaml.safe_load((CLONE / "examples/ci/lab.gitlab.yml").read_text(encoding="utf-8"))
    lab = load_lab(CLONE / "lab.yaml")
    for job in (job for job in jobs.values() if isinstance(job, dict) and "parallel" in job):
        for name in job["parallel"]["matrix"][0]["LAB"]:
            labels = lab.labels(lab.environments[name])
            assert (labels[-1] in job["tags"]) == (labels[0] == "self-hosted"), name


def test_the_example_for_github_takes_the_matrix_of_the_plan(lab: Path, run_lab: Cli) -> None:
    jobs = yaml.safe_load((CLONE / "examples/ci/lab.github.yml").read_text(encoding="utf-8"))["jobs"]
    (job, *_) = run_lab("plan", "--lab", lab, "--json").expect(0).data["include"]
    assert set(re.findall(r"matrix\.(\w+) ", json.dumps(jobs["run"]))) <= job.keys()
    assert [jobs[name]["needs"] for name in ("run", "publish")] == ["plan", "run"]


# ── what is stale ─────────────────────────────────────────────────────────────────────────────────
def publish(reports: Path, folder: str, days: int = 0, **changes: Any) -> None:
    """Write the first line of some results; their state is read from nothing else."""
    started = datetime.now(timezone.utc) - timedelta(days=days, minutes=1)
    header = header_of(SUITE, Identity("numpy", "2.4.6"), Claims(("*",)), Target(), "numpy")
    header["started"] = started.isoformat(timespec="seconds")
    for key, value in changes.items():
        header[key] = {**header[key], **value} if isinstance(value, dict) else value
    (reports / folder).mkdir(parents=True)
    (reports / folder / "results.jsonl.xz").write_bytes(pack(json.dumps(header).encode() + b"\n"))


def state_of(lab: Path, reports: Path, days: int = 90) -> dict[str, tuple[str, str]]:
    return {each.folder: (each.word, each.why) for each in states(load_lab(lab), reports, SUITE, days)}


def test_results_are_current_until_they_are_old(lab: Path, tmp_path: Path) -> None:
    publish(tmp_path / "reports", "numpy-2.4.6", days=40)
    assert state_of(lab, tmp_path / "reports")["numpy-2.4.6"] == ("current", "")
    assert state_of(lab, tmp_path / "reports", days=39)["numpy-2.4.6"] == ("stale", "40 days old")


@pytest.mark.parametrize(
    ("version", "changes", "state"),
    [
        ("2.4.6", {"suite": {"digest": "0" * 64}}, ("stale", "another suite")),
        ("2.4.6", {"backend": {"digest": "0" * 64}}, ("stale", "another adapter")),
        ("2.4.6", {"suite": {"digest": "0"}, "backend": {"digest": None}}, ("stale", "another suite; another adapter")),
        ("2.4.6", {"format": "reshape-conformance-results-1"}, ("stale", "another format")),
        ("1.0", {}, ("in no environment", "")),
    ],
)
def test_results_of_something_else_are_stale_or_named(
    version: str, changes: dict[str, Any], state: tuple[str, str], lab: Path, tmp_path: Path
) -> None:
    publish(tmp_path / "reports", f"numpy-{version}", **changes)
    found = state_of(lab, tmp_path / "reports")
    assert found[f"numpy-{version}"] == state
    assert found["torch-cuda-2.13.0"] == ("untried", "needs gpu")


def test_status_ends_with_1_and_the_next_command(lab: Path, tmp_path: Path, run_lab: Cli) -> None:
    publish(tmp_path / "reports", "numpy-2.4.6", days=91)
    words = ["status", "--lab", lab, "--out", tmp_path / "reports"]
    assert "next: python -m tools.lab run raw\n" in run_lab(*words).expect(1).out
    assert "1 current, 1 untried" in run_lab(*words, "--days", "100").expect(0).out
    assert run_lab(*words, "--json").expect(1).data["results"][0]["why"] == "91 days old"


def test_status_is_of_the_clone_and_of_the_named_suite(
    lab: Path, tmp_path: Path, run_lab: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish(tmp_path / "reports", "numpy-2.4.6")
    write_suite(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert "1 current" in run_lab("status", "--lab", lab).expect(0).out
    assert "stale: another suite" in run_lab("status", "--lab", lab, "--suite", tmp_path).expect(1).out


# ── environments ──────────────────────────────────────────────────────────────────────────────────
class Commands:
    """Stands in for the processes that an environment starts."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.programs: list[str] = []
        self.variables: dict[str, str] = {}
        self.code = 0

    def __call__(self, command: Sequence[str], env: dict[str, str] | None = None, **_: Any) -> Any:
        self.lines.append(" ".join(map(str, command[1:])))
        self.programs.append(command[0])
        self.variables = env or {}
        if "download" in command:
            with zipfile.ZipFile(Path(command[command.index("--dest") + 1]) / "a.whl", "w") as wheel:
                wheel.writestr("libs/libmine.so", "the library")
        return type("Done", (), {"returncode": self.code})


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Commands:
    double = Commands()
    monkeypatch.setattr("tools.lab.environments.subprocess.run", double)
    return double


def installation(tmp_path: Path, **more: Any) -> Installation:
    (tmp_path / "pyproject.toml").touch()
    made = Installation(tmp_path, Environment("mine", ("onednn",), **more))
    made.python.parent.mkdir(parents=True)
    return made


def test_an_environment_is_made_again_for_other_packages(tmp_path: Path, commands: Commands) -> None:
    made = installation(tmp_path, pip=("onednn==1",))
    assert made.make()
    assert commands.lines[0].startswith("-m venv ")
    assert commands.programs[0] == sys.executable
    assert commands.lines[1].endswith("install --quiet --no-compile --editable .[site] onednn==1")
    made.python.parent.mkdir(parents=True)
    made.python.touch()
    assert not made.make()
    assert Installation(tmp_path, made.environment._replace(pip=("onednn==2",))).make()
    commands.programs.clear()
    assert Installation(tmp_path, made.environment._replace(python="python3.99")).make()
    assert commands.programs[:2] == ["python3.99", str(made.python)]


def test_an_environment_that_cannot_be_made_is_no_environment(tmp_path: Path, commands: Commands, run_lab: Cli) -> None:
    commands.code = 1
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "lab.yaml").write_text(LAB_YAML, encoding="utf-8")
    run_lab("run", "raw", "--lab", tmp_path / "lab.yaml").expect(3, err="raw: cannot make: ")


def test_a_library_in_a_wheel_is_unpacked_and_named(tmp_path: Path, commands: Commands, monkeypatch: Any) -> None:
    monkeypatch.setenv("ONEDNN_LIBRARY", "another.so")
    library = SharedLibrary("theirs==1", "libs/libmine.so", "MINE")
    made = installation(tmp_path, library=library)
    made.make()
    made.run(["-V"])
    assert Path(commands.variables["MINE"]).read_text() == "the library"
    assert "ONEDNN_LIBRARY" not in commands.variables


PROGRAM = """\
by: we
runners: {default: [ubuntu-latest]}
environments: {mine: {build: no-such-compiler 'a b.c', program: node mine.mjs, version: "7", backends: [mine]}}
"""


def test_a_program_is_built_before_each_use_and_run_as_a_command(lab: Path, monkeypatch: Any, run_lab: Cli) -> None:
    (lab.parent / "pyproject.toml").touch()
    lab.write_text(PROGRAM, encoding="utf-8")
    monkeypatch.setattr(Installation, "make", lambda self: False)
    err = "mine: cannot build: no-such-compiler 'a b.c': No such file or directory"
    run_lab("run", "mine", "--lab", lab).expect(3, err=err)
    environment = load_lab(lab).environments["mine"]
    assert list_run_words(environment, "mine", Path("out"), 2)[3:5] == ["cmd:node mine.mjs", "--out"]
    assert state_of(lab, lab.parent / "reports") == {"mine-7": ("untried", "")}
    lab.write_text(PROGRAM.replace("node mine.mjs", "./not-built-here"), encoding="utf-8")
    publish(lab.parent / "reports", "mine-7")
    assert state_of(lab, lab.parent / "reports") == {"mine-7": ("current", "")}


def test_a_run_has_the_target_and_the_limit_of_its_environment(lab: Path) -> None:
    words = list_run_words(load_lab(lab).environments["cuda"], "torch@cuda", Path("out"), 2)
    assert " ".join(words[3:]) == "torch@cuda --out out --jobs 2 --timeout 60 --tester we --type bf16 --large"


def test_a_run_is_published_unless_the_backend_could_not_start(lab: Path, commands: Commands, run_lab: Cli) -> None:
    (lab.parent / "pyproject.toml").touch()
    run_lab("run", "raw", "--lab", lab).expect(0)
    assert "-m conformance run numpy" in commands.lines[-2]
    assert f"-m conformance publish {lab.parent / 'reports'}" in commands.lines[-1]


def test_what_one_environment_lacks_stops_no_other(lab: Path, commands: Commands, run_lab: Cli) -> None:
    (lab.parent / "pyproject.toml").touch()
    lab.write_text(f"{LAB_YAML}  older: {{pip: [numpy==2.0.2], backends: [numpy]}}\n", encoding="utf-8")
    done = run_lab("run", "raw", "older", "cuda", "--lab", lab).expect(3)
    assert "cuda: this machine lacks gpu; torch@cuda: untried" in done.out
    folders = [lab.parent / "build" / "lab" / name / "numpy" for name in ("raw", "older")]
    assert [line for line in commands.lines if " publish " in line] == [
        f"-m conformance publish {lab.parent / 'reports'} {folders[0]} {folders[1]}"
    ]


def test_a_part_of_the_suite_keeps_no_other_run_back(
    lab: Path, commands: Commands, run_lab: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    (lab.parent / "pyproject.toml").touch()
    monkeypatch.setattr("tools.lab.__main__.lacking", lambda environment: [])
    said = run_lab("run", "raw", "cuda", "--lab", lab).expect(0).out
    out = lab.parent / "build" / "lab"
    assert f"torch@cuda: not published, as only a part of the suite was run; its results are in {out}" in said
    assert commands.lines[-1] == f"-m conformance publish {lab.parent / 'reports'} {out / 'raw' / 'numpy'}"


def test_tests_that_a_signal_ends_are_no_success(lab: Path, monkeypatch: pytest.MonkeyPatch, run_lab: Cli) -> None:
    """A library that crashed in one environment was covered by the success of another one."""
    (lab.parent / "pyproject.toml").touch()
    ends = iter([-11, 0])

    def run(command: Sequence[str], **_: Any) -> Any:
        return type("Done", (), {"returncode": next(ends) if "pytest" in command else 0})

    monkeypatch.setattr("tools.lab.environments.subprocess.run", run)
    run_lab("test", "raw", "cuda", "--lab", lab).expect(139)


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen, of OpenSSH")
def test_backends_are_certified_run_again_published_and_listed(lab: Path, monkeypatch: Any, run_lab: Cli) -> None:
    lines: list[str] = []

    def run(_: Installation, words: Sequence[str]) -> int:
        lines.append(" ".join(words))
        return 0

    monkeypatch.setattr(Installation, "make", lambda self: False)
    monkeypatch.setattr(Installation, "run", run)
    monkeypatch.setattr("tools.lab.__main__.lacking", lambda environment: [])
    reports = lab.parent / "reports"
    (reports / "signers").parent.mkdir()
    (reports / "signers").write_text("an earlier signer\n")
    assert "cuda: runs a part of the suite" in run_lab("certify", "cuda", "--lab", lab).expect(3).out
    lines.clear()
    run_lab("certify", "raw", "--lab", lab).expect(0)
    keys, out = lab.parent / "build" / "certificates", lab.parent / "build" / "lab" / "raw" / "numpy"
    signed = f"--key {keys / 'tester'} --out {out}"
    assert lines[0].endswith(f"certify numpy --timeout 10 --tester we {signed}")
    assert lines[1].startswith(f"-m conformance audit {out} numpy --allowed {reports / 'signers'}")
    assert lines[1].endswith(f"--key {keys / 'issuer'} --issuer we")
    assert lines[2] == f"-m conformance publish {reports} {out}"
    signers = (reports / "signers").read_text().splitlines()
    assert signers[0] == "an earlier signer"
    assert [line.split()[1] for line in signers[1:]] == [
        'namespaces="reshape-conformance"', 'namespaces="reshape-conformance-issuer"',
    ]  # fmt: skip
    run_lab("certify", "raw", "--lab", lab).expect(0)
    assert (reports / "signers").read_text().splitlines() == signers, "the keys are made once"


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen, of OpenSSH")
def test_what_a_later_suite_concludes_is_signed_again(tmp_path: Path) -> None:
    reports, plan = build_site(tmp_path), plan_as_bundled(tmp_path)
    later = replace(plan, suite=replace(plan.suite, digest="b" * 64, earlier={plan.suite.digest: EarlierSuite()}))
    make_keys(tmp_path, reports)
    assert list(sign_again(tmp_path, reports, plan)) == [("right-1", "unchanged")]
    assert list(sign_again(tmp_path, reports, later)) == [("right-1", "signed again")]
    trust = Trust(reports / "signers")
    assert list(sign_again(tmp_path, reports, later)) == [("right-1", "unchanged")]
    for publication in published.prepare_again(reports, later, trust):
        published.publish(publication)
    assert check_certificate(reports / "right-1", later, trust).signer is not None
    page = (reports / "right-1" / "report.html").read_text()
    assert f"{plan.suite.digest[:12]}, judged by {'b' * 12}, which has all its rows" in page
    (reports / "right-1" / "audit.json").touch()
    assert "who has to sign again" in dict(sign_again(tmp_path, reports, later))["right-1"]


def test_what_the_machine_lacks_is_said_and_nothing_is_run(lab: Path, commands: Commands, run_lab: Cli) -> None:
    missing = Environment("all", ("reference",), needs=("program:no-such-program", "instructions:no_such"))
    assert lacking(missing) == [*missing.needs]
    assert lacking(missing._replace(needs=("program:sh",))) == []
    assert lacking(missing._replace(needs=(), python="python3.99")) == ["program:python3.99"]
    lab.write_text(LAB_YAML.replace("needs: [gpu]", 'needs: ["program:no-such-program"]'), encoding="utf-8")
    out = run_lab("run", "cuda", "--lab", lab).expect(3).out
    assert "cuda: this machine lacks program:no-such-program; torch@cuda: untried" in out
    assert commands.lines == []


def test_labels_are_those_of_the_first_need_that_has_some() -> None:
    lab = LabFile({"default": ("a",), "gpu": ("b",)}, {})
    assert lab.labels(Environment("x", (), needs=("program:clang", "gpu"))) == ("b",)
    assert lab.labels(Environment("x", (), needs=("program:clang",))) == ("a",)
