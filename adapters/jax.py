"""JAX: jax.numpy.reshape, eager and under jit, and jax.lax.reshape; a shape is static in all."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import jax  # type: ignore[import-not-found,unused-ignore]
import jax.numpy as jnp  # type: ignore[import-not-found,unused-ignore]
import numpy as np

from conformance import Array, CannotStart, Tensor, array_of
from conformance.model.types import dtype_of, name_of

from .shared import ArrayLibrary, NodeCalls, read_answer, resolve_infer

_REJECTED = re.compile("cannot reshape array|can only specify one unknown axis|new_sizes must all be positive")


class Jax(ArrayLibrary):
    """jax.numpy.reshape, eager."""

    name, version = "jax", jax.__version__
    operations = ("StaticReshape", "Reshape-1")
    not_claimed = (*ArrayLibrary.not_claimed, "runtime-shape")
    rejections = (*ArrayLibrary.rejections, ZeroDivisionError)  # the last: what it raises where a 0 meets a -1

    def __init__(self, device: str = "cpu") -> None:
        jax.config.update("jax_enable_x64", True)  # or f64 would be narrowed
        platform, _, number = device.partition(":")
        try:
            self.device = jax.devices(platform)[int(number or 0)]
        except (RuntimeError, IndexError) as error:
            raise CannotStart(f"{self.name}@{device}: {str(error).splitlines()[0]}") from None
        if platform != "cpu":  # results of another device have another name
            self.name = f"{self.name}-{platform}"
        self.detail = (("device", f"{self.device}: {self.device.device_kind}"),)

    def import_src(self, src: Tensor) -> jax.Array:
        if 0 in src.dims:  # no bytes to take over, and NumPy lacks some of these
            return jnp.zeros(src.dims, dtype_of(src.type), device=self.device)
        return jax.device_put(array_of(src), self.device)

    def reshape(self, src: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        try:
            return self.call(src, shape)
        except TypeError as error:
            if max(shape, default=0) >> 63:  # how the binding of XLA rejects integers past 64 bits
                raise OverflowError(str(error)) from error
            if _REJECTED.search(str(error)):  # the message for lengths that do not fit
                raise ValueError(str(error)) from error
            raise

    def call(self, src: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        return jnp.reshape(src, shape)

    def export_dst(self, dst: jax.Array) -> Tensor | Array:
        return read_answer(name_of(dst.dtype), dst.shape, lambda: np.asarray(dst))


class JaxJit(Jax):
    """jax.numpy.reshape under jax.jit, a whole graph at once."""

    name = "jax-jit"

    def __init__(self, device: str = "cpu") -> None:
        super().__init__(device)
        self.jit_of = lru_cache(4096)(self.make_jit)

    def make_jit(self, calls: NodeCalls) -> Callable[..., Any]:
        """Return one function for equal calls; jax.jit compiles it once for each type and dims of src."""
        function: Callable[..., Any] = jax.jit(partial(super().run_chain, calls=calls))
        return function

    def run_chain(self, src: jax.Array, calls: NodeCalls) -> jax.Array:
        calls = tuple(call._replace(shape_type="") for call in calls)  # shape is a Python tuple here
        dst: jax.Array = self.jit_of(calls)(src)
        return dst


class JaxLax(Jax):
    """jax.lax.reshape, eager; it has no -1, so that the adapter answers the one that fits."""

    name = "jax-lax"

    def __init__(self, device: str = "cpu") -> None:
        super().__init__(device)
        self.detail += (("-1", "answered by the adapter"),)

    def call(self, src: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        return jax.lax.reshape(src, resolve_infer(src.shape, shape))
