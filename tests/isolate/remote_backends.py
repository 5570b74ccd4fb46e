"""Backends in processes of their own, for the tests of these."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from conformance.isolate.backend import use_backend
from conformance.isolate.process.launch import Limits
from conformance.isolate.protocol.remote import Remote, worker
from conformance.load.cases import load_suite
from conformance.model import Result
from conformance.plan.rows import Plan, Row, plan_of
from conformance.run.row import run

from .calls import called

LIMITS = Limits(seconds=3.0)


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_of(load_suite())


OPEN: list[Remote] = []


def start(backend: str, limits: Limits = LIMITS, share: bool = True) -> Remote:
    OPEN.append(worker(backend, limits, share))
    return OPEN[-1]


def write_backend(folder: Path, text: str, name: str) -> str:
    path = folder / "backend.py"
    path.write_text(text, encoding="utf-8")
    return f"{path}:{name}"


ODD = """import os, time
import numpy as np
from conformance.adapters.reference import Reference
from conformance.model import Rejected, Tensor, Unsupported
class Own(BaseException):
    pass
class Mute(BaseException):
    def __str__(self):
        raise KeyboardInterrupt
class Odd(Reference):
    def compile(self, graph):
        program, run = super().compile(graph), self.run
        class Program:
            def run(self, *given):
                return run(program.run, *given)
        return Program()
    def run(self, go, src, shapes, may_overwrite):
"""


def write_odd(folder: Path, act: str) -> str:
    """A backend that acts so before each run; `odd` is true for a src of 13 elements, `go` runs a right backend."""
    text = f"{ODD}        odd = src.dims == (13,)\n        {act}\n        return go(src, shapes, may_overwrite)\n"
    return write_backend(folder, text, "Odd")


OBEYS = """        scope = {{**globals(), "go": go, "src": src, "shapes": shapes, "may_overwrite": may_overwrite}}
        exec(open({path!r}).read(), scope)
        return scope["answer"]()
"""


class Obedient:
    """Backends that act as those of `write_odd`, in processes that several tests share: these must leave it alive."""

    def __init__(self, folder: Path) -> None:
        self.act, self.remotes = folder / "act", dict[bool, Remote]()
        self.backend = write_backend(folder, ODD + OBEYS.format(path=str(self.act)), "Odd")

    def __call__(self, act: str, share: bool = True) -> Remote:
        body = f"    odd = src.dims == (13,)\n    {act}\n    return go(src, shapes, may_overwrite)\n"
        self.act.write_text(f"def answer():\n{body}")
        if share not in self.remotes:
            self.remotes[share] = worker(self.backend, LIMITS, share)
        assert self.remotes[share].generation == 1
        return self.remotes[share]


@pytest.fixture(scope="module")
def obedient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Obedient]:
    obedient = Obedient(tmp_path_factory.mktemp("obedient"))
    yield obedient
    for remote in obedient.remotes.values():
        remote.close()
        assert remote.bad_end is None


STANDS_IN = """
from pathlib import Path
from conformance.adapter import load_adapter
from conformance.adapters.reference import Reference

class StandsIn(Reference):
    own = None

    def compile(self, graph):
        if self.own is None:
            self.own = load_adapter(Path({file!r}).read_text())
        return self.own.compile(graph)
"""


class Fresh:
    """One backend after another, each in a fresh process: a copy of one that has imported all that they need.

    They have the identity and the claims of the reference. One that ends its process with an exit code is not for this:
    from then on no process would be a copy.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / "backend"
        self.file.write_text("reference")
        self.remote = worker(write_backend(folder, STANDS_IN.format(file=str(self.file)), "StandsIn"), LIMITS)
        called(self.remote, (2, 3))  # so that there can be copies

    def __call__(self, backend: str, limits: Limits = LIMITS) -> Remote:
        remote = self.remote
        self.file.write_text("reference")  # which is what the first copy must be
        remote.renew()
        remote.calls_alone, remote.seconds_late, remote.given_up = False, 0.0, None
        remote.session().process.limits = remote.limits = limits
        assert remote.copies is not None
        remote.copies.limits, remote.generation = limits, 1
        self.file.write_text(backend)
        return remote


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fresh]:
    fresh = Fresh(tmp_path_factory.mktemp("fresh"))
    yield fresh
    fresh.remote.close()
    assert fresh.remote.bad_end is None


def run_in_both(backend: str, rows: Sequence[Row], there: Remote) -> tuple[list[Result], list[Result]]:
    """The results of rows in this process, and in one of the backend's own that is not started anew."""
    with use_backend(backend, "none") as here:
        results = list(run(rows, here)), list(run(rows, there))
    assert there.generation == 1
    return results


def verdicts(results: Iterable[Result]) -> set[str]:
    return {verdict for result in results for verdict in result.verdicts.values()}
