"""A backend in a process of its own gives the verdicts that it gives in ours, and what goes wrong stays there."""

from __future__ import annotations

import gc
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from conformance.adapter import CannotStart
from conformance.cli.main import main
from conformance.isolate import protocol
from conformance.isolate.backend import Isolation, process_notes, run_in_parallel, run_rows, use_backend
from conformance.isolate.launch import Limits
from conformance.isolate.remote import Remote, worker
from conformance.isolate.session import SHARED_FROM
from conformance.load.cases import load_suite
from conformance.model import Claims, Declared, Graph, Identity, Node, Operand, Result, Tensor
from conformance.plan.memory import Source, image_of
from conformance.plan.rows import Plan, Row, plan_of
from conformance.run.row import run

from .. import miniatures, small
from ..processes import running, wait
from ..small import Command, command

__all__ = ["command"]

MISBEHAVING = Path(__file__).parents[1] / "misbehaving.py"
LIMITS = Limits(seconds=3.0)
AGAIN = "again alone in a fresh process", "alone in a fresh process, like the row before"
SOMETIMES = """
import os
from pathlib import Path
from conformance.adapters.broken.process import DiesRatherThanRefuse

class Sometimes(DiesRatherThanRefuse):
    def compile(self, graph):
        state = Path({state!r})
        calls = len(state.read_text()) if state.exists() else 0
        state.write_text("." * (calls + 1))
        return super(DiesRatherThanRefuse, self).compile(graph) if calls == 1 else super().compile(graph)
"""
"""Its second call is refused as it should be; all others end the process."""
BY_ADDRESS = '''
import numpy as np
from conformance.adapter import FunctionAdapter
from conformance.model import Tensor

class View(FunctionAdapter):
    name, version = "view", "1"

    def reshape(self, src, shape, special_zero):
        return src.reshape([src.shape[i] if n == 0 else n for i, n in enumerate(shape)] if special_zero else shape)

class ViewOfTheLibrarys(View):
    """The library's own object for the very memory of src."""

    def compile(self, graph):
        return OfTensors(super().compile(graph))

class OfTensors:
    def __init__(self, program):
        self.program = program

    def run(self, src, shapes, may_overwrite):
        dst = self.program.run(src, shapes, may_overwrite)
        memory = np.frombuffer(src.memory, np.uint8).data
        return Tensor(src.type, dst.shape, dst.strides, memory, src.offset)

class ByAddress(View):
    name, known = "by-address", {}

    def reshape(self, src, shape, special_zero):
        key = src.ctypes.data, src.nbytes
        self.known.setdefault(key, src.copy())
        return super().reshape(self.known[key], shape, special_zero)
'''
"""One knows what it has seen by where it lay; the others answer by views, which nobody forbids."""


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_of(load_suite())


def some(plan: Plan, step: int) -> list[Row]:
    return [row for row in plan.rows if not row.case.large][::step]


def reshape(dims: tuple[int, ...], shape: tuple[int, ...], type_: str = "f32") -> Graph:
    node = Node("StaticReshape", Operand("s64", (len(shape),), shape), Operand("bool", (), (False,)))
    return Graph(Declared(type_, dims), (node,))


OPEN: list[Remote] = []


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    """Close what `start` started, and find that no process came to a bad end."""
    yield
    while OPEN:
        OPEN[-1].close()
        assert OPEN.pop().bad_end is None


def start(backend: str, limits: Limits = LIMITS, share: bool = True) -> Remote:
    OPEN.append(worker(backend, limits, share))
    return OPEN[-1]


def write_backend(folder: Path, text: str, name: str) -> str:
    path = folder / "backend.py"
    path.write_text(text, encoding="utf-8")
    return f"{path}:{name}"


ODD = """import os, time
import numpy as np
from conformance.adapters.numpy_reference import NumpyReference
from conformance.model import Rejected, Tensor, Unsupported
class Own(BaseException):
    pass
class Mute(BaseException):
    def __str__(self):
        raise KeyboardInterrupt
class Odd(NumpyReference):
    def compile(self, graph):
        program, run = super().compile(graph), self.run
        class Program:
            def run(self, *given):
                return run(program.run, *given)
        return Program()
    def run(self, go, src, shapes, may_overwrite):
        odd = src.dims == (13,)
"""


