"""Families counted over the contexts that rows show: sorted, summed, and level by level with one parent more.

A context of level j is a choice of values of a family's first j parents. Rows are sorted by their parents' values, the
first parent first, so that the rows of a context stand together at every level; what is kept of them grows with the
rows, whatever the number of values.
"""
# Shapes: n rows, d features, C classes, k parents of the family, m rows that have its child, E different ones of them
# columns (k + 2, m): values of the parents, the child and the class. Of a missing parent, and of all behind it, the
#   value is n_states, so that the levels before it still count the row; n_values (k + 2,): states and classes
# order (m,): of the columns, sorted; shared (m,): by how many first values one equals the one before it

from __future__ import annotations

from typing import Any, NamedTuple

from tanlearn.kernels._jit import kernel


class Levels(NamedTuple):
    """The K contexts of a family, numbered level by level, with R classes and L entries (value, class) in all."""

    digit: Any  # (K,): value of the last parent of a context
    child_start: Any  # (K + 1,): where the contexts begin that have one parent more
    class_start: Any  # (K + 1,): where the classes of a context begin
    class_id: Any  # (R,): rising
    class_total: Any  # (R,): their counts
    entry_start: Any  # (K + 1,): where the entries of a context begin
    entry_value: Any  # (L,): rising, and of one value
    entry_class: Any  # (L,): the classes
    entry_count: Any  # (L,)
    above: Any  # (L,): the same value and class in the context of one parent less, or -1
    run: Any  # (L,): the class of the same context


class Scratch(NamedTuple):
    """What building levels works with."""

    begin: Any  # (K,): first column of a context
    end: Any  # (K,): and the one after its last
    cells: Any  # (n_states * C,): zeros
    totals: Any  # (C,): zeros
    runs: Any  # (C,)
    where: Any  # (n_states * C,)
    touched: Any  # (n_states * C,)


@kernel
def family_columns(codes, y, child, parents, n_states, missing, rows, columns):  # type: ignore[no-untyped-def]
    """Write the values of every row that has the child; return how many there are."""
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
    """Write the numbers of the columns, sorted by the first value, then the second, and so on; equals as they come."""
    m = order.shape[0]
    for q in range(m):
        order[q] = q
    for p in range(columns.shape[0] - 1, -1, -1):
        column, n = columns[p], n_values[p] + 1  # and one for what is missing
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
    """Write by how many first values every column equals the one before it in the order."""
    if order.shape[0] > 0:
        shared[0] = 0
    for q in range(1, order.shape[0]):
        p = 0
        while p < columns.shape[0] and columns[p, order[q]] == columns[p, order[q - 1]]:
            p += 1
        shared[q] = p


@kernel
def sum_equal(columns, order, shared, weight, values, counts):  # type: ignore[no-untyped-def]
    """Write every different column once, in order, and the sum of its weights; return how many there are."""
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
    """Write the contexts of all levels with their counts, and how many contexts, classes and entries each level ends.

    ``values`` (k + 2, E), ``shared`` and ``counts`` are of sorted and different columns, ``sizes`` is (k + 1, 3). The
    entries of a context are among those of the context above, as its columns are.
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
            while e < end[c] and values[level - 1, e] != n_values[level - 1]:  # the missing ones stand last
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
    """Write the classes and entries of a context; return how many there are of all contexts so far."""
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
