"""Certificates: the way from commitment to audit, and attacks, each refused by one check and accepted without it."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from conformance.adapter import digest_of_adapter
from conformance.certify import statement as records
from conformance.certify.conclude import conclude_evidence
from conformance.certify.evidence import Refused, read
from conformance.certify.folder import REPORTS, RESULTS
from conformance.certify.signature import ISSUER, TESTER, sign
from conformance.certify.statement import AUDIT, CHALLENGE, COMMITMENT, EXTENSION, STATEMENT, digest_of_file
from conformance.cli import audit
from conformance.cli.main import main
from conformance.plan.rows import Plan
from conformance.report import certificate
from conformance.report.certificate import PAGE, Trust, check_certificate, render_certificate
from conformance.report.verify import Verified
from conformance.report.verify import verify as verify_folder
from conformance.tests import small
from conformance.tests.forged import Records, count, rewrite
from conformance.tests.small import Cli

pytestmark = pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen, of OpenSSH")
BACKEND = """
from adapters.numpy_reference import NumpyReference
from conformance.model import Claims

class Mine(NumpyReference):
    claims = Claims(operations=("StaticReshape",), leaves_out=("type:f16", "type:bf16", "chain", "in-place"))
"""
LONG_AGO, NEXT_YEAR = "2020-01-01T00:00:00+00:00", "2027-12-01T00:00:00+00:00"
Json = dict[str, Any]


class Lab(NamedTuple):
    """A folder of keys, and the certificate of a vendor that an issuer challenged and ran again."""

    home: Path

    @property
    def plan(self) -> Plan:
        return small.plan_once(small.suite(None, self.cases))

    @property
    def cases(self) -> Path:
        return self.home / "cases"

    def command(self, *words: object) -> int:
        return main([*map(str, words), "--cases", str(self.cases)])

    @property
    def folder(self) -> Path:
        return self.home / "certificate"

    @property
    def challenge(self) -> Path:
        return self.home / CHALLENGE

    def key(self, name: str) -> Path:
        return self.home / name

    def trust(self, **more: Any) -> Trust:
        return replace(Trust(self.home / "allowed", challenge=self.challenge), **more)

    def change(self, act: Callable[[Json], object], key: str | None = "vendor") -> None:
        """Change the statement as somebody with the vendor's key can: sign it again, and make its page again."""
        path = self.folder / STATEMENT
        content = json.loads(path.read_text())
        act(content)
        path.write_text(json.dumps(content, separators=(",", ":")) + "\n")
        self.finish(content, key)

    def finish(self, content: Json, key: str | None = "vendor") -> None:
        (self.folder / AUDIT).unlink(missing_ok=True)
        if key:
            sign(self.folder / STATEMENT, self.key(key), TESTER)
        (self.folder / PAGE).write_text(render_certificate(self.folder, content))

    def state_anew(self) -> None:
        """Make the statement that follows from the evidence as it is now, as a forger can."""
        old = json.loads((self.folder / STATEMENT).read_text())["predicate"][EXTENSION]
        path = self.folder / RESULTS
        evidence = read(path)
        conclusion = conclude_evidence(self.plan, evidence)
        new = records.statement_of(evidence, digest_of_file(path), conclusion, 365, old["challenge"])
        (self.folder / STATEMENT).write_text(records.encode_record(new))
        self.finish(new)

    def change_challenge(self, **values: str) -> None:
        """Change the challenge as an issuer can who errs: sign it, and state its digest."""
        self.change_record(CHALLENGE, lambda record: record.update(values))
        shutil.copy(self.folder / CHALLENGE, self.challenge)
        sign(self.folder / CHALLENGE, self.key("issuer"), ISSUER)
        self.change(partial(put_own, "challenge", digest_of_file(self.challenge)))

    def allow_the_vendor_everything(self) -> None:
        allowed = self.home / "allowed"
        allowed.write_text(allowed.read_text().replace(f'namespaces="{TESTER}" ', ""))

    def change_record(self, name: str, act: Callable[[Json], object]) -> None:
        path = self.folder / name
        content = json.loads(path.read_text())
        act(content)
        path.write_text(json.dumps(content, separators=(",", ":")) + "\n")


