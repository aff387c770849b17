"""The examples for Arduino and Zephyr compile, and answer, with stand-ins for the headers of those systems."""

import importlib.util
import shutil
import subprocess
from pathlib import Path

import pytest
from sklearn.datasets import load_iris
from support.compilers import CPP, HOST, TARGETS, compile_c

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
SKETCH = EXAMPLES / "arduino" / "iris" / "iris.ino"
APPLICATION = EXAMPLES / "zephyr" / "iris" / "src" / "main.c"
INCLUDE = f"-I{HERE / 'stand_ins'}"
STRICT = ["-Wall", "-Wextra", "-Wconversion", "-Werror"]
FLOWERS = [0, 60, 120]


def test_their_header_is_what_the_script_writes(tmp_path):
    found = importlib.util.spec_from_file_location("iris_header", EXAMPLES / "iris_header.py")
    script = importlib.util.module_from_spec(found)
    found.loader.exec_module(script)
    script.write(tmp_path / "iris.h")
    assert [place.read_text() for place in script.PLACES] == [(tmp_path / "iris.h").read_text()] * 2


def test_the_sketch_compiles_for_avr(tmp_path):
    if TARGETS["avr-atmega1284p"] is None:
        pytest.skip("there is no avr-gcc")
    command = ["avr-gcc", "-mmcu=atmega328p", "-Os", "-std=gnu++11", "-x", "c++", "-include", "Arduino.h", INCLUDE]
    compile_c(command, tmp_path, *STRICT, str(SKETCH), "-o", "iris.elf")
    sizes = subprocess.run(["avr-size", "-A", "iris.elf"], cwd=tmp_path, capture_output=True, text=True, check=True)
    data = [int(line.split()[1]) for line in sizes.stdout.splitlines() if line.startswith((".data", ".bss"))]
    assert sum(data) < 64  # bytes of RAM: the tables are in flash, names of classes are not


def test_the_sketch_is_linked_with_the_core_of_arduino(tmp_path):
    compiler = shutil.which("avr-gcc")
    core = Path(compiler or "/usr/bin/avr-gcc").parents[1] / "share" / "arduino" / "hardware" / "arduino" / "avr"
    if compiler is None or not core.exists():
        pytest.skip("there is no avr-gcc with Debian's arduino-core-avr beside it")
    board = ["-mmcu=atmega328p", "-DF_CPU=16000000L", "-DARDUINO=10819", "-DARDUINO_AVR_UNO", "-DARDUINO_ARCH_AVR"]
    places = [f"-I{core / 'cores' / 'arduino'}", f"-I{core / 'variants' / 'standard'}"]
    # Debian's gcc 5 leaves the name out of C++11's <float.h>; Arduino's own gcc is newer.
    options = [*board, *places, "-DDECIMAL_DIG=__DECIMAL_DIG__", "-Os", "-ffunction-sections", "-fdata-sections", "-w"]
    plus = ["avr-g++", *options, "-std=gnu++11", "-fno-exceptions", "-fno-threadsafe-statics"]
    compile_c([*plus, "-x", "c++", "-include", "Arduino.h"], tmp_path, "-c", str(SKETCH), "-o", "iris.o")
    compile_c(plus, tmp_path, "-c", *map(str, (core / "cores" / "arduino").glob("*.cpp")))
    plain = [str(path) for ending in ("c", "S") for path in (core / "cores" / "arduino").glob(f"*.{ending}")]
    compile_c(["avr-gcc", *options], tmp_path, "-c", *plain)
    compile_c(
        plus, tmp_path, "-Wl,--gc-sections", *sorted(path.name for path in tmp_path.glob("*.o")), "-o", "iris.elf"
    )
    sizes = subprocess.run(["avr-size", "-A", "iris.elf"], cwd=tmp_path, capture_output=True, text=True, check=True)
    bytes_of = {line.split()[0]: int(line.split()[1]) for line in sizes.stdout.splitlines() if line.startswith(".")}
    assert bytes_of[".text"] < 2**15  # of flash, and 2 KB of memory: the part of an Uno
    assert bytes_of[".data"] + bytes_of[".bss"] < 2**11


@pytest.mark.skipif(CPP is None, reason="there is no C++ compiler")
def test_the_sketch_names_irises(tmp_path):
    X, _ = load_iris(return_X_y=True)
    command = [*CPP, "-std=gnu++11", "-x", "c++", "-include", "Arduino.h", INCLUDE]
    compile_c(command, tmp_path, *STRICT, str(SKETCH), "-o", "iris")
    lines = "".join(f"{' '.join(map(str, X[k]))}\n" for k in FLOWERS)
    lines += f"{','.join(map(str, X[60]))}\n"
    lines += "5.1 3.5 1.4\n5.1 ? 1.4 0.2\n\n"  # the last number, the second, and all of them are missing
    done = subprocess.run(["./iris"], cwd=tmp_path, input=lines, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["setosa", "versicolor", "virginica", "versicolor", *3 * ["a value is missing"]]


@pytest.mark.skipif(HOST is None, reason="there is no C compiler")
def test_the_application_names_irises(tmp_path):
    compile_c([HOST, "-std=c99", INCLUDE], tmp_path, *STRICT, str(APPLICATION), "-o", "iris")
    done = subprocess.run(["./iris"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "setosa, 1 cycles\nversicolor, 1 cycles\nvirginica, 1 cycles\n"


@pytest.mark.parametrize("target", ["gcc-m0plus", "gcc-m3", "clang-m0plus"])
def test_the_application_compiles_for_cortex_m(tmp_path, target):
    if TARGETS[target] is None:
        pytest.skip("there is no such compiler")
    compile_c([*TARGETS[target], "-std=c99", INCLUDE], tmp_path, *STRICT, "-c", str(APPLICATION), "-o", "iris.o")