def odd(folder: Path, act: str, share: bool = True, limits: Limits = LIMITS) -> Remote:
    """A backend that acts so before each run; `odd` is true for a src of 13 elements, `go` runs a right backend."""
    text = f"{ODD}        {act}\n        return go(src, shapes, may_overwrite)\n"
    return start(write_backend(folder, text, "Odd"), limits, share)


def run_in_both(backend: str, rows: Sequence[Row], limits: Limits = LIMITS) -> tuple[list[Result], list[Result]]:
    """The results of rows in this process, and in one of the backend's own that is not started anew."""
    with use_backend(backend, "none") as here, use_backend(backend, "worker", limits) as there:
        results = list(run(rows, here)), list(run(rows, there))
        assert isinstance(there, Remote)
        assert there.generation == 1
    return results


def verdicts(results: Iterable[Result]) -> set[str]:
    return {verdict for result in results for verdict in result.verdicts.values()}


def test_every_row_has_the_verdict_that_it_has_in_process(plan: Plan) -> None:
    rows = some(plan, 7)
    for name in ("numpy", "numpy-raw"):
        here, there = run_in_both(name, rows)
        assert [(r.row, r.verdicts, r.diagnosis) for r in here] == [(r.row, r.verdicts, r.diagnosis) for r in there]


def test_several_processes_give_the_rows_in_order(plan: Plan) -> None:
    rows = some(plan, 40)
    with use_backend("numpy", "worker", LIMITS) as first:
        results = list(run_in_parallel(rows, first, first.claims, "numpy", "worker", LIMITS, 2))
    assert [result.row for result in results] == [row.id for row in rows]
    assert verdicts(results) <= {"pass", "observed"}