def make_key(home: Path, name: str) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", home / name], check=True)
    return (home / f"{name}.pub").read_text().strip()


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    home = tmp_path_factory.mktemp("lab")
    lab = Lab(home)
    (home / "mine.py").write_text(BACKEND)
    vendor, issuer, _ = (make_key(home, name) for name in ("vendor", "issuer", "stranger"))
    (home / "allowed").write_text(
        f'vendor@example.com namespaces="{TESTER}" {vendor}\nlab@example.com namespaces="{ISSUER}" {issuer}\n'
    )
    small.cases(home)
    backend, trust = f"{home / 'mine.py'}:Mine", ("--allowed", home / "allowed", "--challenge", lab.challenge)
    issuer_key, out = ("--key", lab.key("issuer")), ("--out", lab.folder)
    assert lab.command("certify", backend, "--commit", *out) == 0
    assert lab.command("challenge", lab.folder / COMMITMENT, *issuer_key, "--out", lab.challenge) == 0
    more = ("--key", lab.key("vendor"), "--by", "Mine Ltd", "--challenge", lab.challenge)
    assert lab.command("certify", backend, *more, *out) == 0
    assert lab.command("audit", lab.folder, backend, *trust, *issuer_key) == 0
    return lab


@pytest.fixture
def lab(original: Lab, tmp_path: Path) -> Lab:
    return Lab(Path(shutil.copytree(original.home, tmp_path / "lab")))


_VERIFIED: dict[str, Verified] = {}


def verify_once(folder: Path, plan: Plan) -> Verified:
    """Verify a folder; of folders with the same evidence and reports, one."""
    content = b"".join(hashlib.sha256((folder / name).read_bytes()).digest() for name in (RESULTS, *REPORTS))
    key = hashlib.sha256(content).hexdigest()
    if key not in _VERIFIED:
        _VERIFIED[key] = verify_folder(folder, plan)
    return _VERIFIED[key]


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate, "verify", verify_once)


# ── the way of a certificate ──────────────────────────────────────────────────────────────────────


def test_a_certificate_that_was_run_again_is_at_level_three(lab: Lab) -> None:
    checked = check_certificate(lab.folder, lab.plan, lab.trust())
    assert (checked.level, checked.signer, checked.issuer) == ("re-run", "vendor@example.com", "lab@example.com")


def test_without_the_issuers_word_it_is_challenged_and_without_a_challenge_self_tested(lab: Lab) -> None:
    (lab.folder / AUDIT).unlink()
    lab.finish(json.loads((lab.folder / STATEMENT).read_text()))
    assert check_certificate(lab.folder, lab.plan, lab.trust()).level == "challenged"
    out = lab.home / "alone"
    assert lab.command("certify", f"{lab.home / 'mine.py'}:Mine", "--out", out) == 0
    checked = check_certificate(out, lab.plan, Trust())
    assert (checked.level, checked.signer) == ("self-tested", None)
    assert "Not signed: anybody can have written this page" in " ".join((out / PAGE).read_text().split())


def test_an_audit_of_some_rows_is_no_re_run(lab: Lab) -> None:
    lab.change_record(AUDIT, lambda record: record["predicate"][EXTENSION].update(rows=50))
    sign(lab.folder / AUDIT, lab.key("issuer"), ISSUER)
    page = render_certificate(lab.folder, json.loads((lab.folder / STATEMENT).read_text()))
    assert "50 of " in page
    (lab.folder / PAGE).write_text(page)
    checked = check_certificate(lab.folder, lab.plan, lab.trust())
    assert (checked.level, checked.issuer, checked.audited_rows) == ("challenged", "lab@example.com", 50)


def test_the_signed_challenge_beside_it_serves_those_who_did_not_give_it(lab: Lab) -> None:
    assert check_certificate(lab.folder, lab.plan, lab.trust(challenge=None)).level == "re-run"


