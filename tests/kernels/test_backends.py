"""How arrays come to where kernels work and back, by the same names for CPU and CUDA."""

import numpy as np
import pytest

from tanlearn.kernels._backends import CPU, CUDA, backend_of


def test_a_device_has_its_backend():
    assert backend_of("cpu") is CPU
    assert backend_of("cuda") is CUDA


def test_on_the_cpu_arrays_stay_where_they_are():
    x, y = np.arange(3.0), np.arange(2)
    there = CPU.put(x, y)
    assert there[0] is x
    assert there[1] is y
    assert CPU.get(x) is x


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_arrays_come_back_as_they_went(backend, device):
    """With the type, in the shape, and what is assigned later."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    one = backend_of(device)
    (there,) = one.put(x.copy())
    other = one.empty((2, 3), np.float32)
    assert (other.shape, other.dtype) == (x.shape, x.dtype)
    one.assign(other, 2 * x)
    for array, expected in ((there, x), (other, 2 * x)):
        found = one.get(array)
        assert isinstance(found, np.ndarray)
        assert found.dtype == np.float32
        np.testing.assert_array_equal(found, expected)
