"""``tanlearn explain``, ``describe`` and ``export-c``: explanations, summaries and C code of a model."""

import json
import math
import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tanlearn._typing import FloatArray
from tanlearn.cli.given_values import frame_of, given_values, note_unknown, plain
from tanlearn.cli.messages import listed, nearest, note, plain_errors, quoted
from tanlearn.cli.models import ModelArgument, ModelFile
from tanlearn.cli.outputs import check_output
from tanlearn.cli.reading import Reading, check_exists, with_reading_options
from tanlearn.sources.file_formats import joined_by_or
from tanlearn.sources.file_source import with_class

__all__ = ["describe", "explain", "export_c"]

_HEADERS = (".h", ".hh", ".hpp")
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class NumberType(StrEnum):
    """Values of ``--type``."""

    DOUBLE = "double"
    FLOAT = "float"
    INT32 = "int32"
    INT16 = "int16"


@with_reading_options
def explain(
    model: ModelArgument,
    row: Annotated[
        list[str],
        typer.Argument(
            metavar="ROW",
            help="FILE:NUMBER, where 1 is the first row, a JSON object such as '{\"age\": 31}', or age=31 town=Graz.",
        ),
    ],
    against: Annotated[
        str | None, typer.Option(help="Class to compare with; by default, the most probable other class.")
    ] = None,
    as_json: JsonOption = False,
    *,
    reading: Reading,
) -> None:
    """Explain the predicted class of a row by the contribution of each column."""
    with plain_errors():
        file = ModelFile(model)
        if not hasattr(file.classifier, "explain"):
            raise ValueError(
                f"{model} contains a {type(file.classifier).__name__}, which cannot be explained, because its "
                f"predictions are not sums over columns."
            )
        shown, name, number = _row(file, row, reading)
        frame = file.prepare(shown, name, number)
        note_unknown(file, frame)
        explanation = _explain_row(file, frame, shown, against)
        if as_json:
            typer.echo(json.dumps(explanation, indent=2))
        else:
            _print_explanation(explanation)


def _row(file: ModelFile, words: list[str], reading: Reading) -> tuple[Any, str, int]:
    """Return the requested row as a frame with one row, the name of its source, and its number in the source."""
    found = re.fullmatch(r"(.+):(\d+)", words[0], re.DOTALL) if len(words) == 1 else None
    is_json = len(words) == 1 and words[0].lstrip().startswith("{")
    is_pair = words[0].partition("=")[0].strip() in file.names and "=" in words[0]  # such as time=12:30
    if found and not is_json and not is_pair:
        number, n_before = int(found[2]), 0
        with reading.as_fitted(file.notation).open(found[1]) as table:
            for frame in table.batches(
                100_000, file.columns_of(table, table.columns), string_columns=file.string_columns
            ):
                if 1 <= number <= n_before + len(frame):
                    return frame.iloc[[number - n_before - 1]], table.name, number
                n_before += len(frame)
            raise ValueError(
                f"the row number must be from 1 to {n_before:,}, the rows of {table.name}, got {number:,}."
            )
    given = given_values(file, words)
    absent = [name for name in file.names if given.get(name) is None]
    if absent:
        how = "marginalized" if hasattr(file.classifier, "tables_") else "treated as missing"
        note(f"not given, so {how}: {listed(absent)}.")
    return frame_of(file, given), "the row", 1


def _explain_row(file: ModelFile, frame: Any, shown: Any, against: str | None) -> dict[str, Any]:
    """Return a dictionary with the prediction and the contributions of the columns."""
    classifier = file.classifier
    labels = [str(label) for label in classifier.classes_.tolist()]
    _refuse_impossible(file, classifier.explain(frame)[0])
    p = classifier.predict_proba(frame)[0]
    predicted = labels.index(str(classifier.predict(frame)[0]))
    if against is None:
        other = int(np.argsort(-np.delete(p, predicted), kind="stable")[0])
        other += other >= predicted
    elif against in labels and against != labels[predicted]:
        other = labels.index(against)
    else:
        others = [label for label in labels if label != labels[predicted]]
        raise ValueError(f"--against must be a class other than the predicted one: {listed(others)}. Got {against!r}.")
    shares = classifier.explain(frame, against=classifier.classes_[other])[0, :, predicted]
    columns = [
        {"column": name, "value": plain(shown[name].iloc[0]), "log_odds": float(share)}
        for name, share in zip(file.names, shares, strict=False)
    ]
    return {
        "prediction": labels[predicted],
        "probabilities": dict(zip(labels, p.tolist(), strict=True)),
        "against": labels[other],
        "columns": sorted(columns, key=lambda one: -abs(one["log_odds"])),
        "prior": float(shares[-1]),
        "total": float(shares.sum()),
    }


