"""Builders for tests: specifications, cases, plans, judged runs, forged evidence, and the command in this process."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import pytest

import conformance
from conformance import report
from conformance.adapter import FunctionAdapter, resolve_claims
from conformance.cli.main import main
from conformance.evidence.folder import find_published_results
from conformance.evidence.results import Evidence, OtherFormat, Target, header_of, name_unfinished, read, seal_of
from conformance.evidence.writer import Writer
from conformance.load.cases import load_cases, load_suite
from conformance.load.folders import find_spec_folder
from conformance.load.spec import load_spec
from conformance.meaning.contract import contracts
from conformance.model import Array, Malformed, Problem, Result, Suite
from conformance.plan.rows import Plan, plan_of
from conformance.report.judged_run import JudgedRun, conclude_run
from conformance.report.render import ASSETS, list_assets
from conformance.run.row import run_rows
from conformance.runner import planted_backends
from conformance.site.compare_page import render_pages
from conformance.system.files import replace_text
from conformance.system.progress import Progress
from conformance.verdict import planted

ROOT = Path(conformance.__file__).resolve().parents[1]
REPORTS = ROOT / "reports"
"""Only in a clone."""
DOCUMENTS = ("static-oneapi", "static-graph-v0.9", "static-spec-v0.9", "dynamic-spec-v0.9", "reshape-spec-v0.7")


def some_slow(every: Iterable[str], fast: Container[str]) -> list[Any]:
    """Parameters of a test, all in order; those that are not fast have the mark `slow`."""
    return [each if each in fast else pytest.param(each, marks=pytest.mark.slow) for each in every]


def some_exhaustive(names: Iterable[str]) -> list[Any]:
    """Return all names in order; CI tries every seventh."""
    every = list(names)
    return rest_exhaustive(every, every[::7])


def rest_exhaustive(every: Iterable[str], often: Container[str]) -> list[Any]:
    """Parameters of a test, all in order; those that are not often tried run before a release."""
    marks = [pytest.mark.slow, pytest.mark.exhaustive]
    return [each if each in often else pytest.param(each, marks=marks) for each in every]


FULL_DISK = """import resource, sys
sys.dont_write_bytecode = True  # otherwise Python keeps the beginning of a module as compiled, and fails from then on
resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))
"""


# ── a specification ───────────────────────────────────────────────────────────────────────────────
spec = cache(load_spec)
TINY = {
    "sources": """documents:
  - id: only
    operation: StaticReshape
    title: A page
    edition: Edition 1
    licence: null
    file: page.txt
    sha256: "{digest}"
    lines: 9
    statements: 2
    prose: []
""".format(digest="0" * 64),
    "operations": """operations:
  - id: StaticReshape
    documents: [only]
    shape_passed_as: [attribute]
    types: [f32]
    shape_types: [s64]
    attributes:
      shape: {type: "s64[]", range: any, required: true}
    inputs:
      src: {index: 0, type: T, required: true}
    outputs:
      dst: {index: 0, type: T, required: true}
    names:
      only: {src: src, dst: dst, shape: shape}
    written:
      only:
        version: null
        shape_type: null
        shape_range: null
        shape_default: null
        special_zero_type: null
        special_zero_default: null
        first_index: null
        types: null
""",
    "rules": """rules:
  - id: one-infer
    must: At most one entry of shape is -1.
    stated:
      only: [3, No more than]
    requires: sum(d == -1 for d in shape) <= 1
""",
    "findings": """findings:
  - id: something-is-unsaid
    kind: silence
    about: Something is not said.
    at:
      only: [4, here]
    readings: [It is so.]
    follows: Nothing much.
    rules: [one-infer]
""",
}


def write_tiny_spec(path: Path, **files: str) -> Path:
    """Write a folder `spec` with one rule in it; a file given by name replaces the tiny one."""
    folder = path / "spec"
    folder.mkdir(exist_ok=True)
    for name, text in {**TINY, **files}.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8", newline="")
    return folder


def copy_bundled_spec(path: Path) -> Path:
    """A copy of the bundled specification."""
    folder = path / "spec"
    folder.mkdir()
    for file in find_spec_folder().glob("*.yaml"):
        shutil.copy(file, folder)
    return folder


def one_rule(*lines: str) -> str:
    """rules.yaml with one rule that is stated on line 3; further lines come after its `stated`, from line 6 on."""
    head = TINY["rules"].splitlines()[:5]
    return "\n".join([*head, *(f"    {line}" for line in lines)]) + "\n"


def spoil(path: Path, old: str, new: str, count: int = -1) -> None:
    """Replace a text that a file has, so often or everywhere."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, count), encoding="utf-8")


