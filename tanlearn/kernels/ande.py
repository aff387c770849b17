"""Joint probabilities of averaged n-dependence estimators (Webb et al. 2012), counted at prediction.

In each estimator, all features depend on n super-parents s: p(y, x) = p(y, x_s) * product over j of p(x_j | y, x_s).
Training rows and query rows are partitioned together by one super-parent after the other, and parts without query rows
are dropped at once. Each remaining part is counted, used and discarded. CPTs over all sets of four features of letter
would have 298 million entries, whereas one part needs 3,600.
"""
# Shapes: N training rows, T query rows, d features, C classes, P = padded(C), V values of all features,
# numbered consecutively, where number V is "missing"; n super-parents, E estimators, K - 1 features with missing values
# estimators (E, n): features in increasing order; total, exponents (T, C): the joint is total * 2^exponent
# n_summed (T,); implied (V, d): the only value of a feature in training rows with value v, V if there are several or
# too few rows

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels._lanes import LANES, exponent, load, mantissa, splat, store

#: Smallest probability, such that its product with a mantissa is a normal float32.
LEAST = 2.0**-120


class Rows(NamedTuple):
    """Encoded rows in two layouts: feature-major and row-major."""

    codes: Any  # uint8 or uint16 (d, N) codes of each feature
    values: Any  # int32 (N, d) value numbers of each row


class TrainingRows(NamedTuple):
    """Training rows and smoothing parameters."""

    rows: Rows  # of N training rows
    y: Any  # intp (N,) classes
    weight: Any  # float64 (N,)
    n_states: Any  # intp (d,)
    start: Any  # intp (d,) value number of each feature's first value
    missing: Any  # int, code of a missing value
    observed_row: Any  # intp (d,) row of `observed_weight` for a feature, 0 for features without missing values
    patterns: Any  # bool (Q, d) distinct patterns of observed features
    pattern_weight: Any  # float64 (Q, C) weight of the rows of each pattern
    prior: Any  # float64 (C,) class probabilities, or shape (0,) for class frequencies
    m: Any  # float, weight of the uniform distribution in an estimate
    min_count: Any  # float, minimum weight of a part
    chunk: Any  # int, number of factors whose product does not underflow in float32


class Parts(NamedTuple):
    """Partitions of the rows by 0, 1, ..., n super-parents; the rows of a part are contiguous in its level."""

    rows: Any  # int32 (n + 1, N) indices of the training rows, part by part
    query: Any  # int32 (n + 1, T) indices of the query rows, part by part
    first: Any  # intp (n + 1, T + 1) start of each part in rows
    first_query: Any  # intp (n + 1, T + 1) start of each part in query
    number: Any  # intp (n + 1,) number of parts of each level
    of_value: Any  # intp (max n_states,) new part of each value; -1 between calls
    value: Any  # intp (T,) value of each new part
    training_size: Any  # intp (T,) number of training rows of each new part, later the write position
    query_size: Any  # intp (T,) the same for query rows
    weight: Any  # float64 (T,) weight of the training rows of each new part


class Workspace(NamedTuple):
    """Counts and probabilities of the current part."""

    counts: Any  # float64 ((V + 1) * C,) weighted counts [value][class]; 0 between calls
    observed_weight: (
        Any  # float64 (K, C) weight per class of all rows, then of the rows that have a feature with missing values
    )
    probability: Any  # float32 ((V + 1) * P,) p(x_j | y, x_s) as [value][class]; 1 for "missing"
    filled: Any  # intp (V + 1,) number of the part for which the probabilities of a value were computed
    children: Any  # intp (d,) features that are not super-parents
    scale: Any  # float64 (C,) factor that converts weights of super-parents and class to p(y, x_s)
    base: Any  # float64 (C,) p(y, x_s)
    mantissas: Any  # float32 (P,)
    exponents: Any  # float32 (P,)
    terms: Any  # float64 (C,) joint without exponents


@kernel
def part_rows(feature, query_feature, missing, weight, min_count, level, parts):  # type: ignore[no-untyped-def]
    """Split the parts of a level by the values of one more feature, and write the parts of the next level.

    A part is kept if it has query rows and training weight of at least ``min_count``. Rows keep their order, so sums of
    real weights do not depend on the other query rows.
    """
    rows, query, below = parts.rows[level], parts.query[level], level + 1
    first, first_query = parts.first[below], parts.first_query[below]
    n_parts, first[0], first_query[0] = 0, 0, 0
    for k in range(parts.number[level]):
        own = rows[parts.first[level, k] : parts.first[level, k + 1]]
        own_query = query[parts.first_query[level, k] : parts.first_query[level, k + 1]]
        n_values = _measure(feature, query_feature, missing, weight, own, own_query, parts)
        for u in range(n_values):
            training_size, query_size = parts.training_size[u], parts.query_size[u]
            if parts.weight[u] >= min_count:
                parts.training_size[u], parts.query_size[u] = first[n_parts], first_query[n_parts]
                first[n_parts + 1] = first[n_parts] + training_size
                first_query[n_parts + 1] = first_query[n_parts] + query_size
                n_parts += 1
            else:
                parts.of_value[parts.value[u]] = -1
        _distribute(feature, missing, own, parts.of_value, parts.training_size, parts.rows[below])
        _distribute(query_feature, missing, own_query, parts.of_value, parts.query_size, parts.query[below])
        for u in range(n_values):
            parts.of_value[parts.value[u]] = -1
    parts.number[below] = n_parts


