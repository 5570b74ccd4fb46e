"""Write the calls of a model's reshapes as cases, so that a backend can be run on exactly these."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..model.types import WIDTH
from .conclude import CheckedNode
from .decide import Decision, Judge
from .nodes import Dims, ReshapeNode, whole

MOST_BYTES = 1 << 28
"""Bytes of src or dst in a case; larger tensors would make a run slow."""


PREFIX = "graph-call-"
"""How the ids of these cases begin."""


class Written(NamedTuple):
    """A file of cases, and how many it holds."""

    text: str
    number: int
    left_out: int
    """Calls that no case can hold: of an unknown length, of a type without a width, or too large."""


def write_cases(nodes: Iterable[CheckedNode], judge: Judge) -> Written:
    """Return a case for each different call; the contracts of all documents say what is expected."""
    calls: dict[str, str] = {}
    left_out: set[str] = set()
    for node in nodes:
        for variant in node.variants:
            lines = list(_case_lines(variant, judge))
            if lines:
                calls.setdefault("\n".join(lines), f"{PREFIX}{len(calls) + 1}")
            else:
                left_out.add(f"{variant.src_type} {variant.src} {variant.shape} {variant.special_zero}")
    head = "# Written by `conformance check-graph`.\nextends: bundled\nabout: The reshapes of model files.\ncases:\n"
    text = "".join(f"  - id: {name}\n{lines}\n" for lines, name in calls.items())
    return Written(head + text, len(calls), len(left_out))


def _case_lines(call: ReshapeNode, judge: Judge) -> Iterator[str]:
    """Yield the keys of a case but its id; nothing if no case can hold the call."""
    src, shape = whole(call.src), whole(call.shape)
    if src is None or shape is None or call.special_zero is None or call.src_type not in WIDTH:
        return
    plain = call._replace(operation=None, declared=None, form=None, missing="")
    decisions = judge.decide_everywhere(plain)
    tensors = [src, *(each.dst for each in decisions.values())]
    if max(map(_volume, tensors)) * WIDTH[call.src_type] > MOST_BYTES:
        return
    rules = [rule for each in decisions.values() for rule in each.rules]
    yield f"    rule: {rules[0] if rules else judge.rule_of_entries(plain)}"
    yield f'    src: "{call.src_type}{list(src)}"'
    yield f"    shape: {list(shape)}"
    yield f"    special_zero: {str(call.special_zero).lower()}"
    expected = {document: _expect(call.src_type, decision) for document, decision in decisions.items()}
    common = Counter(expected.values()).most_common(1)[0][0]
    others = [f"{document}: {_quote(text)}" for document, text in expected.items() if text != common]
    star = f"{_quote('*')}: {_quote(common)}"
    yield f"    expect: {{{', '.join([*others, star])}}}" if others else f"    expect: {_quote(common)}"


def _volume(dims: Dims | None) -> int:
    return math.prod(length for length in dims or () if isinstance(length, int))


def _expect(src_type: str, decision: Decision) -> str:
    if decision.kind == "legal":
        return f"{src_type}{list(decision.dst or ())}"
    return "reject" if decision.kind == "illegal" else "unspecified"


def _quote(text: str) -> str:
    return f'"{text}"'
