"""``tanlearn fit``: fit a model to a table, and save it."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from tanlearn._progress import listening
from tanlearn.cli.chunks import check_counts, learn_by_chunks
from tanlearn.cli.learners import change, named_learner
from tanlearn.cli.messages import note, plain_errors
from tanlearn.cli.outputs import check_output, describe_classes, file_size
from tanlearn.cli.progress import progress_bar
from tanlearn.cli.reading import Reading, with_reading_options
from tanlearn.cli.tables import (
    DropOption,
    JobsOption,
    check_source,
    dataset_of,
    feature_columns,
    is_table,
    read_dataset,
)
from tanlearn.files.archive import kind_of_file
from tanlearn.files.regular_files import COUNTS, MODEL, SUMMARY, Kind
from tanlearn.sources.datasets import Dataset
from tanlearn.sources.file_formats import OUTPUTS
from tanlearn.sources.notation import Notation
from tanlearn.sources.table_files import TableFile, require_pandas

if TYPE_CHECKING:
    from tanlearn import TableCounts, TableEncoder
    from tanlearn.baselines import Learner
    from tanlearn.comparison import MeanResult


__all__ = ["fit"]

#: File size in bytes above which files are read in chunks, and number of rows per chunk. Both are constants, because
#: the model depends on them.
_LARGE, _CHUNK_ROWS = 2 * 2**30, 200_000


@with_reading_options
def fit(
    data: Annotated[
        str,
        typer.Argument(metavar="DATA", help=f"A table ({', '.join(OUTPUTS)}, or - for a pipe), or a counts file."),
    ],
    output: Annotated[str, typer.Option("--output", "-o", help="Model file to write, such as cars.tan.")],
    target: Annotated[str | None, typer.Option("--target", "-t", help="Column with the classes.")] = None,
    learner: Annotated[
        str | None,
        typer.Option(
            "--learner",
            "-l",
            help="Name of a learner in tanlearn compare --list. The default depends on the table size.",
        ),
    ] = None,
    settings: Annotated[
        list[str],
        typer.Option("--set", metavar="NAME=VALUE", help="Parameter of the learner, such as n_epochs=50; repeatable."),
    ] = [],  # noqa: B006 - Typer makes a new list
    drop: DropOption = [],  # noqa: B006
    folds: Annotated[
        int | None, typer.Option(min=2, help="Number of folds to estimate the error on new rows by cross-validation.")
    ] = None,
    chunk_rows: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="For learners based on counts, read the table in chunks of this number of rows; 0 reads all rows "
            "at once. By default, files over 2 GiB are read in chunks.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed of the learner and the folds.")] = 0,
    metadata: Annotated[
        list[str],
        typer.Option(
            metavar="KEY=VALUE",
            help="Text KEY=VALUE to store in the model, with the date, rows and versions; repeatable.",
        ),
    ] = [],  # noqa: B006
    jobs: JobsOption = -1,
    *,
    reading: Reading,
) -> None:
    """Fit a model to a table, and save it to a file."""
    from joblib import parallel_config

    unfinished = "nothing was written"
    with plain_errors(lambda: unfinished), parallel_config("threading", n_jobs=jobs):
        check_output(output, data)
        check_source(data)
        given_metadata = _metadata(metadata)
        if learner is not None:  # report errors before a large table is read
            from tanlearn import TableEncoder
            from tanlearn.baselines import find_learner

            _make(find_learner(learner), settings, seed, TableEncoder())
        dataset: Dataset | None = None
        kind = kind_of_file(data, COUNTS, SUMMARY, MODEL)
        if kind is not None:
            given = {"--target": target, "--drop": drop, "--folds": folds, "--chunk-rows": chunk_rows}
            name, model = _learn_counts(
                data, kind, [option for option in given if given[option]], learner, settings, seed
            )
        elif not is_table(data):
            if chunk_rows:
                raise ValueError(f"--chunk-rows needs a data file, but {data} is not a file. Leave out --chunk-rows.")
            dataset = read_dataset(data, target, drop, reading)
            name, model = _learn(dataset, learner, settings, seed, folds)
        else:
            with reading.open(data) as table:
                n_rows = _rows_a_chunk(table, chunk_rows)
                if n_rows:
                    if folds is not None:
                        raise ValueError("--folds needs all rows in memory. Leave out --folds, or set --chunk-rows 0.")
                    name, model = _learn_chunks(table, target, drop, learner, settings, seed, n_rows)
                else:
                    dataset = dataset_of(table, target, drop)
                    name, model = _learn(dataset, learner, settings, seed, folds)
        if kind is None and reading.notation != Notation():
            model._notation = reading.notation  # predict reads new rows in the same notation
        model.save(output, metadata=given_metadata)
        typer.echo(f"{name}: {model.n_parameters_:,} parameters in {output} ({file_size(output)})")
        if dataset is not None and folds is not None:
            unfinished = f"{output} was written, but its error was not estimated"
            _print_estimate(dataset, name, model, folds, seed, jobs)


def _metadata(pairs: list[str]) -> dict[str, str] | None:
    """Return ``--metadata`` as a dictionary, or None if it is empty."""
    for pair in pairs:
        if not pair.partition("=")[0].strip() or "=" not in pair:
            raise ValueError(f"--metadata must be KEY=VALUE, such as author=Ada, got {pair!r}.")
    split = [pair.partition("=") for pair in pairs]
    return {key.strip(): value.strip() for key, _, value in split} if pairs else None


def _rows_a_chunk(table: TableFile, chunk_rows: int | None) -> int:
    """Return the number of rows per chunk, or 0 for all rows at once."""
    if chunk_rows is not None:
        return chunk_rows
    if table.n_bytes <= _LARGE:
        return 0
    note(
        f"{table.name} is large and is read in chunks of {_CHUNK_ROWS:,} rows. To read all rows at once, set "
        f"--chunk-rows 0."
    )
    return _CHUNK_ROWS


def _make(entry: Learner, settings: list[str], seed: int, encoder: TableEncoder) -> tuple[str, Any]:
    """Return the name and the unfitted estimator of a learner with settings."""
    estimator = change(entry.make(random_state=seed, encoder=encoder), settings)
    for part in (estimator, *estimator.get_params(deep=True).values()):
        if hasattr(part, "_validate_params") and not isinstance(part, type):
            part._validate_params()
    return (f"{entry.name} with {', '.join(settings)}" if settings else entry.name), estimator


def _learn(dataset: Dataset, learner: str | None, settings: list[str], seed: int, folds: int | None) -> tuple[str, Any]:
    """Fit a learner to a table in memory."""
    from tanlearn import TableEncoder
    from tanlearn.comparison import check_folds

    if folds is not None and dataset.folds is None:
        check_folds(dataset.y, folds)
    entry = named_learner(learner, int(np.prod(dataset.X.shape)))
    name, model = _make(entry, settings, seed, TableEncoder(discrete_features=dataset.discrete_features))
    # Column names are set, because predict matches the columns of a file by name.
    X = dataset.X
    if not hasattr(X, "iloc"):
        X = require_pandas(f"fit {dataset.name}").DataFrame(X, columns=list(dataset.feature_names))
    started = time.perf_counter()
    with progress_bar(name) as draw:
        given = model.get_params()
        draws = "training__callback" in given and given["training__callback"] is None
        if draws:
            model.set_params(training__callback=lambda epoch: draw(epoch.epoch / epoch.n_epochs))
        with listening(lambda message: draw(None, message), lambda line: draw(None, line=line)):
            model.fit(X, dataset.y)
        if draws:
            model.set_params(training=given["training"])
    _print_fitted(dataset.name, len(dataset.y), X.shape[1], model, time.perf_counter() - started)
    return name, model


def _learn_chunks(
    table: TableFile,
    target: str | None,
    drop: list[str],
    learner: str | None,
    settings: list[str],
    seed: int,
    n_rows: int,
) -> tuple[str, Any]:
    """Fit a learner to a table in a file, chunk by chunk."""
    from tanlearn import TableEncoder
    from tanlearn.baselines import LEARNERS

    columns = feature_columns(table, target, drop)
    entry = LEARNERS["TAN-CMI ML"] if learner is None else named_learner(learner, 0)
    name, model = _make(entry, settings, seed, TableEncoder())
    check_counts(model, name)
    started = time.perf_counter()
    with progress_bar(name) as draw:
        n_samples = learn_by_chunks(table, str(target), columns, model, n_rows, draw)
    _print_fitted(Path(table.name).stem, n_samples, len(columns), model, time.perf_counter() - started)
    return name, model


def _learn_counts(
    path: str, kind: Kind, given: list[str], learner: str | None, settings: list[str], seed: int
) -> tuple[str, Any]:
    """Fit a learner to a counts file."""
    from tanlearn import TableCounts, TableEncoder
    from tanlearn.baselines import LEARNERS, find_learner

    if kind is SUMMARY:
        raise ValueError(
            f"fit needs rows or counts, but {path} is a summary. Count with: tanlearn counts TABLE --like {path}."
        )
    if kind is MODEL:
        raise ValueError(f"fit needs rows or counts, but {path} is a model. Name a data file or a counts file.")
    if given:
        raise ValueError(f"{given[0]} needs rows, but {path} contains counts. Leave out {given[0]}.")
    table = TableCounts.load(path)
    entry = find_learner(learner or ("TAN-CMI ML" if table.counts.has_pairs else "NB ML"))
    name, model = _make(entry, settings, seed, TableEncoder())
    started = time.perf_counter()
    try:
        model.from_counts(table)
    except (AttributeError, TypeError):  # the learner needs rows, or counts of another type
        able = [known.name for known in LEARNERS.values() if _learns_from(known.make(), table)]
        raise ValueError(
            f"{name} cannot be fitted to the counts in {path}. Use one of these learners: {', '.join(able)}."
        ) from None
    n_rows = table.counts.class_counts.sum()
    _print_fitted(Path(path).stem, n_rows, len(table.encoder.n_states_), model, time.perf_counter() - started)
    return name, model


def _learns_from(model: Any, table: TableCounts) -> bool:
    """Try to fit a model to the counts of a table, and return whether it succeeds."""
    try:
        model.from_counts(table)
    except (AttributeError, TypeError, ValueError):
        return False
    return True


def _print_fitted(name: str, n_samples: float, n_features: int, model: Any, seconds: float) -> None:
    """Print the size and the classes of the training data, and the time."""
    class_list = describe_classes(model.classes_)
    typer.echo(f"{name}: {n_samples:,} rows, {n_features:,} columns, {class_list}; {seconds:.1f} s")


def _print_estimate(dataset: Dataset, name: str, model: Any, folds: int, seed: int, jobs: int) -> None:
    """Cross-validate the settings of a model, and print the estimated error on new rows."""
    from sklearn.base import clone

    from tanlearn.baselines import Learner
    from tanlearn.comparison import compare

    def factory(random_state: Any, n_epochs: int | None, n_jobs: int | None, encoder: TableEncoder | None) -> Any:
        copied = clone(model, safe=False).set_params(n_jobs=n_jobs)
        alone = {"training__checkpoint": None, "warm_start": False}  # a fold must not continue from another fit
        return copied.set_params(**{name: alone[name] for name in alone if name in copied.get_params()})

    with progress_bar(f"{name}, estimate", folds) as draw, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the fit to all rows has already issued them
        splits = folds if dataset.folds is None else None
        entry = Learner(name, "", "", factory)
        comparison = compare(
            dataset, entry, n_folds=splits, random_state=seed, n_jobs=jobs, progress=lambda state: draw(state.share)
        )
    typer.echo(_estimate(comparison.means()[0]))


def _estimate(result: MeanResult) -> str:
    """Return one line with the cross-validated error."""
    if result.failure is not None:
        raise ValueError(f"the error cannot be estimated: {result.failure}")
    spread = "" if result.test_error_std is None else f" (standard deviation {result.test_error_std:.2f})"
    return (
        f"held out, {result.n_folds} fold(s): {result.test_error:.2f} % wrong{spread}, log loss {result.log_loss:.3f}"
    )
