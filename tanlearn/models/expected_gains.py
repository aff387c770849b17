"""Expected gain of observing one more feature of a row, or of a plan of several features.

Let q(v, c) be the probability of value v of a feature and class c, given the observed features. The expected gain of
observing the feature is

    information   sum_{v,c} q(v, c) log2 (q(v, c) / (q(v) q(c)))                        in bits
    utility       sum_v max_d sum_c q(v, c) U(c, d)  -  max_d sum_c q(c) U(c, d)

for the utility U(c, d) of decision d if the class is c. In a plan of several features, each feature is chosen after the
values of the earlier ones are observed. The gain of a plan is the sum of the expected gains of its steps. Plans are
compared by expected gain per expected cost. The plan with the largest ratio is found by Dinkelbach's method (Management
Science 13, 1967).

The class probabilities q(c) are given, before or after calibration, and q(v, c) = q(c) p(v | c, observed features).

Shapes: n rows, d features, V values of all features together, C classes, D decisions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray
from tanlearn.kernels.mathematics import exp_all, log_all
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.value_joints import log_joint_of_values, log_sum, value_starts

__all__ = ["Gain", "expected_gains", "information_gain", "utility_gain"]

#: Function that returns the expected gains (n, d) of the features. It is given the probabilities of values and classes
#: (n, V, C), the probabilities of the classes (n, C), and the first value of each feature (d + 1,).
Gain = Callable[[FloatArray, FloatArray, IntArray], FloatArray]

#: Numbers of a block of rows, 16 MB.
_BLOCK_NUMBERS = 2**21
#: Maximum number of partly observed rows in the plans of one row: 20 seconds with 35 features and 19 classes.
_MOST_ROWS = 20_000
#: Gains below this are rounding errors of sums of probabilities, in bits or relative to the largest utility.
_LEAST_GAIN = 1e-12
#: Iterations of Dinkelbach's method, which converges faster than linearly.
_MOST_RATIOS = 50


def information_gain(q: FloatArray, prior: FloatArray, start: IntArray) -> FloatArray:
    """Compute the mutual information in bits between each feature and the class; result: (n, d)."""
    of_values = _x_log_x(q).sum(axis=2) - _x_log_x(q.sum(axis=2))
    gain: FloatArray = np.add.reduceat(of_values, start[:-1], axis=1) - _x_log_x(prior).sum(axis=1, keepdims=True)
    return _without_noise(gain / np.log(2.0), 1.0)


def utility_gain(utility: FloatArray) -> Gain:
    """Return the function that computes the increase of the expected utility; ``utility`` is (C, D)."""

    def best(p: FloatArray) -> FloatArray:  # einsum adds in one order, @ in one that depends on BLAS
        expected: FloatArray = np.einsum("...c,cd->...d", p, utility)
        return expected.max(axis=-1)

    def gain(q: FloatArray, prior: FloatArray, start: IntArray) -> FloatArray:
        increase: FloatArray = np.add.reduceat(best(q), start[:-1], axis=1) - best(prior)[:, np.newaxis]
        return _without_noise(increase, float(np.abs(utility).max()))

    return gain


def _without_noise(gains: FloatArray, unit: float) -> FloatArray:
    """Replace rounding errors, which may be negative, by 0, so that the gains of features without effect are equal."""
    return np.where(gains < _LEAST_GAIN * unit, 0.0, gains)


def _x_log_x(p: FloatArray) -> FloatArray:
    """Return p log p in nats, 0 for 0."""
    result: FloatArray = p * _log(np.where(p > 0, p, 1.0))
    return result


def _log(p: FloatArray) -> FloatArray:
    """Return the logarithms of positive numbers."""
    logs = np.ascontiguousarray(p)
    out = np.empty_like(logs)
    log_all(logs.ravel(), out.ravel())
    return out


def expected_gains(
    network: BayesNet,
    codes: Codes,
    is_candidate: AnyArray,
    posterior: FloatArray,
    gain: Gain,
    costs: FloatArray,
    *,
    depth: int = 1,
    n_jobs: int | None = None,
) -> FloatArray:
    """Compute the expected gain per expected cost of the best plan that begins with each candidate feature.

    A plan consists of ``depth`` features, or of all candidates if there are fewer. The result is NaN for features that
    are not candidates. A row over the limit of partly observed rows, or of operations, raises ValueError.

    Shapes: codes: (d, n); is_candidate: (n, d), features without a value; posterior: (n, C), the class
    probabilities given the observed features; costs: (d,), positive; result: (n, d).
    """
    _check_size(network.numbers_of_values(), is_candidate, depth)
    # Rows with equal values have equal gains. At the beginning of a questionnaire, all rows are equal.
    together = np.concatenate([codes, is_candidate.T.astype(codes.dtype)])
    _, first, kind = np.unique(together, axis=1, return_index=True, return_inverse=True)
    blocks = [first] if depth == 1 else np.split(first, len(first))  # the plans of one row at a time
    found = []
    for rows in blocks:
        steps = _expand_plans(network, codes[:, rows], is_candidate[rows], posterior[rows], gain, depth, n_jobs)
        found.append(_best_ratios(steps, costs))
    gains: FloatArray = np.concatenate(found)[kind.ravel()]
    gains[~is_candidate] = np.nan
    return gains


def _check_size(n_states: IntArray, is_candidate: AnyArray, depth: int) -> None:
    """Raise ValueError if the plans of a row consist of too many partly observed rows."""
    n_values = (is_candidate * n_states).sum(axis=1)
    largest = float(n_values.max(initial=0))
    n_rows = sum(largest**k for k in range(depth))
    if n_rows > _MOST_ROWS:
        raise ValueError(
            f"the plans of a row may contain at most {_MOST_ROWS:,} partly observed rows, but depth={depth} needs "
            f"up to {n_rows:,.0f} for row {int(n_values.argmax())}, whose missing features have {largest:,.0f} "
            f"values together. Use a smaller depth, or pass rows with fewer missing features."
        )


class _Step(NamedTuple):
    """The m rows in which plans have observed the same number of features."""

    gain: FloatArray  # (m, d) expected gain of each feature, -inf for features that are not candidates
    row: IntArray  # (m,) row of the step before
    feature: IntArray  # (m,) feature that was observed there
    probability: FloatArray  # (m,) probability of the value that was observed there
    root: IntArray  # (m,) row of the first step
    first: IntArray  # (m,) feature that the plan begins with


def _expand_plans(
    network: BayesNet,
    codes: Codes,
    is_candidate: AnyArray,
    posterior: FloatArray,
    gain: Gain,
    depth: int,
    n_jobs: int | None,
) -> list[_Step]:
    """Return the gains in all rows that plans can reach, one step for each number of observed features."""
    start = value_starts(network.numbers_of_values())
    feature_of = np.repeat(np.arange(len(start) - 1), np.diff(start))
    rows = np.arange(codes.shape[1])
    nothing = np.full(len(rows), -1)
    step = _Step(np.empty(0), nothing, nothing, np.ones(len(rows)), rows, nothing)
    steps: list[_Step] = []
    for k in range(depth):
        gains, q = _gains_and_joints(network, codes, posterior, gain, n_jobs, needs_joints=k + 1 < depth)
        gains[~is_candidate] = -np.inf
        steps.append(step._replace(gain=gains))
        if k + 1 == depth:
            break
        probability = q.sum(axis=2)
        is_next = is_candidate[:, feature_of] & (probability > 0) & (is_candidate.sum(axis=1) > 1)[:, np.newaxis]
        row, value = np.nonzero(is_next)
        if not row.size:
            break
        feature, p = feature_of[value], probability[row, value]
        first = feature if k == 0 else step.first[row]
        step = _Step(np.empty(0), row, feature, p, step.root[row], first)
        posterior = q[row, value] / p[:, np.newaxis]
        codes, is_candidate, new = codes[:, row], is_candidate[row], np.arange(len(row))
        codes[feature, new], is_candidate[new, feature] = value - start[feature], False
    return steps


def _gains_and_joints(
    network: BayesNet, codes: Codes, posterior: FloatArray, gain: Gain, n_jobs: int | None, *, needs_joints: bool
) -> tuple[FloatArray, FloatArray]:
    """Return the expected gain of each feature, and q(v, c), (n, V, C), which is empty if it is not needed."""
    start = value_starts(network.numbers_of_values())
    n, n_classes = posterior.shape
    gains = np.empty((n, len(start) - 1))
    joints = np.empty((n if needs_joints else 0, int(start[-1]), n_classes))
    size = max(1, _BLOCK_NUMBERS // (int(start[-1]) * n_classes))
    for begin in range(0, n, size):
        rows = slice(begin, begin + size)
        own = posterior[rows]
        q = log_joint_of_values(network.tables, network.structure, codes[:, rows], n_jobs=n_jobs)
        seen = log_sum(q[:, : start[1]], axis=1)  # log p(class, observed features)
        is_possible = (seen > -np.inf) & (own > 0)
        q += np.where(is_possible, _log(np.where(own > 0, own, 1.0)) - np.where(is_possible, seen, 0.0), -np.inf)[
            :, np.newaxis
        ]
        exp_all(q.ravel(), q.ravel())
        gains[rows] = gain(q, own, start)
        if needs_joints:
            joints[rows] = q
    return gains, joints


def _best_ratios(steps: list[_Step], costs: FloatArray) -> FloatArray:
    """Return, for each feature, the largest ratio of expected gain to expected cost among plans that begin with it.

    Shapes: result: (n, d).
    """
    ratio = np.zeros_like(steps[0].gain)
    for _ in range(_MOST_RATIOS):
        gain, cost = _best_plans(steps, costs, ratio)
        found = gain / cost
        if not (found > ratio * (1 + 1e-14)).any():
            break
        ratio = np.maximum(ratio, found)
    return ratio


def _best_plans(steps: list[_Step], costs: FloatArray, ratio: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return expected gain and cost of the plans with the largest gain - ratio * cost, for each first feature."""
    own_gain, own_cost = np.empty(0), np.empty(0)  # of the best plan from each row of the step after
    for k in range(len(steps) - 1, -1, -1):
        gain = steps[k].gain.copy()
        cost = np.broadcast_to(costs, gain.shape).copy()
        if k + 1 < len(steps):
            after = steps[k + 1]
            np.add.at(gain, (after.row, after.feature), after.probability * own_gain)
            np.add.at(cost, (after.row, after.feature), after.probability * own_cost)
        if k == 0:
            break
        target = ratio[steps[k].root, steps[k].first]
        best = (gain - target[:, np.newaxis] * cost).argmax(axis=1)
        rows = np.arange(len(best))
        own_gain, own_cost = gain[rows, best], cost[rows, best]
    return gain, cost
