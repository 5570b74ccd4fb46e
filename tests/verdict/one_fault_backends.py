"""Faults that no planted backend has alone, and freedoms of the documents; each backend is named by what it does."""

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from adapters.planted.base import Answer, Dims, Illegal, Planted, PlantedCall, ProgramRun, Unspecified, always, get_flag
from adapters.reference import INTEGERS, check_form, dense, elements
from conformance.model import Claims, Crashed, Graph, Node, Operand, Rejected, Tensor, TimedOut, Unsupported
from conformance.model.types import WIDTH


class OneFault(Planted):
    """The reference with one seam changed."""

    types: ClassVar[tuple[str, ...]] = ("f32",)
    """The element types with the rows that show the fault."""
    most_elements: ClassVar[int] = 1 << 10
    """The elements of src in the largest of these rows."""


def change(**seams: Any) -> type[OneFault]:
    """Make a backend with other seams or settings."""
    parts = {name: staticmethod(seam) if callable(seam) else seam for name, seam in seams.items()}
    return type("OneFault", (OneFault,), parts)


# ── calls that are not answered ───────────────────────────────────────────────────────────────────

Condition = Callable[[PlantedCall, Dims], bool]
"""Called with a call and the right dims of its dst."""


def refuse(when: Condition, error: Exception | None = None, **settings: Any) -> type[OneFault]:
    """Make a backend that does not answer some legal calls."""

    def resolve_others(call: PlantedCall) -> Dims:
        dst = call.resolve()
        if when(call, dst):
            raise error or Illegal("not offered")
        return dst

    return change(resolve=resolve_others, **settings)


def refuse_type(type_: str, error: Exception | None = None) -> type[OneFault]:
    return refuse(lambda call, dst: call.program.graph.src.type == type_, error, types=("f32", type_))


def refuse_run(when: Callable[[ProgramRun], bool], error: Exception) -> type[OneFault]:
    def answer_others(run: ProgramRun) -> Answer:
        if when(run):
            raise error
        return run.answer()

    return change(execute=answer_others)


def refuse_node(when: Callable[[Node], bool], **settings: Any) -> type[OneFault]:
    def check(node: Node, src_type: str) -> None:
        check_form(node, src_type)
        if when(node):
            raise Rejected("compile", "not offered")

    return change(check=check, **settings)


def is_strided(src: Tensor) -> bool:
    """Says if the elements of a tensor do not lie in row-major order without gaps."""
    steps = dense(src.type, src.dims, bytearray()).strides
    return 0 not in src.dims and any(
        length > 1 and step != stride for length, step, stride in zip(src.dims, steps, src.strides, strict=True)
    )


def refuse_chains(graph: Graph) -> Graph:
    if len(graph.nodes) > 1:
        raise Unsupported("chain")
    return graph


def refuse_second_run(run: ProgramRun) -> Answer:
    if run.program.memory:
        raise Rejected("run", "this program has run before")
    run.program.memory = True
    return run.answer()


def refuse_another_length_of_shape(run: ProgramRun) -> Answer:
    lengths = [shape.dims for shape in run.shapes]
    if run.program.memory not in (None, lengths):
        raise Rejected("run", "this program is compiled for another rank")
    run.program.memory = lengths
    return run.answer()


def ranks(call: PlantedCall, dst: Dims) -> tuple[int, int]:
    return len(call.src), len(dst)


def has_literal_zero(call: PlantedCall) -> bool:
    return not call.zero and 0 in call.shape


