"""The search of OrderSearch with two parents along many orderings of the same rows.

The CPTs of a family depend on the rows and the validation fold, but not on the ordering. They are therefore estimated
once for all orderings, and only for the values that occur in held-out rows. A search compares a row only with the
classes that some family of the current feature can bring above its own class. The structures are those of
``OrderSearch(max_parents=2, validation=...)`` with the classification rate as score, if all orderings share the folds.
"""

from itertools import combinations

import numpy as np

from tanlearn.encoding.splits import validation_masks
from tanlearn.kernels._jit import kernel
from tanlearn.kernels.mathematics import log

#: Log probabilities are rounded to multiples of this, so that sums are exact in any order, as in StructureScorer.
QUANTUM = 2.0**-32
#: Largest size of the CPTs and row numbers of all families, in bytes.
MAX_BYTES = 5 * 2**30


class CandidateTables:
    """The CPTs of all families of one or two parents, for each validation fold, without weights.

    Shapes: n samples sorted by validation fold, d features, C classes, F families, P validation folds.
    """

    def __init__(self, data, masks, smoothing):
        fold = np.argmax(masks, axis=0)
        rows = np.argsort(fold, kind="stable")
        n_samples, n_features, self.n_classes = data.n_samples, data.n_features, data.n_classes
        self.start = np.searchsorted(fold[rows], np.arange(len(masks) + 1))  # (P + 1,) first row of each fold
        # A constant feature stands for an absent parent.
        self.codes = np.vstack([data.codes[:, rows], np.zeros((1, n_samples))]).astype(np.intp)  # (d + 1, n)
        self.n_states = np.append(data.n_states, 1).astype(np.intp)
        self.y = data.y[rows].astype(np.intp)
        self.smoothing = float(smoothing.alpha), -1.0 if smoothing.epsilon is None else float(smoothing.epsilon)
        none = n_features
        # number[i, a, b]: position of the family of child i with the parents a and b in any order, or -1
        self.number = np.full((n_features, n_features + 1, n_features + 1), -1, np.intp)
        families = []
        for child in range(n_features):
            others = [j for j in range(n_features) if j != child]
            for a, b in [(none, none), *((j, none) for j in others), *combinations(others, 2)]:
                self.number[child, a, b] = self.number[child, b, a] = len(families)
                families.append((child, a, b))
        self.families = np.array(families)  # (F, 3) child and parents
        self.row = np.empty((len(families), n_samples), np.uint16 if np.diff(self.start).max() < 2**16 else np.uint32)
        sizes = np.empty((len(families), len(masks)), np.intp)
        number_rows(self.codes, self.n_states, self.start, self.families, self.row, sizes)
        # offset[f, p]: first entry of the CPT of family f in fold p
        self.offset = (self.n_classes * (sizes.cumsum().reshape(sizes.shape) - sizes)).astype(np.intp)
        self.cells = np.empty(self.n_classes * int(sizes.sum()))
        fit_families(
            self.codes, self.n_states, self.y, self.start, self.families, self.row, self.offset, *self.smoothing,
            self.cells,
        )  # fmt: skip
        self.scores = np.empty((n_samples, self.n_classes))  # log joint of naive Bayes
        score_naive_bayes(self.y, self.start, self.number, self.row, self.offset, self.cells, self.scores)
        self._set_class_prior(smoothing)
        # Least and greatest change of the difference of a row's class to each other class by the families of a child.
        self.low = np.empty((n_features, n_samples, self.n_classes))
        self.high = np.empty_like(self.low)
        bound_changes(self.y, self.start, self.families, self.row, self.offset, self.cells, self.low, self.high)

    @staticmethod
    def n_bytes(data, n_folds):
        """Return an upper bound on the size of the CPTs."""
        states, d = data.n_states.astype(float), data.n_features
        pairs = np.array(list(combinations(range(d), 2))).reshape(-1, 2)
        contexts = sum(
            np.minimum(states[child] * states[pairs].prod(axis=1), data.n_samples / n_folds).sum() for child in range(d)
        )
        return 8 * data.n_classes * n_folds * contexts + 2.0 * d * len(pairs) * data.n_samples

    def search(self, ordering):
        """Return the parents that OrderSearch selects along an ordering, shape (d, 2), -1 for none."""
        chosen = np.empty(len(ordering), np.intp)
        search_ordering(
            np.asarray(ordering, np.intp), self.y, self.start, self.number, self.row, self.offset, self.cells,
            self.low, self.high, self.scores.copy(), chosen,
        )  # fmt: skip
        parents = self.families[chosen, 1:]
        return np.where(parents == len(ordering), -1, parents)

    def _set_class_prior(self, smoothing):
        """Add the class prior of the counted rows of each fold to the scores."""
        for first, last in zip(self.start[:-1], self.start[1:], strict=True):
            counts = np.bincount(self.y, minlength=self.n_classes) - np.bincount(
                self.y[first:last], minlength=self.n_classes
            )
            p = counts + smoothing.alpha
            p = p / p.sum()
            if smoothing.epsilon is not None:
                p[p == 0] = smoothing.epsilon
                p /= p.sum()
            self.scores[first:last] += np.rint(np.array([log(value) for value in p]) / QUANTUM) * QUANTUM


