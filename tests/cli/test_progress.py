"""Progress on the standard error."""

import io

import pytest

pytest.importorskip("typer", reason="the command line needs the extra `cli`")

import numba
from rich.console import Console

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


def test_a_note_on_a_terminal_follows_the_title(monkeypatch):
    screen = io.StringIO()
    monkeypatch.setattr(progress, "Console", lambda stderr: Console(file=screen, force_terminal=True, width=120))
    with progress.progress_bar("BoostedTerms with x=[1]") as draw:
        draw(None, "10 terms: held-out log loss 0.5 [a]")
    assert "BoostedTerms with x=[1]: 10 terms: held-out log loss 0.5 [a]" in screen.getvalue()
