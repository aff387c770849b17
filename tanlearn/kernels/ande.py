"""The joint of averaged n-dependence estimators (Webb et al. 2012), counted while it is asked for.

An estimator hangs all features on n super-parents s: p(y, x) = p(y, x_s) * product over j of p(x_j | y, x_s). The rows
that were learnt and those that are asked about are parted side by side, by one super-parent after the other, and parts
that nobody asks about are dropped at once. What is left of a part is counted, used and forgotten: all sets of four
features of letter have 298 million cells, and a part needs 3,600.
"""
# Shapes: N rows learnt, T rows asked about, d features, C classes, P the multiple of LANES that holds C, V values of
# all features, numbered through, and V once more for "missing"; n super-parents, E estimators, K - 1 features with gaps
# estimators (E, n): features in rising order; total, exponents (T, C): a joint is total * 2^exponent; n_summed (T,)
# implied (V, d): the one value of a feature that is learnt beside a value, V where there are more or too few rows

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels._lanes import LANES, exponent, load, mantissa, splat, store

#: Least probability: a product with a mantissa is a normal float32.
LEAST = 2.0**-120


class Rows(NamedTuple):
    """A table twice: a feature lies side by side, and a row does."""

    codes: Any  # (d, N): values of a feature
    values: Any  # (N, d): numbers of values


class Learnt(NamedTuple):
    """What is counted, and how it is smoothed."""

    rows: Any  # Rows
    y: Any  # (N,)
    weight: Any  # (N,)
    n_states: Any  # (d,)
    start: Any  # (d,): number of a feature's first value
    missing: Any  # the code of no value
    known_row: Any  # (d,): where the weight of rows that know a feature stands in `known`, 0 without gaps
    patterns: Any  # (Q, d): whether rows know a feature
    pattern_weight: Any  # (Q, C)
    prior: Any  # (C,): probabilities of classes, or (0,) for those of the rows
    m: Any  # weight of the uniform distribution in an estimate
    min_count: Any  # least weight of a part
    chunk: Any  # factors whose product float32 can hold


class Parts(NamedTuple):
    """Rows parted by 0, 1, ..., n super-parents, level by level; of every level, the rows of a part lie together."""

    rows: Any  # (n + 1, N)
    asked: Any  # (n + 1, T)
    first: Any  # (n + 1, T + 1): where the rows of parts begin
    first_asked: Any  # (n + 1, T + 1)
    number: Any  # (n + 1,): how many parts there are
    of_value: Any  # (most values of a feature,): -1 between calls
    value: Any  # (T,)
    size: Any  # (T,)
    size_asked: Any  # (T,)
    weight: Any  # (T,)


class Workspace(NamedTuple):
    """Counts and probabilities of the part in hand."""

    counts: Any  # ((V + 1) * C,): of a value and class, 0 between calls
    known: Any  # (K, C): weight of the rows of a class, and of those that know a feature with gaps
    probability: Any  # ((V + 1) * P,): p(x_j | y, x_s), float32; 1 of "missing"
    filled: Any  # (V + 1,): the last part whose probabilities a value has
    children: Any  # (d,)
    scale: Any  # (C,): what the weight of super-parents and class is multiplied by for p(y, x_s)
    base: Any  # (C,): p(y, x_s)
    mantissas: Any  # (P,): float32
    exponents: Any  # (P,): float32
    terms: Any  # (C,): the joint, but for the exponents


@kernel
def part_rows(feature, asked_feature, missing, weight, min_count, level, parts):  # type: ignore[no-untyped-def]
    """Part every part of a level by the values of one more feature.

    A part is kept if somebody asks about it and it weighs at least ``min_count``. Rows stay in their order, so sums of
    real weights do not depend on who else asks.
    """
    rows, asked, below = parts.rows[level], parts.asked[level], level + 1
    first, first_asked = parts.first[below], parts.first_asked[below]
    n_parts, first[0], first_asked[0] = 0, 0, 0
    for k in range(parts.number[level]):
        own = rows[parts.first[level, k] : parts.first[level, k + 1]]
        own_asked = asked[parts.first_asked[level, k] : parts.first_asked[level, k + 1]]
        n_values = _measure(feature, asked_feature, missing, weight, own, own_asked, parts)
        for u in range(n_values):
            size, size_asked = parts.size[u], parts.size_asked[u]
            if parts.weight[u] >= min_count:
                parts.size[u], parts.size_asked[u] = first[n_parts], first_asked[n_parts]
                first[n_parts + 1] = first[n_parts] + size
                first_asked[n_parts + 1] = first_asked[n_parts] + size_asked
                n_parts += 1
            else:
                parts.of_value[parts.value[u]] = -1
        _distribute(feature, missing, own, parts.of_value, parts.size, parts.rows[below])
        _distribute(asked_feature, missing, own_asked, parts.of_value, parts.size_asked, parts.asked[below])
        for u in range(n_values):
            parts.of_value[parts.value[u]] = -1
    parts.number[below] = n_parts


