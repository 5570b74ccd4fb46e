"""Measure the suite's own speed: `python -m tools.benchmarks [--json]` prints what it costs beside a baseline.

Figures are CPU time, the least of several repeats, with the baseline measured in the same run: a slow or busy machine
slows both. history.json holds the ratios of the last releases, and the table says where one has become worse. To add a
measurement, write a function that returns a Measured, and add it to MEASUREMENTS.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from typing import NamedTuple
from unittest.mock import patch

import yaml

from conformance.isolate.backend import Isolation, run_in_isolation, use_backend
from conformance.isolate.protocol.remote import RemoteAdapter, start_worker
from conformance.load.folders import find_spec_folder
from conformance.load.spec import SPEC_FILES, load_spec
from conformance.meaning.contract import contracts
from conformance.model import Adapter, Declared, Graph, Node, Operand
from conformance.plan.memory import TensorSpec, lay_out
from conformance.plan.rows import Row
from conformance.system.terminal import say, say_raw

from . import history, others, sweeps, whole_runs
from .clock import Measured, cpu, cpu_of_command
from .table import MeasuredRow, table


class Measurement(NamedTuple):
    """Something that can be measured."""

    what: str
    take: Callable[[], Measured]
    budget: float | None = None
    """The most it should cost on an ordinary machine, in seconds or bytes."""
    most: float | None = None
    """The most that it should cost beside its baseline."""
    needs: str | None = None
    """The module without which it is left out."""


# ── what is measured ──────────────────────────────────────────────────────────────────────────────


_IMPORTS = "import yaml; from conformance.meaning import contract; from conformance.load import spec as load"


def load_and_check() -> Measured:
    """Reading, schemas, cross-checks and compiling every rule, once and cold, beyond interpreter and imports."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    def bare() -> None:
        for file in SPEC_FILES:
            yaml.load((find_spec_folder() / f"{file}.yaml").read_bytes(), Loader=loader)

    whole = cpu_of_command([sys.executable, "-c", f"{_IMPORTS}; contract.contracts(load.load_spec())"])
    imports = cpu_of_command([sys.executable, "-c", _IMPORTS])
    return Measured(whole - imports, cpu(bare), f"yaml.load with {loader.__name__}")


def check_command() -> Measured:
    """The whole command in a new process, beside an interpreter that imports what it needs."""
    ours = cpu_of_command([sys.executable, "-m", "conformance", "check"])
    return Measured(ours, cpu_of_command([sys.executable, "-c", _IMPORTS]), "python -c 'import …'")


def meaning_of_a_call() -> Measured:
    """A mix of calls, legal and not, in the strictest document."""
    meaning = contracts(load_spec())["static-graph-v0.9"].meaning
    return Measured(_per_call(meaning), _per_call(bare_meaning), "the same written by hand")


_CALLS = (
    ((2, 3, 4), (3, 2, 4), False),
    ((2, 3, 4), (4, -1), False),
    ((2, 3, 4), (3, 2, 0), True),
    ((0, 3), (0, -1), True),
    ((5,), (2, 3), False),
    ((), (1, 1), False),
    ((8, 8, 8, 8), (0, 0, -1), True),
    ((4,), (-1, -1), False),
)


def _per_call(meaning: Callable[[tuple[int, ...], tuple[int, ...], bool], object]) -> float:
    calls = _CALLS * 500

    def work() -> None:
        for src, shape, special_zero in calls:
            meaning(src, shape, special_zero)

    return cpu(work) / len(calls)


