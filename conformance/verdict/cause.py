"""Causes: the known fault that explains a failing row, matched by its condition on the call and by the diagnosis.

Faults of exactly this backend and version are known causes. For any other one, all faults are tried, and one that
explains failures is a guess: it is made only if nearly every call that the fault may hit did fail, in several cases,
if it leaves few failures unexplained that look the same, if not all calls of a rank contradict it, and if any of them
is more than a rejection where it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import NamedTuple

import numpy as np

from ..load.faults import load_faults
from ..meaning.faults import KnownFaults
from ..model import BAD, PASS, KnownFault, Meaning, PlainCall, Result
from ..plan.memory import patterns
from ..plan.rows import Row
from ..run.diagnose import name_changes
from ..run.judge import UNCLAIMED
from .failing_step import find_failing_step, find_meaning_of_step
from .standing import Blames

_FAILING_OF_TEN = 9
"""A guess needs so many failing rows among ten that the fault may hit."""
_MIN_CASES = 3
"""A guess needs failing rows of so many cases: many a fault fits a case or two."""
_REJECTED, _ENDS = "rejected a legal call", {"crash", "timeout"}


class Cause(NamedTuple):
    """The fault that explains some failing rows."""

    fault: KnownFault
    is_guess: bool
    """Whether the fault was only seen in other backends or versions."""

    @property
    def title(self) -> str:
        return f"perhaps: {self.fault.title}" if self.is_guess else self.fault.title


def find_causes(
    rows: Iterable[Row], results: Mapping[str, Result], blames: Blames, name: str, version: str
) -> dict[str, Cause]:
    """Return the cause of each failing row that has one: the first fault that fits. Only blamed rows get a guess."""
    rows = [row for row in rows if row.id in results]
    failing = [(row, results[row.id]) for row in rows if results[row.id].is_failure]
    if not failing:
        return {}
    faults = load_faults()
    if own := [fault for fault in faults if version in fault.versions_of(name)]:
        known = KnownFaults(own)
        return {row.id: Cause(fits[0], False) for row, result in failing if (fits := find_faults(known, row, result))}
    failing = [(row, result) for row, result in failing if row.id in blames]
    known = KnownFaults(faults)
    fits_of: dict[str, list[KnownFault]] = {}
    for row, result in failing:
        fits_of[row.id] = [each for each in find_faults(known, row, result) if _shows_each_change(each, row, result)]
    passing = (row for row in rows if row.id not in blames and PASS in results[row.id].verdicts.values())
    return _guess(fits_of, chain((row for row, _ in failing), passing), results)


def _guess(
    fits_of: Mapping[str, list[KnownFault]], rows: Iterable[Row], results: Mapping[str, Result]
) -> dict[str, Cause]:
    """Return guesses, the commonest first. `fits_of`: the faults that fit each failing row; the other rows pass."""
    fitting = Counter(fault for fits in fits_of.values() for fault in fits)
    known = KnownFaults(fitting)
    spared, others = Counter[KnownFault](), Counter[KnownFault]()
    alike: dict[KnownFault, set[str]] = {fault: set() for fault in fitting}
    agrees: dict[KnownFault, dict[int, set[bool]]] = {fault: {} for fault in fitting}
    """By the larger rank of a row, whether the rows fail that the fault may hit, and no others."""
    for row in rows:
        result = results[row.id]
        document = next((each for each, verdict in result.verdicts.items() if verdict in BAD), row.documents[0])
        is_legal = find_meaning_of_step(row, result.step, document).kind == "legal"
        reached, step = find_faults_of_step(known, row, result.step, document), row.case.steps[result.step]
        for fault in fitting:
            fails_alike = row.id in fits_of and _find_diagnosis(result) in fault.shows
            if fault in reached:
                is_denied = fault not in fits_of[row.id] if fails_alike else row.id not in fits_of
                spared[fault] += is_denied
            elif is_legal == bool(fault.rules):
                continue
            else:
                others[fault] += 1
                if is_denied := fails_alike:
                    alike[fault].add(row.id)
            agrees[fault].setdefault(max(map(len, (step.src, *step.shapes))), set()).add(not is_denied)
    causes: dict[str, Cause] = {}
    for fault, number in fitting.most_common():
        explained = [row for row, fits in fits_of.items() if fault in fits and row not in causes]
        cases = {row.partition("[")[0] for row in explained}
        nearly_all_fit = 10 * number >= _FAILING_OF_TEN * (number + spared[fault])
        # who only rejects may do so for any other reason; a fault that ends the process must have ended one
        telling = {*fault.shows} & _ENDS or {*fault.shows} - {_REJECTED}
        is_shown = not telling or any(_find_diagnosis(results[row]) in telling for row in explained)
        unexplained = 2 * len(alike[fault] - causes.keys())
        few_left = unexplained <= min(number, others[fault])
        fits_each_rank = all(True in each for each in agrees[fault].values())
        is_new = len(cases) >= _MIN_CASES and 2 * len(explained) >= number  # what it shares is of another fault
        if is_new and nearly_all_fit and fits_each_rank and is_shown and few_left:
            causes |= {row: Cause(fault, True) for row in explained}
    return causes


def _shows_each_change(fault: KnownFault, row: Row, result: Result) -> bool:
    """Ask whether a fault shows each way in which elements changed that are now `all zero`.

    A library that only flushes subnormals shows that, too. Default elements are normal numbers.
    """
    if _find_diagnosis(result) != "all zero":
        return True
    if row.case.steps[result.step].bits is None:
        return False
    words = patterns(row.step(result.step).src_spec)
    ways = name_changes(row.type, words, np.zeros_like(words)).split(", ")
    return {*ways} <= {way for shown in fault.shows for way in shown.split(", ")}


def _find_diagnosis(result: Result) -> str:
    return (result.diagnosis or "").removesuffix(UNCLAIMED)


def find_faults(known: KnownFaults, row: Row, result: Result) -> tuple[KnownFault, ...]:
    """Return the faults that explain the failure of a row in every document in which it fails."""
    documents = [document for document, verdict in result.verdicts.items() if verdict in BAD]
    if any(find_failing_step(row, result, document) != result.step for document in documents):
        return ()
    # any call that ran at the same time may be what ended the process
    is_any = row.case.concurrent > 1 and result.ends_process
    steps = range(len(row.case.steps)) if is_any else [result.step]
    first, *others = (
        [each for at in steps for each in find_faults_of_step(known, row, at, document)] for document in documents
    )
    diagnosis = _find_diagnosis(result)
    return tuple(fault for fault in first if diagnosis in fault.shows and all(fault in other for other in others))


def find_faults_of_step(known: KnownFaults, row: Row, at: int, document: str) -> tuple[KnownFault, ...]:
    """Return the faults that a step of a row may meet, as a document reads it."""
    meaning = find_meaning_of_step(row, at, document)
    reached = known.of_calls(list(_list_calls(row, at, document, meaning)), meaning)
    return tuple(fault for fault in reached if row.facets.issuperset(fault.facets))


def _list_calls(row: Row, at: int, document: str, meaning: Meaning) -> Iterator[PlainCall]:
    """Yield the call of each node of a step, up to one without a known answer."""
    step, contract = row.case.steps[at], row.contracts[document]
    src, single = step.src, len(step.shapes) == 1
    for shape, special_zero in zip(step.shapes, step.special_zero, strict=True):
        node = meaning if single else contract.meaning(src, shape, special_zero)
        dst = tuple(length or 0 for length in node.dst or ()) if node.kind == "legal" else ()
        if node.kind == "legal" or meaning.kind != "legal":
            yield PlainCall(row.type, src, shape, special_zero, dst)
        if node.dst is None or None in node.dst:
            return
        src = src if step.shared_src else dst
