"""The four data sets of differentiable TAN, section 4.1, split and discretised, and what else papers do with rows.

letter, satimage and usps are the published folds. mnist is not published: its images are shrunk as mnist.py says, a
random two thirds are trained on, and these alone decide the cuts. (The paper's cuts are those of mnist's own 60,000
training rows, it seems, and so had seen rows that are tested on.)
"""

from dataclasses import dataclass
from hashlib import sha256

import numpy as np

from benchmarks import DATA
from tanlearn import EncodedData, MDLPDiscretizer
from tanlearn.data.splits import hold_out
from tanlearn.search.runs import Part

from .mnist import bicubic, load_mnist

#: Rows a step ([DT] 4.2).
BATCH_SIZES = {"letter": 100, "satimage": 50, "usps": 100, "mnist": 250}
IMAGE_SHAPES = {"usps": (16, 16), "mnist": (14, 14)}


@dataclass(frozen=True, eq=False)
class Problem:
    """A data set: for every fold what is learnt from, and the test rows."""

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
        """Yield for every fold the whole training part with the test rows, and 80 % of it with the other 20 %."""
        for fold, test in enumerate(self.folds, start=1):
            yield fold, "test", test
            data = test.data
            held_out = hold_out(data.y, data.n_classes, 0.2, stream(self.name, "validation", fold))
            yield fold, "validation", Part(data.take(~held_out), data.codes[:, held_out], data.y[held_out])


def stream(*key):
    """Return a generator that depends on nothing but the key."""
    return np.random.default_rng(int.from_bytes(sha256(repr(key).encode()).digest()[:16]))


def split(data, train, test):
    """Return encoded rows as a part to learn from and one to test on."""
    held_out = data.take(test)
    return Part(data.take(train), held_out.codes, held_out.y)


def load(name, folder=DATA):
    """Return a data set by its name."""
    return Problem(name, tuple(_mnist(folder) if name == "mnist" else _published(name, folder)))


def _published(name, folder):
    """Yield the published folds. Codes start at 1 there, and the values of a feature are those of both parts."""
    with np.load(folder / "discretized" / f"{name}.npz") as file:
        for fold in range(1, int(file["n_folds"]) + 1):
            x, y, x_test, y_test = (file[f"{key}_fold{fold}"].astype(int) for key in ("x_tr", "t_tr", "x_te", "t_te"))
            if name == "usps":  # stored column by column, whereas pixel orders take rows
                x, x_test = (a.reshape(-1, 16, 16).transpose(0, 2, 1).reshape(-1, 256) for a in (x, x_test))
            yield _part(x - 1, y, x_test - 1, y_test, np.maximum(x.max(axis=0), x_test.max(axis=0)))


def _mnist(folder):
    """Yield the one fold of mnist."""
    X, y = load_mnist(folder, bicubic)
    rows = np.random.default_rng(0).permutation(len(y))
    train, test = np.split(rows, [round(2 / 3 * len(y))])
    discretizer = MDLPDiscretizer().fit(X[train], y[train])
    x, x_test = (discretizer.transform(X[part]) for part in (train, test))
    yield _part(x, y[train], x_test, y[test], discretizer.n_states_)


def _part(x, y, x_test, y_test, n_states):
    """Return the encoded fold."""
    n_classes = int(max(y.max(), y_test.max())) + 1
    train, test = (
        EncodedData.from_codes(a, b, n_states=n_states, n_classes=n_classes) for a, b in ((x, y), (x_test, y_test))
    )
    return Part(train, test.codes, test.y)
