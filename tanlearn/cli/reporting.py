"""``tanlearn report``: print tables and tests for the results of a comparison."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tanlearn.cli.messages import for_shells, listed, nearest, note, plain_errors
from tanlearn.cli.outputs import check_output
from tanlearn.cli.reading import check_exists

if TYPE_CHECKING:
    from tanlearn.comparison import Comparison, Ranks

__all__ = ["report"]

#: Values of ``--measure``, listed here so that --help need not wait for the import of the learners.
MEASURE_NAMES = ("error", "log-loss", "brier", "auc", "fit-seconds", "predict-seconds", "n-parameters")


class ReportFormat(StrEnum):
    """Values of ``--print``."""

    MARKDOWN = "markdown"
    LATEX = "latex"
    CSV = "csv"


def _find_measure(name: str) -> str:
    """Return the name of a measure in Python. Hyphens and underscores are accepted."""
    found = name.replace("_", "-")
    if found not in MEASURE_NAMES:
        raise typer.BadParameter(
            f"there is no measure {name!r}.{nearest(found, MEASURE_NAMES)} The measures are: "
            f"{', '.join(MEASURE_NAMES)}."
        )
    return found.replace("-", "_")


def report(
    results: Annotated[
        list[str], typer.Argument(metavar="FILE.csv...", help="Results files of tanlearn compare --output.")
    ],
    measure: Annotated[
        str,
        typer.Option(metavar=f"[{'|'.join(MEASURE_NAMES)}]", help="Measure to compare.", callback=_find_measure),
    ] = MEASURE_NAMES[0],
    reference: Annotated[
        str | None,
        typer.Option(help="Learner to compare all others with; by default, the one with the best mean rank."),
    ] = None,
    without: Annotated[
        list[str],
        typer.Option(help="Learners to leave out, comma-separated or repeated, such as those that have failed."),
    ] = [],  # noqa: B006 - Typer makes a new list
    alpha: Annotated[float, typer.Option(min=0.0, max=1.0, help="Significance level.")] = 0.05,
    rope: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Largest difference that counts as equal in the Bayesian test; by default, 1 percentage point for "
            "errors.",
            show_default=False,
        ),
    ] = None,
    printed: Annotated[
        ReportFormat,
        typer.Option(
            "--print",
            help="Format of the report: Markdown, LaTeX for the package booktabs, or comma-separated means and tests, "
            "one row for each data set and learner.",
        ),
    ] = ReportFormat.MARKDOWN,
    picture: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Picture to write, such as ranks.png or ranks.pdf: the critical difference diagram of three or more "
            "learners, or the paired errors of two.",
        ),
    ] = None,
) -> None:
    """Print tables of a comparison: means, significance tests, ranks and costs."""
    with plain_errors():
        for path in results:
            check_exists(path)
        if picture is not None:
            _check_picture(picture, results)
        # Imported here, so that --help and errors in paths need not wait for the import of the learners.
        from tanlearn.comparison import Comparison

        found = Comparison.load(results[0])
        for path in results[1:]:
            found = found.merge(Comparison.load(path))
        found = _without(found, without)
        ranks = problem = None
        if picture is not None:
            try:
                ranks = found.ranks(measure, alpha)
            except ValueError as error:
                problem = str(error)
            if ranks is not None and len(ranks.learners) == 2 and measure != "error":
                raise ValueError("the picture of two learners shows their errors. Leave out --measure or --picture.")
        text = found.report(measure, reference=reference, alpha=alpha, rope=rope, format=printed)
        typer.echo(for_shells(text), nl=False)
        if problem is not None:
            note(f"there is no picture, because {problem}")
        if picture is not None and ranks is not None:
            _draw(ranks, measure, picture)


def _check_picture(path: str, results: list[str]) -> None:
    """Raise an error if the picture cannot be written, before any table is printed."""
    check_output(path, *results)
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError as error:
        raise ImportError('--picture needs Matplotlib. Install it with: pip install "tanlearn[plot]"') from error
    formats = sorted(FigureCanvasBase.get_supported_filetypes())
    if Path(path).suffix[1:].lower() not in formats:
        raise ValueError(
            f"--picture must end in .png, .pdf, .svg or another format of {', '.join(formats)}, got {path}."
        )


def _without(comparison: "Comparison", options: list[str]) -> "Comparison":
    """Return a comparison without the learners that are named in options."""
    known = comparison.learners
    names = [name for text in options for name in ([text] if text in known else map(str.strip, text.split(",")))]
    for name in names:
        if name not in known:
            raise ValueError(
                f"--without: there is no learner {name!r}.{nearest(name, known)} The learners are: {listed(known)}."
            )
    return type(comparison)(cell for cell in comparison.cells if cell.learner not in names)


def _draw(ranks: "Ranks", measure: str, path: str) -> None:
    """Draw the mean ranks of three or more learners, or the paired values of two, and write the picture."""
    from tanlearn.comparison.results import MEASURES
    from tanlearn.displays import CriticalDifferenceDisplay, PairedErrorsDisplay

    values = dict(zip(ranks.learners, ranks.values.T, strict=True))
    if len(values) > 2:
        display: Any = CriticalDifferenceDisplay(values, alpha=ranks.alpha).plot()
        display.figure_.suptitle(MEASURES[measure].title)
    else:
        display = PairedErrorsDisplay(values, datasets=ranks.datasets).plot()
    display.figure_.savefig(path, dpi=150)
    left_out = [*ranks.left_out, *ranks.learners_left_out]
    note(f"{path} was written." + (f" It leaves out {', '.join(left_out)}." if left_out else ""))
