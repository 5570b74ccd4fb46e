"""Sweeps of a small domain, for the tests of these."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from conformance.meaning.domain import TINY_DOMAIN, Domain
from conformance.model import Spec
from conformance.sweep.blocks import SweepRequest, blocks_of, list_variants
from conformance.sweep.context import SweepContext
from conformance.sweep.run_block import BlockRun
from conformance.sweep.sweep_file import SWEEP_FILE
from conformance.sweep.tally import EMPTY, Tally, add
from tests.builders import CommandOutput

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


def read(folder: Path) -> Any:
    """Return what a sweep wrote."""
    return json.loads((folder / SWEEP_FILE).read_text(encoding="utf-8"))
