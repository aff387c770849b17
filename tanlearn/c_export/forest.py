"""C99 code that sums the gains of a Bayes forest, with integer additions and comparisons only.

For each network, the codes of the encoder are converted to the codes of the network by thresholds. For each family, the
program descends from context to context according to the values of the parents. In each context, it subtracts the gains
for the value of the feature from the sums of the classes that occur in the context. Sums are unsigned. Their initial
values are at least the largest total that can be subtracted for a row.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from tanlearn._typing import AnyArray, Codes, IntArray
from tanlearn.c_export.scores import CHECK
from tanlearn.c_export.text import CText, signed_type, unsigned_type
from tanlearn.counts.context_tries import level_starts
from tanlearn.forest.context_tables import ContextTables
from tanlearn.forest.forest import Forest
from tanlearn.forest.forest_network import Discretization
from tanlearn.forest.rounded_forest import round_forest

__all__ = ["ForestSums"]

_SUMS = """
/* Subtract the gains of a context, for a value of its feature, from the sums. */
static inline void model_subtract(model_position node, model_code value, model_sum *sums)
{
    const model_position first = @class_start@;
    const model_position last = @class_end@;
    const model_position end = @value_end@;
    model_position at = @entry_start@;
    model_position k = @value_start@;
    while ((k < end) && (@known@ != value)) {
        at = (model_position)(at + (model_position)(last - first));
        ++k;
    }
    for (model_position q = first; q < last; ++q) {
        const model_sum gain = (k < end) ? (model_sum)@gain@ : (model_sum)@unseen@;
        const model_index c = @class@;
        sums[c] = (model_sum)(sums[c] - gain);
        ++at;
    }
}

/* Write the sum of magnitudes of each class. Differences of scores are differences of sums, times @step@. Return 0; or
   -1, without writing, if a code is invalid. */
