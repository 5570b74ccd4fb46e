"""Attacks on certificates, each refused by one check and accepted without it."""

import base64
import contextlib
import itertools
import shutil
import subprocess
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from conformance.certificate import check as certificate
from conformance.certificate import signature
from conformance.certificate.check import Trust, check_certificate
from conformance.certificate.page import BADGE, PAGE
from conformance.certificate.signature import ISSUER, NOTHING_REVOKED, SIGNERS, TESTER, Signer, signature_of, signer_of
from conformance.certificate.statement import (
    AUDIT,
    CHALLENGE,
    COMMITMENT,
    EXTENSION,
    STATEMENT,
    RecordFile,
    add_days,
    digest_of_file,
    time_of,
)
from conformance.evidence.folder import REPORTS, RESULTS
from conformance.evidence.results import InvalidEvidence, read
from conformance.model.results import NOT_CALLED
from conformance.report.judged_run import conclude_run
from conformance.report.verify import Verification
from conformance.verdict.conclude import conclude_evidence
from tests.builders import Records, recount, rewrite, spoil
from tests.certificate.vendor_and_issuer import Json, Lab, as_it_is, day, put_own, resume

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen, of OpenSSH")
LONG_AGO, NEXT_YEAR = "2020-01-01T00:00:00+00:00", "2027-12-01T00:00:00+00:00"
ANYBODY = Signer("anybody", "SHA256:")
NO_CHECK: dict[str, Callable[..., Any]] = {
    "_refuse_difference": lambda *_: None,
    "_check_times": lambda *_: None,
    "_check_challenge": lambda *_: None,
    "_check_revocation": lambda *_: None,
    "_check_subject": lambda *_: None,
    "_check_issuer": lambda *_: ANYBODY,
    "_check_audit": lambda *_: (ANYBODY, 1 << 30),
    "_check_pages": lambda *_: None,
    "_refuse_other_challenge": lambda *_: None,
    "signer_of": lambda file, *_: Signer(file.path.name, file.path.name),
    "read_revoked": lambda path: NOTHING_REVOKED,
    "refuse_same_key": lambda *_: None,
    "refuse_resumed": lambda *_: None,
    "conclude_claims": conclude_evidence,
    "_refuse_other_suite": lambda *_: None,
    "_refuse_in_process": lambda *_: None,
    "read_record": lambda path, *_: as_it_is(path),
    "_check_digest": lambda *_: None,
    "verify_content": lambda content, plan: Verification((), conclude_run(plan, read(content.path)), ()),
}  # fmt: skip
"""What each check is replaced by to see that it is the one that refuses."""


class Attack(NamedTuple):
    """An attack on a certificate: what is done, the words of the refusal, and the check that refuses."""

    act: Callable[[Lab], object]
    """Changes the folder; returns a Trust if the reader does not know the usual."""
    words: str
    check: str


# ── what is done ──────────────────────────────────────────────────────────────────────────────────


def in_order(*acts: Callable[[Lab], object]) -> Callable[[Lab], object]:
    """Do one after another; the last says what the reader knows."""
    return lambda lab: [act(lab) for act in acts][-1]


def state(act: Callable[[Json], object]) -> Callable[[Lab], None]:
    """Let the vendor sign a statement that says something else than the evidence."""
    return lambda lab: lab.change(act)


def forge(act: Callable[[Records], object]) -> Callable[[Lab], None]:
    """Change the evidence, and make everything again from it."""
    return lambda lab: lab.forge(act)


def write_statement(text: Callable[[str], bytes]) -> Callable[[Lab], None]:
    """Make the statement something that the suite would not write."""

    def act(lab: Lab) -> None:
        path = lab.folder / STATEMENT
        path.write_bytes(text(path.read_text()))
        lab.finish()
        (lab.folder / PAGE).unlink()

    return act


def commit_to(key: str, value: Any) -> Callable[[Lab], None]:
    def act(lab: Lab) -> None:
        lab.change_record(COMMITMENT, lambda record: record.update({key: value}))
        lab.change_challenge(commitment=digest_of_file(lab.folder / COMMITMENT))

    return act


