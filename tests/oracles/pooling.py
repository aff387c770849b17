"""Pools of log posteriors by loops over rows and classes, and their best weights by a search over a grid."""

import itertools
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
    """Return the probability of each model of being better than all others, by normal approximations of two each."""
    total, products = sum(sample_weight), []
    for k, own in enumerate(log_p):
        product = 1.0
        for m, other in enumerate(log_p):
            if m == k:
                continue
            gains = [own[r][y[r]] - other[r][y[r]] for r in range(len(y))]
            mean = sum(w * gain for w, gain in zip(sample_weight, gains, strict=True)) / total
            squares = sum(w * (gain - mean) ** 2 for w, gain in zip(sample_weight, gains, strict=True))
            product *= 0.5 * (1 + math.erf(mean / (math.sqrt(squares) / total) / math.sqrt(2)))
        products.append(product)
    return np.array(products) / sum(products)


def objective(log_p, y, sample_weight, weights, ridge):
    """Return the log loss of a pool, plus half the squared distance of its weights to their start times a ridge."""
    of_pool = pool(log_p, weights)
    loss = -sum(w * of_pool[r][y[r]] for r, w in enumerate(sample_weight))
    return loss + ridge / 2 * sum((np.array(weights) - start(log_p, y, sample_weight)) ** 2)


def best_weights(log_p, y, sample_weight, ridge, step=0.01):
    """Return the weights from 0 of the least objective, by steps to neighbors on a grid."""
    weights = np.round(start(log_p, y, sample_weight) / step) * step
    best, improved = objective(log_p, y, sample_weight, weights, ridge), True
    while improved:
        improved = False
        for move in itertools.product((0, step, -step), repeat=len(weights)):
            other = np.maximum(weights + move, 0)
            value = objective(log_p, y, sample_weight, other, ridge)
            if value < best - 1e-12:
                weights, best, improved = other, value, True
    return weights
