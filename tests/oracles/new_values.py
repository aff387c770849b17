"""Rows with unseen values (None), scored family by family and completion by completion. Slow and obvious."""

import itertools
import math


def log_joint(sample, tables, prior, parents, n_states, rarest, free):
    """Return log p(class, row) for every class.

    Of a sample, -1 is missing and None is unseen. tables[i][x, parents..., c] are probabilities; ``rarest`` has one per
    class; ``free`` are missing features that add nothing.
    """
    choices = [range(n_states[i]) if value == -1 and i not in free else [value] for i, value in enumerate(sample)]
    scores = []
    for c in range(len(prior)):
        total = 0.0
        for x in itertools.product(*choices):
            product = prior[c]
            for i in range(len(sample)):
                if i not in free:
                    family = [i, *(j for j in parents[i] if j >= 0)]
                    product *= smallest(tables[i], [x[j] for j in family], [n_states[j] for j in family], c, rarest[c])
            total += product
        scores.append(math.log(total) if total > 0 else -math.inf)
    return scores


def smallest(table, values, sizes, c, rarest):
    """Return the smallest probability above zero over the values that are None."""
    ranges = [range(n) if value is None else [value] for value, n in zip(values, sizes, strict=True)]
    found = [p for p in (table[(*x, c)] for x in itertools.product(*ranges)) if p > 0]
    if values[0] is None:
        found.append(rarest)
    return min(found, default=0.0)