@kernel
def _measure(feature, query_feature, missing, weight, rows, query, parts):  # type: ignore[no-untyped-def]
    """Write sizes and weights of the values that occur in query rows, and return their number."""
    n_values = 0
    for t in query:
        v = query_feature[t]
        if v != missing:
            if parts.of_value[v] < 0:
                parts.of_value[v], parts.value[n_values] = n_values, v
                parts.training_size[n_values], parts.query_size[n_values], parts.weight[n_values] = 0, 0, 0.0
                n_values += 1
            parts.query_size[parts.of_value[v]] += 1
    for r in rows:
        v = feature[r]
        if v != missing and parts.of_value[v] >= 0:
            parts.training_size[parts.of_value[v]] += 1
            parts.weight[parts.of_value[v]] += weight[r]
    return n_values


@kernel
def _distribute(feature, missing, rows, of_value, position, out):  # type: ignore[no-untyped-def]
    """Write the rows of each part from its write position on, and advance the positions in place."""
    for r in rows:
        v = feature[r]
        if v != missing:
            u = of_value[v]
            if u >= 0:
                out[position[u]] = r
                position[u] += 1


@kernel
def count_part(rows, training, counts, observed_weight):  # type: ignore[no-untyped-def]
    """Add the rows of a part to the counts, and write the weights of the rows with each feature."""
    n_classes = observed_weight.shape[1]
    for q in range(observed_weight.shape[0]):
        for c in range(n_classes):
            observed_weight[q, c] = 0.0
    for r in rows:
        values, y, weight = training.rows.values[r], training.y[r], training.weight[r]
        observed_weight[0, y] += weight
        for j in range(values.shape[0]):
            counts[values[j] * n_classes + y] += weight
    if observed_weight.shape[0] > 1:
        missing = counts.shape[0] // n_classes - 1
        for r in rows:
            values = training.rows.values[r]
            for j in range(values.shape[0]):
                if training.observed_row[j] > 0 and values[j] != missing:
                    observed_weight[training.observed_row[j], training.y[r]] += training.weight[r]


@kernel
def clear_part(rows, training, n_classes, counts):  # type: ignore[no-untyped-def]
    """Reset the counts of a part to 0: entry by entry, or the whole array if that is less work."""
    if rows.shape[0] * training.n_states.shape[0] > counts.shape[0]:
        for cell in range(counts.shape[0]):
            counts[cell] = 0.0
    else:
        for r in rows:
            values, y = training.rows.values[r], training.y[r]
            for j in range(values.shape[0]):
                counts[values[j] * n_classes + y] = 0.0


@kernel
def _fill_probabilities(query, query_values, children, tag, training, space):  # type: ignore[no-untyped-def]
    """Write the probabilities of the values that the query rows of a part need, or of all values if these are fewer."""
    missing = space.filled.shape[0] - 1
    if query.shape[0] * children.shape[0] > missing:
        for j in children:
            for v in range(training.start[j], training.start[j] + training.n_states[j]):
                _fill(v, j, training, space)
    else:
        for t in query:
            values = query_values[t]
            for j in children:
                if values[j] != missing and space.filled[values[j]] != tag:
                    space.filled[values[j]] = tag
                    _fill(values[j], j, training, space)


@kernel
def _fill(v, j, training, space):  # type: ignore[no-untyped-def]
    """Write p(x_j | y, x_s) = (count + m / n_states) / (observed_weight + m) of one value for all classes."""
    n_classes, width = space.observed_weight.shape[1], space.mantissas.shape[0]
    out = space.probability[v * width : v * width + n_classes]
    count = space.counts[v * n_classes : (v + 1) * n_classes]
    total, pseudo_count = space.observed_weight[training.observed_row[j]], training.m / training.n_states[j]
    for c in range(n_classes):
        out[c] = max((count[c] + pseudo_count) / (total[c] + training.m), LEAST)


