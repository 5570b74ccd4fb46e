"""Faults of a program at the other end: the suite survives each of them and names it."""

import contextlib
import gc
import json
import os
import signal
import time
from pathlib import Path

import pytest

from conformance.adapter import CannotStart
from conformance.isolate.protocol.remote import RemoteAdapter
from conformance.isolate.protocol.session import SHARED_FROM

from ..builders import some_slow
from ..processes import running
from .faulty_program import (
    CONTRADICTIONS,
    FAULTS,
    IN_A_CALL,
    LIMITS,
    OPEN,
    assert_outcome,
    hurry,
    outcome,
    remote,
    task,
)

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def group_of(backend: RemoteAdapter) -> int:
    return backend.session().process._child.pid


FIRST = [faults[0] for faults in CONTRADICTIONS.values()]


@pytest.mark.parametrize("fault", some_slow(FAULTS, {*IN_A_CALL, *FIRST}))
def test_a_fault_in_a_call_spares_the_next(fault: str) -> None:
    backend = remote(fault, "run", "second")
    first_group = group_of(backend)
    assert outcome(backend).kind == "tensor"
    if FAULTS[fault][0] == "timeout" or fault == "closes-stdout":
        hurry(backend)
    assert_outcome(outcome(backend), *FAULTS[fault])
    assert outcome(backend).kind == "tensor"
    groups = {first_group, group_of(backend)}
    backend.close()
    assert not [group for group in groups if running(group=group)]


