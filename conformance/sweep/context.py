"""The backend, the specification and its contracts, which a process keeps from block to block of a sweep."""

from __future__ import annotations

from functools import lru_cache

from ..adapter import CannotStart, resolve_claims
from ..isolate import backend
from ..load.folders import find_folders
from ..load.spec import load_spec
from ..meaning.contract import contracts, group_documents
from ..model import Adapter
from .blocks import SweepRequest


class BackendLost(CannotStart):
    """The backend cannot be called any more, or is another than the one that the sweep began with."""


class SweepContext:
    """Whatever is needed to call the blocks of a request."""

    def __init__(self, request: SweepRequest, adapter: Adapter) -> None:
        self.request, self.adapter = request, adapter
        self.spec = _load_spec(find_folders(request.suite).spec)
        if request.digest and request.digest != self.spec.digest:
            raise BackendLost(
                f"the specification here is {self.spec.digest[:12]}, the sweep is of {request.digest[:12]}"
            )
        self.claims = resolve_claims(adapter, self.spec.operations)
        self.who = adapter.identity, self.claims
        self.contracts = contracts(self.spec)
        self.readings = {
            operation.id: group_documents({name: self.contracts[name] for name in operation.documents})
            for operation in self.spec.operations.values()
        }


_load_spec = lru_cache(2)(load_spec)
_kept: list[SweepContext] = []
"""The context of the request at hand: one, or none."""


def context_of(request: SweepRequest) -> SweepContext:
    """Return the context of a request; the backend stays open until `close_backend` or another request."""
    if not _kept or _kept[0].request != request:
        close_backend()
        _kept.append(SweepContext(request, backend.open_backend(request.backend, request.isolation, request.limits)))
    return _kept[0]


def close_backend() -> None:
    """Close the backend that this process keeps, if it has one."""
    while _kept:
        backend.close_backend(_kept.pop().adapter)
