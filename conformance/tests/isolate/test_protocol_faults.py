"""Everything that a program at the other end may do wrong is survived, and said in its own words."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformance.adapter import CannotStart, resolve_claims
from conformance.isolate.launch import Limits
from conformance.isolate.remote import Remote
from conformance.isolate.session import SHARED_FROM
from conformance.load import load_spec
from conformance.model import Declared, Graph, Node, Operand, Outcome
from conformance.plan.memory import Source
from conformance.plan.steps import RowStep
from conformance.run.call import make_call
from conformance.run.contain import remove_places

from ..processes import running, wait
from ..small import Cli

PROGRAM = Path(__file__).parents[1] / "misbehaving.py"
LIMITS = Limits(seconds=1.0, start_seconds=5.0, stop_seconds=0.4)


OPEN: list[Remote] = []


def remote(*words: str, limits: Limits = LIMITS, share: bool = True) -> Remote:
    """The program with a fault; it is closed at the end of the test."""
    OPEN.append(Remote([sys.executable, "-S", str(PROGRAM), *words], limits, share=share))
    return OPEN[-1]


def task(src: tuple[int, ...] = (2, 3), shape: tuple[int, ...] = (3, 2)) -> RowStep:
    node = Node("StaticReshape", Operand("s64", (len(shape),), shape), Operand("bool", (), (False,)))
    return RowStep(Graph(Declared("f32", src), (node,)), Source("f32", src), (), False, (), False)


def outcome(backend: Remote, **call: tuple[int, ...]) -> Outcome:
    return make_call(backend, task(**call), None)[0]


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    """No descriptor stays open, and no file in shared memory."""
    folder = Path("/dev/shm")
    files = set(folder.iterdir()) if folder.is_dir() else set()
    yield
    while OPEN:
        OPEN.pop().close()
    gc.collect()
    left = {path for path in set(folder.iterdir()) - files if "conformance" in path.name} if folder.is_dir() else set()
    assert not left


def assert_outcome(answer: Outcome, kind: str, words: str) -> None:
    assert (answer.kind, words in (answer.message or "")) == (kind, True), str(answer)[:500]


def group_of(backend: Remote) -> int:
    return backend.session().process._child.pid


IN_A_CALL = {
    "silent": ("timeout", "no answer within 1 s to run"),
    "late": ("timeout", "no answer within 1 s to run"),
    "partial-line": ("timeout", "has no end"),
    "crlf": ("error", "ends with a carriage return"),
    "bom": ("error", "byte order mark"),
    "invalid-utf8": ("error", "is not UTF-8"),
    "invalid-json": ("error", "the line is no JSON"),
    "trails": ("error", "the line is no JSON"),
    "two-objects": ("error", "the line is no JSON"),
    "no-object": ("error", "the line is no JSON object"),
    "huge-line": ("error", "a line of more than"),
    "wrong-id": ("error", "that nobody made"),
    "text-id": ("error", "its reply has the id"),
    "prints": ("error", "b'Using 4 threads'; if a library printed it"),
    "exits": ("crash", "ended with exit code 0 in the middle of a call"),
    "dies": ("crash", "ended with exit code 1 in the middle of a call; its last words: out of licences"),
    "segfault": ("crash", "died of SIGSEGV"),
    "child-holds-stdout": ("crash", "ended with exit code 3"),
    "closes-stdout": ("crash", "closed its output without ending"),
    "short-payload": ("timeout", "23 of the 24 bytes of its payload came"),
    "long-payload": ("error", "4 bytes more than it announced"),
    "enormous": ("error", "where the size of the payload was due"),
    "unknown-type": ("error", "'q7', which is no element type"),
    "dims-against-bytes": ("error", "24 bytes for f32[99], which takes 396"),
    "wrote-nonsense": ("error", "'wrote' names the tensor 9"),
    "two-kinds": ("error", "it said result, rejected"),
    "no-kind": ("error", "it said none"),
}


CONTRADICTIONS = {
    "where the size of the payload was due": [
        'result:{"bytes": "24"}', 'result:{"bytes": 24.0}', 'result:{"bytes": null}', 'result:{"bytes": -1}',
    ],
    "4 bytes more than it announced": ['result:{"bytes": 20}'],
    "24 bytes more than it announced": ['result:{"bytes": 0, "dims": [0]}'],
    "lies at 0 in shared memory, where it was given no room": ['result:{"at": 0}'],
    "lies at 4096 in shared memory, where it was given no room": ['result:{"at": 4096}'],
    "which is no element type": ['result:{"type": null}', 'result:{"type": "string"}'],
    "24 bytes for f64[3, 2], which takes 48": ['result:{"type": "f64"}'],
    "where a list was due": ['result:{"dims": null}', 'result:{"dims": "32"}'],
    "where a whole number was due": [
        'result:{"dims": [3, null]}', 'result:{"dims": [3, 2.0]}', 'result:{"dims": [6, true]}',
        'result:{"dims": [6, "1.0"]}', 'result:{"dims": [6, ""]}', 'result:{"dims": [-6, "-"]}',
        'result:{"dims": [-6, "--1"]}', 'result:{"dims": [6, "+1"]}', 'result:{"dims": [6, "¹"]}',
        f'result:{{"dims": [6, "{"0" * 39}1"]}}',
    ],
    "24 bytes for f32[3, 1], which takes 12": ['result:{"dims": [3, 1]}'],
    "24 bytes for f32[3, 3], which takes 36": ['result:{"dims": [3, 3]}'],
    "24 bytes for f32[-3, -2], which takes 0": ['result:{"dims": [-3, -2]}'],
    "24 bytes for f32[0, 6], which takes 0": ['result:{"dims": [0, 6]}'],
    "'result' is 5, where an object was due": ['beside:{"result": 5}'],
    "'result' is [24], where an object was due": ['beside:{"result": [24]}'],
    "it said result, error": ['beside:{"error": {"message": "both"}}'],
    "it said result, unsupported": ['beside:{"unsupported": {"feature": "both"}}'],
    "where a list of objects was due": [
        'beside:{"wrote": {"tensor": 0}}', 'beside:{"wrote": [0]}', 'beside:{"wrote": null}',
        'beside:{"changed": [[]]}', 'beside:{"overwrote": "src"}',
    ],
    "'wrote' names the tensor None, and there are 1": ['beside:{"wrote": [{"bytes": 4}]}'],
    "'wrote' names the tensor '0', and there are 1": ['beside:{"wrote": [{"tensor": "0", "bytes": 4}]}'],
    "'wrote' names the tensor -1, and there are 1": ['beside:{"wrote": [{"tensor": -1, "bytes": 4}]}'],
    "'wrote' names the tensor 1, and there are 1": ['beside:{"wrote": [{"tensor": 1, "bytes": 4}]}'],
    "it changed 4 bytes of a memory that has": ['beside:{"wrote": [{"tensor": 0, "bytes": 4}]}'],
    "it changed None bytes of a memory that has": ['beside:{"wrote": [{"tensor": 0}]}'],
    "'changed' names the call None, which is none of this program": ['beside:{"changed": [{"bytes": 24}]}'],
    "'changed' names the call 0, which is none of this program": ['beside:{"changed": [{"call": 0, "bytes": 24}]}'],
    "'overwrote' names the call -1, which is none of this program": [
        'beside:{"overwrote": [{"call": -1, "bytes": 24}]}',
    ],
}  # fmt: skip
"""The words of an error, and the replies that are one for that reason."""
FAULTS = IN_A_CALL | {fault: ("error", words) for words, faults in CONTRADICTIONS.items() for fault in faults}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_in_a_call_is_named_and_the_next_call_is_answered(fault: str) -> None:
    backend = remote(fault, "run", "second")
    first_group = group_of(backend)
    assert outcome(backend).kind == "tensor"
    assert_outcome(outcome(backend), *FAULTS[fault])
    assert outcome(backend).kind == "tensor"
    groups = {first_group, group_of(backend)}
    backend.close()
    assert not [group for group in groups if running(group=group)]


@pytest.mark.parametrize("size", [1 << 62, 1 << 70])
def test_without_a_limit_of_memory_an_enormous_answer_is_an_error_and_the_next_call_is_answered(size: int) -> None:
    backend = remote(f'result:{{"bytes": {size}}}', "run", "second", limits=LIMITS._replace(memory=0))
    answers = [outcome(backend) for _ in range(3)]
    assert [answer.kind for answer in answers] == ["tensor", "error", "tensor"]
    assert f"{size} bytes for f32[3, 2], which takes 24" in (answers[1].message or "")
    assert backend.generation == 2


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="only there memory is shared")
@pytest.mark.parametrize(("after", "more"), [(0, 0), (0, 1), (1, 0), (-4096, 0), (4096, 0), (1 << 30, 0), (None, 0)])
def test_an_answer_in_shared_memory_lies_in_the_room_that_was_offered_or_is_none(after: int | None, more: int) -> None:
    src = (SHARED_FROM,)
    room = -(-len(task(src).src.tensor.memory) // 4096) * 4096
    count = 4 * SHARED_FROM if not more else room + 4
    said = {"at": 0 if after is None else room + after, "bytes": count, "dims": [count // 4]}
    backend = remote(f"shares:{json.dumps(said)}")
    answer = outcome(backend, src=src, shape=src)
    if (after, more) == (0, 0):
        assert (answer.kind, answer.dims, bytes(answer.data or b"")) == ("tensor", src, bytes(count))
    else:
        assert answer.kind == "error"
        assert f"the result lies at {said['at']} in shared memory, where it was given no room" in (answer.message or "")


@pytest.mark.parametrize(("said", "shares"), [("true", True), ("false", False), ("1", False), ('"true"', False)])
def test_lengths_may_be_text_and_what_shares_memory_says_true(said: str, shares: bool) -> None:
    backend = remote(f'result:{{"dims": ["3", 2], "shares": {said}}}')
    answer = outcome(backend)
    assert (answer.kind, answer.dims, answer.shares) == ("tensor", (3, 2), shares)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows whose child a process was")
@pytest.mark.parametrize("end", ["close", "restart"])
def test_a_child_in_a_session_of_its_own_is_ended_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    monkeypatch.chdir(tmp_path)
    backend = remote("child-leaves")
    assert outcome(backend).kind == "tensor"
    child = int((tmp_path / "left").read_text())
    assert running(group=child)  # the first of its group
    getattr(backend, end)()
    wait(lambda: not running(group=child), 5)


def test_two_lines_at_once_are_named() -> None:
    assert "a reply to request" in (outcome(remote("two-lines-at-once", "compile")).message or "")


def test_a_reply_given_twice_is_named_at_the_next_request_at_the_latest() -> None:
    backend = remote("duplicate", "compile")
    said = [outcome(backend), outcome(backend)]
    assert any(answer.kind == "error" and "given twice, or late" in (answer.message or "") for answer in said), said


@pytest.mark.parametrize("fault", ["slow", "byte-by-byte", "floods-stderr", "none"])
def test_what_is_only_odd_is_no_fault(fault: str) -> None:
    backend = remote(fault)
    assert outcome(backend).kind == "tensor"
    assert outcome(backend).kind == "tensor"
    assert backend.generation == 1


@pytest.mark.parametrize(("fault", "share"), [("none", True), ("none", False), ("takes-what-was-not-offered", False)])
def test_who_has_no_shared_memory_with_us_gets_large_tensors_through_the_pipe(fault: str, share: bool) -> None:
    backend, volume = remote(fault, share=share), 3 * SHARED_FROM
    for shape in ((3, SHARED_FROM), (SHARED_FROM, 3)):
        answer = outcome(backend, src=(volume,), shape=shape)
        assert (answer.kind, answer.dims, answer.faults) == ("tensor", shape, ())
        assert answer.data == task((volume,)).src.elements


def test_who_does_not_say_that_it_closes_many_at_once_is_asked_for_one_at_a_time() -> None:
    backend = remote("none")
    assert {outcome(backend).kind for _ in range(40)} == {"tensor"}
    assert (backend.generation, len(backend.session().closing) < 20) == (1, True)


def test_a_wrong_byte_order_is_seen_as_wrong_bytes() -> None:
    backend = remote("wrong-byte-order")
    answer = outcome(backend)
    assert answer.kind == "tensor"
    assert answer.data is not None
    assert bytes(answer.data) == b"".join(bytes(task().src.elements)[at : at + 4][::-1] for at in range(0, 24, 4))


def test_a_changed_input_is_seen_and_wrong_dims_are_handed_on() -> None:
    assert outcome(remote("changed-input")).faults == ("src changed",)
    assert outcome(remote("wrong-dims")).dims == (2, 3)


@pytest.mark.parametrize("phase", ["hello", "describe", "compile", "run", "close"])
@pytest.mark.parametrize("fault", ["dies", "segfault", "silent"])
def test_an_end_in_each_phase_names_the_phase(fault: str, phase: str) -> None:
    limits = LIMITS._replace(start_seconds=0.8)
    if phase in ("hello", "describe"):
        words = rf"no answer within 0\.8 s to {phase}" if fault == "silent" else f"{phase}: the process"
        with pytest.raises(CannotStart, match=words):
            remote(fault, phase, limits=limits)
        return
    backend = remote(fault, phase, limits=limits)
    answer = [outcome(backend) for _ in range(18 if phase == "close" else 1)]  # programs are closed several at a time
    bad = next(one for one in answer if one.kind != "tensor")
    assert bad.kind == ("timeout" if fault == "silent" else "crash")
    assert phase in (bad.message or "")


def test_a_fault_at_the_start_is_named() -> None:
    with pytest.raises(CannotStart, match="it speaks 'reshape-conformance/99'"):
        remote("wrong-version")
    with pytest.raises(CannotStart, match=r"before hello was asked|a reply to request 0, which is over"):
        remote("speaks-first")


def test_an_operation_that_the_suite_does_not_have_is_named() -> None:
    with pytest.raises(CannotStart, match="claims an operation 'Reshpae'"):
        resolve_claims(remote("claims-nonsense"), load_spec().operations)


SAID = {
    "says-error": ("error", "not today"),
    "says-memory": ("crash", "asked for more memory than it may have: not today"),
    "says-rejected": ("rejected", "not today"),
    "says-unsupported": ("unsupported", "not today"),
}


@pytest.mark.parametrize("phase", ["hello", "describe"])
@pytest.mark.parametrize("fault", SAID)
def test_who_answers_with_anything_else_than_a_result_cannot_start(fault: str, phase: str) -> None:
    with pytest.raises(CannotStart, match="not today"):
        remote(fault, phase)


@pytest.mark.parametrize("phase", ["run", "compile+run"])
@pytest.mark.parametrize("fault", SAID)
def test_what_is_said_instead_of_a_result_is_the_outcome_and_the_process_goes_on(fault: str, phase: str) -> None:
    backend = remote(fault, phase)
    for _ in range(3):
        answer = outcome(backend)
        assert (answer.kind, answer.message) == SAID[fault]
    assert backend.generation == 1


@pytest.mark.parametrize("fault", SAID)
def test_a_result_of_a_program_that_was_not_compiled_is_none(fault: str) -> None:
    backend = remote(fault, "compile")
    assert_outcome(outcome(backend), "error", "whose compilation did not succeed")


def test_a_reply_before_its_request_is_never_taken_for_one() -> None:
    words = []
    with contextlib.suppress(CannotStart):
        backend = remote("unasked")
        words.append(outcome(backend))
        backend.close()
    assert all(answer.kind == "error" for answer in words), words


@pytest.mark.parametrize("fault", ["silent", "dies", "segfault"])
def test_what_hangs_or_dies_at_stop_is_ended_and_told(fault: str) -> None:
    backend = remote(fault, "stop")
    group = group_of(backend)
    began = time.monotonic()
    backend.close()
    assert backend.bad_end is not None
    assert "stop: " in backend.bad_end
    assert time.monotonic() - began < 5
    assert not running(group=group)


def test_a_program_that_describes_itself_differently_is_an_error_and_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    backend = remote("another-name")
    backend.restart()
    said = [outcome(backend) for _ in range(4)]
    assert all(answer.kind == "error" for answer in said)
    assert "describes itself differently" in (said[0].message or "")
    assert "given up after 3 starts" in (said[3].message or "")


def test_a_program_that_cannot_be_started_again_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    backend = remote("dies-after-first-start")
    assert outcome(backend).kind == "tensor"
    backend.restart()
    said = [outcome(backend) for _ in range(4)]
    assert backend.given_up is not None
    assert "no licence left" in backend.given_up
    assert said[3].message == remove_places(f"CannotStart: {backend.given_up}")
    assert backend.generation == 4  # the first, and three that failed


def test_a_program_that_is_not_there_or_not_executable_cannot_start(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="no such program"):
        Remote([str(tmp_path / "nothing")])
    plain = tmp_path / "plain"
    plain.write_text("no program")
    with pytest.raises(CannotStart, match="is it executable"):
        Remote([str(plain)])


def test_nothing_stays_open(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0
    for _ in range(3):
        outcome(remote("segfault"))
        OPEN.pop().close()
    gc.collect()
    after = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0
    assert after <= before


# ── what a process may take of ours ──
def taken(backend: Remote) -> tuple[Outcome, float, int]:
    """What the second call comes to, its seconds, and the bytes of memory it took of this process at most."""
    assert outcome(backend).kind == "tensor"
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before, began = _memory("VmRSS"), time.monotonic()
    answer = outcome(backend)
    return answer, time.monotonic() - began, _memory("VmHWM") - before


def _memory(which: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(which))


only_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak of memory")
GREEDY = {
    "announces 2 GiB for 24 bytes": ('result:{"bytes": 2147483648}', "2147483648 bytes for f32[3, 2], which takes 24"),
    "announces 2 GiB and dims for it": (
        'result:{"bytes": 2147483648, "dims": [536870912]}', "2147483648 bytes, where at most 67108864 are read"
    ),
    "sends 2 MiB for dims of 24 bytes": ("sends-much-for-little", "2097152 bytes for f32[3, 2], which takes 24"),
    "sends 128 MiB as announced": ("sends-as-much-as-it-likes", "134217728 bytes, where at most 67108864 are read"),
    "changes src a thousand times": ("changes-src-often", "'wrote' names the same tensor twice"),
}  # fmt: skip


@only_linux
@pytest.mark.parametrize("deed", GREEDY)
def test_a_payload_larger_than_any_answer_is_an_error_and_takes_no_memory(deed: str) -> None:
    fault, words = GREEDY[deed]
    backend = remote(fault, "run", "second")
    answer, seconds, peak = taken(backend)
    assert_outcome(answer, "error", words)
    assert (seconds < 1.5, peak < 32 << 20) == (True, True), (seconds, peak)
    assert outcome(backend).kind == "tensor"


@only_linux
def test_memory_is_taken_for_bytes_that_came_and_not_for_those_announced() -> None:
    backend = remote('result:{"bytes": 67108864, "dims": [16777216]}', "run", "second")
    answer, seconds, peak = taken(backend)
    assert_outcome(answer, "timeout", "24 of the 67108864 bytes of its payload came")
    assert (seconds < 3, peak < 32 << 20) == (True, True), (seconds, peak)


def test_a_wrong_answer_of_some_mebibytes_is_still_read_and_judged() -> None:
    backend = remote("answers-with-more")
    answer = outcome(backend)
    assert (answer.kind, answer.dims, len(answer.data or b"")) == ("tensor", (4 << 20,), 16 << 20)


@only_linux
def test_a_flood_while_a_call_is_sent_is_an_error_and_takes_no_memory() -> None:
    backend = remote("floods", "run", "second", share=False)
    assert outcome(backend).kind == "tensor"
    large = task((1 << 24,), (1 << 24,))
    assert len(large.src.tensor.memory) > 1 << 26
    Path("/proc/self/clear_refs").write_text("5")
    before = _memory("VmRSS")
    answer = make_call(backend, large, None)[0]
    assert_outcome(answer, "error", "before it had read the call")
    assert _memory("VmHWM") - before < 32 << 20


@pytest.mark.parametrize(
    ("dims", "words"),
    [
        (f"[{'0,' * 300_000}0]", "300,001 dims, where at most 256 are taken"),
        (f"[{'1,' * 256}6]", "257 dims, where at most 256 are taken"),
        (f"[0, {1 << 100}]", "a length of 101 bits, where at most 64 are taken"),
        (f"[0, {-(1 << 100)}]", "a length of 101 bits, where at most 64 are taken"),
        (f"[{'6,' * 256}6]", "257 dims, where at most 256 are taken"),
    ],
)
def test_dims_past_any_library_are_an_error_that_is_told_in_short(tmp_path: Path, dims: str, words: str) -> None:
    (tmp_path / "dims").write_text(dims)
    backend = remote(f"dims-of:{tmp_path / 'dims'}", "run", "second")
    assert outcome(backend).kind == "tensor"
    answer = outcome(backend)
    assert_outcome(answer, "error", words)
    assert len(answer.message or "") < 300
    assert outcome(backend).kind == "tensor"


LONG = {
    "name": ("name", "x" * 201, "the name has 201 characters"),
    "version": ("version", "x" * 500_000, "the version has 500,000 characters"),
    "a detail": ("detail", {"isa": "x" * 2001}, "the detail 'isa' has 2,001 characters"),
    "the name of a detail": ("detail", {"x" * 201: "y"}, "give a name of at most 200"),
    "details": ("detail", {f"d{n}": "x" for n in range(101)}, "the detail has 101 entries; give at most 100"),
    "claims": ("leaves_out", ["chain"] * 201, "'leaves_out' has 201 names; give at most 200"),
    "a claim": ("leaves_out", [f"rank:{'1' * 300_000}"], "where the name of an operation or a facet was due"),
}


@pytest.mark.parametrize("which", LONG)
def test_a_description_too_long_to_be_recorded_is_refused_at_the_start(tmp_path: Path, cli: Cli, which: str) -> None:
    key, value, words = LONG[which]
    (tmp_path / "more").write_text(json.dumps({key: value}))
    backend = f"cmd:{sys.executable} -S {PROGRAM} describes:{tmp_path / 'more'}"
    said = cli("run", backend, "--out", tmp_path / "out").expect(3).err
    assert (words in said, said.count("\n"), len(said) < 1000) == (True, 1, True), said[:1500]


def test_why_a_program_cannot_start_is_cut_where_it_is_long() -> None:
    with pytest.raises(CannotStart) as cannot:
        remote("says-much", "describe")
    assert len(str(cannot.value)) < 2500
