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
    """A network whose families have as many parents as they like.

    Parameters
    ----------
    cuts : Cuts
        How it sees codes.
    tables : ContextTables
        Its families.
    """

    cuts: Cuts
    tables: ContextTables

    def add_scores(self, codes: Codes, weight: FloatArray, slot: IntArray, scores: FloatArray) -> None:
        """Add the weighted gains of encoded rows to their scores.

        Parameters
        ----------
        codes : ndarray of shape (n_features, n_rows), uint8 or uint16
            As the encoder makes them.
        weight : ndarray of shape (n_features, n_levels), float64
            What gains of every level of every family are multiplied by.
        slot : ndarray of shape (n_features, n_levels), intp
            Which of the scores they are added to.
        scores : ndarray of shape (n_slots, n_rows, n_classes), float64
            Changed in place.
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

    Parameters
    ----------
    data : EncodedData
        The rows that it learns from.
    is_ordered, has_gaps : ndarray of shape (n_features,), bool
        Which codes have an order, and where a missing one is a value.
    grain : Grain
        What is drawn.
    seed : int
        The same draws the same order, candidates and quantiles from other rows.
    smoothing : float
        m on every level.
    min_samples : int
        Rows that a context has at least.

    Returns
    -------
    Member
    """
    of_cuts, of_parents = (np.random.default_rng([seed, part]) for part in range(2))
    cuts = draw_cuts(data, is_ordered, has_gaps, grain, of_cuts)
    codes = cuts.encode(data.codes)
    parents = draw_parents(codes, cuts.n_states, data, grain, of_parents)
    rows = data.y, data.weights, data.n_classes
    tables = ContextTables.grow(codes, cuts.n_states, *rows, parents, smoothing=smoothing, min_samples=min_samples)
    return Member(cuts, tables)
