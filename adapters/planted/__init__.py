"""The planted backends: the reference with one fault each, which the suite must catch.

To add one, write it in the module of the thing that it gets wrong; its docstring says the fault:

    @resolve_dims("zero-is-one", breaks="zero-literal", classes="A")
    def _(call: PlantedCall) -> Dims:
        \"""Reads a 0 as 1 when special_zero is false.\"""
        return call.resolve() if call.zero else call.resolve(shape=tuple(d or 1 for d in call.shape))

`conformance run planted:zero-is-one` runs it, and its class is `conformance.adapters.planted:ZeroIsOne`.
"""

# ruff: noqa: F401, I001
from . import (
    chains, content, declared, empty, everything, in_place, inference, layout, negatives, nodes, numbers, ranges, rank,
    shared, state, unsupported, volume, zeros,
)  # fmt: skip
from .base import PLANTED, CLASSES

globals().update({backend.__name__: backend for backend in PLANTED.values()})