def bare_meaning(
    src: tuple[int, ...], shape: tuple[int, ...], special_zero: bool
) -> tuple[str, tuple[int | None, ...] | None]:
    """The kind and the answer of a StaticReshape of static-graph-v0.9, in plain Python that knows no rules by name."""
    volume = 1
    for dim in src:
        volume *= dim
    infer = -1 in shape
    if shape.count(-1) > 1 or any(entry < -1 for entry in shape) or (infer and not special_zero and 0 in shape):
        return "illegal", None
    dst: list[int | None] = []
    known, free, past = 1, [], False
    for i, entry in enumerate(shape):
        length: int | None = entry
        if entry == 0 and special_zero:
            length = src[i] if i < len(src) else None
            past = past or length is None
        if entry == -1 or length is None:
            free.append(i)
            dst.append(None)
        else:
            known *= length
            dst.append(length)
    if ((not free or known == 0) and known != volume) or (known and volume % known):
        return "illegal", None
    many = bool(free) and known == 0
    if free and not many:
        many = len(free) > 1 and volume != known
        if not many:
            for i in free:
                dst[i] = volume // known
    unsure = many or past or not src or not shape or len(src) > 12 or len(shape) > 12
    if volume == 0 and not unsure:
        unsure = _positive(src) > 2147483647 or _positive(shape) > 2147483647
    return "unspecified" if unsure else "legal", tuple(dst)


def _positive(lengths: Iterable[int]) -> int:
    total = 1
    for length in lengths:
        total *= max(length, 1)
    return total


def start_up() -> Measured:
    """The time before the first output."""
    ours = cpu_of_command([sys.executable, "-m", "conformance", "--help"])
    return Measured(ours, cpu_of_command([sys.executable, "-c", "pass"]), "python -c pass")


# ── isolation ─────────────────────────────────────────────────────────────────────────────────────


def _through(isolation: Isolation, rows: Sequence[Row]) -> float:
    """CPU seconds that a row takes on both sides of the process border."""
    with use_backend("reference", isolation) as adapter:

        def call_all() -> None:
            for _ in run_in_isolation(rows, adapter, adapter.claims, isolation):
                pass

        return cpu(call_all, clock=lambda: _clock_of_both(adapter)) / len(rows)


def _clock_of_both(adapter: Adapter) -> float:
    """CPU seconds of this process and of a worker; Linux makes the number of its clock from that of the process."""
    if not isinstance(adapter, RemoteAdapter) or sys.platform != "linux":
        return time.process_time()
    return time.process_time() + time.clock_gettime((~adapter.session().process.pid << 3) | 2)


def _small_rows() -> list[Row]:
    single = [row for row in whole_runs.plan().rows if len(row.case.steps) == row.case.times == 1]
    rows = [row for row in single if not row.case.large and not row.case.pause_ms]
    return [row for row in rows if len(row.steps[0].src.elements) < 4096][::12]


def call_through_a_worker() -> Measured:
    """Both sides of the border together; compile and run are one round trip."""
    rows = _small_rows()
    bare = _through("none", rows)
    return Measured(_through("worker", rows) - bare, bare, "the same call in this process")


def call_in_its_own_process() -> Measured:
    """The cost of a new process for each call."""
    ours = cpu_of_command(
        [sys.executable, "-c", "import conformance.isolate.protocol.worker, conformance.adapters.reference"], 3
    )
    return Measured(ours, _through("worker", _small_rows()), "the same call through a worker")


def large_through(share: bool) -> Measured:
    """A reshape of 16 MiB, both processes together, without what the backend's own copy takes."""
    count = 1 << 22
    node = Node("StaticReshape", Operand("s64", (2,), (1, count)), Operand("bool", (), (False,)))
    graph = Graph(Declared("f32", (count,)), (node,))
    buffer, target = lay_out(TensorSpec("f32", (count,))), bytearray(4 * count)

    def copy() -> None:
        target[:] = buffer.elements[:]

    with patch.dict(vars(os)):
        if not share:
            vars(os).pop("memfd_create", None)  # as on a system without it
        remote = start_worker("reference")
    try:
        bare = cpu(copy)
        whole = cpu(lambda: remote.compile(graph).run(buffer.tensor, (), False), clock=lambda: _clock_of_both(remote))
        return Measured((whole - bare) / 2, bare, "a copy of 16 MiB")
    finally:
        remote.close()


# ── the table ─────────────────────────────────────────────────────────────────────────────────────


