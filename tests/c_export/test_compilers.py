"""Exported classifiers under the compilers that are installed: languages, warnings, instructions, long arrays."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from support.compilers import CPP, HOST, TARGETS, ZIG, compile_c, multiplications
from support.integer_models import random_boosted_terms, random_model, random_parents

from tanlearn import FixedPoint
from tanlearn.c_export import cells

STRICT = ["-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Wpedantic", "-Werror", "-c", "-o", "out.o"]
C = [HOST] if HOST else None
LANGUAGES = {
    "c99": (C, "-std=c99"),
    "c11": (C, "-std=c11"),
    "c++17": (CPP, "-std=c++17"),
    "clang-c99": (ZIG, "-std=c99"),
    "clang-c11": (ZIG, "-std=c11"),
    "clang-c++17": (ZIG and [*ZIG[:-1], "c++"], "-std=c++17"),
    "avr-c99": (TARGETS["avr-atmega1284p"], "-std=c99"),
    "avr-gnu++11": (TARGETS["avr-atmega1284p"], "-std=gnu++11"),
}


def mixed_models(folder):
    """Write headers of 1 to 16 bits, packed and not, and functions that call them from codes and from raw values."""
    rng = np.random.default_rng(4)
    lines = []
    for n_bits in range(1, 17):
        for packed in (True, False):
            name = f"m{n_bits}{'' if packed else 'b'}"
            model = random_model(rng, [3, 5, 6, 7, 4], 7, random_parents(rng, 5, n_bits % 3), FixedPoint(n_bits, 0))
            model.export_c(folder / f"{name}.h", packed=packed, number_type="int16")
            lines.append(calls(name))
    for n_bits in (4, 8, 11):
        for n_classes in (2, 7):
            name = f"t{n_bits}_{n_classes}"
            terms = random_boosted_terms(n_bits, [3, 5, 40, 7, 4], n_classes)
            terms.export_c(folder / f"{name}.h", bits=n_bits, number_type="int16")
            lines.append(calls(name))
    (folder / "all.c").write_text("".join(lines))


def calls(name):
    """Return functions that call a header from codes and from raw values."""
    lines = [f'#include "{name}.h"\n']
    for function, row in (("predict", "value"), ("predict_codes", "code")):
        head = f"int16_t {function}_{name}(const {name}_{row} *row)"
        lines.append(f"{head};\n{head} {{ return {name}_{function}(row); }}\n")
    return "".join(lines)


@pytest.mark.parametrize("target", TARGETS)
def test_predictions_compile_to_no_multiplication_and_no_division(tmp_path, target):
    if TARGETS[target] is None:
        pytest.skip("there is no such compiler")
    mixed_models(tmp_path)
    (tmp_path / "product.c").write_text("int product(int a, int b) { return a * b; }\n")
    for level in ("-Os", "-O1", "-O2", "-O3"):
        for name in ("all", "product"):
            compile_c(TARGETS[target], tmp_path, "-std=c99", "-g0", level, "-S", f"{name}.c", "-o", f"{name}.s")
        assert multiplications(tmp_path / "all.s") == []
        assert multiplications(tmp_path / "product.s") != []


@pytest.mark.parametrize("language", LANGUAGES)
def test_headers_compile_without_a_warning(tmp_path, language):
    command, standard = LANGUAGES[language]
    if command is None:
        pytest.skip("there is no such compiler")
    mixed_models(tmp_path)
    suffix = "cpp" if "++" in standard else "c"
    (tmp_path / "all.c").rename(tmp_path / f"source.{suffix}")
    compile_c(command, tmp_path, standard, *STRICT, f"source.{suffix}")
    (tmp_path / f"narrow.{suffix}").write_text("char narrow(int a);\nchar narrow(int a) { return a; }\n")
    with pytest.raises(AssertionError, match="conversion"):
        compile_c(command, tmp_path, standard, *STRICT, f"narrow.{suffix}")


def long_model(n_bits, packed):
    """Return a classifier whose cells take 70,000 bytes or so, with rows of 51 classes that lie across borders."""
    rng = np.random.default_rng(n_bits)
    size = n_bits / 8 if packed else 1 + (n_bits > 8)
    n_states = [3, 29, int(70_000 / 51 / 29 / size)]
    return random_model(rng, n_states, 51, [-1, 0, 1], FixedPoint(n_bits, 0)), rng


@pytest.mark.skipif(HOST is None, reason="there is no C compiler")
@pytest.mark.parametrize(("n_bits", "packed"), [(4, True), (3, True), (13, True), (8, False), (16, False)])
def test_split_arrays_agree_with_python_on_every_row_of_every_table(tmp_path, n_bits, packed):
    model, rng = long_model(n_bits, packed)
    n_states = model.tables_.layout.n_states
    values = np.arange(n_states[1] * n_states[2])  # all pairs of the large table
    X = np.stack([rng.integers(0, n_states[0], len(values)), values % n_states[1], values // n_states[1]], axis=1)
    model.export_c(
        tmp_path / "long.h", name="m", packed=packed, number_type="int16", test_rows=X[rng.permutation(len(X))]
    )
    header = (tmp_path / "long.h").read_text()
    assert len(re.findall(r"^static const \w+ m_cells\w*\[\]", header, re.MULTILINE)) == 3
    for flags in ([], ["-DM_SPLIT"]):
        strict = ["-Wall", "-Wextra", "-Wconversion", "-Wpedantic", "-Werror", "-std=c99", "-O1"]
        compile_c([HOST], tmp_path, *strict, "-fsanitize=address,undefined", *flags, "long_test.c", "-o", "long")
        done = subprocess.run(["./long"], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.stdout == f"{len(X)} rows of m agree\n", done.stderr


@pytest.mark.parametrize("target", ["host", "gcc-m0plus", "clang-m0plus"])
def test_where_arrays_may_be_long_they_compile_as_if_they_could_not_be_split(tmp_path, monkeypatch, target):
    if TARGETS[target] is None:
        pytest.skip("there is no such compiler")
    model, _ = long_model(8, packed=False)
    call = '#include "m.h"\nint16_t predict(const m_code *row);\nint16_t predict(const m_code *row)'
    (tmp_path / "all.c").write_text(f"{call} {{ return m_predict_codes(row); }}\n")
    found = []
    for splits in (True, False):
        if not splits:
            monkeypatch.setattr(cells, "is_long", lambda *sizes: False)
        model.export_c(tmp_path / "m.h", packed=False)
        assert ("M_SPLIT" in (tmp_path / "m.h").read_text()) == splits
        compile_c(TARGETS[target], tmp_path, "-std=c99", "-g0", "-Os", "-S", "all.c", "-o", "all.s")
        found.append((tmp_path / "all.s").read_text())
    assert found[0] == found[1]


@pytest.mark.skipif(TARGETS["avr-atmega1284p"] is None, reason="there is no avr-gcc")
@pytest.mark.parametrize("device", ["atmega1284p", "atmega644p", "atmega2560"])
def test_long_arrays_fit_the_flash_of_avr(tmp_path, device):
    model, _ = long_model(8, packed=False)
    model.export_c(tmp_path / "m.h", packed=False, number_type="int16")
    (tmp_path / "all.c").write_text(
        '#include "m.h"\nint16_t row[3], found;\nint main(void) { found = m_predict(row); }\n'
    )
    command = ["avr-gcc", f"-mmcu={device}", "-std=c99", "-Os", "-Wall", "-Wextra", "-Wconversion", "-Werror"]
    compile_c(command, tmp_path, "-c", "all.c", "-o", "all.o")
    if device != "atmega644p":  # of 64 KB
        compile_c(command, tmp_path, "all.o", "-o", "all.elf")


def runs(program):
    """Return whether a program is here and starts."""
    return (
        shutil.which(program)
        and subprocess.run([program, "--version"], capture_output=True, check=False).returncode == 0
    )


@pytest.mark.skipif(not runs("cppcheck"), reason="there is no cppcheck")
def test_headers_break_advisory_rules_of_misra_only(tmp_path):
    mixed_models(tmp_path)
    command = ["cppcheck", "--addon=misra", "--enable=style", "--std=c99", "--language=c", "-U__AVR__", "-U__cplusplus"]
    done = subprocess.run([*command, "all.c"], cwd=tmp_path, capture_output=True, text=True, check=True)
    found = set(re.findall(r"[mt]\d+\w*\.h.*misra-c2012-([\d.]+)", done.stderr))
    assert "15.5" in found
    assert found <= {"2.4", "8.9", "15.5"}  # tags of enums, objects of one function, one return
