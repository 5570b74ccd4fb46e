"""`conformance check --prove`: does the reference answer as each document says, for all lengths?"""

from __future__ import annotations

import importlib
from typing import Any

from ..model import Spec
from ..selfcheck.prove import Disagreement, Proof, prove
from ..system.terminal import paint, say, wrap
from .arguments import Usage, emit
from .facts import command_of, of_call

_MAX_RANK = 4
"""Rank 3 takes ten seconds, rank 4 seven minutes."""


def try_proof(spec: Spec, rank: str, as_json: bool) -> int:
    """Print what is proved; 1 if the reference decides a call otherwise than a document."""
    if not rank.isdecimal() or not 1 <= int(rank) <= _MAX_RANK:
        raise Usage(f"--prove {rank[:20]}: write a rank from 1 to {_MAX_RANK}; 3 takes ten seconds, 4 seven minutes")
    decide = importlib.import_module("conformance.adapters.reference").decide
    proofs: dict[str, Proof] = {}
    for name, proof in prove(spec, decide, int(rank)):
        proofs[name] = proof
        if not as_json:
            _show(name, proof, name in spec.documents)
    is_proved = not any(proofs[document].differences for document in spec.documents)
    if as_json:
        emit({"ok": is_proved, "rank": int(rank), "proofs": {name: _data(proof) for name, proof in proofs.items()}})
    else:
        claim = "the reference answers as each document says, for all lengths"
        say(f"{'proved' if is_proved else paint('red', 'not proved')}: {claim}, with up to {rank} in src and in shape")
    return 0 if is_proved else 1


def _show(name: str, proof: Proof, is_document: bool) -> None:
    one, _, other = name.partition(" and ")
    sides = one, other or "the reference"
    same = "the reference answers as it says" if is_document else "mean the same"
    said = "; ".join(_describe(each, *sides) for each in proof.differences) or same
    say(wrap(f"{paint('bold', name)}: {said} ({proof.runs:,} ways)"))


def _describe(difference: Disagreement, one: str, other: str) -> str:
    where = f" where {difference.where}" if difference.where else ""
    call = f": {command_of(difference.call)}" if difference.call else ", but no call was found that shows it"
    return f"{difference.one} in {one}, {difference.other} in {other}{where}{call}"


def _data(proof: Proof) -> dict[str, Any]:
    differences = [each._asdict() | {"call": each.call and of_call(each.call)} for each in proof.differences]
    return {"ways": proof.runs, "differences": differences}
