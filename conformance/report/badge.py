"""badge.svg: documents and verdicts in words, with level, date and suite."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from ..model.verdicts import NOT_CLAIMED, WAIVED, WORDS
from ..system.exit_codes import FAILS, VOIDS_VERDICTS
from ..system.text import name_first
from .finished_run import FinishedRun
from .rows import group_pairs
from .wording import visible

LABEL = "reshape conformance"
_COLOURS: Mapping[str, str] = {
    "conforms": "#116329",
    "does not conform": "#a40e26",
    "incomplete": "#7d4e00",
    "nothing shown": "#7d4e00",
    NOT_CLAIMED: "#57606a",
}
"""The colour for each word; white on it has a contrast of 4.5 to 1."""
MOST_DOCUMENTS = 2
"""Documents to name; a badge says how many more there are."""
_WIDTH: Mapping[str, float] = {**dict.fromkeys("fijlrt ,.;:'()-", 4.2), **dict.fromkeys("mwMW", 10.4)}
"""Width of a character in 11 px sans serif, rather too much than too little: `textLength` makes it fit."""


def summarize(run: FinishedRun) -> tuple[str, str]:
    """The worst word, and each verdict with the documents that have it."""
    if run.conclusion.exit_code in VOIDS_VERDICTS:
        return "nothing shown", "no verdict holds"
    by_word = group_pairs((word, document) for document, (word, _) in run.documents.items())
    claimed = {word: by_word[word] for word in WORDS if word in by_word and word != NOT_CLAIMED}
    if not claimed:
        return NOT_CLAIMED, "no document claimed"
    parts = [_part(word, documents, len(run.documents)) for word, documents in claimed.items()]
    if "does not conform" in claimed:
        parts[0] += f" ({run.blame_counts})"
    parts[-1] += run.reach
    if waived := run.conclusion.counts.get(WAIVED):
        parts.append(f"{waived} waived")
    if run.target.filter or run.target.shard:
        parts.append("part of the suite")
    word = next(iter(claimed))
    if word == "conforms" and (limits := _limits(run)):
        parts.append(limits)
    if word == "conforms" and run.conclusion.exit_code:
        word = "incomplete"
        failed = run.conclusion.exit_code == FAILS
        parts.append("fails where nothing is claimed" if failed else "not all that was asked for")
    if word == "conforms" and run.reach:
        word = "incomplete"
    return word, "; ".join(parts)


def _limits(run: FinishedRun) -> str:
    """Say in a few words which types were not shown, and whether all facets are claimed."""
    shown = dict.fromkeys(standing.type for standing in run.standings if standing.word == "conforms")
    parts = [f"for {', '.join(shown)} only"] if {*run.plan.suite.spec.types} - shown.keys() else []
    if any(standing.not_claimed for standing in run.standings):
        parts.append("with limits")
    return " ".join(parts)


def _part(word: str, documents: tuple[str, ...], every: int) -> str:
    """`conforms to static-oneapi`, `static-spec-v0.9 and 2 more incomplete`."""
    if len(documents) == every > 1:
        named = f"{'any' if word == 'does not conform' else 'all'} of the {every} documents"
    else:
        named = name_first(documents, MOST_DOCUMENTS)
    if word in ("conforms", "does not conform"):
        return f"{word} to {named}"
    return f"{named}: {word}"


def describe_run(level: str, started: str, version: str, digest: str) -> str:
    """Say how far a run can be relied on, when it began, and which suite ran."""
    return f"{level} {started[:10]}, suite {version} ({digest[:8]})"


def render_svg(run: FinishedRun) -> str:
    word, message = summarize(run)
    suite, started = run.evidence.header["suite"], run.evidence.header["started"]
    said = describe_run("self-tested", started, suite["version"], suite["digest"])
    return draw(run.name, word, f"{message}; {said}")


def draw(name: str, word: str, message: str) -> str:
    """Draw a badge: two boxes of text, no font and no link from elsewhere."""
    left, right = _width(LABEL), _width(message)
    whole = left + right + 40
    title = escape(visible(f"{LABEL} of {name}: {message}"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" role="img" aria-label="{title}">'
        f'<title>{title}</title><rect width="{left + 20}" height="20" rx="3" fill="#32383f"/>'
        f'<rect x="{left + 17}" width="{right + 23}" height="20" rx="3" fill="{_COLOURS[word]}"/>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f'<text x="9" y="14" textLength="{left}">{LABEL}</text>'
        f'<text x="{left + 28}" y="14" textLength="{right}">{escape(message)}</text></g></svg>\n'
    )


def _width(text: str) -> int:
    return round(sum(_WIDTH.get(character, 6.9) for character in text))