def _refuse_impossible(file: ModelFile, contributions: FloatArray) -> None:
    """Raise an error for a row of probability zero in every class, which cannot be explained."""
    from tanlearn.estimators.impossible_rows import is_impossible

    if is_impossible(contributions.sum(axis=0, keepdims=True))[0]:
        names = [*file.names, "(class frequencies)"]
        zeros = [name for name, own in zip(names, contributions, strict=True) if np.isneginf(own).any()]
        raise ValueError(
            "the row cannot be explained, because its probability is zero for every class. (It is predicted like a "
            f"row without values.) Zeros come from: {listed(zeros)}. Correct these values, or leave them out."
        )


def _print_explanation(explanation: dict[str, Any]) -> None:
    """Print a prediction and the contributions of the columns."""
    console = Console()
    ranked = sorted(explanation["probabilities"].items(), key=lambda pair: -pair[1])
    likely = ", ".join(f"{label} {p:.1%}" for label, p in ranked[:5]) + (", ..." if len(ranked) > 5 else "")
    console.print(Text(f"{explanation['prediction']}   ({likely})"), style="bold", soft_wrap=True)
    table = Table(box=box.SIMPLE, pad_edge=False)
    for header in ("column", "value"):
        table.add_column(header)
    table.add_column("log-odds", justify="right")
    table.add_column(Text(f"for {explanation['prediction']}, against {explanation['against']}"))
    rows = [(one["column"], one["value"], _rounded(one["log_odds"])) for one in explanation["columns"]]
    rows.append(("(class frequencies)", "", _rounded(explanation["prior"])))
    most = max((abs(share) for *_, share in rows if math.isfinite(share)), default=0) or 1
    for name, value, share in rows:
        bar = ("+" if share > 0 else "-") * round(20 * min(abs(share) / most, 1))  # full length if infinite
        cell = "(missing)" if value is None else str(value)
        table.add_row(Text(str(name)), Text(cell), f"{share:+.2f}", Text(bar, style="green" if share > 0 else "red"))
    table.add_row("sum", "", f"{_rounded(explanation['total']):+.2f}", "")
    console.print(table)


def _rounded(share: float) -> float:
    """Round a contribution to two decimals, without a negative zero."""
    return round(share, 2) + 0.0


def describe(model: ModelArgument, as_json: JsonOption = False) -> None:
    """Describe a model: its learner, its classes, and the kind, values and parents of each column."""
    with plain_errors():
        file = ModelFile(model)
        if as_json:
            if not hasattr(file.classifier, "describe"):
                raise ValueError(
                    f"--json needs a single network, but {model} contains a {type(file.classifier).__name__}. Leave "
                    f"out --json."
                )
            typer.echo(json.dumps(file.classifier.describe(), indent=2))
            return
        _print_model(file)


def _print_model(file: ModelFile) -> None:
    """Print a description of a model."""
    classifier, console = file.classifier, Console()
    labels = [quoted(str(label)) for label in classifier.classes_.tolist()]
    console.print(Text(f"{file.path}: {type(classifier).__name__}"), style="bold", soft_wrap=True)
    tables, structure = getattr(classifier, "tables_", None), getattr(classifier, "structure_", None)
    if tables is not None:
        shares = np.exp(tables.log_prior)
        labels = [f"{label} {p:.1%}" for label, p in zip(labels, shares / shares.sum(), strict=True)]
    console.print(Text(f"classes     {listed(labels, 10, are_quoted=True)}"), soft_wrap=True)
    console.print(Text(f"parameters  {classifier.n_parameters_:,}"), soft_wrap=True)
    for title, content in classifier._summary().items():
        console.print(Text(f"{title:12}{content}"), soft_wrap=True)
    for title, content in _metadata_lines(classifier.metadata_).items():
        console.print(Text(f"{title:12}{content}"), soft_wrap=True)
    table = Table("column", "kind", "states", "values", "depends on", box=box.SIMPLE, pad_edge=False)
    cuts = iter(getattr(classifier.encoder_.discretizer_, "cut_points_", ()))
    for i, (name, known) in enumerate(zip(file.names, classifier.encoder_.categories_, strict=True)):
        if known is None:
            kind, values = "continuous", [f"{cut:g}" for cut in next(cuts)]
            shown = f"cut points {listed(values, 5)}" if values else "one interval: ignored"
        else:
            kind, shown = "categorical", listed([str(one) for one in known.tolist()], 5)
        if classifier.encoder_.has_missing_category_[i]:
            shown += "; missing"
        parents = [] if structure is None else [quoted(file.names[j]) for j in structure.parents[i].tolist() if j >= 0]
        # The class is a parent of all columns. In combined networks, any other column may be a parent.
        depends = ", ".join(["class", *parents]) if structure is not None else "class and other columns"
        table.add_row(Text(name), kind, str(classifier.encoder_.n_states_[i]), Text(shown), Text(depends))
    console.print(table)


