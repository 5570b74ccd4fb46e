"""ctrf.json: the Common Test Report Format, for tools that read no JUnit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timezone
from typing import Any

from .facts import BAD, SKIPPED, Facts, Shown, answer_of

STATUSES = ("passed", "failed", "skipped", "pending", "other")


def of(facts: Facts) -> str:
    """The whole file. What the documents leave open counts as passed; its own word is in `rawStatus`."""
    header, footer = facts.evidence.header, facts.evidence.footer
    start = _milliseconds(str(header["started"]))
    tests = [_test(facts, shown) for shown in facts.told]
    tests += [
        {"name": f"{len(rows)} rows", "status": "skipped", "rawStatus": "not run", "duration": 0, "message": why}
        for why, rows in facts.left.items()
    ]
    counts = Counter(test["status"] for test in tests)
    summary = {"tests": len(tests), **{status: counts[status] for status in STATUSES}}
    results = {
        "tool": {"name": "reshape-conformance", "version": header["suite"]["version"]},
        "summary": {**summary, "start": start, "stop": start + round(1000 * footer["seconds"])},
        "tests": tests,
        "environment": {"appName": header["backend"]["name"], "appVersion": header["backend"]["version"]},
        "extra": {
            "sentences": facts.conclusion.sentences, "exit_code": facts.conclusion.exit_code,
            "suite": header["suite"]["digest"], "results": footer["digest"], "rows": len(facts.rows),
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


def _test(facts: Facts, shown: Shown) -> Mapping[str, Any]:
    row, case = shown.row, shown.row.case
    test: dict[str, Any] = {
        "name": row.id,
        "status": "failed" if shown.worst in BAD else "skipped" if shown.worst in SKIPPED else "passed",
        "rawStatus": shown.worst,
        "duration": 0,
        "suite": [case.file],
        "extra": {"rule": case.rule, "verdicts": shown.verdicts},
    }
    if shown.worst in BAD:
        test["message"] = f"{shown.diagnosis or shown.worst} ({', '.join(shown.failing)})"
        test["trace"] = shown.detail or answer_of(shown)
        test["filePath"], test["line"] = case.place
    elif shown.worst == "not run":
        test["message"] = facts.why_not_run(shown)
    return test
