"""Signatures of records, by `ssh-keygen -Y`."""

from __future__ import annotations

import base64
import hashlib
import re
import subprocess
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from ..evidence.journal import InvalidEvidence, refuse_unreadable
from ..system.exit_codes import CommandError
from ..system.files import read_bytes, temporary_folder
from .statement import RecordFile, write_record

TESTER, ISSUER = "reshape-conformance", "reshape-conformance-issuer"
"""The namespaces of statements, and of challenges and audits. Signatures for another purpose are not accepted, and a
line of allowed_signers with `namespaces="reshape-conformance"` lets a key sign statements alone."""
SIGNERS, REVOKED = "signers", "revoked"
"""The keys that may sign and what is revoked, in the folder of a site."""
_MAX_SECONDS = 60
_KRL = b"SSHKRL\n\x00"
"""The first bytes of a revocation list of ssh-keygen."""
_DIGEST, _FINGERPRINT = re.compile(r"[0-9a-f]{64}"), re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
_ARMOUR = re.compile(rb"-----BEGIN SSH SIGNATURE-----\n([A-Za-z0-9+/=]+\n)+-----END SSH SIGNATURE-----\s*")
"""A file of one signature. What follows the last line no key signed, and ssh-keygen passes over it."""
_MAX_BYTES = 1 << 16
_KEY_TYPE = re.compile(r"(sk-)?(ssh|ecdsa)-[a-z0-9-]+(@openssh\.com)?")


class Signer(NamedTuple):
    """The key that made a signature. Somebody with one key can have two names, so compare keys."""

    name: str
    """The name that the reader's list gives to the key."""
    key: str
    """The fingerprint of the key."""


class Revoked(NamedTuple):
    source: Path | None = None
    digests: frozenset[str] = frozenset()
    """The SHA-256 of statements and audits."""
    keys: frozenset[str] = frozenset()
    """Fingerprints."""
    is_krl: bool = False
    """Whether the source is a list that only ssh-keygen reads."""


NOTHING_REVOKED = Revoked()


def read_revoked(path: Path | None) -> Revoked:
    """Read a list of what is revoked; InvalidEvidence if a part of it is in another form."""
    if path is None:
        return NOTHING_REVOKED
    with refuse_unreadable(path):
        content = read_bytes(path)
    if content.startswith(_KRL):
        _run("-Q", ["-l", "-f", str(path)], f"{path}: is a revocation list that cannot be read in full")
        return Revoked(path, is_krl=True)
    digests, keys = set(), set()
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if _DIGEST.fullmatch(words[0].lower()):
            digests.add(words[0].lower())
        elif key := _fingerprint_of(words):
            keys.add(key)
        else:
            what = f"{line[:40]!r} is neither the SHA-256 of a statement nor a public key as in a .pub file"
            raise InvalidEvidence(f"{path}:{number}: {what}")
    return Revoked(path, frozenset(digests), frozenset(keys))


def _fingerprint_of(words: Sequence[str]) -> str | None:
    """Return the fingerprint of a public key, given as its type and its base64; None if it is not one, or not whole."""
    if len(words) < 2 or not _KEY_TYPE.fullmatch(words[0]):
        return None
    try:
        key = rest = base64.b64decode(words[1], validate=True)
    except ValueError:
        return None
    strings = []
    while rest:  # a key is a row of strings, each after its length
        end = 4 + int.from_bytes(rest[:4], "big")
        if len(rest) < end:
            return None
        strings.append(rest[4:end])
        rest = rest[end:]
    return _find_fingerprint(key) if len(strings) > 1 and strings[0] == words[0].encode() else None


def _find_fingerprint(key: bytes) -> str:
    return "SHA256:" + base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip("=")


_SMALL_ORDER = (
    "00" * 32, "01" + "00" * 31, "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    *(f"{first}{'ff' * 30}7f" for first in ("ec", "ed", "ee")),
)  # fmt: skip
_WEAK_KEYS = frozenset(
    _find_fingerprint(b"\0\0\0\x0bssh-ed25519\0\0\0\x20" + point[:-1] + bytes([point[-1] | sign]))
    for point in map(bytes.fromhex, _SMALL_ORDER)
    for sign in (0, 0x80)
)
"""Keys of ed25519 in a group of up to eight points. Everybody can sign by such a key, and ssh-keygen accepts that."""


def signature_of(path: Path) -> Path:
    return Path(f"{path}.sig")


def is_signed(path: Path) -> bool:
    """Ask whether a signature is beside a file. It may be wrong."""
    return signature_of(path).is_file()


