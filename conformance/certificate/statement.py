"""The signed records of a certificate: commitment, challenge, statement and audit. All are small JSON files.

A statement is an in-toto Statement with the predicate test-result, and an audit one with the predicate svr.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ..draw.nonce import NONCE
from ..evidence.drawn import name_missed_rows
from ..evidence.journal import refuse_unreadable
from ..evidence.results import Evidence, InvalidEvidence
from ..evidence.subject import digest_of_subject
from ..model import WAIVED, Suite
from ..model.backends import CLAIMS_FORM
from ..system.exit_codes import CONFORMS
from ..system.files import read_bytes, replace_bytes, sha256_of
from ..system.json_forms import SHA256, MapOf, OrNull, decode, first_mismatch, is_time
from ..system.text import name_first
from ..verdict.sentences import note_resumed
from ..verdict.standing import count_tests

if TYPE_CHECKING:
    from ..report.judged_run import JudgedRun


def _is_time(value: Any) -> bool:
    return is_time(value.replace("Z", "+00:00") if isinstance(value, str) else value)


def _is_timestamp(value: Any) -> bool:
    """Ask whether a value is a time as in-toto writes it: in UTC, with a Z."""
    return _is_time(value) and str(value).endswith("Z")


STATEMENT, COMMITMENT, CHALLENGE, AUDIT = "statement.json", "commitment.json", "challenge.json", "audit.json"
EXTENSION = "https://reshape-conformance.invalid/certificate/v1"
"""The key of our own fields in a predicate. In-toto asks for a URI."""
LEVELS: Mapping[str, str] = {
    "self-tested": "The tester ran the suite and says so; nothing else shows that the answers are "
    "those of the named files.",
    "challenged": "The calls and contents were not known before the tester had named the files under test, so the "
    "answers were computed after that. That the named files computed them, and not another program such as the public "
    "reference, is the tester's word.",
    "re-run": "The issuer ran the named files and got the same answers.",
}
"""What follows from each level."""
_STATEMENT_TYPE, _PASSED, _WARNED, _FAILED = "https://in-toto.io/Statement/v1", "PASSED", "WARNED", "FAILED"
_TEST_RESULT = "https://in-toto.io/attestation/test-result/v0.1"
_SUMMARY = "https://in-toto.io/attestation/svr/v0.2"
Record = Mapping[str, Any]
_MAX_BYTES = 1 << 16
"""The largest record that is read; the suite writes up to 3 KB."""
_MAX_SUBJECTS = 6
_NAME = re.compile(r"[^\x00-\x1f\x7f]{1,200}")
_DIGEST = {"sha256": SHA256}
_FILE = {"name": _NAME, "digest": _DIGEST}
_BACKEND = {"name": _NAME, "version": re.compile(f"|{_NAME.pattern}"), "digest": OrNull(SHA256)}
"""A backend need not have a version."""
COMMITMENT_FORM = {
    "commitment": frozenset(("reshape-conformance-1",)), "suite": SHA256, "backend": _BACKEND, "adapter": str,
    "claims": CLAIMS_FORM, "files": MapOf(SHA256),
}  # fmt: skip
CHALLENGE_FORM = {
    "challenge": frozenset(("reshape-conformance-1",)), "nonce": NONCE, "commitment": SHA256, "issued": _is_time,
    "expires": _is_time,
}  # fmt: skip
_OWN_FORM = {
    "level": frozenset(("self-tested", "challenged")), "backend": _BACKEND, "tester": OrNull(_NAME),
    "operations": [str], "notClaimed": [str], "started": _is_time, "validUntil": _is_time, "version": _NAME,
    "environment": str, "notNamed": [str], "summary": [str], "challenge": OrNull(SHA256),
}  # fmt: skip
STATEMENT_FORM = {
    "_type": frozenset((_STATEMENT_TYPE,)), "subject": [_FILE], "predicateType": frozenset((_TEST_RESULT,)),
    "predicate": {
        "result": frozenset((_PASSED, _WARNED, _FAILED)), "configuration": [_FILE], "passedTests": [str],
        "warnedTests": [str], "failedTests": [str], EXTENSION: _OWN_FORM,
    },
}  # fmt: skip
AUDIT_FORM = {
    "_type": frozenset((_STATEMENT_TYPE,)), "subject": [_FILE], "predicateType": frozenset((_SUMMARY,)),
    "predicate": {
        "verifier": {"id": _NAME, "policies": [_FILE]}, "timeCreated": _is_timestamp, "properties": [str],
        EXTENSION: {
            "level": frozenset(LEVELS), "issuer": OrNull(_NAME), "validUntil": _is_time,
            "statement": SHA256, "rows": range(1, 1 << 31), "called": range(1, 1 << 31), "differences": range(1),
            "details?": re.compile("[ -~]{1,2000}"),
        },
    },
}  # fmt: skip


class RecordFile(NamedTuple):
    """A record as its file held it when it was read, so that what is checked and what is used cannot differ."""

    path: Path
    content: bytes
    record: Record

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def predicate(self) -> Any:
        """The predicate of a statement or an audit."""
        return self.record["predicate"]

    @property
    def own(self) -> Any:
        """Our own fields of a statement or an audit."""
        return self.predicate[EXTENSION]


def suite_of(predicate: Record) -> str:
    """Return the digest of the suite that concluded; "unknown" if a statement names none."""
    return next((file["digest"]["sha256"] for file in predicate["configuration"] if file["name"] == "suite"), "unknown")


# ── reading and writing ───────────────────────────────────────────────────────────────────────────


def read_record(path: Path, form: Any, hint: str = "") -> RecordFile:
    """Read a record; InvalidEvidence if it has another form, or a key occurs twice in it."""
    with refuse_unreadable(path, hint):
        content = read_bytes(path, _MAX_BYTES)
    try:
        record = decode(content.decode(), duplicate_keys=False)
    except ValueError as error:  # also of bytes that are no UTF-8
        raise InvalidEvidence(f"{path}: is no JSON that this suite writes: {error}") from None
    if wrong := first_mismatch(record, form):
        raise InvalidEvidence(f"{path}: {wrong.where or 'it'} {wrong.what}")
    return RecordFile(path, content, record)


def write_record(path: Path, record: Record) -> RecordFile:
    """Write a record as a file of one line."""
    content = (json.dumps(record, separators=(",", ":")) + "\n").encode()
    replace_bytes(path, content)
    return RecordFile(path, content, record)


def digest_of_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes; InvalidEvidence if it cannot be read."""
    with refuse_unreadable(path):
        return sha256_of(path)


