"""The machine and the interpreter, as far as they can change an answer."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_VECTOR_FLAGS: Mapping[str, tuple[str, ...]] = {
    "flags": ("amx", "avx", "f16c", "fma", "sse4"),
    "Features": ("asimd", "bf16", "fphp", "i8mm", "sme", "sve"),
}
"""The key of instruction sets in /proc/cpuinfo → beginnings of those for vectors or half precision."""
_SWITCHES = (
    "ATEN_", "DNNL_", "FLAGS_", "GLIBC_TUNABLES", "JAX_", "KMP_", "LD_PRELOAD", "MKL_", "MLX_", "NPY_", "OMP_",
    "ONEDNN_", "OPENBLAS_", "ORT_", "OV_", "PYTENSOR_", "PYTORCH_", "TF_CPU_", "TF_DISABLE_", "TF_ENABLE_", "TF_NUM_",
    "TF_ONEDNN_", "TF_XLA_", "TORCH", "TVM_", "XLA_",
)  # fmt: skip
"""Beginnings of the variables that make libraries compute differently or use other instructions."""
_VARIABLES = {name: value for name, value in os.environ.items() if name.startswith(_SWITCHES)}
"""The variables that were set before an adapter was imported, which may set some itself."""
_PATH = re.compile("[^ ,:;=]*/")
"""All but the last part of a path, which would name somebody's machine."""


def environment() -> dict[str, str]:
    """Describe the machine and the interpreter for the header of a file."""
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
        **_describe_processor(),
        "variables": " ".join(f"{name}={_PATH.sub('', value)}" for name, value in sorted(_VARIABLES.items())) or "none",
    }


def _describe_processor() -> dict[str, str]:
    """Return the name of the first processor and its instructions that matter. Only Linux tells the instructions."""
    facts: dict[str, str] = {}
    if _CPUINFO.exists():
        for line in _CPUINFO.read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            facts.setdefault(key.strip(), value.strip())
    part = " ".join(facts[key] for key in ("CPU implementer", "CPU part") if key in facts)
    flags = {
        flag for key, names in _VECTOR_FLAGS.items() for flag in facts.get(key, "").split() if flag.startswith(names)
    }
    return {
        "processor": facts.get("model name") or part or platform.processor() or "unknown",
        "instructions": " ".join(sorted(flags)) or "unknown",
    }


_MAY_DIFFER = "processor", "instructions"
"""Keys that may differ between the machines that share a run."""


def pick_shared_part(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that all shards of a run must have in common."""
    return {key: value for key, value in environment.items() if key not in _MAY_DIFFER}


def join_environments(environments: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Join the environments of all shards of a run; every processor is named."""
    names = {key: dict.fromkeys(part[key] for part in environments if key in part) for key in _MAY_DIFFER}
    return {**environments[0], **{key: "; ".join(values) for key, values in names.items() if values}}
