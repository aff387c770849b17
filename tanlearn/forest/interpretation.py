"""Contributions of features to the predictions of a forest, importances, and dependences between features.

A weighted forest adds the gains g_i of its features to log probabilities of classes. Probabilities are then normalized,
averaged over networks if the forest is an average, and mixed with uniform label noise. The logarithmic mean L(p, q) =
(p - q) / log(p / q) keeps contributions additive in all of these steps, because p - q = L(p, q) (log p - log q) (Ang,
Liu 2001). Let q be the prior, p_c = q_c exp(sum_i g_ic) / Z, and L_c = L(p_c, q_c). Then

    p_c - q_c = L_c (sum_i g_ic - log Z)

sums to 0 over the classes. This determines log Z, and

    p_c - q_c = sum_i L_c (g_ic - sum_k L_k g_ik / sum_k L_k).

Each addend is averaged over networks and multiplied by 1 - noise. Division by the logarithmic mean of the result with
and without features turns differences of probabilities into differences of log probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from scipy.special import exprel, log_softmax

from tanlearn._threads import in_blocks, in_threads
from tanlearn._typing import Codes, FloatArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.forest.forest import Forest, softmax
from tanlearn.forest.forest_network import ForestNetwork
from tanlearn.kernels.mathematics import log_all

__all__ = ["dependences", "explain", "left_out_importances", "losses_without", "normalized_contributions"]

#: Largest number of rows, and of gains, per block: 8 MB.
_BLOCK = 512
_MOST_NUMBERS = 2**20

#: A network, and the weights (n_features, n_levels) of its gains.
_Weighted = tuple[ForestNetwork, FloatArray]


def explain(forest: Forest, codes: Codes, *, n_jobs: int | None = None) -> FloatArray:
    """Split the log probabilities of each row into contributions of its features, for each class.

    Entry ``[r, i]`` is the contribution of the families of feature i. Entry ``[r, -1]`` is the log probability without
    features, from class frequencies, label noise and shift. The entries sum to :meth:`Forest.log_joint`. In a weighted
    forest without label noise, the difference between two classes equals the difference of their weighted gains. The
    result does not depend on ``n_jobs``.

    Reference: Ang, Liu: A new energy decomposition method: perfect in decomposition and consistent in aggregation.
    Energy 26, 2001.

    Shapes: codes: (n_features, n_rows), of the encoder; result: (n_rows, n_features + 1, n_classes).
    """
    d, n_rows, n_classes = *codes.shape, len(forest.log_prior)
    prior, groups = log_softmax(forest.log_prior), forest.groups
    before = _mixed(prior[np.newaxis], forest.label_noise)
    slot = np.repeat(np.arange(d)[:, np.newaxis], forest.weights.shape[2], axis=1)
    out = np.empty((n_rows, d + 1, n_classes))
    out[:, d] = before + forest.shift

    def split(first: int, last: int) -> None:
        block, log_p = np.ascontiguousarray(codes[:, first:last]), np.empty((len(groups), last - first, n_classes))
        moved = np.zeros((d, last - first, n_classes))
        for number, group in enumerate(groups):
            own = np.zeros(moved.shape)
            for member, weight in group:
                member.add_scores(block, weight, slot, own)
            log_p[number] = log_softmax(prior + own.sum(axis=0), axis=1)
            mean = _log_mean(log_p[number], prior)
            own -= (np.einsum("irc,rc->ir", own, mean) / mean.sum(axis=1))[..., np.newaxis]
            moved += own * mean
        moved *= (1.0 - forest.label_noise) / len(groups) / _log_mean(_mixed(log_p, forest.label_noise), before)
        out[first:last, :d] = moved.transpose(1, 0, 2)

    in_blocks(split, n_rows, _rows_of(d * n_classes), n_jobs)
    return out


def normalized_contributions(contributions: FloatArray) -> FloatArray:
    """Convert contributions to scores into contributions to the log probabilities, the log softmax of the scores.

    Differences between two classes do not change.

    Shapes: contributions and result: (n_rows, n_features + 1, n_classes), the prior last.
    """
    gains, prior = contributions[:, :-1], log_softmax(contributions[:, -1], axis=1)
    log_p = log_softmax(contributions.sum(axis=1), axis=1)
    mean = _log_mean(log_p, prior)
    of_rows = np.einsum("ric,rc->ri", gains, mean) / mean.sum(axis=1, keepdims=True)
    return np.concatenate([gains - of_rows[..., np.newaxis], prior[:, np.newaxis]], axis=1)


def dependences(forest: Forest, codes: Codes, *, n_jobs: int | None = None) -> FloatArray:
    """Split the mean information of predictions into contributions of features, alone and given their parents.

    The information of a prediction p is sum_c p_c log(p_c / q_c) in nats, where q is the prediction for a row without
    features. It is a sum over all levels of all families (see :func:`explain`). Each level adds a parent, and its
    contribution is attributed to this parent.

    Entry ``[i, i]`` of the result is the contribution of feature i alone. Entry ``[j, i]`` is the additional
    contribution of i given its parent j and the parents before j. The entries sum to the mean information over rows. An
    entry is negative if the value of the parent reduces the contribution. The shift is ignored. The result does not
    depend on ``n_jobs``.

    Shapes: codes: (n_features, n_rows), of the encoder; result: (n_features, n_features).
    """
    d, n_rows, n_classes = *codes.shape, len(forest.log_prior)
    prior, groups = log_softmax(forest.log_prior), forest.groups
    strength: FloatArray = np.zeros((d, d))
    if n_rows == 0:
        return strength
    nothing = np.zeros(forest.weights.shape[1:], np.intp)
    slot = np.arange(nothing.size).reshape(nothing.shape)
    log_p = np.empty((len(groups), n_rows, n_classes))

    def score(first: int, last: int) -> None:
        block = np.ascontiguousarray(codes[:, first:last])
        for number, group in enumerate(groups):
            scores = np.empty((1, last - first, n_classes))
            scores[:] = prior
            for member, weight in group:
                member.add_scores(block, weight, nothing, scores)
            log_p[number, first:last] = log_softmax(scores[0], axis=1)

    in_blocks(score, n_rows, _BLOCK, n_jobs)
    # Compute the probabilities first: given these, the mean information is linear in the gains.
    after, before = _mixed(log_p, forest.label_noise), _mixed(prior[np.newaxis], forest.label_noise)
    rate = np.exp(after) * ((1.0 - forest.label_noise) / len(groups) / n_rows) / _log_mean(after, before)
    size = _rows_of(slot.size * n_classes)

    def sum_up(task: tuple[int, _Weighted]) -> FloatArray:
        number, (member, weight) = task
        mean = _log_mean(log_p[number], prior)
        factor = rate * mean
        factor -= mean * (factor.sum(axis=1) / mean.sum(axis=1))[:, np.newaxis]
        total = np.zeros(slot.size)
        for first, last in pairwise([*range(0, n_rows, size), n_rows]):
            gains = np.zeros((slot.size, last - first, n_classes))
            member.add_scores(np.ascontiguousarray(codes[:, first:last]), weight, slot, gains)
            total += np.einsum("src,rc->s", gains, factor[first:last])
        return total.reshape(slot.shape)

    tasks = [(number, pair) for number, group in enumerate(groups) for pair in group]
    for (_, (member, _)), own in zip(tasks, in_threads(sum_up, tasks, n_jobs), strict=True):
        np.fill_diagonal(strength, strength.diagonal() + own[:, 0])
        child, place = np.nonzero(member.tables.parents >= 0)
        np.add.at(strength, (member.tables.parents[child, place], child), own[child, place + 1])
    return strength


def losses_without(forest: Forest, codes: Codes, y: IntArray, *, n_jobs: int | None = None) -> FloatArray:
    """Compute the log loss of each row with all features and with each feature left out in turn.

    If a feature is left out, its own families contribute nothing, and other families use only the parents before it.
    Scores are sums of gains over levels, so one pass over the rows is enough for all features. The result does not
    depend on ``n_jobs``.

    Shapes: codes: (n_features, n_rows), of the encoder; y: (n_rows,); result: (1 + n_features, n_rows).
    """
    d, n_rows, n_classes = *codes.shape, len(forest.log_prior)
    n_levels, groups = forest.weights.shape[2], forest.groups
    slot = np.arange(d * n_levels).reshape(d, n_levels)
    losses = np.empty((1 + d, n_rows))

    def score(first: int, last: int) -> None:
        block = np.ascontiguousarray(codes[:, first:last])
        gains = np.empty((d, n_levels, last - first, n_classes))
        p = np.zeros((1 + d, last - first, n_classes))
        for group in groups:
            scores = np.zeros(p.shape)
            for member, weight in group:
                gains[:] = 0.0
                member.add_scores(block, weight, slot, gains.reshape(-1, *gains.shape[2:]))
                for level in reversed(range(n_levels - 1)):
                    gains[:, level] += gains[:, level + 1]  # of this level and all later ones
                scores[0] += gains[:, 0].sum(axis=0)
                scores[1:] -= gains[:, 0]
                for child, place in zip(*np.nonzero(member.tables.parents >= 0), strict=True):
                    scores[1 + member.tables.parents[child, place]] -= gains[child, place + 1]
            scores[1:] += scores[0]
            scores += forest.log_prior
            p += softmax(scores.reshape(-1, n_classes)).reshape(p.shape)
        p *= (1.0 - forest.label_noise) / len(groups)
        p += forest.label_noise / n_classes
        p *= np.exp(forest.shift)
        own = p[:, np.arange(last - first), y[first:last]] / p.sum(axis=-1)
        log_all(own.ravel(), own.ravel())  # equal on every CPU, since importances are stored in files
        losses[:, first:last] = -own

    in_blocks(score, n_rows, _rows_of(slot.size * n_classes), n_jobs)
    return losses


def left_out_importances(
    forests: Sequence[Forest], data: EncodedData, fold: IntArray, rows: IntArray, *, n_jobs: int | None = None
) -> FloatArray:
    """Compute the mean increase of the out-of-fold log loss, in nats, if a feature is left out.

    ``forests`` contains the forest grown without each fold. Shapes: fold: (n_samples,); rows: (n_rows,), the rows to
    evaluate; result: (n_features,).
    """
    losses = np.empty((1 + data.n_features, len(rows)))
    for f, forest in enumerate(forests):
        own = np.flatnonzero(fold[rows] == f)
        own_rows = rows[own]
        losses[:, own] = losses_without(forest, data.codes[:, own_rows], data.y[own_rows], n_jobs=n_jobs)
    mean: FloatArray = np.average(losses, axis=1, weights=data.weights[rows])
    return mean[1:] - mean[0]


def _mixed(log_p: FloatArray, label_noise: float) -> FloatArray:
    """Return the log of mean probabilities over groups (n_groups, ..., n_classes), mixed with label noise."""
    with np.errstate(divide="ignore"):  # without label noise
        log_noise, log_rest = np.log(np.array([label_noise / log_p.shape[-1], (1.0 - label_noise) / len(log_p)]))
    mixed: FloatArray = np.logaddexp(np.logaddexp.reduce(log_p, axis=0) + log_rest, log_noise)
    return mixed


def _log_mean(a: FloatArray, b: FloatArray) -> FloatArray:
    """Compute the logarithmic mean of exp(a) and exp(b): (exp(a) - exp(b)) / (a - b)."""
    mean: FloatArray = np.exp(np.maximum(a, b)) * exprel(-np.abs(a - b))
    return mean


def _rows_of(width: int) -> int:
    """Return the number of rows per block if each row has ``width`` numbers."""
    return max(1, min(_BLOCK, _MOST_NUMBERS // width))
