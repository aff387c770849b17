"""Counts of a family in all parent contexts that occur in the rows, level by level.

A context of level j is an assignment of values to the first j parents of a family. Rows are sorted by the values of
their parents, the first parent first, so the rows of a context are contiguous at each level. The contexts form a trie:
the contexts of level j + 1 that extend a context are numbered consecutively. Memory grows with the number of distinct
rows, not with the number of possible contexts. Entries of a context are (value, class) pairs that occur in it.

The levels are used by hierarchical smoothing (``back_off.py``) and by hierarchical Dirichlet smoothing
(``dirichlet.py``, Petitjean et al., "Accurate parameter estimation for Bayesian network classifiers using hierarchical
Dirichlet processes", Machine Learning 107, 2018).
"""
# Shapes: n rows, d features, C classes, k parents of the family, m rows with an observed child, E distinct ones of them
# columns (k + 2, m): values of the parents, the child and the class. The value of a missing parent, and of all parents
#   after it, is n_states, so that the levels before it still count the row; n_values (k + 2,): numbers of values
# order (m,): column numbers in sorted order
# shared (m,): number of leading values equal to those of the previous column in the order

from __future__ import annotations

from typing import Any, NamedTuple

from tanlearn.kernels._jit import kernel


class Levels(NamedTuple):
    """Trie of the K contexts of a family, numbered level by level, with R (context, class) pairs and L entries."""

    digit: Any  # uint16 (K,) value of the last parent of the context
    child_start: Any  # int32 or int64 (K + 1,) first context with one parent more
    class_start: Any  # int32 or int64 (K + 1,) first class of the context
    class_id: Any  # uint16 (R,) classes of each context, increasing
    class_total: Any  # int64 or float64 (R,) count of the class in the context
    entry_start: Any  # int32 or int64 (K + 1,) first entry of the context
    entry_value: Any  # uint16 (L,) child value of the entry, increasing within a context
    entry_class: Any  # uint16 (L,) class of the entry, increasing within a value
    entry_count: Any  # int64 or float64 (L,) count of the entry
    above: Any  # int32 or int64 (L,) entry of the same value and class in the context with one parent less, or -1
    run: Any  # int32 or int64 (L,) position in class_id of the class of the entry


class Scratch(NamedTuple):
    """Work arrays of :func:`build_levels`."""

    begin: Any  # intp (K,) first column of a context
    end: Any  # intp (K,) end of its columns
    cells: Any  # dtype of the counts (n_states * C,) counts [value][class]; zeros between contexts
    totals: Any  # dtype of the counts (C,) counts per class; zeros between contexts
    runs: Any  # intp (C,) position of each class in class_id
    where: Any  # intp (n_states * C,) entry of each [value][class] in the context above
    touched: Any  # intp (n_states * C,) keys value * C + class that occur in the context


@kernel
def family_columns(codes, y, child, parents, n_states, missing, rows, columns):  # type: ignore[no-untyped-def]
    """Write the values of parents, child and class of all rows with an observed child; return their number."""
    k = parents.shape[0]
    x = codes[child]
    m = 0
    for n in range(y.shape[0]):
        if x[n] != missing:
            rows[m] = n
            m += 1
    is_open = columns[k]
    for q in range(m):
        is_open[q] = 1
    for p in range(k):
        z, column, absent = codes[parents[p]], columns[p], n_states[parents[p]]
        for q in range(m):
            value = z[rows[q]]
            if value == missing:
                is_open[q] = 0
            column[q] = value if is_open[q] else absent
    values, classes = columns[k], columns[k + 1]
    for q in range(m):
        values[q] = x[rows[q]]
        classes[q] = y[rows[q]]
    return m


@kernel
def sort_columns(columns, n_values, order, buffer, start):  # type: ignore[no-untyped-def]
    """Write the column numbers, sorted by the first value, then by the second, and so on (stable radix sort)."""
    m = order.shape[0]
    for q in range(m):
        order[q] = q
    for p in range(columns.shape[0] - 1, -1, -1):
        column, n = columns[p], n_values[p] + 1  # one more for missing values
        start[: n + 1] = 0
        for q in range(m):
            start[column[q] + 1] += 1
        if start[1 : n + 1].max() == m:
            continue
        for v in range(n):
            start[v + 1] += start[v]
        for q in range(m):
            value = column[order[q]]
            buffer[start[value]] = order[q]
            start[value] += 1
        order[:] = buffer


