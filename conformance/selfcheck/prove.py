"""Prove for all lengths, up to a rank, that the reference decides as each document says, and where documents differ.

Two sides run on the same named lengths, once for each way that both can go together, so that a finite number of runs
speaks for every length. No solver is needed: where meaning/symbols.py does not know that an answer follows from the
facts of a run, it tries both. A run that no length can take may then end in a difference that no call shows. Such a
difference is reported, and the proof fails.
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

_MAX_RUNS = 1_000_000
_SRC, _SHAPE = (0, 1, 2, 3, 4, 6), (-2, -1, 0, 1, 2, 3, 4, 6, 12)
"""Lengths in which a difference is looked for, once a run has shown that there may be one."""


Side = Callable[[Sequence[Any], Sequence[Any], bool], tuple[str, Any]]
"""(src, shape, special_zero) → the kind of the call, and dst."""


class Disagreement(NamedTuple):
    """A call that two sides decide differently."""

    one: str
    other: str
    call: Call | None
    """None if none was found: the sides may agree, but that is not proved."""
    where: str
    """The facts in which it was found."""


class Proof(NamedTuple):
    """The number of runs, and the first difference for each pair of kinds."""

    runs: int
    differences: tuple[Disagreement, ...]


def side_of(contract: Contract) -> Side:
    return lambda *call: contract.meaning(*call)[:2]


def answers_of(contract: Contract) -> Side:
    """Return the side of a backend that answers all that a contract does not forbid, as far as dst is known."""
    return lambda *call: _as_answer(contract.meaning(*call).dst)


def answers_of_reference(decide: Callable[..., Any], zero_may_meet_infer: bool) -> Side:
    return lambda src, shape, flag: _as_answer(decide(tuple(src), tuple(shape), flag, zero_may_meet_infer)[0])


def _as_answer(dst: Any) -> tuple[str, Any]:
    return ("rejected" if dst is None else "answered"), dst


def compare(one: Side, other: Side, most_rank: int, first_only: bool = False) -> Proof:
    """Compare two sides for src and shape of up to `most_rank` entries, and all lengths in them."""
    count, found = 0, dict[tuple[str, str], Disagreement]()
    for rank, entries, flag in itertools.product(range(most_rank + 1), range(most_rank + 1), (False, True)):

        def both(facts: Facts) -> tuple[Any, Any]:
            call = _named_call(facts, rank, entries)  # noqa: B023
            return tuple(_written(*side(*call, flag)) for side in (one, other))  # type: ignore[return-value] # noqa: B023

        is_sought = True
        for run in runs(both, _MAX_RUNS):
            count += 1
            if run.result and run.result[0] == run.result[1]:
                continue
            if is_sought:
                is_sought = False
                for call, kinds in _find_calls(one, other, rank, entries, flag):
                    if kinds not in found or found[kinds].call is None:
                        found[kinds] = Disagreement(*kinds, call, describe_facts(run.facts))
                    if first_only:
                        return Proof(count, tuple(found.values()))
            kinds = (run.result[0][0], run.result[1][0]) if run.result else ("not decided",) * 2
            if kinds not in found:
                found[kinds] = Disagreement(*kinds, None, describe_facts(run.facts))
    return Proof(count, tuple(found.values()))


def _named_call(facts: Facts, rank: int, entries: int) -> tuple[list[Any], list[Any]]:
    """Return src and shape of named lengths; the special entries 0 and -1 are told apart first."""
    src = [facts.length(f"src[{k}]", 0) for k in range(rank)]
    shape = [facts.length(f"shape[{k}]", -math.inf) for k in range(entries)]
    return [0 if n == 0 else n for n in src], [-1 if d == -1 else 0 if d == 0 else d for d in shape]


def _written(kind: str, dst: Any) -> tuple[str, Any]:
    return kind, dst and tuple(map(text_of, dst))


def _find_calls(one: Side, other: Side, rank: int, entries: int, flag: bool) -> Iterator[tuple[Call, tuple[str, str]]]:
    """Yield calls with few lengths that two sides decide differently, and the kinds, each pair of kinds once."""
    told = set[tuple[str, str]]()
    for src in itertools.product(_SRC, repeat=rank):
        for shape in itertools.product(_SHAPE, repeat=entries):
            ours, theirs = one(src, shape, flag), other(src, shape, flag)
            if ours != theirs and (kinds := (ours[0], theirs[0])) not in told:
                told.add(kinds)
                yield Call(src, shape, flag), kinds


def prove(spec: Spec, decide: Callable[..., Any], most_rank: int) -> Iterator[tuple[str, Proof]]:
    """Yield each document with its proof against the reference, and each pair of documents with what they differ in."""
    compiled = contracts(spec)
    forbids = spec.rules["zero-meets-infer"].documents if "zero-meets-infer" in spec.rules else frozenset()
    by_source = {contract.source: contract for contract in compiled.values()}

    @cache  # several documents have the same contract
    def compare_to_reference(source: str, may_meet: bool) -> Proof:
        return compare(answers_of(by_source[source]), answers_of_reference(decide, may_meet), most_rank)

    @cache
    def compare_contracts(one: str, other: str) -> Proof:
        return compare(side_of(by_source[one]), side_of(by_source[other]), most_rank)

    for document, contract in compiled.items():
        yield document, compare_to_reference(contract.source, document not in forbids)
    for one, other in itertools.combinations(compiled, 2):
        if compiled[one].source != compiled[other].source:
            yield f"{one} and {other}", compare_contracts(compiled[one].source, compiled[other].source)
