"""The base class and the checks of adapters, and the search for a backend by name."""

# ruff: noqa: I001
from .bundled import Bundled, list_backend_names, read_bundled_backends, find_registered_backends
from .claims import FACETS, FAMILIES, MEMBERS, CannotStart, check_description, describe_no_facet, resolve_claims
from .digest import digest_of_adapter
from .find import (
    REFERENCE, command_of, find_bundled, import_adapter, is_importing, is_own, is_reference, load_adapter,
    name_and_device, build_worker_path, place_in,
)  # fmt: skip
from .function import FunctionAdapter, NodeCall, array_of, check_nodes_plain, check_rank_in_numpy, node_calls, rejection

__all__ = [
    "FACETS", "FAMILIES", "MEMBERS", "REFERENCE", "Bundled", "CannotStart", "FunctionAdapter", "NodeCall", "array_of",
    "build_worker_path", "check_description", "check_nodes_plain", "check_rank_in_numpy", "command_of",
    "describe_no_facet", "digest_of_adapter", "find_bundled", "find_registered_backends", "import_adapter",
    "is_importing", "is_own", "is_reference", "list_backend_names", "load_adapter", "name_and_device", "node_calls",
    "place_in", "read_bundled_backends", "rejection", "resolve_claims",
]  # fmt: skip
