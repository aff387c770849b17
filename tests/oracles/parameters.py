"""Slow, obvious learners of parameters. Loops over samples; nothing here knows tanlearn."""

import itertools
import math

import numpy as np
from oracles import networks as naive


def shrunk_frequencies(X, y, weight, parents, n_states, n_classes, shrinkage):
    """Friedman's mixture a P(x | h) + (1 - a) P(x), a = N P(h) / (N P(h) + shrinkage); arrays [x][parents][c]."""
    tables = []
    for child, given in enumerate(parents):
        given = [j for j in given if j >= 0]
        table = np.zeros((n_states[child], *(n_states[j] for j in given), n_classes))
        complete = [all(sample[j] != -1 for j in [child, *given]) for sample in X]
        total = sum(w for w, ok in zip(weight, complete, strict=True) if ok)
        for cell in np.ndindex(table.shape):
            value, *values, c = cell
            joint = context = marginal = 0.0
            for sample, label, w, ok in zip(X, y, weight, complete, strict=True):
                if not ok:
                    continue
                same = label == c and all(sample[j] == v for j, v in zip(given, values, strict=True))
                context += w * same
                joint += w * (same and sample[child] == value)
                marginal += w * (sample[child] == value)
            a = context / (context + shrinkage)
            table[cell] = (a * joint / context if context else 0.0) + (1 - a) * marginal / total
        tables.append(table)
    return tables


def baum_welch_step(X, y, weight, prior, tables, parents, multiple):
    """One extended Baum-Welch update of probabilities; returns the new prior and tables.

    The derivatives are those of the appendix of maximum margin 2012, sum_m [u - W v] / theta. Their mean under the
    distribution is taken off before D = multiple (1 + |min(0, smallest derivative)|) is found.
    """
    n_classes = len(prior)
    derivative = [np.zeros_like(table) for table in (prior, *tables)]
    for sample, label, w in zip(X, y, weight, strict=True):
        joint = []
        for c in range(n_classes):
            p = prior[c]
            for i, table in enumerate(tables):
                p *= table[(sample[i], *(sample[j] for j in parents[i] if j >= 0), c)]
            joint.append(p)
        for c in range(n_classes):
            difference = w * ((c == label) - joint[c] / math.fsum(joint))
            derivative[0][c] += difference / prior[c]
            for i, table in enumerate(tables):
                cell = (sample[i], *(sample[j] for j in parents[i] if j >= 0), c)
                derivative[1 + i][cell] += difference / table[cell]
    updated = []
    for table, g in zip((prior, *tables), derivative, strict=True):
        new = np.empty_like(table)
        for column in np.ndindex(table.shape[1:]):
            cells = [(v, *column) for v in range(table.shape[0])]
            mean = sum(table[cell] * g[cell] for cell in cells)
            d = multiple * (1 + abs(min(0.0, *(g[cell] - mean for cell in cells))))
            total = sum(table[cell] * (g[cell] - mean + d) for cell in cells)
            for cell in cells:
                new[cell] = table[cell] * (g[cell] - mean + d) / total
        updated.append(new)
    return updated[0], updated[1:]


def margin_rows(X, y, parents, n_states, n_classes):
    """Dense phi(y, x) - phi(c, x) of every sample and every other class, and the sample of every row."""
    start = naive.offsets(range(len(parents)), parents, n_states, n_classes)
    rows, samples = [], []
    for m, (sample, label) in enumerate(zip(X, y, strict=True)):
        for c in range(n_classes):
            if c == label:
                continue
            row = np.zeros(start[-1])
            for k, sign in ((label, 1), (c, -1)):
                row[k] += sign
                for i, given in enumerate(parents):
                    row[start[i] + naive.family_index(sample, i, given, n_states) * n_classes + k] += sign
            rows.append(row)
            samples.append(m)
    return np.array(rows), samples


def distribution_rows(parents, n_states, n_classes):
    """Dense indicators of the cells of every distribution: the prior, then every parent value and class of a table."""
    start = naive.offsets(range(len(parents)), parents, n_states, n_classes)
    rows = [[1.0] * n_classes + [0.0] * (start[-1] - n_classes)]
    for i in range(len(parents)):
        width = (start[i + 1] - start[i]) // n_states[i]
        for h in range(width):
            row = np.zeros(start[-1])
            row[start[i] + h : start[i + 1] : width] = 1
            rows.append(row)
    return np.array(rows)


def hinge(magnitudes, X, y, weight, parents, n_states, n_classes, margin):
    """Weighted hinge of the margins of log-probabilities -magnitudes, shape (n_points,) for (n_points, n_cells)."""
    rows, samples = margin_rows(X, y, parents, n_states, n_classes)
    margins = -(np.atleast_2d(magnitudes) @ rows.T)
    total = np.zeros(len(margins))
    for m, w in enumerate(weight):
        smallest = margins[:, [sample == m for sample in samples]].min(axis=1)
        total += w * np.maximum(0, margin - smallest)
    return total


def grid(lower, upper):
    """All points of a box of whole numbers."""
    return np.array(list(itertools.product(*(range(a, b + 1) for a, b in zip(lower, upper, strict=True)))))
