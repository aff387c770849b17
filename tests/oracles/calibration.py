"""Probabilities from scores by a calibration, and how well they suit rows: one class after the other."""

import math


def probabilities(scores, temperature, power, pivot=1.0):
    """Return the probabilities of the classes of one row."""
    weights = []
    for score in scores:
        distance = max(scores) - score
        bend = (distance / pivot) ** (power - 1) if 0 < distance < math.inf else 1.0
        weights.append(math.exp(-distance / temperature * bend))
    return [weight / sum(weights) for weight in weights]


def log_loss(rows, y, weights, temperature, power, pivot=1.0):
    """Return the weighted sum of the rows' losses, and that of a row more, which is of all classes alike."""
    total, alike = 0.0, 0.0
    for scores, own, weight in zip(rows, y, weights, strict=True):
        logs = [math.log(p) for p in probabilities(scores, temperature, power, pivot)]
        total -= weight * logs[own]
        alike -= weight * sum(logs) / len(logs)
    return total, alike / sum(weights)
