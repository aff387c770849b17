"""Log losses of default estimators relative to that of class frequencies, on tables of noise.

    python -m benchmarks.quality.noise                        # a quarter of an hour
    python -m benchmarks.quality.noise --tables numeric --estimators "TANClassifier()"

Class frequencies are smoothed as if each class had one row more, and have the ratio 1. Ratios are those of new rows:
means over seeds, and in brackets the largest. In tables with a signal, the first column depends on the class.
"""

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.base import clone

from benchmarks import command_line
from tanlearn import (
    BayesForestClassifier,
    BayesNetClassifier,
    ConditionalNLL,
    ConjugateGradient,
    HybridCV,
    KTreeClassifier,
    NaiveBayesClassifier,
    TANClassifier,
)
from tanlearn.baselines import ChowLiu, GreedySearch

N_TEST = 2000


class Kind(NamedTuple):
    """Size of a table, whether its columns are numbers or categories, and whether the first column is informative."""

    n_rows: int
    n_columns: int
    n_classes: int
    is_numeric: bool
    has_signal: bool = False


TABLES = {
    "numeric": Kind(60, 200, 2, is_numeric=True),
    "numeric, signal": Kind(60, 200, 2, is_numeric=True, has_signal=True),
    "numeric, 5 classes": Kind(150, 40, 5, is_numeric=True),
    "categories": Kind(200, 30, 2, is_numeric=False),
    "categories, signal": Kind(200, 30, 2, is_numeric=False, has_signal=True),
    "categories, 6 classes": Kind(200, 20, 6, is_numeric=False),
}
GREEDY = GreedySearch(score="conditional-likelihood")
ESTIMATORS = {
    "NaiveBayesClassifier()": NaiveBayesClassifier(),
    "NaiveBayesClassifier(HybridCV())": NaiveBayesClassifier(parameters=HybridCV()),
    "BayesNetClassifier(ChowLiu())": BayesNetClassifier(structure=ChowLiu()),
    "BayesNetClassifier(ChowLiu(), HybridCV())": BayesNetClassifier(structure=ChowLiu(), parameters=HybridCV()),
    "BayesNetClassifier(GreedySearch(), ConjugateGradient())": BayesNetClassifier(
        structure=GREEDY, parameters=ConjugateGradient(loss=ConditionalNLL())
    ),
    "TANClassifier()": TANClassifier(),
    "TANClassifier('order-free')": TANClassifier(candidates="order-free"),
    "KTreeClassifier()": KTreeClassifier(),
    "BayesForestClassifier()": BayesForestClassifier(),
}


def draw(kind, seed):
    """Return training rows and their classes, and the same of test rows."""
    rng = np.random.default_rng(seed)
    shape = kind.n_rows + N_TEST, kind.n_columns
    y = rng.integers(kind.n_classes, size=shape[0])
    X = rng.normal(size=shape) if kind.is_numeric else rng.integers(4, size=shape).astype(float)
    if kind.has_signal and kind.is_numeric:
        X[:, 0] += 1.5 * y
    elif kind.has_signal:
        copied = rng.random(shape[0]) < 0.6
        X[copied, 0] = y[copied]
    X_test, y_test = X[kind.n_rows :], y[kind.n_rows :]
    is_known = np.isin(y_test, y[: kind.n_rows])
    return X[: kind.n_rows], y[: kind.n_rows], X_test[is_known], y_test[is_known]


def frequency_loss(y, y_test):
    """Return the log loss of class frequencies."""
    classes, counts = np.unique(y, return_counts=True)
    frequencies = (counts + 1) / (len(y) + len(classes))
    return float(-np.log(frequencies[np.searchsorted(classes, y_test)]).mean())


def ratio(estimator, kind, seed):
    """Return the log loss of an estimator divided by that of class frequencies."""
    X, y, X_test, y_test = draw(kind, seed)
    model = clone(estimator).set_params(random_state=seed).fit(X, y)
    log_p = model.predict_log_proba(X_test)
    loss = -log_p[np.arange(len(y_test)), np.searchsorted(model.classes_, y_test)].mean()
    return float(loss) / frequency_loss(y, y_test)


def main(argv=None):
    """Print a line per table and estimator."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=[*TABLES], metavar="TABLE")
    parser.add_argument("--estimators", nargs="+", choices=ESTIMATORS, default=[*ESTIMATORS], metavar="ESTIMATOR")
    parser.add_argument("--seeds", type=int, default=8, help="number of tables of every kind")
    arguments = parser.parse_args(argv)
    warnings.filterwarnings("ignore", message=".*discreti")
    for table in arguments.tables:
        for name in arguments.estimators:
            ratios = [ratio(ESTIMATORS[name], TABLES[table], seed) for seed in range(arguments.seeds)]
            print(f"{table} | {name} | {np.mean(ratios):.2f} ({max(ratios):.2f})", flush=True)


if __name__ == "__main__":
    main()
