"""Probabilities from scores by a temperature and a power, and how well they suit rows: one class after the other."""

import math


def probabilities(scores, temperature, power):
    """Return the probabilities of the classes of one row."""
    best = max(scores)
    weights = [math.exp(-(((best - score) / temperature) ** power)) if score > -math.inf else 0.0 for score in scores]
    return [weight / sum(weights) for weight in weights]


def log_loss(rows, y, weights, temperature, power, smoothing=0.0):
    """Return the weighted mean, where a share of every row's weight belongs to all classes alike, too."""
    total = 0.0
    for scores, own, weight in zip(rows, y, weights, strict=True):
        logs = [math.log(p) for p in probabilities(scores, temperature, power)]
        total -= weight * (logs[own] + smoothing * sum(logs) / len(logs))
    return total / sum(weights)
