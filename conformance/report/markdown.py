"""summary.md: what a CI job shows beside its log; the worst kinds, verdicts, a failure of each kind, and counts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from ..evidence.folder import RESULTS
from ..evidence.journal import UNFINISHED
from ..model.verdicts import FAIL, MARKS, NOT_CLAIMED, NOT_RUN, fails
from ..system.terminal import count_noun
from ..system.text import shorten
from ..verdict.document_table import tabulate_documents
from ..verdict.failure_kinds import FailureKind
from ..verdict.sentences import describe_failures
from ..verdict.standing import count_tests
from .failure_text import format_failure
from .judged_run import JudgedRun
from .row_results import RowResult, describe_cases, format_counts
from .wording import visible

_MAX_KINDS = 8
"""Kinds of failures to show, each with its first case."""
_MAX_CHARACTERS = 600
"""Characters to show of a line."""
_PLAIN = re.compile(r"[A-Za-z0-9 ,;:()=+^/-]+(?:\.[0-9]+)*")
"""Text that no dialect of Markdown reads as anything else."""


def render(run: JudgedRun) -> str:
    parts = [*_render_head(run), *_render_failures(run), *_render_counts(run), *_render_foot(run)]
    return "\n".join(parts) + "\n"


def code(text: object) -> str:
    """Write any text as a code span, so that it makes no link, mention, HTML or table."""
    line = visible(text) or " "
    fence = _make_fence(line, 1)
    pad = " " if line[0] in "` " or line[-1] in "` " else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def block(text: str) -> str:
    """Write lines of any text as a code block."""
    fence = _make_fence(text, 3)
    return f"{fence}text\n{text}\n{fence}"


def _make_fence(text: str, least: int) -> str:
    """Return more backticks than the text has in a row, and at least so many."""
    return "`" * max(least, 1 + max(map(len, re.findall("`+", text)), default=0))


def inert(text: str) -> str:
    """Return a harmless text as it is, any other as a code span."""
    return text if _PLAIN.fullmatch(text) and "//" not in text else code(text)


def _render_head(run: JudgedRun) -> Iterator[str]:
    yield f"# Reshape conformance of {code(run.name)}{run.scope_phrase}: {run.label}"
    yield ""
    yield f"Exit code {run.conclusion.exit_code}: {inert(run.conclusion.why)}"
    yield ""
    if run.conclusion.headline:
        yield f"{inert(shorten(run.conclusion.headline, _MAX_CHARACTERS))}\n"
    for kind, entries in islice(run.failures.items(), _MAX_KINDS):
        counts = run.count_failures(result for same in entries.values() for result in same)
        advice = f". {inert(kind.cause.fault.advice)}" if kind.cause else ""
        yield f"- {_name(kind)}, {counts}{advice}"
    yield ""
    said = tabulate_documents(run.conclusion)
    if said.rows:
        yield f"| {' | '.join(said.header)} |"
        yield f"|{'---|' * len(said.header)}"
        yield from (f"| {' | '.join(row)} |" for row in said.rows)
        yield ""
    yield from (f"- {inert(limit)}" for limit in said.limits)
    yield from (f"- {inert(why)}" for word, why in run.verdict_by_document.values() if word in (NOT_RUN, NOT_CLAIMED))
    yield ""


def _render_failures(run: JudgedRun) -> Iterator[str]:
    """Render the first case of each kind, and say how many failures are not in these."""
    more = sum(run.count_failures(run.failing))
    for kind, entries in islice(run.failures.items(), _MAX_KINDS):
        rows = [result for same in entries.values() for result in same]
        first = next(iter(entries.values()))
        more -= sum(run.count_failures(first))
        yield f"## {MARKS[FAIL]} {_name(kind)}: {run.count_failures(rows)} of {describe_cases(rows)}\n"
        yield from _render_case(run, first)
        yield ""
    if more:
        yield f"{count_noun(more, 'more failure')} in report.html.\n"


def _name(kind: FailureKind) -> str:
    return f"{inert(kind.heading)} ({kind.blame})" if kind.blame else inert(kind.heading)


def _render_case(run: JudgedRun, rows: Sequence[RowResult]) -> Iterator[str]:
    more = f", and {count_noun(len(rows) - 1, 'more row')} of this case" if len(rows) > 1 else ""
    yield f"{code(rows[0].row.id)}{more}\n"
    text = format_failure(rows[0], run.plan.suite.spec.rules, (), run.blames_of(rows[:1]))
    yield block("\n".join(shorten(line, _MAX_CHARACTERS) for line in text.split("\n")))
    yield f"\nRepeat with {code(run.commands(rows[0])[0])}"


def _render_counts(run: JudgedRun) -> Iterator[str]:
    yield "## Counts"
    yield ""
    if run.standings:
        yield "| document | type | verdict | tests | of these | failures | not claimed |"
        yield "|---|---|---|---:|---|---|---|"
    for each in run.standings:
        verdict = f"{MARKS[each.name]} {each.name}"
        counts = count_tests([each])
        failures = describe_failures([each]) if fails(counts) else ""
        numbers = f"{each.tests:,} | {format_counts(counts)} | {failures} | {format_counts(each.not_counted)}"
        yield f"| {each.document} | {each.type} | {verdict} | {numbers} |"
    yield ""
    counts = run.conclusion.counts
    yield f"{count_noun(run.conclusion.tests, 'test')} = {format_counts(counts)}. A test is a row judged in a document."
    yield ""


def _render_foot(run: JudgedRun) -> Iterator[str]:
    header, interrupted = run.evidence.header, run.evidence.interrupted
    suite, file = header["suite"], f"{RESULTS}{UNFINISHED}" if interrupted else RESULTS
    took = "it did not end" if interrupted else f"{code(run.evidence.footer['seconds'])} seconds"
    yield f"Suite {code(suite['version'])}, digest {code(suite['digest'])}."
    yield f"SHA-256 of {code(file)} {code(run.evidence.sha256)}."
    yield f"Started {code(header['started'])}; {took}."
