"""Notice of the compilation of kernels, once and only where there is one."""

import subprocess
import sys
from types import SimpleNamespace

import numba
import pytest

from tanlearn import _compilation
from tanlearn._compilation import on_first_compilation, write_compilation_note


def test_only_the_first_compilation_is_reported():
    found = []
    with on_first_compilation(lambda: found.append("compiled")):
        assert numba.njit(lambda x: x + 1)(1) == 2
        assert numba.njit(lambda x: x + 2)(1) == 3
    assert found == ["compiled"]
    assert numba.njit(lambda x: x + 3)(1) == 4
    assert found == ["compiled"]


def test_compiled_and_cached_kernels_are_not_reported(tmp_path):
    (tmp_path / "kernel.py").write_text("import numba\n@numba.njit(cache=True)\ndef double(x):\n    return 2 * x\n")
    program = (
        "from kernel import double\n"
        "from tanlearn._compilation import on_first_compilation\n"
        "with on_first_compilation(lambda: print('compiles')):\n"
        "    print(double(3))\n"
    )
    command = [sys.executable, "-c", f"import sys; sys.path[:] = {[str(tmp_path), *sys.path]!r}\n{program}"]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path).stdout for _ in range(2)
    )
    assert first == "compiles\n6\n"
    assert second == "6\n"


def test_the_note_is_one_line_on_the_standard_error(capsys):
    write_compilation_note()
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("tanlearn: compiling kernels")
    assert captured.err.count("\n") == 1


class Event(SimpleNamespace):
    """The end of the compilation of a kernel."""

    @classmethod
    def of(cls, cache_failure=None):
        return cls(data={"dispatcher": SimpleNamespace(cache_failure=cache_failure)})


@pytest.fixture
def clock(monkeypatch):
    """Return the times, in seconds, that the watch reads."""
    times = []
    monkeypatch.setattr(_compilation.time, "perf_counter", lambda: times.pop(0))
    monkeypatch.setattr(_compilation, "_written", [])
    _compilation._note_once.cache_clear()
    return times


@pytest.mark.parametrize("is_terminal", [True, False])
def test_long_compilations_are_noted_once_on_a_terminal(is_terminal, clock, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    watch = _compilation._Watch()
    clock.extend([0.0, 0.75, 5.0, 5.125, 5.375, 6.0])
    watch.on_start(Event.of())
    watch.on_end(Event.of())
    assert capsys.readouterr().err == ""  # after 0.75 s
    watch.on_start(Event.of())
    watch.on_start(Event.of())  # a part of the kernel
    watch.on_end(Event.of())
    assert capsys.readouterr().err == ""  # after 0.875 s
    watch.on_start(Event.of())
    watch.on_end(Event.of())
    assert capsys.readouterr().err.count("tanlearn: compiling kernels, once per installation") == is_terminal
    watch.on_end(Event.of())
    assert capsys.readouterr().err == ""


def test_kernels_that_cannot_be_stored_are_warned_about_once(clock):
    watch = _compilation._Watch()
    clock.extend([0.0] * 8)
    watch.on_start(Event.of())
    watch.on_end(full := Event.of())
    full.data["dispatcher"].cache_failure = "[Errno 28] No space left on device"  # known after the event
    watch.on_start(Event.of())
    with pytest.warns(UserWarning, match=r"again: \[Errno 28\] No space left on device. Set .* NUMBA_CACHE_DIR"):
        watch.on_end(Event.of())
    watch.on_start(Event.of())
    watch.on_end(Event.of("no folder for them is writable"))


def test_kernels_of_a_folder_that_is_not_writable_are_warned_about(tmp_path):
    program = (
        "import numba, numba.core.caching as caching\n"
        "caching.CacheImpl._locator_classes = []\n"
        "from tanlearn.estimators.classifier import Classifier\n"
        "from tanlearn.kernels.mathematics import exp\n"
        "assert exp(-1.0) > 0.36 and exp(-2.0) < 0.14\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.count("no folder for them is writable. Set the environment variable NUMBA_CACHE_DIR") == 1
