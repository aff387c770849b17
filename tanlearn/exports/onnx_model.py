"""Export of a fitted classifier as an ONNX model, which predicts raw values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tanlearn._version import __version__
from tanlearn.exports.onnx_forest import add_forest, merged_codes
from tanlearn.exports.onnx_graph import OUTPUTS, Graph
from tanlearn.exports.onnx_network import NetworkNodes
from tanlearn.exports.onnx_terms import add_terms
from tanlearn.exports.raw_columns import RawColumn, raw_columns
from tanlearn.files.description import feature_names
from tanlearn.forest.ensemble import Ensemble
from tanlearn.forest.forest import Forest
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.boosted_terms import BoostedTerms
from tanlearn.models.calibration import Calibration, EvidenceCalibration
from tanlearn.models.term_tables import TermTables

__all__ = ["to_onnx"]

_LABEL, _PROBABILITY, _LOG_JOINT = OUTPUTS
#: Largest file of a model, a limit of its format.
_MOST_BYTES = 2_000_000_000


def to_onnx(model: Any, *, max_bytes: int = 200_000_000) -> Any:
    """Return an ONNX model that predicts raw values.

    Parameters
    ----------
    model : Classifier
        A fitted classifier with a single network, a :class:`~tanlearn.BayesForestClassifier`, a
        :class:`~tanlearn.BoostedTermsClassifier` or a :class:`~tanlearn.BayesEnsembleClassifier`.
    max_bytes : int, default=200_000_000
        Maximum size of the constants of the model in bytes, at most 2,000,000,000. Models of forests can have many
        megabytes.

    Returns
    -------
    onnx.ModelProto
        The model. It has one input of shape (n_samples, 1) for each column, with the name of the column: float64 for
        numbers and booleans, strings for strings. Its outputs are ``output_label`` (n_samples,) and
        ``output_probability`` (n_samples, n_classes), float64. A single network also has the output
        ``output_log_joint`` (n_samples, n_classes), float64.

    Raises
    ------
    NotFittedError
        If the classifier is not fitted.
    ImportError
        If the package ``onnx`` is not installed.
    TypeError
        If the classifier is of a kind that cannot be exported.
    ValueError
        If probabilities of a network are 0, its structure has a cycle, its columns depend on each other so much that
        missing values cannot be marginalized in 16 MiB per row, the model is too large, values are encoded by your own
        class, the encoder has ``handle_unknown="error"``, a column has the name of an output, or the empty string is a
        category.

    Notes
    -----
    NaN and the empty string are missing values, which are treated as in Python: single networks marginalize them
    exactly. Unseen categories count as missing. Infinite numbers, which ``predict`` refuses, belong to the outermost
    intervals. Results equal the results of Python up to rounding.

    A network marginalizes missing values in a fixed order of the columns. Each row with a missing value takes 8 bytes
    for each class and each combination of values of the columns that are summed together: in a tree, a column and its
    parent.

    Examples
    --------
    >>> import pandas as pd
    >>> import tanlearn
    >>> X = pd.DataFrame({"sky": ["sun", "rain", "rain", "sun"], "degrees": [29.0, 11.0, 13.0, 25.0]})
    >>> model = tanlearn.NaiveBayesClassifier().fit(X, ["beach", "home", "home", "beach"])
    >>> exported = tanlearn.to_onnx(model)  # doctest: +SKIP
    >>> _ = Path("beach.onnx").write_bytes(exported.SerializeToString())  # doctest: +SKIP
    """
    check_is_fitted(model)
    own = model.model_
    if type(own) not in (BayesNet, Forest, BoostedTerms, Ensemble):
        raise TypeError(
            f"{type(model).__name__} cannot be exported to ONNX. Fit a classifier with a single network, a "
            f"BayesForestClassifier, a BoostedTermsClassifier or a BayesEnsembleClassifier."
        )
    if not 0 < max_bytes <= _MOST_BYTES:
        raise ValueError(f"max_bytes must be from 1 to {_MOST_BYTES:,}, the limit of ONNX files; got {max_bytes:,}.")
    try:
        import onnx
    except ModuleNotFoundError as error:
        raise ImportError('to_onnx needs the package onnx. Install it with: pip install "tanlearn[onnx]"') from error
    columns = raw_columns(model.encoder_, feature_names(model))
    _check_columns(columns)
    _check_size(_least_bytes(own), max_bytes)
    graph = Graph(onnx)
    n_states = model.encoder_.n_states_.tolist()
    codes = [graph.code(column, n) for column, n in zip(columns, n_states, strict=True)]
    scores = _add_scores(graph, own, columns, codes)
    if isinstance(own, BayesNet):
        scores = graph.identity(scores, _LOG_JOINT)
    if isinstance(model.calibration_, EvidenceCalibration):
        scores = graph.add("Add", [scores, graph.constant(np.array(model.calibration_.prior_shift))])
    best = graph.add("ArgMax", [scores], axis=1, keepdims=0)
    labels = model.classes_
    labels = labels.astype(object if labels.dtype.kind in "OUS" else labels.dtype)
    graph.add("Gather", [graph.constant(labels), best], output=_LABEL)
    graph.add("Exp", [_log_posterior(graph, scores, model.calibration_)], output=_PROBABILITY)
    _check_size(graph.n_bytes, max_bytes)
    title = f"{type(model).__name__} of tanlearn {__version__}"
    return graph.model(columns, labels, title, has_log_joint=isinstance(own, BayesNet))


def _check_columns(columns: Sequence[RawColumn]) -> None:
    """Raise ValueError for columns that cannot be exported."""
    for column in columns:
        if column.name in OUTPUTS:
            raise ValueError(f"a column cannot be called {column.name!r}, the name of an output. Rename it before fit.")
        if column.refuses_unseen:
            raise ValueError(
                "ONNX cannot raise an error for an unseen category. Fit with TableEncoder(handle_unknown='missing')."
            )
        if "" in (column.categories or ()):
            raise ValueError(
                f"column {column.name!r} has the empty string as a category, which is a missing value in ONNX. Replace "
                f"it before fit."
            )


def _check_network(network: BayesNet) -> None:
    """Raise ValueError for networks that cannot be exported."""
    if not network.structure.is_acyclic:
        raise ValueError("the structure has a cycle, and such networks cannot be exported to ONNX. Use to_javascript.")
    tables = network.tables
    if tables.is_dense and np.isneginf(tables.cells[tables.layout.n_classes :]).any():
        raise ValueError("CPTs contain probabilities of 0, which cannot be exported to ONNX. Fit with smoothing.")


def _least_bytes(model: Any) -> int:
    """Return a lower bound of the size of the constants, which is known before any is computed."""
    if isinstance(model, Ensemble):
        parts = zip(model.weights.tolist(), (model.forest, model.network, model.boosting), strict=True)
        return sum(_least_bytes(part) for weight, part in parts if weight)
    if isinstance(model, Forest):
        return 4 * model.n_parameters
    if isinstance(model, BayesNet) and not isinstance(model.tables, TermTables):
        return 8 * int(model.tables.layout.sizes().sum())
    return 0


def _check_size(n_bytes: int, max_bytes: int) -> None:
    """Raise ValueError if constants are too large."""
    if n_bytes > max_bytes:
        raise ValueError(
            f"the constants of the ONNX model have at least {n_bytes:,} bytes, more than max_bytes={max_bytes:,}. Pass "
            f"a larger max_bytes, or fit a smaller model: fewer n_estimators of a forest, fewer max_terms of boosted "
            f"terms, or fewer parents per column of a network."
        )


def _add_scores(graph: Graph, model: Any, columns: Sequence[RawColumn], codes: Sequence[str]) -> str:
    """Append the scores of the classes by a model, (n, C)."""
    if isinstance(model, BayesNet):
        _check_network(model)
        return NetworkNodes(graph, model, columns).log_joint(codes)
    matrix = graph.columns(codes)
    if isinstance(model, Forest):
        return add_forest(graph, model, matrix)
    if isinstance(model, BoostedTerms):
        return add_terms(graph, model, matrix)
    of_forest, of_network, of_terms = model.weights.tolist()
    parts = []
    if of_forest:
        parts.append((of_forest, add_forest(graph, model.forest, matrix)))
    if of_network:
        _check_network(model.network)
        merged = graph.split(merged_codes(graph, model.discretization, matrix), len(columns))
        scores = NetworkNodes(graph, model.network, columns).log_joint(merged)
        parts.append((of_network, graph.log_softmax(scores)))
    if of_terms:
        parts.append((of_terms, graph.log_softmax(add_terms(graph, model.boosting, matrix))))
    weighted = [graph.add("Mul", [scores, graph.constant(np.array(weight))]) for weight, scores in parts]
    pooled = graph.log_softmax(graph.add("Sum", weighted))
    return graph.add("Add", [pooled, graph.constant(np.asarray(model.shift, np.float64))])


def _log_posterior(graph: Graph, scores: str, calibration: Calibration) -> str:
    """Append the calibration; return the log posterior, (n, C)."""
    if calibration.power == 1:
        scaled = graph.add("Div", [scores, graph.constant(np.array(calibration.temperature))])
        return graph.log_softmax(scaled)
    log_unit = math.log(calibration.temperature) + (calibration.power - 1) * math.log(calibration.pivot)
    unit = math.exp(log_unit / calibration.power)
    distance = graph.add("Sub", [graph.add("ReduceMax", [scores], axes=[1], keepdims=1), scores])
    relative = graph.add("Div", [distance, graph.constant(np.array(unit))])
    power = graph.add("Pow", [relative, graph.constant(np.array(calibration.power))])
    return graph.log_softmax(graph.add("Neg", [power]))
