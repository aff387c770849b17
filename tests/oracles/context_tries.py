"""Hierarchical smoothing, context by context, from nothing but rows."""

import math


def rows_of_levels(rows, n_states, child, parents, least, row, n_first=None):
    """Yield the numbers of the rows in the context of a row, level by level.

    These rows have a child, and agree with the row in the parents up to the level. A level needs ``least`` of them, of
    the first ``n_first`` rows or of all.
    """
    n_first = len(rows) if n_first is None else n_first
    inside = [r for r in range(len(rows)) if rows[r][child] < n_states[child]]
    yield inside
    for j in parents:
        if row[j] >= n_states[j]:
            return
        inside = [r for r in inside if rows[r][j] == row[j]]
        if sum(r < n_first for r in inside) < least:
            return
        yield inside


def gains(rows, y, weights, n_states, n_classes, child, parents, m, least, row, n_first=None):
    """Return log P_j - log P_j-1 of a row's value, level by level, each a list over classes; none if it has no child.

    ``rows`` are lists of codes, which are missing from ``n_states`` on. A level needs ``least`` rows, of the first
    ``n_first`` or of all, that agree with the row in the parents up to there.
    """
    value, found = row[child], []
    if value >= n_states[child]:
        return found
    before = [1.0 / n_states[child]] * n_classes
    for level, inside in enumerate(rows_of_levels(rows, n_states, child, parents, least, row, n_first)):
        now = []
        for c in range(n_classes):
            seen = sum(weights[r] for r in inside if y[r] == c)
            same = sum(weights[r] for r in inside if y[r] == c and rows[r][child] == value)
            now.append((same + m * before[c]) / (seen + m))
        found.append([math.log(a / b) if level else math.log(a) for a, b in zip(now, before, strict=True)])
        before = now
    return found


def entropy_units(counts):
    """Return n times the class entropy of counts [value][class], in nats."""
    by_class = [sum(column) for column in zip(*counts, strict=True)]
    total = sum(by_class)
    return sum(-n * math.log(n / total) for n in by_class if n)


def best_cut(counts, first, last):
    """Return the gain of every cut of counts[first:last], by the value that it comes after."""
    whole = entropy_units(counts[first:last])
    return {
        v: whole - entropy_units(counts[first : v + 1]) - entropy_units(counts[v + 1 : last])
        for v in range(first, last - 1)
    }


def rising_probabilities(counts, n_ranked):
    """Return P(value | class) of counts [value][class] of two classes, whose odds do not fall with the ranked values.

    The fraction of class 1 of a value is the maximum over starts of the minimum over ends of the means around it.
    """
    totals = [sum(column) for column in zip(*counts, strict=True)]

    def mean(first, last):
        zero, one = (sum(column) for column in zip(*counts[first : last + 1], strict=True))
        return one / (zero + one)

    found = []
    for v, (zero, one) in enumerate(counts):
        fraction = one / (zero + one)
        if v < n_ranked:
            fraction = max(min(mean(first, last) for last in range(v, n_ranked)) for first in range(v + 1))
        found.append([(zero + one) * (1 - fraction) / totals[0], (zero + one) * fraction / totals[1]])
    return found


def rising_levels(rows, y, weights, n_states, child, parents, m, least, row, n_ranked, direction):
    """Return P_j(value | class) of a row's context of each level, for two classes and odds that do not fall.

    They do not rise if ``direction`` is -1. For the other arguments see `gains`.
    """
    n_values = n_states[child]
    before, found = [[1.0 / n_values] * 2] * n_values, []
    for inside in rows_of_levels(rows, n_states, child, parents, least, row):
        counts = [
            [sum(weights[r] for r in inside if y[r] == c and rows[r][child] == v) + m * before[v][c] for c in range(2)]
            for v in range(n_values)
        ]
        if direction < 0:
            counts = counts[:n_ranked][::-1] + counts[n_ranked:]
        before = rising_probabilities(counts, n_ranked)
        if direction < 0:
            before = before[:n_ranked][::-1] + before[n_ranked:]
        found.append(before)
    return found
