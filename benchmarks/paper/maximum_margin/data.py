"""The data of maximum-margin learning: mnist and usps, small parts of usps for the convex relaxation, archives.

mnist keeps its own training and test rows; shared/mnist.py describes how it is shrunk. Every partition of usps is drawn
and stratified. Cut points are fitted to the training rows. The archives are for TIMIT, a licensed corpus, and for the
hyperspectral image of the Washington D.C. Mall, which was not found.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from benchmarks.shared.data import encode_split, split
from benchmarks.shared.mnist import N_TRAIN, every_other, load_mnist
from tanlearn import EncodedData
from tanlearn.sources.datasets import load_npz

USPS_TRAIN, USPS_TEST = 8000, 3000
#: Every other pixel of every other line: with all 256 the solver of the convex relaxation takes minutes.
FEW_PIXELS = np.arange(256).reshape(16, 16)[::2, ::2].ravel()
FEW_ROWS = (100, 200, 400, 800, 1600)


@dataclass(frozen=True, eq=False)
class Problem:
    """A data set with its split, read on first use: ``load()`` returns X, y, training rows and test rows."""

    name: str
    load: Callable

    @cached_property
    def table(self):
        """Return X, y, training rows and test rows."""
        return self.load()

    @cached_property
    def part(self):
        """Return the encoded training and test rows."""
        return encode_split(*self.table)

    @cached_property
    def standardized(self):
        """Return the features of training and test rows, standardized on the training rows."""
        X, _, train, test = self.table
        scaler = StandardScaler().fit(X[train])
        return scaler.transform(X[train]), scaler.transform(X[test])


@dataclass(frozen=True, eq=False)
class Excerpt:
    """A few pixels and training rows of usps, with the cut points of all training rows, and all test rows."""

    whole: Problem
    n_rows: int
    seed: int

    @property
    def name(self):
        return f"{self.whole.name}, {len(FEW_PIXELS)} pixels, {self.n_rows} rows"

    @cached_property
    def part(self):
        """Return the encoded training and test rows."""
        whole = self.whole.part
        data, n_train = whole.data, whole.data.n_samples
        codes = np.hstack([data.codes, whole.codes])[FEW_PIXELS]
        few = EncodedData.from_codes(codes.T, np.append(data.y, whole.y), n_states=data.n_states[FEW_PIXELS])
        rows, _ = train_test_split(np.arange(n_train), train_size=self.n_rows, stratify=data.y, random_state=self.seed)
        return split(few, rows, np.arange(n_train, few.n_samples))


def mnist(folder, n_rows=None):
    """Return mnist with all or its first training rows."""
    return Problem(_name("mnist", n_rows), partial(_mnist, folder, n_rows))


def usps(folder, seed, n_rows=None):
    """Return a partition of usps with all or the first of its training rows."""
    return Problem(_name("usps", n_rows), partial(_usps, folder, seed, n_rows))


def archive(path, prefix):
    """Return the data of a file with X, y, train_idx and test_idx, named after the file."""
    return Problem(f"{prefix}: {path.stem}", partial(_archive, path))


def _name(name, n_rows):
    return name if n_rows is None else f"{name}, {n_rows} rows"


def _mnist(folder, n_rows):
    X, y = load_mnist(folder, every_other)
    rows = np.arange(len(y))
    return X, y, rows[:N_TRAIN][:n_rows], rows[N_TRAIN:]


def _usps(folder, seed, n_rows):
    dataset = load_npz(folder / "raw" / "usps.npz")
    X, y = dataset.X, _codes(dataset.y)
    train, test = train_test_split(
        np.arange(len(y)), train_size=USPS_TRAIN, test_size=USPS_TEST, stratify=y, random_state=seed
    )
    return X, y, train[:n_rows], test


def _archive(path):
    dataset = load_npz(path)
    if dataset.folds is None or len(dataset.folds) > 1:
        raise SystemExit(f"{path} must hold one train_idx and one test_idx, the rows to train on and to test on.")
    return dataset.X, _codes(dataset.y), *dataset.folds[0]


def _codes(y):
    return np.unique(y, return_inverse=True)[1]
