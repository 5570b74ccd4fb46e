"""Copies of a process: a backend imports its library once for many processes, and nothing else is different."""

import errno
import os
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from conformance.isolate.process.launch import ProcessLimits
from conformance.isolate.protocol.remote import RemoteAdapter, start_worker
from conformance.model import Crashed, TimedOut

from ..builders import bundled_plan, rest_exhaustive
from ..processes import parent_of, running, wait
from .calls import call
from .faulty_program import hurry
from .remote_backends import close_well, run_remote, suite_to_kill

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only there copies are made")
LIMITS = ProcessLimits(seconds=3, start_seconds=60, stop_seconds=5)
SHORT = LIMITS._replace(seconds=1)
LIBRARY = """
import os, signal, subprocess, sys, threading, time
from pathlib import Path
HERE = Path(__file__).parent
with open(HERE / "imported", "a") as file:
    file.write("i")
IMPORTED_BY = os.getpid()
(HERE / "importer").write_text(str(IMPORTED_BY))
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


class CountedLibrary:
    """A backend, its library, and how often that was imported."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.remotes = folder, list[RemoteAdapter]()

    def close(self) -> None:
        for remote in self.remotes:
            remote.close()

    def backend(self, on_import: str = "", on_start: str = "pass", on_call: str = "pass") -> str:
        (self.folder / "copied_library.py").write_text(LIBRARY.format(on_import=dedent(on_import)))
        (self.folder / "adapter.py").write_text(ADAPTER.format(on_start=on_start, on_call=on_call))
        return f"{self.folder / 'adapter.py'}:Copied"

    def remote(
        self, on_import: str = "", on_start: str = "pass", on_call: str = "pass", limits: ProcessLimits = LIMITS
    ) -> RemoteAdapter:
        """One that has answered a call."""
        self.remotes.append(start_worker(self.backend(on_import, on_start, on_call), limits))
        assert call(self.remotes[-1], (2, 3)).dims == (6,)
        return self.remotes[-1]

    @property
    def imports(self) -> int:
        return len((self.folder / "imported").read_text())

    @property
    def importer(self) -> int:
        """The process that imported it last."""
        return int((self.folder / "importer").read_text())


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CountedLibrary]:
    monkeypatch.syspath_prepend(str(tmp_path))
    library = CountedLibrary(tmp_path)
    yield library
    library.close()


@pytest.fixture(scope="module")
def shared_library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CountedLibrary]:
    """A backend that runs in a copy, for several tests. None of them may end the process that is copied."""
    library = CountedLibrary(tmp_path_factory.mktemp("copied"))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(library.folder))
        renew(library.remote(), 1)
    yield library
    library.close()


def renew(remote: RemoteAdapter, times: int) -> None:
    for _ in range(times):
        remote.renew()
        assert call(remote, (3, 4)).dims == (12,)


@pytest.fixture
def copy(shared_library: CountedLibrary) -> RemoteAdapter:
    (remote,) = shared_library.remotes
    renew(remote, 1)
    return remote


def test_processes_after_the_first_import_once(shared_library: CountedLibrary, copy: RemoteAdapter) -> None:
    remote, starts = copy, copy.starts
    renew(remote, 5)
    assert (remote.starts, shared_library.imports) == (starts + 5, 2)


@pytest.mark.slow
def test_a_restart_imports_again_and_close_ends_all(library: CountedLibrary) -> None:
    remote = library.remote()
    renew(remote, 2)
    prefork = library.importer
    remote.restart()
    assert call(remote, (3, 4)).dims == (12,)
    assert library.imports == 3
    renew(remote, 2)
    assert library.imports == 3
    copy = remote.session().process.pid
    assert running(prefork)
    assert os.getpgid(prefork) == prefork != copy
    close_well(remote)
    assert not running(group=prefork)
    assert not running(group=copy)


