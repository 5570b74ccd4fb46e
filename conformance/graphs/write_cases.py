"""Write the calls of a model's reshapes as cases, so that a backend can be run on exactly these."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..model.types import WIDTH
from ..plan.memory import MAX_ANSWER_RANK
from ..shrink.write_case import write_expectation, write_expectations
from .conclude import CheckedNode
from .decide import NodeJudge
from .nodes import Dims, ReshapeNode, known_dims

MAX_BYTES = 1 << 28
"""Bytes of src or dst in a case; larger tensors would make a run slow."""
PREFIX = "graph-call-"
"""How the ids of these cases begin."""


class WrittenCases(NamedTuple):
    """A file of cases, and how many it holds."""

    text: str
    number: int
    left_out: int
    """Calls that no case can hold: not decided, too large, or decided by the form or the declared dst."""
    operations: tuple[str, ...]
    """The operations that the calls name; none if one of them may be of any."""


def write_cases(nodes: Iterable[CheckedNode], judge: NodeJudge) -> WrittenCases:
    """Return a case for each different call; the contracts of all documents say what is expected."""
    calls: dict[str, str] = {}
    left_out: set[ReshapeNode] = set()
    named: set[str | None] = set()
    for node in nodes:
        for variant in node.variants:
            lines = list(_write_case(variant, judge))
            if lines:
                calls.setdefault("\n".join(lines), f"{PREFIX}{len(calls) + 1}")
                named.add(variant.operation)
            else:
                left_out.add(variant._replace(name="", place="", missing=""))
    head = "# Written by `conformance check-graph`.\nextends: bundled\nabout: The reshapes of model files.\ncases:\n"
    text = "".join(f"  - id: {name}\n{lines}\n" for lines, name in calls.items())
    operations = [each.id for each in judge.spec.operations.values() if each.kind in named and None not in named]
    return WrittenCases(head + text, len(calls), len(left_out), tuple(operations))


def _write_case(call: ReshapeNode, judge: NodeJudge) -> Iterator[str]:
    """Yield the keys of a case except its id; nothing if no case can hold the call."""
    src, shape = known_dims(call.src), known_dims(call.shape)
    if src is None or shape is None or call.special_zero is None or call.src_type not in WIDTH:
        return
    if max(len(src), len(shape)) > MAX_ANSWER_RANK:
        return
    plain = call._replace(declared=None, form=None)
    own, without = ([each.kind for each in judge.decide(node).values()] for node in (call, plain))
    if own != without:
        return
    plain = plain._replace(operation=None, missing="")
    decisions = judge.decide_everywhere(plain)
    tensors = [src, *(each.dst for each in decisions.values())]
    if max(map(_find_volume, tensors)) * WIDTH[call.src_type] > MAX_BYTES:
        return
    illegal_first = sorted(decisions.values(), key=lambda decision: decision.kind != "illegal")
    rules = [rule for decision in illegal_first for rule in decision.rules]
    yield f"    rule: {rules[0] if rules else judge.find_rule_of_entries(plain)}"
    yield f"    src: {call.src_type}{list(src)}"
    yield f"    shape: {list(shape)}"
    yield f"    special_zero: {str(call.special_zero).lower()}"
    expected = {name: write_expectation(call.src_type, each.kind, each.dst) for name, each in decisions.items()}
    yield f"    expect: {write_expectations(expected)}"


def _find_volume(dims: Dims | None) -> int:
    return math.prod(length for length in dims or () if isinstance(length, int))
