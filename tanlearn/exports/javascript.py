"""Export of a fitted classifier as one ECMAScript module without dependencies.

The module contains the model as constants, and functions from ``runtime.js``, ``network.js``, ``forest.js`` and
``terms.js`` that encode a row of raw values and compute its class probabilities.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tanlearn._typing import AnyArray
from tanlearn._version import __version__
from tanlearn.exports.raw_columns import RawColumn, raw_columns
from tanlearn.files.description import feature_names
from tanlearn.forest.ensemble import Ensemble
from tanlearn.forest.forest import Forest
from tanlearn.forest.forest_network import Discretization, ForestNetwork
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.boosted_terms import BoostedTerms

__all__ = ["to_javascript"]

_HERE = Path(__file__).parent
#: Integers up to this size are numbers in JavaScript.
_LARGEST_INTEGER = 2**53
_JOINT = """
/** Return the log joint of each class and the observed values, in the order of `classes`. */
export function predictJointLogProba(row) {
  return Array.from(scoresOf(encode(row)));
}
"""
_NETWORK = "const scoresOf = (codes) => networkScores(MODEL.network, codes);\n"
_FOREST = "const scoresOf = (codes) => forestScores(MODEL.forest, codes);\n"
_TERMS = "const scoresOf = (codes) => termScores(MODEL.boosting, codes);\n"
_ENSEMBLE = """
function scoresOf(codes) {
  const [ofForest, ofNetwork, ofTerms] = MODEL.weights;
  const scores = new Array(MODEL.shift.length).fill(0);
  const add = (weight, logP) => logP.forEach((own, y) => (scores[y] += weight * own));
  if (ofForest) {
    add(ofForest, forestScores(MODEL.forest, codes));
  }
  if (ofNetwork) {
    const own = merged(MODEL.merging, codes).map((code, i) => (code < MODEL.network.nStates[i] ? code : -1));
    add(ofNetwork, logPosterior(Array.from(networkScores(MODEL.network, own))));
  }
  if (ofTerms) {
    add(ofTerms, logPosterior(Array.from(termScores(MODEL.boosting, codes))));
  }
  return logPosterior(scores).map((score, y) => score + MODEL.shift[y]);
}
"""


def to_javascript(model: Any, *, max_bytes: int = 20_000_000) -> str:
    """Return an ECMAScript module that predicts rows of raw values, in a browser, in Node.js or in Deno.

    Its results equal the results of Python up to rounding.

    Parameters
    ----------
    model : Classifier
        A fitted classifier with a single network, a :class:`~tanlearn.BayesForestClassifier`, a
        :class:`~tanlearn.BoostedTermsClassifier` or a :class:`~tanlearn.BayesEnsembleClassifier`.
    max_bytes : int, default=20_000_000
        Maximum size of the module in bytes. Modules of forests can have several megabytes.

    Returns
    -------
    str
        The module. It exports the functions ``predict(row)``, ``predictProba(row)`` and ``predictLogProba(row)``, the
        list ``classes`` in the order of the probabilities, and the list ``columns`` of the names of the columns. For a
        single network, it also exports ``predictJointLogProba(row)``. A row is an object of raw values by column name,
        or an array if columns had no names in ``fit``.

    Raises
    ------
    NotFittedError
        If the classifier is not fitted.
    TypeError
        If classifiers of this class cannot be exported.
    ValueError
        If values are encoded by your own class, a category or class cannot be represented in JavaScript, or the module
        is too large.

    Notes
    -----
    ``null``, ``undefined`` and ``NaN`` are missing values, which are treated as in Python. Unseen categories count as
    missing. As in Python, the functions throw an error for absent columns, infinite numbers, strings instead of
    numbers, and unseen categories if the encoder has ``handle_unknown="error"``. They also throw an error if the
    marginalization of missing values needs more than 1e9 operations.

    Examples
    --------
    >>> import pandas as pd
    >>> import tanlearn
    >>> X = pd.DataFrame({"sky": ["sun", "rain", "rain", "sun"], "degrees": [29.0, 11.0, 13.0, 25.0]})
    >>> model = tanlearn.NaiveBayesClassifier().fit(X, ["beach", "home", "home", "beach"])
    >>> module = tanlearn.to_javascript(model)
    >>> "export function predictProba(row)" in module
    True
    """
    check_is_fitted(model)
    try:
        fields, code = model.model_.write_to(_Writer())
    except NotImplementedError as error:
        raise TypeError(
            f"{type(model).__name__} cannot be exported to JavaScript. Fit a classifier with a single network, a "
            f"BayesForestClassifier, a BoostedTermsClassifier or a BayesEnsembleClassifier."
        ) from error
    names = feature_names(model)
    if {"__proto__"} & set(names):
        raise ValueError("a column cannot be called '__proto__' in JavaScript. Rename it before fit.")
    columns = raw_columns(model.encoder_, names)
    content = {
        "classes": _Literal(_list_of(map(_label, model.classes_.tolist()))),
        "hasNames": hasattr(model, "feature_names_in_"),
        "columns": [_column(column) for column in columns],
        "calibration": asdict(model.calibration_),
        "scoresWithoutFeatures": None,
        **fields,
    }
    title = f"// {type(model).__name__} of tanlearn {__version__}. Do not edit.\n"
    module = f"{title}const MODEL = {_literal(content)};\n\n{_source('runtime')}{code}"
    size = len(module.encode())
    if size > max_bytes:
        raise ValueError(
            f"the module needs {size:,} bytes, more than max_bytes={max_bytes:,}. Pass a larger max_bytes, or fit a "
            f"smaller model: decrease n_estimators of a forest or max_terms of boosted terms, or fit a single network."
        )
    return module


class _Writer:
    """The constants and the functions of a module for each kind of model."""

    def network(self, network: BayesNet) -> tuple[dict[str, Any], str]:
        """Return the constants and the functions of a network."""
        tables = network.tables
        fields: dict[str, Any] = {"network": _network(network)}
        if tables.is_dense and np.isneginf(tables.cells).any():  # rows can have probability zero in every class
            fields["scoresWithoutFeatures"] = network.log_joint_without_features().tolist()
        return fields, f"{_source('network')}\n{_NETWORK}{_JOINT}"

    def forest(self, forest: Forest) -> tuple[dict[str, Any], str]:
        """Return the constants and the functions of a forest."""
        return {"forest": _forest(forest)}, f"{_source('forest')}\n{_FOREST}"

    def boosted_terms(self, boosting: BoostedTerms) -> tuple[dict[str, Any], str]:
        """Return the constants and the functions of boosted terms."""
        return {"boosting": _boosting(boosting)}, f"{_source('terms')}\n{_TERMS}"

    def ensemble(self, ensemble: Ensemble) -> tuple[dict[str, Any], str]:
        """Return the constants and the functions of an ensemble. Constants are null for models of weight 0."""
        has_forest, has_network, has_terms = (ensemble.weights != 0).tolist()
        fields = {
            "forest": _forest(ensemble.forest) if has_forest else None,
            "network": _network(ensemble.network) if has_network else None,
            "merging": _merging(ensemble.discretization) if has_network else None,
            "boosting": _boosting(ensemble.boosting) if has_terms else None,
            "weights": ensemble.weights.tolist(),
            "shift": ensemble.shift.tolist(),
        }
        return fields, f"{_source('network')}{_source('forest')}{_source('terms')}{_ENSEMBLE}"


def _network(network: BayesNet) -> dict[str, Any]:
    """Return the constants of a network."""
    tables, structure = network.tables, network.structure
    parents = [[j for j in row if j >= 0] for row in structure.parents.tolist()]
    children: list[list[int]] = [[] for _ in parents]
    for i, own in enumerate(parents):
        for j in own:
            children[j].append(i)
    n_states = tables.layout.n_states.tolist()
    families = []
    for i, own in enumerate(parents):
        terms = [_term(features, groups, cells, n_states) for features, groups, cells in tables.addends(i)]
        families.append({"parents": own, "terms": terms})
    return {
        "prior": tables.log_prior.tolist(),
        "nStates": n_states,
        "isNormalized": tables.is_normalized,
        "isAcyclic": structure.is_acyclic,
        "upward": structure.order[::-1].tolist() if structure.is_acyclic else [],
        "children": children,
        "families": families,
    }


def _term(features: Any, groups: Any, cells: AnyArray, n_states: list[int]) -> dict[str, Any]:
    """Return the constants of an addend of a CPT, without ``groups`` if each value is a separate group."""
    sizes = list(cells.shape[:-1])
    is_plain = sizes == [n_states[i] for i in features]
    return {
        "features": list(features),
        "sizes": sizes,
        "groups": None if is_plain else [own.tolist() for own in groups],
        "cells": np.asarray(cells, np.float64).ravel(),
    }


def _merging(cuts: Discretization) -> dict[str, Any]:
    """Return the constants that merge the codes of the encoder."""
    return {"merged": cuts.merged.astype(np.uint16), "start": cuts.start.tolist()}


def _forest(forest: Forest) -> dict[str, Any]:
    """Return the constants of a forest."""
    return {
        "logPrior": forest.log_prior.tolist(),
        "shift": forest.shift.tolist(),
        "labelNoise": float(forest.label_noise),
        "isAverage": bool(forest.is_average),
        "networks": [_forest_network(*pair) for pair in zip(forest.members, forest.weights, strict=True)],
    }


def _forest_network(network: ForestNetwork, weights: AnyArray) -> dict[str, Any]:
    """Return the constants of a network of a forest."""
    tables = network.tables
    trie = tables.trie
    return {
        **_merging(network.cuts),
        "nStates": tables.n_states.tolist(),
        "parents": tables.parents.tolist(),
        "weights": weights[:, : tables.n_levels].tolist(),
        "root": np.asarray(tables.root, np.uint32),
        "children": np.asarray(trie.children, np.uint32),
        "branch": np.asarray(trie.branch, np.uint16),
        "classStart": np.asarray(trie.class_start, np.uint32),
        "classes": np.asarray(trie.classes, np.uint16),
        "valueStart": np.asarray(trie.value_start, np.uint32),
        "values": np.asarray(trie.values, np.uint16),
        "entryStart": np.asarray(trie.entry_start, np.uint32),
        "gain": tables.gain,
        "unseen": tables.unseen,
    }


def _boosting(boosting: BoostedTerms) -> dict[str, Any]:
    """Return the constants of boosted terms. Equal splits of several terms are written once."""
    splits: dict[tuple[int, str], int] = {}
    terms = []
    for term in boosting.terms():
        sides = ["".join(map(str, side.tolist())) for side in term.sides]
        pairs = zip(term.features.tolist(), sides, strict=True)
        own = [splits.setdefault(pair, len(splits)) for pair in pairs]
        terms.append({"splits": own, "weights": term.weights, "values": term.values.ravel()})
    return {"logPrior": boosting.log_prior.tolist(), "splits": list(splits), "terms": terms}


class _Literal(str):
    """String that is already JavaScript."""

    __slots__ = ()


def _column(column: RawColumn) -> dict[str, Any]:
    """Return the constants of a column."""
    fields: dict[str, Any] = {"name": column.name, "missing": column.missing}
    if column.cut_points is not None:
        return {**fields, "cutPoints": np.array(column.cut_points, np.float64)}
    pairs = [f"[{_label(_number(value, column.name))}, {k}]" for k, value in enumerate(column.categories or ())]
    return {
        **fields,
        "codes": _Literal(f"new Map({_list_of(pairs)})"),
        "isText": any(isinstance(value, str) for value in column.categories or ()),
        "refusesUnseen": column.refuses_unseen,
    }


def _number(value: Any, name: str) -> Any:
    """Return a category as a string or a number. Raise ValueError for a number that JavaScript cannot represent."""
    if isinstance(value, int) and abs(value) > _LARGEST_INTEGER:
        raise ValueError(
            f"JavaScript cannot represent integers above 2**53 exactly, but column {name!r} has the category "
            f"{value}. Convert the column to strings before fit."
        )
    return int(value) if isinstance(value, bool) else value


def _label(value: Any) -> str:
    """Return a string, a boolean or a number as JavaScript."""
    return json.dumps(value)


def _list_of(items: Any) -> str:
    """Return an array of JavaScript."""
    return f"[{', '.join(items)}]"


def _literal(value: Any) -> str:
    """Return a value as JavaScript; arrays are typed arrays."""
    if isinstance(value, _Literal):
        return str(value)
    if isinstance(value, dict):
        return "{" + ",\n".join(f"{key}: {_literal(own)}" for key, own in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, np.ndarray):
        return f"new {_ARRAYS[value.dtype.name]}([{','.join(map(_digits, value))}])"
    if isinstance(value, float):
        return _digits(value)
    return json.dumps(value)


#: Typed arrays by the type of their numbers.
_ARRAYS = {"float64": "Float64Array", "float32": "Float32Array", "uint16": "Uint16Array", "uint32": "Uint32Array"}


def _digits(value: Any) -> str:
    """Return a number with as many digits as its type needs."""
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return str(value)


def _source(name: str) -> str:
    """Return a file of functions."""
    return (_HERE / f"{name}.js").read_text(encoding="utf-8")
