"""docs/threats.md names tests that there are, and its recipe for a sandbox works where there is one."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .builders import ROOT, write_suite

PAGE = ROOT / "docs" / "threats.md"
HERE = pytest.mark.skipif(not PAGE.is_file(), reason="docs/ is not beside an installed suite")
TEST_NAME = re.compile(r"`(test_\w+\.py)::(test_\w+)`")


def functions(file: str) -> set[str]:
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in Path(__file__).parent.rglob(file)]
    return {node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)}


@pytest.mark.slow
@HERE
def test_every_attack_on_the_page_names_a_test_that_there_is() -> None:
    text = PAGE.read_text(encoding="utf-8")
    named = TEST_NAME.findall(text + (PAGE.parent / "certify.md").read_text(encoding="utf-8"))
    assert len(named) > 80
    assert [f"{file}::{name}" for file, name in named if name not in functions(file)] == []
    table = text.partition("| attack | test |")[2].partition("\n## ")[0]
    rows = [line for line in table.splitlines()[2:] if line.startswith("|")]
    assert all(TEST_NAME.search(row) for row in rows), "an attack without a test"


ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}


def sandboxes() -> bool:
    words = ["bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "true"]
    return shutil.which("bwrap") is not None and subprocess.run(words, check=False, capture_output=True).returncode == 0


@pytest.mark.slow
@HERE
@pytest.mark.skipif(not sandboxes(), reason="no bwrap that works")
def test_a_worker_in_the_sandbox_of_the_page_cannot_write(tmp_path: Path) -> None:
    text = "from conformance.adapters.reference import Reference\n"
    text += f"try:\n    open({str(tmp_path / 'written')!r}, 'w')\nexcept OSError:\n    pass\n"
    text += "class Mine(Reference):\n    pass\n"
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    recipe = re.search(r'conformance run "cmd:(bwrap .*?)"\n', page, re.DOTALL)
    assert recipe is not None
    command = recipe[1].replace("\\\n", " ").replace("$(command -v python3)", sys.executable)
    command = command.replace("$PWD", str(tmp_path))
    command = command.replace("--unshare", f"--ro-bind {ROOT} {ROOT} --unshare", 1)  # it may be in /tmp
    words = [sys.executable, "-m", "conformance", "run", f"cmd:{command}"]
    words += ["--drawn-rows", "0", "--suite", str(write_suite(tmp_path)), "--out", str(tmp_path / "out")]
    done = subprocess.run(words, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (tmp_path / "written").exists()
