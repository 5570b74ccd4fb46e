"""A unit test in a project with a reshape: each call is compared with what a document says about it."""

import numpy as np
import pytest

import conformance


def my_reshape(x, shape):
    return x.reshape(shape)


@pytest.mark.parametrize("shape", [(6,), (3, 2), (-1, 3), (1, 2, 3, 1)])
def test_my_reshape(shape):
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    conformance.check(my_reshape(x, shape), x, shape)


def test_my_reshape_rejects_another_volume():
    x = np.zeros((2, 3), np.float32)
    with pytest.raises(ValueError, match="cannot reshape") as rejected:
        my_reshape(x, (7,))
    conformance.check(rejected.value, x, (7,), document="static-oneapi")
