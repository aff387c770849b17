"""Conversion of counts of every kind to arrays for a file, and validated restoration.

A file of counts is an archive as :mod:`tanlearn.files.models` describes it, of the format ``"tanlearn counts file"``,
version 1. Its object ``counts file`` has ``classes``, ``feature_names`` and ``encoder`` as in model files, ``kind``,
and ``counts``, an object whose values depend on the kind. Counts are int64, or float64 if weights were not integers.

- ``CountState``: ``cells``, the counts of the classes, then the counts of each feature, indexed [value][class];
  ``pairs``, the counts of the features (1, 0), (2, 0), (2, 1), (3, 0) and so on, indexed [value of the first][value of
  the second][class].
- ``FamilyCounts``: ``structure``, and ``cells`` in the order of a model's tables.
- ``ForestCounts``: ``forest``, a dict as in the model file of a forest; ``class_counts``; ``n_cells``, the number of
  counts of each network; and the concatenated ``keys`` and ``counts`` of all networks. A key is (context * largest
  number of values of a feature in the network + value) * number of classes + class. The keys of a network ascend.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, IntArray
from tanlearn.data.stored_values import check_array, fields
from tanlearn.files.archive import ExplainedError
from tanlearn.forest.counts import ContextCells, ForestCounts
from tanlearn.forest.state import from_state as restore_forest
from tanlearn.forest.state import to_state as forest_state
from tanlearn.network.counts import CountState
from tanlearn.network.family_counts import FamilyCounts
from tanlearn.network.structures import Structure
from tanlearn.network.table_layout import TableLayout, n_table_cells

__all__ = ["from_state", "to_state", "why_no_counts"]


def to_state(counts: Any) -> dict[str, Any]:
    """Return the arrays of counts for a file, without the numbers of values and classes."""
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
        f"a file can contain CountState, FamilyCounts and ForestCounts, but not {type(counts).__name__}. Save the "
        f"model fitted from them instead."
    )


def why_no_counts(model: Any) -> str:
    """Return the reason why a fitted classifier has no ``counts_``, for error messages."""
    reason = "it was fitted from all rows at once"
    if getattr(model, "_was_loaded", False):
        reason = "it was read from a file without counts (save(path, counts=True) keeps them, where there are any)"
    return f"this {type(model).__name__} has no counts, because {reason}"


def from_state(kind: Any, state: dict[str, Any], n_states: IntArray, n_classes: int) -> Any:
    """Restore the counts of :func:`to_state`, or raise an error if they are invalid; ``n_states``: (n_features,)."""
    if kind == "CountState":
        return CountState.restore(n_states, n_classes, *fields(state, "cells", "pairs"))
    if kind == "FamilyCounts":
        structure, cells = fields(state, "structure", "cells")
        if not isinstance(structure, Structure) or structure.n_features != len(n_states):
            raise ValueError(f"the structure must be of {len(n_states)} features, got {structure!r}.")
        # Checked before memory is allocated: a forged structure can ask for any number of counts.
        _check_counts("cells", cells, (n_table_cells(structure.parents, n_states, n_classes),))
        counts = FamilyCounts(TableLayout.of_parents(structure.parents, n_states, n_classes))
        counts.cells = cells
        return counts
    if kind == "ForestCounts":
        return _forest_counts(state, n_states, n_classes)
    raise ExplainedError(f"it holds counts of the kind {kind!r}, unknown to this version: upgrade tanlearn.")


def _forest_counts(state: dict[str, Any], n_states: IntArray, n_classes: int) -> ForestCounts:
    """Restore the counts of a forest, after validation."""
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
        is_known = len(own) == 0 or (0 <= own[0] <= own[-1] and context[-1] < contexts)
        if not is_known or (np.diff(own) <= 0).any() or (value >= cells.tables.n_states[child]).any():
            raise ValueError("keys must ascend, and be of contexts and values of the forest.")
        members.append(ContextCells(cells.tables, n_classes, own, values))
    counts.members = members
    return counts


def _check_counts(name: str, counts: Any, shape: tuple[int, ...]) -> AnyArray:
    """Return counts unchanged if type, shape and sign are valid."""
    dtype = np.float64 if getattr(counts, "dtype", None) == np.float64 else np.int64
    if (check_array(name, counts, dtype, shape) < 0).any():
        raise ValueError(f"{name} must not be negative.")
    return counts
