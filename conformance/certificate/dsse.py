"""Signatures in DSSE envelopes with ed25519 keys: https://github.com/secure-systems-lab/dsse, version 1.0.2.

The keys that may sign are those of the file that `ssh-keygen` reads too. Needs the package `cryptography`.
"""

from __future__ import annotations

import base64
import getpass
import hashlib
import importlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..evidence.journal import Refused
from ..evidence.json_forms import decode, misfit
from ..system.files import read_bytes, replace_text
from .allowed import AllowedKey, encode_key, read_allowed, refuse_revoked

_PLAIN, _ENCRYPTED = b"-----BEGIN PRIVATE KEY-----", b"-----BEGIN ENCRYPTED PRIVATE KEY-----"
_MOST = 1 << 17
_MOST_SIGNATURES = 16


def is_pem(key: Path) -> bool:
    """True if a file begins as a private key in PEM does; nothing behind these words is read."""
    with key.open("rb", buffering=0) as stream:
        begin = stream.read(len(_PLAIN))
    return begin in (_PLAIN, _ENCRYPTED[: len(_PLAIN)])


def require_package(key: Path) -> None:
    """Refuse a key in PEM if the package that signs with it is not installed."""
    if is_pem(key):
        _import("hazmat.primitives.serialization", key)


def pae(payload_type: str, payload: bytes) -> bytes:
    """Return the bytes that are signed."""
    type_ = payload_type.encode()
    return b" ".join((b"DSSEv1", b"%d" % len(type_), type_, b"%d" % len(payload), payload))


def keyid_of(key: bytes) -> str:
    """Return the name of a public key that securesystemslib computes and insists on; nothing here depends on it."""
    value = {"keytype": "ed25519", "keyval": {"public": key.hex()}, "scheme": "ed25519"}
    return hashlib.sha256(json.dumps(value, separators=(",", ":"), sort_keys=True).encode()).hexdigest()


# ── signing ───────────────────────────────────────────────────────────────────────────────────────


def sign_envelope(envelope: Path, payload_type: str, payload: bytes, key: Path) -> str:
    """Write an envelope; return the public key. The private key goes from its file to the package, and nowhere else."""
    private = _load_private_key(key)
    public: bytes = private.public_key().public_bytes_raw()
    signature: bytes = private.sign(pae(payload_type, payload))
    content = {
        "payload": base64.b64encode(payload).decode(), "payloadType": payload_type,
        "signatures": [{"keyid": keyid_of(public), "sig": base64.b64encode(signature).decode()}],
    }  # fmt: skip
    replace_text(envelope, json.dumps(content, separators=(",", ":")) + "\n")
    return encode_key(public)


def _load_private_key(path: Path) -> Any:
    load: Any = _import("hazmat.primitives.serialization", path).load_pem_private_key
    kind: Any = _import("hazmat.primitives.asymmetric.ed25519", path).Ed25519PrivateKey
    unsupported: Any = _import("exceptions", path).UnsupportedAlgorithm
    try:
        content = read_bytes(path, _MOST)
        asks = content.startswith(_ENCRYPTED)
        private = load(content, getpass.getpass(f"passphrase of {path}: ").encode() if asks else None)
    except (ValueError, TypeError, EOFError, OSError, unsupported):  # what the package says of a key is not shown
        raise Refused(f"{path}: cannot sign with it; it is no key in PEM, or the passphrase is another") from None
    if not isinstance(private, kind):
        raise Refused(f"{path}: cannot sign with it; envelopes take ed25519, as `openssl genpkey` makes it")
    return private


def _import(name: str, path: Path) -> Any:
    try:
        return importlib.import_module(f"cryptography.{name}")
    except ImportError:
        what = "takes the package cryptography: pip install 'reshape-conformance[sign]'"
        raise Refused(f"{path}: {what}") from None


# ── verifying ─────────────────────────────────────────────────────────────────────────────────────


def signer_of_envelope(
    envelope: Path, payload_type: str, payload: bytes, allowed: Path, namespace: str, revoked: Path | None
) -> str:
    """Return the name that `allowed` gives to the key that signed a payload; Refused if none of its keys did.

    One signature of an allowed key is enough. The payload is what the caller has read: the envelope must hold the same.
    """
    content = _read_envelope(envelope)
    _refuse_other_type(envelope, content["payloadType"], payload_type)
    signed = _decode_base64(content["payload"], envelope)
    _refuse_other_payload(envelope, signed, payload)
    keys = read_allowed(allowed, namespace)
    signatures = [_decode_base64(each["sig"], envelope) for each in content["signatures"]]
    signer = _find_signer(signatures, keys, pae(content["payloadType"], signed), envelope)
    if signer is None:
        raise Refused(f"{envelope}: is not by a key that {allowed} allows for this")
    if revoked is not None:
        refuse_revoked(signer, revoked)
    return signer.name


def _read_envelope(path: Path) -> dict[str, Any]:
    """Read an envelope; as DSSE wants it, unknown keys are ignored."""
    try:
        content = decode(read_bytes(path, _MOST).decode(), twice=False)
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise Refused(f"{path}: is no envelope: {error}") from None
    known: dict[str, Any] = _only(content, "payload", "payloadType", "signatures")
    if isinstance(known.get("signatures"), list):
        known["signatures"] = [_only(each, "sig") for each in known["signatures"]]
    if wrong := misfit(known, {"payload": str, "payloadType": str, "signatures": [{"sig": str}]}):
        raise Refused(f"{path}: is no envelope: {wrong.where or 'it'} {wrong.what}")
    if len(known["signatures"]) > _MOST_SIGNATURES:
        raise Refused(f"{path}: has {len(known['signatures'])} signatures; no envelope here needs more than 16")
    return known


def _only(value: Any, *keys: str) -> dict[str, Any]:
    return {key: value[key] for key in keys if key in value} if isinstance(value, dict) else {}


def _refuse_other_type(envelope: Path, type_: str, due: str) -> None:
    if type_ != due:
        raise Refused(f"{envelope}: is an envelope of {type_[:100]!r}, and this takes {due}")


def _refuse_other_payload(envelope: Path, signed: bytes, payload: bytes) -> None:
    if signed != payload:
        raise Refused(f"{envelope}: signs another text than that of the file beside it")


def _decode_base64(text: str, envelope: Path) -> bytes:
    """Decode Base64, of both alphabets, as DSSE wants it."""
    try:
        return base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except ValueError:
        raise Refused(f"{envelope}: is no envelope: it has a text that is no Base64") from None


def _find_signer(
    signatures: Sequence[bytes], keys: Sequence[AllowedKey], signed: bytes, envelope: Path
) -> AllowedKey | None:
    """Return the first key of which one of the signatures is."""
    signers = (key for key in keys for signature in signatures if _is_signature(signature, key.key, signed, envelope))
    return next(signers, None)


def _is_signature(signature: bytes, key: bytes, signed: bytes, envelope: Path) -> bool:
    public: Any = _import("hazmat.primitives.asymmetric.ed25519", envelope).Ed25519PublicKey
    invalid: Any = _import("exceptions", envelope).InvalidSignature
    try:
        public.from_public_bytes(key).verify(signature, signed)
    except (invalid, ValueError):  # ValueError: 32 bytes that are no point
        return False
    return True
