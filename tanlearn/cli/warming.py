"""``tanlearn warmup``: compile kernels before they are needed."""

from typing import Annotated

import typer

from tanlearn.cli.learners import DEFAULT_LEARNERS
from tanlearn.cli.messages import plain_errors
from tanlearn.cli.progress import progress_bar

__all__ = ["warmup"]


def warmup(
    learners: Annotated[
        list[str],
        typer.Argument(
            metavar="[LEARNER]...",
            help="Names of learners in tanlearn compare --list; by default, the default learners of fit and compare.",
            show_default=False,
        ),
    ] = [],  # noqa: B006 - Typer makes a new list
) -> None:
    """Compile the kernels of learners and store them. Run this command once per installation.

    To build a container image, run it as the same user and with the same NUMBA_CACHE_DIR as later processes.
    """
    with plain_errors():
        import tanlearn
        from tanlearn.baselines import find_learner

        chosen = [find_learner(name).make() for name in learners or DEFAULT_LEARNERS]
        with progress_bar("Compiling kernels", line=True) as draw:
            tanlearn.warmup(*chosen, progress=lambda n_done, n_fits: draw(n_done / n_fits))
        typer.echo(f"The kernels of {len(chosen)} learners are compiled.")
