"""Distinct rows of a family, sorted, with their counts.

The columns of a family are the values of its parents, its feature and the class in each row. They are sorted by the
first parent, then the second, and so on, so that the rows of a context are contiguous at each level. Equal columns are
summed up. Memory grows with the number of distinct rows, not with the number of possible contexts.
"""
# Shapes: n rows, d features, k parents of the family, m rows with an observed child
# columns (k + 2, m): values of the parents, the child and the class. The value of a missing parent, and of all parents
#   after it, is n_states, so that the levels before it still count the row; n_values (k + 2,): numbers of values
# order (m,): column numbers in sorted order
# shared (m,): number of leading values equal to those of the previous column in the order

from __future__ import annotations

from tanlearn.kernels._jit import kernel


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
        most = 0
        for v in range(1, n + 1):
            most = max(most, start[v])
        if most == m:
            continue
        for v in range(n):
            start[v + 1] += start[v]
        for q in range(m):
            value = column[order[q]]
            buffer[start[value]] = order[q]
            start[value] += 1
        for q in range(m):
            order[q] = buffer[q]


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
