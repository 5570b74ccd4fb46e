"""What a backend imports is imported once for many processes, and nothing else is different in a copy."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from conformance.isolate.backend import run_rows
from conformance.isolate.process.launch import Limits
from conformance.isolate.protocol.remote import Remote, worker
from conformance.load.cases import load_suite
from conformance.model import Crashed, TimedOut
from conformance.plan.rows import plan_of

from ..builders import some_slow
from ..processes import parent_of, running, wait
from .calls import called
from .faulty_program import hurry

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only there copies are made")
LIMITS = Limits(seconds=3, start_seconds=60, stop_seconds=5)
SHORT = LIMITS._replace(seconds=1)
LIBRARY = """
import os, signal, subprocess, sys, threading, time
from pathlib import Path
HERE = Path(__file__).parent
with open(HERE / "imported", "a") as file:
    file.write("i")
IMPORTED_BY = os.getpid()
{on_import}
"""
ADAPTER = """
import copied_library
from copied_library import *
from conformance.adapter import FunctionAdapter

class Copied(FunctionAdapter):
    name, version = "copied", "1"

    def __init__(self):
        {on_start}

    def reshape(self, src, shape, special_zero):
        if src.shape == (13, 1):
            os.abort()
        if src.shape == (13, 2):
            os._exit(7)
        if src.shape == (13, 3):
            time.sleep(60)
        if src.shape == (13, 4):
            return bytearray(1 << 40)
        if src.shape == (13, 5):
            child = subprocess.Popen(['sleep', '60'], start_new_session=True, stdin=subprocess.DEVNULL)
            (HERE / "child").write_text(str(child.pid))
        {on_call}
        return src.reshape(shape).copy()
"""


class Stand:
    """A backend, its library, and how often that was imported."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.remotes = folder, list[Remote]()

    def close(self) -> None:
        for remote in self.remotes:
            remote.close()

    def backend(self, on_import: str = "", on_start: str = "pass", on_call: str = "pass") -> str:
        (self.folder / "copied_library.py").write_text(LIBRARY.format(on_import=dedent(on_import)))
        (self.folder / "adapter.py").write_text(ADAPTER.format(on_start=on_start, on_call=on_call))
        return f"{self.folder / 'adapter.py'}:Copied"

    def remote(
        self, on_import: str = "", on_start: str = "pass", on_call: str = "pass", limits: Limits = LIMITS
    ) -> Remote:
        """One that has answered a call."""
        self.remotes.append(worker(self.backend(on_import, on_start, on_call), limits))
        assert called(self.remotes[-1], (2, 3)).dims == (6,)
        return self.remotes[-1]

    @property
    def imports(self) -> int:
        return len((self.folder / "imported").read_text())


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    monkeypatch.syspath_prepend(str(tmp_path))
    stand = Stand(tmp_path)
    yield stand
    stand.close()


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """A stand whose one backend runs in a copy, for several tests; none of them may end the process it is a copy of."""
    stand = Stand(tmp_path_factory.mktemp("copied"))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(stand.folder))
        renewed(stand.remote(), 1)
    yield stand
    stand.close()


def renewed(remote: Remote, times: int) -> None:
    for _ in range(times):
        remote.renew()
        assert called(remote, (3, 4)).dims == (12,)


def test_a_library_is_imported_once_for_all_processes_after_the_first(copied: Stand) -> None:
    (remote,) = copied.remotes
    starts = remote.generation
    renewed(remote, 5)
    assert (remote.generation, copied.imports) == (starts + 5, 2)


def test_a_process_from_nothing_imports_it_again_and_nothing_is_left_once_all_are_closed(stand: Stand) -> None:
    remote = stand.remote(on_import="(HERE / 'prefork').write_text(str(os.getpid()))")
    renewed(remote, 2)
    prefork = int((stand.folder / "prefork").read_text())
    remote.restart()
    assert called(remote, (3, 4)).dims == (12,)
    assert stand.imports == 3
    renewed(remote, 2)
    assert stand.imports == 3
    copy = remote.session().process.pid
    assert running(prefork)
    assert os.getpgid(prefork) == prefork != copy
    remote.close()
    assert remote.bad_end is None
    assert not running(group=prefork)
    assert not running(group=copy)


def test_a_process_from_nothing_is_a_copy_that_imports_the_backend_itself(stand: Stand) -> None:
    remote = stand.remote(on_call="if os.getpid() != IMPORTED_BY: os.abort()")
    remote.restart()
    assert called(remote, (3, 4)).dims == (12,)
    parent = parent_of(remote.session().process.pid)
    assert parent != os.getpid()
    assert stand.imports == 1 + 1
    remote.close()
    assert not running(parent)


