"""On a system without what only Linux has, workers crash, hang and end as they do on Linux."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conformance.evidence.results import read
from conformance.plan.quick import quick_rows

from ..builders import ROOT

ENDS = {
    "scalar-to-one-element[StaticReshape-f16]": "tensor",
    "scalar-to-scalar[StaticReshape-f16]": "timeout",
    "one-element-to-scalar[StaticReshape-f16]": "crash",
}
BAD = """\
import os, subprocess, time
from pathlib import Path
import numpy as np
from conformance import FunctionAdapter
class Bad(FunctionAdapter):
    name, version, rejections = "bad", "1", (ValueError,)
    def reshape(self, src, shape, special_zero):
        if src.shape == shape == ():
            child = subprocess.Popen(["sleep", "60"])
            Path({pids!r}).open("a").write(f"{{os.getpid()}} {{child.pid}} ")
            time.sleep(60)
        if shape == ():
            os._exit(9)
        return np.reshape(src, shape).copy()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it is tried on Linux, with the parts switched off")
def test_workers_need_nothing_of_linux(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    (tmp_path / "bad.py").write_text(BAD.format(pids=str(pids)), encoding="utf-8")
    path = os.pathsep.join([str(ROOT / "tests" / "isolate" / "without_linux"), str(ROOT)])
    words = ["run", f"{tmp_path / 'bad.py'}:Bad", "-k", " or ".join(ENDS), "--timeout", "1", "--json"]
    words += ["--memory", "4096", "--out", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-m", "conformance", *words], cwd=tmp_path, env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1, done
    assert not ENDS.keys() & {*quick_rows().cases}, "these come first, and a first answer has more time"
    assert "--memory is not applied on this system" in json.loads(done.stdout)["notes"]
    results = {result.row: result.outcome.kind for result in read(tmp_path / "out" / "results.jsonl").results}
    assert {row: results[row] for row in ENDS} == ENDS
    left = [pid for pid in map(int, pids.read_text(encoding="utf-8").split()) if is_alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left == []


def is_alive(pid: int) -> bool:
    for _ in range(50):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        time.sleep(0.1)
    return True
