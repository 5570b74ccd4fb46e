"""The cost of a run, a sweep, a report and pytest, each beside a minimal baseline or the ONNX backend test."""

from __future__ import annotations

import json
import math
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import numpy as np

from conformance.isolate.backend import use_backend
from conformance.model import Adapter
from conformance.plan.rows import Plan, Row

from .clock import Measured, cpu, cpu_of_command, once

_PYTHON = sys.executable
_BARE = "import numpy, ml_dtypes, yaml"


def _command(*words: object) -> list[str]:
    return [_PYTHON, "-m", "conformance", *map(str, words)]


@cache
def _plan() -> Plan:
    from conformance.load.cases import load_suite
    from conformance.plan.rows import plan_of

    return plan_of(load_suite())


def _legal(type_: str | None = None) -> list[Row]:
    """Rows of one small legal call, which a bare loop can make too."""
    rows = []
    for row in _plan().rows:
        if len(row.case.steps) > 1 or row.case.large or (type_ and row.type != type_):
            continue
        (task,) = row.steps
        meaning = task.meanings[0].meaning
        small = len(task.src.elements) < 2000 and _fits_numpy(task.source.dims) and _fits_numpy(meaning.dst or ())
        if small and meaning.kind == "legal" and len(task.graph.nodes) == 1:
            rows.append(row)
    return rows


def _fits_numpy(dims: Sequence[int | None]) -> bool:
    """True if NumPy can make an array of these dims: it limits their number, and the product of all but the zeros."""
    return len(dims) <= 32 and math.prod(filter(None, dims)) < 1 << 31


def _bare(rows: list[Row]) -> Callable[[], int]:
    """The calls of rows as a person would make them: numpy.reshape in a try, then type, dims and bytes."""
    calls: list[tuple[Any, Any, bytes | memoryview]] = [
        (row.steps[0].src.tensor.array(), row.steps[0].meanings[0].meaning.dst, row.steps[0].src.elements)
        for row in rows
    ]

    def loop() -> int:
        good = 0
        for src, dst, want in calls:
            try:
                out = np.reshape(src, dst)
            except ValueError:
                continue
            good += out.dtype == src.dtype and out.shape == dst and out.tobytes() == want
        return good

    return loop


def run_of_a_row() -> Measured:
    """One row on the reference in this process: compiled, run, judged in each document, recorded."""
    from conformance.adapter import load_adapter
    from conformance.run.row import run

    rows, adapter = _legal(), load_adapter("numpy")
    ours = cpu(lambda: sum(1 for _ in run(rows, adapter)))
    return Measured(ours / len(rows), cpu(_bare(rows)) / len(rows), "numpy.reshape in a try, compared")


def start_up_of_a_run() -> Measured:
    """`conformance run numpy -k` of one case: what a person waits for who repeats a failure.

    All of it is work of one process, so that a person with an idle machine waits for the budget and no longer.
    """
    case = next(iter(_plan().suite.cases))
    ours = min(once(_command("run", "numpy", "-k", case))[0] for _ in range(4))
    return Measured(ours, cpu_of_command([_PYTHON, "-c", _BARE], 4), f"python -c '{_BARE}'")


def whole_run() -> Measured:
    """The whole suite on the reference, reports and all."""
    with tempfile.TemporaryDirectory() as folder:
        ours = min(once(_command("run", "numpy", "--out", folder))[0] for _ in range(2))
    return Measured(ours, cpu_of_command([_PYTHON, "-c", _BARE], 4), f"python -c '{_BARE}'")


@contextmanager
def _ran() -> Iterator[Path]:
    """A folder with the results of a run."""
    with tempfile.TemporaryDirectory() as folder:
        once(_command("run", "numpy", "--out", folder))
        yield Path(folder)