@kernel
def _measure(feature, asked_feature, missing, weight, rows, asked, parts):  # type: ignore[no-untyped-def]
    """Write rows and weights of the values that are asked about, and return how many there are."""
    n_values = 0
    for t in asked:
        v = asked_feature[t]
        if v != missing:
            if parts.of_value[v] < 0:
                parts.of_value[v], parts.value[n_values] = n_values, v
                parts.size[n_values], parts.size_asked[n_values], parts.weight[n_values] = 0, 0, 0.0
                n_values += 1
            parts.size_asked[parts.of_value[v]] += 1
    for r in rows:
        v = feature[r]
        if v != missing and parts.of_value[v] >= 0:
            parts.size[parts.of_value[v]] += 1
            parts.weight[parts.of_value[v]] += weight[r]
    return n_values


@kernel
def _distribute(feature, missing, rows, of_value, place, out):  # type: ignore[no-untyped-def]
    """Write the rows of every numbered value from its place on, which moves on."""
    for r in rows:
        v = feature[r]
        if v != missing:
            u = of_value[v]
            if u >= 0:
                out[place[u]] = r
                place[u] += 1


@kernel
def count_part(rows, learnt, counts, known):  # type: ignore[no-untyped-def]
    """Add the rows of a part to the counts of values and classes, and write the weights that know a feature."""
    n_classes = known.shape[1]
    for q in range(known.shape[0]):
        for c in range(n_classes):
            known[q, c] = 0.0
    for r in rows:
        values, y, weight = learnt.rows.values[r], learnt.y[r], learnt.weight[r]
        known[0, y] += weight
        for j in range(values.shape[0]):
            counts[values[j] * n_classes + y] += weight
    if known.shape[0] > 1:
        missing = counts.shape[0] // n_classes - 1
        for r in rows:
            values = learnt.rows.values[r]
            for j in range(values.shape[0]):
                if learnt.known_row[j] > 0 and values[j] != missing:
                    known[learnt.known_row[j], learnt.y[r]] += learnt.weight[r]


@kernel
def clear_part(rows, learnt, n_classes, counts):  # type: ignore[no-untyped-def]
    """Write 0 where the rows of a part were counted: everywhere, if that is less."""
    if rows.shape[0] * learnt.n_states.shape[0] > counts.shape[0]:
        for cell in range(counts.shape[0]):
            counts[cell] = 0.0
    else:
        for r in rows:
            values, y = learnt.rows.values[r], learnt.y[r]
            for j in range(values.shape[0]):
                counts[values[j] * n_classes + y] = 0.0


@kernel
def _fill_probabilities(asked, asked_values, children, tag, learnt, space):  # type: ignore[no-untyped-def]
    """Write the probabilities of every value that a part is asked about, or of all, if they are fewer."""
    missing = space.filled.shape[0] - 1
    if asked.shape[0] * children.shape[0] > missing:
        for j in children:
            for v in range(learnt.start[j], learnt.start[j] + learnt.n_states[j]):
                _fill(v, j, learnt, space)
    else:
        for t in asked:
            values = asked_values[t]
            for j in children:
                if values[j] != missing and space.filled[values[j]] != tag:
                    space.filled[values[j]] = tag
                    _fill(values[j], j, learnt, space)


@kernel
def _fill(v, j, learnt, space):  # type: ignore[no-untyped-def]
    """Write p(x_j | y, x_s) = (count + m / n_states) / (known + m) of one value."""
    n_classes, width = space.known.shape[1], space.mantissas.shape[0]
    out = space.probability[v * width : v * width + n_classes]
    count = space.counts[v * n_classes : (v + 1) * n_classes]
    known, share = space.known[learnt.known_row[j]], learnt.m / learnt.n_states[j]
    for c in range(n_classes):
        out[c] = max((count[c] + share) / (known[c] + learnt.m), LEAST)


@kernel
def multiply(values, children, chunk, probability, mantissas, exponents):  # type: ignore[no-untyped-def]
    """Write the product over children of the probabilities of their values, as mantissas and exponents of classes."""
    width, n_children = mantissas.shape[0], children.shape[0]
    for c in range(0, width, LANES):
        product, power = splat(1.0), splat(0.0)
        for begin in range(0, n_children, chunk):
            for q in range(begin, min(begin + chunk, n_children)):
                product = product * load(probability, values[children[q]] * width + c)
            power = power + exponent(product)
            product = mantissa(product)
        store(mantissas, c, product)
        store(exponents, c, power)


@kernel
def power_of_two(e):  # type: ignore[no-untyped-def]
    """Return 2^e for an integer up to 0; 0 below the normal numbers."""
    return np.int64((max(e, -1023) + 1023) << 52).view(np.float64)


@kernel
def add_scaled(terms, exponents, total, top):  # type: ignore[no-untyped-def]
    """Add term * 2^exponent to total * 2^top, class by class, where top is the largest exponent so far."""
    for c in range(total.shape[0]):
        e = np.int64(exponents[c])
        above = e - top[c]
        total[c] = total[c] * power_of_two(min(-above, 0)) + terms[c] * power_of_two(min(above, 0))
        top[c] = max(top[c], e)


