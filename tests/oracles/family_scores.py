"""Scores of networks from the textbook formulas, in plain Python, and all directed acyclic graphs. Slow and obvious."""

import itertools
import math


def counted(rows, weights, child, parents):
    """Return the weight of each (context, value) of rows without a missing value (-1) in the family, by context."""
    counts = {}
    for row, weight in zip(rows, weights, strict=True):
        values = [row[i] for i in (child, *parents)]
        if -1 not in values and weight > 0:
            context = counts.setdefault(tuple(values[1:]), {})
            context[values[0]] = context.get(values[0], 0) + weight
    return counts


def plain_score(rows, weights, child, parents, n_states, score, a=1.0):
    """Return the score of a family over the rows without a missing value in it."""
    counts = counted(rows, weights, child, parents)
    r, q = n_states[child], math.prod(n_states[j] for j in parents)
    total = 0.0
    for of_value in counts.values():
        n_h = sum(of_value.values())
        if score == "bdeu":
            total += math.lgamma(a / q) - math.lgamma(a / q + n_h)
            total += sum(math.lgamma(a / (r * q) + n) - math.lgamma(a / (r * q)) for n in of_value.values())
        elif score == "k2":
            total += math.lgamma(r) - math.lgamma(n_h + r)
            total += sum(math.lgamma(n + 1) for n in of_value.values())
        else:
            total += sum(n * math.log(n / n_h) for n in of_value.values())
    n_rows = sum(weights)
    penalty = {"bic": math.log(max(n_rows, 1)) / 2, "aic": 1.0}.get(score, 0.0)
    return total - penalty * (r - 1) * q


def family_score(rows, weights, child, parents, root, n_states, score, a=1.0):
    """Return the score of a family; rows in which a parent is missing are scored given the root only.

    ``root`` is the class as a parent of every feature, or None.
    """
    always = () if root is None or child == root else (root,)
    complete = [n for n, row in enumerate(rows) if all(row[j] >= 0 for j in parents)]
    rest, own = [rows[n] for n in complete], [weights[n] for n in complete]

    def without_penalty(table, of_rows, given):
        r, q = n_states[child], math.prod(n_states[j] for j in given)
        penalty = {"bic": math.log(max(sum(weights), 1)) / 2, "aic": 1.0}.get(score, 0.0) * (r - 1) * q
        name = "log-likelihood" if score in ("bic", "aic") else score
        return plain_score(table, of_rows, child, given, n_states, name, a) - penalty

    everything = without_penalty(rows, weights, always)
    return everything + without_penalty(rest, own, (*parents, *always)) - without_penalty(rest, own, always)


def network_score(rows, weights, parents, root, n_states, score, a=1.0):
    """Return the score of a network over the columns of the rows; ``parents`` excludes the root."""
    total = 0.0
    for child in range(len(n_states)):
        given = () if child == root else parents[child]
        total += family_score(rows, weights, child, given, root, n_states, score, a)
    return total


def is_acyclic(parents):
    """Whether the nodes can be removed one by one, parents first."""
    left = set(range(len(parents)))
    while left:
        free = {i for i in left if not left & set(parents[i])}
        if not free:
            return False
        left -= free
    return True


def all_graphs(n_nodes, max_parents=None):
    """Yield the parents of each node in every directed acyclic graph."""
    most = n_nodes if max_parents is None else max_parents
    choices = [
        [given for k in range(most + 1) for given in itertools.combinations([j for j in range(n_nodes) if j != i], k)]
        for i in range(n_nodes)
    ]
    for parents in itertools.product(*choices):
        if is_acyclic(parents):
            yield parents


def next_graphs(parents, max_parents):
    """Yield every directed acyclic graph that differs by the addition, removal or reversal of one arc."""
    for child, parent in itertools.permutations(range(len(parents)), 2):
        sets = [set(given) for given in parents]
        if parent in sets[child]:
            sets[child].remove(parent)
            yield [tuple(sorted(given)) for given in sets]
            sets[parent].add(child)
        else:
            sets[child].add(parent)
        if max(map(len, sets)) <= max_parents and is_acyclic(sets):
            yield [tuple(sorted(given)) for given in sets]
