"""Networks of a forest joined into one, which scores a single row in one kernel call instead of two per network.

The joined network has one feature for each feature of each network, and the families of all networks are concatenated.
Gains are added in the order of ``Forest.noiseless_proba``, so that the scores are equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.forest.context_tables import join_tables
from tanlearn.forest.forest_network import ForestNetwork

__all__ = ["JoinedNetworks"]


class JoinedNetworks:
    """Copy of a forest's networks that scores single rows. Scores are added, or kept apart if ``is_average``.

    ``weights`` (n_networks, n_features, n_levels) are the weights of the gains. ``n_values`` (n_features,) are the
    numbers of values in the encoder.
    """

    def __init__(
        self, networks: Sequence[ForestNetwork], weights: FloatArray, n_values: IntArray, *, is_average: bool
    ) -> None:
        n_networks, n_features, n_levels = weights.shape
        tables = []
        for k, network in enumerate(networks):
            own = network.tables
            parents = np.full((n_features, n_levels - 1), -1)
            parents[:, : own.parents.shape[1]] = np.where(own.parents >= 0, own.parents + k * n_features, -1)
            tables.append(replace(own, parents=parents))
        n_states = np.concatenate([own.n_states for own in tables])
        self._tables = replace(join_tables(tables), n_states=n_states)
        self._weight = weights.reshape(n_networks * n_features, n_levels)
        self._n_groups = n_networks if is_average else 1
        group = np.arange(self._n_groups).repeat(len(self._weight) // self._n_groups)
        self._group = np.ascontiguousarray(np.broadcast_to(group[:, np.newaxis], self._weight.shape))
        merged = [network.cuts.merged for network in networks]
        self._merged: AnyArray = np.concatenate(merged)
        first = np.cumsum([0, *map(len, merged[:-1])])
        self._start = np.stack([network.cuts.start[:-1] for network in networks]) + first[:, np.newaxis]
        self._n_values = n_values

    def scores(self, row: IntArray, log_prior: FloatArray) -> FloatArray:
        """Return the log prior plus weighted gains (n_groups, n_classes) for a row of codes (n_features,)."""
        codes = self._merged[self._start + np.minimum(row, self._n_values)]
        scores = np.empty((self._n_groups, 1, len(log_prior)))
        scores[:] = log_prior
        self._tables.add_row_scores(codes.reshape(-1, 1), self._weight, self._group, scores)
        return scores[:, 0]
