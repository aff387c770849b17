"""Search of joined features by accuracy, for semi-naive Bayes (Pazzani 1996).

A group of joined features is one feature whose values are all combinations of the values of the features. Features of
different groups are independent given the class, and features outside all groups are not used. The log joint of each
row is stored, so that a change needs one lookup per row and class, for the new group only.

Log probabilities are rounded to multiples of 2**-32 nats, so that their sums do not depend on the order of addition.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.splits import validation_masks
from tanlearn.kernels import structure_scores as kernels
from tanlearn.kernels.mathematics import log_all
from tanlearn.training.history import Stopwatch

from .history import ParentChange
from .structure_scores import ROUNDING, first_best

__all__ = ["Group", "JoinSearch", "join", "joint_counts"]

#: Joined features, in the order in which they were joined. In the network, each has the earlier ones as parents.
Group: TypeAlias = tuple[int, ...]

_QUANTUM = 2.0**-32


def join(data: EncodedData, group: Group) -> tuple[IntArray, int]:
    """Return the joint value of a group in each row, and the number of joint values; the last feature varies fastest.

    Shapes: result: (n_samples,).
    """
    joint = np.zeros(data.n_samples, np.intp)
    for i in group:
        joint = joint * data.n_states[i] + data.codes[i]
    return joint, math.prod(int(data.n_states[i]) for i in group)


def joint_counts(data: EncodedData, group: Group) -> FloatArray:
    """Count the weight of each joint value in each class.

    Shapes: result: (n_joint_values, n_classes).
    """
    joint, n_values = join(data, group)
    flat = joint * data.n_classes + data.y
    counts: AnyArray = np.bincount(flat, data.weights.astype(np.float64), n_values * data.n_classes)
    return counts.reshape(n_values, data.n_classes)


class _Fold:
    """Rows to score, and the rows from which their probabilities are estimated (the same or other rows)."""

    def __init__(self, counted: EncodedData, held: EncodedData, alpha: float) -> None:
        self.counted, self.held, self.alpha = counted, held, alpha
        self.weights = held.weights.astype(np.float64)
        self.of_group: dict[Group, FloatArray] = {}  # (n_samples, n_classes) contributions of the current groups
        of_class: AnyArray = np.bincount(counted.y, counted.weights.astype(np.float64), counted.n_classes)
        self.scores = np.tile(self._log(of_class[:, np.newaxis]).T, (held.n_samples, 1))

    def contribution(self, group: Group) -> FloatArray:
        """Return log p(joint value | class) of the rows to score. Shape: (n_samples, n_classes)."""
        joint, _ = join(self.held, group)
        return self._log(joint_counts(self.counted, group))[joint]

    def _log(self, counts: FloatArray) -> FloatArray:
        """Return smoothed log frequencies of the columns of a table of counts, in multiples of 2**-32 nats."""
        smoothed = (counts + self.alpha) / (counts.sum(axis=0) + self.alpha * len(counts))
        log_all(smoothed.ravel(), smoothed.ravel())
        rounded: FloatArray = np.rint(smoothed / _QUANTUM) * _QUANTUM
        return rounded


class JoinSearch:
    """Current groups, their accuracy, and the changes that led to them."""

    def __init__(
        self,
        data: EncodedData,
        *,
        validation: float | None,
        alpha: float,
        max_values: int,
        rng: np.random.Generator,
        n_jobs: int | None,
    ) -> None:
        self.n_jobs, self.max_values = n_jobs, max_values
        self.n_states: list[int] = data.n_states.tolist()
        self.by_name: list[int] = data.by_name.tolist()
        parts = [(data, data)]
        if validation is not None:
            parts = [data.split(rows) for rows in validation_masks(data.y, data.n_classes, validation, rng)]
        self._folds = [_Fold(counted, held, alpha) for counted, held in parts]
        self._none = np.zeros(data.n_classes)
        self._weight = float(sum(fold.weights.sum() for fold in self._folds))
        self.groups: list[Group] = []
        self.history: list[ParentChange] = []
        self.watch = Stopwatch()
        self.score = self._score([], [])

    def start_with(self, groups: Sequence[Group]) -> None:
        """Set the initial groups."""
        self._take(list(groups))

    def climb(self, moves: str, min_gain: float) -> None:
        """Apply the best change while it increases the accuracy by ``min_gain`` or more.

        ``moves`` is "forward" (add a feature, alone or to a group) or "backward" (remove a feature, or join two
        groups). Among equally good changes, the first one in the order of the names is applied. The search ends,
        because each forward change uses one more feature, and each backward change leaves one feature or one group
        less.
        """
        # An accuracy of 1 cannot increase, and features that are added then would be chosen by their names only.
        propose = {"forward": self._additions, "backward": self._removals_and_joins}[moves]
        while self.score < 1.0 - ROUNDING and (changes := list(propose())):
            scores = in_threads(self._score_of, changes, self.n_jobs)
            self.watch.n_evaluations += len(changes)
            best = first_best(scores)
            if scores[best] < self.score + min_gain - ROUNDING:
                return
            before = self.parents()
            self._take(changes[best])
            self._record(before)

    def parents(self) -> dict[int, Group]:
        """Return the augmenting parents of each used feature: the earlier features of its group."""
        return {i: group[:k] for group in self.groups for k, i in enumerate(group)}

    def _additions(self) -> Iterator[list[Group]]:
        """Yield the groups with one more feature: alone, then joined with each group."""
        used = self.parents()
        unused = [i for i in self.by_name if i not in used]
        for i in unused:
            yield [*self.groups, (i,)]
        for i in unused:
            for k, group in enumerate(self.groups):
                if self._is_small((*group, i)):
                    yield [*self.groups[:k], (*group, i), *self.groups[k + 1 :]]

    def _removals_and_joins(self) -> Iterator[list[Group]]:
        """Yield the groups without one feature, then with two groups joined."""
        used = self.parents()
        for i in self.by_name:
            if i in used:
                yield [own for own in (tuple(j for j in group if j != i) for group in self.groups) if own]
        for k, first in enumerate(self.groups):
            for n, second in enumerate(self.groups[k + 1 :], k + 1):
                if self._is_small(first + second):
                    others = [*self.groups[k + 1 : n], *self.groups[n + 1 :]]
                    yield [*self.groups[:k], first + second, *others]

    def _is_small(self, group: Group) -> bool:
        """Return whether a group has few enough joint values."""
        return math.prod(self.n_states[i] for i in group) <= self.max_values

    def _score_of(self, groups: list[Group]) -> float:
        """Return the accuracy with other groups, most of which are current groups."""
        return self._score([g for g in self.groups if g not in groups], [g for g in groups if g not in self.groups])

    def _score(self, removed: Sequence[Group], added: Sequence[Group]) -> float:
        """Return the accuracy without some of the current groups and with other groups."""
        total = 0.0
        for fold in self._folds:
            scores = self._changed(fold, removed, added)
            total += kernels.classify(scores, self._none, fold.held.y, fold.weights, kernels.ACCURACY, 0.0)
        return total / self._weight

    def _changed(self, fold: _Fold, removed: Sequence[Group], added: Sequence[Group]) -> FloatArray:
        """Return the log joint of a fold's rows after a change."""
        scores = fold.scores.copy()
        for group in removed:
            scores -= fold.of_group[group]
        for group in added:
            scores += fold.contribution(group)
        return scores

    def _take(self, groups: list[Group]) -> None:
        """Replace the current groups by other groups."""
        removed = [group for group in self.groups if group not in groups]
        added = [group for group in groups if group not in self.groups]
        self.score = self._score(removed, added)
        for fold in self._folds:
            fold.scores = self._changed(fold, removed, added)
            for group in removed:
                del fold.of_group[group]
            fold.of_group.update((group, fold.contribution(group)) for group in added)
        self.groups = groups

    def _record(self, before: dict[int, Group]) -> None:
        """Record the features whose parents changed."""
        after, step = self.parents(), self.history[-1].step + 1 if self.history else 1
        for i in self.by_name:
            if before.get(i) != after.get(i):
                change = ParentChange(
                    i, after.get(i, ()), self.score, step, self.watch.n_evaluations, self.watch.seconds
                )
                self.history.append(change)