def test_the_files_under_test_are_the_subject(lab: Lab) -> None:
    numpy = next(name for name in read(lab.folder / RESULTS).footer["subject"] if "_multiarray_umath" in name)
    import numpy as np

    file = Path(np.__file__).parent.parent / numpy
    assert check_certificate(lab.folder, lab.plan, lab.trust(subject=file)).level == "re-run"


@pytest.mark.parametrize("name", [STATEMENT, AUDIT, COMMITMENT, CHALLENGE])
def test_each_record_is_small(lab: Lab, name: str) -> None:
    assert (lab.folder / name).stat().st_size < 3072


def test_the_command_says_what_holds_and_ends_with_0(lab: Lab, cli: Cli) -> None:
    words = ("verify", lab.folder, "--certificate", "--allowed", lab.home / "allowed", "--cases", lab.cases)
    cli(*words).expect(0, out=(": re-run", "rows run again by lab@example.com", "the certificate is true"))
    cli(*words, "--conforms", "static-2022").expect(1, out="not shown: static-2022/")


def test_a_register_lists_every_certificate_and_why_one_is_refused(lab: Lab, cli: Cli) -> None:
    shutil.copytree(lab.folder, lab.home / "other")
    (lab.home / "other" / PAGE).write_text("<p>We conform.</p>")
    said = cli("register", lab.home, "--allowed", lab.home / "allowed", "--cases", lab.cases).expect(1)
    entries = {entry["folder"]: entry for entry in json.loads((lab.home / "register.json").read_text())}
    assert entries["certificate"]["level"] == "re-run"
    assert entries["other"]["why"] == "certificate.html: does not say what statement.json says"
    assert "refused" in said.out
    assert 'href="certificate/certificate.html"' in (lab.home / "register.html").read_text()


def test_an_audit_of_another_file_under_the_same_name_is_refused(lab: Lab, cli: Cli) -> None:
    def swap(records: Records) -> None:
        name = next(iter(records[-1]["subject"]))
        records[-1]["subject"][name] = "0" * 64

    rewrite(lab.folder / RESULTS, swap)
    (lab.folder / COMMITMENT).unlink()
    lab.change(lambda statement: statement["predicate"][EXTENSION].update(level="self-tested", challenge=None))
    lab.state_anew()
    backend = f"{lab.home / 'mine.py'}:Mine"
    assert lab.command("report", lab.folder) == 0
    cli("audit", lab.folder, backend, "--rows", 1, "--cases", lab.cases).expect(1, err="is another file here")


def test_an_audit_with_another_adapter_is_refused(lab: Lab, cli: Cli) -> None:
    (lab.home / "mine.py").write_text((lab.home / "mine.py").read_text() + "# the same\n")
    words = ("--allowed", lab.home / "allowed", "--cases", lab.cases)
    cli("audit", lab.folder, f"{lab.home / 'mine.py'}:Mine", *words).expect(1, err="is another adapter than the one")


