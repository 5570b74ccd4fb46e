"""Many calls of a process that crashes and hangs: each has one result, and no process or file is left."""

import gc
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.isolate.backend import use_backend
from conformance.isolate.process.launch import ProcessLimits
from conformance.model import Result
from conformance.plan.rows import Row

from .. import builders
from ..processes import children, wait
from .remote_backends import run_remote, write_acting

pytestmark = [
    pytest.mark.slow,
    pytest.mark.exhaustive,
    pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc"),
]
CALLS = 100_000
CRASHES, HANGS = 997, 9_973
"""The program crashes or hangs every so many calls. The second try of a row is a call too."""
MORE_MEMORY = 8 << 20

COUNTS = "count = int(state.read_text()) + 1; state.write_text(str(count))"
ENDS = f"count % {CRASHES} or os.abort(); count % {HANGS} or time.sleep(60)"
"""A backend that counts its calls in a file, which outlives its process, and ends some of them."""


def memory() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def left_behind() -> tuple[int, set[int], set[str]]:
    """Open files, processes, and files in the folder for temporary ones."""
    gc.collect()  # what earlier tests left open is closed by now, and not in the middle
    ours = {path.name for path in Path(tempfile.gettempdir()).iterdir()}
    return len(os.listdir("/proc/self/fd")), children(), ours


def count_outcomes(rows: int) -> tuple[Counter[str], int]:
    """Count the outcomes of so many rows, and their calls: a row that died is tried once more, alone."""
    outcomes: Counter[str] = Counter()
    calls = 0
    for _ in range(rows):
        calls += 1
        kind = "crash" if calls % CRASHES == 0 else "timeout" if calls % HANGS == 0 else "tensor"
        outcomes[kind] += 1
        calls += kind != "tensor"
    return outcomes, calls


@pytest.fixture
def _temporary(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """A separate folder for temporary files, because other tests write and remove theirs meanwhile."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))


@pytest.mark.usefixtures("_temporary")
def test_each_of_many_calls_has_one_result(tmp_path: Path) -> None:
    row = next(r for r in builders.plan_of_cases(tmp_path).rows if r.id == "flattens[StaticReshape-f32]")
    state = tmp_path / "state"
    state.write_text("0", encoding="ascii")
    backend = write_acting(tmp_path, f"{COUNTS}; {ENDS}", f"state = Path({str(state)!r})")
    before, files = left_behind(), set(tmp_path.iterdir())
    asked = 0

    def rows() -> Iterator[Row]:
        nonlocal asked
        for _ in range(CALLS):
            asked += 1
            yield row

    outcomes: Counter[str] = Counter()
    memories: list[int] = []
    with use_backend(backend, "worker", ProcessLimits(seconds=0.5, start_seconds=30.0)) as adapter:
        for number, result in enumerate(run_remote(adapter, rows()), 1):
            kind = result.outcome.kind
            outcomes[kind] += 1
            check(result, kind)
            if number % 2000 == 0:
                memories.append(memory())
    del adapter
    gc.collect()
    due, calls = count_outcomes(CALLS)
    assert asked == CALLS == sum(outcomes.values())
    assert outcomes == due
    assert due["crash"]
    assert due["timeout"]
    assert int(state.read_text(encoding="ascii")) == calls, "none was called more often, or less"
    assert memories[-1] - memories[0] < MORE_MEMORY, memories
    wait(lambda: left_behind() == before)
    assert set(tmp_path.iterdir()) - {tmp_path / "__pycache__"} == files


def check(result: Result, kind: str) -> None:
    """Assert that a row passes, or that its one death is called flaky and has a reason."""
    if kind == "tensor":
        assert set(result.verdicts.values()) == {"pass"}
        return
    assert set(result.verdicts.values()) == {"fail"}
    message = str(result.outcome.message)
    assert "flaky: not alone in a fresh process" in message
    assert ("SIGABRT" if kind == "crash" else "no answer within 0.5 s") in message