@kernel
def multiply(values, children, chunk, probability, mantissas, exponents):  # type: ignore[no-untyped-def]
    """Write the product over children of the probabilities of their values, as mantissas and exponents per class."""
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
    """Return 2^e for an integer e of at most 0; 0 below the normal numbers."""
    return np.int64((max(e, -1023) + 1023) << 52).view(np.float64)


@kernel
def add_scaled(terms, exponents, total, top):  # type: ignore[no-untyped-def]
    """Add terms * 2^exponents to total * 2^top in place, per class; ``top`` is the largest exponent so far."""
    for c in range(total.shape[0]):
        e = np.int64(exponents[c])
        above = e - top[c]
        total[c] = total[c] * power_of_two(min(-above, 0)) + terms[c] * power_of_two(min(above, 0))
        top[c] = max(top[c], e)


@kernel
def merge_sums(others, other_exponents, other_summed, total, exponents, n_summed):  # type: ignore[no-untyped-def]
    """Add the sums of other estimators in place."""
    for t in range(total.shape[0]):
        n_summed[t] += other_summed[t]
        add_scaled(others[t], other_exponents[t], total[t], exponents[t])


@kernel
def _scale_classes(parents, training, scale):  # type: ignore[no-untyped-def]
    """Write 1 / (N + m), where N is the weight of rows with all super-parents; with a prior, p(y) / (N_y + m / C)."""
    n_classes, everything = scale.shape[0], training.m
    for c in range(n_classes):
        scale[c] = 0.0
    for q in range(training.patterns.shape[0]):
        is_observed = True
        for i in parents:
            is_observed &= training.patterns[q, i]
        if is_observed:
            for c in range(n_classes):
                scale[c] += training.pattern_weight[q, c]
                everything += training.pattern_weight[q, c]
    for c in range(n_classes):
        if training.prior.shape[0] > 0:
            scale[c] = training.prior[c] / (scale[c] + training.m / n_classes)
        else:
            scale[c] = 1.0 / everything


@kernel
def sum_joint(estimators, training, query, parts, space, total, exponents, n_summed):  # type: ignore[no-untyped-def]
    """Add p(y, x) of each estimator to the query rows for which it qualifies, and count the estimators of each row."""
    n, tag = estimators.shape[1], 0
    for e in range(estimators.shape[0]):
        parents = estimators[e]
        kept = 0  # number of levels that are equal to those of the previous estimator
        while e > 0 and kept < n and parents[kept] == estimators[e - 1, kept]:
            kept += 1
        for level in range(kept, n):
            i = parents[level]
            codes, query_codes = training.rows.codes[i], query.codes[i]
            part_rows(codes, query_codes, training.missing, training.weight, training.min_count, level, parts)
        _scale_classes(parents, training, space.scale)
        pseudo_count = training.m / space.scale.shape[0]
        for i in parents:
            pseudo_count /= training.n_states[i]
        n_children = 0
        for j in range(training.n_states.shape[0]):
            is_child = True
            for i in parents:
                is_child &= i != j
            if is_child:
                space.children[n_children] = j
                n_children += 1
        for k in range(parts.number[n]):
            tag += 1
            rows = parts.rows[n, parts.first[n, k] : parts.first[n, k + 1]]
            query_rows = parts.query[n, parts.first_query[n, k] : parts.first_query[n, k + 1]]
            _add_part(
                rows,
                query_rows,
                space.children[:n_children],
                pseudo_count,
                tag,
                training,
                query,
                space,
                total,
                exponents,
            )
            for t in query_rows:
                n_summed[t] += 1


@kernel
def _add_part(rows, query_rows, children, pseudo_count, tag, training, query, space, total, exponents):  # type: ignore[no-untyped-def]
    """Count a part, and add the joint probabilities of its estimator to its query rows."""
    count_part(rows, training, space.counts, space.observed_weight)
    _fill_probabilities(query_rows, query.values, children, tag, training, space)
    clear_part(rows, training, space.scale.shape[0], space.counts)
    for c in range(space.scale.shape[0]):
        space.base[c] = (space.observed_weight[0, c] + pseudo_count) * space.scale[c]
    for t in query_rows:
        multiply(query.values[t], children, training.chunk, space.probability, space.mantissas, space.exponents)
        for c in range(space.base.shape[0]):
            space.terms[c] = space.base[c] * space.mantissas[c]
        add_scaled(space.terms, space.exponents, total[t], exponents[t])


@kernel
def find_implied(values, weight, least, seen, implied):  # type: ignore[no-untyped-def]
    """Write the value of each feature that each value implies, which is the only one that occurs with it in training.

    A value must have a weight of at least ``least``. ``seen`` (V,) is scratch. A feature is not implied by its own
    values.
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
    """Write which values of rows are implied by another value; of values that imply each other, the first is kept."""
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
