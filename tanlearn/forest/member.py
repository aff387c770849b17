"""One network of a forest: its discretization, and the context tries of its families."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray
from tanlearn.data.encoded_data import EncodedData
from tanlearn.forest.contexts import ContextTables
from tanlearn.forest.drawing import Cuts, Grain, draw_cuts, draw_parents

__all__ = ["Member", "grow_member"]


@dataclass(frozen=True, eq=False)
class Member:
    """Network of a forest, with any number of parents per feature."""

    cuts: Cuts
    tables: ContextTables

    def add_scores(self, codes: Codes, weight: FloatArray, slot: IntArray, scores: FloatArray) -> None:
        """Add the weighted gains of encoded rows to ``scores`` in place, see `ContextTables.add_scores`.

        Shapes: codes: (n_features, n_rows); weight, slot: (n_features, n_levels); scores: (n_slots, n_rows, n_classes).
        """
        self.tables.add_scores(self.cuts.encode(codes), weight, slot, scores)


def grow_member(
    data: EncodedData,
    is_ordered: AnyArray,
    has_missing: AnyArray,
    grain: Grain,
    seed: int,
    *,
    smoothing: float,
    min_samples: int,
) -> Member:
    """Draw the discretization and the parents of a network, and build its context tries.

    ``is_ordered`` and ``has_missing`` (n_features,) mark features with ordered codes and those with a value for missing
    codes. The same seed gives the same order, candidates and quantiles for other rows.
    """
    of_cuts, of_parents = (np.random.default_rng([seed, part]) for part in range(2))
    cuts = draw_cuts(data, is_ordered, has_missing, grain, of_cuts)
    codes = cuts.encode(data.codes)
    parents = draw_parents(codes, cuts.n_states, data, grain, of_parents)
    rows = data.y, data.weights, data.n_classes
    tables = ContextTables.grow(codes, cuts.n_states, *rows, parents, smoothing=smoothing, min_samples=min_samples)
    return Member(cuts, tables)
