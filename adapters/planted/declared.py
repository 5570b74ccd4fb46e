"""Backends that believe, or ignore, the declared dims and type of dst."""

from __future__ import annotations

import math

import numpy as np

from conformance.model import Declared, Node, Tensor
from conformance.model.types import dtype_of

from ..reference import can_be_true
from .base import (
    Answer,
    Dims,
    PlantedCall,
    ProgramRun,
    accept_declared,
    always,
    change_dims,
    move_elements,
    overlook,
    read_graph,
    read_node,
)


def to_doubles(dims: tuple[int | None, ...] | None) -> tuple[int | None, ...] | None:
    return dims and tuple(length and int(float(length)) for length in dims)


accept_declared.plant("declaration-not-read", "declared-output", "P", "Ignores the declared dims.", always)
accept_declared.plant("declared-in-full-or-rejected", "declared-output", "P", "Rejects an unknown length.",
                      lambda said, dims: said.dims is None or said.dims == dims)  # fmt: skip
accept_declared.plant("unknown-rank-is-rank-zero", "declared-output", "PK", "Reads an unknown rank as rank 0.",
                      lambda said, dims: can_be_true(said._replace(dims=said.dims or ()), dims))  # fmt: skip
accept_declared.plant("eight-declared-lengths-are-compared", "declared-output", "PJ",
                      "Compares the rank and the first eight declared lengths.",
                      lambda said, dims: said.dims is None or (
                          len(said.dims) == len(dims) and can_be_true(said._replace(dims=said.dims[:8]), dims[:8])
                      ))  # fmt: skip
accept_declared.plant("declared-lengths-compared-as-doubles", "declared-output", "PD",
                      "Compares declared lengths as doubles.",
                      lambda said, dims: can_be_true(said._replace(dims=to_doubles(said.dims)), to_doubles(dims) or ())
                      )  # fmt: skip
read_graph.plant("nodes-before-the-last-are-believed", "operands-as-listed", "P",
                 "Does not count the inputs and outputs of nodes before the last.",
                 lambda graph: graph._replace(nodes=(
                     *(node._replace(inputs=1, outputs=1) for node in graph.nodes[:-1]), graph.nodes[-1])))  # fmt: skip
read_graph.plant("declarations-of-middle-nodes-not-read", "declared-output", "P",
                 "Ignores what is declared between nodes, unless the first of them does.",
                 lambda graph: graph._replace(nodes=(
                     graph.nodes[0], *(node._replace(result=None) for node in graph.nodes[1:-1]), *graph.nodes[1:][-1:]
                 )))  # fmt: skip


@accept_declared("declared-volume-is-enough", breaks="declared-output", classes="P")
def _(declared: Declared, dims: tuple[int | None, ...]) -> bool:
    """Accepts any declared dims of the right volume."""
    volume = math.prod(d or 0 for d in dims)
    return can_be_true(declared, dims) or math.prod(d or 0 for d in declared.dims or ()) == volume


def known_dims(call: PlantedCall) -> Dims | None:
    declared = call.node.result.dims if call.node.result is not None else None
    return None if declared is None or None in declared else tuple(d or 0 for d in declared)


change_dims.plant("declaration-believed", "declared-output", "P",
                  "Answers the declared dims instead of those of shape.",
                  lambda call, dst: dst if (declared := known_dims(call)) is None else declared)  # fmt: skip
overlook("declared-settles-zero-beside-infer", "zero-meets-infer", "P",
         "Accepts -1 beside a literal 0 if dims of an empty dst are declared.",
         lambda call: 0 in (known_dims(call) or ()), answer=lambda call: known_dims(call) or ())  # fmt: skip


def is_rank_unknown(call: PlantedCall) -> bool:
    return call.node.result is not None and call.node.result.dims is None


overlook("two-infers-into-an-unknown-rank", "one-infer", "PM", "Accepts several -1 if the rank of dst is not declared.",
         is_rank_unknown)  # fmt: skip
overlook("negatives-into-an-unknown-rank", "lower-bound", "PL",
         "Accepts lengths below -1 in a graph of one node if the rank of dst is not declared.",
         lambda call: is_rank_unknown(call) and not call.program.chained)  # fmt: skip
overlook("a-literal-zero-into-an-unknown-rank", "zero-empties", "PE",
         "Empties dst for a literal 0 if its rank is not declared.", is_rank_unknown)  # fmt: skip
overlook("copies-into-an-unknown-rank-are-not-counted", "same-volume", "PE",
         "Does not compare volumes if shape copies and infers nothing, and the rank of dst is not declared.",
         lambda call: is_rank_unknown(call) and call.zero and 0 in call.shape and -1 not in call.shape)  # fmt: skip


@read_node("declared-type-ignored", breaks="declared-type-is-that-of-src", classes="P")
def ignore_type(node: Node, src_type: str) -> Node:
    """Ignores the declared type."""
    return node._replace(result=node.result._replace(type=src_type)) if node.result else node


@read_node("declared-lengths-excuse-the-type", breaks="declared-type-is-that-of-src", classes="P")
def _(node: Node, src_type: str) -> Node:
    """Ignores the declared type if dims are declared too."""
    return ignore_type(node, src_type) if node.result and node.result.dims is not None else node


@read_node("bf16-may-be-declared-f32", breaks="declared-type-is-that-of-src", classes="P")
def _(node: Node, src_type: str) -> Node:
    """Ignores a declaration of f32 for bf16."""
    ignored = node.result is not None and (src_type, node.result.type) == ("bf16", "f32")
    return node._replace(result=None) if ignored else node


@move_elements("casts-to-the-declared-type", breaks="declared-type-is-that-of-src", classes="P", read_node=ignore_type)
def _(run: ProgramRun, dst: Dims) -> Answer:
    """Converts elements to the declared type."""
    answer, declared = run.move(dst), run.program.given.nodes[-1].result
    if isinstance(answer, Tensor) or declared is None or declared.type == run.src.type:
        return answer
    with np.errstate(all="ignore"):
        return answer.astype(dtype_of(declared.type))
