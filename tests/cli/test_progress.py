"""Progress on the standard error."""

import pytest

pytest.importorskip("typer", reason="the command line needs the extra `cli`")

import numba

from tanlearn.cli import progress


def test_bars_note_the_compilation_of_kernels_once(capsys):
    progress._note_compilation.cache_clear()
    for _ in range(2):
        with progress.progress_bar("one learner"):
            assert numba.njit(lambda x: x + 1)(1) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines().count(captured.err.splitlines()[0]) == 1
    assert captured.err.startswith("tanlearn: compiling kernels, once per installation")