HASH = "if src.shape == (5, 1): import numpy; return numpy.full(1, hash('a text'), 'f8')"


def test_a_call_made_again_has_other_hashes_each_time(stand: Stand) -> None:
    remote = stand.remote(on_call=HASH)
    hashes = set[bytes]()
    for _ in range(3):
        hashes.add(bytes(called(remote, (5, 1)).memory))
        remote.restart()
    assert len(hashes) == 3


def test_without_room_for_its_pipes_there_is_no_copy_and_nothing_stays_open(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote, make, asked = stand.remote(), os.pipe, list[int]()
    renewed(remote, 1)
    remote.renew()
    before = len(os.listdir("/proc/self/fd"))

    def pipe() -> tuple[int, int]:
        asked.append(1)
        if len(asked) == 3:
            raise OSError(errno.EMFILE, "too many open files")
        return make()

    monkeypatch.setattr(os, "pipe", pipe)
    assert called(remote, (3, 4)).dims == (12,)
    remote.close()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_a_copy_leads_a_session_as_any_process_does(copied: Stand) -> None:
    (remote,) = copied.remotes
    renewed(remote, 1)
    pid = remote.session().process.pid
    assert os.getsid(pid) == pid


def test_a_backend_that_starts_in_no_copy_is_started_from_nothing_by_the_suite(stand: Stand) -> None:
    remote = stand.remote(on_start=f"if os.getppid() != {os.getpid()}: 1 / 0")
    for _ in range(2):
        remote.restart()
        assert called(remote, (3, 4)).dims == (12,)
    assert parent_of(remote.session().process.pid) == os.getpid()
    assert remote.given_up is None


def test_an_end_is_told_as_of_any_process(copied: Stand) -> None:
    (remote,) = copied.remotes
    ends: list[tuple[tuple[int, ...], type[Exception], str]] = [
        ((13, 1), Crashed, "run: the process died of SIGABRT"),
        ((13, 3), TimedOut, r"no answer within 0\.3 s to run"),
        ((13, 4), MemoryError, "MemoryError"),
    ]
    for dims, kind, words in ends:
        renewed(remote, 1)
        if kind is TimedOut:
            hurry(remote)
        with pytest.raises(kind, match=words):
            called(remote, dims)
    renewed(remote, 1)
    assert copied.imports == 2, "all are copies"


def test_a_process_that_came_to_an_end_of_its_own_is_the_last_copy(stand: Stand) -> None:
    """What the import registered to be done at the end was done, to files perhaps that others need."""
    remote = stand.remote()
    renewed(remote, 1)
    with pytest.raises(Crashed, match="run: the process ended with exit code 7"):
        called(remote, (13, 2))
    assert stand.imports == 2, "it was a copy"
    renewed(remote, 2)
    assert stand.imports == 2 + 2


IMPORTS = {
    "a thread": "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()",
    "a child": "subprocess.Popen(['sleep', '60'])",
    "a child without a mark": "subprocess.Popen(['/bin/sleep', '60'], env={})",
    "a child of a child": "subprocess.run('sleep 60 >/dev/null 2>&1 &', shell=True, start_new_session=True)",
    "an end": "sys.exit(0) if len((HERE / 'imported').read_text()) == 2 else None",
    "a death": "os.kill(os.getpid(), signal.SIGKILL) if len((HERE / 'imported').read_text()) == 2 else None",
}


@pytest.mark.parametrize("what", some_slow(IMPORTS, ("a thread", "a child of a child")))
def test_an_import_that_leaves_more_than_a_copy_would_have_is_made_each_time(stand: Stand, what: str) -> None:
    remote = stand.remote(IMPORTS[what])
    renewed(remote, 2)
    assert (remote.generation, stand.imports) == (3, 4)


CALLS = (
    "os.abort()", "raise ValueError('not in a copy')", "time.sleep(60)", "return src.reshape(shape) + 1", "1 / 0",
)  # fmt: skip


@pytest.mark.parametrize("in_a_copy", some_slow(CALLS, ("return src.reshape(shape) + 1",)))
def test_a_backend_that_does_not_bear_to_be_copied_is_not(stand: Stand, in_a_copy: str) -> None:
    limits = SHORT if "sleep" in in_a_copy else LIMITS
    remote = stand.remote(on_call=f"if os.getpid() != IMPORTED_BY: {in_a_copy}", limits=limits)
    renewed(remote, 2)
    assert stand.imports == 4


@pytest.mark.parametrize("act", some_slow(["os.abort()", "1 / 0", "Copied.version = '2'"], ("1 / 0",)))
def test_one_that_cannot_start_in_a_copy_is_started_from_nothing(stand: Stand, act: str) -> None:
    remote = stand.remote(on_start=f"if os.getpid() != IMPORTED_BY: {act}")
    renewed(remote, 2)
    assert remote.given_up is None
    assert stand.imports == 4


def test_no_call_answered_with_elements_no_copy(stand: Stand) -> None:
    stand.remotes.append(remote := worker(stand.backend(), LIMITS))
    with pytest.raises(Crashed):
        called(remote, (13, 1))
    assert called(remote, (0, 3)).dims == (0,)
    assert stand.imports == 2
    remote.renew()
    assert called(remote, (2, 3)).dims == (6,)
    assert stand.imports == 3
    renewed(remote, 2)
    assert stand.imports == 4


def test_a_copy_has_the_limits_of_any_process(copied: Stand) -> None:
    (remote,) = copied.remotes
    renewed(remote, 1)
    pid = remote.session().process.pid
    assert resource.prlimit(pid, resource.RLIMIT_AS)[0] == LIMITS.memory
    assert resource.prlimit(pid, resource.RLIMIT_CORE)[0] == 0
    assert os.getpgid(pid) == pid


def test_what_a_copy_started_ends_with_it_and_the_prefork_process_goes_on(copied: Stand) -> None:
    (remote,) = copied.remotes
    for _ in range(3):
        renewed(remote, 1)
        assert called(remote, (13, 5)).dims == (65,)
        child = int((copied.folder / "child").read_text())
        assert running(child)
        remote.renew()
        assert not running(child)
    assert copied.imports == 2


@pytest.mark.parametrize(
    "hangs", some_slow(["pass", "ctypes.PyDLL(None).sleep(60)"], ("ctypes.PyDLL(None).sleep(60)",))
)
def test_the_prefork_process_and_its_copy_end_when_the_suite_is_killed(stand: Stand, hangs: str) -> None:
    backend = stand.backend(
        "import ctypes; (HERE / 'prefork').write_text(str(os.getpid()))",
        on_call=(f"if src.shape == (4, 5): import ctypes; (HERE / 'called').touch(); {hangs}"),
    )
    script = (
        "import time\nfrom conformance.isolate.protocol.remote import worker\n"
        "from tests.isolate.calls import called\n"
        f"w = worker({backend!r})\ncalled(w, (2, 3))\nw.renew()\ncalled(w, (2, 3))\n"
        "print(w.session().process.pid, flush=True)\ncalled(w, (4, 5))\ntime.sleep(60)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=env, text=True) as parent:
        assert parent.stdout is not None
        copy = int(parent.stdout.readline())
        wait((stand.folder / "called").exists)
        prefork = int((stand.folder / "prefork").read_text())
        assert running(prefork)
        assert running(copy)
        parent.send_signal(signal.SIGKILL)
    wait(lambda: not running(prefork) and not running(copy))


def test_a_copy_whose_prefork_process_was_killed_is_ended_and_the_run_goes_on(stand: Stand) -> None:
    remote = stand.remote(on_import="(HERE / 'prefork').write_text(str(os.getpid()))")
    renewed(remote, 1)
    copy = remote.session().process.pid
    os.kill(int((stand.folder / "prefork").read_text()), signal.SIGKILL)
    assert called(remote, (3, 4)).dims == (12,)
    renewed(remote, 2)
    assert not running(copy)
    assert stand.imports == 2 + 2


def test_a_prefork_process_that_goes_first_takes_its_copy_along(stand: Stand) -> None:
    remote = stand.remote()
    renewed(remote, 1)
    copy = remote.session().process.pid
    assert remote.copies is not None
    remote.copies.close()
    wait(lambda: not running(copy))
    with pytest.raises(Crashed, match="the process died of SIGKILL"):
        called(remote, (3, 4))
    assert called(remote, (3, 4)).dims == (12,)


def test_each_row_in_a_process_of_its_own_needs_one_import_more(stand: Stand) -> None:
    stand.remotes.append(remote := worker(stand.backend(), LIMITS))
    rows = [row for row in plan_of(load_suite()).rows if row.type == "f32"][:8]
    list(run_rows(rows, remote, remote.claims, "case"))
    assert remote.generation == 1 + len(rows)
    assert stand.imports < len(rows) // 2
