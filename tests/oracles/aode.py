"""Slow, obvious oracles of averaged one-dependence estimators. Loops only; nothing here knows tanlearn."""

import math


def weight_of(X, weight, wanted):
    """Weight of the rows that have the wanted values; wanted is {column: value}, value -1 for any but missing."""
    return sum(
        w
        for sample, w in zip(X, weight, strict=True)
        if all(sample[i] == v if v >= 0 else sample[i] != -1 for i, v in wanted.items())
    )


def frequency(count, total, size, alpha):
    """Smoothed relative frequency, uniform where there is nothing."""
    return (count + alpha) / (total + alpha * size) if total + alpha * size > 0 else 1 / size


def one_dependence(XY, weight, n_states, n_classes, alpha, i, sample, c):
    """p(c, sample) of the estimator with super-parent i, -1 for naive Bayes; XY has the class in its last column."""
    y = len(n_states)
    given = {y: c} if i < 0 else {y: c, i: sample[i]}
    size = n_classes * (1 if i < 0 else n_states[i])
    p = frequency(weight_of(XY, weight, given), weight_of(XY, weight, dict.fromkeys(given, -1)), size, alpha)
    for j, value in enumerate(sample):
        if j != i and value != -1:
            known = weight_of(XY, weight, {**given, j: -1})
            p *= frequency(weight_of(XY, weight, {**given, j: value}), known, n_states[j], alpha)
    return p


def super_parents(XY, weight, sample, min_count):
    """Features of the sample whose value is known and has that weight; naive Bayes (-1) where there is none."""
    found = [i for i, v in enumerate(sample) if v != -1 and weight_of(XY, weight, {i: v}) >= min_count]
    return found or [-1]


def aode(XY, weight, n_states, n_classes, alpha, min_count, sample):
    """p(c, sample) of every class: the mean over super-parents."""
    parents = super_parents(XY, weight, sample, min_count)
    return [
        sum(one_dependence(XY, weight, n_states, n_classes, alpha, i, sample, c) for i in parents) / len(parents)
        for c in range(n_classes)
    ]


def log_sum_joint(parents, children, log_parent, log_child):
    """log sum over e of exp(log_parent[p] + sum over j of log_child[p, children[n][j]]), p = parents[e][n] from 0."""
    scores = []
    for n, row in enumerate(children):
        chosen = [estimator[n] for estimator in parents if estimator[n] >= 0]
        scores.append([])
        for c in range(log_parent.shape[1]):
            terms = [log_parent[p, c] + sum(log_child[p, j, c] for j in row) for p in chosen]
            top = max(terms, default=-math.inf)
            scores[n].append(top + math.log(sum(math.exp(t - top) for t in terms)) if top > -math.inf else top)
    return scores


def pick_rows(X, n_states, is_parent, n_classes):
    """Return super-parents of every estimator and sample, starts of every sample's children, and numbers of the first.

    Values of all features are numbered through, and the last number is that of the constant feature.
    """
    constant = sum(n_states)
    rows = [[sum(n_states[:i]) + v if v != -1 else constant for i, v in enumerate(sample)] for sample in X]
    chosen = [[row if is_parent[row] else -1 for row in sample] for sample in rows]
    n_parents = [sum(row != -1 for row in sample) for sample in chosen]
    parents = [[*sample, -1 if n else constant] for sample, n in zip(chosen, n_parents, strict=True)]
    return (
        [list(estimator) for estimator in zip(*parents, strict=True)],
        [[row * n_classes for row in sample] for sample in rows],
        n_parents,
    )
