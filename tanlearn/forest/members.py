"""Random members of a forest: how they cut features, and who depends on whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, Codes, IntArray, codes_dtype, missing_code
from tanlearn.data.encoded_data import EncodedData
from tanlearn.kernels.mathematics import tabulate_xlogx, unit_scale
from tanlearn.kernels.pair_information import counted_information
from tanlearn.kernels.random_cuts import entropy_cuts

__all__ = ["Cuts", "Grain", "draw_cuts", "draw_parents"]


@dataclass(frozen=True)
class Grain:
    """What is drawn of a member.

    Parameters
    ----------
    n_cuts : tuple of int, default=(3, 15)
        Fewest and most cuts of an ordered feature.
    supervised : float, default=0.5
        Share of the ordered features that are cut where that tells classes apart; the others anywhere.
    candidates : float, default=0.5
        Share of the earlier features that may be parents of one.
    max_candidates : int, default=32
        Most of them.
    max_parents : int, default=6
        Most parents.
    """

    n_cuts: tuple[int, int] = (3, 15)
    supervised: float = 0.5
    candidates: float = 0.5
    max_candidates: int = 32
    max_parents: int = 6


@dataclass(frozen=True, eq=False)
class Cuts:
    """How a member sees codes: ordered ones merged into fewer, and missing ones as a value where training has gaps.

    Parameters
    ----------
    merged : tuple of ndarray of shape (n_states + 1,)
        The member's code of every code of a feature; the last is that of a missing one.
    n_states : ndarray of shape (n_features,), intp
        Number of the member's values. Its codes from there on are missing.
    """

    merged: tuple[AnyArray, ...]
    n_states: IntArray

    def encode(self, codes: Codes) -> Codes:
        """Return the member's codes.

        Parameters
        ----------
        codes : ndarray of shape (n_features, n_rows), uint8 or uint16
            The largest value of the type is missing.

        Returns
        -------
        ndarray of shape (n_features, n_rows), uint8 or uint16
        """
        out: AnyArray = np.empty(codes.shape, self.merged[0].dtype)
        for table, own, target in zip(self.merged, codes, out, strict=True):
            table.take(own, out=target, mode="clip")  # the missing code finds the last
        return out


def draw_cuts(data: EncodedData, is_ordered: AnyArray, has_gaps: AnyArray, grain: Grain, rng: Any) -> Cuts:
    """Draw how a member cuts the features that have an order.

    Parameters
    ----------
    data : EncodedData
        The rows that it learns from.
    is_ordered : ndarray of shape (n_features,), bool
        Which codes have an order; others stay as they are.
    has_gaps : ndarray of shape (n_features,), bool
        Where a missing code is a value.
    grain : Grain
        How fine.
    rng : numpy.random.Generator
        Where it is drawn from; it gives as much for any rows.

    Returns
    -------
    Cuts
    """
    d = data.n_features
    n_cuts = rng.integers(grain.n_cuts[0], grain.n_cuts[1], d, endpoint=True)
    is_supervised = rng.random(d) < grain.supervised
    quantiles = rng.random((d, grain.n_cuts[1]))
    drawn = _bootstrap(data.weights, rng.random(data.n_samples))
    tables, n_states = [], np.empty(d, np.intp)
    for i in range(d):
        merged = np.arange(data.n_states[i])
        if is_ordered[i] and len(merged) > 1:
            cut = np.zeros(len(merged) - 1, np.bool_)
            if is_supervised[i]:
                _cut_classes(data, i, drawn, int(n_cuts[i]), cut)
            else:
                _cut_anywhere(data, i, quantiles[i, : n_cuts[i]], cut)
            merged = np.append(0, np.cumsum(cut))
        n_states[i] = merged[-1] + 1 + has_gaps[i]
        tables.append(merged)
    dtype = codes_dtype(int(n_states.max()))
    gaps = np.where(has_gaps, n_states - 1, missing_code(dtype))
    return Cuts(tuple(np.append(t, g).astype(dtype) for t, g in zip(tables, gaps, strict=True)), n_states)


def _bootstrap(weights: AnyArray, uniform: AnyArray) -> IntArray:
    """Return how often every row is drawn, with replacement, in proportion to its weight."""
    reached = np.cumsum(weights)
    rows = np.searchsorted(reached, uniform * reached[-1], side="right").clip(0, len(weights) - 1)
    return np.bincount(rows, minlength=len(weights))


def _counted(data: EncodedData, i: int, weights: AnyArray) -> AnyArray:
    """Return the counts of a feature's values and classes, (values, classes)."""
    missing = missing_code(data.codes.dtype)
    n_values, n_classes = int(data.n_states[i]), data.n_classes
    x, y = data.codes[i], data.y
    if (present := x != missing).all():
        cells = np.bincount(x * np.intp(n_classes) + y, weights, n_values * n_classes)
    else:
        cells = np.bincount(x[present] * np.intp(n_classes) + y[present], weights[present], n_values * n_classes)
    return cells.reshape(n_values, n_classes)


