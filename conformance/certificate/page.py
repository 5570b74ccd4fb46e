"""The page and the badge of a certificate. Both follow from the records, and name level, scope, suite and date."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..report.badge import MOST_DOCUMENTS, describe_run, draw
from ..report.render import render_page
from ..report.rows import group_pairs
from ..system.text import name_first
from .statement import EXTENSION, LEVELS, RecordFile, time_of

PAGE, BADGE = "certificate.html", "certificate.svg"
WORDS: Mapping[str, str] = {
    "PASSED": "conforms", "WARNED": "conforms, with waived failures", "FAILED": "not shown to conform",
}  # fmt: skip
"""What a result of a statement says."""
_COLOURS = {"PASSED": "conforms", "WARNED": "incomplete", "FAILED": "does not conform"}
Record = Mapping[str, Any]


def group_tests(names: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Group names of tests: the types of each document."""
    return group_pairs((document, type_) for document, _, type_ in (name.partition("/") for name in names))


def scope_of(predicate: Record) -> tuple[str, ...]:
    """Return each document with the types for which a statement says conformity, waived failures or not."""
    scope = group_tests((*predicate["passedTests"], *predicate["warnedTests"]))
    return tuple(f"{document} ({', '.join(types)})" for document, types in scope.items())


def describe_scope(predicate: Record) -> str:
    """Say what was certified, when, how and under which suite."""
    own = predicate[EXTENSION]
    run = describe_run(own["level"], own["started"], own["version"], _suite_of(predicate))
    failed = "" if predicate["result"] != "FAILED" else ", and not shown to conform"
    return f"for {', '.join(scope_of(predicate)) or 'nothing'} ({run}){failed}"


def render_badge(statement: RecordFile, audit: RecordFile | None) -> str:
    """Draw the badge of a certificate."""
    predicate = statement.record["predicate"]
    own, failed = predicate[EXTENSION], predicate["result"] == "FAILED"
    scope = group_tests(predicate["failedTests"] if failed else predicate["passedTests"] + predicate["warnedTests"])
    parts = [WORDS[predicate["result"]]]
    if scope:
        types = ", ".join(dict.fromkeys(type_ for types in scope.values() for type_ in types))
        parts[0] += f"{' to' if failed else ':'} {name_first(tuple(scope), MOST_DOCUMENTS)} for {types}"
    if own["leavesOut"] or len(set(scope.values())) > 1:
        parts.append("with limits")
    parts.append(describe_run(_level_of(own, audit), own["started"], own["version"], _suite_of(predicate)))
    name = f"{own['backend']['name']} {own['backend']['version']}"
    return draw(name, _COLOURS[predicate["result"]], "; ".join(parts))


def _level_of(own: Record, audit: RecordFile | None) -> str:
    """Return the level that the records name. Signatures are not checked here."""
    return str((audit.record["predicate"][EXTENSION] if audit else own)["level"])


def _suite_of(predicate: Record) -> str:
    return next((file["digest"]["sha256"] for file in predicate["configuration"] if file["name"] == "suite"), "unknown")


def render_certificate(statement: RecordFile, audit: RecordFile | None, signed: bool) -> str:
    """Render the page of a certificate: one sheet of A4, for print."""
    predicate = statement.record["predicate"]
    own = predicate[EXTENSION]
    return render_page(
        "certificate.html",
        style="certificate.css",
        statement=statement.record, own=own, predicate=predicate, scope=scope_of(predicate), words=WORDS,
        configuration={file["name"]: file["digest"]["sha256"] for file in predicate["configuration"]},
        started=time_of(own["started"]), until=time_of(own["validUntil"]), level=_level_of(own, audit), levels=LEVELS,
        audit=audit and audit.record["predicate"][EXTENSION], digest=statement.sha256, signed=signed,
    )  # fmt: skip
