"""An executable specification and conformance suite for the reshape operations of oneDNN Graph.

What an adapter author needs is importable from here: `from conformance import FunctionAdapter, Rejected, Unsupported`.
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec

    from .adapter import CannotStart, FunctionAdapter, array_of
    from .model import (
        Adapter,
        Array,
        Claims,
        Declared,
        Graph,
        Identity,
        Node,
        Operand,
        Program,
        Rejected,
        Tensor,
        Unsupported,
    )

__version__ = "0.1.0"
DISTRIBUTION = "reshape-conformance"
__all__ = [
    "Adapter", "Array", "CannotStart", "Claims", "Declared", "FunctionAdapter", "Graph", "Identity", "Node", "Operand",
    "Program", "Rejected", "Tensor", "Unsupported", "array_of",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Import a name of the public face when it is first asked for, so that `conformance --help` waits for nothing."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import adapter, model

    return getattr(adapter if name in adapter.__all__ else model, name)


class _Beside:
    """Find adapters/, cases/ and spec/ beside this package in a clone; a wheel has them inside it."""

    root = Path(__file__).parent.parent

    @classmethod
    def find_spec(cls, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        parent, _, folder = name.rpartition(".")
        if parent == __name__ and folder in ("adapters", "cases", "spec"):
            return PathFinder.find_spec(name, [str(cls.root)], target)
        return None


if (_Beside.root / "spec" / "sources.yaml").is_file():
    sys.meta_path.insert(0, _Beside)  # before the finder of an editable install elsewhere
