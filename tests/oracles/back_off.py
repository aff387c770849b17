"""Hierarchical smoothing by recursion over rows: slow and obvious, and nothing here knows tanlearn."""

import math


def in_context(sample, parents, values):
    """Whether a row has the parents' values; a row that misses one of them (-1) has not."""
    return all(sample[j] == value for j, value in zip(parents, values, strict=True))


def counts(X, y, weight, child, parents, values, c):
    """Weights of the rows of class c in a context, by the value of the child; rows without the child do not count."""
    found = {}
    for sample, label, w in zip(X, y, weight, strict=True):
        if label == c and sample[child] != -1 and in_context(sample, parents, values):
            found[sample[child]] = found.get(sample[child], 0) + w
    return found


def probability(X, y, weight, child, parents, values, x, c, n_states, m):
    """P(child = x | c, parents = values), smoothed by that of one parent less, and so on to uniform."""
    above = 1 / n_states[child]
    if parents:
        above = probability(X, y, weight, child, parents[:-1], values[:-1], x, c, n_states, m)
    if values and values[-1] == -1:  # of a missing parent nothing is known
        return above
    found = counts(X, y, weight, child, parents, values, c)
    level = len(parents)
    return (found.get(x, 0) + m[level] * above) / (sum(found.values()) + m[level])


def log_joint(sample, X, y, weight, families, prior, n_states, m):
    """log p(c, sample) of every class, each feature given its parents; a missing feature says nothing."""
    scores = []
    for c, p in enumerate(prior):
        total = math.log(p)
        for child, parents in enumerate(families):
            if sample[child] == -1:
                continue
            values = [sample[j] for j in parents]
            known = values.index(-1) if -1 in values else len(values)
            chance = probability(X, y, weight, child, parents[:known], values[:known], sample[child], c, n_states, m)
            total += math.log(chance)
        scores.append(total)
    return scores


def left_out(weight, n):
    """The weights without a row: of more than one, one is taken away."""
    return [w - min(w, 1) if k == n else w for k, w in enumerate(weight)]


def digamma(x):
    """The derivative of log gamma: by recurrence, and the first terms of a series far out."""
    total = 0.0
    while x < 40:
        total -= 1 / x
        x += 1
    return total + math.log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4)


def restaurant(X, y, weight, child, parents, n_states, n_classes, c, n_iter):
    """Counts by (context, value, class) after rounds of seating: tables of longer contexts are rows of shorter ones."""
    k = len(parents)
    own = {}
    for sample, label, w in zip(X, y, weight, strict=True):
        if sample[child] != -1:
            values = [sample[j] for j in parents]
            known = values.index(-1) if -1 in values else k
            key = tuple(values[:known]), sample[child], label
            own[key] = own.get(key, 0) + w
    keys = {(context[:j], x, label) for context, x, label in own for j in range(len(context) + 1)}
    p = dict.fromkeys(keys, 1 / n_states[child])
    for _ in range(n_iter):
        seen = {key: own.get(key, 0) for key in keys}
        for context, x, label in sorted(keys, key=lambda key: -len(key[0])):
            level = len(context)
            above = context[:-1], x, label
            a = c[level] * (p[above] if level else 1 / n_states[child])
            n = seen[context, x, label]
            if level:
                seen[above] += min(n, a * (digamma(a + n) - digamma(a)))
        for context, x, label in sorted(keys, key=lambda key: len(key[0])):
            level = len(context)
            total = sum(n for (other, _, other_label), n in seen.items() if (other, other_label) == (context, label))
            above = p[context[:-1], x, label] if level else 1 / n_states[child]
            p[context, x, label] = (seen[context, x, label] + c[level] * above) / (total + c[level])
    return seen, p