def test_an_audit_signs_nothing_if_an_answer_differs(lab: Lab, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    source = (lab.home / "mine.py").read_text()
    (lab.home / "mine.py").write_text(source + "    def copy_elements(self, src, dst, may): return src.array() * 0\n")
    due = read(lab.folder / RESULTS).header["backend"]["digest"]
    monkeypatch.setattr(audit, "digest_of_adapter", lambda backend: due)
    (lab.folder / AUDIT).unlink()
    trust = ("--allowed", lab.home / "allowed", "--cases", lab.cases)
    said = cli("audit", lab.folder, f"{lab.home / 'mine.py'}:Mine", *trust).expect(1)
    assert "gave other answers here; nothing is signed" in said.out
    assert not (lab.folder / AUDIT).exists()


# ── attacks ───────────────────────────────────────────────────────────────────────────────────────


class Attack(NamedTuple):
    """An attack on a certificate: what is done, the words of the refusal, and the check that refuses."""

    act: Callable[[Lab], Trust | None]
    """Changes the folder; returns what the reader knows, if it is not the usual."""
    words: str
    check: str


ATTACKS: dict[str, Attack] = {}
NO_CHECK: dict[str, Callable[..., Any]] = {
    "_refuse_difference": lambda *_: None,
    "_check_times": lambda *_: None,
    "_check_challenge": lambda *_: None,
    "_check_revoked": lambda *_: None,
    "_check_subject": lambda *_: None,
    "_check_issuer": lambda *_: "lab",
    "_check_audit": lambda *_: ("anybody", 1 << 30),
    "_check_page": lambda *_: None,
    "signer_of": lambda path, *_: path.name,
    "read_record": lambda path, _: json.loads(path.read_bytes().decode(errors="replace")),
    "_check_digest": lambda *_: None,
    "verify": lambda folder, plan: Verified((), conclude_evidence(plan, read(folder / RESULTS)),
                                            read(folder / RESULTS), ()),
}  # fmt: skip


def attack(words: str, check: str) -> Callable[[Callable[[Lab], Trust | None]], None]:
    def add(act: Callable[[Lab], Trust | None]) -> None:
        ATTACKS[act.__name__.replace("_", " ").strip()] = Attack(act, words, check)

    return add


def says(name: str, act: Callable[[Json], object], words: str = "does not follow from the evidence") -> None:
    """Add an attack in which the vendor signs a statement that says something else than the evidence."""
    ATTACKS[f"the statement {name}"] = Attack(lambda lab: lab.change(act), words, "_refuse_difference")


def put_own(key: str, value: Any, statement: Json) -> None:
    statement["predicate"][EXTENSION][key] = value


says("passes another type", lambda s: s["predicate"]["passedTests"].append("static-2022/bf16"))
says("passes another document", lambda s: s["predicate"]["passedTests"].append("reshape-2020/f32"))
says("warns of nothing that was waived", lambda s: s["predicate"]["warnedTests"].append("static-2022/f32"))
says("calls a pass a failure", lambda s: s["predicate"].update(result="FAILED"))
says("names another operation", partial(put_own, "operations", ["StaticReshape", "Reshape-1"]))
says("leaves nothing out", partial(put_own, "leavesOut", []))
says("names another backend", partial(put_own, "backend", {"name": "other", "version": "1", "adapter": None}))
says("names another version", lambda s: s["predicate"][EXTENSION]["backend"].update(version="99"))
says("names another suite version", partial(put_own, "version", "99.0 certified by ISO"))
says("names another tester", partial(put_own, "by", "Somebody Else"))
says("names another machine", partial(put_own, "environment", "Linux, a better one"))
says("sums up otherwise", partial(put_own, "summary", ["the whole target conforms", "conforms to everything"]))
says("began at another time", partial(put_own, "started", "2026-11-01T00:00:00+00:00"))
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
    lab.finish(json.loads((lab.folder / STATEMENT).read_text()), key=None)


@attack("is not by a key that", "signer_of")
def a_stranger_signs(lab: Lab) -> None:
    lab.change(lambda statement: None, key="stranger")


@attack("is not the signature of", "signer_of")
def it_is_edited_after_it_was_signed(lab: Lab) -> None:
    lab.change(partial(put_own, "validUntil", "2027-01-01T00:00:00+00:00"), key=None)


@attack("is not the signature of", "signer_of")
def the_signature_is_for_another_purpose(lab: Lab) -> None:
    lab.change(lambda statement: None, key=None)
    sign(lab.folder / STATEMENT, lab.key("vendor"), "file")


@attack("is not", "signer_of")
def the_key_has_expired(lab: Lab) -> None:
    allowed = lab.home / "allowed"
    allowed.write_text(allowed.read_text().replace("namespaces=", 'valid-before="20200101",namespaces='))


@attack("is not the signature of", "signer_of")
def the_key_is_revoked(lab: Lab) -> Trust:
    return lab.trust(revoked=lab.key("vendor.pub"))


@attack("is revoked, says", "_check_revoked")
def the_statement_is_revoked(lab: Lab) -> Trust:
    (lab.home / "revoked").write_text(f"{digest_of_file(lab.folder / STATEMENT)}  withdrawn by the vendor\n")
    return lab.trust(revoked=lab.home / "revoked")


@attack("expired on 2020-01-01", "_check_times")
def it_has_expired(lab: Lab) -> None:
    lab.change(partial(put_own, "validUntil", LONG_AGO))


@attack("valid for more than three years", "_check_times")
def it_is_valid_for_ever(lab: Lab) -> None:
    lab.change(partial(put_own, "validUntil", "2999-01-01T00:00:00+00:00"))


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

    ATTACKS[f"the evidence {name}"] = Attack(change, words, "verify")


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
    sign(lab.folder / CHALLENGE, lab.key("vendor"), ISSUER)


@attack("who signed the statement too", "_check_issuer")
def the_vendor_is_allowed_everything_and_signs_the_challenge(lab: Lab) -> None:
    lab.allow_the_vendor_everything()
    sign(lab.folder / CHALLENGE, lab.key("vendor"), ISSUER)


@attack("began before", "_check_challenge")
def the_run_is_older_than_the_challenge(lab: Lab) -> None:
    lab.change_challenge(issued=NEXT_YEAR)


@attack("is not the file that was given", "_check_issuer")
def another_challenge_lies_in_the_folder(lab: Lab) -> None:
    lab.change_record(CHALLENGE, lambda record: record.update(nonce="0" * 64))


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
    lab.change(partial(put_own, "validUntil", "2027-01-01T00:00:00+00:00"))
    (lab.folder / AUDIT).write_bytes(audit)
    (lab.folder / PAGE).unlink()


@attack("is not the signature of", "_check_audit")
def the_vendor_signs_the_audit(lab: Lab) -> None:
    sign(lab.folder / AUDIT, lab.key("vendor"), ISSUER)


@attack("who signed the statement too", "_check_audit")
def the_vendor_is_allowed_everything_and_signs_the_audit(lab: Lab) -> None:
    lab.allow_the_vendor_everything()
    sign(lab.folder / AUDIT, lab.key("vendor"), ISSUER)


@attack("is not signed", "_check_audit")
def the_audit_is_not_signed(lab: Lab) -> None:
    (lab.folder / f"{AUDIT}.sig").unlink()


@attack("has expired", "_check_audit")
def the_audit_has_expired(lab: Lab) -> None:
    lab.change_record(AUDIT, lambda record: record["predicate"][EXTENSION].update(validUntil=LONG_AGO))
    sign(lab.folder / AUDIT, lab.key("issuer"), ISSUER)


@attack("does not say what statement.json says", "_check_page")
def the_page_says_more(lab: Lab) -> None:
    page = lab.folder / PAGE
    page.write_text(page.read_text().replace("<h1>", "<h1>The best: "))


def written(name: str, text: Callable[[str], bytes], words: str) -> None:
    """Add an attack in which the statement is no JSON of ours."""

    def act(lab: Lab) -> None:
        path = lab.folder / STATEMENT
        content = json.loads(path.read_text())
        path.write_bytes(text(path.read_text()))
        lab.finish(content)
        (lab.folder / PAGE).unlink()

    ATTACKS[f"the statement {name}"] = Attack(act, words, "read_record")


written("has a key twice", lambda text: text.replace('"result"', '"result":"FAILED","result"', 1).encode(), "twice")
written("is too long", lambda text: (text + " " * 10**6).encode(), "cannot be read")


def test_a_statement_that_is_no_text_is_refused(lab: Lab) -> None:
    (lab.folder / STATEMENT).write_bytes(b"\xff\xfe{}")
    with pytest.raises(Refused, match=r"statement\.json: is no JSON of ours"):
        check_certificate(lab.folder, lab.plan, Trust())


@pytest.mark.parametrize("name", [STATEMENT, RESULTS, PAGE, CHALLENGE, COMMITMENT])
def test_a_folder_in_place_of_a_file_is_one_line(lab: Lab, cli: Cli, name: str) -> None:
    (lab.folder / name).unlink()
    (lab.folder / name).mkdir()
    words = ("--allowed", lab.home / "allowed", "--cases", lab.cases)
    cli("verify", lab.folder, "--certificate", *words).expect(1, lines=1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--certificate", "--claims", "claims.yaml"), "--claims does not go with --certificate"),
        (("--certificate", "--require", "large"), "--require does not go with --certificate"),
        (("--allowed", "signers"), "--allowed is about a certificate; add --certificate"),
        (("--subject", "lib.so"), "--subject is about a certificate; add --certificate"),
    ],
)
def test_an_option_that_would_check_nothing_is_refused(lab: Lab, cli: Cli, words: tuple[str, ...], said: str) -> None:
    cli("verify", lab.folder, *words, "--cases", lab.cases).expect(2, err=said)


