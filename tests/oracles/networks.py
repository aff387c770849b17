"""Slow, obvious oracles. Loops and enumeration only; nothing here knows tanlearn."""

import itertools
import math

import numpy as np


def family_index(sample, child, parents, n_states):
    """Row of the table [child value][parent values], or None if a member is missing (-1)."""
    values = [sample[child]] + [sample[j] for j in parents if j >= 0]
    if -1 in values:
        return None
    row = values[0]
    for j, value in zip([j for j in parents if j >= 0], values[1:], strict=True):
        row = row * n_states[j] + value
    return row


def offsets(child, parents, n_states, n_classes):
    """Where tables start in the flat vector, the class prior first."""
    start = [n_classes]
    for i, given in zip(child, parents, strict=True):
        size = n_states[i] * n_classes
        for j in given:
            size *= n_states[j] if j >= 0 else 1
        start.append(start[-1] + size)
    return start


def log_joint(X, cells, child, parents, n_states, n_classes, selected):
    """scores[n, c] = prior[c] + sum of the chosen tables' entries."""
    start = offsets(child, parents, n_states, n_classes)
    scores = np.zeros((len(X), n_classes))
    for n, sample in enumerate(X):
        for c in range(n_classes):
            scores[n, c] = cells[c]
            for t in selected:
                row = family_index(sample, child[t], parents[t], n_states)
                scores[n, c] += cells[start[t] + row * n_classes + c]
    return scores


def count_cells(X, y, weight, child, parents, n_states, n_classes):
    """Weight of every (child value, parent values, class), complete families only; the classes first."""
    start = offsets(child, parents, n_states, n_classes)
    counts = np.zeros(start[-1], dtype=np.asarray(weight).dtype)
    for sample, c, w in zip(X, y, weight, strict=True):
        counts[c] += w
        for t, (i, given) in enumerate(zip(child, parents, strict=True)):
            row = family_index(sample, i, given, n_states)
            if row is not None:
                counts[start[t] + row * n_classes + c] += w
    return counts


def conditional_mutual_information(table):
    """Sum of p(x, z, c) log [p(x, z | c) / (p(x | c) p(z | c))] over a table of counts [x][z][c]."""
    total = table.sum()
    information = 0.0
    for x, z, c in itertools.product(*map(range, table.shape)):
        if table[x, z, c] > 0:
            within = table[:, :, c].sum()
            ratio = (table[x, z, c] / within) / (table[x, :, c].sum() / within * table[:, z, c].sum() / within)
            information += table[x, z, c] / total * math.log(ratio)
    return information


def sum_xlogx(values):
    """Sum of x log x over what is positive."""
    return math.fsum(x * math.log(x) for x in values if x > 0)


def shared_samples(X, y, i, x, j, z, c):
    """Number of samples of a class in which feature i is x and feature j is z."""
    return sum(sample[i] == x and sample[j] == z and label == c for sample, label in zip(X, y, strict=True))


def normalize(table):
    """Log-probabilities over axis 0."""
    out = np.empty_like(table)
    for column in np.ndindex(table.shape[1:]):
        values = [table[(v, *column)] for v in range(table.shape[0])]
        top = max(values)
        log_total = top + math.log(sum(math.exp(value - top) for value in values))
        for v, value in enumerate(values):
            out[(v, *column)] = value - log_total
    return out


def all_forests(n):
    """Every way to give each node one parent or none (-1) without a cycle."""
    for parent in itertools.product(*([j for j in range(-1, n) if j != i] for i in range(n))):
        if is_acyclic(parent):
            yield parent


def is_acyclic(parent):
    """Whether following the parents always ends."""
    for start in range(len(parent)):
        node = start
        for _ in range(len(parent) + 1):
            if node == -1:
                break
            node = parent[node]
        if node != -1:
            return False
    return True


def best_arborescence(weight):
    """Parents of largest total weight; weight[i][j] for parent j of i, weight[i][-1] for none."""

    def total(parent):
        return sum(weight[i][j] for i, j in enumerate(parent))

    return max(all_forests(len(weight)), key=total)


def softmax(values):
    """Shares proportional to exp."""
    top = max(values)
    shares = [math.exp(value - top) for value in values]
    return [share / sum(shares) for share in shares]


def structure_gradient(perturbed, group, temperature, d_choice):
    """Jacobian of softmax(perturbed / temperature), applied to d_choice, group by group."""
    out = []
    for first, last in itertools.pairwise(group):
        s = softmax([value / temperature for value in perturbed[first:last]])
        d = d_choice[first:last]
        size = last - first
        out += [sum(s[u] * ((u == t) - s[t]) * d[u] for u in range(size)) / temperature for t in range(size)]
    return out


def round_to_bits(theta, integer_bits, fraction_bits):
    """Return the number nearest to theta among 0, -step, -2 step ..., of equally near ones an even multiple."""
    step = 2.0**-fraction_bits
    numbers = [(k, -k * step) for k in range(2 ** (integer_bits + fraction_bits))]
    return min(numbers, key=lambda pair: (abs(theta - pair[1]), pair[0] % 2))[1]


def expected_size_penalty(phi, group, size_penalty):
    """Return the sum over features of the softmax of their logits times the prices of their tables."""
    total = 0.0
    for i in range(len(group) - 1):
        tables = range(group[i], group[i + 1])
        shares = [math.exp(phi[t]) for t in tables]
        total += sum(share / sum(shares) * size_penalty[t] for share, t in zip(shares, tables, strict=True))
    return total


def exchanges(sample, d_row, cells, child, parents, selected, n_states, n_classes):
    """Return for every table the change of the score, times d_row, if it stood in the place of the drawn one.

    Nothing where child or parents of either are missing (-1).
    """
    changes = [0.0] * len(child)
    offset = offsets(child, parents, n_states, n_classes)
    for t in range(len(child)):
        drawn = selected[child[t]]
        members = [child[t], *(j for j in (*parents[t], *parents[drawn]) if j >= 0)]
        if all(sample[j] >= 0 for j in members):
            row = family_index(sample, child[t], parents[t], n_states)
            drawn_row = family_index(sample, child[t], parents[drawn], n_states)
            for c in range(n_classes):
                change = cells[offset[t] + row * n_classes + c] - cells[offset[drawn] + drawn_row * n_classes + c]
                changes[t] += d_row[c] * change
    return changes
