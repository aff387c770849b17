"""Measures of predicted probabilities, row by row and pair by pair."""

import math


def log_loss(p, y):
    """Return the mean negative log-probability of the true classes."""
    return sum(-math.log(max(row[c], 2.2250738585072014e-308)) for row, c in zip(p, y, strict=True)) / len(y)


def brier(p, y):
    """Return the mean squared error of the probabilities, summed over the classes."""
    return sum((q - (c == k)) ** 2 for row, c in zip(p, y, strict=True) for k, q in enumerate(row)) / len(y)


def auc(p, y):
    """Return the fraction of correctly ordered pairs of a row of a class and one of others, mean over the classes."""
    areas = []
    for k in range(len(p[0])):
        own = [row[k] for row, c in zip(p, y, strict=True) if c == k]
        others = [row[k] for row, c in zip(p, y, strict=True) if c != k]
        if own and others:
            wins = sum((a > b) + 0.5 * (a == b) for a in own for b in others)
            areas.append(wins / (len(own) * len(others)))
    return sum(areas) / len(areas) if areas else None
