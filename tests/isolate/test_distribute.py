"""Processes that share work: they end with the command, however it ends, and their death is one line."""

import os
import pickle
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.isolate.process.distribute import HelperDied, run_in_processes
from conformance.isolate.process.orphans import find_marked_pids

from ..processes import children, heed_signal, wait
from .remote_backends import write_acting

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, and a kernel that watches pipes")


class Sweep:
    """A sweep by two processes, all with its mark, of a backend that hangs."""

    def __init__(self, folder: Path, *more: str) -> None:
        self.out, self.called, self.mark = folder / "out", folder / "called", secrets.token_hex(16)
        hangs = write_acting(folder, f"Path({str(self.called)!r}).touch(); time.sleep(60)")
        words = ["sweep", hangs, "--rank", "2", "--max-dim", "2", "--operation", "StaticReshape", "--type", "f32"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "conformance", *words, "--jobs", "2", "--out", str(self.out), *more],
            env={**os.environ, "MARK": self.mark}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def wait_for_calls(self) -> None:
        wait(self.called.exists)
        assert self.process.poll() is None, "the sweep was over too soon"

    def workers(self) -> list[int]:
        """The processes that take blocks."""
        return [
            pid for pid in find_marked_pids(self.mark) if b"conformance.isolate.process.distribute" in words_of(pid)
        ]

    def kill(self) -> None:
        """Kill all processes that are left."""
        for pid in find_marked_pids(self.mark):
            os.kill(pid, signal.SIGKILL)
        self.process.communicate(timeout=30)


def words_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:  # it has ended since
        return b""


@pytest.fixture
def sweep(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Sweep]:
    with heed_signal(signal.SIGINT):
        sweep = Sweep(tmp_path, *getattr(request, "param", ()))
    yield sweep
    sweep.kill()


ENDS = {
    signal.SIGKILL: (-signal.SIGKILL, ""),
    signal.SIGTERM: (143, "conformance: terminated\n"),
    signal.SIGINT: (130, "conformance: interrupted\n"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sweep", "end"),
    [
        *((("--isolation", "worker"), end) for end in ENDS),
        *((("--isolation", "none"), end) for end in (signal.SIGKILL, signal.SIGTERM)),
    ],
    indirect=["sweep"],
)
def test_a_killed_sweep_leaves_no_process(sweep: Sweep, end: signal.Signals) -> None:
    sweep.wait_for_calls()
    pids = find_marked_pids(sweep.mark)
    assert len(pids) >= 3
    maps = [Path(f"/proc/{pid}/maps").read_text(errors="replace") for pid in pids]
    assert not [text for text in maps if "/dev/shm/sem." in text], "a named semaphore"
    sweep.process.send_signal(end)
    _, said = sweep.process.communicate(timeout=30)
    assert (sweep.process.returncode, said) == ENDS[end]
    wait(lambda: not find_marked_pids(sweep.mark))
    assert end == signal.SIGKILL or not sweep.out.exists()


@pytest.mark.slow
def test_the_death_of_a_worker_ends_the_sweep(sweep: Sweep) -> None:
    sweep.wait_for_calls()
    os.kill(sweep.workers()[0], signal.SIGKILL)
    _, said = sweep.process.communicate(timeout=60)
    assert sweep.process.returncode == 3
    assert said.startswith("conformance: a worker process died of SIGKILL")
    assert said.count("\n") == 1
    wait(lambda: not find_marked_pids(sweep.mark))
    assert not sweep.out.exists()


@pytest.mark.slow
def test_results_keep_the_order_of_the_work() -> None:
    assert list(run_in_processes(2, abs, range(0, -100, -1))) == list(range(100))
    assert list(run_in_processes(4, abs, [-1])) == [1]
    assert list(run_in_processes(2, abs, [])) == []


@pytest.mark.slow
def test_an_exception_and_an_exit_in_a_worker() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        list(run_in_processes(2, int, ["1", "2", "x"]))
    with pytest.raises(HelperDied, match="ended with exit code 7"):
        list(run_in_processes(2, os._exit, [7]))


@pytest.mark.slow
def test_no_worker_outlives_its_work() -> None:
    before = children()  # of tests that keep a process
    with pytest.raises((AttributeError, pickle.PicklingError)):
        list(run_in_processes(2, lambda piece: piece, [1, 2]))
    assert children() == before
    results = run_in_processes(2, abs, range(1000))
    assert next(results) == 0
    assert children() > before
    results.close()
    assert children() == before