def test_a_restart_copies_a_process_without_the_backend(library: CountedLibrary) -> None:
    """The new process imports the backend itself."""
    remote = library.remote(on_call="if os.getpid() != IMPORTED_BY: os.abort()")
    remote.restart()
    assert call(remote, (3, 4)).dims == (12,)
    parent = parent_of(remote.session().process.pid)
    assert parent != os.getpid()
    assert library.imports == 1 + 1
    remote.close()
    assert not running(parent)


@pytest.mark.slow
def test_hashes_differ_after_each_restart(library: CountedLibrary) -> None:
    remote = library.remote(on_call="if src.shape == (5, 1): import numpy; return numpy.full(1, hash('a text'), 'f8')")
    hashes = set[bytes]()
    for _ in range(3):
        hashes.add(bytes(call(remote, (5, 1)).memory))
        remote.restart()
    assert len(hashes) == 3


@pytest.mark.slow
def test_no_copy_without_room_for_its_pipes(library: CountedLibrary, monkeypatch: pytest.MonkeyPatch) -> None:
    remote, make, asked = library.remote(), os.pipe, list[int]()
    renew(remote, 1)
    remote.renew()
    before = len(os.listdir("/proc/self/fd"))

    def pipe() -> tuple[int, int]:
        asked.append(1)
        if len(asked) == 3:
            raise OSError(errno.EMFILE, "too many open files")
        return make()

    monkeypatch.setattr(os, "pipe", pipe)
    assert call(remote, (3, 4)).dims == (12,)
    remote.close()
    assert len(os.listdir("/proc/self/fd")) <= before


def test_the_session_group_and_limits_of_a_copy(copy: RemoteAdapter) -> None:
    pid = copy.session().process.pid
    assert os.getsid(pid) == os.getpgid(pid) == pid
    assert resource.prlimit(pid, resource.RLIMIT_AS)[0] == LIMITS.memory
    assert resource.prlimit(pid, resource.RLIMIT_CORE)[0] == 0


@pytest.mark.slow
def test_a_backend_that_never_starts_in_a_copy(library: CountedLibrary) -> None:
    remote = library.remote(on_start=f"if os.getppid() != {os.getpid()}: 1 / 0")
    for _ in range(2):
        remote.restart()
        assert call(remote, (3, 4)).dims == (12,)
    assert parent_of(remote.session().process.pid) == os.getpid()
    assert remote.given_up is None


@pytest.mark.parametrize(
    ("dims", "kind", "words"),
    [
        ((13, 1), Crashed, "run: the process died of SIGABRT"),
        ((13, 3), TimedOut, r"no answer within 0\.3 s to run"),
        ((13, 4), MemoryError, "MemoryError"),
    ],
    ids=["crash", "hang", "memory"],
)
def test_the_end_of_a_copy_has_its_reason(
    shared_library: CountedLibrary, copy: RemoteAdapter, dims: tuple[int, ...], kind: type[Exception], words: str
) -> None:
    if kind is TimedOut:
        hurry(copy)
    with pytest.raises(kind, match=words):
        call(copy, dims)
    renew(copy, 1)
    assert shared_library.imports == 2, "all are copies"


@pytest.mark.slow
def test_the_copy_that_exits_is_the_last(library: CountedLibrary) -> None:
    """Its exit ran the functions that the import registered, and these may have removed files that others need."""
    remote = library.remote()
    renew(remote, 1)
    with pytest.raises(Crashed, match="run: the process ended with exit code 7"):
        call(remote, (13, 2))
    assert library.imports == 2, "it was a copy"
    renew(remote, 2)
    assert library.imports == 2 + 2


