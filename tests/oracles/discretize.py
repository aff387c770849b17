"""Slow and obvious discretisation: every cut between two distinct values, entropies afresh each time."""

import math
from collections import defaultdict
from itertools import pairwise


def count_classes(rows):
    counts = defaultdict(float)
    for _, label, weight in rows:
        counts[label] += weight
    return counts


def entropy(rows):
    counts = count_classes(rows)
    total = math.fsum(counts.values())
    return -math.fsum(count / total * math.log2(count / total) for count in counts.values())


def weight(rows):
    return math.fsum(weight for _, _, weight in rows)


def mdlp_cuts(x, y, weights):
    """Return the sorted pairs (last value left of a cut, first value right of it)."""
    rows = [
        (value, label, share)
        for value, label, share in zip(x, y, weights, strict=True)
        if not math.isnan(value) and share > 0
    ]
    return sorted(_cut(rows))


def _cut(rows):
    values = sorted({value for value, _, _ in rows})
    n = weight(rows)
    best = None
    for low, high in pairwise(values):
        left = [row for row in rows if row[0] <= low]
        right = [row for row in rows if row[0] >= high]
        average = (weight(left) * entropy(left) + weight(right) * entropy(right)) / n
        if best is None or average < best[0] - 1e-12:
            best = average, low, high, left, right
    if best is None or n < 2:
        return []
    average, low, high, left, right = best
    k, k1, k2 = (len(count_classes(part)) for part in (rows, left, right))
    gain = entropy(rows) - average
    delta = math.log2(3**k - 2) - (k * entropy(rows) - k1 * entropy(left) - k2 * entropy(right))
    if gain <= (math.log2(n - 1) + delta) / n:
        return []
    return [(low, high), *_cut(left), *_cut(right)]
