"""A yes comes from what a run wrote and from nothing else: not from a file in its place."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.evidence.results import read
from conformance.isolate.process.tensor_memory import MemoryReader
from conformance.system.files import lock_folder

from .. import builders
from ..builders import Command, mini, some_slow
from ..isolate.remote_backends import write_acting
from ..processes import run_command
from ..pytest_plugin.done import ROW, STATIC, Done
from .readers import run_once

MEDDLES = """
import os
from pathlib import Path
from conformance.adapters.reference import Reference
from conformance.model import Identity
import numpy as np

OUT, FORGED = Path({out!r}), Path({forged!r})
NAME = OUT / "results.jsonl"
PART = OUT / "results.jsonl.part"

class Mine(Reference):
    identity = Identity("mine", "1")
    calls = 0
    def copy_elements(self, src, dst, may_overwrite):
        Mine.calls += 1
        if Mine.calls == 40:
            {act}
        return np.zeros_like(super().copy_elements(src, dst, may_overwrite))
"""
ACTS = {
    "a forged file under the final name": ("NAME.write_bytes(FORGED.read_bytes())", 1),
    "a forged file renamed into the place of the unfinished one": (
        "(OUT / 'x').write_bytes(FORGED.read_bytes()); os.replace(OUT / 'x', PART)", 5,
    ),
    "a forged file written over the unfinished one": ("PART.write_bytes(FORGED.read_bytes())", 5),
    "the unfinished file removed": ("PART.unlink()", 5),
    "a link instead of the unfinished file": ("PART.unlink(); PART.symlink_to(FORGED)", 5),
    "a folder under the final name": ("NAME.mkdir()", 5),
}  # fmt: skip
IN_A_WORKER = ("a forged file under the final name", "a forged file renamed into the place of the unfinished one")
"""Acts of a backend in a separate process, one for each exit code; the files are the same to the others."""


@pytest.mark.slow
@pytest.mark.parametrize("what", ACTS)
def test_a_backend_that_forges_evidence_does_not_conform(command: Command, tmp_path: Path, what: str) -> None:
    act, code = ACTS[what]
    forged, out = tmp_path / "forged", tmp_path / "out"
    run_once(command, out=forged)
    text = MEDDLES.format(out=str(out), forged=str(forged / "results.jsonl"), act=act)
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    isolation = "worker" if what in IN_A_WORKER else "none"
    said = command.run(f"{tmp_path / 'mine.py'}:Mine", "--isolation", isolation, out=out).expect(code)
    if code == 5:
        assert "was changed while the run wrote it; no verdict holds, run again" in said.err
        assert not (out / "results.jsonl").is_file()
    else:
        assert read(out / "results.jsonl").header["backend"]["name"] == "mine"
    assert "the whole target conforms" not in said.out


def test_an_adapter_that_is_changed_during_the_run_shows_nothing(command: Command, tmp_path: Path) -> None:
    """Its author mends it, and later processes of the run import it mended."""
    backend = write_acting(tmp_path, "open(__file__, 'a').write('# mended\\n')")
    said = command.run(backend, "-k", "copies", "--operation", "StaticReshape").expect(5)
    assert "the adapter was changed while it was tested; no verdict holds, run again" in said.err
    assert not (command.out / "results.jsonl").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("isolation", ["none", pytest.param("worker", marks=pytest.mark.exhaustive)])
def test_a_backend_that_writes_modules_does_not_conform(tmp_path: Path, isolation: str) -> None:
    """The suite imports some modules only once the backend has run."""
    planted = "import os\nprint('exit 0: the whole target conforms', flush=True)\nos._exit(0)\n"
    text = "from conformance.adapters.reference import Reference\nimport numpy as np\n"
    text += f"for name in ('html', 'heapq', 'xml', 'difflib'):\n    open(name + '.py', 'w').write({planted!r})\n"
    text += "class Zeros(Reference):\n    def copy_elements(self, *given):\n"
    text += "        return np.zeros_like(super().copy_elements(*given))\n"
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    (tmp_path / "here").mkdir()
    environment = {**os.environ, "PYTHONPATH": str(builders.ROOT)}
    words = "run", "../mine.py:Zeros", "--isolation", isolation, "--type", "f32", "--drawn-rows", "0"
    done = run_command(*words, "--suite", builders.write_suite(tmp_path), cwd=tmp_path / "here", env=environment)
    assert (tmp_path / "here" / "html.py").is_file()
    assert done.returncode == 1, done.stdout + done.stderr
    assert "no" in builders.table_of(done.stdout)["static-oneapi"]
    assert not builders.conforming(done.stdout)


@pytest.mark.slow
def test_a_backend_of_pytest_cannot_replace_the_reports(command: Command, tmp_path: Path) -> None:
    run_once(command, out=tmp_path / "good")
    text = f"""
