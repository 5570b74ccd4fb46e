"""A suite of a few cases for tests: enough for every verdict, for the planted backends and for most facets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import conformance
from conformance.cli.main import main
from conformance.load.cases import with_cases
from conformance.load.folders import spec_folder
from conformance.load.spec import load_spec
from conformance.model import Suite
from conformance.plan.rows import Plan, plan_of
from conformance.runner import planted_backends as canary
from conformance.verdict import planted

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
DOCUMENTS = ("static-oneapi", "static-graph-v0.9", "static-spec-v0.9", "dynamic-spec-v0.9", "reshape-spec-v0.7")
ROOT = Path(conformance.__file__).resolve().parents[1]
spec = cache(load_spec)
Words = str | Sequence[str]


def cases(folder: Path, *files: str) -> Path:
    """A folder of case files; the few where none is given."""
    path = folder / "cases"
    path.mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(files or (CASES,)):
        (path / f"few{number}.yaml").write_text(text, encoding="utf-8")
    return path


def plan(folder: Path, *files: str) -> Plan:
    """The plan of such a folder."""
    return plan_of(suite(None, cases(folder, *files)))


def suite(_: Path | None, path: Path) -> Suite:
    """Like `load_suite`, with the specification, and cases that are the same, read once in a process."""
    texts = tuple((each.name, each.read_text(encoding="utf-8")) for each in sorted(path.iterdir()))
    if texts not in _SUITES:
        _SUITES[texts] = with_cases(spec(), spec_folder(), path)
    return _SUITES[texts]


_SUITES: dict[tuple[tuple[str, str], ...], Suite] = {}
_PLANS: dict[str, Plan] = {}


def plan_once(suite: Suite) -> Plan:
    """Like `plan_of`, once for each suite in a process."""
    if suite.digest not in _PLANS:
        _PLANS[suite.digest] = plan_of(suite)
    return _PLANS[suite.digest]


class Said(NamedTuple):
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    def expect(
        self, code: int, *, out: Words = (), err: Words = (), text: Words = (), lines: int | None = None
    ) -> Said:
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


class Cli:
    """`conformance` in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: object) -> Said:
        self.capsys.readouterr()
        code = main([str(word) for word in words])
        return Said(code, *self.capsys.readouterr())


class Command(Cli):
    """The same, on the few cases."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(capsys)
        self.folder, self.cases, self.out = folder, cases(folder), folder / "out"

    def run(self, backend: str, *words: object, out: Path | None = None) -> Said:
        """`conformance run`, in this process, on the few cases; calls are drawn only if `--hunt` asks for them."""
        if "--hunt" not in words:
            words = ("--hunt", "0", *words)
        if not {"--isolation", "reference"} & {backend, *map(str, words)} and not backend.startswith("broken:"):
            words = ("--isolation", "none", *words)
        if "--resume" not in words:
            words = ("--out", out or self.out, *words)
        return self("run", backend, "--cases", self.cases, *words)


@pytest.fixture
def command(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command, with the suite read once, and the results alone written."""
    monkeypatch.setattr("conformance.report.write", lambda *_: ())
    return _quick(tmp_path, capsys, monkeypatch)


@pytest.fixture
def reporting(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """The same, and the reports too."""
    return _quick(tmp_path, capsys, monkeypatch)


def _quick(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setattr("conformance.cli.run.load_suite_of", lambda args: suite(args.spec, args.cases))
    monkeypatch.setattr("conformance.cli.run.plan_of", plan_once)
    monkeypatch.setattr("conformance.cli.merge.load_plan", lambda args: plan_once(suite(args.spec, args.cases)))
    return Command(tmp_path, capsys)


def spare_planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs take the planted backends for caught, without calling them in processes of their own."""
    monkeypatch.setattr(canary, "count_failures", lambda *_: dict.fromkeys(planted.names("worker"), 1))


def mini(name: str) -> str:
    """A backend of miniatures.py as the command line names it."""
    return f"tests.miniatures:{name}"
