"""The files under test are named, or it is said that they are not: ways in which another file may run unnoticed."""

import fnmatch
import os
import py_compile
import shutil
import signal
import sqlite3
import sys
import venv
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, nullcontext
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NamedTuple

import pytest

from conformance.adapter import CannotStart
from conformance.evidence import subject
from conformance.evidence.subject import Subject
from conformance.isolate.backend import as_remote, note_opened_files, use_backend
from conformance.isolate.process.launch import import_code
from conformance.isolate.protocol.opened import NotedFiles, OpenedFiles
from conformance.runner.run_suite import read_subject_of
from tests.builders import some_slow

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the map of memory of Linux")
ADAPTER = """
from conformance.adapters.reference import Reference
class Mine(Reference): pass
"""
WORKER = f"{import_code()}\nfrom conformance.isolate.protocol.worker import main; sys.exit(main(['reference']))\n"
MAKES_CODE = "import mmap; code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC)"
IN_MEMORY = """
import ctypes, os
file = os.memfd_create("mine")
os.write(file, open({0!r}, "rb").read())
ctypes.CDLL(f"/proc/self/fd/{{file}}")
"""


@pytest.fixture(autouse=True)
def system_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read what no test changes once, and a few files of each package there: NumPy alone takes half of the time."""
    monkeypatch.setattr(subject, "_read_records", lru_cache(None)(read_few))
    monkeypatch.setattr(
        subject, "_is_packaged", lambda path: (packaged_once if str(path).startswith("/usr/") else is_packaged)(path)
    )


def read_few(folder: Path) -> Mapping[str, Any]:
    return read_once(folder) if str(folder).startswith(ENVIRONMENT) else read_records(folder)


@cache
def read_once(folder: Path) -> Mapping[str, Any]:
    return {name: package._replace(files=package.files[:5]) for name, package in read_records(folder).items()}


ENVIRONMENT = os.path.realpath(sys.prefix)
read_records, is_packaged = subject._read_records.__wrapped__, subject._is_packaged
packaged_once = cache(is_packaged)


def subject_of(backend: str) -> Subject:
    with note_opened_files() as opened, use_backend(backend, "worker", opened=opened) as adapter:
        return read_subject_of(adapter, backend, opened)


def adapter(folder: Path, code: str) -> str:
    """Write an adapter that runs some code when it is imported."""
    (folder / "mine.py").write_text(f"{code}\n{ADAPTER}")
    return f"{folder / 'mine.py'}:Mine"


def library(path: Path, number: int) -> Path:
    """Write a library that needs nothing of Python, and differs by its end."""
    model = next(path for path in subject._find_mapped_by_python() if path.name.startswith("libffi"))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(model.read_bytes() + bytes([number]))
    return path


def program(folder: Path, number: int = 0) -> Path:
    (folder / "prog.py").write_text(f"# {number}\n{WORKER}")
    return folder / "prog.py"


def environment(folder: Path, monkeypatch: pytest.MonkeyPatch, **files: str) -> None:
    """Let workers run in an environment with these files in its folder of packages."""
    venv.create(folder / "env", symlinks=True)
    (packages,) = (folder / "env").glob("lib/python*/site-packages")
    for name, text in files.items():
        (packages / name.replace("_py", ".py").replace("_pth", ".pth")).write_text(text)
    monkeypatch.setattr(sys, "executable", str(folder / "env" / "bin" / "python"))


class SubjectAttack(NamedTuple):
    """Something that runs another file the second time."""

    make: Callable[[Path, int, pytest.MonkeyPatch], str]
    """Prepares the first or second time, and returns the backend."""
    name: str
    """What then has another digest, or none and is said."""
    broken: str = ""
    """The function without which nobody sees it; empty if the map of memory alone shows it."""


def loads(name: str, code: str = "import ctypes; ctypes.CDLL({0!r})") -> Callable[..., str]:
    """The adapter loads a library with this name."""
    return lambda folder, number, _: adapter(folder, code.format(str(library(folder / name, number))))


def swapped(folder: Path, number: int, _: pytest.MonkeyPatch) -> str:
    contents = {"a": number, "b": 3 - number}
    paths = [str(library(folder / place / "libmine.so", content)) for place, content in contents.items()]
    return adapter(folder, f"import ctypes; [*map(ctypes.CDLL, {paths})]")


def editable(folder: Path, number: int, patch: pytest.MonkeyPatch) -> str:
    (folder / "code" / "vendor").mkdir(parents=True, exist_ok=True)
    for name in ("__init__.py", "core.py"):
        (folder / "code" / "vendor" / name).write_text(f"number = {number}\n")
    finder = f"import sys; sys.path.append({str(folder / 'code')!r})\n"
    environment(folder, patch, vendor_pth="import vendor_finder\n", vendor_finder_py=finder)
    return adapter(folder, "import vendor.core")


def on_the_path(folder: Path, number: int, patch: pytest.MonkeyPatch) -> str:
    (folder / "path").mkdir(exist_ok=True)
    (folder / "path" / "vendor.py").write_text(f"number = {number}\n")
    patch.syspath_prepend(str(folder / "path"))
    return adapter(folder, "import vendor")


def before_noting(folder: Path, number: int, patch: pytest.MonkeyPatch) -> str:
    """PYTHONPATH precedes the standard library."""
    (folder / "fnmatch.py").write_text(f"{Path(fnmatch.__file__).read_text()}\nnumber = {number}\n")
    patch.syspath_prepend(str(folder))
    return adapter(folder, "")


def at_start(**files: str) -> Callable[..., str]:
    def make(folder: Path, number: int, patch: pytest.MonkeyPatch) -> str:
        environment(folder, patch, **{name: text.format(number) for name, text in files.items()})
        return adapter(folder, "")

    return make


def in_a_container(folder: Path, number: int, _: pytest.MonkeyPatch) -> str:
    seen, hidden = library(folder / "seen" / "libmine.so", 0), library(folder / "hidden" / "libmine.so", number)
    (folder / "prog.py").write_text(f"import ctypes; ctypes.CDLL({str(seen)!r})\n{WORKER}")
    sees = f"--bind / / --dev /dev --proc /proc --bind {hidden.parent} {seen.parent}"
    return f"cmd:bwrap {sees} {sys.executable} {folder / 'prog.py'}"


def preloaded(folder: Path, number: int, _: pytest.MonkeyPatch) -> str:
    return f"cmd:env LD_PRELOAD={library(folder / 'libmine.so', number)} {sys.executable} {program(folder)}"


def without_path(folder: Path, number: int, patch: pytest.MonkeyPatch) -> str:
    patch.setenv("LD_LIBRARY_PATH", str(library(folder / "libmine.so.1", number).parent))
    return adapter(folder, CLOSES.format("libmine.so.1"))


def in_our_process_too(folder: Path, number: int, patch: pytest.MonkeyPatch) -> str:
    import ctypes

    path = library(Path(mkdtemp(dir=folder)) / "libmine.so", number)
    ctypes.CDLL(str(path))
    return adapter(folder, f"import ctypes; ctypes.CDLL({str(path)!r})")


def with_data(code: str, name: str = "data") -> Callable[..., str]:
    def make(folder: Path, number: int, _: pytest.MonkeyPatch) -> str:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"number = {number}\n")
        return adapter(folder, code.format(str(folder / name)))

    return make


def with_helper(folder: Path, number: int, _: pytest.MonkeyPatch) -> str:
    helper = folder / "helper"
    helper.write_text(f"#!/bin/sh\nexit {number}\n")
    helper.chmod(0o755)
    return adapter(folder, f"import subprocess; subprocess.run([{str(helper)!r}])")


def started_in(code: str) -> Callable[..., str]:
    def make(folder: Path, number: int, patch: pytest.MonkeyPatch) -> str:
        with_helper(folder, number, patch)
        return adapter(folder, f"import subprocess; {code.format(str(folder))}")

    return make


def with_processes(folder: Path, number: int, _: pytest.MonkeyPatch) -> str:
    """Start a process by multiprocessing; no event of Python tells of it."""
    code = "import multiprocessing.util as util, os, sys, time; words = [sys.executable, '-c', 'input()']"
    return adapter(
        folder,
        f"{code}\nends = os.pipe()\nos.dup2(ends[0], 0); util.spawnv_passfds(sys.executable.encode(), words, [0])",
    )


def with_made_helper(folder: Path, number: int, _: pytest.MonkeyPatch) -> str:
    helper = str(folder / "helper")
    return adapter(
        folder,
        f"import os, subprocess\nwith open({helper!r}, 'w') as file: file.write('#!/bin/sh\\n')\n"
        f"os.chmod({helper!r}, 0o755)\nsubprocess.run([{helper!r}])",
    )


def in_a_package(folder: Path, number: int, patch: pytest.MonkeyPatch) -> str:
    """Its RECORD is never true, and what it lists is closed again when it is looked at."""
    packages = folder / "site-packages"
    library(packages / "vendor" / "libmine.so", number)
    (packages / "vendor" / "__init__.py").touch()
    (packages / "vendor-1.0.dist-info").mkdir(exist_ok=True)
    lines = "vendor/__init__.py,sha256=x,0\nvendor/libmine.so,sha256=x,1\n../../bin/vendor,sha256=x,1\n"
    (packages / "vendor-1.0.dist-info" / "RECORD").write_text(lines)
    patch.syspath_prepend(str(packages))
    return adapter(folder, "import vendor")


def with_comma_in_a_package(folder: Path, number: int, patch: pytest.MonkeyPatch) -> str:
    backend, packages = in_a_package(folder, 0, patch), folder / "site-packages"
    (packages / "vendor" / "a, b").write_text(f"{number}")
    with open(packages / "vendor-1.0.dist-info" / "RECORD", "a") as record:
        record.write('"vendor/a, b",sha256=x,1\n')
    return backend


def in_the_name_of_the_suite(folder: Path, number: int, patch: pytest.MonkeyPatch) -> str:
    (folder / "reshape_conformance-9.dist-info").mkdir(exist_ok=True)
    (folder / "reshape_conformance-9.dist-info" / "RECORD").write_text("libmine.so,,\n")
    return loads("libmine.so")(folder, number, patch)


def behind_a_link(folder: Path, number: int, _: pytest.MonkeyPatch) -> str:
    (folder / "data").write_text(f"{number}")
    (folder / "other").write_text("nothing")
    link = str(folder / "link")
    code = "import os; os.symlink('data', {0!r}); open({0!r}).read(); os.unlink({0!r}); os.symlink('other', {0!r})"
    Path(link).unlink(missing_ok=True)
    return adapter(folder, code.format(link))


def with_database(folder: Path, number: int, _: pytest.MonkeyPatch) -> str:
    with closing(sqlite3.connect(folder / "data.db")) as database:
        database.execute(f"PRAGMA user_version = {number}")
    return adapter(folder, f"import sqlite3; sqlite3.connect('file:{folder}/d%61ta.db?mode=ro', uri=True).close()")


def in_a_folder_that_is_swapped(folder: Path, number: int, _: pytest.MonkeyPatch) -> str:
    for name in ("code", "other"):
        (folder / name).mkdir()
        (folder / name / "core.py").write_text(f"name = {name!r}")
    swap = "os.rename('code', 'spare'); os.rename('other', 'code'); os.rename('spare', 'other')"
    code = f"import os, sys; os.chdir({str(folder)!r}); sys.path.append({str(folder / 'code')!r})"
    return adapter(folder, f"{code}\n{swap}\nimport core; {swap}")


CLOSES = "import ctypes, _ctypes; opened = ctypes.CDLL({0!r}); opened.ffi_call; _ctypes.dlclose(opened._handle)"
OVERWRITES = (
    "import ctypes; ctypes.CDLL({0!r}); file = open({0!r}, 'r+b'); file.seek(0, 2); file.write(b'2'); file.close()"
)
ATTACKS = {
    "a library with a name of the system": SubjectAttack(loads("libm-2.99.so"), "libm-2.99.so", "_is_packaged"),
    "an editable package": SubjectAttack(editable, "vendor (2 files)", "noted"),
    "a module on PYTHONPATH": SubjectAttack(on_the_path, "vendor.py", "noted"),
    "a program for an interpreter": SubjectAttack(
        lambda folder, number, _: f"cmd:{sys.executable} {program(folder, number)} {300 * 'x'}", "prog.py",
        "command_of"),
    "a file that only a container sees": SubjectAttack(in_a_container, "libmine.so", "_find_file"),
    "a preloaded library": SubjectAttack(preloaded, "libmine.so"),
    "a module that is imported before anything is noted": SubjectAttack(before_noting, "fnmatch.py", "noted"),
    "a start-up module": SubjectAttack(at_start(sitecustomize_py="number = {}\n"), "sitecustomize.py", "noted"),
    "a line of a .pth file": SubjectAttack(at_start(mine_pth="import sys; sys.number = {}\n"), "mine.pth", "noted"),
    "code with a name like a list of folders": SubjectAttack(
        with_data("exec(open({0!r}).read())", "mine.pth"), "mine.pth", "noted"),
    "a library that our process has, too": SubjectAttack(in_our_process_too, "libmine.so"),
    "a library that is closed again": SubjectAttack(loads("libmine.so", CLOSES), "libmine.so", "noted"),
    "a library without a path that is closed again": SubjectAttack(without_path, "libmine.so.1", "noted"),
    "a program that has ended": SubjectAttack(with_helper, "helper", "noted"),
    "a data file": SubjectAttack(with_data("open({0!r}).read()"), "data", "noted"),
    "code that is no module": SubjectAttack(with_data("exec(open({0!r}).read())"), "data", "noted"),
    "a library inside a package of the suite": SubjectAttack(loads("site-packages/ml_dtypes/libmine.so"), "libmine.so"),
    "a package that is not as its RECORD says": SubjectAttack(in_a_package, "vendor-1.0 (2 files)", "noted"),
    "a file of a package with a comma in its name": SubjectAttack(with_comma_in_a_package, "vendor-1.0 (3 files)"),
    "a library of a package with the name of the suite": SubjectAttack(in_the_name_of_the_suite, "libmine.so"),
    "a file behind a link that then leads elsewhere": SubjectAttack(behind_a_link, "data", "noted"),
    "a file that is opened to read and write": SubjectAttack(
        with_data("exec(open({0!r}, 'r+').read())"), "data", "noted"),
    "a file that is opened to append and read": SubjectAttack(
        with_data("with open({0!r}, 'a+') as f:\n    f.seek(0)\n    text = f.read()\nexec(text)"), "data", "noted"),
    "a file that native code may write": SubjectAttack(
        with_data("import ctypes; ctypes.CDLL(None).open({0!r}.encode(), 2)"), "data"),
    "a file that native code has mapped to write": SubjectAttack(
        with_data("import ctypes; c = ctypes.CDLL(None); file = c.open({0!r}.encode(), 2)\n"
                  "c.mmap(None, ctypes.c_size_t(1), 3, 1, file, ctypes.c_long(0)); c.close(file)"), "data"),
    "a file that a database has": SubjectAttack(with_database, "data.db", "noted"),
    "a data file beside metadata": SubjectAttack(
        with_data("open({0!r}).read()", "mine.egg-info/data"), "data", "noted"),
    "a file with a name that is no text": SubjectAttack(loads("libmine\udcff\n.so"), "libmine\\udcff\\n.so"),
    "a file with a name that is several lines": SubjectAttack(
        loads("lib\r\x0cmine.so", "import ctypes; ctypes.CDLL(None).dlopen({0!r}.encode(), 2)"),
        "lib\\x0d\\x0cmine.so"),
    "a file with a name like one deleted": SubjectAttack(loads("x.so (deleted)"), "x.so (deleted)"),
    "two libraries of one name that are swapped": SubjectAttack(swapped, "libmine.so"),
}  # fmt: skip


def break_check(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a function answer as if the check were not there."""
    nothing: dict[str, Any] = {
        "_is_packaged": lambda path: True,
        "command_of": lambda backend: [],
        "_find_file": lambda mapping: Path(mapping.name) if os.path.isfile(mapping.name) else None,
    }
    if name == "noted":
        none = NotedFiles({Path(__file__)}, set(), set(), set(), set(), set(), set())
        monkeypatch.setattr(OpenedFiles, name, lambda self: none)
    else:
        monkeypatch.setattr(subject, name, nothing[name])