def shared_folds(data, n_folds, rng):
    """Return the validation folds that all orderings share, as masks of shape (n_folds, n_samples)."""
    return np.array(validation_masks(data.y, data.n_classes, n_folds, rng))


@kernel
def number_rows(codes, n_states, start, families, row, sizes):
    """Number the joint values of each family that occur in the held-out rows of each fold.

    Write the number of each row's values, and the number of different values.
    """
    for f in range(families.shape[0]):
        i, a, b = families[f]
        x, first, second, numbers = codes[i], codes[a], codes[b], row[f]
        seen = np.empty(n_states[i] * n_states[a] * n_states[b], np.intp)
        for p in range(start.shape[0] - 1):
            seen[:] = -1
            size = 0
            for k in range(start[p], start[p + 1]):
                cell = (first[k] * n_states[b] + second[k]) * n_states[i] + x[k]
                if seen[cell] < 0:
                    seen[cell] = size
                    size += 1
                numbers[k] = seen[cell]
            sizes[f, p] = size


@kernel
def fit_families(codes, n_states, y, start, families, row, offset, alpha, epsilon, cells):
    """Write the rounded log probabilities of the values that occur, relative to the child's CPT without parents.

    The family without parents itself has its log probabilities. Families of a child follow each other, and the first
    has no parents. epsilon < 0 replaces no zeros.
    """
    n_classes = 1 + y.max()
    for f in range(families.shape[0]):
        i, a, b = families[f]
        x, first, second = codes[i], codes[a], codes[b]
        n_values = n_states[i]
        counts = np.zeros((n_states[a] * n_states[b], n_values, n_classes))
        for k in range(y.shape[0]):
            counts[first[k] * n_states[b] + second[k], x[k], y[k]] += 1.0
        if first[0] == 0 and n_states[a] == 1 and a == codes.shape[0] - 1:
            naive = f
        done = np.empty(y.shape[0], np.bool_)
        for p in range(start.shape[0] - 1):
            for k in range(start[p], start[p + 1]):
                counts[first[k] * n_states[b] + second[k], x[k], y[k]] -= 1.0
            done[:] = False
            for k in range(start[p], start[p + 1]):
                number = row[f, k]
                if done[number]:
                    continue
                done[number] = True
                context = counts[first[k] * n_states[b] + second[k]]
                begin = offset[f, p] + number * n_classes
                base = offset[naive, p] + row[naive, k] * n_classes
                for c in range(n_classes):
                    total = 0.0
                    for v in range(n_values):
                        total += context[v, c] + alpha
                    theta = (context[x[k], c] + alpha) / total if total > 0 else 1.0 / n_values
                    if epsilon >= 0.0:
                        mass = 0.0
                        for v in range(n_values):
                            q = (context[v, c] + alpha) / total if total > 0 else 1.0 / n_values
                            mass += q if q > 0.0 else epsilon
                        theta = (theta if theta > 0.0 else epsilon) / mass
                    value = np.rint(log(theta) / QUANTUM) * QUANTUM
                    cells[begin + c] = value if f == naive else value - cells[base + c]
            for k in range(start[p], start[p + 1]):
                counts[first[k] * n_states[b] + second[k], x[k], y[k]] += 1.0


@kernel
def score_naive_bayes(y, start, number, row, offset, cells, scores):
    """Write the sums of the CPTs without parents, and set these to 0: other families are relative to them."""
    n_features, n_classes = number.shape[0], scores.shape[1]
    scores[:] = 0.0
    for i in range(n_features):
        f = number[i, n_features, n_features]
        for p in range(start.shape[0] - 1):
            for k in range(start[p], start[p + 1]):
                begin = offset[f, p] + row[f, k] * n_classes
                for c in range(n_classes):
                    scores[k, c] += cells[begin + c]
            for k in range(start[p], start[p + 1]):
                begin = offset[f, p] + row[f, k] * n_classes
                cells[begin : begin + n_classes] = 0.0


