"""The step of a row that fails in one document: its call, its outcome, its meaning, and what it needs to fail."""

from __future__ import annotations

import re
from collections.abc import Set
from dataclasses import replace
from typing import NamedTuple

from ..meaning.contract import ExplainedEntry
from ..model import Meaning, Outcome, Result, Step
from ..model.cases import list_given_keys
from ..plan.facets import has_unknown_src
from ..plan.rows import Row
from ..run.diagnose import diagnose_dims
from .needs import list_calls_of_nodes, list_earlier_steps

_KEYS = re.compile(r"(?:^ +|\{|, )([a-z_]+):(?: |$)", re.MULTILINE)
"""The keys of a case as YAML."""
_SRC = re.compile(r'\bsrc: "?\w+\[([^]]*)\]')
_SHAPE = re.compile(r"\bshape: \[([^]]*)\]")
_LENGTH = re.compile("-?[0-9]{1,19}")
"""No run writes a longer one, which Python may refuse to read."""
_SPECIAL_ZERO = re.compile(r"\bspecial_zero: (true|false)\b")
_NO_LETTER = re.compile(r"[^a-z]+", re.IGNORECASE)
_STEP_BEFORE = re.compile(r"^ {6}- .*\n(?= {6}- )", re.MULTILINE)
"""A step of a case before the last one, which is the one that fails."""


class FailingStep(NamedTuple):
    """A step of a row that fails in one document."""

    row: Row
    at: int
    document: str
    result: Result
    outcome: Outcome
    meaning: Meaning
    diagnosis: str | None
    conditions: Set[str]

    @property
    def place(self) -> tuple[Row, int, str]:
        return self.row, self.at, self.document

    @property
    def step(self) -> Step:
        return self.row.case.steps[self.at]

    @property
    def entries(self) -> tuple[tuple[int, ...], tuple[ExplainedEntry, ...]]:
        """src of the last node, and what the entries of its shape mean."""
        *_, (call, entries) = list_calls_of_nodes(self.step, self.row.contracts[self.document])
        return call.src, entries

    @property
    def smallest_step(self) -> Step | None:
        """The step with the call of the smallest case of a drawn row, if there is one; its own if none can be read."""
        case = _find_last_of_smallest_case(self.row, self.result)
        if case is None:
            return None
        src, shapes, flags = _SRC.search(case), _SHAPE.findall(case), _SPECIAL_ZERO.findall(case)
        if src is None or not shapes or len(shapes) != len(flags):
            return self.step
        dims = [tuple(map(int, _LENGTH.findall(text))) for text in (src[1], *shapes)]
        zeros = tuple(flag == "true" for flag in flags)
        return replace(self.step, src=dims[0], shapes=tuple(dims[1:]), special_zero=zeros)

    @property
    def has_dims_of_earlier_step(self) -> bool:
        """Ask whether the answer has the dims due for an earlier step, or for its shape and this src.

        If the program is new, a chain may give such dims by what its nodes share.
        """
        row, at, document = self.place
        earlier = list_earlier_steps(row, at) if "chain" in self.conditions else range(at)
        if any(find_meaning_of_step(row, k, document).dst == self.outcome.dims for k in earlier):
            return True
        src, meaning = self.step.src, row.contracts[document].meaning
        calls = [(row.case.steps[k].shapes[-1], row.case.steps[k].special_zero[-1]) for k in earlier]
        return self.outcome.dims is not None and any(meaning(src, *call).dst == self.outcome.dims for call in calls)

    @property
    def answers_illegal_call(self) -> bool:
        return self.meaning.kind == "illegal" and self.outcome.kind == "tensor" and not self.outcome.side_effects


def find_meaning_of_step(row: Row, at: int, document: str) -> Meaning:
    return next(judged.meaning for judged in row.meanings(at) if document in judged.documents)


def find_failing_step(row: Row, result: Result, document: str) -> int:
    """Return the step that fails in a document: the deciding one, unless the document allows its outcome."""

    def may_fail(at: int) -> bool:
        only_rejects = result.outcome_of(at).only_rejects
        return find_meaning_of_step(row, at, document).kind == "legal" if only_rejects else True

    others = range(len(result.outcomes)) if len(result.outcomes) > 1 else ()
    return next((at for at in (result.step, *others) if may_fail(at)), result.step)


def find_failing(row: Row, result: Result, document: str) -> FailingStep:
    at = find_failing_step(row, result, document)
    outcome, meaning = result.outcome_of(at), find_meaning_of_step(row, at, document)
    diagnosis = _find_diagnosis(row, at, result, meaning)
    return FailingStep(row, at, document, result, outcome, meaning, diagnosis, find_conditions(row, at, result))


def find_type(row: Row, at: int) -> str:
    """Return the type of src in a step: a case may set another one than that of its row."""
    return row.step(at).src_spec.type


def find_words_of_rejection(row: Row, at: int, outcome: Outcome) -> tuple[str, str] | None:
    """Return the type of a rejected call and the letters of the message, which may have other numbers each time."""
    words = _NO_LETTER.sub("", outcome.message or "")
    return (find_type(row, at), words) if words and outcome.kind == "rejected" else None


def _find_last_of_smallest_case(row: Row, result: Result) -> str | None:
    """Return the smallest case of a drawn row as YAML without the steps before its last, if it fails alone."""
    case = None if result.right_alone else result.smallest_case
    return None if case is None else _STEP_BEFORE.sub("", case)


def find_conditions(row: Row, at: int, result: Result) -> Set[str]:
    """Return the keys of the smallest known case of a step that fails; `steps` if it takes earlier calls."""
    if (last := _find_last_of_smallest_case(row, result)) is not None:
        return {*_KEYS.findall(last)}
    step = row.case.steps[at]
    keys = {key.name for part in (row.case, step) for key, _ in list_given_keys(part)}
    is_unknown = has_unknown_src(row.case, row.shape_passed_as)
    return keys.union(["chain"] * (len(step.shapes) > 1), ["steps"] * (at > 0), ["known"] * is_unknown)


def _find_diagnosis(row: Row, at: int, result: Result, meaning: Meaning) -> str | None:
    """Return what is wrong with the outcome of a step in the documents that give it a meaning.

    A row has one diagnosis, which may be that of a document in which the call means something else.
    """
    diagnosis, outcome = result.diagnosis if at == result.step else None, result.outcome_of(at)
    if diagnosis is None or outcome.kind != "tensor" or outcome.side_effects or meaning.kind == "illegal":
        return diagnosis
    source = row.step(at).src_spec
    wrong = diagnose_dims(outcome.dims or (), meaning, source.dims) if outcome.type == source.type else None
    return wrong.name if wrong else diagnosis
