"""A CuPy in small that runs CUDA text on the host: compiled as C++ behind ``host_cuda.h``, on NumPy's arrays.

It is stricter than CuPy. Arrays must be on the current device, contiguous, and of the type that the kernel declares.
Numbers must have the declared size, and arrays that are declared ``const`` are compared afterwards. There are two
devices, both on the host; arrays and streams of one must not be used while the other is current.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np

COMPILER = os.environ.get("CXX", "g++")
HEADER = Path(__file__).with_name("host_cuda.h")
KERNEL = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(")
FOLDER = Path(tempfile.gettempdir()) / f"tanlearn-host-kernels-{os.getuid() if hasattr(os, 'getuid') else 0}"


class Device:
    """A device that is current in its context, in this thread."""

    _present = threading.local()

    def __init__(self, number=None):
        self.id = Device.current() if number is None else number

    @classmethod
    def current(cls):
        return getattr(cls._present, "number", 0)

    def __enter__(self):
        self.before, Device._present.number = Device.current(), self.id

    def __exit__(self, *exception):
        Device._present.number = self.before


def can_compile():
    """Return whether there is a compiler that knows coroutines of ``ucontext.h``."""
    return os.name == "posix" and shutil.which(COMPILER) is not None


class ndarray:  # noqa: N801
    """An array that is not to be touched but through the device."""

    def __init__(self, array, device=None):
        self.array, self.device = array, Device(device)

    shape = property(lambda self: self.array.shape)
    dtype = property(lambda self: self.array.dtype)
    size = property(lambda self: self.array.size)
    ndim = property(lambda self: self.array.ndim)
    nbytes = property(lambda self: self.array.nbytes)

    @property
    def data(self):
        self.check_device()
        return SimpleNamespace(ptr=self.array.ctypes.data)

    def check_device(self):
        assert self.device.id == Device.current(), f"an array of device {self.device.id} on device {Device.current()}"

    def __len__(self):
        return len(self.array)

    def __getitem__(self, key):
        return ndarray(self.array[key], self.device.id)

    def __setitem__(self, key, value):
        self.array[key] = value.array if isinstance(value, ndarray) else value

    def reshape(self, *shape):
        return ndarray(self.array.reshape(*shape), self.device.id)

    def ravel(self):
        return ndarray(self.array.ravel(), self.device.id)

    def fill(self, value):
        self.check_device()
        self.array.fill(value)

    def get(self):
        return self.array.copy()

    def set(self, array):
        assert array.dtype == self.dtype
        assert array.shape == self.shape
        assert array.flags.c_contiguous
        self.array[...] = array

    def copy(self):
        return ndarray(self.array.copy(), self.device.id)


class RawModule:
    """CUDA text, compiled when the first of its kernels is asked for."""

    def __init__(self, *, code, options=()):
        self.code, self.options, self.library = code, options, None

    def get_function(self, name):
        if self.library is None:
            self.library = compiled(self.code, self.options)
        return RawKernel(self.library, name)


def compiled(code, options=()):
    """Return the library of a text, compiled once and kept for later runs of the tests."""
    calls = [
        f'extern "C" const char* {name}_types() {{ return host::types_of({name}); }}\n'
        f'extern "C" const char* {name}_launch(unsigned blocks, const int* order, int n_threads, void** values) '
        f"{{ return host::launch({name}, blocks, order, n_threads, values); }}"
        for name in KERNEL.findall(code)
    ]
    flags = ["-O2", "-g", "-fPIC", "-shared", "-fno-strict-aliasing", "-Wno-attributes", *options]
    flags += os.environ.get("TANLEARN_HOST_FLAGS", "").split()
    text = "\n".join([HEADER.read_text(), "#line 1", code.replace('extern "C" __global__', "__global__"), *calls])
    library = FOLDER / f"{hashlib.sha256(repr((text, flags)).encode()).hexdigest()[:32]}.so"
    if not library.exists():
        FOLDER.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            source, built = Path(folder) / "kernels.cpp", Path(folder) / "kernels.so"
            source.write_text(text)
            command = [COMPILER, *flags, str(source), "-o", str(built)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr[:4000]
            built.replace(library)
    return ctypes.CDLL(str(library))


class RawKernel:
    """One kernel of a library."""

    #: The order in which the threads of a block are resumed: "forwards", "backwards" or a seed.
    order = "forwards"

    def __init__(self, library, name):
        self.name, self.types, self.start = name, getattr(library, f"{name}_types"), getattr(library, f"{name}_launch")
        self.types.restype = self.start.restype = ctypes.c_char_p

    def __call__(self, grid, block, arguments):
        if Stream.recording is not None:
            Stream.recording.append((self, grid, block, arguments))
            return
        declared = self.types().decode().split()
        assert len(declared) == len(arguments), f"{self.name} takes {len(declared)} arguments, got {len(arguments)}"
        buffers, constants = [], []
        for position, (kind, value) in enumerate(zip(declared, arguments, strict=True)):
            place = f"argument {position} of {self.name}, {kind}"
            if kind[0] in "<>":
                assert isinstance(value, ndarray), f"{place}: {type(value)}"
                assert value.dtype.str.lstrip("<|>=") == kind[1:].replace("b1", "u1"), f"{place}: {value.dtype}"
                assert value.array.flags.c_contiguous, place
                value.check_device()
                buffers.append(ctypes.c_void_p(value.array.ctypes.data))
                constants += [(place, value.array, value.array.copy())] if kind[0] == "<" else []
            elif kind[0] == "s":
                assert value.dtype.names, f"{place}: {value!r}"
                assert value.nbytes == int(kind[1:]), f"{place}: {value.nbytes} bytes"
                buffers.append(ctypes.create_string_buffer(value.tobytes(), value.nbytes))
            else:
                assert isinstance(value, np.generic), f"{place}: {type(value)}"
                assert value.dtype.str.lstrip("<|>=") == kind, f"{place}: {value.dtype}"
                buffers.append(ctypes.create_string_buffer(value.tobytes(), value.nbytes))
        places = (ctypes.c_void_p * len(buffers))(*(ctypes.addressof(buffer) for buffer in buffers))
        order = np.arange(block[0], dtype=np.int32)
        if self.order == "backwards":
            order = order[::-1].copy()
        elif self.order != "forwards":
            order = np.random.default_rng(self.order).permutation(order)
        problem = self.start(ctypes.c_uint(grid[0]), ctypes.c_void_p(order.ctypes.data), block[0], places)
        assert not problem, f"{self.name}: {problem.decode()}"
        for place, array, before in constants:
            assert array.tobytes() == before.tobytes(), f"{place} was written to"


class Stream:
    """Where launches are recorded, to be started again as a graph."""

    recording = None
    null = None

    def __init__(self, *, non_blocking=False):
        self.events, self.device = [], Device()

    def __enter__(self):
        assert self.device.id == Device.current(), "a stream of another device"
        return self

    def __exit__(self, *exception):
        return None

    def begin_capture(self):
        Stream.recording = []

    def end_capture(self):
        recorded, Stream.recording = Stream.recording, None
        return SimpleNamespace(launch=lambda stream=None: [kernel(*rest) for kernel, *rest in recorded])

    def synchronize(self):
        for event in self.events:
            event.is_over = True


class Event:
    """A moment of a stream; it can be read once the stream has been waited for."""

    is_over = False

    def record(self, stream):
        assert Stream.recording is None, "an event in a graph has no time"
        self.moment = time.perf_counter()
        stream.events.append(self)


def elapsed_time(start, end):
    """Return the milliseconds between two events."""
    assert start.is_over
    assert end.is_over
    return 1000 * (end.moment - start.moment)


def make_module():
    """Return a module to stand in for ``cupy``."""
    module = ModuleType("cupy")
    module.ndarray, module.RawModule = ndarray, RawModule
    module.asarray = lambda array, dtype=None: ndarray(np.array(array, dtype))
    module.zeros = lambda shape, dtype: ndarray(np.zeros(shape, dtype))
    module.empty = _poisoned
    module.full = lambda shape, value, dtype: ndarray(np.full(shape, value, dtype))
    module.get_default_memory_pool = lambda: SimpleNamespace(free_all_blocks=lambda: None)
    module.copyto = lambda target, source: target.set(source.array)
    module.__version__ = "of the host"
    runtime = SimpleNamespace(getDeviceCount=lambda: 2, memGetInfo=lambda: (2**34, 2**34))
    runtime.getDevice = Device.current
    runtime.driverGetVersion, runtime.runtimeGetVersion = lambda: 13000, lambda: 12090
    properties = {"name": b"the host", "multiProcessorCount": 1, "l2CacheSize": 2**20}
    runtime.getDeviceProperties = lambda number: properties
    module.cuda = SimpleNamespace(runtime=runtime, Stream=Stream, Event=Event, get_elapsed_time=elapsed_time)
    module.cuda.Device = Device
    module.cuda.set_allocator = lambda allocator: None
    module.cuda.get_current_stream = Stream
    return module


def _poisoned(shape, dtype):
    """Return an array of values that no kernel should ever read."""
    array = np.empty(shape, dtype)
    array.view(np.uint8).reshape(-1)[:] = 0xCD if array.dtype.kind != "f" else 0xFF
    return ndarray(array)


#: One for all tests, so that kernels are loaded once.
MODULE = make_module()
