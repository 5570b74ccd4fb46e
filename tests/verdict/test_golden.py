"""Known failures of real libraries are in golden/: each row that fails with its diagnosis, by version.

A change of the suite that no longer catches a known fault is noticed here.
`python -m tests.verdict.test_golden` writes the files of the libraries that are found; with names of
backends, only theirs.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from conformance.adapter import load_adapter
from conformance.load.cases import load_suite
from conformance.plan.rows import Row, plan_of
from conformance.run.row import run

FOLDER = Path(__file__).parents[1] / "golden"
FILES = sorted(FOLDER.glob("*.json"))
CANNOT_START, OTHER = 3, 4
"""Exit codes: no library; it is of another version, or the processor lacks what is pinned."""
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
    """A backend, and what is fixed when it is run."""

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
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_the_same_rows_fail_with_the_same_diagnoses(file: Path) -> None:
    known = json.loads(file.read_text(encoding="utf-8"))
    if known.get("suite") != load_suite().digest:
        pytest.skip("the file is of an older suite; write it again where the library is")
    pin = next(pin for pin in PINS if pin.backend == known["backend"] and dict(pin.detail) == known["detail"])
    try:
        found = find_content(pin, known["version"])
    except (Other, Missing) as cannot:
        pytest.skip(str(cannot))
    assert found == known


def test_every_golden_file_is_of_a_backend_that_is_pinned() -> None:
    for file in FILES:
        known = json.loads(file.read_text(encoding="utf-8"))
        assert file == path_of(known)
        assert any(pin.backend == known["backend"] and dict(pin.detail) == known["detail"] for pin in PINS)


# ── finding it ────────────────────────────────────────────────────────────────────────────────────
def find_content(pin: Pin, version: str | None = None) -> dict[str, Any]:
    """Find what a golden file holds, in another process."""
    command = [sys.executable, "-m", "tests.verdict.test_golden", "--of", str(PINS.index(pin)), version or ""]
    environment = {**os.environ, **pin.env}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    if done.returncode in (OTHER, CANNOT_START):
        raise (Other if done.returncode == OTHER else Missing)(done.stderr.strip().rpartition("\n")[2])
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"exit code {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])  # before it, what a library says
    return found


def find_here(pin: Pin, version: str) -> dict[str, Any]:
    """Find it in this process, which must have loaded no library: rows are run in forks."""
    detail = next(records_of([], pin.backend))
    here = detail["version"].partition("+")[0]
    apart = {key: detail.get(key) for key, value in pin.detail.items() if detail.get(key) != value}
    if apart or version not in ("", here):
        print(f"{pin.backend} {here} is here, {apart or ''} and not {version}", file=sys.stderr)
        raise SystemExit(OTHER)
    rows = [row for row in plan_of(load_suite()).rows if row.operation in pin.operations and not row.case.large]
    rows = [row for row in rows if pin.among(row)]
    _, *diagnoses = records_of(rows, pin.backend)
    return {
        "backend": pin.backend, "version": here, "env": dict(pin.env), "detail": dict(pin.detail),
        "operations": list(pin.operations), "rows": len(rows), "suite": load_suite().digest,
        "fails": group_rows(rows, diagnoses),
    }  # fmt: skip


def records_of(rows: Sequence[Row], backend: str) -> Iterator[Any]:
    """The identity's detail, then a diagnosis for each row or None.

    The backend may take its process down: rows are run in a fork, and after a crash on in the next. A worker would do
    too, and does in a real run; forks need no second start of Python for each of many crashes.
    """
    begin, told = 0, False
    while begin < len(rows) or not told:
        lines = _run_in_fork(rows[begin:], backend)
        if not lines:
            raise SystemExit(CANNOT_START)
        if not told:
            yield json.loads(lines[0])
            told = True
        yield from map(json.loads, lines[1:])
        begin += len(lines) - 1
        if begin < len(rows):
            yield "crash"
            begin += 1


def _run_in_fork(rows: Sequence[Row], backend: str) -> list[bytes]:
    """The lines that a child writes before it is through, or dies."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        status = 1
        try:
            with os.fdopen(writing, "wb", buffering=0) as out:
                _child(rows, backend, out)
            status = 0
        except (Exception, SystemExit) as error:  # nobody would see it otherwise
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
        finally:
            os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as lines:
        told = lines.read().splitlines()
    os.waitpid(child, 0)
    return told


def _child(rows: Sequence[Row], backend: str, out: Any) -> None:
    adapter = load_adapter(backend)
    out.write(json.dumps(dict(adapter.identity.detail, version=adapter.identity.version)).encode() + b"\n")
    quiet = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(quiet, stream)
    for result in run(rows, adapter):
        out.write(json.dumps(result.diagnosis).encode() + b"\n")


def group_rows(rows: list[Row], diagnoses: list[str | None]) -> dict[str, dict[str, str]]:
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
            known = find_content(pin)
        except (Other, Missing) as cannot:
            yield f"{pin.backend}: {cannot}"
            continue
        text = json.dumps(known, indent=1, sort_keys=True) + "\n"
        path_of(known).write_text(text, encoding="utf-8", newline="\n")
        failing = sum(len(rows.split()) for cases in known["fails"].values() for rows in cases.values())
        yield f"{path_of(known).name}: {failing} of {known['rows']} rows fail"


if __name__ == "__main__":
    if sys.argv[1:2] == ["--of"]:
        print(json.dumps(find_here(PINS[int(sys.argv[2])], sys.argv[3])))
    else:
        for line in write(sys.argv[1:]):
            print(line, flush=True)
