"""Pareto search: classifiers with the best trade-offs between error, size and operations ([RE]).

[RE] Roth, Schindler, Fröning, Pernkopf: On resource-efficient Bayesian network classifiers and deep neural networks.
ICPR 2020.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from tanlearn._tasks import in_order
from tanlearn._typing import FloatArray, IntArray
from tanlearn.displays.pareto import ParetoDisplay
from tanlearn.estimators.gradient_tan import TANClassifier
from tanlearn.search.random_search import TANSearchCV
from tanlearn.training.few_bits import read_bits
from tanlearn.training.losses import Hybrid

__all__ = ["ParetoFront", "not_dominated", "pareto_search"]


def not_dominated(costs: Any) -> IntArray:
    """Return the ascending indices (n_kept,) of the Pareto front of costs (n_points, n_costs).

    Lower costs are better. Points that contain nan are excluded. Of several equal points, only the first is kept.
    """
    points: FloatArray = np.asarray(costs, dtype=np.float64)
    at_most = (points[:, np.newaxis] <= points).all(axis=2)
    first = np.arange(len(points))[:, np.newaxis] < np.arange(len(points))
    beats = at_most & (~at_most.T | first)
    return np.flatnonzero(~beats.any(axis=0) & ~np.isnan(points).any(axis=1))


@dataclass(frozen=True, eq=False)
class ParetoFront:
    """Result of :func:`pareto_search`.

    Parameters
    ----------
    cv_results : dict of ndarrays
        Attribute ``cv_results_`` of :class:`~tanlearn.TANSearchCV`, sorted by size. The front is computed from
        ``mean_test_score`` (nan if a training failed), ``mean_size_bits`` and ``mean_n_operations``. Display the
        results with ``pandas.DataFrame(cv_results)``.
    front : ndarray of shape (n_estimators,), intp
        Indices of the settings on the front.
    estimators : list of TANClassifier
        The classifiers of the front, trained on all rows.
    """

    cv_results: dict[str, Any]
    front: IntArray
    estimators: list[TANClassifier]

    def best_within(self, *, size_bits: float | None = None, n_operations: float | None = None) -> TANClassifier:
        """Return the classifier with the lowest held-out error among those within limits on size and operations.

        Size and operations are computed for the classifier that was trained on all rows. Its structure may differ from
        the structures that were learned in the splits.

        Parameters
        ----------
        size_bits : float, optional
            Maximum size of the CPTs in bits.
        n_operations : float, optional
            Maximum number of additions per prediction ([RE] V-D).

        Returns
        -------
        TANClassifier

        Raises
        ------
        ValueError
            If no classifier of the front is within the limits.
        """
        most = np.inf if size_bits is None else size_bits, np.inf if n_operations is None else n_operations
        sizes = [(model.size_bits_, model.n_operations_) for model in self.estimators]
        allowed = [i for i, size in enumerate(sizes) if size[0] <= most[0] and size[1] <= most[1]]
        if not allowed:
            smallest, fewest = map(min, zip(*sizes, strict=True))
            given = {"size_bits": size_bits, "n_operations": n_operations}
            limits = " and ".join(f"{name} <= {limit}" for name, limit in given.items() if limit is not None)
            raise ValueError(
                f"no classifier of the front has {limits}: the smallest has {smallest} bits, and the fastest needs "
                f"{fewest} operations. Increase the limits, or search with fewer bits and larger values of size_weight."
            )
        score = self.cv_results["mean_test_score"][self.front]
        return self.estimators[min(allowed, key=lambda i: (-score[i], sizes[i]))]

    def plot(self, ax: Any = None) -> Any:
        """Plot the held-out errors against the sizes.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to plot on. By default, a new figure is created.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ImportError
            If Matplotlib is not installed.
        """
        return ParetoDisplay.from_estimator(self, ax=ax).ax_


def pareto_search(
    estimator: TANClassifier,
    X: Any,
    y: Any,
    *,
    bits: Sequence[Any] = (None, 2, 4, 8),
    size_weight: Sequence[float] = (0.0, 1e-3, 1e-2, 1e-1),
    param_grid: dict[str, Any] | None = None,
    sample_weight: Any = None,
    cv: Any = 0.2,
    checkpoint: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    random_state: int = 0,
    verbose: int = 0,
) -> ParetoFront:
    """Search over numbers of bits and size penalties for the Pareto front of error, size and operations ([RE] V-G).

    All combinations of settings are trained, and scored on held-out rows. Classifiers with the settings on the front
    are then trained on all rows.

    Parameters
    ----------
    estimator : TANClassifier
        Classifier that provides all other settings.
    X : array-like or frame of shape (n_samples, n_features)
        Raw values.
    y : array-like of shape (n_samples,)
        Classes.
    bits : sequence
        Values of the estimator's parameter ``bits``: None, total numbers of bits, or pairs of integer and fraction
        bits.
    size_weight : sequence of float
        Values of the estimator's parameter ``size_weight``, in nats per CPT entry and row, relative to the mean loss
        per row.
    param_grid : dict, optional
        Dictionary from the name of each additional parameter to a list of its values.
    sample_weight : array-like of shape (n_samples,), optional
        Weights of the rows, in training and in the score.
    cv : int, splitter or float, default=0.2
        Fraction of rows to hold out, or number of folds, as for :class:`~tanlearn.TANSearchCV`.
    checkpoint : str or path, optional
        File from which an interrupted search resumes, as for :class:`~tanlearn.TANSearchCV`.
    n_jobs : int, optional
        Number of threads, each for one training, or of workers of the backend set by :func:`joblib.parallel_config`.
        Results do not depend on it. With ``device="cuda"``, ``n_jobs`` applies only to the final training of the
        classifiers on the front. All other trainings run together on the device.
    random_state : int, default=0
        Seed for the splits and for each training.
    verbose : int, default=0
        If 1, one line per training is printed.

    Returns
    -------
    ParetoFront

    Raises
    ------
    ValueError
        If there are no combinations, or if :class:`~tanlearn.TANSearchCV` raises ValueError.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import GradientTraining, TANClassifier, pareto_search
    >>> X, y = load_iris(return_X_y=True)
    >>> estimator = TANClassifier(n_epochs=30, training=GradientTraining(batch_size=20))
    >>> found = pareto_search(estimator, X, y, bits=[None, (3, 1)], size_weight=[0, 0.01])
    >>> len(found.cv_results["params"]), len(found.front) < 4
    (4, True)
    >>> small = found.best_within(size_bits=400)
    >>> small.size_bits_ <= 400, small.score(X, y) > 0.9
    (True, True)
    """
    bits = list(bits) if np.iterable(bits) else [bits]
    for value in bits:
        read_bits(value)
    from sklearn.model_selection import ParameterGrid

    # All trainings have the same seed, so that their candidates and the order of their rows are equal.
    grid = {"bits": bits, "size_weight": size_weight, "random_state": [random_state], **(param_grid or {})}
    search = TANSearchCV(
        estimator,
        grid,
        n_iter=len(ParameterGrid(grid)),
        cv=cv,
        refit=False,
        checkpoint=checkpoint,
        n_jobs=n_jobs,
        random_state=random_state,
        verbose=verbose,
    ).fit(X, y, sample_weight)
    table = search.cv_results_
    order = np.lexsort((1 - table["mean_test_score"], table["mean_size_bits"]))  # nan last
    params = [table["params"][i] for i in order]
    table = {name: values[order] for name, values in table.items() if name != "params"} | {"params": params}
    costs = 1 - table["mean_test_score"], table["mean_size_bits"], table["mean_n_operations"]
    front = not_dominated(np.column_stack(costs))
    base = clone(estimator)
    if base.loss is None:
        base.set_params(loss=Hybrid())
    rows = X, y, sample_weight
    return ParetoFront(table, front, in_order(_refit, [(rows, (base, params[i])) for i in front], n_jobs))


def _refit(rows: tuple[Any, Any, Any], base: TANClassifier, setting: dict[str, Any]) -> TANClassifier:
    """Train the classifier with the given settings on all rows."""
    model: TANClassifier = clone(base).set_params(**clone(setting, safe=False))
    return model.fit(*rows)
