"""Sweeps of a small domain, for the tests of these."""

import json
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

from conformance.evidence.journal import part_of
from conformance.meaning.domain import TINY_DOMAIN, Domain
from conformance.model import Spec
from conformance.sweep.blocks import SweepRequest, blocks_of, list_variants
from conformance.sweep.context import SweepContext
from conformance.sweep.run_block import BlockRun
from conformance.sweep.sweep_file import FILE, SweepResults
from conformance.sweep.tally import EMPTY, Tally, add
from tests.builders import CommandOutput
from tests.isolate.remote_backends import write_acting

PART = part_of(Path(FILE)).name
STATIC = ("--operation", "StaticReshape", "--type", "f32")
Sweep = Callable[..., CommandOutput]


def swept(spec: Spec, adapter: Any, domain: Domain = TINY_DOMAIN, **chosen: Any) -> Tally:
    """A sweep by a backend at hand."""
    chosen = {"operations": ["StaticReshape"], "types": ["f32"], **chosen}
    request = SweepRequest("at hand", domain, list_variants(spec, **chosen))
    context = SweepContext(request, adapter)
    total = EMPTY
    for block in blocks_of(domain):
        total = add(total, BlockRun(context, block).tally())
    return total


def read(path: Path) -> SweepResults:
    """What a sweep wrote: its header, the sum of its blocks and its footer."""
    header, *blocks, footer = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return SweepResults(header, reduce(add, map(Tally.from_json, blocks), EMPTY), footer)


def write_meddling(folder: Path, part: Path, act: str) -> str:
    """A right backend that acts at a call while a sweep has its unfinished file."""
    return write_acting(folder, f"if part.exists() and graph.src.dims == (2,): {act}", f"part = Path({str(part)!r})")
