"""What is known to fail in real libraries: each row that fails with its diagnosis, by version, in golden/.

A change of the suite that no longer catches a known fault is noticed here.
`python -m tests.verdict.test_golden` writes the files of the libraries that are found; with names of
backends, only theirs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from conformance.load.cases import load_suite
from conformance.plan.rows import Row, plan_of
from tests import forks

FOLDER = Path(__file__).parents[1] / "golden"
FILES = sorted(FOLDER.glob("*.json"))
OTHER = 4
"""The exit code where the library is here, but of another version, or the processor lacks what is pinned."""
STATIC, BOTH = ("StaticReshape",), ("StaticReshape", "DynamicReshape-1")
AVX2 = {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}


def everything(row: Row) -> bool:
    return True


def of_f32(row: Row) -> bool:
    return row.type == "f32"


def little_f16(row: Row) -> bool:
    """A compile takes long: f32, and of f16 what its elements are."""
    return row.type == "f32" or (row.type == "f16" and row.case.file == "cases/content.yaml")


def no_overrun(row: Row) -> bool:
    """Not where a copied zero may give dst another volume: OpenVINO's reference copies past its end, and may crash."""
    steps = row.case.steps
    copies = any(z and 0 in shape for step in steps for shape, z in zip(step.shapes, step.special_zero, strict=True))
    open_ = copies and any(judged.meaning.kind != "legal" for task in row.steps for judged in task.meanings)
    return little_f16(row) and not open_


class Pin(NamedTuple):
    """What is run, and with what held fast."""

    backend: str
    operations: tuple[str, ...] = STATIC
    env: Mapping[str, str] = {}
    among: Callable[[Row], bool] = everything
    detail: Mapping[str, str] = {}
    """What the backend must say of itself; its last word is part of the file's name."""


def instruction_set(name: str) -> Pin:
    return Pin("onednn", STATIC, {"ONEDNN_MAX_CPU_ISA": name.upper()}, detail={"instruction set": name})


PINS = (
    *map(instruction_set, ("avx2", "avx512_core", "avx512_core_bf16")),
    Pin("openvino", BOTH, among=little_f16), Pin("openvino-reference", BOTH, among=no_overrun),
    Pin("onnxruntime", BOTH), Pin("onnxruntime-plain", BOTH), Pin("onnx-reference", BOTH),
    *(Pin(name, STATIC, AVX2) for name in (
        "torch", "torch-mkldnn", "tensorflow", "mlx", "dask", "array-api-strict", "ndonnx", "paddle", "numpy",
    )),
    Pin("litert", BOTH), Pin("litert-xnnpack", BOTH), Pin("mnn", STATIC, among=of_f32), Pin("tract", STATIC),
    Pin("pytensor", BOTH, among=of_f32),
)  # fmt: skip


class Other(Exception):
    """The library is of another version, or the processor lacks what is pinned."""


class Missing(Exception):
    """The library is not here."""


@pytest.mark.slow
@pytest.mark.skipif(not forks.POSSIBLE, reason="needs fork")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_same_rows_fail_with_the_same_diagnoses(file: Path) -> None:
    known = json.loads(file.read_text(encoding="utf-8"))
    if known.get("suite") != load_suite().digest:
        pytest.skip("the file is of an older suite; write it anew where the library is")
    pin = next(pin for pin in PINS if pin.backend == known["backend"] and dict(pin.detail) == known["detail"])
    try:
        found = content(pin, known["version"])
    except (Other, Missing) as cannot:
        pytest.skip(str(cannot))
    assert found == known


def test_every_golden_file_is_of_a_backend_that_is_pinned() -> None:
    for file in FILES:
        known = json.loads(file.read_text(encoding="utf-8"))
        assert file == path_of(known)
        assert any(pin.backend == known["backend"] and dict(pin.detail) == known["detail"] for pin in PINS)


# ── finding it ────────────────────────────────────────────────────────────────────────────────────
def content(pin: Pin, version: str | None = None) -> dict[str, Any]:
    """What a golden file holds, found in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "tests.verdict.test_golden",
        "--of",
        str(PINS.index(pin)),
        version or "",
    ]
    environment = {**os.environ, **pin.env}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode in (OTHER, forks.CANNOT_START):
        raise (Other if done.returncode == OTHER else Missing)(done.stderr.strip().rpartition("\n")[2])
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"exit code {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])  # before it, what a library says
    return found


def told(pin: Pin, version: str) -> dict[str, Any]:
    """The same in this process, which must have loaded no library: rows are run in forks."""
    detail = next(forks.records([], pin.backend))
    here = detail["version"].partition("+")[0]
    apart = {key: detail.get(key) for key, value in pin.detail.items() if detail.get(key) != value}
    if apart or version not in ("", here):
        print(f"{pin.backend} {here} is here, {apart or ''} and not {version}", file=sys.stderr)
        raise SystemExit(OTHER)
    rows = [row for row in plan_of(load_suite()).rows if row.operation in pin.operations and not row.case.large]
    rows = [row for row in rows if pin.among(row)]
    _, *diagnoses = forks.records(rows, pin.backend)
    return {
        "backend": pin.backend,
        "version": here,
        "env": dict(pin.env),
        "detail": dict(pin.detail),
        "operations": list(pin.operations),
        "rows": len(rows),
        "suite": load_suite().digest,
        "fails": grouped(rows, diagnoses),
    }


def grouped(rows: list[Row], diagnoses: list[str | None]) -> dict[str, dict[str, str]]:
    """Each diagnosis → each case → the rows of it that have it."""
    found: dict[str, dict[str, str]] = {}
    for row, diagnosis in zip(rows, diagnoses, strict=True):
        if diagnosis:
            cases = found.setdefault(diagnosis, {})
            suffix = row.id[len(row.case.id) + 1 : -1]
            cases[row.case.id] = f"{cases[row.case.id]} {suffix}" if row.case.id in cases else suffix
    return found


def path_of(known: Mapping[str, Any]) -> Path:
    return FOLDER / f"{'-'.join([known['backend'], known['version'], *known['detail'].values()])}.json"


def write(names: list[str]) -> Iterator[str]:
    """Writes the files of what is found, and says which."""
    for pin in PINS:
        if names and pin.backend not in names:
            continue
        try:
            known = content(pin)
        except (Other, Missing) as cannot:
            yield f"{pin.backend}: {cannot}"
            continue
        text = json.dumps(known, indent=1, sort_keys=True) + "\n"
        path_of(known).write_text(text, encoding="utf-8", newline="\n")
        failing = sum(len(rows.split()) for cases in known["fails"].values() for rows in cases.values())
        yield f"{path_of(known).name}: {failing} of {known['rows']} rows fail"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--of"]:
        print(json.dumps(told(PINS[int(sys.argv[2])], sys.argv[3])))
    else:
        for line in write(sys.argv[1:]):
            print(line, flush=True)
