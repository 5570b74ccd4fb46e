"""Choose the rows that another suite's format can hold, and say why each of the others is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ..meaning.chains import meaning_of
from ..model.types import WIDTH
from ..plan.memory import volume_of
from ..plan.rows import Row
from ..plan.steps import RowStep
from ..system.groups import group_pairs

Reasons = Mapping[str, str]
"""The reason to leave out a row, by the beginning of a facet that the format has no place for."""
COMMON: Reasons = {
    "unknown-src": "unknown lengths of src",
    "in-place": "dst in the memory of src",
    "threads": "several calls at the same time",
    "dst-strides": "strides declared of dst",
    "shape-strides": "strides of shape",
    "form:": "an attribute, operand or type in an unusual form",
}
"""What no format here has a place for."""


class AlikeRows(NamedTuple):
    """Rows that differ in nothing that the format keeps; the first one is written."""

    rows: tuple[Row, ...]

    def name_of(self, step: RowStep) -> str:
        """Name the case, the type of the rows and, if it is another, that of the step."""
        return "-".join(dict.fromkeys((self.rows[0].case.id, self.rows[0].type, step.src_spec.type)))

    @property
    def graphs(self) -> Iterator[tuple[str, tuple[RowStep, ...]]]:
        """Yield the calls of each different graph, with its number if there are several.

        A graph that takes several ranks is divided by rank.
        """
        row = self.rows[0]
        calls = group_pairs(
            ((step.graph, len(step.src_spec.dims), *map(len, dims_of_outputs(row, step))), step) for step in row.steps
        )
        for number, steps in enumerate(calls.values(), 1):
            yield str(number) if len(calls) > 1 else "", steps


class ExportChoice(NamedTuple):
    """The rows to write, and the number of rows that are left out for each reason."""

    chosen: tuple[AlikeRows, ...]
    left_out: Counter[str]


def choose_rows(rows: Iterable[Row], reasons: Reasons, most_bytes: int | None) -> ExportChoice:
    """Choose among rows, which are grouped by case, type, and whether shape arrives with run."""
    groups = group_pairs(((row.case.id, row.type, row.shape_passed_as == "runtime"), row) for row in rows)
    chosen, left_out = [], Counter[str]()
    for group in groups.values():
        why = next(filter(None, (_why_left_out(row, reasons, most_bytes) for row in group)), None)
        if why is None:
            chosen.append(AlikeRows(group))
        else:
            left_out[why] += len(group)
    return ExportChoice(tuple(chosen), left_out)


def _why_left_out(row: Row, reasons: Reasons, most_bytes: int | None) -> str | None:
    meanings = [judged.meaning for step in row.steps for judged in step.meanings]
    kinds = {meaning.kind for meaning in meanings}
    if "illegal" in kinds:
        return "a call that a document forbids"
    if "unspecified" in kinds:
        return "a call that a document leaves unspecified"
    if any(meaning.rules for meaning in meanings):
        return "a call that a backend may reject because of its size"
    for beginning, words in {**COMMON, **reasons}.items():
        if any(facet.startswith(beginning) for facet in row.facets):
            return words
    largest = max(volume_of(step.src_spec.dims) * WIDTH[step.src_spec.type] for step in row.steps)
    if most_bytes is not None and largest > most_bytes:
        return f"a tensor of more than {most_bytes >> 20} MiB"
    return None


def dims_of_outputs(row: Row, step: RowStep) -> tuple[tuple[int, ...], ...]:
    """Return the dims of the output of each node of a legal step."""
    call = row.case.steps[row.steps.index(step)]
    contract = row.contracts[row.documents[0]]
    known = []
    for k in range(1, len(call.shapes) + 1):
        dst = meaning_of(contract, call.src, call.shapes[:k], call.special_zero[:k], None, call.shared_src).dst or ()
        known.append(tuple(length for length in dst if length is not None))
    return tuple(known)
