"""The data of order-based learning: 25 small sets, mnist, its synthetic problem, and optionally TIMIT.

The small sets are those of Friedman, Geiger and Goldszmidt (1997), with the same numbers of rows. The training rows of
the paper are not published, so five folds are drawn. A single test part consists of the last rows, or of rows drawn at
random. Rows with missing values are left out, except in vote, where "?" is a third answer."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from sklearn.model_selection import StratifiedKFold, train_test_split

from benchmarks.shared.data import encode_split, split, stream
from benchmarks.shared.mnist import N_TRAIN, every_other, load_mnist
from tanlearn import EncodedData
from tanlearn.search.runs import Part
from tanlearn.sources.datasets import load_npz

N_FOLDS = 5
#: Five-fold cross-validation.
CROSS_VALIDATED = (
    *("australian", "breast", "cleve", "corral", "crx", "diabetes", "flare", "german", "glass", "glass2", "heart"),
    *("hepatitis", "iris", "lymphography", "pima", "soybean-large", "vehicle", "vote"),
)
#: Sets whose first rows are the training part, and their number.
FIRST_ROWS = {"chess": 2130, "letter": 15000, "mofn-3-7-10": 300, "satimage": 4435, "waveform-21": 300}
#: Sets with drawn, stratified training and test rows, and their numbers. UCI splits segment into 210 and 2,100 rows.
#: shuttle-small is a sample of shuttle, because the published one was not found.
DRAWN = {"segment": (1540, 770), "shuttle-small": (3866, 1934)}
UCI = tuple(sorted([*CROSS_VALIDATED, *FIRST_ROWS, *DRAWN]))

SYNTHETIC_SIZES = (20, 50, 100, 200, 500, 1000)
SYNTHETIC_TEST_ROWS = 1000


@dataclass(frozen=True, eq=False)
class Table:
    """A data set, encoded on first use; every run of a learner on a fold has the same rows."""

    name: str
    n_folds: int
    load: Callable[[], Sequence[Part]]

    @cached_property
    def parts(self):
        """Return the training and test rows of every fold."""
        return self.load()

    def part(self, fold, run):
        """Return the rows of a fold; folds are numbered from 1."""
        return self.parts[fold - 1]

    def remarks(self, structures):
        """Return further fields of the results."""
        return {"n_edges": [structure.n_edges for structure in structures]}


@dataclass(frozen=True, eq=False)
class Simulation:
    """The synthetic problem with a number of training rows; every run draws new rows."""

    n_train: int
    n_folds = 1

    @property
    def name(self):
        return f"synthetic, {self.n_train} rows"

    def part(self, fold, run):
        """Return the rows of a run, the same for every learner."""
        x, y = sample_synthetic(self.n_train + SYNTHETIC_TEST_ROWS, stream(self.name, run))
        data = EncodedData.from_codes(x, y, n_states=[2, 2, 2], n_classes=2)
        return split(data, np.arange(self.n_train), np.arange(self.n_train, data.n_samples))

    def remarks(self, structures):
        """Return the number of structures that join x1 and x3, the edge discussed in section 3."""
        return {"join_x1_x3": sum(0 in structure.parents[2] or 2 in structure.parents[0] for structure in structures)}


def uci(name, folder, partition=0):
    """Return one of the 25 sets, split as in table 1, or in another, drawn partition."""
    title = f"{name}, partition {partition}" if partition else name
    return Table(title, N_FOLDS if name in CROSS_VALIDATED else 1, partial(_uci_parts, name, folder, partition))


def timit(path):
    """Return the data of a user's file with X, y, train_idx, test_idx and optionally is_categorical."""
    dataset = load_npz(path)
    if dataset.folds is None:
        raise SystemExit(f"{path} must hold train_idx and test_idx, the rows to train on and to test on.")
    is_categorical = np.zeros(dataset.X.shape[1], bool)
    if not isinstance(dataset.discrete_features, str):
        is_categorical[:] = dataset.discrete_features
    load = partial(_encoded, dataset.X, dataset.y, is_categorical, dataset.folds)
    return Table(f"timit: {dataset.name}", len(dataset.folds), load)


def mnist(folder, n_rows=N_TRAIN, n_jobs=None):
    """Return mnist at 14 x 14 pixels with its own test part, trained on the first rows of the training part."""
    name = "mnist" if n_rows == N_TRAIN else f"mnist, {n_rows} rows"
    return Table(name, 1, partial(_mnist_parts, folder, n_rows, n_jobs))


def synthetic_probabilities():
    """Return p(class, x1, x2, x3) of section 3, eqs. 1 to 4, as an array of shape (2, 2, 2, 2)."""
    p = np.empty((2, 2, 2, 2))
    for c, x1, x2, x3 in np.ndindex(p.shape):
        p2 = 0.5 * (x2 == x1) + 0.25
        followed = x1 if c == 0 else 1 - x1
        p3 = 0.3 * (x3 == followed) + 0.5 * (x3 == x2) + 0.1
        p[c, x1, x2, x3] = 0.5 * 0.5 * p2 * p3
    return p


def sample_synthetic(n_samples, rng):
    """Draw rows (x1, x2, x3) and their classes."""
    p = synthetic_probabilities()
    y, *x = np.unravel_index(rng.choice(p.size, n_samples, p=p.ravel()), p.shape)
    return np.stack(x, axis=1), y


def _uci_parts(name, folder, partition):
    """Return the folds of one of the 25 sets."""
    dataset = load_npz(folder / "raw" / f"{name.removesuffix('-small')}.npz")
    X, y = dataset.X, dataset.y
    if name == "vote":
        X = np.where(np.isnan(X), 2, X)
    if name == "corral":  # the others are a training part that Friedman et al. did not use
        X, y = (values[dataset.folds[0][1]] for values in (X, y))
    complete = ~np.isnan(X).any(axis=1)
    X, y = X[complete], y[complete]
    return _encoded(X, y, dataset.discrete_features, _splits(name, y, partition))


def _encoded(X, y, is_categorical, splits):
    """Return the encoded folds."""
    return [encode_split(X, y, train, test, is_categorical) for train, test in splits]


def _splits(name, y, partition):
    """Return the rows to train on and to test on."""
    rows = np.arange(len(y))
    if name in FIRST_ROWS and not partition:
        return [np.split(rows, [FIRST_ROWS[name]])]
    if name not in CROSS_VALIDATED:
        n_train, n_test = DRAWN.get(name) or (FIRST_ROWS[name], len(y) - FIRST_ROWS[name])
        return [train_test_split(rows, train_size=n_train, test_size=n_test, stratify=y, random_state=partition)]
    with warnings.catch_warnings():  # two rows of lymphography are a class
        warnings.filterwarnings("ignore", "The least populated class")
        return list(StratifiedKFold(N_FOLDS, shuffle=True, random_state=partition).split(rows, y))


def _mnist_parts(folder, n_rows, n_jobs):
    """Return the one fold of mnist."""
    X, y = load_mnist(folder, every_other)
    rows = np.arange(len(y))
    return [encode_split(X, y, rows[:n_rows], rows[N_TRAIN:], n_jobs=n_jobs)]
