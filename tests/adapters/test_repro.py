"""A script of `conformance explain CASE --backend NAME` runs without the suite and shows what the suite saw."""

import ast
import os
import re
import subprocess
import sys
from array import array
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from conformance.adapter import read_bundled_backends
from conformance.adapters import repro
from conformance.adapters.repro.script import join_parts, write_words
from conformance.isolate.backend import use_backend
from conformance.model import Unsupported
from conformance.plan.memory import patterns, volume_of
from conformance.plan.rows import Row
from conformance.report import report_page
from conformance.report.repeat_script import list_due
from conformance.run.row import run_rows
from tests.builders import Cli, Wrong, bundled_plan, finish_run, plan_as_bundled

from .backends import load_or_skip

SEEN = (
    "copies-by-index-not-in-turn", "volume-too-small", "zero-copies-from-the-tensor-between",
    "too-few-between-although-the-ends-fit", "transposed-src-regroups", "broadcast-src-flattens",
    "offset-src-regroups", "padded-src-regroups", "infer-moves", "answers-after-two-infers",
    "empty-copies-a-zero-and-a-length", "literal-zeros-of-empty-replace-every-length", "one-element-to-scalar",
    "shape-is-a-scalar", "special-zero-is-missing", "one-input-too-many", "every-length-is-declared",
    "declared-empty-but-holds-elements", "an-axis-beside-the-attributes", "f32-declared-as-f16",
    "elements-to-rank-fourteen", "in-place-regroups",
    "known-volume-equal-only-in-64-bits", "minus-two-on-one-element", "dst-columns-lie-together",
)  # fmt: skip
"""Cases of every kind, with types each has; calls that no script of a backend can make are left out."""
IN_BF16 = ("every-pattern-of-bf16-from-a-transposed-src", "edge-patterns-of-bf16-flatten", "signalling-nans-of-bf16")
BACKENDS = [name for name in read_bundled_backends() if name in repro.WRITERS and name != "torch-inductor"]
SIBLINGS = ("openvino-one-thread", "pytensor-numba")
"""Backends that are not published, because others of the same library answer alike. CI runs no scripts of theirs."""
DRIVER = "import runpy, sys\nfor path in sys.argv[1:]:\n    print('==', flush=True)\n    runpy.run_path(path)\n"
TYPES = {
    "float32": "f32", "torch.float32": "f32", "mlx.core.float32": "f32", "<dtype: 'float32'>": "f32",
    "tensor(float)": "f32", "paddle.float32": "f32", "dtype.float": "f32",
    "paddle.bfloat16": "bf16", "bfloat16": "bf16", "torch.bfloat16": "bf16", "mlx.core.bfloat16": "bf16",
    "<dtype: 'bfloat16'>": "bf16", "tensor(bfloat16)": "bf16", "F32": "f32", "BF16": "bf16",
}  # fmt: skip


def chosen(backend: str) -> dict[Row, str]:
    """A row of each case seen, for each way of giving shape, with its script."""
    found: dict[tuple[str, str], tuple[Row, str]] = {}
    for row in bundled_plan().rows:
        if row.case.id not in (*SEEN, *IN_BF16) or row.type != ("bf16" if row.case.id in IN_BF16 else "f32"):
            continue
        key = (row.case.id, row.shape_passed_as)
        if key not in found and row.operation in ("StaticReshape", "DynamicReshape-1"):
            try:
                found[key] = row, join_parts({row.id: repro.WRITERS[backend](row, backend)}, {row.id: list_due(row)})
            except Unsupported:
                continue
    return dict(found.values())


# ── what is written ───────────────────────────────────────────────────────────────────────────────
def test_a_script_holds_the_very_words_of_src() -> None:
    for source in {step.src_spec for row in bundled_plan().rows[::7] if is_short(row) for step in row.steps}:
        elements = eval(write_words(source), {"array": array})
        assert elements.tobytes() == patterns(source).tobytes(), source


@pytest.mark.slow
@pytest.mark.parametrize("of_every_case", [False, pytest.param(True, marks=pytest.mark.exhaustive)])
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_script_is_python(backend: str, of_every_case: bool) -> None:
    every = {row.case.id: row for row in bundled_plan().rows if not row.case.large}
    for row in every.values() if of_every_case else of_each_facet():
        try:
            text = join_parts({row.id: repro.WRITERS[backend](row, backend)}, {row.id: list_due(row)})
        except Unsupported:
            continue
        ast.parse(text)
        assert "conformance" not in text


@cache
def of_each_facet() -> tuple[Row, ...]:
    """Rows of the fewest elements that a facet has, but of more than one if it can be: scripts hold all of them."""
    by_size = sorted(filter(is_short, bundled_plan().rows), key=lambda row: (size_of(row) > 1, -size_of(row)))
    by_facet = {facet: row for row in by_size for facet in row.facets}
    return tuple({row.id: row for row in by_facet.values()}.values())


def is_short(row: Row) -> bool:
    return not row.case.large and size_of(row) < 5000


def size_of(row: Row) -> int:
    return sum(volume_of(step.src) for step in row.case.steps)


def test_a_script_says_how_to_run_it_and_what_is_due(cli: Cli) -> None:
    script = cli("explain", "volume-too-small", "--backend", "torch").expect(0).out
    head = ast.get_docstring(ast.parse(script)) or ""
    assert "volume-too-small[StaticReshape-f32] on torch" in head
    assert "pip install torch" in head
    assert "static-oneapi: a rejection: breaks same-volume" in script.rpartition("tell(1, ")[2]


