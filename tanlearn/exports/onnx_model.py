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
from tanlearn.models.calibration import Calibration

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
        If classifiers of this class cannot be exported.
    ValueError
        If probabilities of a network are 0, its structure has a cycle, its columns depend on each other so much that
        missing values cannot be marginalized in 16 MiB per row, the model is too large, values are encoded by your own
        class, the encoder has ``handle_unknown="error"``, a column has the name of an output, or the empty string is a
        category.

    Notes
    -----
    NaN and the empty string are missing values, which are treated as in Python: single networks marginalize them
    exactly. Unseen categories count as missing. Infinite numbers, for which ``predict`` raises an error, belong to the
    outermost intervals. Results equal the results of Python up to rounding.

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
    try:
        least_bytes = own.write_to(_LeastBytes())
    except NotImplementedError as error:
        raise TypeError(
            f"{type(model).__name__} cannot be exported to ONNX. Fit a classifier with a single network, a "
            f"BayesForestClassifier, a BoostedTermsClassifier or a BayesEnsembleClassifier."
        ) from error
    if not 0 < max_bytes <= _MOST_BYTES:
        raise ValueError(f"max_bytes must be from 1 to {_MOST_BYTES:,}, the limit of ONNX files, got {max_bytes:,}.")
    try:
        import onnx
    except ModuleNotFoundError as error:
        raise ImportError('to_onnx needs the package onnx. Install it with: pip install "tanlearn[onnx]"') from error
    columns = raw_columns(model.encoder_, feature_names(model))
    _check_columns(columns)
    _check_size(least_bytes, max_bytes)
    graph = Graph(onnx)
    n_states = model.encoder_.n_states_.tolist()
    codes = [graph.code(column, n) for column, n in zip(columns, n_states, strict=True)]
    writer = _Scores(graph, columns, codes)
    scores = own.write_to(writer)
    shift = model.calibration_.shifted(np.zeros((1, len(model.classes_))))[0]
    if shift.any():
        scores = graph.add("Add", [scores, graph.constant(shift)])
    best = graph.add("ArgMax", [scores], axis=1, keepdims=0)
    labels = model.classes_
    labels = labels.astype(object if labels.dtype.kind in "OUS" else labels.dtype)
    graph.add("Gather", [graph.constant(labels), best], output=_LABEL)
    graph.add("Exp", [_log_posterior(graph, scores, model.calibration_)], output=_PROBABILITY)
    _check_size(graph.n_bytes, max_bytes)
    title = f"{type(model).__name__} of tanlearn {__version__}"
    return graph.model(columns, labels, title, has_log_joint=writer.has_log_joint)


def _check_columns(columns: Sequence[RawColumn]) -> None:
    """Raise ValueError for columns that cannot be exported."""
    for column in columns:
        if column.name in OUTPUTS:
            raise ValueError(f"a column cannot be called {column.name!r}, the name of an output. Rename it before fit.")
        if column.refuses_unseen:
            raise ValueError(
                "handle_unknown='error' cannot be exported, because ONNX cannot raise an error for an unseen "
                "category. Fit with TableEncoder(handle_unknown='missing')."
            )
        if "" in (column.categories or ()):
            raise ValueError(
                f"the empty string is a missing value in ONNX, but it is a category of column {column.name!r}. "
                f"Replace it before fit."
            )


def _check_network(network: BayesNet) -> None:
    """Raise ValueError for networks that cannot be exported."""
    if not network.structure.is_acyclic:
        raise ValueError("networks with a cycle cannot be exported to ONNX. Use to_javascript.")
    tables = network.tables
    if tables.is_dense and np.isneginf(tables.cells[tables.layout.n_classes :]).any():
        raise ValueError("probabilities of 0 in CPTs cannot be exported to ONNX. Fit with smoothing.")


