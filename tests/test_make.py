"""make.py leaves alone what it did not make."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import ROOT

pytestmark = pytest.mark.skipif(not (ROOT / "make.py").is_file(), reason="only a clone has make.py")


def make(folder: Path, job: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "make.py", job]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


def test_to_clean_leaves_the_keys_and_the_runs_of_the_lab(tmp_path: Path) -> None:
    """The private keys went with all of build/."""
    shutil.copy(ROOT / "make.py", tmp_path)
    for name in ("certificates/tester", "lab/numpy/results.jsonl", "reference/report.html", "lint.log"):
        (path := tmp_path / "build" / name).parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert make(tmp_path, "clean").returncode == 0
    assert {path.name for path in (tmp_path / "build").iterdir()} == {"certificates", "lab"}
    assert (tmp_path / "build" / "certificates" / "tester").is_file()


def test_a_link_to_the_environment_of_another_clone_stays(tmp_path: Path) -> None:
    """It was removed as if it were a folder, which ended in a traceback."""
    for name in ("make.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    (other := tmp_path / "other").mkdir()
    (other / "made-by-make.py").write_text("3.11 in /another\n", encoding="utf-8")
    (tmp_path / ".venv").symlink_to(other)
    done = make(tmp_path, "report")
    assert done.returncode == 1
    assert (
        done.stderr
        == f"make.py: {tmp_path / '.venv'} is a link to what another clone made: remove the link and try again\n"
    )
    assert [path.name for path in other.iterdir()] == ["made-by-make.py"]
