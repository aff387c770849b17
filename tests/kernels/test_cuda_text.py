"""Checks of the CUDA kernels that need no device: names, parameters, structures, and compilation."""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib
import importlib.util
import inspect
import itertools
import pkgutil
import re
import shutil
import subprocess
import typing
from pathlib import Path

import pytest
from support import host_cuda

import tanlearn.kernels
from tanlearn.kernels import cpu, train
from tanlearn.kernels._cuda import program_text, type_macros
from tanlearn.kernels.cuda import cuda_kernels
from tanlearn.kernels.cuda import train as cuda_train

CUDA_MODULES = (cuda_kernels, cuda_train)
FOLDER = Path(tanlearn.kernels.__file__).parent / "cuda"


def public_functions(module):
    """Return the functions that a module defines, by name."""
    return {
        name: function
        for name, function in vars(module).items()
        if not name.startswith("_")
        and inspect.isfunction(inspect.unwrap(getattr(function, "py_func", function)))
        and getattr(function, "__module__", None) == module.__name__
    }


def cpu_kernels():
    """Return the public kernels of the CPU by name, and the names that stand twice."""
    found, twice = {}, set()
    for info in pkgutil.iter_modules(tanlearn.kernels.__path__):
        for name, function in public_functions(importlib.import_module(f"tanlearn.kernels.{info.name}")).items():
            twice |= {name} & set(found)
            found[name] = getattr(function, "py_func", function)
    return found, twice


def device_functions():
    """Return every launcher of a CUDA kernel."""
    return [
        pytest.param(function, id=name)
        for module in CUDA_MODULES
        for name, function in public_functions(module).items()
    ]


def test_names_of_kernels_are_unique():
    """A CUDA kernel is found by the name of its CPU kernel."""
    assert cpu_kernels()[1] == set()


@pytest.mark.parametrize("kernel", device_functions())
def test_cuda_kernels_have_the_parameters_of_their_cpu_kernels(kernel):
    """Except for missing values, because rows are complete on a device."""
    parameters = inspect.signature(cpu_kernels()[0][kernel.__name__]).parameters
    assert list(inspect.signature(kernel).parameters) == [name for name in parameters if name != "missing_values"]


def test_there_are_cuda_kernels():
    assert len(device_functions()) >= 12


def test_backends_have_the_same_kernels_by_name():
    kernels = {name: function for name, function in vars(cpu).items() if not name.startswith("_")}
    assert len(kernels) >= 12
    for name, function in kernels.items():
        assert getattr(function, "py_func", function) is cpu_kernels()[0][name]
        assert name in public_functions(cuda_kernels)


C_TYPES = {"int": int, "double": float}


@pytest.mark.parametrize("name", ["Problem", "Parameters", "Steps", "Scratch"])
def test_structures_have_the_fields_of_their_tuples(name):
    """In the same order, numbers and pointers alike: they are handed over as bytes."""
    text = re.sub(r"//.*", "", (FOLDER / "train.cu").read_text(encoding="utf-8"))
    (body,) = re.findall(rf"struct {name} \{{(.*?)\}};", text, re.DOTALL)
    declared = []
    for statement in filter(None, map(str.strip, body.split(";"))):
        kind, names = re.fullmatch(r"(.*?\w)(?: |(?= ?\*))(\W*\w+(?:,\W*\w+)*)", statement, re.DOTALL).groups()
        declared += [(one.strip(" *"), "pointer" if "*" in one else kind) for one in names.split(",")]
    fields = typing.get_type_hints(getattr(train if name == "Parameters" else cuda_train, name))
    assert [field for field, _ in declared] == list(fields)
    for field, kind in declared:
        assert fields[field] == (typing.Any if kind == "pointer" else C_TYPES[kind]), field


