"""Progress bars on stderr, which are shown only on a terminal."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column
from rich.text import Text

__all__ = ["progress_bar"]


@functools.cache
def _note_compilation() -> None:
    """Write a line that kernels are being compiled, once per process."""
    from tanlearn._compilation import write_compilation_note

    write_compilation_note()


class _RemainingColumn(TimeRemainingColumn):
    """Remaining time, or nothing before the first estimate."""

    def render(self, task: Task) -> Text:
        """Return the time in words."""
        return Text("" if task.time_remaining is None else f"{super().render(task).plain} left")


class Draw(Protocol):
    """Function that updates a progress bar."""

    def __call__(self, share: float | None, note: str = "", line: str = "") -> None:
        """Show the completed fraction of the work, if it is known, and a note on the current step.

        A ``line`` is printed above the bar and remains.
        """


@contextmanager
def progress_bar(title: str, n_folds: int = 1, *, line: bool = False) -> Iterator[Draw]:
    """Yield a function that shows the progress of the work, with elapsed and remaining time."""
    from tanlearn._compilation import (
        on_first_compilation,
    )  # imports Numba, which takes time

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis")),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        _RemainingColumn(table_column=Column(no_wrap=True)),
    )
    if line and not console.is_terminal:
        console.print(f"{title} ...", markup=False, highlight=False, soft_wrap=True)
    bar = Progress(*columns, console=console, transient=True, disable=not console.is_terminal, redirect_stdout=False)
    with bar as bars, on_first_compilation(_note_compilation):
        # On the first run, Numba compiles for several seconds. Meanwhile, the bar has no total and pulses.
        task = bars.add_task(title.replace("[", "\\["), total=None)

        def draw(share: float | None, note: str = "", line: str = "") -> None:
            if line:
                console.print(line, markup=False, highlight=False, soft_wrap=True)
            if note:
                bars.update(task, description=f"{title}: {note}".replace("[", "\\["))
            if share is not None:
                fold = f", fold {min(int(share * n_folds) + 1, n_folds)} of {n_folds}" if n_folds > 1 else ""
                bars.update(task, total=1.0, completed=share, description=title.replace("[", "\\[") + fold)

        yield draw
