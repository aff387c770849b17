"""What a fitted network is, in numbers and strings that need no library to be read.

Notes
-----
*Version 1.* :func:`describe` returns a dictionary that ``json.dumps`` takes, with the keys

- ``format``: ``"tanlearn description"``; ``version``: 1; ``tanlearn``: the version of the library;
- ``learner``: an object with ``class`` and ``parameters``, those that are no defaults, as Python writes them;
- ``training``: an object with ``loss``, what the parameters were learnt with, as Python writes it, and ``n_iter``, for
  how many iterations or epochs; null where there is none, or a file did not keep it;
- ``calibration``: an object with ``temperature``, ``power`` and ``pivot``: a class is as probable as exp(-d /
  temperature * (d / pivot) ** (power - 1)), normalised, if its joint log-probability is d below that of the most
  probable one;
- ``classes``: the classes, sorted, and ``class_probabilities``, in their order;
- ``n_parameters``: the number of free parameters;
- ``normalized``: whether probabilities add up to one. Those of tables of a few bits do not: they are exponentials of
  rounded logarithms, class_probabilities among them; ``bits`` is then an object with ``integer`` and ``fraction``, the
  bits before and after the point of such a logarithm, which either may be negative, and null otherwise;
- ``features``: a list of objects, one a column, with the keys

  - ``name``: its name, or ``x0``, ``x1`` and so on if the columns have none;
  - ``kind``: ``"categorical"`` or ``"continuous"``;
  - ``categories`` of a categorical feature: state k is the k-th of them, counted from 0. (If there are none, the
    feature has one state, which is never observed.) Bytes are objects with ``kind``, ``"bytes"``, and ``hex``;
  - ``cut_points`` of a continuous one: the state of a number is how many cuts are below it; and ``typical_values``,
    the mean of the training values of each state, or null;
  - ``parents``: the names of the features that it depends on beside the class;
  - ``probabilities``: of its states given these and the class, nested lists
    ``[state][state of 1st parent][state of 2nd parent][class]``; a feature with fewer parents lacks these levels. Null
    of tables that back off, whose features have instead
  - ``back_off``: a list of objects, of no parent, of the first, of the first two, and so on, with ``m`` and ``counts``,
    lists ``[state of 1st parent, ..., state, class, n]`` of what rows have shown, classes counted from 0. With n and N,
    the sum of n over the states, the probability is (n + m q) / (N + m), of which q is that with one parent less, of no
    parent 1 / number of states; where N is 0, it is q.

The joint probability of a class and a row is that of the class times those of all features, each looked up at its own
state and those of its parents. (Not of a pseudo-TAN, whose parents form a cycle, nor where ``normalized`` is false: the
product is then a score, and the class with the largest is predicted.)
"""

from __future__ import annotations

from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tanlearn.files.encoders import encoder_columns
from tanlearn.files.values import Writer
from tanlearn.network.back_off import BackOffTables
from tanlearn.network.tables import Tables

__all__ = ["as_json", "describe", "feature_names", "given_parameters"]


def describe(model: Any) -> dict[str, Any]:
    """Return all of a fitted network as a dictionary for JSON."""
    check_is_fitted(model)
    names, structure, tables = feature_names(model), model.structure_, model.tables_
    features = []
    for i, column in enumerate(encoder_columns(model.encoder_)):
        learnt = {key: as_json(values, key) for key, values in column.items()}
        features.append(
            {
                "name": names[i],
                "kind": "categorical" if "categories" in column else "continuous",
                **learnt,
                "parents": [names[j] for j in structure.parents[i] if j >= 0],
                **_told(tables, i),
            }
        )
    return {
        "format": "tanlearn description",
        "version": 1,
        "tanlearn": version("tanlearn"),
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
    """Return the names of the columns of a fitted classifier, or x0, x1 and so on if they have none."""
    given = getattr(model, "feature_names_in_", None)
    names = [f"x{i}" for i in range(model.n_features_in_)] if given is None else [str(name) for name in given]
    if class_name is not None and (not isinstance(class_name, str) or not class_name or class_name in names):
        raise ValueError(
            f"class_name must be a string that is not empty and no name of a feature, got {class_name!r}. Pass another."
        )
    return names


def _told(tables: Tables, i: int) -> dict[str, Any]:
    """Return the probabilities of a feature, or the counts that they follow from."""
    if not isinstance(tables, BackOffTables):
        return {"probabilities": tables.probabilities(i).tolist()}
    back_off = []
    for level in range(len(tables.families[i].bounds) - 1):
        values, counts = tables.families[i].entries(level)
        entries = [[*row, n] for row, n in zip(values.tolist(), counts.tolist(), strict=True)]
        back_off.append({"m": float(tables.concentrations[level]), "counts": entries})
    return {"probabilities": None, "back_off": back_off}


def as_json(values: Any, name: str) -> Any:
    """Return an array as JSON, with null for nan.

    Shapes: values: (n,).
    """
    found = [None if value != value else value for value in values.tolist()]
    return Writer().encode(found, "encoder_", name)


def _training(model: Any) -> dict[str, Any]:
    """Return the loss and the length of what was trained by one: the model's, or its learner's of parameters."""
    learner = getattr(model, "parameters_", None)
    loss = getattr(learner, "loss_", getattr(model, "loss_", getattr(learner, "loss", None)))
    default = getattr(type(learner), "default_loss", None)
    loss = default() if loss is None and default is not None else loss
    n_iter = getattr(learner, "n_iter_", getattr(model, "n_iter_", None))
    return {"loss": None if loss is None else repr(loss), "n_iter": n_iter}


def given_parameters(model: Any) -> dict[str, str]:
    """Return the parameters that differ from their defaults, as Python writes them."""
    defaults = type(model)().get_params(deep=False)
    given = {name: repr(value) for name, value in model.get_params(deep=False).items()}
    return {name: text for name, text in given.items() if text != repr(defaults[name])}
