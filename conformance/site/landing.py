"""The table of backends and documents: a line for each backend and version, the fewest failures first."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from typing import NamedTuple, TypeVar

from ..evidence.drawn import find_comparable
from ..model import BAD
from ..model.verdicts import Label
from ..plan.rows import drawn_number
from ..report.finished_run import FinishedRun
from ..report.rows import group_pairs
from ..report.summary import DocumentState, describe_documents
from ..system.terminal import count_noun

T = TypeVar("T")


class BackendLine(NamedTuple):
    """A backend of one version, with its state in each document."""

    name: str
    page: str | None
    """The link to its report."""
    label: Label
    failed: int
    tests: int
    documents: tuple[DocumentState, ...]
    limits: tuple[str, ...]
    """The limits that the backend has in every document that it claims."""
    change: str
    """What changed since the version before; empty for the oldest one."""
    changes: str | None
    """The link to all of that."""
    latest: bool


class Library(NamedTuple):
    """The versions of one backend, the newest first."""

    name: str
    lines: tuple[BackendLine, ...]


class Numbers(NamedTuple):
    """The numbers at the top of the page."""

    backends: int
    conform: int
    whole: tuple[str, ...]
    """The names of those that conform and leave nothing out."""
    first: str
    last: str
    """The days of the oldest and of the newest run."""
    processors: tuple[str, ...]


Versions = Sequence[tuple[FinishedRun, str, str | None]]
"""Runs of one backend, each with its name and the link to its report."""


def collect_libraries(
    runs: Sequence[FinishedRun], names: Sequence[str], pages: Sequence[str], changes: Mapping[str, str]
) -> list[Library]:
    """Collect the backends, versions of one library together, in the order of the failures of the newest version."""
    links: Iterable[str | None] = pages or [None] * len(runs)
    by_name = group_pairs(
        (str(run.evidence.header["backend"]["name"]), (run, name, page))
        for run, name, page in zip(runs, names, links, strict=True)
    )
    libraries = [Library(name, _lines(versions, changes)) for name, versions in by_name.items()]
    return sorted(libraries, key=lambda library: (library.lines[0].failed, library.name))


def _lines(versions: Versions, changes: Mapping[str, str]) -> tuple[BackendLine, ...]:
    ordered = sorted(versions, key=lambda version: _version(version[0]), reverse=True)
    lines = []
    for number, (bare, name, page) in enumerate(ordered):
        run = bare.with_drawn
        documents = describe_documents(run)
        change = _describe_change(ordered[number + 1][0], bare) if number + 1 < len(ordered) else ""
        link, limits = changes.get(page or ""), _find_common_limits(documents)
        lines.append(
            BackendLine(
                name, page, run.label, run.failed, run.conclusion.tests, documents, limits, change, link, number == 0
            )
        )
    return tuple(lines)


def _find_common_limits(documents: Sequence[DocumentState]) -> tuple[str, ...]:
    claimed = [document.limits for document in documents if document.tests]
    return tuple(limit for limit in (claimed or [()])[0] if all(limit in limits for limits in claimed))


def pair_versions(runs: Iterable[tuple[T, FinishedRun]]) -> Iterator[tuple[tuple[T, FinishedRun], ...]]:
    """Yield each version of a backend together with the one before it, the older first."""
    for versions in group_pairs((str(each[1].evidence.header["backend"]["name"]), each) for each in runs).values():
        yield from pairwise(sorted(versions, key=lambda each: _version(each[1])))


def _version(run: FinishedRun) -> list[tuple[bool, int, str]]:
    """The version as a person orders versions: numbers by their size, before words."""
    parts = re.findall(r"\d+|[A-Za-z]+", str(run.evidence.header["backend"]["version"]))
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]


def _describe_change(old: FinishedRun, new: FinishedRun) -> str:
    """Say how many tests fail no longer, and how many fail that did not."""
    comparable = find_comparable(old.plan, old.evidence, new.evidence)
    was, now = _failing(old, comparable), _failing(new, comparable)
    version = old.evidence.header["backend"]["version"]
    gone, more = len(was - now), len(now - was)
    if not gone and not more:
        return f"since {version}: the same tests fail" if now else f"since {version}: no test fails"
    parts = [f"{count_noun(gone, 'test')} no longer fail"] * bool(gone)
    parts += [f"{count_noun(more, 'test')} fail that did not"] * bool(more)
    return f"since {version}: {', '.join(parts)}"


def _failing(run: FinishedRun, comparable: Set[str]) -> set[tuple[str, str]]:
    """Return the tests that fail, without drawn rows that the other run did not call."""
    return {
        (result.row.id, document)
        for result in run.with_drawn.rows
        if result.failing and (result.row.id in comparable or not drawn_number(result.row.id))
        for document, verdict in run.tests_of(result).items()
        if verdict in BAD
    }


def summarize(runs: Sequence[FinishedRun], libraries: Iterable[Library]) -> Numbers:
    """Count the backends that conform, and say when and where all were run."""
    lines = [line for library in libraries for line in library.lines]
    days = sorted(str(run.evidence.header["started"])[:10] for run in runs)
    processors = dict.fromkeys(str(run.evidence.header["environment"].get("processor", "unknown")) for run in runs)
    return Numbers(
        len(lines), sum(line.label.startswith("conforms") for line in lines),
        tuple(line.name for line in lines if line.label == "conforms"), days[0], days[-1], tuple(processors),
    )  # fmt: skip