def quoted(key: str, expression: str) -> str:
    """A key and an expression that needs quotes."""
    return f"{key}: {json.dumps(expression)}"


def problems_of(folder: Path) -> tuple[Problem, ...]:
    """List what is wrong with a folder, its contracts included."""
    try:
        contracts(load_spec(folder))
    except Malformed as malformed:
        return malformed.problems
    return ()


# ── cases, suites and plans ───────────────────────────────────────────────────────────────────────
CASES = """about: A few.
cases:
  - {id: stays, rule: literal-lengths, src: "T[2, 3]", shape: [2, 3], special_zero: false, expect: "T[2, 3]"}
  - {id: flattens, rule: literal-lengths, src: "T[2, 3]", shape: [6], special_zero: false, expect: "T[6]"}
  - {id: two-infers, rule: one-infer, src: "T[4]", shape: [-1, -1], special_zero: false, expect: reject}
  - {id: infers, rule: one-infer, src: "T[4]", shape: [2, -1], special_zero: false, expect: "T[2, 2]"}
  - {id: minus-two, rule: lower-bound, src: "T[4]", shape: [-2], special_zero: false, expect: reject}
  - {id: seven-of-six, rule: same-volume, src: "T[6]", shape: [7], special_zero: false, expect: reject}
  - {id: three-by-two, rule: same-volume, src: "T[6]", shape: [3, 2], special_zero: false, expect: "T[3, 2]"}
  - {id: copies, rule: zero-copies, src: "T[5, 2]", shape: [0, 2, 1], special_zero: true, expect: "T[5, 2, 1]"}
  - {id: empties, rule: zero-literal, src: "T[0, 5]", shape: [7, 0], special_zero: false, expect: "T[7, 0]"}
  - {id: zero-beside-infer, rule: zero-meets-infer, src: "T[0, 3]", shape: [0, -1], special_zero: false, expect: reject}
  - {id: infers-beside-zero, rule: zero-meets-infer, src: "T[3]", shape: [0, -1], special_zero: true, expect: "T[3, 1]"}
  - {id: scalar, rule: rank-zero, src: "T[]", shape: [], special_zero: true, expect: unspecified}
  - id: patterns
    rule: same-content
    src: f32[2, 4]
    shape: [8]
    special_zero: false
    bits: "00000001 80000000 7fa00001 3f800001 007fffff ffc00005 7f800000 00000000"
    expect: f32[8]
  - {id: eight, rule: same-content, src: "T[2, 4]", shape: [4, 2], special_zero: false, expect: "T[4, 2]"}
  - {id: keeps-order, rule: row-major-order, src: "T[2, 3]", shape: [3, 2], special_zero: true, expect: "T[3, 2]"}
  - id: mirrored
    rule: layout-is-no-content
    src: T[3, 4]
    shape: [2, 6]
    special_zero: false
    layout: reversed
    expect: T[2, 6]
  - {id: dense-too, rule: layout-is-no-content, src: "T[3, 4]", shape: [4, 3], special_zero: true, expect: "T[4, 3]"}
  - id: there-and-back
    rule: nodes-compose
    src: T[2, 3]
    shape: [3, 2]
    special_zero: false
    chain: [{shape: [0, -1], special_zero: true}]
    expect: T[3, 2]
  - id: two-calls
    rule: each-call-alone
    src: T[3, 4]
    shape: [4, 3]
    special_zero: false
    steps: [{expect: "T[4, 3]"}, {expect: "T[4, 3]"}]
  - id: without-special-zero
    rule: attributes-required
    src: T[2]
    shape: [2]
    special_zero: true
    attributes: {special_zero: missing}
    expect: reject
"""
IN_PLACE = """about: One more.
cases:
  - id: over-itself
    rule: layout-is-no-content
    src: T[2, 2]
    shape: [4]
    special_zero: false
    in_place: true
    expect: T[4]
"""
FOUR_CASES = """about: A few.
cases:
  - {id: flattens, rule: same-volume, src: "T[2, 3]", shape: [6], special_zero: false, expect: "T[6]"}
  - {id: turns, rule: same-volume, src: "T[2, 3]", shape: [3, 2], special_zero: false, expect: "T[3, 2]"}
  - {id: zero-beside-infer, rule: zero-meets-infer, src: "T[0, 3]", shape: [0, -1], special_zero: false, expect: reject}
  - {id: copies-past-rank, rule: zero-past-rank, src: "T[6]", shape: [2, 0], special_zero: true, expect: unspecified}
"""


