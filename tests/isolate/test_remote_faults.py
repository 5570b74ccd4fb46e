"""Failures of a backend: its exceptions, its error output, and the damage it does to its own process."""

import json
import re
import sys
from pathlib import Path

import pytest

from conformance.adapter import CannotStart
from conformance.isolate.backend import note_processes
from conformance.isolate.protocol import messages
from conformance.isolate.protocol.remote import RemoteAdapter, start_worker
from conformance.model import Claims, Crashed, Identity
from conformance.plan.rows import Plan

from ..processes import running, wait
from .calls import call, call_with_buffer, reshape
from .faulty_program import PROGRAM
from .remote_backends import LIMITS, Obedient, run_remote, suite_to_kill, write_acting, write_backend, write_odd

RAISED = {
    "raise KeyError('a bug')": "KeyError: 'a bug'",
    "raise KeyboardInterrupt": "KeyboardInterrupt: ",
    "raise GeneratorExit": "GeneratorExit: ",
    "raise Own('mine')": "Own: mine",
    "raise Mute": "Mute: (Mute, which cannot be written: KeyboardInterrupt)",
    "raise SystemExit(0)": "SystemExit: 0",
    "raise Rejected(5, b'no')": "Rejected(5, b'no'): the stage is compile or run, the message text",
    "raise Unsupported(b'x')": "bytes where text was expected: b'x'",
    "raise Rejected('run', 'x' * 2_000_000)": f"{'x' * 2000}… (2000000 characters)",
    "raise Unsupported('x' * 2_000_000)": f"{'x' * 2000}… (2000000 characters)",
    "raise ValueError('x' * 2_000_000)": f"ValueError: {'x' * 1988}… (2000",
    "return Tensor('f32', (0.0, 3.5), (14, 4), bytearray(8), 0)": "a Tensor of dims (0.0, 3.5), strides (14, 4)",
}


@pytest.mark.parametrize("act", RAISED)
def test_a_process_lives_on_after_an_exception(obedient: Obedient, act: str) -> None:
    remote = obedient(f"if odd: {act}")
    for _ in range(2):
        with pytest.raises(Exception, match=re.escape(RAISED[act])):
            call(remote, (13,))
    assert call(remote, (2, 3)).dims == (6,)
    assert remote.starts == 1


def test_an_adapter_that_interrupts_itself_cannot_start(tmp_path: Path) -> None:
    backend = write_backend(tmp_path, "class It:\n def __init__(self):\n  raise KeyboardInterrupt('x')", "It")
    with pytest.raises(CannotStart) as cannot:
        start_worker(backend, LIMITS)
    assert str(cannot.value) == f"{backend}: cannot be started: KeyboardInterrupt('x')"


@pytest.mark.parametrize("first", ["parent", "copy"])
def test_a_fork_that_returns_from_a_call(obedient: Obedient, first: str) -> None:
    wait = f"time.sleep(0.1 if pid and {first == 'copy'} or not pid and {first == 'parent'} else 0)"
    remote = obedient(f"pid = os.fork(); {wait}")
    for _ in range(4):
        assert call(remote, (2, 3)).dims == (6,)
    assert remote.starts == 1


@pytest.mark.parametrize(
    "acts",
    [
        (
            "os.write(1, b'junk'); print('junk', flush=True)",
            "import json; json.loads = json.dumps = json.JSONEncoder = json.JSONDecoder = None",
            "np.array_equal = np.asarray = np.may_share_memory = None",
            "import signal; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 10, 13, 14, 15)]",
            "import tempfile; d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d)",
            "[os.close(fd) for fd in (0, 1, 2) if os.path.exists(f'/dev/fd/{fd}')]",
            "import sys; sys.setrecursionlimit(40)",
        ),
        (
            "import gc; gc.disable(); np.seterr(all='raise'); import warnings; warnings.simplefilter('error')",
            "return go(src, shapes, may_overwrite).view(type('Own', (np.ndarray,), {'__array_function__': None}))",
        ),
        ("import sys; sys.stdout = sys.stderr = None", "import sys; sys.path.clear(); import ml_dtypes"),
    ],
    ids=["one after another", "warnings", "streams"],
)
def test_a_backend_that_damages_its_own_process(tmp_path: Path, acts: tuple[str, ...]) -> None:
    """None of the acts hides the effect of a later one, or how the process ends."""
    obedient = Obedient(tmp_path)
    for act in acts:
        remote = obedient(act)
        for _ in range(3):
            answer, buffer = call_with_buffer(remote, (2, 3), (6,))
            assert (answer.dims, bytes(answer.memory)) == ((6,), buffer.elements), act
    remote.close()
    assert remote.ends[0].problem is None


def test_a_backend_that_closes_descriptors_of_the_worker(tmp_path: Path) -> None:
    words = "ends with: the worker lost the suite: Bad file descriptor; a backend may close only descriptors that it"
    with pytest.raises(Crashed, match=words):
        call_with_buffer(Obedient(tmp_path)("os.closerange(3, 99)"), (2, 3), (6,))