def remove(*names: str) -> Callable[[Lab], None]:
    def act(lab: Lab) -> None:
        for name in names:
            (lab.folder / name).unlink()

    return act


def sign_by_vendor(name: str) -> Callable[[Lab], None]:
    return lambda lab: lab.sign(name, "vendor")


def sign_by_second_name(name: str) -> Callable[[Lab], None]:
    """Let the vendor have an SSH certificate with another name, by an authority that is allowed to sign this file."""
    role = TESTER if name == STATEMENT else ISSUER

    def act(lab: Lab) -> None:
        with (lab.home / SIGNERS).open("a") as allowed:
            authority = lab.key("stranger.pub").read_text()
            allowed.write(f'second@example.com cert-authority,namespaces="{role}" {authority}')
        words = ["ssh-keygen", "-q", "-s", "stranger", "-I", "second", "-n", "second@example.com", "vendor.pub"]
        subprocess.run(words, cwd=lab.home, check=True)
        (lab.folder / f"{name}.sig").unlink()
        sign = f"ssh-add -q vendor && ssh-keygen -q -Y sign -f vendor-cert.pub -n {role} certificate/{name}"
        subprocess.run(["ssh-agent", "sh", "-c", sign], cwd=lab.home, check=True)

    return act


def expire_key(lab: Lab, on: datetime = datetime(2020, 1, 1)) -> None:
    spoil(lab.home / SIGNERS, "namespaces=", f'valid-before="{on:%Y%m%d}",namespaces=')


def revoke(text: str) -> Callable[[Lab], Trust]:
    """Give a list that revokes the vendor's key, with its type, base64 and fingerprint where `text` says."""

    def act(lab: Lab) -> Trust:
        type_, key = lab.key("vendor.pub").read_text().split()[:2]
        listed = subprocess.run(
            ["ssh-keygen", "-l", "-f", lab.key("vendor")], capture_output=True, text=True, check=True
        )
        fields = {"key": f"{type_} {key}", "cut": f"{type_} {key[:40]}", "fingerprint": listed.stdout.split()[1]}
        fields["of_another_type"] = f"ssh-rsa {key}"
        (lab.home / "revoked").write_text(f"# withdrawn\n\n{'0' * 64}  a statement\n{text.format(**fields)}\n")
        return lab.trust(revoked=lab.home / "revoked")

    return act


def cut_revocation_list(lab: Lab) -> Trust:
    path = revocation_list(lab, "vendor")
    path.write_bytes(path.read_bytes()[:-1])
    return lab.trust(revoked=path)


def revocation_list(lab: Lab, name: str) -> Path:
    path = lab.home / "revoked"
    subprocess.run(["ssh-keygen", "-k", "-q", "-f", path, lab.key(f"{name}.pub")], check=True)
    return path


def revoke_record(name: str) -> Callable[[Lab], Trust]:
    def act(lab: Lab) -> Trust:
        (lab.home / "revoked").write_text(f"{digest_of_file(lab.folder / name).upper()}  withdrawn\n")
        return lab.trust(revoked=lab.home / "revoked")

    return act


def know_no_key(revoked: Callable[[Lab], Path]) -> Callable[[Lab], Trust]:
    return lambda lab: Trust(challenge=lab.challenge, revoked=revoked(lab))


def praise(name: str, tag: str) -> Callable[[Lab], None]:
    return lambda lab: spoil(lab.folder / name, tag, f"{tag}The best: ")


def run_tomorrow(lab: Lab) -> None:
    rewrite(lab.folder / RESULTS, lambda records: records[0].update(started=NEXT_YEAR))
    lab.remove_reports()
    lab.change_challenge(expires="2028-01-01T00:00:00+00:00")
    lab.make_statement()


def edit_evidence(lab: Lab) -> None:
    rewrite(lab.folder / RESULTS, lambda records: records[-1].update(notes=["ran on a Sunday"]))
    lab.remove_reports()
    lab.change(lambda statement: None)


def flatter_one(records: Records) -> None:
    record = next(each for each in records[1:-1] if "not claimed" in each["verdicts"].values())
    record["verdicts"] = dict.fromkeys(record["verdicts"], "pass")
    recount(records)


