"""Back-off tables restored from the arrays of a file."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import IntArray
from tanlearn.data.stored_values import check_array, fields
from tanlearn.network.back_off import BackOffTables
from tanlearn.network.contexts import ContextCounts

__all__ = ["restore_back_off"]


def restore_back_off(structure: Any, n_states: IntArray, n_classes: int, log_prior: Any, state: Any) -> BackOffTables:
    """Build back-off tables from the ``back_off`` state of :meth:`~tanlearn.network.back_off.BackOffTables.to_state`.

    All arguments come from a file, except n_states (n_features,) and n_classes. Inconsistent values raise ValueError.
    """
    state = dict(state) if type(state) is dict else {}
    own = {name: state.pop(name, None) for name in ("class_counts", "n_entries", "values", "counts")}
    m, level_counts = fields(state, "concentrations", "level_counts")
    contexts = ContextCounts.from_state({"structure": structure, **own}, n_states, n_classes)
    check_array("cells", log_prior, np.float64, (n_classes,))
    depth = int((contexts.parents >= 0).sum(axis=1).max())
    check_array("concentrations", m, np.float64, (1 + depth,))
    if not (m > 0).all():
        raise ValueError("concentrations must be positive.")
    if level_counts is None:
        return BackOffTables(contexts, m, log_prior)
    tables = BackOffTables(contexts, m, log_prior)  # built to get the number of entries of each level
    sizes = [len(family.counts) for family in tables.families]
    check_array("level_counts", level_counts, np.float64, (sum(sizes),))
    if not (level_counts > 0).all():
        raise ValueError("level_counts must be positive.")
    return BackOffTables(contexts, m, log_prior, counts=np.split(level_counts, np.cumsum(sizes)[:-1]))
