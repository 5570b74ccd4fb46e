"""A page about the reshapes of model files, with a picture of each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..model import Call, KnownFault
from ..report.picture import Picture, draw_reading
from ..report.render import render_page
from .conclude import CheckedNode, Trial, format_findings
from .decide import Judge
from .nodes import whole

_STYLES = {"illegal": "fail", "not decided": "warn", "conditional": "warn", "unspecified": "observed", "legal": "pass"}
_SIGNS = {"illegal": "✗", "not decided": "?", "conditional": "~", "unspecified": "◆", "legal": "✓"}


class NodeEntry(NamedTuple):
    """A reshape on the page."""

    place: str
    name: str
    call: str
    kind: str
    findings: tuple[str, ...]
    picture: Picture | None
    """The call in the first trial with the worst meaning; None if it is not known."""
    faults: tuple[KnownFault, ...]
    """Known faults of backends that may hit it."""


class FileSection(NamedTuple):
    """A file on the page."""

    name: str
    entries: Sequence[NodeEntry]
    why_unreadable: str


def make_entry(
    node: CheckedNode, call: str, trials: Sequence[Trial], judge: Judge, faults: tuple[KnownFault, ...]
) -> NodeEntry:  # fmt: skip
    """Return the row of a node; `call` describes it in words."""
    texts = (
        f"{text} ({', '.join(documents)})" if documents else text for text, documents in format_findings(node, trials)
    )
    return NodeEntry(node.first.place, node.first.name, call, node.kind, tuple(texts), _draw(node, judge), faults)


def _draw(node: CheckedNode, judge: Judge) -> Picture | None:
    for document, decisions in node.decisions.items():
        for decision, variant in zip(decisions, node.variants, strict=True):
            if decision.kind == node.kind:
                src, shape, special_zero = whole(variant.src), whole(variant.shape), variant.special_zero
                if src is None or shape is None or special_zero is None:
                    return None
                contract = judge.contract(document)
                meaning = contract.meaning(src, shape, special_zero)
                if node.kind == "illegal" and meaning.kind != "illegal":  # its form is illegal, not its lengths
                    meaning = meaning._replace(kind="illegal")
                return draw_reading(Call(src, shape, special_zero), contract, meaning)
    return None


def render_graphs(files: Iterable[FileSection], summary: str, run: str, end: str) -> str:
    """Return the page, which loads nothing from elsewhere. It says what was run, and how the command ended."""
    return render_page("graphs.html", models=[*files], summary=summary, run=run, end=end, styles=_STYLES, signs=_SIGNS)
