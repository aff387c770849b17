"""Notice of the compilation of kernels, once and only where there is one."""

import subprocess
import sys

import numba

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
