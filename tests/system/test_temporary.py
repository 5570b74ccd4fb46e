"""A folder for the time of a command is gone afterwards, at the latest when the next command begins."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from conformance.system.temporary import temporary_folder

KILLED = """
import os, signal
from conformance.system.temporary import temporary_folder
with temporary_folder() as folder:
    (folder / "results.jsonl").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only there is it known who is alive")
def test_what_a_killed_process_left_is_removed_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "reshape-conformance-of-a-user").mkdir()
    (tmp_path / "reshape-conformance-1-2-3-elsewhere").mkdir()  # of another space of process ids
    kept = set(tmp_path.iterdir())
    done = subprocess.run([sys.executable, "-c", KILLED], check=False, env={**os.environ, "TMPDIR": str(tmp_path)})
    assert done.returncode == -signal.SIGKILL
    (stale,) = set(tmp_path.iterdir()) - kept
    aim = tmp_path / "aim"
    aim.mkdir()
    (tmp_path / f"{stale.name}-link").symlink_to(aim)
    kept |= {aim, tmp_path / f"{stale.name}-link"}
    with temporary_folder() as outer, temporary_folder() as inner:
        assert set(tmp_path.iterdir()) == {*kept, outer, inner}
    assert set(tmp_path.iterdir()) == kept
