"""Envelopes: made and read here as openssl and securesystemslib make and read them."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformance.certificate import dsse
from conformance.certificate.allowed import encode_key, read_allowed, refuse_revoked
from conformance.evidence.results import Refused

IN_TOTO = "application/vnd.in-toto+json"
PAYLOAD = b'{"_type":"https://in-toto.io/Statement/v1"}\n'
NAMESPACE = "reshape-conformance"
KEY = bytes(range(32))
needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")


def openssl(*words: object) -> bytes:
    return subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True).stdout


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A private key in PEM."""
    pytest.importorskip("cryptography")
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    path = tmp_path / "key.pem"
    private = Ed25519PrivateKey.generate()
    path.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return path


class Signed:
    """An envelope with a file of the key that may sign."""

    def __init__(self, key: Path) -> None:
        self.envelope, self.allowed = key.with_name("statement.dsse.json"), key.with_name("allowed")
        self.public_key = dsse.sign_envelope(self.envelope, IN_TOTO, PAYLOAD, key)
        self.allow("vendor@example.com")

    def allow(self, name: str, options: str = "") -> None:
        self.allowed.write_text(f"# keys\n{name} {options} {self.public_key} a comment\n")

    def change(self, act: Callable[[dict[str, Any]], object]) -> None:
        content = json.loads(self.envelope.read_text())
        act(content)
        self.envelope.write_text(json.dumps(content))

    def signer(self, payload: bytes = PAYLOAD, revoked: Path | None = None) -> str:
        return dsse.signer_of_envelope(self.envelope, IN_TOTO, payload, self.allowed, NAMESPACE, revoked)


@pytest.fixture
def signed(key: Path) -> Signed:
    return Signed(key)


# ── other implementations ─────────────────────────────────────────────────────────────────────────


def test_the_bytes_that_are_signed_are_those_of_the_example_of_dsse() -> None:
    due = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert dsse.pae("http://example.com/HelloWorld", b"hello world") == due
    assert dsse.pae("é", b"").startswith(b"DSSEv1 2 \xc3\xa9 0 ")


@needs_openssl
def test_openssl_verifies_an_envelope_of_ours(signed: Signed, key: Path, tmp_path: Path) -> None:
    content = json.loads(signed.envelope.read_text())
    (tmp_path / "signed").write_bytes(dsse.pae(IN_TOTO, base64.b64decode(content["payload"])))
    (tmp_path / "signature").write_bytes(base64.b64decode(content["signatures"][0]["sig"]))
    words = ("pkeyutl", "-verify", "-rawin", "-inkey", key, "-in", tmp_path / "signed")
    assert b"Verified Successfully" in openssl(*words, "-sigfile", tmp_path / "signature")


@needs_openssl
def test_an_envelope_that_openssl_signed_is_accepted(signed: Signed, key: Path, tmp_path: Path) -> None:
    (tmp_path / "signed").write_bytes(dsse.pae(IN_TOTO, PAYLOAD))
    signature = openssl("pkeyutl", "-sign", "-rawin", "-inkey", key, "-in", tmp_path / "signed")
    envelope = {"payload": base64.b64encode(PAYLOAD).decode(), "payloadType": IN_TOTO,
                "signatures": [{"sig": base64.b64encode(signature).decode()}]}  # fmt: skip
    signed.envelope.write_text(json.dumps(envelope))
    assert signed.signer() == "vendor@example.com"


