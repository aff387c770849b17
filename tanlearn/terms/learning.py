"""Learning of a network of terms: structure and ridges on held-out rows, then the terms on all rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tanlearn._typing import FloatArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.term_tables import TermTables, normalize_trees
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout
from tanlearn.terms.basis import Resolutions, TermBasis, TermStructure
from tanlearn.terms.fitting import Ridges, TermFit
from tanlearn.terms.row_likelihood import add_log_frequencies, fit_row_terms
from tanlearn.terms.search import log_softmax
from tanlearn.terms.selection import START, Selection, Trial, divide
from tanlearn.terms.standard_errors import curve_errors
from tanlearn.training.history import Iteration
from tanlearn.training.losses import ConditionalNLL

__all__ = ["TermOutcome", "learn_terms"]

#: Numbers of parents that are tried in this order, as long as the held-out loss falls, and then of triples per feature.
PARENTS, TRIPLES = (1, 2, 3, 5), (1, 3)
#: Maximum number of rows of the selection. The ridges of a larger data set are those of a sample, because a ridge is a
#: prior that does not depend on the number of rows.
MOST_ROWS = 20_000
#: Iterations and tolerance of the final fit.
MAX_ITER, TOL = 300, 1e-5


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
    4. If several parents are allowed, the held-out predictions of the best network give the gains of triples: columns
       of a feature and two of its parents. Networks with one and three triples per feature are tried in the same way.
    5. The terms of the selected network are trained on all rows. If no network is better than the class frequencies by
       two standard errors, ridges are so large that terms have no effect.

    Rows whose classes cannot be divided into folds are trained with the ridges of :data:`START`, without edges.
    """
    if not data.weights.all():
        data = data.take(np.flatnonzero(data.weights))  # a weight of 0 equals an absent row, to the last bit
    sample = data
    if data.n_samples > MOST_ROWS:
        sample = data.take(np.sort(np.random.default_rng(0).choice(data.n_samples, MOST_ROWS, replace=False)))
    folds = divide(sample)
    if not folds:
        return TermOutcome(*_fit(data, TermStructure.empty(data.n_features), START, START), [], Trial(0, 0, START))
    selection = Selection(sample, folds, max_parents, n_jobs)
    most = min(max_parents, data.n_features - 1)
    for n_parents in PARENTS:
        if n_parents > most or not selection.try_parents(n_parents):
            break
    for per_feature in TRIPLES:
        if most < 2 or not selection.try_triples(per_feature * data.n_features):
            break
    fitted = _fit(data, selection.structure(), selection.best.ridges, selection.prior_ridges)
    return TermOutcome(*fitted, selection.trials, selection.best)


def _fit(
    data: EncodedData, structure: TermStructure, ridges: Ridges, prior_ridges: Ridges
) -> tuple[BayesNet, list[Iteration], list[FloatArray]]:
    """Train the terms of a network on all rows; return it with the history and the standard errors of its curves.

    ``prior_ridges`` are those of the standard errors: terms without effect are not certain.
    """
    fit = TermFit(TermBasis(Resolutions(data), structure), data, ConditionalNLL())
    outcome = fit.minimize(fit.start, ridges, max_iter=MAX_ITER, tol=TOL)
    prior, values = fit.prior_and_cells(outcome.x)
    errors = curve_errors(fit.basis, data, np.exp(log_softmax(fit.scores(outcome.x, data))), prior_ridges)
    parents = structure.parents
    network = Structure(parents if parents.shape[1] > 1 else parents[:, 0])
    layout = TableLayout.of_parents(network.parents, data.n_states, data.n_classes)
    tables = TermTables(layout, fit.basis.columns, values, prior, is_normalized=False)
    if (network.parents[:, 1:] >= 0).any():
        return BayesNet(network, add_log_frequencies(tables, data)), outcome.history, errors
    tables = normalize_trees(fit_row_terms(tables, network, data), network)
    return BayesNet(network, tables), outcome.history, errors
