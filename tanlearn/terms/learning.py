"""Learning of a network of terms: selection of structure and ridges on held-out rows, then a fit to all rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tanlearn._memory import Need
from tanlearn._progress import Report, silent
from tanlearn._typing import FloatArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.term_tables import TermTables, normalize_trees
from tanlearn.structures.knowledge import EdgeRules
from tanlearn.structures.monotone_columns import numbers_of_ranked
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout
from tanlearn.terms.basis import OWN_SIZES, Resolutions, TermBasis, TermStructure
from tanlearn.terms.fitting import Ridges
from tanlearn.terms.gains import strongest_features, warn_of_many_features
from tanlearn.terms.joint_fitting import build_fit
from tanlearn.terms.losses import is_calibrated
from tanlearn.terms.monotone import in_exact_order
from tanlearn.terms.row_likelihood import add_log_frequencies, fit_row_terms
from tanlearn.terms.search import log_softmax, search_bytes
from tanlearn.terms.selection import START, Selection, Trial, divide
from tanlearn.terms.standard_errors import curve_errors
from tanlearn.terms.user_structures import UserStructure
from tanlearn.training.history import Iteration
from tanlearn.training.losses import ConditionalNLL, Loss

__all__ = ["NO_ROWS", "TermOutcome", "learn_terms", "sample_rows", "term_needs"]

#: Numbers of triples per feature, tried in this order as long as the held-out loss falls.
TRIPLES = (1, 3)
#: Maximum number of rows of the selection. A larger data set uses the ridges of a sample, because a ridge is a prior
#: and does not depend on the number of rows.
MOST_ROWS = 20_000
NO_ROWS: IntArray = np.empty(0, np.intp)
#: Maximum number of iterations and tolerance of the final fit.
MAX_ITER, TOL = 300, 1e-5
CONDITIONAL = ConditionalNLL()


@dataclass(frozen=True)
class TermOutcome:
    """Network of terms, with the results of the selection on held-out rows."""

    network: BayesNet
    history: list[Iteration]  # of the final fit
    # (n_states, n_classes) per feature, of the contributions of its values; empty for other losses than ConditionalNLL
    standard_errors: list[FloatArray]
    loss: Loss  # of the final fit
    trials: list[Trial]
    chosen: Trial
    # (n_needed, n_classes) log posterior of the chosen network, trained without these rows; None without folds, or if
    # no network is better than the class frequencies
    held_out: FloatArray | None = None
    structure_learner: Any = None  # fitted structure learner of the network, if it has one


def learn_terms(
    data: EncodedData,
    max_parents: int,
    loss: Loss = CONDITIONAL,
    *,
    directions: IntArray | None = None,
    rules: EdgeRules | None = None,
    user_structure: UserStructure | None = None,
    n_jobs: int | None = None,
    needed: IntArray = NO_ROWS,
    report: Report = silent,
) -> TermOutcome:
    """Learn structure, terms and ridges.

    1. The ridges of a network without edges are selected on held-out rows.
    2. The held-out predictions of this network give the gains of all edges. The gains of a fold are computed without
       its held-out rows.
    3. Networks with 1, 2, 3 and 5 parents per feature are fitted, each with its own ridges. The search ends at
       ``max_parents``. It also ends if one parent does not lower the log loss by a standard error, or if more parents
       do not lower it.
    4. If several parents are allowed, the held-out predictions of the best network give the gains of triples: columns
       of a feature and two of its parents. Networks with one and three triples per feature are tried in the same way.
    5. The terms of the selected network are trained on all rows. If no network is better than the class frequencies by
       two standard errors, ridges are so large that terms have no effect.

    With losses other than conditional likelihood, held-out scores and final terms are divided by the temperature with
    the lowest log loss.

    If the rows cannot be divided into folds, a network without edges is trained with the ridges of :data:`START`. In
    this case, and if terms have no effect, the loss is conditional likelihood, because other losses need a temperature.
    Features with rising or falling log odds (``directions`` (n_features,) 1 or -1) have no edges. All networks contain
    the required edges of ``rules`` and only allowed edges. The first network contains only the required edges.

    With a ``user_structure``, the second network has all edges of this structure instead of edges selected by gain.
    Triples then consist of a feature and two of its parents. The structure of a fold is learned without its held-out
    rows.

    ``needed`` (n_needed,) lists rows whose held-out predictions are returned, as positions among the rows of positive
    weight; ``n_needed`` is below :data:`MOST_ROWS`. ``report`` is called with progress messages.
    """
    data = data.present()
    warn_of_many_features("the network of terms", data.n_features)
    rows = sample_rows(data.n_samples, needed)
    sample = data if len(rows) == data.n_samples else data.take(rows)
    folds = divide(sample, directions)
    if not folds:
        if user_structure is not None:
            resolutions = Resolutions(data, directions, strongest_features(data, directions))
            user_structure.check_fixed(data, resolutions, max_parents, rules)
        trial = Trial(0, 0, START)
        return TermOutcome(
            *_fit(data, directions, TermStructure.least(data.n_features, rules), CONDITIONAL, trial, START),
            CONDITIONAL,
            [],
            trial,
        )
    selection = Selection(sample, folds, max_parents, loss, n_jobs, rules, user_structure, report)
    numbers = selection.numbers_of_parents()
    for n_parents in numbers:
        if not selection.try_parents(n_parents):
            break
    for per_feature in TRIPLES:
        if max(numbers, default=0) < 2 or not selection.try_triples(per_feature * data.n_features):
            break
    if selection.has_no_effect:
        loss = CONDITIONAL
    report(f"training the network on {data.n_samples:,} rows")
    fitted = _fit(data, directions, selection.structure(), loss, selection.best, selection.prior_ridges)
    held_out = None if selection.held_out is None else selection.held_out[np.searchsorted(rows, needed)]
    learner = selection.structure_learner if selection.best.n_parents else None
    return TermOutcome(*fitted, loss, selection.trials, selection.best, held_out, learner)


def term_needs(data: EncodedData) -> list[Need]:
    """Return the memory needed to fit a network without edges.

    Networks with edges are tried only if they are small enough.
    """
    is_ordered = np.zeros(data.n_features, np.bool_) if data.is_ordered is None else data.is_ordered
    n_values = np.where(is_ordered, np.minimum(data.n_states, 2 * max(OWN_SIZES)), data.n_states)
    n_terms = int(n_values.sum()) + int(is_ordered.sum()) * sum(OWN_SIZES)
    n_scores = 6 * min(data.n_samples, MOST_ROWS) * data.n_classes  # held-out ones of three networks, and of the loss
    return [
        Need("parameters of all evaluations", search_bytes(n_terms * data.n_classes)),
        Need("class scores", 8.0 * n_scores),
    ]


def sample_rows(n_rows: int, needed: IntArray = NO_ROWS) -> IntArray:
    """Return in order the rows for the selection: all rows, or a random sample that includes the needed rows."""
    if n_rows <= MOST_ROWS:
        return np.arange(n_rows)
    others = np.setdiff1d(np.arange(n_rows), needed)
    drawn = np.random.default_rng(0).choice(others, MOST_ROWS - len(needed), replace=False)
    return np.sort(np.append(needed, drawn))


def _fit(
    data: EncodedData,
    directions: IntArray | None,
    structure: TermStructure,
    loss: Loss,
    trial: Trial,
    prior_ridges: Ridges,
) -> tuple[BayesNet, list[Iteration], list[FloatArray]]:
    """Train the terms of a network on all rows. Return it with the history and the standard errors of its curves.

    ``prior_ridges`` are the ridges for the standard errors, which must not be 0 for terms without effect. The list of
    standard errors is empty for losses other than conditional likelihood.
    """
    resolutions = Resolutions(data, directions, strongest_features(data, directions))
    fit = build_fit(TermBasis(resolutions, structure), data, loss)
    outcome = fit.minimize(fit.start, trial.ridges, max_iter=MAX_ITER, tol=TOL)
    parameters = outcome.x / trial.temperature
    prior, values = fit.prior_and_cells(parameters)
    errors: list[FloatArray] = []
    if is_calibrated(loss):
        errors = curve_errors(fit.basis, data, np.exp(log_softmax(fit.scores(parameters, data))), prior_ridges)
    parents = structure.parents
    network = Structure(parents if parents.shape[1] > 1 else parents[:, 0])
    layout = TableLayout.of_parents(network.parents, data.n_states, data.n_classes)
    tables = TermTables(layout, fit.basis.columns, values, prior, is_normalized=False)
    if (network.parents[:, 1:] >= 0).any():
        tables = add_log_frequencies(tables, data)
    else:
        tables = normalize_trees(fit_row_terms(tables, network, data), network)
    tables = in_exact_order(tables, resolutions.directions, numbers_of_ranked(data))
    return BayesNet(network, tables), outcome.history, errors