ENDS = """
import os
from conformance.adapters.reference import Reference
closed = []
class Program:
    def __init__(self, program):
        self.run = program.run
    def __del__(self):
        closed.append(self)
        if {where!r} == "close" and len(closed) == 3:
            os._exit(1)
class Ends(Reference):
    def compile(self, graph):
        if {where!r} == "compile" and closed:
            os._exit(1)
        return Program(super().compile(graph))
"""


@pytest.mark.parametrize("where", ["close", "compile"])
def test_an_end_names_its_request_among_several(tmp_path: Path, where: str) -> None:
    remote = start_worker(write_backend(tmp_path, ENDS.format(where=where), "Ends"), LIMITS)
    with pytest.raises(Exception, match=f"^{where}: the process ended with exit code 1"):
        [call(remote, (2, 3)) for _ in range(40)]
    remote.close()


def test_rows_of_a_program_that_cannot_start_again(plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    remote = RemoteAdapter([sys.executable, "-S", str(PROGRAM), "dies-after-first-start"], LIMITS)
    remote.restart()
    rows = [row for row in plan.rows if row.operation == "StaticReshape" and row.type == "f32"][:12]
    results = list(run_remote(remote, rows))
    assert [result.row for result in results] == [row.id for row in rows]
    verdicts = [next(iter(result.verdicts.values())) for result in results]
    assert verdicts == ["error"] * 3 + ["not run"] * 9
    (note,) = note_processes(remote)
    assert "given up after 3 starts" in note
    assert "no licence left" in note
    remote.close()


@pytest.mark.parametrize(
    "hangs", [False, pytest.param(True, marks=pytest.mark.skipif(sys.platform != "linux", reason=""))]
)
def test_a_worker_ends_with_a_killed_suite(tmp_path: Path, hangs: bool) -> None:
    """While it hangs, nothing else of Python runs."""
    in_the_call = tmp_path / "called"
    act = f"Path({str(in_the_call)!r}).touch(); {hangs} and ctypes.PyDLL(None).sleep(60)"
    backend = write_acting(tmp_path, act)
    with suite_to_kill(backend) as (suite, group):
        wait(in_the_call.exists)
        suite.kill()
    wait(lambda: not running(group=group))


def test_numbers_past_the_doubles_travel_as_text() -> None:
    graph = reshape((2**53, 0), (2**62, 0))
    sent = json.loads(messages.encode_line(messages.write_graph_record(graph)))
    assert sent["src"]["dims"] == [str(2**53), 0]
    assert messages.graph_of(sent) == graph


@pytest.mark.slow
def test_every_graph_survives_the_protocol(plan: Plan) -> None:
    for row in {(row.case.id, row.shape_passed_as): row for row in plan.rows}.values():
        for task in row.steps:
            sent = messages.encode_line(messages.write_graph_record(task.graph))
            assert messages.graph_of(json.loads(sent)) == task.graph, row.id


WHO = {"name": "it", "version": "1", "operations": ["StaticReshape"], "not_claimed": ["chain"]}


@pytest.mark.parametrize(
    ("key", "value", "due"),
    [
        ("name", None, "text"), ("version", 2, "text"), ("operations", "StaticReshape", "a list of names"),
        ("not_claimed", "chain", "a list of names"), ("not_claimed", ["chain", 1], "a list of names"),
        ("answers_special_zero", 1, "true or false"), ("detail", ["cpu"], "an object"),
    ],
)  # fmt: skip
def test_a_description_with_a_field_of_another_type(key: str, value: object, due: str) -> None:
    assert messages.parse_description(WHO) == (Identity("it", "1"), Claims(("StaticReshape",), ("chain",)))
    with pytest.raises(messages.ProtocolError, match=f"describe: '{key}' is .*, but should be {due}"):
        messages.parse_description({**WHO, key: value})
    with pytest.raises(messages.ProtocolError, match=f"unknown key '{key}s'; did you mean '{key}'"):
        messages.parse_description({**WHO, f"{key}s": value})


TRACE = """
thread 'main' panicked at src/lib.rs:7:5:
the model is odd, caused by:
   0: at odds with 3
   1: odd
stack backtrace:
   0: core::panicking::panic_fmt
  11:     0x7f71144452aa - <alloc::vec::Vec<T> as Clone>::clone::h0f
                               at /home/me/src/vec.rs:12:9
  12:                0x0 - <unknown>
 100: main
             at ./csu/libc-start.c:360
thread caused non-unwinding panic. aborting.
"""


@pytest.mark.slow
def test_last_words_without_a_stack_trace(tmp_path: Path) -> None:
    remote = start_worker(write_odd(tmp_path, f"if odd: os.write(2, {TRACE.encode()!r}); os.abort()"), LIMITS)
    with pytest.raises(Crashed) as crash:
        call(remote, (13,))
    assert str(crash.value).partition("; its stderr ends with: ")[2].splitlines() == [
        "thread 'main' panicked at src/lib.rs:7:5:",
        "the model is odd, caused by:", "   0: at odds with 3", "   1: odd",
        "thread caused non-unwinding panic. aborting.",
    ]  # fmt: skip
    remote.close()
