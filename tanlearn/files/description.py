"""Descriptions of fitted networks as JSON, which can be read without this library.

*Version 1.* :func:`describe` returns a dictionary for ``json.dumps`` with the keys

- ``format``: ``"tanlearn description"``; ``version``: 1; ``tanlearn``: the version of the library;
- ``learner``: an object with ``class`` and ``parameters``, the parameters that differ from their defaults, in Python
  syntax;
- ``training``: an object with ``loss``, the loss of parameter learning in Python syntax, and ``n_iter``, the number of
  iterations or epochs; null if there is none, or if a file did not store it;
- ``calibration``: an object with ``temperature``, ``power`` and ``pivot``. In some models, it also has ``prior_shift``,
  numbers that are first added to the joint log probabilities of the classes. If the joint log probability of a class is
  less than that of the most probable class by d, the probability of the class is proportional to
  exp(-d / temperature * (d / pivot) ** (power - 1));
- ``classes``: the sorted classes, and ``class_probabilities``, in the same order;
- ``n_parameters``: the number of free parameters;
- ``normalized``: whether probabilities sum to one. This is not the case for CPTs with few bits, whose probabilities,
  including class_probabilities, are exponentials of rounded logarithms. In this case, ``bits`` is an object with
  ``integer`` and ``fraction``, the numbers of bits before and after the binary point of such a logarithm (either number
  may be negative). Otherwise, ``bits`` is null;
- ``features``: a list of objects, one per column, with the keys

  - ``name``: the name of the column, or ``x0``, ``x1`` and so on if columns have no names;
  - ``kind``: ``"categorical"`` or ``"continuous"``;
  - ``categories`` of a categorical feature: state k is the k-th category, counted from 0. (Without categories, the
    feature has one state, which is never observed.) A category of bytes is an object with ``kind``, ``"bytes"``, and
    ``hex``;
  - ``cut_points`` of a continuous feature: the state of a number is the number of cut points below it; and
    ``typical_values``, the mean of the training values of each state, or null;
  - ``has_missing_category``: true if the last state represents missing values, and omitted otherwise;
  - ``parents``: the names of the augmenting parents, without the class;
  - ``probabilities``: the probabilities of the states given the parents and the class, as nested lists ``[state][state
    of 1st parent][state of 2nd parent][class]``; levels of absent parents are omitted. The value is null for back-off
    CPTs, whose features have ``back_off`` instead, and for sums of terms, whose features have ``columns`` instead;
  - ``back_off``: a list of objects for no parent, the first parent, the first two parents, and so on, with ``m`` and
    ``counts``, lists ``[state of 1st parent, ..., state, class, n]`` of the combinations that occur in the rows;
    classes are counted from 0. The probability of a state is (n + m q) / (N + m), or q if N is 0. Here, N is the sum of
    n over the states, and q is the probability with one fewer parent, or 1 / number of states if there is no parent;
  - ``columns``: a list of objects. ``features`` contains the positions of one to three features in the list of
    features, counted from 0: this feature, and up to two of its parents. ``groups`` contains one list per feature with
    the group of each state. ``cells`` is a list of rows, one per combination of groups, with the group of the last
    feature as the fastest index; a row contains one number per class. The logarithm of the probability is the sum of
    the rows of all columns;
  - ``standard_errors``, only for :class:`~tanlearn.TermNetClassifier`: for each state and class, the standard error of
    the contribution of the state to the log odds of the class (see ``standard_errors_`` of the classifier).

The joint probability of a class and a row is the product of the probabilities of the class and of all features. The
probability of a feature is looked up by its state and the states of its parents. For a pseudo-TAN, whose parents form a
cycle, or if ``normalized`` is false, the product is only a score, and the class with the largest score is predicted.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tanlearn._version import __version__
from tanlearn.files.encoders import encoder_columns
from tanlearn.files.values import Writer

__all__ = ["as_json", "describe", "feature_names", "given_parameters"]


def describe(model: Any) -> dict[str, Any]:
    """Return a fitted network as a dictionary for JSON, with the keys described in the module.

    Raises NotFittedError if the model is not fitted, or was fitted to codes instead of raw values. Raises ValueError if
    a category is not a string, a number or a boolean, or if the discretizer is not a class of tanlearn.
    """
    check_is_fitted(model)
    names, structure, tables = feature_names(model), model.structure_, model.tables_
    features = []
    for i, column in enumerate(encoder_columns(model.encoder_)):
        errors = model._contribution_errors(i)
        encoding = {key: values if values is True else as_json(values, key) for key, values in column.items()}
        features.append(
            {
                "name": names[i],
                "kind": "categorical" if "categories" in column else "continuous",
                **encoding,
                "parents": [names[j] for j in structure.parents[i] if j >= 0],
                **tables.describe(i),
                **({} if errors is None else {"standard_errors": errors.tolist()}),
            }
        )
    return {
        "format": "tanlearn description",
        "version": 1,
        "tanlearn": __version__,
        "learner": {"class": type(model).__name__, "parameters": given_parameters(model)},
        "training": _training(model),
        "calibration": asdict(model.calibration_),
        "classes": as_json(model.classes_, "classes"),
        "class_probabilities": np.exp(tables.log_prior).tolist(),
        "n_parameters": tables.n_parameters,
        "normalized": tables.is_normalized,
        "bits": tables.bits and dict(zip(("integer", "fraction"), tables.bits, strict=True)),
        "features": features,
    }


def feature_names(model: Any, class_name: str | None = None) -> list[str]:
    """Return the column names of a fitted classifier, or x0, x1 and so on if columns have no names.

    Raises ValueError unless ``class_name``, if given, is a nonempty string that differs from all column names.
    """
    given = getattr(model, "feature_names_in_", None)
    names = [f"x{i}" for i in range(model.n_features_in_)] if given is None else [str(name) for name in given]
    if class_name is not None and (not isinstance(class_name, str) or not class_name or class_name in names):
        raise ValueError(
            f"class_name must be a nonempty string that differs from all feature names, got {class_name!r}. Pass "
            f"another name."
        )
    return names


def as_json(values: Any, name: str) -> Any:
    """Return an array of strings, numbers or bytes as JSON, with null for nan. Messages contain ``name``."""
    found = [None if value != value else value for value in values.tolist()]
    return Writer().encode(found, "encoder_", name)


def _training(model: Any) -> dict[str, Any]:
    """Return the loss and the number of iterations of the model, or of its parameter learner."""
    learner = getattr(model, "parameters_", None)
    loss = getattr(learner, "loss_", getattr(model, "loss_", getattr(learner, "loss", None)))
    default = getattr(type(learner), "default_loss", None)
    loss = default() if loss is None and default is not None else loss
    n_iter = getattr(learner, "n_iter_", getattr(model, "n_iter_", None))
    return {"loss": None if loss is None else repr(loss), "n_iter": n_iter}


def given_parameters(model: Any) -> dict[str, str]:
    """Return the parameters that differ from their defaults, in Python syntax."""
    defaults = type(model)().get_params(deep=False)
    given = {name: repr(value) for name, value in model.get_params(deep=False).items()}
    return {name: text for name, text in given.items() if text != repr(defaults[name])}