def test_a_row_by_its_whole_name_is_that_row(cli: Cli) -> None:
    row = "volume-too-small[DynamicReshape-1-bf16-s32]"
    assert row in cli("explain", row, "--backend", "openvino").expect(0).out.partition("\n")[0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["volume-too-smal", "--backend", "torch"], "did you mean 'volume-too-small'?"),
        (["volume-too-small", "--backend", "torhc"], "did you mean 'torch'?"),
        (["volume-too-small", "--backend", "reference"], "try numpy"),
        (
            ["every-length-is-declared", "--backend", "torch"],
            "no script for torch can make the call of every-length-is-declared: it needs declared",
        ),
        (["shape-entries-in-reverse", "--backend", "torch"], "it needs shape-strides"),
        (["two-nodes-take-one-src", "--backend", "torch"], "it needs shared-src"),
        (["shape-is-a-scalar", "--backend", "onednn"], "it needs form:shape-rank"),
        (["two-nodes-take-one-shape", "--backend", "torch"], "it needs shared-shape"),
        (["programs-run-at-the-same-time", "--backend", "torch"], "it needs threads"),
        (
            ["a-constant-shape-before-one-of-its-own[Reshape-1-f32-s32-runtime]", "--backend", "paddle"],
            "it needs constant shapes beside one that arrives",
        ),
    ],
)
def test_what_cannot_be_written_is_one_line(words: list[str], message: str, cli: Cli) -> None:
    said = cli("explain", *words).expect(2, err=message).err
    assert said.count("\n") == 1


# ── what it shows ─────────────────────────────────────────────────────────────────────────────────
@pytest.mark.slow
@pytest.mark.parametrize(
    "backend", [pytest.param(each, marks=[pytest.mark.exhaustive] * (each in SIBLINGS)) for each in BACKENDS]
)
def test_a_script_shows_what_the_suite_saw(backend: str, tmp_path: Path) -> None:
    load_or_skip(backend)  # here, because to start a process takes longer
    scripts = chosen(backend)
    seen = outcomes(backend, list(scripts))
    calm: list[tuple[Row, Path]] = []
    wild: list[tuple[Row, Path]] = []
    for number, (row, text) in enumerate(scripts.items()):
        if seen[row.id] == ["none"]:  # the backend does not claim the operation
            continue
        path = tmp_path / f"{number}.py"
        path.write_text(text, encoding="utf-8")
        (wild if "crash" in seen[row.id] else calm).append((row, path))
    told = run_and_read([sys.executable, "-c", DRIVER, *(str(path) for _, path in calm)]).split("==\n")[1:]
    assert len(told) == len(calm)
    for (row, _), text in zip(calm, told, strict=True):
        assert steps(text) == seen[row.id], row.id
    for row, path in wild:
        assert steps(run_and_read([sys.executable, str(path)]))[-1:] == ["crash"], row.id


@pytest.mark.slow
@pytest.mark.parametrize(
    "backend",
    ["numpy", *(pytest.param(name, marks=pytest.mark.slow) for name in ("onednn", "openvino", "onnxruntime"))],
)
def test_the_script_of_a_page_runs_as_printed(backend: str, tmp_path: Path) -> None:
    load_or_skip(backend)
    named: dict[str, Any] = {"name": "wrong", "version": "1", "adapter": backend, "detail": {}, "digest": None}
    run = finish_run(plan_as_bundled(tmp_path), Wrong(), tmp_path / "out", backend=named)
    (printed,) = re.findall(r'(?s)<pre data-copy="script">(.*?)</pre>', report_page.render(run))
    path = tmp_path / "repeat.py"
    path.write_text(unescape(printed), encoding="utf-8")
    ids = dict(re.findall(r"^(failure-\S+): (\S+)$", unescape(printed), re.MULTILINE))
    repeated = {name: row for name, id_ in ids.items() for row in run.plan.rows if row.id == id_}
    seen = outcomes(backend, list(repeated.values()))
    told = re.split(r"^(failure-\S+)$", run_and_read([sys.executable, str(path)]), flags=re.MULTILINE)[1:]
    assert told[::2] == [*repeated]
    assert len(told) > 2
    for name, text in zip(told[::2], told[1::2], strict=True):
        assert steps(text) == seen[repeated[name].id], name
    for name, text in ((told[0], told[1]), (told[-2], told[-1])):  # a process for each takes long
        assert steps(run_and_read([sys.executable, str(path), name])) == steps(text)


def outcomes(backend: str, rows: list[Row]) -> dict[str, list[str]]:
    """Return what the suite saw at each step: type and dims, a refusal or a crash.

    oneDNN refuses bf16 on a processor without it. The adapter calls that unsupported; a script shows the refusal.
    """
    words = {"unsupported": "rejected"}
    with use_backend(backend, "worker") as adapter:
        return {
            result.row: [
                f"{o.type}{list(o.dims or ())}" if o.kind == "tensor" else words.get(o.kind, o.kind)
                for o in result.outcomes
            ]
            for result in run_rows(rows, adapter)
        }


def run_and_read(command: list[str]) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, timeout=300, check=False).stdout


def steps(text: str) -> list[str]:
    """Read the same from a script's output; a library may print before the answer."""
    found = []
    for told in re.split(r"^step \d+$", text, flags=re.MULTILINE)[1:]:
        answered = re.search(r"(?:^|came: )answered (.+?) (\[.*?\]), ", told, re.MULTILINE)
        if answered:
            found.append(f"{TYPES.get(answered[1], answered[1])}{answered[2]}")
        else:
            found.append("rejected" if re.search("(?:^|came: )rejected: ", told, re.MULTILINE) else "crash")
    return found
