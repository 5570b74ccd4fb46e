"""The table of verdicts: word, mark, colour, order, what each says of a backend, and the words of the legend."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, get_args

Verdict = Literal["pass", "fail", "observed", "not claimed", "error", "waived", "not run"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""In the order in which counts name them."""
PASS, FAIL, OBSERVED, NOT_CLAIMED, ERROR, WAIVED, NOT_RUN = VERDICTS


class VerdictWords(NamedTuple):
    """The look and the meaning of a verdict."""

    mark: str
    """A shape, so that no reader depends on colour."""
    colour: str
    """Its class in style.css."""
    style: str
    """Its style on a terminal; empty for none."""
    rank: int
    """The verdict of the lowest rank decides."""
    kind: Literal["right", "bad", "aside"]
    """`right`: the backend did what is expected. `bad`: the row fails the run. `aside`: it shows nothing."""
    legend: str


TABLE: dict[Verdict, VerdictWords] = {
    PASS: VerdictWords(
        "✓", "pass", "green", 5, "right",
        "A legal call was answered with the right type, dims and bytes, or an illegal one was rejected.",
    ),
    FAIL: VerdictWords(
        "✗", "fail", "red", 1, "bad",
        "The answer is wrong, a legal call was rejected, an illegal one answered, or the call crashed or hung.",
    ),
    OBSERVED: VerdictWords(
        "◆", "observed", "cyan", 6, "right",
        "The document leaves the call unspecified. What was done is recorded and breaks nothing settled.",
    ),
    NOT_CLAIMED: VerdictWords(
        "○", "open", "", 3, "aside",
        "The backend does not claim the call, and nothing in the outcome is held against it.",
    ),
    ERROR: VerdictWords(
        "▲", "error", "red", 0, "bad",
        "The adapter went wrong, so nothing is known of the backend. Mend the adapter first.",
    ),
    WAIVED: VerdictWords(
        "◐", "warn", "yellow", 4, "aside",
        "A failure that was declared before the run, with a reason and a date. It is no pass.",
    ),
    NOT_RUN: VerdictWords(
        "□", "warn", "yellow", 2, "aside",
        "The call was not made. In the target it is in the denominator, and nothing conforms while it is there.",
    ),
}  # fmt: skip
BAD = frozenset(verdict for verdict, entry in TABLE.items() if entry.kind == "bad")
RIGHT = frozenset(verdict for verdict, entry in TABLE.items() if entry.kind == "right")
WORST: tuple[Verdict, ...] = tuple(sorted(TABLE, key=lambda verdict: TABLE[verdict].rank))
"""The verdicts, the one that decides first."""
_RANK = {verdict: entry.rank for verdict, entry in TABLE.items()}


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


# ── words about a document ────────────────────────────────────────────────────────────────────────

Word = Literal["conforms", "does not conform", "incomplete", "nothing shown", "not claimed"]
WORDS: tuple[Word, ...] = ("does not conform", "incomplete", "nothing shown", "conforms", "not claimed")
"""What a run says of a document and a type, the word that decides first."""
MARKS: dict[str, str] = {verdict: entry.mark for verdict, entry in TABLE.items()} | {
    "conforms": "✓", "does not conform": "✗", "incomplete": "□", "nothing shown": "□",
}  # fmt: skip
"""The mark of each verdict and of each word about a document."""
COLOURS: dict[str, str] = {verdict: entry.colour for verdict, entry in TABLE.items()} | {
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
"""What a failing result does to a user, the worst first. A hang counts as the end of the process."""

# ── label ─────────────────────────────────────────────────────────────────────────────────────────

Label = Literal[
    Severity, "adapter errs", "fails outside its claims", "nothing shown", "waiver overdue", "incomplete", "not run",
    "conforms, limited", "conforms", "not claimed",
]  # fmt: skip


class LabelWords(NamedTuple):
    """The look and the meaning of a label."""

    mark: str
    colour: str
    """Its class in style.css."""
    style: str
    """Its style on a terminal."""
    legend: str


LABELS: Mapping[Label, LabelWords] = {
    "ends the process": LabelWords("✗", "fail", "red", "Some test crashes the process, or does not end in time."),
    "wrong answer": LabelWords("≠", "fail", "red", "Some answer has wrong type, dims or elements, or damages memory."),
    "rejects a legal call": LabelWords("⊘", "hot", "red", "Some legal call was not answered. Nothing worse was seen."),
    "accepts an illegal call": LabelWords(
        "△", "warn", "yellow", "Some illegal call was answered. Nothing worse was seen."
    ),
    "adapter errs": LabelWords("▲", "error", "red", "The adapter went wrong in some tests; nothing else failed."),
    "fails outside its claims": LabelWords(
        "✗", "fail", "red", "A call of a type that is not claimed crashes, hangs or damages memory."
    ),
    "nothing shown": LabelWords("□", "warn", "yellow", "The run shows nothing that can be relied on."),
    "waiver overdue": LabelWords("□", "warn", "yellow", "Nothing failed, but a waiver has ended or fits nothing."),
    "incomplete": LabelWords("□", "warn", "yellow", "Nothing failed, but a test was not run, or a rule has no pass."),
    "not run": LabelWords("□", "warn", "yellow", "The run was not meant to test this document."),
    "conforms, limited": LabelWords(
        "✓", "pass", "green", "Every claimed test passes. Features are not claimed, or the adapter does a part."
    ),
    "conforms": LabelWords("✓", "pass", "green", "Every test passes, and the backend claims every feature."),
    "not claimed": LabelWords("–", "open", "dim", "The backend claims neither the operation nor a type of it."),
}  # fmt: skip
"""The names of a result, of one document or of a whole run. If something failed, it is the worst severity."""
