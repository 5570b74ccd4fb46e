"""The cost of a run, of its reports and of pytest, each beside a minimal baseline."""

from __future__ import annotations

import json
import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

import numpy as np

from conformance import report
from conformance.adapter import load_adapter
from conformance.evidence.results import Target, read
from conformance.load.cases import load_suite
from conformance.model import Adapter, Rejected
from conformance.plan.rows import Plan, Row, plan_of
from conformance.report.judged_run import JudgedRun, conclude_run
from conformance.report.render import ASSETS, list_assets
from conformance.run.row import run_rows
from conformance.runner.run_suite import RunRequest, run_suite
from conformance.site.compare_page import COMPARED, render_pages
from conformance.system.files import replace_text
from tools.picture import find_chromium

from .clock import REPEATS, Measured, cpu, cpu_of_command, once, peak_of_command

PYTHON = sys.executable
BARE = "import numpy, ml_dtypes, yaml"


def command(*words: object) -> list[str]:
    return [PYTHON, "-m", "conformance", *map(str, words)]


@cache
def plan() -> Plan:
    return plan_of(load_suite())


def legal_rows(type_: str | None = None) -> list[Row]:
    """Rows of one small legal call, which a bare loop can make too."""
    rows = []
    for row in plan().rows:
        case = row.case
        if len(case.steps) > 1 or case.times > 1 or case.pause_ms or case.large or (type_ and row.type != type_):
            continue
        (task,) = row.steps
        meaning = task.meanings[0].meaning
        small = len(task.src.elements) < 2000 and _fits_numpy(task.src_spec.dims) and _fits_numpy(meaning.dst or ())
        if small and meaning.kind == "legal" and len(task.graph.nodes) == 1:
            rows.append(row)
    return rows


def _fits_numpy(dims: Sequence[int | None]) -> bool:
    """Whether NumPy can make an array of these dims: it limits their number, and the product of all but the zeros."""
    return len(dims) <= 32 and math.prod(filter(None, dims)) < 1 << 31