REALS = [type_macros(REAL=real) for real in ("float32", "float64")]
CODES = [type_macros(CODE=code) for code in ("uint8", "uint16")]
#: Every program, with types and numbers of classes of all sorts.
PROGRAMS = {
    "counts": (
        cuda_kernels._COUNTS,
        [(*type_macros(WEIGHT=weight), *c) for weight in ("int64", "float64") for c in CODES],
    ),
    "scores": (
        cuda_kernels._SCORES,
        [
            type_macros(CODE="uint8", CELL="float64", SUM="float64"),
            type_macros(CODE="uint16", CELL="uint8", SUM="int32"),
            type_macros(CODE="uint8", CELL="uint16", SUM="int64"),
            type_macros(CODE="uint16", CELL="float32", SUM="float32"),
        ],
    ),
    "mathematics": (("mathematics",), REALS),
    "draws": (cuda_kernels._DRAWS, [()]),
    "steps": (cuda_kernels._STEPS, REALS),
    "objective": (("objective",), [()]),
    "upward": (("upward",), CODES),
    "pick_rows": (("pick_rows",), CODES),
    "aode": (("aode",), [()]),
    "train": (
        cuda_train._FILES,
        [
            (*r, *c, f"-DN_CLASSES={n}", f"-DPACK={pack}", f"-DTEAM={team}", f"-DSAMPLE_TEAM={sample_team}")
            for (r, c), n, pack, team, sample_team in zip(
                itertools.product(REALS, CODES),
                (2, 10, 26, 71),
                (2, 2, 2, 1),
                (32, 32, 256, 256),
                (32, 256, 256, 32),
                strict=True,
            )
        ],
    ),
    "losses": (("losses",), [(*REALS[0], "-DN_CLASSES=33"), (*REALS[1], "-DN_CLASSES=2")]),
}


def nvcc(path):
    """Compile with NVIDIA's compiler."""
    program = shutil.which("nvcc") or pytest.skip("no nvcc to compile CUDA text for a device")

    def assembly_of(text, options):
        source = path / "kernels.cu"
        source.write_text(text)
        command = [program, "-ptx", *options, str(source), "-o", str(path / "kernels.ptx")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return (path / "kernels.ptx").read_text()

    return assembly_of


def nvrtc(path):
    """Compile as CuPy does, without any header."""
    found = importlib.util.find_spec("nvidia")
    folders = [Path(folder) for folder in found.submodule_search_locations] if found else []
    files = [str(file) for folder in folders for file in sorted(folder.glob("*/lib/libnvrtc.so*"))]
    name = next(iter(files), None) or ctypes.util.find_library("nvrtc")
    for folder in folders:  # NVRTC looks for its functions among the loaded libraries first
        for file in sorted(folder.glob("*/lib/libnvrtc-builtins.so*")):
            ctypes.CDLL(str(file), ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(name) if name else pytest.skip("no NVRTC to compile CUDA text for a device")

    def assembly_of(text, options):
        flags = [option.encode() for option in options]
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        assert library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernels.cu", 0, None, None) == 0
        status = library.nvrtcCompileProgram(program, len(flags), (ctypes.c_char_p * len(flags))(*flags))
        library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        library.nvrtcGetProgramLog(program, log)
        assert status == 0, log.value.decode()
        library.nvrtcGetPTXSize(program, ctypes.byref(size))
        assembly = ctypes.create_string_buffer(size.value)
        library.nvrtcGetPTX(program, assembly)
        return assembly.value.decode()

    return assembly_of


@pytest.mark.parametrize("compiler", [nvcc, nvrtc])
@pytest.mark.parametrize("name", PROGRAMS)
def test_cuda_text_compiles_for_devices(name, compiler, tmp_path):
    """Every program for the oldest architecture that recent compilers know, and its other variants for a later one."""
    files, variants = PROGRAMS[name]
    text = program_text(*files)
    kernels = set(host_cuda.KERNEL.findall(text))
    assert kernels
    for number, options in enumerate([variants[0], *variants]):
        target = "compute_90" if number else "compute_75"
        assembly = compiler(tmp_path)(text, [f"-arch={target}", "-std=c++17", *options])
        assert kernels == set(re.findall(r"\.entry (\w+)\(", assembly))


def test_every_cuda_file_is_compiled_by_a_test():
    compiled = {"common"}.union(*(files for files, _ in PROGRAMS.values()))
    assert {path.stem for path in FOLDER.glob("*.cu")} == compiled
