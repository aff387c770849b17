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


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_printed_line_stands_above_the_bar(is_terminal, monkeypatch, capsys):
    screen = io.StringIO()
    monkeypatch.setattr(progress, "Console", lambda stderr: Console(file=screen, force_terminal=is_terminal, width=120))
    with progress.progress_bar("BoostedTerms") as draw:
        draw(0.5)
        draw(None, line="10 terms: [a]")
    lines = [line.strip() for line in screen.getvalue().splitlines()]
    assert [line.rpartition("\x1b[2K")[2] for line in lines if "10 terms" in line] == ["10 terms: [a]"]
    assert capsys.readouterr().out == ""
