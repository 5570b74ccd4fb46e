"""Certificates: the page, and the checks that a certificate has to pass before anybody relies on it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

from ..certify.conclude import Conclusion
from ..certify.evidence import Evidence, Refused
from ..certify.folder import RESULTS
from ..certify.signature import ISSUER, SUFFIX, TESTER, signer_of
from ..certify.statement import (
    AUDIT,
    AUDIT_FORM,
    CHALLENGE,
    CHALLENGE_FORM,
    COMMITMENT,
    COMMITMENT_FORM,
    EXTENSION,
    LEVELS,
    STATEMENT,
    STATEMENT_FORM,
    commitment_of,
    digest_of_file,
    read_record,
    statement_of,
    time_of,
)
from ..plan.rows import Plan
from ..system.files import read_bytes
from .render import render_page
from .verify import verify, why_not

PAGE = "certificate.html"
_LONGEST = timedelta(days=3 * 366)
_MOST_TEXT = 1 << 24
"""Bytes of a page, or of a list of what is revoked."""
_DIGEST = re.compile(r"[0-9a-f]{64}\b")
Record = Mapping[str, Any]


@dataclass(frozen=True)
class Trust:
    """The knowledge that a reader of a certificate has from elsewhere. Nothing is checked for what is not given."""

    allowed: Path | None = None
    """The keys that may sign, in the form of allowed_signers."""
    revoked: Path | None = None
    """Revoked keys, or the digests of revoked statements."""
    challenge: Path | None = None
    """The challenge that the issuer gave."""
    subject: Path | None = None
    """A file that must have been tested."""

    @cached_property
    def revoked_digests(self) -> frozenset[str]:
        """The digests of statements that are revoked; none if keys are."""
        return frozenset() if self.revoked is None else _digests_in(self.revoked)

    @property
    def revoked_keys(self) -> Path | None:
        """The file of revoked keys, if it is one."""
        return None if self.revoked_digests else self.revoked


@dataclass(frozen=True)
class Certificate:
    """A certificate that passed every check."""

    statement: Record
    evidence: Evidence
    conclusion: Conclusion
    level: str
    signer: str | None
    """The name of the key that signed the statement; None if nobody asked."""
    issuer: str | None
    """The same for the audit, if there is one."""
    audited_rows: int
    """The rows that the issuer called again."""

    @property
    def own(self) -> Record:
        """The fields that we add to the predicate."""
        own: Record = self.statement["predicate"][EXTENSION]
        return own


def check_certificate(folder: Path, plan: Plan, trust: Trust, audited: bool = True) -> Certificate:
    """Return the certificate in a folder; Refused, with the check that failed, if it cannot be relied on.

    `audited`: also check the audit, if there is one, and the page.
    """
    statement = read_record(folder / STATEMENT, STATEMENT_FORM)
    own = statement["predicate"][EXTENSION]
    _check_revoked(folder, trust)
    signer = signer_of(folder / STATEMENT, TESTER, trust.allowed, trust.revoked_keys) if trust.allowed else None
    _check_times(folder, own)
    evidence, conclusion = _check_evidence(folder, plan, statement)
    _check_challenge(folder, own, evidence, signer, trust)
    _check_subject(evidence, trust)
    issuer, rows = _check_audit(folder, statement, evidence, signer, trust) if audited else (None, 0)
    level = "re-run" if issuer and rows >= called_rows(evidence) else own["level"]
    if audited:
        _check_page(folder, statement)
    return Certificate(statement, evidence, conclusion, level, signer, issuer, rows)


def _check_revoked(folder: Path, trust: Trust) -> None:
    if trust.revoked_keys is not None and trust.allowed is None:
        raise Refused(f"{trust.revoked_keys}: holds revoked keys, and no signature is checked without --allowed FILE")
    for name in (STATEMENT, AUDIT) if trust.revoked_digests else ():
        if (folder / name).is_file() and digest_of_file(folder / name) in trust.revoked_digests:
            raise Refused(f"{folder / name}: is revoked, says {trust.revoked}")


def _digests_in(path: Path) -> frozenset[str]:
    """Return the digests that a file lists at the beginnings of its lines; none if it is a list of keys."""
    try:
        lines = read_bytes(path, _MOST_TEXT).decode("ascii", "replace").lower().splitlines()
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from None
    lines = [line for line in lines if line.strip() and not line.startswith("#")]
    found = frozenset(match[0] for line in lines if (match := _DIGEST.match(line)))
    if found and not all(map(_DIGEST.match, lines)):
        raise Refused(f"{path}: has digests of statements and other lines; keep revoked keys in a file of their own")
    return found


def _check_times(folder: Path, own: Record) -> None:
    now, started, until = datetime.now(timezone.utc), time_of(own["started"]), time_of(own["validUntil"])
    if started > now + timedelta(days=1):
        raise Refused(f"{folder / STATEMENT}: began at {own['started']}, which is still to come")
    if until < now:
        raise Refused(f"{folder / STATEMENT}: expired on {until:%Y-%m-%d}; ask for a new run")
    if until - started > _LONGEST:
        raise Refused(f"{folder / STATEMENT}: is said to be valid for more than three years; no certificate is")


def _check_evidence(folder: Path, plan: Plan, statement: Record) -> tuple[Evidence, Conclusion]:
    """Check that the evidence is the one that was meant, that its verdicts follow, and that the statement follows."""
    predicate = statement["predicate"]
    configuration = {file["name"]: file["digest"]["sha256"] for file in predicate["configuration"]}
    results, own = configuration.get(RESULTS, ""), predicate[EXTENSION]
    _check_digest(folder / RESULTS, results)
    verified = verify(folder, plan)
    if verified.mismatches or verified.conclusion is None or verified.evidence is None:
        raise Refused(f"{folder}: {verified.mismatches[0]}")
    _check_digest(folder / RESULTS, results)  # nobody changed it while it was read
    due = statement_of(verified.evidence, results, verified.conclusion, 0, own["challenge"])
    _refuse_difference(folder, statement, due)
    if why := why_not(verified, plan) if predicate["result"] != "FAILED" else None:
        raise Refused(f"{folder}: {why}")
    return verified.evidence, verified.conclusion


def _check_digest(path: Path, due: str) -> None:
    if not path.is_file():
        raise Refused(f"{path.parent}: has no {path.name}, on which the statement rests")
    if digest_of_file(path) != due:
        raise Refused(f"{path}: is not the evidence that {STATEMENT} is about; its SHA-256 is another")


def _refuse_difference(folder: Path, statement: Record, due: Record) -> None:
    """Refuse a statement that says anything else than its evidence; the tester chooses how long it is valid."""
    said, wanted = (dict(_flatten(each)) for each in (statement, due))
    free = f"predicate.{EXTENSION}.validUntil"
    for key in dict.fromkeys((*said, *wanted)):
        if said.get(key) != wanted.get(key) and key != free:
            raise Refused(f"{folder / STATEMENT}: {key} does not follow from the evidence")


def _flatten(value: Any, prefix: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return [each for key, inner in value.items() for each in _flatten(inner, f"{prefix}.{key}".lstrip("."))]
    return [(prefix, value)]


def _check_challenge(folder: Path, own: Record, evidence: Evidence, signer: str | None, trust: Trust) -> None:
    """Check that the nonce is the issuer's, and that what was tested had been named before."""
    path = trust.challenge or (folder / CHALLENGE if own["challenge"] and trust.allowed else None)
    if path is None:
        if own["level"] == "challenged":
            raise Refused(f"{folder / STATEMENT}: is challenged, says the tester; give the issuer's --challenge FILE")
        return
    challenge = read_record(path, CHALLENGE_FORM)
    if own["challenge"] != digest_of_file(path):
        raise Refused(f"{folder / STATEMENT}: answers another challenge than {path}")
    if trust.allowed is not None:
        _check_issuer(folder / CHALLENGE, digest_of_file(path), signer, trust)
    if evidence.header.get("nonce") != challenge["nonce"]:
        raise Refused(f"{folder / RESULTS}: was not run under the nonce of {path}")
    started = time_of(evidence.header["started"])
    if started > time_of(challenge["expires"]):
        raise Refused(f"{folder / RESULTS}: the run began after {path} had expired")
    if started < time_of(challenge["issued"]):
        raise Refused(f"{folder / RESULTS}: the run began before {path} was given")
    commitment = read_record(folder / COMMITMENT, COMMITMENT_FORM)
    if digest_of_file(folder / COMMITMENT) != challenge["commitment"]:
        raise Refused(f"{folder / COMMITMENT}: is not the commitment that {path} was given for")
    refuse_uncommitted(commitment, evidence, folder / COMMITMENT)