def reports() -> Measured:
    """Every report on a run, from evidence at hand, beside the parsing of that evidence."""
    from conformance import report
    from conformance.certify.conclude import conclude_evidence
    from conformance.certify.evidence import read

    with _ran() as folder:
        evidence = read(folder / "results.jsonl")
        conclusion = conclude_evidence(_plan(), evidence)
        ours = cpu(lambda: report.write(folder, _plan(), evidence, conclusion), 3)
        lines = (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()
    return Measured(ours, cpu(lambda: [json.loads(line) for line in lines], 3), "json.loads of the evidence")


def size_of_the_page() -> Measured:
    """The page that is published, beside the evidence that it holds."""
    with _ran() as folder:
        page, evidence = ((folder / name).stat().st_size for name in ("report.html", "results.jsonl"))
    return Measured(page, evidence, "results.jsonl", "B")


def filter_of_the_comparison() -> Measured:
    """All lines of a page of 24 backends shown again after a filter: what its main thread takes, to the next frame."""
    from conformance.certify.conclude import conclude_evidence
    from conformance.certify.evidence import read
    from conformance.report.compare_page import render
    from conformance.report.finished_run import FinishedRun

    def run_and_load(backend: str, folder: Path) -> FinishedRun:
        once(_command("run", backend, "--isolation", "none", "--out", folder))
        evidence = read(folder / "results.jsonl")
        return FinishedRun(_plan(), evidence, conclude_evidence(_plan(), evidence))

    sync_api = import_module("playwright.sync_api")  # not among what the suite wants
    with tempfile.TemporaryDirectory() as name, sync_api.sync_playwright() as playwright:
        folder, page = Path(name), Path(name) / "page.html"
        bad = "conformance.adapters.broken:AcceptsEverything"
        runs = [run_and_load("numpy", folder / "good"), run_and_load(bad, folder / "bad")]
        page.write_text(render(runs * 12), encoding="utf-8")
        path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        try:
            tab = browser.new_page()
            clock = tab.context.new_cdp_session(tab)
            clock.send("Performance.enable", {"timeDomain": "threadTicks"})

            def busy() -> float:
                figures = clock.send("Performance.getMetrics")["metrics"]
                return float(next(each["value"] for each in figures if each["name"] == "TaskDuration"))

            tab.goto(page.as_uri())
            load = busy()

            def time_clearing() -> float:
                tab.evaluate(_FILTER, "no such thing")
                began = busy()
                tab.evaluate(_FILTER, "")
                return busy() - began

            return Measured(min(time_clearing() for _ in range(6)), load, "opening the page")
        finally:
            browser.close()


_FILTER = """text => {
    const form = document.getElementById("filters");
    form.elements.text.value = text;
    form.dispatchEvent(new Event("change"));
    return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""


def item_of_pytest() -> Measured:
    """One item of `pytest --adapter numpy`, beside one that does nothing."""
    rows = [row for row in _plan().rows if not row.case.large]
    installed = metadata.entry_points(group="pytest11", name="reshape_conformance")
    plugin = [*([] if installed else ["-p", "reshape_conformance_pytest"]), "--adapter", "numpy"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = "import pytest\n@pytest.mark.parametrize('n', range({}))\ndef test_nothing(n): pass\n"
        for count in (1, 1500):
            (folder / f"test_{count}.py").write_text(text.format(count), encoding="utf-8")

        def cost(*words: str) -> float:
            quiet = ["-q", "-p", "no:cacheprovider", "--rootdir", name, *words]
            here = os.getcwd()
            try:
                os.chdir(name)
                return min(once([_PYTHON, "-m", "pytest", *quiet])[0] for _ in range(2))
            finally:
                os.chdir(here)

        ours = cost(*plugin, "cases") - cost(*plugin, rows[0].node_id)  # by name, or the empty ones are run as well
        bare = cost(f"{name}/test_1500.py") - cost(f"{name}/test_1.py")
    return Measured(ours / (len(rows) - 1), bare / 1499, "an empty parametrised test")


# ── sweeps ────────────────────────────────────────────────────────────────────────────────────────


def _order(adapter: str = "numpy") -> Any:
    from conformance.explore.blocks import Order, ways_of
    from conformance.load.spec import load_spec
    from conformance.meaning.domain import Domain

    return Order(adapter, Domain(3, 3, 3, -2, 3), ways_of(load_spec(), ["StaticReshape"]))


def call_of_a_sweep() -> Measured:
    """One call of a sweep on the reference in this process, beside a bare loop over the very same calls."""
    from conformance.explore.blocks import blocks_of
    from conformance.explore.context import Context, close_backend
    from conformance.explore.run_block import BlockRun, run_block
    from conformance.explore.tabulate import tabulate
    from conformance.plan.memory import Source, image_of

    order = _order()
    block = next(block for block in blocks_of(order.domain) if (block.rank, block.entries) == (3, 3))
    try:
        ours = cpu(lambda: run_block(order, block))
        with use_backend("numpy", "none") as adapter:
            run = BlockRun(Context(order, adapter), block)
            tables = [tabulate(rules, *run.columns) for rules, _ in run.context.readings["StaticReshape"]]
            wants = run.wants(tables)
    finally:
        close_backend()
    sources = [
        (image_of(Source(way.type, src)), wanted)
        for way in order.ways
        for src, wanted in zip(run.srcs, wants, strict=True)
    ]

    def bare() -> int:
        good = 0
        for image, wanted in sources:
            src, want = image.tensor.array(), image.elements
            dims, number = src.shape, 0
            for special_zero in (False, True):
                for written in run.shapes:
                    shape, due = written, wanted[number]
                    number += 1
                    if special_zero and 0 in shape:  # NumPy has no such flag
                        shape = tuple([dims[i] if d == 0 and i < len(dims) else d for i, d in enumerate(shape)])
                    try:
                        out = np.reshape(src, shape)
                    except ValueError:
                        good += due is None
                    else:
                        good += out.dtype == src.dtype and out.shape == due and out.tobytes() == want
        return good

    calls = block.calls * len(order.ways)
    return Measured(ours / calls, cpu(bare) / calls, "numpy.reshape in a try, compared, in a bare loop")


def sweep_by_two() -> Measured:
    """A sweep by two processes beside one, each without what a sweep of nothing takes; needs two idle cores."""

    def time_sweep(jobs: int, rank: int) -> float:
        with tempfile.TemporaryDirectory() as folder:
            words = ("--rank", rank, "--max-dim", 3, "--type", "f32", "--out", folder, "--jobs", jobs)
            return min(once(_command("sweep", "numpy", *words))[1] for _ in range(2))

    two, one = (time_sweep(jobs, 3) - time_sweep(jobs, 1) for jobs in (2, 1))
    return Measured(max(two, 1e-9), max(one, 1e-9), "by one process", "s elapsed")


def memory_of_a_sweep() -> Measured:
    """The peak of a sweep of about a million calls, beside that of ten thousand."""

    def peak(rank: int, *more: object) -> int:
        with tempfile.TemporaryDirectory() as folder:
            return once(_command("sweep", "numpy", "--rank", rank, "--max-dim", 3, "--out", folder, *more))[2]

    few = peak(2, "--type", "f32", "--operation", "StaticReshape")
    return Measured(peak(3, "--type", "f32"), few, "that of 10,878 calls", "B")


# ── beside the ONNX backend test ──────────────────────────────────────────────────────────────────

_ONNX = """
import sys, unittest
import onnx.backend.base
from onnx.backend.test import BackendTest
from onnx.reference import ReferenceEvaluator

class Prepared(onnx.backend.base.BackendRep):
    def __init__(self, model):
        self.session = ReferenceEvaluator(model)
    def run(self, inputs, **_):
        names = self.session.input_names
        return tuple(self.session.run(None, dict(zip(names, inputs))))

class Backend(onnx.backend.base.Backend):
    @classmethod
    def prepare(cls, model, device="CPU", **_):
        return Prepared(model)
    @classmethod
    def supports_device(cls, device):
        return device == "CPU"

def suite():
    tests = BackendTest(Backend, "reshape")
    tests.include("test_reshape_.*_cpu")
    chosen = [each for group in tests.test_suite for each in _flat(group) if not _skipped(each)]
    return chosen

def _flat(group):
    return [each for part in group for each in _flat(part)] if isinstance(group, unittest.TestSuite) else [group]

def _skipped(test):
    return getattr(getattr(test, test._testMethodName), "__unittest_skip__", False)

def run(tests):
    result = unittest.TestResult()
    for test in tests:
        test(result)
    assert result.wasSuccessful() and result.testsRun == len(tests) > 0, result
"""
"""The Reshape node tests of ONNX, through their own runner, on their own reference evaluator."""


@cache
def _onnx() -> tuple[Callable[[Any], None], Any]:
    names: dict[str, Any] = {"__name__": "onnx_reshape"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ONNX computes the answers of all its tests, overflows and all
        exec(compile(_ONNX, "<onnx>", "exec"), names)
        return names["run"], names["suite"]()


def row_beside_onnx() -> Measured:
    """One row on ONNX's reference evaluator, beside one Reshape node test of the ONNX backend test on the same."""
    from conformance.adapter import load_adapter
    from conformance.run.row import run

    adapter: Adapter = load_adapter("onnx-reference")
    rows = [row for row in _legal("f32") if row.operation in adapter.claims.operations][:200]
    ours = cpu(lambda: sum(1 for _ in run(rows, adapter)), 3)
    theirs, tests = _onnx()
    return Measured(ours / len(rows), cpu(lambda: theirs(tests), 3) / len(tests), "a Reshape node test of ONNX")


def start_up_beside_onnx() -> Measured:
    """One case from nothing on ONNX's reference evaluator, beside the ONNX backend test with its Reshape tests."""
    case = next(iter(_plan().suite.cases))
    with tempfile.TemporaryDirectory() as folder:
        command = _command("run", "onnx-reference", "--isolation", "none", "-k", case)
        ours = min(once(command)[0] for _ in range(3))
        script = Path(folder) / "theirs.py"
        script.write_text(f"{_ONNX}\nrun(suite())\n", encoding="utf-8")
        theirs = min(once([_PYTHON, str(script)])[0] for _ in range(3))
    return Measured(ours, theirs, "the ONNX backend test, Reshape only")


MEASURED: tuple[tuple[str, str | None, Callable[[], Measured], float | None], ...] = (
    ("run of a row, in process", None, run_of_a_row, None),
    ("`conformance run numpy -k` of one case", None, start_up_of_a_run, 0.6),
    ("`conformance run numpy`, reports and all", None, whole_run, None),
    ("item of `pytest --adapter numpy`", None, item_of_pytest, None),
    ("call of a sweep, in process", None, call_of_a_sweep, None),
    ("sweep by two processes", None, sweep_by_two, None),
    ("peak memory of a sweep of 10^6 calls", None, memory_of_a_sweep, None),
    ("all reports on a run", None, reports, None),
    ("size of the page", None, size_of_the_page, None),
    ("a filter of the comparison cleared, in Chromium", "playwright", filter_of_the_comparison, 0.1),
    ("run of a row, on ONNX's evaluator", "onnx", row_beside_onnx, None),
    ("start-up, on ONNX's evaluator", "onnx", start_up_beside_onnx, None),
)
"""What is measured, the module that it needs, how, and the most that it should cost."""
