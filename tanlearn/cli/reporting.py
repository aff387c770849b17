"""``tanlearn report``: tables and tests of the results of a comparison."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tanlearn.cli.messages import note, plain_errors
from tanlearn.cli.reading import check_exists

if TYPE_CHECKING:
    from tanlearn.comparison import Comparison

__all__ = ["report"]


class MeasureName(StrEnum):
    """Values of ``--measure``."""

    ERROR = "error"
    LOG_LOSS = "log-loss"
    BRIER = "brier"
    AUC = "auc"
    FIT_SECONDS = "fit-seconds"
    PREDICT_SECONDS = "predict-seconds"
    N_PARAMETERS = "n-parameters"


def report(
    results: Annotated[
        list[str], typer.Argument(metavar="FILE.csv...", help="Results files of tanlearn compare --output.")
    ],
    measure: Annotated[MeasureName, typer.Option(help="Measure that is compared.")] = MeasureName.ERROR,
    reference: Annotated[
        str | None,
        typer.Option(help="Learner that the others are compared with; by default, the one with the best mean rank."),
    ] = None,
    alpha: Annotated[float, typer.Option(min=0.0, max=1.0, help="Significance level.")] = 0.05,
    rope: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="Largest difference that counts as equal in the Bayesian test; by default, 1 percent point for "
            "errors.",
            show_default=False,
        ),
    ] = None,
    picture: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Picture to write, such as ranks.png or ranks.pdf: the critical difference diagram of three or more "
            "learners, or the paired errors of two.",
        ),
    ] = None,
) -> None:
    """Print tables of a comparison in Markdown: means, significance tests, ranks and costs."""
    with plain_errors():
        for path in results:
            check_exists(path)
        # Imported here so that --help and a wrong path answer without the learners.
        from tanlearn.comparison import Comparison

        found = Comparison.load(results[0])
        for path in results[1:]:
            found = found.merge(Comparison.load(path))
        name = str(measure).replace("-", "_")
        typer.echo(found.report(name, reference=reference, alpha=alpha, rope=rope), nl=False)
        if picture is not None:
            _draw(found, name, alpha, picture)


def _draw(comparison: "Comparison", measure: str, alpha: float, path: str) -> None:
    """Draw the mean ranks of three or more learners, or the paired values of two, and write the picture."""
    from tanlearn.comparison.comparison import find_measure
    from tanlearn.displays import CriticalDifferenceDisplay, PairedErrorsDisplay

    ranks = comparison.ranks(measure, alpha)
    values = dict(zip(ranks.learners, ranks.values.T, strict=True))
    if len(values) > 2:
        display: Any = CriticalDifferenceDisplay(values, alpha=alpha).plot()
        display.figure_.suptitle(find_measure(measure).title)
    elif measure == "error":
        display = PairedErrorsDisplay(values, datasets=ranks.datasets).plot()
    else:
        raise ValueError("the picture of two learners shows their errors. Leave out --measure, or add a learner.")
    display.figure_.savefig(path, dpi=150)
    note(f"{path} was written." + (f" It leaves out {', '.join(ranks.left_out)}." if ranks.left_out else ""))
