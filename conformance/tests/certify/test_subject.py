"""The code under test, as the map of memory of a process names it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from conformance.certify.subject import read_subject

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the map of memory of Linux")
WAITS = "print(flush=True); import sys; sys.stdin.read()"
MAKES_CODE = "import mmap; code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC); "


@pytest.mark.parametrize("makes_code", [False, True])
def test_code_that_is_in_no_file_is_seen(makes_code: bool) -> None:
    program = (MAKES_CODE if makes_code else "") + WAITS
    with subprocess.Popen(
        [sys.executable, "-S", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            assert read_subject(process.pid).unnamed_code is makes_code
        finally:
            process.kill()
