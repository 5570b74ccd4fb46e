"""The published results: a folder for each backend and version, and a page that puts all of them side by side."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from . import report
from .certify import RESULTS
from .conclude import concluded
from .evidence import PACKED, Evidence, Refused, complete, packed, parsed, read
from .model import Verdict
from .plan import Plan
from .report.compare import html
from .report.facts import Facts

PUBLISHED = f"{RESULTS}{PACKED}"
PAGE = "report.html"
INDEX = "index.html"


class Stale(NamedTuple):
    """A folder that is of no use any more, and why."""

    folder: Path
    why: str


def name_of(evidence: Evidence) -> str:
    """The folder of a backend and its version: `onednn-3.6.2`."""
    backend = evidence.header["backend"]
    version = str(backend["version"]).partition("+")[0]
    return re.sub(r"[^A-Za-z0-9._-]+", "-", f"{backend['name']}-{version}").strip(".-")[:80]


def publish(results: Path, plan: Plan, reports: Path) -> Path:
    """Puts the results of a run where they are published, with their page; Refused where they are not whole."""
    data = results.read_bytes()
    evidence = parsed(data, results)
    _check(evidence, plan, results)
    folder = reports / name_of(evidence)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PUBLISHED).write_bytes(packed(data))
    write_page(folder, evidence, plan)
    return folder


def write_page(folder: Path, evidence: Evidence, plan: Plan) -> None:
    text = report.texts(plan, evidence, concluded(plan, evidence), (PAGE,), brief=True)[PAGE]
    (folder / PAGE).write_text(text, encoding="utf-8", newline="\n")


def _check(evidence: Evidence, plan: Plan, path: Path) -> None:
    complete(evidence, (row.id for row in plan.rows), plan.suite.digest, path)
    target = evidence.header["target"]
    if target.get("select") or target.get("shard"):
        raise Refused(f"{path}: is a part of a run, by -k or --shard; only whole runs are published")


def folders(reports: Path) -> list[Path]:
    """Those that hold published results."""
    return sorted(path.parent for path in reports.glob(f"*/{PUBLISHED}"))


def index(reports: Path, plan: Plan) -> tuple[list[Facts], list[Stale]]:
    """Writes the page of all published results that are of this suite; these, and the folders that are not."""
    found = list(_gathered(reports, plan))
    runs = [(folder, facts) for folder, facts in found if isinstance(facts, Facts)]
    stale = [Stale(folder, facts) for folder, facts in found if not isinstance(facts, Facts)]
    if runs:
        pages = [f"{folder.name}/{PAGE}" for folder, _ in runs]
        text = html([facts for _, facts in runs], pages)
        (reports / INDEX).write_text(text, encoding="utf-8", newline="\n")
        _write_counts(reports / "README.md", runs)
    return [facts for _, facts in runs], stale


def _gathered(reports: Path, plan: Plan) -> Iterator[tuple[Path, Facts | str]]:
    for folder in folders(reports):
        try:
            evidence = read(folder / PUBLISHED)
            _check(evidence, plan, folder / PUBLISHED)
        except Refused as refused:  # noqa: PERF203 - one for each folder
            yield folder, str(refused)
        else:
            yield folder, Facts(plan, evidence, concluded(plan, evidence))


# ── the counts in reports/README.md ───────────────────────────────────────────────────────────────

BEGIN, END = "<!-- counts -->\n", "<!-- /counts -->\n"
_COLUMNS: tuple[Verdict, ...] = ("pass", "fail", "error", "observed", "not claimed")


def _write_counts(text: Path, runs: Sequence[tuple[Path, Facts]]) -> None:
    """The table of counts in a text that has a place for it."""
    if not text.is_file():
        return
    before, begin, rest = text.read_text(encoding="utf-8").partition(BEGIN)
    _, end, after = rest.partition(END)
    if begin and end:
        text.write_text(f"{before}{begin}{''.join(_counts(runs))}{end}{after}", encoding="utf-8", newline="\n")


def _counts(runs: Sequence[tuple[Path, Facts]]) -> Iterator[str]:
    yield f"| backend | rows called | {' | '.join(_COLUMNS)} | failing cases, by what is wrong |\n"
    yield f"|---{'|---:' * (1 + len(_COLUMNS))}|---|\n"
    for folder, facts in runs:
        called = sum(result.outcome["kind"] != "none" for result in facts.evidence.results)
        counts = [f"{facts.conclusion.counts.get(verdict, 0):,}" for verdict in _COLUMNS]
        kinds = "; ".join(f"{name} {len(cases)}" for name, cases in facts.failures.items()) or "none"
        yield f"| [{folder.name}]({folder.name}/{PAGE}) | {called:,} | {' | '.join(counts)} | {kinds} |\n"


def size(reports: Path) -> int:
    """Bytes of all that is published."""
    return sum(path.stat().st_size for path in reports.rglob("*") if path.is_file())


def same_rows(one: Evidence, other: Evidence) -> Sequence[str]:
    """The rows on which two runs differ, by id."""
    before = {result.row: result for result in one.results}
    return [result.row for result in other.results if before.get(result.row) != result]
