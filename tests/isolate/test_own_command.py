"""A backend that ends the process of the command, as `--isolation none` permits, is no success."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conformance.evidence.results import read

from .. import builders, processes
from .remote_backends import write_acting

QUICK = "tests.without_planted"
IGNORE = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"
"""What `nohup COMMAND &` does of itself."""


def list_run_words(folder: Path, act: str) -> list[str]:
    few = ["--suite", str(builders.write_suite(folder)), "--drawn-rows", "0"]
    only = ["--isolation", "none", *few, "-k", "there-and-back", "--type", "f32"]
    return ["run", write_acting(folder, act), *only, "--out", str(folder / "out")]


ENDS = {
    "os._exit(0)": 0, "ctypes.CDLL(None).exit(0)": 0, "ctypes.CDLL(None)._exit(0)": 0,
    "os.kill(os.getpid(), signal.SIGKILL)": -9, "os.closerange(3, 100)": 0,
}  # fmt: skip
SCRIPT = """import ctypes, os, signal, sys
from conformance.isolate.process.own_command import run_in_child
def work():
    {}
    return 0
print(run_in_child(work, lambda code: f"ended early with {{code}}"))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nobody can look on")
@pytest.mark.parametrize("act", ENDS)
def test_work_that_ends_its_process(act: str) -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT.format(act)], capture_output=True, text=True, check=True)
    assert (done.stdout.splitlines()[-1], done.stderr) == (f"ended early with {ENDS[act]}", "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nobody can look on")
def test_a_pipe_that_the_work_closes_is_not_read_again_and_again() -> None:
    acts = ("import time; os.closerange(3, 100); time.sleep(1)", "pass")
    script = SCRIPT + "import resource; print(sum(resource.getrusage(resource.RUSAGE_SELF)[:2]))"
    words = [[sys.executable, "-c", script.format(act)] for act in acts]
    done = [subprocess.run(each, capture_output=True, text=True, check=True) for each in words]
    closed, whole = (float(each.stdout.splitlines()[-1]) for each in done)
    assert closed < whole + 0.2, "seconds of the processor while the parent waits"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="nobody can look on")
@pytest.mark.parametrize(
    ("act", "code", "how"),
    [
        ("os._exit(0)", 4, "exit code 0"),
        ("os.abort()", 4, "signal 6"),
        *(
            pytest.param(act, code, "", marks=pytest.mark.slow)
            for act, code in (
                ("os.fork()", 4),
                ("raise KeyError", 1),
                ("raise KeyboardInterrupt", 130),
                (f"{IGNORE}; raise KeyboardInterrupt", 130),
            )
        ),
    ],
)
def test_a_backend_that_ends_the_command(tmp_path: Path, act: str, code: int, how: str) -> None:
    done = processes.run_command(*list_run_words(tmp_path, act), module=QUICK)
    assert done.returncode == code
    assert re.findall("ended with (.*) before the command was done", done.stderr) == [how] * bool(how)
    assert not how or "Traceback" not in done.stderr
    assert ("the backend raised KeyboardInterrupt; drop --isolation none" in done.stderr) == (code == 130)
    assert (tmp_path / "out" / "report.html").exists() == (not how and code != 130)


ON_LINUX = pytest.mark.skipif(sys.platform != "linux", reason="other systems set no limits of another process")


@ON_LINUX
@pytest.mark.parametrize(
    ("option", "least"), [("-v 150000", "RLIMIT_AS is 153,600,000"), ("-n 9", "RLIMIT_NOFILE is 9")]
)
def test_too_low_a_limit_is_one_line(option: str, least: str) -> None:
    command = f"ulimit {option} && exec {sys.executable} -m conformance check"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr[: len(least) + 13]) == (2, f"conformance: {least}")
    assert done.stderr.count("\n") == 1


_LOWER = """import ctypes, os, resource, sys
ctypes.CDLL(None).prctl(24, 24)  # drops CAP_SYS_RESOURCE, with which root may raise every limit
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
os.execv(sys.executable, [sys.executable, "-m", "conformance", *sys.argv[1:]])
"""


@ON_LINUX
@pytest.mark.parametrize("memory", [[], ["--memory", "2049"], ["--memory", "2048"]])
def test_a_backend_that_would_get_less_memory_is_not_called(memory: list[str]) -> None:
    words = [sys.executable, "-c", _LOWER, "run", "numpy", "-k", "scalar-to-minus-two[StaticReshape-f32]", *memory]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if memory[1:] == ["2048"]:
        assert (done.returncode, "ulimit" in done.stderr) == (1, False)  # a slow one says how far it is
    else:
        due = f"{int(memory[1]) if memory else 16_384:,}"
        what = f"`ulimit -v` allows 2,048 MiB, and a backend may use {due}: raise it, or add --memory 2048"
        assert (done.returncode, done.stderr) == (3, f"conformance: {what}\n")