def marked_attacks() -> list[Any]:
    """Return all attacks: two are fast, and CI tries every third of the others."""
    fast = ("an editable package", "a library with a name of the system")
    slow, exhaustive = [pytest.mark.slow], [pytest.mark.slow, pytest.mark.exhaustive]
    marks = [slow, exhaustive, exhaustive]
    return [name if name in fast else pytest.param(name, marks=marks[k % 3]) for k, name in enumerate(ATTACKS)]


@pytest.mark.slow
@pytest.mark.parametrize("name", marked_attacks())
def test_another_file_is_noticed_by_its_check_alone(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "container" in name and shutil.which("bwrap") is None:
        pytest.skip("needs bwrap")
    if "start-up" in name and find_spec("sitecustomize"):
        pytest.skip("this Python starts with a sitecustomize.py, as Debian's does")
    attack = ATTACKS[name]
    found, without_check = [], []
    for number in (1, 2):
        backend = attack.make(tmp_path, number, monkeypatch)
        with note_opened_files() as opened, use_backend(backend, "worker", opened=opened) as started:
            found.append(read_subject_of(started, backend, opened).files.get(attack.name))
            if attack.broken:
                with monkeypatch.context() as patch:
                    break_check(attack.broken, patch)
                    without_check.append(read_subject_of(started, backend, opened).files.get(attack.name))
    assert found[0] != found[1]
    if attack.broken:
        assert without_check[0] == without_check[1]


LOST = {
    "a file that is overwritten": (loads("libmine.so", OVERWRITES), "libmine.so (changed during the run)"),
    "a library that is unlinked": (
        loads("libmine.so", "import ctypes, os; ctypes.CDLL({0!r}); os.unlink({0!r})"),
        "libmine.so (deleted) (not at its path any more)"),
    "a library in memory": (loads("libmine.so", IN_MEMORY), "memfd:mine (deleted) (not at its path any more)"),
    "a file that nobody may read": (
        loads("libmine.so", "import ctypes, os; ctypes.CDLL({0!r}); os.chmod({0!r}, 0)"),
        "libmine.so (changed during the run)"),
    "what a helper reads": (with_helper, "the files that helper read"),
    "what a helper of its folder reads": (
        started_in("subprocess.run(['./helper'], cwd={0!r})"), "the files that helper read"),
    "what a helper of another PATH reads": (
        started_in("subprocess.run(['helper'], env=dict(PATH={0!r}))"), "the files that helper read"),
    "what a process of multiprocessing reads": (with_processes, "the files that python"),
    "what a process of multiprocessing that ended read": (
        lambda folder, *_: adapter(
            folder, "import multiprocessing as m; p = m.get_context('spawn').Process(); p.start(); p.join()"),
        "the files that python"),
    "a file that is read and then made again": (
        with_data("import os; os.chdir({0!r}[:-4]); open('data').read(); os.unlink('data'); open('data', 'w')"),
        "data (changed during the run)"),
    "a file of a package that is read and then removed": (
        lambda folder, number, patch: in_a_package(folder, number, patch)
        and adapter(folder, "import os, vendor; file = open(vendor.__path__[0] + '/libmine.so'); os.remove(file.name)"),
        "vendor/libmine.so (cannot be read)"),
    "a file that is moved to where one was made": (
        with_data("import os; open({0!r} + '2', 'w'); os.replace({0!r}, {0!r} + '2'); open({0!r} + '2')"),
        "data2 (changed during the run)"),
    "a file of a folder that is swapped": (in_a_folder_that_is_swapped, "core.py (changed during the run)"),
    "a file of a folder with a descriptor": (
        with_data("import os; os.open(os.path.basename({0!r}), 0, dir_fd=os.open(os.path.dirname({0!r}), 0))"),
        "a file data opened by a descriptor of a folder"),
    "a file that is deleted and opened again": (
        with_data("file = open({0!r}); import os; os.unlink({0!r}); open('/proc/self/fd/%d' % file.fileno())"),
        "a file that no path leads to"),
    "a file with a path that is too long": (
        with_data("import os; name = 'd' * 250; os.chdir(os.path.dirname({0!r}))\n"
                  "for _ in range(17): os.mkdir(name); os.chdir(name)\n"
                  "open('data', 'w'); open('data')"),
        "a file that no path leads to"),
    "what a subinterpreter reads": (
        with_data(
            "import sys; s = __import__('_interpreters' if sys.version_info > (3, 13) else '_xxsubinterpreters')\n"
            's.run_string(s.create(), """open({0!r}).read()""")'),
        "the files that a subinterpreter read"),
    "what a compiler includes": (
        with_data("import subprocess; subprocess.run(['gcc', '-E', '-xc', {0!r}])"), "the files that "),
    "what an interpreter reads": (ATTACKS["a program for an interpreter"].make, "the files that python"),
    "what a program reads that was made": (with_made_helper, "the files that helper read"),
    "what a shell starts": (
        lambda folder, *_: adapter(folder, "import os; os.system('true')"), "the files that dash read"),
}  # fmt: skip
"""What gets no digest, and what is said of it."""


@pytest.mark.parametrize("name", some_slow(LOST, ("a file that is overwritten", "what an interpreter reads")))
def test_what_cannot_be_named_is_said(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make, says = LOST[name]
    found = subject_of(make(tmp_path, 1, monkeypatch))
    assert [each for each in found.not_named if each.startswith(says)], found.not_named


def test_a_file_is_not_opened_if_that_cannot_be_noted(tmp_path: Path) -> None:
    """Such as after chroot or setuid, or on a full disk."""
    (tmp_path / "data").touch()
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))"
    backend = adapter(tmp_path, f"{ADAPTER}\n{limit}; open({str(tmp_path / 'data')!r})")
    with pytest.raises(CannotStart, match="the suite cannot note a file that is opened: "):
        subject_of(backend)