def _cut_classes(data: EncodedData, i: int, drawn: IntArray, n_cuts: int, cut: AnyArray) -> None:
    """Cut where that takes most class entropy away, in a sample of the rows."""
    counts = _counted(data, i, drawn).astype(np.int64)
    total = counts.sum()
    scale = unit_scale(float(total))
    units = np.empty(total + 1, np.int64)
    tabulate_xlogx(scale, units)
    left, right = np.empty((2, data.n_classes), np.int64)
    first, last, place, gain = np.empty((4, n_cuts + 1), np.int64)
    entropy_cuts(counts, n_cuts, scale, units, left, right, first, last, place, gain, cut)


def _cut_anywhere(data: EncodedData, i: int, quantiles: AnyArray, cut: AnyArray) -> None:
    """Cut at random quantiles."""
    reached = np.cumsum(_counted(data, i, data.weights).sum(axis=1))
    place = np.searchsorted(reached, quantiles * reached[-1])
    cut[place[place < len(cut)]] = True


def draw_parents(codes: Codes, n_states: IntArray, data: EncodedData, grain: Grain, rng: Any) -> list[IntArray]:
    """Draw an order and candidates, and take those that say most, given the class.

    Parameters
    ----------
    codes : ndarray of shape (n_features, n_samples)
        The member's codes of the rows that it learns from.
    n_states : ndarray of shape (n_features,), intp
        Its numbers of values.
    data : EncodedData
        Classes and weights of the rows.
    grain : Grain
        How many candidates and parents.
    rng : numpy.random.Generator
        Where it is drawn from; it gives as much for any rows.

    Returns
    -------
    list of ndarray
        The parents of every feature, that of the largest I(X; parent | C) first.
    """
    d, n_classes = len(codes), data.n_classes
    order = rng.permutation(d)
    candidates = []
    for position in range(d):
        n = min(int(np.ceil(position * grain.candidates)), grain.max_candidates)
        candidates.append(rng.permutation(order[:position])[:n])
    pairs = [n_states[child] * n_states[others].max(initial=0) for child, others in zip(order, candidates, strict=True)]
    counts = np.empty(max(pairs) * n_classes, data.weights.dtype)
    margins = np.empty((2 * int(n_states.max()) + 1) * n_classes, data.weights.dtype)
    missing = missing_code(codes.dtype)
    parents: list[IntArray] = [np.empty(0, np.intp)] * d
    for child, others in zip(order, candidates, strict=True):
        found = np.empty((1, len(others)))
        wanted = np.ones((1, len(others)), np.bool_)
        features = np.array([child]), others, wanted
        counted_information(
            codes, data.y, data.weights, *features, n_states, n_classes, missing, counts, margins, found
        )
        parents[child] = others[np.argsort(-found[0], kind="stable")[: grain.max_parents]]
    return parents
