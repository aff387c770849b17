"""Export of a fitted tree or naive Bayes as an ONNX model.

Codes are numbers of cut points below a value, or positions of equal categories; the number of values of a feature is
the code of a missing value. The log joint is computed by an upward pass over all values of the features with children:

    message_i(v) = log sum_x exp(log P(x | v, y) + evidence_i(x) + sum of the messages of the children of i for x)

``evidence_i(x)`` is 0 if the feature is missing or has the value x, and -inf otherwise. Messages of features without
children are looked up.

Shapes: n rows, C classes; code (n,); message (n, values of the parent, C), or (n, C) without a parent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tanlearn._typing import AnyArray
from tanlearn._version import __version__
from tanlearn.exports.raw_columns import MISSING, RawColumn, raw_columns
from tanlearn.files.description import feature_names
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.boosted_terms import BoostedTerms
from tanlearn.models.calibration import Calibration, EvidenceCalibration

__all__ = ["to_onnx"]

_LABEL, _PROBABILITY, _LOG_JOINT = OUTPUTS = ("output_label", "output_probability", "output_log_joint")
#: Versions of the operators, which onnxruntime supports since 1.12.
_OPERATORS, _ML_OPERATORS, _FORMAT = 17, 2, 8


def to_onnx(model: Any) -> Any:
    """Return an ONNX model that predicts raw values.

    Parameters
    ----------
    model : Classifier
        A fitted classifier with a single network whose columns depend on at most one other column each, such as
        :class:`~tanlearn.NaiveBayesClassifier` or :class:`~tanlearn.TANClassifier`.

    Returns
    -------
    onnx.ModelProto
        The model. It has one input of shape (n_samples, 1) for each column, with the name of the column: float64 for
        numbers and booleans, strings for strings. Its outputs are ``output_label`` (n_samples,),
        ``output_probability`` and ``output_log_joint`` (n_samples, n_classes), float64.

    Raises
    ------
    NotFittedError
        If the classifier is not fitted.
    ImportError
        If the package ``onnx`` is not installed.
    TypeError
        If the classifier has no single network: forests, boosted terms and ensembles.
    ValueError
        If a column depends on several others, probabilities are 0, values are encoded by your own class, the encoder
        has ``handle_unknown="error"``, a column has the name of an output, or the empty string is a category.

    Notes
    -----
    NaN and the empty string are missing values, which are marginalized exactly. Unseen categories count as missing.
    Infinite numbers, which ``predict`` refuses, belong to the outermost intervals. Results differ from those of Python
    by rounding only. A batch of n rows takes n * C times the product of the numbers of values of a column and of its
    parent, for the largest such product, in float64.

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
    try:
        import onnx
    except ModuleNotFoundError as error:
        raise ImportError('to_onnx needs the package onnx. Install it with: pip install "tanlearn[onnx]"') from error
    network, names = model.model_, feature_names(model)
    columns = raw_columns(model.encoder_, names)
    _check(model, network, columns)
    graph = _Graph(onnx)
    codes = [graph.code(column, n) for column, n in zip(columns, network.tables.layout.n_states.tolist(), strict=True)]
    scores = graph.identity(_log_joint(graph, network, codes), _LOG_JOINT)
    if isinstance(model.calibration_, EvidenceCalibration):
        scores = graph.add("Add", [scores, graph.constant(np.array(model.calibration_.prior_shift))])
    best = graph.add("ArgMax", [scores], axis=1, keepdims=0)
    labels = model.classes_
    labels = labels.astype(object if labels.dtype.kind in "OUS" else labels.dtype)
    graph.add("Gather", [graph.constant(labels), best], output=_LABEL)
    graph.add("Exp", [_log_posterior(graph, scores, model.calibration_)], output=_PROBABILITY)
    return graph.model(columns, labels, f"{type(model).__name__} of tanlearn {__version__}", len(labels))


def _check(model: Any, network: Any, columns: Sequence[RawColumn]) -> None:
    """Raise an error for models that cannot be exported."""
    if not isinstance(network, BayesNet):
        content = "consists of boosted terms" if isinstance(network, BoostedTerms) else "combines several models"
        raise TypeError(
            f"only classifiers with a single network can be exported to ONNX, and {type(model).__name__} {content}. "
            f"Fit a NaiveBayesClassifier or TANClassifier. Forests, boosted terms and ensembles can be exported with "
            f"to_javascript and to_sql."
        )
    several = np.flatnonzero((network.structure.parents[:, 1:] >= 0).any(axis=1))
    if several.size:
        raise ValueError(
            f"column {columns[several[0]].name!r} depends on several other columns, and only trees and naive Bayes can "
            f"be exported to ONNX. Fit with one parent per column, or export it with to_javascript."
        )
    if not network.structure.is_acyclic:
        raise ValueError("the structure has a cycle, and only trees and naive Bayes can be exported to ONNX.")
    if network.tables.is_dense and np.isneginf(network.tables.cells[len(model.classes_) :]).any():
        raise ValueError("CPTs contain probabilities of 0, which cannot be exported to ONNX. Fit with smoothing.")
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