@pytest.mark.slow
@pytest.mark.parametrize("crashes", [False, True])
def test_what_native_code_loaded_in_a_process_before_the_last(crashes: bool, tmp_path: Path) -> None:
    path, once = library(tmp_path / "lib\x0cmine.so", 1), tmp_path / "once"
    load = f"import ctypes; ctypes.CDLL(None).dlopen({str(path)!r}.encode(), 2)"
    backend = adapter(tmp_path, f"import os\nif not os.path.exists({str(once)!r}): os.mkdir({str(once)!r}); {load}")
    with note_opened_files() as opened, use_backend(backend, "row", opened=opened) as started:
        remote = as_remote(started)
        assert remote
        if crashes:
            pid = remote.session().process.pid
            os.kill(pid, signal.SIGKILL)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        remote.renew()
        found = read_subject_of(started, backend, opened)
    assert ("lib\\x0cmine.so" in found.files, found.not_named) == (
        not crashes, ("what native code loaded in processes that ended",) * crashes
    )  # fmt: skip


@pytest.mark.parametrize("code", ["time.sleep(60)", "pass", "os.fork() or os.setsid() or time.sleep(60)"])
def test_what_native_code_loaded_in_a_fork(code: str, tmp_path: Path) -> None:
    """One that still runs, one that has ended, and one that left the family of the backend."""
    backend = adapter(tmp_path, f"import os, time\nif not os.fork(): {code}; os._exit(0)\ntime.sleep(0.2)")
    lost = subject_of(backend).not_named
    assert lost == ("what native code loaded in processes that ended",) * (code != "time.sleep(60)")


