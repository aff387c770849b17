"""Posteriors of general networks by enumeration, and max-min parents and children, in plain Python."""

import itertools
import math

from scipy.stats import chi2


def smoothed(rows, weights, child, parents, n_states, alpha):
    """Return the function from a row to the smoothed frequency of the child's value given its parents' values."""

    def frequency(row):
        n_value = n_all = 0.0
        for other, weight in zip(rows, weights, strict=True):
            if all(other[j] == row[j] for j in parents):
                n_all += weight
                n_value += weight * (other[child] == row[child])
        if n_all + n_states[child] * alpha == 0:
            return 1 / n_states[child]
        return (n_value + alpha) / (n_all + n_states[child] * alpha)

    return frequency


def posterior(row, network, rows, weights, n_states, alpha):
    """Return P(class | features) of a row of features, from the whole network; the class is the last node."""
    target = len(network) - 1
    families = [smoothed(rows, weights, i, given, n_states, alpha) for i, given in enumerate(network)]
    joint = [math.prod(family([*row, c]) for family in families) for c in range(n_states[target])]
    return [p / sum(joint) for p in joint]


def g_test(rows, weights, x, t, given, n_states):
    """Return the log of the p value of the G test; -infinity stands for 'too few rows', which separates nothing."""
    cells = n_states[x] * n_states[t] * math.prod(n_states[j] for j in given)
    if given and 5 * cells > sum(weights):
        return -math.inf
    tables = {}
    for row, weight in zip(rows, weights, strict=True):
        if min(row[j] for j in (x, t, *given)) >= 0 and weight > 0:
            table = tables.setdefault(tuple(row[j] for j in given), {})
            table[row[x], row[t]] = table.get((row[x], row[t]), 0) + weight
    statistic, freedom = 0.0, 0
    for table in tables.values():
        total = sum(table.values())
        of_x, of_t = {}, {}
        for (a, b), n in table.items():
            of_x[a], of_t[b] = of_x.get(a, 0) + n, of_t.get(b, 0) + n
        statistic += 2 * sum(n * math.log(n * total / (of_x[a] * of_t[b])) for (a, b), n in table.items())
        freedom += (len(of_x) - 1) * (len(of_t) - 1)
    return float(chi2.logsf(statistic, freedom)) if freedom else 0.0


def max_min_candidates(rows, weights, target, n_states, significance, most=3):
    """Return the candidate parents and children of a node, before the symmetry correction."""

    def is_independent(log_p):
        return log_p >= math.log(significance)

    def subsets(nodes):
        return itertools.chain.from_iterable(itertools.combinations(nodes, k) for k in range(most + 1))

    def weakest(x, nodes):
        return max(g_test(rows, weights, x, target, given, n_states) for given in subsets(nodes))

    chosen, left = [], [j for j in range(len(n_states)) if j != target]
    while left:
        found = {x: weakest(x, chosen) for x in left}
        left = [x for x in left if not is_independent(found[x])]
        if left:
            best = min(left, key=lambda x: round(found[x], 6))
            chosen.append(best)
            left.remove(best)
    for x in list(chosen):
        rest = [j for j in chosen if j != x]
        if is_independent(weakest(x, rest)):
            chosen.remove(x)
    return sorted(chosen)
