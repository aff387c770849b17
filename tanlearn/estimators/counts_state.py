"""Counts of every kind as arrays for a file, and back, checked.

A file of counts is an archive as :mod:`tanlearn.files.models` describes it, of the format ``"tanlearn counts file"``,
version 1. Under ``counts file`` it has ``classes``, ``feature_names`` and ``encoder`` as those of models, ``kind``, and
``counts``, an object of values that depend on the kind. Counts are int64, or float64 where weights were real.

- ``CountState``: ``cells``, those of the classes, then those of every feature, indexed [value][class]; ``pairs``, those
  of the features (1, 0), (2, 0), (2, 1), (3, 0) and so on, indexed [value of the first][value of the second][class].
- ``FamilyCounts``: ``structure``, and ``cells`` in the order of a model's tables.
- ``ForestCounts``: ``forest``, a dict of what a model of it has; ``class_counts``; ``n_cells``, how many counts the
  members have, and these one behind the other as ``keys`` and ``counts``. A key is (context * most values of a feature
  of the member + value) * number of classes + class, and they ascend.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, IntArray
from tanlearn.files.archive import ExplainedError, fields
from tanlearn.files.values import check_array, n_table_cells
from tanlearn.forest.counts import ContextCells, ForestCounts
from tanlearn.forest.state import from_state as restore_forest
from tanlearn.forest.state import to_state as forest_state
from tanlearn.network.counts import CountState
from tanlearn.network.family_counts import FamilyCounts
from tanlearn.network.structures import Structure
from tanlearn.network.tables import TableLayout

__all__ = ["from_state", "to_state", "why_no_counts"]


def to_state(counts: Any) -> dict[str, Any]:
    """Return all of some counts but the numbers of values and classes.

    Parameters
    ----------
    counts : CountState, FamilyCounts or ForestCounts
        What is to be kept.

    Returns
    -------
    dict

    Raises
    ------
    TypeError
        If they are counts of another kind.

    Examples
    --------
    >>> from tanlearn import CountState, EncodedData
    >>> from tanlearn.estimators.counts_state import from_state, to_state
    >>> data = EncodedData.from_codes([[0, 1], [1, 1], [1, 0]], [0, 1, 1])
    >>> counts = CountState(data.n_states, data.n_classes).update(data)
    >>> from_state("CountState", to_state(counts), data.n_states, data.n_classes) == counts
    True
    """
    if isinstance(counts, CountState):
        return {"cells": counts.cells, "pairs": counts.pairs}
    if isinstance(counts, FamilyCounts):
        return {"structure": Structure(counts.layout.parents), "cells": counts.cells}
    if isinstance(counts, ForestCounts):
        members = counts.members
        return {
            "forest": forest_state(counts.forest),
            "class_counts": counts.class_counts,
            "n_cells": np.array([len(cells.keys) for cells in members], np.int64),
            "keys": np.concatenate([cells.keys for cells in members]),
            "counts": np.concatenate([cells.counts for cells in members]),
        }
    raise TypeError(
        f"a file holds counts in CountState, FamilyCounts and ForestCounts, but no {type(counts).__name__}. Save the "
        f"model that is learnt from them."
    )


def why_no_counts(model: Any) -> str:
    """Return why a fitted classifier has no ``counts_``.

    Parameters
    ----------
    model : classifier
        Fitted, without counts.

    Returns
    -------
    str
        A clause whose subject is the classifier.

    Examples
    --------
    >>> from tanlearn import NaiveBayesClassifier
    >>> from tanlearn.estimators.counts_state import why_no_counts
    >>> why_no_counts(NaiveBayesClassifier().fit([["a"], ["b"]], ["no", "yes"]))
    'this NaiveBayesClassifier has no counts, because it was fitted from all rows at once'
    """
    reason = "it was fitted from all rows at once"
    if getattr(model, "_was_loaded", False):
        reason = "it was read from a file without counts (save(path, counts=True) keeps them, where there are any)"
    return f"this {type(model).__name__} has no counts, because {reason}"


def from_state(kind: Any, state: dict[str, Any], n_states: IntArray, n_classes: int) -> Any:
    """Return the counts that :func:`to_state` took apart.

    Parameters
    ----------
    kind : object
        What should be the name of their class.
    state : dict
        What a file holds.
    n_states : ndarray of shape (n_features,), intp
        Number of values of every feature.
    n_classes : int
        Number of classes.

    Returns
    -------
    CountState, FamilyCounts or ForestCounts

    Raises
    ------
    ValueError
        If something does not fit.
    """
    if kind == "CountState":
        return CountState.restore(n_states, n_classes, *fields(state, "cells", "pairs"))
    if kind == "FamilyCounts":
        structure, cells = fields(state, "structure", "cells")
        if not isinstance(structure, Structure) or structure.n_features != len(n_states):
            raise ValueError(f"the structure must be of {len(n_states)} features, got {structure!r}.")
        # Before memory is taken for as many counts as a forged structure asks for.
        _check_counts("cells", cells, (n_table_cells(structure.parents, n_states, n_classes),))
        counts = FamilyCounts(TableLayout.of_parents(structure.parents, n_states, n_classes))
        counts.cells = cells
        return counts
    if kind == "ForestCounts":
        return _forest_counts(state, n_states, n_classes)
    raise ExplainedError(f"it holds counts of the kind {kind!r}, which this version does not know: upgrade tanlearn.")


def _forest_counts(state: dict[str, Any], n_states: IntArray, n_classes: int) -> ForestCounts:
    """Return the counts of a forest."""
    forest, class_counts, n_cells, keys, amounts = fields(state, "forest", "class_counts", "n_cells", "keys", "counts")
    counts = ForestCounts.of_forest(restore_forest(forest, n_states, n_classes))
    counts.class_counts = _check_counts("class_counts", class_counts, (n_classes,))
    sizes = check_array("n_cells", n_cells, np.int64, (len(counts.members),))
    if not 0 <= sizes.min() <= sizes.max() < 2**40:
        raise ValueError("n_cells must be numbers from 0.")
    total = sum(sizes.tolist())
    check_array("keys", keys, np.int64, (total,))
    _check_counts("counts", amounts, (total,))
    if amounts.dtype != class_counts.dtype or not (amounts > 0).all():
        raise ValueError("counts must be positive, and of the type of class_counts.")
    ends = np.cumsum(sizes)[:-1]
    members = []
    for cells, own, values in zip(counts.members, np.split(keys, ends), np.split(amounts, ends), strict=True):
        pairs = own // n_classes
        context, value = np.divmod(pairs, int(cells.tables.n_states.max()))
        contexts = len(cells.tables.contexts.branch)
        child = np.searchsorted(cells.tables.root, context, side="right") - 1
        is_known = len(own) == 0 or (own[0] >= 0 and context[-1] < contexts)
        # Keys are compared, as differences of forged ones may overflow.
        if not is_known or (own[1:] <= own[:-1]).any() or (value >= cells.tables.n_states[child]).any():
            raise ValueError("keys must ascend, and be of contexts and values of the forest.")
        members.append(ContextCells(cells.tables, n_classes, own, values))
    counts.members = members
    return counts


def _check_counts(name: str, counts: Any, shape: tuple[int, ...]) -> AnyArray:
    """Return counts, if they are."""
    dtype = np.float64 if getattr(counts, "dtype", None) == np.float64 else np.int64
    if (check_array(name, counts, dtype, shape) < 0).any():
        raise ValueError(f"{name} must not be negative.")
    return counts
