"""report.html: one file to publish, complete without style and script, in which text of a backend only shows."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from difflib import Match, SequenceMatcher
from typing import Any

from ..evidence.command import list_suite_options
from ..evidence.drawn import count_added, describe_drawn
from ..evidence.folder import CERTIFICATE, PAGE, PUBLISHED, RESULTS
from ..evidence.journal import UNFINISHED
from ..evidence.results import Evidence
from ..model import Document
from ..system.groups import group_pairs
from .answer_lines import Filters
from .case_section import collect_cases, collect_other_failures, list_filters
from .embedded import dump_evidence
from .failure_section import IN_FULL, IN_FULL_BRIEF, collect_failures, list_shown
from .judged_run import JudgedRun
from .render import format_foot, menu_of, render_page
from .repeat_script import complete_script
from .summary import describe_documents, list_limits, list_not_run
from .table_sections import collect_facets, collect_rules, count_observed_calls, count_rows
from .wording import format_time

SECTIONS: Mapping[str, str] = {
    "failures": "Failures",
    "scope": "Results by document",
    "rules": "Rules",
    "observed": "Unspecified behaviour",
    "unclaimed": "Not claimed, waived, not run",
    "cases": "All cases",
    "environment": "Run details",
    "legend": "Legend",
}
_LINKS = {
    "specification": "../spec/index.html",
    "specification_folder": "../spec",
    "rules_page": "../spec/differences.html",
    "cases_page": "../spec/cases.html",
    "compare_page": "../compare.html",
    "observed_page": "../unspecified.html",
    "landing_page": "../index.html",
}
"""What the published pages of all backends share, on pages beside them."""
_NO_LINKS = dict.fromkeys(_LINKS, "")
_WORDS = {"None": "none", "True": "yes", "False": "no"}
_ALL = ("target · operations", "target · documents", "target · types")
MAX_KINDS_LISTED = 8
"""Kinds of failures to list in the head."""
DIGEST_START = 12
"""Characters of a digest to show in the head; the run details have all."""


def render(run: JudgedRun, packed: bytes = b"", certified: bool = False) -> str:
    """Render the page. `packed`: the results published beside it, if it is a published page.

    Such a page holds no results, and links to what all published pages share. `certified`: it links a certificate, too.
    """
    brief = bool(packed)
    evidence_file = PUBLISHED if brief else f"{RESULTS}{UNFINISHED}" if run.evidence.interrupted else RESULTS
    sha256 = hashlib.sha256(packed).hexdigest() if brief else run.evidence.sha256
    filters: Filters = {}
    states = describe_documents(run)
    failures = list(collect_failures(run, filters, IN_FULL_BRIEF if brief else IN_FULL))
    explained = [each.failures.tests for each in failures if each.kind.cause and each.failures.tests]
    standings = group_pairs((repr(replace(each, document="")), each) for each in run.standings)
    scripted = {entry.anchor: entry.row for failure in failures for entry in failure.full if entry.in_script}
    sections = {**SECTIONS, "cases": "Cases"} if brief else dict(SECTIONS)
    suite, started = run.evidence.header["suite"], format_time(run.evidence.header["started"])
    foot = format_foot(suite["digest"], f"run on {started}", f"results {sha256}", version=suite["version"])
    return render_page(
        "report.html",
        foot,
        ("filters.js", "page.js"),
        menu=menu_of("../") if brief else None,
        here="Results",
        run=run,
        spec=run.plan.suite.spec,
        brief=brief,
        documents=list(group_pairs(((each.label, each.failures, repr(each.counts)), each) for each in states).values()),
        unclaimed=list_limits(run),
        skipped=list_not_run(run),
        facts=_list_head_facts(run, certified),
        certificate=CERTIFICATE if certified else None,
        evidence_file=evidence_file,
        digest=sha256[:DIGEST_START],
        verify=shlex.join(["conformance", "verify", PAGE, *list_suite_options(run.evidence.header)]),
        sections=sections,
        **(_LINKS if brief else _NO_LINKS),
        standings=[(alike[0], [each.document for each in alike]) for alike in standings.values()],
        number_of_cases=len(run.plan.suite.cases),
        drawn=describe_drawn(run.evidence, run.plan.suite),
        rules=list(collect_rules(run)),
        failures=failures,
        explained={"causes": len(explained), "tests": sum(explained)},
        repeat_script=complete_script(scripted, run.backend, run.evidence.footer.get("subject", ()))
        if scripted
        else None,
        most_kinds=MAX_KINDS_LISTED,
        observed=list(count_observed_calls(run)),
        facets_left_out=collect_facets(run),
        waivers=[count_rows(waiver, rows) for waiver, rows in run.waivers],
        not_run=[count_rows(why, rows) for why, rows in run.not_run.items()],
        filters=list_filters(run, brief),
        cases=list(collect_other_failures(run, list_shown(failures)) if brief else collect_cases(run, filters)),
        details=[*_list_details(run, certified), (f"SHA-256 of {evidence_file}", sha256)],
        evidence=None if brief else dump_evidence(run.evidence),
        facets=list(filters),
    )


def _list_head_facts(run: JudgedRun, certified: bool) -> Mapping[str, str]:
    """Say when, by whom, on what and against what the suite was run, and what has to change before it is run again."""
    header = run.evidence.header
    machine, suite = header["environment"], header["suite"]
    unsigned = "" if certified else " (not signed)"
    place = ", ".join(machine[key] for key in ("processor", "machine", "system") if key in machine)
    ran, judge = suite["digest"], run.plan.suite.digest
    added = count_added(run.plan, run.evidence)
    more = f" and {added} more" if added else ""
    judged_by = "" if judge == ran else f", judged by {judge[:DIGEST_START]}, which has all its rows{more}"
    judged = [run.plan.suite.spec.documents[name] for name in dict.fromkeys(each.document for each in run.standings)]
    return {
        "Tested": f"{format_time(header['started'])} on {place}",
        "Binary": "; ".join(_describe_binary(run.evidence)),
        "Tested by": f"{header['tester']}{unsigned}" if "tester" in header else "not recorded (--tester NAME)",
        "Holds until": "another build, processor or suite",
        "Documents": "; ".join(dict.fromkeys(map(_describe_edition, judged))) or "nothing",
        "Suite": f"{suite['version']}, {ran[:DIGEST_START]}{judged_by}; exit code {run.conclusion.exit_code}",
    }


def order_files(evidence: Evidence) -> Mapping[str, str]:
    """Return the files under test with their digests, first the one with the name that is most like the backend's.

    A file in a folder of that name comes before those of a package that it needs, such as scipy/sparse for sparse.
    """
    files, name = evidence.footer.get("subject", {}), evidence.header["backend"]["name"].lower()

    def match(part: str) -> Match:
        return SequenceMatcher(None, name, part.lower(), autojunk=False).find_longest_match()

    def likeness(file: str) -> tuple[int, int, bool, int, int]:
        found = match(file.rpartition("/")[2])
        return match(file.partition("/")[0]).size, found.size, ".so" in file, -found.b, -len(file)

    first = max(files, key=likeness, default=None)
    return files if first is None else {first: files[first], **files}


def _describe_binary(evidence: Evidence) -> Iterator[str]:
    """Yield the first file, the number of others, and facts about the build."""
    if files := order_files(evidence):
        main, digest = next(iter(files.items()))
        yield f"{main} {digest[:DIGEST_START]}" + (f" and {len(files) - 1} more files" if len(files) > 1 else "")
    else:
        yield "no digest: conformance certify records the files"
    yield from (f"{key} {value}" for key, value in evidence.header["backend"]["detail"].items())


def _describe_edition(document: Document) -> str:
    releases = document.origin.releases if document.origin else ()
    ends = dict.fromkeys((*releases[:1], *releases[-1:]))
    return f"{document.edition} ({' to '.join(ends)})" if ends else document.edition


def _list_details(run: JudgedRun, certified: bool) -> Iterator[tuple[str, str]]:
    """Yield names and values of the evidence; `certified`: not the files under test, which the certificate lists."""
    header, footer = run.evidence.header, run.evidence.footer
    left_out = {"record", "milliseconds"} | ({"subject"} if certified else set())
    results = {key: value for key, value in footer.items() if key not in left_out}
    for name, value in _flatten({**header, "results": results}):
        if name not in ("record", "format", "waivers"):
            yield name, value


def _flatten(value: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, each in value.items():
        if isinstance(each, Mapping):
            yield from _flatten(each, f"{prefix}{key} · ")
        elif isinstance(each, list | tuple) and any(isinstance(one, Mapping) for one in each):
            yield from _flatten({str(number): one for number, one in enumerate(each, 1)}, f"{prefix}{key} · ")
        elif isinstance(each, list | tuple):
            none = "all that is claimed" if f"{prefix}{key}" in _ALL else "none"
            yield f"{prefix}{key}", ", ".join(map(str, each)) or none
        else:
            yield f"{prefix}{key}", _WORDS.get(str(each), str(each))
