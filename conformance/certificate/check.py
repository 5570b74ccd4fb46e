"""The checks that a certificate has to pass before anybody relies on it. Each of its files is read once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

from ..evidence.folder import RESULTS
from ..evidence.journal import make_suite_record, refuse_unreadable
from ..evidence.results import Evidence, InvalidEvidence
from ..plan.rows import Plan, parse_drawn_id
from ..report.judged_run import JudgedRun
from ..report.verify import FolderContent, OtherSuite, read_folder, verify_content, why_not
from ..system.files import read_bytes
from ..system.terminal import count_noun
from ..system.text import name_first
from ..verdict.conclude import conclude_claims
from .page import describe_scope, render_pages
from .signature import ISSUER, REVOKED, SIGNERS, TESTER, Revoked, Signer, read_revoked, signer_of
from .statement import (
    AUDIT,
    AUDIT_FORM,
    CHALLENGE,
    CHALLENGE_FORM,
    COMMITMENT,
    COMMITMENT_FORM,
    EXTENSION,
    STATEMENT,
    STATEMENT_FORM,
    Record,
    RecordFile,
    audit_of,
    choose_suite,
    commitment_of,
    digest_of_file,
    level_of,
    read_record,
    statement_of,
    suite_of,
    time_of,
)

_MAX_VALIDITY = timedelta(days=3 * 366)
_ONE_DAY = timedelta(days=1)
"""Clocks differ, and --at names a day and no hour."""
_MAX_BYTES = 1 << 24
"""Bytes of a page."""


@dataclass(frozen=True)
class Trust:
    """The facts that a reader of a certificate knows from elsewhere. Nothing is checked against a missing fact."""

    allowed: Path | None = None
    """The keys that may sign, in the form of allowed_signers."""
    revoked: Path | None = None
    """Revoked keys, and the digests of revoked statements."""
    challenge: Path | None = None
    """The challenge that the issuer gave."""
    subject: Path | None = None
    """A file that must have been tested."""
    at: datetime | None = None
    """The day for which the certificate must hold; now if there is none."""

    @classmethod
    def of_site(cls, site: Path) -> Trust:
        """Return what the files in the folder of a site say. One that cannot be read is refused, not passed over."""
        allowed, revoked = (
            path if path.exists() or path.is_symlink() else None for path in (site / SIGNERS, site / REVOKED)
        )
        return cls(allowed, revoked)

    @property
    def options(self) -> list[str]:
        """The options of `verify` that say the same in the folder of a site."""
        return [word for name, path in (("--allowed", self.allowed), ("--revoked", self.revoked)) if path
                for word in (name, path.name)]  # fmt: skip

    @cached_property
    def all_revoked(self) -> Revoked:
        return read_revoked(self.revoked)


@dataclass(frozen=True)
class Certificate:
    """A certificate that passed every check."""

    statement: RecordFile
    audit: RecordFile | None
    run: JudgedRun
    content: FolderContent
    """The file of the evidence, read once."""
    level: str
    signer: Signer | None
    """Who signed the statement; None if nobody asked."""
    issuer: Signer | None
    """The same for the audit, if there is one."""
    audited_rows: int
    """The rows that the issuer called again."""

    def without_lines(self) -> Certificate:
        """Return this certificate without the bytes of its evidence, which are some megabytes."""
        return replace(self, content=replace(self.content, lines=b""))


def check_certificate(folder: Path, plan: Plan, trust: Trust, audited: bool = True, pages: bool = True) -> Certificate:
    """Return the certificate in a folder; InvalidEvidence, with the check that failed, if it cannot be relied on.

    `audited`: also check the audit, if there is one, and the page. `pages`: not if all pages will be written again.
    """
    statement = read_record(folder / STATEMENT, STATEMENT_FORM, "; `conformance certify` without --commit writes it")
    audit = read_record(folder / AUDIT, AUDIT_FORM) if audited and (folder / AUDIT).is_file() else None
    own = statement.own
    _check_revocation((statement, audit), trust)
    signer = signer_of(statement, TESTER, trust.allowed, trust.all_revoked, trust.at) if trust.allowed else None
    _check_times(statement.path, own, trust)
    run, content = _check_evidence(folder, plan, statement, pages)
    evidence = run.evidence
    _check_challenge(folder, own, evidence, signer, trust)
    _check_subject(evidence, trust)
    issuer, rows = _check_audit(audit, statement, evidence, signer, trust) if audit else (None, 0)
    level = level_of(evidence.footer, own["challenge"], issuer is not None and rows >= count_called(evidence))
    if audited and pages:
        _check_pages(folder, dict(render_pages(statement, audit, run.with_drawn, content.path.name)))
    return Certificate(statement, audit, run, content, level, signer, issuer, rows)


def _check_revocation(files: Sequence[RecordFile | None], trust: Trust) -> None:
    revoked = trust.all_revoked
    if (revoked.keys or revoked.is_krl) and trust.allowed is None:
        raise InvalidEvidence(f"{revoked.source}: lists keys, and no signature is checked without --allowed FILE")
    for file in files:
        if file is not None and file.sha256 in revoked.digests:
            raise InvalidEvidence(f"{file.path}: is revoked, says {revoked.source}")


def _check_times(path: Path, own: Record, trust: Trust) -> None:
    now, started, until = datetime.now(timezone.utc), time_of(own["started"]), time_of(own["validUntil"])
    at = trust.at or now
    if started > min(now, at) + _ONE_DAY:
        raise InvalidEvidence(f"{path}: began at {own['started']}, which is still to come")
    if until < at:
        raise InvalidEvidence(f"{path}: expired on {until:%Y-%m-%d}; ask for a new run")
    if until - started > _MAX_VALIDITY:
        raise InvalidEvidence(f"{path}: is said to be valid for more than three years; no certificate is")


def _check_evidence(folder: Path, plan: Plan, statement: RecordFile, pages: bool) -> tuple[JudgedRun, FolderContent]:
    """Check that this is the evidence of the statement, and that its verdicts and the statement follow from it."""
    configuration = {file["name"]: file["digest"]["sha256"] for file in statement.predicate["configuration"]}
    results, content = configuration.get(RESULTS, ""), read_folder(folder)
    if content is None:
        raise InvalidEvidence(f"{folder}: has no {RESULTS}, on which the statement rests")
    _check_digest(content, results)
    content = content if pages else replace(content, reports={})
    try:
        verified = verify_content(content, plan)
    except OtherSuite as other:
        what = f"{describe_scope(statement.predicate)}; {other.change}"
        other.args = (f"{statement.path}: {what}; verify it with that suite, or ask for a new run",)
        raise
    if verified.mismatches or verified.run is None:
        raise InvalidEvidence(f"{folder}: {verified.mismatches[0]}")
    evidence, run = verified.run.evidence, replace(verified.run, plan=plan)
    _refuse_other_suite(content.path, evidence.header["suite"], plan)
    _refuse_in_process(content.path, evidence.header)
    if evidence.target.is_part:
        run = replace(run, conclusion=conclude_claims(plan, evidence))
    said = choose_suite(plan.suite, evidence, suite_of(statement.predicate))
    due = statement_of(run, said, results, 0, statement.own["challenge"])
    source = "the evidence"
    if said != plan.suite.digest:
        source += f" by this suite, {plan.suite.digest[:12]}; it may by the one that judged, {said[:12]}: install that"
    _refuse_difference(statement, due, f"predicate.{EXTENSION}.validUntil", source)
    if why := why_not(verified, plan) if statement.predicate["result"] != "FAILED" else None:
        raise InvalidEvidence(f"{folder}: {why}")
    return run, content


def _refuse_other_suite(path: Path, said: Record, plan: Plan) -> None:
    """Refuse a version, or digests of documents, that are not the suite's: its own digest covers no version."""
    due = make_suite_record(plan.suite.spec, plan.suite.digest)
    for key in ("version", "documents"):
        if said[key] != due[key]:
            raise InvalidEvidence(f"{path}: the {key} of the suite there and here differ; verify it with that suite")


