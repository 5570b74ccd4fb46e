"""A program cannot make the suite hold more memory or wait longer than its limits allow."""

import json
import sys
import time
from pathlib import Path

import pytest

from conformance.adapter import CannotStart
from conformance.isolate.protocol.remote import RemoteAdapter
from conformance.model import Outcome
from conformance.run.call import make_call

from ..builders import Cli
from .faulty_program import PROGRAM, assert_outcome, hurry, outcome, remote, task

pytestmark = pytest.mark.usefixtures("nothing_is_left")


def measure_call(backend: RemoteAdapter, will_answer: bool = True) -> tuple[Outcome, float, int]:
    """Make a second call. Return its outcome, its seconds, and the most bytes of memory that it took here."""
    assert outcome(backend).kind == "tensor"
    if not will_answer:
        hurry(backend)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again
    before, began = _memory("VmRSS"), time.monotonic()
    answer = outcome(backend)
    return answer, time.monotonic() - began, _memory("VmHWM") - before


def _memory(which: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith(which))


only_linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the peak of memory")
GREEDY: dict[str, tuple[str, str | Outcome]] = {
    "announces 2 GiB for 24 bytes": ('result:{"bytes": 2147483648}', "2147483648 bytes for f32[3, 2], which takes 24"),
    "sends 2 MiB for dims of 24 bytes": ("sends-much-for-little", "2097152 bytes for f32[3, 2], which takes 24"),
    "has 40,000 keys and one of them twice": ("many-keys", "the key '0' occurs twice"),
    "changes src a thousand times": ("changes-src-often", "'wrote' names the same tensor twice"),
    "announces 2 GiB and sends nothing": (
        'result:{"bytes": 2147483648, "dims": [536870912]}', Outcome("tensor", "f32", (536870912,))),
    "announces 2^62 bytes": ("enormous", Outcome("tensor", "f32", (1 << 60,))),
    "sends 128 MiB": ("sends-as-much-as-it-likes", Outcome("tensor", "f32", (33554432,))),
}  # fmt: skip


@only_linux
@pytest.mark.parametrize("deed", GREEDY)
def test_a_payload_larger_than_any_answer(deed: str) -> None:
    """It is an error, or judged by its dims if it has as many bytes as they say."""
    fault, due = GREEDY[deed]
    backend = remote(fault, "run", "second")
    answer, seconds, peak = measure_call(backend)
    if isinstance(due, str):
        assert_outcome(answer, "error", due)
    else:
        assert answer == due
    assert (seconds < 10, peak < 32 << 20) == (True, True), (seconds, peak)
    assert outcome(backend).kind == "tensor"


@only_linux
def test_bytes_that_never_arrive_take_no_memory() -> None:
    backend = remote('result:{"bytes": 67108864, "dims": [16777216]}', "run", "second")
    answer, seconds, peak = measure_call(backend, will_answer=False)
    assert_outcome(answer, "timeout", "24 of the 67108864 bytes of its payload arrived")
    assert (seconds < 3, peak < 32 << 20) == (True, True), (seconds, peak)


def test_a_wrong_answer_of_some_mebibytes() -> None:
    backend = remote("answers-with-more")
    answer = outcome(backend)
    assert (answer.kind, answer.dims, len(answer.data or b"")) == ("tensor", (4 << 20,), 16 << 20)


@pytest.mark.parametrize("dims", [(-3, -2), (1 << 60, 6)], ids=["below 0", "past 2^60 elements"])
def test_a_wrong_answer_of_dims_that_no_memory_holds(dims: tuple[int, ...]) -> None:
    """It is one of the backend, not an error of the adapter, however many bytes come with it."""
    answer = outcome(remote(f'result:{{"dims": {[*dims]}}}'))
    assert (answer.kind, answer.dims, answer.data) == ("tensor", dims, b"")


@only_linux
def test_a_flood_while_a_call_is_sent() -> None:
    backend = remote("floods", "run", "second")
    assert outcome(backend).kind == "tensor"
    large = task((1 << 24,), (1 << 24,))
    assert len(large.src.tensor.memory) > 1 << 26
    Path("/proc/self/clear_refs").write_text("5")
    before = _memory("VmRSS")
    answer = make_call(backend, large, None)[0]
    assert_outcome(answer, "error", "before it read the call")
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
    ids=["300,001 zeros", "257 lengths", "101 bits", "101 bits below 0", "257 sixes"],
)
def test_dims_past_any_library(tmp_path: Path, dims: str, words: str) -> None:
    (tmp_path / "dims").write_text(dims)
    backend = remote(f"dims-of:{tmp_path / 'dims'}", "run", "second")
    assert outcome(backend).kind == "tensor"
    answer = outcome(backend)
    assert_outcome(answer, "error", words)
    assert len(answer.message or "") < 300
    assert outcome(backend).kind == "tensor"


TOO_LONG = {
    "name": ("name", "x" * 201, "the name has 201 characters"),
    "version": ("version", "x" * 500_000, "the version has 500,000 characters"),
    "a detail": ("detail", {"isa": "x" * 2001}, "the detail 'isa' has 2,001 characters"),
    "the name of a detail": ("detail", {"x" * 201: "y"}, "give a name of at most 200"),
    "details": ("detail", {f"d{n}": "x" for n in range(101)}, "the detail has 101 entries; give at most 100"),
    "claims": ("not_claimed", ["chain"] * 201, "'not_claimed' has 201 names; give at most 200"),
    "a claim": ("not_claimed", [f"rank:{'1' * 300_000}"], "where the name of an operation or a facet was due"),
}


@pytest.mark.parametrize("which", TOO_LONG)
def test_a_description_too_long_to_record(tmp_path: Path, cli: Cli, which: str) -> None:
    key, value, words = TOO_LONG[which]
    (tmp_path / "more").write_text(json.dumps({key: value}))
    backend = f"cmd:{sys.executable} -S {PROGRAM} describes:{tmp_path / 'more'}"
    said = cli("run", backend, "--out", tmp_path / "out").expect(3).err
    assert (words in said, said.count("\n"), len(said) < 1000) == (True, 1, True), said[:1500]


def test_a_long_reason_why_a_program_cannot_start() -> None:
    with pytest.raises(CannotStart) as cannot:
        remote("says-much", "describe")
    assert len(str(cannot.value)) < 2500
