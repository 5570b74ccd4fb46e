"""Sweeps and suites on a Dask cluster: its files equal those of this machine, also when a worker dies."""

import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import conformance
from conformance import __version__
from conformance.adapter import load_adapter
from conformance.cli.main import main
from conformance.isolate.parallel import dask_run
from conformance.isolate.parallel.dask_run import WorkerDiffers, WorkerSetup, run_numbered_rows
from conformance.isolate.parallel.distribute import NoCluster, run_on_dask
from conformance.load.cases import load_suite
from conformance.load.spec import load_spec
from conformance.meaning.domain import TINY_DOMAIN
from conformance.plan.rows import plan_of
from conformance.sweep.blocks import SweepRequest, blocks_of, ways_of
from conformance.sweep.context import Lost
from conformance.sweep.run_block import run_block
from tests.builders import Cli, write_suite
from tests.processes import run_command, wait

if find_spec("distributed") is None:  # imported by the tests that need it, since that takes long
    pytest.skip("dask.distributed is not installed: pip install 'reshape-conformance[dask]'", allow_module_level=True)

ROOT = Path(conformance.__file__).parents[1]
CHANGES = ("started", "seconds", "milliseconds", "footer", "header", "seal")
"""The fields that two equal runs may differ in: times, and the digest of a line with a time."""


UNHURRIED = """
import time
from pathlib import Path
from conformance.adapters.reference import Reference
class Unhurried(Reference):
    def compile(self, graph):
        if not Path({killed!r}).exists():
            time.sleep(0.005)
        return super().compile(graph)
"""


