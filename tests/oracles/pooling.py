"""Pools of log posteriors by loops over rows and classes, and their best weights by a search over a grid."""

import math

import numpy as np


def pool(log_p, weights):
    """Return the log posterior [row][class] of the weighted sum of log posteriors [model][row][class]."""
    found = []
    for r in range(len(log_p[0])):
        n_classes = len(log_p[0][r])
        scores = [sum(w * own[r][c] for w, own in zip(weights, log_p, strict=True)) for c in range(n_classes)]
        total = math.log(sum(math.exp(score - max(scores)) for score in scores)) + max(scores)
        found.append([score - total for score in scores])
    return np.array(found)


def start(log_p, y, sample_weight):
    """Return the probabilities that the first and the second model are better, by the normal approximation."""
    total = sum(sample_weight)
    gains = [log_p[1][r][y[r]] - log_p[0][r][y[r]] for r in range(len(y))]
    mean = sum(w * gain for w, gain in zip(sample_weight, gains, strict=True)) / total
    error = math.sqrt(sum(w * (gain - mean) ** 2 for w, gain in zip(sample_weight, gains, strict=True))) / total
    second = 0.5 * (1 + math.erf(mean / error / math.sqrt(2)))
    return np.array([1 - second, second])


def objective(log_p, y, sample_weight, weights, ridge):
    """Return the log loss of a pool, plus half the squared distance of its weights to their start times a ridge."""
    of_pool = pool(log_p, weights)
    loss = -sum(w * of_pool[r][y[r]] for r, w in enumerate(sample_weight))
    return loss + ridge / 2 * sum((np.array(weights) - start(log_p, y, sample_weight)) ** 2)


def best_weights(log_p, y, sample_weight, ridge, step=0.01):
    """Return the weights from 0 of the least objective: by coordinates, on a grid."""
    weights = np.round(start(log_p, y, sample_weight) / step) * step
    best, improved = objective(log_p, y, sample_weight, weights, ridge), True
    while improved:
        improved = False
        for move in ((step, 0), (-step, 0), (0, step), (0, -step), (step, -step), (-step, step)):
            other = np.maximum(weights + move, 0)
            value = objective(log_p, y, sample_weight, other, ridge)
            if value < best - 1e-12:
                weights, best, improved = other, value, True
    return weights
