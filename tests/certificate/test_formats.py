"""Statements and audits against what is published of in-toto: Statement v1, test-result v0.1 and svr v0.2.

The facts are those of https://github.com/in-toto/attestation, spec/v1 and spec/predicates, as of August 2026.
"""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conformance.certificate.statement import (
    AUDIT_FORM,
    EXTENSION,
    STATEMENT_FORM,
    audit_of,
    challenge_of,
    commitment_of,
    read_record,
    statement_of,
    write_record,
)
from conformance.evidence.results import Evidence
from conformance.verdict.conclude import Conclusion
from conformance.verdict.standing import Standing

Json = dict[str, Any]
DIGEST, OTHER = "0" * 63 + "a", "0" * 63 + "b"
TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?Z")
URI = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/]+\S*")
DESCRIPTOR: dict[str, type | tuple[type, ...]] = {
    "name": str, "uri": str, "digest": dict, "content": str, "downloadLocation": str, "mediaType": str,
    "annotations": dict,
}  # fmt: skip
FIELDS = {
    "https://in-toto.io/attestation/test-result/v0.1": (
        {"result", "configuration"}, {"url", "passedTests", "warnedTests", "failedTests"},
    ),
    "https://in-toto.io/attestation/svr/v0.2": ({"verifier", "timeCreated", "properties"}, set()),
}  # fmt: skip
"""The fields of a predicate that are required, and those that are optional."""


# ── what is published ─────────────────────────────────────────────────────────────────────────────


def find_faults(statement: Json) -> Iterator[str]:
    """Yield where a Statement is not as the specification wants it."""
    if statement.get("_type") != "https://in-toto.io/Statement/v1":
        yield "_type"
    if not statement.get("subject"):
        yield "subject: an attestation applies to something"
    for subject in statement.get("subject", ()):
        yield from (f"subject: {fault}" for fault in _faults_of_descriptor(subject))
        if not subject.get("digest"):
            yield "subject: digest is required there"
    names = [subject.get("name") for subject in statement.get("subject", ())]
    if len(set(names)) < len(names):
        yield "subject: names should be unique"
    yield from (f"{key}: is no field of a Statement" for key in statement.keys() - _STATEMENT)
    type_, predicate = statement.get("predicateType", ""), statement.get("predicate", {})
    if type_ not in FIELDS:
        yield f"predicateType: {type_}"
        return
    required, optional = FIELDS[type_]
    if missing := required - predicate.keys():
        yield f"{sorted(missing)}: are required"
        return
    for key in predicate.keys() - required - optional:
        if not URI.fullmatch(key):
            yield f"{key}: keys of extensions are URIs"
    yield from (_faults_of_svr if "verifier" in required else _faults_of_test_result)(predicate)


_STATEMENT = {"_type", "subject", "predicateType", "predicate"}


def _faults_of_descriptor(descriptor: Json) -> Iterator[str]:
    if not descriptor.keys() & {"uri", "digest", "content"}:
        yield "one of uri, digest and content is required"
    for key, value in descriptor.items():
        if not isinstance(value, DESCRIPTOR.get(key, ())):
            yield f"{key}: {value!r}"
    for algorithm, digest in descriptor.get("digest", {}).items():
        if not (algorithm == "sha256" and re.fullmatch("[0-9a-f]{64}", digest)):
            yield f"digest: {algorithm} {digest}"


def _faults_of_test_result(predicate: Json) -> Iterator[str]:
    if predicate["result"] not in ("PASSED", "WARNED", "FAILED"):
        yield "result"
    for descriptor in predicate["configuration"]:
        yield from _faults_of_descriptor(descriptor)
    for key in ("passedTests", "warnedTests", "failedTests"):
        if not all(isinstance(each, str) for each in predicate.get(key, ())):
            yield key


def _faults_of_svr(predicate: Json) -> Iterator[str]:
    verifier = predicate["verifier"]
    if not URI.fullmatch(verifier.get("id", "")):
        yield "verifier.id"
    if not isinstance(verifier.get("policies"), list):
        yield "verifier.policies: is required, if only as an empty list"
    for descriptor in verifier.get("policies") or ():
        yield from _faults_of_descriptor(descriptor)
    if not TIME.fullmatch(predicate["timeCreated"]):
        yield "timeCreated: RFC 3339, in UTC with a Z"
    if not all(isinstance(each, str) for each in predicate["properties"]):
        yield "properties"


# ── what we write ─────────────────────────────────────────────────────────────────────────────────


def evidence_of(files: int = 2, **footer: Any) -> Evidence:
    header = {
        "suite": {"version": "1.0", "digest": DIGEST, "documents": {}},
        "backend": {"name": "mine", "version": "2", "adapter": "mine.py:Mine", "detail": {}, "digest": OTHER},
        "claims": {"operations": ["StaticReshape"], "not_claimed": ["chain"], "answers_special_zero": True},
        "environment": {"system": "Linux", "machine": "x86_64", "processor": "some"},
        "started": "2026-11-24T10:00:00+00:00",
    }
    return Evidence(header, (), {"subject": {f"lib{n}.so": f"{n:064x}" for n in range(files)}, **footer})


