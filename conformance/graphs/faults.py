"""Find the known faults of backends that may hit the reshapes of a model. Nothing is run."""

from __future__ import annotations

from collections.abc import Iterator

from ..meaning.faults import KnownFaults
from ..model.faults import KnownFault, LegalCall
from .conclude import CheckedNode
from .nodes import whole


def find_faults(node: CheckedNode, known: KnownFaults) -> tuple[KnownFault, ...]:
    """Return the faults that a legal call of a node may meet, for any length tried."""
    return tuple(dict.fromkeys(fault for call in _legal_calls(node) for fault in known.hitting(call)))


def _legal_calls(node: CheckedNode) -> Iterator[LegalCall]:
    """Yield the call of each trial in which it is legal and known whole."""
    for number, variant in enumerate(node.variants):
        src, shape = whole(variant.src), whole(variant.shape)
        decided = [decisions[number] for decisions in node.decisions.values()]
        dst = next((whole(decision.dst) for decision in decided if decision.kind == "legal"), None)
        if src is not None and shape is not None and dst is not None and variant.src_type is not None:
            yield LegalCall(variant.src_type, src, shape, bool(variant.special_zero), dst)