class _LeastBytes:
    """Lower bounds of the sizes of constants, before any of them is computed."""

    def network(self, network: BayesNet) -> int:
        """Return the bytes of the log probabilities."""
        return 8 * network.tables.n_addend_cells

    def forest(self, forest: Forest) -> int:
        """Return the bytes of the gains in single precision."""
        return 4 * forest.n_parameters

    def boosted_terms(self, boosting: BoostedTerms) -> int:
        """Return 0, because terms are small."""
        return 0

    def ensemble(self, ensemble: Ensemble) -> int:
        """Return the bytes of all models with positive weights."""
        return sum(part.write_to(self) for _, part in ensemble.parts())


def _check_size(n_bytes: int, max_bytes: int) -> None:
    """Raise ValueError if constants are too large."""
    if n_bytes > max_bytes:
        raise ValueError(
            f"the constants of the ONNX model need at least {n_bytes:,} bytes, more than max_bytes={max_bytes:,}. Pass "
            f"a larger max_bytes, or fit a smaller model: decrease n_estimators of a forest, max_terms of boosted "
            f"terms, or the number of parents per column of a network."
        )


class _Scores:
    """Nodes that compute the scores of the classes by a model, (n, C)."""

    def __init__(self, graph: Graph, columns: Sequence[RawColumn], codes: Sequence[str]) -> None:
        self._graph, self._columns, self._codes = graph, columns, codes
        self.has_log_joint = False

    def network(self, network: BayesNet) -> str:
        """Append the log joint of a single network, which is also an output."""
        self.has_log_joint = True
        return self._graph.identity(self._log_joint(network, self._codes), _LOG_JOINT)

    def forest(self, forest: Forest) -> str:
        """Append the scores of a forest."""
        return add_forest(self._graph, forest, self._graph.columns(self._codes))

    def boosted_terms(self, boosting: BoostedTerms) -> str:
        """Append the scores of boosted terms."""
        return add_terms(self._graph, boosting, self._graph.columns(self._codes))

    def ensemble(self, ensemble: Ensemble) -> str:
        """Append the weighted sum of the log probabilities of all models with positive weights."""
        graph, parts = self._graph, []
        of_forest, of_network, of_terms = ensemble.weights.tolist()
        matrix = graph.columns(self._codes)
        if of_forest:
            parts.append((of_forest, add_forest(graph, ensemble.forest, matrix)))
        if of_network:
            merged = graph.split(merged_codes(graph, ensemble.discretization, matrix), len(self._columns))
            parts.append((of_network, graph.log_softmax(self._log_joint(ensemble.network, merged))))
        if of_terms:
            parts.append((of_terms, graph.log_softmax(add_terms(graph, ensemble.boosting, matrix))))
        weighted = [graph.add("Mul", [scores, graph.constant(np.array(weight))]) for weight, scores in parts]
        pooled = graph.log_softmax(graph.add("Sum", weighted))
        return graph.add("Add", [pooled, graph.constant(np.asarray(ensemble.shift, np.float64))])

    def _log_joint(self, network: BayesNet, codes: Sequence[str]) -> str:
        """Append the log joint of a network."""
        _check_network(network)
        return NetworkNodes(self._graph, network, self._columns).log_joint(codes)


def _log_posterior(graph: Graph, scores: str, calibration: Calibration) -> str:
    """Append the calibration. Return the log posterior (n, C)."""
    if calibration.power == 1:
        scaled = graph.add("Div", [scores, graph.constant(np.array(calibration.temperature))])
        return graph.log_softmax(scaled)
    log_unit = math.log(calibration.temperature) + (calibration.power - 1) * math.log(calibration.pivot)
    unit = math.exp(log_unit / calibration.power)
    distance = graph.add("Sub", [graph.add("ReduceMax", [scores], axes=[1], keepdims=1), scores])
    relative = graph.add("Div", [distance, graph.constant(np.array(unit))])
    power = graph.add("Pow", [relative, graph.constant(np.array(calibration.power))])
    return graph.log_softmax(graph.add("Neg", [power]))
