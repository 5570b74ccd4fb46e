"""Statements and audits against what is published of in-toto: Statement v1, test-result v0.1 and svr v0.2.

The facts are those of https://github.com/in-toto/attestation, spec/v1 and spec/predicates, as of August 2026.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from jsonschema import Draft202012Validator

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
from conformance.evidence.subject import digest_of_subject
from conformance.report.judged_run import JudgedRun
from conformance.verdict.conclude import Conclusion
from conformance.verdict.standing import Standing

from ..builders import bundled_plan

Json = dict[str, Any]
DIGEST, OTHER = "0" * 63 + "a", "0" * 63 + "b"
TEXT: Json = {"type": "string"}
TEXTS: Json = {"type": "array", "items": TEXT}
URI = r"^[a-z][a-z0-9+.-]*://[^\s/]+\S*$"


# ── what is published ─────────────────────────────────────────────────────────────────────────────


def object_of(required: Sequence[str], properties: Json, **more: Any) -> Json:
    """The schema of an object without other keys."""
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False, **more}


DESCRIPTOR = object_of(
    (),
    {
        "digest": object_of(["sha256"], {"sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"}}),
        "annotations": {"type": "object"},
        **dict.fromkeys(("name", "uri", "content", "downloadLocation", "mediaType"), TEXT),
    },
    anyOf=[{"required": [key]} for key in ("uri", "digest", "content")],
)
DESCRIPTORS: Json = {"type": "array", "items": DESCRIPTOR}
EXTENSIONS: Json = {URI: {}}
PREDICATES = {
    "https://in-toto.io/attestation/test-result/v0.1": object_of(
        ["result", "configuration"],
        {
            "result": {"enum": ["PASSED", "WARNED", "FAILED"]},
            "configuration": DESCRIPTORS,
            "url": TEXT,
            **dict.fromkeys(("passedTests", "warnedTests", "failedTests"), TEXTS),
        },
        patternProperties=EXTENSIONS,
    ),
    "https://in-toto.io/attestation/svr/v0.2": object_of(
        ["verifier", "timeCreated", "properties"],
        {
            "verifier": object_of(["id", "policies"], {"id": {"pattern": URI}, "policies": DESCRIPTORS}),
            "timeCreated": {"pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$"},
            "properties": TEXTS,
        },
        patternProperties=EXTENSIONS,
    ),
}
STATEMENT = object_of(
    ["_type", "subject", "predicateType", "predicate"],
    {
        "_type": {"const": "https://in-toto.io/Statement/v1"},
        "subject": {"type": "array", "minItems": 1, "items": {**DESCRIPTOR, "required": ["digest"]}},
        "predicateType": {"enum": [*PREDICATES]},
        "predicate": {"type": "object"},
    },
)


def assert_as_published(statement: Json) -> None:
    Draft202012Validator(STATEMENT).validate(statement)
    Draft202012Validator(PREDICATES[statement["predicateType"]]).validate(statement["predicate"])
    names = [subject.get("name") for subject in statement["subject"]]
    assert len(set(names)) == len(names)


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
    fake: Any = SimpleNamespace(document="static-oneapi", type=type_, name=word, counts=counts, unclaimed_counts={})
    return fake  # type: ignore[no-any-return]


def conclusion(*standings: Standing, exit_code: int = 0) -> Conclusion:
    fake: Any = SimpleNamespace(standings=standings, exit_code=exit_code, why="it does", sentences=("a; b", "c; b"))
    return fake  # type: ignore[no-any-return]


def state(shown: Conclusion, evidence: Evidence, challenge: str | None = None) -> Json:
    return statement_of(JudgedRun(bundled_plan(), evidence, shown), OTHER, OTHER, 365, challenge)


PASSES = conclusion(standing("f32", "conforms"), standing("s8", "not claimed"))
WARNS = conclusion(standing("f32", "conforms"), standing("s8", "conforms", waived=3))
FAILS = conclusion(standing("f32", "conforms"), standing("s8", "does not conform"), exit_code=1)
STATEMENTS: dict[str, Callable[[], Json]] = {
    "passed": lambda: state(PASSES, evidence_of()),
    "warned": lambda: state(WARNS, evidence_of(), DIGEST),
    "failed": lambda: state(FAILS, evidence_of()),
    "of many files": lambda: state(PASSES, evidence_of(40)),
    "of no file": lambda: state(PASSES, evidence_of(0)),
    "of code without a file": lambda: state(PASSES, evidence_of(unnamed_code=True)),
}


def audit(tmp_path: Path, statement: Json) -> Json:
    return audit_of(write_record(tmp_path / "statement.json", statement), evidence_of(), 10, 10, "Lab")


@pytest.mark.parametrize("name", STATEMENTS)
def test_statements_and_audits_are_as_in_toto_publishes_them(name: str, tmp_path: Path) -> None:
    """They are read back as they were written."""
    statement = STATEMENTS[name]()
    for record, form in ((statement, STATEMENT_FORM), (audit(tmp_path, statement), AUDIT_FORM)):
        assert_as_published(record)
        written = write_record(tmp_path / "record.json", record)
        assert read_record(written.path, form) == written


F32, S8 = "static-oneapi/f32", "static-oneapi/s8"
SORTED: dict[str, tuple[Conclusion, tuple[Any, ...]]] = {
    # what is shown: (the conclusion, the result and the tests that pass, are warned of and fail)
    "all": (PASSES, ("PASSED", [F32], [], [])),
    "all, with waived failures": (WARNS, ("PASSED", [F32], [S8], [])),
    "a part": (FAILS, ("FAILED", [F32], [], [S8])),
    "not all rows of a type": (
        conclusion(standing("f32", "conforms"), standing("s8", "incomplete"), exit_code=4),
        ("FAILED", [F32], [], [S8]),
    ),
    "all, and a waiver has expired": (conclusion(standing("f32", "conforms"), exit_code=6), ("FAILED", [F32], [], [])),
}


@pytest.mark.parametrize("shown", SORTED)
def test_a_type_passes_if_it_conforms_without_a_waiver(shown: str, tmp_path: Path) -> None:
    concluded, due = SORTED[shown]
    statement = state(concluded, evidence_of(drawn={"called": 1, "failed": 1}))  # else drawn rows would be missing
    said = statement["predicate"]
    assert (said["result"], said["passedTests"], said["warnedTests"], said["failedTests"]) == due
    assert audit(tmp_path, statement)["predicate"]["properties"] == [f"RESHAPE_CONFORMS_{F32}"]


def test_many_files_have_the_digest_of_what_sha256sum_prints() -> None:
    files = evidence_of(40).footer["subject"]
    lines = "".join(f"{files[name]}  {name}\n" for name in sorted(files)).encode()
    (subject,) = STATEMENTS["of many files"]()["subject"]
    assert subject["digest"]["sha256"] == hashlib.sha256(lines).hexdigest()


def test_a_name_of_two_lines_is_no_second_file() -> None:
    """Three files of each set, and the second one of the other set is the end of a name."""
    a, b, c, d = ("a" * 64, "b" * 64, "c" * 64, "d" * 64)
    sets = {f"1\n{b}  2": a, "3": c, "4": d}, {"1": a, "2": b, f"3\n{d}  4": c}
    assert digest_of_subject(sets[0]) != digest_of_subject(sets[1])


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