def _metadata_lines(metadata: dict[str, Any] | None) -> dict[str, str]:
    """Return the metadata of a model as a dictionary from titles to lines, which is empty without metadata."""
    if metadata is None:
        return {}
    rows = "an unknown number of rows" if metadata["rows"] is None else f"{metadata['rows']:,} rows"
    versions = ", ".join(f"{name} {version}" for name, version in metadata["versions"].items())
    saved = {"saved": f"{metadata['saved']}, from {rows}", "versions": versions}
    return saved | {str(key): str(value) for key, value in metadata["user"].items()}


@with_reading_options
def export_c(
    model: ModelArgument,
    output: Annotated[str, typer.Option("--output", "-o", help="Header file to write, such as cars.h.")],
    bits: Annotated[
        str | None,
        typer.Option(
            help="Integer and fraction bits of rounded numbers, such as 3,1, or with --rows and --target their sum. "
            "For boosted terms and forests, one number of bits, by default 8."
        ),
    ] = None,
    rows: Annotated[
        str | None,
        typer.Option(
            help="Table for a test program that compares C with Python. The program is written next to the header."
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", "-t", help="Column with the classes in --rows, to select integer and fraction bits."),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Prefix of names in C; by default, the file name.")] = None,
    number_type: Annotated[NumberType, typer.Option("--type", help="C type of numbers in rows.")] = NumberType.DOUBLE,
    *,
    reading: Reading,
) -> None:
    """Export a model with CPTs of a few bits, boosted terms or a forest as a C99 header."""
    with plain_errors():
        for path in (output, _program(output)) if rows is not None else (output,):
            check_output(path, model, rows)
        if Path(output).suffix.lower() not in _HEADERS:
            raise ValueError(f"--output must end in {joined_by_or(_HEADERS)}, got {output!r}.")
        if target is not None and rows is None:
            raise ValueError(
                "--target needs --rows, because it names a column of these rows. Set both, or leave out --target."
            )
        wanted_bits = None if bits is None else _bits(bits)
        stem = Path(output).stem
        if name is None and not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,30}", stem):
            raise ValueError(
                f"the prefix must be a C identifier (a letter, a to z or A to Z, then at most 30 letters, digits or "
                f"_), got {stem!r}. Set one with --name."
            )
        if rows is not None:
            check_exists(rows)
        file = ModelFile(model)
        if not hasattr(file.classifier, "export_c"):
            raise ValueError(
                f"{model} contains a {type(file.classifier).__name__}, which cannot be exported to C. Fit a single "
                f'network, boosted terms or a forest, for example with: tanlearn fit ... --learner "TAN Subset HYB". '
                f"Ensembles can be exported with tanlearn export-js and export-sql."
            )
        is_network = hasattr(file.classifier, "tables_")
        if is_network and isinstance(wanted_bits, int) and target is None:
            raise ValueError(
                f"--bits {bits} is only the total. Set integer and fraction bits, for example --bits 3,1, or add "
                f"--rows and --target to select the split with the fewest errors on these rows."
            )
        X = y = None
        if rows is not None:
            with reading.as_fitted(file.notation).open(rows) as table:
                wanted = file.columns_of(table)
                if target is not None and target not in table.columns:
                    raise ValueError(f"{table.name}: there is no column {target!r}.{nearest(target, table.columns)}")
                frame = table.read(
                    [*wanted, *([target] if target else [])], string_columns=file.string_columns, target=target
                )
            if target:
                frame, _ = with_class(frame, target, rows)
                y = frame[target].to_numpy()
            X = file.prepare(frame[wanted], rows)
        classifier = file.classifier
        options = {"name": name, "number_type": str(number_type), "test_rows": X}
        if not is_network:
            wanted_bits = 8 if wanted_bits is None else wanted_bits
            classifier.export_c(output, bits=wanted_bits, **options)
            size = f"integers of {wanted_bits} bits"
        else:
            if wanted_bits is not None:
                classifier = classifier.with_bits(wanted_bits, X, y)
            elif classifier.tables_.bits is None:
                raise ValueError(
                    f"C code needs integers, but the CPTs of {model} are not rounded. Set, for example, --bits 3,1."
                )
            classifier.export_c(output, **options)
            size = f"{classifier.size_bits_ / 8:,.0f} bytes of tables"
        also = f", and {_program(output)}" if rows else ""
        typer.echo(f"{output}: {size}{also}")


def _program(output: str) -> str:
    """Return the path of the test program for a header."""
    return str(Path(output).with_name(f"{Path(output).stem}_test.c"))


def _bits(text: str) -> int | tuple[int, int]:
    """Parse ``--bits``: a sum of bits, or integer and fraction bits."""
    numbers = text.split(",")
    try:
        if len(numbers) == 1:
            return int(numbers[0])
        before, after = map(int, numbers)
    except ValueError:
        raise ValueError(f"--bits must be two numbers, such as 3,1, or their sum, got {text!r}.") from None
    return before, after
