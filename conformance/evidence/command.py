"""The commands that run a backend again: from the header of its evidence, and without the suite."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from ..adapter import name_and_device, read_bundled_backends
from ..isolate.backend import choose_limits, isolation_of
from ..isolate.process.launch import DEVICE_MEMORY, ProcessLimits
from ..model import Unsupported
from ..plan.quick import QUICK
from ..plan.rows import Row, parse_drawn_id
from .results import Target

_MAX_SECONDS = 600.0


def list_suite_options(header: Mapping[str, Any]) -> list[str]:
    """Return the folder of the suite that a run was given, as words of a command."""
    folder = header.get("folders", {}).get("suite")
    return ["--suite", folder] if folder else []


def list_pytest_suite_options(header: Mapping[str, Any]) -> list[str]:
    """Return the same for pytest, which looks for its configuration beside a path that follows a blank."""
    return [f"--conformance-suite={folder}" for folder in list_suite_options(header)[1:]]


def limits_of(limits: ProcessLimits, backend: str) -> dict[str, Any]:
    """Return the limits that are not the backend's usual ones, for a header: seconds of a call, MiB of a process."""
    usual = choose_limits(backend)
    own = {"timeout": (limits.seconds, usual.seconds), "memory": (limits.memory >> 20, usual.memory >> 20)}
    return {name: value for name, (value, usual_value) in own.items() if value != usual_value}


def read_process_limits(header: Mapping[str, Any], backend: str) -> ProcessLimits:
    """Return the limits of a run, to call its rows again: up to 10 minutes, and as much memory as on a device."""
    limits = header.get("limits", {})
    own = choose_limits(backend, limits.get("timeout"), limits.get("memory"))
    return own._replace(seconds=min(own.seconds, _MAX_SECONDS), memory=min(own.memory, DEVICE_MEMORY))


def list_run_words(header: Mapping[str, Any]) -> list[str]:
    """Return the command that runs the backend again, with the suite, isolation and limits of the run."""
    backend, isolation = header["backend"]["adapter"], header.get("isolation")
    words = ["conformance", "run", backend, *list_suite_options(header)]
    if isolation not in (None, isolation_of(backend)):
        words += ["--isolation", isolation]
    if "nonce" in header:
        words += ["--nonce", header["nonce"]]
    for name, value in header.get("limits", {}).items():
        words += [f"--{name}", str(value).removesuffix(".0")]
    return words


def list_same_run(header: Mapping[str, Any]) -> list[str]:
    """Return the command that makes the same run again: `list_run_words`, with the part of the suite that ran."""
    target, words = Target.from_json(header["target"]), list_run_words(header)
    parts = {
        "--operation": target.operations, "--type": target.types, "--document": target.documents,
        "--require": target.require, "--last-failed": (target.last_failed,), "--shard": (target.shard,),
        "--claims": (header.get("folders", {}).get("claims"),),
        "--waivers": dict.fromkeys(waiver["place"].rpartition(":")[0] for waiver in header.get("waivers", ())),
    }  # fmt: skip
    words += [word for option, values in parts.items() for value in values if value for word in (option, value)]
    words += ["--large"] * target.large
    if target.select:
        return [*words, *([QUICK] if target.select == QUICK else ["-k", target.select])]
    return [*words, *(["--drawn-rows", str(header["drawn"]["rows"])] if "drawn" in header else [])]


def list_row_options(row: Row) -> list[str]:
    """Return the options that choose one row."""
    return ["-k", row.id, *(["--large"] if "large" in row.facets else [])]


def list_explain_words(header: Mapping[str, Any]) -> list[str]:
    return ["conformance", "explain", *list_suite_options(header)]


def make_script_parts(row: Row, backend: str) -> Any:
    """Return the parts of the script of the library's own calls; None if there is no such script."""
    name, device = name_and_device(backend)
    if name not in read_bundled_backends() or parse_drawn_id(row.id):
        return None
    repro: Any = importlib.import_module("conformance.adapters.repro")
    write = repro.WRITERS.get(name)
    if write is None or (device is not None and name not in repro.WITH_DEVICE):
        return None
    try:
        return write(row, backend)
    except Unsupported:
        return None
