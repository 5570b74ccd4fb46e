"""The facets of a row: what it needs of a backend beyond the core. A backend may leave facets out of its claims."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import chain

from ..model import Case, Operation, ShapePassedAs, Step
from ..model.cases import families_of, list_given_keys

C_INTERFACE_TYPES = ("s64", "f32", "bool", "string")
"""Attribute types that the usual C interface can set; the others are the facet `form:attribute-types`."""
RUNTIME_SHAPE = "runtime-shape"
"""The facet of a shape that arrives with run, if the operation also takes a constant."""
_BITS = (53, 31)
"""Bits of a length, without its sign, past which it is a facet: numbers of JavaScript and s32 hold no more."""


def find_case_facets(case: Case) -> Iterator[str]:
    """Yield the facets that all rows of a case share; each row also has those of its way and of its element type."""
    for step in _pick_steps(case):
        yield from _find_facets_of_keys(step)
        if len(step.shapes) > 1:
            yield "chain"
        if step.src_type != case.steps[0].src_type:
            yield f"type:{step.src_type}"
    yield from find_limit_facets(set(_list_dims_of_tensors(case)))
    if case.declared is not None:
        yield "declared"
    yield from _find_facets_of_keys(case)
    yield from _find_form_facets(case)


def find_way_facets(case: Case, operation: Operation, shape_type: str, shape_passed_as: ShapePassedAs) -> Iterator[str]:
    is_shape_known = shape_passed_as != "runtime" or has_constant_nodes(case)
    if is_shape_known and case.unknown_rank:
        yield "unknown-src:rank"
    elif is_shape_known and has_unknown_src(case, shape_passed_as):
        yield "unknown-src"
    if shape_passed_as != "attribute":
        yield f"shape-type:{shape_type}"
        if has_two_shape_types(case):
            yield f"shape-type:{choose_other_shape_type(operation, shape_type)}"
    if shape_passed_as == "runtime" and len(operation.shape_passed_as) > 1:
        yield RUNTIME_SHAPE
    ranks = ({len(dims) for dims in tensor} for tensor in list_dims_over_steps(case))
    changes = case.unknown_rank or (not case.generated and any(len(each) > 1 for each in ranks))
    if shape_passed_as == "runtime" and changes:
        yield f"{RUNTIME_SHAPE}:changing-rank"  # no document promises that one program takes several ranks
    if case.shape_rank != 1 or shape_type[0] not in "su" or shape_type == "string":
        yield "form:shape"


def has_unknown_src(case: Case, shape_passed_as: ShapePassedAs) -> bool:
    """Ask whether a graph of a case does not declare all lengths of src."""
    if case.unknown_rank or case.known != "all":
        return True
    return shape_passed_as == "runtime" and len({step.src for step in case.steps}) > 1  # one program takes them all


def has_constant_nodes(case: Case) -> bool:
    return any(step.constant_nodes != "none" for step in case.steps)


def has_two_shape_types(case: Case) -> bool:
    return has_constant_nodes(case) or case.mixed_shape_types


def choose_other_shape_type(operation: Operation, shape_type: str) -> str:
    """Return the type of the shapes beside shapes of a type; the same type if there is no other."""
    return next((type_ for type_ in operation.shape_types if type_ != shape_type), shape_type)


def _find_facets_of_keys(part: Case | Step) -> Iterator[str]:
    for key, value in list_given_keys(part):
        if key.facet:
            yield from map(key.facet.format, families_of(value) if key.name == "layout" else (value,))


def find_limit_facets(tensors: Collection[tuple[int, ...]]) -> Iterator[str]:
    """Yield the highest rank of some tensors, and the largest limit that a length passes."""
    if rank := max(map(len, tensors)):
        yield f"rank:{rank}"
    lengths = {*chain.from_iterable(tensors), 0}
    for bits in _BITS:
        if max(lengths) >= 1 << bits or min(lengths) < -1 << bits:
            yield f"length:2^{bits}"
            return


def _list_dims_of_tensors(case: Case) -> Iterator[tuple[int, ...]]:
    """Yield the lengths of each tensor of a case: src, dst as shape and expectation have it, and dst as declared."""
    for step in case.steps:
        yield step.src
        yield from step.shapes
        yield from (expected.dims for expected in step.expect.values() if expected.dims)
    if isinstance(case.declared, tuple):
        yield tuple([length or 0 for length in case.declared])
    yield (1,) * case.shape_rank
    operand = case.attributes.get("shape")
    if operand is not None and operand.values and all(type(entry) is int for entry in operand.values):
        yield tuple(operand.values)


def _pick_steps(case: Case) -> Iterable[Step]:
    """Return a step of each kind that facets tell apart; generated steps are many."""
    if not case.generated:
        return case.steps
    kinds = {(step.layout, step.in_place, len(step.src), *map(len, step.shapes)): step for step in case.steps}
    return kinds.values()


def list_dims_over_steps(case: Case) -> Iterator[list[tuple[int, ...]]]:
    """Yield for src, and then for each shape of the chain, its values over the steps."""
    yield [step.src for step in case.steps]
    for k in range(len(case.steps[0].shapes)):
        yield [step.shapes[k] for step in case.steps]


def _find_form_facets(case: Case) -> Iterator[str]:
    if case.attributes:
        yield "form:attributes"
    given = [value for value in case.attributes.values() if value is not None]
    if any(each.type not in C_INTERFACE_TYPES or (each.type, each.dims) == ("bool", (1,)) for each in given):
        yield "form:attribute-types"  # to the usual C interface, a list of one bool is a bool
    shape = case.attributes.get("shape")
    if case.shape_rank != 1 or (shape is not None and shape.type != "string" and len(shape.dims) != 1):
        yield "form:shape-rank"
    if case.inputs:
        yield "form:inputs"
    if case.outputs:
        yield "form:outputs"
    if case.dst_type:
        yield "form:types"
        yield f"type:{case.dst_type}"
