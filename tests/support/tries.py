"""Tries of families, grown by the kernels as tests call these: what nobody writes is wrong."""

from typing import Any, NamedTuple

import numpy as np

from tanlearn.kernels.context_smoothing import smooth_entries
from tanlearn.kernels.context_trie import ContextTrie, Samples, count_entries, grow_contexts, link_entries

WRONG = 10**6


class Grown(NamedTuple):
    """A trie of some families, the counts of its entries, and what leads from an entry to the context above."""

    root: Any
    trie: ContextTrie
    counts: Any
    above: Any
    run: Any
    level: Any

    def smooth(self, m, n_states, counts=None):
        """Return the probabilities of entries and the factors of unseen values; m is given for each level."""
        m = np.repeat(np.asarray(m, float)[self.level], np.diff(self.trie.class_start))
        p, unseen = np.full(len(self.counts), np.nan), np.full(len(m), np.nan)
        uniform = 1 / np.asarray(n_states, float)
        smooth_entries(self.above, self.run, uniform, m, self.counts if counts is None else counts, p, unseen)
        return p, unseen

    def entries(self):
        """Return the count of each entry by family, values of the parents, value and class."""
        trie, found, path = self.trie, {}, {}
        for f, root in enumerate(self.root):
            stop = self.root[f + 1] if f + 1 < len(self.root) else len(trie.branch)
            path[root] = f, ()
            for g in range(root, stop):
                for child in range(trie.children[g], min(trie.children[g + 1], stop)):
                    path[child] = f, (*path[g][1], int(trie.branch[child]))
                for i in range(trie.value_start[g], trie.value_start[g + 1]):
                    for e in range(trie.entry_start[i], trie.entry_start[i + 1]):
                        found[(*path[g], int(trie.values[i]), int(trie.entry_class[e]))] = e
        assert list(found.values()) == list(range(len(self.counts)))
        return found


def grow(codes, n_states, y, n_classes, weights, child, parents, least=1, is_full=True):
    """Return the trie of families."""
    n_rows, depth, most_values = codes.shape[1], parents.shape[1], int(max(n_states))
    most = len(child) * (1 + depth * (n_rows // least))
    room = len(child) * ((depth + 1) * n_rows + most_values * n_classes)
    order, cell = np.full((2, depth + 1, len(child) * n_rows), WRONG)
    samples = Samples(order.astype(np.int32), cell.astype(np.uint32), *np.full((3, most), WRONG))
    starts, lists = np.full((4, max(most, room) + 1), WRONG), np.full((4, max(most, room)), 60_000, np.uint16)
    lists = [own for pair in zip(starts, lists, strict=True) for own in pair]
    trie = ContextTrie(*lists)
    is_found, root = np.zeros(max(most_values, n_classes), np.bool_), np.full(len(child), WRONG)
    end, values = np.full(most_values, WRONG), np.full(n_rows, 60_000, np.uint16)
    scratch = is_found, np.full(most_values, 60_000, np.uint16), end, values
    n = grow_contexts(codes, n_states, y, n_classes, child, parents, least, samples, *scratch, trie, root)
    assert not is_found.any()
    n_classes_seen, n_values_seen = trie.class_start[n], trie.value_start[n]
    trie = trie._replace(
        children=trie.children[: n + 1],
        branch=trie.branch[:n],
        class_start=trie.class_start[: n + 1],
        classes=trie.classes[:n_classes_seen],
        value_start=trie.value_start[: n + 1],
        values=trie.values[:n_values_seen],
        entry_start=trie.entry_start[: n_values_seen + 1],
    )
    size = int((np.diff(trie.class_start) * np.diff(trie.value_start)).sum())
    trie = trie._replace(entry_class=np.full(size, 60_000, np.uint16))
    counts, cells = np.full(size, -1, weights.dtype), np.zeros((most_values, n_classes), weights.dtype)
    n_entries = count_entries(weights, samples, is_full, trie, cells, counts)
    assert not cells.any()
    trie = trie._replace(entry_class=trie.entry_class[:n_entries])
    above, run = np.full((2, n_entries), WRONG)
    scratch = np.full((most_values, n_classes), WRONG), np.full(n_classes, WRONG)
    link_entries(root, trie, *scratch, above, run)
    return Grown(root, trie, counts[:n_entries], above, run, samples.level[:n])


def draw_rows(seed, dtype=np.uint8):
    """Return a small table with gaps, classes, weights, and families of as many parents as they like."""
    rng = np.random.default_rng(seed)
    n, d, n_classes = int(rng.integers(5, 60)), int(rng.integers(1, 6)), int(rng.integers(2, 5))
    n_states = rng.integers(1, 5, d)
    codes = (rng.random((d, n)) * n_states[:, np.newaxis]).astype(dtype)
    codes[rng.random((d, n)) < rng.choice([0, 0.1])] = np.iinfo(dtype).max
    y = rng.integers(0, n_classes, n)
    weights = rng.integers(1, 4, n).astype(float) if rng.random() < 0.5 else rng.random(n) + 0.1
    child = rng.permutation(d)[: rng.integers(1, d + 1)]
    parents = np.full((len(child), d - 1 + seed % 2), -1)  # of one table with those that have more
    for own, i in zip(parents, child, strict=True):
        chosen = rng.permutation([j for j in range(d) if j != i])[: rng.integers(0, d)]
        own[: len(chosen)] = chosen
    return codes, n_states, y, n_classes, weights, child, parents