NOT_ANSWERED: Mapping[str, type[OneFault]] = {
    "rejects bf16": refuse_type("bf16"),
    "does not support f16": refuse_type("f16", Unsupported("type:f16")),
    "crashes on bf16": refuse_type("bf16", Crashed("SIGSEGV")),
    "rejects ranks above 4": refuse(lambda call, dst: max(ranks(call, dst)) > 4),
    "rejects ranks above 8": refuse(lambda call, dst: max(ranks(call, dst)) > 8),
    "rejects lengths above 65535": refuse(
        lambda call, dst: max((*call.src, *dst), default=0) > 0xFFFF, most_elements=1 << 17
    ),
    "rejects volumes above 65536": refuse(lambda call, dst: call.volume > 1 << 16, most_elements=1 << 17),
    "rejects empty tensors without a literal 0": refuse(
        lambda call, dst: call.volume == 0 and not has_literal_zero(call)
    ),
    "rejects -1 on an empty src": refuse(lambda call, dst: call.volume == 0 and -1 in call.shape),
    "rejects a copying 0": refuse(lambda call, dst: call.zero and 0 in call.shape),
    "rejects a literal 0": refuse(lambda call, dst: has_literal_zero(call)),
    "crashes on a literal 0": refuse(lambda call, dst: has_literal_zero(call), Crashed("SIGFPE")),
    "rejects -1": refuse(lambda call, dst: -1 in call.shape),
    "hangs on -1": refuse(lambda call, dst: -1 in call.shape, TimedOut("no answer")),
    "rejects positive entries": refuse(lambda call, dst: min(call.shape, default=0) > 0),
    "rejects an entry 1": refuse(lambda call, dst: 1 in call.shape),
    "rejects another rank": refuse(lambda call, dst: len(call.src) != len(dst)),
    "rejects special_zero true": refuse(lambda call, dst: call.zero),
    "rejects unknown lengths of src": refuse(lambda call, dst: None in (call.program.graph.src.dims or (None,))),
    "rejects an inferred 1": refuse(lambda call, dst: -1 in call.shape and dst[call.shape.index(-1)] == 1),
    "does not know StaticReshape": refuse_node(lambda node: node.operation == "StaticReshape"),
    "rejects s32 shapes": refuse_node(lambda node: node.shape is not None and node.shape.type == "s32"),
    "rejects declared dims": refuse_node(
        lambda node: node.result is not None and node.result.dims is not None and node.result.strides is None
    ),
    "rejects a declared dst of unknown rank": refuse_node(
        lambda node: node.result is not None and node.result.dims is None, types=("f32", "bf16")
    ),
    "rejects declared strides": refuse_node(lambda node: node.result is not None and node.result.strides is not None),
    "rejects strided src": refuse_run(lambda run: is_strided(run.src), Rejected("run", "strides")),
    "does not support strided src": refuse_run(lambda run: is_strided(run.src), Unsupported("layout")),
    "rejects dst in place": refuse_run(lambda run: run.in_place, Rejected("run", "in place")),
    "does not support chains": change(read_graph=refuse_chains),
    "rejects the second run of a program": change(execute=refuse_second_run),
    "rejects the second rank of a program": change(execute=refuse_another_length_of_shape),
}


# ── wrong dims ────────────────────────────────────────────────────────────────────────────────────


def give(dims: Callable[[PlantedCall, Dims], Dims]) -> type[OneFault]:
    """Make a backend that gives legal calls other dims; the elements are cut off or repeated to fit."""
    return change(resolve=lambda call: dims(call, call.resolve()))


def answer_entry(entry: int, length: int) -> Callable[[PlantedCall, Dims], Dims]:
    """Answer the same length for each such entry of shape."""
    return lambda call, dst: tuple(length if d == entry else n for d, n in zip(call.shape, dst, strict=True))


infer_one = answer_entry(-1, 1)


def leave_out_zeros_past_rank(call: PlantedCall) -> Dims:
    if call.zero and 0 in call.shape[len(call.src) :]:
        kept = tuple(d for i, d in enumerate(call.shape) if d != 0 or i < len(call.src))
        return call.resolve(shape=kept)
    return call.resolve()


def leave_minus_one(call: PlantedCall) -> Dims:
    """Leave a -1 as it is if no length is determined."""
    try:
        return call.resolve()
    except Unspecified as silence:
        rule, known = silence.args
        if rule != "infer-undetermined":
            raise
        return tuple(-1 if d is None else d for d in known)


WRONG_DIMS: Mapping[str, type[OneFault]] = {
    "reverses dims": give(lambda call, dst: dst[::-1]),
    "reverses dims of an unknown src": give(
        lambda call, dst: dst[::-1] if None in (call.program.graph.src.dims or (None,)) else dst
    ),
    "drops dims of length 1": give(lambda call, dst: tuple(d for d in dst if d != 1) or dst),
    "puts a 1 in front": give(lambda call, dst: (1, *dst)),
    "flattens": give(lambda call, dst: (math.prod(dst),)),
    "answers the dims of src": give(lambda call, dst: call.src),
    "infers 1": give(infer_one),
    "infers 1 on an empty src": give(lambda call, dst: infer_one(call, dst) if call.volume == 0 else dst),
    "answers 0 for a copying 0": give(answer_entry(0, 0)),
    "leaves out a 0 past the rank": change(resolve=leave_out_zeros_past_rank),
    "leaves an undetermined -1": change(resolve=leave_minus_one),
}


