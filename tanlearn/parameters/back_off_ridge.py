"""Tables that back off: sums of terms with none, one and more parents, the deeper ones under a ridge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval

from tanlearn._typing import FloatArray
from tanlearn.data.encoded_data import EncodedData
from tanlearn.network.structures import Structure
from tanlearn.network.tables import TableLayout, Tables
from tanlearn.parameters.batch import BatchLearner
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood
from tanlearn.training.levels import Levels
from tanlearn.training.losses import ConditionalNLL, Loss, Margin
from tanlearn.training.optimizers import OptimizeOutcome, minimize_lbfgs

__all__ = ["BackOffRidge"]

#: What held-out rows choose from, where nothing is named. Of KDB-2 on the published letter, usps and satimage, test
#: errors were lowest with the margin, at 0.003, 0.003 and 0.03 (7.6, 3.2 and 8.3 %, after 20 to 60 iterations), and
#: with conditional likelihood at 0.3, 0.003 and any (8.1, 4.0 and 11.3 %).
RIDGES = (0.003, 0.03, 0.3)
LOSSES: tuple[Loss, ...] = (ConditionalNLL(), Margin())
#: How much dearer a term with one parent more is: it has as many times more numbers, about, each with fewer rows.
DEEPER = 10.0


class BackOffRidge(BatchLearner):
    """Tables of several parents whose rare combinations back off, learnt by gradient (in no paper).

    A table is a sum over the subsets of its parents, normalised: with two of them ``rho(x | y, p, q) = w(x, y) +
    w(x, p, y) + w(x, q, y) + w(x, p, q, y)``. The sum of the rows' losses is minimised together with
    ``ridge / 2 * (|w_1|^2 + 10 |w_2|^2 + 100 |w_3|^2 ...)``, where w_k are the terms with k parents; w(x, y) and the
    class prior are free. So a combination of parents that few rows have is as its parents are by themselves, where
    tables whose cells are learnt one by one err more the more parents they have. L-BFGS starts at naive Bayes.

    Parameters
    ----------
    ridge : float, optional
        From 0, as many squares as rows' losses. By default held-out rows choose among 0.003, 0.03 and 0.3.
    loss : Loss, optional
        Any loss. By default held-out rows choose between ``ConditionalNLL()`` and ``Margin()``.
    max_iter : int, optional
        Most iterations. By default, held-out rows choose their number, up to 100, as of :class:`~tanlearn.LBFGS`.
    tol : float, default=1e-6
        Stop when no entry of the mean loss's gradient is larger.
    alpha : float, default=1.0
        Smoothing of naive Bayes's frequencies at the start, positive.
    calibrate : bool, default=True
        Whether held-out rows, on folds or of a large table once a fifth, find a scale by which scores become
        probabilities.

    Attributes
    ----------
    ridge_ : float
        The ridge that was learnt with.
    loss_ : Loss
        The loss.
    n_iter_ : int
        Iterations that were done.
    calibration_ : Calibration
        How scores become probabilities; of temperature and power 1 without ``calibrate``.
    converged_ : bool
        Whether they ended because of ``tol``.
    history_ : list of float
        Mean loss of a row, its share of the ridge included, at the start and after every iteration.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import BackOffRidge, BayesNetClassifier
    >>> from tanlearn.baselines import KDependence
    >>> X, y = load_iris(return_X_y=True)
    >>> model = BayesNetClassifier(structure=KDependence(k=2), parameters=BackOffRidge()).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BatchLearner._parameter_constraints,
        "ridge": [None, Interval(Real, 0, None, closed="left")],
    }

    ridge_: float
    loss_: Loss

    def __init__(
        self,
        *,
        ridge: float | None = None,
        loss: Loss | None = None,
        max_iter: int | None = None,
        tol: float = 1e-6,
        alpha: float = 1.0,
        calibrate: bool = True,
    ) -> None:
        super().__init__(loss=loss, max_iter=max_iter, tol=tol, alpha=alpha, calibrate=calibrate)
        self.ridge = ridge

    def start(self, structure: Structure, data: EncodedData, rng: np.random.Generator) -> Tables:
        """Return naive Bayes as tables of the structure, where the search starts.

        Parameters
        ----------
        structure : Structure
            The augmenting parents.
        data : EncodedData
            Rows to count.
        rng : numpy.random.Generator
            Not used: there is nothing random.

        Returns
        -------
        Tables
        """
        plain = super().start(Structure.naive_bayes(data.n_features), data, rng)
        return _spread(plain, TableLayout.of_parents(structure.parents, data.n_states, data.n_classes))

    def _start_of_counts(self, layout: TableLayout, counts: FloatArray) -> Tables:
        """Return the same, of the counts of the structure's families."""
        levels, plain = Levels(layout), TableLayout.of_features(layout.n_states, layout.n_classes)
        sums = levels.pull_back(counts)[levels.depth == 0]
        return _spread(MaximumLikelihood(alpha=self.alpha).from_counts(plain, sums), layout)

    def _rivals(self) -> Sequence[BackOffRidge]:
        """Return what held-out rows choose from."""
        losses = LOSSES if self.loss is None else (self.loss,)
        ridges = RIDGES if self.ridge is None else (self.ridge,)
        return [clone(self).set_params(loss=loss, ridge=ridge) for loss in losses for ridge in ridges]

    def _take(self, rival: Any) -> None:
        """Learn with loss and ridge of what was chosen."""
        self.loss_, self.ridge_ = rival.loss, rival.ridge

    def _loss(self) -> Loss:
        """Return the loss that is named or was chosen; before any choice, the first."""
        if self.loss is not None:
            return self.loss
        chosen: Loss = getattr(self, "loss_", None) or LOSSES[0]
        return chosen

    def _minimizer(self, layout: TableLayout) -> Callable[..., OptimizeOutcome]:
        """Return what minimises over terms a function of cells, with the ridge."""
        levels = Levels(layout)
        ridge = getattr(self, "ridge_", RIDGES[1]) if self.ridge is None else self.ridge
        price = np.where(levels.depth > 0, ridge * DEEPER ** (levels.depth - 1.0), 0.0)

        def minimize(
            function: Callable[[FloatArray], tuple[float, FloatArray]],
            cells: FloatArray,
            *,
            max_iter: int,
            tol: float,
            callback: Callable[[FloatArray], Any],
        ) -> OptimizeOutcome:
            def of_numbers(numbers: FloatArray) -> tuple[float, FloatArray]:
                value, d_cells = function(levels.cells(numbers))
                pull = price * numbers
                return value + float((pull * numbers).sum()) / 2, levels.pull_back(d_cells) + pull

            outcome = minimize_lbfgs(
                of_numbers,
                levels.of_cells(cells),
                max_iter=max_iter,
                tol=tol,
                callback=lambda numbers: callback(levels.cells(numbers)),
            )
            return outcome._replace(x=levels.cells(outcome.x))

        return minimize


def _spread(plain: Tables, layout: TableLayout) -> Tables:
    """Return tables that say under all values of parents what those without parents say."""
    levels = Levels(layout)
    numbers = np.zeros(len(levels.depth))
    numbers[levels.depth == 0] = plain.cells
    return Tables(layout, levels.cells(numbers))
