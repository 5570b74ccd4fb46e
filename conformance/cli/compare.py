"""`conformance compare DIR…`: several runs of one suite on one page."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from ..evidence.folder import RESULTS, find_results
from ..evidence.results import Evidence, Refused, read
from ..model.verdicts import MARKS
from ..plan.rows import Plan
from ..report.finished_run import FinishedRun
from ..site.compare_page import differs, name_runs, one_fails, render
from ..system.terminal import count_noun, say, table
from ..verdict.conclude import conclude_evidence
from ..verdict.rejudge import refuse_unsound
from .arguments import Usage, emit, load_plan
from .parser import Parser, path
from .shared_options import add_suite

DEFAULT_OUT = Path("conformance-compare.html")


EXAMPLES = """\
  conformance compare build/reference build/onednn --out compare.html"""


def add_options(parser: Parser) -> None:
    text = "folders of runs, or their results.jsonl"
    parser.add_argument("folders", nargs="+", type=path, metavar="DIR", help=text)
    parser.path("--out", "FILE", "the page to write (conformance-compare.html)")
    add_suite(parser)


def run(args: argparse.Namespace) -> int:
    """Write the page; 0 whatever the verdicts are."""
    plan = load_plan(args.spec, args.cases)
    runs = [load_facts(path, plan) for path in args.folders]
    out = args.out or DEFAULT_OUT
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(render(runs), encoding="utf-8", newline="\n")
    if args.json:
        emit(_data(runs, out))
    else:
        _show(runs, out)
    return 0


def results_path(path: Path) -> Path:
    """Return the path of the results file in a folder; any other path is returned as it is."""
    if not path.is_dir():
        return path
    return next(iter(find_results(path)), path / RESULTS)


def read_evidence(path: Path) -> Evidence:
    """Read the evidence at a path. It is whole, but its verdicts are not judged again."""
    try:
        return read(results_path(path))
    except Refused as refused:
        raise Usage(str(refused)) from None


def load_facts(path: Path, plan: Plan) -> FinishedRun:
    """Read a run of this suite, judge every row again, and conclude."""
    evidence = read_evidence(path)
    try:
        refuse_unsound(evidence, plan, results_path(path))
    except Refused as refused:
        raise Usage(str(refused)) from None
    return FinishedRun(plan, evidence, conclude_evidence(plan, evidence))


def _data(runs: Sequence[FinishedRun], out: Path) -> dict[str, object]:
    cases = list(runs[0].cases)
    return {
        "out": str(out),
        "backends": [
            {
                "name": name,
                "exit_code": run.conclusion.exit_code,
                "documents": {d: w for d, (w, _) in run.documents.items()},
            }
            for name, run in zip(name_runs(runs), runs, strict=True)
        ],
        "cases": len(cases),
        "disagreements": [case for case in cases if differs([run.cases[case] for run in runs])],
        "one_fails": [case for case in cases if one_fails([run.cases[case] for run in runs])],
    }


def _show(runs: Sequence[FinishedRun], out: Path) -> None:
    names = name_runs(runs)
    documents = runs[0].plan.suite.spec.documents
    rows = [(d, *(f"{MARKS[run.documents[d][0]]} {run.documents[d][0]}" for run in runs)) for d in documents]
    say(table(rows, ("document", *names)))
    data = _data(runs, out)
    say()
    for key, what in (("disagreements", "differ between backends"), ("one_fails", "fail in one backend only")):
        cases = data[key]
        assert isinstance(cases, list)
        say(f"{count_noun(len(cases), 'case')} of {data['cases']} {what}")
    say(f"page: {out}")
