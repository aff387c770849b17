"""One cell of a comparison: a learner is fitted and measured on one split of a data set.

Compilation is excluded from the times. Before the first timed fit on a data set, each learner is fitted to a few rows
for two epochs, and predicts these rows.
"""

from __future__ import annotations

import contextlib
import re
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.baselines import Learner
from tanlearn.comparison.cell_warnings import about_cell
from tanlearn.comparison.protocol import SplitData
from tanlearn.comparison.results import CellResult
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.kernels._interpreter import compile_always
from tanlearn.sources.datasets import Dataset

__all__ = ["RunSettings", "reason", "run_cell", "warm_up"]

#: Number of rows per class, and number of epochs, of the warm-up fit.
WARM_ROWS, WARM_EPOCHS = 10, 2
#: Number of timed calls of ``predict``. The fastest call is reported, because other processes can only slow a call
#: down. Calls that take more than a second are not repeated.
N_PREDICTIONS, LONG_PREDICTION = 3, 1.0


@dataclass(frozen=True)
class RunSettings:
    """Settings shared by all cells, and the deadline for starting one, in seconds since 1970."""

    n_epochs: int | None
    deadline: float
    n_jobs: int | None = None

    @property
    def is_over(self) -> bool:
        """True if the deadline has passed."""
        return time.time() >= self.deadline

    def make(self, learner: Learner, dataset: Dataset, seed: int, *, is_short: bool = False) -> Any:
        """Return an unfitted classifier. With ``is_short``, its epochs are limited for the warm-up."""
        encoder = TableEncoder(discrete_features=dataset.discrete_features, n_jobs=self.n_jobs)
        n_epochs = WARM_EPOCHS if is_short and self.n_epochs is not None else self.n_epochs
        return learner.make(random_state=seed, n_epochs=n_epochs, n_jobs=self.n_jobs, encoder=encoder)


def warm_up(settings: RunSettings, learner: Learner, table: SplitData) -> None:
    """Compile the kernels of a learner, or load them from Numba's cache. Errors are raised later, by the actual fit."""
    with contextlib.suppress(Exception), warnings.catch_warnings(), compile_always():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("default", "compiled kernels cannot be stored")
        train, dataset = table.splits[0][0][0], table.dataset
        classes, codes = np.unique(dataset.y[train], return_inverse=True)
        rows = np.concatenate([train[codes == c][:WARM_ROWS] for c in range(len(classes))])
        X, y = dataset.take(rows)
        settings.make(learner, dataset, 0, is_short=True).fit(X, y).predict(X)


def run_cell(
    table: SplitData,
    learner: Learner,
    cell: CellResult,
    settings: RunSettings,
    report: Callable[[CellResult, float], Any] | None = None,
) -> CellResult | None:
    """Run a cell. Return it with its measures or the reason for its failure, or return None after the deadline.

    During gradient training, ``report`` is called with the finished fraction.
    """
    if settings.is_over:
        return None
    try:
        with about_cell(cell):
            estimator = settings.make(learner, table.dataset, cell.seed)
            if report is not None and estimator.get_params().get("training__callback", report) is None:
                estimator.set_params(training__callback=_EpochProgress(cell, report))
            train, test = table.splits[cell.repeat - 1][cell.fold - 1]
            return replace(cell, **_measures(estimator, table, train, test))
    except Exception as error:  # a failure of one cell must not discard the others
        return replace(cell, failure=re.sub(r"\bin row (\d+)", r"in row \1 of the fold", reason(error)))


@dataclass(frozen=True)
class _EpochProgress:
    """Callback for gradient training that reports the progress and never stops the training."""

    cell: CellResult
    report: Callable[[CellResult, float], Any]

    def __call__(self, epoch: Any) -> None:
        """Report the finished fraction."""
        self.report(self.cell, epoch.epoch / epoch.n_epochs)


def reason(error: Exception) -> str:
    """Return the message of an error in one line, with its type if the message alone is not clear."""
    return " ".join((f"{error}" if isinstance(error, ValueError) else f"{type(error).__name__}: {error}").split())


