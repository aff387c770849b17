"""Fixtures of all tests, and the one line that says how many could not run for want of a device."""

from __future__ import annotations

import sys
from contextlib import suppress

import pytest
from support import host_cuda

from tanlearn.kernels._cuda import check_device

with suppress(ImportError):
    from hypothesis import HealthCheck, settings

    # Examples are the same in every run, and may take any time, also to be drawn.
    settings.register_profile(
        "no clocks", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], database=None
    )
    settings.load_profile("no clocks")


def cuda_problem():
    """Return why nothing can run on a device here, or nothing."""
    try:
        check_device("cuda")
    except (ImportError, RuntimeError) as error:
        return str(error)
    return ""


LEFT_OUT = pytest.StashKey[tuple[int, str]]()


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
    on_device = [item for item in items if item.get_closest_marker("gpu")]
    problem = cuda_problem() if on_device else ""
    if problem:
        config.stash[LEFT_OUT] = len(on_device), problem
        items[:] = [item for item in items if not item.get_closest_marker("gpu")]
        config.hook.pytest_deselected(items=on_device)


def pytest_terminal_summary(terminalreporter, config):
    """Say how many tests need a device that is not there."""
    if LEFT_OUT in config.stash:
        n_tests, problem = config.stash[LEFT_OUT]
        terminalreporter.write_line(
            f"SKIPPED {n_tests} tests of CUDA twins on a device (their bodies ran on the host, where there is a C++ "
            f"compiler): {problem}"
        )
