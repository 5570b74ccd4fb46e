"""The data of the landing page, which compare_page.py renders: the answer, and the backends, the best first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeVar

from ..adapter import find_bundled, read_bundled_backends
from ..evidence.drawn import count_added
from ..model import BAD, PASS, Claims
from ..model.verdicts import LABELS, SEVERITIES
from ..plan.facets import RUNTIME_SHAPE
from ..report.judged_run import JudgedRun
from ..report.summary import DocumentState, describe_documents
from ..system.groups import group_pairs
from ..verdict.failure_kinds import FailureKind

T = TypeVar("T")


SPECIAL_ZERO = {
    "own": "with the library's own special_zero",
    "by the adapter": "if the adapter adds special_zero",
    "a 0 copies": "with a 0 that copies whatever special_zero says",
    "none": "without special_zero",
}  # fmt: skip
"""What answers special_zero, as a line says it, and in the words of the answer."""
NEEDS = {
    "own": "its own special_zero", "bf16": "bf16", "f16": "f16", "runtime": "shapes at run time",
    "lives": "never ends the process", "right": "never a wrong answer",
    "accepts": "never rejects a legal call",
}  # fmt: skip
"""What a reader can ask for, by the name of the field. A line has the first four; its numbers say the others."""


class BackendLine(NamedTuple):
    """A backend of one version, with its result in each document."""

    name: str
    page: str
    """The link to its report."""
    documents: tuple[DocumentState, ...]
    worst: Mapping[str, tuple[int, ...]]
    """What fails, in words, with the places of the documents in which it does."""
    special_zero: str
    """What answers special_zero."""
    has: tuple[str, ...]
    """The needs that it meets by its own special_zero and by what it claims."""
    before: str
    """The version before; empty for the oldest one."""
    changes: str | None
    """The link to what changed since then."""
    latest: bool
    is_earlier: bool
    """Whether it was run with an earlier suite, which had fewer rows."""


class Library(NamedTuple):
    """The backends of one library: the newest version of each, the best first, then the older ones."""

    name: str
    lines: tuple[BackendLine, ...]

    @property
    def also(self) -> str:
        """Other names that a reader may search for."""
        return " ".join(
            filter(None, (each.also for each in read_bundled_backends().values() if each.library == self.name))
        )


class LandingNumbers(NamedTuple):
    backends: int
    first: str
    last: str
    """The days of the oldest and of the newest run."""
    processors: tuple[str, ...]


def collect_libraries(
    runs: Sequence[JudgedRun], names: Sequence[str], reports: Sequence[str], changes: Mapping[str, str]
) -> list[Library]:
    """Collect the backends by library: those that conform to the first document first, and the worst last."""
    by_library = group_pairs(
        (_library_of(run), (run, name, page)) for run, name, page in zip(runs, names, reports, strict=True)
    )
    libraries = [Library(name, _lay_out(versions, changes)) for name, versions in by_library.items()]
    return sorted(libraries, key=lambda each: (*_rank(each.lines[0].documents[0]), each.name))


def _library_of(run: JudgedRun) -> str:
    """Return the library of a bundled adapter; of another adapter, the name of its backend."""
    bundled = find_bundled(run.backend)
    return bundled.library if bundled else str(run.evidence.header["backend"]["name"])


def _rank(state: DocumentState) -> tuple[bool, int, float]:
    """Order results in a document, the best first."""
    return not state.tests, -[*LABELS].index(state.label), state.failed / max(state.tests, 1)


def _lay_out(runs: Iterable[tuple[JudgedRun, str, str]], changes: Mapping[str, str]) -> tuple[BackendLine, ...]:
    """Make the lines of one library. `runs`: each with its name and the link to its report."""
    lines = []
    of_backend = group_pairs((str(each[0].evidence.header["backend"]["name"]), each) for each in runs)
    for versions in of_backend.values():
        ordered = sorted(versions, key=lambda version: _parse_version(version[0]), reverse=True)
        for number, (bare, name, page) in enumerate(ordered):
            run = bare.with_drawn
            special_zero = _answers_special_zero(bare)
            before = str(ordered[number + 1][0].evidence.header["backend"]["version"]) if ordered[number + 1 :] else ""
            lines.append(
                BackendLine(
                    name, page, describe_documents(run), _describe_worst(run), special_zero,
                    tuple(_find_met(run.claims, special_zero)), before, changes.get(page), number == 0,
                    bool(count_added(bare.plan, bare.evidence)),
                )
            )  # fmt: skip
    return tuple(sorted(lines, key=lambda line: (not line.latest, _rank(line.documents[0]))))


def _describe_worst(run: JudgedRun) -> Mapping[str, tuple[int, ...]]:
    """Name what fails in each document, and say how many other kinds do; see `_name_worst`."""
    found: dict[str, Counter[tuple[int, FailureKind]]] = {document: Counter() for document in run.verdict_by_document}
    for kind, cases in run.failures.items():
        for result in (result for rows in cases.values() for result in rows):
            for document, blamed in run.conclusion.blames.get(result.row.id, {}).items():
                if document in run.tests_of(result):
                    found[document][SEVERITIES.index(blamed.severity), kind] += 1
    return group_pairs((words, place) for place, each in enumerate(found.values()) if (words := _name_worst(each)))


def _name_worst(tests: Mapping[tuple[int, FailureKind], int]) -> str:
    """Name the commonest known cause of the worst severity that has one; a failure of no known cause comes last.

    `tests`: the number of tests by severity and kind. Empty if the label of the result says all that is known.
    """
    if not tests:
        return ""
    (_, first), *_ = sorted(tests, key=lambda each: (each[1].cause is None, each[0], -tests[each]))
    if first.heading == first.severity:
        return ""
    others = len({kind for _, kind in tests} - {first})
    return first.title[:1].upper() + first.title[1:] + (f"; {others} more" if others else "")


def _answers_special_zero(run: JudgedRun) -> str:
    """Say what answers special_zero: nothing if no legal call in which a 0 copies a length was answered.

    Only on an empty src both readings of a 0 are legal, so these calls show whether the library heeds special_zero. A
    fault of another kind may spoil a few of them, and chance may mend a few.
    """
    if run.claims.answers_special_zero:
        return "by the adapter"
    copying: set[str] = set()
    heeded: dict[bool, list[bool]] = {True: [], False: []}
    for each in run.rows:
        step, *more = each.row.case.steps
        (shape, *nodes), flag, outcome = step.shapes, step.special_zero[0], each.result.outcome_of(0)
        if 0 not in shape or all(read.meaning.kind != "legal" for read in each.row.meanings(0)):
            continue
        if 0 not in step.src:
            copying |= {outcome.kind} if flag else set()
        elif not (more or nodes) and any(entry == 0 < length for entry, length in zip(shape, step.src, strict=False)):
            heeded[flag] += [PASS in each.verdicts.values()] * (each.worst in (PASS, *BAD))
    copying -= {"none"}
    if copying and "tensor" not in copying:
        return "none"
    return "own" if all(2 * sum(right) >= len(right) for right in heeded.values()) else "a 0 copies"


def _find_met(claims: Claims, special_zero: str) -> Iterator[str]:
    yield from ["own"] * (special_zero == "own")
    yield from filter(claims.has_type, ("bf16", "f16"))
    yield from ["runtime"] * (not claims.excludes(RUNTIME_SHAPE))


def answer_question(libraries: Iterable[Library]) -> list[str]:
    """Say which libraries conform to the first document, by what answers special_zero in their first line."""
    tested = [library for library in libraries if library.lines[0].documents[0].tests]
    if not tested:
        return ["No library was tested"]
    document = tested[0].lines[0].documents[0].document
    sentences: list[str] = []
    for special_zero, words in SPECIAL_ZERO.items():
        those = [library for library in tested if library.lines[0].special_zero == special_zero]
        conforming = [each.name for each in those if each.lines[0].documents[0].label.startswith("conforms")]
        number = len(conforming)
        noun, to = ("", "") if sentences else (" libraries", f" to {document.title}, {document.edition}")
        verb = "conform" if number > 1 else "conforms"
        if len(those) == 1:
            sentences.append(f"{those[0].lines[0].name}, {words}, {verb if number else 'does not conform'}{to}")
        elif those:
            sentences.append(f"{number or 'None'} of {len(those)}{noun} {verb}{to}{',' * bool(to)} {words}")
            if number:
                sentences[-1] += f": {', '.join(conforming)}"
    return sentences


def pair_versions(runs: Iterable[tuple[T, JudgedRun]]) -> Iterator[tuple[tuple[T, JudgedRun], ...]]:
    """Yield each version of a backend together with the one before it, the older first."""
    for versions in group_pairs((str(each[1].evidence.header["backend"]["name"]), each) for each in runs).values():
        yield from pairwise(sorted(versions, key=lambda each: _parse_version(each[1])))


def _parse_version(run: JudgedRun) -> list[tuple[bool, int, str]]:
    """Return a version as a person orders versions: numbers by their size, before words."""
    parts = re.findall(r"\d+|[A-Za-z]+", str(run.evidence.header["backend"]["version"]))
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]


def collect_numbers(runs: Sequence[JudgedRun], libraries: Iterable[Library]) -> LandingNumbers:
    """Count the backends, and say when and where all were run."""
    days = sorted(str(run.evidence.header["started"])[:10] for run in runs)
    processors = dict.fromkeys(str(run.evidence.header["environment"].get("processor", "unknown")) for run in runs)
    return LandingNumbers(sum(len(library.lines) for library in libraries), days[0], days[-1], tuple(processors))
