"""The proof of prove.py as obligations in SMT-LIB 2, so that any solver can check the engine in meaning/symbols.py.

All documents and the reference run together, on traced lengths. Where the engine tries both answers to a comparison,
the comparison says which calls a run is about. Every other answer has to follow for each of these calls: that is an
obligation, and so is that the reference gives the dst of each document. At the end, no call is outside of all runs.
If a document decides a call by its lengths, a further obligation says it without the division that solves for a -1:
exactly one dst has the lengths and the volume that the rules ask for; for an illegal call none has.

So neither the engine's arithmetic nor its facts are trusted, only traced.py, which writes what Python computes as
terms, and the solver. That is why `check --prove` asks z3 if it is there, and proves without it if it is not.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from ..meaning.contract import Contract, contracts, group_documents
from ..meaning.partial import describe_facts
from ..meaning.symbols import Facts, runs
from ..model import Spec
from .prove import MAX_RUNS, make_side_of_reference, name_call, sizes, zero_may_meet_infer
from .traced import Trace, TracedLength, factors_of, product_of, term_of

_SOLVER_MILLISECONDS = 60_000
"""The most time of z3 for one obligation. None up to rank 3 needs a second."""
_HEAD = """\
; {about}
; Every check-sat has to answer unsat. If one answers sat, its model is a call for which the line above it is wrong.
; conformance/selfcheck/obligations.py says what is asked, and why that is a proof. lemmas.smt2 checks the lemmas.
(set-logic ALL)
(define-fun same-quotient ((c Int) (a Int) (b Int)) Bool (= (div (* c a) (* c b)) (div a b)))
(define-fun same-remainder ((c Int) (a Int) (b Int)) Bool (= (mod (* c a) (* c b)) (* c (mod a b))))
(define-fun common-factor ((c Int) (a Int) (b Int)) Bool
  (=> (and (> c 0) (> b 0)) (and (same-quotient c a b) (same-remainder c a b))))
