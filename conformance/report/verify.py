"""Derive a run's verdict and reports again from its evidence, and say what does not match."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, takewhile, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from .. import report
from ..draw.nonce import is_of_nonce
from ..evidence.drawn import plan_of_run
from ..evidence.folder import CERTIFICATE, PAGE, PUBLISHED, REPORTS, RESULTS, find_published_results, find_results
from ..evidence.results import (
    Evidence,
    InvalidEvidence,
    OtherFormat,
    find_miscounts,
    is_packed,
    name_unfinished,
    pack,
    parse,
    read_content,
    refuse_incomplete,
)
from ..model import Result
from ..plan.rows import Plan, parse_drawn_id
from ..system.exit_codes import VOIDS_CERTIFICATES, CommandError
from ..system.files import read_bytes
from ..system.terminal import count_noun
from ..verdict.conclude import ran_in_suite_process
from ..verdict.rejudge import find_contradictions
from . import embedded
from .also_failing import clear_others
from .judged_run import JudgedRun, conclude_run

MAX_DIFFERENCES = 20
"""Differences to show one by one."""
CONTEXT = 40
"""Characters to show around a difference."""


class Mismatch(NamedTuple):
    """Something that does not follow from the evidence, and where."""

    file: str
    what: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"


class Verification(NamedTuple):
    """The files that were read, the run, and the mismatches."""

    files: tuple[str, ...]
    run: JudgedRun | None
    """None if its evidence is damaged or contradicts itself."""
    mismatches: tuple[Mismatch, ...]


def why_not(found: Verification, plan: Plan, document: str | None = None) -> str | None:
    """Return why true evidence shows no conformity: of the whole target, or of every type that a document lists.

    None if it does. A backend that ran in the suite's own process shows nothing: it could have written its verdict
    itself. That does not hold for the suite's own backends.
    """
    if found.run is None:
        return "the evidence cannot be relied on"
    conclusion = found.run.conclusion
    if ran_in_suite_process(found.run.evidence.header):
        return "the backend ran in the suite's own process, which it could change; run it without --isolation none"
    if document is None or plan.suite.lost or conclusion.exit_code in VOIDS_CERTIFICATES:
        return conclusion.why if conclusion.exit_code else None
    listed = plan.suite.spec.operation_of(document).types
    words = {standing.type: standing.name for standing in conclusion.standings if standing.document == document}
    lacking = [type_ for type_ in (*listed, *words) if words.get(type_) != "conforms"]
    return f"{document} is not shown for {', '.join(dict.fromkeys(lacking))}" if lacking else None


class OtherSuite(CommandError):
    """The suite of the evidence is not installed here, so that the evidence or its reports cannot be derived again."""

    def __init__(self, path: Path, evidence: Evidence, plan: Plan) -> None:
        self.suite: Mapping[str, Any] = evidence.header["suite"]
        rows = (result.row for result in evidence.results)
        theirs = {row.partition("[")[0] for row in rows if not is_of_nonce(row) and parse_drawn_id(row) is None}
        self.added = sum(case not in theirs for case in plan.suite.cases)
        """Cases of this suite that the evidence does not have."""
        self.missing = len(theirs - plan.suite.cases.keys())
        """Cases of the evidence that this suite does not have."""
        self.has_same_rows = evidence.can_be_judged_by(plan.suite)
        super().__init__(
            f"{path}: is of suite {self.suite['version']} with digest {self.suite['digest'][:12]}, and this one has "
            f"{plan.suite.digest[:12]}; {self.change}; install that one, or name its folder with --suite"
        )

    @property
    def change(self) -> str:
        """The number of cases added since, in words; if only the reports are of the other suite, what to do."""
        if self.has_same_rows:
            return "this one has all its rows, and `conformance report` on the evidence writes the reports of this one"
        since = f"{count_noun(self.added, 'case')} {'was' if self.added == 1 else 'were'} added since"
        lacking = f"{count_noun(self.missing, 'case')} of it {'is' if self.missing == 1 else 'are'} not in this suite"
        return f"{since}, and {lacking}" if self.missing else since


@dataclass(frozen=True)
class FolderContent:
    """The evidence of a run, read once, and the reports on it."""

    path: Path
    """The file of the evidence."""
    lines: bytes
    reports: Mapping[str, Path]

    @property
    def sha256(self) -> str:
        """The SHA-256 of the evidence, unpacked."""
        return hashlib.sha256(self.lines).hexdigest()


def verify_report(path: Path, plan: Plan) -> Verification:
    """Look at a page, a results file or a folder of both."""
    if path.is_dir():
        content = read_folder(path)
        return verify_report(path / PAGE, plan) if content is None else verify_content(content, plan)
    text = read_content(path)
    if embedded.BEGIN.encode() in text:
        lines = embedded.extract_lines(text.decode("utf-8", "replace"), path)
        return verify_content(FolderContent(path, lines, {PAGE: path}), plan)
    if text.startswith(b"<!doctype html>"):
        return _verify_page_beside_results(path, plan)
    return verify_content(FolderContent(path, text, {}), plan)


def read_folder(folder: Path) -> FolderContent | None:
    """Read the results in a folder and find its reports; None if there is only a page."""
    found = find_results(folder) or [part for part in [name_unfinished(folder / RESULTS)] if part.exists()]
    if len(found) > 1:
        raise InvalidEvidence(f"{folder}: holds both {found[0].name} and {found[1].name}; name the one that is meant")
    if not found:
        if (folder / PAGE).exists():
            return None
        raise InvalidEvidence(f"{folder}: holds neither {RESULTS} nor {PAGE}; name the folder of a run")
    written = {name: folder / name for name in REPORTS if (folder / name).exists()}
    return FolderContent(found[0], read_content(found[0]), written)


def _verify_page_beside_results(path: Path, plan: Plan) -> Verification:
    """Look at a published page; its evidence lies beside it."""
    if path.name == CERTIFICATE:
        raise InvalidEvidence(f"{path}: is the page of a certificate; name its folder, with --certificate")
    results = find_published_results(path.parent)
    if results is None:
        raise InvalidEvidence(f"{path}: holds no evidence, and {PUBLISHED} is not beside it; put it there")
    return verify_content(FolderContent(results, read_content(results), {PAGE: path}), plan)


def verify_content(content: FolderContent, plan: Plan) -> Verification:
    """Judge every row again, then write every report again and compare.

    What is damaged or contradicts itself is not looked at any further: nothing follows from it.
    """
    path, lines, written = content.path, content.lines, content.reports
    files = tuple(dict.fromkeys((path.name, *(file.name for file in written.values()))))
    try:
        evidence = parse(lines, path)
        if not evidence.can_be_judged_by(plan.suite):
            raise OtherSuite(path, evidence, plan)
        plan = plan_of_run(plan, evidence, path)
        refuse_incomplete(evidence, (row.id for row in plan.rows), plan.suite, path)
    except OtherFormat:
        raise
    except InvalidEvidence as refused:
        place, _, what = str(refused).removeprefix(str(path)).partition(": ")
        return Verification(files, None, (Mismatch(path.name + place, what),))
    results: dict[str, Result] = {result.row: result for result in evidence.results}
    wrong = [*find_miscounts(evidence), *find_contradictions(plan, results, evidence.header)]
    if lines.splitlines()[-1] != json.dumps(evidence.footer, separators=(",", ":")).encode():
        wrong.insert(0, "the footer is not written as the suite writes it; somebody edited it")
    if found := [Mismatch(path.name, what) for what in wrong]:
        return Verification(files, None, tuple(found))
    run = conclude_run(plan, evidence)
    brief = is_packed(path)
    packed = (read_bytes(path) if path.name == PUBLISHED else pack(lines)) if brief else b""
    there = {name: read_content(file).decode("utf-8", "replace") for name, file in written.items()}
    if brief and PAGE in there:
        there[PAGE] = clear_others(there[PAGE])
    certified = f'<a href="{CERTIFICATE}">' in there.get(PAGE, "")  # the certificate may be elsewhere
    texts = report.render_reports(run, tuple(written), packed, certified)
    for name, text in there.items():
        found += [Mismatch(written[name].name, what) for what in differences(text, texts[name])]
    if found and evidence.header["suite"]["digest"] != plan.suite.digest:
        raise OtherSuite(path, evidence, plan)  # the suite that ran may well have written its reports so
    return Verification(files, run, tuple(found))


def differences(there: str, derived: str) -> Iterator[str]:
    """Yield the first lines in which a file differs from what its evidence gives; one if it has more or fewer lines."""
    lines = there.split("\n"), derived.split("\n")
    pairs = enumerate(zip_longest(*lines), 1)
    wrong = ((number, said, due) for number, (said, due) in pairs if said != due)
    for number, *texts in islice(wrong, MAX_DIFFERENCES if len(lines[0]) == len(lines[1]) else 1):
        characters = zip(*(text or "" for text in texts), strict=False)
        start = max(0, sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], characters)) - CONTEXT)
        said, due = ("nothing" if text is None else f"“{text[start : start + 4 * CONTEXT]}”" for text in texts)
        yield f"line {number}: says {said}, the evidence gives {due}"
    if any(wrong):
        yield "and more differs after that"
