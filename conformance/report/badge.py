"""badge.svg: the label of a run; its title has documents, numbers, level, date and suite."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from ..evidence.drawn import name_missed_rows
from ..model.verdicts import LABELS, STANDING_NAMES, WAIVED, Label
from ..system.exit_codes import VOIDS_VERDICTS
from ..system.groups import group_pairs
from ..system.text import name_first
from .judged_run import JudgedRun
from .wording import visible

_LEFT = "reshape"
_COLOURS: Mapping[str, str] = {
    "pass": "#116329", "fail": "#a40e26", "error": "#a40e26", "hot": "#953800", "warn": "#7d4e00", "open": "#57606a",
}  # fmt: skip
"""The colour for each class of a label; white on it has a contrast of 4.5 to 1."""
MAX_DOCUMENTS_NAMED = 2
"""Documents to name; a badge says how many more there are."""
_WIDTH: Mapping[str, float] = {**dict.fromkeys("fijlrt ,.;:'()-", 4.2), **dict.fromkeys("mwMW", 10.4)}
"""Width of a character in 11 px sans serif, rather too much than too little: `textLength` makes it fit."""


def summarize(run: JudgedRun) -> tuple[Label, str]:
    """Return the label, and each verdict with the documents that have it."""
    if run.conclusion.exit_code in VOIDS_VERDICTS:
        return "nothing shown", "no verdict holds"
    by_word = group_pairs((word, document) for document, (word, _) in run.verdict_by_document.items())
    claimed = {word: by_word[word] for word in STANDING_NAMES if word in by_word and word != "not claimed"}
    if not claimed:
        return "not claimed", "no document claimed"
    parts = [_write_part(word, documents, len(run.verdict_by_document)) for word, documents in claimed.items()]
    if next(iter(claimed)) != "conforms" and (counts := run.failures_in_words):
        parts[0] += f" ({counts})"
    parts[-1] += run.scope_phrase
    if waived := run.conclusion.counts.get(WAIVED):
        parts.append(f"{waived} waived")
    if run.target.row_options or run.target.shard or run.evidence.interrupted:
        parts.append("part of the suite")
    if next(iter(claimed)) == "conforms":
        missed = name_missed_rows(run.evidence, run.plan.suite)
        parts += [*filter(None, [_describe_limits(run)]), *([f"without {missed}"] if missed else [])]
        parts += [run.conclusion.why] if run.conclusion.exit_code else []
    return "incomplete" if run.label.startswith("conforms") and run.scope_phrase else run.label, "; ".join(parts)


def _describe_limits(run: JudgedRun) -> str:
    """Say in a few words which types were not shown, and whether all facets are claimed."""
    shown = dict.fromkeys(standing.type for standing in run.standings if standing.name == "conforms")
    parts = [f"for {', '.join(shown)} only"] if {*run.plan.suite.spec.types} - shown.keys() else []
    if any(standing.not_claimed for standing in run.standings):
        parts.append("with limits")
    return " ".join(parts)


def _write_part(word: str, documents: tuple[str, ...], every: int) -> str:
    """`conforms to static-oneapi`, `static-spec-v0.9 and 2 more incomplete`."""
    if len(documents) == every > 1:
        named = f"{'any' if word == 'does not conform' else 'all'} of the {every} documents"
    else:
        named = name_first(documents, MAX_DOCUMENTS_NAMED)
    if word in ("conforms", "does not conform"):
        return f"{word} to {named}"
    return f"{named}: {word}"


def describe_run(level: str, started: str, version: str, digest: str) -> str:
    """Say how far a run can be relied on, when it began, and which suite ran."""
    return f"{level} {started[:10]}, suite {version} ({digest[:8]})"


def render_svg(run: JudgedRun) -> str:
    label, message = summarize(run)
    suite, started = run.evidence.header["suite"], run.evidence.header["started"]
    said = describe_run("self-tested", started, suite["version"], suite["digest"])
    return draw_badge(run.name, label, LABELS[label].colour, f"{message}; {said}")


def draw_badge(name: str, word: str, colour: str, message: str) -> str:
    """Draw a badge: two boxes of text, no font and no link from elsewhere; the title has the message."""
    left, right = _measure_width(_LEFT), _measure_width(word)
    whole = left + right + 36
    title = escape(visible(f"reshape conformance of {name}: {message}"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{whole}" height="20" role="img" aria-label="{title}">'
        f'<title>{title}</title><rect width="{left + 20}" height="20" rx="3" fill="#32383f"/>'
        f'<rect x="{left + 17}" width="{right + 19}" height="20" rx="3" fill="{_COLOURS[colour]}"/>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">'
        f'<text x="9" y="14" textLength="{left}">{_LEFT}</text>'
        f'<text x="{left + 28}" y="14" textLength="{right}">{word}</text></g></svg>\n'
    )


def _measure_width(text: str) -> int:
    return round(sum(_WIDTH.get(character, 6.9) for character in text))
