"""Outcomes of calls, and results of rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol, get_args

from ..system.json_forms import COUNT, MapOf, OrNull, with_tuples
from ..system.text import format_dims
from .verdicts import NOT_RUN, VERDICTS, Verdict, fails

OutcomeKind = Literal["tensor", "rejected", "unsupported", "crash", "timeout", "error", "none"]
"""`none`: no answer was recorded at all, because the row did not run."""


class Elements(Protocol):
    """The bytes of a tensor's elements in row-major order, or what makes each part of them when it is read."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> bytes | memoryview: ...


class Outcome(NamedTuple):
    """One call of a backend, before anyone judges it."""

    kind: OutcomeKind
    type: str | None = None
    dims: tuple[int, ...] | None = None
    data: Elements | None = None
    """A tensor's elements in row-major order; None once the row is judged."""
    stage: str | None = None
    message: str | None = None
    """The text of the rejection, the facet not supported, the signal, or the adapter's error."""
    side_effects: tuple[str, ...] = ()
    """Other effects of the call: `src changed`, `wrote outside src`, `answer changed later`."""
    shares_src: bool = False
    """Whether the answer is in src's memory. It is recorded and never judged."""
    call_number: int = 1
    """Which call it is, if the step is called many times. Evidence has it only in a note, as it may vary."""

    @property
    def ends_process(self) -> bool:
        return self.kind in ("crash", "timeout")

    @property
    def reached_library(self) -> bool:
        """Ask whether the library got the call; an adapter may have no way to make it."""
        return self.kind not in ("none", "unsupported")

    @property
    def only_rejects(self) -> bool:
        """Ask whether the call was rejected and had no other effect."""
        return self.kind == "rejected" and not self.side_effects

    def to_json(self) -> dict[str, Any]:
        """Return the fields that are not the default ones, without the elements and the number of the call."""
        fields = zip(self._fields[:-1], self, strict=False)
        return {name: value for name, value in fields if name != "data" and value != self._field_defaults.get(name)}

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Outcome:
        return cls(**with_tuples(record))

    def describe(self, type_: str = "", with_message: bool = True) -> str:
        """Say in a few words what the backend did; `type_` replaces the type of a tensor."""
        if self.kind == "tensor":
            text = f"{type_ or self.type}{format_dims(self.dims or ())}"
        else:
            names = {"none": "not called", "rejected": f"rejected at {self.stage}", "error": "adapter error"}
            text = names.get(self.kind, self.kind)
            text += f": {self.message}" if with_message and self.message else ""
        return ", ".join([text, *self.side_effects])


OUTCOME_FORM = {
    "kind": frozenset(get_args(OutcomeKind)), "type?": str, "dims?": [int], "stage?": str, "message?": str,
    "side_effects?": [str], "shares_src?": bool,
}  # fmt: skip


class DifferingElements(NamedTuple):
    """The elements of an answer that differ from the expected ones."""

    number: int
    places: tuple[int, ...]
    """The first of them, as indexes in row-major order."""
    got: tuple[str, ...]
    """The bits of these elements in the answer, in hex."""


RightAlone = Literal["row", "step", "row of its kind"]
"""What went right when it was called with no call before it: a failing row, its failing step, or other rows that fail
so."""


