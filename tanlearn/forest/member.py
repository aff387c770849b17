"""One network of a forest: cuts, parents, and the contexts of its families."""

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
    """A network whose families have as many parents as they like."""

    cuts: Cuts  # How it sees codes
    tables: ContextTables  # Its families

    def add_scores(self, codes: Codes, weight: FloatArray, slot: IntArray, scores: FloatArray) -> None:
        """Add the weighted gains of encoded rows to their scores.

        Shapes: codes: (n_features, n_rows); weight: (n_features, n_levels); slot: (n_features, n_levels); scores:
            (n_slots, n_rows, n_classes).
        """
        self.tables.add_scores(self.cuts.encode(codes), weight, slot, scores)


def grow_member(
    data: EncodedData,
    is_ordered: AnyArray,
    has_gaps: AnyArray,
    grain: Grain,
    seed: int,
    *,
    smoothing: float,
    min_samples: int,
) -> Member:
    """Draw a member, and count its contexts.

    Shapes: is_ordered, has_gaps: (n_features,).
    """
    of_cuts, of_parents = (np.random.default_rng([seed, part]) for part in range(2))
    cuts = draw_cuts(data, is_ordered, has_gaps, grain, of_cuts)
    codes = cuts.encode(data.codes)
    parents = draw_parents(codes, cuts.n_states, data, grain, of_parents)
    rows = data.y, data.weights, data.n_classes
    tables = ContextTables.grow(codes, cuts.n_states, *rows, parents, smoothing=smoothing, min_samples=min_samples)
    return Member(cuts, tables)
