"""Selection of the number of boosted terms on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tanlearn._memory import VARIABLE, Need, fixed_limit
from tanlearn._progress import Report, silent
from tanlearn._threads import in_threads
from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn._warnings import warn
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.splits import hold_out, validation_masks
from tanlearn.models.boosted_terms import BoostedTerms
from tanlearn.models.log_joint import log_posterior
from tanlearn.terms.boosting import MOST_ROWS_OF_VALUES, ROWS_PER_TERM, Booster, BoostingSettings
from tanlearn.terms.gains import warn_of_many_features
from tanlearn.terms.learning import NO_ROWS
from tanlearn.terms.selection import LEAST_ERRORS_OF_ANY, errors_of_gain

__all__ = ["BoostingOutcome", "boosting_needs", "learn_boosted_terms"]

#: Number of folds, and number of folds for data sets of at most FEW_ROWS rows.
N_FOLDS, N_FOLDS_OF_FEW, FEW_ROWS = 3, 5, 1_000
#: Larger data sets have one fold, with MOST_HELD_OUT held-out rows.
MOST_ROWS_OF_FOLDS, MOST_HELD_OUT = 20_000, 10_000
#: Number of terms between two evaluations of held-out rows.
STEP = 10
#: The search ends after this number of terms without improvement, if they are also at least this fraction of all terms.
PATIENCE, RELATIVE_PATIENCE = 50, 0.2
#: Least decrease in the held-out loss that counts as an improvement, in nats per row. Without it, perfectly predicted
#: classes (mushroom) get all 2,000 terms.
LEAST_DECREASE = 1e-5
#: Bytes of a number.
_ENTRY = 8
#: Number of terms if no rows can be held out.
N_TERMS_WITHOUT_FOLDS = 50


@dataclass(frozen=True)
class BoostingOutcome:
    """Selected model, and the log loss of held-out rows by number of terms."""

    model: BoostedTerms
    n_terms: IntArray  # (n_steps,)
    log_losses: FloatArray  # (n_steps,)
    # (n_needed, n_classes) log posterior of models that were fitted without these rows. None without folds, or if class
    # frequencies are at least as accurate.
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
        self._booster.grow(n_terms)
        self._booster.model().add_terms(self._held_out.codes, self.log_p)
        self._booster.forget()  # the scores of all rows contain them
        self.log_p = log_posterior(self.log_p)


def learn_boosted_terms(
    data: EncodedData,
    settings: BoostingSettings,
    most_terms: int,
    rng: np.random.Generator,
    *,
    n_jobs: int | None = None,
    needed: IntArray = NO_ROWS,
    report: Report = silent,
) -> BoostingOutcome:
    """Select the number of terms with the lowest held-out log loss, and fit that many terms to all rows.

    The models of all folds grow together. ``needed`` (n_needed,) lists rows whose held-out predictions are returned, as
    positions among the rows of positive weight; ``n_needed`` is below :data:`MOST_HELD_OUT`. ``report`` is called with
    progress messages.
    """
    data = data.present()
    seed = int(rng.integers(2**32))
    warn_of_many_features("the sum of boosted terms", data.n_features)
    masks = _masks(data, needed)
    wanted, most_terms = most_terms, affordable_terms(most_terms, settings.n_splits, data.n_classes)
    folds = in_threads(lambda mask: _Fold(data, mask, settings, seed), masks, n_jobs)
    if not folds or any(fold.n_classes < 2 for fold in folds):
        model = _fit(data, settings, seed, min(N_TERMS_WITHOUT_FOLDS, most_terms), report)
        return BoostingOutcome(model, np.empty(0, np.intp), np.empty(0))
    is_held_out = np.any([fold.mask for fold in folds], axis=0)
    rows = np.flatnonzero(is_held_out)
    own = np.arange(len(rows)), data.y[rows]
    before = best = _log_p(folds, is_held_out)
    numbers, losses = [0], [_loss(data, best[own], rows)]
    chosen, n_terms, least = 0, 0, losses[0]
    while n_terms < min(most_terms, chosen + max(PATIENCE, RELATIVE_PATIENCE * chosen)):
        step = min(STEP, most_terms - n_terms)
        in_threads(lambda fold: fold.grow(step), folds, n_jobs)  # noqa: B023
        n_terms += step
        log_p = _log_p(folds, is_held_out)
        numbers.append(n_terms)
        losses.append(_loss(data, log_p[own], rows))
        every_tenth = 1 if n_terms % (10 * STEP) == 0 else 2
        report(f"{n_terms} terms: held-out log loss {losses[-1]:.4f}, lowest {min(losses):.4f}", every_tenth)
        if losses[-1] < least - LEAST_DECREASE:
            best, chosen, least = log_p, n_terms, losses[-1]
    # As for networks of terms, the held-out loss must be lower than that of class frequencies.
    gain = best[own] - before[own]
    if not errors_of_gain(gain, data.in_whole_rows().weights[rows]) > LEAST_ERRORS_OF_ANY:
        chosen = 0
    held_out = best[np.searchsorted(rows, needed)] if chosen else None
    if n_terms == most_terms < wanted:
        warn(
            f"the search ended at {most_terms:,} instead of {wanted:,} terms to limit memory: each term has "
            f"{2**settings.n_splits} values for each of {data.n_classes:,} classes. Set a smaller max_splits, merge "
            f"rare classes, or set the "
            f"environment variable {VARIABLE} to allow more."
        )
    del folds, before, best, log_p  # free their memory for the scores of all rows
    return BoostingOutcome(_fit(data, settings, seed, chosen, report), np.array(numbers), np.array(losses), held_out)


def affordable_terms(most_terms: int, n_splits: int, n_classes: int) -> int:
    """Return the number of terms that the memory limit allows: at most ``most_terms``, at least one.

    The values of all terms may take an eighth of the fixed memory limit. At the end, they are in memory twice.
    """
    return max(1, min(most_terms, int(fixed_limit() / 8 // (_ENTRY * n_classes << n_splits))))


def boosting_needs(data: EncodedData, settings: BoostingSettings, most_terms: int) -> list[Need]:
    """Return the memory of :func:`learn_boosted_terms`."""
    n, n_classes = data.n_samples, data.n_classes
    n_folds = N_FOLDS_OF_FEW if n <= FEW_ROWS else N_FOLDS
    if n > MOST_ROWS_OF_FOLDS:
        n_rest, n_held_out = n - MOST_HELD_OUT, MOST_HELD_OUT
    else:
        n_rest, n_held_out = (n_folds - 1) * n, n
    in_term = 2 * min(ROWS_PER_TERM * n, MOST_ROWS_OF_VALUES)  # residuals and variances
    n_rows = max(n_rest + 4 * n_held_out, n) + in_term
    n_terms = affordable_terms(most_terms, settings.n_splits, n_classes)
    return [
        Need("class scores of rows", _ENTRY * n_rows * n_classes),
        Need("values of terms", 2.0 * _ENTRY * (n_terms * n_classes << settings.n_splits)),
    ]


def _fit(data: EncodedData, settings: BoostingSettings, seed: int, n_terms: int, report: Report) -> BoostedTerms:
    """Fit ``n_terms`` terms to all rows."""
    report(f"fitting {n_terms} terms to {data.n_samples:,} rows")
    booster = Booster(data, settings, np.random.default_rng(seed))
    while booster.n_terms < n_terms:
        booster.grow(min(10 * STEP, n_terms - booster.n_terms))
        report(f"term {booster.n_terms} of {n_terms}, fitted to all rows", 2)
    return booster.model()


def _masks(data: EncodedData, needed: IntArray) -> Sequence[AnyArray]:
    """Return a mask of the held-out rows for each fold, or no masks for a single row."""
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


def _log_p(folds: Sequence[_Fold], is_held_out: AnyArray) -> FloatArray:
    """Return the log posteriors of all held-out rows in order. Shape: (n_held_out, n_classes)."""
    log_p = np.empty((int(is_held_out.sum()), folds[0].log_p.shape[1]))
    for fold in folds:
        log_p[fold.mask[is_held_out]] = fold.log_p
    return log_p


def _loss(data: EncodedData, own: FloatArray, rows: IntArray) -> float:
    """Return the mean log loss of held-out rows, from the log probabilities (n_held_out,) of their classes."""
    weights = data.weights[rows]
    return -float((weights * own).sum() / weights.sum())