class Cluster:
    """A scheduler and two workers, each a process, on loopback. A backend is slow until a worker was killed."""

    def __init__(self, folder: Path) -> None:
        path = os.pathsep.join([str(folder), str(ROOT)])
        self.folder, self.killed = folder, folder / "killed"
        (folder / "unhurried.py").write_text(UNHURRIED.format(killed=str(self.killed)), encoding="utf-8")
        self.environment = {**os.environ, "PYTHONPATH": path, "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "10s"}
        self.file = folder / "scheduler.json"
        self.log = (folder / "log.txt").open("w")
        self.processes = [self.start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard")]
        self.start_workers()  # they wait for the file of the scheduler
        wait(lambda: self.file.exists() and self.file.read_text())
        self.address = json.loads(self.file.read_text())["address"]
        wait(lambda: self.workers() == 2)

    def start(self, what: str, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{what}", "--scheduler-file", str(self.file), *words]
        return subprocess.Popen(command, env=self.environment, stdout=self.log, stderr=self.log, text=True)

    def start_workers(self) -> None:
        words = ("worker", "--no-nanny", "--nthreads", "1", "--no-dashboard", "--memory-limit", "0")
        while len(self.processes) < 3:
            place = str(self.folder / str(len(self.processes)))
            self.processes.append(self.start(*words, "--local-directory", place))

    def workers(self) -> int:
        from distributed import Client

        with Client(self.address, timeout=10, set_as_default=False) as client:  # type: ignore[no-untyped-call]
            return len(client.scheduler_info(n_workers=-1)["workers"])

    def kill_a_worker(self) -> None:
        worker = self.processes.pop()
        worker.kill()
        worker.wait()
        self.killed.touch()

    def end(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()
        self.log.close()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.end()


def records(path: Path) -> list[dict[str, Any]]:
    """The lines of a result file without the fields in CHANGES."""
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return [{key: value for key, value in line.items() if key not in CHANGES} for line in lines]


def kill_in_the_middle(cluster: Cluster, words: list[str], file: Path, lines: int) -> int:
    """Run a command, kill a worker once its file has so many lines, and return the exit code."""
    cluster.killed.unlink(missing_ok=True)
    cluster.start_workers()
    wait(lambda: cluster.workers() == 2)
    command = [sys.executable, "-m", "conformance", *words, "--dask", cluster.address]
    with subprocess.Popen(command, env=cluster.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        wait(lambda: file.exists() and file.read_bytes().count(b"\n") >= lines)
        assert running.poll() is None, "the run was over before a worker could die"
        cluster.kill_a_worker()
        out, err = running.communicate(timeout=240)
    assert running.returncode in (0, 1, 4), (out, err)
    assert cluster.workers() == 1
    return running.returncode


SWEEP = ["--rank", "2", "--max-dim", "2", "--operation", "StaticReshape", "--type", "f32"]


@pytest.mark.slow
def test_a_cluster_writes_what_this_machine_writes(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("conformance.report.write", lambda *_: ())
    run = ["run", "broken:any-negative-infers", "--suite", str(write_suite(tmp_path))]
    for words, file in ((["sweep", "broken:last-infer-wins", *SWEEP], "sweep.jsonl"), (run, "results.jsonl")):
        here, there = tmp_path / "here", tmp_path / "there"
        assert main([*words, "--out", str(here)]) == 1
        assert main([*words, "--out", str(there), "--dask", cluster.address]) == 1
        assert records(here / file) == records(there / file)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "file", "lines"),
    [
        (["sweep", "unhurried:Unhurried", *SWEEP], "sweep.jsonl", 6),
        pytest.param(
            ["run", "unhurried:Unhurried", "--operation", "StaticReshape"],
            "results.jsonl",
            2,
            marks=pytest.mark.exhaustive,
        ),
    ],
    ids=["sweep", "suite"],
)
def test_a_worker_dies_during_a_sweep_or_a_suite(
    cluster: Cluster, tmp_path: Path, words: list[str], file: str, lines: int
) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    words = [*words, "--isolation", "none"]
    assert kill_in_the_middle(cluster, [*words, "--out", str(there)], there / f"{file}.part", lines) == 0
    alone = run_command(*words, "--out", here, env=cluster.environment)  # this process may have another by now
    assert alone.returncode == 0, alone.stderr
    assert records(here / file) == records(there / file)


def test_nobody_at_the_address_is_one_line(tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.isolate.parallel.distribute._CONNECT_SECONDS", 0.5)
    words = ["sweep", "reference", *SWEEP, "--out", str(tmp_path), "--dask", "tcp://127.0.0.1:9"]
    said = cli(*words).expect(3).err
    assert said.startswith("conformance: --dask tcp://127.0.0.1:9: no scheduler answers")
    assert said.count("\n") == 1
    with pytest.raises(NoCluster, match="no scheduler answers"):
        list(run_on_dask("not an address", abs, [1]))
    gc.collect()  # a client without a cluster is closed when it is collected, and must not be in the middle of a test


@pytest.mark.slow
def test_results_keep_the_order_of_the_work(cluster: Cluster) -> None:
    assert list(run_on_dask(cluster.address, abs, range(0, -40, -1))) == list(range(40))


def test_results_of_threads_keep_the_order_of_the_work() -> None:
    from distributed import LocalCluster

    gc.collect()
    made: Any = LocalCluster
    with made(2, processes=False, threads_per_worker=1, dashboard_address=None) as cluster:
        assert list(run_on_dask(cluster.scheduler_address, abs, range(0, -40, -1))) == list(range(40))


@pytest.mark.slow
def test_a_worker_that_lacks_a_module_is_one_line(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "only_here.py").write_text("def take(piece):\n    return piece\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    take = importlib.import_module("only_here").take
    with pytest.raises(NoCluster, match="No module named 'only_here'; install the same suite") as raised:
        list(run_on_dask(cluster.address, take, [1]))
    assert "\n" not in str(raised.value)


@pytest.fixture
def setup() -> WorkerSetup:
    adapter = load_adapter("reference")
    return WorkerSetup("reference", "none", adapter.identity, adapter.claims, load_suite().digest)


def test_a_cluster_rejects_results_of_other_rows(setup: WorkerSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = plan_of(load_suite()).rows

    def run_in_reverse(address: str, take: Any, work: Any) -> Iterator[Any]:
        return (take(numbers[::-1]) for numbers in work)

    monkeypatch.setattr(dask_run, "run_on_dask", run_in_reverse)
    with pytest.raises(WorkerDiffers, match="results of other rows"):
        list(dask_run.run_on_workers("nowhere", setup, rows, rows[:2]))


@pytest.mark.slow
def test_a_worker_with_another_suite(cluster: Cluster, tmp_path: Path) -> None:
    order = SweepRequest("reference", TINY_DOMAIN, ways_of(load_spec(), ["StaticReshape"], ["f32"]), digest="0" * 64)
    with pytest.raises(Lost, match="the specification here is"):
        list(run_on_dask(cluster.address, partial(run_block, order), blocks_of(TINY_DOMAIN)))
    outdated = order._replace(digest="", version="0.0")
    with pytest.raises(Lost, match=r"the sweep is of 0\.0; install the same"):
        list(run_on_dask(cluster.address, partial(run_block, outdated), blocks_of(TINY_DOMAIN)))


def test_a_worker_with_another_suite_or_backend(setup: WorkerSetup) -> None:
    rows, version = plan_of(load_suite()).rows, setup.identity.version
    assert [result.row for result in run_numbered_rows(setup, (3, 1))] == [rows[3].id, rows[1].id]
    others = {
        f"version {__version__} at a worker, 0.0 here": setup._replace(version="0.0"),
        f"the suite is {setup.digest[:12]} at a worker, {'0' * 12} here": setup._replace(digest="0" * 64),
        f"reference {version} at a worker, reference 0 here": setup._replace(
            identity=setup.identity._replace(version="0")
        ),
        "the backend is ": setup._replace(claims=setup.claims._replace(not_claimed=("large",))),
    }
    for words, other in others.items():
        with pytest.raises(WorkerDiffers, match=words):
            run_numbered_rows(other, (3, 1))


PATIENCE = "conformance.isolate.parallel.distribute._{}_SECONDS"


def test_a_scheduler_that_never_answers_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PATIENCE.format("CONNECT"), 0.5)
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        pytest.raises(NoCluster, match="scheduler answers within 1 s"),
    ):
        list(run_on_dask(f"tcp://127.0.0.1:{silent.getsockname()[1]}", abs, [1]))


@pytest.mark.slow
def test_a_scheduler_that_stops_is_one_line(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster.start_workers()
    wait(lambda: cluster.workers() == 2)
    work = run_on_dask(cluster.address, time.sleep, [0, *[20] * 20])
    next(work)
    for name in ("CONNECT", "RESULT"):
        monkeypatch.setattr(PATIENCE.format(name), 0.5)
    cluster.processes[0].send_signal(signal.SIGSTOP)
    try:
        with pytest.raises(NoCluster, match="scheduler answers within 1 s"):
            list(work)
    finally:
        cluster.processes[0].send_signal(signal.SIGCONT)