def run_one_type(records: Records) -> None:
    """Let the backend claim f16 too, and ask it for f32 only, as --type does."""
    records[0]["claims"]["not_claimed"].remove("type:f16")
    records[0]["target"]["types"] = ["f32"]
    for record in records[1:-1]:
        if "-f16" in record["row"]:
            record |= {"verdicts": dict.fromkeys(record["verdicts"], "not run"), "outcomes": [NOT_CALLED[0].to_json()]}
            record.pop("digests", None)
    recount(records)


def name_another(key: str, value: Any) -> Callable[[Records], None]:
    return lambda records: records[0]["suite"].update({key: value})


def run_in_process(records: Records) -> None:
    """Pose as a planted backend, which is trusted there."""
    records[0] |= {"isolation": "none", "backend": {**records[0]["backend"], "adapter": "planted:rejects-everything"}}


def run_nowhere(records: Records) -> None:
    run_in_process(records)
    del records[0]["isolation"]


def forget_challenge(statement: Json) -> None:
    statement["predicate"][EXTENSION] |= {"level": "self-tested", "challenge": None}


def drop_drawn_rows(records: Records) -> None:
    del records[0]["drawn"], records[-1]["drawn"]


def name_no_file(records: Records) -> None:
    records[-1].pop("subject", None)
    records[-1].pop("not_named", None)


def drop_row(records: Records) -> None:
    del records[5]
    recount(records)


def swap_content(records: Records) -> None:
    one, two = [each for each in records[1:-1] if each.get("digests")][:2]
    one["digests"], two["digests"] = two["digests"], one["digests"]


def replace_challenge(lab: Lab) -> None:
    lab.change_record(CHALLENGE, lambda record: record.update(nonce="0" * 64))
    lab.sign(CHALLENGE, "issuer")


def give_other_challenge(lab: Lab) -> Trust:
    other = lab.home / "other.json"
    other.write_text(lab.challenge.read_text().replace("2026", "2025"))
    return lab.trust(challenge=other)


def give_other_library(lab: Lab) -> Trust:
    (lab.home / "libother.so").write_bytes(b"\x7fELF")
    return lab.trust(subject=lab.home / "libother.so")


def keep_audit(lab: Lab) -> None:
    audit = (lab.folder / AUDIT).read_bytes()
    lab.change(put_own("validUntil", "2027-01-01T00:00:00+00:00"))
    (lab.folder / AUDIT).write_bytes(audit)
    remove(PAGE, BADGE)(lab)


def audit_next_year(lab: Lab) -> None:
    lab.change_record(AUDIT, lambda record: record["predicate"].update(timeCreated="2027-11-30T00:00:00Z"))
    lab.write_pages()


def change_audit(act: Callable[[Json], object]) -> Callable[[Lab], object]:
    """Let the issuer sign an audit that says something else than the statement."""
    return in_order(
        lambda lab: lab.change_record(AUDIT, act), lambda lab: lab.sign(AUDIT, "issuer"), remove(PAGE, BADGE)
    )


# ── the table ─────────────────────────────────────────────────────────────────────────────────────