def test_a_backend_that_does_not_start_again(tmp_path: Path) -> None:
    backend = adapter(tmp_path, f"import os; os.mkdir({str(tmp_path / 'once')!r})")
    with note_opened_files() as opened, use_backend(backend, "worker", opened=opened) as started:
        remote = as_remote(started)
        assert remote
        remote.renew()
        found = read_subject_of(started, backend, opened)
    assert (found.files, found.not_named) == ({}, ("all files of a backend that does not start again",))


def test_a_cache_that_is_made_under_another_name(tmp_path: Path) -> None:
    code = "import os; open({0!r} + '.part', 'w'); os.replace({0!r} + '.part', {0!r}); open({0!r})"
    found = subject_of(adapter(tmp_path, code.format(str(tmp_path / "cache"))))
    assert (found.unnamed_code, found.not_named) == (True, ())


@pytest.mark.slow
@pytest.mark.parametrize("makes_code", [False, True])
def test_code_that_is_in_no_file_is_seen(tmp_path: Path, makes_code: bool) -> None:
    found = subject_of(adapter(tmp_path, MAKES_CODE if makes_code else ""))
    assert (found.unnamed_code, found.not_named) == (makes_code, ())


@pytest.mark.slow
def test_python_and_its_standard_library_are_not_under_test(tmp_path: Path) -> None:
    code = "import bz2, ctypes.util, lzma, sqlite3, ssl, uuid, zlib, platform, json; platform.processor()"
    code += "; ctypes.util.find_library('nothing')"  # which asks ldconfig, gcc and ld
    found = subject_of(adapter(tmp_path, code))
    assert not found.not_named
    names = {name.partition("-")[0].partition("/")[0] for name in found.files}
    names.discard("sitecustomize.py")  # Debian's Python has one outside of its library
    assert names <= {"adapters (2 files)", "mine.py", "numpy", "numpy.libs", "ml_dtypes", "setuptools"}


