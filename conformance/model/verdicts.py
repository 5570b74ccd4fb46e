"""The tables of verdicts, blames, severities and labels: word, mark, colour, order, and the words of the legend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, get_args

Verdict = Literal["pass", "fail", "observed", "not claimed", "error", "waived", "not run"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""In the order in which counts name them."""
PASS, FAIL, OBSERVED, NOT_CLAIMED, ERROR, WAIVED, NOT_RUN = VERDICTS


class Appearance(NamedTuple):
    """The look and the meaning of a verdict or a label."""

    mark: str
    """A shape, so that no reader depends on colour."""
    colour: str
    """Its class in style.css."""
    style: str
    """Its style on a terminal; empty for none."""
    legend: str


APPEARANCES: dict[Verdict, Appearance] = {
    PASS: Appearance(
        "✓", "pass", "green",
        "A legal call was answered with the right type, dims and bytes, or an illegal one was rejected.",
    ),
    FAIL: Appearance(
        "✗", "fail", "red",
        "The answer is wrong, a legal call was rejected, an illegal one answered, or the call crashed or hung.",
    ),
    OBSERVED: Appearance(
        "◆", "observed", "cyan",
        "The call is unspecified, or rejected for its great size. It is recorded, and breaks nothing settled.",
    ),
    NOT_CLAIMED: Appearance(
        "○", "open", "",
        "The backend does not claim the call, and nothing in the outcome is held against it.",
    ),
    ERROR: Appearance(
        "▲", "error", "red",
        "The adapter went wrong, so nothing is known of the backend. Mend the adapter first.",
    ),
    WAIVED: Appearance(
        "◐", "warn", "yellow",
        "A failure that was declared before the run, with a reason and a date. It is no pass.",
    ),
    NOT_RUN: Appearance(
        "□", "warn", "yellow",
        "The call was not made. In the target it is in the denominator, and nothing conforms while it is there.",
    ),
}  # fmt: skip
BAD = frozenset({FAIL, ERROR})
"""The row fails the run."""
FAILED_OR_WAIVED = BAD | {WAIVED}
"""Verdicts that always count: a row that fails is a test even if the backend does not claim its facets."""
RIGHT = frozenset({PASS, OBSERVED})
"""The backend did what is expected. A verdict that is neither right nor bad shows nothing."""
WORST: tuple[Verdict, ...] = (ERROR, FAIL, NOT_RUN, NOT_CLAIMED, WAIVED, PASS, OBSERVED)
"""The verdicts, the one that decides first."""
_RANK = {verdict: rank for rank, verdict in enumerate(WORST)}


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the verdict that decides; `not run` if there is none."""
    return min(verdicts, key=_RANK.__getitem__, default=NOT_RUN)


def count_verdicts(verdicts: Iterable[Verdict] | Mapping[Verdict, int]) -> dict[Verdict, int]:
    """Count verdicts, or sort counts of them: those that occur, in the order of the table."""
    counts = Counter(verdicts)
    return {verdict: counts[verdict] for verdict in VERDICTS if counts[verdict]}


def count_failed(counts: Mapping[Verdict, int]) -> int:
    return sum(counts.get(verdict, 0) for verdict in BAD)


def fails(verdicts: Iterable[str]) -> bool:
    """Ask whether one of the verdicts is a failure or an error."""
    return not BAD.isdisjoint(verdicts)


# ── standings of a document ───────────────────────────────────────────────────────────────────────

StandingName = Literal["conforms", "does not conform", "incomplete", "nothing shown", "not claimed"]
STANDING_NAMES: tuple[StandingName, ...] = (
    "does not conform", "incomplete", "nothing shown", "conforms", "not claimed",
)  # fmt: skip
"""What a run says of a document and a type, the word that decides first."""
MARKS: dict[str, str] = {verdict: entry.mark for verdict, entry in APPEARANCES.items()} | {
    "conforms": "✓", "does not conform": "✗", "incomplete": "□", "nothing shown": "□",
}  # fmt: skip
"""The mark of each verdict and of each standing of a document."""
COLOURS: dict[str, str] = {verdict: entry.colour for verdict, entry in APPEARANCES.items()} | {
    "conforms": "pass", "does not conform": "fail", "incomplete": "warn", "nothing shown": "warn",
}  # fmt: skip
"""The class of each in style.css."""

# ── blame ─────────────────────────────────────────────────────────────────────────────────────────

Blame = Literal["breaks the text", "accepts what the text forbids", "breaks only our ruling"]
BLAMES: dict[Blame, str] = {
    "breaks the text": (
        "A sentence of the document says otherwise, however one reads it: the answer breaks it, or it offers the call "
        "that was not answered."
    ),
    "accepts what the text forbids": (
        "The document forbids the call, and the backend answered it. That such a call must be rejected is our ruling."
    ),
    "breaks only our ruling": (
        "The document says nothing of it, or can be read in another way. Our ruling or our reading is broken."
    ),
}
"""The kinds of blame, the heaviest first, with their meanings. The three are never added up."""

# ── severity ──────────────────────────────────────────────────────────────────────────────────────

Severity = Literal["ends the process", "wrong answer", "rejects a legal call", "accepts an illegal call"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""What a failure does to a user, the worst first; LABELS colours them. A hang counts as the end of the process."""


def describe_severity(severity: Severity, number: int) -> str:
    """Say what some tests do, as a verb."""
    words = "gives a wrong answer" if severity == "wrong answer" else severity
    verb, _, rest = words.partition(" ")
    return words if number == 1 else f"{verb[:-1]} {rest}"


# ── label ─────────────────────────────────────────────────────────────────────────────────────────

Label = Literal[
    Severity, "adapter errs", "fails outside its claims", "nothing shown", "waiver overdue", "incomplete", "not run",
    "conforms, limited", "conforms", "not claimed",
]  # fmt: skip

LABELS: Mapping[Label, Appearance] = {
    "ends the process": Appearance("✗", "fail", "red", "Some test crashes the process, or does not end in time."),
    "wrong answer": Appearance("≠", "fail", "red", "Some answer has wrong type, dims or elements, or damages memory."),
    "rejects a legal call": Appearance("⊘", "hot", "red", "Some legal call was not answered. Nothing worse was seen."),
    "accepts an illegal call": Appearance(
        "△", "warn", "yellow", "Some illegal call was answered. Nothing worse was seen."
    ),
    "adapter errs": Appearance("▲", "error", "red", "The adapter went wrong in some tests; nothing else failed."),
    "fails outside its claims": Appearance(
        "✗", "fail", "red", "A call of a type that is not claimed crashes, hangs or damages memory."
    ),
    "nothing shown": Appearance("□", "warn", "yellow", "The run shows nothing that can be relied on."),
    "waiver overdue": Appearance("□", "warn", "yellow", "Nothing failed, but a waiver has ended or fits nothing."),
    "incomplete": Appearance("□", "warn", "yellow", "Nothing failed, but a test was not run, or a rule has no pass."),
    "not run": Appearance("□", "warn", "yellow", "The run was not meant to test this document."),
    "conforms, limited": Appearance(
        "✓",
        "pass",
        "green",
        "Nothing failed, but features are not claimed, failures are waived, or the adapter does a part.",
    ),
    "conforms": Appearance("✓", "pass", "green", "Nothing failed, and the backend claims every feature."),
    "not claimed": Appearance("–", "open", "dim", "The backend claims neither the operation nor a type of it."),
}
"""The names of a result, of one document or of a whole run. If something failed, it is the worst severity."""
