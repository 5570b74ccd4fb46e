"""Signatures of records, by `ssh-keygen -Y`."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from ..evidence.journal import InvalidEvidence
from .statement import RecordFile

TESTER, ISSUER = "reshape-conformance", "reshape-conformance-issuer"
"""The namespaces of statements, and of challenges and audits. Signatures for another purpose are not accepted, and a
line of allowed_signers with `namespaces="reshape-conformance"` lets a key sign statements alone."""
_MAX_SECONDS = 60


def signature_of(path: Path) -> Path:
    """Return the path at which ssh-keygen writes the signature of a file."""
    return Path(f"{path}.sig")


def is_signed(path: Path) -> bool:
    """Ask whether a signature is beside a file. It may be wrong."""
    return signature_of(path).is_file()


def sign(file: RecordFile, key: Path, role: str) -> None:
    """Sign a record with a private key, or with a public one if an agent holds the private one."""
    signature_of(file.path).unlink(missing_ok=True)
    words = ["-f", str(key), "-n", role, str(file.path)]
    _run("sign", words, f"{key}: ssh-keygen cannot sign with it", asks=True)


def signer_of(
    file: RecordFile, role: str, allowed: Path, revoked: Path | None = None, at: datetime | None = None
) -> str:
    """Return the name that `allowed` gives to the key that signed a file; InvalidEvidence if none of them did.

    `allowed` has the form of allowed_signers in ssh-keygen(1), which can also say when a key is valid: it must be so
    now, or `at` a day. `revoked` is a revocation list or a file of public keys.
    """
    signature = signature_of(file.path)
    if not signature.is_file():
        raise InvalidEvidence(f"{file.path}: is not signed; {signature.name} is not beside it")
    found = ["-s", str(signature), "-f", str(allowed), *([f"-Overify-time={at:%Y%m%d}"] if at else ())]
    said = _run("find-principals", found, f"{signature}: is not by a key that {allowed} allows")
    names = list(dict.fromkeys(name for line in said.splitlines() for name in line.split(",")))
    for name in names:
        more = ["-I", name, "-n", role, *(("-r", str(revoked)) if revoked else ())]
        what = f"{signature}: is not the signature of {name} on {file.path.name}"
        try:
            _run("verify", [*found, *more], what, content=file.content)
        except InvalidEvidence:
            if name == names[-1]:
                raise
        else:
            return name
    raise InvalidEvidence(f"{signature}: is not by a key that {allowed} allows")


def _run(action: str, words: Sequence[str], what: str, content: bytes = b"", asks: bool = False) -> str:
    """Run `ssh-keygen -Y`; InvalidEvidence, with its reason, if it fails. With `asks` it may ask for a passphrase."""
    try:
        done = subprocess.run(
            ["ssh-keygen", "-Y", action, *words], input=None if asks else content, capture_output=True, check=False,
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