# ── wrong elements ────────────────────────────────────────────────────────────────────────────────


def move(elements_of: Callable[[Any, ProgramRun], Any], when: Callable[[ProgramRun], bool] = always) -> type[OneFault]:
    """Make a backend that changes the elements: a row of unsigned integers in row-major order."""

    def move_others(run: ProgramRun, dst: Dims) -> Answer:
        volume = math.prod(dst)
        if volume == 0 or volume != math.prod(run.src.dims) or not when(run):
            return run.move(dst)
        row = np.frombuffer(elements(run.src), f"<u{WIDTH[run.src.type]}")
        changed = np.ascontiguousarray(elements_of(row, run), row.dtype)
        return dense(run.src.type, dst, bytearray(changed.tobytes()))

    return change(move=move_others)


WRONG_ELEMENTS: Mapping[str, type[OneFault]] = {
    "reverses elements": move(lambda row, run: row[::-1]),
    "answers zeros": move(lambda row, run: row * 0),
    "repeats the first element": move(lambda row, run: np.full_like(row, row[0])),
    "loses the last element": move(lambda row, run: np.append(row[:-1], row[:1] * 0)),
    "adds 1 to each element": move(lambda row, run: row + 1),
    "adds 1 in chains": move(lambda row, run: row + 1, lambda run: len(run.program.graph.nodes) > 1),
    "adds 1 to dst with strides": move(
        lambda row, run: row + 1,
        lambda run: any(node.result and node.result.strides for node in run.program.graph.nodes),
    ),
    "adds 1 if shape begins later": move(
        lambda row, run: row + 1,
        lambda run: any(shape.offset % 64 and not is_strided(shape) for shape in run.shapes),
    ),
}


# ── illegal calls that are answered ───────────────────────────────────────────────────────────────


def answer(
    *rules: str, when: Callable[[PlantedCall], bool] = always, dims: Callable[[PlantedCall], Dims] = PlantedCall.fill
) -> type[OneFault]:
    """Make a backend that answers calls that break one of some rules."""

    def resolve_more(call: PlantedCall) -> Dims:
        try:
            return call.resolve()
        except Illegal as illegal:
            if str(illegal) in rules and when(call):
                return dims(call)
            raise

    return change(resolve=resolve_more)


def copy_literal_beside_infer(call: PlantedCall) -> Dims:
    """Copy the literal zeros of an empty src beside one -1, within the rank of src."""
    pair = has_literal_zero(call) and call.shape.count(-1) == 1 and min(call.shape) == -1
    return call._replace(zero=True).fill() if pair and call.volume == 0 and copies_fit(call) else call.resolve()


def copies_fit(call: PlantedCall) -> bool:
    """Says if each 0 is within the rank of src, and copying leaves -1 a length that keeps the volume."""
    return 0 not in call.shape[len(call.src) :] and math.prod(call._replace(zero=True).fill()) == call.volume


def is_rank_zero(call: PlantedCall) -> bool:
    return not call.src or not call.shape


def is_volume(differs: Callable[[int, int], bool]) -> Callable[[PlantedCall], bool]:
    def holds(call: PlantedCall) -> bool:
        literal = -1 not in call.shape and not is_rank_zero(call)
        return literal and differs(math.prod(call.fill()), call.volume)

    return holds


def crash_on(is_illegal: Callable[[PlantedCall], bool]) -> type[OneFault]:
    def resolve_others(call: PlantedCall) -> Dims:
        if is_illegal(call):
            raise Crashed("SIGFPE")
        return call.resolve()

    return change(resolve=resolve_others)


def read_node(change_of: Callable[[Node, str], Node]) -> type[OneFault]:
    """Make a backend that mends the form of a node, and so answers some nodes that have no right form."""
    return change(read_node=change_of)


def read_any_flag(node: Node, src_type: str) -> Node:
    flag = node.special_zero
    exact = flag is None or (flag.type in ("bool", *INTEGERS) and flag.values in ((0,), (1,)))  # True equals 1
    return node if exact else node._replace(special_zero=Operand("bool", (), (True,)))


def read_any_shape_type(node: Node, src_type: str) -> Node:
    shape = node.shape
    if shape is None or shape.type not in ("f16", "bf16", "f32", "f64"):
        return node
    values = shape.values and tuple(int(value) for value in shape.values)
    return node._replace(shape=Operand("s64", shape.dims, values))