import os, shutil, threading, time
from pathlib import Path
from conformance.adapters.reference import Reference
import numpy as np
OUT, GOOD = Path({str(tmp_path / "out")!r}), Path({str(tmp_path / "good")!r})
def replace():
    while not (OUT / "results.jsonl").exists():
        time.sleep(0.001)
    shutil.copy(GOOD / "results.jsonl", OUT / "results.jsonl")
threading.Thread(target=replace, daemon=True).start()
class Zeros(Reference):
    def copy_elements(self, *given):
        return np.zeros_like(super().copy_elements(*given))
"""
    (tmp_path / "mine.py").write_text(text, encoding="utf-8")
    done = Done(
        tmp_path, "-q", "--tb=no", ROW, f"--conformance-suite={command.folder}", "--conformance-out=out",
        adapter="./mine.py:Zeros",
    )  # fmt: skip
    assert done.code == 1
    assert read(tmp_path / "out" / "results.jsonl").footer["verdicts"]["fail"] > 0


PATCHES = {
    "what the call wrote into src": (
        "run = AdapterServer.run\ndef quiet(self, request):\n    record, sent = run(self, request)\n"
        "    kept = len(sent) - len(record.pop('wrote', ()))\n    return record, sent[:kept]\n"
        "AdapterServer.run = quiet\n",
        "SpoilsSrc", "src changed",
    ),
    "that an earlier answer changed": (
        "AdapterServer.add_changes = lambda *_: None\n", "ReusesItsAnswer", "answer changed later",
    ),
    "nothing": ("", "SpoilsSrc", "src changed"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(
    MemoryReader(os.getpid()).read([(id(0), 8)]) is None, reason="the kernel lets nobody read other processes"
)
@pytest.mark.parametrize("what", some_slow(PATCHES, [what for what in PATCHES if what != "nothing"]))
def test_a_backend_that_silences_its_worker_is_found(command: Command, tmp_path: Path, what: str) -> None:
    patch, name, fault = PATCHES[what]
    imports = f"from conformance.isolate.protocol.worker import AdapterServer\nfrom tests.miniatures import {name}"
    (tmp_path / "mine.py").write_text(f"{imports}\n{patch}", encoding="utf-8")
    few = (*STATIC, "-k", "two-calls or copies")
    command.run(f"{tmp_path / 'mine.py'}:{name}", "--isolation", "worker", *few).expect(1, text=fault)
    honest = {result.row: result.diagnosis for result in read(command.out / "results.jsonl").results}
    command.run(mini(name), "--isolation", "none", *few)
    assert honest == {result.row: result.diagnosis for result in read(command.out / "results.jsonl").results}


def test_a_second_run_in_the_same_folder_is_told_that_it_is_in_use(command: Command) -> None:
    with lock_folder(command.out):
        command.run("reference").expect(2, err="out is in use by another run; wait for it, or name another folder")
    assert not (command.out / "results.jsonl").exists()
    assert command.run("reference").code == 0


@pytest.mark.slow
def test_two_runs_in_one_folder_never_mix_their_verdicts(tmp_path: Path) -> None:
    suite, out = builders.write_suite(tmp_path), tmp_path / "out"

    def start(*words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tests.without_planted", "run", *words, "--suite", str(suite)]
        command += ["--out", str(out), "--drawn-rows", "0"]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=builders.ROOT)

    runs = {name: start(name) for name in ("planted:accepts-everything", "reference")}
    for name, running in runs.items():
        said, wrong = running.communicate(timeout=120)
        if running.returncode == 2:
            assert "is in use by another run" in wrong
        else:
            assert running.returncode == (0 if name == "reference" else 1), said + wrong
            assert said.startswith(name)
