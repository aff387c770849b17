"""Progress bars on the standard error, shown only on a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
from rich.text import Text

__all__ = ["progress_bar"]


class _RemainingColumn(TimeRemainingColumn):
    """Remaining time, or nothing before the first estimate."""

    def render(self, task: Task) -> Text:
        """Return the time in words."""
        return Text("" if task.time_remaining is None else f", {super().render(task).plain} to go")


@contextmanager
def progress_bar(title: str, n_folds: int = 1, *, line: bool = False) -> Iterator[Callable[[float | None], None]]:
    """Yield a function that shows the completed fraction of the work, with elapsed and remaining time."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("so far"),
        _RemainingColumn(),
    )
    if line and not console.is_terminal:
        console.print(f"{title} ...", markup=False, highlight=False, soft_wrap=True)
    with Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal, redirect_stdout=False
    ) as bars:
        # A bar without a total pulses, while Numba compiles for some seconds on the first run.
        task = bars.add_task(title.replace("[", "\\["), total=None)

        def draw(share: float | None) -> None:
            if share is not None:
                fold = f", fold {min(int(share * n_folds) + 1, n_folds)} of {n_folds}" if n_folds > 1 else ""
                bars.update(task, total=1.0, completed=share, description=title.replace("[", "\\[") + fold)

        yield draw