@needs_openssl
def test_a_key_that_openssl_made_signs(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    openssl("genpkey", "-algorithm", "ed25519", "-out", tmp_path / "key.pem")
    assert dsse.is_pem(tmp_path / "key.pem")
    assert Signed(tmp_path / "key.pem").signer() == "vendor@example.com"


def test_securesystemslib_verifies_an_envelope_of_ours_by_the_key_id_that_it_computes(signed: Signed) -> None:
    library = pytest.importorskip("securesystemslib.dsse")
    signer = pytest.importorskip("securesystemslib.signer")
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key

    public_key = signer.SSlibKey.from_crypto(load_ssh_public_key(signed.public_key.encode()))
    envelope = library.Envelope.from_dict(json.loads(signed.envelope.read_text()))
    assert envelope.payload == PAYLOAD
    assert list(envelope.verify([public_key], 1)) == [public_key.keyid]


def test_an_envelope_of_securesystemslib_is_accepted(signed: Signed, key: Path) -> None:
    library = pytest.importorskip("securesystemslib.dsse")
    signer = pytest.importorskip("securesystemslib.signer")
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    private: Any = load_pem_private_key(key.read_bytes(), None)
    envelope = library.Envelope(PAYLOAD, IN_TOTO, {})
    envelope.sign(signer.CryptoSigner(private))
    signed.envelope.write_text(json.dumps(envelope.to_dict()))
    assert signed.signer() == "vendor@example.com"


# ── what an envelope may say ──────────────────────────────────────────────────────────────────────


def test_both_alphabets_of_base64_are_read_and_unknown_keys_ignored(signed: Signed) -> None:
    def rewrite(content: dict[str, Any]) -> None:
        content["payload"] = content["payload"].replace("+", "-").replace("/", "_")
        signature = content["signatures"][0]
        signature["sig"] = signature["sig"].replace("+", "-").replace("/", "_")
        signature["keyid"], signature["more"], content["extra"] = "another", 1, [1]

    signed.change(rewrite)
    assert signed.signer() == "vendor@example.com"


def test_one_signature_of_an_allowed_key_among_others_is_enough(signed: Signed) -> None:
    signed.change(lambda content: content["signatures"].insert(0, {"sig": base64.b64encode(bytes(64)).decode()}))
    assert signed.signer() == "vendor@example.com"


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda content: content.update(payloadType="text/plain"), "is an envelope of 'text/plain'"),
        (lambda content: content.update(payload=base64.b64encode(b"{}").decode()), "signs another text"),
        (lambda content: content.update(payload="*"), "no Base64"),
        (lambda content: content.update(signatures=[]), "is not by a key that"),
        (lambda content: content.update(signatures=[{}]), "lacks sig"),
        (lambda content: content.update(signatures=["x"]), "lacks sig"),
        (lambda content: content.update(signatures=[{"sig": ""}] * 17), "has 17 signatures"),
        (lambda content: content.pop("payload"), "lacks payload"),
        (lambda content: content["signatures"][0].update(sig="AAAA"), "is not by a key that"),
    ],
)
def test_an_envelope_that_was_changed_is_refused(signed: Signed, act: Callable[[Any], object], words: str) -> None:
    signed.change(act)
    with pytest.raises(Refused, match=words):
        signed.signer()


@pytest.mark.parametrize("text", [b"", b"[]", b"\xff", b'{"payload":1,"payload":2}', b" " * (1 << 18), b"[" * 10000])
def test_a_file_that_is_no_envelope_is_refused(signed: Signed, text: bytes) -> None:
    signed.envelope.write_bytes(text)
    with pytest.raises(Refused, match=r"statement\.dsse\.json: "):
        signed.signer()


def test_the_payload_must_be_the_file_beside_it(signed: Signed) -> None:
    with pytest.raises(Refused, match="signs another text than that of the file beside it"):
        signed.signer(PAYLOAD + b" ")


# ── keys ──────────────────────────────────────────────────────────────────────────────────────────