def _measures(estimator: Any, table: SplitData, train: IntArray, test: IntArray) -> dict[str, Any]:
    """Fit an estimator to training rows, and return its measures on test rows."""
    X, y = table.dataset.take(train)
    started = time.perf_counter()
    estimator.fit(X, y)
    fit_seconds = time.perf_counter() - started
    X, y = table.dataset.take(test)
    durations: list[float] = []
    while len(durations) < N_PREDICTIONS and max(durations, default=0.0) < LONG_PREDICTION:
        started = time.perf_counter()
        predicted = estimator.predict(X)
        durations.append(time.perf_counter() - started)
    return {
        "error": 100.0 * float(np.mean(np.asarray(predicted) != y)),
        "fit_seconds": fit_seconds,
        "predict_seconds": min(durations),
        **_probability_measures(_log_probabilities(estimator, X, table.classes), np.searchsorted(table.classes, y)),
        **_model_measures(estimator),
    }


def _log_probabilities(estimator: Any, X: Any, classes: AnyArray) -> FloatArray | None:
    """Return the log-probabilities (n_rows, n_classes) of all classes of the data set, or None without probabilities.

    A class without training rows has probability 0. The smallest positive float replaces all probabilities of 0.
    """
    with np.errstate(divide="ignore"):  # random forests of scikit-learn compute the logarithm of 0
        if hasattr(estimator, "predict_log_proba"):
            found = np.asarray(estimator.predict_log_proba(X), np.float64)
        elif hasattr(estimator, "predict_proba"):
            found = np.log(np.asarray(estimator.predict_proba(X), np.float64))
        else:
            return None
    if np.isnan(found).any():
        row = int(np.isnan(found).any(axis=1).argmax())
        raise ValueError(f"probabilities must be numbers, but those of test row {row} contain NaN.")
    log_p = np.full((len(found), len(classes)), -np.inf)
    log_p[:, np.searchsorted(classes, estimator.classes_)] = found
    return log_p.clip(np.log(np.finfo(np.float64).tiny), 0.0)


def _probability_measures(log_p: FloatArray | None, y: IntArray) -> dict[str, float | None]:
    """Return log loss, Brier score and AUC for log-probabilities (n_rows, n_classes) and class codes (n_rows,)."""
    if log_p is None:
        return {}
    from sklearn.metrics import roc_auc_score  # the import takes 0.3 s

    rows, p = np.arange(len(y)), np.exp(log_p)
    is_own = y[:, np.newaxis] == np.arange(log_p.shape[1])
    tested = [c for c in range(log_p.shape[1]) if 0 < is_own[:, c].sum() < len(y)]
    areas = [roc_auc_score(is_own[:, c], log_p[:, c]) for c in tested]
    return {
        "log_loss": float(-log_p[rows, y].mean()),
        "brier": float(((p - is_own) ** 2).sum(axis=1).mean()),
        "auc": float(np.mean(areas)) if areas else None,
    }


def _model_measures(estimator: Any) -> dict[str, Any]:
    """Return the size of a fitted model and the effort of its training, as far as the estimator reports them."""
    structure = getattr(estimator, "structure_", None)
    histories = estimator.learning_history() if hasattr(estimator, "learning_history") else {}
    search = histories.get("structure") or histories.get("training")
    steps = histories.get("training") or histories.get("parameters")
    n_iterations = steps[-1].step if steps else getattr(estimator, "n_iter_", None)
    return {
        "n_parameters": getattr(estimator, "n_parameters_", None),
        "n_edges": None if structure is None else int((structure.parents >= 0).sum()),
        "n_evaluations": _n_evaluations(estimator, search),
        "n_iterations": None if n_iterations is None else int(np.max(n_iterations)),
        "score": float(search[-1].score) if search else None,
    }


def _n_evaluations(estimator: Any, history: Any) -> int | None:
    """Return the number of structures that a search has scored, or the number of training epochs."""
    search = getattr(estimator, "structure_learner_", estimator)
    counted = getattr(search, "n_evaluations_", None)
    if counted is None and history:
        counted = history[-1].n_evaluations
    return None if counted is None else int(counted)
