"""Families of many parents: probabilities over the contexts that were seen, smoothed from level to level.

A context of level j is a set of samples that agree in the first j parents of a family. Its probabilities are those of
the context that it is part of, corrected by its own counts (hierarchical smoothing),

    P_j(x | y) = (n(x, y) + m P_j-1(x | y)) / (N(y) + m),

so that log P_j is a sum of gains log(P_i / P_i-1) over levels i <= j, and a class that a context has not seen gains
nothing there. Contexts form a trie: those that a context is split into have numbers one after the other.
"""
# Shapes: n samples, d features, C classes; F families of up to k parents, N contexts of all of them, family after
# family, that without parents first, level by level; S samples that have the child, of all families one after another.
# codes (d, n); y (n,); weight (n,); child, root (F,); parents (F, k), -1 for none
# codes from the number of a feature's values on are missing
# level (N,); origin (N,): the context that each is part of; the samples of context g are
# samples[level[g], begin[g]:end[g]], samples (k + 1, S)
# those that context g is split into are children[g]:children[g + 1], up to the next family's root for the last of a
# family; branch (N,): the values that they are split by, 0 of a root
# of every context: its classes at class_start, its child's values at value_start, both ascending; at cell_start its
# cells [value][class]

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels.back_off import find


class Contexts(NamedTuple):
    """The contexts of a family, or of all families of a network, and what they have seen."""

    children: Any  # (N + 1,)
    branch: Any  # (N,)
    class_start: Any  # (N + 1,)
    classes: Any
    value_start: Any  # (N + 1,)
    values: Any
    cell_start: Any  # (N + 1,)


class Parts(NamedTuple):
    """Which samples contexts are of."""

    samples: Any  # (k + 1, S)
    level: Any  # (N,)
    origin: Any  # (N,)
    begin: Any  # (N,)
    end: Any  # (N,)


@kernel
def refine_context(values, n_values, least, g, n_contexts, parts, count, branch):  # type: ignore[no-untyped-def]
    """Split a context by one more parent; parts of fewer than ``least`` samples are left out. Return the new number.

    count (n_values,) is scratch.
    """
    level, place = parts.level[g] + 1, parts.begin[g]
    samples, out = parts.samples[level - 1], parts.samples[level]
    for v in range(n_values):
        count[v] = 0
    for s in range(parts.begin[g], parts.end[g]):
        v = values[samples[s]]
        if v < n_values:
            count[v] += 1
    for v in range(n_values):
        size = count[v]
        count[v] = -1
        if size >= least:
            count[v] = place
            parts.level[n_contexts], parts.origin[n_contexts] = level, g
            parts.begin[n_contexts], parts.end[n_contexts] = place, place + size
            branch[n_contexts] = v
            n_contexts += 1
            place += size
    for s in range(parts.begin[g], parts.end[g]):
        v = values[samples[s]]
        if v < n_values and count[v] >= 0:
            out[count[v]] = samples[s]
            count[v] += 1
    return n_contexts


@kernel
def list_context(x, y, g, parts, has_class, has_value, own):  # type: ignore[no-untyped-def]
    """Write which classes and values a context has seen, and where its cells are to lie; that without parents has all.

    has_class (C,) and has_value (values of the child,) are False before and after.
    """
    level = parts.level[g]
    samples = parts.samples[level]
    for s in range(parts.begin[g], parts.end[g]):
        has_class[y[samples[s]]] = True
        has_value[x[samples[s]]] = True
    n_classes, n_values = own.class_start[g], own.value_start[g]
    for c in range(has_class.shape[0]):
        if has_class[c] or level == 0:
            has_class[c] = False
            own.classes[n_classes] = c
            n_classes += 1
    for v in range(has_value.shape[0]):
        if has_value[v] or level == 0:
            has_value[v] = False
            own.values[n_values] = v
            n_values += 1
    n_cells = (n_classes - own.class_start[g]) * (n_values - own.value_start[g])
    own.class_start[g + 1], own.value_start[g + 1] = n_classes, n_values
    own.cell_start[g + 1] = own.cell_start[g] + n_cells


@kernel
def grow_contexts(  # type: ignore[no-untyped-def]
    codes, n_states, y, child, parents, least, parts, has_class, has_value, count, own, root
):
    """Split the samples of families by their parents, one after the other; return the number of contexts.

    has_class (C,), has_value (most values,), both False, and count (most values,) are scratch.
    """
    n_contexts = used = 0
    own.class_start[0] = own.value_start[0] = own.cell_start[0] = 0
    for f in range(child.shape[0]):
        g, x, n_values = n_contexts, codes[child[f]], n_states[child[f]]
        root[f], own.branch[g] = g, 0
        parts.level[g], parts.origin[g], parts.begin[g] = 0, g, used
        for r in range(x.shape[0]):
            if x[r] < n_values:
                parts.samples[0, used] = r
                used += 1
        parts.end[g] = used
        n_contexts += 1
        while g < n_contexts:
            list_context(x, y, g, parts, has_class, has_value[:n_values], own)
            own.children[g] = n_contexts
            level = parts.level[g]
            if level < parents.shape[1] and parents[f, level] >= 0:
                j = parents[f, level]
                n_contexts = refine_context(codes[j], n_states[j], least, g, n_contexts, parts, count, own.branch)
            g += 1
    own.children[n_contexts] = n_contexts
    return n_contexts