@needs_openssl
def test_a_key_of_another_kind_or_a_torn_one_is_refused_without_a_word_of_it(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    key = tmp_path / "key.pem"
    openssl("genpkey", "-algorithm", "x25519", "-out", key)
    with pytest.raises(Refused, match="envelopes take ed25519"):
        dsse.sign_envelope(tmp_path / "envelope", IN_TOTO, PAYLOAD, key)
    secret = key.read_text().splitlines()[1]
    key.write_text(key.read_text().replace(secret, secret[:-8]))
    with pytest.raises(Refused, match="is no key in PEM") as refused:
        dsse.sign_envelope(tmp_path / "envelope", IN_TOTO, PAYLOAD, key)
    assert secret[8:16] not in str(refused.value)
    assert not (tmp_path / "envelope").exists()


@needs_openssl
def test_a_key_with_a_passphrase_asks_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("cryptography")
    key = tmp_path / "key.pem"
    openssl("genpkey", "-algorithm", "ed25519", "-aes256", "-pass", "pass:right", "-out", key)
    monkeypatch.setattr("getpass.getpass", lambda prompt: "right")
    assert Signed(key).signer() == "vendor@example.com"
    monkeypatch.setattr("getpass.getpass", lambda prompt: "wrong")
    with pytest.raises(Refused, match="the passphrase is another"):
        Signed(key)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a pipe with a name")
def test_of_a_key_of_openssh_the_first_words_are_read_alone(tmp_path: Path) -> None:
    key = tmp_path / "key"
    os.mkfifo(key)
    reader = os.open(key, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(key, os.O_WRONLY)
    os.write(writer, b"-----BEGIN OPENSSH PRIVATE KEY-----\nsecret\n")
    assert not dsse.is_pem(key)
    assert os.read(reader, 100) == b"KEY-----\nsecret\n"
    os.close(writer)
    os.close(reader)
    (tmp_path / "empty").write_text("")
    assert not dsse.is_pem(tmp_path / "empty")


def test_without_the_package_one_line_says_what_to_install(key: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "cryptography.hazmat.primitives.serialization", None)
    with pytest.raises(Refused, match=r"pip install 'reshape-conformance\[sign\]'"):
        dsse.require_package(key)


# ── the keys that are allowed ─────────────────────────────────────────────────────────────────────


def allowed(tmp_path: Path, line: str) -> list[str]:
    path = tmp_path / "allowed"
    path.write_text(line.replace("KEY", encode_key(KEY)) + "\n")
    return [each.name for each in read_allowed(path, NAMESPACE)]


@pytest.mark.parametrize(
    "line",
    [
        "me KEY", "me KEY and a comment", "  me,other@example.com KEY", '"me" KEY',
        'me namespaces="reshape-conformance" KEY', 'me namespaces="file,reshape-*" KEY', 'me NAMESPACES="*" KEY',
        'me valid-after="20200101",valid-before="21200101120000Z" KEY',
    ],
)  # fmt: skip
def test_a_line_that_allows_a_key(tmp_path: Path, line: str) -> None:
    assert allowed(tmp_path, line) == ["me"]


@pytest.mark.parametrize(
    "line",
    [
        "", "#me KEY", "KEY", "me", "me cert-authority KEY", 'me namespaces="file" KEY', 'me namespaces="" KEY',
        'me namespaces="*,!reshape-conformance" KEY', 'me namespaces="RESHAPE-CONFORMANCE" KEY',
        'me valid-before="20200101" KEY', 'me valid-after="21200101" KEY', 'me valid-after="soon" KEY',
        'me valid-before="2120010" KEY', 'me more="x" KEY', 'me namespaces="*"valid-before="20200101" KEY',
        'me namespaces="file",namespaces="*" KEY', "me ssh-ed25519 AAAA", "me ssh-rsa AAAA", "me ssh-ed25519 !",
    ],
)  # fmt: skip
def test_a_line_that_allows_no_key(tmp_path: Path, line: str) -> None:
    assert allowed(tmp_path, line) == []


@pytest.mark.skipif(shutil.which("ssh-keygen") is None, reason="needs ssh-keygen, of OpenSSH")
@pytest.mark.parametrize("revoke", [False, True])
@pytest.mark.parametrize("as_list", [False, True])
def test_a_key_is_revoked_by_a_file_of_keys_and_by_a_revocation_list(
    signed: Signed, tmp_path: Path, revoke: bool, as_list: bool
) -> None:
    public = tmp_path / "revoked.pub"
    public.write_text(f"{signed.public_key if revoke else encode_key(KEY)} withdrawn\n")
    if as_list:
        subprocess.run(["ssh-keygen", "-k", "-q", "-f", tmp_path / "list", public], check=True)
    revoked = tmp_path / "list" if as_list else public
    if revoke:
        with pytest.raises(Refused, match=r"revokes the key of vendor@example\.com"):
            signed.signer(revoked=revoked)
    else:
        assert signed.signer(revoked=revoked) == "vendor@example.com"


def test_a_revocation_list_that_cannot_be_read_revokes(signed: Signed, tmp_path: Path) -> None:
    (tmp_path / "list").write_bytes(b"SSHKRL\n\0" + bytes(8))
    (key,) = read_allowed(signed.allowed, NAMESPACE)
    with pytest.raises(Refused):
        refuse_revoked(key, tmp_path / "list")
