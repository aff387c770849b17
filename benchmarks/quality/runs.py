"""Runs of a learner on a fold of a data set, and the fields of their results.

Raw sets have five stratified folds; missing values are NaN. TableEncoder decides which columns are categorical, except
that the pixels of the bundled digits are numeric. "letter, published" and similar names are the published, discretized
parts. In "glass, 5 % lost" and similar sets one value in twenty is removed at random.
"""

import time
import warnings
from contextlib import suppress
from dataclasses import astuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold

from benchmarks import archives
from benchmarks.shared.data import load_table
from benchmarks.shared.results import line_key
from tanlearn import TableEncoder
from tanlearn.sources.datasets import load_npz

PUBLISHED, LOST = ", published", ", 5 % lost"
N_FOLDS, N_BINS = 5, 10
#: Rows of every class that a learner is warmed up with.
WARM_ROWS = 10
#: Errors of learners that cannot be fitted to a data set.
FAILURES = ValueError, RuntimeError
key = line_key("set", "fold", "learner")


def sizes(folder):
    """Return the number of rows of every raw set."""
    found = {}
    for path in archives(folder / "raw"):
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
    """Return rows, classes, the row numbers of every fold, and the encoder."""
    if name.endswith(PUBLISHED):
        dataset = load_npz(folder / "discretized" / f"{name.removesuffix(PUBLISHED)}.npz")
        return dataset.X, dataset.y, dataset.folds, TableEncoder(discrete_features=True)
    X, y = load_table(name.removesuffix(LOST), folder)
    if name.endswith(LOST):
        X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    return X, y, stratified_folds(X, y, 0), TableEncoder(discrete_features=False) if name == "digits" else None


def confidence_bins(p, right):
    """Return the rows, sum of probabilities and correct rows of every bin of confidence."""
    place = np.minimum((p * N_BINS).astype(int), N_BINS - 1)
    return np.array([np.bincount(place, values, N_BINS) for values in (np.ones(len(p)), p, right)])


def calibration_error(bins):
    """Return the mean difference of confidence and accuracy of the bins, weighted by rows."""
    n, confidence, right = bins
    return float(np.abs(confidence - right).sum() / n.sum())


def true_class(values, classes, y, unseen):
    """Return the value of the true class of every row, or ``unseen`` for a class without a column."""
    column = np.searchsorted(classes, y).clip(0, len(classes) - 1)
    return np.where(classes[column] == y, values[np.arange(len(column)), column], unseen)


def packed(flags):
    """Return flags as a hexadecimal string."""
    return np.packbits(flags).tobytes().hex()


def unpacked(word, n):
    """Return the flags of a hexadecimal string."""
    return np.unpackbits(np.frombuffer(bytes.fromhex(word), np.uint8), count=n).astype(bool)


def chosen(model):
    """Return the settings and iterations chosen on held-out rows, or the loss of a k-tree, in words."""
    learner = getattr(model, "parameters_", None)
    n_iter = getattr(learner, "best_n_iter_", getattr(learner, "n_iter_", None))
    found = {**getattr(learner, "best_params_", {}), **({} if n_iter is None else {"n_iter": n_iter})}
    if hasattr(model, "refit_"):
        found |= {"loss": model.loss_} if model.refit_ is None else {"refit": model.refit_}
    return in_words(found)


def in_words(settings):
    """Return settings in one line."""
    return " ".join(", ".join(f"{name}={value!r}" for name, value in settings.items()).split())


def measure(model, X, y, X_test, y_test):
    """Fit a model, and return its results on the test rows."""
    started = time.process_time()  # the machine is shared
    model.fit(X, y)
    seconds = time.process_time() - started
    log_p, wrong = model.predict_log_proba(X_test), model.predict(X_test) != y_test
    # A class that is not in the training rows has no probability; 0 counts as the smallest positive number.
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
    """Compile or load all kernels of a learner before times are measured."""
    rows = np.concatenate([np.flatnonzero(y == c)[:WARM_ROWS] for c in np.unique(y)])
    with suppress(*FAILURES):  # the fit to all rows reports the reason
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
            warnings.simplefilter("ignore")  # about columns with one interval, and values of test rows only
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
