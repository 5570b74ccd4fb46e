"""Attacks on certificates, each refused by one check and accepted without it."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pytest

from conformance.certify import allowed, dsse, signature
from conformance.certify.conclude import conclude_evidence
from conformance.certify.evidence import Refused, read
from conformance.certify.folder import REPORTS, RESULTS
from conformance.certify.signature import TESTER, sign, signatures_of
from conformance.certify.statement import (
    AUDIT,
    CHALLENGE,
    COMMITMENT,
    EXTENSION,
    STATEMENT,
    digest_of_file,
)
from conformance.report import certificate
from conformance.report.certificate import Trust, check_certificate
from conformance.report.certificate_page import BADGE, PAGE
from conformance.report.verify import Verified
from conformance.tests.forged import Records, count, rewrite
from conformance.tests.vendor_and_issuer import Json, Lab, as_it_is, put_own

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen, of OpenSSH")
LONG_AGO, NEXT_YEAR = "2020-01-01T00:00:00+00:00", "2027-12-01T00:00:00+00:00"


# ── attacks ───────────────────────────────────────────────────────────────────────────────────────


class Attack(NamedTuple):
    """An attack on a certificate: what is done, the words of the refusal, and the check that refuses."""

    act: Callable[[Lab], Trust | None]
    """Changes the folder; returns what the reader knows, if it is not the usual."""
    words: str
    check: str


ATTACKS: dict[str, Attack] = {}
_MODULES = {"": certificate, "dsse": dsse, "allowed": allowed, "signature": signature}
NO_CHECK: dict[str, Callable[..., Any]] = {
    "_refuse_difference": lambda *_: None,
    "_check_times": lambda *_: None,
    "_check_challenge": lambda *_: None,
    "_check_revocation": lambda *_: None,
    "_check_subject": lambda *_: None,
    "_check_issuer": lambda *_: "lab",
    "_check_audit": lambda *_: ("anybody", 1 << 30),
    "_check_pages": lambda *_: None,
    "_refuse_other_challenge": lambda *_: None,
    "signer_of": lambda file, *_: file.path.name,
    "read_record": lambda path, _: as_it_is(path),
    "_check_digest": lambda *_: None,
    "dsse._is_signature": lambda *_: True,
    "dsse._refuse_other_payload": lambda *_: None,
    "dsse._refuse_other_type": lambda *_: None,
    "dsse._read_envelope": lambda path: json.loads(path.read_text()),
    "dsse.read_allowed": lambda path, _: allowed.read_allowed(path, TESTER),
    "dsse.refuse_revoked": lambda *_: None,
    "allowed._is_valid": lambda *_: True,
    "allowed._may_sign": lambda *_: True,
    "signature._refuse_two": lambda *_: None,
    "verify_content": lambda content, plan: Verified((), conclude_evidence(plan, read(content.path)),
                                                     read(content.path), ()),
}  # fmt: skip


Act = TypeVar("Act", bound=Callable[[Lab], "Trust | None"])


def attack(words: str, check: str) -> Callable[[Act], Act]:
    def add(act: Act) -> Act:
        ATTACKS[act.__name__.replace("_", " ").strip()] = Attack(act, words, check)
        return act

    return add


def says(name: str, act: Callable[[Json], object], words: str = "does not follow from the evidence") -> None:
    """Add an attack in which the vendor signs a statement that says something else than the evidence."""
    ATTACKS[f"the statement {name}"] = Attack(lambda lab: lab.change(act), words, "_refuse_difference")


says("passes another type", lambda s: s["predicate"]["passedTests"].append("static-2022/bf16"))
says("passes another document", lambda s: s["predicate"]["passedTests"].append("reshape-2020/f32"))
says("warns of nothing that was waived", lambda s: s["predicate"]["warnedTests"].append("static-2022/f32"))
says("calls a pass a failure", lambda s: s["predicate"].update(result="FAILED"))
says("names another operation", put_own("operations", ["StaticReshape", "Reshape-1"]))
says("leaves nothing out", put_own("leavesOut", []))
says("names another backend", put_own("backend", {"name": "other", "version": "1", "adapter": None}))
says("names another version", lambda s: s["predicate"][EXTENSION]["backend"].update(version="99"))
says("names another suite version", put_own("version", "99.0 certified by ISO"))
says("names another tester", put_own("by", "Somebody Else"))
says("names another machine", put_own("environment", "Linux, a better one"))
says("sums up otherwise", put_own("summary", ["the whole target conforms", "conforms to everything"]))
says("began at another time", put_own("started", "2026-11-01T00:00:00+00:00"))
says("names another file", lambda s: s["subject"][0].update(name="libother.so"))
says("names a file outside", lambda s: s["subject"][0].update(name="../../lib.so"))
says("gives a file another digest", lambda s: s["subject"][0]["digest"].update(sha256="0" * 64))
says("drops a file", lambda s: s["subject"].pop())
says("is about another suite", lambda s: s["predicate"]["configuration"][0]["digest"].update(sha256="0" * 64))
says("is about another adapter", lambda s: s["predicate"]["configuration"][2]["digest"].update(sha256="0" * 64))


@attack("is not signed", "signer_of")
def it_is_not_signed(lab: Lab) -> None:
    (lab.folder / f"{STATEMENT}.sig").unlink()
    (lab.folder / AUDIT).unlink()
    lab.finish(key=None)


@attack("is not by a key that", "signer_of")
def a_stranger_signs(lab: Lab) -> None:
    lab.change(lambda statement: None, key="stranger")


@attack("is not the signature of", "signer_of")
def it_is_edited_after_it_was_signed(lab: Lab) -> None:
    lab.change(put_own("validUntil", "2027-01-01T00:00:00+00:00"), key=None)


@attack("is not the signature of", "signer_of")
def the_signature_is_for_another_purpose(lab: Lab) -> None:
    lab.change(lambda statement: None, key=None)
    lab.sign(STATEMENT, "vendor", "file")


@attack("is not", "signer_of")
def the_key_has_expired(lab: Lab) -> None:
    keys = lab.home / "allowed"
    keys.write_text(keys.read_text().replace("namespaces=", 'valid-before="20200101",namespaces='))


@attack("is not the signature of", "signer_of")
def the_key_is_revoked(lab: Lab) -> Trust:
    return lab.trust(revoked=lab.key("vendor.pub"))


@attack("is revoked, says", "_check_revocation")
def the_statement_is_revoked(lab: Lab) -> Trust:
    (lab.home / "revoked").write_text(f"{digest_of_file(lab.folder / STATEMENT)}  withdrawn by the vendor\n")
    return lab.trust(revoked=lab.home / "revoked")


@attack("expired on 2020-01-01", "_check_times")
def it_has_expired(lab: Lab) -> None:
    lab.change(put_own("validUntil", LONG_AGO))


@attack("valid for more than three years", "_check_times")
def it_is_valid_for_ever(lab: Lab) -> None:
    lab.change(put_own("validUntil", "2999-01-01T00:00:00+00:00"))


@attack("is still to come", "_check_times")
def the_run_is_of_tomorrow(lab: Lab) -> None:
    rewrite(lab.folder / RESULTS, lambda records: records[0].update(started=NEXT_YEAR))
    lab.command("report", lab.folder)
    lab.change_challenge(expires="2028-01-01T00:00:00+00:00")
    lab.state_anew()


@attack("is not the evidence that statement.json is about", "_check_digest")
def the_evidence_is_edited(lab: Lab) -> None:
    rewrite(lab.folder / RESULTS, lambda records: records[-1].update(notes=["ran on a Sunday"]))
    lab.command("report", lab.folder)
    lab.change(lambda statement: None)


def flatter_one(records: Records) -> None:
    record = next(each for each in records[1:-1] if "not claimed" in each["verdicts"].values())
    record["verdicts"] = dict.fromkeys(record["verdicts"], "pass")
    count(records)


def drop_row(records: Records) -> None:
    del records[5]
    count(records)


def swap_content(records: Records) -> None:
    one, two = [each for each in records[1:-1] if each.get("content")][:2]
    one["content"], two["content"] = two["content"], one["content"]


def forge(name: str, act: Callable[[Records], object], words: str) -> None:
    """Add an attack in which everything is made anew from evidence that was changed."""

    def change(lab: Lab) -> None:
        rewrite(lab.folder / RESULTS, act)
        lab.state_anew()

    ATTACKS[f"the evidence {name}"] = Attack(change, words, "verify_content")


forge("has a verdict that does not follow", flatter_one, "where")
forge("lacks a row", drop_row, "lacks 1 rows of the suite")
forge("has the answers of other calls", swap_content, "makes it fail")


@pytest.mark.parametrize("name", REPORTS)
def test_each_edited_report_is_refused(lab: Lab, name: str) -> None:
    path = lab.folder / name
    path.write_text(path.read_text() + "\n")
    with pytest.raises(Refused, match=name):
        check_certificate(lab.folder, lab.plan, lab.trust())


@attack("give the issuer's --challenge FILE", "_check_challenge")
def the_reader_has_neither_challenge_nor_keys(lab: Lab) -> Trust:
    return Trust()


@attack("is not signed", "_check_issuer")
def nobody_signed_the_challenge(lab: Lab) -> None:
    (lab.folder / f"{CHALLENGE}.sig").unlink()


@attack("is not the signature of", "_check_issuer")
def the_vendor_signed_the_challenge(lab: Lab) -> None:
    lab.sign(CHALLENGE, "vendor")


@attack("who signed the statement too", "_check_issuer")
def the_vendor_is_allowed_everything_and_signs_the_challenge(lab: Lab) -> None:
    lab.allow_the_vendor_everything()
    lab.sign(CHALLENGE, "vendor")


@attack("began before", "_check_challenge")
def the_run_is_older_than_the_challenge(lab: Lab) -> None:
    lab.change_challenge(issued=NEXT_YEAR)


@attack("is not the challenge that was given", "_refuse_other_challenge")
def another_challenge_lies_in_the_folder(lab: Lab) -> None:
    lab.change_record(CHALLENGE, lambda record: record.update(nonce="0" * 64))
    lab.sign(CHALLENGE, "issuer")


@attack("answers another challenge", "_check_challenge")
def it_answers_another_challenge(lab: Lab) -> Trust:
    other = lab.home / "other.json"
    other.write_text(lab.challenge.read_text().replace("2026", "2025"))
    return lab.trust(challenge=other)


@attack("was not run under the nonce", "_check_challenge")
def the_nonce_is_one_of_its_own(lab: Lab) -> None:
    lab.change_challenge(nonce="0" * 64)


@attack("had expired", "_check_challenge")
def the_challenge_had_expired(lab: Lab) -> None:
    lab.change_challenge(expires=LONG_AGO)


@attack("cannot be read", "_check_challenge")
def the_commitment_is_gone(lab: Lab) -> None:
    (lab.folder / COMMITMENT).unlink()


@attack("is not the commitment", "_check_challenge")
def the_commitment_was_written_afterwards(lab: Lab) -> None:
    lab.change_record(COMMITMENT, lambda record: record["files"].update({"lib.so": "0" * 64}))


def committed_to(key: str, value: Any) -> Callable[[Lab], None]:
    def act(lab: Lab) -> None:
        lab.change_record(COMMITMENT, lambda record: record.update({key: value}))
        commitment = digest_of_file(lab.folder / COMMITMENT)
        lab.change_challenge(commitment=commitment)

    return act


for key, value in {
    "files": {"lib.so": "0" * 64},
    "claims": {"operations": [], "leaves_out": [], "answers_special_zero": False},
    "backend": {"name": "other", "version": "1", "adapter": None},
    "suite": "0" * 64,
}.items():
    ATTACKS[f"another of the {key} was committed to"] = Attack(
        committed_to(key, value), f"the {key} tested are not those committed to", "_check_challenge"
    )


@attack("is none of the files that were tested", "_check_subject")
def the_library_is_another(lab: Lab) -> Trust:
    (lab.home / "libother.so").write_bytes(b"\x7fELF")
    return lab.trust(subject=lab.home / "libother.so")


@attack("is the audit of another statement", "_check_audit")
def the_audit_is_of_another_statement(lab: Lab) -> None:
    audit = (lab.folder / AUDIT).read_bytes()
    lab.change(put_own("validUntil", "2027-01-01T00:00:00+00:00"))
    (lab.folder / AUDIT).write_bytes(audit)
    for name in (PAGE, BADGE):
        (lab.folder / name).unlink()


@attack("is not the signature of", "_check_audit")
def the_vendor_signs_the_audit(lab: Lab) -> None:
    lab.sign(AUDIT, "vendor")


@attack("who signed the statement too", "_check_audit")
def the_vendor_is_allowed_everything_and_signs_the_audit(lab: Lab) -> None:
    lab.allow_the_vendor_everything()
    lab.sign(AUDIT, "vendor")


@attack("is not signed", "_check_audit")
def the_audit_is_not_signed(lab: Lab) -> None:
    (lab.folder / f"{AUDIT}.sig").unlink()


@attack("has expired", "_check_audit")
def the_audit_has_expired(lab: Lab) -> None:
    lab.change_record(AUDIT, lambda record: record["predicate"][EXTENSION].update(validUntil=LONG_AGO))
    lab.sign(AUDIT, "issuer")


@attack("does not say what statement.json says", "_check_pages")
def the_page_says_more(lab: Lab) -> None:
    page = lab.folder / PAGE
    page.write_text(page.read_text().replace("<h1>", "<h1>The best: "))


def written(name: str, text: Callable[[str], bytes], words: str) -> None:
    """Add an attack in which the statement is no JSON of ours."""

    def act(lab: Lab) -> None:
        path = lab.folder / STATEMENT
        path.write_bytes(text(path.read_text()))
        lab.finish()
        (lab.folder / PAGE).unlink()

    ATTACKS[f"the statement {name}"] = Attack(act, words, "read_record")


written("has a key twice", lambda text: text.replace('"result"', '"result":"FAILED","result"', 1).encode(), "twice")
written("is too long", lambda text: (text + " " * 10**6).encode(), "cannot be read")


def test_a_statement_that_is_no_text_is_refused(lab: Lab) -> None:
    (lab.folder / STATEMENT).write_bytes(b"\xff\xfe{}")
    with pytest.raises(Refused, match=r"statement\.json: is no JSON of ours"):
        check_certificate(lab.folder, lab.plan, Trust())


# ── envelopes ─────────────────────────────────────────────────────────────────────────────────────


def envelope_of(lab: Lab, name: str = STATEMENT) -> Path:
    return signatures_of(lab.folder / name)[1]


def change_envelope(lab: Lab, **values: object) -> None:
    path = envelope_of(lab)
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def sign_by_envelope(lab: Lab, options: str = "") -> str:
    """Let the vendor sign by an envelope; return the public key."""
    public = lab.make_pem("maker", options=options)
    lab.change(lambda statement: None, key="maker.pem")
    return public


@attack("is not by a key that", "dsse._is_signature")
def a_stranger_signs_an_envelope(lab: Lab) -> None:
    sign_by_envelope(lab)
    keys = lab.home / "allowed"
    before = keys.read_text().splitlines()
    lab.make_pem("maker")  # another key of that name
    keys.write_text("\n".join([*before[:-1], keys.read_text().splitlines()[-1]]) + "\n")


@attack("signs another text than that of the file beside it", "dsse._refuse_other_payload")
def it_is_edited_after_an_envelope_was_signed(lab: Lab) -> None:
    sign_by_envelope(lab)
    lab.change(put_own("validUntil", "2027-01-01T00:00:00+00:00"), key=None)


@attack("is not by a key that", "dsse._is_signature")
def it_is_edited_in_its_envelope_too(lab: Lab) -> None:
    it_is_edited_after_an_envelope_was_signed(lab)
    change_envelope(lab, payload=base64.b64encode((lab.folder / STATEMENT).read_bytes()).decode())


@attack("is an envelope of 'text/plain', and this takes application/vnd.in-toto", "dsse._refuse_other_type")
def the_envelope_was_signed_as_another_type(lab: Lab) -> None:
    sign_by_envelope(lab)
    content = (lab.folder / STATEMENT).read_bytes()
    dsse.sign_envelope(envelope_of(lab), "text/plain", content, lab.key("maker.pem"))


@attack("is not by a key that", "dsse.read_allowed")
def a_key_for_statements_signs_the_audit_by_an_envelope(lab: Lab) -> None:
    lab.make_pem("maker")
    lab.sign(AUDIT, "maker.pem")


@attack("who signed the statement too", "_check_audit")
def a_key_that_is_allowed_everything_signs_an_envelope_of_the_audit_too(lab: Lab) -> None:
    audit = (lab.folder / AUDIT).read_bytes()
    lab.make_pem("maker", role="*")
    sign(as_it_is(lab.folder / STATEMENT), lab.key("maker.pem"), TESTER)
    (lab.folder / AUDIT).write_bytes(audit)
    lab.sign(AUDIT, "maker.pem")


@attack("is not by a key that", "allowed._is_valid")
def the_key_of_the_envelope_has_expired(lab: Lab) -> None:
    sign_by_envelope(lab, 'valid-before="20200101",')


@attack("is not by a key that", "allowed._may_sign")
def the_key_of_the_envelope_is_one_of_an_authority(lab: Lab) -> None:
    sign_by_envelope(lab, "cert-authority,")


@attack("revokes the key of maker@example.com", "dsse.refuse_revoked")
def the_key_of_the_envelope_is_revoked(lab: Lab) -> Trust:
    (lab.home / "revoked.pub").write_text(f"{sign_by_envelope(lab)}\n")
    return lab.trust(revoked=lab.home / "revoked.pub")


@attack("is a second signature beside statement.dsse.json", "signature._refuse_two")
def another_signature_lies_beside_the_envelope(lab: Lab) -> None:
    signature, _ = signatures_of(lab.folder / STATEMENT)
    before = signature.read_bytes()
    sign_by_envelope(lab)
    signature.write_bytes(before)


@attack("a key stands twice in it", "dsse._read_envelope")
def the_envelope_says_its_payload_twice(lab: Lab) -> None:
    sign_by_envelope(lab)
    path = envelope_of(lab)
    path.write_text(path.read_text().replace('{"payload":', '{"payload":"e30=","payload":', 1))


@attack("has more than 131,072 bytes", "dsse._read_envelope")
def the_envelope_is_too_long(lab: Lab) -> None:
    sign_by_envelope(lab)
    envelope_of(lab).write_text(envelope_of(lab).read_text() + " " * (1 << 17))


def test_there_are_at_least_sixty_five_attacks() -> None:
    assert len(ATTACKS) >= 65


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_refused_by_its_check_alone(lab: Lab, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trust = ATTACKS[name].act(lab) or lab.trust()
    with pytest.raises(Refused, match=ATTACKS[name].words):
        check_certificate(lab.folder, lab.plan, trust)
    module, _, check = ATTACKS[name].check.rpartition(".")
    monkeypatch.setattr(_MODULES[module], check, NO_CHECK[ATTACKS[name].check])
    assert check_certificate(lab.folder, lab.plan, trust).level
