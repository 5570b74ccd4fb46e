"""No process that a worker starts outlives it, wherever it went. Other processes live on."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.evidence.results import read
from tests.builders import ROOT, write_suite

from ..processes import run_command, running
from .remote_backends import write_acting

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to another process")
QUICK = "tests.without_planted"
LEAVES = """
def size():
    return os.path.getsize({pids!r}) if os.path.exists({pids!r}) else 0

def leave(generations):
    before = size()
    child = os.fork()
    if not child:
        os.setsid()
        if generations > 1:
            leave(generations - 1)
            os._exit(0)
        with open({pids!r}, "a") as file:
            file.write(f"{{os.getpid()}}\\n")
        for stream in range(256):
            try:
                os.close(stream)
            except OSError:
                pass
        os.execve("/bin/sleep", ["sleep", "120"], {{}})
    if generations > 1:
        os.waitpid(child, 0)
    while size() == before:
        time.sleep(0.01)
"""


def backend(folder: Path, act: str) -> tuple[str, Path]:
    pids = folder / "pids"
    return write_acting(folder, act, LEAVES.format(pids=str(pids))), pids


def command(folder: Path, act: str, *words: str) -> tuple[list[str], Path]:
    name, pids = backend(folder, act)
    only = ["-k", "stays or flattens", "--type", "f32", "--operation", "StaticReshape"]
    only += ["--suite", str(write_suite(folder)), "--drawn-rows", "0"]
    return ["run", name, "--isolation", "worker", *only, "--out", str(folder / "out"), *words], pids


def kill_survivors(pids: Path) -> list[int]:
    """Kill the processes that still run, and return them."""
    alive = [pid for pid in map(int, pids.read_text().split()) if running(pid)]
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    return alive


LEAVES_TWO = "leave(1); leave(2); graph.nodes[0].shape.values == (2, 3) and os.abort()"
"""Start a child, and a grandchild that outlives its parent. In the first case, `stays`, the worker crashes too."""


@pytest.mark.slow
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_processes_that_hide_end_with_the_run(tmp_path: Path, jobs: str) -> None:
    words, pids = command(tmp_path, LEAVES_TWO, "--jobs", jobs)
    done = run_command(*words, module=QUICK if jobs == "1" else "conformance")
    assert done.returncode == 1, done.stderr
    outcomes = [result.outcome.kind for result in read(tmp_path / "out" / "results.jsonl").results]
    assert sorted(set(outcomes) & {"crash", "tensor"}) == ["crash", "tensor"]
    assert len(pids.read_text().split()) >= 2 * 3, "each twice in the call that crashes, and in the other"
    assert not kill_survivors(pids)


SCRIPT = """
import os, subprocess, sys, time
from pathlib import Path
from conformance.isolate.backend import use_backend
from conformance.isolate.process.orphans import adopt
from tests.isolate.calls import call
from tests.processes import running

def sleeps(**more):
    return subprocess.Popen(["sleep", "120"], **more)

def zombies():
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return [child for child in children if Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z"]

one, other, pids = sys.argv[1:]
"""


def script(folder: Path, text: str) -> str:
    """Return the output of a process that adopts orphans. Its first backend leaves a grandchild, its second nothing."""
    one, pids = backend(folder, "leave(2)")
    (folder / "script.py").write_text(SCRIPT + text)
    words = [sys.executable, str(folder / "script.py"), one, "reference", str(pids)]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, check=False, capture_output=True, text=True, timeout=120, env=env)
    assert (done.returncode, kill_survivors(pids)) == (0, []), done.stderr
    return done.stdout


@pytest.mark.slow
def test_children_of_the_host_and_of_another_worker_live_on(tmp_path: Path) -> None:
    said = script(tmp_path, """
before = sleeps(start_new_session=True)
adopt()
host = sleeps()
with use_backend(one, "worker") as leaves:
    call(leaves, (2, 3))
    orphan = int(Path(pids).read_text())
    with use_backend(other, "worker") as numpy:
        call(numpy, (2, 3))
    print(running(orphan), running(before.pid), running(host.pid))
print(running(orphan), running(before.pid), running(host.pid), zombies())
for each in (before, host):
    each.kill()
    each.wait()
""")  # fmt: skip
    assert said.splitlines() == ["True True True", "False True True []"]


@pytest.mark.slow
def test_orphans_do_not_pile_up_as_zombies(tmp_path: Path) -> None:
    said = script(tmp_path, """
adopt()
with use_backend(one, "worker") as leaves:
    for _ in range(2):
        call(leaves, (2, 3))
        leaves.restart()
        print(len(Path(pids).read_text().split()), zombies())
""")  # fmt: skip
    assert said.splitlines() == [f"{number} []" for number in (1, 2)]


@pytest.mark.slow
def test_a_backend_that_terminates_the_run(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    words, pids = command(tmp_path, "leave(2); os.kill(os.getppid(), signal.SIGTERM); time.sleep(60)")
    done = run_command(*words, module=QUICK, env={**os.environ, "TMPDIR": str(temporary)})
    said = f"conformance: terminated; to go on, give --resume {tmp_path / 'out'} instead of --out; "
    said += f"`conformance report --suite {words[words.index('--suite') + 1]} {tmp_path / 'out'}` shows what was run\n"
    assert (done.returncode, done.stderr) == (143, said)
    assert not kill_survivors(pids)
    assert not list(temporary.iterdir())
    assert os.listdir(tmp_path / "out") == ["results.jsonl.part"]
    assert '"record":"footer"' not in (tmp_path / "out" / "results.jsonl.part").read_text()


STARTS = """
import subprocess
from threading import Thread
from conformance.isolate.process import launch, orphans

orphans.adopt()
plain, seekers = subprocess.Popen, []

def start(*words, **options):
    child = plain(*words, **options)  # it is there, and not registered yet
    seekers.append(Thread(target=orphans.kill_family, args=((), 0, "another worker", 0)))
    seekers[0].start()
    seekers[0].join(0.5)
    return child

subprocess.Popen = start
handle = launch.start(["sleep", "60"])
seekers[0].join()
print("killed" if handle.child.poll() is not None else "lives")
launch.kill_tree(handle)
"""


def test_a_worker_that_starts_is_no_orphan_of_another_thread() -> None:
    done = subprocess.run([sys.executable, "-c", STARTS], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "lives\n", done