IN_A_COPY = "if os.getpid() != IMPORTED_BY: "
SECOND = "if len((HERE / 'imported').read_text()) == 2 else None"
WITHOUT_COPIES = {
    "imports a thread": {"on_import": "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()"},
    "imports a child": {"on_import": "subprocess.Popen(['sleep', '60'])"},
    "imports a child without a mark": {"on_import": "subprocess.Popen(['/bin/sleep', '60'], env={})"},
    "imports a child of a child": {
        "on_import": "subprocess.run('sleep 60 >/dev/null 2>&1 &', shell=True, start_new_session=True)"
    },
    "imports an end": {"on_import": f"sys.exit(0) {SECOND}"},
    "imports a death": {"on_import": f"os.kill(os.getpid(), signal.SIGKILL) {SECOND}"},
    "crashes": {"on_call": f"{IN_A_COPY}os.abort()"},
    "rejects": {"on_call": f"{IN_A_COPY}raise ValueError('not in a copy')"},
    "hangs": {"on_call": f"{IN_A_COPY}time.sleep(60)"},
    "answers wrong": {"on_call": f"{IN_A_COPY}return src.reshape(shape) + 1"},
    "errs": {"on_call": f"{IN_A_COPY}1 / 0"},
    "crashes at the start": {"on_start": f"{IN_A_COPY}os.abort()"},
    "errs at the start": {"on_start": f"{IN_A_COPY}1 / 0"},
    "has another version": {"on_start": f"{IN_A_COPY}Copied.version = '2'"},
}
"""An import that a copy cannot repeat, and what a backend does in a copy only."""


OFTEN = (
    "imports a thread", "imports a child of a child", "imports an end", "answers wrong", "hangs", "errs at the start",
    "has another version",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", rest_exhaustive(WITHOUT_COPIES, OFTEN))
def test_a_backend_that_cannot_be_copied(library: CountedLibrary, what: str) -> None:
    remote = library.remote(**WITHOUT_COPIES[what], limits=SHORT if what == "hangs" else LIMITS)
    renew(remote, 2)
    assert library.imports == 4
    assert remote.given_up is None
    assert "imports" not in what or remote.starts == 3


@pytest.mark.slow
def test_no_copy_before_an_answer_with_elements(library: CountedLibrary) -> None:
    library.remotes.append(remote := start_worker(library.backend(), LIMITS))
    with pytest.raises(Crashed):
        call(remote, (13, 1))
    assert call(remote, (0, 3)).dims == (0,)
    assert library.imports == 2
    remote.renew()
    assert call(remote, (2, 3)).dims == (6,)
    assert library.imports == 3
    renew(remote, 2)
    assert library.imports == 4


def test_a_child_of_a_copy_ends_with_it(shared_library: CountedLibrary, copy: RemoteAdapter) -> None:
    for _ in range(3):
        renew(copy, 1)
        assert call(copy, (13, 5)).dims == (65,)
        child = int((shared_library.folder / "child").read_text())
        assert running(child)
        copy.renew()
        assert not running(child)
    assert shared_library.imports == 2


@pytest.mark.parametrize("hangs", ["ctypes.PyDLL(None).sleep(60)", pytest.param("pass", marks=pytest.mark.slow)])
def test_prefork_process_and_copy_end_with_a_killed_suite(library: CountedLibrary, hangs: str) -> None:
    on_call = f"if src.shape == (4, 5): import ctypes; (HERE / 'called').touch(); {hangs}"
    backend = library.backend("import ctypes", on_call=on_call)
    renewal = "call(remote, (2, 3)); remote.renew(); call(remote, (2, 3))"
    with suite_to_kill(backend, renewal) as (suite, copy):
        wait((library.folder / "called").exists)
        prefork = library.importer
        assert running(prefork)
        assert running(copy)
        suite.kill()
    wait(lambda: not running(prefork) and not running(copy))


@pytest.mark.slow
def test_a_run_goes_on_after_its_prefork_process(library: CountedLibrary) -> None:
    remote = library.remote()
    renew(remote, 1)
    copy = remote.session().process.pid
    os.kill(library.importer, signal.SIGKILL)
    assert call(remote, (3, 4)).dims == (12,)
    renew(remote, 2)
    assert not running(copy)
    assert library.imports == 2 + 2


@pytest.mark.slow
def test_each_row_in_its_own_process_imports_once(library: CountedLibrary) -> None:
    library.remotes.append(remote := start_worker(library.backend(), LIMITS))
    rows = [row for row in bundled_plan().rows if row.type == "f32"][:8]
    list(run_remote(remote, rows, "row"))
    assert remote.starts == 1 + len(rows)
    assert library.imports < len(rows) // 2
