"""The published data sets: raw tables, published folds, and the four data sets of differentiable TAN (section 4.1).

letter, satimage and usps are the published folds. mnist is not published: its images are shrunk as mnist.py describes,
a random two thirds are the training part, and the cut points are fitted to these alone. (The cut points of the paper
seem to be computed from the original 60,000 training rows of mnist, some of which are test rows of the paper.)"""

from dataclasses import dataclass
from hashlib import sha256

import numpy as np
from sklearn.datasets import load_digits

from benchmarks import DATA
from tanlearn import EncodedData, MDLPDiscretizer
from tanlearn.encoding.splits import hold_out
from tanlearn.search.runs import Part

from .mnist import bicubic, load_mnist

#: Rows per step ([DT] 4.2).
BATCH_SIZES = {"letter": 100, "satimage": 50, "usps": 100, "mnist": 250}
IMAGE_SHAPES = {"usps": (16, 16), "mnist": (14, 14)}


@dataclass(frozen=True, eq=False)
class Problem:
    """A data set: the training and test rows of each fold."""

    name: str
    folds: tuple[Part, ...]

    @property
    def batch_size(self):
        return BATCH_SIZES[self.name]

    @property
    def image_shape(self):
        return IMAGE_SHAPES.get(self.name)

    @property
    def n_features(self):
        return self.folds[0].data.n_features

    def parts(self):
        """Yield for every fold the training part with the test rows, and 80 % of it with the other 20 %."""
        for fold, test in enumerate(self.folds, start=1):
            yield fold, "test", test
            data = test.data
            held_out = hold_out(data.y, data.n_classes, 0.2, stream(self.name, "validation", fold))
            yield fold, "validation", split(data, ~held_out, held_out)


def stream(*key):
    """Return a random generator that depends only on the key."""
    return np.random.default_rng(int.from_bytes(sha256(repr(key).encode()).digest()[:16]))


def split(data, train, test):
    """Return encoded rows as a part to train with and to test on."""
    held_out = data.take(test)
    return Part(data.take(train), held_out.codes, held_out.y)


def encode_split(X, y, train, test, is_categorical=None, n_jobs=None):
    """Encode a table and split it: cut points are fitted to the training rows, categories to all rows.

    A category that is not in the training rows so has the probability of smoothing.
    """
    classes, y = np.unique(y, return_inverse=True)
    is_categorical = np.zeros(X.shape[1], bool) if is_categorical is None else is_categorical
    codes, n_states = np.empty(X.shape, np.intp), np.empty(X.shape[1], np.intp)
    for i in np.flatnonzero(is_categorical):
        values, codes[:, i] = np.unique(X[:, i], return_inverse=True)
        n_states[i] = len(values)
    continuous = np.flatnonzero(~is_categorical)
    if len(continuous):
        discretizer = MDLPDiscretizer(n_jobs=n_jobs).fit(X[train][:, continuous], y[train])
        codes[:, continuous] = discretizer.transform(X[:, continuous])
        n_states[continuous] = discretizer.n_states_
    return split(EncodedData.from_codes(codes, y, n_states=n_states, n_classes=len(classes)), train, test)


def load(name, folder=DATA):
    """Return a data set of differentiable TAN by its name."""
    return Problem(name, tuple(_mnist(folder) if name == "mnist" else _published(name, folder)))


def load_table(name, folder=DATA):
    """Return the rows of a raw set, with NaN for missing values, or of the bundled digits, and their classes."""
    if name == "digits":
        return load_digits(return_X_y=True)
    with np.load(folder / "raw" / f"{name}.npz") as file:
        X, y = file["X"].astype(float), file["y"]
        if "missing" in file:
            X[file["missing"]] = np.nan
    return X, y


def published_folds(path):
    """Yield training rows, their classes, test rows and their classes of every published fold; codes start at 0."""
    with np.load(path) as file:
        for fold in range(1, int(file["n_folds"]) + 1):
            x, y, x_test, y_test = (file[f"{key}_fold{fold}"].astype(int) for key in ("x_tr", "t_tr", "x_te", "t_te"))
            yield x - 1, y, x_test - 1, y_test


def n_values(x, x_test):
    """Return the number of values of every feature in both parts."""
    return 1 + np.maximum(x.max(axis=0), x_test.max(axis=0))


def _published(name, folder):
    """Yield the published folds."""
    for x, y, x_test, y_test in published_folds(folder / "discretized" / f"{name}.npz"):
        if name == "usps":  # stored column by column, whereas pixel orders take rows
            x, x_test = (a.reshape(-1, 16, 16).transpose(0, 2, 1).reshape(-1, 256) for a in (x, x_test))
        n_classes, n_states = 1 + max(y.max(), y_test.max()), n_values(x, x_test)
        data = EncodedData.from_codes(
            np.vstack([x, x_test]), np.append(y, y_test), n_states=n_states, n_classes=n_classes
        )
        yield split(data, slice(len(y)), slice(len(y), None))


def _mnist(folder):
    """Yield the one fold of mnist."""
    X, y = load_mnist(folder, bicubic)
    train, test = np.split(np.random.default_rng(0).permutation(len(y)), [round(2 / 3 * len(y))])
    yield encode_split(X, y, train, test)