def test_byte_code_from_elsewhere_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as that of another source, which says that nobody shall compare it."""
    source, mode = tmp_path / "vendor.py", py_compile.PycInvalidationMode.UNCHECKED_HASH
    source.write_text("VERSION = '2'\n")
    py_compile.compile(str(source), invalidation_mode=mode)
    source.write_text("VERSION = '1'\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    backend = adapter(tmp_path, "import vendor")
    with open(tmp_path / "mine.py", "a") as file:
        file.write("Mine.identity = Reference.identity._replace(version=vendor.VERSION)\n")
    versions = []
    for noted in (nullcontext, note_opened_files):
        with noted() as opened, use_backend(backend, "worker", opened=opened) as started:
            versions.append(started.identity.version)
    assert versions == ["2", "1"]


def test_the_files_of_a_process_of_somebody_else_are_missed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as one that runs with the rights of another user: its map of memory cannot be read."""
    before = subject._mappings_of

    def read_own(pid: int, beginning: str = "") -> Iterator[Any]:
        return iter(()) if b"sleep" in Path(f"/proc/{pid}/cmdline").read_bytes() else before(pid, beginning)

    monkeypatch.setattr(subject, "_mappings_of", read_own)
    code = """import subprocess
started = subprocess.Popen(["sleep", "60"])
while not open(f"/proc/{started.pid}/cmdline").read():  # the system fills it in a moment after the start
    pass"""
    found = subject_of(adapter(tmp_path, code))
    assert "the files of sleep" in found.not_named


def test_a_library_of_a_package_of_debian_that_is_closed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_is_packaged", lambda path: True)
    backend = loads("libmine.so.1", CLOSES)(tmp_path, 1, monkeypatch)
    assert "libmine.so.1" in subject_of(backend).files


LOOK_ALIKES = ("/usr/lib/libm-mine.so", "/dev/data", "/usr/lib/mine/locale/data", "FOLDER/mine.pth",
               f"{subject._STANDARD_LIBRARY}/mine.py")  # fmt: skip
"""A vendor's own package of Debian, a file among the devices or like one of a locale, a line of code like a folder, and
what a wheel adds to Python."""


@pytest.mark.parametrize("path", LOOK_ALIKES)
def test_what_looks_like_a_part_of_the_system(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "_is_packaged", lambda path: path.suffix == ".so")
    (tmp_path / "import mine").mkdir()
    (tmp_path / "mine.pth").write_text("import mine")
    assert not subject._is_left_out(Path(path.replace("FOLDER", str(tmp_path))), not path.endswith("data"))
