"""One run: a learner on a fold of a set, and what is kept of it, for commands that go on where they were stopped.

Sets of ``raw`` have five stratified folds, and gaps are nan; whether a column is categorical is for TableEncoder to
decide, but pixels of the bundled digits are quantities. "letter, published" and the like are the parts that papers use,
discretised by them; "glass, 5 % lost" and the like have lost one value in twenty, at random.
"""

import time
import warnings
from contextlib import suppress
from dataclasses import astuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from benchmarks.shared.data import load_table
from benchmarks.shared.results import line_key
from tanlearn import TableEncoder
from tanlearn.data.datasets import load_npz

PUBLISHED, LOST = ", published", ", 5 % lost"
N_FOLDS, N_BINS = 5, 10
#: Rows of every class that a learner is warmed up with.
WARM_ROWS = 10
#: What learners raise that cannot learn from a set.
FAILURES = ValueError, RuntimeError
key = line_key("set", "fold", "learner")


def sizes(folder):
    """Return how many rows every raw set has."""
    found = {}
    for path in sorted((folder / "raw").glob("*.npz")):
        with np.load(path) as file:
            found[path.stem] = len(file["y"])
    return found


def stratified_folds(X, y, seed):
    """Return the numbers of training and test rows of every fold."""
    with warnings.catch_warnings():  # two rows of lymphography are a class
        warnings.filterwarnings("ignore", "The least populated class")
        return list(StratifiedKFold(N_FOLDS, shuffle=True, random_state=seed).split(X, y))


def take(X, rows):
    """Return some rows of an array or a frame."""
    return X.iloc[rows] if hasattr(X, "iloc") else X[rows]


def load(name, folder):
    """Return rows, classes, the numbers of the rows of every fold, and how columns are encoded."""
    if name.endswith(PUBLISHED):
        dataset = load_npz(folder / "discretized" / f"{name.removesuffix(PUBLISHED)}.npz")
        return dataset.X, dataset.y, dataset.folds, TableEncoder(discrete_features=True)
    X, y = load_table(name.removesuffix(LOST), folder)
    if name.endswith(LOST):
        X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    return X, y, stratified_folds(X, y, 0), TableEncoder(discrete_features=False) if name == "digits" else None


def confidence_bins(p, right):
    """Return rows, sum of probabilities and number of those right, for every bin of confidence."""
    place = np.minimum((p * N_BINS).astype(int), N_BINS - 1)
    return np.array([np.bincount(place, values, N_BINS) for values in (np.ones(len(p)), p, right)])


def calibration_error(bins):
    """Return how far mean confidence and accuracy of the bins lie apart, on average over rows."""
    n, confidence, right = bins
    return float(np.abs(confidence - right).sum() / n.sum())


def true_class(values, classes, y, unseen):
    """Return of a column of values a class that of every row's own; ``unseen`` if its class has none."""
    column = np.searchsorted(classes, y).clip(0, len(classes) - 1)
    return np.where(classes[column] == y, values[np.arange(len(column)), column], unseen)


def packed(flags):
    """Return flags as a word: eight in two digits."""
    return np.packbits(flags).tobytes().hex()


def unpacked(word, n):
    """Return the flags of a word."""
    return np.unpackbits(np.frombuffer(bytes.fromhex(word), np.uint8), count=n).astype(bool)


def chosen(model):
    """Return what held-out rows have chosen, in words: settings, and the number of iterations; of a k-tree, its way."""
    learner = getattr(model, "parameters_", None)
    n_iter = getattr(learner, "best_n_iter_", getattr(learner, "n_iter_", None))
    found = {**getattr(learner, "best_params_", {}), **({} if n_iter is None else {"n_iter": n_iter})}
    if hasattr(model, "refit_"):
        found |= {"loss": model.loss_} if model.refit_ is None else {"refit": model.refit_}
    return " ".join(", ".join(f"{name}={value!r}" for name, value in found.items()).split())


def measure(model, X, y, X_test, y_test):
    """Fit a model, and return what comes of it on the test rows."""
    started = time.process_time()  # others may be at work on the machine
    model.fit(X, y)
    seconds = time.process_time() - started
    log_p, wrong = model.predict_log_proba(X_test), model.predict(X_test) != y_test
    # A class that training has not seen has no probability; what is 0 counts as the least that is not.
    own = true_class(log_p, model.classes_, y_test, -np.inf)
    bins = confidence_bins(np.exp(log_p.max(axis=1)), ~wrong)
    return {
        "seconds": round(seconds, 6),
        "error": 100 * float(wrong.mean()),
        "log_loss": max(0.0, float(-own.clip(np.log(np.finfo(float).tiny)).mean())),
        "ece": 100 * calibration_error(bins),
        "bins": bins.round(6).tolist(),
        "wrong": packed(wrong),
        "calibration": [round(value, 6) for value in astuple(model.calibration_)],
        "chosen": chosen(model),
    }


def warm_up(model, X, y):
    """Have every kernel of a learner compiled, or loaded from Numba's cache, before a clock runs."""
    rows = np.concatenate([np.flatnonzero(y == c)[:WARM_ROWS] for c in np.unique(y)])
    with suppress(*FAILURES):  # the fit to all rows says why
        clone(model).fit(take(X, rows), y[rows]).predict_proba(take(X, rows))


def run_set(results, name, models, folder, **more):
    """Run learners on all folds of a set that are not finished; ``more`` is added to their lines."""
    X, y, folds, encoder = load(name, folder)
    for learner, model in models.items():
        model = clone(model).set_params(encoder=encoder)
        todo = results.missing(
            {"set": name, "fold": k, "n_folds": len(folds), "learner": learner} for k in range(1, 1 + len(folds))
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of columns that have one value left, and what test rows alone hold
            if todo:
                warm_up(model, X, y)
            for start in todo:
                train, test = folds[start["fold"] - 1]
                try:
                    found = measure(clone(model), X[train], y[train], X[test], y[test])
                except FAILURES as error:
                    found = {"failure": str(error)}
                results.append({**start, **more, "n_train": len(train), "n_test": len(test), **found})
                said = found.get("failure") or f"{found['error']:.2f} % in {found['seconds']:.2f} s"
                print(f"{name}, fold {start['fold']}, {learner}: {said}", flush=True)
