"""The Acme accelerator, played by NumPy."""

import numpy

from conformance.adapter import FunctionAdapter


class Acme(FunctionAdapter):
    name, version = "acme", "2026"
    operations = ("StaticReshape",)

    def reshape(self, src, shape, special_zero):
        if len(shape) > 6 or any(length < 0 for length in shape):
            raise ValueError("more than six entries, or a negative one")
        dims = [src.shape[at] if special_zero and not length else length for at, length in enumerate(shape)]
        return numpy.reshape(src, dims)