@kernel
def merge_sums(others, other_exponents, other_summed, total, exponents, n_summed):  # type: ignore[no-untyped-def]
    """Add sums of other estimators."""
    for t in range(total.shape[0]):
        n_summed[t] += other_summed[t]
        add_scaled(others[t], other_exponents[t], total[t], exponents[t])


@kernel
def _scale_classes(parents, learnt, scale):  # type: ignore[no-untyped-def]
    """Write 1 / (weight that knows all super-parents + m), or with a given prior p(y) / (that of the class + m / C)."""
    n_classes, everything = scale.shape[0], learnt.m
    for c in range(n_classes):
        scale[c] = 0.0
    for q in range(learnt.patterns.shape[0]):
        is_known = True
        for i in parents:
            is_known &= learnt.patterns[q, i]
        if is_known:
            for c in range(n_classes):
                scale[c] += learnt.pattern_weight[q, c]
                everything += learnt.pattern_weight[q, c]
    for c in range(n_classes):
        if learnt.prior.shape[0] > 0:
            scale[c] = learnt.prior[c] / (scale[c] + learnt.m / n_classes)
        else:
            scale[c] = 1.0 / everything


@kernel
def sum_joint(estimators, learnt, asked, parts, space, total, exponents, n_summed):  # type: ignore[no-untyped-def]
    """Add p(y, x) of every estimator to the rows that its super-parents have a say on, which are counted, too."""
    n, tag = estimators.shape[1], 0
    for e in range(estimators.shape[0]):
        parents = estimators[e]
        kept = 0  # levels that the estimator before has parted already
        while e > 0 and kept < n and parents[kept] == estimators[e - 1, kept]:
            kept += 1
        for level in range(kept, n):
            i = parents[level]
            codes, asked_codes = learnt.rows.codes[i], asked.codes[i]
            part_rows(codes, asked_codes, learnt.missing, learnt.weight, learnt.min_count, level, parts)
        _scale_classes(parents, learnt, space.scale)
        share = learnt.m / space.scale.shape[0]
        for i in parents:
            share /= learnt.n_states[i]
        n_children = 0
        for j in range(learnt.n_states.shape[0]):
            is_child = True
            for i in parents:
                is_child &= i != j
            if is_child:
                space.children[n_children] = j
                n_children += 1
        for k in range(parts.number[n]):
            tag += 1
            rows = parts.rows[n, parts.first[n, k] : parts.first[n, k + 1]]
            those = parts.asked[n, parts.first_asked[n, k] : parts.first_asked[n, k + 1]]
            _add_part(rows, those, space.children[:n_children], share, tag, learnt, asked, space, total, exponents)
            for t in those:
                n_summed[t] += 1


@kernel
def _add_part(rows, those, children, share, tag, learnt, asked, space, total, exponents):  # type: ignore[no-untyped-def]
    """Count a part, and add the joint of its estimator to the rows that it is asked about."""
    count_part(rows, learnt, space.counts, space.known)
    _fill_probabilities(those, asked.values, children, tag, learnt, space)
    clear_part(rows, learnt, space.scale.shape[0], space.counts)
    for c in range(space.scale.shape[0]):
        space.base[c] = (space.known[0, c] + share) * space.scale[c]
    for t in those:
        multiply(asked.values[t], children, learnt.chunk, space.probability, space.mantissas, space.exponents)
        for c in range(space.base.shape[0]):
            space.terms[c] = space.base[c] * space.mantissas[c]
        add_scaled(space.terms, space.exponents, total[t], exponents[t])


@kernel
def find_implied(values, weight, least, seen, implied):  # type: ignore[no-untyped-def]
    """Write the only value of every feature beside every value that weighs at least ``least``, in rows that know it.

    ``seen`` (V,) is scratch. A feature is not implied by its own values.
    """
    missing, d = implied.shape
    for v in range(missing):
        seen[v] = 0.0
    for i in range(d):
        for r in range(values.shape[0]):
            v, row = values[r, i], values[r]
            if v != missing:
                known = implied[v]
                if seen[v] > 0.0:
                    for j in range(d):
                        known[j] = known[j] if known[j] == row[j] else missing
                else:
                    for j in range(d):
                        known[j] = row[j]
                seen[v] += weight[r]
                known[i] = missing
    for v in range(missing):
        if seen[v] < least:
            for j in range(d):
                implied[v, j] = missing


@kernel
def drop_implied(values, implied, is_dropped):  # type: ignore[no-untyped-def]
    """Write which values of rows another one implies; of those that imply each other, the first is kept."""
    missing, d = implied.shape
    for t in range(values.shape[0]):
        row, dropped = values[t], is_dropped[t]
        for j in range(d):
            dropped[j] = False
        for i in range(d):
            if row[i] != missing:
                known = implied[row[i]]
                for j in range(d):
                    if known[j] == row[j] and row[j] != missing:
                        dropped[j] |= i < j or implied[row[j], i] != row[i]
