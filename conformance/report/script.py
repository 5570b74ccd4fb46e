"""The command for a script that repeats a row without the suite, where there is one."""

from __future__ import annotations

import importlib
import shlex
from typing import Any

from ..adapter import bundled_backends, name_and_device
from ..model import Unsupported
from ..plan.drawn_rows import drawn_number
from ..plan.rows import Row

_FOLDER = "conformance.adapters.repro"


def script_command(row: Row, backend: str) -> str | None:
    """Return the command that writes a script of the library's own calls; None if there is no such script."""
    name, device = name_and_device(backend)
    if name not in bundled_backends() or drawn_number(row.id):
        return None
    repro: Any = importlib.import_module(_FOLDER)
    writer = repro.WRITERS.get(bundled_backends()[name].module)
    if writer is None or (device is not None and name not in repro.WITH_DEVICE):
        return None
    write: Any = importlib.import_module(f"{_FOLDER}.{writer}").write_script
    try:
        write(row, backend)
    except Unsupported:
        return None
    return f"{shlex.join(['conformance', 'explain', row.id, '--backend', backend])} > repeat.py"
