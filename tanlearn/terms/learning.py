"""Learning of a network of terms: ridges and the number of parents on held-out rows, edges by gain."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tanlearn._typing import FloatArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.splits import validation_masks
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.term_tables import TermTables, normalize_trees
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout
from tanlearn.terms.basis import Resolutions, TermBasis
from tanlearn.terms.fitting import Ridges, TermFit
from tanlearn.terms.gains import edge_gains, parents_of_gains
from tanlearn.terms.row_likelihood import add_log_frequencies, fit_row_terms
from tanlearn.terms.search import HeldOutSearch, log_softmax
from tanlearn.terms.standard_errors import curve_errors
from tanlearn.training.history import Iteration
from tanlearn.training.losses import ConditionalNLL

__all__ = ["TermOutcome", "Trial", "learn_terms"]

#: Numbers of parents that are tried in this order, as long as the held-out loss falls.
NUMBERS = (0, 1, 2, 3, 5)
#: Ridges at the start of the search; those of edges start at most at this value.
START: Ridges = (16.0, 4.0, 16.0, 4.0)
MOST_AT_START = 256.0
#: Ridges that change together in the search of those of a network with edges.
MOVES = (2,), (3,), (0,), (1,), (0, 1, 2, 3)
#: Number of folds of the selection, and of small data sets of at most so many rows. With five folds instead of three,
#: the log loss of trees on glass (171 training rows) is 0.704 instead of 0.735, and on vehicle (677) 0.428 instead of
#: 0.421 (five folds each).
N_FOLDS, N_FOLDS_OF_FEW, FEW_ROWS = 3, 5, 500
#: Maximum number of rows of the selection. The ridges of a larger data set are those of a sample, because a ridge is a
#: prior that does not depend on the number of rows.
MOST_ROWS = 20_000
#: Iterations and tolerance of the final fit.
MAX_ITER, TOL = 300, 1e-5
#: More parents are kept if the held-out loss falls by more than this number of standard errors of the difference.
LEAST_ERRORS = 1.0


@dataclass(frozen=True)
class Trial:
    """Held-out results of networks with at most so many parents per feature."""

    n_parents: int
    ridges: Ridges
    log_loss: float = np.nan  # mean log loss of the held-out rows
    error: float = np.nan  # fraction of the held-out weight that is misclassified


@dataclass(frozen=True)
class TermOutcome:
    """Network of terms, with the choices on held-out rows."""

    network: BayesNet
    history: list[Iteration]  # of the final fit
    standard_errors: list[FloatArray]  # (n_states, n_classes) per feature, of the contributions of its values
    trials: list[Trial]
    chosen: Trial


def learn_terms(data: EncodedData, max_parents: int, *, n_jobs: int | None = None) -> TermOutcome:
    """Learn structure, terms and ridges.

    1. The ridges of a network without edges are selected on held-out rows.
    2. The held-out predictions of this network give the gains of all edges. Those of a fold are computed without its
       held-out rows.
    3. Networks with 1, 2, 3 and 5 parents per feature follow, each with ridges of its own, until ``max_parents`` is
       reached or the held-out log loss falls by less than a standard error.
    4. The terms of the selected network are trained on all rows.

    Rows whose classes cannot be divided into folds are trained with the ridges of :data:`START`, without edges.
    """
    if not data.weights.all():
        data = data.take(np.flatnonzero(data.weights))  # a weight of 0 equals an absent row, to the last bit
    selection = _Selection(data, n_jobs)
    if not selection.parts:
        nothing = Trial(0, START)
        return TermOutcome(*_fit(data, np.full((data.n_features, 1), -1), START), [], nothing)
    for n_parents in NUMBERS:
        if n_parents > min(max_parents, data.n_features - 1) or not selection.is_improved:
            break
        selection.add(n_parents)
    chosen = selection.trials[-1 if selection.is_improved else -2]
    return TermOutcome(*_fit(data, selection.parents(chosen.n_parents), chosen.ridges), selection.trials, chosen)


class _Selection:
    """Comparison of numbers of parents on held-out rows."""

    def __init__(self, data: EncodedData, n_jobs: int | None) -> None:
        rows = np.arange(data.n_samples)
        if len(rows) > MOST_ROWS:
            rows = np.sort(np.random.default_rng(0).choice(rows, MOST_ROWS, replace=False))
        self._sample = sample = data.take(rows)
        self._n_jobs = n_jobs
        n_folds = min(N_FOLDS if sample.n_samples > FEW_ROWS else N_FOLDS_OF_FEW, sample.n_samples)
        self._masks = []
        if n_folds > 1:
            self._masks = validation_masks(sample.y, sample.n_classes, n_folds, np.random.default_rng(0))
        #: Training and held-out rows of each fold; empty if the training rows of a fold have a single class.
        self.parts = [sample.split(mask) for mask in self._masks]
        if any(len(np.unique(rest.y)) < 2 for rest, _ in self.parts):
            self.parts = []
        self._resolutions = [Resolutions(rest) for rest, _ in self.parts]
        self.trials: list[Trial] = []
        self._log_p: list[FloatArray] = []  # (n_samples, n_classes) log posterior of held-out rows, per trial
        self._parameters: list[FloatArray] = []  # of each fold, without edges
        self._gains: list[FloatArray] = []  # of the edges, for each fold, over the network without edges

    @property
    def is_improved(self) -> bool:
        """True if the last number of parents has a clearly lower held-out loss than the one before."""
        if len(self.trials) < 2:
            return True
        before, now = (log_p[np.arange(len(log_p)), self._sample.y] for log_p in self._log_p[-2:])
        weights = self._sample.in_whole_rows().weights
        mean = (weights * (now - before)).sum() / weights.sum()
        error = np.sqrt((weights * (now - before - mean) ** 2).sum()) / weights.sum()
        return bool(mean > LEAST_ERRORS * error)

    def add(self, n_parents: int) -> None:
        """Select the ridges of networks with at most ``n_parents`` parents per feature."""
        search = HeldOutSearch(
            self.parts,
            self._resolutions,
            self._parents_of_folds(n_parents),
            ConditionalNLL(),
            starts=self._parameters if n_parents else None,
            n_jobs=self._n_jobs,
        )
        if n_parents == 0:
            ridges = search.climb(START, ((0,), (1,)))
            self._parameters = search.results[ridges].parameters
        else:
            groups, smooth, *of_edges = self.trials[-1].ridges
            if n_parents == 1:
                of_edges = [4 * groups, 4 * groups]
            of_edges = [min(one, MOST_AT_START) for one in of_edges]
            ridges = search.climb((groups, smooth, of_edges[0], of_edges[1]), MOVES)
        log_p = np.empty((self._sample.n_samples, self._sample.n_classes))
        for mask, scores in zip(self._masks, search.results[ridges].scores, strict=True):
            log_p[mask] = log_softmax(scores)
        weights = self._sample.weights
        error = float(weights[log_p.argmax(axis=1) != self._sample.y].sum() / weights.sum())
        self.trials.append(Trial(n_parents, ridges, search.results[ridges].loss, error))
        self._log_p.append(log_p)

    def parents(self, n_parents: int) -> IntArray:
        """Return the parents of the final network, from all rows of the selection."""
        if n_parents == 0:
            return self._no_edges
        gains = edge_gains(self._sample, Resolutions(self._sample), np.exp(self._log_p[0]), n_jobs=self._n_jobs)
        return parents_of_gains(gains, n_parents, self._sample.by_name)

    def _parents_of_folds(self, n_parents: int) -> list[IntArray]:
        """Return the parents of the network of each fold, which is trained without its held-out rows."""
        if n_parents == 0:
            return [self._no_edges] * len(self.parts)
        if not self._gains:  # they are the same for all numbers of parents
            p = np.exp(self._log_p[0])
            self._gains = [
                edge_gains(rest, resolutions, p[~mask], n_jobs=self._n_jobs)
                for (rest, _), resolutions, mask in zip(self.parts, self._resolutions, self._masks, strict=True)
            ]
        return [parents_of_gains(gains, n_parents, self._sample.by_name) for gains in self._gains]

    @property
    def _no_edges(self) -> IntArray:
        """Parents of a network without edges, (n_features, 1)."""
        return np.full((self._sample.n_features, 1), -1)


def _fit(data: EncodedData, parents: IntArray, ridges: Ridges) -> tuple[BayesNet, list[Iteration], list[FloatArray]]:
    """Train the terms of a network on all rows; return it with the history and the standard errors of its curves."""
    resolutions = Resolutions(data)
    fit = TermFit(TermBasis(resolutions, parents), data, ConditionalNLL())
    outcome = fit.minimize(fit.start, ridges, max_iter=MAX_ITER, tol=TOL)
    prior, values = fit.prior_and_cells(outcome.x)
    errors = curve_errors(fit.basis, data, np.exp(log_softmax(fit.scores(outcome.x, data))), ridges)
    structure = Structure(parents if parents.shape[1] > 1 else parents[:, 0])
    layout = TableLayout.of_parents(structure.parents, data.n_states, data.n_classes)
    tables = TermTables(layout, fit.basis.columns, values, prior, is_normalized=False)
    if (structure.parents[:, 1:] >= 0).any():
        return BayesNet(structure, add_log_frequencies(tables, data)), outcome.history, errors
    tables = normalize_trees(fit_row_terms(tables, structure, data), structure)
    return BayesNet(structure, tables), outcome.history, errors
