"""The Dockerfile runs README's two commands, as a user that is not root, without what a clone has lying about."""

import json
import re
import subprocess
from typing import Any

import pytest

from tests.builders import ROOT

pytestmark = pytest.mark.skipif(not (ROOT / "Dockerfile").is_file(), reason="only a clone has a Dockerfile")


def lines_of(name: str) -> list[str]:
    text = (ROOT / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def commands_of_readme() -> list[str]:
    """The commands of README's section “Two commands”, in its order."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = text.partition("\n## Two commands\n")[2].partition("\n## ")[0]
    return [line.partition("#")[0].strip() for line in re.findall(r"^ {4}(\S.*)$", section, re.MULTILINE)]


def targets() -> dict[str, list[str]]:
    """Each stage of the Dockerfile and its instructions."""
    found: dict[str, list[str]] = {}
    for line in lines_of("Dockerfile"):
        if stage := re.fullmatch(r"FROM \S+ AS (\w+)", line):
            found[stage[1]] = []
        else:
            found[list(found)[-1]].append(line)
    return found


def test_each_target_runs_a_command_of_the_readme() -> None:
    stages = targets()
    assert len(stages) == 3
    every = ((name, line) for name, lines in stages.items() for line in lines if line.startswith("CMD "))
    commands = {name: " ".join(json.loads(line.removeprefix("CMD "))) for name, line in every}
    assert commands == {command.split()[-1]: command for command in reversed(commands_of_readme())}
    assert list(stages)[-1] == "report"


def test_the_readme_and_the_dockerfile_name_its_targets() -> None:
    shown = (ROOT / "Dockerfile").read_text(encoding="utf-8") + (ROOT / "README.md").read_text(encoding="utf-8")
    named = set(re.findall(r"docker build --target (\w+)", shown))
    assert named == {"report", "test"}


def test_nothing_is_installed_or_run_as_root() -> None:
    words = [line.split()[0] for line in lines_of("Dockerfile")]
    assert words[: words.index("USER")] == ["FROM", "RUN"], "only the user is made by root"
    assert words.count("USER") == 1
    assert "USER root" not in lines_of("Dockerfile")


def test_the_image_holds_all_tracked_files_except_reports() -> None:
    """Docker reads .dockerignore as git reads a file of excludes, for the patterns that are in it."""
    git: dict[str, Any] = {"cwd": ROOT, "capture_output": True, "text": True}
    if subprocess.run(["git", "ls-files"], **git, check=False).stdout.count("\n") < 10:
        pytest.skip("this is no clone of git")
    patterns = ["--exclude-from", str(ROOT / ".dockerignore"), "--ignored", "--cached"]
    left_out = subprocess.run(["git", "ls-files", *patterns], **git, check=True).stdout
    assert left_out
    assert [name for name in left_out.splitlines() if not re.match(r"reports/[^/]+/", name)] == []
    assert {".git", ".venv", "build"} <= set(lines_of(".dockerignore"))
