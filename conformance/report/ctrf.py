"""ctrf.json: the Common Test Report Format, for tools that read no JUnit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from ..model import BAD, NOT_RUN, RIGHT
from .finished_run import FinishedRun
from .rows import RowResult
from .wording import format_answer

STATUSES = ("passed", "failed", "skipped", "pending", "other")


def render(run: FinishedRun) -> str:
    """The whole file. A row that is observed counts as passed; its verdict is in `rawStatus`."""
    header, footer = run.evidence.header, run.evidence.footer
    start = _milliseconds(str(header["started"]))
    tests = [_test(run, result) for result in run.listed]
    tests += [
        {"name": f"{len(rows)} rows", "status": "skipped", "rawStatus": NOT_RUN, "duration": 0, "message": why}
        for why, rows in run.left_out.items()
    ]
    counts = Counter(test["status"] for test in tests)
    summary = {"tests": len(tests), **{status: counts[status] for status in STATUSES}}
    results = {
        "tool": {"name": "reshape-conformance", "version": header["suite"]["version"]},
        "summary": {**summary, "start": start, "stop": start + round(1000 * footer["seconds"])},
        "tests": tests,
        "environment": {"appName": header["backend"]["name"], "appVersion": header["backend"]["version"]},
        "extra": {
            "sentences": run.conclusion.sentences, "exit_code": run.conclusion.exit_code,
            "suite": header["suite"]["digest"], "results": run.evidence.sha256, "rows": len(run.rows),
        },
    }  # fmt: skip
    report = {
        "reportFormat": "CTRF",
        "specVersion": "1.0.0",
        "timestamp": header["started"],
        "generatedBy": "reshape-conformance",
        "results": results,
    }
    return json.dumps(report, separators=(",", ":")) + "\n"


def _milliseconds(started: str) -> int:
    when = datetime.fromisoformat(started)
    return round(1000 * (when if when.tzinfo else when.replace(tzinfo=timezone.utc)).timestamp())


def _test(run: FinishedRun, result: RowResult) -> Mapping[str, Any]:
    row, case = result.row, result.row.case
    test: dict[str, Any] = {
        "name": row.id,
        "status": "failed" if result.worst in BAD else "passed" if result.worst in RIGHT else "skipped",
        "rawStatus": result.worst,
        "duration": result.result.milliseconds,
        "suite": [case.file],
        "extra": {"rule": case.rule, "verdicts": result.verdicts},
    }
    if result.worst in BAD:
        test["message"] = f"{result.diagnosis or result.worst} ({', '.join(result.failing)})"
        test["trace"] = result.detail or format_answer(result)
        test["filePath"], test["line"] = case.place
    elif result.worst == NOT_RUN:
        test["message"] = run.explain_not_run(result)
    return test
