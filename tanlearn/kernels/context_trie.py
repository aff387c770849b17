"""Trie of the contexts of families: its layout, its growth, and the counts of its entries.

A context of level j of a family is an assignment of values to the first j of its parents, and the set of samples that
have them. The contexts form a trie: the root of a family has no parent, and the children of a context split its samples
by the values of the next parent. The entries of a context are pairs of a value of the family's feature and a class,
with the weight of the samples of this value and class. A full trie has entries of all values with all classes of a
context. Otherwise, a context has entries only for pairs that occur in it. Back-off networks and forests use the same
trie: ``context_smoothing.py`` converts the counts to probabilities, and ``context_scores.py`` evaluates them on
samples.

Invariant: samples, values and classes of a context are subsets of the samples, values and classes of the context above
it, and an entry has an entry of the same value and class above it. Reference: Petitjean, Buntine, Webb, Zaidi: Accurate
parameter estimation for Bayesian network classifiers using hierarchical Dirichlet processes. Machine Learning 107,
2018, section 3.
"""
# Shapes: n samples, d features, C classes, V the most values of a feature; F families of up to k parents with N
# contexts, family after family, each level by level from the root on; S samples with an observed child, of all families
# codes (d, n), where codes of at least n_states (d,) are missing; y (n,)
# weight (n,), positive, or (1,) if all are equal
# child, root (F,); parents (F, k), -1 for none
# counts (L,): weight of each entry; above (L,): entry of the same value and class in the context above; run (L,):
# position of its class in ``classes``; cells (V, C): counts, zeros between contexts

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tanlearn.kernels._jit import kernel

#: Values per sample up to which all values are scanned. With more, the values of the samples are sorted, so that the
#: cost of a context with a single sample does not grow with the number of values.
_SCANNED = 8
#: Samples per value that are read before it is checked whether all values were found.
_FIRST = 8
#: The 16 bits of a class in a cell.
_LAST_BITS = 0xFFFF


class ContextTrie(NamedTuple):
    """Contexts of one or more families.

    There are L entries, M pairs of a context and a value, and R pairs of a context and a class.

    The children of context g are ``children[g]`` up to ``children[g + 1]``, or up to the next family's root. The other
    arrays of starts are alike, and end with the length of the whole list. A root has all values and all classes.
    """

    children: Any  # int32 or int64 (N + 1,) first context with one parent more
    branch: Any  # uint16 (N,) value of the last parent, increasing among the children of a context; 0 for a root
    class_start: Any  # int32 or int64 (N + 1,) first class of each context
    classes: Any  # uint16 (R,) classes that occur in each context, increasing
    value_start: Any  # int32 or int64 (N + 1,) first value of each context
    values: Any  # uint16 (M,) values of the feature that occur in each context, increasing
    entry_start: Any  # int32 or int64 (M + 1,) first entry of each value of a context
    entry_class: Any  # uint16 (L,) class of each entry, increasing within a value; a full trie can do without


class Samples(NamedTuple):
    """Samples of each context; context g has ``order[level[g], begin[g]:end[g]]``.

    Values and classes are copied in this order, so that they are not read in random order several times per level.
    """

    order: Any  # int32 (k + 1, S) sample numbers of each level
    cell: Any  # uint32 (k + 1, S) value of the child and class of each of them, in the upper and the lower 16 bits
    level: Any  # intp (N,) number of parents of the context
    begin: Any  # intp (N,) start of the context's samples in its level
    end: Any  # intp (N,) end of the context's samples


@kernel
def sort_values(values):  # type: ignore[no-untyped-def]
    """Sort integers in place (Shell sort); Numba's own sort takes seven times as long to compile."""
    n, gap = values.shape[0], 1
    while gap < n:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            value, j = values[i], i
            while j >= gap and values[j - gap] > value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 3


