"""The cost of a sweep, beside a bare loop over the same calls, one process and a small sweep."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from conformance.isolate.backend import use_backend
from conformance.load.spec import load_spec
from conformance.meaning.domain import Domain
from conformance.model import Declared, Graph, Rejected
from conformance.plan.memory import TensorSpec, lay_out
from conformance.sweep.blocks import SweepRequest, blocks_of, list_variants
from conformance.sweep.calls import make_nodes_of_calls
from conformance.sweep.context import SweepContext, close_backend
from conformance.sweep.run_block import BlockRun, list_wants, run_block

from .clock import Measured, cpu, once, peak_of_command
from .whole_runs import command


class Calls(NamedTuple):
    """The calls of a block of a sweep: how long the sweep takes for all of them, and the same calls in bare loops."""

    number: int
    seconds: float
    of_reference: Callable[[], None]
    """Makes the calls of the reference, and looks at no answer."""
    bare: Callable[[], int]


def _calls() -> Calls:
    request = SweepRequest("reference", Domain(3, 3, 3, -2, 3), list_variants(load_spec(), ["StaticReshape"]))
    block = next(block for block in blocks_of(request.domain) if (block.rank, block.entries) == (3, 3))
    try:
        ours = cpu(lambda: run_block(request, block))
        with use_backend("reference", "none") as adapter:
            run = BlockRun(SweepContext(request, adapter), block)
            wants = list_wants(map(run.list_meanings, run.context.readings["StaticReshape"]))
    finally:
        close_backend()
    sources = [
        (lay_out(TensorSpec(way.type, src)), wanted)
        for way in request.ways
        for src, wanted in zip(run.srcs, wants, strict=True)
    ]
    nodes = make_nodes_of_calls(
        "StaticReshape", request.ways[0].shape_passed_as, request.ways[0].shape_type, run.shapes
    )

    def of_reference() -> None:
        for buffer, _ in sources:
            src, declared = buffer.tensor, Declared(buffer.tensor.type, buffer.tensor.dims)
            for node in nodes:
                try:
                    adapter.compile(Graph(declared, node)).run(src, (), False)
                except Rejected:  # noqa: PERF203 - half of the calls are made to be rejected
                    continue

    def bare() -> int:
        good = 0
        for buffer, wanted in sources:
            src, want = buffer.tensor.array(), buffer.elements[:]
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

    return Calls(block.calls * len(request.ways), ours, of_reference, bare)


_BARE = "numpy.reshape in a try, compared, in a bare loop"


def call_of_a_sweep() -> Measured:
    """One call of a sweep on the reference in this process, beside a bare loop over the very same calls."""
    calls = _calls()
    return Measured(calls.seconds / calls.number, cpu(calls.bare) / calls.number, _BARE)


def sweep_around_a_call() -> Measured:
    """The time that a sweep adds to one call of the reference: all but the reference's own compile and run."""
    calls = _calls()
    ours = calls.seconds - cpu(calls.of_reference)
    return Measured(ours / calls.number, cpu(calls.bare) / calls.number, _BARE)


def sweep_by_two() -> Measured:
    """A sweep by two processes beside one, each without what a sweep of nothing takes; needs two idle cores."""

    def time_sweep(jobs: int, rank: int) -> float:
        with tempfile.TemporaryDirectory() as folder:
            words = ("--rank", rank, "--max-dim", 3, "--type", "f32", "--out", folder, "--jobs", jobs)
            return min(once(command("sweep", "reference", *words))[1] for _ in range(2))

    two, one = (time_sweep(jobs, 3) - time_sweep(jobs, 1) for jobs in (2, 1))
    return Measured(max(two, 1e-9), max(one, 1e-9), "by one process", "s elapsed")


def memory_of_a_sweep() -> Measured:
    """The peak of a sweep of about a million calls, beside that of ten thousand."""

    def peak(rank: int, *more: object) -> int:
        with tempfile.TemporaryDirectory() as folder:
            return peak_of_command(
                command("sweep", "reference", "--rank", rank, "--max-dim", 3, "--out", folder, *more)
            )

    few = peak(2, "--type", "f32", "--operation", "StaticReshape")
    return Measured(peak(3, "--type", "f32"), few, "that of 10,878 calls", "B")
