"""Slow and obvious cut points of features that separate classes only beside another feature.

Numbers have at most 64 distinct values, so that every pair of adjacent values is a candidate.
"""

import math
from itertools import pairwise

from oracles.discretize import count_classes, entropy, mdlp_cuts, weight


def with_interacting_cut_points(columns, others, y, weights):
    """Return the cut points of each column of numbers, as pairs of the values on both sides.

    ``others`` are columns of categories, None where missing. NaN is a missing number.
    """
    own = [mdlp_cuts(x, y, weights) for x in columns]
    groups = [_groups(x, cuts, weights) for x, cuts in zip(columns, own, strict=True)]
    beside = [*groups, *(values if len(set(values) - {None}) <= 16 else None for values in others)]
    found = list(own)
    for _ in range(2):
        new = {}
        for k, x in enumerate(columns):
            if not own[k]:
                own_best = best_cut_points(
                    x, [own_groups for j, own_groups in enumerate(beside) if j != k], len(beside), y, weights
                )
                if own_best:
                    new[k] = own_best
        for k, cuts in new.items():
            found[k] = cuts
            beside[k] = _groups(columns[k], cuts, weights)
    return found


def _groups(x, cuts, weights):
    """Return the interval of every number or, without cut points, one of four groups of adjacent values."""
    values = sorted({value for value in x if not math.isnan(value)})
    of_value = {value: sum(value > low for low, _ in cuts) for value in values}
    if not cuts:
        total = math.fsum(w for value, w in zip(x, weights, strict=True) if not math.isnan(value))
        for value in values:
            below = math.fsum(w for other, w in zip(x, weights, strict=True) if other < value)
            here = math.fsum(w for other, w in zip(x, weights, strict=True) if other == value)
            of_value[value] = min(int((below + here / 2) * 4 // total), 3)
    return [of_value.get(value) for value in x]


def best_cut_points(x, beside, n_features, y, weights):
    best, most = None, 0.0
    for values in beside:
        if values is None:
            continue
        rows = {}
        for number, value, label, share in zip(x, values, y, weights, strict=True):
            if not math.isnan(number):
                rows.setdefault(value, []).append((number, label, share))
        cuts, saved = _split(rows, math.log2(max(n_features - 1, 1)))
        if saved > most + 1e-9:
            best, most = cuts, saved
    return None if best is None else sorted(best)


def _split(rows, choice):
    """Return the cut points, and by how many bits they shorten the description."""
    n = math.fsum(weight(own) for own in rows.values())
    numbers = sorted({number for own in rows.values() for number, _, _ in own})
    best = None
    for low, high in pairwise(numbers):
        left = {value: [row for row in own if row[0] <= low] for value, own in rows.items()}
        right = {value: [row for row in own if row[0] >= high] for value, own in rows.items()}
        left, right = ({value: own for value, own in side.items() if own} for side in (left, right))
        bits = math.fsum(weight(own) * entropy(own) for side in (left, right) for own in side.values())
        if best is None or bits < best[0] - 1e-9:
            best = bits, low, high, left, right
    if best is None or n < 2:
        return [], 0.0
    bits, low, high, left, right = best
    saved = math.fsum(weight(own) * entropy(own) for own in rows.values()) - bits - math.log2(n - 1) - choice
    for value in left.keys() & right.keys():
        k, k1, k2 = (len(count_classes(part[value])) for part in (rows, left, right))
        terms = k * entropy(rows[value]) - k1 * entropy(left[value]) - k2 * entropy(right[value])
        saved -= math.log2(3**k - 2) - terms
    if saved <= 0:
        return [], 0.0
    inner = [_split(side, choice) for side in (left, right)]
    return [(low, high), *inner[0][0], *inner[1][0]], saved + inner[0][1] + inner[1][1]
