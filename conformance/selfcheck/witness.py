"""Find out if a case shows that a rule is needed."""

from __future__ import annotations

from collections.abc import Mapping

from ..meaning.contract import Contract
from ..model import Case, Meaning, Rule, Spec
from ..plan.rows import rows_of


def is_witness(
    case: Case, spec: Spec, rule: Rule, whole: Mapping[str, Contract], lacking: Mapping[str, Contract]
) -> bool:
    """True if a call of the case means something else without the rule, in a document that it binds."""
    for row, without in zip(rows_of([case], spec, whole), rows_of([case], spec, lacking), strict=True):
        for step, other in zip(row.steps, without.steps, strict=True):
            before = {document: meaning for meaning, documents in step.meanings for document in documents}
            after = {document: meaning for meaning, documents in other.meanings for document in documents}
            for document in rule.documents & before.keys():
                if _demands_of(before[document]) != _demands_of(after[document]):
                    return True
    return False


def _demands_of(meaning: Meaning) -> tuple[object, ...]:
    """Return what a backend has to do: the kind, the answer, and whether it may reject a legal call."""
    return meaning.kind, meaning.dst, meaning.kind == "legal" and bool(meaning.rules)
