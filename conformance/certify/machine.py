"""The machine and the interpreter, as far as they can change an answer."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_TOLD = Path("/proc/cpuinfo")
_WIDE: Mapping[str, tuple[str, ...]] = {
    "flags": ("amx", "avx", "f16c", "fma", "sse4"),
    "Features": ("asimd", "bf16", "fphp", "i8mm", "sme", "sve"),
}
"""What Linux calls instruction sets, and how those begin that compute with vectors or with half the width."""
_SWITCHES = (
    "ATEN_", "DNNL_", "FLAGS_", "GLIBC_TUNABLES", "JAX_", "KMP_", "LD_PRELOAD", "MKL_", "MLX_", "NPY_", "OMP_",
    "ONEDNN_", "OPENBLAS_", "ORT_", "OV_", "PYTENSOR_", "PYTORCH_", "TF_CPU_", "TF_DISABLE_", "TF_ENABLE_", "TF_NUM_",
    "TF_ONEDNN_", "TF_XLA_", "TORCH", "TVM_", "XLA_",
)  # fmt: skip
"""How the names of variables begin by which libraries are told to compute otherwise, or with other instructions."""
_SET = {name: value for name, value in os.environ.items() if name.startswith(_SWITCHES)}
"""Those that were set before an adapter was imported, which may set some itself."""


def environment() -> dict[str, str]:
    """What of both a results file pins."""
    import ml_dtypes
    import numpy

    return {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "numpy": numpy.__version__,
        "ml_dtypes": ml_dtypes.__version__,
        "system": platform.system(),
        "machine": platform.machine(),
        "byteorder": sys.byteorder,
        **_processor(),
        "variables": _switched(),
    }


def _processor() -> dict[str, str]:
    """Its name and what of its instructions matters, of the first that Linux tells; elsewhere Python knows a name."""
    said: dict[str, str] = {}
    if _TOLD.exists():
        for line in _TOLD.read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            said.setdefault(key.strip(), value.strip())
    part = " ".join(said[key] for key in ("CPU implementer", "CPU part") if key in said)
    wide = {flag for key, names in _WIDE.items() for flag in said.get(key, "").split() if flag.startswith(names)}
    return {
        "processor": said.get("model name") or part or platform.processor() or "unknown",
        "instructions": " ".join(sorted(wide)) or "unknown",
    }


def _switched() -> str:
    """Variables that are set; of a path only the last part, for it is somebody's machine."""
    return " ".join(f"{name}={re.sub('[^ ,:;=]*/', '', value)}" for name, value in sorted(_SET.items())) or "none"


_OF_EACH = "processor", "instructions"
"""What may differ between the machines that share a run."""


def shared(environment: Mapping[str, str]) -> dict[str, str]:
    """What the parts of a run must have in common."""
    return {key: value for key, value in environment.items() if key not in _OF_EACH}


def joined(environments: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The environment of all parts of a run, every processor named."""
    each = {key: dict.fromkeys(part[key] for part in environments if key in part) for key in _OF_EACH}
    return {**environments[0], **{key: "; ".join(values) for key, values in each.items() if values}}
