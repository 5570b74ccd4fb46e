"""The memory of a call: its elements, strides and guards, and the writes of a call where it may not write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.model import LAYOUTS, Layout, Tensor
from conformance.model.types import WIDTH
from conformance.plan.memory import (
    COPY_LIMIT_BYTES,
    EDGES,
    GUARD_BYTES,
    TensorSpec,
    has_no_memory,
    lay_out,
    lay_out_shape,
    patterns,
    strides_of,
    volume_of,
)
from conformance.plan.rows import Plan, Row
from conformance.run import call
from conformance.run.call import elements_of
from conformance.run.row import run_row, run_rows

from .. import miniatures
from ..builders import CASES, IN_PLACE, plan_of_cases, some_slow

TYPES = ("f32", "f16", "bf16", "s8", "u64", "bool")
DIMS = [(), (1,), (5,), (2, 3), (3, 1, 4), (2, 3, 4), (0,), (2, 0, 3)]


def addresses(tensor: Tensor) -> set[int]:
    """Every byte that an element of the tensor lies on."""
    found = set()
    for indices in np.ndindex(*tensor.dims):
        at = tensor.offset + sum(i * s for i, s in zip(indices, tensor.strides, strict=True))
        found |= set(range(at, at + WIDTH[tensor.type]))
    return found


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dims", DIMS)
def test_every_layout_has_the_same_elements(layout: Layout, dims: tuple[int, ...]) -> None:
    for type_ in TYPES:
        source = TensorSpec(type_, dims, layout, start=3)
        buffer = lay_out(source)
        assert bytes(buffer.elements[:]) == patterns(source).tobytes()
        if volume_of(dims):
            assert buffer.tensor.array().tobytes() == bytes(buffer.elements[:])
        used = addresses(buffer.tensor)
        assert not used or (min(used) >= GUARD_BYTES and max(used) < len(buffer.tensor.memory) - GUARD_BYTES)
        guards = np.delete(np.frombuffer(buffer.before, np.uint8), list(used))
        assert guards.size >= 2 * GUARD_BYTES
        assert (guards == 0xA5).all()
        assert not buffer.touched


@pytest.mark.parametrize(
    ("layout", "strides"),
    [
        ("dense", (48, 16, 4)), ("offset", (48, 16, 4)), ("transposed", (4, 8, 24)), ("reversed", (48, 16, -4)),
        ("broadcast", (0, 16, 4)), ("padded", (84, 28, 4)), ("cropped", (64, 16, 4)), ("channels-last", (48, 4, 12)),
        ("swapped", (16, 32, 4)), ("blocked", (48, 16, 4)), ("stepped", (96, 32, 8)), ("overlapping", (4, 16, 4)),
        ("far", (4 * (12 + 65537), 16, 4)), ("broadcast-middle", (16, 0, 4)), ("broadcast-last", (12, 4, 0)),
        ("reversed-middle", (48, -16, 4)), ("reversed-first", (-48, 16, 4)), ("permuted", (4, 32, 8)),
        ("stepped-7", (336, 112, 28)), ("offset-8", (48, 16, 4)), ("broadcast-two", (0, 4, 0)),
        ("reversed-two", (-48, 16, -4)), ("transposed+reversed", (4, 8, -24)), ("transposed+stepped", (8, 16, 48)),
        ("padded+reversed", (84, 28, -4)), ("broadcast+reversed", (0, 16, -4)), ("channels-last+cropped", (64, 4, 16)),
        ("stepped-3", (144, 48, 12)), ("reversed-all", (-48, -16, -4)), ("broadcast-first-two", (0, 0, 4)),
        ("inner-swapped", (48, 16, 4)), ("padded+cropped", (112, 28, 4)), ("transposed+broadcast", (0, 4, 12)),
        ("permuted+broadcast-last", (4, 8, 0)), ("windows", (8, 16, 4)), ("broadcast-all", (0, 0, 0)),
        ("pairs-swapped", (48, 4, 12)),
    ],
)  # fmt: skip
def test_the_strides_of_a_layout(layout: Layout, strides: tuple[int, ...]) -> None:
    assert strides_of((2, 3, 4), layout, 4) == strides
    assert strides_of((2, 0, 3), "dense", 4) == (12, 12, 4), "of a tensor without elements"


@pytest.mark.parametrize(
    ("dims", "unheard_of"),
    [((), False), ((2, 3), False), ((2**60 - 1,), False), ((2**30, 2**30), True), ((2, 0), True), ((-2, -3), True)],
)
def test_tensors_without_memory(dims: tuple[int, ...], unheard_of: bool) -> None:
    assert has_no_memory(dims) == unheard_of


def test_an_offset_tensor_begins_elsewhere_than_a_dense_one() -> None:
    dense, offset = (lay_out(TensorSpec("f32", (2, 3), layout)).tensor.offset for layout in ("dense", "offset"))
    assert offset - dense == 12


@pytest.mark.parametrize("layout", ["dense", "offset"])
def test_large_memory_has_the_layout_of_any_other(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    source = TensorSpec("f16", (3, 5), layout)
    small_one = lay_out(source)
    monkeypatch.setattr("conformance.plan.memory.COPY_LIMIT_BYTES", 8)
    large_one = lay_out(source)
    assert large_one.before == small_one.before
    assert large_one.tensor.offset == small_one.tensor.offset
    assert bytes(large_one.elements[:]) == bytes(small_one.elements[:])
    assert large_one.tensor.array().tobytes() == bytes(large_one.elements[:])
    large_one.tensor.memory[large_one.tensor.offset] ^= 1
    assert large_one.elements[:] == small_one.elements, "what is due does not lie where a call may write"
    assert large_one.touched


@pytest.mark.parametrize("layout", LAYOUTS)
def test_edges_go_round_the_short_list_of_a_type(layout: Layout) -> None:
    assert set(EDGES) == set(WIDTH)
    for type_, words in EDGES.items():
        found = patterns(TensorSpec(type_, (3, 5, 6, 5), layout, "edges", start=4))
        start = 4 % len(words)
        assert found[0] == words[start]
        line = patterns(TensorSpec(type_, (len(words) + 1,), bits="edges", start=4))
        assert line.tolist() == [*words[start:], *words[:start], words[start]]
        assert set(found.tolist()) == (set(words) if layout != "broadcast-all" else {words[start]})


def test_written_bits_and_all_bits() -> None:
    assert patterns(TensorSpec("f32", (2, 2), bits="1 7fc00001")).tolist() == [1, 0x7FC00001, 1, 0x7FC00001]
    assert lay_out(TensorSpec("f16", (256, 256), bits="all")).elements == np.arange(65536, dtype="<u2").tobytes()


@pytest.mark.parametrize("limit", [COPY_LIMIT_BYTES, 8])
@pytest.mark.parametrize("layout", some_slow(LAYOUTS, {*LAYOUTS} - {"far"}))
def test_a_change_of_any_byte_is_seen(layout: Layout, limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("conformance.plan.memory.COPY_LIMIT_BYTES", limit)
    buffer = lay_out(TensorSpec("f16", (2, 3), layout))
    assert (buffer.copy is None) == (limit == 8 and layout == "dense")
    for at in range(0, len(buffer.before), 1 if len(buffer.before) < 10_000 else 7):
        buffer.tensor.memory[at] ^= 0x10
        assert buffer.touched
        buffer.restore()
        assert bytes(buffer.tensor.memory) == buffer.before


@pytest.mark.parametrize("type_", ["s32", "s64", "f32", "bool"])
@pytest.mark.parametrize(("dims", "values"), [((), (1,)), ((3,), (1, 0, 1)), ((1, 2), (1, 0)), ((0,), ())])
def test_a_shape_operand_lies_between_guards(type_: str, dims: tuple[int, ...], values: tuple[int, ...]) -> None:
    buffer = lay_out_shape(type_, dims, values)
    assert buffer.tensor.array().ravel().tolist() == list(values)
    assert set(buffer.before[:GUARD_BYTES]) == set(buffer.before[-GUARD_BYTES:]) == {0xA5}
    buffer.tensor.memory[-1] = 0
    assert buffer.touched


@pytest.mark.parametrize(("step", "later"), [(-2, 0), (-1, 1), (2, 0), (3, 0), (1, 1), (1, 3)])
@pytest.mark.parametrize("values", [(4, 0, -1), (7,), ()])
def test_a_shape_with_entries_apart_or_in_reverse_or_later(values: tuple[int, ...], step: int, later: int) -> None:
    buffer = lay_out_shape("s32", (len(values),), values, step, later)
    assert buffer.tensor.array().tolist() == list(values)
    assert step < 0 or buffer.tensor.offset == GUARD_BYTES + 4 * later
    assert buffer.tensor.strides == (4 * step,)
    assert set(buffer.before[:GUARD_BYTES]) == set(buffer.before[-GUARD_BYTES:]) == {0xA5}
    assert len(buffer.before) == 2 * GUARD_BYTES + 4 * (later + bool(values) + abs(step) * max(len(values) - 1, 0))


# ── in a run ──────────────────────────────────────────────────────────────────────────────────────
@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return plan_of_cases(tmp_path_factory.mktemp("few"), CASES, IN_PLACE)


def row(plan: Plan, case: str, operation: str = "StaticReshape") -> Row:
    return next(r for r in plan.rows if (r.case.id, r.operation, r.type) == (case, operation, "f32"))


def judge(row: Row, adapter: Any) -> tuple[set[str], str | None]:
    """Call a row. Return its verdicts and its diagnosis."""
    result = run_row(row, adapter)
    return set(result.verdicts.values()), result.diagnosis


def scribbling(at: int, shape: bool = False) -> miniatures.Scribbles:
    adapter = miniatures.Scribbles()
    adapter.at, adapter.shape = at, shape
    return adapter


def test_elements_differ_between_steps_and_cases(plan: Plan) -> None:
    steps = row(plan, "two-calls").steps
    assert steps[0].src.elements != steps[1].src.elements
    assert row(plan, "stays").steps[0].src.elements != row(plan, "flattens").steps[0].src.elements


@pytest.mark.parametrize("at", [0, GUARD_BYTES - 1, -1, -GUARD_BYTES])
def test_a_write_into_a_guard_fails_even_in_place(plan: Plan, at: int) -> None:
    for case in ("flattens", "over-itself", "empties"):
        if case != "empties" or at in (0, -1):
            assert judge(row(plan, case), scribbling(at)) == ({"fail"}, "wrote outside src")


def test_a_write_into_a_gap_fails(plan: Plan, tmp_path: Path) -> None:
    text = CASES.replace("layout: reversed", "layout: padded")
    gap = row(plan_of_cases(tmp_path, text), "mirrored")
    free = sorted(set(range(GUARD_BYTES, GUARD_BYTES + 60)) - addresses(gap.steps[0].src.tensor))
    assert free
    assert judge(gap, scribbling(free[0])) == ({"fail"}, "wrote outside src")


def test_src_may_change_only_in_place(plan: Plan) -> None:
    """The next call has its memory back."""
    assert judge(row(plan, "flattens"), scribbling(GUARD_BYTES)) == ({"fail"}, "src changed")
    assert run_row(row(plan, "flattens"), scribbling(GUARD_BYTES)).outcome.side_effects == ("src changed",)
    one = row(plan, "over-itself")
    assert judge(one, scribbling(GUARD_BYTES)) == ({"pass"}, None)
    assert not one.steps[0].src.touched
    assert judge(one, miniatures.Bent()) == ({"pass"}, None)


@pytest.mark.parametrize("limit", [COPY_LIMIT_BYTES, 8])
def test_a_wrong_answer_in_the_memory_of_src_stays_wrong(
    plan: Plan, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    """src is restored after the call, and a large answer is not copied."""

    class SpoilsInPlace(miniatures.Bent):
        def bent(self, answer: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
            src.memory[GUARD_BYTES] ^= 1
            return src.array().reshape(answer.shape)

    monkeypatch.setattr(call, "COPY_LIMIT_BYTES", limit)
    assert judge(row(plan, "over-itself"), SpoilsInPlace())[0] == {"fail"}


@pytest.mark.parametrize("at", [0, GUARD_BYTES, -1])
def test_a_write_into_shape_or_its_guards_fails(plan: Plan, at: int) -> None:
    for case in ("flattens", "over-itself"):
        assert judge(row(plan, case, "DynamicReshape-1"), scribbling(at, shape=True)) == ({"fail"}, "shape changed")
    static = judge(row(plan, "flattens"), scribbling(at, shape=True))
    assert static == ({"pass"}, None), "a static shape has no memory"


def test_an_error_does_not_hide_a_write(plan: Plan) -> None:
    class Writes(miniatures.Bent):
        def bent(self, answer: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
            src.memory[GUARD_BYTES] ^= 1
            raise miniatures.RAISED["KeyError"]()

    done = run_row(row(plan, "flattens"), Writes())
    assert done.outcome.kind == "error"
    assert done.diagnosis == "src changed"


def test_a_backend_that_shrinks_memory(plan: Plan) -> None:
    found = list(run_rows(plan.rows, miniatures.Shrinks()))
    legal = [each for each in found if each.outcome.kind == "tensor"]
    assert {each.diagnosis for each in legal} == {"wrote outside src"}
    assert not any(task.src.touched for each in plan.rows for task in each.steps)


SHARING: dict[str, tuple[Callable[[Tensor, Any], Any], bool]] = {
    "a view": (lambda src, a: src.array().reshape(-1), True),
    "the same memory": (lambda src, a: Tensor(src.type, (6,), (4,), src.memory, src.offset), True),
    "a copy": (lambda src, a: src.array().reshape(-1).copy(), False),
    "a view of a copy": (lambda src, a: src.array().copy().reshape(-1), False),
    "foreign memory": (lambda src, a: np.frombuffer(src.array().tobytes(), np.float32), False),
}  # fmt: skip


@pytest.mark.parametrize("how", SHARING)
def test_sharing_memory_with_src_passes(plan: Plan, how: str) -> None:
    answer, shares = SHARING[how]

    class Shares(miniatures.Bent):
        def bent(self, old: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
            return answer(src, old)

    done = run_row(row(plan, "flattens"), Shares())
    assert set(done.verdicts.values()) == {"pass"}
    assert done.outcome.shares_src == shares


def test_an_answer_that_changes_later_fails(plan: Plan) -> None:
    for operation in ("DynamicReshape-1", "Reshape-1"):
        done = run_row(row(plan, "two-calls", operation), miniatures.ReusesItsAnswer())
        assert (set(done.verdicts.values()), done.diagnosis, done.step) == ({"fail"}, "answer changed later", 0)
    assert judge(row(plan, "flattens", "DynamicReshape-1"), miniatures.ReusesItsAnswer()) == ({"pass"}, None)


def test_an_answer_in_place_may_change_later(tmp_path: Path) -> None:
    """src, which is restored for the next call, has the memory of the answer."""

    class Compacts(miniatures.Bent):
        def bent(self, answer: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
            src.memory[GUARD_BYTES : GUARD_BYTES + answer.nbytes] = answer.tobytes()
            return Tensor(src.type, answer.shape, answer.strides, src.memory, GUARD_BYTES)

    steps = '    layout: transposed\n    steps: [{expect: "T[4]"}, {expect: "T[4]"}]\n'
    twice = row(plan_of_cases(tmp_path, IN_PLACE.replace("    expect: T[4]\n", steps)), "over-itself")
    assert judge(twice, Compacts()) == ({"pass"}, None)


def test_an_answer_that_is_gone_later_fails(plan: Plan) -> None:
    class Frees(miniatures.Bent):
        """Answers from memory that it clears at the next call."""

        last = bytearray()

        def bent(self, answer: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
            self.last.clear()
            type(self).last = bytearray(answer.tobytes())
            return Tensor(src.type, answer.shape, answer.strides, self.last, 0)

    assert judge(row(plan, "two-calls", "DynamicReshape-1"), Frees()) == ({"fail"}, "answer changed later")


class WritesLate(miniatures.Bent):
    """Keeps src of the first call, and writes into it at the second."""

    kept: Tensor | None = None

    def bent(self, answer: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
        if self.kept is not None:
            self.kept.memory[self.kept.offset] ^= 1
        self.kept = src
        return answer


def test_a_write_into_src_of_an_earlier_call(plan: Plan) -> None:
    for operation in ("StaticReshape", "DynamicReshape-1"):
        twice = row(plan, "two-calls", operation)
        done = run_row(twice, WritesLate())
        wanted = {"fail"}, "src of an earlier call changed", 1
        assert (set(done.verdicts.values()), done.diagnosis, done.step) == wanted
        assert not any(task.src.touched for task in twice.steps)
        assert judge(twice, miniatures.Bent()) == ({"pass"}, None)


def test_a_write_into_src_of_the_call_before_the_last(tmp_path: Path) -> None:
    class WritesTwoLater(miniatures.Bent):
        def __init__(self) -> None:
            self.sources: list[Tensor] = []

        def bent(self, answer: Any, src: Tensor, shapes: tuple[Tensor, ...]) -> Any:
            self.sources.append(src)
            if len(self.sources) == 3:
                self.sources[0].memory[GUARD_BYTES] ^= 1
            return answer

    text = CASES.replace('[{expect: "T[4, 3]"}, ', '[{expect: "T[4, 3]"}, {expect: "T[4, 3]"}, ')
    done = run_row(row(plan_of_cases(tmp_path, text), "two-calls"), WritesTwoLater())
    assert (done.diagnosis, done.step) == ("src of an earlier call changed", 2)


def test_an_answer_may_have_more_dims_than_numpy_has() -> None:
    long = Tensor("f32", (1,) * 65 + (2,), (8,) * 65 + (4,), bytearray(range(8)), 0)
    assert elements_of(long) == bytes(range(8))


def test_large_memory_is_let_go_of_after_its_row(tmp_path: Path) -> None:
    text = IN_PLACE.replace("in_place: true", "large: true")
    large = row(plan_of_cases(tmp_path / "large", text), "over-itself")
    other = row(plan_of_cases(tmp_path / "few"), "stays")
    for each in (large, other):
        each.free_steps()  # an earlier test with these cases may have lowered them
        assert judge(each, miniatures.Bent()) == ({"pass"}, None)
    assert "src" not in vars(large.steps[0])
    assert "src" in vars(other.steps[0])