@kernel
def list_distinct(cells, shift, n_values, is_found, found):  # type: ignore[no-untyped-def]
    """Write the distinct values of samples in increasing order, and return their number.

    A value is the 16 bits of a cell from bit ``shift`` on. is_found (V,), False before and after the call, is scratch.
    """
    n = 0
    if n_values < _SCANNED * cells.shape[0]:
        # Large contexts usually have all values in their first samples. In small ones, branches take longer.
        n_first = min(cells.shape[0], _FIRST * n_values)
        for s in range(n_first):
            is_found[(cells[s] >> shift) & _LAST_BITS] = True
        if n_first < cells.shape[0]:
            for v in range(n_values):
                n += int(is_found[v])
        if n < n_values:
            for s in range(n_first, cells.shape[0]):
                is_found[(cells[s] >> shift) & _LAST_BITS] = True
        n = 0
        for v in range(n_values):
            if is_found[v]:
                is_found[v] = False
                found[n] = v
                n += 1
        return n
    for s in range(cells.shape[0]):
        v = (cells[s] >> shift) & _LAST_BITS
        if not is_found[v]:
            is_found[v] = True
            found[n] = v
            n += 1
    sort_values(found[:n])
    for i in range(n):
        is_found[found[i]] = False
    return n


@kernel
def list_values(values, n_values, is_found, found):  # type: ignore[no-untyped-def]
    """Write the distinct values below ``n_values`` in increasing order, and return their number."""
    n = 0
    for s in range(values.shape[0]):
        v = values[s]
        if v < n_values and not is_found[v]:
            is_found[v] = True
            found[n] = v
            n += 1
    sort_values(found[:n])
    for i in range(n):
        is_found[found[i]] = False
    return n


@kernel
def split_samples(  # type: ignore[no-untyped-def]
    values, n_values, least, samples, cells, is_found, found, end, own, parts, cells_of_parts
):
    """Group samples by their values below ``n_values``, and return the number of parts.

    Part i has the samples of value ``found[i]``, in the same order, up to ``parts[end[found[i]]]``, and their cells.
    Parts of fewer than ``least`` samples are dropped. is_found (V,), False before and after the call, is scratch;
    found, end (V,), own (n,).
    """
    size = samples.shape[0]
    is_scanned = n_values < _SCANNED * size
    for s in range(size):
        own[s] = values[samples[s]]
    n_found = n_values if is_scanned else list_values(own[:size], n_values, is_found, found)
    for i in range(n_found):
        end[i if is_scanned else found[i]] = 0
    for s in range(size):
        v = own[s]
        if v < n_values:
            end[v] += 1
    n_parts = place = 0
    for i in range(n_found):
        v = i if is_scanned else found[i]
        in_part = end[v]
        end[v] = -1
        if in_part >= least:
            end[v] = place
            place += in_part
            found[n_parts] = v
            n_parts += 1
    for s in range(size):
        v = own[s]
        if v < n_values and end[v] >= 0:
            parts[end[v]], cells_of_parts[end[v]] = samples[s], cells[s]
            end[v] += 1
    return n_parts