def test_rows_of_a_case_stay_with_one_process(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, taken = list(plan.rows[:400]), list[list[Row]]()

    def take(chunk: list[Row], *_: object) -> list[Result]:
        taken.append(chunk)
        return []

    monkeypatch.setattr("conformance.isolate.backend.run_rows", take)
    with use_backend("numpy", "worker", LIMITS) as first:
        assert not list(run_in_parallel(rows, first, first.claims, "numpy", "worker", LIMITS, 2))
    assert sorted(row.id for chunk in taken for row in chunk) == sorted(row.id for row in rows)
    assert len(taken) > 10
    assert sum(len({row.case.id for row in chunk}) for chunk in taken) == len({row.case.id for row in rows})


def called(remote: Remote, dims: tuple[int, ...], type_: str = "f32", may_overwrite: bool = False) -> Tensor:
    src = image_of(Source(type_, dims)).tensor
    count = 1
    for length in dims:
        count *= length
    return remote.compile(reshape(dims, (count,), type_)).run(src, (), may_overwrite)


def test_a_crash_is_named_and_the_next_call_runs_in_a_new_process(tmp_path: Path) -> None:
    remote = odd(tmp_path, "odd and os.abort()")
    with pytest.raises(Exception, match="run: the process died of SIGABRT"):
        called(remote, (13,))
    assert called(remote, (2, 3)).dims == (6,)
    assert remote.generation == 2


def test_a_program_goes_on_in_the_process_that_comes_after_its_own() -> None:
    remote = start("numpy")
    programs = [remote.compile(reshape((2, 3), (6,))), remote.compile(reshape((2, 3), (3, 2)))]
    for end in (remote.renew, remote.restart, remote.renew, remote.close):
        for _ in range(2):
            src = image_of(Source("f32", (2, 3))).tensor
            assert [program.run(src, (), False).dims for program in programs] == [(6,), (3, 2)]
        end()
    assert remote.generation == 4


def test_rows_of_a_case_that_die_alike_are_tried_twice_once(plan: Plan) -> None:
    dying = "conformance.adapters.broken.process:DiesRatherThanRefuse"
    first, other = "two-infers", "two-infers-around-a-length"
    asked = [row for row in plan.rows if row.case.id in (first, other) and row.operation == "StaticReshape"]
    assert [row.case.id for row in asked] == [first] * 3 + [other] * 3
    with use_backend(dying, "worker", LIMITS) as remote:
        results = list(run(asked, remote))
        assert isinstance(remote, Remote)
        assert remote.generation == 6 + 2, "one process a row, and one for the second try of the first of either case"
    again, alike = (f"(deterministic: {how})" for how in AGAIN)
    assert [str(result.outcome.message).endswith(again) for result in results] == [True, False, False] * 2
    assert [str(result.outcome.message).endswith(alike) for result in results] == [False, True, True] * 2
    assert verdicts(results) == {"fail"}


def test_a_row_that_dies_after_one_that_did_not_come_again_is_tried_twice(tmp_path: Path, plan: Plan) -> None:
    backend = write_backend(tmp_path, SOMETIMES.format(state=str(tmp_path / "state")), "Sometimes")
    asked = [row for row in plan.rows if row.case.id == "two-infers" and row.operation == "StaticReshape"]
    with use_backend(backend, "worker", LIMITS) as remote:
        results = list(run(asked, remote))
    messages = [str(result.outcome.message) for result in results]
    assert ["flaky" in message for message in messages] == [True, False, False]
    assert [message.endswith(f"(deterministic: {AGAIN[0]})") for message in messages] == [False, True, False]


def test_who_knows_a_src_by_its_address_is_found_where_memory_is_used_again(tmp_path: Path, plan: Plan) -> None:
    asked = [row for row in plan.rows if row.case.id == "memory-is-used-again-for-other-elements"]
    for name, verdict in (("ByAddress", "fail"), ("View", "pass"), ("ViewOfTheLibrarys", "pass")):
        with use_backend(write_backend(tmp_path, BY_ADDRESS, name), "worker", LIMITS) as remote:
            assert verdicts(run(asked, remote)) == {verdict}


def assert_hang_ends(remote: Remote, seconds: float) -> None:
    began = time.monotonic()
    with pytest.raises(Exception, match=re.escape(f"no answer within {seconds} s to run")):
        called(remote, (13,))
    assert time.monotonic() - began < seconds + 5


def test_a_hang_ends_within_its_limit(tmp_path: Path) -> None:
    remote = odd(tmp_path, "odd and time.sleep(60)", limits=Limits(seconds=0.5))
    called(remote, (2, 3))  # the very first call may take longer
    assert_hang_ends(remote, 0.5)


def test_the_very_first_call_may_take_as_long_as_the_start(tmp_path: Path) -> None:
    remote = odd(tmp_path, "odd and time.sleep(60)", limits=Limits(seconds=0.5, start_seconds=3.0))
    assert_hang_ends(remote, 3)
    assert_hang_ends(remote, 0.5)  # the first after it may not


def test_memory_beyond_the_limit_is_a_memory_error(tmp_path: Path) -> None:
    remote = odd(tmp_path, "np.empty(1 << 40, np.uint8)", limits=Limits(memory=4 << 30))
    with pytest.raises(MemoryError):
        called(remote, (13,))
    assert remote.generation == 1


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("count", [5, SHARED_FROM // 4 + 1])
def test_a_changed_src_is_seen_through_pipe_and_shared_memory(tmp_path: Path, share: bool, count: int) -> None:
    remote = odd(tmp_path, "src.array()[-1] = 0", share)
    image = image_of(Source("f32", (count,)))
    answer = remote.compile(reshape((count,), (count, 1))).run(image.tensor, (), False)
    assert image.touched
    assert bytes(answer.memory) == bytes(image.elements[:-4]) + bytes(4)


TWICE_ZEROS = """about: Elements that are all zero.
cases:
  - id: zeros
    rule: each-call-alone
    src: f32[2, 3]
    shape: [3, 2]
    special_zero: false
    bits: "00000000"
    steps: [{expect: "f32[3, 2]"}, {expect: "f32[3, 2]"}]
"""
DOES = """
import numpy as np
from conformance.model import Rejected, Tensor, Unsupported
from conformance.tests.miniatures import Bent

class Does(Bent):
    kept = []

    def compile(self, graph):
        self.kept.clear()
        return super().compile(graph)

    def bent(self, answer, src, shapes):
        {act}
        return answer
"""
DEEDS = {
    "leaves all as it was": "pass",
    "writes into src": "answer = answer.copy(); src.memory[len(src.memory) // 2] ^= 1",
    "writes before src": "src.memory[0] ^= 1",
    "writes behind src": "src.memory[-1] ^= 1",
    "writes into shape": "[shape.memory.__setitem__(-1, 0) for shape in shapes]",
    "writes and refuses": "src.memory[0] ^= 1; raise Rejected('run', 'no')",
    "writes and errs": "src.memory[0] ^= 1; raise KeyError('lost')",
    "writes and cannot": "src.memory[0] ^= 1; raise Unsupported('chain')",
    "cuts src off": "del src.memory[-8:]",
    "lengthens src": "src.memory.extend(b'more')",
    "leaves nothing of src": "src.memory.clear()",
    "writes into src of earlier calls": "[t.memory.__setitem__(0, 7) for t in self.kept]; self.kept.append(src)",
    "cuts src of earlier calls off": "[t.memory.clear() for t in self.kept]; self.kept.append(src)",
    "changes earlier answers": "[a.view('u1').fill(7) for a in self.kept]; answer = answer.copy('C'); "
    "self.kept[:] = [answer] if answer.size and answer.ndim else []",
    "frees earlier answers": "[m.clear() for m in self.kept]; m = bytearray(answer.tobytes()); self.kept.append(m); "
    "answer = Tensor(src.type, answer.shape, answer.strides, m, 0)",
    "answers by a view": "answer = src.array().reshape(answer.shape)",
    "answers by the memory of src": "answer = Tensor(src.type, src.dims, src.strides, src.memory, src.offset)",
}
"""What a backend does to memory while it answers."""
INNOCENT = "leaves all as it was", "answers by a view"


@pytest.mark.parametrize("deed", DEEDS)
def test_what_is_done_to_memory_is_seen_from_another_process_as_in_ours(tmp_path: Path, deed: str) -> None:
    backend = write_backend(tmp_path, DOES.format(act=DEEDS[deed]), "Does")
    rows = small.plan(tmp_path, small.CASES, small.IN_PLACE, TWICE_ZEROS).rows
    here, there = run_in_both(backend, rows, Limits(seconds=1.0))

    def seen(result: Result) -> tuple[object, ...]:
        outcome = result.outcome
        shares = outcome.shares and 0 not in (outcome.dims or ())
        return result.row, result.verdicts, result.diagnosis, shares, outcome.kind, outcome.faults, result.step

    assert [seen(result) for result in there] == [seen(result) for result in here]
    assert any("fail" in result.verdicts.values() for result in here) == (deed not in INNOCENT)


IN_TURN = """
from conformance.model import Rejected
from conformance.tests import miniatures

class InTurn(miniatures.Bent):
    answers = [*miniatures.Answers.KINDS.values()]
    raised = [made for name, made in miniatures.RAISED.items() if name != "MemoryError"]  # the process ends of that

    def bent(self, answer, src, shapes):
        if self.answers:
            return self.answers.pop(0)(answer, src)
        raise self.raised.pop(0)()
"""


def test_whatever_is_no_answer_comes_to_the_same_as_in_ours(tmp_path: Path) -> None:
    row = next(row for row in small.plan(tmp_path).rows if row.case.id == "flattens")
    rows = [row] * (len(miniatures.Answers.KINDS) + len(miniatures.RAISED) - 1)
    here, there = run_in_both(write_backend(tmp_path, IN_TURN, "InTurn"), rows)
    for one, other in zip(here, there, strict=True):
        assert (one.verdicts, one.diagnosis) == (other.verdicts, other.diagnosis), (one.outcome, other.outcome)
        assert one.outcome[:3] == other.outcome[:3]
    assert not {"pass", "observed"} & verdicts(there)


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("times", [2, 40])
def test_an_answer_larger_than_src_comes_whole(tmp_path: Path, share: bool, times: int) -> None:
    remote = odd(tmp_path, f"return np.tile(src.array(), {times})", share)
    image = image_of(Source("f32", (SHARED_FROM,)))
    for _ in range(2):
        answer = remote.compile(reshape((SHARED_FROM,), (SHARED_FROM,))).run(image.tensor, (), False)
        assert (answer.dims, bytes(answer.memory)) == ((times * SHARED_FROM,), bytes(image.elements) * times)
        assert not image.touched
    assert remote.generation == 1


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("size", [SHARED_FROM // 4, (1 << 20) + 3, 1 << 22])
def test_large_tensors_come_back_as_they_are(share: bool, size: int) -> None:
    remote = start("numpy", LIMITS, share)
    for _ in range(2):
        image = image_of(Source("f32", (size,)))
        answer = remote.compile(reshape((size,), (1, size))).run(image.tensor, (), False)
        assert answer.dims == (1, size)
        assert bytes(answer.memory) == image.elements
        assert not image.touched


def test_a_working_directory_that_hides_modules_hides_none_from_a_worker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conformance").mkdir()
    for name in ("conformance/__init__.py", "numpy.py", "json.py"):
        (tmp_path / name).write_text("raise SystemExit('this is not what was meant')")
    monkeypatch.chdir(tmp_path)
    worker("numpy", LIMITS).close()


def test_programs_that_nobody_has_any_more_are_closed() -> None:
    remote = start("numpy")
    for _ in range(40):
        called(remote, (2, 3))
    gc.collect()
    assert len(remote.session().closing) < 20


RAISED = {
    "raise KeyError('a bug')": "KeyError: 'a bug'",
    "raise KeyboardInterrupt": "KeyboardInterrupt: ",
    "raise GeneratorExit": "GeneratorExit: ",
    "raise Own('mine')": "Own: mine",
    "raise Mute": "Mute: (Mute, which cannot be written: KeyboardInterrupt)",
    "raise SystemExit(0)": "SystemExit: 0",
    "raise Rejected(5, b'no')": "Rejected(5, b'no'): the stage is compile or run, the message text",
    "raise Unsupported(b'x')": "bytes where text was expected: b'x'",
    "return Tensor('f32', (0.0, 3.5), (14, 4), bytearray(8), 0)": "TypeError: 'float' object cannot be interpreted",
}


@pytest.mark.parametrize("act", RAISED)
def test_whatever_is_raised_or_returned_is_told_and_the_process_lives_on(tmp_path: Path, act: str) -> None:
    remote = odd(tmp_path, f"if odd: {act}")
    for _ in range(2):
        with pytest.raises(Exception, match=re.escape(RAISED[act])):
            called(remote, (13,))
    assert called(remote, (2, 3)).dims == (6,)
    assert remote.generation == 1


@pytest.mark.parametrize("first", ["parent", "copy"])
def test_a_copy_of_the_process_that_comes_back_from_a_call_says_nothing(tmp_path: Path, first: str) -> None:
    wait = f"__import__('time').sleep(0.1 if pid and {first == 'copy'} or not pid and {first == 'parent'} else 0)"
    remote = odd(tmp_path, f"pid = os.fork(); {wait}")
    for _ in range(4):
        assert called(remote, (2, 3)).dims == (6,)
    assert remote.generation == 1


@pytest.mark.parametrize(
    "act",
    [
        "[os.close(fd) for fd in (0, 1, 2) if os.path.exists(f'/dev/fd/{fd}')]",
        "import sys; sys.stdout = sys.stderr = None",
        "import tempfile; d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d)",
        "import json; json.loads = json.dumps = json.JSONEncoder = json.JSONDecoder = None",
        "np.array_equal = np.asarray = np.may_share_memory = None",
        "import signal; [signal.signal(n, signal.SIG_IGN) for n in (1, 2, 10, 13, 14, 15)]",
        "import sys; sys.setrecursionlimit(40)",
        "import gc; gc.disable(); np.seterr(all='raise'); import warnings; warnings.simplefilter('error')",
        "os.write(1, b'junk'); print('junk')",
    ],
)
def test_what_a_backend_does_to_its_own_process_changes_no_answer(tmp_path: Path, act: str) -> None:
    remote = odd(tmp_path, act)
    for _ in range(3):
        image = image_of(Source("f32", (2, 3)))
        answer = remote.compile(reshape((2, 3), (6,))).run(image.tensor, (), False)
        assert (answer.dims, bytes(answer.memory)) == ((6,), image.elements)


ENDS = """
import os
from conformance.adapters.numpy_reference import NumpyReference
closed = []
class Program:
    def __init__(self, program):
        self.run = program.run
    def __del__(self):
        closed.append(self)
        if {where!r} == "close" and len(closed) == 3:
            os._exit(1)
class Ends(NumpyReference):
    def compile(self, graph):
        if {where!r} == "compile" and closed:
            os._exit(1)
        return Program(super().compile(graph))
"""


@pytest.mark.parametrize("where", ["close", "compile"])
def test_an_end_is_blamed_on_the_right_request_of_those_that_travel_together(tmp_path: Path, where: str) -> None:
    remote = worker(write_backend(tmp_path, ENDS.format(where=where), "Ends"), LIMITS)
    with pytest.raises(Exception, match=f"^{where}: the process ended with exit code 1"):
        [called(remote, (2, 3)) for _ in range(40)]
    remote.close()


def test_a_stranger_that_cannot_be_started_again_leaves_rows_not_run(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    remote = Remote([sys.executable, "-S", str(MISBEHAVING), "dies-after-first-start"], LIMITS)
    remote.restart()
    rows = [row for row in plan.rows if row.operation == "StaticReshape" and row.type == "f32"][:12]
    results = list(run_rows(rows, remote, remote.claims, "worker"))
    assert [result.row for result in results] == [row.id for row in rows]
    verdicts = [next(iter(result.verdicts.values())) for result in results]
    assert verdicts == ["error"] * 3 + ["not run"] * 9
    assert "given up after 3 starts" in process_notes(remote)[0]
    remote.close()


def test_a_backend_that_cannot_be_imported_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="unknown backend 'nmpy'; did you mean 'numpy'"):
        worker("nmpy", LIMITS)
    assert main(["run", "cmd:/nowhere/at-all", "--out", str(tmp_path / "out")]) == 3


HANGS = """import ctypes, time
from conformance.adapters.numpy_reference import NumpyReference
class Hangs(NumpyReference):
    def compile(self, graph):
        ctypes.PyDLL(None).sleep(60)  # and nothing else of Python runs meanwhile
"""


@pytest.mark.parametrize(
    "hangs", [False, pytest.param(True, marks=pytest.mark.skipif(sys.platform != "linux", reason=""))]
)
def test_a_worker_ends_when_the_suite_is_killed(tmp_path: Path, hangs: bool) -> None:
    backend = write_backend(tmp_path, HANGS, "Hangs") if hangs else "numpy"
    script = (
        "import time\nfrom conformance.isolate.remote import worker\n"
        "from conformance.tests.isolate.test_remote import called\n"
        f"w = worker({backend!r})\nprint(w.session().process.pid, flush=True)\ncalled(w, (2, 3))\ntime.sleep(60)\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=env, text=True) as parent:
        assert parent.stdout is not None
        group = int(parent.stdout.readline())
        time.sleep(0.5)  # until it is in the call
        parent.send_signal(signal.SIGKILL)
    wait(lambda: not running(group=group), 5)


def test_numbers_past_the_doubles_travel_as_text() -> None:
    graph = reshape((2**53, 0), (2**62, 0))
    sent = json.loads(protocol.graph_text(graph))
    assert sent["src"]["dims"] == [str(2**53), 0]
    assert protocol.graph_of(sent) == graph


def test_every_graph_arrives_as_it_was_sent(plan: Plan) -> None:
    for row in {(row.case.id, row.given): row for row in plan.rows}.values():
        for task in row.steps:
            assert protocol.graph_of(json.loads(protocol.graph_text(task.graph))) == task.graph, row.id


WHO = {"name": "it", "version": "1", "operations": ["StaticReshape"], "leaves_out": ["chain"], "mapped": []}


@pytest.mark.parametrize(
    ("key", "value", "due"),
    [
        ("name", None, "text"), ("version", 2, "text"), ("operations", "StaticReshape", "a list of names"),
        ("leaves_out", "chain", "a list of names"), ("leaves_out", ["chain", 1], "a list of names"),
        ("mapped", {"special_zero": True}, "a list of names"), ("answers_special_zero", 1, "true or false"),
        ("detail", ["cpu"], "an object"),
    ],
)  # fmt: skip
def test_a_description_that_says_something_else_is_no_claim(key: str, value: object, due: str) -> None:
    assert protocol.parse_description(WHO) == (Identity("it", "1"), Claims(("StaticReshape",), ("chain",)))
    with pytest.raises(protocol.Fault, match=f"describe: '{key}' is .*, where {due} was due"):
        protocol.parse_description({**WHO, key: value})


def test_nothing_that_is_expected_and_no_case_is_sent(plan: Plan) -> None:
    row = plan.rows[0]
    sent = protocol.graph_text(row.steps[0].graph)
    assert row.case.id not in sent
    assert row.case.rule not in sent
    assert "expect" not in sent


HANGS_WHERE = """
import time
from pathlib import Path
from conformance.adapters.numpy_reference import NumpyReference

class Hangs(NumpyReference):
    def compile(self, graph):
        with Path({calls!r}).open("a") as file:
            file.write(graph.nodes[0].operation + "\\n")
        if {when}:
            time.sleep(8)  # longer than any limit here but that of the first call
        return super().compile(graph)
"""


def hangs_where(tmp_path: Path, when: str) -> tuple[str, Path]:
    """A backend that hangs where that is true of a graph, and the file in which it counts its calls."""
    calls = tmp_path / "calls"
    return write_backend(tmp_path, HANGS_WHERE.format(calls=str(calls), when=when), "Hangs"), calls


@pytest.mark.parametrize("isolation", ["worker", "case"])
def test_rows_after_three_that_hang_alike_are_not_run(tmp_path: Path, plan: Plan, isolation: Isolation) -> None:
    asked = [row for row in plan.rows if row.case.id in ("two-infers", "two-infers-around-a-length")]
    backend, calls = hangs_where(tmp_path, "graph.nodes[0].operation == 'Reshape-1'")
    with use_backend(backend, "worker", Limits(seconds=0.8)) as remote:
        results = list(run_rows(asked, remote, remote.claims, isolation))
    kinds = {
        name: [str(result.outcome.kind) for result in results if f"[{name}" in result.row]
        for name in ("StaticReshape", "DynamicReshape-1", "Reshape-1")
    }
    assert kinds["StaticReshape"] == kinds["DynamicReshape-1"] == ["rejected"] * 6, "another operation is called"
    assert kinds["Reshape-1"] == 2 * (["timeout"] * 3 + ["none"] * 9)
    assert calls.read_text().split().count("Reshape-1") >= 2 * (3 + 1), "three rows of a case, the first one twice"
    assert verdicts(result for result in results if result.outcome.kind == "none") == {"not run"}


def test_a_run_says_how_many_rows_it_did_not_call_and_how_to_call_them(command: Command, tmp_path: Path) -> None:
    backend, calls = hangs_where(tmp_path, "graph.nodes[0].operation == 'Reshape-1'")
    words = [backend, "--isolation", "worker", "--timeout", "0.3", "-k", "two-infers"]
    said = command.run(*words, out=tmp_path / "out")
    assert said.code == 1
    assert (
        "note: not called: 9 rows of two-infers, because 3 rows of the same case and operation hung; that saved up to "
        "1 min, and --maxhang 0 calls them"
    ) in " ".join(said.out.split())
    calls.unlink()
    every = command.run(*words, "--maxhang", "0", out=tmp_path / "every")
    assert "not called" not in every.out
    assert calls.read_text().split().count("Reshape-1") == 12 + 1


def test_what_hangs_now_and_then_is_called_every_time(tmp_path: Path, plan: Plan) -> None:
    asked = [row for row in plan.rows if row.case.id == "two-infers" and row.operation == "Reshape-1"]
    backend, _ = hangs_where(tmp_path, "graph.src.type == 'bf16'")
    with use_backend(backend, "worker", Limits(seconds=0.8)) as remote:
        results = list(run(asked, remote))
    assert [result.outcome.kind for result in results] == ["rejected", "timeout", "rejected"] * 4


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_loses_its_budget_to_calls_that_hang_ends_with_rows_not_run(
    command: Command, tmp_path: Path, jobs: int
) -> None:
    backend, calls = hangs_where(tmp_path, "graph.nodes[0].shape and graph.nodes[0].shape.values != (2, 3)")
    said = command.run(
        backend, "--isolation", "worker", "--jobs", jobs, "--timeout", "0.3", "--budget", "1", "--operation",
        "StaticReshape",
    )  # fmt: skip
    assert said.code == 1
    assert "more than --budget 1; give a larger one to go on; the rows after that were not run" in said.text
    assert re.search(r"\d+ not run", said.out)
    assert 4 <= len(calls.read_text().split()) <= 24
