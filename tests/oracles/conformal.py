"""Conformal prediction by loops over rows and classes."""

import math


def threshold(proba, coverage):
    """Return the k-th largest of n probabilities, where k is the next integer to coverage * (n + 1)."""
    k = math.ceil(round(coverage * (len(proba) + 1), 9))
    return sorted(proba, reverse=True)[k - 1] if k <= len(proba) else 0.0


def sets(proba, held_out, y, coverage, *, per_class, allow_empty):
    """Return, for each row, the classes of its set."""
    n_classes = len(proba[0])
    own = [held_out[i][y[i]] for i in range(len(y))]
    found = []
    for row in proba:
        chosen = []
        for c in range(n_classes):
            compared = [own[i] for i in range(len(y)) if y[i] == c or not per_class]
            is_added = not allow_empty and c == list(row).index(max(row))
            if row[c] >= threshold(compared, coverage) or is_added:
                chosen.append(c)
        found.append(chosen)
    return found


def least_confidence(held_out, y, max_error):
    """Return the lowest confidence whose rows, and those above, have few errors; infinity if there is none."""
    best = math.inf
    for level in {max(row) for row in held_out}:
        used = [i for i in range(len(y)) if max(held_out[i]) >= level]
        wrong = sum(list(held_out[i]).index(max(held_out[i])) != y[i] for i in used)
        if (wrong + 1) / (len(used) + 1) <= max_error:
            best = min(best, level)
    return best
