"""`conformance check --prove`: does the reference answer as each document says, for all lengths?"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

from ..model import Spec
from ..selfcheck.obligations import obligations
from ..selfcheck.prove import Disagreement, Proof, prove
from ..system.terminal import count_noun, paint, say, wrap
from .arguments import Stop, emit
from .facts import command_of, of_call

_MAX_RANK = 4
"""Rank 3 takes ten seconds, rank 4 a minute."""
_MAX_SHOWN = 4
"""Obligations to show: a document that the reference does not follow refutes hundreds."""


def try_proof(spec: Spec, rank: str, as_json: bool, options: str) -> int:
    """Print what is proved; 1 if the reference decides a call otherwise than a document."""
    if rank not in map(str, range(1, _MAX_RANK + 1)):
        raise Stop(f"--prove {rank[:20]}: write a rank from 1 to {_MAX_RANK}; 3 takes ten seconds, 4 a minute")
    decide = importlib.import_module("conformance.adapters.reference").decide
    proofs: dict[str, Proof] = {}
    for name, proof in prove(spec, decide, int(rank)):
        proofs[name] = proof
        if not as_json:
            _show(name, proof, name in spec.documents, options)
    checked = _ask_z3(spec, decide, int(rank)) if find_spec("z3") else None
    wrong = {document for document in spec.documents if proofs[document].differences}
    is_proved = not wrong and not (checked and checked["refuted"])
    if as_json:
        data = {name: _collect_data(proof) for name, proof in proofs.items()}
        emit({"ok": is_proved, "rank": int(rank), "proofs": data, "z3": checked})
        return 0 if is_proved else 1
    if checked is None:
        say("no solver checked these steps: pip install 'reshape-conformance[prove]'")
    else:
        for obligation in checked["refuted"][:_MAX_SHOWN]:
            say(wrap(f"not confirmed by z3: {obligation}"))
        if (more := len(checked["refuted"]) - _MAX_SHOWN) > 0:
            say(f"and {more} more; --json has all")
        number = count_noun(checked["obligations"], "obligation")
        said = f"does not confirm {len(checked['refuted'])} of" if checked["refuted"] else "confirms"
        say(f"z3 {checked['version']} {said} {number}")
    claim = "the reference answers as each document says, for all lengths"
    say(f"{'proved' if is_proved else paint('red', 'not proved')}: {claim}, with up to {rank} in src and in shape")
    if wrong and wrong <= spec.added:
        say("the reference knows only the bundled documents, and answers as each of them says")
    return 0 if is_proved else 1


def _ask_z3(spec: Spec, decide: Callable[..., Any], rank: int) -> dict[str, Any]:
    number, refuted = 0, list[str]()
    for each in obligations(spec, decide, rank):
        number += len(each.labels)
        refuted += each.find_refuted()
    version = importlib.import_module("z3").get_version_string()
    return {"version": version, "obligations": number, "refuted": refuted}


def _show(name: str, proof: Proof, is_document: bool, options: str) -> None:
    one, _, other = name.partition(" and ")
    sides = one, other or "the reference"
    same = "the reference answers as it says" if is_document else "mean the same"
    said = "; ".join(_describe(each, *sides, options) for each in proof.differences) or same
    say(wrap(f"{paint('bold', name)}: {said} ({proof.runs:,} ways)"))


def _describe(difference: Disagreement, one: str, other: str, options: str) -> str:
    sides = (difference.one, one, difference.one_rules), (difference.other, other, difference.other_rules)
    said = ", ".join(f"{kind} in {side}" + (f" ({', '.join(rules)})" if rules else "") for kind, side, rules in sides)
    where = f", such as where {difference.where}" if difference.where else ""
    call = f": {command_of(difference.call)}{options}" if difference.call else ", but no call was found that shows it"
    return f"{said}, in {count_noun(difference.ways, 'way')}{where}{call}"


def _collect_data(proof: Proof) -> dict[str, Any]:
    differences = [each._asdict() | {"call": each.call and of_call(each.call)} for each in proof.differences]
    return {"ways": proof.runs, "differences": differences}
