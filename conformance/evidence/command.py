"""The commands that run a backend again: from the header of its evidence, and without the suite."""

from __future__ import annotations

import importlib
import shlex
from collections.abc import Mapping
from typing import Any

from ..adapter import bundled_backends, name_and_device
from ..isolate.backend import isolation_of
from ..isolate.process.launch import DEFAULT_LIMITS, Limits
from ..model import Unsupported
from ..plan.rows import Row, drawn_number

_MAX_SECONDS = 600.0


def folder_words(header: Mapping[str, Any], option: str = "--") -> list[str]:
    """Return the folders that a run was given, as words of a command."""
    return [str(word) for name, path in header.get("folders", {}).items() for word in (f"{option}{name}", path)]


def limits_of(limits: Limits) -> dict[str, Any]:
    """Return the limits that differ from the usual ones, for a header: seconds of a call, MiB of a process."""
    own = {"timeout": limits.seconds, "memory": limits.memory >> 20}
    usual = {"timeout": DEFAULT_LIMITS.seconds, "memory": DEFAULT_LIMITS.memory >> 20}
    return {name: value for name, value in own.items() if value != usual[name]}


def limits_again(header: Mapping[str, Any]) -> Limits:
    """Return the limits for calling rows of a run again: its time for a call, up to 10 minutes."""
    seconds = header.get("limits", {}).get("timeout", DEFAULT_LIMITS.seconds)
    return DEFAULT_LIMITS._replace(seconds=min(seconds, _MAX_SECONDS))


def run_words(header: Mapping[str, Any]) -> list[str]:
    """Return the command that runs the backend again, with the folders, isolation and limits of the run."""
    backend, isolation = header["backend"]["adapter"], header.get("isolation")
    words = ["conformance", "run", backend, *folder_words(header)]
    if isolation not in (None, isolation_of(backend)):
        words += ["--isolation", isolation]
    if "nonce" in header:
        words += ["--nonce", header["nonce"]]
    for name, value in header.get("limits", {}).items():
        words += [f"--{name}", str(value).removesuffix(".0")]
    return words


def explain_words(header: Mapping[str, Any]) -> list[str]:
    """Return the command that explains a row of the run, without the row."""
    return ["conformance", "explain", *folder_words(header)]


def script_command(row: Row, backend: str) -> str | None:
    """Return the command that writes a script of the library's own calls; None if there is no such script."""
    name, device = name_and_device(backend)
    if name not in bundled_backends() or drawn_number(row.id):
        return None
    repro: Any = importlib.import_module("conformance.adapters.repro")
    write = repro.WRITERS.get(name)
    if write is None or (device is not None and name not in repro.WITH_DEVICE):
        return None
    try:
        write(row, backend)
    except Unsupported:
        return None
    return f"{shlex.join(['conformance', 'explain', row.id, '--backend', backend])} > repeat.py"
