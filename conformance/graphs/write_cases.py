"""The calls of the nodes of model files as cases, for `conformance run --cases`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from ..meaning.contract import contracts
from ..model import Call, Meaning, Spec
from ..model.types import WIDTH
from ..system.files import replace_text
from .decide import Judged, Tried

FILE = "graphs.yaml"
PREFIX = "model-node"
"""Begins the ids of the cases, and no other id of the suite."""
_MOST_ELEMENTS = 1 << 28
"""Elements of src that a case may have."""
_LENGTHS = tuple[int, ...]


class NodeCase(NamedTuple):
    """A case that calls what one or more nodes call."""

    id: str
    src_type: str
    src: _LENGTHS
    shape: _LENGTHS
    special_zero: bool
    nodes: tuple[str, ...]


def cases_of(files: Iterable[Sequence[Judged]]) -> tuple[list[NodeCase], int]:
    """Return a case for each different call that is known whole, and the number of tries without one."""
    found: dict[tuple[str, _LENGTHS, _LENGTHS, bool], dict[str, None]] = {}
    without = 0
    for nodes in files:
        for judged in nodes:
            for tried in judged.tries:
                call = call_of(tried)
                if call is None:
                    without += 1
                else:
                    found.setdefault(call, {})[tried.node.name] = None
    ids: set[str] = set()
    cases = []
    for (type_, src, shape, zero), names in found.items():
        nodes_of = tuple(names)
        cases.append(NodeCase(_new_id(nodes_of[0], src, shape, ids), type_, src, shape, zero, nodes_of))
    return cases, without


def call_of(tried: Tried) -> tuple[str, _LENGTHS, _LENGTHS, bool] | None:
    """Return the call of a node; None if it is not known whole, or no case can have it."""
    node = tried.node
    if node.src is None or node.shape is None or node.special_zero is None or node.src_type not in WIDTH:
        return None
    src, shape = (tuple(n for n in row if isinstance(n, int)) for row in (node.src, node.shape))
    volume = 1
    for length in src:
        volume *= length
    if len(src) < len(node.src) or len(shape) < len(node.shape) or volume > _MOST_ELEMENTS:
        return None
    return node.src_type, src, shape, node.special_zero


def _new_id(name: str, src: _LENGTHS, shape: _LENGTHS, ids: set[str]) -> str:
    words = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[-40:].strip("-") or "node"
    lengths = "-".join(map(str, src))[:40].strip("-") or "scalar"
    id_ = plain = f"{PREFIX}-{words}-{lengths}"
    number = 1
    while id_ in ids:
        number += 1
        id_ = f"{plain}-n{number}"
    ids.add(id_)
    return id_


def write_cases(folder: Path, cases: Sequence[NodeCase], spec: Spec) -> None:
    """Write the cases into a folder, with what every document expects."""
    compiled = contracts(spec)
    lines = ["extends: bundled", 'about: "Calls of the reshape nodes of model files."', "cases:"]
    for case in cases:
        call = Call(case.src, case.shape, case.special_zero)
        meanings = {document: contract.meaning(*call) for document, contract in compiled.items()}
        broken = next((m.rules[0] for m in meanings.values() if m.kind != "legal" and m.rules), "same-volume")
        lines += [
            f"  - id: {case.id}", f"    rule: {broken}", f"    src: {case.src_type}{list(case.src)}",
            f"    shape: {list(case.shape)}", f"    special_zero: {str(case.special_zero).lower()}",
            f"    expect: {_expectation(case, meanings, spec)}",
        ]  # fmt: skip
    replace_text(folder / FILE, "\n".join(lines) + "\n")


def _expectation(case: NodeCase, meanings: dict[str, Meaning], spec: Spec) -> str:
    """Write one expectation for all documents, or one for each."""
    texts = {}
    for document, meaning in meanings.items():
        types = spec.operations[spec.documents[document].operation].types
        if meaning.kind == "illegal":
            texts[document] = "reject"
        elif meaning.kind == "unspecified" or case.src_type not in types:
            texts[document] = "unspecified"
        else:
            texts[document] = f"{case.src_type}{list(meaning.dst or ())}"
    if len({*texts.values()}) == 1:
        return next(iter(texts.values()))
    return f"{{{', '.join(f'{document}: {_quote(text)}' for document, text in texts.items())}}}"


def _quote(text: str) -> str:
    return f'"{text}"' if "[" in text else text