(define-fun multiple ((c Int) (a Int) (b Int)) Bool
  (=> (and (> c 0) (= (* c a) b)) (and (= (div b c) a) (= (mod b c) 0))))"""


class Obligations:
    """The obligations in one file, as it grows."""

    def __init__(self, file: str, about: str, numbers: Iterable[str]) -> None:
        self.file, self.numbers = file, tuple(numbers)
        self.labels: list[str] = []
        """What each check-sat asks, in their order."""
        self._lines = [_HEAD.format(about=about), *(f"(declare-const {name} Int)" for name in self.numbers)]

    @property
    def text(self) -> str:
        return "\n".join(self._lines) + "\n"

    def suppose(self, assertions: Iterable[str]) -> None:
        self._lines += [f"(assert {assertion})" for assertion in assertions]

    def add(self, label: str, *assertions: str) -> None:
        """Add an obligation: nothing meets these assertions and those around them."""
        self.labels.append(label)
        self._lines += [f"; {label}", "(push)"]
        self.suppose(assertions)
        self._lines += ["(check-sat)", "(pop)"]

    def add_run(self, facts: str, run: _Run) -> None:
        self._lines += ["", f"; where {facts or 'nothing is asked'}", *(f";   {said}" for said in run.said), "(push)"]
        self.suppose(run.trace.tried)
        self.suppose(run.trace.lemmas)
        claims = [claim for claim in (*run.trace.claims, *run.equal) if claim not in run.trace.tried]
        if claims:
            self.add(f"each answer follows: {facts}", f"(not {_join_terms(claims)})")
        self.suppose(claims)
        for assertions, label in run.solutions.items():
            self.add(f"{label}: {facts}", *assertions)
        self._lines.append("(pop)")

    def find_refuted(self) -> Iterator[str]:
        """Ask z3, and yield each obligation that it does not confirm, with what it says and the call that it found."""
        z3 = importlib.import_module("z3")
        z3.set_param("timeout", _SOLVER_MILLISECONDS)
        context = z3.Context()

        def ask(text: str) -> str:
            return str(z3.Z3_eval_smtlib2_string(context.ref(), text)).strip()

        *parts, _ = self.text.split("(check-sat)")
        for label, part in zip(self.labels, parts, strict=True):
            try:
                answer = ask(f"{part}(check-sat)")
                if answer == "sat":
                    values = ask(f"(get-value (true {' '.join(self.numbers)}))").replace("(- ", "-")
                    found = re.findall(r"\(\|?([^|() ]+)\|? (-?\d+)", values)
                    answer += f" for {', '.join(map(' = '.join, found)) or 'the one call without lengths'}"
            except z3.Z3Exception as error:
                why = "".join(str(error).split('"')[1:2]) or error
                yield f"{self.file}: {label}: z3 cannot read it: {why}"
                return
            if answer != "unsat":
                yield f"{self.file}: {label}: {answer}"


class _Run(NamedTuple):
    """One run of all documents and of the reference."""

    trace: Trace
    said: tuple[str, ...]
    equal: dict[str, None]
    """That the reference gives the dst of each document; `false` if a call is of another kind for it."""
    solutions: dict[tuple[str, ...], str]
    """Assertions that nothing meets, and what that shows about the dst of a document."""


def obligations(spec: Spec, decide: Callable[..., Any], most_rank: int) -> Iterator[Obligations]:
    """Yield the obligations that `prove` with the same arguments rests on."""
    groups = group_documents(contracts(spec))

    def decide_all(facts: Facts, rank: int, entries: int, flag: bool) -> _Run:
        trace = Trace(facts)
        row, shape = name_call(lambda *name: TracedLength(facts.length(*name), [f"|{name[0]}|"], trace), rank, entries)
        said, equal, solutions = [], dict[str, None](), dict[tuple[str, ...], str]()
        for contract, names in groups.items():
            meaning = contract.meaning(row, shape, flag)
            said.append(f"{meaning.kind} in {', '.join(names)}: {', '.join(meaning.rules) or 'no rule'}")
            reference = make_side_of_reference(decide, zero_may_meet_infer(spec, names[0]))
            equal.update(_equate(meaning[:2], reference(row, shape, flag)[:2]))
            if meaning.kind == "legal" or (meaning.kind == "illegal" and contract.volumes.keys() >= {*meaning.rules}):
                solutions.update(_solve(contract, meaning.dst, (row, shape, flag)))
        return _Run(trace, tuple(said), equal, solutions)

    yield _check_lemmas()
    for rank, entries, flag in sizes(most_rank):
        name = f"src-{rank}-shape-{entries}-{str(flag).lower()}"
        rows = (("src", rank), ("shape", entries), ("dst", entries))
        lengths = [f"|{row}[{k}]|" for row, number in rows for k in range(number)]
        found = Obligations(f"{name}.smt2", f"The reference decides as each document says: {name}.", lengths)
        found.suppose(f"(>= {length} 0)" for length in lengths[:rank])
        tried = []
        for way in runs(lambda facts: decide_all(facts, rank, entries, flag), MAX_RUNS):  # noqa: B023
            if way.result is not None:  # otherwise the last obligation fails
                found.add_run(describe_facts(way.facts), way.result)
                tried.append(_join_terms(way.result.trace.tried))
        found.add("no call is outside of all runs", f"(not (or false {' '.join(tried)}))")
        yield found


def _check_lemmas() -> Obligations:
    found = Obligations("lemmas.smt2", "The lemmas that the other files use.", "abc")
    nonzero = "(and (> c 0) (> b 0))"
    found.add("a common factor changes no quotient", nonzero, "(not (same-quotient c a b))")
    found.add("and is one of the remainder", nonzero, "(same-quotient c a b)", "(not (same-remainder c a b))")
    found.add("what is a multiple has a quotient and no remainder", "(not (multiple c a b))")
    return found


def _equate(meaning: tuple[str, Any], decided: tuple[str, Any]) -> dict[str, None]:
    """Return that two dst are equal; a length of None is not known."""
    dst, answer = meaning[1] or (), decided[1] or ()
    if meaning[0] != decided[0] or [n is None for n in dst] != [n is None for n in answer]:
        return {"false": None}
    terms = [(term_of(one), term_of(other)) for one, other in zip(dst, answer, strict=True) if one is not None]
    return {f"(= {one} {other})": None for one, other in terms if one != other}


def _solve(contract: Contract, dst: Sequence[Any] | None, call: tuple[Any, ...]) -> dict[tuple[str, ...], str]:
    """Return assertions that nothing meets if a document has one dst for a call, or none if dst is None."""
    lengths = [entry.length for entry in contract.entries(*call)]
    names = [f"|dst[{k}]|" for k in range(len(lengths))]
    asked = [
        f"(>= {name} 0)" if length is None else f"(= {name} {term_of(length)})"
        for name, length in zip(names, lengths, strict=True)
    ]
    known = [factor for length in lengths if length is not None for factor in factors_of(length)]
    free = [name for name, length in zip(names, lengths, strict=True) if length is None]
    if dst is None:
        del free[1:]  # the product of several free lengths is one number too
    volumes = [term_of(volume(*call)) for volume in contract.volumes.values()]
    asked += [f"(= {product_of([*known, *free])} {volume})" for volume in volumes]
    lemmas = [f"(multiple {product_of(known)} {product_of(free)} {volume})" for volume in volumes]
    if dst is None:
        return {(*lemmas, _join_terms(asked)): "no dst has the lengths and the volume"}
    found = [f"({name} {term_of(length)})" for name, length in zip(names, dst, strict=True)]
    equal = [f"(= {name} {term_of(length)})" for name, length in zip(names, dst, strict=True)]
    bound = f"(let ({' '.join(found)}) {_join_terms(asked)})" if found else _join_terms(asked)
    return {
        (f"(not {bound})",): "dst has the lengths and the volume",
        (*lemmas, _join_terms(asked), f"(not {_join_terms(equal)})"): "no other dst has them",
    }


def _join_terms(terms: Iterable[str]) -> str:
    return f"(and true {' '.join(terms)})"
