"""The examples for Arduino and Zephyr compile, and answer, with stand-ins for the headers of those systems."""

import importlib.util
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


@pytest.mark.skipif(CPP is None, reason="there is no C++ compiler")
def test_the_sketch_names_irises(tmp_path):
    X, _ = load_iris(return_X_y=True)
    command = [*CPP, "-std=gnu++11", "-x", "c++", "-include", "Arduino.h", INCLUDE]
    compile_c(command, tmp_path, *STRICT, str(SKETCH), "-o", "iris")
    lines = "".join(f"{' '.join(map(str, X[k]))}\n" for k in FLOWERS)
    lines += "5.1 3.5 1.4\n5.1 ? 1.4 0.2\n\n"  # the last number, the second, and all of them are missing
    done = subprocess.run(["./iris"], cwd=tmp_path, input=lines, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["setosa", "versicolor", "virginica", *3 * ["a value is missing"]]


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
