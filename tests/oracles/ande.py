"""Slow, obvious oracles of averaged n-dependence estimators. Loops only; nothing here knows tanlearn."""

import itertools

from oracles.aode import weight_of


def has_class(parents, sample, c, y):
    """What rows must have that agree on super-parents and class."""
    return {y: c, **{i: sample[i] for i in parents}}


def n_dependence(XY, weight, n_states, n_classes, m, parents, sample, c, prior=None):
    """p(c, sample) of the estimator with these super-parents; XY has the class in its last column, -1 is missing."""
    y = len(n_states)
    given = has_class(parents, sample, c, y)
    size = n_classes
    for i in parents:
        size *= n_states[i]
    p = weight_of(XY, weight, given) + m / size
    if prior is None:
        p /= weight_of(XY, weight, dict.fromkeys(given, -1)) + m
    else:
        p *= prior[c] / (weight_of(XY, weight, {**dict.fromkeys(given, -1), y: c}) + m / n_classes)
    for j, value in enumerate(sample):
        if j not in parents and value != -1:
            count, known = (weight_of(XY, weight, {**given, j: v}) for v in (value, -1))
            p *= (count + m / n_states[j]) / (known + m)
    return p


def super_parents(XY, weight, n, min_count, sample, allowed):
    """Sets of n features that were seen often enough with these values; else of n - 1, and so on."""
    known = [i for i in allowed if sample[i] != -1]
    found = [
        parents
        for parents in itertools.combinations(known, n)
        if n == 0 or weight_of(XY, weight, {i: sample[i] for i in parents}) >= min_count
    ]
    return found or super_parents(XY, weight, n - 1, min_count, sample, allowed)


def without_implied(XY, weight, sample, least):
    """The sample without values that another one never comes without; of two that imply each other, the first stays."""

    def implies(i, j):
        alone = weight_of(XY, weight, {i: sample[i]})
        return alone >= least and alone == weight_of(XY, weight, {i: sample[i], j: sample[j]})

    known = [i for i, v in enumerate(sample) if v != -1]
    dropped = {j for j in known for i in known if i != j and implies(i, j) and (i < j or not implies(j, i))}
    return [-1 if i in dropped else v for i, v in enumerate(sample)]


def ande(XY, weight, n_states, n_classes, n, m, min_count, sample, allowed=None, prior=None):
    """p(c, sample) of every class: the mean over sets of super-parents."""
    allowed = range(len(n_states)) if allowed is None else allowed
    sets = super_parents(XY, weight, min(n, len(allowed)), min_count, sample, allowed)
    return [
        sum(n_dependence(XY, weight, n_states, n_classes, m, s, sample, c, prior) for s in sets) / len(sets)
        for c in range(n_classes)
    ]


def parted(rows, features):
    """Rows in parts of equal values of the features, {values: row numbers}; rows that miss one are in none."""
    parts = {}
    for r, row in enumerate(rows):
        values = tuple(row[i] for i in features)
        if -1 not in values:
            parts.setdefault(values, []).append(r)
    return parts