def _check_issuer(path: Path, digest: str, signer: str | None, trust: Trust) -> str:
    """Return who signed the challenge or the audit in a folder: an issuer, who is not the signer of the statement."""
    assert trust.allowed is not None
    if not path.is_file() or digest_of_file(path) != digest:
        raise Refused(f"{path}: is not the file that was given; put it and its signature there")
    issuer = signer_of(path, ISSUER, trust.allowed, trust.revoked_keys)
    if issuer == signer:
        raise Refused(f"{path}: is signed by {issuer}, who signed the statement too; an issuer is somebody else")
    return issuer


def refuse_uncommitted(commitment: Record, evidence: Evidence, path: Path) -> None:
    """Refuse evidence of anything else than what was named beforehand."""
    tested = commitment_of(evidence)
    for key in ("suite", "backend", "claims", "files"):
        if tested[key] != commitment[key]:
            raise Refused(f"{path}: the {key} tested are not those committed to; commit and ask for a challenge again")


def _check_subject(evidence: Evidence, trust: Trust) -> None:
    if trust.subject is not None:
        if not trust.subject.is_file():
            raise Refused(f"--subject {trust.subject}: is no file")
        if digest_of_file(trust.subject) not in evidence.footer.get("subject", {}).values():
            raise Refused(f"{trust.subject}: is none of the files that were tested; its SHA-256 is not among theirs")


