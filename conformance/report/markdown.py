"""summary.md: what a CI job shows beside its log; verdicts, then failures, then counts, in less than 1 MiB."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from ..certify.conclude import Conclusion
from ..certify.evidence import Evidence
from ..plan.rows import Plan
from .facts import MARKS, Facts, Shown, answer_of, call_of, clauses, counts_of, cut, sum_of, visible, wants

MOST_BYTES = 1 << 20
_FOR_FAILURES = MOST_BYTES - (1 << 16)
"""What the failures may take; the rest is short."""
_LONGEST = 600
_PLAIN = re.compile(r"[A-Za-z0-9 ,;:()=+^/-]+(?:\.[0-9]+)*")
"""Text that no dialect of Markdown reads as anything else."""


def summary(plan: Plan, evidence: Evidence, conclusion: Conclusion) -> str:
    """The whole file."""
    return of(Facts(plan, evidence, conclusion))


def of(facts: Facts) -> str:
    """The same of a run whose facts have been gathered."""
    parts = [
        *_head(facts),
        *_within(_failures(facts), _FOR_FAILURES),
        *_counts(facts),
        *_foot(facts),
    ]
    return "\n".join(parts) + "\n"


def code(text: object) -> str:
    """Any text as a code span: no link, no mention, no HTML and no table can come of it."""
    line = visible(text) or " "
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if line[0] in "` " or line[-1] in "` " else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def inert(text: str) -> str:
    """Text as it is where that is harmless, else as a code span."""
    return text if _PLAIN.fullmatch(text) and "//" not in text else code(text)


def _head(facts: Facts) -> Iterator[str]:
    yield f"# Reshape conformance of {code(facts.name)}{facts.reach}"
    yield ""
    for word, sentence in facts.documents.values():
        yield f"- {MARKS[word]} {inert(sentence)}"
    yield ""
    yield f"Exit code {facts.conclusion.exit_code}: {inert(facts.conclusion.why)}"
    yield ""


def _failures(facts: Facts) -> Iterator[tuple[int, str]]:
    """Failures by diagnosis as blocks of lines, each with the number of rows that it tells of."""
    for diagnosis, entries in facts.failures.items():
        rows = sum(len(shown) for shown in entries.values())
        number = f"{rows} row{'s' if rows > 1 else ''} of {len(entries)} case{'s' if len(entries) > 1 else ''}"
        yield 0, f"## {MARKS['fail']} {inert(diagnosis)}: {number}\n"
        for shown in entries.values():
            yield len(shown), "\n".join(_entry(facts, shown))


def _entry(facts: Facts, rows: Sequence[Shown]) -> Iterator[str]:
    first = rows[0]
    rule = facts.plan.suite.spec.rules[first.row.case.rule]
    failing = list(dict.fromkeys(document for shown in rows for document in shown.failing))
    more = f", and {len(rows) - 1} more of this case" if len(rows) > 1 else ""
    yield f"- {code(first.row.id)}{more}"
    yield f"  - rule {code(rule.id)} ({clauses(rule, failing)})"
    yield f"  - call {code(call_of(first.row.case, first.row.case.steps[first.step]))}"
    for want, documents in wants({shown.row.operation: shown.row for shown in rows}.values(), first.step).items():
        if there := [document for document in failing if document in documents]:
            yield f"  - want {code(want)} ({', '.join(there)})"
    yield f"  - got {code(cut(answer_of(first), _LONGEST))}"
    if first.detail:
        yield f"  - {code(cut(first.detail, _LONGEST))}"
    yield f"  - repeat with {code(facts.commands(first.row)[0])}"


def _within(blocks: Iterable[tuple[int, str]], budget: int) -> Iterator[str]:
    """As many blocks as fit, then how many rows did not."""
    left_out = 0
    for rows, block in blocks:
        budget -= len(block.encode("utf-8", "replace")) + 1
        if budget < 0:
            left_out += rows
        else:
            yield block
    if left_out:
        yield f"\n{left_out} more failing rows are in report.html."
    yield ""


def _counts(facts: Facts) -> Iterator[str]:
    yield "## Counts"
    yield ""
    if facts.standings:
        yield "| document | type | verdict | required | of these | in facets left out |"
        yield "|---|---|---|---:|---|---|"
    for each in facts.standings:
        verdict = f"{MARKS[each.word]} {each.word}"
        numbers = f"{each.required} | {sum_of(each.counts)} | {sum_of(each.optional)}"
        yield f"| {each.document} | {each.type} | {verdict} | {numbers} |"
    yield ""
    total = counts_of(shown.worst for shown in facts.rows)
    yield f"{len(facts.rows)} rows in the suite = {sum_of(total)}, each by its worst verdict in any document."
    yield ""


def _foot(facts: Facts) -> Iterator[str]:
    header, footer = facts.evidence.header, facts.evidence.footer
    suite = header["suite"]
    yield f"Suite {code(suite['version'])}, digest {code(suite['digest'])}."
    yield f"Results {code(footer.get('digest', 'none'))}."
    yield f"Started {code(header.get('started', 'at a time not told'))}; {code(footer.get('seconds', '?'))} seconds."
