"""Attacks on certificates that are signed by DSSE envelopes."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from conformance.certificate import dsse
from conformance.certificate.check import Trust
from conformance.certificate.signature import TESTER, sign, signatures_of
from conformance.certificate.statement import AUDIT, STATEMENT
from tests.report.attack_table import attack
from tests.vendor_and_issuer import Lab, as_it_is, put_own


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
