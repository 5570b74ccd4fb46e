"""Rows of one plain call as JSON, which programs in any language read, and the rows that such files hold."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from .. import __version__
from ..load.faults import load_faults
from ..load.folders import find_spec_folder
from ..meaning.faults import KnownFaults
from ..model import Meaning, PlainCall, Suite
from ..model.types import WIDTH
from ..plan.contents import EDGES, scramble_of
from ..plan.memory import patterns
from ..plan.rows import Row
from ..system.files import replace_text
from .choose import COMMON, AlikeRows, ExportChoice, Reasons

LOST: tuple[str, ...] = (
    "sequences of calls, and several nodes in one graph",
    "missing, additional or wrong attributes and operands, and what a graph declares of dst",
    "layouts, strides, dst in the memory of src",
    "what a call does to src, to the memory around dst, and to the next call",
)
"""What these files do not test, though the suite does."""
_REASONS: Reasons = {
    **COMMON,
    "chain": "several nodes",
    "declared": "dims or strides declared of dst",
    "layout:": "a layout of src in memory",
    "large": "a tensor of more than 2^31 elements",
}
_MAX_BYTES_WRITTEN = 64
"""Elements of more bytes are described by their SHA-256."""


def choose_vectors(rows: Sequence[Row]) -> ExportChoice:
    """Choose the rows of one call of one node with dense tensors; those of the same call and types are one test."""
    groups: dict[tuple[str, str, str], list[Row]] = {}
    left_out: Counter[str] = Counter()
    for row in rows:
        reasons = (words for start, words in _REASONS.items() if any(facet.startswith(start) for facet in row.facets))
        why = "several calls" if len(row.case.steps) > 1 else next(reasons, None)
        if row.case.known != "all" or row.case.unknown_rank:  # also where shape arrives with run
            why = COMMON["unknown-src"]
        if row.case.shape_offset:
            why = "another place of shape in its memory"
        if why is None:
            groups.setdefault((row.case.id, row.type, row.shape_type), []).append(row)
        else:
            left_out[why] += 1
    return ExportChoice(tuple(AlikeRows(tuple(group)) for group in groups.values()), left_out)


def write_vectors(suite: Suite, chosen: Iterable[AlikeRows], out: Path) -> int:
    """Write a file for each rule, the index and the schema into a folder, and return the number of tests."""
    faults = load_faults()
    known = KnownFaults(faults)
    tests: dict[str, list[dict[str, Any]]] = {}
    types = set()
    for group in chosen:
        tests.setdefault(group.rows[0].case.rule, []).append(_test_of(group.rows, known))
        types.add(group.rows[0].type)
    texts = {"schema.json": (find_spec_folder() / "schema" / "vectors.json").read_text(encoding="utf-8")}
    for rule, each in tests.items():
        lines = ",\n".join(json.dumps(test) for test in each)
        texts[f"{rule}.json"] = f'{{"schema": "schema.json", "rule": "{rule}", "tests": [\n{lines}\n]}}\n'
    index = {
        "schema": "schema.json",
        "version": __version__,
        "suite_digest": suite.digest,
        "documents": {
            name: {"edition": document.edition, "operation": document.operation}
            for name, document in suite.spec.documents.items()
        },
        "rules": {
            name: {"sentence": rule.sentence, "stated": sorted({f"{at.document}:{at.line}" for at in rule.stated})}
            for name, rule in suite.spec.rules.items()
        },
        "known_faults": {
            fault.id: {"backends": dict(fault.backends), "title": fault.title} for fault in faults if not fault.rules
        },
        "types": {
            type_: {"width": WIDTH[type_], "scramble": scramble_of(type_)._asdict(), "edges": EDGES[type_]}
            for type_ in sorted(types)
        },
        "files": {
            name: {"tests": len(tests.get(name.removesuffix(".json"), ())), "sha256": _digest(text.encode())}
            for name, text in texts.items()
        },
    }
    for name, text in {**texts, "index.json": json.dumps(index, indent=1) + "\n"}.items():
        replace_text(out / name, text)
    return sum(map(len, tests.values()))


def _test_of(rows: Sequence[Row], known: KnownFaults) -> dict[str, Any]:
    row, step = rows[0], rows[0].steps[0]
    call = row.case.steps[0]
    meanings = {name: each.meaning for row in rows for each in row.steps[0].meanings for name in each.documents}
    dst = next((meaning.dst for meaning in meanings.values() if meaning.kind == "legal"), None)
    hit = PlainCall(row.type, call.src, call.shapes[0], call.special_zero[0], tuple(n or 0 for n in dst or ()))
    elements = patterns(step.src_spec).tobytes()
    is_short = len(elements) <= _MAX_BYTES_WRITTEN
    test = {
        "id": f"{row.case.id}-{row.type}-{row.shape_type}",
        "case": row.case.id,
        "title": row.case.heading,
        "src": {"type": row.type, "dims": call.src},
        "contents": {
            "seed": step.src_spec.start,
            **({"bits": call.bits} if call.bits else {}),
            **({"bytes": elements.hex()} if is_short else {"sha256": _digest(elements)}),
        },
        "shape": {"type": row.shape_type, "values": call.shapes[0]},
        "special_zero": call.special_zero[0],
        "documents": {name: _meaning_of(meaning) for name, meaning in meanings.items()},
        "known_faults": [] if dst is None else [fault.id for fault in known.of_legal_call(hit) if not fault.facets],
        "rows": [
            {"id": each.id, "operation": each.operation, "shape_passed_as": each.shape_passed_as} for each in rows
        ],
    }
    for each in rows:
        each.free_steps()
    return test


def _meaning_of(meaning: Meaning) -> dict[str, Any]:
    limit = {} if meaning.max_length is None else {"max_length": meaning.max_length}
    return {"kind": meaning.kind, "dst": meaning.dst, "rules": meaning.rules, **limit}


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