def test_revoked_keys_need_those_that_are_allowed(lab: Lab) -> None:
    with pytest.raises(Refused, match="no signature is checked without --allowed"):
        check_certificate(lab.folder, lab.plan, Trust(challenge=lab.challenge, revoked=lab.key("vendor.pub")))


def test_what_the_vendor_waives_shows_nothing_to_others(lab: Lab, cli: Cli) -> None:
    (lab.home / "wrong.py").write_text(BACKEND + "    def copy_elements(self, src, dst, may): return src.array() * 0\n")
    waivers = lab.home / "waivers.yaml"
    waivers.write_text(
        "waivers:\n  - {case: '*[a-z]*', reason: All., link: 'https://e.example', owner: me, expires: '2027-01-01'}\n"
    )
    out = lab.home / "waived"
    words = (f"{lab.home / 'wrong.py'}:Mine", "--waivers", waivers, "--out", out)
    lab.command("certify", *words)
    said = cli("verify", out, "--certificate", "--cases", lab.cases).expect(1)
    assert "the certificate is true" in said.out


@pytest.mark.skipif(sys.platform != "linux", reason="reads the map of memory of Linux")
def test_a_library_that_was_unlinked_is_refused(lab: Lab, cli: Cli) -> None:
    import numpy.linalg._umath_linalg as library

    hidden = str(lab.home / "libhidden.so")
    hides = f"""
import ctypes, os, shutil
shutil.copy({library.__file__!r}, {hidden!r})
ctypes.CDLL({hidden!r})
os.unlink({hidden!r})
"""
    (lab.home / "hides.py").write_text(hides + BACKEND)
    words = (f"{lab.home / 'hides.py'}:Mine", "--commit", "--cases", lab.cases, "--out", lab.home / "hides")
    cli("certify", *words).expect(1, err="libhidden.so")


def test_the_digest_of_an_adapter_covers_the_files_beside_it_that_it_imports(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("import helper\nfrom more import thing\n")
    (tmp_path / "helper.py").write_text("one = 1\n")
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "__init__.py").write_text("from .inner import thing\n")
    (tmp_path / "more" / "inner.py").write_text("thing = 1\n")
    digests = [digest_of_adapter(f"{tmp_path / 'mine.py'}:Mine")]
    for name in ("helper.py", "more/__init__.py", "more/inner.py"):
        (tmp_path / name).write_text((tmp_path / name).read_text() + "# other\n")
        digests.append(digest_of_adapter(f"{tmp_path / 'mine.py'}:Mine"))
    assert len(set(digests)) == 4


def test_there_are_at_least_forty_attacks() -> None:
    assert len(ATTACKS) >= 40


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_is_refused_by_its_check_alone(lab: Lab, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trust = ATTACKS[name].act(lab) or lab.trust()
    with pytest.raises(Refused, match=ATTACKS[name].words):
        check_certificate(lab.folder, lab.plan, trust)
    monkeypatch.setattr(certificate, ATTACKS[name].check, NO_CHECK[ATTACKS[name].check])
    assert check_certificate(lab.folder, lab.plan, trust).level
