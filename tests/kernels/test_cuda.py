"""Asking for a device that is not there, or that CuPy cannot compile for."""

import hashlib
import io
import subprocess
import sys
import threading
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from tanlearn import EncodedData, PairCounts
from tanlearn.kernels import _cuda
from tanlearn.kernels._cuda import check_device, cupy, launch, program_text, to_device, type_macros


def stand_in(n_devices, **attributes):
    """Return a module in the place of CuPy."""
    module = ModuleType("cupy")
    module.cuda = SimpleNamespace(runtime=SimpleNamespace(getDeviceCount=n_devices, getDevice=lambda: 0))
    vars(module).update(attributes)
    return module


def test_data_know_two_devices():
    codes, y = np.zeros((1, 2), np.uint8), np.zeros(2, np.intp)
    assert EncodedData(codes, np.array([1]), y, 1, device="cuda").take([0]).device == "cuda"
    for wrong in ("gpu", "cuda:", "cuda:-1", "cuda:01", "cpu:0", 1):
        with pytest.raises(ValueError, match=rf"device must be 'cpu', 'cuda', or 'cuda:' .*, got {wrong!r}"):
            EncodedData(codes, np.array([1]), y, 1, device=wrong)


def test_learners_on_data_for_the_device_say_what_is_missing(monkeypatch):
    def fail():
        raise OSError("no driver")

    data = EncodedData(np.zeros((1, 2), np.uint8), np.array([1]), np.zeros(2, np.intp), 1, device="cuda")
    for module, kind, message in [
        (None, ImportError, r"tanlearn\[cuda12\]"),
        (stand_in(fail), RuntimeError, r"no NVIDIA device \(no driver\). Use device='cpu'"),
        (stand_in(lambda: 0), RuntimeError, "no NVIDIA device. Use device='cpu'"),
    ]:
        monkeypatch.setitem(sys.modules, "cupy", module)
        with pytest.raises(kind, match=message):
            PairCounts(data.n_states, 1).update(data)
    assert check_device("cpu") is None


def test_compilers_that_are_missing_are_named(monkeypatch):
    class NoCompiler:
        def __init__(self, **options):
            raise RuntimeError("failed to load libnvrtc.so")

    monkeypatch.setitem(sys.modules, "cupy", stand_in(lambda: 1, RawModule=NoCompiler))
    with pytest.raises(RuntimeError, match=r"failed to load libnvrtc.so. .*'cupy-cuda12x\[ctk\]'"):
        launch(("steps",), "adam_step", 3)
    launch(("steps",), "adam_step", 0)  # nothing to do: nothing to compile


class Terminal(io.StringIO):
    """A terminal that sets an event when a line ends."""

    def __init__(self):
        super().__init__()
        self.has_line = threading.Event()

    def isatty(self):
        return True

    def write(self, text):
        count = super().write(text)
        if text.endswith("\n"):
            self.has_line.set()
        return count


def test_long_compilations_write_one_note_on_a_terminal(monkeypatch):
    terminal = Terminal()

    class SlowCompiler:
        def __init__(self, **options):
            pass

        def get_function(self, name):
            terminal.has_line.wait()  # until the note is written
            return lambda *arguments: None

    _cuda._write_note.cache_clear()
    monkeypatch.setattr(_cuda, "_SHORT", 0.0)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setitem(sys.modules, "cupy", stand_in(lambda: 1, RawModule=SlowCompiler))
    launch(("steps",), "adam_step", 3)
    launch(("steps",), "round_cells", 3)
    assert terminal.getvalue().count("compiling CUDA kernels") == 1
    monkeypatch.setattr(terminal, "isatty", lambda: False)
    _cuda._write_note.cache_clear()
    launch(("steps",), "sweep_drawn", 3)  # no terminal, no note
    assert terminal.getvalue().count("\n") == 1


def test_each_device_has_its_program_from_text_that_cupy_can_cache(monkeypatch):
    """CuPy stores machine code on disk by text and options, which are therefore the same in every process."""
    requested = []

    class Compiler:
        def __init__(self, **options):
            requested.append(options)

        def get_function(self, name):
            return lambda *arguments: None

    module = stand_in(lambda: 2, RawModule=Compiler)
    monkeypatch.setitem(sys.modules, "cupy", module)
    macros = type_macros(REAL="float32")
    for number in (0, 0, 1):
        module.cuda.runtime.getDevice = lambda number=number: number
        launch(("sweep", "steps"), "adam_step", 3, macros=macros)
        launch(("sweep", "steps"), "round_cells", 3, macros=macros)
    text = program_text("sweep", "steps")
    assert requested == 2 * [{"code": text, "options": ("-std=c++17", "-DREAL=float")}]
    script = "import hashlib; from tanlearn.kernels._cuda import program_text as text; "
    script += "print(hashlib.sha256(text('sweep', 'steps').encode()).hexdigest())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.decode().strip() == hashlib.sha256(text.encode()).hexdigest()


def test_copies_are_without_gaps(backend):
    array = np.arange(6).reshape(2, 3).T
    (there,) = to_device(array)
    assert isinstance(there, cupy().ndarray)
    np.testing.assert_array_equal(there.get(), array)
    assert there.get().flags.c_contiguous
