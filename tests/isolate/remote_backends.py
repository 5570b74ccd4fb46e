"""Backends in other processes."""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from conformance.isolate.backend import Isolation, run_in_isolation, use_backend
from conformance.isolate.process.launch import ProcessLimits
from conformance.isolate.protocol.remote import RemoteAdapter, start_worker
from conformance.model import Adapter, Result
from conformance.plan.rows import Row
from conformance.run.ended_process import DEFAULT_HANGS, HangPolicy
from conformance.run.row import run_rows

from .calls import call

LIMITS = ProcessLimits(seconds=10.0)
OPEN: list[RemoteAdapter] = []


def start(backend: str, limits: ProcessLimits = LIMITS) -> RemoteAdapter:
    OPEN.append(start_worker(backend, limits))
    return OPEN[-1]


def close_well(remote: RemoteAdapter) -> None:
    """Close a process, and assert that none of its backend came to a bad end."""
    remote.close()
    assert [end.problem for end in remote.ends if end.problem] == []


def write_backend(folder: Path, text: str, name: str) -> str:
    path = folder / "backend.py"
    path.write_text(text, encoding="utf-8")
    return f"{path}:{name}"


ACTING = """import atexit, ctypes, os, signal, subprocess, sys, threading, time
from pathlib import Path
from conformance.adapters.reference import Reference
{before}
class Acting(Reference):
    def compile(self, graph):
        {act}
        return super().compile(graph)
"""


def write_acting(folder: Path, act: str, before: str = "") -> str:
    """A right backend that acts before it compiles a graph; `before` are lines before its class."""
    return write_backend(folder, ACTING.format(act=act, before=before), "Acting")


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
    """Backends that act as those of `write_odd`, in a process that several tests share and must leave alive."""

    def __init__(self, folder: Path) -> None:
        self.act, self.remotes = folder / "act", dict[bool, RemoteAdapter]()
        self.backend = write_backend(folder, ODD + OBEYS.format(path=str(self.act)), "Odd")

    def __call__(self, act: str, share: bool = True) -> RemoteAdapter:
        body = f"    odd = src.dims == (13,)\n    {act}\n    return go(src, shapes, may_overwrite)\n"
        self.act.write_text(f"def answer():\n{body}")
        if share not in self.remotes:
            with pytest.MonkeyPatch.context() as patch:
                if not share:
                    patch.delattr("os.memfd_create", raising=False)
                self.remotes[share] = start_worker(self.backend, LIMITS)
        assert self.remotes[share].starts == 1
        return self.remotes[share]


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
        self.remote = start_worker(write_backend(folder, STANDS_IN.format(file=str(self.file)), "StandsIn"), LIMITS)
        call(self.remote, (2, 3))  # so that there can be copies
        self.remote.renew()
        self.remote.session()  # the first copy is tried with that call, which a test that counts calls must not see

    def __call__(self, backend: str, limits: ProcessLimits = LIMITS) -> RemoteAdapter:
        remote = self.remote
        self.file.write_text("reference")  # which is what the first copy must be
        remote.renew()
        remote.calls_alone, remote.seconds_lost, remote.given_up = False, 0.0, None
        remote.session().process.limits = remote.limits = limits
        assert remote.fork_server is not None
        remote.fork_server.limits, remote.starts = limits, 1
        self.file.write_text(backend)
        return remote


@contextmanager
def suite_to_kill(backend: str, before: str = "") -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Another suite, which calls a backend with a src of 4 by 5 and then sleeps, and the process of the backend."""
    script = (
        "import time\nfrom conformance.isolate.protocol.remote import start_worker\n"
        "from tests.isolate.calls import call\n"
        f"remote = start_worker({backend!r})\n{before}\nprint(remote.session().process.pid, flush=True)\n"
        "call(remote, (4, 5))\ntime.sleep(60)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=env, text=True) as suite:
        assert suite.stdout is not None
        yield suite, int(suite.stdout.readline())


def run_remote(
    remote: Adapter, rows: Iterable[Row], isolation: Isolation = "worker", policy: HangPolicy = DEFAULT_HANGS
) -> Iterator[Result]:
    return run_in_isolation(rows, remote, remote.claims, isolation, policy)


def run_in_both(backend: str, rows: Sequence[Row], there: RemoteAdapter) -> tuple[list[Result], list[Result]]:
    """The results of rows in this process, and in another that must not start again."""
    with use_backend(backend, "none") as here:
        results = list(run_rows(rows, here)), list(run_rows(rows, there))
    assert there.starts == 1
    return results


def verdicts(results: Iterable[Result]) -> set[str]:
    return {verdict for result in results for verdict in result.verdicts.values()}
