"""Fixtures of the tests of isolate: the plan, processes with a backend, and what must not be left of them."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.plan.rows import Plan

from ..builders import bundled_plan
from . import faulty_program, remote_backends
from .remote_backends import Fresh, Obedient, close_well


@pytest.fixture(scope="module")
def plan() -> Plan:
    return bundled_plan()


@pytest.fixture(autouse=True)
def _close() -> Iterator[None]:
    """Close the processes that the test started. A right backend must not come to a bad end."""
    yield
    while remote_backends.OPEN:
        close_well(remote_backends.OPEN.pop())
    while faulty_program.OPEN:
        faulty_program.OPEN.pop().close()


@pytest.fixture
def nothing_is_left() -> Iterator[None]:
    """Assert that the test leaves no file in shared memory."""
    folder = Path("/dev/shm")
    files = set(folder.iterdir()) if folder.is_dir() else set()
    gc.freeze()  # only what the test makes is looked at below: all modules and suites would take most of the time
    yield
    while faulty_program.OPEN:
        faulty_program.OPEN.pop().close()
    gc.collect()
    gc.unfreeze()
    left = {path for path in set(folder.iterdir()) - files if "conformance" in path.name} if folder.is_dir() else set()
    assert not left


@pytest.fixture(scope="module")
def obedient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Obedient]:
    obedient = Obedient(tmp_path_factory.mktemp("obedient"))
    yield obedient
    for remote in obedient.remotes.values():
        close_well(remote)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fresh]:
    fresh = Fresh(tmp_path_factory.mktemp("fresh"))
    yield fresh
    close_well(fresh.remote)