def run_limited(folder: Path, act: str) -> tuple[int, str]:
    """Run a backend in a worker that sets limits of the suite; return the exit code and the last line of stderr."""
    words = list_run_words(folder, f"import errno, resource; {act}; return super().compile(graph)")
    words[words.index("none")] = "worker"
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}  # a compiled module would be cut at a limit, too
    done = processes.run_command(*words, module=QUICK, env=env)
    assert "Traceback" not in done.stderr
    return done.returncode, (done.stderr.splitlines() or [""])[-1]


LIMIT = "resource.prlimit(os.getppid(), resource.RLIMIT_{}, (3, 3))"


@pytest.mark.slow
@ON_LINUX
@pytest.mark.parametrize(
    ("act", "code", "said"),
    [
        (LIMIT.format("NOFILE") + "; os.abort()", 2, "the suite cannot go on: Too many open files"),
        (LIMIT.format("AS") + "; os.abort()", 5, "somebody changed the limits of this process"),
        (LIMIT.format("FSIZE"), 2, "results.jsonl.part: File too large"),
        ("raise OSError(errno.EFBIG, 'File too large')", 1, ""),
    ],
    ids=["files", "memory", "size", "its own"],
)
def test_limits_are_no_verdict(tmp_path: Path, act: str, code: int, said: str) -> None:
    ended, last = run_limited(tmp_path, act)
    assert ended == code
    assert said in last
    if code == 1:
        assert "crash" in {result.outcome.kind for result in read(tmp_path / "out" / "results.jsonl").results}


IN_A_CLASS = """import os, signal, sys
from conformance.cli import main as command
class Ends:
    def __set_name__(self, *_):
        os.kill(os.getpid(), signal.SIGTERM)
def run(_):
    class Made:
        ends = Ends()
command._run = run
sys.argv[1:] = ["list", "rules"]
sys.exit(command.main())
"""
DURING_IMPORTS = """import os, signal, sys
from conformance.cli.start import main
class Finder:
    def find_spec(self, name, *_):
        if name == "conformance.cli.main":
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
main()
"""
AT_EXIT = """import atexit, os, signal, sys
from conformance.cli.main import main
atexit.register(lambda: os.kill(os.getpid(), signal.SIGHUP))
signal.signal(signal.SIGHUP, signal.SIG_DFL)
sys.argv[1:] = ["list", "documents"]
sys.exit(main())
"""


@ON_LINUX
@pytest.mark.parametrize(
    ("script", "code", "said"),
    [(IN_A_CLASS, 143, "conformance: terminated\n"), (DURING_IMPORTS, -signal.SIGINT, ""), (AT_EXIT, 129, "")],
    ids=["while a class is made", "while modules are imported", "while Python exits"],
)
def test_a_signal_at_an_odd_moment_ends_the_command(script: str, code: int, said: str) -> None:
    with processes.heed_signal(signal.SIGINT):
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (code, said)
    assert ("static-oneapi" in done.stdout) == (script is AT_EXIT)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="another kernel tells nobody that a pipe has no writer any more")
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_killed_or_terminated_command_leaves_nothing(tmp_path: Path, end: signal.Signals) -> None:
    pid = tmp_path / "pid"
    act = f"open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    words = [sys.executable, "-m", QUICK, *list_run_words(tmp_path, act)]
    with processes.heed_signal(signal.SIGINT), processes.heed_signal(signal.SIGHUP):
        command = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    with command:
        processes.wait(lambda: pid.exists() and pid.read_text(), 30)
        command.send_signal(end)
        _, said = command.communicate(timeout=30)
    processes.wait(lambda: not processes.running(int(pid.read_text())))
    if end != signal.SIGKILL:
        how = "interrupted" if end == signal.SIGINT else "terminated"
        assert command.returncode == 128 + end
        assert f"{how}; to go on, give --resume" in said


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="nobody can look on")
def test_a_backend_that_hangs_at_exit(tmp_path: Path) -> None:
    began = time.monotonic()
    code = "import sys; from conformance.isolate.process import own_command; from conformance.cli.main import main\n"
    code += "own_command._GRACE_SECONDS = 0.5; sys.exit(main())"
    command = [sys.executable, "-c", code, *list_run_words(tmp_path, "atexit.register(time.sleep, 60)")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=50)
    assert done.returncode == 4
    assert "exit 4: " in done.stdout
    assert time.monotonic() - began < 40


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="orphans are found in /proc")
def test_children_of_a_backend_end_with_the_command(tmp_path: Path) -> None:
    keep = "open({!r}, 'a').write(f'{{{}}} ')"
    forked = keep.format(str(tmp_path / "forked"), "os.getpid()")
    own = keep.format(str(tmp_path / "own"), "self.own.pid")
    act = (
        "self.own = getattr(self, 'own', 0) or subprocess.Popen(['sleep', '600'], env={}, start_new_session=True); "
        f"{own}; self.forked = getattr(self, 'forked', 0) or os.fork() or ({forked}, os.setsid(), time.sleep(600))"
    )
    done = processes.run_command(*list_run_words(tmp_path, act), timeout=60, module=QUICK)
    assert done.returncode == 4, done.stderr
    for name in ("forked", "own"):
        pids = [int(pid) for pid in (tmp_path / name).read_text().split()]
        assert pids
        assert not any(processes.running(pid) for pid in pids)
