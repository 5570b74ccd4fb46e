"""Small finished runs for tests: a few cases, backends that are right or wrong, and all that is written of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from conformance import report
from conformance.adapter import FunctionAdapter, resolve_claims
from conformance.evidence.results import Target, Writer, header_of, read
from conformance.load.cases import load_cases
from conformance.load.spec import load_spec
from conformance.model import Array, Result, Suite
from conformance.plan.rows import Plan, plan_of
from conformance.report.finished_run import FinishedRun
from conformance.run.row import run
from conformance.verdict import planted
from conformance.verdict.conclude import conclude_evidence

CASES = """about: A few.
cases:
  - {id: flattens, rule: same-volume, src: "T[2, 3]", shape: [6], special_zero: false, expect: "T[6]"}
  - {id: turns, rule: same-volume, src: "T[2, 3]", shape: [3, 2], special_zero: false, expect: "T[3, 2]"}
  - {id: zero-beside-infer, rule: zero-meets-infer, src: "T[0, 3]", shape: [0, -1], special_zero: false, expect: reject}
  - {id: copies-past-rank, rule: zero-past-rank, src: "T[6]", shape: [2, 0], special_zero: true, expect: unspecified}
"""


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


def few(folder: Path, text: str = CASES) -> Plan:
    """The plan of a suite of four cases, or of those given."""
    cases = folder / "cases"
    cases.mkdir(parents=True)
    (cases / "few.yaml").write_text(text, encoding="utf-8")
    spec = load_spec()
    return plan_of(Suite(spec, load_cases(cases, spec), "digest"))


def finished(
    plan: Plan,
    adapter: FunctionAdapter,
    folder: Path,
    change: Callable[[list[Result]], list[Result]] = list,
    **header: Mapping[str, Any] | list[Any] | str,
) -> FinishedRun:
    """A run with its results and all its reports; `header`: what stands there instead."""
    pinned = header_of(
        plan.suite, adapter.identity, resolve_claims(adapter, plan.suite.spec.operations), Target(), "my.py:It"
    ) | {"isolation": "worker"}
    writer = Writer(folder / "results.jsonl", {**pinned, "started": "2026-01-02T03:04:05+00:00", **header})
    for result in change(list(run(plan.rows, adapter))):
        writer.row(result)
    writer.close(4321.125, (), dict.fromkeys(planted.names("worker"), 3))
    evidence = read(folder / "results.jsonl")
    conclusion = conclude_evidence(plan, evidence)
    report.write(folder, plan, evidence, conclusion)
    return FinishedRun(plan, evidence, conclusion)
