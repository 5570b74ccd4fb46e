"""Prove for all lengths, up to a rank, that the reference decides as each document says, and where documents differ.

Two sides run on the same named lengths, once for each way that both can go together, so that a finite number of runs
speaks for every length. No solver is needed: where meaning/symbols.py does not know that an answer follows from the
facts of a run, it tries both. A run that no length can take may then end in a difference that no call shows. Such a
difference is reported, and the proof fails. For a reader who does not trust that engine, obligations.py asks a solver.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

from ..meaning.contract import Contract, contracts
from ..meaning.partial import describe_facts, text_of
from ..meaning.symbols import Facts, runs
from ..model import Call, Spec

MAX_RUNS = 1_000_000
_SRC, _SHAPE = (0, 1, 2, 3, 4, 6), (-2, -1, 0, 1, 2, 3, 4, 6, 12)
"""Lengths in which a difference is looked for, once a run has shown that there may be one."""


Side = Callable[[Sequence[Any], Sequence[Any], bool], tuple[str, Any, tuple[str, ...]]]
"""(src, shape, special_zero) → the kind of the call, dst, and the rules that decide it, if the side names any."""


class Disagreement(NamedTuple):
    """A call that two sides decide differently."""

    one: str
    other: str
    call: Call | None
    """None if none was found: the sides may agree, but that is not proved."""
    where: str
    """The facts in which it was found."""
    ways: int = 0
    """The number of ways in which the sides decide so."""
    one_rules: tuple[str, ...] = ()
    """Those by which the first side decides so, in any of these ways."""
    other_rules: tuple[str, ...] = ()


class Proof(NamedTuple):
    """The number of runs, and the first difference for each pair of kinds."""

    runs: int
    differences: tuple[Disagreement, ...]


def side_of(contract: Contract) -> Side:
    return lambda *call: contract.meaning(*call)[:3]


def answers_of(contract: Contract) -> Side:
    """Return the side of a backend that answers all that a contract does not forbid, as far as dst is known."""
    return lambda *call: _as_answer(contract.meaning(*call).dst)


def answers_of_reference(decide: Callable[..., Any], zero_may_meet_infer: bool) -> Side:
    return lambda src, shape, flag: _as_answer(decide(tuple(src), tuple(shape), flag, zero_may_meet_infer)[0])


def _as_answer(dst: Any) -> tuple[str, Any, tuple[str, ...]]:
    return ("rejected" if dst is None else "answered"), dst, ()


def compare(one: Side, other: Side, most_rank: int, first_only: bool = False) -> Proof:
    """Compare two sides for src and shape of up to `most_rank` entries, and all lengths in them."""
    count, found = 0, dict[tuple[str, str], Disagreement]()
    for rank, entries, flag in sizes(most_rank):

        def both(facts: Facts) -> tuple[Any, Any]:
            call = named_call(facts.length, rank, entries)  # noqa: B023
            return tuple(_written(*side(*call, flag)) for side in (one, other))  # type: ignore[return-value] # noqa: B023

        is_sought = True
        for run in runs(both, MAX_RUNS):
            count += 1
            (kind, dst, rules), (other_kind, other_dst, other_rules) = run.result or (("not decided", None, ()),) * 2
            if run.result and (kind, dst) == (other_kind, other_dst):
                continue
            kinds = kind, other_kind
            if is_sought and (kinds not in found or found[kinds].call is None):
                is_sought = False
                for call, shown in _find_calls(one, other, rank, entries, flag):
                    known = found.get(shown, Disagreement(*shown, None, ""))
                    if known.call is None:
                        found[shown] = known._replace(call=call, where=describe_facts(run.facts))
                    if first_only:
                        return Proof(count, tuple(found.values()))
            known = found.get(kinds, Disagreement(*kinds, None, describe_facts(run.facts)))
            by = [tuple(dict.fromkeys(each)) for each in (known.one_rules + rules, known.other_rules + other_rules)]
            found[kinds] = known._replace(ways=known.ways + 1, one_rules=by[0], other_rules=by[1])
    return Proof(count, tuple(found.values()))


def sizes(most_rank: int) -> Iterator[tuple[int, int, bool]]:
    """Yield each number of entries of src and of shape, with each value of special_zero."""
    return itertools.product(range(most_rank + 1), range(most_rank + 1), (False, True))


def named_call(length: Callable[[str, float], Any], rank: int, entries: int) -> tuple[list[Any], list[Any]]:
    """Return src and shape of named lengths; the special entries 0 and -1 are told apart first."""
    src = [length(f"src[{k}]", 0) for k in range(rank)]
    shape = [length(f"shape[{k}]", -math.inf) for k in range(entries)]
    return [0 if n == 0 else n for n in src], [-1 if d == -1 else 0 if d == 0 else d for d in shape]


def _written(kind: str, dst: Any, rules: tuple[str, ...]) -> tuple[str, Any, tuple[str, ...]]:
    return kind, dst and tuple(map(text_of, dst)), rules


def _find_calls(one: Side, other: Side, rank: int, entries: int, flag: bool) -> Iterator[tuple[Call, tuple[str, str]]]:
    """Yield calls with few lengths that two sides decide differently, and the kinds, each pair of kinds once."""
    told = set[tuple[str, str]]()
    for src in itertools.product(_SRC, repeat=rank):
        for shape in itertools.product(_SHAPE, repeat=entries):
            ours, theirs = one(src, shape, flag)[:2], other(src, shape, flag)[:2]
            if ours != theirs and (kinds := (ours[0], theirs[0])) not in told:
                told.add(kinds)
                yield Call(src, shape, flag), kinds


def zero_may_meet_infer(spec: Spec, document: str) -> bool:
    """Ask if a document lets a literal 0 meet a -1, which the reference has to be told."""
    rule = spec.rules.get("zero-meets-infer")
    return rule is None or document not in rule.documents


def prove(spec: Spec, decide: Callable[..., Any], most_rank: int) -> Iterator[tuple[str, Proof]]:
    """Yield each document with its proof against the reference, and each pair of documents with what they differ in."""
    compiled = contracts(spec)
    by_source = {contract.source: contract for contract in compiled.values()}

    @cache  # several documents have the same contract
    def compare_to_reference(source: str, may_meet: bool) -> Proof:
        return compare(answers_of(by_source[source]), answers_of_reference(decide, may_meet), most_rank)

    @cache
    def compare_contracts(one: str, other: str) -> Proof:
        return compare(side_of(by_source[one]), side_of(by_source[other]), most_rank)

    for document, contract in compiled.items():
        yield document, compare_to_reference(contract.source, zero_may_meet_infer(spec, document))
    for one, other in itertools.combinations(compiled, 2):
        if compiled[one].source != compiled[other].source:
            yield f"{one} and {other}", compare_contracts(compiled[one].source, compiled[other].source)
