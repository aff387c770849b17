"""Gain of each edge relative to a network without edges, for structure learners."""

from __future__ import annotations

import numpy as np

from tanlearn._threads import in_threads
from tanlearn._typing import FloatArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.weights import log_frequencies
from tanlearn.terms.basis import Resolutions, TermBasis, TermStructure
from tanlearn.terms.fitting import TermFit
from tanlearn.terms.gains import edge_gains
from tanlearn.terms.learning import sample_rows
from tanlearn.terms.search import LEAST_DECREASE, MAX_ITER, log_softmax
from tanlearn.terms.selection import START, Fold, divide
from tanlearn.training.losses import ConditionalNLL

__all__ = ["held_out_gains"]


def held_out_gains(data: EncodedData, *, n_jobs: int | None = None) -> FloatArray:
    """Return the gain of every pair of features, symmetric (n_features, n_features) and 0 on the diagonal.

    A gain is the estimated decrease in the log loss if the terms of the pair are added to a network of terms without
    edges (:func:`~tanlearn.terms.gains.edge_gains`). The probabilities are predictions of this network for held-out
    rows, with fixed ridges. Without folds, they are the class frequencies.
    """
    data = data.present()
    rows = sample_rows(data.n_samples)
    if len(rows) < data.n_samples:
        data = data.take(rows)
    folds = divide(data)
    frequencies = data.class_totals()
    probabilities = np.tile(np.exp(log_frequencies(frequencies)), (data.n_samples, 1))
    for fold, found in zip(folds, in_threads(_predict_held_out, folds, n_jobs), strict=True):
        probabilities[fold.mask] = found
    return edge_gains(data, Resolutions(data), probabilities, n_jobs=n_jobs)


def _predict_held_out(fold: Fold) -> FloatArray:
    """Return the class probabilities of the held-out rows of a fold. Shape: (n_samples, n_classes)."""
    rest = fold.rest
    fit = TermFit(TermBasis(fold.resolutions, TermStructure.empty(rest.n_features)), rest, ConditionalNLL())
    found = fit.minimize(fit.start, START, max_iter=MAX_ITER, least_decrease=LEAST_DECREASE).x
    probabilities: FloatArray = np.exp(log_softmax(fit.scores(found, fold.held_out)))
    return probabilities
