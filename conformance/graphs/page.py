"""A page about the reshapes of model files, with a picture of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..model import Call
from ..report.picture import Picture, draw_reading
from ..report.render import format_foot, render_page
from .conclude import CheckedNode, format_decisions
from .decide import NodeJudge
from .nodes import known_dims

_STYLES = {"illegal": "fail", "not decided": "warn", "conditional": "warn", "unspecified": "observed", "legal": "pass"}
_SIGNS = {"illegal": "✗", "not decided": "?", "conditional": "~", "unspecified": "◆", "legal": "✓"}


def make_entry(node: CheckedNode, call: str, judge: NodeJudge) -> dict[str, Any]:
    """Return the row of a node; `call` describes it in words. Its picture shows the first trial of the worst kind."""
    texts = (f"{text} ({', '.join(documents)})" if documents else text for text, documents in format_decisions(node))
    return {
        "place": node.first.place, "name": node.first.name, "call": call, "kind": node.kind, "findings": [*texts],
        "picture": _draw_node(node, judge), "faults": node.faults,
    }  # fmt: skip


def _draw_node(node: CheckedNode, judge: NodeJudge) -> Picture | None:
    for document, decisions in node.decisions.items():
        for decision, variant in zip(decisions, node.variants, strict=True):
            if decision.kind == node.kind:
                src, shape, special_zero = known_dims(variant.src), known_dims(variant.shape), variant.special_zero
                if src is None or shape is None or special_zero is None:
                    return None
                contract = judge.contracts[document]
                meaning = contract.meaning(src, shape, special_zero)
                if node.kind == "illegal" and meaning.kind != "illegal":  # its form is illegal, not its lengths
                    meaning = meaning._replace(kind="illegal")
                return draw_reading(Call(src, shape, special_zero), contract, meaning)
    return None


def render_graphs(files: Iterable[Mapping[str, Any]], digest: str, summary: str, run: str, end: str) -> str:
    """Return the page, which loads nothing from elsewhere. It says what was run, and how the command ended.
    `digest` is that of the specification.

    A file has a name, entries of `make_entry`, and the text `why_unreadable`.
    """
    return render_page(
        "graphs.html", format_foot(digest, of="specification"), models=[*files], summary=summary, run=run, end=end,
        styles=_STYLES, signs=_SIGNS,
    )  # fmt: skip
