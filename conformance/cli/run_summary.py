"""The output of `conformance run`: the conclusion and the failures, as text or data, and what each row of -k did."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..evidence.command import list_explain_words, list_row_options, list_run_words
from ..evidence.drawn import describe_drawn
from ..evidence.folder import PAGE, RESULTS
from ..model import BLAMES, NOT_CLAIMED, VERDICTS, Result
from ..model.verdicts import APPEARANCES, LABELS
from ..plan.rows import parse_drawn_id
from ..report.judged_run import JudgedRun
from ..system.terminal import count_noun, lines, paint, say, table, verbatim, wrap
from ..system.text import pick_error_line
from ..verdict.conclude import Conclusion
from ..verdict.document_table import lay_out_documents
from ..verdict.failure_kinds import MAX_KINDS_SHOWN, Failures, KindUnderRule, group_failures, list_shown_lines
from ..verdict.standing import count_tests
from .arguments import locate_case

_MAX_DETAIL_LINES = 3
"""Lines of what a backend said that are shown."""
_MAX_ROWS_SHOWN = 20
"""If -k chooses more rows, only the number for each verdict is shown."""


def data_of(run: JudgedRun, out: Path | None) -> dict[str, Any]:
    """Return what is concluded as data; `out` is the folder of its reports, if they are written."""
    evidence, conclusion = run.evidence, run.conclusion
    return {
        "backend": evidence.header["backend"],
        "exit_code": conclusion.exit_code,
        "label": conclusion.label,
        "why": conclusion.why,
        "sentences": list(conclusion.sentences),
        "notes": [*conclusion.notes, *evidence.footer["notes"]],
        "tests": conclusion.tests,
        "verdicts": {verdict: conclusion.counts.get(verdict, 0) for verdict in VERDICTS if verdict != NOT_CLAIMED},
        "standings": [
            {
                "document": s.document, "operation": s.operation, "type": s.type, "standing": s.name,
                "tests": s.tests, "counts": count_tests([s]), "not_counted": dict(s.not_counted),
                "blames": {blame: s.blames.get(blame, 0) for blame in BLAMES},
            }
            for s in conclusion.standings
        ],
        "failures": list(_collect_failures(run)),
        "out": out and str(out),
    }  # fmt: skip


def _collect_failures(run: JudgedRun) -> Iterator[dict[str, Any]]:
    """Yield a record for each row that failed in the target, or that was waived if no other failed."""
    again = list_run_words(run.evidence.header)
    for kind in group_failures(run.plan, run.evidence, run.conclusion).kinds:
        cause = kind.common.cause
        for row, result in kind.members:
            yield {
                "row": row.id, "case": row.case.id, "place": str(locate_case(row.case, run.plan.suite)),
                "rule_of_case": row.case.rule, "verdicts": dict(result.verdicts),
                "diagnosis": result.diagnosis, "detail": result.detail, "milliseconds": result.milliseconds,
                "blames": {
                    document: {"severity": each.severity, "blame": each.blame, "rule": each.premise.rule}
                    for document, each in run.conclusion.blames.get(row.id, {}).items()
                },
                "cause": cause and {"id": cause.fault.id, "guess": cause.is_guess},
                "repeat": None if result.needs_calls_before else shlex.join([*again, *list_row_options(row)]),
            }  # fmt: skip


def show(run: JudgedRun, out: Path, every_row: bool, accepted: Conclusion | None = None) -> None:
    """Print the conclusion of a run that has its reports in the folder `out`. The last line is of `accepted`.

    What failed comes first, then a line for each document.
    """
    conclusion, rest = run.conclusion, f"{PAGE} has all"
    failures = group_failures(run.plan, run.evidence, conclusion)
    name = f"{paint('bold', run.name)}: {paint(LABELS[conclusion.label].style, conclusion.label)}"
    head = [name, *_write_headline(conclusion, rest), *_write_facts(run)]
    end = ["", *_end(accepted or conclusion, out)]
    shown = _write_failures(run, failures, every_row, rest)
    _say_all([*head, *shown, "", *lay_out_documents(conclusion), *_write_notes(run, failures), *end])


def show_part(run: JudgedRun, every_row: bool) -> None:
    """Print what each row of -k, --quick or --last-failed did. Such a run overwrites no report: it writes nothing."""
    evidence, conclusion, rest = run.evidence, run.conclusion, "--json has all"
    _say_all([paint("bold", run.name), *_write_headline(conclusion, rest), ""])
    if evidence.results:
        say(table(_write_part(evidence.results)))
    failures = group_failures(run.plan, evidence, conclusion)
    if drawn := describe_drawn(evidence, run.plan.suite):
        say(f"  {drawn}")
    shown = _write_failures(run, failures, every_row, rest)
    _say_all([*shown, *_write_notes(run, failures), "", *_end(conclusion, None)])
    if evidence.results:
        say("nothing is written; add --out FOLDER to keep the evidence and its reports")


def _say_all(texts: Iterable[str]) -> None:
    for text in texts:
        say(text)


def _write_headline(conclusion: Conclusion, rest: str) -> Iterator[str]:
    if conclusion.headline:
        yield paint("red", wrap(conclusion.headline, 2, most=_MAX_DETAIL_LINES, rest=rest))


def _end(conclusion: Conclusion, out: Path | None) -> Iterator[str]:
    yield f"exit {conclusion.exit_code}: {conclusion.why}"
    if out is not None:
        yield f"report: {relative(out / PAGE)}" if (out / PAGE).exists() else f"results: {relative(out / RESULTS)}"


def _write_facts(run: JudgedRun) -> Iterator[str]:
    counts = run.conclusion.counts
    numbers = [paint(APPEARANCES[v].style or "dim", f"{counts[v]:,} {v}") for v in VERDICTS if counts.get(v)]
    yield f"  {' · '.join(numbers)}"
    seconds = run.evidence.footer["seconds"]
    yield f"  {count_noun(run.conclusion.tests, 'test')}, each a row judged in a document, {seconds} s"
    if drawn := describe_drawn(run.evidence, run.plan.suite):
        yield f"  {drawn}"


def _write_notes(run: JudgedRun, failures: Failures) -> Iterator[str]:
    """Yield all notes; the first is the headline, if there is one."""
    notes = [*run.conclusion.notes, *run.evidence.footer["notes"]]
    if failures.outside:
        notes.append(f"not counted: {count_noun(failures.outside, 'failure')} outside the target; the report has all")
    for note in notes[bool(run.conclusion.headline) :]:
        yield paint("yellow", wrap(f"note: {note}", 2, 4))


def _write_part(results: Sequence[Result]) -> Iterator[tuple[str, str]]:
    """Yield a line for each row, or for each verdict if there are many rows."""
    lines = [(tuple(dict.fromkeys(result.verdicts.values())), result.row) for result in results]
    if len(results) > _MAX_ROWS_SHOWN:
        counts = Counter(verdicts for verdicts, _ in lines)
        lines = [(verdicts, count_noun(number, "row")) for verdicts, number in counts.items()]
    for verdicts, what in lines:
        yield f"  {', '.join(paint(APPEARANCES[verdict].style or 'dim', verdict) for verdict in verdicts)}", what


def _write_failures(run: JudgedRun, failures: Failures, every_row: bool, rest: str) -> Iterator[str]:
    """Yield the kinds of failures, those to be mended first in front; `rest` says what has all of a long message.

    A kind that differs from the one before only in its rule has one line.
    """
    if not failures.kinds:
        return
    yield from ("", paint("bold", failures.title))
    shown = failures.kinds if every_row else failures.kinds[:MAX_KINDS_SHOWN]
    for kind in shown:
        if kind.is_further_rule and not every_row:
            yield _name_rule(kind, run.evidence.header)
        else:
            yield from _write_kind(run, kind, every_row, rest)
    if more := len(failures.kinds) - len(shown):
        yield f"  and {count_noun(more, 'more kind')}: the report has all, and so has --verbose"


def _write_kind(run: JudgedRun, kind: KindUnderRule, every_row: bool, rest: str) -> Iterator[str]:
    """Yield what went wrong, and for its first row, or all, details and the commands that repeat and explain it."""
    suite, header = run.plan.suite, run.evidence.header
    yield wrap(f"{kind.title} · {kind.about}", 2, 4).replace(kind.title, paint("red", kind.title), 1)
    if kind.common.cause:
        yield wrap(kind.common.cause.fault.advice, 6)
    for row, result in kind.members if every_row else kind.members[:1]:
        yield wrap(": ".join(map(str, filter(None, (locate_case(row.case, suite), row.id, row.case.title)))), 6)
        if result.detail:
            yield wrap(pick_error_line(result.detail), 6, most=_MAX_DETAIL_LINES, rest=rest)
        if shown := list_shown_lines(row, result, every_row):
            yield lines([verbatim(f"      {line}") for line in shown])
        if not result.needs_calls_before:
            yield verbatim(paint("bold", f"      {shlex.join([*list_run_words(header), *list_row_options(row)])}"))
        if parse_drawn_id(row.id) is None:
            yield verbatim(f"      {shlex.join([*list_explain_words(header), row.case.id])}")


def _name_rule(kind: KindUnderRule, header: Mapping[str, Any]) -> str:
    """Name a rule, and the command that repeats its first row, or the row if there is none."""
    row, result = kind.members[0]
    words = [row.id] if result.needs_calls_before else [*list_run_words(header), *list_row_options(row)]
    return verbatim(f"    {kind.line}: {paint('bold', shlex.join(words))}")


def relative(path: Path) -> str:
    """Return a path as it is named from the working directory, if it lies below."""
    return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