@kernel
def mark_shared(columns, order, shared):  # type: ignore[no-untyped-def]
    """Write the number of leading values that each column shares with the previous column in the order."""
    if order.shape[0] > 0:
        shared[0] = 0
    for q in range(1, order.shape[0]):
        p = 0
        while p < columns.shape[0] and columns[p, order[q]] == columns[p, order[q - 1]]:
            p += 1
        shared[q] = p


@kernel
def sum_equal(columns, order, shared, weight, values, counts):  # type: ignore[no-untyped-def]
    """Write each distinct column once, in order, with the sum of its weights; return the number of distinct columns."""
    n_columns = columns.shape[0]
    n_found = 0
    for q in range(order.shape[0]):
        if q == 0 or shared[q] < n_columns:
            for p in range(n_columns):
                values[p, n_found] = columns[p, order[q]]
            counts[n_found] = 0
            n_found += 1
        counts[n_found - 1] += weight[order[q]]
    return n_found


@kernel
def build_levels(values, shared, counts, n_values, scratch, levels, sizes):  # type: ignore[no-untyped-def]
    """Write the contexts of all levels with their counts, and the cumulative numbers of contexts, classes and entries.

    ``values`` (k + 2, E), ``shared`` (E,) and ``counts`` (E,) are of sorted, distinct columns; ``sizes`` is (k + 1, 3).
    The entries of a context are a subset of those of the context above, as its rows are.
    """
    k = values.shape[0] - 2
    n_classes = n_values[k + 1]
    begin, end = scratch.begin, scratch.end
    begin[0], end[0] = 0, values.shape[1]
    scratch.where[:] = -1
    n_contexts, n_runs, n_entries = 1, 0, 0
    n_runs, n_entries = _sum_context(0, values, counts, n_classes, n_runs, n_entries, scratch, levels)
    sizes[0, 0], sizes[0, 1], sizes[0, 2] = n_contexts, n_runs, n_entries
    first = 0
    for level in range(1, k + 1):
        last = n_contexts
        for c in range(first, last):
            for q in range(levels.entry_start[c], levels.entry_start[c + 1]):
                scratch.where[levels.entry_value[q] * n_classes + levels.entry_class[q]] = q
            levels.child_start[c] = n_contexts
            e = begin[c]
            while e < end[c] and values[level - 1, e] != n_values[level - 1]:  # missing values are last
                f = e + 1
                while f < end[c] and shared[f] >= level:
                    f += 1
                begin[n_contexts], end[n_contexts] = e, f
                levels.digit[n_contexts] = values[level - 1, e]
                n_runs, n_entries = _sum_context(
                    n_contexts, values, counts, n_classes, n_runs, n_entries, scratch, levels
                )
                n_contexts += 1
                e = f
        first = last
        sizes[level, 0], sizes[level, 1], sizes[level, 2] = n_contexts, n_runs, n_entries
    levels.child_start[first : n_contexts + 1] = n_contexts


@kernel
def _sum_context(context, values, counts, n_classes, n_runs, n_entries, scratch, levels):  # type: ignore[no-untyped-def]
    """Write the classes and entries of a context; return the cumulative numbers of classes and entries."""
    k = values.shape[0] - 2
    cells, totals = scratch.cells, scratch.totals
    n_touched = 0
    for q in range(scratch.begin[context], scratch.end[context]):
        key = values[k, q] * n_classes + values[k + 1, q]
        if cells[key] == 0:
            scratch.touched[n_touched] = key
            n_touched += 1
        cells[key] += counts[q]
        totals[values[k + 1, q]] += counts[q]
    scratch.touched[:n_touched].sort()
    levels.class_start[context], levels.entry_start[context] = n_runs, n_entries
    for y in range(n_classes):
        if totals[y] != 0:
            levels.class_id[n_runs], levels.class_total[n_runs], scratch.runs[y] = y, totals[y], n_runs
            totals[y] = 0
            n_runs += 1
    for t in range(n_touched):
        key = scratch.touched[t]
        levels.entry_value[n_entries], levels.entry_class[n_entries] = key // n_classes, key % n_classes
        levels.entry_count[n_entries] = cells[key]
        levels.above[n_entries], levels.run[n_entries] = scratch.where[key], scratch.runs[key % n_classes]
        cells[key] = 0
        n_entries += 1
    levels.class_start[context + 1], levels.entry_start[context + 1] = n_runs, n_entries
    return n_runs, n_entries
