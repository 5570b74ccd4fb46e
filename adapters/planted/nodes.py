"""Backends that accept a node which is not written as the signature says."""

from __future__ import annotations

from conformance.model import Node, Operand

from .base import FALSE, TRUE, get_flag, read_graph, read_node


def supply_flag(node: Node) -> Node:
    """The node with a special_zero that is false if it has none."""
    return node._replace(special_zero=node.special_zero or FALSE)


def supply_shape(node: Node) -> Node:
    """The node with a shape that flattens if it has none."""
    return node._replace(shape=node.shape or Operand("s64", (1,), (-1,)))


def is_static(node: Node) -> bool:
    return node.operation == "StaticReshape"


def flatten_shape(node: Node) -> Node:
    """The node with a shape of one dimension."""
    return node._replace(shape=node.shape._replace(dims=(-1,))) if node.shape and len(node.shape.dims) != 1 else node


read_node.plant("missing-flag-is-false", "attributes-required", "", "Reads a missing special_zero as false.",
                lambda node, _: supply_flag(node))  # fmt: skip
read_node.plant("missing-src-does-not-matter", "operands-required", "", "Accepts a node without src.",
                lambda node, _: node._replace(inputs=max(node.inputs, 1)))  # fmt: skip
read_node.plant("missing-dst-does-not-matter", "output-required", "", "Accepts a node without dst.",
                lambda node, _: node._replace(outputs=max(node.outputs, 1)))  # fmt: skip
read_node.plant("extra-inputs-ignored", "operands-as-listed", "", "Ignores extra inputs.",
                lambda node, _: node._replace(inputs=min(node.inputs, 1)))  # fmt: skip
read_node.plant("extra-outputs-ignored", "operands-as-listed", "", "Ignores extra outputs.",
                lambda node, _: node._replace(outputs=min(node.outputs, 1)))  # fmt: skip
read_node.plant("missing-shape-flattens", "shape-attribute-required", "", "Flattens if a StaticReshape has no shape.",
                lambda node, _: supply_shape(node) if is_static(node) else node)  # fmt: skip
read_node.plant("missing-shape-input-flattens", "operands-required", "", "Flattens if a dynamic node has no shape.",
                lambda node, _: node if is_static(node) else supply_shape(node))  # fmt: skip
read_node.plant("any-tensor-is-a-shape", "shape-has-one-dimension", "", "Accepts a shape of any rank, flattened.",
                lambda node, _: flatten_shape(node))  # fmt: skip
read_node.plant("cubes-are-vectors", "shape-has-one-dimension", "", "Accepts a shape of rank 3 or more, flattened.",
                lambda node, _: flatten_shape(node) if node.shape and len(node.shape.dims) > 2 else node)  # fmt: skip
read_node.plant("a-column-is-a-vector", "shape-has-one-dimension", "", "Accepts a shape of n rows and one column.",
                lambda node, _: flatten_shape(node) if node.shape and len(node.shape.dims) == 2
                and node.shape.dims[1] == 1 != node.shape.dims[0] else node)  # fmt: skip
read_node.plant("flag-is-a-byte", "special-zero-is-boolean", "", "Accepts a special_zero of type u8 or s8.",
                lambda node, _: node._replace(special_zero=TRUE if get_flag(node) else FALSE)
                if node.special_zero and node.special_zero.type in ("u8", "s8") else node)  # fmt: skip
read_node.plant("missing-flag-beside-infer", "attributes-required", "",
                "Reads a missing special_zero as false if a constant shape has a -1.",
                lambda node, _: supply_flag(node) if node.shape and -1 in (node.shape.values or ())
                else node)  # fmt: skip
read_graph.plant("later-nodes-lack-what-they-like", "attributes-required", "",
                 "Reads a missing special_zero as false in every node but the first.",
                 lambda graph: graph._replace(nodes=(graph.nodes[0], *map(supply_flag, graph.nodes[1:]))),
                 )  # fmt: skip
read_node.plant("lengths-may-be-floats", "shape-is-integer", "",
                "Accepts a shape of floats or booleans and drops the fractions.",
                lambda node, _: node._replace(shape=node.shape._replace(type="s64"))
                if node.shape and node.shape.type[0] in "fb" else node)  # fmt: skip