def called_rows(evidence: Evidence) -> int:
    """Return the number of rows that were called; an audit of all of them is a re-run."""
    return sum(result.outcome.kind != "none" for result in evidence.results)


def _check_audit(
    folder: Path, statement: Record, evidence: Evidence, signer: str | None, trust: Trust
) -> tuple[str | None, int]:
    """Return who signed the audit and its number of rows, if there is one and the reader says whose word counts."""
    path = folder / AUDIT
    if not path.is_file():
        return None, 0
    audit = read_record(path, AUDIT_FORM)
    own = audit["predicate"][EXTENSION]
    if own["statement"] != digest_of_file(folder / STATEMENT) or audit["subject"] != statement["subject"]:
        raise Refused(f"{path}: is the audit of another statement")
    if own["called"] != called_rows(evidence):
        raise Refused(f"{path}: is the audit of other evidence, with {own['called']:,} rows that were called")
    if time_of(own["validUntil"]) < datetime.now(timezone.utc):
        raise Refused(f"{path}: has expired")
    if trust.allowed is None:
        return None, own["rows"]
    issuer = _check_issuer(path, digest_of_file(path), signer, trust)
    return issuer, own["rows"]


def _check_page(folder: Path, statement: Record) -> None:
    path = folder / PAGE
    if not path.exists():
        return
    try:
        text = read_bytes(path, _MOST_TEXT).decode("utf-8", "replace")
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from None
    if text != render_certificate(folder, statement):
        raise Refused(f"{path}: does not say what {STATEMENT} says")


# ── the page ──────────────────────────────────────────────────────────────────────────────────────


def render_certificate(folder: Path, statement: Record) -> str:
    """Render the page of a certificate: one sheet of A4, for print."""
    own, predicate = statement["predicate"][EXTENSION], statement["predicate"]
    files = {file["name"]: file["digest"]["sha256"] for file in predicate["configuration"]}
    scope: dict[str, list[str]] = {}
    for name in (*predicate["passedTests"], *predicate["warnedTests"]):
        document, _, type_ = name.partition("/")
        scope.setdefault(document, []).append(type_)
    audit = read_record(folder / AUDIT, AUDIT_FORM)["predicate"][EXTENSION] if (folder / AUDIT).is_file() else None
    level = "re-run" if audit and audit["rows"] >= audit["called"] else own["level"]
    return render_page(
        "certificate.html",
        style="certificate.css",
        statement=statement, own=own, predicate=predicate, scope=scope, configuration=files,
        started=time_of(own["started"]), until=time_of(own["validUntil"]), level=level, levels=LEVELS, audit=audit,
        digest=digest_of_file(folder / STATEMENT),
        signed=(folder / f"{STATEMENT}{SUFFIX}").is_file(),
    )  # fmt: skip
