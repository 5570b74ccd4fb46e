"""Sweep a backend that does not answer, or workers that do not do their work."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.adapters.planted import AnyNegativeInfers
from conformance.adapters.reference import Reference
from conformance.cli import sweep as command_module
from conformance.meaning.domain import SMALL_DOMAIN, TINY_DOMAIN, Domain
from conformance.model import Graph, Program, Spec, TimedOut
from conformance.sweep import run_block
from conformance.sweep.blocks import SweepRequest, blocks_of, list_variants
from conformance.sweep.context import BackendLost, SweepContext
from conformance.sweep.run_block import BlockRun
from conformance.sweep.sweep_file import SWEEP_FILE
from conformance.sweep.tally import EMPTY, Tally, add

from ..misbehaving import GIVES_UP
from .sweeps import Sweep, swept


def test_blocks_that_were_taken_in_part_are_no_sweep(
    tmp_path: Path, sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fewer(*given: Any, who: Any = None) -> Tally:
        whole = run_block.run_block(given[0], given[1], who)
        return whole._replace(calls=whole.calls - 1)

    monkeypatch.setattr(command_module, "run_block", fewer)
    sweep(tmp_path).expect(3, err="a worker made 1 calls of a block of 2")
    assert not (tmp_path / SWEEP_FILE).exists()


# ── a backend that does not answer ────────────────────────────────────────────────────────────────
class Late(Reference):  # type: ignore[misc]
    """The reference, which does not answer the calls that `late` picks by their number."""

    def __init__(self, late: Callable[[int], bool]) -> None:
        self.late, self.made = late, 0

    def compile(self, graph: Graph) -> Program:
        self.made += 1
        if self.late(self.made):
            raise TimedOut("no answer within 20 s")
        return super().compile(graph)  # type: ignore[no-any-return]


def test_a_backend_that_hangs_often_is_given_up(spec: Spec) -> None:
    adapter = Late(lambda number: number > 30)
    with pytest.raises(BackendLost, match=r"to 10 calls in a row, the last of them StaticReshape f32 src \["):
        swept(spec, adapter, SMALL_DOMAIN)
    assert adapter.made == 40
    with pytest.raises(BackendLost, match="to 50 calls of a block, the last of them"):
        swept(spec, Late(lambda number: bool(number % 2)), SMALL_DOMAIN)


def test_a_backend_that_hangs_now_and_then_is_swept_to_the_end(spec: Spec) -> None:
    total = swept(spec, Late(lambda number: number % 400 < 9), Domain(1, 3, 3, -2, 3))
    assert total.calls == Domain(1, 3, 3, -2, 3).size
    assert {diagnosis for _, diagnosis in total.failures} == {"timeout"}


def test_a_program_that_cannot_be_started_again_ends_the_sweep(tmp_path: Path, sweep: Sweep) -> None:
    program = tmp_path / "program.py"
    program.write_text(GIVES_UP, encoding="utf-8")
    backend = f"cmd:{sys.executable} -I -S {program} {tmp_path / 'begun'}"
    sweep(tmp_path / "out", backend=backend).expect(3, lines=1, err="the backend was given up after 3 starts")


def test_parts_join_in_any_order(spec: Spec) -> None:
    request = SweepRequest("at hand", TINY_DOMAIN, list_variants(spec, ["StaticReshape"], ["f32"]))
    context = SweepContext(request, AnyNegativeInfers())
    parts = [BlockRun(context, block).tally() for block in blocks_of(TINY_DOMAIN)]
    forth, back = EMPTY, EMPTY
    for one, other in zip(parts, reversed(parts), strict=True):
        forth, back = add(forth, one), add(back, other)
    assert forth == back
