"""Pages that nobody may read, beside src and shape in the worker: to read past a tensor ends the process."""

import sys
from pathlib import Path

import pytest

from conformance.model import Crashed, Declared, Graph, Layout, Node, Operand
from conformance.plan.memory import TensorSpec, lay_out, lay_out_shape

from .calls import call, call_with_buffer, reshape
from .remote_backends import Fresh, Obedient, write_odd

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such pages")
READS = {
    # (where it reads, elements of src): whether this ends the process
    ("Past", 4): True, ("Past", 8): True, ("Past", 3): False,
    ("Before", 3): True, ("Before", 7): True, ("Before", 4): False,
}  # fmt: skip


@pytest.mark.parametrize(("where", "count"), READS)
def test_an_element_outside_src_is_read(fresh: Fresh, where: str, count: int) -> None:
    remote = fresh(f"conformance.adapters.planted.process:Reads{where}Src")
    if READS[where, count]:
        with pytest.raises(Crashed, match="the process died of SIG"):
            call(remote, (count,))
    else:
        assert call(remote, (count,)).dims == (count,)


@pytest.mark.parametrize(("rank", "entry"), [(2, 2), (3, -1)])
def test_an_entry_outside_shape_is_read(tmp_path: Path, fresh: Fresh, rank: int, entry: int) -> None:
    address = "ctypes.addressof(ctypes.c_char.from_buffer(shapes[0].memory)) + shapes[0].offset"
    remote = fresh(write_odd(tmp_path, f"import ctypes; ctypes.string_at({address} + 8 * {entry}, 8)"))
    node = Node("DynamicReshape-1", Operand("s64", (rank,), None), Operand("bool", (), (False,)))
    program = remote.compile(Graph(Declared("f32", (5,)), (node,)))
    shape = lay_out_shape("s64", (rank,), (5,) + (1,) * (rank - 1))
    with pytest.raises(Crashed, match="the process died of SIG"):
        program.run(lay_out(TensorSpec("f32", (5,))).tensor, (shape.tensor,), False)


@pytest.mark.parametrize("count", [3, 4])
@pytest.mark.parametrize("act", ["src.memory[src.offset] ^= 1", "src.memory[-1 if src.offset == 0 else 0] ^= 1"])
def test_changes_of_memory_at_a_page(obedient: Obedient, count: int, act: str) -> None:
    remote = obedient(act)
    _, buffer = call_with_buffer(remote, (count,), (count, 1))
    changed = [at for at, (now, was) in enumerate(zip(buffer.tensor.memory, buffer.before, strict=True)) if now != was]
    guard = 0 if count == 4 else len(buffer.before) - 1
    assert changed == [buffer.tensor.offset if "offset]" in act else guard]


@pytest.mark.parametrize("layout", ["dense", "offset", "offset-8"])
def test_alignment_at_a_page_is_as_elsewhere(obedient: Obedient, layout: Layout) -> None:
    remote = obedient("go = lambda *_: src.array() * 0 + src.array().ctypes.data % 16")
    for count in range(1, 9):
        tensor = lay_out(TensorSpec("f32", (count,), layout, "00000000")).tensor
        answer = remote.compile(reshape((count,), (count,))).run(tensor, (), False)
        assert answer.array()[0] == tensor.offset % 16


@pytest.mark.parametrize(("type_", "later"), [("s64", 0), ("s64", 1), ("s32", 1), ("s32", 3)])
def test_a_shape_that_begins_later_does_so_in_the_worker(obedient: Obedient, type_: str, later: int) -> None:
    remote = obedient("go = lambda *_: src.array() * 0 + shapes[0].array().ctypes.data % 16")
    src = lay_out(TensorSpec("f32", (1,), "dense", "00000000")).tensor
    for rank in range(1, 6):
        node = Node("DynamicReshape-1", Operand(type_, (rank,), None), Operand("bool", (), (False,)))
        program = remote.compile(Graph(Declared("f32", (1,)), (node,)))
        shape = lay_out_shape(type_, (rank,), (1,) * rank, 1, later).tensor
        places = [program.run(src, (shape,), False).array()[0] for _ in range(2)]  # the first is beside a page
        assert places == [shape.offset % 16] * 2