@kernel
def grow_contexts(  # type: ignore[no-untyped-def]
    codes, n_states, y, n_classes, child, parents, least, samples, is_found, found, end, values, trie, root
):
    """Grow the tries of families by splitting contexts by one parent after the other; return the number of contexts.

    Entries are not written. is_found (V or C,), False before and after the call, and found, end (V,), values (n,) are
    scratch.
    """
    n_contexts = used = 0
    trie.class_start[0] = trie.value_start[0] = 0
    for f in range(child.shape[0]):
        g, x, n_values = n_contexts, codes[child[f]], n_states[child[f]]
        root[f], trie.branch[g] = g, 0
        samples.level[g], samples.begin[g] = 0, used
        for r in range(x.shape[0]):
            if x[r] < n_values:
                samples.order[0, used] = r
                samples.cell[0, used] = (np.int64(x[r]) << 16) | np.int64(y[r])
                used += 1
        samples.end[g] = used
        n_contexts += 1
        while g < n_contexts:
            level, first, last = samples.level[g], samples.begin[g], samples.end[g]
            own, cells = samples.order[level, first:last], samples.cell[level, first:last]
            a, b = trie.class_start[g], trie.value_start[g]
            if level == 0:
                for c in range(n_classes):
                    trie.classes[a + c] = c
                for v in range(n_values):
                    trie.values[b + v] = v
                trie.class_start[g + 1], trie.value_start[g + 1] = a + n_classes, b + n_values
            else:
                trie.class_start[g + 1] = a + list_distinct(cells, 0, n_classes, is_found, trie.classes[a:])
                trie.value_start[g + 1] = b + list_distinct(cells, 16, n_values, is_found, trie.values[b:])
            trie.children[g] = n_contexts
            if level < parents.shape[1] and parents[f, level] >= 0:
                j = parents[f, level]
                parts, of_parts = samples.order[level + 1, first:last], samples.cell[level + 1, first:last]
                n_parts = split_samples(
                    codes[j], n_states[j], least, own, cells, is_found, found, end, values, parts, of_parts
                )
                place = first
                for i in range(n_parts):
                    trie.branch[n_contexts], samples.level[n_contexts] = found[i], level + 1
                    samples.begin[n_contexts] = place
                    place = first + end[found[i]]
                    samples.end[n_contexts] = place
                    n_contexts += 1
            g += 1
    trie.children[n_contexts] = n_contexts
    return n_contexts


@kernel
def count_entries(weight, samples, is_full, trie, cells, counts):  # type: ignore[no-untyped-def]
    """Write the entries of all contexts and the weight of their samples; return the number of entries.

    ``trie`` has no unused contexts.
    """
    is_weighted = weight.shape[0] > 1
    n_entries = 0
    trie.entry_start[0] = 0
    for g in range(trie.branch.shape[0]):
        own, own_cells = samples.order[samples.level[g]], samples.cell[samples.level[g]]
        for s in range(samples.begin[g], samples.end[g]):
            cell = np.int64(own_cells[s])
            cells[cell >> 16, cell & _LAST_BITS] += weight[own[s] if is_weighted else 0]
        for i in range(trie.value_start[g], trie.value_start[g + 1]):
            v = trie.values[i]
            for q in range(trie.class_start[g], trie.class_start[g + 1]):
                c = trie.classes[q]
                if is_full or cells[v, c] != 0:
                    trie.entry_class[n_entries], counts[n_entries] = c, cells[v, c]
                    n_entries += 1
                    cells[v, c] = 0
            trie.entry_start[i + 1] = n_entries
    return n_entries


@kernel
def link_entries(root, trie, where, index, above, run):  # type: ignore[no-untyped-def]
    """Write, for each entry, the entry of its value and class in the context above, and the position of its class.

    ``above`` is -1 - f for entries of the root of family f; ``run`` is a position in ``classes``. where (V, C) and
    index (C,) are scratch.
    """
    for f in range(root.shape[0]):
        stop = root[f + 1] if f + 1 < root.shape[0] else trie.branch.shape[0]
        for g in range(root[f], stop):
            for q in range(trie.class_start[g], trie.class_start[g + 1]):
                index[trie.classes[q]] = q
            first, last = trie.children[g], min(trie.children[g + 1], stop)
            for i in range(trie.value_start[g], trie.value_start[g + 1]):
                for e in range(trie.entry_start[i], trie.entry_start[i + 1]):
                    run[e] = index[trie.entry_class[e]]
                    where[trie.values[i], trie.entry_class[e]] = e
                    if g == root[f]:
                        above[e] = -1 - f
            if first < last:
                for i in range(trie.value_start[first], trie.value_start[last]):
                    for e in range(trie.entry_start[i], trie.entry_start[i + 1]):
                        above[e] = where[trie.values[i], trie.entry_class[e]]
