"""One fit: results, time and size of a learner on a fold."""

import pickle
import time

import numpy as np
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from ..runs import calibration_error, chosen, confidence_bins, in_words, take, true_class
from .tuning import log_loss


class Counter:
    """A file that counts the bytes written to it."""

    n_bytes = 0

    def write(self, data):
        self.n_bytes += memoryview(data).nbytes


def pickled_size(model):
    """Return the bytes of an uncompressed pickle of a model, or of its chosen model."""
    file = Counter()
    pickle.dump(getattr(model, "best_estimator_", model), file, protocol=5)
    return file.n_bytes


def timed(work, *arguments):
    """Return the result of a call, its processor seconds, and its seconds by the clock."""
    started = time.process_time(), time.perf_counter()
    found = work(*arguments)
    return found, round(time.process_time() - started[0], 6), round(time.perf_counter() - started[1], 6)


def settings(model):
    """Return the chosen settings of a model in words."""
    model = model[-1] if hasattr(model, "named_steps") else model
    found = getattr(model, "best_params_", None)
    return chosen(model) if found is None else in_words(found)


def area_under_roc(p, classes, y):
    """Return the mean area under the ROC curves of each class against all others; None with one class of test rows."""
    is_of = (y[:, None] == classes).T
    areas = [roc_auc_score(own, scores) for own, scores in zip(is_of, p.T, strict=True) if own.any() and not own.all()]
    return float(np.mean(areas)) if areas else None


def measure(model, table, train, test, jobs):
    """Fit a model to the training rows, and return its results on the test rows."""
    X, X_test, y_test = take(table.X, train), take(table.X, test), table.y[test]
    classes, y = np.unique(table.y[train], return_inverse=True)  # XGBoost requires 0 to k - 1
    with threadpool_limits(jobs):
        _, *fit_seconds = timed(model.fit, X, y)
        p, *predict_seconds = timed(model.predict_proba, X_test)
    p = np.asarray(p, float)
    if not np.isfinite(p).all():
        raise ValueError("probabilities are not finite.")
    right = classes[p.argmax(axis=1)] == y_test
    bins = confidence_bins(p.max(axis=1), right)
    return {
        "error": 100 * float(np.mean(~right)),
        "log_loss": log_loss(p, classes, y_test),
        "brier": float(np.mean((p**2).sum(axis=1) - 2 * true_class(p, classes, y_test, 0.0) + 1)),
        "auc": area_under_roc(p, classes, y_test),
        "ece": 100 * calibration_error(bins),
        "bins": bins.round(3).tolist(),
        "fit_seconds": fit_seconds[0],
        "fit_wall": fit_seconds[1],
        "predict_seconds": predict_seconds[0],
        "predict_wall": predict_seconds[1],
        "n_bytes": pickled_size(model),
        "chosen": settings(model),
    }