MEASUREMENTS = [
    Measurement("load and check spec/", load_and_check, budget=0.3),
    Measurement("`conformance check`, cases and all", check_command),
    Measurement("meaning of a call", meaning_of_a_call, budget=10e-6),
    Measurement("`conformance --help`", start_up, budget=0.1),
    Measurement("a small call through a worker, beyond one in this process", call_through_a_worker, budget=100e-6),
    Measurement("a call in a new process, as isolation `row` has it", call_in_its_own_process),
    Measurement("16 MiB through the pipe, each way", lambda: large_through(share=False), most=10),
    Measurement("16 MiB through shared memory, each way", lambda: large_through(share=True), most=1.2),
    Measurement("run of a row, in process", whole_runs.run_of_a_row),
    Measurement("the same without the reference's own work", whole_runs.engine_around_a_row, most=6),
    Measurement("`conformance run reference -k` of one case", whole_runs.start_up_of_a_run, budget=0.45, most=2.2),
    Measurement("the same with --out, reports and all", whole_runs.start_up_with_reports, budget=0.6, most=3.6),
    Measurement("`conformance run reference` without reports and drawn rows", whole_runs.run_without_reports, most=12),
    Measurement("`conformance run reference`, reports and all", whole_runs.whole_run, budget=5),
    Measurement("peak memory of the same", whole_runs.memory_of_a_run, budget=300e6),
    Measurement("item of `pytest --adapter reference`", whole_runs.item_of_pytest),
    Measurement("call of a sweep, in process", sweeps.call_of_a_sweep, most=3),
    Measurement("call of a sweep, without the reference's own work", sweeps.sweep_around_a_call, most=1.5),
    Measurement("sweep by two processes", sweeps.sweep_by_two, most=0.55),
    Measurement("peak memory of a sweep of 10^6 calls", sweeps.memory_of_a_sweep, budget=120e6, most=1.5),
    Measurement("all reports on a run", whole_runs.reports),
    Measurement("size of the page", whole_runs.size_of_the_page),
    Measurement(
        "a filter of the comparison cleared, in Chromium", whole_runs.filter_of_the_comparison, 0.1, needs="playwright"
    ),
    Measurement("run of a row, on ONNX's evaluator", others.row_beside_onnx, needs="onnx"),
    Measurement("start-up, on ONNX's evaluator", others.start_up_beside_onnx, needs="onnx"),
    Measurement("run of a row, beside array-api-tests", others.row_beside_array_api_tests, needs="array_api_tests"),
    Measurement("start-up, beside array-api-tests", others.start_up_beside_array_api_tests, needs="array_api_tests"),
]


def measure(each: Measurement, last: float | None = None) -> MeasuredRow:
    ours, baseline, against, unit = each.take()
    ratio = ours / max(baseline, 1e-9)
    limits = [(ours, each.budget), (ratio, each.most)]
    known = [value <= limit for value, limit in limits if limit is not None]
    return MeasuredRow(
        each.what, ours, baseline, against, ratio, each.budget, each.most, all(known) if known else None, last, unit
    )


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.benchmarks", description="what the suite's own work costs")
    parser.add_argument("--json", action="store_true", help="for machines: seconds, one object a measurement")
    parser.add_argument("-k", dest="select", default="", metavar="WORD", help="only those with that in their name")
    parser.add_argument("--record", metavar="RELEASE", help="keep the ratios in history.json, under that name")
    chosen = parser.parse_args(arguments)
    last = history.last_ratios()
    there = [each for each in MEASUREMENTS if each.needs is None or find_spec(each.needs) is not None]
    rows = [measure(each, last.get(each.what)) for each in there if chosen.select in each.what]
    if chosen.record:
        history.record(chosen.record, {row.what: row.ratio for row in rows})
    if chosen.json:
        say_raw(json.dumps([row._asdict() for row in rows], indent=2, ensure_ascii=False) + "\n")
    else:
        say_raw(table(rows) + "\n")
        say("CPU time, the least of several runs, but where it says elapsed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