@kernel
def count_contexts(codes, y, weight, child, root, parts, own, class_place, value_place, cells):  # type: ignore[no-untyped-def]
    """Write how much the samples of every value and class weigh that a context has seen.

    own is of just the contexts that there are; class_place (C,) and value_place (most values,) are scratch.
    """
    f = 0
    for g in range(own.branch.shape[0]):
        if f + 1 < root.shape[0] and g == root[f + 1]:
            f += 1
        x, begin = codes[child[f]], own.cell_start[g]
        first, width = own.class_start[g], own.class_start[g + 1] - own.class_start[g]
        for i in range(width):
            class_place[own.classes[first + i]] = i
        for j in range(own.value_start[g], own.value_start[g + 1]):
            value_place[own.values[j]] = begin + (j - own.value_start[g]) * width
        for q in range(begin, own.cell_start[g + 1]):
            cells[q] = 0.0
        samples = parts.samples[parts.level[g]]
        for s in range(parts.begin[g], parts.end[g]):
            r = samples[s]
            cells[value_place[x[r]] + class_place[y[r]]] += weight[r]


@kernel
def smooth_contexts(m, origin, own, class_place, total, cells, ratio, unseen):  # type: ignore[no-untyped-def]
    """Turn counts of all cells into P_j; write the ratio to P_j-1, and that of the values that a context has not seen.

    class_place and total (C,) are scratch.
    """
    for g in range(own.branch.shape[0]):
        classes = own.classes[own.class_start[g] : own.class_start[g + 1]]
        values = own.values[own.value_start[g] : own.value_start[g + 1]]
        begin, width = own.cell_start[g], classes.shape[0]
        for i in range(width):
            total[i] = m
        for j in range(values.shape[0]):
            for i in range(width):
                total[i] += cells[begin + j * width + i]
        for i in range(width):
            unseen[own.class_start[g] + i] = m / total[i]
        o = origin[g]
        if o == g:
            for j in range(values.shape[0]):
                for i in range(width):
                    q = begin + j * width + i
                    cells[q] = (cells[q] + m / values.shape[0]) / total[i]
                    ratio[q] = cells[q]
            continue
        # What a context has seen, the one that it is part of has seen, too: two ascending lists, one within the other.
        place = own.class_start[o]
        for i in range(width):
            while own.classes[place] != classes[i]:
                place += 1
            class_place[i] = place - own.class_start[o]
        width_above = own.class_start[o + 1] - own.class_start[o]
        place = own.value_start[o]
        for j in range(values.shape[0]):
            while own.values[place] != values[j]:
                place += 1
            row = own.cell_start[o] + (place - own.value_start[o]) * width_above
            for i in range(width):
                q = begin + j * width + i
                before = cells[row + class_place[i]]
                cells[q] = (cells[q] + m * before) / total[i]
                ratio[q] = cells[q] / before


@kernel
def next_context(children, branch, node, value, stop):  # type: ignore[no-untyped-def]
    """Return the context that one is split into by a value, or -1 if there is none; its family ends before ``stop``."""
    first, end = children[node], min(children[node + 1], stop)
    node = first + value  # if all values below occur, too
    if node >= end or branch[node] != value:
        node = find(branch, first, end, value)
        if node == end or branch[node] != value:
            return -1
    return node


@kernel
def list_cells(  # type: ignore[no-untyped-def]
    codes, n_values, y, weight, child, parents, root, stop, children, branch, key_values, n_classes, keys, amounts
):
    """Write the cells of one family that rows are counted in, and their weights; return how many there are.

    parents (k,), -1 for none; n_values: of the child; the family's contexts end before stop.
    keys, amounts (n * (k + 1),): a key is (context * key_values + value) * n_classes + class.
    """
    n = 0
    for r in range(y.shape[0]):
        x = np.int64(codes[child, r])
        if x >= n_values:
            continue
        node, level = root, 0
        while node >= 0:
            keys[n], amounts[n] = (node * key_values + x) * n_classes + y[r], weight[r]
            n += 1
            is_last = level == parents.shape[0] or parents[level] < 0
            node = -1 if is_last else next_context(children, branch, node, codes[parents[level], r], stop)
            level += 1
    return n


@kernel
def add_context_scores(  # type: ignore[no-untyped-def]
    codes, n_states, root, child, parents, known, gain, unseen, weight, slot, scores
):
    """Add the weighted gains of all levels of families to scores (slots, n, C).

    codes (d, n) and n_states (d,): a child that is missing says nothing, and what depends on a parent that is missing,
    or on a context that was not seen, is left out. root, child (F,) and parents (F, k), -1 for none, are of the
    families; weight and slot (F, k + 1): of every level of every family, its weight and where its gain goes.
    """
    n, n_levels, n_classes = codes.shape[1], parents.shape[1] + 1, scores.shape[2]
    for f in range(root.shape[0]):
        x = codes[child[f]]
        n_values = n_states[child[f]]
        stop = root[f + 1] if f + 1 < root.shape[0] else known.branch.shape[0]
        for r in range(n):
            if x[r] >= n_values:
                continue
            node, is_seen = root[f], True
            out, w, cell = scores[slot[f, 0], r], weight[f, 0], known.cell_start[node] + x[r] * n_classes
            for c in range(n_classes):  # without parents, all values and classes are there
                out[c] += w * gain[cell + c]
            for level in range(1, n_levels):
                if parents[f, level - 1] < 0:
                    break
                value = codes[parents[f, level - 1], r]
                node = next_context(known.children, known.branch, node, value, stop)
                if node < 0:
                    break
                out, w = scores[slot[f, level], r], weight[f, level]
                first, last = known.class_start[node], known.class_start[node + 1]
                if is_seen:
                    end = known.value_start[node + 1]
                    place = find(known.values, known.value_start[node], end, x[r])
                    is_seen = place < end and known.values[place] == x[r]
                    if is_seen:
                        cell = known.cell_start[node] + (place - known.value_start[node]) * (last - first)
                        for q in range(first, last):
                            out[known.classes[q]] += w * gain[cell]
                            cell += 1
                        continue
                for q in range(first, last):
                    out[known.classes[q]] += w * unseen[q]
