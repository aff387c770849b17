"""Monotone functions on grids and isotonic regression on partial orders, by enumeration of all cells."""

import itertools


def violations(values, directions):
    """Return the pairs of grid cells, neighbors along an axis with a direction, whose values are in the wrong order.

    ``values`` maps each tuple of positions to a number; ``directions`` has 1, -1 or 0 for each axis.
    """
    found = []
    for cell, value in values.items():
        for axis, direction in enumerate(directions):
            above = (*cell[:axis], cell[axis] + 1, *cell[axis + 1 :])
            if direction and above in values and direction * (values[above] - value) < 0:
                found.append((cell, above))
    return found


def isotonic_by_sets(values, weights, pairs):
    """Return the weighted isotonic regression for ``found[a] <= found[b]`` of all pairs, by its formula.

    It is the maximum over upper sets U of the minimum over lower sets L, both with the element, of the mean of U & L.
    """
    n = len(values)
    subsets = [set(s) for size in range(n + 1) for s in itertools.combinations(range(n), size)]
    uppers = [s for s in subsets if all(b in s for a, b in pairs if a in s)]
    lowers = [s for s in subsets if all(a in s for a, b in pairs if b in s)]

    def mean(s):
        return sum(weights[i] * values[i] for i in s) / sum(weights[i] for i in s)

    return [max(min(mean(u & low) for low in lowers if i in low) for u in uppers if i in u) for i in range(n)]
