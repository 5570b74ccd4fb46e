"""A plan under a nonce: src has other contents in every row, and there are calls that are in no case.

Nobody can prepare answers for it before the nonce is known. The plan depends on the suite and the nonce alone, so that
whoever knows both can make it again, and judge the evidence of a run without the backend.
"""

from __future__ import annotations

import hashlib
import math
import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from functools import lru_cache
from itertools import count

from ..meaning.contract import Contract, contracts, group_documents
from ..model import Case, Place, Suite
from ..plan.rows import Plan, has_many_elements, plan_of, rows_of
from .calls import DrawnCall, SeededDraws, draw_any_call, step_of

NONCE = re.compile("[0-9a-f]{64}")
"""32 bytes in hexadecimal."""
_ROW = re.compile(r"fresh-[0-9a-f]{8}-[0-9]+\[.*\]")
CALLS_PER_RULE = 16
"""Calls for each rule that has a contract."""
MAX_DRAWS = 20_000
MAX_ELEMENTS = 4096


@lru_cache(2)
def plan_under_nonce(plan: Plan, nonce: str | None) -> Plan:
    """Return the plan of the same suite under a nonce; without one, the plan itself."""
    if nonce == plan.nonce:
        return plan
    if nonce is None or plan.nonce is not None:
        raise ValueError("a plan has one nonce")
    suite, compiled = plan.suite, contracts(plan.suite.spec)
    salted = [replace(case, start=_start(nonce, case.id)) for case in suite.cases.values()]
    cases = sorted((*salted, *draw_nonce_cases(suite, compiled, nonce)), key=has_many_elements)
    return Plan(suite, tuple(rows_of(cases, suite.spec, compiled)), nonce)


def with_every_row(plan: Plan) -> Plan:
    """Return the plan with every row, also if its -k chose some."""
    return plan if plan.select is None else plan_under_nonce(plan_of(plan.suite), plan.nonce)


def is_of_nonce(row_id: str) -> bool:
    return _ROW.fullmatch(row_id) is not None


def _start(nonce: str, case: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{nonce} {case}".encode()).digest()[:8], "big")


class _NonceDraw(SeededDraws):
    """Draws by SHA-256 in counter mode, which never changes; 53 bits for each number."""

    def __init__(self, nonce: str) -> None:
        digests = (hashlib.sha256(f"{nonce} {number}".encode()).digest() for number in count())
        words = (word for digest in digests for word in struct.unpack(">4Q", digest))
        self._random = lambda: (next(words) >> 11) / 2**53


def draw_nonce_cases(suite: Suite, compiled: Mapping[str, Contract], nonce: str) -> Iterator[Case]:
    """Draw calls that are in no case, until each rule has met CALLS_PER_RULE of them or MAX_DRAWS are drawn."""
    draw, met, full, number = _NonceDraw(nonce), Counter[str](), set[str](), 0
    known = {
        (step.src, shape, special_zero)
        for case in suite.cases.values()
        for step in case.steps
        for shape, special_zero in zip(step.shapes, step.special_zero, strict=True)
    }
    differing = group_documents(compiled)
    for _ in range(MAX_DRAWS):
        call = draw_any_call(draw)
        if call in known or math.prod(call.src) > MAX_ELEMENTS:
            continue
        wanted = [rule for rule in dict.fromkeys(_find_rules_met(call, differing, full)) if rule not in full]
        if wanted:
            known.add(call)
            met.update(wanted)
            full.update(rule for rule in wanted if met[rule] == CALLS_PER_RULE)
            number += 1
            name, start = f"fresh-{nonce[:8]}-{number}", _start(nonce, str(number))
            yield Case(name, "fresh", wanted[0], (step_of("T", [call]),), Place("fresh", 1), start=start)


def _find_rules_met(call: DrawnCall, differing: Iterable[Contract], full: Set[str]) -> Iterator[str]:
    """Yield rules that a call breaks alone in a document, or that fix an entry of a legal dst, unless all are full."""
    for contract in differing:
        meaning = contract.meaning(*call)
        if meaning.kind == "illegal" and len(meaning.rules) == 1:
            yield meaning.rules[0]
        elif meaning.kind == "legal" and not contract.of_entries <= full:
            yield from (entry.rule for entry in contract.entries(*call) if entry.rule is not None)
