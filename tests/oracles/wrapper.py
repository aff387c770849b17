"""Slow, obvious oracles of wrapper searches: every structure is scored from raw rows. Nothing here knows tanlearn."""

import itertools
import math

import numpy as np
from oracles import networks as naive

#: Scores are equal up to here.
ROUNDING = 1e-12


def worth(scores, label, score, gamma):
    """What a sample is worth, by its log joint."""
    rivals = [s for c, s in enumerate(scores) if c != label]
    if score == "accuracy":
        return float(scores.index(max(scores)) == label)
    if score == "margin":
        return min(scores[label] - max(rivals, default=-math.inf), gamma)
    return math.log(naive.softmax(scores)[label])


def bounds(tables, y):
    """How far a family can lower and raise the lead of a sample's class; tables[t][n][c] is what family t adds."""
    low, high = [], []
    for n, label in enumerate(y):
        rivals = [c for c in range(len(tables[0][n])) if c != label]
        leads = [table[n][label] - table[n][c] for table in tables for c in rivals]
        low.append(min(leads, default=math.inf))
        high.append(max(leads, default=-math.inf))
    return low, high


def log_table(rows, weight, columns, sizes, alpha, epsilon):
    """log P(first column | the others), in multiples of 2**-32 nats, by the values of the columns."""
    counts = dict.fromkeys(itertools.product(*map(range, sizes)), 0)
    for row, w in zip(rows, weight, strict=True):
        counts[tuple(row[i] for i in columns)] += w
    table = {}
    for given in itertools.product(*map(range, sizes[1:])):
        share = [counts[(v, *given)] + alpha for v in range(sizes[0])]
        p = [s / sum(share) if sum(share) > 0 else 1 / sizes[0] for s in share]
        if epsilon is not None:
            p = [epsilon if q == 0 else q for q in p]
            p = [q / sum(p) for q in p]
        table |= {(v, *given): round(math.log(q) * 2**32) / 2**32 for v, q in enumerate(p)}
    return table


def log_joint(parents, rows, trained, weight, sizes, alpha=1.0, epsilon=None):
    """scores[n][c] of rows whose last column is the class, with tables of the rows that are trained on."""
    y = len(sizes) - 1
    families = [(i, *(j for j in given if j >= 0), y) for i, given in enumerate(parents)] + [(y,)]
    tables = [log_table(trained, weight, own, [sizes[i] for i in own], alpha, epsilon) for own in families]
    scores = []
    for row in rows:
        labelled = [[*row[:y], c] for c in range(sizes[y])]
        scores.append(
            [sum(t[tuple(r[i] for i in own)] for t, own in zip(tables, families, strict=True)) for r in labelled]
        )
    return scores


def structure_score(parents, rows, weight, sizes, *, score, gamma=1.0, folds=None, alpha=1.0, epsilon=None):
    """Mean worth of the training rows, or of every fold (row numbers) with tables of all other rows."""
    everything = range(len(rows))
    total = 0.0
    for fold in [everything] if folds is None else folds:
        others = everything if folds is None else [n for n in everything if n not in fold]
        tested = [rows[n] for n in fold]
        scores = log_joint(
            parents, tested, [rows[n] for n in others], [weight[n] for n in others], sizes, alpha, epsilon
        )
        total += math.fsum(
            weight[n] * worth(s, row[-1], score, gamma) for n, s, row in zip(fold, scores, tested, strict=True)
        )
    return total / math.fsum(weight[n] for fold in folds or [everything] for n in fold)


def first_best(values):
    """Place of the first value that is as good as the best."""
    return next(k for k, value in enumerate(values) if value >= max(values) - ROUNDING)


def with_parent(parents, child, *given):
    """The structure in which a feature has other parents."""
    return [given if i == child else own for i, own in enumerate(parents)]


def is_forest(parents):
    """Whether no feature is its own ancestor; at most one parent each."""
    return naive.is_acyclic([own[0] if own else -1 for own in parents])


