"""The backend, the specification and its contracts, which a process keeps from block to block of a sweep."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from ..adapter import CannotStart, resolve_claims
from ..isolate import backend
from ..load.folders import find_folders
from ..load.spec import load_spec
from ..meaning.contract import contracts, documents_by_contract
from ..model import Adapter, Claims, Identity
from .blocks import SweepRequest


class Lost(CannotStart):
    """The backend cannot be called any more, or is another than the one that the sweep began with."""


class Context:
    """Whatever is needed to call the blocks of a request."""

    def __init__(self, request: SweepRequest, adapter: Adapter) -> None:
        self.request, self.adapter = request, adapter
        self.spec = _load_spec(find_folders(request.suite).spec)
        if request.digest and request.digest != self.spec.digest:
            raise Lost(f"the specification here is {self.spec.digest[:12]}, the sweep is of {request.digest[:12]}")
        self.identity = adapter.identity
        self.claims = resolve_claims(adapter, self.spec.operations)
        self.contracts = contracts(self.spec)
        self.readings = {
            operation.id: documents_by_contract({name: self.contracts[name] for name in operation.documents})
            for operation in self.spec.operations.values()
        }


_load_spec = lru_cache(2)(load_spec)
_LOCK = threading.Lock()
"""A backend is called by one thread at a time."""
_kept: list[Context] = []
"""The context of the request at hand: one, or none."""


@contextmanager
def context_of(request: SweepRequest) -> Iterator[Context]:
    """Give the context of a request to one thread; the backend stays open until `close_backend` or another request."""
    with _LOCK:
        if not _kept or _kept[0].request != request:
            _close()
            _kept.append(Context(request, backend.open_backend(request.backend, request.isolation, request.limits)))
        yield _kept[0]


def identify(request: SweepRequest) -> tuple[Identity, Claims]:
    """Return who is swept, as the backend in this process says."""
    with context_of(request) as context:
        return context.identity, context.claims


def close_backend() -> None:
    """Close the backend that this process keeps, if it has one."""
    with _LOCK:
        _close()


def _close() -> None:
    while _kept:
        backend.close_backend(_kept.pop().adapter)