def time_of(text: str) -> datetime:
    """Read a time of a record; without a zone it is UTC."""
    time = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)


def add_days(days: int, since: datetime | None = None) -> str:
    """Return the time so many days later, in UTC as in-toto wants it."""
    time = (since or datetime.now(timezone.utc)) + timedelta(days=days)
    return time.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


# ── making ────────────────────────────────────────────────────────────────────────────────────────


def commitment_of(header: Record, files: Mapping[str, str]) -> dict[str, Any]:
    """Make the record that names what will be tested, before anybody draws a nonce.

    One file can hold several backends: the class, or the words of the command, choose among them.
    """
    return {
        "commitment": "reshape-conformance-1", "suite": header["suite"]["digest"], "backend": _backend_of(header),
        "adapter": header["backend"]["adapter"], "claims": header["claims"], "files": dict(files),
    }  # fmt: skip


def challenge_of(nonce: str, commitment: RecordFile, days: int) -> dict[str, Any]:
    return {
        "challenge": "reshape-conformance-1", "nonce": nonce, "commitment": commitment.sha256,
        "issued": add_days(0), "expires": add_days(days),
    }  # fmt: skip


def choose_suite(suite: Suite, evidence: Evidence, said: str | None = None) -> str:
    """Return the digest that a statement names: that of the suite which concludes, or an earlier one that is said.

    A suite with rows that the run did not call is not named: no statement claims them.
    """
    rows = suite.find_earlier(evidence.suite_digest)
    return next(
        each for each in (said, suite.digest, evidence.suite_digest) if each and suite.find_earlier(each) == rows
    )


