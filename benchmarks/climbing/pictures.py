"""Pictures of mean ranks and of paired errors."""

import numpy as np

from benchmarks.shared.reports import picture
from tanlearn.displays import CriticalDifferenceDisplay, PairedErrorsDisplay


def draw_ranks(comparison, path):
    """Draw the critical difference diagram of all learners of a comparison."""
    errors, _ = complete(comparison)
    with picture(path, 8, 4) as figure:
        CriticalDifferenceDisplay(errors).plot(figure.subplots())


def draw_pair(comparison, path):
    """Draw the errors of two learners, a point for each data set."""
    errors, datasets = complete(comparison)
    with picture(path, 5, 5) as figure:
        PairedErrorsDisplay(errors, datasets=datasets).plot(figure.subplots())


def complete(comparison):
    """Return the mean errors by learner on the data sets that all of them have finished, and their names."""
    errors = comparison.mean("error")
    own = ~np.isnan(errors).any(axis=1)
    names = [name for name, is_own in zip(comparison.datasets, own, strict=True) if is_own]
    return dict(zip(comparison.learners, errors[own].T, strict=True)), names
