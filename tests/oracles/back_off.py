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
    """P(child = x | c, parents = values), smoothed by that with one fewer parent, and so on to uniform."""
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


def own_rows(X, y, weight, child, parents):
    """Weights of rows by (context, value, class); a context ends before the first parent that a row misses."""
    own = {}
    for sample, label, w in zip(X, y, weight, strict=True):
        if sample[child] != -1:
            values = [sample[j] for j in parents]
            known = values.index(-1) if -1 in values else len(parents)
            key = tuple(values[:known]), sample[child], label
            own[key] = own.get(key, 0) + w
    return own


def uniform(own, n_states):
    """The probability of every key and of its shorter contexts before the first round."""
    return {(context[:j], x, label): 1 / n_states for context, x, label in own for j in range(len(context) + 1)}


def seating(own, p, n_states, c):
    """One round: counts and probabilities by key, and by level the tables and the rises of digamma of the contexts."""
    seen, found = {key: own.get(key, 0) for key in p}, {}
    tables, rises = [0.0] * len(c), [0.0] * len(c)
    for context, x, label in sorted(p, key=lambda key: -len(key[0])):
        level = len(context)
        above = context[:-1], x, label
        a = c[level] * (p[above] if level else 1 / n_states)
        n = seen[context, x, label]
        n_tables = min(n, a * (digamma(a + n) - digamma(a)))
        tables[level] += n_tables
        if level:
            seen[above] += n_tables
    totals = {}
    for (context, _, label), n in seen.items():
        totals[context, label] = totals.get((context, label), 0) + n
    for (context, _), total in totals.items():
        rises[len(context)] += digamma(c[len(context)] + total) - digamma(c[len(context)])
    for context, x, label in sorted(p, key=lambda key: len(key[0])):
        level = len(context)
        above = found[context[:-1], x, label] if level else 1 / n_states
        found[context, x, label] = (seen[context, x, label] + c[level] * above) / (totals[context, label] + c[level])
    return seen, found, tables, rises


def restaurant(X, y, weight, child, parents, n_states, n_classes, c, n_iter):
    """Counts by (context, value, class) after rounds of seating: tables of longer contexts are rows of shorter ones."""
    own = own_rows(X, y, weight, child, parents)
    seen, p = {}, uniform(own, n_states[child])
    for _ in range(n_iter):
        seen, p, _, _ = seating(own, p, n_states[child], c)
    return seen, p


def concentrations(X, y, weight, families, n_states, n_iter, bounds):
    """Minka's fixed point over all families: the concentrations by level, and the counts of every family."""
    own = [own_rows(X, y, weight, child, parents) for child, parents in enumerate(families)]
    p = [uniform(rows, n) for rows, n in zip(own, n_states, strict=True)]
    counts, c = [{} for _ in families], [1.0] * (1 + max(map(len, families)))
    for _ in range(n_iter):
        tables, rises = [0.0] * len(c), [0.0] * len(c)
        for i, n in enumerate(n_states):
            counts[i], p[i], *sums = seating(own[i], p[i], n, c)
            for level in range(len(c)):
                tables[level] += sums[0][level]
                rises[level] += sums[1][level]
        c = [
            min(max(t / r, bounds[0]), bounds[1]) if r > 0 else old for old, t, r in zip(c, tables, rises, strict=True)
        ]
    return c, counts


def of_counts(counts, values, x, label, n_states, c):
    """P(x | class, parents = values) of counts by (context, value, class); unseen contexts say nothing."""
    chance = 1 / n_states
    for level in range(len(values) + 1):
        context = tuple(values[:level])
        total = sum(n for (other, _, own), n in counts.items() if (other, own) == (context, label))
        if total > 0:
            chance = (counts.get((context, x, label), 0) + c[level] * chance) / (total + c[level])
    return chance
