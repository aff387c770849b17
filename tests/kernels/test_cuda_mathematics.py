"""The CUDA kernels of normalisation and its pull-back."""

import numpy as np
import pytest
from oracles import networks as naive
from support import host_cuda

from tanlearn.kernels import _cuda
from tanlearn.kernels.cuda import cuda_kernels

N_VALUES = np.array([3, 2, 1, 4])
WIDTH = np.array([1, 3, 6, 2])
ALL = np.arange(4)
OFFSET = np.append(0, np.cumsum(N_VALUES * WIDTH))


@pytest.fixture(params=["forwards", "backwards"], autouse=True)
def _order(request, monkeypatch):
    """Run threads in some order."""
    monkeypatch.setattr(host_cuda.RawKernel, "order", request.param)


def normalize(rho):
    rho, n_values, offset = _cuda.to_device(rho, N_VALUES, OFFSET)
    theta = _cuda.cupy().empty(rho.shape, rho.dtype)
    cuda_kernels.normalize(rho, n_values, offset, None, theta)
    return theta.get()


def pull_back(theta, d_theta, groups=ALL, in_place=False):
    arrays = _cuda.to_device(theta, d_theta, groups, N_VALUES, OFFSET)
    d_rho = arrays[1] if in_place else _cuda.cupy().full(theta.shape, 7.0, theta.dtype)
    cuda_kernels.normalize_adjoint(*arrays, None, d_rho)
    return d_rho.get()


@pytest.mark.parametrize("shift", [0.0, 1000.0, -30000.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_normalize_equals_oracle(backend, shift, dtype):
    rho = (np.random.default_rng(0).normal(size=OFFSET[-1]) + shift).astype(dtype)
    theta = normalize(rho)
    assert theta.dtype == dtype
    for k, width, first, last in zip(N_VALUES, WIDTH, OFFSET[:-1], OFFSET[1:], strict=True):
        expected = naive.normalize(rho[first:last].reshape(k, width).astype(float)).ravel()
        tolerance = 8 * np.finfo(dtype).eps * max(abs(shift), 1.0)  # that of the difference to the largest
        np.testing.assert_allclose(theta[first:last], expected, rtol=0, atol=tolerance)


def test_pull_back_equals_finite_differences(backend):
    rho, direction, G = np.random.default_rng(2).normal(size=(3, OFFSET[-1]))
    step = 1e-6
    slope = np.vdot(G, normalize(rho + step * direction) - normalize(rho - step * direction)) / (2 * step)
    assert np.vdot(pull_back(normalize(rho), G), direction) == pytest.approx(slope, rel=1e-8)


def test_pull_back_may_write_onto_its_input(backend):
    rho, G = np.random.default_rng(3).normal(size=(2, OFFSET[-1]))
    theta = normalize(rho)
    np.testing.assert_array_equal(pull_back(theta, G, in_place=True), pull_back(theta, G))


def test_pull_back_leaves_other_groups_alone(backend):
    rho, G = np.random.default_rng(4).normal(size=(2, OFFSET[-1]))
    theta = normalize(rho)
    everything, part = pull_back(theta, G), pull_back(theta, G, groups=np.array([0, 2]))
    for g in range(4):
        expected = everything if g in (0, 2) else np.full_like(theta, 7.0)
        np.testing.assert_array_equal(part[OFFSET[g] : OFFSET[g + 1]], expected[OFFSET[g] : OFFSET[g + 1]])
