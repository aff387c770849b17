"""Slow and obvious counts of values: one row after the other, in dictionaries."""

import itertools


def sum_pairs(pairs, weights):
    """Return the sum of the weights of every pair, in increasing order of pairs."""
    total = {}
    for pair, weight in zip(pairs, weights, strict=True):
        total[pair] = total.get(pair, 0) + weight
    return sorted(total.items())


def sum_points(values, classes, weights, n_points):
    """Return the sums of groups of neighbours at their points, and by how much ranks are too low or too high."""
    of_value = sum_pairs(values, weights)
    total = sum(weight for _, weight in of_value)
    reached = [0, *itertools.accumulate(weight for _, weight in of_value)]
    before = dict(zip([value for value, _ in of_value], reached[:-1], strict=True))

    def group_of(item):
        return int(before[item[0]] / total * n_points)

    point, under, over = {}, 0, 0
    for _, group in itertools.groupby(of_value, group_of):
        members = list(group)
        begin = before[members[0][0]]
        upto = [before[value] + weight for value, weight in members]
        middle = begin + (upto[-1] - begin) / 2
        k = next(k for k, reached in enumerate(upto) if reached >= middle or k == len(upto) - 1)
        point.update((value, members[k][0]) for value, _ in members)
        under = max(under, before[members[k][0]] - begin)
        over = max(over, upto[-1] - upto[k])
    pairs = [(point[value], c) for value, c in zip(values, classes, strict=True)]
    return sum_pairs(pairs, weights), under, over