@pytest.mark.parametrize("size", [1 << 62, 1 << 70])
def test_an_enormous_answer_without_a_memory_limit(size: int) -> None:
    backend = remote(f'result:{{"bytes": {size}}}', "run", "second", limits=LIMITS._replace(memory=0))
    answers = [outcome(backend) for _ in range(3)]
    assert [answer.kind for answer in answers] == ["tensor", "error", "tensor"]
    assert f"{size} bytes for f32[3, 2], which takes 24" in (answers[1].message or "")
    assert backend.starts == 2


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="only there memory is shared")
@pytest.mark.parametrize(("after", "more"), [(0, 0), (0, 1), (1, 0), (-4096, 0), (4096, 0), (1 << 30, 0), (None, 0)])
def test_the_place_of_an_answer_in_shared_memory(after: int | None, more: int) -> None:
    """It must be within the room that was offered."""
    src = (SHARED_FROM,)
    room = -(-len(task(src).src.tensor.memory) // 4096) * 4096
    count = 4 * SHARED_FROM if not more else room + 4
    said = {"at": 0 if after is None else room + after, "bytes": count, "dims": [count // 4]}
    backend = remote(f"shares:{json.dumps(said)}")
    answer = outcome(backend, src=src, shape=src)
    if (after, more) == (0, 0):
        assert (answer.kind, answer.dims, (answer.data or b"")[:]) == ("tensor", src, bytes(count))
    else:
        assert answer.kind == "error"
        assert f"the result lies at {said['at']} in shared memory, where it was given no room" in (answer.message or "")


@pytest.mark.parametrize(("said", "shares"), [("true", True), ("false", False), ("1", False), ('"true"', False)])
def test_lengths_as_text_and_the_flag_shares(said: str, shares: bool) -> None:
    answer = outcome(remote(f'result:{{"dims": ["3", 2], "shares": {said}}}'))
    assert (answer.kind, answer.dims, answer.shares_src) == ("tensor", (3, 2), shares)


def test_an_interrupt_while_a_call_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = remote("silent")
    process, write = backend.session().process, os.write

    def write_and_interrupt(descriptor: int, data: bytes) -> int:
        write(descriptor, data)
        raise KeyboardInterrupt

    monkeypatch.setattr("conformance.isolate.protocol.piped_process.os.write", write_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        outcome(backend)
    monkeypatch.undo()
    assert not running(process.pid)


def test_an_exception_of_a_signal_while_a_reply_is_due() -> None:
    """It may be that of a limit on the time of a test. The next call would take the reply for its own."""
    backend = remote("silent")
    process = backend.session().process

    def end(number: int, frame: object) -> None:
        raise EOFError("of the caller")

    before = signal.signal(signal.SIGALRM, end)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        assert outcome(backend).message == "EOFError: of the caller"
    finally:
        signal.signal(signal.SIGALRM, before)
    assert not running(process.pid)


def test_a_reply_that_comes_twice() -> None:
    backend = remote("duplicate", "compile")
    said = [outcome(backend), outcome(backend)]
    assert any(answer.kind == "error" and "reply to each request" in (answer.message or "") for answer in said), said


@pytest.mark.parametrize("fault", ["slow", "byte-by-byte", "floods-stderr", "none"])
def test_odd_behaviour_without_a_fault(fault: str) -> None:
    backend = remote(fault)
    assert [outcome(backend).kind, outcome(backend).kind] == ["tensor", "tensor"]
    assert backend.starts == 1


@pytest.mark.parametrize(
    ("fault", "is_offered"), [("none", True), ("none", False), ("takes-what-was-not-offered", False)]
)
def test_large_tensors_without_shared_memory(monkeypatch: pytest.MonkeyPatch, fault: str, is_offered: bool) -> None:
    if not is_offered:
        monkeypatch.delattr("os.memfd_create", raising=False)
    backend, volume = remote(fault), 3 * SHARED_FROM
    for shape in ((3, SHARED_FROM), (SHARED_FROM, 3)):
        answer = outcome(backend, src=(volume,), shape=shape)
        assert (answer.kind, answer.dims, answer.side_effects) == ("tensor", shape, ())
        assert answer.data == task((volume,)).src.elements


def test_programs_that_close_one_at_a_time() -> None:
    """A program must say that it closes many at once, or it is asked to close one at a time."""
    backend = remote("none")
    assert {outcome(backend).kind for _ in range(40)} == {"tensor"}
    assert (backend.starts, len(backend.session().closing) < 20) == (1, True)


def test_a_changed_input_and_wrong_dims() -> None:
    assert outcome(remote("changed-input")).side_effects == ("src changed",)
    assert outcome(remote("wrong-dims")).dims == (2, 3)


@pytest.mark.parametrize("phase", ["hello", "describe", "compile", "run", "close"])
@pytest.mark.parametrize("fault", ["dies", "segfault", "silent"])
def test_an_end_in_each_phase_names_the_phase(fault: str, phase: str) -> None:
    if phase in ("hello", "describe"):
        words = (
            rf"within 0\.8 s to {phase}; it waits, or does not flush" if fault == "silent" else f"{phase}: the process"
        )
        with pytest.raises(CannotStart, match=words):
            remote(fault, phase, limits=LIMITS._replace(start_seconds=0.8) if fault == "silent" else LIMITS)
        return
    backend = remote(fault, phase)
    if phase == "close":  # programs are closed several at a time
        assert {outcome(backend).kind for _ in range(15)} == {"tensor"}
    if fault == "silent":
        hurry(backend)
    bad = next(answer for _ in range(3) if (answer := outcome(backend)).kind != "tensor")
    assert bad.kind == ("timeout" if fault == "silent" else "crash")
    assert phase in (bad.message or "")


def test_the_first_call_has_the_time_of_a_start() -> None:
    backend = remote("silent")
    for allowed in ("0.6", "0.2"):
        process = backend.session().process
        process.limits = process.limits._replace(seconds=0.2, start_seconds=0.6)
        assert_outcome(outcome(backend), "timeout", f"no answer within {allowed} s to run")


def test_a_call_has_the_time_of_a_start_until_one_is_answered() -> None:
    """A rejected call may have loaded nothing of what the first answer takes."""
    backend = remote("slow")
    process = backend.session().process
    process.limits = process.limits._replace(seconds=0.1)
    kinds = [outcome(backend, shape=shape).kind for shape in ((5,), (3, 2), (3, 2))]
    assert kinds == ["rejected", "tensor", "timeout"]


def test_a_fault_at_the_start() -> None:
    with pytest.raises(CannotStart, match="it speaks 'reshape-conformance/99'"):
        remote("wrong-version")
    with pytest.raises(CannotStart, match=r"before the request hello|a reply with the id 0"):
        remote("speaks-first")


SAID = {
    "says-error": ("error", "not today"),
    "says-memory": ("crash", "asked for more memory, or a larger file, than it may have: not today"),
    "says-rejected": ("rejected", "not today"),
    "says-unsupported": ("unsupported", "not today"),
}


@pytest.mark.parametrize("phase", ["hello", "describe"])
@pytest.mark.parametrize("fault", SAID)
def test_a_start_without_a_result(fault: str, phase: str) -> None:
    with pytest.raises(CannotStart, match="not today"):
        remote(fault, phase)


@pytest.mark.parametrize("phase", ["run", "compile+run"])
@pytest.mark.parametrize("fault", SAID)
def test_the_outcome_of_a_call_without_a_result(fault: str, phase: str) -> None:
    backend = remote(fault, phase)
    for _ in range(3):
        answer = outcome(backend)
        assert (answer.kind, answer.message) == SAID[fault]
    assert backend.starts == 1


@pytest.mark.parametrize("fault", [*SAID, "two-lines-at-once"])
def test_a_fault_in_the_reply_to_compile(fault: str) -> None:
    words = "although the program was not compiled" if fault in SAID else "reply to each request"
    assert_outcome(outcome(remote(fault, "compile")), "error", words)


def test_a_reply_before_its_request() -> None:
    words = []
    with contextlib.suppress(CannotStart):
        backend = remote("unasked")
        words.append(outcome(backend))
        backend.close()
    assert all(answer.kind == "error" for answer in words), words


@pytest.mark.parametrize("fault", ["silent", "dies", "segfault", "cannot-start"])
def test_a_hang_or_death_at_stop(fault: str) -> None:
    backend = remote(fault, "stop")
    group = group_of(backend)
    if fault == "silent":
        hurry(backend)
    began = time.monotonic()
    backend.close()
    assert "stop: " in (backend.ends[0].problem or "")
    assert time.monotonic() - began < LIMITS.stop_seconds
    assert not running(group=group)


def test_a_program_that_changes_its_description(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    backend = remote("another-name")
    backend.restart()
    said = [outcome(backend) for _ in range(4)]
    assert all(answer.kind == "error" for answer in said)
    assert "describes itself differently" in (said[0].message or "")
    assert "given up after 3 starts" in (said[3].message or "")


def test_a_program_that_is_absent_or_cannot_be_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CannotStart, match="no such program"):
        RemoteAdapter([str(tmp_path / "nothing")])
    plain = tmp_path / "plain"
    plain.write_text("no program")
    with pytest.raises(CannotStart, match="is it executable"):
        RemoteAdapter([str(plain)])
    plain.chmod(0o755)
    with pytest.raises(CannotStart, match="name its interpreter first"):
        RemoteAdapter([str(plain)])
    plain.write_text("#!/no/such/interpreter\n")
    with pytest.raises(CannotStart, match="plain: cannot be run: the interpreter that it names is missing"):
        RemoteAdapter([str(plain)])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CannotStart, match=r"no such program; write \./plain"):
        RemoteAdapter(["plain"])
    with pytest.raises(CannotStart, match="is a folder; name the program in it"):
        RemoteAdapter([str(tmp_path)])


def test_nothing_stays_open() -> None:
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0
    for _ in range(3):
        outcome(remote("segfault"))
        OPEN.pop().close()
    gc.collect()
    after = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0
    assert after <= before
