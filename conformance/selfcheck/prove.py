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
from typing import Any, NamedTuple

from ..meaning.contract import Contract, contracts, group_documents
from ..meaning.partial import describe_facts, text_of
from ..meaning.symbols import HOLDS, Fact, Facts, runs
from ..model import Call, Spec

MAX_RUNS = 1_000_000
_SRC, _SHAPE = (0, 1, 2, 3, 4, 6), (-2, -1, 0, 1, 2, 3, 4, 6, 12)
"""Lengths in which a difference is looked for, once a run has shown that there may be one; and those near its facts."""
_MAX_TRIED = 1000
"""The most calls that are tried for one run."""

Decision = tuple[str, Any, tuple[str, ...]]
"""The kind of a call, dst, and the rules that decide it, if the side names any."""
Side = Callable[[Sequence[Any], Sequence[Any], bool], Decision]
"""(src, shape, special_zero) → an answer."""


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


def make_side_with_capacities(contract: Contract) -> Side:
    """Return the side of a contract with one more kind: legal calls that a backend may reject."""

    def side(*call: Any) -> Decision:
        kind, dst, rules = contract.meaning(*call)[:3]
        return ("legal past a capacity" if kind == "legal" and rules else kind), dst, rules

    return side


def make_side_of_reference(decide: Callable[..., Any], zero_may_meet_infer: bool) -> Side:
    def side(src: Sequence[Any], shape: Sequence[Any], flag: bool) -> Decision:
        dst, rule = decide(tuple(src), tuple(shape), flag, zero_may_meet_infer)
        if dst is None:
            return "illegal", None, (rule,)
        # The reference answers a rank of 0 as any other, although no document says anything about it.
        return ("unspecified" if rule or not (src and shape) else "legal"), dst, ()

    return side


def compare(one: Side, other: Side, most_rank: int, first_only: bool = False) -> Proof:
    """Compare two sides for src and shape of up to `most_rank` entries, and all lengths in them."""
    count, found = 0, dict[tuple[str, str], Disagreement]()
    for rank, entries, flag in sizes(most_rank):

        def both(facts: Facts) -> tuple[Any, Any]:
            call = name_call(facts.length, rank, entries)  # noqa: B023
            return tuple(_write_decision(*side(*call, flag)) for side in (one, other))  # type: ignore[return-value] # noqa: B023

        for run in runs(both, MAX_RUNS):
            count += 1
            ours, theirs = run.result or (("not decided", None, ()),) * 2
            if run.result and ours[:2] == theirs[:2]:
                continue
            kinds = ours[0], theirs[0]
            known = found.get(kinds, Disagreement(*kinds, None, describe_facts(run.facts)))
            if known.call is None:
                calls = (Call(*each, flag) for each in _calls_of(run.facts, rank, entries))
                call = next((call for call in calls if one(*call[:3])[:2] != other(*call[:3])[:2]), None)
                known = known._replace(call=call, where=describe_facts(run.facts)) if call else known
            by = [tuple(dict.fromkeys(each)) for each in (known.one_rules + ours[2], known.other_rules + theirs[2])]
            found[kinds] = known._replace(ways=known.ways + 1, one_rules=by[0], other_rules=by[1])
            if first_only and known.call:
                return Proof(count, (found[kinds],))
    return Proof(count, tuple(found.values()))


def sizes(most_rank: int) -> Iterator[tuple[int, int, bool]]:
    """Yield each number of entries of src and of shape, with each value of special_zero."""
    return itertools.product(range(most_rank + 1), range(most_rank + 1), (False, True))


def name_call(length: Callable[[str, float], Any], rank: int, entries: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Return src and shape of named lengths; the special entries 0 and -1 are told apart first."""
    src = [length(f"src[{k}]", 0) for k in range(rank)]
    shape = [length(f"shape[{k}]", -math.inf) for k in range(entries)]
    return tuple(0 if n == 0 else n for n in src), tuple(-1 if d == -1 else 0 if d == 0 else d for d in shape)


def _write_decision(kind: str, dst: Any, rules: tuple[str, ...]) -> Decision:
    return kind, dst and tuple(map(text_of, dst)), rules


def _calls_of(facts: Sequence[Fact], rank: int, entries: int) -> Iterator[tuple[Any, Any]]:
    """Yield some calls for which the facts about single lengths hold."""
    lengths = [_choose_lengths(f"src[{k}]", _SRC, facts) for k in range(rank)]
    lengths += [_choose_lengths(f"shape[{k}]", _SHAPE, facts) for k in range(entries)]
    return ((call[:rank], call[rank:]) for call in itertools.islice(itertools.product(*lengths), _MAX_TRIED))


def _choose_lengths(name: str, usual: Sequence[int], facts: Sequence[Fact]) -> list[int]:
    about = [(fact, int(fact.right)) for fact in facts if fact.left == name and fact.right.lstrip("-").isdecimal()]
    numbers = {*usual, *(number + k for _, number in about for k in (-1, 0, 1))}
    return [n for n in sorted(numbers) if all(HOLDS[fact.relation](n, number) == fact.holds for fact, number in about)]


def zero_may_meet_infer(spec: Spec, document: str) -> bool:
    """Ask if a document lets a literal 0 meet a -1, which the reference has to be told."""
    rule = spec.rules.get("zero-meets-infer")
    return rule is None or document not in rule.documents


def prove(spec: Spec, decide: Callable[..., Any], most_rank: int) -> Iterator[tuple[str, Proof]]:
    """Yield each document with its proof against the reference, and each pair of documents with what they differ in."""
    groups = group_documents(contracts(spec))
    for contract, documents in groups.items():
        sides = side_of(contract), make_side_of_reference(decide, zero_may_meet_infer(spec, documents[0]))
        proof = compare(*sides, most_rank)
        yield from ((document, proof) for document in documents)
    for (one, some), (other, others) in itertools.combinations(groups.items(), 2):
        proof = compare(make_side_with_capacities(one), make_side_with_capacities(other), most_rank)
        yield from ((" and ".join(pair), proof) for pair in itertools.product(some, others))
