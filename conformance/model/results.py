"""Outcomes of calls, and results of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from .verdicts import Verdict

OutcomeKind = Literal["tensor", "rejected", "unsupported", "crash", "timeout", "error", "none"]
"""`none`: no answer was recorded at all, because the row did not run."""


class Outcome(NamedTuple):
    """One call of a backend, before anyone judges it."""

    kind: OutcomeKind
    type: str | None = None
    dims: tuple[int, ...] | None = None
    data: bytes | memoryview | None = None
    """A tensor's elements in row-major order; None once the row is judged."""
    stage: str | None = None
    message: str | None = None
    """The text of the rejection, the facet not supported, the signal, or the adapter's error."""
    faults: tuple[str, ...] = ()
    """What the call did beside answering: `src changed`, `wrote outside src`, `answer changed later`."""
    shares: bool = False
    """True if the answer lies in src's memory: recorded, never graded."""


class Differing(NamedTuple):
    """The elements of an answer that differ from those due."""

    number: int
    places: tuple[int, ...]
    """The first of them, as indexes in row-major order."""
    got: tuple[str, ...]
    """The bits that came there, in hex."""


class Result(NamedTuple):
    """One row of the evidence: what a backend did in each step, and the verdict in each document."""

    row: str
    verdicts: Mapping[str, Verdict]
    outcomes: tuple[Outcome, ...]
    """By step; only the deciding one keeps its message. Of generated steps, there is the deciding one alone."""
    step: int = 0
    """The index of the step that decides the verdicts."""
    diagnosis: str | None = None
    """A few fixed words for what is wrong, to group by."""
    detail: str | None = None
    """The same in a sentence, with the first differing element if there is one."""
    content: tuple[str | None, ...] = ()
    """By step, the digest of what a tensor held; None for another outcome. Empty if no step answered a tensor."""
    waiver: int | None = None
    """The number of the waiver that changed a verdict of this row."""
    resumed: bool = False
    """True if an earlier run called the row, was interrupted, and this one took its result over."""
    case: str | None = None
    """Of a drawn row that failed: the smallest case found that fails in the same way, as YAML."""
    differing: Differing | None = None
    """Of an answer with the right type and dims, the elements that differ; None if none does."""
    milliseconds: int = 0
    """The time that calling and judging the row took; 0 if it was less than half of one, or no call was made."""

    @property
    def outcome(self) -> Outcome:
        """The outcome of the deciding step."""
        return self.outcome_of(self.step)

    def outcome_of(self, step: int) -> Outcome:
        """The outcome of a step; of generated steps there is the deciding one alone."""
        return self.outcomes[step if len(self.outcomes) > 1 else 0]


IDLE = (Outcome("none"),)
"""The outcomes of a row that was not called."""