def write_cases(folder: Path, *files: str) -> Path:
    """A folder of case files; the few where none is given."""
    path = folder / "cases"
    path.mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(files or (CASES,)):
        (path / f"few{number}.yaml").write_text(text, encoding="utf-8")
    return path


def write_suite(folder: Path, *files: str) -> Path:
    """A folder of a suite with such cases, for `--suite`."""
    return write_cases(folder, *files).parent


def plan_of_cases(folder: Path, *files: str) -> Plan:
    """The plan of such a suite."""
    return plan_of(load_suite(write_suite(folder, *files)))


bundled_plan = cache(lambda: plan_of(load_suite()))
bundled_rows = cache(lambda: {row.id: row for row in bundled_plan().rows})
"""The rows of the bundled suite by their ids."""


def plan_as_bundled(folder: Path, text: str = FOUR_CASES) -> Plan:
    """The plan of a suite of four cases, or of those given, as if they were the bundled ones."""
    return plan_of(Suite(spec(), load_cases(write_cases(folder, text), spec()), "d" * 64))


# ── the command ───────────────────────────────────────────────────────────────────────────────────
Words = str | Sequence[str]


class CommandOutput(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    def expect(
        self, code: int, *, out: Words = (), err: Words = (), text: Words = (), lines: int | None = None
    ) -> CommandOutput:
        """Assert the code; words in the output, in stderr, in the output without line ends; the lines of stderr."""
        assert self.code == code, self
        assert lines is None or self.err.count("\n") == len(self.err.splitlines()) == lines, self
        for stream, words in ((self.out, out), (self.err, err), (self.text, text)):
            for part in (words,) if isinstance(words, str) else words:
                assert part in stream, self
        return self

    @property
    def last(self) -> str:
        """The line that says the exit code and why."""
        return next(line for line in self.out.splitlines() if line.startswith("exit "))

    @property
    def text(self) -> str:
        """The output without line ends, in which a folded sentence is found."""
        return " ".join(self.out.split())

    @property
    def data(self) -> Any:
        """The output of --json."""
        return json.loads(self.out)


def table_of(text: str) -> dict[str, list[str]]:
    """Return the cells of each line of the table that says to which documents a backend conforms, by document."""
    split = (re.split(r" {2,}| \| ", line.strip(" |")) for line in text.splitlines())
    lines = [(document, cells) for document, *cells in split if document in DOCUMENTS and cells]
    return dict(reversed(lines))  # the first of each document: summary.md has another table below


def conforming(text: str) -> set[str]:
    """Return the documents to which a table says that a backend conforms, for whichever type."""
    return {document for document, cells in table_of(text).items() if "yes" in cells}


class Cli:
    """A command in this process: `conformance`, unless another `main` is given."""

    def __init__(self, capsys: pytest.CaptureFixture[str], main: Callable[[Sequence[str]], int] = main) -> None:
        self.capsys, self._main = capsys, main

    def __call__(self, *words: object) -> CommandOutput:
        self.capsys.readouterr()
        Progress.shown = 0  # a traceback that pytest keeps may hold the progress of an earlier command
        code = self._main([str(word) for word in words])
        return CommandOutput(code, *self.capsys.readouterr())


class Command(Cli):
    """`conformance` in this process, on the few cases."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(capsys)
        self.folder, self.cases, self.out = folder, write_cases(folder), folder / "out"

    @property
    def plan(self) -> Plan:
        return plan_of(load_suite(self.folder))

    def run(self, backend: str, *words: object, out: Path | None = None) -> CommandOutput:
        """`conformance run`, in this process, on the few cases; without drawn rows, unless it asks for them."""
        if "--drawn-rows" not in words:
            words = ("--drawn-rows", "0", *words)
        if not {"--isolation", "reference"} & {backend, *map(str, words)} and not backend.startswith("planted:"):
            words = ("--isolation", "none", *words)
        if "--resume" not in words:
            words = ("--out", out or self.out, *words)
        return self("run", backend, "--suite", self.folder, *words)


def spare_planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs count each planted backend as caught by one row, without calling it."""
    monkeypatch.setattr(planted_backends, "_run_planted_backend", lambda *_: 1)


def spare_meetings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `check` count nothing of what meets in the combinations, which takes most of its time on a few cases."""
    monkeypatch.setattr("conformance.cli.check.count_meetings", lambda _: ())


def mini(name: str) -> str:
    """A backend of miniatures.py as the command line names it."""
    return f"tests.miniatures:{name}"


# ── judged runs ───────────────────────────────────────────────────────────────────────────────────
class Right(FunctionAdapter):
    """Refuses what NumPy refuses, and a literal 0 beside a -1; copies nothing."""

    name, version = "right", "1"

    def reshape(self, src: Array, shape: tuple[int, ...], special_zero: bool) -> Array:
        if 0 in shape:
            raise ValueError("shape has a 0")
        return src.reshape(shape)


class Wrong(Right):
    """Turns everything into one dimension."""

    name = "wrong"

    def reshape(self, src: Array, shape: tuple[int, ...], special_zero: bool) -> Array:
        return src.reshape(-1)


class OnlyStatic(Right):
    """Conforms to the documents of StaticReshape, in which no shape arrives at run time."""

    name, operations = "only-static", ("StaticReshape",)


class RejectsAll(Right):
    name = "rejects-all"

    def reshape(self, src: Array, shape: tuple[int, ...], special_zero: bool) -> Array:
        raise ValueError("no")


class WrongBefore(Wrong):
    """An older version of what is right now."""

    name, version = "right", "0.9"


def compare(runs: Sequence[JudgedRun]) -> dict[str, str]:
    """The pages on which runs are side by side; the reports that they lead to are in folders 0, 1, …"""
    return render_pages(runs, [f"{number}/report.html" for number in range(len(runs))], {}, {})


def write_comparison(runs: Sequence[JudgedRun], folder: Path) -> None:
    """Write these pages, and the files that they load."""
    for name, text in (*compare(runs).items(), *((f"{ASSETS}/{each}", text) for each, text in list_assets().items())):
        replace_text(folder / name, text)


def finish_run(
    plan: Plan,
    adapter: FunctionAdapter,
    folder: Path,
    change: Callable[[list[Result]], list[Result]] = list,
    **header: Mapping[str, Any] | list[Any] | str,
) -> JudgedRun:
    """Run an adapter and write its results; `header` replaces parts of the header."""
    pinned = header_of(
        plan.suite, adapter.identity, resolve_claims(adapter, plan.suite.spec.operations), Target(), "my adapter.py:It"
    ) | {"isolation": "worker"}
    writer = Writer(folder / "results.jsonl", {**pinned, "started": "2026-01-02T03:04:05+00:00", **header})
    for result in change(list(run_rows(plan.rows, adapter))):
        writer.row(result)
    writer.close(4321.125, (), dict.fromkeys(planted.names("worker"), 3))
    return conclude_run(plan, read(folder / "results.jsonl"))


def report_run(plan: Plan, adapter: FunctionAdapter, folder: Path, *change: Any, **header: Any) -> JudgedRun:
    """Finish a run, and write all reports too."""
    run = finish_run(plan, adapter, folder, *change, **header)
    report.write(folder, run)
    return run


def write_document_pages(plan: Plan, reports: Path, folders: Iterable[Path]) -> None:
    """Publish the runs of some folders, and write the pages of the site."""
    from conformance.certificate.check import Trust  # most tests publish nothing
    from conformance.site.publish import prepare, publish, write_pages

    for folder in folders:
        publish(prepare(folder / "results.jsonl", plan, reports, Trust()))
    write_pages(reports, plan, Trust())


def build_site(folder: Path) -> Path:
    """A site with three runs, two of them of one backend, and a certificate."""
    from conformance.certificate.statement import STATEMENT, digest_of_file, statement_of, write_record

    plan, started = plan_as_bundled(folder), datetime.now(timezone.utc).isoformat(timespec="seconds")
    for adapter in (Right(), WrongBefore(), Wrong()):
        out = folder / f"{adapter.name}-{adapter.version}"
        run = report_run(plan, adapter, out, started=started)
        if type(adapter) is Right:
            results = digest_of_file(out / "results.jsonl")
            write_record(out / STATEMENT, statement_of(run, plan.suite.digest, results, 365, None))
    write_document_pages(plan, folder / "reports", sorted(folder.glob("*-*")))
    return folder / "reports"


def make_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """Return a folder that all processes of a session share: the first of them makes it while the others wait."""
    import fcntl  # only where there is one

    own = factory.getbasetemp()
    folder = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / name
    with open(f"{folder}.lock", "a+", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.seek(0)
        if not lock.read():
            folder.mkdir()
            make(folder)
            lock.write("made")
    return folder


def published() -> Iterator[tuple[Path, Evidence]]:
    """Yield each folder of `reports/` that holds evidence, and that evidence."""
    for folder in sorted(REPORTS.glob("*/")):
        if (path := find_published_results(folder)) is not None:
            yield folder, read_published(path)


def read_published(path: Path) -> Evidence:
    """Read published evidence; skip the test while that is of an older suite, until all is published again."""
    try:
        evidence = read(path)
    except OtherFormat:
        pytest.skip("reports/ has an older format")
    if not evidence.can_be_judged_by(bundled_plan().suite):
        pytest.skip("reports/ is of an older suite")
    return evidence


# ── evidence that somebody changed and signed again ───────────────────────────────────────────────
Records = list[dict[str, Any]]


def rewrite(path: Path, change: Callable[[Records], object]) -> None:
    """Change the records of a results file, and make every digest right again."""
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    change(records)
    path.write_bytes(sign_records(records))


def sign_records(records: Records) -> bytes:
    """Make a results file of records, with a footer that is true of them."""
    return sign_lines([_line(record) for record in records])


def sign_lines(lines: Sequence[bytes]) -> bytes:
    """Make a results file of lines, with a footer that is true of them."""
    header, *rows = lines[:-1]
    footer = json.loads(lines[-1])
    if isinstance(footer.get("rows"), int):
        footer |= {"rows": len(rows)}
    footer |= {"digest": hashlib.sha256(b"".join(rows)).hexdigest(), "header": hashlib.sha256(header).hexdigest()}
    footer.pop("seal", None)
    footer["seal"] = seal_of(footer)
    return b"".join([*lines[:-1], _line(footer)])


def cut_results(path: Path, lines: Iterable[bytes]) -> None:
    """Leave a results file as an interruption leaves it, with these lines."""
    path.unlink()
    name_unfinished(path).write_bytes(b"".join(lines))


def interrupt(*_: object, **__: object) -> NoReturn:
    raise KeyboardInterrupt


def _line(record: Any) -> bytes:
    return json.dumps(record, separators=(",", ":")).encode() + b"\n"


def flatter(records: Records) -> None:
    """Call every verdict a pass, without counting again."""
    for record in records[1:-1]:
        record["verdicts"] = dict.fromkeys(record["verdicts"], "pass")
        record.pop("diagnosis", None)
        record.pop("detail", None)


def recount(records: Records) -> None:
    """Make the counts in the footer those of the rows."""
    said = dict.fromkeys(records[-1]["verdicts"], 0)
    for record in records[1:-1]:
        for verdict in record["verdicts"].values():
            said[verdict] += 1
    records[-1]["verdicts"] = said


HOSTILE: Sequence[Any] = (None, True, -1, 1e308, 10**30, "x", "\n::error::x", [], {}, ["x"], {"x": []}, [[1]])


def mutations(record: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Places in a record and what may be put there instead; `extra` is a key that no record has."""
    if isinstance(record, dict):
        yield (*path, "extra"), "x"
    if path:
        for value in HOSTILE:
            yield path, value
    if isinstance(record, dict | list):
        for key in record if isinstance(record, dict) else range(len(record)):
            yield from mutations(record[key], (*path, key))


def put(record: Any, path: tuple[Any, ...], value: Any) -> None:
    """Put a value at a place in a record."""
    *outer, last = path
    for key in outer:
        record = record[key]
    record[last] = value
