"""The adapters in C and JavaScript conform; the same C with a bug planted does not."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Generator
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

from conformance.adapter import bundled_folder
from conformance.cli.main import main
from conformance.isolate.backend import use_backend
from conformance.isolate.launch import Limits
from conformance.load.cases import load_suite
from conformance.model import Result
from conformance.plan.rows import Plan, Row, plan_of
from conformance.prove.mutants import rows_to_run
from conformance.run.row import run

COMPILER = shutil.which("cc")
NODE = shutil.which("node")
SOURCE = bundled_folder() / "c" / "reshape.c"
SCRIPT = bundled_folder() / "javascript" / "reshape.mjs"
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler named cc here")
needs_node = pytest.mark.skipif(NODE is None, reason="there is no node here")

BUGS = {
    1: ("STRIDES_IGNORED", "layout-is-no-content"),
    2: ("ZEROS_LITERAL", "zero-copies"),
    3: ("INFER_FORGETS_COPIES", "infer-keeps-count"),
    4: ("PRODUCT_WRAPS", "same-volume"),
    5: ("NAN_QUIETED", "same-content"),
    6: ("SRC_CHANGED", "each-call-alone"),
    7: ("EMPTY_CRASHES", "zero-literal"),
    8: ("DECLARED_BELIEVED", "declared-output"),
    9: ("TWO_INFERRED", "one-infer"),
    10: ("SHAPE_FROZEN", "each-call-alone"),
    11: ("SHORT_ANSWER", "same-content"),
    12: ("HANGS_ON_RANK_13", "rank-limit"),
}
"""Each planted bug, and a rule whose cases must catch it."""


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_of(load_suite())


def compiled(folder: Path, bug: int = 0) -> str:
    assert COMPILER is not None
    program = folder / f"reshape-{bug}"
    flags = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1", f"-DBUG={bug}"]
    subprocess.run([COMPILER, *flags, "-o", str(program), str(SOURCE)], check=True)
    return f"cmd:{program}"


def chosen(plan: Plan, rule: str | None = None, most: int = 100_000) -> list[Row]:
    rows = [row for row in plan.rows if not row.case.large and rule in (None, row.case.rule)]
    return rows[:: max(1, len(rows) // most)]


def results(backend: str, rows: list[Row], seconds: float = 60.0) -> Generator[Result, None, None]:
    with use_backend(backend, "worker", Limits(seconds=seconds)) as adapter:
        yield from run(rows, adapter)


def is_bad(result: Result) -> bool:
    return not {"fail", "error", "not run"}.isdisjoint(result.verdicts.values())


def caught(plan: Plan, backend: str, rule: str) -> bool:
    """Whether some row of a rule is bad; another goes first, for the first call may take as long as a start."""
    rows = [plan.rows[0], *chosen(plan, rule, 60)]
    with closing(results(backend, rows, 0.5)) as found:
        return any(map(is_bad, islice(found, 1, None)))


@needs_compiler
def test_the_adapter_in_c_conforms_to_every_document(plan: Plan, tmp_path: Path) -> None:
    rows = [row for row in chosen(plan) if row.case.at_once == 1]  # it has one thread, and leaves these out
    found = list(results(compiled(tmp_path), rows))
    bad = list(filter(is_bad, found))
    assert not bad, bad[:3]
    assert not [each for each in found if "not claimed" in each.verdicts.values()]


@needs_compiler
@pytest.mark.parametrize("bug", BUGS)
def test_a_bug_planted_in_it_is_caught_by_a_case_of_its_rule(plan: Plan, tmp_path: Path, bug: int) -> None:
    name, rule = BUGS[bug]
    assert re.search(rf"{name},? +/\* {bug}\b", SOURCE.read_text()), f"{name} is not number {bug} in the list of bugs"
    assert caught(plan, compiled(tmp_path, bug), rule), f"no case of {rule} notices {name}"


@needs_compiler
def test_check_adapter_notes_its_product_of_32_bits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check-adapter", compiled(tmp_path, 4)]) == 0
    assert "note volume: [2, 3] → [2, 2147483651] has 2^32 elements too many" in capsys.readouterr().out
    assert main(["check-adapter", compiled(tmp_path)]) == 0
    assert "ok   volume: a volume that is equal only in 32 bits is rejected" in capsys.readouterr().out


@needs_compiler
def test_a_rule_that_no_planted_bug_breaks_passes(plan: Plan, tmp_path: Path) -> None:
    assert not caught(plan, compiled(tmp_path, 5), "one-infer")


@needs_node
def test_the_adapter_in_javascript_conforms_for_what_it_claims(plan: Plan) -> None:
    """Of a case of many elements one row: in plain JavaScript, reading it takes seconds."""
    found = list(results(f"cmd:{NODE} {SCRIPT}", rows_to_run(chosen(plan, None, 2500))))
    bad = list(filter(is_bad, found))
    assert not bad, bad[:3]
    assert any("pass" in each.verdicts.values() for each in found)


def test_the_adapter_in_javascript_is_short() -> None:
    assert len(SCRIPT.read_text().splitlines()) <= 130