def _log_joint(graph: _Graph, network: BayesNet, codes: list[str]) -> str:
    """Append the upward pass; return the log joint, (n, C)."""
    tables, structure = network.tables, network.structure
    n_states, parent = tables.layout.n_states.tolist(), structure.parent.tolist()
    messages: list[list[str]] = [[] for _ in codes]
    roots = [graph.constant(tables.log_prior[np.newaxis])]
    for i in structure.order[::-1].tolist():
        log_p, n = np.asarray(tables[i], np.float64), n_states[i]
        if messages[i]:
            evidence = np.append(np.where(np.eye(n, dtype=bool), 0.0, -np.inf), np.zeros((1, n)), axis=0)
            seen = graph.add("Gather", [graph.constant(evidence[:, :, np.newaxis]), codes[i]])
            belief = graph.add("Sum", [seen, *messages[i]])
            if parent[i] >= 0:
                belief = graph.add("Unsqueeze", [belief, graph.constant(np.array([2]))])
            total = graph.add("Add", [belief, graph.constant(log_p[np.newaxis])])
            message = graph.add("ReduceLogSumExp", [total], axes=[1], keepdims=0)
        else:
            of_missing = np.zeros(log_p.shape[1:]) if tables.is_normalized else np.logaddexp.reduce(log_p, axis=0)
            rows = np.concatenate([log_p, of_missing[np.newaxis]])
            message = graph.add("Gather", [graph.constant(rows), codes[i]])
        (messages[parent[i]] if parent[i] >= 0 else roots).append(message)
    return graph.add("Sum", roots)


def _log_posterior(graph: _Graph, scores: str, calibration: Calibration) -> str:
    """Append the calibration; return the log posterior, (n, C)."""
    if calibration.power == 1:
        scaled = graph.add("Div", [scores, graph.constant(np.array(calibration.temperature))])
        return graph.add("LogSoftmax", [scaled], axis=1)
    log_unit = math.log(calibration.temperature) + (calibration.power - 1) * math.log(calibration.pivot)
    unit = math.exp(log_unit / calibration.power)
    distance = graph.add("Sub", [graph.add("ReduceMax", [scores], axes=[1], keepdims=1), scores])
    relative = graph.add("Div", [distance, graph.constant(np.array(unit))])
    power = graph.add("Pow", [relative, graph.constant(np.array(calibration.power))])
    return graph.add("LogSoftmax", [graph.add("Neg", [power])], axis=1)


class _Graph:
    """Nodes and constants of an ONNX graph."""

    def __init__(self, onnx: Any) -> None:
        self._onnx = onnx
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def add(self, operator: str, inputs: list[str], output: str | None = None, **attributes: Any) -> str:
        """Append a node and return the name of its output."""
        output = output or f"tanlearn/{len(self._nodes)}/{operator}"
        self._nodes.append(self._onnx.helper.make_node(operator, inputs, [output], **attributes))
        return output

    def identity(self, value: str, output: str) -> str:
        """Append a copy of a value with another name."""
        return self.add("Identity", [value], output)

    def constant(self, array: AnyArray) -> str:
        """Append a constant and return its name."""
        name = f"tanlearn/constant/{len(self._constants)}"
        self._constants.append(self._onnx.numpy_helper.from_array(np.asarray(array), name))
        return name

    def code(self, column: RawColumn, n_states: int) -> str:
        """Append the encoding of a column; return its codes, (n,)."""
        missing = n_states if column.missing == MISSING else column.missing
        axis = self.constant(np.array([1]))
        if column.categories and isinstance(column.categories[0], str):
            keys = [*column.categories, ""]
            values = [*range(len(column.categories)), missing]
            rule: dict[str, Any] = {
                "domain": "ai.onnx.ml",
                "keys_strings": keys,
                "values_int64s": values,
                "default_int64": n_states,
            }
            return self.add("Squeeze", [self.add("LabelEncoder", [column.name], **rule), axis])
        is_missing = self.add("Squeeze", [self.add("IsNaN", [column.name]), axis])
        if column.cut_points is not None:
            above = self.add("Greater", [column.name, self.constant(np.array([column.cut_points], np.float64))])
            ones = self.add("Cast", [above], to=self._onnx.TensorProto.INT64)
            code = self.add("ReduceSum", [ones, axis], keepdims=0)
        else:
            known = np.array([column.categories or []], np.float64)
            equal = self.add("Equal", [column.name, self.constant(known)])
            ones = self.add("Cast", [equal], to=self._onnx.TensorProto.INT64)
            offsets = self.constant(np.arange(known.size) - n_states)  # 0 for an unseen category
            sums = self.add("ReduceSum", [self.add("Mul", [ones, offsets]), axis], keepdims=0)
            code = self.add("Add", [sums, self.constant(np.array(n_states))])
        return self.add("Where", [is_missing, self.constant(np.array(missing)), code])

    def model(self, columns: Sequence[RawColumn], labels: AnyArray, title: str, n_classes: int) -> Any:
        """Return the model."""
        helper, types = self._onnx.helper, self._onnx.TensorProto
        inputs = []
        for column in columns:
            is_text = bool(column.categories) and isinstance((column.categories or [0])[0], str)
            kind = types.STRING if is_text else types.DOUBLE
            inputs.append(helper.make_tensor_value_info(column.name, kind, [None, 1]))
        of_labels = types.STRING if labels.dtype == object else helper.np_dtype_to_tensor_dtype(labels.dtype)
        outputs = [helper.make_tensor_value_info(_LABEL, of_labels, [None])]
        outputs += [
            helper.make_tensor_value_info(name, types.DOUBLE, [None, n_classes]) for name in (_PROBABILITY, _LOG_JOINT)
        ]
        graph = helper.make_graph(self._nodes, "tanlearn", inputs, outputs, self._constants, doc_string=title)
        versions = [helper.make_opsetid("", _OPERATORS), helper.make_opsetid("ai.onnx.ml", _ML_OPERATORS)]
        found = helper.make_model(graph, opset_imports=versions, producer_name="tanlearn", ir_version=_FORMAT)
        found.producer_version = __version__
        self._onnx.checker.check_model(found)
        return found
