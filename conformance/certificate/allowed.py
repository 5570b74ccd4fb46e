"""The ed25519 keys of a file of allowed_signers, as ssh-keygen(1) describes it, for signatures that are not of OpenSSH.

A line that says anything not understood here allows nothing.
"""

from __future__ import annotations

import base64
import re
import subprocess
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from ..evidence.journal import Refused
from ..system.files import read_bytes
from ..system.temporary import temporary_folder

ALGORITHM = "ssh-ed25519"
_BEFORE_KEY = b"\0\0\0\x0bssh-ed25519\0\0\0\x20"
_LINE = re.compile(rf'("[^"]*"|[^\s"#][^\s"]*)\s+(?:((?:[^\s"]|"[^"]*")+)\s+)?{ALGORITHM}\s+([A-Za-z0-9+/=]+)(?:\s.*)?')
_OPTION = re.compile(r'([A-Za-z-]+)="([^"]*)"(?:,|$)')
_KNOWN = frozenset(("namespaces", "valid-after", "valid-before"))
_TIMES = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}
_MOST = 1 << 20
_REVOCATION_LIST = b"SSHKRL\n\0"


class AllowedKey(NamedTuple):
    """A public key that may sign, and the name that the file gives to it."""

    name: str
    key: bytes
    """Its 32 bytes."""


def encode_key(key: bytes) -> str:
    """Write a public key as files of OpenSSH do."""
    return f"{ALGORITHM} {base64.b64encode(_BEFORE_KEY + key).decode()}"


def read_allowed(path: Path, namespace: str) -> tuple[AllowedKey, ...]:
    """Read the ed25519 keys that may sign for a purpose now."""
    return tuple(_keys(_read_text(path), namespace, datetime.now(timezone.utc)))


def refuse_revoked(key: AllowedKey, revoked: Path) -> None:
    """Refuse a key that a file of public keys or a revocation list of ssh-keygen revokes."""
    try:
        is_list = read_bytes(revoked, _MOST).startswith(_REVOCATION_LIST)
    except OSError as error:
        raise Refused(f"{revoked}: cannot be read: {error.strerror}") from None
    words = encode_key(key.key).split()
    if _is_in_list(revoked, words) if is_list else words[1] in _read_text(revoked).split():
        raise Refused(f"{revoked}: revokes the key of {key.name}")


def _is_in_list(revoked: Path, words: list[str]) -> bool:
    """True if a revocation list has a key, or if ssh-keygen cannot say so."""
    with temporary_folder() as folder:
        (folder / "key.pub").write_text(" ".join(words) + "\n", encoding="ascii")
        command = ["ssh-keygen", "-Q", "-f", str(revoked), str(folder / "key.pub")]
        try:
            return subprocess.run(command, capture_output=True, check=False, timeout=60).returncode != 0
        except (FileNotFoundError, subprocess.TimeoutExpired):
            raise Refused(f"{revoked}: takes ssh-keygen to read it, which is not installed or does not end") from None


def _read_text(path: Path) -> str:
    try:
        return read_bytes(path, _MOST).decode("utf-8", "replace")
    except OSError as error:
        raise Refused(f"{path}: cannot be read: {error.strerror}") from None


def _keys(text: str, namespace: str, now: datetime) -> Iterator[AllowedKey]:
    for line in text.splitlines():
        if (found := _LINE.fullmatch(line.strip())) is None:
            continue
        names, options, encoded = found.groups()
        key = _decode_key(encoded)
        if key is not None and _may_sign(options or "", namespace, now):
            yield AllowedKey(names.strip('"').partition(",")[0], key)


def _decode_key(encoded: str) -> bytes | None:
    try:
        blob = base64.b64decode(encoded, validate=True)
    except ValueError:
        return None
    key = blob.removeprefix(_BEFORE_KEY)
    return key if len(key) == 32 and len(blob) == len(_BEFORE_KEY) + 32 else None


def _may_sign(options: str, namespace: str, now: datetime) -> bool:
    """True if the options of a line are understood, and allow a signature for a purpose at a time."""
    given: dict[str, str] = {}
    while options:
        found = _OPTION.match(options)
        if found is None or found[1].lower() not in _KNOWN or found[1].lower() in given:
            return False
        given[found[1].lower()] = found[2]
        options = options[found.end() :]
    return _is_in(given.get("namespaces", "*"), namespace) and _is_valid(given, now)


def _is_in(patterns: str, name: str) -> bool:
    """Match a name with patterns as OpenSSH does: `*` and `?`, and `!` before a pattern that must not match."""
    matching = [each for each in patterns.split(",") if fnmatchcase(name, each.removeprefix("!").replace("[", "[[]"))]
    return bool(matching) and not any(each.startswith("!") for each in matching)


def _is_valid(given: Mapping[str, str], now: datetime) -> bool:
    try:
        after, before = (_time_of(given[key]) if key in given else None for key in ("valid-after", "valid-before"))
    except ValueError:
        return False
    return (after is None or after <= now) and (before is None or now < before)


def _time_of(text: str) -> datetime:
    """Read a time as OpenSSH writes it: in the time zone of this machine, or with Z in UTC."""
    digits = text.removesuffix("Z")
    if len(digits) not in _TIMES or not (digits.isascii() and digits.isdecimal()):
        raise ValueError(text)
    time = datetime.strptime(digits, _TIMES[len(digits)])
    return time.replace(tzinfo=timezone.utc) if text.endswith("Z") else time.astimezone()