class Result(NamedTuple):
    """One row of the evidence: what a backend did in each step, and the verdict in each document."""

    row: str
    verdicts: Mapping[str, Verdict]
    outcomes: tuple[Outcome, ...]
    """By step; only the deciding one keeps its message. Generated steps have only the outcome of the deciding one."""
    step: int = 0
    """The index of the step that decides the verdicts."""
    diagnosis: str | None = None
    """A few fixed words for what is wrong, to group by."""
    detail: str | None = None
    """The same in a sentence, with the first differing element if there is one."""
    digests: tuple[str | None, ...] = ()
    """By step, the first 8 bytes of the SHA-256 of a tensor's elements in row-major order; None for another outcome.
    Empty if no step answered a tensor."""
    waiver: int | None = None
    """The number of the waiver that changed a verdict of this row."""
    resumed: bool = False
    """Whether the result is from an earlier run that was interrupted."""
    smallest_case: str | None = None
    """For a drawn row that failed, as YAML: the smallest case found that fails in the same way, or the row as drawn."""
    right_alone: RightAlone | None = None
    differing: DifferingElements | None = None
    """For an answer with the right type and dims: the elements that differ; None if none does."""
    milliseconds: int = 0
    """The time to call and judge the row; 0 if it was less than half of one, or no call was made."""

    @property
    def outcome(self) -> Outcome:
        return self.outcome_of(self.step)

    @property
    def ends_process(self) -> bool:
        """Ask whether a step crashed or hung."""
        return any(outcome.ends_process for outcome in self.outcomes)

    @property
    def is_failure(self) -> bool:
        """Ask whether the row fails or errs in some document."""
        return fails(self.verdicts.values())

    @property
    def is_flaky(self) -> bool:
        """Ask whether it crashed or hung, and did not when it was called again alone in a fresh process."""
        return "(flaky" in (self.outcome.message or "")

    @property
    def needs_calls_before(self) -> bool:
        """Ask whether a failing row is known to fail after other calls only."""
        return self.is_flaky or self.right_alone in ("row", "row of its kind")

    def outcome_of(self, step: int) -> Outcome:
        """Return the outcome of a step. Generated steps have only that of the deciding one."""
        return self.outcomes[step if len(self.outcomes) > 1 else 0]

    @property
    def was_called(self) -> bool:
        return self.outcome.kind != "none"

    @property
    def is_not_run(self) -> bool:
        """Ask whether the row is `not run` in each document. One that is waived or not claimed is not called either."""
        return {*self.verdicts.values()} == {NOT_RUN}

    def describe(self) -> str:
        """Say in a few words what the backend did, and what is wrong with a tensor."""
        wrong = f" ({self.diagnosis})" if self.diagnosis and self.outcome.kind == "tensor" else ""
        return self.outcome.describe(with_message=False) + wrong

    def to_json(self) -> dict[str, Any]:
        """Return the record in results.jsonl, without the milliseconds, so that equal runs write equal rows."""
        record: dict[str, Any] = {"record": "row", "row": self.row}
        if any(self.digests):
            record["digests"] = self.digests
        record |= {"verdicts": dict(self.verdicts), "outcomes": [outcome.to_json() for outcome in self.outcomes]}
        if len(self.outcomes) > 1 or self.step:
            record["step"] = self.step + 1
        if self.diagnosis is not None:
            record |= {"diagnosis": self.diagnosis, "detail": self.detail}
        if self.differing is not None:
            record["differing"] = self.differing._asdict()
        if self.waiver is not None:
            record["waiver"] = self.waiver
        if self.resumed:
            record["resumed"] = True
        if self.smallest_case is not None:
            record["smallest_case"] = self.smallest_case
        if self.right_alone is not None:
            record["right_alone"] = self.right_alone
        return record

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Result:
        fields = with_tuples(record)
        del fields["record"]
        fields["outcomes"] = tuple(map(Outcome.from_json, record["outcomes"]))
        fields["step"] = record.get("step", 1) - 1
        if "differing" in record:
            fields["differing"] = DifferingElements(**with_tuples(record["differing"]))
        return cls(**fields)


RESULT_FORM = {
    "record": frozenset(("row",)),
    "row": str,
    "digests?": [OrNull(re.compile("[0-9a-f]{16}"))],
    "verdicts": MapOf(frozenset(VERDICTS)),
    "outcomes": [OUTCOME_FORM],
    "step?": COUNT,
    "diagnosis?": str,
    "detail?": OrNull(str),
    "differing?": {"number": COUNT, "places": [COUNT], "got": [re.compile("[0-9a-f]{2,16}")]},
    "waiver?": COUNT,
    "resumed?": bool,
    "smallest_case?": str,
    "right_alone?": frozenset(get_args(RightAlone)),
}
NOT_CALLED = (Outcome("none"),)
"""The outcomes of a row that was not called."""
