"""Memory across processes: the suite sees every change that a backend makes, and large tensors arrive whole."""

from pathlib import Path

import pytest

from conformance.isolate.protocol.remote import start_worker
from conformance.isolate.protocol.session import SHARED_FROM
from conformance.model import Result

from .. import miniatures
from ..builders import CASES, IN_PLACE, plan_of_cases, some_slow
from .calls import call_with_buffer
from .remote_backends import LIMITS, Fresh, Obedient, run_in_both, verdicts, write_backend


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("count", [5, SHARED_FROM // 4 + 1])
def test_a_changed_src_in_pipe_and_shared_memory(obedient: Obedient, share: bool, count: int) -> None:
    remote = obedient("src.array()[-1] = 0", share)
    answer, buffer = call_with_buffer(remote, (count,), (count, 1))
    assert buffer.touched
    assert bytes(answer.memory) == bytes(buffer.elements[:-4]) + bytes(4)


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
from tests.miniatures import Bent

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
"""Acts on memory while the backend answers."""
INNOCENT = "leaves all as it was", "answers by a view"


OFTEN = (*INNOCENT, "writes into src", "writes into shape", "changes earlier answers", "cuts src off")


@pytest.mark.parametrize("deed", some_slow(DEEDS, OFTEN))
def test_deeds_in_memory_of_another_process(tmp_path: Path, fresh: Fresh, deed: str) -> None:
    backend = write_backend(tmp_path, DOES.format(act=DEEDS[deed]), "Does")
    rows = plan_of_cases(tmp_path, CASES, IN_PLACE, TWICE_ZEROS).rows
    remote = fresh(backend)
    remote.session().takes_edge = False  # then the memory of a tensor is the same in both, and can be cut off
    here, there = run_in_both(backend, rows, remote)

    def seen(result: Result) -> tuple[object, ...]:
        outcome = result.outcome
        shares = outcome.shares_src and 0 not in (outcome.dims or ())
        return result.row, result.verdicts, result.diagnosis, shares, outcome.kind, outcome.side_effects, result.step

    assert [seen(result) for result in there] == [seen(result) for result in here]
    assert any("fail" in result.verdicts.values() for result in here) == (deed not in INNOCENT)


ACROSS = """
from tests.miniatures import Bent

class Across(Bent):
    latest = None

    def spoil(self):
        if self.latest:
            answer, src = self.latest
            {spoil}

    def compile(self, graph):
        try:
            program = super().compile(graph)
        except BaseException:
            {rejecting}
            raise
        {compiling}
        return program

    def bent(self, answer, src, shapes):
        {running}
        self.latest = answer, src
        return answer
"""
SEVERAL = """about: Rows of several programs, and one of a single call.
cases:
  - id: dropped
    rule: each-call-alone
    special_zero: false
    steps:
      - {src: "f32[2, 3]", shape: [6], new_program: true, expect: "f32[6]"}
      - {src: "f32[4]", shape: [3], expect: reject}
      - {src: "f32[5]", shape: [5, 1], expect: "f32[5, 1]"}
  - id: kept
    rule: each-call-alone
    special_zero: false
    steps:
      - {src: "f32[7]", shape: [7, 1], expect: "f32[7, 1]"}
      - {src: "f32[8]", shape: [9], expect: reject}
      - {src: "f32[3, 3]", shape: [9], expect: "f32[9]"}
  - {id: single, rule: literal-lengths, src: "f32[2]", shape: [2, 1], special_zero: false, expect: "f32[2, 1]"}
"""
SPOILS = {
    "answer changed later": ("answer.view('u1').fill(7)", ["dropped", "kept", "single"]),
    "src of an earlier call changed": ("src.memory[src.offset] ^= 1", ["kept"]),
}
ACTS = "rejecting", "compiling", "running"


@pytest.mark.parametrize("fault", SPOILS)
@pytest.mark.parametrize("when", ACTS)
def test_memory_of_another_program(tmp_path: Path, fresh: Fresh, when: str, fault: str) -> None:
    """It may not change until the row ends; an answer not even if its program is dropped."""
    spoil, cases = SPOILS[fault]
    acts = {act: "self.spoil()" if act == when else "pass" for act in ACTS}
    backend = write_backend(tmp_path, ACROSS.format(spoil=spoil, **acts), "Across")
    plan = plan_of_cases(tmp_path, SEVERAL)
    rows = [row for row in plan.rows if row.case.id in cases and row.operation == "StaticReshape"]
    here, there = run_in_both(backend, rows, fresh(backend))
    assert [result[:5] for result in there] == [result[:5] for result in here]
    assert [result.diagnosis for result in there] == [None if case == "single" else fault for case in cases]


IN_TURN = """
from conformance.model import Rejected
from tests import miniatures

class InTurn(miniatures.Bent):
    answers = [*miniatures.Answers.KINDS.values()]
    raised = [made for name, made in miniatures.RAISED.items() if name != "MemoryError"]  # the process ends of that

    def bent(self, answer, src, shapes):
        if self.answers:
            return self.answers.pop(0)(answer, src)
        raise self.raised.pop(0)()
"""


def test_odd_answers_from_another_process(tmp_path: Path, fresh: Fresh) -> None:
    row = next(row for row in plan_of_cases(tmp_path).rows if row.case.id == "flattens")
    rows = [row] * (len(miniatures.Answers.KINDS) + len(miniatures.RAISED) - 1)
    backend = write_backend(tmp_path, IN_TURN, "InTurn")
    here, there = run_in_both(backend, rows, fresh(backend))
    for one, other in zip(here, there, strict=True):
        assert (one.verdicts, one.diagnosis) == (other.verdicts, other.diagnosis), (one.outcome, other.outcome)
        assert one.outcome[:3] == other.outcome[:3]
    assert not {"pass", "observed"} & verdicts(there)


@pytest.mark.parametrize(
    ("dims", "strides", "offset"),
    [("(6,)", "(4,)", "9"), ("[6]", "[4]", "9"), ("np.array([6])", "np.array([4])", "np.int8(9)")],
)
def test_an_answer_in_read_only_memory(obedient: Obedient, dims: str, strides: str, offset: str) -> None:
    """Numbers of NumPy and lists are taken, too: another process has to send them."""
    remote = obedient(f"return Tensor(src.type, {dims}, {strides}, bytes(9) + src.array().tobytes(), {offset})")
    answer, buffer = call_with_buffer(remote, (2, 3), (6,))
    assert (answer.dims, bytes(answer.memory)) == ((6,), buffer.elements)


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize(
    ("size", "times"), [(SHARED_FROM // 4, 1), ((1 << 20) + 3, 1), (1 << 22, 1), (SHARED_FROM, 2), (SHARED_FROM, 40)]
)
def test_large_tensors_and_answers_larger_than_src(obedient: Obedient, share: bool, size: int, times: int) -> None:
    remote = obedient("pass" if times == 1 else f"return np.tile(src.array(), {times})", share)
    for _ in range(2):
        answer, buffer = call_with_buffer(remote, (size,), (1, size))
        assert answer.dims == ((1, size) if times == 1 else (times * size,))
        assert bytes(answer.memory) == bytes(buffer.elements[:]) * times
        assert not buffer.touched
    assert remote.starts == 1


@pytest.mark.slow
def test_a_working_directory_that_hides_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "conformance").mkdir()
    for name in ("conformance/__init__.py", "numpy.py", "json.py"):
        (tmp_path / name).write_text("raise SystemExit('this is not what was meant')")
    monkeypatch.chdir(tmp_path)
    start_worker("reference", LIMITS).close()
