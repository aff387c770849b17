"""Boosted terms as dictionaries of cells, their scores and contributions by definition, and exhaustive greedy training.

A term is a dictionary: ``features`` (one per split), ``sides`` (per split, the side 0 or 1 of each value of its
feature), and ``cells``, which maps a tuple of sides to the pair of the weight of its training rows and its list of
values per class. A missing value is None.
"""

import itertools
import math


def mean_of_cells(term, known):
    """Return the mean value per class over the cells that agree with ``known``, values by feature; None: missing."""
    agreeing = []
    for cell, (weight, values) in term["cells"].items():
        agrees = True
        for side, feature, sides in zip(cell, term["features"], term["sides"], strict=True):
            value = known.get(feature)
            if value is not None and sides[value] != side:
                agrees = False
        if agrees:
            agreeing.append((weight, values))
    n_classes = len(agreeing[0][1]) if agreeing else 0
    if all(known.get(feature) is not None for feature in term["features"]):
        ((_, values),) = agreeing  # a complete row has one cell, whatever its weight
        return list(values)
    total = sum(weight for weight, _ in agreeing)
    if not total:
        return [0.0] * n_classes
    return [sum(weight * values[c] for weight, values in agreeing) / total for c in range(n_classes)]


def row_scores(terms, row, prior):
    """Return the score of each class: the prior and the sum of all terms."""
    scores = list(prior)
    for term in terms:
        value = mean_of_cells(term, dict(enumerate(row)))
        scores = [a + b for a, b in zip(scores, value, strict=True)]
    return scores


def row_contributions(terms, row, prior):
    """Return the Shapley values [feature][class] of a row, over all orders of all its features, and the base last."""
    n_classes = len(prior)
    found = [[0.0] * n_classes for _ in row]
    orders = list(itertools.permutations(range(len(row))))
    for order in orders:
        known = {}
        before = row_scores(terms, [None] * len(row), prior)
        for feature in order:
            known[feature] = row[feature]
            after = row_scores(terms, [known.get(i) for i in range(len(row))], prior)
            for c in range(n_classes):
                found[feature][c] += (after[c] - before[c]) / len(orders)
            before = after
    return [*found, row_scores(terms, [None] * len(row), prior)]


def probabilities(scores):
    """Return the softmax of the scores of a row."""
    largest = max(scores)
    powers = [math.exp(score - largest) for score in scores]
    return [power / sum(powers) for power in powers]


def log_loss(scores, y, weights):
    """Return the sum of the weighted log losses of rows."""
    return -sum(w * math.log(probabilities(own)[c]) for own, c, w in zip(scores, y, weights, strict=True))


def residuals(scores, y, weights):
    """Return the residuals and variances [row][output], times weights; two classes have one output."""
    found = []
    for own, c, w in zip(scores, y, weights, strict=True):
        p = probabilities(own)
        outputs = [1] if len(p) == 2 else range(len(p))
        found.append(([w * ((k == c) - p[k]) for k in outputs], [w * p[k] * (1 - p[k]) for k in outputs]))
    return found


def score_of_rows(rows, ridge):
    """Return the sum of g^2 / (h + ridge) over outputs for the sums of some rows (residuals, variances)."""
    if not rows:
        return 0.0
    g = [sum(own) for own in zip(*(row[0] for row in rows), strict=True)]
    h = [sum(own) for own in zip(*(row[1] for row in rows), strict=True)]
    return sum(a * a / (b + ridge) for a, b in zip(g, h, strict=True))


def thresholds(values):
    """Return the divisions of ordered values as sets of the values of one side."""
    return [set(values[:k]) for k in range(1, len(values))]


def subsets(values):
    """Return all 2^(V-1) divisions of values into two sides, one side of each, without the one that is no division."""
    rest = values[1:]
    chosen = itertools.chain.from_iterable(itertools.combinations(rest, k) for k in range(1, len(rest) + 1))
    return [set(side) for side in chosen]


def gain_of_division(X, rows, cells, feature, side, ridge):
    """Return the gain of a division in all cells; rows with a missing value of the feature are in none."""
    gain = 0.0
    for cell in set(cells.values()):
        members = [r for r, own in cells.items() if own == cell and X[r][feature] is not None]
        first = [rows[r] for r in members if X[r][feature] in side]
        second = [rows[r] for r in members if X[r][feature] not in side]
        gain += score_of_rows(first, ridge) + score_of_rows(second, ridge)
        gain -= score_of_rows([rows[r] for r in members], ridge)
    return gain


def greedy_splits(X, rows, divisions, n_splits, ridge, least_gain=1e-9):
    """Return the best splits (feature, set of values on one side, gain) one after another, and the cells of rows.

    ``divisions`` are the allowed divisions of each feature. Rows that miss a value of a chosen feature have no cell.
    """
    cells = dict.fromkeys(range(len(X)), ())
    splits = []
    for _ in range(n_splits):
        found = [
            (gain_of_division(X, rows, cells, feature, side, ridge), feature, side)
            for feature in range(len(divisions))
            for side in divisions[feature]
        ]
        if not found:
            break
        gain, feature, side = max(found, key=lambda own: own[0])
        if gain <= least_gain:
            break
        splits.append((feature, side, gain))
        cells = {r: (*cell, int(X[r][feature] not in side)) for r, cell in cells.items() if X[r][feature] is not None}
    return splits, cells


def newton_values(rows, ridge, learning_rate, n_classes):
    """Return the value of each class in a cell: a damped Newton step of at most 4, or half that of log odds for two."""
    g = [sum(own) for own in zip(*(row[0] for row in rows), strict=True)]
    h = [sum(own) for own in zip(*(row[1] for row in rows), strict=True)]
    step = [learning_rate * min(max(a / (b + ridge), -4), 4) for a, b in zip(g, h, strict=True)]
    return [-step[0] / 2, step[0] / 2] if n_classes == 2 else step


def start(y, weights, n_classes):
    """Return the log class frequencies with one more row of each class."""
    counts = [1 + sum(w for w, own in zip(weights, y, strict=True) if own == c) for c in range(n_classes)]
    return [math.log(count / sum(counts)) for count in counts]


def values_by_residual(X, rows, feature, n_values, ridge):
    """Return the values sorted by g / (h + ridge) of the output whose values have the largest sum of g^2 / (h + ridge).

    Values with equal ratios keep their order.
    """
    n_outputs = len(rows[0][0])
    ratios, scores = [[] for _ in range(n_outputs)], [0.0] * n_outputs
    for c in range(n_outputs):
        for value in range(n_values):
            g = sum(row[0][c] for own, row in zip(X, rows, strict=True) if own[feature] == value)
            h = sum(row[1][c] for own, row in zip(X, rows, strict=True) if own[feature] == value)
            ratios[c].append(g / (h + ridge))
            scores[c] += g * g / (h + ridge)
    chosen = ratios[scores.index(max(scores))]
    return sorted(range(n_values), key=lambda value: chosen[value])