ILLEGAL_ANSWERED: Mapping[str, type[OneFault]] = {
    "crashes on two -1": crash_on(lambda call: call.shape.count(-1) > 1),
    "crashes on another volume": crash_on(
        lambda call: min(call.shape, default=0) > 0 and call.volume not in (0, math.prod(call.shape))
    ),
    "answers a literal 0 beside -1": answer("zero-meets-infer", when=lambda call: call.volume == 0),
    "copies a literal 0 beside -1": change(resolve=copy_literal_beside_infer),
    "answers fewer elements": answer("same-volume", when=is_volume(lambda dst, src: dst < src)),
    "answers more elements": answer("same-volume", when=is_volume(lambda dst, src: src < dst < 1 << 16)),
    "answers rank 0 of another volume": answer("same-volume", when=lambda call: is_rank_zero(call) and call.volume > 0),
    "reads any special_zero as true": read_node(read_any_flag),
    "answers float shapes": read_node(read_any_shape_type),
}

FAULTS = {**NOT_ANSWERED, **WRONG_DIMS, **WRONG_ELEMENTS, **ILLEGAL_ANSWERED}


# ── right backends ────────────────────────────────────────────────────────────────────────────────


def answer_unspecified(call: PlantedCall) -> Dims:
    """Give each free length 1 or 0 as the volume asks, and the first what is left."""
    try:
        return call.resolve()
    except Unspecified as silence:
        dst = list(silence.args[1])
        known = math.prod(d for d in dst if d is not None)
        free = [i for i, d in enumerate(dst) if d is None]
        for i in free:
            dst[i] = 1 if known else 0
        if known and free:
            dst[free[0]] = call.volume // known
        return tuple(dst)


def answer_in_columns(run: ProgramRun, dst: Dims) -> Answer:
    """Lay dst out in column-major order."""
    answer = run.move(dst)
    return answer if isinstance(answer, Tensor) else np.array(answer, order="F")


def answer_a_view(run: ProgramRun, dst: Dims) -> Answer:
    too_many = max(len(run.src.dims), len(dst)) > 32
    return run.move(dst) if 0 in dst or too_many else run.src.array().reshape(dst)


def is_huge_empty(call: PlantedCall, dst: Dims) -> bool:
    return 0 in dst and max(math.prod(d for d in dims if d > 0) for dims in (call.src, dst)) > 0x7FFFFFFF


class RefusesAtRun(OneFault):
    """Rejects at the run only."""

    settles_late = True


class Narrow(OneFault):
    """Leaves out layouts and chains, and says so."""

    claims = Claims(OneFault.claims.operations, ("layout", "chain"))

    @staticmethod
    def execute(run: ProgramRun) -> Answer:
        if is_strided(run.src):
            raise Unsupported("layout")
        return run.answer()

    read_graph = staticmethod(refuse_chains)


def refuse_unlisted(node: Node, src_type: str) -> None:
    check_form(node, src_type)
    listed = {"StaticReshape": ("s64",), "DynamicReshape-1": ("s32",), "Reshape-1": ("s32", "s64")}[node.operation]
    if src_type not in ("f32", "f16", "bf16") or (node.shape is not None and node.shape.type not in listed):
        raise Rejected("compile", "an unlisted type")


def read_whole_flag(node: Node, src_type: str) -> Node:
    flag = node.special_zero
    is_whole = flag is not None and flag.type in INTEGERS and flag.values in ((0,), (1,))
    return node._replace(special_zero=Operand("bool", (), (get_flag(node),))) if is_whole else node


FREEDOMS: Mapping[str, type[OneFault]] = {
    "lays dst out in column-major order": change(move=answer_in_columns),
    "answers a view of src": change(move=answer_a_view),
    "rejects ranks above 12": refuse(lambda call, dst: max(ranks(call, dst)) > 12),
    "rejects rank 0": refuse(lambda call, dst: min(ranks(call, dst)) == 0),
    "rejects huge empty tensors": refuse(is_huge_empty),
    "answers unspecified calls": change(resolve=answer_unspecified),
    "rejects extra attributes": refuse_node(lambda node: bool(node.attributes)),
    "rejects unlisted types": change(types=("f32", "f64", "s32", "u8"), check=refuse_unlisted),
    "reads an integer special_zero": read_node(read_whole_flag),
    "rejects at the run": RefusesAtRun,
    "leaves layouts and chains out": Narrow,
}