def sign(file: RecordFile, key: Path, role: str) -> None:
    """Sign a record with a private key, or with a public one if an agent holds the private one.

    CommandError if the key cannot sign: it refuses no evidence.
    """
    signature_of(file.path).unlink(missing_ok=True)
    words = ["sign", "-f", str(key), "-n", role, str(file.path)]
    try:
        _run("-Y", words, "ssh-keygen cannot sign with it", asks=True)
    except InvalidEvidence as cannot:
        raise CommandError(f"--key {key}: {cannot}") from None


def try_key(key: Path, role: str, allowed: Path | None = None, revoked: Revoked = NOTHING_REVOKED) -> Signer | None:
    """Sign something, to see early that a key can sign; return the owner of the key if `allowed` is given."""
    with temporary_folder() as folder:
        file = write_record(folder / "try.json", {})
        sign(file, key, role)
        if allowed is None:
            return None
        try:
            return signer_of(file, role, allowed, revoked)
        except InvalidEvidence as refused:
            reason = str(refused).removeprefix(f"{signature_of(file.path)}: ")
            raise InvalidEvidence(f"--key {key}: would not be accepted for {role}: {reason}") from None


def signer_of(
    file: RecordFile, role: str, allowed: Path, revoked: Revoked = NOTHING_REVOKED, at: datetime | None = None
) -> Signer:
    """Return the key that signed a file; InvalidEvidence if `allowed` does not list it, or it is revoked.

    `allowed` has the form of allowed_signers in ssh-keygen(1), which can also say when a key is valid: it must be so
    now, or `at` a day.
    """
    signature = signature_of(file.path)
    if not signature.is_file():
        raise InvalidEvidence(f"{file.path}: is not signed; {signature.name} is not beside it")
    with refuse_unreadable(signature):
        armour = read_bytes(signature, _MAX_BYTES)
    if not _ARMOUR.fullmatch(armour):
        raise InvalidEvidence(f"{signature}: is not one signature alone; restore it as `ssh-keygen -Y sign` wrote it")
    found = ["-s", str(signature), "-f", str(allowed), *([f"-Overify-time={at:%Y%m%d}"] if at else ())]
    not_allowed = f"{signature}: is not by a key that {allowed} allows"
    # this only names who may have the key, and looks neither at the content nor at the role; `verify` below does
    said = _run("-Y", ["find-principals", *found], not_allowed)
    names = list(dict.fromkeys(name for line in said.splitlines() for name in line.split(",")))
    for name in names:
        verify = ["verify", *found, "-I", name, "-n", role]
        try:
            said = _run(
                "-Y", verify, f"{signature}: is not the signature of {name} on {file.path.name}", content=file.content
            )
            break
        except InvalidEvidence:
            if name == names[-1]:
                raise
    else:
        raise InvalidEvidence(not_allowed)
    signer = Signer(name, said.rpartition(" ")[2].strip())
    what = f"{signature}: the key {signer.key} of {name}"
    if not _FINGERPRINT.fullmatch(signer.key):
        raise InvalidEvidence(f"{what} is no fingerprint; install OpenSSH 8.9 or newer")
    if signer.key in _WEAK_KEYS:
        raise InvalidEvidence(f"{what} is weak, so that anybody can sign by it")
    if signer.key in revoked.keys:
        raise InvalidEvidence(f"{what} is revoked, says {revoked.source}")
    if revoked.keys and "-CERT key " in said:
        why = f"is certified by an authority, which {revoked.source} may revoke; make that list by ssh-keygen -k"
        raise InvalidEvidence(f"{what} {why}")
    if revoked.is_krl:
        words = [*verify, "-r", str(revoked.source)]
        _run("-Y", words, f"{what} is revoked, says {revoked.source}", content=file.content)
    return signer


def _run(action: str, words: Sequence[str], what: str, content: bytes = b"", asks: bool = False) -> str:
    """Run `ssh-keygen`; InvalidEvidence, with its reason, if it fails. With `asks` it may ask for a passphrase."""
    try:
        done = subprocess.run(
            ["ssh-keygen", action, *words], input=None if asks else content, capture_output=True, check=False,
            timeout=None if asks else _MAX_SECONDS,
        )  # fmt: skip
    except FileNotFoundError:
        raise InvalidEvidence(
            "ssh-keygen is not installed, which signs and verifies; install OpenSSH 8.9 or newer"
        ) from None
    except subprocess.TimeoutExpired:
        raise InvalidEvidence(f"{what}: ssh-keygen did not end within {_MAX_SECONDS} s") from None
    out, error = (each.decode("utf-8", "replace") for each in (done.stdout, done.stderr))
    if done.returncode:
        said = " ".join((error or out).split())
        raise InvalidEvidence(f"{what} ({said or f'ssh-keygen ended with {done.returncode}'})")
    return out
