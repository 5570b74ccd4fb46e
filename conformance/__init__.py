"""An executable specification and conformance suite for the reshape operations of oneDNN Graph.

What an adapter author needs is importable from here: `from conformance import FunctionAdapter, Rejected, Unsupported`.
So is what a program or a notebook needs:

    conformance.meaning((3, 4, 5), (0, -1), special_zero=True)      what each document says
    conformance.check(my_reshape(x, (6,)), x, (6,))                 the verdict on an answer; WrongAnswer if it is wrong
    conformance.run("mine.py:Mine")                                 the whole suite on a backend
"""

from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec

    from .adapter import CannotStart, FunctionAdapter, array_of
    from .api import CallMeaning, Clause, Failure, Run, WrongAnswer, check, meaning, run
    from .model import (  # isort: skip
        Adapter, Array, Claims, Declared, Graph, Identity, Node, Operand, Program, Rejected, Tensor, Unsupported,
    )  # fmt: skip

__version__ = "0.1.0"
DISTRIBUTION = "reshape-conformance"
__all__ = [
    "Adapter", "Array", "CallMeaning", "CannotStart", "Claims", "Clause", "Declared", "Failure", "FunctionAdapter",
    "Graph", "Identity", "Node", "Operand", "Program", "Rejected", "Run", "Tensor", "Unsupported", "WrongAnswer",
    "array_of", "check", "meaning", "run",
]  # fmt: skip


if not TYPE_CHECKING:  # type checkers would allow every name

    def __getattr__(name: str) -> Any:
        """Import a public name when it is first asked for, so that `conformance --help` waits for nothing."""
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from . import adapter, model

        if name in adapter.__all__:
            return getattr(adapter, name)
        if hasattr(model, name):
            return getattr(model, name)
        from . import api

        return getattr(api, name)


def __dir__() -> list[str]:
    return [*__all__, "__doc__", "__version__"]


class _Package(ModuleType):
    """`meaning` and `run` are functions for users. To import the rooms of these names does not hide the functions."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in __all__ and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


class _FinderInClone:
    """Find adapters/, cases/ and spec/ beside this package in a clone; a wheel has them inside it."""

    root = Path(__file__).parent.parent

    @classmethod
    def find_spec(cls, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        parent, _, folder = name.rpartition(".")
        if parent == __name__ and folder in ("adapters", "cases", "spec"):
            return PathFinder.find_spec(name, [str(cls.root)], target)
        return None


if (_FinderInClone.root / "spec" / "sources.yaml").is_file():
    sys.meta_path.insert(0, _FinderInClone)  # before the finder of an editable install elsewhere