def _refuse_in_process(path: Path, header: Record) -> None:
    """Refuse a run that `certify` does not make: an audit of it would call the backend in the issuer's process."""
    if header.get("isolation", "none") == "none":
        raise InvalidEvidence(f"{path}: the backend ran in the suite's own process; certify it again")


def _check_digest(content: FolderContent, due: str) -> None:
    if content.sha256 != due:
        raise InvalidEvidence(f"{content.path}: is not the evidence that {STATEMENT} is about; its SHA-256 is another")


def _refuse_difference(file: RecordFile, due: Record, free: str, source: str) -> None:
    """Refuse a record that says more or less than its source. Only the field `free` is chosen by who signs."""
    for key in _list_differences(file.record, due):
        if key != free:
            raise InvalidEvidence(f"{file.path}: {key} does not follow from {source}")


def _list_differences(said: Record, due: Record) -> list[str]:
    """Return the fields in which two records differ: `backend.digest`."""
    here, there = dict(_flatten(said)), dict(_flatten(due))
    return [key for key in dict.fromkeys((*here, *there)) if here.get(key) != there.get(key)]


def _flatten(value: Any, prefix: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [each for key, inner in value.items() for each in _flatten(inner, f"{prefix}.{key}".lstrip("."))]
    return [(prefix, tuple(value) if isinstance(value, list) else value)]


def _check_challenge(folder: Path, own: Record, evidence: Evidence, signer: Signer | None, trust: Trust) -> None:
    """Check that the nonce is the issuer's, and that the commitment names what was tested."""
    if own["challenge"] is None and "nonce" in evidence.header:
        raise InvalidEvidence(f"{folder / RESULTS}: was run under a nonce that the tester chose; certify it again")
    path = trust.challenge or (folder / CHALLENGE if own["challenge"] and trust.allowed else None)
    if path is None:
        if own["challenge"]:  # whatever the level: under a nonce that nobody checks
            needs = "give the issuer's --challenge FILE, or the --allowed FILE with the issuer's key"
            raise InvalidEvidence(f"{folder / STATEMENT}: is challenged, says the tester; {needs}")
        return
    given = read_record(path, CHALLENGE_FORM)
    if own["challenge"] != given.sha256:
        raise InvalidEvidence(f"{folder / STATEMENT}: answers another challenge than {path}")
    if trust.allowed is not None:
        signed = read_record(folder / CHALLENGE, CHALLENGE_FORM)
        _refuse_other_challenge(signed, given)
        _check_issuer(signed, signer, trust)
    challenge = given.record
    if evidence.header.get("nonce") != challenge["nonce"]:
        raise InvalidEvidence(f"{folder / RESULTS}: was not run under the nonce of {path}")
    if why := why_not_now(given, time_of(evidence.header["started"])):
        raise InvalidEvidence(f"{folder / RESULTS}: {why}")
    commitment = read_record(folder / COMMITMENT, COMMITMENT_FORM)
    if commitment.sha256 != challenge["commitment"]:
        raise InvalidEvidence(f"{commitment.path}: is not the commitment that {path} was given for")
    refuse_uncommitted(commitment, evidence.header, evidence.footer.get("subject", {}))


def why_not_now(challenge: RecordFile, began: datetime) -> str | None:
    """Say why a run that began then cannot answer a challenge; None if it can. Clocks differ by up to a day."""
    if began > time_of(challenge.record["expires"]):
        return f"{challenge.path} expired on {challenge.record['expires']}, before the run began"
    if began < time_of(challenge.record["issued"]) - _ONE_DAY:
        return f"{challenge.path} was given on {challenge.record['issued']}, after the run began"
    return None


def _refuse_other_challenge(signed: RecordFile, given: RecordFile) -> None:
    if signed.sha256 != given.sha256:
        raise InvalidEvidence(f"{signed.path}: is not the challenge that was given; put it and its signature there")


def _check_issuer(file: RecordFile, signer: Signer | None, trust: Trust) -> Signer:
    """Return who signed a challenge or an audit: an issuer, with another key than that of the statement."""
    assert trust.allowed is not None
    issuer = signer_of(file, ISSUER, trust.allowed, trust.all_revoked, trust.at)
    refuse_same_key(issuer, signer, f"{file.path}: is signed by {issuer.name}, with the key of the statement")
    return issuer


def refuse_same_key(issuer: Signer, signer: Signer | None, what: str) -> None:
    """Refuse an issuer who is the tester, also under another name."""
    if signer is not None and issuer.key == signer.key:
        raise InvalidEvidence(f"{what}; an issuer is somebody else")


def refuse_uncommitted(commitment: RecordFile, header: Record, files: Mapping[str, str]) -> None:
    """Refuse a run of anything but what the commitment names. `header`: of its evidence; `files`: those under test."""
    if different := _list_differences(commitment.record, commitment_of(header, files)):
        what = f"what is tested differs from it in {name_first(different, 3)}"
        raise InvalidEvidence(f"{commitment.path}: {what}; restore that, or commit and ask for a challenge again")


def _check_subject(evidence: Evidence, trust: Trust) -> None:
    if trust.subject and digest_of_file(trust.subject) not in evidence.footer.get("subject", {}).values():
        what = "its SHA-256 is not among theirs, and a package has one for all its files"
        raise InvalidEvidence(f"{trust.subject}: is none of the files that were tested; {what}")


def refuse_resumed(evidence: Evidence, what: object) -> None:
    """Refuse to audit rows that the run did not call: nobody named the files of their process."""
    if resumed := evidence.footer.get("resumed"):
        rows = f"{count_noun(resumed, 'row')} of the evidence {'is' if resumed == 1 else 'are'}"
        raise InvalidEvidence(f"{what}: {rows} of an earlier run; only a whole run can be audited")


def count_called(evidence: Evidence) -> int:
    """Return the number of rows that were called; an audit of all of them is a re-run.

    Evidence holds the drawn rows that failed, and counts all.
    """
    held = sum(result.was_called and parse_drawn_id(result.row) is None for result in evidence.results)
    return held + evidence.drawn.called


def _check_audit(
    audit: RecordFile, statement: RecordFile, evidence: Evidence, signer: Signer | None, trust: Trust
) -> tuple[Signer | None, int]:
    """Return who signed the audit, if the reader says which keys may sign, and its number of rows.

    An audit that is younger than the day that the reader asks about counts for nothing; its signature must be right.
    """
    own = audit.own
    if own["statement"] != statement.sha256:
        raise InvalidEvidence(f"{audit.path}: is the audit of another statement")
    refuse_resumed(evidence, audit.path)
    due = audit_of(statement, evidence, own["rows"], count_called(evidence), own["issuer"], own.get("details", ""))
    _refuse_difference(audit, due, "predicate.timeCreated", "the statement")
    created = time_of(audit.predicate["timeCreated"])
    is_later = created > (trust.at or datetime.now(timezone.utc)) + _ONE_DAY
    of_that_day = replace(trust, at=created) if is_later else trust
    issuer = _check_issuer(audit, signer, of_that_day) if trust.allowed is not None else None
    return (None, 0) if is_later else (issuer, own["rows"])


def _check_pages(folder: Path, due: Mapping[str, str]) -> None:
    """Refuse a page or a badge that does not say what the statement and the audit say."""
    for name, text in due.items():
        path = folder / name
        with refuse_unreadable(path):
            said = read_bytes(path, _MAX_BYTES).decode("utf-8", "replace") if path.exists() else text
        if said != text:
            advice = "remove it, and `conformance publish` writes it again"  # another version of the suite made it
            raise InvalidEvidence(f"{path}: does not say what {STATEMENT} says; {advice}")
