"""Back-off tables restored from the arrays of a file."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, IntArray
from tanlearn.data.stored_values import check_array, fields
from tanlearn.network.back_off import BackOffTables
from tanlearn.network.contexts import ContextCounts
from tanlearn.network.structures import Structure

__all__ = ["restore_back_off"]


def restore_back_off(structure: Any, n_states: IntArray, n_classes: int, log_prior: Any, state: Any) -> BackOffTables:
    """Build back-off tables from the ``back_off`` state of :meth:`~tanlearn.network.back_off.BackOffTables.to_state`.

    All arguments come from a file, except n_states (n_features,) and n_classes. Inconsistent values raise ValueError.
    """
    if not isinstance(structure, Structure) or structure.n_features != len(n_states):
        raise ValueError(f"the structure must have {len(n_states)} features, got {structure!r}.")
    names = "concentrations", "class_counts", "n_entries", "values", "counts", "level_counts"
    m, class_counts, n_entries, values, counts, level_counts = fields(state, *names)
    check_array("cells", log_prior, np.float64, (n_classes,))
    depth = (structure.parents >= 0).sum(axis=1)
    check_array("concentrations", m, np.float64, (1 + int(depth.max()),))
    check_array("n_entries", n_entries, np.int64, (len(n_states),))
    if not (m > 0).all():
        raise ValueError("concentrations must be positive.")
    dtype = getattr(counts, "dtype", None)
    if dtype not in (np.int64, np.float64) or not 0 <= n_entries.min() <= n_entries.max() < 2**40:
        raise ValueError(f"counts must be int64 or float64, as many as the sum of n_entries, got {dtype}.")
    n_rows = sum(n_entries.tolist())
    n_values = sum(n * (k + 2) for n, k in zip(n_entries.tolist(), depth.tolist(), strict=True))
    for name, array, size in (("counts", counts, n_rows), ("class_counts", class_counts, n_classes)):
        check_array(name, array, dtype, (size,))
        if (array < 0).any():
            raise ValueError(f"{name} must not be negative.")
    check_array("values", values, np.uint16, (n_values,))
    contexts = ContextCounts(structure.parents, n_states, n_classes)
    contexts.class_counts = class_counts
    splits = np.cumsum(n_entries)[:-1]
    widths = np.cumsum(n_entries * (depth + 2))[:-1]
    families = zip(np.split(values, widths), np.split(counts, splits), depth.tolist(), strict=True)
    contexts.families = [(np.ascontiguousarray(v.reshape(-1, k + 2).T), c) for v, c, k in families]
    for i, (found, weights) in enumerate(contexts.families):
        _check_family(i, found, weights, contexts.family(i)[1])
    if level_counts is None:
        return BackOffTables(contexts, m, log_prior)
    tables = BackOffTables(contexts, m, log_prior)  # built to get the number of entries of each level
    sizes = [len(family.counts) for family in tables.families]
    check_array("level_counts", level_counts, np.float64, (sum(sizes),))
    if not (level_counts > 0).all():
        raise ValueError("level_counts must be positive.")
    return BackOffTables(contexts, m, log_prior, counts=np.split(level_counts, np.cumsum(sizes)[:-1]))


def _check_family(i: int, values: AnyArray, counts: AnyArray, n_values: IntArray) -> None:
    """Raise ValueError for entries that are out of range, unsorted or duplicate."""
    largest = n_values[:, np.newaxis] - 1
    largest[:-2] += 1  # code of a missing parent
    absent = values[:-2] == n_values[:-2, np.newaxis]
    if (values > largest).any() or (counts <= 0).any() or (absent[:-1] & ~absent[1:]).any():
        raise ValueError(f"a value or a count of feature {i} is out of range.")
    before, after = values[:, :-1], values[:, 1:]
    place = (before != after).argmax(axis=0)
    columns = np.arange(len(place))
    if (before[place, columns] >= after[place, columns]).any():
        raise ValueError(f"the entries of feature {i} must be sorted and distinct.")