def standing(type_: str, word: str, waived: int = 0) -> Standing:
    counts = {"waived": waived}
    fake: Any = SimpleNamespace(document="static-oneapi", type=type_, word=word, counts=counts, optional={})
    return fake  # type: ignore[no-any-return]


def conclusion(*standings: Standing, exit_code: int = 0) -> Conclusion:
    fake: Any = SimpleNamespace(standings=standings, exit_code=exit_code, why="it does", sentences=("a; b", "c; b"))
    return fake  # type: ignore[no-any-return]


PASSES = conclusion(standing("f32", "conforms"), standing("s8", "not claimed"))
WARNS = conclusion(standing("f32", "conforms"), standing("s8", "conforms", waived=3))
FAILS = conclusion(standing("f32", "conforms"), standing("s8", "does not conform"), exit_code=1)
STATEMENTS: dict[str, Callable[[], Json]] = {
    "passed": lambda: statement_of(evidence_of(), OTHER, OTHER, PASSES, 365, None),
    "warned": lambda: statement_of(evidence_of(), OTHER, OTHER, WARNS, 365, DIGEST),
    "failed": lambda: statement_of(evidence_of(), OTHER, OTHER, FAILS, 365, None),
    "of many files": lambda: statement_of(evidence_of(40), OTHER, OTHER, PASSES, 365, None),
    "of no file": lambda: statement_of(evidence_of(0), OTHER, OTHER, PASSES, 365, None),
    "of code without a file": lambda: statement_of(evidence_of(unnamed_code=True), OTHER, OTHER, PASSES, 365, None),
}


def audit(tmp_path: Path, statement: Json) -> Json:
    return audit_of(write_record(tmp_path / "statement.json", statement), evidence_of(), 10, 10, "Lab")


@pytest.mark.parametrize("name", STATEMENTS)
def test_statements_and_audits_are_as_in_toto_publishes_them(name: str, tmp_path: Path) -> None:
    statement = STATEMENTS[name]()
    assert list(find_faults(statement)) == []
    assert list(find_faults(audit(tmp_path, statement))) == []


@pytest.mark.parametrize("name", STATEMENTS)
def test_statements_and_audits_are_read_back(name: str, tmp_path: Path) -> None:
    statement = write_record(tmp_path / "statement.json", STATEMENTS[name]())
    assert read_record(statement.path, STATEMENT_FORM) == statement
    other = write_record(tmp_path / "audit.json", audit(tmp_path, STATEMENTS[name]()))
    assert read_record(other.path, AUDIT_FORM) == other


@pytest.mark.parametrize(
    ("of_audit", "change"),
    [
        (False, lambda s: s.update(_type="https://in-toto.io/Statement/v0.1")),
        (False, lambda s: s.update(subject=[])),
        (False, lambda s: s["subject"][0].pop("digest")),
        (False, lambda s: s["subject"][0]["digest"].update(sha256="A" * 64)),
        (False, lambda s: s["subject"].append(s["subject"][0])),
        (False, lambda s: s.update(more=1)),
        (False, lambda s: s.update(predicateType="https://in-toto.io/attestation/svr/v0.1")),
        (False, lambda s: s["predicate"].pop("configuration")),
        (False, lambda s: s["predicate"].update(result="passed")),
        (False, lambda s: s["predicate"].update(level="re-run")),
        (True, lambda s: s["predicate"]["verifier"].pop("policies")),
        (True, lambda s: s["predicate"]["verifier"].update(id="us")),
        (True, lambda s: s["predicate"].update(timeCreated="2026-11-24T10:00:00+00:00")),
        (True, lambda s: s["predicate"].update(properties=[1])),
        (True, lambda s: s["predicate"].pop("verifier")),
    ],
)
def test_a_record_that_is_not_so_has_a_fault(of_audit: bool, change: Callable[[Json], object], tmp_path: Path) -> None:
    record = STATEMENTS["passed"]()
    record = audit(tmp_path, record) if of_audit else record
    change(record)
    assert list(find_faults(record))


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_published_protobuf_classes_take_them(name: str, tmp_path: Path) -> None:
    published = pytest.importorskip("in_toto_attestation.v1.statement_pb2")
    results = pytest.importorskip("in_toto_attestation.predicates.test_result.v0.test_result_pb2")
    json_format = pytest.importorskip("google.protobuf.json_format")
    statement = STATEMENTS[name]()
    for record in (statement, audit(tmp_path, statement)):
        message = json_format.Parse(json.dumps(record), published.Statement())
        assert json_format.MessageToDict(message) == json.loads(json.dumps(record))
    predicate = {key: value for key, value in statement["predicate"].items() if key != EXTENSION}
    message = json_format.ParseDict(predicate, results.TestResult())
    given = {key: value for key, value in predicate.items() if value != []}  # protobuf leaves out what is empty
    assert json_format.MessageToDict(message) == given


def test_every_record_is_under_three_kilobytes(tmp_path: Path) -> None:
    files = evidence_of(6)
    commitment = commitment_of(files.header, files.footer["subject"])
    committed = write_record(tmp_path / "commitment.json", commitment)
    records = [STATEMENTS["warned"](), commitment, challenge_of("0" * 64, committed, 14)]
    records.append(audit(tmp_path, records[0]))
    for record in records:
        assert len(write_record(tmp_path / "record.json", record).content) < 3072
