"""Write the node tests of another suite as cases; name those whose call a case makes already."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..graphs.decide import Judge
from ..graphs.nodes import ReshapeNode, whole
from ..graphs.write_cases import case_lines
from ..model import Case, Suite
from ..model.cases import Step, given_keys
from .onnx_import import LeftOut, NodeTest

Call = tuple[tuple[int, ...] | None, tuple[int, ...] | None, bool | None]
"""src dims, shape and special_zero, whatever the element type."""


class Imported(NamedTuple):
    """The outcome of an import."""

    text: str
    """A file of cases; empty if there are none, because a file without cases is an error."""
    cases: tuple[str, ...]
    """Ids of the new cases."""
    duplicates: Mapping[str, str]
    """The case that makes the call already, by the name of the test."""
    disagreements: tuple[str, ...]
    """Lines about tests that want other dims than the documents give."""
    left_out: tuple[LeftOut, ...]


def import_cases(tests: Iterable[NodeTest | LeftOut], suite: Suite) -> Imported:
    """Return the tests as cases, one for each call that no case of the suite makes alone."""
    judge, known = Judge(suite.spec, tuple(suite.spec.documents)), known_calls(suite)
    duplicates: dict[str, str] = {}
    written: dict[str, list[str]] = {}
    disagreements: list[str] = []
    left_out: list[LeftOut] = []
    for test in tests:
        if isinstance(test, LeftOut):
            left_out.append(test)
            continue
        disagreements += _find_disagreement(test, judge)
        call = _call_of(test.call)
        lines = [] if call in known else list(case_lines(test.call, judge))
        if call in known:
            duplicates[test.name] = known[call]
        elif lines:
            known[call] = _id_of(test.name, {*suite.cases, *written})
            written[known[call]] = lines
        else:
            left_out.append(LeftOut(test.name, "its tensors are too large for a case"))
    return Imported(_text_of(written), tuple(written), duplicates, tuple(disagreements), tuple(left_out))


def known_calls(suite: Suite) -> dict[Call, str]:
    """Return the first case that makes each call alone and with nothing unusual about it but the elements."""
    known: dict[Call, str] = {}
    for case in suite.cases.values():
        if case.attributes or case.inputs or case.outputs or case.declared is not None or _is_unusual(case):
            continue
        for step in case.steps:
            if len(step.shapes) == 1 and not _is_unusual(step):
                known.setdefault((step.src, step.shapes[0], step.special_zero[0]), case.id)
    return known


def _is_unusual(part: Case | Step) -> bool:
    """True if a key changes the call itself, rather than its elements, its title or the number of rows."""
    return any(key.name != "bits" and (key.words or key.facet) for key, _ in given_keys(part))


def _call_of(call: ReshapeNode) -> Call:
    return whole(call.src), whole(call.shape), call.special_zero


def _id_of(name: str, taken: set[str]) -> str:
    """Return an id that no case has, such as onnx-reshape-one-dim."""
    words = re.sub(r"[^a-z0-9]+", "-", name.removeprefix("test_").lower()).strip("-") or "test"
    plain, number = f"onnx-{words}", 2
    id_ = plain
    while id_ in taken:
        id_, number = f"{plain}-{number}", number + 1
    return id_


def _find_disagreement(test: NodeTest, judge: Judge) -> list[str]:
    wanted = {decision.dst if decision.kind == "legal" else decision.kind
              for decision in judge.decide_everywhere(test.call).values()}  # fmt: skip
    others = sorted(str(list(each) if isinstance(each, tuple) else each) for each in wanted - {test.dst, "unspecified"})
    return [f"{test.name}: the test wants {list(test.dst)}, and a document has {', '.join(others)}"] if others else []


def _text_of(written: Mapping[str, list[str]]) -> str:
    if not written:
        return ""
    head = "# Written by `conformance import`.\nextends: bundled\nabout: Reshapes of node tests of ONNX.\ncases:"
    body = ("\n".join([f"  - id: {id_}", *lines, "    once: for-each-operation"]) for id_, lines in written.items())
    return "\n".join([head, *body]) + "\n"
