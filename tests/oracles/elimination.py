"""Missing features summed out by enumeration: every completion of a sample, one after the other. Slow and obvious."""

import itertools
import math

from oracles import networks as naive


def completions(sample, n_states):
    """Yield every way to fill in what a sample misses (-1)."""
    choices = [range(n_states[i]) if value < 0 else [value] for i, value in enumerate(sample)]
    yield from itertools.product(*choices)


def log_joint(sample, cells, parents, n_states, n_classes):
    """Return log p(class, what is observed) for every class: the sum over all completions."""
    selected = range(len(parents))
    scores = []
    for c in range(n_classes):
        total = 0.0
        for x in completions(sample, n_states):
            total += math.exp(naive.log_joint([x], cells, selected, parents, n_states, n_classes, selected)[0][c])
        scores.append(math.log(total) if total > 0 else -math.inf)
    return scores


def expected_counts(sample, d_scores, cells, parents, n_states, n_classes):
    """Return for every cell the sum over classes of d_scores[c] times its probability of being used, given class c."""
    selected = range(len(parents))
    offset = naive.offsets(selected, parents, n_states, n_classes)
    counts = [0.0] * offset[-1]
    observed = log_joint(sample, cells, parents, n_states, n_classes)
    for c in range(n_classes):
        counts[c] += d_scores[c]
        for x in completions(sample, n_states):
            score = naive.log_joint([x], cells, selected, parents, n_states, n_classes, selected)[0][c]
            posterior = math.exp(score - observed[c]) if observed[c] > -math.inf else 0.0
            for i in selected:
                row = naive.family_index(x, i, parents[i], n_states)
                counts[offset[i] + row * n_classes + c] += d_scores[c] * posterior
    return counts


def most_probable(sample, cells, parents, n_states, n_classes, y=None):
    """Return the completion and class of largest log joint, of equals the first, and that; y fixes the class."""
    selected = range(len(parents))
    best = None
    for c in range(n_classes) if y is None else [y]:
        for x in completions(sample, n_states):
            score = naive.log_joint([x], cells, selected, parents, n_states, n_classes, selected)[0][c]
            if best is None or score > best[2]:
                best = list(x), c, score
    return best


def contributions(sample, order, cells, parents, n_states, n_classes):
    """Return what each feature adds to the log joint of the features before it in the order; the log prior last."""
    seen = [-1] * len(sample)
    rows = [[0.0] * n_classes for _ in sample]
    for i in order:
        before = log_joint(seen, cells, parents, n_states, n_classes)
        seen[i] = sample[i]
        after = log_joint(seen, cells, parents, n_states, n_classes)
        rows[i] = [b - a for a, b in zip(before, after, strict=True)]
    return [*rows, list(cells[:n_classes])]


def n_values(sample, parents, n_states, order, is_normalized):
    """Return the values of every feature that is eliminated, times those of all that it is tied to then, added up."""
    families = [{i, *(j for j in row if j >= 0)} for i, row in enumerate(parents)]
    hidden = {i for i, value in enumerate(sample) if value < 0}
    kept = set(range(len(sample)))
    while is_normalized and (barren := {i for i in kept & hidden if not any(i in families[j] for j in kept - {i})}):
        kept -= barren
    scopes, total = [families[i] & hidden for i in kept], 0
    for v in order:
        if v in kept & hidden:
            union = set().union(*(scope for scope in scopes if v in scope))
            total += math.prod(n_states[j] for j in union)
            scopes = [*(scope for scope in scopes if v not in scope), union - {v}]
    return int(total)


def log_joint_in_parts(sample, cells, parents, n_states, n_classes, order, limit):
    """As log_joint, feature by feature in an order; one that would leave more than a limit of features is taken apart.

    That is: it becomes as many features as it has factors of several, in each of which it has any value equally often.
    """
    selected = range(len(parents))
    offset = naive.offsets(selected, parents, n_states, n_classes)
    factors = []
    for i in selected:
        free = [j for j in sorted({i, *(j for j in parents[i] if j >= 0)}) if sample[j] < 0]
        table = {}
        for values in itertools.product(*(range(n_states[j]) for j in free)):
            x = list(sample)
            for j, value in zip(free, values, strict=True):
                x[j] = value
            cell = offset[i] + naive.family_index(x, i, parents[i], n_states) * n_classes
            table[values] = [math.exp(cells[cell + c]) for c in range(n_classes)]
        factors.append((free, table))
    for v in order:
        own = [factor for factor in factors if v in factor[0]]
        if not own:
            continue
        factors = [factor for factor in factors if v not in factor[0]]
        groups = [own]
        if len({j for free, _ in own for j in free} - {v}) > limit:
            alone = [factor for factor in own if factor[0] == [v]]
            groups = [alone, *([factor] for factor in own if factor[0] != [v])]
        for number, group in enumerate(groups):
            left = sorted({j for free, _ in group for j in free} - {v})
            table = {}
            for values in itertools.product(*(range(n_states[j]) for j in left)):
                x = dict(zip(left, values, strict=True))
                table[values] = [0.0] * n_classes
                for value in range(n_states[v]):
                    x[v] = value
                    for c in range(n_classes):
                        found = [table_[tuple(x[j] for j in free)][c] for free, table_ in group]
                        table[values][c] += math.prod(found) / (n_states[v] if number > 0 else 1)
            factors.append((left, table))
    totals = [math.exp(cells[c]) * math.prod(table[()][c] for _, table in factors) for c in range(n_classes)]
    return [math.log(total) if total > 0 else -math.inf for total in totals]
