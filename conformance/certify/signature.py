"""Signatures of files by `ssh-keygen -Y`, which reads the keys: no key is read, kept or copied here."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from .evidence import Refused

TESTER, ISSUER = "reshape-conformance", "reshape-conformance-issuer"
"""The namespaces of statements, and of challenges and audits. Signatures for another purpose are not accepted, and a
line of allowed_signers with `namespaces="reshape-conformance"` lets a key sign statements alone."""
SUFFIX = ".sig"
_SECONDS = 60


def sign(path: Path, key: Path, role: str) -> Path:
    """Sign a file with a private key, or a public one whose private key an agent holds; return the signature's path."""
    signature = Path(f"{path}{SUFFIX}")
    signature.unlink(missing_ok=True)
    _run("sign", ["-f", str(key), "-n", role, str(path)], f"{key}: cannot sign with it", asks=True)
    return signature


def signer_of(path: Path, role: str, allowed: Path, revoked: Path | None = None) -> str:
    """Return the name that `allowed` gives to the key that signed a file; Refused if it is not signed by any of them.

    `allowed` has the form of allowed_signers in ssh-keygen(1), which can also say when a key is valid. `revoked` is a
    revocation list or a file of public keys.
    """
    signature = Path(f"{path}{SUFFIX}")
    if not signature.is_file():
        raise Refused(f"{path}: is not signed; there is no {signature.name} beside it")
    found = ["-s", str(signature), "-f", str(allowed)]
    said = _run("find-principals", found, f"{signature}: is not by a key that {allowed} allows")
    names = list(dict.fromkeys(name for line in said.splitlines() for name in line.split(",")))
    for name in names:
        more = ["-I", name, "-n", role, *(("-r", str(revoked)) if revoked else ())]
        try:
            _run("verify", [*found, *more], f"{signature}: is not the signature of {name} on {path.name}", content=path)
        except Refused:
            if name == names[-1]:
                raise
        else:
            return name
    raise Refused(f"{signature}: is not by a key that {allowed} allows")


def _run(action: str, words: Sequence[str], what: str, content: Path | None = None, asks: bool = False) -> str:
    """Run `ssh-keygen -Y`; Refused, with its reason, if it fails. With `asks` it may ask for a passphrase."""
    try:
        with content.open("rb") if content else nullcontext(None if asks else subprocess.DEVNULL) as stdin:
            done = subprocess.run(
                ["ssh-keygen", "-Y", action, *words], stdin=stdin, capture_output=True, check=False, errors="replace",
                timeout=None if asks else _SECONDS,
            )  # fmt: skip
    except FileNotFoundError:
        raise Refused("ssh-keygen is not installed, which signs and verifies; install OpenSSH 8.9 or newer") from None
    except subprocess.TimeoutExpired:
        raise Refused(f"{what}: ssh-keygen did not end within {_SECONDS} s") from None
    if done.returncode:
        said = " ".join((done.stderr or done.stdout).split())
        raise Refused(f"{what} ({said or f'ssh-keygen ended with {done.returncode}'})")
    return done.stdout