def _bare(rows: list[Row]) -> Callable[[], int]:
    """The calls of rows as a person would make them: numpy.reshape in a try, then type, dims and bytes."""
    calls: list[tuple[Any, Any, bytes | memoryview]] = [
        (row.steps[0].src.tensor.array(), row.steps[0].meanings[0].meaning.dst, row.steps[0].src.elements[:])
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


def _seconds_of(rows: list[Row], adapter: Adapter) -> float:
    """CPU seconds of rows, the least of several runs. A judged row drops its steps: they are made before each."""

    def once() -> float:
        _ = [(step.src, step.arriving) for row in rows for step in row.steps]
        began = time.process_time()
        for _ in run_rows(rows, adapter):
            pass
        return time.process_time() - began

    once()
    return min(once() for _ in range(REPEATS))


def run_of_a_row() -> Measured:
    """One row on the reference in this process: compiled, run, judged in each document, recorded."""
    rows = legal_rows()
    ours = _seconds_of(rows, load_adapter("reference"))
    return Measured(ours / len(rows), cpu(_bare(rows)) / len(rows), "numpy.reshape in a try, compared")


def engine_around_a_row() -> Measured:
    """The time that the suite adds to one row on the reference: all but the reference's own compile and run."""
    rows, adapter = legal_rows(), load_adapter("reference")
    calls = [(row.steps[0], row.steps[0].arriving) for row in rows]
    arguments = [(step.graph, step.src.tensor, tuple(shape.tensor for shape in shapes)) for step, shapes in calls]

    def call_all() -> None:
        for graph, src, shapes in arguments:
            try:
                adapter.compile(graph).run(src, shapes, False)
            except Rejected:  # noqa: PERF203 - some calls are made to be rejected
                continue

    ours = _seconds_of(rows, adapter) - cpu(call_all)
    return Measured(ours / len(rows), cpu(_bare(rows)) / len(rows), "numpy.reshape in a try, compared")


def run_without_reports() -> Measured:
    """Every row of the suite called, judged and written as evidence, in this process, beside the sum of bare calls."""

    def once_more() -> float:
        request = RunRequest("reference", plan_of(load_suite()), Target(), lambda row: True)
        with tempfile.TemporaryDirectory() as folder:
            began = time.process_time()
            run_suite(request, lambda name: Path(folder))
            return time.process_time() - began

    ours = min(once_more() for _ in range(2))
    return Measured(ours, min(_bare_calls() for _ in range(2)), "the sum of bare calls")


def _bare_calls() -> float:
    """CPU seconds of every call of every row, made with numpy.reshape in a try and compared; memory is made before."""
    total = 0.0
    for row in plan().rows:
        for step, written in zip(row.steps, row.case.steps, strict=True) if not row.case.large else ():
            meaning = step.meanings[0].meaning
            shape: Any = meaning.dst if meaning.kind == "legal" else written.shapes[-1]
            if _fits_numpy(step.src_spec.dims) and _fits_numpy(shape or ()):
                src, want = step.src.tensor.array(), step.src.elements[:]
                began = time.process_time()
                try:
                    out = np.reshape(src, shape)
                except (ValueError, OverflowError):
                    pass
                else:
                    _ = out.dtype == src.dtype and out.shape == shape and out.tobytes() == want
                total += time.process_time() - began
            step.free_memory()
    return total


def start_up_of_a_run(*more: str) -> Measured:
    """`conformance run reference -k` of one case: what a person waits for who repeats a failure.

    All of it is work of one process, so that a person with an idle machine waits for the budget and no longer.
    """
    case = next(iter(plan().suite.cases))
    ours = min(once(command("run", "reference", "-k", case, *more))[0] for _ in range(4))
    return Measured(ours, cpu_of_command([PYTHON, "-c", BARE], 4), f"python -c '{BARE}'")


def start_up_with_reports() -> Measured:
    """The same with evidence and reports, which have only the rows of the case."""
    with tempfile.TemporaryDirectory() as folder:
        return start_up_of_a_run("--out", folder)


def whole_run() -> Measured:
    """The whole suite on the reference, reports and all."""
    with tempfile.TemporaryDirectory() as folder:
        ours = min(once(command("run", "reference", "--out", folder))[0] for _ in range(2))
    return Measured(ours, cpu_of_command([PYTHON, "-c", BARE], 4), f"python -c '{BARE}'")


def memory_of_a_run() -> Measured:
    """The peak of a whole run with reports, beside that of a run of one case."""

    def peak(*more: str) -> int:
        with tempfile.TemporaryDirectory() as folder:
            return peak_of_command(command("run", "reference", "--out", folder, *more))

    return Measured(peak(), peak("-k", "meets-infer"), "that of one case", "B")


@contextmanager
def _ran() -> Iterator[Path]:
    """A folder with the results of a run."""
    with tempfile.TemporaryDirectory() as folder:
        once(command("run", "reference", "--out", folder))
        yield Path(folder)


def reports() -> Measured:
    """Every report on a run, from evidence at hand, beside the parsing of that evidence."""
    with _ran() as folder:
        run = conclude_run(plan(), read(folder / "results.jsonl"))
        ours = cpu(lambda: report.write(folder, replace(run)), 3)  # a new one: it keeps what it works out
        lines = (folder / "results.jsonl").read_text(encoding="utf-8").splitlines()
    return Measured(ours, cpu(lambda: [json.loads(line) for line in lines], 3), "json.loads of the evidence")


def size_of_the_page() -> Measured:
    """The page that is published, beside the evidence that it holds."""
    with _ran() as folder:
        page, evidence = ((folder / name).stat().st_size for name in ("report.html", "results.jsonl"))
    return Measured(page, evidence, "results.jsonl", "B")


def filter_of_the_comparison() -> Measured:
    """All lines of a page of 24 backends shown again after a filter: what its main thread takes, to the next frame."""

    def run_and_load(backend: str, folder: Path) -> JudgedRun:
        once(command("run", backend, "--isolation", "none", "--out", folder))
        return conclude_run(plan(), read(folder / "results.jsonl"))

    sync_api = import_module("playwright.sync_api")  # not among what the suite wants
    with tempfile.TemporaryDirectory() as name, sync_api.sync_playwright() as playwright:
        folder, page = Path(name), Path(name) / COMPARED
        bad = "conformance.adapters.planted:AcceptsEverything"
        runs = [run_and_load("reference", folder / "good"), run_and_load(bad, folder / "bad")]
        page.write_text(render_pages(runs * 12, [""] * 24, {}, {})[COMPARED], encoding="utf-8")
        for asset, text in list_assets().items():
            replace_text(folder / ASSETS / asset, text)
        browser = playwright.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
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
    """One item of `pytest --adapter reference`, beside one that does nothing."""
    rows = [row for row in plan().rows if not row.case.large]
    installed = metadata.entry_points(group="pytest11", name="reshape_conformance")
    plugin = [*([] if installed else ["-p", "reshape_conformance_pytest"]), "--adapter", "reference"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text = "import pytest\n@pytest.mark.parametrize('n', range({}))\ndef test_nothing(n): pass\n"
        for count in (1, 1500):
            (folder / f"test_{count}.py").write_text(text.format(count), encoding="utf-8")

        def cost(*words: str) -> float:
            quiet = ["-q", "-p", "no:cacheprovider", "--rootdir", name, *words]
            return min(once([PYTHON, "-m", "pytest", *quiet], folder=folder)[0] for _ in range(2))

        ours = cost(*plugin, "cases") - cost(*plugin, rows[0].pytest_id)  # by name, or the empty ones are run as well
        bare = cost(f"{name}/test_1500.py") - cost(f"{name}/test_1.py")
    return Measured(ours / (len(rows) - 1), bare / 1499, "an empty parametrised test")
