"""The output of `conformance run`: the conclusion and the failures, as text or data, and what each row of -k did."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from ..certify.command import run_words
from ..certify.conclude import Conclusion
from ..certify.evidence import Evidence
from ..certify.failure_kinds import MOST_KINDS, group_failures
from ..certify.standing import Blames
from ..model import BLAMES, VERDICTS, Result, Verdict
from ..model.verdicts import TABLE
from ..plan.rows import Plan, Row
from ..system.terminal import count_noun, lines, paint, say, table, wrap

_ROWS_SHOWN = 20
"""The most rows of -k that stand alone; of more, only the number for each verdict is shown."""
Amount = Literal["answer", "usual", "all"]
"""What is printed: the answer alone, some failures too, or every row that failed."""


def data_of(plan: Plan, conclusion: Conclusion, evidence: Evidence, out: Path | None) -> dict[str, Any]:
    """Return a conclusion as data; `out` is the folder of its reports, if they are written."""
    return {
        "backend": evidence.header["backend"],
        "exit_code": conclusion.exit_code,
        "why": conclusion.why,
        "sentences": list(conclusion.sentences),
        "notes": [*conclusion.notes, *evidence.footer["notes"]],
        "verdicts": {verdict: conclusion.counts.get(verdict, 0) for verdict in VERDICTS},
        "standings": [
            {
                "document": s.document, "operation": s.operation, "type": s.type, "verdict": s.word,
                "required": s.required, "counts": dict(s.counts), "left_out": dict(s.optional), "tests": s.tests,
                "blames": {blame: s.blames.get(blame, 0) for blame in BLAMES},
            }
            for s in conclusion.standings
        ],
        "failures": list(_data_of_failures(plan, evidence, conclusion.blames)),
        "out": out and str(out),
    }  # fmt: skip


def _data_of_failures(plan: Plan, evidence: Evidence, blames: Blames) -> Iterator[dict[str, Any]]:
    """Yield a record for each row that failed in the target, or that was waived if no other failed."""
    again = run_words(evidence.header)
    for kind in group_failures(plan, evidence, blames).kinds:
        for row, result in kind.members:
            yield {
                "row": row.id, "case": str(row.case.place), "rule": row.case.rule, "verdicts": dict(result.verdicts),
                "diagnosis": kind.diagnosis, "detail": result.detail, "milliseconds": result.milliseconds,
                "blames": {d: {"blame": b.blame, "rule": b.premise.rule} for d, b in blames.get(row.id, {}).items()},
                "repeat": None if result.case else shlex.join([*again, "-k", row.id]),
            }  # fmt: skip


def show_answer(conclusion: Conclusion, out: Path | None) -> None:
    """Print what a run shows for each document, its exit code, and where its report is."""
    for sentence in conclusion.sentences:
        say(wrap(sentence, 0, 2))
    _show_end(conclusion, out)


def _show_end(conclusion: Conclusion, out: Path | None) -> None:
    say(f"exit {conclusion.exit_code}: {conclusion.why}")
    if out is not None:
        say(f"report: {relative(out / 'report.html')}")


def show(plan: Plan, evidence: Evidence, conclusion: Conclusion, out: Path, amount: Amount) -> None:
    """Print the conclusion of a run whose reports are in a folder."""
    who = evidence.header["backend"]
    say(paint("bold", f"{who['name']} {who['version']}"))
    say()
    for sentence in conclusion.sentences:
        say(wrap(sentence, 2, 4))
    say()
    rows = [
        (paint(TABLE[v].style or "dim", v), f"{conclusion.counts.get(v, 0):,}")
        for v in VERDICTS
        if conclusion.counts.get(v)
    ]
    say(table([("  " + name, number) for name, number in rows], right=[1]))
    say(f"  {count_noun(len(plan.rows), 'row')}, a verdict in each document, {evidence.footer['seconds']} s")
    if drawn := evidence.footer.get("drawn"):
        seed = evidence.header["drawn"]["seed"]
        failed = f"{drawn['failures']:,} failed" if drawn["failures"] else "none failed"
        say(f"  {count_noun(drawn['calls'], 'drawn row')} of seed {seed}, {failed}")
    for note in (*conclusion.notes, *evidence.footer["notes"]):
        say(paint("yellow", f"  note: {note}"))
    _show_failures(plan, evidence, conclusion.blames, amount)
    say()
    _show_end(conclusion, out)


def show_part(plan: Plan, evidence: Evidence, conclusion: Conclusion, amount: Amount) -> None:
    """Print what each row of -k or --lf did. Such a run writes nothing, so that it overwrites no report."""
    who = evidence.header["backend"]
    say(paint("bold", f"{who['name']} {who['version']}"))
    say()
    if evidence.results:
        say(table(_part_table(evidence.results)))
    for note in evidence.footer["notes"]:
        say(paint("yellow", f"  note: {note}"))
    _show_failures(plan, evidence, conclusion.blames, amount)
    say()
    _show_end(conclusion, None)
    if evidence.results:
        say("nothing is written; add --out FOLDER to keep the evidence and its reports")


def _part_table(results: Sequence[Result]) -> Iterator[tuple[str, str]]:
    """Yield a line for each row, or for each verdict if there are many rows."""
    if len(results) > _ROWS_SHOWN:
        counts = Counter(tuple(dict.fromkeys(result.verdicts.values())) for result in results)
        yield from ((f"  {_paint_all(verdicts)}", count_noun(number, "row")) for verdicts, number in counts.items())
    else:
        yield from ((f"  {_paint_all(tuple(dict.fromkeys(r.verdicts.values())))}", r.row) for r in results)


def _paint_all(verdicts: tuple[Verdict, ...]) -> str:
    return ", ".join(paint(TABLE[verdict].style or "dim", verdict) for verdict in verdicts)


def _show_failures(plan: Plan, evidence: Evidence, blames: Blames, amount: Amount) -> None:
    failures = group_failures(plan, evidence, blames)
    if failures.outside:
        number = f"{failures.outside:,} are outside the target"
        say(paint("yellow", f"  note: of the verdicts that failed {number}; the report has all"))
    if not failures.kinds:
        return
    again = shlex.join(run_words(evidence.header))
    say()
    say(paint("bold", failures.title))
    for kind in failures.kinds if amount == "all" else failures.kinds[:MOST_KINDS]:
        say(f"  {paint('red', kind.diagnosis)} · {kind.about}")
        for row, result in kind.members if amount == "all" else kind.members[:1]:
            _show_row(row, result, again)
    if len(failures.kinds) > MOST_KINDS and amount != "all":
        say(f"  and {len(failures.kinds) - MOST_KINDS} more kinds; the report has all")


def _show_row(row: Row, result: Result, again: str) -> None:
    say(wrap(f"{row.case.place}: {row.id}: {result.detail}", 6))
    if result.case is not None:
        say(lines([f"      {line}" for line in result.case.rstrip().split("\n")]))
    else:
        say(paint("dim", f"      {again} -k {shlex.quote(row.id)}"))


def relative(path: Path) -> str:
    """Return a path as it is named from the working directory, if it lies below."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