static inline int16_t model_sums(const model_code *codes, model_sum *sums)
{
@check@
    for (model_index c = 0; c < MODEL_N_CLASSES; ++c) {
        sums[c] = @initial@;
    }
    model_position family = 0;
    model_position slot = 0;
    for (model_index network = 0; network < @n_networks@u; ++network) {
        model_code own[MODEL_N_FEATURES];
        const model_position begin = family;
        for (model_index i = 0; i < MODEL_N_FEATURES; ++i) {
            const model_position stop = @threshold_stop@;
            model_position k = @threshold_start@;
            own[i] = codes[i];
            if (k < stop) {
                own[i] = 0;
                while ((k < stop) && (codes[i] >= @threshold@)) {
                    ++own[i];
                    ++k;
                }
            }
            ++family;
        }
        family = begin;
        for (model_index i = 0; i < MODEL_N_FEATURES; ++i) {
            const model_position stop = @root_stop@;
            model_position node = @root@;
            model_subtract(node, own[i], sums);
            for (uint_fast8_t level = 0; level < @n_parents@u; ++level) {
                const model_index parent = @parent@;
                if (parent >= MODEL_N_FEATURES) {
                    break;
                }
                const model_position after = @children_end@;
                const model_position end = (after < stop) ? after : stop;
                model_position child = @children@;
                while ((child < end) && (@branch@ != own[parent])) {
                    ++child;
                }
                if (child >= end) {
                    break;
                }
                node = child;
                model_subtract(node, own[i], sums);
            }
            slot = (model_position)(slot + @n_parents@u);
            ++family;
        }
    }
    return 0;
}"""


class ForestSums:
    """Sums of magnitudes for a Bayes forest whose gains are rounded to a few bits."""

    def __init__(self, forest: Forest, bits: int) -> None:
        if forest.shift.any():
            raise ValueError(
                "C code cannot represent a class prior that differs from the class frequencies in training. Export "
                "the forest without class_prior."
            )
        self._forest, self._step = round_forest(forest, bits)
        self.n_classes = len(forest.log_prior)
        self.n_states = forest.numbers_of_values().tolist()
        self.title = f"Bayes forest of {len(forest.members)} networks with {bits}-bit integers"
        self.n_code_arrays = 2  # the codes of the encoder, and the codes of a network
        self._bits = bits
        prior = np.rint(self._forest.log_prior / self._step).astype(np.int64)
        lowest, highest = np.sum([_range(network.tables) for network in self._forest.members], axis=0)
        self._initial = int(prior.max()) + int(np.ceil(highest / self._step)) - prior
        self.largest_sum = int(self._initial.max()) + int(np.ceil(-lowest / self._step))

    def codes(self, codes: Codes) -> Codes:
        """Return the codes in C, which are equal to the codes of the encoder."""
        return codes

    def sums(self, codes: Codes) -> IntArray:
        """Return the sums (n_rows, n_classes) that C computes for complete rows of codes (n_features, n_rows)."""
        scores = np.zeros((1, codes.shape[1], self.n_classes))
        slots = np.zeros(self._forest.weights.shape[1:], np.intp)
        for network, weight in zip(self._forest.members, self._forest.weights, strict=True):
            network.add_scores(np.ascontiguousarray(codes), weight, slots, scores)
        sums: IntArray = self._initial - np.rint(scores[0] / self._step).astype(np.int64)
        return sums

    def add(self, text: CText, n_states: str, *, packed: bool) -> None:
        """Append the contexts and ``model_sums`` (see :meth:`tanlearn.c_export.scores.Scores.add`)."""
        networks = self._forest.members
        all_tables = [network.tables for network in networks]
        sizes = [len(tables.trie.branch) for tables in all_tables]
        first = np.cumsum([0, *sizes])
        arrays = {
            "children": _joined([(t.trie.children, len(t.trie.branch)) for t in all_tables]),
            "class_start": _joined([(t.trie.class_start, len(t.trie.classes)) for t in all_tables]),
            "value_start": _joined([(t.trie.value_start, len(t.trie.values)) for t in all_tables]),
            "entry_start": _joined([(t.trie.entry_start[t.trie.value_start], len(t.gain)) for t in all_tables]),
            "root": np.append(
                np.concatenate([t.root + start for t, start in zip(all_tables, first[:-1], strict=True)]), first[-1]
            ),
        }
        n_features = len(self.n_states)
        thresholds = [own for network in networks for own in _thresholds(network.cuts)]
        arrays["threshold_start"] = np.cumsum([0, *map(len, thresholds)])
        n_parents = max(tables.parents.shape[1] for tables in all_tables)
        parents = np.full((len(networks), n_features, n_parents), n_features)
        for own, tables in zip(parents, all_tables, strict=True):
            own[:, : tables.parents.shape[1]] = np.where(tables.parents >= 0, tables.parents, n_features)
        largest = max(parents.size, *(int(own.max()) for own in arrays.values()))
        text.add(f"typedef {unsigned_type(largest)} model_position;")
        text.add("\n/* Thresholds of codes, contexts of all families, and gains of their values and classes. */")
        for name, own in arrays.items():
            text.array(name, unsigned_type(int(own.max())), own.tolist())
        bytes_of = {
            "thresholds": np.concatenate([np.empty(0, np.intp), *thresholds]),
            "parents": parents.ravel(),
            "branch": np.concatenate([tables.trie.branch for tables in all_tables]),
            "classes": np.concatenate([tables.trie.classes for tables in all_tables]),
            "values": np.concatenate([tables.trie.values for tables in all_tables]),
            "initial": self._initial,
        }
        for name, own in bytes_of.items():
            text.array(name, unsigned_type(int(own.max(initial=0))), own.tolist())
        for name in ("gain", "unseen"):
            numbers = np.concatenate([getattr(tables, name) for tables in all_tables]) / self._step
            text.array(name, signed_type([-(2 ** (self._bits - 1)) + 1]), np.rint(numbers).astype(np.int64).tolist())
        read = text.read
        text.add(
            _SUMS,
            **{"class": read("classes", "q")},
            check=text.rename(CHECK, n_states=n_states),
            step=f"{self._step:g}",
            n_networks=len(networks),
            n_parents=n_parents,
            class_start=read("class_start", "node"),
            class_end=read("class_start", "node + 1u"),
            value_start=read("value_start", "node"),
            value_end=read("value_start", "node + 1u"),
            entry_start=read("entry_start", "node"),
            known=read("values", "k"),
            gain=read("gain", "at"),
            unseen=read("unseen", "q"),
            initial=read("initial", "c"),
            threshold_start=read("threshold_start", "family"),
            threshold_stop=read("threshold_start", "family + 1u"),
            threshold=read("thresholds", "k"),
            root=read("root", "family"),
            root_stop=read("root", "family + 1u"),
            parent=read("parents", "slot + level"),
            children=read("children", "node"),
            children_end=read("children", "node + 1u"),
            branch=read("branch", "child"),
        )


def _joined(starts: list[tuple[AnyArray, int]]) -> IntArray:
    """Concatenate the lists of several networks. Return the start of each list, and the total length."""
    found, total = [], 0
    for own, size in starts:
        found.append(own[:-1].astype(np.intp) + total)
        total += size
    joined: IntArray = np.concatenate([*found, [total]])
    return joined


def _thresholds(cuts: Discretization) -> list[IntArray]:
    """Return, for each feature, the first codes of all values of a network but the first. Unchanged features have none.

    If a feature has a single value, its threshold is above all codes.
    """
    found = []
    for start, stop in pairwise(cuts.start.tolist()):
        own = cuts.merged[start : stop - 1].astype(np.intp)
        if (own == np.arange(len(own))).all():
            found.append(np.empty(0, np.intp))
        else:
            steps = np.flatnonzero(np.diff(own)) + 1
            found.append(steps if steps.size else np.array([len(own)]))
    return found


def _range(tables: ContextTables) -> tuple[float, float]:
    """Return a lower and an upper bound for the sum of the gains of a row."""
    trie = tables.trie
    lowest = highest = 0.0
    for root, stop in pairwise([*tables.root.tolist(), len(trie.branch)]):
        starts = level_starts(trie.children, root, stop, tables.n_levels)
        for first, last in pairwise(starts):
            of_entries = slice(trie.entry_start[trie.value_start[first]], trie.entry_start[trie.value_start[last]])
            gains = np.append(tables.gain[of_entries], tables.unseen[trie.class_start[first] : trie.class_start[last]])
            lowest += min(0.0, float(gains.min(initial=0.0)))
            highest += max(0.0, float(gains.max(initial=0.0)))
    return lowest, highest
