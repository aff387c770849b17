"""Descent of samples through the contexts of families, and the scores from the entries on their paths.

A sample starts at the root of a family and follows its values of the parents, to the longest context that exists and
has no missing parent. A back-off network takes the probability of the deepest entry,

    log P(x | y) = log P_i(x | y) + sum over levels j > i of log(m_j / (N_j + m_j)),

where i is the last level with an entry of the sample's value x and class y. A forest weights levels, so it adds up
*gains* log(P_j / P_j-1) of all levels. For a value without samples of the class, the gain is log(m_j / (N_j + m_j)).
A context adds nothing to classes that do not occur in it. Tries are those of ``context_trie.py``, smoothed by
``context_smoothing.py``.
"""
# Shapes: n samples, d features, C classes; F families of up to k parents; a trie of N contexts, R classes, L entries
# codes (d, n), where codes of at least n_states (d,) are missing; root, child (F,); parents (F, k), -1 for none
# gain (L,), unseen (R,): of a full trie; log_p (L,), log_unseen (R,): of one family

from __future__ import annotations

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels.bits import popcount

_BITS = 64  # of a set of values
_ZERO, _ONE = np.uint64(0), np.uint64(1)


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
    """Add log P(child | class, parents) of one family to ``scores`` (n, C).

    Row s of ``scores`` belongs to sample ``first + s``. A missing child adds nothing. The cost per sample is the number
    of classes that occur in its contexts. parents (k,); top (values, C): log P without parents; row (C,) is scratch.
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
def add_gains(codes, n_states, root, child, parents, trie, gain, unseen, weight, slot, total, scores):  # type: ignore[no-untyped-def]
    """Add the weighted gains of all levels of families to scores (slots, n, C).

    A missing child adds nothing. ``weight`` and ``slot`` (F, k + 1) are the weight of each level of each family, and
    the scores that its gain is added to. If all levels of a family have the same slot, their gains are added up first.
    The trie is full, so ``entry_class`` is not used. total (C,) is scratch.
    """
    # The search of contexts and values is written out, and loops over few classes have no slices: with calls of kernels
    # and slices, it took 1.3 to 1.6 times as long.
    n, n_levels, n_classes = codes.shape[1], parents.shape[1] + 1, scores.shape[2]
    for f in range(root.shape[0]):
        i = child[f]
        n_values = n_states[i]
        stop = root[f + 1] if f + 1 < root.shape[0] else trie.branch.shape[0]
        start = np.intp(trie.entry_start[trie.value_start[root[f]]])
        is_one = has_one_slot(slot[f])
        for r in range(n):
            x = np.intp(codes[i, r])
            if x >= n_values:
                continue
            node, is_seen, place = root[f], True, np.intp(0)
            w = weight[f, 0]
            top = gain[start + x * n_classes : start + (x + 1) * n_classes]  # a root has all values and classes
            for c in range(n_classes):
                total[c] = w * top[c]
            s = slot[f, 0]
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
                if not is_one:
                    out = scores[s, r]
                    for c in range(n_classes):
                        out[c] += total[c]
                        total[c] = 0.0
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
                        total[trie.classes[q]] += w * unseen[q]
                    continue
                e = np.intp(trie.entry_start[place])
                if last - first == n_classes:  # all classes, in their order
                    top = gain[e : e + n_classes]
                    for c in range(n_classes):
                        total[c] += w * top[c]
                    continue
                for q in range(first, last):
                    total[trie.classes[q]] += w * gain[e + q - first]
            out = scores[s, r]
            for c in range(n_classes):
                out[c] += total[c]


@kernel
def has_one_slot(slot):  # type: ignore[no-untyped-def]
    """Return whether all levels of a family have the same slot."""
    n = 0
    for level in range(slot.shape[0]):
        n += int(slot[level] == slot[0])
    return n == slot.shape[0]


@kernel
def mark_values(children, branch, value_start, values, root, value_sets):  # type: ignore[no-untyped-def]
    """Write the values of each context as two masks of 64 bits, (N, 2). Bit v stands for value v.

    The first mask has the values by which a context is split, and the second has the values that occur in it. A mask is
    invalid for a feature with more than 64 values; ``add_gains_by_level`` does not read it.
    """
    f = 0
    for g in range(branch.shape[0]):
        while f < root.shape[0] and root[f] <= g:
            f += 1
        stop = root[f] if f < root.shape[0] else branch.shape[0]
        own = np.uint64(0)
        for h in range(children[g], min(children[g + 1], stop)):
            own |= _ONE << np.uint64(branch[h] & (_BITS - 1))
        value_sets[g, 0] = own
        own = np.uint64(0)
        for i in range(value_start[g], value_start[g + 1]):
            own |= _ONE << np.uint64(values[i] & (_BITS - 1))
        value_sets[g, 1] = own


@kernel
def follow_parent(other, n_values, trie, value_sets, stop, active, m, node):  # type: ignore[no-untyped-def]
    """Move the first ``m`` active samples to the contexts of their values of a parent, ``other`` (n,).

    Samples without such a context stay at their last one, and become inactive. Return the number of active samples.
    """
    n_active, m = m, 0
    has_sets = n_values <= _BITS
    for a in range(n_active):
        r = active[a]
        g, value = node[r], np.intp(other[r])
        first = np.intp(trie.children[g])
        if has_sets:
            found, bit = value_sets[g, 0], _ONE << np.uint64(value & (_BITS - 1))
            is_context = value < _BITS and found & bit != _ZERO
            first += popcount(found & (bit - _ONE))
        else:
            last = min(np.intp(trie.children[g + 1]), stop)
            first = find(trie.branch, first, last, value)
            is_context = first < last and trie.branch[first] == value
        active[m], node[r] = r, first if is_context else g
        m += int(is_context)
    return m


@kernel
def add_gains_by_level(  # type: ignore[no-untyped-def]
    codes, n_states, root, child, parents, trie, value_sets, gain, unseen, weight, slot, active, node, sums, scores
):
    """Compute the same sums as ``add_gains``, bit for bit, but faster for many samples.

    ``value_sets`` (N, 2) are written by ``mark_values``. active, node (n,) and sums (n, C) are scratch.
    """
    # All samples go through a level before the next one, so that the CPU loads contexts of several samples at once.
    # Positions are numbers of bits below a value, since a search has branches that the CPU cannot predict.
    n, n_levels, n_classes = codes.shape[1], parents.shape[1] + 1, scores.shape[2]
    for f in range(root.shape[0]):
        own, n_values = codes[child[f]], n_states[child[f]]
        stop = root[f + 1] if f + 1 < root.shape[0] else trie.branch.shape[0]
        start = np.intp(trie.entry_start[trie.value_start[root[f]]])
        is_one = has_one_slot(slot[f])
        m = 0
        for r in range(n):
            active[m], node[r] = r, root[f]
            m += int(own[r] < n_values)
        out, w = sums if is_one else scores[slot[f, 0]], weight[f, 0]
        if is_one:
            sums[:] = 0.0
        for a in range(m):
            r = active[a]
            x = np.intp(own[r])
            row, top = out[r], gain[start + x * n_classes : start + (x + 1) * n_classes]  # of all values, classes
            for c in range(n_classes):
                row[c] += w * top[c]
        has_sets = n_values <= _BITS
        for level in range(1, n_levels):
            j = parents[f, level - 1]
            if j < 0:
                break
            m = follow_parent(codes[j], n_states[j], trie, value_sets, stop, active, m, node)
            out, w = sums if is_one else scores[slot[f, level]], weight[f, level]
            for a in range(m):
                r = active[a]
                x, g = np.intp(own[r]), node[r]
                place = np.intp(trie.value_start[g])
                if has_sets:
                    found, bit = value_sets[g, 1], _ONE << np.uint64(x)
                    is_seen = found & bit != _ZERO
                    place += popcount(found & (bit - _ONE))
                else:
                    last = np.intp(trie.value_start[g + 1])
                    place = find(trie.values, place, last, x)
                    is_seen = place < last and trie.values[place] == x
                first, last = np.intp(trie.class_start[g]), np.intp(trie.class_start[g + 1])
                if not is_seen:
                    for q in range(first, last):
                        out[r, trie.classes[q]] += w * unseen[q]
                    continue
                e = np.intp(trie.entry_start[place])
                if last - first == n_classes:  # all classes, in their order
                    row, top = out[r], gain[e : e + n_classes]
                    for c in range(n_classes):
                        row[c] += w * top[c]
                    continue
                for q in range(first, last):
                    out[r, trie.classes[q]] += w * gain[e + q - first]
        if not is_one:
            continue
        out = scores[slot[f, 0]]
        for r in range(n):
            if own[r] >= n_values:
                continue
            row, total = out[r], sums[r]
            for c in range(n_classes):
                row[c] += total[c]


@kernel
def add_gains_by_pair(  # type: ignore[no-untyped-def]
    codes, n_states, root, child, parents, trie, value_sets, gain, unseen, weight, slot, active, node, sums, scores
):
    """Compute the same sums as ``add_gains``, bit for bit, for families whose levels all have the same slot.

    sums (pairs + 1, C) is scratch for the pairs of a context and a value of the largest family; active, node (n,) are
    scratch, too.
    """
    # The gains on the way to each pair are added up first, so that each sample adds one vector: 4,000 rows of letter
    # take .35 of the time of add_gains_by_level. It pays if there are few pairs per sample.
    n = codes.shape[1]
    for f in range(root.shape[0]):
        own, n_values = codes[child[f]], n_states[child[f]]
        stop = root[f + 1] if f + 1 < root.shape[0] else trie.branch.shape[0]
        m = 0
        for r in range(n):
            active[m], node[r] = r, root[f]
            m += int(own[r] < n_values)
        for level in range(parents.shape[1]):
            j = parents[f, level]
            if j < 0:
                break
            m = follow_parent(codes[j], n_states[j], trie, value_sets, stop, active, m, node)
        sum_gains(root[f], stop, trie, gain, weight[f], sums)
        out = scores[slot[f, 0]]
        add_sums(codes, f, n_values, child, root, parents, trie, value_sets, unseen, weight, node, sums, out)


@kernel
def sum_gains(root, stop, trie, gain, weight, sums):  # type: ignore[no-untyped-def]
    """Write the weighted sum of the gains on the way to each pair of a context and a value of a family, (pairs, C)."""
    n_classes = sums.shape[1]
    base = np.intp(trie.value_start[root])
    start = np.intp(trie.entry_start[base])
    w = weight[0]
    for x in range(np.intp(trie.value_start[root + 1]) - base):  # a root has all values and classes
        row, top = sums[x], gain[start + x * n_classes : start + (x + 1) * n_classes]
        for c in range(n_classes):
            row[c] = w * top[c]
    first, last = root, root + 1
    for level in range(1, weight.shape[0]):
        w = weight[level]
        for g in range(first, last):
            for h in range(np.intp(trie.children[g]), min(np.intp(trie.children[g + 1]), stop)):
                place = np.intp(trie.value_start[g])
                begin, end = np.intp(trie.class_start[h]), np.intp(trie.class_start[h + 1])
                for i in range(np.intp(trie.value_start[h]), np.intp(trie.value_start[h + 1])):
                    while trie.values[place] != trie.values[i]:  # the context above has all values
                        place += 1
                    row, above = sums[i - base], sums[place - base]
                    for c in range(n_classes):
                        row[c] = above[c]
                    e = np.intp(trie.entry_start[i])
                    for q in range(begin, end):
                        row[trie.classes[q]] += w * gain[e + q - begin]
        first, last = last, min(np.intp(trie.children[last]), stop)


@kernel
def add_sums(  # type: ignore[no-untyped-def]
    codes, f, n_values, child, root, parents, trie, value_sets, unseen, weight, node, sums, scores
):
    """Add the sums written by ``sum_gains`` to the scores of samples (n, C); node (n,) is the last context of each.

    If the last context has not seen the value, the sum of the last context that has seen it is continued.
    """
    own, n_classes, has_sets = codes[child[f]], scores.shape[1], n_values <= _BITS
    stop = root[f + 1] if f + 1 < root.shape[0] else trie.branch.shape[0]
    base = np.intp(trie.value_start[root[f]])
    for r in range(own.shape[0]):
        x, g = np.intp(own[r]), node[r]
        if x >= n_values:
            continue
        place = np.intp(trie.value_start[g])
        if has_sets:
            found, bit = value_sets[g, 1], _ONE << np.uint64(x)
            is_seen = found & bit != _ZERO
            place += popcount(found & (bit - _ONE))
        else:
            last = np.intp(trie.value_start[g + 1])
            place = find(trie.values, place, last, x)
            is_seen = place < last and trie.values[place] == x
        total, row = sums[place - base if is_seen else sums.shape[0] - 1], scores[r]
        if is_seen:
            for c in range(n_classes):
                row[c] += total[c]
            continue
        h, level, place = root[f], 0, base + x
        is_seen = True
        while h != g:
            h = next_context(trie.children, trie.branch, h, np.intp(codes[parents[f, level], r]), stop)
            level += 1
            if is_seen:
                last = np.intp(trie.value_start[h + 1])
                at = find(trie.values, np.intp(trie.value_start[h]), last, x)
                is_seen = at < last and trie.values[at] == x
                if is_seen:
                    place = at
                    continue
                above = sums[place - base]
                for c in range(n_classes):
                    total[c] = above[c]
            w = weight[f, level]
            for q in range(np.intp(trie.class_start[h]), np.intp(trie.class_start[h + 1])):
                total[trie.classes[q]] += w * unseen[q]
        for c in range(n_classes):
            row[c] += total[c]
