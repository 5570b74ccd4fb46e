"""What a backend did, and the verdicts on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

# ── what happened ─────────────────────────────────────────────────────────────────────────────────

OutcomeKind = Literal["tensor", "rejected", "unsupported", "crash", "timeout", "error", "none"]
"""`none`: no answer was recorded at all, because the row did not run."""


class Outcome(NamedTuple):
    """What one step of a row did, before anyone judges it."""

    kind: OutcomeKind
    type: str | None = None
    dims: tuple[int, ...] | None = None
    data: bytes | memoryview | None = None
    """A tensor's elements in row-major order."""
    stage: str | None = None
    message: str | None = None
    """The refusal's text, the facet not supported, the signal, or the adapter's error."""
    faults: tuple[str, ...] = ()
    """What the call did beside answering: `src changed`, `wrote outside src`, `answer changed later`."""
    shares: bool = False
    """Whether the answer lies in src's memory: recorded, never graded."""


Verdict = Literal["pass", "fail", "observed", "not claimed", "error", "waived", "not run"]
VERDICTS: tuple[Verdict, ...] = ("pass", "fail", "observed", "not claimed", "error", "waived", "not run")


class Result(NamedTuple):
    """One row of the evidence: what a backend did with one row of the plan, and the verdict in each document."""

    row: str
    verdicts: Mapping[str, Verdict]
    outcome: Mapping[str, Any]
    """The deciding step's outcome as JSON: kind, type, dims, stage, message, faults, shares; with several steps also
    the number of the deciding `step`, and the outcome of each of the `steps` without its message."""
    diagnosis: str | None = None
    """A few fixed words for what is wrong, to group by."""
    detail: str | None = None
    """The same in a sentence, with the first differing element where there is one."""
    content: tuple[str | None, ...] = ()
    """By step, `digest_of` what a tensor held; None for a step that answered none."""
    resumed: bool = False
    """True if an earlier run called the row, was interrupted, and this one took its result over."""
