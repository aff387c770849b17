"""``tanlearn counts`` and ``tanlearn merge``: counts and summaries of tables, without their rows."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tanlearn.cli.chunks import ChunkSource, note_string_columns
from tanlearn.cli.messages import listed, note, plain_errors
from tanlearn.cli.models import ModelColumns, ModelFile
from tanlearn.cli.outputs import check_output, describe_classes, file_size
from tanlearn.cli.progress import progress_bar
from tanlearn.cli.reading import Reading, check_exists, with_reading_options
from tanlearn.cli.tables import DropOption, JobsOption, feature_columns, is_table, named_columns
from tanlearn.files.archive import kind_of_file
from tanlearn.files.regular_files import COUNTS, MODEL, SUMMARY, Kind
from tanlearn.sources.file_formats import OUTPUTS, joined_by_or
from tanlearn.sources.table_files import TableFile

if TYPE_CHECKING:
    from tanlearn import TableCounts
    from tanlearn.encoding.table_encoder import TableEncoder


__all__ = ["count_like", "counts", "merge"]

#: Maximum number of rows in memory. Results do not depend on this number.
_CHUNK_ROWS = 200_000


@with_reading_options
def counts(
    table: Annotated[str, typer.Argument(metavar="TABLE", help=f"A table: {', '.join(OUTPUTS)}, or - for a pipe.")],
    output: Annotated[str, typer.Option("--output", "-o", help="File to write, such as shop.counts or shop.summary.")],
    target: Annotated[str | None, typer.Option("--target", "-t", help="Column with the classes.")] = None,
    like: Annotated[
        str | None,
        typer.Option(
            help="Use the categories, cut points and classes of this file (a summary, counts, or a model).",
            show_default=False,
        ),
    ] = None,
    summary: Annotated[
        bool,
        typer.Option(
            "--summary",
            help="Instead of counts, write a summary, from which several tables get common categories and cut points.",
        ),
    ] = False,
    single: Annotated[
        bool,
        typer.Option(
            "--single", help="Count single values, not pairs. The file is much smaller, and sufficient for naive Bayes."
        ),
    ] = False,
    drop: DropOption = [],  # noqa: B006 - Typer makes a new list
    text: Annotated[
        list[str],
        typer.Option("--text", help="Columns to read as text, even if all are numbers; comma-separated or repeated."),
    ] = [],  # noqa: B006
    chunk_rows: Annotated[int, typer.Option(min=1, help="Maximum number of rows in memory.")] = _CHUNK_ROWS,
    jobs: JobsOption = -1,
    *,
    reading: Reading,
) -> None:
    """Count how often values and pairs of values occur in each class. tanlearn fit accepts counts instead of a table.

    Counts of several tables can be added if they use the same categories and cut points. The option
    --like copies them from the counts of one table, or from the merged summaries of all tables:

    \b
    tanlearn counts a.csv -t late --summary -o a.summary           # and b.csv
    tanlearn merge a.summary b.summary -o all.summary
    tanlearn counts a.csv -t late --like all.summary -o a.counts   # and b.csv
    tanlearn merge a.counts b.counts -o all.counts
    tanlearn fit all.counts -o late.tan
    """  # noqa: D301 - Click keeps the lines after a backspace character
    from joblib import parallel_config

    with plain_errors(), parallel_config("threading", n_jobs=jobs):
        check_output(output, table, like)
        _check_options(table, like, summary, single, drop, text)
        if like is not None and kind_of_file(like, MODEL) is MODEL:
            reading = reading.as_fitted(ModelFile(like).notation)
        with reading.open(table) as file:
            started = time.perf_counter()
            if summary:
                n_samples, n_columns, classes, content = _summarize(file, target, drop, text, chunk_rows, output)
            else:
                n_samples, table_counts = _count(file, target, drop, text, chunk_rows, like, not single)
                table_counts.save(output)
                n_columns, classes = len(table_counts.encoder.n_states_), table_counts.classes
                content = table_counts.counts.describe()
            seconds = time.perf_counter() - started
        _print_sum(Path(file.name).stem, n_samples, n_columns, classes, f"; {seconds:.1f} s")
        typer.echo(f"{content} in {output} ({file_size(output)})")


def merge(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Files written by tanlearn counts.")],
    output: Annotated[str, typer.Option("--output", "-o", help="File to write.")],
) -> None:
    """Add counts of several tables, or merge their summaries.

    Counts can be added if they use the same categories, cut points and classes.
    """
    with plain_errors():
        check_output(output, *files)
        kinds = {path: _kind_of(path, COUNTS, SUMMARY) for path in files}
        first = files[0]
        other = next((path for path in files if kinds[path] != kinds[first]), None)
        if other is not None:
            raise ValueError(
                f"only files of the same kind can be merged, but {first} is a {kinds[first].name} and {other} a "
                f"{kinds[other].name}. Leave one of them out."
            )
        if kinds[first] is COUNTS:
            _merge_counts(files, output)
        else:
            _merge_summaries(files, output)


def _check_options(table: str, like: str | None, summary: bool, single: bool, drop: list[str], text: list[str]) -> None:
    """Raise an error for contradictory options, or for an input that is not a table."""
    if not is_table(table):
        raise ValueError(f"{table} must be a data file. Name a data file, or - for a pipe.")
    kind = kind_of_file(table, COUNTS, SUMMARY, MODEL)
    if kind is not None:
        raise ValueError(
            f"{table} is a tanlearn {kind.name}, not a data file. Name a data file, such as a .csv or .parquet file."
        )
    settled = [name for name, given in (("--drop", drop), ("--text", text), ("--summary", summary)) if given]
    if like is not None and settled:
        raise ValueError(
            f"{settled[0]} has no effect with --like, because {like} determines columns and "
            f"categories. Leave out {settled[0]}."
        )
    if summary and single:
        raise ValueError(
            "--single has no effect with --summary, because a summary contains no counts. Leave out --single."
        )


def _kind_of(path: str, *kinds: Kind) -> Kind:
    """Return the kind of a file, or raise an error for other kinds."""
    check_exists(path)
    kind = kind_of_file(path, *kinds)
    if kind is None:
        known = joined_by_or([f"a {one.name}" for one in kinds])
        raise ValueError(f"{path} must be {known}. Create counts or a summary with tanlearn counts.")
    return kind


def _summarize(
    file: TableFile, target: str | None, drop: list[str], text: list[str], n_rows: int, output: str
) -> tuple[int, int, Any, str]:
    """Write the summary of a table. Return the numbers of rows and columns, the classes, and a description."""
    from tanlearn.estimators.row_sources import BatchSource
    from tanlearn.files.summaries import save_summary
    from tanlearn.sources.batches import open_batches

    names = feature_columns(file, target, drop)
    with progress_bar(f"summarizing {file.name}") as draw:
        source = ChunkSource(
            file, str(target), names, n_rows, draw, string_columns=named_columns(text, file), is_part=True
        )
        found = BatchSource(open_batches(source)).summarize(exact=False)
    save_summary(found, names, output)
    return source.n_samples, len(names), found.classes_, "values"


def _count(
    file: TableFile, target: str | None, drop: list[str], text: list[str], n_rows: int, like: str | None, pairs: bool
) -> tuple[int, TableCounts]:
    """Count the rows of a table. Return the number of rows and the counts."""
    from tanlearn import TableCounts

    names = feature_columns(file, target, drop)
    title = f"counting {file.name}"
    if like is None:
        with progress_bar(title) as draw:
            source = ChunkSource(file, str(target), names, n_rows, draw, string_columns=named_columns(text, file))
            found = TableCounts.of_source(source, pairs=pairs)
        note_string_columns(names, found.encoder)
        return source.n_samples, found
    return count_like(file, str(target), _like(like, pairs), like, n_rows)


def count_like(
    file: TableFile, target: str, template: TableCounts, origin: str, n_rows: int
) -> tuple[int, TableCounts]:
    """Count the rows of a table with the columns of empty counts. Return the number of rows and the counts.

    ``origin`` is the name of the file with the empty counts; messages contain it.
    """
    from tanlearn import TableCounts

    title = f"counting {file.name}"
    known = ModelColumns(origin, template.encoder.feature_names_in_.tolist(), template.encoder)
    columns = known.columns_of(file, [target])
    string_columns = [*known.string_columns, *([target] if isinstance(template.classes[0], str) else [])]
    unknown = _UnknownValues(known, template.encoder)

    def prepare(frame: Any, first_row: Any) -> Any:
        return known.prepare(frame, file.name, first_row)

    with progress_bar(title) as draw, warnings.catch_warnings():
        # unknown.print_notes() prints these values with their numbers.
        warnings.filterwarnings("ignore", ".* contain categories that were not seen when", UserWarning)
        warnings.filterwarnings("ignore", "no value in .* was seen in fit", UserWarning)
        source = ChunkSource(
            file, target, columns, n_rows, draw, string_columns=string_columns, prepare=prepare, is_part=True
        )
        found = TableCounts.of_source(map(unknown.record, source), like=template)
    unknown.print_notes()
    return source.n_samples, found


def _like(path: str, pairs: bool) -> TableCounts:
    """Return empty counts with the categories and cut points of a file."""
    from tanlearn import TableCounts
    from tanlearn.files.summaries import load_summary

    kind = _kind_of(path, SUMMARY, COUNTS, MODEL)
    if kind is SUMMARY:
        summary, names = load_summary(path)
        return TableCounts.of_summary(summary, names, pairs=pairs)
    if kind is COUNTS:
        table = TableCounts.load(path)
    else:
        model = ModelFile(path).classifier
        table = TableCounts.of_encoder(model.encoder_, model.classes_, pairs=pairs)
    if table.names is None:
        raise ValueError(f"{path} has no column names, which are needed to match the columns of a data file.")
    return table.empty() if pairs else TableCounts.of_encoder(table.encoder, table.classes, pairs=False)


class _UnknownValues:
    """Number and examples of values outside the known categories, for each column."""

    def __init__(self, known: ModelColumns, encoder: TableEncoder) -> None:
        pairs = zip(known.names, encoder.categories_, strict=True)
        self._categories = {name: categories for name, categories in pairs if categories is not None}
        self._numbers: dict[str, int] = {}
        self._examples: dict[str, set[Any]] = {}

    def record(self, rows: tuple[Any, Any]) -> tuple[Any, Any]:
        """Count the unknown values of a chunk, and return the chunk."""
        frame, _ = rows
        for name, categories in self._categories.items():
            values = frame[name].dropna()
            unknown = values[~values.isin(categories.tolist())]
            if len(unknown):
                self._numbers[name] = self._numbers.get(name, 0) + len(unknown)
                self._examples.setdefault(name, set()).update(unknown.unique()[:10].tolist())
        return rows

    def print_notes(self) -> None:
        """Print the number of unknown values per column, with examples."""
        for name, number in self._numbers.items():
            examples = listed(sorted(map(repr, self._examples[name])), 5, are_quoted=True)
            note(f"{number:,} values of {name!r} are unknown categories and count as missing: {examples}.")


def _merge_counts(files: list[str], output: str) -> None:
    """Write the sum of counts files."""
    from tanlearn import TableCounts

    total = TableCounts.load(files[0])
    for number, path in enumerate(files[1:], 1):
        other = TableCounts.load(path)
        try:
            total.merge(other)
        except (TypeError, ValueError) as error:
            before = listed(files[:number], 3)
            raise type(error)(f"{path} (there) cannot be added to {before} (here): {error}") from error
    total.save(output)
    n_rows, n_columns = total.counts.class_counts.sum(), len(total.encoder.n_states_)
    _print_sum(f"{len(files):,} files", n_rows, n_columns, total.classes)
    typer.echo(f"{total.counts.describe()} in {output} ({file_size(output)})")


def _merge_summaries(files: list[str], output: str) -> None:
    """Write the merged summary of summary files."""
    from tanlearn.files.summaries import load_summary, save_summary

    total, names = load_summary(files[0])
    for number, path in enumerate(files[1:], 1):
        other, own = load_summary(path)
        if own != names:
            raise ValueError(
                f"summaries must have the same columns, but {path} has {listed(own)}, and {files[0]} has "
                f"{listed(names)}. Summarize the same columns in the same order; use --drop to leave columns out."
            )
        try:
            total.merge(other)
        except (TypeError, ValueError) as error:
            remedy = "To read a column as text, use tanlearn counts --summary --text."
            raise type(error)(f"{path} cannot be merged with {listed(files[:number], 3)}: {error} {remedy}") from error
    save_summary(total, names, output)
    _print_sum(f"{len(files):,} files", total.n_samples, len(names), total.classes_)
    typer.echo(f"values in {output} ({file_size(output)})")


def _print_sum(name: str, n_rows: float, n_columns: int, classes: Any, rest: str = "") -> None:
    """Print the numbers of rows and columns, and the classes."""
    typer.echo(f"{name}: {n_rows:,} rows, {n_columns:,} columns, {describe_classes(classes)}{rest}")