def statement_of(run: JudgedRun, suite: str, results: str, days: int, challenge: str | None) -> dict[str, Any]:
    """Make the statement on a run. `suite` is the digest of the one that concludes, which may be newer than the run.

    `results` and `challenge` are the digests of these files.
    """
    evidence, conclusion, header = run.evidence, run.conclusion, run.evidence.header
    started = time_of(header["started"])
    system, machine, processor = (
        header["environment"].get(key, "unknown") for key in ("system", "machine", "processor")
    )
    tests: dict[str, list[str]] = {_PASSED: [], _WARNED: [], _FAILED: []}
    for standing in conclusion.standings:
        if standing.name != "not claimed":
            waived = count_tests([standing]).get(WAIVED)
            result = _FAILED if standing.name != "conforms" else _WARNED if waived else _PASSED
            tests[result].append(f"{standing.document}/{standing.type}")
    bad = conclusion.exit_code != CONFORMS or name_missed_rows(evidence, run.plan.suite) is not None
    configuration = {"suite": suite, "results.jsonl": results}
    if header["backend"]["digest"]:
        configuration["adapter"] = header["backend"]["digest"]
    return {
        "_type": _STATEMENT_TYPE,
        "subject": _name_subjects(evidence.footer.get("subject", {}), header["backend"]["digest"] or results),
        "predicateType": _TEST_RESULT,
        "predicate": {
            "result": _FAILED if bad else _WARNED if header.get("waivers") else _PASSED,
            "configuration": _list_files(configuration),
            "passedTests": tests[_PASSED], "warnedTests": tests[_WARNED], "failedTests": tests[_FAILED],
            EXTENSION: {
                "level": level_of(evidence.footer, challenge), "backend": _backend_of(header),
                "tester": header.get("tester"),
                "operations": list(evidence.claims.operations), "notClaimed": list(evidence.claims.not_claimed),
                "started": header["started"], "validUntil": add_days(days, started),
                "version": header["suite"]["version"],
                "environment": f"{system} {machine}, {processor}",
                "notNamed": list(_describe_missing_names(evidence.footer)),
                "summary": [conclusion.why, *_shorten(conclusion.sentences), *note_resumed(evidence.results)],
                "challenge": challenge,
            },
        },
    }  # fmt: skip


def level_of(footer: Record, challenge: object, all_ran_again: bool = False) -> str:
    """Return the level that follows from the facts. It is no higher than what could be named allows."""
    if not footer.get("subject"):
        return "self-tested"
    if all_ran_again and not footer.get("not_named"):
        return "re-run"
    return "challenged" if challenge else "self-tested"


def _describe_missing_names(footer: Record) -> Iterator[str]:
    """Say what was tested and has no digest."""
    if not footer.get("subject") and not footer.get("not_named"):
        yield "No file of the library is named: this system, unlike Linux, does not say what a process has loaded."
    if lost := footer.get("not_named"):
        yield f"Used, and not named: {name_first(tuple(lost), 4)}. No audit raises this certificate to re-run."
    if footer.get("unnamed_code"):
        yield (
            "The process also held code that is in no file, as a compiler at run time (JIT) makes it. No digest "
            "covers that code."
        )


def _shorten(sentences: Sequence[str]) -> list[str]:
    """Return the sentences on a run; limits that all of them name come once, at the end."""
    parts = [sentence.partition("; ") for sentence in sentences]
    limits = {limit for _, _, limit in parts}
    if len(limits) != 1 or limits == {""}:
        return list(sentences)
    return [*(head for head, _, _ in parts), *limits]


def audit_of(
    statement: RecordFile, evidence: Evidence, rows: int, called: int, issuer: str | None, details: str = ""
) -> dict[str, Any]:
    """Make an audit: the issuer called so many rows again, on the files of a statement, and no result differed.

    `details`: how the backend describes itself otherwise there. Another machine, which has the same files, may do so.
    """
    own, suite = statement.own, _list_files({"suite": evidence.header["suite"]["digest"]})
    return {
        "_type": _STATEMENT_TYPE,
        "subject": statement.record["subject"],
        "predicateType": _SUMMARY,
        "predicate": {
            "verifier": {"id": f"{EXTENSION}/audit", "policies": suite},
            "timeCreated": add_days(0),
            "properties": [f"RESHAPE_CONFORMS_{name}" for name in statement.predicate["passedTests"]],
            EXTENSION: {
                "level": level_of(evidence.footer, own["challenge"], rows >= called), "issuer": issuer,
                "validUntil": own["validUntil"], "statement": statement.sha256, "rows": rows,
                "called": called, "differences": 0, **({"details": details} if details else {}),
            },
        },
    }  # fmt: skip


def _backend_of(header: Record) -> dict[str, Any]:
    backend = header["backend"]
    return {"name": backend["name"], "version": backend["version"], "digest": backend["digest"]}


def _name_subjects(files: Mapping[str, str], adapter: str) -> list[dict[str, Any]]:
    """Name the files under test, or one digest for many; if there are none, name the adapter."""
    if not files:
        return _list_files({"adapter": adapter})
    if len(files) <= _MAX_SUBJECTS:
        return _list_files(files)
    return _list_files({f"{len(files)} files, as the footer of results.jsonl lists them": digest_of_subject(files)})


def _list_files(digests: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"name": name[:200], "digest": {"sha256": digest}} for name, digest in digests.items()]
