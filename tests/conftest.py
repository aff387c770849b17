"""Fixtures of all tests, and the one line that says how many could not run for want of a device."""

from __future__ import annotations

import sys

import host_cuda
import pytest

from tanlearn._cuda import check_device


def cuda_problem():
    """Return why nothing can run on a device here, or nothing."""
    try:
        check_device("cuda")
    except (ImportError, RuntimeError) as error:
        return str(error)
    return ""


CUDA_PROBLEM = cuda_problem()
LEFT_OUT = pytest.StashKey[int]()


@pytest.fixture(params=["host", pytest.param("cuda", marks=pytest.mark.gpu)])
def backend(request, monkeypatch):
    """Run a test of CUDA kernels twice: compiled for the host, and on the device if there is one."""
    if request.param == "host":
        if not host_cuda.can_compile():
            pytest.skip(f"no C++ compiler {host_cuda.COMPILER} to run CUDA text on the host")
        monkeypatch.setitem(sys.modules, "cupy", host_cuda.MODULE)
    return request.param


def pytest_collection_modifyitems(config, items):
    """Leave out what needs a device, if there is none: a line for each would bury the rest."""
    on_device = [item for item in items if CUDA_PROBLEM and item.get_closest_marker("gpu")]
    config.stash[LEFT_OUT] = len(on_device)
    items[:] = [item for item in items if item not in set(on_device)]
    config.hook.pytest_deselected(items=on_device)


def pytest_terminal_summary(terminalreporter, config):
    """Say how many tests need a device that is not there."""
    if config.stash.get(LEFT_OUT, 0):
        terminalreporter.write_line(
            f"SKIPPED {config.stash[LEFT_OUT]} tests of CUDA twins on a device (their bodies ran on the host, where "
            f"there is a C++ compiler): {CUDA_PROBLEM}"
        )
