"""Sentences about libraries, each with the published rows that it rests on.

`reports/sentences.yaml` names the rows. A sentence holds if its words are in the file and its rows did what it says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from conformance.evidence.drawn import plan_of_suite
from conformance.evidence.folder import PUBLISHED, find_published_results
from conformance.evidence.results import InvalidEvidence, read, refuse_incomplete
from conformance.load.schema import read_file
from conformance.load.strict_yaml import raise_problems
from conformance.model import BAD, FAIL, NOT_CLAIMED, OBSERVED, PASS, Place, Problem, Result
from conformance.plan.rows import Plan
from conformance.plan.select import BadExpression, parse_selection
from conformance.system.files import read_bytes

FILE = "sentences.yaml"
"""In the folder of published results."""
SCHEMA = str(Path(__file__).with_name("sentences"))
_WORDS = {"tensor": "answered", "crash": "crash", "timeout": "timeout", "rejected": "rejected", "error": "error"}
_CELLS = re.compile(r"^\| (?P<library>[^|]+) \| (?P<found>[^|]+) \|$")


class Rows(NamedTuple):
    """Rows of published results, and what they did."""

    folders: tuple[str, ...]
    expression: str
    """Empty for every row of the suite."""
    every: bool
    did: str


class Sentence(NamedTuple):
    """Words of a file, with the rows that show them."""

    place: Place
    file: str
    says: str
    shown: tuple[Rows, ...]


def load_sentences(path: Path) -> tuple[Sentence, ...]:
    """Read a sentences.yaml; Malformed, with every problem, if it does not fit its schema."""
    content, problems = read_file(path, SCHEMA)
    raise_problems([problem._replace(place=Place(str(path), problem.place.line)) for problem in problems])
    return tuple(
        Sentence(Place(str(path), each.line), each["file"], each["says"], tuple(map(_rows, each["shown"])))
        for each in content["sentences"]
    )


def _rows(entry: dict[str, str]) -> Rows:
    return Rows(tuple(entry["in"]), entry.get("rows", entry.get("some", "")), "some" not in entry, entry["did"])


def check(sentences: Sequence[Sentence], clone: Path, reports: Path, plan: Plan) -> list[Problem]:
    """Return each sentence that is not in its file or not shown by its rows, and those that no rows are named for."""
    texts = {name: _plain(_read(clone / name)) for name in dict.fromkeys(each.file for each in sentences)}
    published = cache(lambda folder: _results(reports / folder, plan))
    folders = sorted({folder for each in sentences for rows in each.shown for folder in rows.folders})
    problems = [Problem(Place(folder, 1), why) for folder in folders if isinstance(why := published(folder), str)]
    for sentence in sentences:
        if _plain(sentence.says) not in texts[sentence.file]:
            problems.append(
                Problem(sentence.place, f"{sentence.file} does not say {sentence.says!r}; correct one of them")
            )
        for rows in sentence.shown:
            problems += [Problem(sentence.place, what) for what in _unshown(rows, published, plan)]
    for name in texts:
        problems += _without_rows(name, _read(clone / name), sentences)
    return problems


def _read(path: Path) -> str:
    return read_bytes(path).decode("utf-8")


def _plain(text: str) -> str:
    """Return the text on one line, without marks of Markdown."""
    return " ".join(re.sub(r"[*`]", "", text).split())


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────


def _results(folder: Path, plan: Plan) -> dict[str, Result] | str:
    """Return the results of a folder by row; or why there are none."""
    path = find_published_results(folder) or folder / PUBLISHED
    try:
        evidence = read(path)
        rows = {result.row for result in evidence.results}
        refuse_incomplete(evidence, {row.id for row in plan_of_suite(plan, evidence).rows} | rows, plan.suite, path)
    except InvalidEvidence as refused:
        return str(refused)
    return {result.row: result for result in evidence.results}


def _unshown(rows: Rows, published: Callable[[str], dict[str, Result] | str], plan: Plan) -> Iterator[str]:
    """Say why rows do not show what they should."""
    try:
        chooses = parse_selection(rows.expression, plan) if rows.expression else lambda row: True
    except BadExpression as bad:
        yield f"{rows.expression!r}: {bad}"
        return
    chosen = [row.id for row in plan.rows if chooses(row)]
    for folder in rows.folders:
        results = published(folder)
        if isinstance(results, str):  # said once for each folder
            continue
        called = [results[row] for row in chosen if row in results and results[row].outcome.reached_library]
        wrong = [result for result in called if not _did(result, rows.did)]
        if not called:
            yield f"{folder}: no row of {rows.expression!r} was called"
        elif len(wrong) == len(called) or (rows.every and wrong):
            first = f"{wrong[0].row} did not: {_describe(wrong[0])}"
            yield f"{folder}: {rows.did!r} is shown by {len(called) - len(wrong)} of {len(called)} rows; {first}"


def _did(result: Result, did: str) -> bool:
    verdicts = set(result.verdicts.values())
    if did == "no fail":
        return not verdicts & set(BAD)
    if did == "fail":
        return FAIL in verdicts
    if did == "pass":
        return verdicts <= {PASS, OBSERVED, NOT_CLAIMED}
    if did.startswith("diagnosis: "):
        return result.diagnosis == did.removeprefix("diagnosis: ")
    return _describe(result).startswith(did)


def _describe(result: Result) -> str:
    """Say what a row did: `answered [2, 3]`, `crash`."""
    outcome = result.outcome
    word = _WORDS.get(outcome.kind, outcome.kind)
    return f"{word} {[*outcome.dims]}" if outcome.dims is not None else word


# ── the text ──────────────────────────────────────────────────────────────────────────────────────


def _without_rows(name: str, text: str, sentences: Sequence[Sentence]) -> Iterator[Problem]:
    """Find parts of the table of what libraries do, between semicolons, that no rows are named for."""
    named = [_plain(each.says) for each in sentences if each.file == name]
    in_table = False
    for number, line in enumerate(text.splitlines(), 1):
        cells = _CELLS.match(line)
        if cells and cells["library"] == "library":
            in_table = True
        elif not line.startswith("|"):
            in_table = False
        elif in_table and cells:
            for part in map(_plain, cells["found"].split(";")):
                if not any(words in part or part in words for words in named):
                    yield Problem(Place(name, number), f"no rows are named for {part[:90]!r}; add them to {FILE}")
