"""Context tries of families with many parents, with probabilities smoothed from level to level.

A context of level j is a set of samples that agree in the first j parents of a family. Its probabilities are those of
the context above, corrected by its own counts (hierarchical smoothing),

    P_j(x | y) = (n(x, y) + m P_j-1(x | y)) / (N(y) + m).

log P_j is therefore a sum of gains log(P_i / P_i-1) over levels i <= j. For a class that does not occur in a context,
the gain is 0. Contexts form a trie, in which the contexts that split another one are numbered consecutively. Only
values and classes that occur in a context are stored; "seen" means that they occur in it. The forest
(``tanlearn/forest``) uses one trie per family and weights the gains of each level.

Reference: Petitjean et al., "Accurate parameter estimation for Bayesian network classifiers using hierarchical
Dirichlet processes", Machine Learning 107, 2018, section 3.
"""
# Shapes: n samples, d features, C classes; F families of up to k parents with N contexts in total, family after family,
# each level by level from the context without parents (the root) on; S samples with an observed child, for all families
# codes (d, n), where codes of at least the feature's number of values are missing; y (n,); weight (n,)
# child, root (F,); parents (F, k), -1 for none
# level (N,); origin (N,): context above; the samples of context g are samples[level[g], begin[g]:end[g]], (k + 1, S)
# context g is split into contexts children[g]:children[g + 1] (up to the next family's root for the last context of a
# family) by the values branch (N,) of the next parent, 0 for a root
# classes from class_start[g] on and child values from value_start[g] on, both increasing, occur in context g; its
# cells [value][class] begin at cell_start[g]

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels.back_off import find


class Contexts(NamedTuple):
    """Contexts of one or more families, with the classes and values that occur in them."""

    children: Any  # intp (N + 1,) first context that splits this one
    branch: Any  # uint16 (N,) value of the last parent
    class_start: Any  # intp (N + 1,) start of the context's classes
    classes: Any  # uint16 (class_start[N],) classes of each context, increasing
    value_start: Any  # intp (N + 1,) start of the context's child values
    values: Any  # uint16 (value_start[N],) child values of each context, increasing
    cell_start: Any  # intp (N + 1,) start of the context's cells [value][class]


class Parts(NamedTuple):
    """Samples of each context."""

    samples: Any  # int32 (k + 1, S) sample numbers of each level
    level: Any  # intp (N,) number of parents of the context
    origin: Any  # intp (N,) context above; a root is its own
    begin: Any  # intp (N,) start of the context's samples in its level
    end: Any  # intp (N,) end of them


@kernel
def refine_context(values, n_values, least, g, n_contexts, parts, count, branch):  # type: ignore[no-untyped-def]
    """Split a context by the values of one more parent, and return the new number of contexts.

    Parts of fewer than ``least`` samples are dropped. ``count`` (n_values,) is scratch.
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
    """Write the classes and values that occur in a context, and the start of its cells; a root gets all of them.

    has_class (C,) and has_value (values of the child,) are scratch, False before and after the call.
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
    """Build the tries of families by splitting samples by one parent after the other; return the number of contexts.

    has_class (C,) and has_value (most values,), both False, and count (most values,) are scratch.
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
    """Write the weight of the samples of each value and class in each context.

    ``own`` is trimmed to the existing contexts; class_place (C,) and value_place (most values,) are scratch.
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
    """Replace counts by P_j in place; write the ratios P_j / P_j-1, and that of values that do not occur in a context.

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
        # The classes and values of a context are sublists of those of the context above, and all lists are increasing.
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
    """Return the context that splits ``node`` by a value, or -1 if there is none; its family ends before ``stop``."""
    first, end = children[node], min(children[node + 1], stop)
    node = first + value  # correct if all smaller values occur, too
    if node >= end or branch[node] != value:
        node = find(branch, first, end, value)
        if node == end or branch[node] != value:
            return -1
    return node


@kernel
def list_cells(  # type: ignore[no-untyped-def]
    codes, n_values, y, weight, child, parents, root, stop, children, branch, key_values, n_classes, keys, amounts
):
    """Write the cells of one family that count each row, with the rows' weights; return their number.

    parents (k,), -1 for none. n_values is the number of values of the child. The family's contexts end before ``stop``.
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

    A missing child adds nothing. Levels from the first missing parent or absent context on are omitted. codes (d, n);
    n_states (d,); root, child (F,); parents (F, k), -1 for none; weight and slot (F, k + 1) are the weight of each
    level of each family, and the scores that its gain is added to.
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
            for c in range(n_classes):  # a root contains all values and classes
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