@kernel
def bound_changes(y, start, families, row, offset, cells, low, high):
    """Write the bounds on the change of a row's difference to each class by the families of each child."""
    n_classes = low.shape[2]
    low[:] = np.inf
    high[:] = -np.inf
    for f in range(families.shape[0]):
        i = families[f, 0]
        for p in range(start.shape[0] - 1):
            for k in range(start[p], start[p + 1]):
                begin = offset[f, p] + row[f, k] * n_classes
                values = cells[begin : begin + n_classes]
                own = values[y[k]]
                for c in range(n_classes):
                    low[i, k, c] = min(low[i, k, c], own - values[c])
                    high[i, k, c] = max(high[i, k, c], own - values[c])


@kernel
def find_rivals(y, low, high, scores, undecided, last, rivals, leads):
    """Write the rows that some family can decide either way, with the classes that can win, and their leads.

    Return the number of these rows, and the number of rows that are classified correctly with every family. The last
    rival of undecided row u is at last[u] - 1. A tie is a loss against earlier classes only, so half a quantum is
    subtracted from their leads.
    """
    n_classes = scores.shape[1]
    n_undecided, n_rivals, n_correct = 0, 0, 0
    for k in range(y.shape[0]):
        own, begin, is_lost = scores[k, y[k]], n_rivals, False
        for c in range(n_classes):
            if c == y[k]:
                continue
            lead = own - scores[k, c] - (QUANTUM / 2 if c < y[k] else 0.0)
            if lead + high[k, c] < 0.0:
                is_lost = True
                break
            if lead + low[k, c] < 0.0:
                rivals[n_rivals] = c
                leads[n_rivals] = lead
                n_rivals += 1
        if is_lost:
            n_rivals = begin
        elif n_rivals == begin:
            n_correct += 1
        else:
            undecided[n_undecided] = k
            last[n_undecided] = n_rivals
            n_undecided += 1
    return n_undecided, n_correct


@kernel
def count_wins(y, n_classes, numbers, cells, offset, start, undecided, last, rivals, leads, most):
    """Return the number of undecided rows that a family classifies correctly, or -1 if at most ``most``."""
    n_undecided = last.shape[0]
    wins, u, q = 0, 0, 0
    for p in range(start.shape[0] - 1):
        if wins + n_undecided - u <= most:
            return -1
        while u < n_undecided and undecided[u] < start[p + 1]:
            k = undecided[u]
            begin = offset[p] + numbers[k] * n_classes
            own = cells[begin + y[k]]
            is_correct = True
            while q < last[u]:
                is_correct &= leads[q] + own - cells[begin + rivals[q]] >= 0.0
                q += 1
            wins += is_correct
            u += 1
    return wins if wins > most else -1


@kernel
def search_ordering(ordering, y, start, number, row, offset, cells, low, high, scores, chosen):
    """Write the family of each feature: the first of those that classify most rows correctly, if more than before."""
    n_features, (n_samples, n_classes) = ordering.shape[0], scores.shape
    none = n_features
    undecided, last = np.empty(n_samples, np.intp), np.empty(n_samples, np.intp)
    rivals, leads = np.empty(n_samples * n_classes, np.intp), np.empty(n_samples * n_classes)
    chosen[ordering[0]] = number[ordering[0], none, none]
    for position in range(1, n_features):
        i = ordering[position]
        n_undecided, _ = find_rivals(y, low[i], high[i], scores, undecided, last, rivals, leads)
        best = number[i, none, none]
        most = count_wins(
            y, n_classes, row[best], cells, offset[best], start, undecided, last[:n_undecided], rivals, leads, -1
        )
        for pair in range(2):  # single parents come before pairs
            for first in range(position):
                for second in range(first + 1, position) if pair else range(1):
                    b = ordering[second] if pair else none
                    f = number[i, ordering[first], b]
                    wins = count_wins(
                        y, n_classes, row[f], cells, offset[f], start, undecided, last[:n_undecided], rivals, leads,
                        most,
                    )  # fmt: skip
                    if wins > most:
                        most, best = wins, f
        chosen[i] = best
        for p in range(start.shape[0] - 1):
            for k in range(start[p], start[p + 1]):
                begin = offset[best, p] + row[best, k] * n_classes
                for c in range(n_classes):
                    scores[k, c] += cells[begin + c]
