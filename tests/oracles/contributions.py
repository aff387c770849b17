"""Slow, obvious oracle of contributions: masses are moved to fewer features until all means are zero."""

import itertools

import numpy as np


def log_odds(log_p, target):
    """Log odds of a class against the mean of the others; the last axis are the classes."""
    others = [c for c in range(log_p.shape[-1]) if c != target]
    return log_p[..., target] - np.mean([log_p[..., c] for c in others], axis=0)


def frequencies(rows, weight, sizes):
    """Weight of the rows in each cell, plus one row of independent features; rows with -1 do not count."""
    counts = np.zeros(sizes)
    for row, w in zip(rows, weight, strict=True):
        if min(row) >= 0:
            counts[tuple(row)] += w
    one = np.ones(sizes)
    for axis, size in enumerate(sizes):
        side = np.array([counts.take(k, axis).sum() + 1 / size for k in range(size)])
        shape = [size if k == axis else 1 for k in range(len(sizes))]
        one = one * (side / side.sum()).reshape(shape)
    return counts + one


def purified(table, weights):
    """Part of each set of axes, by moving the mean over one axis at a time to the part without this axis."""
    n = table.ndim
    found = {axes: None for size in range(1, n + 1) for axes in itertools.combinations(range(n), size)}
    for axes in found:
        found[axes] = np.zeros([table.shape[k] for k in axes])
    found[tuple(range(n))] = np.array(table, float)
    for size in range(n, 1, -1):
        for axes in itertools.combinations(range(n), size):
            w = weights.sum(axis=tuple(k for k in range(n) if k not in axes))
            for _ in range(10_000):
                largest = 0.0
                for position in range(size):
                    mean = (w * found[axes]).sum(axis=position) / w.sum(axis=position)
                    found[axes] -= np.expand_dims(mean, position)
                    found[axes[:position] + axes[position + 1 :]] += mean
                    largest = max(largest, np.abs(mean).max())
                if largest < 1e-14:
                    break
    for k in range(n):
        w = weights.sum(axis=tuple(j for j in range(n) if j != k))
        found[(k,)] -= (w * found[(k,)]).sum() / w.sum()
    return found