OTHERWISE: dict[str, Callable[[Json], object]] = {
    "passes another type": lambda s: s["predicate"]["passedTests"].append("static-oneapi/bf16"),
    "passes another document": lambda s: s["predicate"]["passedTests"].append("reshape-spec-v0.7/f32"),
    "warns of nothing that was waived": lambda s: s["predicate"]["warnedTests"].append("static-oneapi/f32"),
    "calls a pass a failure": lambda s: s["predicate"].update(result="FAILED"),
    "names another operation": put_own("operations", ["StaticReshape", "Reshape-1"]),
    "leaves nothing out": put_own("notClaimed", []),
    "names another backend": put_own("backend", {"name": "other", "version": "1", "digest": None}),
    "names another version": lambda s: s["predicate"][EXTENSION]["backend"].update(version="99"),
    "names another suite version": put_own("version", "99.0 certified by ISO"),
    "names another tester": put_own("tester", "Somebody Else"),
    "names another machine": put_own("environment", "Linux, a better one"),
    "sums up otherwise": put_own("summary", ["the whole target conforms", "conforms to everything"]),
    "began at another time": put_own("started", "2026-11-01T00:00:00+00:00"),
    "names another file": lambda s: s["subject"][0].update(name="libother.so"),
    "names a file outside": lambda s: s["subject"][0].update(name="../../lib.so"),
    "gives a file another digest": lambda s: s["subject"][0]["digest"].update(sha256="0" * 64),
    "drops a file": lambda s: s["subject"].pop(),
    "is about another suite": lambda s: s["predicate"]["configuration"][0]["digest"].update(sha256="0" * 64),
    "is about another adapter": lambda s: s["predicate"]["configuration"][2]["digest"].update(sha256="0" * 64),
}
"""Statements that say something else than the evidence."""
AUDITS: dict[str, Callable[[Json], object]] = {
    "is valid for longer": put_own("validUntil", NEXT_YEAR),
    "shows another type": lambda a: a["predicate"]["properties"].append("RESHAPE_CONFORMS_static-oneapi/bf16"),
    "is of another file": lambda a: a["subject"][0].update(name="libother.so"),
    "is of fewer rows": put_own("called", 1),
    "is of another suite": lambda a: a["predicate"]["verifier"]["policies"][0]["digest"].update(sha256="0" * 64),
}
"""Audits that say something else than the statement."""
COMMITTED = {
    "files": {"lib.so": "0" * 64},
    "claims": {"operations": [], "not_claimed": [], "answers_special_zero": False},
    "backend": {"name": "other", "version": "1", "digest": None},
    "adapter": "./mine.py:Other",
    "suite": "0" * 64,
}
ATTACKS: dict[str, Attack] = {
    **{f"the statement {name}": Attack(state(act), "does not follow from the evidence", "_refuse_difference")
       for name, act in OTHERWISE.items()},
    "it is not signed": Attack(
        in_order(remove(f"{STATEMENT}.sig", AUDIT), lambda lab: lab.finish(key=None)), "is not signed", "signer_of"),
    "a stranger signs": Attack(
        lambda lab: lab.change(lambda statement: None, key="stranger"), "is not by a key that", "signer_of"),
    "it is edited after it was signed": Attack(
        lambda lab: lab.change(put_own("validUntil", "2027-01-01T00:00:00+00:00"), key=None),
        "is not the signature of", "signer_of"),
    "the signature is for another purpose": Attack(
        in_order(lambda lab: lab.change(lambda _: None, key=None), lambda lab: lab.sign(STATEMENT, "vendor", "file")),
        "is not the signature of", "signer_of"),
    "a text follows the signature": Attack(
        lambda lab: spoil(lab.folder / f"{STATEMENT}.sig", "END SSH SIGNATURE-----", "END SSH SIGNATURE-----\naudited"),
        "is not one signature alone", "signer_of"),
    "the key has expired": Attack(expire_key, "is not", "signer_of"),
    "the key is revoked": Attack(
        lambda lab: lab.trust(revoked=lab.key("vendor.pub")), "of vendor@example.com is revoked, says", "signer_of"),
    "a key and a statement are revoked": Attack(revoke("{key} left us"), "is revoked, says", "signer_of"),
    "a list of keys has the authority that certified the key": Attack(
        in_order(sign_by_second_name(STATEMENT), lambda lab: lab.trust(revoked=lab.key("stranger.pub"))),
        "is certified by an authority, which", "signer_of"),
    "a list of ssh-keygen revokes the key": Attack(
        lambda lab: lab.trust(revoked=revocation_list(lab, "vendor")), "is revoked, says", "signer_of"),
    **{f"a key is revoked as {text}": Attack(revoke(text), "revoked:4: .* is neither", "read_revoked")
       for text in ("{cut}", "{of_another_type}", "{fingerprint}", "vendor@example.com {key}", "serial: 1", "0" * 63)},
    "a list of ssh-keygen is cut": Attack(cut_revocation_list, "cannot be read in full", "read_revoked"),
    **{f"{what} revokes keys, and the reader knows none that may sign": Attack(
        know_no_key(list_),
        "no signature is checked without --allowed", "_check_revocation")
       for what, list_ in {
           "a file": lambda lab: lab.key("vendor.pub"), "ssh-keygen": lambda lab: revocation_list(lab, "vendor"),
       }.items()},
    **{f"{name} is revoked": Attack(revoke_record(name), f"{name}: is revoked, says", "_check_revocation")
       for name in (STATEMENT, AUDIT)},
    "it has expired": Attack(state(put_own("validUntil", LONG_AGO)), "expired on 2020-01-01", "_check_times"),
    "it is valid for three years and a day": Attack(
        state(put_own("validUntil", add_days(3 * 366 + 1))), "valid for more than three years", "_check_times"),
    "the run is of tomorrow": Attack(run_tomorrow, "is still to come", "_check_times"),
    "the run is younger than the day that the reader asks about": Attack(
        lambda lab: lab.trust(at=day(-2)), "is still to come", "_check_times"),
    "the reader asks about a day on which the run of tomorrow is old": Attack(
        in_order(run_tomorrow, lambda lab: lab.trust(at=time_of(NEXT_YEAR))), "is still to come", "_check_times"),
    "it has expired on the day that the reader asks about": Attack(
        in_order(Lab.finish, lambda lab: lab.trust(at=day(400))), "expired on ", "_check_times"),
    "the key has expired on the day that the reader asks about": Attack(
        in_order(lambda lab: expire_key(lab, day(20)), lambda lab: lab.trust(at=day(30))), "is not", "signer_of"),
    "the evidence is edited": Attack(
        edit_evidence, "is not the evidence that statement.json is about", "_check_digest"),
    "the evidence is of one type of two": Attack(
        in_order(Lab.forget_the_challenge, forge(run_one_type), lambda lab: lab.trust(challenge=None)),
        "result does not follow from", "conclude_claims"),
    "the evidence hides that rows were resumed": Attack(
        in_order(forge(resume), state(lambda s: s["predicate"][EXTENSION]["summary"].pop())),
        "summary does not follow", "_refuse_difference"),
    **{f"the evidence names another {key} of the suite": Attack(
        forge(name_another(key, value)),
        f"the {key} of the suite there and here differ", "_refuse_other_suite")
       for key, value in {"version": "99 by ISO", "documents": {"static-oneapi": "0" * 64}}.items()},
    **{f"the audit would call the backend in its own process, {what}": Attack(
        in_order(Lab.forget_the_challenge, forge(act), lambda lab: lab.trust(challenge=None)),
        "ran in the suite's own process", "_refuse_in_process")
       for what, act in {"as was said": run_in_process, "and nothing was said": run_nowhere}.items()},
    "the evidence has a verdict that does not follow": Attack(forge(flatter_one), "where", "verify_content"),
    "the evidence lacks a row": Attack(forge(drop_row), "lacks 1 row of the suite", "verify_content"),
    "the evidence has no drawn rows, and nothing fails": Attack(
        in_order(forge(drop_drawn_rows), state(lambda s: s["predicate"].update(result="PASSED"))),
        "result does not follow from", "_refuse_difference"),
    "the evidence has the answers of other calls": Attack(forge(swap_content), "makes it fail", "verify_content"),
    "the reader has neither challenge nor keys": Attack(
        lambda lab: Trust(), "give the issuer's --challenge FILE", "_check_challenge"),
    "nobody signed the challenge": Attack(
        lambda lab: lab.unsign(CHALLENGE), "is not signed", "_check_issuer"),
    "the vendor signed the challenge": Attack(sign_by_vendor(CHALLENGE), "is not the signature of", "_check_issuer"),
    "the vendor is allowed everything and signs the challenge": Attack(
        in_order(Lab.allow_the_vendor_everything, sign_by_vendor(CHALLENGE)),
        "with the key of the statement", "refuse_same_key"),
    "the vendor has a second name and signs the challenge": Attack(
        sign_by_second_name(CHALLENGE), "by second@example.com, with the key of the statement", "refuse_same_key"),
    "the run is older than the challenge": Attack(
        lambda lab: lab.change_challenge(issued=NEXT_YEAR), "after the run began", "_check_challenge"),
    "another challenge lies in the folder": Attack(
        replace_challenge, "is not the challenge that was given", "_refuse_other_challenge"),
    "it answers another challenge": Attack(give_other_challenge, "answers another challenge", "_check_challenge"),
    "the nonce is not that of the challenge": Attack(
        lambda lab: lab.change_challenge(nonce="0" * 64), "was not run under the nonce", "_check_challenge"),
    "the tester chose the nonce": Attack(
        in_order(lambda lab: lab.change(forget_challenge), lambda lab: lab.trust(challenge=None)),
        "under a nonce that the tester chose", "_check_challenge"),
    "the tester chose the nonce, and names no file, so that the level is self-tested": Attack(
        in_order(forge(name_no_file), lambda lab: Trust()), "give the issuer's --challenge FILE", "_check_challenge"),
    "the challenge had expired": Attack(
        lambda lab: lab.change_challenge(expires=LONG_AGO), "before the run began", "_check_challenge"),
    "the commitment is gone": Attack(remove(COMMITMENT), "cannot be read", "_check_challenge"),
    "the commitment was written afterwards": Attack(
        lambda lab: lab.change_record(COMMITMENT, lambda record: record["files"].update({"lib.so": "0" * 64})),
        "is not the commitment", "_check_challenge"),
    **{f"another of the {key} was committed to": Attack(
        commit_to(key, value), f"what is tested differs from it in {key}", "_check_challenge")
       for key, value in COMMITTED.items()},
    "the library is another": Attack(
        give_other_library, "is none of the files that were tested; .* a package has one for all", "_check_subject"),
    "the audit is of another statement": Attack(keep_audit, "is the audit of another statement", "_check_audit"),
    "the vendor signs the audit": Attack(sign_by_vendor(AUDIT), "is not the signature of", "_check_audit"),
    "the vendor is allowed everything and signs the audit": Attack(
        in_order(Lab.allow_the_vendor_everything, sign_by_vendor(AUDIT)),
        "with the key of the statement", "refuse_same_key"),
    "the vendor has a second name and signs the audit": Attack(
        sign_by_second_name(AUDIT), "by second@example.com, with the key of the statement", "refuse_same_key"),
    "the vendor dates the audit, so that it counts for nothing, and its page tells of it": Attack(
        audit_next_year, "is not the signature of", "_check_issuer"),
    "the audit is not signed": Attack(
        lambda lab: lab.unsign(AUDIT), "is not signed", "_check_audit"),
    **{f"the audit {name}": Attack(change_audit(act), "does not follow from the statement", "_check_audit")
       for name, act in AUDITS.items()},
    "the audit is of resumed rows": Attack(
        in_order(forge(resume), Lab.audit), "only a whole run can be audited", "refuse_resumed"),
    **{f"{name} says more": Attack(
        praise(name, tag),
        f"{name}: does not say what statement.json says", "_check_pages")
       for name, tag in {PAGE: "<h1>", BADGE: "<title>"}.items()},
    "the statement has a key twice": Attack(
        write_statement(lambda text: text.replace('"result"', '"result":"FAILED","result"', 1).encode()),
        "twice", "read_record"),
    "the statement is too long": Attack(
        write_statement(lambda text: (text + " " * 10**6).encode()), "cannot be read", "read_record"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_refused_by_its_check_alone(lab: Lab, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trust = ATTACKS[name].act(lab)
    trust = trust if isinstance(trust, Trust) else lab.trust()
    with pytest.raises(InvalidEvidence, match=ATTACKS[name].words):
        check_certificate(lab.folder, lab.plan, trust)
    monkeypatch.setattr(certificate, ATTACKS[name].check, NO_CHECK[ATTACKS[name].check])
    assert check_certificate(lab.folder, lab.plan, trust).level


@pytest.mark.slow
@pytest.mark.parametrize("number", range(14))
def test_a_key_by_which_anybody_signs_is_refused(lab: Lab, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """One of these points is the signature of about one file in eight; ssh-keygen accepts that."""
    points = [bytes.fromhex(point) for point in signature._SMALL_ORDER]
    points += [point[:-1] + bytes([point[-1] | 0x80]) for point in points]
    key = b"".join(map(string, (b"ssh-ed25519", points[number])))
    allowed = lab.home / "weak"
    allowed.write_text(f"anybody ssh-ed25519 {base64.b64encode(key).decode()}\n")
    weak = signature._WEAK_KEYS
    monkeypatch.setattr(signature, "_WEAK_KEYS", frozenset())
    for length, point in itertools.product(range(20), points):
        file = RecordFile(lab.folder / STATEMENT, b" " * length, {})
        signed = string(b"".join(map(string, (b"ssh-ed25519", point + bytes(32)))))
        parts = b"".join(map(string, (key, TESTER.encode(), b"", b"sha512")))
        blob = base64.encodebytes(b"SSHSIG\0\0\0\1" + parts + signed).decode()
        signature_of(file.path).write_text(f"-----BEGIN SSH SIGNATURE-----\n{blob}-----END SSH SIGNATURE-----\n")
        with contextlib.suppress(InvalidEvidence):
            assert signer_of(file, TESTER, allowed).name == "anybody"
            break
    else:
        pytest.skip("this ssh-keygen refuses such keys itself")
    monkeypatch.setattr(signature, "_WEAK_KEYS", weak)
    with pytest.raises(InvalidEvidence, match="is weak"):
        signer_of(file, TESTER, allowed)


def string(content: bytes) -> bytes:
    """A string as SSH writes it: after its length."""
    return len(content).to_bytes(4, "big") + content


def test_a_revocation_list_of_another_key_refuses_nothing(lab: Lab) -> None:
    trust = lab.trust(revoked=revocation_list(lab, "stranger"))
    signer = check_certificate(lab.folder, lab.plan, trust).signer
    assert signer
    assert signer.name == "vendor@example.com"


ODD: dict[str, Any] = {
    "environment does not follow": {"environment": {}},
    "started in the header is": {"started": "0001-01-01T00:00:00+23:00"},
}
"""Parts of a header that no run writes, by the words of their refusal."""


@pytest.mark.parametrize("words", ODD)
def test_evidence_that_no_run_writes_is_refused(lab: Lab, words: str) -> None:
    rewrite(lab.folder / RESULTS, lambda records: records[0].update(ODD[words]))
    digest = {"sha256": digest_of_file(lab.folder / RESULTS)}
    lab.change_record(STATEMENT, lambda record: record["predicate"]["configuration"][1].update(digest=digest))
    lab.sign(STATEMENT, "vendor", TESTER)
    with pytest.raises(InvalidEvidence, match=words):
        check_certificate(lab.folder, lab.plan, lab.trust(), pages=False)


def test_a_challenge_of_the_first_year_is_refused(lab: Lab) -> None:
    lab.change_challenge(issued="0001-01-01")
    with pytest.raises(InvalidEvidence, match=r"challenge\.json: issued is"):
        check_certificate(lab.folder, lab.plan, lab.trust())


@pytest.mark.parametrize("name", REPORTS)
def test_each_edited_report_is_refused(lab: Lab, name: str) -> None:
    path = lab.folder / name
    path.write_text(path.read_text() + "\n")
    with pytest.raises(InvalidEvidence, match=name):
        check_certificate(lab.folder, lab.plan, lab.trust())


def test_a_statement_that_is_no_text_is_refused(lab: Lab) -> None:
    (lab.folder / STATEMENT).write_bytes(b"\xff\xfe{}")
    with pytest.raises(InvalidEvidence, match=r"statement\.json: is no JSON that this suite writes"):
        check_certificate(lab.folder, lab.plan, Trust())


def test_a_statement_as_deep_as_can_be_decoded_is_refused(lab: Lab) -> None:
    for depth in range(800, 1000):
        (lab.folder / STATEMENT).write_text(f'{{"_type":{"[" * depth}{"]" * depth}}}')
        with pytest.raises(InvalidEvidence, match=r"statement\.json: "):
            check_certificate(lab.folder, lab.plan, Trust())