def add_best(parents, edges, score, history):
    """The structure with the best of some edges (child, parent), and whether it is better than without."""
    values = [score(with_parent(parents, i, j)) for i, j in edges]
    if not edges or not max(values) > score(parents) + ROUNDING:
        return parents, False
    (i, j), value = edges[first_best(values)], values[first_best(values)]
    history.append((i, (j,), value, len(history) + 1))
    return with_parent(parents, i, j), True


def orphan_edges(parents):
    """All edges (child, parent) that give a feature its first parent and close no cycle."""
    edges = itertools.product(range(len(parents)), repeat=2)
    return [(i, j) for i, j in edges if i != j and not parents[i] and is_forest(with_parent(parents, i, j))]


def greedy(parents, score):
    """Always the best edge, as long as one is better; the structure and (child, parents, score, step) of every edge."""
    history, grows = [], True
    while grows:
        parents, grows = add_best(parents, orphan_edges(parents), score, history)
    return parents, history


def super_parent(parents, score):
    """Keogh and Pazzani: the parent that is best for all orphans, then its best edge to one."""
    history, grows = [], True
    while grows:
        values = []
        for j in range(len(parents)):
            adopted = parents
            for i, parent in orphan_edges(parents):
                adopted = with_parent(adopted, i, j) if parent == j else adopted
            values.append(score(adopted))
        best = first_best(values)
        edges = [edge for edge in orphan_edges(parents) if edge[1] == best]
        parents, grows = add_best(parents, edges, score, history)
    return parents, history


def order_search(ordering, max_parents, score, information=None, n_candidates=None):
    """One feature after the other takes the best parents among those before it, if the score grows.

    With a number of candidates only those before it that have the most information, of equal ones the earlier.
    """
    parents, history = [() for _ in ordering], []
    for place, i in enumerate(ordering):
        before = ordering[:place]
        if n_candidates is not None:
            most = sorted(before, key=lambda j: (-information[i][j], before.index(j)))[:n_candidates]
            before = [j for j in before if j in most]
        families = [own for size in range(1, max_parents + 1) for own in itertools.combinations(before, size)]
        values = [score(with_parent(parents, i, *own)) for own in families]
        if values and max(values) > score(parents) + ROUNDING:
            own, value = families[first_best(values)], values[first_best(values)]
            parents = with_parent(parents, i, *own)
            history.append((i, tuple(own), value, place))
    return parents, history


def class_entropy(X, y, weight, features):
    """H(C | features) in nats, from the different patterns of the rows."""
    entropy = 0.0
    for pattern in np.unique(X[:, features], axis=0):
        same = (X[:, features] == pattern).all(axis=1)
        for c in np.unique(y[same]):
            share = weight[same & (y == c)].sum()
            entropy -= share * math.log(share / weight[same].sum()) if share > 0 else 0.0
    return entropy / weight.sum()


def all_parents_ordering(X, y, weight):
    """Largest I(C; X | all before) first; all over again whenever those before determine the class."""
    ordering, before = [], []
    while len(ordering) < X.shape[1]:
        rest = [i for i in range(X.shape[1]) if i not in ordering]
        ordering.append(rest[first_best([-class_entropy(X, y, weight, [*before, i]) for i in rest])])
        before.append(ordering[-1])
        if class_entropy(X, y, weight, before) == 0:
            before = []
    return ordering


def single_parent_ordering(X, y, weight):
    """Largest I(C; X) first, then the largest I(C; X | one of those before)."""

    def information(i, given):
        return class_entropy(X, y, weight, given) - class_entropy(X, y, weight, [*given, i])

    ordering = []
    while len(ordering) < X.shape[1]:
        rest = [i for i in range(X.shape[1]) if i not in ordering]
        conditions = [[j] for j in ordering] or [[]]
        ordering.append(rest[first_best([max(information(i, given) for given in conditions) for i in rest])])
    return ordering
