"""The table of backends: a line for each backend and version, those that conform first and the worst last."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import pairwise
from typing import NamedTuple, TypeVar

from ..evidence.drawn import find_comparable
from ..model import BAD, Claims
from ..model.verdicts import LABELS, Label
from ..plan.facets import RUNTIME_SHAPE
from ..plan.rows import drawn_number
from ..report.finished_run import FinishedRun
from ..report.rows import group_pairs
from ..report.summary import DocumentState, describe_documents
from ..system.terminal import count_noun

T = TypeVar("T")


NEEDS = {
    "own": "its own special_zero", "bf16": "bf16", "f16": "f16", "runtime": "shapes at run time",
    "lives": "never ends the process", "right": "never a wrong answer",
}  # fmt: skip
"""What a reader can ask for, by the name of the field. A line has the first four; its numbers say the others."""


class BackendLine(NamedTuple):
    """A backend of one version, with its result in each document."""

    name: str
    page: str | None
    """The link to its report."""
    label: Label
    worst: str
    """What the worst failure is; empty if nothing failed."""
    failed: int
    tests: int
    documents: tuple[DocumentState, ...]
    has: tuple[str, ...]
    """The needs that it meets by what it claims."""
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
    first: str
    last: str
    """The days of the oldest and of the newest run."""
    processors: tuple[str, ...]


Versions = Sequence[tuple[FinishedRun, str, str | None]]
"""Runs of one backend, each with its name and the link to its report."""


def collect_libraries(
    runs: Sequence[FinishedRun], names: Sequence[str], pages: Sequence[str], changes: Mapping[str, str]
) -> list[Library]:
    """Collect the backends, versions of one library together: those that conform first, and the worst last."""
    links: Iterable[str | None] = pages or [None] * len(runs)
    by_name = group_pairs(
        (str(run.evidence.header["backend"]["name"]), (run, name, page))
        for run, name, page in zip(runs, names, links, strict=True)
    )
    libraries = [Library(name, _lines(versions, changes)) for name, versions in by_name.items()]
    order = [*LABELS]
    return sorted(libraries, key=lambda each: (-order.index(each.lines[0].label), each.lines[0].failed, each.name))


def _lines(versions: Versions, changes: Mapping[str, str]) -> tuple[BackendLine, ...]:
    ordered = sorted(versions, key=lambda version: _version(version[0]), reverse=True)
    lines = []
    for number, (bare, name, page) in enumerate(ordered):
        run = bare.with_drawn
        documents = describe_documents(run)
        change = _describe_change(ordered[number + 1][0], bare) if number + 1 < len(ordered) else ""
        worst = next((kind.title for kind in run.failures if kind.severity), "")
        lines.append(
            BackendLine(
                name, page, run.label, worst, run.failed, run.conclusion.tests, documents, tuple(_find_met(run.claims)),
                change, changes.get(page or ""), number == 0,
            )
        )  # fmt: skip
    return tuple(lines)


def _find_met(claims: Claims) -> Iterator[str]:
    """Yield the needs that a backend meets by what it claims."""
    yield from ["own"] * (not claims.answers_special_zero)
    yield from filter(claims.offers_type, ("bf16", "f16"))
    yield from ["runtime"] * (not claims.excludes(RUNTIME_SHAPE) and len(claims.operations) > 1)


def answer_question(libraries: Iterable[Library]) -> str:
    """Say how many backends conform to the first document, with their own special_zero and without."""
    newest = [library.lines[0] for library in libraries]
    tested = [line for line in newest if line.documents[0].tests]
    if not tested:
        return "No backend was tested"
    document = tested[0].documents[0].document
    parts = []
    for own, words in ((True, "with their own special_zero"), (False, "with one by the adapter")):
        those = [line.documents[0].label for line in tested if ("own" in line.has) == own]
        number = sum(label.startswith("conforms") for label in those)
        parts += [f"{number or 'none'} of {count_noun(len(those), 'backend')} {words}"] * bool(those)
    said = f"{' and '.join(parts)} conform to {document.title}, {document.edition}"
    return f"{said[:1].upper()}{said[1:]}"


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
    """Count the backends, and say when and where all were run."""
    days = sorted(str(run.evidence.header["started"])[:10] for run in runs)
    processors = dict.fromkeys(str(run.evidence.header["environment"].get("processor", "unknown")) for run in runs)
    return Numbers(sum(len(library.lines) for library in libraries), days[0], days[-1], tuple(processors))
