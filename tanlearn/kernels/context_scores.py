"""Descent of samples through the contexts of families, and the scores that they get from the entries on their way.

A sample starts at the root of a family and descends by its values of the parents, to the longest context that exists
and has no missing parent. A back-off network takes the probability of the deepest entry,

    log P(x | y) = log P_i(x | y) + sum over levels j > i of log(m_j / (N_j + m_j)),

where i is the last level with an entry of the sample's value x and class y. A forest weights levels, so it adds up
*gains* log(P_j / P_j-1) of all levels. For a value without samples of the class, the gain is log(m_j / (N_j + m_j)).
A class that does not occur in a context gets nothing from it. Tries are those of ``context_trie.py``, smoothed by
``context_smoothing.py``.
"""
# Shapes: n samples, d features, C classes; F families of up to k parents; a trie of N contexts, R classes, L entries
# codes (d, n), where codes of at least n_states (d,) are missing; root, child (F,); parents (F, k), -1 for none
# gain (L,), unseen (R,): of a full trie; log_p (L,), log_unseen (R,): of one family

from __future__ import annotations

import numpy as np

from tanlearn.kernels._jit import kernel


@kernel
def find(values, first, last, value):  # type: ignore[no-untyped-def]
    """Return the first position from ``first`` to ``last`` of increasing values with a value of at least ``value``."""
    while first < last:
        middle = (first + last) // 2
        if values[middle] < value:
            first = middle + 1
        else:
            last = middle
    return first


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
def add_log_probabilities(  # type: ignore[no-untyped-def]
    codes, first, child, parents, top, trie, log_p, log_unseen, row, scores
):
    """Add log P(child | class, parents) of one family to scores (n, C) of the samples from ``first`` on.

    A missing child adds nothing. The cost per sample is the number of classes that occur in its contexts. parents (k,);
    top (values, C): log P without parents; row (C,) is scratch.
    """
    n, n_classes = scores.shape
    x, n_values, stop = codes[child], top.shape[0], trie.branch.shape[0]
    for s in range(n):
        value = x[first + s]
        if value >= n_values:
            continue
        start = top[value]
        for c in range(n_classes):
            row[c] = start[c]
        node = 0
        for p in range(parents.shape[0]):
            node = next_context(trie.children, trie.branch, node, codes[parents[p], first + s], stop)
            if node < 0:
                break
            for q in range(trie.class_start[node], trie.class_start[node + 1]):
                row[trie.classes[q]] += log_unseen[q]
            end = trie.value_start[node + 1]
            place = find(trie.values, trie.value_start[node], end, value)
            if place < end and trie.values[place] == value:
                for e in range(trie.entry_start[place], trie.entry_start[place + 1]):
                    row[trie.entry_class[e]] = log_p[e]
        target = scores[s]
        for c in range(n_classes):
            target[c] += row[c]


@kernel
def add_gains(codes, n_states, root, child, parents, trie, gain, unseen, weight, slot, scores):  # type: ignore[no-untyped-def]
    """Add the weighted gains of all levels of families to scores (slots, n, C).

    A missing child adds nothing. ``weight`` and ``slot`` (F, k + 1) are the weight of each level of each family, and
    the scores that its gain is added to. The trie is full, so ``entry_class`` is not used.
    """
    # The search of contexts and values is written out, and loops over few classes have no slices: with calls of kernels
    # and slices, it took 1.3 to 1.6 times as long.
    n, n_levels, n_classes = codes.shape[1], parents.shape[1] + 1, scores.shape[2]
    for f in range(root.shape[0]):
        i = child[f]
        n_values = n_states[i]
        stop = root[f + 1] if f + 1 < root.shape[0] else trie.branch.shape[0]
        start = np.intp(trie.entry_start[trie.value_start[root[f]]])
        for r in range(n):
            x = np.intp(codes[i, r])
            if x >= n_values:
                continue
            node, is_seen, place = root[f], True, np.intp(0)
            out, w = scores[slot[f, 0], r], weight[f, 0]
            top = gain[start + x * n_classes : start + (x + 1) * n_classes]  # a root has all values and classes
            for c in range(n_classes):
                out[c] += w * top[c]
            for level in range(1, n_levels):
                j = parents[f, level - 1]
                if j < 0:
                    break
                value = np.intp(codes[j, r])
                first, last = np.intp(trie.children[node]), min(np.intp(trie.children[node + 1]), stop)
                node = first + value  # correct if all smaller values occur, too; otherwise, the value comes earlier
                if node >= last or trie.branch[node] != value:
                    node = find(trie.branch, first, min(node, last), value)
                    if node >= last or trie.branch[node] != value:
                        break
                s, w = slot[f, level], weight[f, level]
                first, last = np.intp(trie.class_start[node]), np.intp(trie.class_start[node + 1])
                if is_seen:
                    begin, end = np.intp(trie.value_start[node]), np.intp(trie.value_start[node + 1])
                    place = begin + x
                    if place >= end or trie.values[place] != x:
                        place = find(trie.values, begin, min(place, end), x)
                        is_seen = place < end and trie.values[place] == x
                if not is_seen:
                    for q in range(first, last):
                        scores[s, r, trie.classes[q]] += w * unseen[q]
                    continue
                e = np.intp(trie.entry_start[place])
                if last - first == n_classes:  # all classes, in their order
                    out, top = scores[s, r], gain[e : e + n_classes]
                    for c in range(n_classes):
                        out[c] += w * top[c]
                    continue
                for q in range(first, last):
                    scores[s, r, trie.classes[q]] += w * gain[e + q - first]
