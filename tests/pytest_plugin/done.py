"""Sessions of pytest in another process, usually a copy of one that has imported pytest and read the suite."""

from __future__ import annotations

import atexit
import gc
import json
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout, suppress
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

from _pytest.config import default_plugins

import conformance
from conformance.isolate.backend import Isolation
from conformance.plan.rows import Plan
from conformance.verdict.planted import PlantedBackend

ROOT = Path(conformance.__file__).parents[1]
CAN_COPY = sys.platform == "linux"
"""False where libraries break in a process that was forked."""
SECONDS = 300
ISOLATIONS: tuple[Isolation, ...] = ("none", "worker")
"""In these the planted backends fail on the few cases before any session begins: their failures are remembered."""
SUITE = ("--conformance-suite", ".")
"""The options of a session on the few cases of the fixture `few`."""
HERE = ("--conformance-isolation", "none")
"""The option that spares a process, for tests where the process of the backend does not matter."""
STATIC = ("--type", "f32", "--operation", "StaticReshape")
"""The options of one row for each case, for tests where the number of rows does not matter."""
NO_REPORTS = "from conformance import report\nreport.write = lambda *_: ()\n"
"""A conftest.py without reports, which take most of the time of a session that writes evidence."""
PRELOADED = ("_pytest._argcomplete", "execnet", "faulthandler", "pdb", "xdist.looponfail", "xdist.plugin")
"""Modules beside the plugins of pytest that each session imports, if they are there."""
FILE = "cases/few0.yaml"
ROW = f"{FILE}::stays[StaticReshape-f32]"


class Done:
    """A session of pytest that has ended. It needs a new Python if it has no adapter, or a variable of Python's."""

    copied = CAN_COPY
    starts_without_adapter = True

    def __init__(self, cwd: Path, *arguments: str, adapter: str | None = "reference", **environment: str) -> None:
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "PYTHON"))}
        clean |= {"PYTHONPATH": str(ROOT), "COLUMNS": "120", **environment}
        named = [] if adapter is None else ["--adapter", adapter]
        words = [*_entry(), *named, *arguments]
        again = adapter is None and self.starts_without_adapter
        copied = self.copied and not again and not any(name.startswith("PYTHON") for name in environment)
        self.code, self.text = (_copies().run if copied else _start)(cwd, clean, words)

    def says(self, *words: str) -> None:
        for part in words:
            assert part in self.text, self.text

    def expect(self, code: int, *words: str, never: str | None = None) -> Done:
        """Assert the exit code, words of the output, and a word that is not in it."""
        self.says(*words)
        assert self.code == code, self.text
        assert never is None or never not in self.text, self.text
        return self


class DoneInNewPython(Done):
    """A session for which Python starts again, because modules that are imported already would change the result."""

    copied = False


class DoneInCopy(Done):
    """A session without an adapter in a copy, because it ends before modules matter."""

    starts_without_adapter = not CAN_COPY


@cache
def _entry() -> tuple[str, ...]:
    """The arguments that load the plugin if it is not installed; pytest 7 refuses it twice."""
    installed = any(entry.name == "reshape_conformance" for entry in entry_points(group="pytest11"))
    return () if installed else ("-p", "reshape_conformance_pytest")


def _start(cwd: Path, environment: Mapping[str, str], words: list[str]) -> tuple[int, str]:
    command = [sys.executable, "-m", "pytest", *words]
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
    )
    return done.returncode, done.stdout + done.stderr


@cache
def _copies() -> _Copies:
    return _Copies()


class _Copies:
    """A process that copies itself for each pytest. It ends with this one."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", __name__]
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        atexit.register(self._process.communicate)  # ends its input, and waits

    def run(self, cwd: Path, environment: Mapping[str, str], words: list[str]) -> tuple[int, str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with TemporaryDirectory() as folder:
            request = {"cwd": str(cwd), "environment": environment, "words": words, "folder": folder}
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            code = int(self._process.stdout.readline())
            texts = [(Path(folder) / name).read_bytes().decode() for name in ("1", "2")]
        return code, "".join(texts).replace("\r\n", "\n")


def main() -> None:
    """Read requests, run each in a copy, and answer with its exit code, or the negative number of a signal."""
    from tests import memo

    memo.install()
    for name in (*(f"_pytest.{plugin}" for plugin in default_plugins), *PRELOADED):
        with suppress(ImportError):
            import_module(name)
    from conformance.cli.main import main as call_command
    from conformance.isolate.process.launch import ProcessLimits
    from conformance.load.cases import load_suite
    from conformance.plan.rows import plan_of
    from conformance.runner import planted_backends
    from tests.builders import write_suite
    from tests.without_planted import run_all

    plan_of(load_suite())  # before the few: the next session frees the steps of the last plan, and writes to its memory
    with TemporaryDirectory() as folder, redirect_stdout(StringIO()):
        few = write_suite(Path(folder))  # they are remembered by the texts and names of their files
        call_command(["run", "reference", *STATIC, "--suite", str(few), "--drawn-rows", "0", "--out", f"{folder}/out"])
        spare_processes(planted_backends)
        for isolation in ISOLATIONS:
            planted_backends.run_all(plan_of(load_suite(few)), isolation, ProcessLimits())
    import_module("conformance.pytest_plugin.hooks")
    for name, module in sys.modules.items():
        if name == "conformance" or name.partition(".")[0] == "xdist":
            module.__doc__ = "PYTEST_DONT_REWRITE"  # else pytest warns that it is imported already
    gc.freeze()  # a copy that collects garbage would write to, and so get, all of the memory
    answers = os.dup(1)
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if not child:
            os.close(answers)
            if SUITE[0] not in request["words"]:  # on the bundled suite they take long; sessions on the few call them
                planted_backends.run_all = run_all
            _pytest(request)
        _, status = os.waitpid(child, 0)
        os.write(answers, b"%d\n" % os.waitstatus_to_exitcode(status))


def spare_processes(planted_backends: Any) -> None:
    """Let the planted backends fail in this process, except those that end theirs."""
    run = planted_backends._run_planted_backend

    def _run_planted_backend(plan: Plan, planted: PlantedBackend, rows: Any, isolation: Isolation, *more: Any) -> int:
        failures: int = run(plan, planted, rows, isolation if planted.ends_process else "none", *more)
        return failures

    planted_backends._run_planted_backend = _run_planted_backend


def _pytest(request: dict[str, Any]) -> NoReturn:
    """Become what `python -m pytest` is with these words, in that folder and environment, and end."""
    gc.disable()  # a session makes little garbage
    signal.alarm(SECONDS)
    for number in (1, 2):
        file = os.open(Path(request["folder"]) / str(number), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
        os.close(file)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["cwd"])
    sys.path[0] = request["cwd"]
    sys.argv[1:] = request["words"]
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]  # such a session has not imported them
    try:
        runpy.run_module("pytest", run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(int(ended.code or 0))  # Python would free each object of the process that was copied
    raise AssertionError("pytest ends with SystemExit")


if __name__ == "__main__":
    main()
