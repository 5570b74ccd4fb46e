"""The code under test, as the map of memory of a process names it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from conformance.adapter import bundled_backends, modules_of_adapter
from conformance.evidence.subject import Subject, read_subject

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the map of memory of Linux")
WAITS = "print(flush=True); import sys; sys.stdin.read()"
MAKES_CODE = "import mmap; code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)"


def subject_of(program: str) -> Subject:
    """The files under test of a process that runs a program."""
    with subprocess.Popen(
        [sys.executable, "-c", f"{program}; {WAITS}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            return read_subject(process.pid)
        finally:
            process.kill()


@pytest.mark.parametrize("makes_code", [False, True])
def test_code_that_is_in_no_file_is_seen(makes_code: bool) -> None:
    assert subject_of(MAKES_CODE if makes_code else "pass").unnamed_code is makes_code


def test_python_and_its_standard_library_are_not_under_test() -> None:
    assert set(subject_of("import bz2, ctypes, lzma, sqlite3, ssl, uuid, zlib, yaml").files) == set()


def test_a_package_of_compiled_files_is_under_test(tmp_path: Path) -> None:
    """Otherwise a second run of the same packages may name other files, and would count as a run of something else."""
    compiled = str(import_module("numpy._core._multiarray_umath").__file__)
    library = tmp_path / "libmine.so"
    shutil.copy(compiled, library)
    files = subject_of(f"import ctypes, numpy; ctypes.CDLL({str(library)!r})").files
    assert {"libmine.so", "numpy/_core/" + Path(compiled).name} < set(files)


def test_a_package_that_the_adapter_imports_is_under_test(tmp_path: Path) -> None:
    """No process maps Python files, so the adapter says which packages it uses."""
    (tmp_path / "pluggy.py").write_text("import json\n\nfrom jinja2 import Template\n")
    (tmp_path / "mine.py").write_text("import os, yaml\n\ndef load():\n    import pluggy, iniconfig.exceptions\n")
    modules = modules_of_adapter(f"{tmp_path / 'mine.py'}:Mine")
    assert modules == {"iniconfig", "jinja2", "yaml"}, "a file beside the adapter is not the package of that name"
    records = {name.partition("-")[0] for name in read_subject(os.getpid(), modules).files if name.endswith("RECORD")}
    assert {"iniconfig", "jinja2"} <= records
    assert not {"pyyaml", "PyYAML"} & records, "it belongs to the suite"


def test_an_adapter_in_a_package_and_a_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vendor").mkdir()
    (tmp_path / "vendor" / "__init__.py").touch()
    (tmp_path / "vendor" / "adapter.py").write_text("from .core import reshape\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert modules_of_adapter("vendor.adapter:Mine") == {"vendor"}
    program = tmp_path / "program.py"
    program.write_text("import jinja2\n")
    assert modules_of_adapter(f"cmd:{program}") == frozenset()


def test_a_package_without_its_metadata_does_not_disturb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A broken removal of a package leaves such a folder."""
    packages = tmp_path / "site-packages"
    (packages / "left-1.0.dist-info").mkdir(parents=True)
    (packages / "left-1.0.dist-info" / "RECORD").write_text("left/__init__.py,,\nleft-1.0.dist-info/RECORD,,\n")
    monkeypatch.syspath_prepend(str(packages))
    assert "left-1.0.dist-info/RECORD" in read_subject(os.getpid(), ["left"]).files


@pytest.mark.parametrize("name", sorted(bundled_backends()))
def test_a_bundled_adapter_names_its_library(name: str) -> None:
    alone = {"reference", "numpy", "onednn"}  # the first two are NumPy itself, the last is one file that is mapped
    assert modules_of_adapter(name) - {"conformance", "numpy"} or name in alone
