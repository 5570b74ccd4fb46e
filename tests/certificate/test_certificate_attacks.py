"""Attacks on certificates, each refused by one check and accepted without it."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.certificate import check as certificate
from conformance.certificate.check import Trust, check_certificate
from conformance.certificate.page import BADGE, PAGE
from conformance.certificate.statement import AUDIT, CHALLENGE, COMMITMENT, EXTENSION, STATEMENT, digest_of_file
from conformance.evidence.folder import REPORTS, RESULTS
from conformance.evidence.results import Refused
from tests.builders import Records, recount, rewrite
from tests.certificate.vendor_and_issuer import Json, Lab, put_own

from .attack_table import ATTACKS, NO_CHECK, Attack, attack

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen, of OpenSSH")
LONG_AGO, NEXT_YEAR = "2020-01-01T00:00:00+00:00", "2027-12-01T00:00:00+00:00"


# ── attacks ───────────────────────────────────────────────────────────────────────────────────────


def says(name: str, act: Callable[[Json], object], words: str = "does not follow from the evidence") -> None:
    """Add an attack in which the vendor signs a statement that says something else than the evidence."""
    ATTACKS[f"the statement {name}"] = Attack(lambda lab: lab.change(act), words, "_refuse_difference")


says("passes another type", lambda s: s["predicate"]["passedTests"].append("static-oneapi/bf16"))
says("passes another document", lambda s: s["predicate"]["passedTests"].append("reshape-spec-v0.7/f32"))
says("warns of nothing that was waived", lambda s: s["predicate"]["warnedTests"].append("static-oneapi/f32"))
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


def revocation_list(lab: Lab, name: str) -> Path:
    path = lab.home / "revoked"
    subprocess.run(["ssh-keygen", "-k", "-q", "-f", path, lab.key(f"{name}.pub")], check=True)
    return path


@attack("is not the signature of", "signer_of")
def a_list_of_ssh_keygen_revokes_the_key(lab: Lab) -> Trust:
    return lab.trust(revoked=revocation_list(lab, "vendor"))


def test_a_revocation_list_of_another_key_refuses_nothing(lab: Lab) -> None:
    trust = lab.trust(revoked=revocation_list(lab, "stranger"))
    assert check_certificate(lab.folder, lab.plan, trust).signer == "vendor@example.com"


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
    recount(records)


def drop_row(records: Records) -> None:
    del records[5]
    recount(records)


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
forge("lacks a row", drop_row, "lacks 1 row of the suite")
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
    with pytest.raises(Refused, match=r"statement\.json: is no JSON that this suite writes"):
        check_certificate(lab.folder, lab.plan, Trust())


def test_there_are_at_least_fifty_eight_attacks() -> None:
    assert len(ATTACKS) >= 58


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_refused_by_its_check_alone(lab: Lab, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trust = ATTACKS[name].act(lab) or lab.trust()
    with pytest.raises(Refused, match=ATTACKS[name].words):
        check_certificate(lab.folder, lab.plan, trust)
    monkeypatch.setattr(certificate, ATTACKS[name].check, NO_CHECK[ATTACKS[name].check])
    assert check_certificate(lab.folder, lab.plan, trust).level
