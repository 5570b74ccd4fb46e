"""The state of the published results that lab.yaml asks for: current, stale and why, or untried."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple

from conformance.adapter import digest_of_adapter, name_and_device
from conformance.evidence.folder import find_published_results, name_of_folder
from conformance.evidence.journal import JournalReader
from conformance.evidence.results import FORMS, InvalidEvidence, OtherFormat, read_content
from conformance.model import EarlierSuite, Suite
from conformance.site.publish import list_published_folders

from .read import Environment, LabFile

CURRENT, STALE, UNTRIED, FOREIGN = "current", "stale", "untried", "in no environment"


class State(NamedTuple):
    """The state of one folder of results."""

    environment: str
    """Empty for a folder that no environment of lab.yaml writes."""
    backend: str
    folder: str
    word: str
    why: str = ""


def states(lab: LabFile, reports: Path, suite: Suite, days: int) -> Iterator[State]:
    """Yield the state of each backend of each environment, and then of each other folder of results.

    Results are stale if they are of a suite with other rows, of another adapter, or older than some days.
    """
    wanted = set()
    for environment in lab.environments.values():
        for backend in environment.backends:
            folder = folder_of(environment, backend)
            wanted.add(folder)
            path = find_published_results(reports / folder)
            if path is None:
                needs = ", ".join(f"needs {need.replace(':', ' ')}" for need in environment.needs)
                yield State(environment.name, backend, folder, UNTRIED, needs)
            elif reasons := "; ".join(_stale(path, environment.specifier_of(backend), suite, days)):
                yield State(environment.name, backend, folder, STALE, reasons)
            else:
                yield State(environment.name, backend, folder, CURRENT)
    for found in list_published_folders(reports):
        if found.name not in wanted:
            yield State("", "", found.name, FOREIGN)


def folder_of(environment: Environment, backend: str) -> str:
    """Return the name of the folder into which the results of a backend are published."""
    name, device = name_and_device(backend)
    own = name if device is None else f"{name}-{device.partition(':')[0]}"
    return name_of_folder(own, environment.version_of(backend) or "")


def _stale(path: Path, backend: str, suite: Suite, days: int) -> Iterator[str]:
    """Say why results should be made again; their rows are not read, since `conformance verify` does that."""
    try:
        header = JournalReader(io.BytesIO(read_content(path)), path, FORMS).header
        age = datetime.now(timezone.utc) - datetime.fromisoformat(header["started"])
    except OtherFormat:
        yield "another format"
        return
    except (InvalidEvidence, ValueError) as refused:
        yield str(refused)
        return
    earlier = suite.find_earlier(header["suite"]["digest"])
    if earlier != EarlierSuite():
        yield "another suite" if earlier is None else "an earlier suite, with fewer rows"
    if digest_of_adapter(backend) not in (None, header["backend"].get("digest")):  # None: a program that is not built
        yield "another adapter"
    if age > timedelta(days=days):
        yield f"{age.days} days old"
