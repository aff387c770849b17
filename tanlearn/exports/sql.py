"""Export of a fitted classifier as one SQL statement.

The statement is a chain of queries. They compute raw values, codes, marginalized values from the leaves of the tree to
its roots, the log joint of each class, and the requested results.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tanlearn._version import __version__
from tanlearn.exports.dialects import DIALECTS, Dialect
from tanlearn.exports.raw_columns import RawColumn, raw_columns
from tanlearn.exports.sql_codes import code_of, raw_value
from tanlearn.exports.sql_models import LeastBytes, ModelScores, Remedies, UsesOfNull
from tanlearn.files.description import feature_names
from tanlearn.models.calibration import Calibration

__all__ = ["OUTPUTS", "to_sql"]

#: Results by name, and the prefix of their columns, which is followed by the class.
OUTPUTS = {
    "prediction": "prediction",
    "probability": "probability_",
    "log_probability": "log_probability_",
    "log_joint": "log_joint_",
}


def to_sql(
    model: Any,
    table: str,
    *,
    dialect: str,
    schema: str | None = None,
    columns: Sequence[str] | None = None,
    keep: Sequence[str] = (),
    output: str | Sequence[str] = ("prediction", "probability"),
    missing: str = "marginalize",
    max_bytes: int | None = None,
) -> str:
    """Return one SQL SELECT statement that predicts the rows of a table in a database.

    The statement reads raw values. Its log joint equals ``predict_joint_log_proba`` up to rounding. It needs no other
    table, function or extension.

    Parameters
    ----------
    model : Classifier
        A fitted classifier with a single network, such as :class:`~tanlearn.NaiveBayesClassifier`,
        :class:`~tanlearn.TANClassifier` or :class:`~tanlearn.TermNetClassifier`; a
        :class:`~tanlearn.BoostedTermsClassifier`; or a small :class:`~tanlearn.BayesForestClassifier` or
        :class:`~tanlearn.BayesEnsembleClassifier`.
    table : str
        Name of the table or view in the database.
    dialect : {"sqlite", "duckdb", "postgresql"}
        Dialect of SQL. SQLite 3.35 or newer with mathematical functions (``exp``, ``ln``) is needed for probabilities
        and for ``missing="marginalize"`` in trees.
    schema : str, optional
        Name of the schema of the table.
    columns : sequence of str, optional
        Columns of the table, one per feature, in the order of the features. By default, the column names of ``fit``.
    keep : sequence of str, default=()
        Columns of the table that the statement returns before its results, such as a key.
    output : str or sequence of str, default=("prediction", "probability")
        Results to return. ``"prediction"`` is one column with the class. ``"probability"``, ``"log_probability"`` and
        ``"log_joint"`` have one column per class, such as ``probability_yes``. Forests, boosted terms and ensembles
        have no ``"log_joint"``.
    missing : {"marginalize", "null"}, default="marginalize"
        Treatment of rows with missing values. With "marginalize", they are treated exactly as in Python; each column of
        a network may depend on at most one other column. With "null", all results of a row are NULL if a missing column
        is a parent of another column or occurs in a boosted term. Other missing values of networks are marginalized
        exactly. This setting gives shorter statements for networks and boosted terms, and accepts all networks. For
        forests, both settings give the same statement, which treats missing values as in Python.
    max_bytes : int, optional
        Maximum size of the statement in bytes. By default 5,000,000, and 1,000,000 for DuckDB, which plans large
        statements slowly. A forest takes about 45 bytes per parameter (``n_parameters_``). Boosted terms take 70 to 120
        bytes per parameter, and 35 to 50 with ``missing="null"``.

    Returns
    -------
    str
        The statement, without a semicolon.

    Raises
    ------
    NotFittedError
        If the classifier is not fitted.
    TypeError
        If classifiers of this class cannot be exported.
    ValueError
        If a parameter is invalid, the columns have no names, values are encoded by your own class, the network is not
        a tree and ``missing="marginalize"``, a name is too long, or the statement is too large.

    Notes
    -----
    NULL is a missing value, and so is NaN if the database can store it. Unseen categories count as missing. If
    ``predict`` raises an error for a value, all results of its row are NULL. This happens for infinite numbers, text in
    a numeric column of SQLite, and unseen categories if the encoder has ``handle_unknown="error"``. All numbers are
    compared with cut points in double precision. Rows of probability zero in every class get the prediction of a row
    without values, as in Python, but without a warning.

    Examples
    --------
    >>> import sqlite3
    >>> import pandas as pd
    >>> import tanlearn
    >>> X = pd.DataFrame({"sky": ["sun", "rain", "rain", "sun"], "degrees": [29.0, 11.0, 13.0, 25.0]})
    >>> model = tanlearn.NaiveBayesClassifier().fit(X, ["beach", "home", "home", "beach"])
    >>> statement = tanlearn.to_sql(model, "days", dialect="sqlite", keep=["id"], output="prediction")
    >>> database = sqlite3.connect(":memory:")
    >>> _ = database.execute("CREATE TABLE days (id INTEGER, sky TEXT, degrees REAL)")
    >>> _ = database.execute("INSERT INTO days VALUES (1, 'sun', 30), (2, 'rain', NULL)")
    >>> database.execute(statement).fetchall()
    [(1, 'beach'), (2, 'home')]
    """
    check_is_fitted(model)
    chosen = _find_dialect(dialect)
    outputs = _read_outputs(output)
    max_bytes = chosen.most_bytes if max_bytes is None else max_bytes
    if missing not in ("marginalize", "null"):
        raise ValueError(f"missing must be 'marginalize' or 'null', got {missing!r}.")
    encoded = raw_columns(model.encoder_, feature_names(model))
    names = _names_in_table(model, columns)
    try:
        least_bytes = model.model_.write_to(LeastBytes())
    except NotImplementedError as error:
        raise TypeError(
            f"{type(model).__name__} cannot be exported to SQL. Fit a classifier with a single network, such as "
            f"NaiveBayesClassifier, TANClassifier or TermNetClassifier."
        ) from error
    if least_bytes > max_bytes:
        raise _too_large(f"at least {least_bytes:,}", model, encoded, missing, max_bytes)
    scores = model.model_.write_to(ModelScores(encoded, feature_names(model), chosen, missing == "marginalize"))
    if "log_joint" in outputs and not scores.has_log_joint:
        raise ValueError(
            f"output must not contain 'log_joint', because {type(model).__name__} has no log joint. Remove it."
        )
    chain = _Chain(chosen, _free_prefix(table))
    of_table = [f"t.{chosen.quote(name)}" for name in (*keep, *names)]
    kept = [f"k{i}" for i in range(len(keep))]
    features = [f"x{i}" for i in range(len(names))]
    raw = [raw_value(column, name, chosen) for column, name in zip(encoded, of_table[len(keep) :], strict=True)]
    place = chosen.quote(table) if schema is None else f"{chosen.quote(schema)}.{chosen.quote(table)}"
    chain.start(dict(zip([*kept, *features], [*of_table[: len(keep)], *raw], strict=True)), f"{place} AS t")
    codes = {name: code_of(column, name, chosen) for column, name in zip(encoded, features, strict=True)}
    chain.replace(codes)
    for added, dropped in scores.steps():
        chain.add(added, dropped)
    chain.add({f"j{y}": scores.log_joint(y) for y in range(scores.n_classes)}, chain.names[len(kept) :])
    results = _add_results(chain, model, scores.has_zeros, outputs)
    labels = [f"{name} AS {chosen.quote(title)}" for name, title in zip(kept, keep, strict=True)]
    labels += [f"{expression} AS {chosen.quote(title)}" for title, expression in results.items()]
    title = f"-- {type(model).__name__} of tanlearn {__version__}, for {chosen.title}\n"
    statement = title + chain.select(labels)
    size = len(statement.encode())
    if size > max_bytes:
        raise _too_large(f"{size:,}", model, encoded, missing, max_bytes)
    return statement


def _too_large(size: str, model: Any, columns: list[RawColumn], missing: str, max_bytes: int) -> ValueError:
    """Return the error for a statement that is too large, with remedies for this model."""
    own = model.model_
    shorter = "missing='null', " * (missing == "marginalize" and own.write_to(UsesOfNull(columns)))
    *first, last = own.write_to(Remedies())
    remedies = f"{', '.join(first)} or {last}" if first else last
    return ValueError(
        f"the statement needs {size} bytes, more than max_bytes={max_bytes:,}. Pass {shorter}a larger max_bytes, or "
        f"fit a smaller model: {remedies}."
    )


class _Chain:
    """Chain of queries, each of which adds columns to the previous query."""

    def __init__(self, dialect: Dialect, prefix: str) -> None:
        self._dialect, self._prefix = dialect, prefix
        self._queries: list[str] = []
        self.names: list[str] = []  # columns of the last query

    def start(self, columns: dict[str, str], place: str) -> None:
        """Append the query of the table."""
        self._append(columns, place)

    def replace(self, columns: dict[str, str]) -> None:
        """Append a query that replaces columns by expressions of the last query."""
        self._append({name: columns.get(name, name) for name in self.names}, self._last)

    def add(self, columns: dict[str, str], dropped: Sequence[str] = ()) -> None:
        """Append a query that adds columns, expressions of the last query, and drops others."""
        without = set(dropped)
        self._append({**{name: name for name in self.names if name not in without}, **columns}, self._last)

    def select(self, labels: Sequence[str]) -> str:
        """Return the statement, whose last query selects labels."""
        queries = ",\n".join(self._queries)
        return f"WITH {queries}\nSELECT {', '.join(labels)} FROM {self._last}"

    @property
    def _last(self) -> str:
        """Name of the last query."""
        return f"{self._prefix}{len(self._queries)}"

    def _append(self, columns: dict[str, str], place: str) -> None:
        """Append a query."""
        most = self._dialect.most_columns
        if most is not None and len(columns) > most:
            raise ValueError(
                f"{self._dialect.title} allows at most {most:,} columns in a query, but this network needs "
                f"{len(columns):,}. Pass missing='null', or fit with fewer columns."
            )
        self.names = list(columns)
        selected = [text if text == name else f"{text} AS {name}" for name, text in columns.items()]
        query = f"SELECT {', '.join(selected)} FROM {place}{self._dialect.fence}"
        self._queries.append(f"{self._prefix}{len(self._queries) + 1} AS (\n{query})")


def _add_results(chain: _Chain, model: Any, has_zeros: bool, outputs: list[str]) -> dict[str, str]:
    """Append the queries after the log joint ``j0``, ``j1``, .... Return the results by the names of their columns."""
    dialect, n_classes, calibration = chain._dialect, len(model.classes_), model.calibration_
    log_joint = [f"j{y}" for y in range(n_classes)]
    scores = log_joint
    if has_zeros:
        prior = model.model_.log_joint_without_features()
        chain.add({"j": dialect.maximum(log_joint)})
        is_impossible = f"CASE WHEN j = {dialect.number(-math.inf)} THEN"
        chain.add({f"r{y}": f"{is_impossible} {dialect.number(float(p))} ELSE j{y} END" for y, p in enumerate(prior)})
        scores = [f"r{y}" for y in range(n_classes)]
    shift = calibration.shifted(np.zeros((1, n_classes)))[0]
    if shift.any():
        shifted = zip(scores, shift.tolist(), strict=True)
        chain.add({f"s{y}": f"{one} + {dialect.number(own)}" for y, (one, own) in enumerate(shifted)})
        scores = [f"s{y}" for y in range(n_classes)]
    chain.add({"best": dialect.maximum(scores)})
    labels = model.classes_.tolist()
    found: dict[str, str] = {}
    posterior = [f"u{y} - u" for y in range(n_classes)]
    if {"probability", "log_probability"} & set(outputs):
        chain.add({f"u{y}": _scaled(f"best - {score}", calibration, dialect) for y, score in enumerate(scores)})
        total = dialect.total([dialect.exponential(f"u{y}") for y in range(n_classes)])
        chain.add({"u": f"ln({total})"})
    for name in outputs:
        if name == "prediction":
            branches = [
                f"WHEN {score} THEN {dialect.literal(label)}" for score, label in zip(scores, labels, strict=True)
            ]
            found[OUTPUTS[name]] = f"CASE best {' '.join(branches)} END"
            continue
        for y, label in enumerate(labels):
            values = {"log_joint": log_joint[y], "log_probability": posterior[y]}
            found[f"{OUTPUTS[name]}{label}"] = values.get(name) or _probability(posterior[y], dialect)
    return found


def _scaled(distance: str, calibration: Calibration, dialect: Dialect) -> str:
    """Return minus the calibrated distance of a class from the most probable one."""
    if calibration.power == 1:
        return f"-({distance}) / {dialect.number(calibration.temperature)}"
    log_unit = math.log(calibration.temperature) + (calibration.power - 1) * math.log(calibration.pivot)
    unit = math.exp(log_unit / calibration.power)
    return f"-power(({distance}) / {dialect.number(unit)}, {dialect.number(calibration.power)})"


def _probability(log_probability: str, dialect: Dialect) -> str:
    """Return the exponential of a log probability. PostgreSQL would raise an error for results that are too small."""
    return dialect.exponential(log_probability) if dialect.name == "postgresql" else f"exp({log_probability})"


def _find_dialect(dialect: str) -> Dialect:
    """Return a dialect by its name."""
    if dialect not in DIALECTS:
        raise ValueError(f"dialect must be one of {', '.join(map(repr, DIALECTS))}, got {dialect!r}.")
    return DIALECTS[dialect]


def _read_outputs(output: str | Sequence[str]) -> list[str]:
    """Return the names of the results."""
    outputs = [output] if isinstance(output, str) else list(output)
    wrong = [one for one in outputs if one not in OUTPUTS]
    if wrong or not outputs:
        shown = repr(wrong[0]) if wrong else "none"
        raise ValueError(f"output must contain names from {', '.join(map(repr, OUTPUTS))}, got {shown}.")
    return outputs


def _names_in_table(model: Any, columns: Sequence[str] | None) -> list[str]:
    """Return the columns of the table that contain the features."""
    n_features = model.n_features_in_
    if columns is None:
        if not hasattr(model, "feature_names_in_"):
            raise ValueError(
                f"SQL needs column names, but the data passed to fit had none. Pass columns=[...] with the "
                f"{n_features} columns of "
                f"the table, in the order of fit."
            )
        return [str(name) for name in model.feature_names_in_]
    if isinstance(columns, str) or len(columns) != n_features:
        got = repr(columns) if isinstance(columns, str) else f"{len(columns)} names"
        raise ValueError(f"columns must contain {n_features} names, in the order of the columns of fit, got {got}.")
    return list(columns)


def _free_prefix(table: str) -> str:
    """Return a prefix with which names of queries differ from the name of the table."""
    prefix = "step"
    while table.lower().startswith(prefix):
        prefix += "_"
    return prefix
