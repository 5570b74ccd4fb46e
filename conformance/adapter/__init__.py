"""The base class and the checks of adapters, and the search for a backend by name."""

# ruff: noqa: I001
from .bundled import Bundled, backend_names, bundled_backends, registered_backends
from .claims import FACETS, FAMILIES, MEMBERS, CannotStart, check_description, describe_no_facet, resolve_claims
from .digest import digest_of_adapter
from .find import (
    REFERENCE, command_of, find_bundled, import_adapter, is_importing, is_own, is_reference, load_adapter,
    name_and_device, path_of_workers, place_in,
)  # fmt: skip
from .function import FunctionAdapter, NodeCall, array_of, check_nodes_plain, check_rank_in_numpy, node_calls, rejection

__all__ = [
    "FACETS", "FAMILIES", "MEMBERS", "REFERENCE", "Bundled", "CannotStart", "FunctionAdapter", "NodeCall",
    "array_of", "backend_names", "bundled_backends", "check_description", "check_nodes_plain",
    "check_rank_in_numpy", "command_of", "describe_no_facet", "digest_of_adapter", "find_bundled", "import_adapter",
    "is_importing", "is_own", "is_reference", "load_adapter", "name_and_device", "node_calls", "path_of_workers",
    "place_in", "registered_backends", "rejection", "resolve_claims",
]  # fmt: skip
