"""Lower a row to its steps: graph, memory, and what each step means in each document."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..meaning.chains import meaning_of
from ..model import INTEGERS, STRIDED, CallForm, Case, Declared, Graph, Meaning, Node, Operand, Step
from ..model.types import WIDTH
from ..system.groups import group_pairs
from .facets import choose_other_shape_type
from .memory import TensorSpec, strides_of, volume_of
from .steps import SHARED_FROM_ELEMENTS, RowStep, StepMeaning

if TYPE_CHECKING:
    from .rows import Row

Dims = tuple[int | None, ...] | None
_OWN_ATTRIBUTES = ("shape", "special_zero")


def lower(row: Row) -> tuple[RowStep, ...]:
    """Return the steps of a row, ready to be called."""
    if row.first is not None and _is_plain(row.case):
        return tuple([_change_type(row.type, step) for step in _lower_first(row.first)])
    return _lower_first(row)


@lru_cache(16)  # the rows of other types come soon after the first
def _lower_first(row: Row) -> tuple[RowStep, ...]:
    common = _find_common(row)
    return tuple([_lower_step(row, number, common) for number in range(len(row.case.steps))])


@lru_cache(1024)
def lower_one(row: Row, number: int) -> RowStep:
    """Return one step of a row without its others, which may be many if they are generated."""
    return _lower_step(row, number, _find_common(row))


def _is_plain(case: Case) -> bool:
    """Ask whether the nodes of a case, and what they mean, are the same for every type of src."""
    unusual = case.attributes or case.inputs or case.outputs or case.dst_type or case.declared is not None
    return not unusual and case.shape_rank == 1 and all(step.src_type == "T" for step in case.steps)


def _change_type(type_: str, step: RowStep) -> RowStep:
    src_spec, declared = step.src_spec._replace(type=type_), step.graph.src
    strides = declared.strides and strides_of(src_spec.dims, src_spec.layout, WIDTH[type_])
    graph = step.graph._replace(src=Declared(type_, declared.dims, strides))
    return replace(step, graph=graph, src_spec=src_spec)


class _Common(NamedTuple):
    """The dims that the steps of one program share, as a graph declares them if shape arrives with run."""

    src: Dims
    shapes: tuple[Dims, ...]


def _make_program_key(case: Case, step: Step) -> object:
    """Return a key that is the same for steps of one program: all of a case, or those of equal ranks if generated."""
    return (len(step.src), tuple(map(len, step.shapes))) if case.generated else None


def _find_common(row: Row) -> dict[object, _Common]:
    programs = group_pairs((_make_program_key(row.case, step), step) for step in row.case.steps)
    return {
        key: _Common(
            _find_common_dims([step.src for step in steps]),
            tuple(_find_common_dims([_make_shape_dims(row, step.shapes[k]) for step in steps])
                  for k in range(len(steps[0].shapes))),
        )
        for key, steps in programs.items()
    }  # fmt: skip


def _lower_step(row: Row, number: int, programs: Mapping[object, _Common]) -> RowStep:
    case, step = row.case, row.case.steps[number]
    common = programs[_make_program_key(case, step)]
    if volume_of(step.src) >= SHARED_FROM_ELEMENTS and not case.large and case.start is None:
        start = 0  # cases of the same dims share their tensor
    else:  # generated steps share the tensors of those before
        start = zlib.crc32(case.id.encode()) if case.start is None else case.start
        start += 977 * (number % 2 if case.generated else number)
    src_spec = TensorSpec(_find_src_type(row, step), step.src, step.layout, step.bits, start)
    shapes = tuple(
        (_find_shape_type(row, step, k), _make_shape_dims(row, shape), shape)
        for k, shape in enumerate(step.shapes)
        if _arrives(row, step, k) and not (k == find_own_node(case, step) and case.inputs.get("shape") == 0)
    )
    graph = _make_graph(row, step, common)
    return RowStep(
        graph, src_spec, shapes, step.in_place, row.meanings(number), case.large, case.shape_step,
        case.shape_offset, case.one_shape_memory, step.new_program,
    )  # fmt: skip


def _arrives(row: Row, step: Step, k: int) -> bool:
    return row.shape_passed_as == "runtime" and not step.is_constant(k)


def _find_shape_type(row: Row, step: Step, k: int) -> str:
    is_other = step.is_constant(k) or (row.case.mixed_shape_types and k % 2)
    return choose_other_shape_type(row.signature, row.shape_type) if is_other else row.shape_type


def _find_src_type(row: Row, step: Step) -> str:
    return row.type if step.src_type == "T" else step.src_type


# ── the graph ─────────────────────────────────────────────────────────────────────────────────────


def _make_graph(row: Row, step: Step, common: _Common) -> Graph:
    type_ = _find_src_type(row, step)
    dims = None if row.case.unknown_rank else common.src if row.shape_passed_as == "runtime" else step.src
    if dims is not None and row.case.known != "all":
        dims = tuple(length if row.case.known == "some" and axis % 2 else None for axis, length in enumerate(dims))
    strides = None
    if step.layout in STRIDED and dims == step.src:
        strides = strides_of(step.src, step.layout, WIDTH[type_])
    nodes = tuple(_make_node(row, step, k, common.shapes[k]) for k in range(len(step.shapes)))
    return Graph(Declared(type_, dims, strides), nodes)


def _make_node(row: Row, step: Step, k: int, common: Dims) -> Node:
    """Return one node of the graph. Only the node that a case is about has its attributes, inputs and outputs."""
    case = row.case
    special_zero: Operand | None = Operand("bool", (), (step.special_zero[k],))
    shared = (step.shared_src and k > 0, step.shares_shape(k))
    shape: Operand | None = _make_shape_vector(row, step, k, common)
    if k != find_own_node(case, step):
        return Node(row.operation, shape, special_zero, takes_src=shared[0], shares_shape=shared[1])
    if "special_zero" in case.attributes:
        special_zero = case.attributes["special_zero"]
    shape = None if case.inputs.get("shape") == 0 else case.attributes.get("shape", shape)
    extra = [(n, o) for n, o in case.attributes.items() if n not in _OWN_ATTRIBUTES and o is not None]
    return Node(
        row.operation,
        shape,
        special_zero,
        _declare_dst(row, step),
        tuple(extra),
        case.inputs.get("src", 1) + case.inputs.get("extra", 0),
        case.outputs.get("dst", 1) + case.outputs.get("extra", 0),
        *shared,
    )


def find_own_node(case: Case, step: Step) -> int:
    """Return the index of the node that the form of a case is about."""
    last = len(step.shapes) - 1
    return {"first": 0, "middle": last // 2, "last": last}[case.in_node]


def _make_shape_vector(row: Row, step: Step, k: int, common: Dims) -> Operand:
    """Return a well-formed shape of the type and rank that the case chooses."""
    if not _arrives(row, step, k):
        return Operand(_find_shape_type(row, step, k), _make_shape_dims(row, step.shapes[k]), step.shapes[k])
    assert common is not None
    return Operand(_find_shape_type(row, step, k), common, None)


def _make_shape_dims(row: Row, shape: tuple[int, ...]) -> tuple[int, ...]:
    count, ones = (len(shape),), (1,) * (row.case.shape_rank - 1)
    if not row.case.shape_rank:
        return ()
    return count + ones if row.case.shape_column else ones + count


def _declare_dst(row: Row, step: Step) -> Declared | None:
    case, type_ = row.case, row.case.dst_type or _find_src_type(row, step)
    if case.declared is None:
        return Declared(type_, None) if case.dst_type else None
    strides = find_strides_of_dst(case)
    in_bytes = strides and tuple(stride * WIDTH[type_] for stride in strides)
    return Declared(type_, None if case.declared == "unknown" else case.declared, in_bytes)


def find_strides_of_dst(case: Case) -> tuple[int, ...] | None:
    """Return the strides that a case declares for dst, in elements; None if not each known length has one."""
    if case.dst_strides is None or not isinstance(case.declared, tuple) or None in case.declared:
        return None
    strides = tuple(map(int, case.dst_strides.split()))
    return strides if len(strides) == len(case.declared) else None


def _find_common_dims(all_dims: list[tuple[int, ...]]) -> Dims:
    """Return the lengths that all steps share, None for the others; None if the ranks differ."""
    if len(all_dims) == 1:
        return all_dims[0]
    if len({len(dims) for dims in all_dims}) > 1:
        return None
    return tuple(lengths[0] if len(set(lengths)) == 1 else None for lengths in zip(*all_dims, strict=True))


# ── the meaning ───────────────────────────────────────────────────────────────────────────────────


def find_meanings_at(row: Row, number: int) -> tuple[StepMeaning, ...]:
    """Return what a step of a row means, each with the documents that say so."""
    step = row.case.steps[number]
    form = _find_form(row, step)
    by_meaning: dict[Meaning, list[str]] = {}
    for document in row.documents:
        contract, own = row.contracts[document], find_own_node(row.case, step)
        meaning = meaning_of(contract, step.src, step.shapes, step.special_zero, form, step.shared_src, own)
        if meaning.kind == "unspecified" and form is not None and form.dst_overlaps and _has_no_room(row.case, step):
            meaning = meaning._replace(dst=None, no_room=True)
        by_meaning.setdefault(meaning, []).append(document)
    return tuple(StepMeaning(meaning, tuple(documents)) for meaning, documents in by_meaning.items())


def _find_form(row: Row, step: Step) -> CallForm | None:
    """Return the form of the call; None for a well-formed call of listed types, which contracts decide faster."""
    case, type_, signature = row.case, _find_src_type(row, step), row.signature
    listed = type_ in signature.types and row.shape_type in signature.shape_types
    plain = not (case.attributes or case.inputs or case.outputs or case.dst_type) and case.shape_rank == 1
    if listed and plain and case.declared is None:
        return None
    attributes, inputs, outputs = case.attributes, case.inputs, case.outputs
    special_zero = attributes.get("special_zero")
    shape = attributes.get("shape")
    return CallForm(
        src_type=type_,
        dst_type=case.dst_type or type_,
        shape_type=shape.type if shape else row.shape_type,
        shape_rank=len(shape.dims) if shape else case.shape_rank,
        special_zero_type=special_zero.type if special_zero else "bool",
        special_zero_is_exact=special_zero is None
        or special_zero.type == "bool"
        or (special_zero.type in INTEGERS and special_zero.values in ((0,), (1,))),
        missing_attributes=tuple(name for name in _OWN_ATTRIBUTES if name in attributes and attributes[name] is None),
        missing_operands=tuple(n for n, count in {**inputs, **outputs}.items() if n != "extra" and count == 0),
        extra_attributes=tuple(name for name in attributes if name not in _OWN_ATTRIBUTES),
        extra_operands=("input",) * inputs.get("extra", 0) + ("output",) * outputs.get("extra", 0),
        declared=case.declared if isinstance(case.declared, tuple) else None,
        dst_overlaps=_overlaps(case),
    )


def _overlaps(case: Case) -> bool:
    """Ask whether a stride declared for dst does not lead past all that the smaller strides reach."""
    strides, dims = find_strides_of_dst(case), case.declared
    if strides is None or not isinstance(dims, tuple):
        return False
    reach = 0
    for stride, length in sorted((stride, length or 0) for stride, length in zip(strides, dims, strict=True)):
        if length > 1 and stride <= reach:
            return True
        reach += (length - 1) * stride
    return False


def _has_no_room(case: Case, step: Step) -> bool:
    """Ask whether overlapping strides of dst lead two elements to one place, and do not only interleave dimensions."""
    assert isinstance(case.declared, tuple)
    dims, places = tuple(length or 0 for length in case.declared), np.zeros(1, np.int64)
    if volume_of(dims) != volume_of(step.src):  # which may be more than memory holds
        return False
    for stride, length in zip(find_strides_of_dst(case) or (), dims, strict=True):
        places = np.add.outer(places, stride * np.arange(length)).ravel()
    return np.unique(places).size < places.size
