"""The names that an adapter author imports, and the search for a backend by name."""

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
from .bundled import Bundled, bundled_backends, bundled_folder
from .check import FAMILIES, MEMBERS, CannotStart, check_description, resolve_claims
from .digest import digest_of_adapter
from .find import import_adapter, is_own, load_adapter, name_and_device, place_in
from .function import FunctionAdapter, FunctionProgram, array_of, check_rank_in_numpy

__all__ = [
    "FAMILIES",
    "MEMBERS",
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
    "bundled_backends",
    "bundled_folder",
    "check_description",
    "check_rank_in_numpy",
    "digest_of_adapter",
    "import_adapter",
    "is_own",
    "load_adapter",
    "name_and_device",
    "place_in",
    "resolve_claims",
]
