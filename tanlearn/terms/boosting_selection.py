"""Number of boosted terms, selected on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.splits import hold_out, validation_masks
from tanlearn.models.boosted_terms import BoostedTerms
from tanlearn.models.log_joint import log_posterior
from tanlearn.terms.boosting import Booster, BoostingSettings
from tanlearn.terms.learning import NO_ROWS
from tanlearn.terms.selection import LEAST_ERRORS_OF_ANY, errors_of_gain

__all__ = ["BoostingOutcome", "learn_boosted_terms"]

#: Number of folds, and the number of folds of data sets of at most FEW_ROWS rows.
N_FOLDS, N_FOLDS_OF_FEW, FEW_ROWS = 3, 5, 1_000
#: Data sets of more rows have one fold, with MOST_HELD_OUT held-out rows.
MOST_ROWS_OF_FOLDS, MOST_HELD_OUT = 20_000, 10_000
#: Terms that are added before held-out rows are evaluated.
STEP = 10
#: Terms without improvement, and their fraction of all terms, that end the search.
PATIENCE, RELATIVE_PATIENCE = 50, 0.2
#: Least decrease of the held-out loss that counts as an improvement, in nats per row. Without it, perfectly predicted
#: classes (mushroom) get all 2,000 terms.
LEAST_DECREASE = 1e-5
#: Number of terms if no rows can be held out.
N_TERMS_WITHOUT_FOLDS = 50


@dataclass(frozen=True)
class BoostingOutcome:
    """Model, and the log loss of held-out rows along the search."""

    model: BoostedTerms
    n_terms: IntArray  # (n_steps,)
    log_losses: FloatArray  # (n_steps,)
    # (n_needed, n_classes) log posterior of models that were fitted without these rows; None without folds, or if
    # class frequencies are as good
    held_out: FloatArray | None = None


class _Fold:
    """Booster of the training rows of a fold, and the scores of its held-out rows."""

    def __init__(self, data: EncodedData, mask: AnyArray, settings: BoostingSettings, seed: int) -> None:
        rest, self._held_out = data.split(mask)
        self.mask, self.n_classes = mask, len(np.unique(rest.y))
        self._booster = Booster(rest, settings, np.random.default_rng(seed))
        self.log_p = log_posterior(self._booster.model().log_joint(self._held_out.codes))

    def grow(self, n_terms: int) -> None:
        """Add ``n_terms`` terms."""
        before = self._booster.n_terms
        self._booster.grow(n_terms)
        self._booster.model(first=before).add_terms(self._held_out.codes, self.log_p)
        self.log_p = log_posterior(self.log_p)


def learn_boosted_terms(
    data: EncodedData,
    settings: BoostingSettings,
    most_terms: int,
    rng: np.random.Generator,
    *,
    n_jobs: int | None = None,
    needed: IntArray = NO_ROWS,
) -> BoostingOutcome:
    """Select the number of terms of least held-out log loss, and fit so many to all rows.

    The models of all folds grow together. ``needed`` (n_needed,) are rows whose held-out predictions are returned:
    positions among those of positive weight, fewer than :data:`MOST_HELD_OUT`.
    """
    if not data.weights.all():
        data = data.take(np.flatnonzero(data.weights))  # a weight of 0 equals an absent row, to the last bit
    seed = int(rng.integers(2**32))
    masks = _masks(data, needed)
    folds = in_threads(lambda mask: _Fold(data, mask, settings, seed), masks, n_jobs)
    final = Booster(data, settings, np.random.default_rng(seed))
    if not folds or any(fold.n_classes < 2 for fold in folds):
        final.grow(min(N_TERMS_WITHOUT_FOLDS, most_terms))
        return BoostingOutcome(final.model(), np.empty(0, np.intp), np.empty(0))
    is_held_out = np.any([fold.mask for fold in folds], axis=0)
    before = best = _log_p(data, folds)
    numbers, losses = [0], [_loss(data, best, is_held_out)]
    chosen, n_terms, least = 0, 0, losses[0]
    while n_terms < min(most_terms, chosen + max(PATIENCE, RELATIVE_PATIENCE * chosen)):
        step = min(STEP, most_terms - n_terms)
        in_threads(lambda fold: fold.grow(step), folds, n_jobs)  # noqa: B023
        n_terms += step
        log_p = _log_p(data, folds)
        numbers.append(n_terms)
        losses.append(_loss(data, log_p, is_held_out))
        if losses[-1] < least - LEAST_DECREASE:
            best, chosen, least = log_p, n_terms, losses[-1]
    if not _is_better(data, best, before, is_held_out):
        chosen = 0
    final.grow(chosen)
    curve = np.array(numbers), np.array(losses)
    return BoostingOutcome(final.model(), *curve, best[needed] if chosen else None)


def _masks(data: EncodedData, needed: IntArray) -> Sequence[AnyArray]:
    """Return the masks of the held-out rows of each fold; none for a single row."""
    n_rows = data.n_samples
    if n_rows < 2:
        return []
    rng = np.random.default_rng(0)
    if n_rows <= MOST_ROWS_OF_FOLDS:
        n_folds = min(N_FOLDS_OF_FEW if n_rows <= FEW_ROWS else N_FOLDS, n_rows)
        return validation_masks(data.y, data.n_classes, n_folds, rng)
    others = np.setdiff1d(np.arange(n_rows), needed)
    mask = np.zeros(n_rows, np.bool_)
    mask[needed] = True
    mask[others] = hold_out(data.y[others], data.n_classes, (MOST_HELD_OUT - len(needed)) / len(others), rng)
    return [mask]


def _log_p(data: EncodedData, folds: Sequence[_Fold]) -> FloatArray:
    """Return the held-out log posterior of each row, (n_samples, n_classes); 0 for rows that are in no fold."""
    log_p = np.zeros((data.n_samples, data.n_classes))
    for fold in folds:
        log_p[fold.mask] = fold.log_p
    return log_p


def _loss(data: EncodedData, log_p: FloatArray, is_held_out: AnyArray) -> float:
    """Return the mean log loss of held-out rows."""
    weights, own = data.weights[is_held_out], log_p[np.arange(data.n_samples), data.y][is_held_out]
    return -float((weights * own).sum() / weights.sum())


def _is_better(data: EncodedData, log_p: FloatArray, before: FloatArray, is_held_out: AnyArray) -> bool:
    """Return whether the held-out loss is lower than that of class frequencies, as for networks of terms."""
    own = np.arange(data.n_samples), data.y
    gain = (log_p[own] - before[own])[is_held_out]
    return errors_of_gain(gain, data.in_whole_rows().weights[is_held_out]) > LEAST_ERRORS_OF_ANY
