"""The published results: a folder for each backend and version, and a page that puts all of them side by side."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .. import report
from ..adapter import is_reference
from ..certificate import page as certificate_page
from ..certificate.check import Certificate, Trust
from ..certificate.signature import signature_of
from ..certificate.statement import AUDIT, CHALLENGE, COMMITMENT, STATEMENT
from ..evidence.folder import PAGE, PUBLISHED, explain_bad_name, find_published_results, find_results, name_of_folder
from ..evidence.results import Evidence, InvalidEvidence, pack, parse, read, read_content
from ..model import NOT_CLAIMED, NOT_RUN
from ..plan.rows import Plan
from ..report.also_failing import fill_others, fill_since
from ..report.diff import compare_runs
from ..report.diff_report import render_html
from ..report.judged_run import LOST, JudgedRun, conclude_run
from ..report.render import ASSETS, BEGIN_OF_ASSET, BEGIN_OF_PAGE, Site, list_assets
from ..report.verify import OtherSuite
from ..system.files import open_regular, read_bytes, replace_bytes, replace_text
from ..system.groups import group_pairs
from ..system.progress import track
from ..system.text import quote_json
from ..verdict.conclude import ran_in_suite_process
from ..verdict.rejudge import refuse_unsound
from .compare_page import PARTS, render_pages
from .documents import INDEX, write_document_pages
from .landing import pair_versions
from .markdown_pages import FOLDER, write_markdown_pages
from .playground import PLAYGROUND, write_playground
from .register import REGISTER, check_certificates, check_for_site, write_register

SPECIFICATION = f"spec/{INDEX}"
"""The first page of the annotated documents, to which the pages of all backends lead."""
_CERTIFICATE = (
    *(name for record in (STATEMENT, AUDIT, CHALLENGE) for name in (record, signature_of(Path(record)).name)),
    COMMITMENT, certificate_page.PAGE, certificate_page.BADGE,
)  # fmt: skip
"""The files of a certificate, without the evidence."""


class Publication(NamedTuple):
    """A run that may be published: its folder there, the files of the folder, and what it replaces."""

    folder: Path
    files: Mapping[str, bytes]
    replaces: str | None
    """In words; None if the folder is new, or holds the same."""
    run: JudgedRun
    certificate: Certificate | None
    """Without the bytes of its evidence."""


def prepare(results: Path, plan: Plan, reports: Path, trust: Trust, again: bool = False) -> Publication:
    """Judge the results of a run again and make their page; InvalidEvidence if they or their certificate are not sound.

    Nothing is written yet, so that one bad run of several leaves the site as it was. `again`: they are published, and
    stay in their folder, which somebody may have renamed.
    """
    is_certified = (results.parent / STATEMENT).is_file()
    certificate = check_for_site(results.parent, plan, trust, pages=not again) if is_certified else None
    if certificate is not None and certificate.content.path != results:
        raise InvalidEvidence(f"{results}: is not the evidence of the certificate beside it; name the folder")
    data = read_content(results) if certificate is None else certificate.content.lines
    evidence = parse(data, results) if certificate is None else certificate.run.evidence
    run = _judge(evidence, certificate, plan, results)
    name = name_of_folder(evidence.header["backend"]["name"], str(evidence.header["backend"]["version"]))
    if not name or name in (Path(SPECIFICATION).parts[0], FOLDER, ASSETS):
        raise InvalidEvidence(
            f"{results}: the backend is called {quote_json(evidence.header['backend']['name'])}, which names no folder"
        )
    packed = pack(data)
    page = report.render_reports(run, (PAGE,), packed, certificate is not None)[PAGE]
    files = {PUBLISHED: packed, PAGE: page.encode("utf-8")}
    if certificate is not None:
        present = [name for name in _CERTIFICATE if (results.parent / name).is_file()]
        if link := next((path for path in map(results.parent.joinpath, present) if path.is_symlink()), None):
            raise InvalidEvidence(f"{link}: is a link, and may lead to a secret; put the file itself there")
        checked = {each.path.name: each.content for each in (certificate.statement, certificate.audit) if each}
        files |= checked | {name: read_bytes(results.parent / name) for name in present if name not in checked}
        own = certificate_page.render_pages(certificate.statement, certificate.audit, run.with_drawn, PUBLISHED)
        files |= {name: text.encode("utf-8") for name, text in own}
    folder = results.parent if again else reports / name
    before = find_results(folder)
    replaces = _describe_replacement(before[0], evidence) if before else None
    return Publication(folder, files, replaces, run, certificate and certificate.without_lines())


def prepare_again(reports: Path, plan: Plan, trust: Trust) -> Iterator[Publication]:
    """Prepare what is published again, with the pages of today; `write_pages` says why a folder is not shown."""
    folders = [folder for folder in list_published_folders(reports) if not explain_bad_name(folder)]
    for folder in track("reading", folders, len(folders)):
        with contextlib.suppress(InvalidEvidence, OtherSuite):
            yield prepare(find_published_results(folder) or folder / PUBLISHED, plan, reports, trust, again=True)


def refuse_shared_folder(publications: Iterable[Publication]) -> None:
    """Raise InvalidEvidence if two runs are of one backend and version: the second would replace the first."""
    for folder, some in group_pairs((each.folder, each.run.evidence.header) for each in publications).items():
        if len(some) > 1:
            runs = " and ".join(f"that of {header['started']}" for header in some)
            raise InvalidEvidence(f"{folder}: holds one run, and {runs} would go there; name one of them")


def refuse_foreign_pages(site: Path) -> None:
    """Raise InvalidEvidence if a file where this suite writes its own is of somebody else."""
    folders = ((site / SPECIFICATION).parent, site / FOLDER)
    patterns = ("*.html", "*.yaml")  # YAML in spec/ is that of a suite, which is no site
    pages = (page for folder in folders for pattern in patterns for page in folder.glob(pattern))
    begins = dict.fromkeys((*map(site.joinpath, (*PARTS, PLAYGROUND, REGISTER)), *pages), BEGIN_OF_PAGE)
    begins |= dict.fromkeys((site / ASSETS / name for name in list_assets()), BEGIN_OF_ASSET)
    for path, begin in begins.items():
        if path.exists():
            with open_regular(path) as stream:
                if not stream.read(len(begin)).startswith(begin.encode()):
                    raise InvalidEvidence(f"{path}: is no file of this suite; move it, or name another folder")


def refuse_private_keys(site: Path) -> None:
    """Raise InvalidEvidence if a file is a private key: a site is uploaded whole."""
    for path in filter(Path.is_file, site.rglob("*")):
        with open_regular(path) as stream:
            line = stream.readline(100)
        if line.startswith(b"-----BEGIN") and b"PRIVATE KEY-----" in line:
            raise InvalidEvidence(f"{path}: is a private key, and a site is uploaded whole; move the key elsewhere")


def publish(publication: Publication) -> None:
    """Write the files of a folder, and remove the results and the certificate that were there before."""
    folder, files = publication.folder, publication.files
    for path in (*find_results(folder), *(folder / name for name in _CERTIFICATE)):
        if path.name not in files:
            path.unlink(missing_ok=True)
    for name, content in files.items():
        replace_bytes(folder / name, content)


def _describe_replacement(path: Path, evidence: Evidence) -> str | None:
    """Say which published results are replaced; None if they are the same."""
    try:
        before = read(path)
    except InvalidEvidence:
        return "replaces results that cannot be read any more"
    if before.header == evidence.header and before.results == evidence.results:
        return None
    return f"replaces the run of {before.header['started']}"


def _judge(evidence: Evidence, certificate: Certificate | None, plan: Plan, path: Path) -> JudgedRun:
    """Return a run, judged again unless the check of its certificate did so; InvalidEvidence if it is not sound.

    A part of a run, and a run of the reference or in our process, are refused too.
    """
    if certificate is None:
        refuse_unsound(evidence, plan, path)
    if evidence.target.is_part:
        what = "is a part of a run, by -k, --last-failed, --shard, --operation, --document or --type"
        raise InvalidEvidence(f"{path}: {what}; only whole runs are published")
    run = certificate.run if certificate else conclude_run(plan, evidence)
    if uncalled := run.with_drawn.not_run.get(LOST):
        what = f"{uncalled[0].row.id} was not called, as after --maxfail"
        raise InvalidEvidence(f"{path}: {what}; only whole runs are published")
    if ran_in_suite_process(evidence.header):
        raise InvalidEvidence(f"{path}: the backend ran in the suite's own process; run it without --isolation none")
    if is_reference(evidence.header["backend"]["adapter"]):
        raise InvalidEvidence(f"{path}: is a run of the suite's own reference, which is no library; publish a library")
    return run


def list_published_folders(reports: Path) -> list[Path]:
    return sorted(folder for folder in reports.glob("*/") if find_published_results(folder))


def write_pages(
    reports: Path, plan: Plan, trust: Trust, new: Iterable[Publication] = ()
) -> tuple[list[JudgedRun], list[str], list[dict[str, Any]]]:
    """Verify what is published, judge it again, and write every page of the site. `new` was just verified and judged.

    Return the runs that the site shows, why other folders are not on it, and the certificates.
    """
    published = {each.folder: each for each in new}
    certificates = check_certificates(reports, plan, trust, {at: each.certificate for at, each in published.items()})
    found = list(_read_runs(reports, plan, published, certificates))
    runs = [(folder, facts) for folder, facts in found if isinstance(facts, JudgedRun)]
    stale = [(folder, facts) for folder, facts in found if not isinstance(facts, JudgedRun)]
    for path in () if runs else map(reports.joinpath, PARTS):  # they would go on to show what is refused
        path.unlink(missing_ok=True)
    for name, text in list_assets().items():
        replace_text(reports / ASSETS / name, text)
    pages = [f"{folder.name}/{PAGE}" for folder, _ in runs]
    finished = [facts for _, facts in runs]
    site = Site(plan.suite.digest, max((run.evidence.header["started"][:10] for run in finished), default=""))
    entries = write_register(reports, certificates, plan, trust, site)
    write_playground(reports / PLAYGROUND, plan.suite.spec, site, finished, pages)
    write_document_pages((reports / SPECIFICATION).parent, plan, finished, site)
    if runs:
        changes = _write_changes(runs)
        links = {
            f"{folder.name}/{PAGE}": f"{folder.name}/since-{before}.html" for folder, (before, *_) in changes.items()
        }
        not_shown = {folder.name: "" if explain_bad_name(folder) else f"{folder.name}/{PAGE}" for folder, _ in stale}
        for name, text in render_pages(finished, pages, links, not_shown).items():
            replace_text(reports / name, text)
        _write_others(runs, changes)
    write_markdown_pages(reports / FOLDER, site)  # last, as they link only to what is there
    return finished, [why for _, why in stale], entries


def _write_changes(runs: Sequence[tuple[Path, JudgedRun]]) -> Mapping[Path, tuple[str, int, int]]:
    """Write what changed since the version before into the folder of each version.

    Return for each such folder the name of that of the version before, and how many tests are better and worse. Pages
    about versions that are not published any more are removed.
    """
    changes: dict[Path, tuple[str, int, int]] = {}
    for (before, old), (folder, new) in pair_versions(runs):
        path = folder / f"since-{before.name}.html"
        change = compare_runs(old.evidence, new.evidence, new.plan)
        replace_text(path, render_html(change, f"../{before.name}/{PAGE}", PAGE, in_site=True))
        changes[folder] = before.name, change.counts["better"], change.counts["worse"]
    for folder, _ in runs:
        kept = {folder / f"since-{changes[folder][0]}.html"} if folder in changes else set()
        for path in set(folder.glob("since-*.html")) - kept:
            path.unlink()
    return changes


def _write_others(runs: Sequence[tuple[Path, JudgedRun]], changes: Mapping[Path, tuple[str, int, int]]) -> None:
    """Write into the page of each run how many of the others fail its failing cases, and what changed."""
    fails = {folder: find_failing_cases(run) for folder, run in runs}
    for folder, _ in runs:
        page = folder / PAGE
        before = read_bytes(page).decode("utf-8")
        after = fill_others(before, [cases for other, cases in fails.items() if other != folder])
        after = fill_since(after, *changes.get(folder, ()))
        if after != before:
            replace_text(page, after)


def find_failing_cases(run: JudgedRun) -> Mapping[str, bool]:
    """Return the cases in which a run has a verdict about the backend, and whether the backend fails them."""
    return {
        case: any(each.failing for each in rows)
        for case, rows in run.rows_by_case.items()
        if any({*each.verdicts.values()} - {NOT_RUN, NOT_CLAIMED} for each in rows)
    }


def _read_runs(
    reports: Path, plan: Plan, new: Mapping[Path, Publication], certificates: Mapping[Path, Certificate | str]
) -> Iterator[tuple[Path, JudgedRun | str]]:
    """Yield each published run, judged again unless it is new or certified, or why it is not on the page."""
    for folder in list_published_folders(reports):
        if folder in new:
            yield folder, new[folder].run
            continue
        if bad := explain_bad_name(folder):
            yield folder, bad
            continue
        path, found = find_published_results(folder) or folder / PUBLISHED, certificates.get(folder)
        certificate = found if isinstance(found, Certificate) else None
        try:
            evidence = certificate.run.evidence if certificate else read(path)
            yield folder, _judge(evidence, certificate, plan, path)
        except InvalidEvidence as refused:
            yield folder, str(refused)


def count_bytes(reports: Path) -> int:
    return sum(path.stat().st_size for path in reports.rglob("*") if path.is_file())
