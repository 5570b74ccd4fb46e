"""What an adapter author imports, and how a backend is found by name."""

from ..model import (
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
from .bundled import BUNDLED, INSTALL, Bundled, bundled, bundled_folder
from .check import FAMILIES, MAPPED, MEMBERS, CannotStart, check_description
from .digest import digest_of_adapter
from .find import import_adapter, is_own, load_adapter, name_and_device, place_in
from .function import OPERATIONS, FunctionAdapter, FunctionProgram, array_of, rank_in_numpy

__all__ = [
    "BUNDLED",
    "FAMILIES",
    "INSTALL",
    "MAPPED",
    "MEMBERS",
    "OPERATIONS",
    "Adapter",
    "Array",
    "Bundled",
    "CannotStart",
    "Claims",
    "Declared",
    "FunctionAdapter",
    "FunctionProgram",
    "Graph",
    "Identity",
    "Node",
    "Operand",
    "Program",
    "Rejected",
    "Tensor",
    "Unsupported",
    "array_of",
    "bundled",
    "bundled_folder",
    "check_description",
    "digest_of_adapter",
    "import_adapter",
    "is_own",
    "load_adapter",
    "name_and_device",
    "place_in",
    "rank_in_numpy",
]
