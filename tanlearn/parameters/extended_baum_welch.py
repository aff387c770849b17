"""Extended Baum-Welch: parameters for a fixed structure by multiplicative updates.

The method is from Pernkopf and Wohlmayr (On discriminative parameter learning of Bayesian network classifiers, ECML
2009), after Gopalakrishnan, Kanevsky, Nadas and Nahamoo (IEEE Transactions on Information Theory 37, 1991). See also
the introduction of maximum margin 2012. If g is the derivative of the objective with respect to a probability, the
update of a distribution is

    theta_i|h <- theta_i|h (g_i|h + D_h) / sum_l theta_l|h (g_l|h + D_h)

The update increases the objective for every sufficiently large D_h.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tanlearn._typing import FloatArray
from tanlearn.parameters.batch_gradient import BatchLearner
from tanlearn.structures.table_layout import TableLayout
from tanlearn.training.history import Stopwatch
from tanlearn.training.losses import ConditionalNLL
from tanlearn.training.optimizers import OptimizeOutcome

__all__ = ["ExtendedBaumWelch", "minimize_ebw"]

#: Lower limit of log-probabilities: exp(-x) is finite down to -709.
_LEAST = -700.0


class ExtendedBaumWelch(BatchLearner):
    """Extended Baum-Welch updates, which never decrease the conditional likelihood.

    The search starts from the maximum-likelihood CPTs, as in :class:`~tanlearn.ConjugateGradient`, but requires no line
    search along a direction. ``D_h`` is a multiple of ``1 + |min(0, min_i g_i|h)|``, as in other implementations. The
    multiple is doubled until the loss does not increase.

    Parameters
    ----------
    loss : Loss, optional
        Any loss. The default is ``ConditionalNLL()``, for which the method was derived.
    max_iter : int, optional
        Maximum number of iterations. By default, the number of iterations, at most 100, is selected on held-out rows.
        The selected number has the lowest log loss among all numbers with an error within one standard error of the
        lowest error. Few iterations reduce overfitting, so no warning is issued if the maximum is reached. See
        ``converged_``.
    tol : float, default=1e-6
        Training stops when all entries of the gradient of the mean loss are at most ``tol`` in absolute value.
    alpha : float, default=1.0
        Smoothing count of the maximum-likelihood start. It must be positive, so that the start is finite.
    calibrate : bool, default=True
        Whether to calibrate the predicted probabilities on held-out rows: cross-validation folds, or one fifth of the
        rows of large data. The final CPTs are fitted to all rows.
    epsilon : float, optional
        If it is set, training starts at unsmoothed frequencies with zeros replaced by this value, and ``alpha`` is not
        used. By default, training starts at frequencies smoothed by ``alpha``.

    Attributes
    ----------
    n_iter_ : int
        Number of iterations performed.
    calibration_ : Calibration
        Calibration of the predicted probabilities. Its temperature and power are 1 if ``calibrate`` is False.
    converged_ : bool
        Whether the search ended because of ``tol``.
    history_ : list of Iteration
        Mean loss per row at the start and after each iteration, weighted as in the search.

    References
    ----------
    Pernkopf, Wohlmayr: On discriminative parameter learning of Bayesian network classifiers. ECML 2009.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import ExtendedBaumWelch, NaiveBayesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NaiveBayesClassifier(parameters=ExtendedBaumWelch(max_iter=20)).fit(X, y)
    >>> bool(model.score(X, y) >= NaiveBayesClassifier().fit(X, y).score(X, y))
    True
    """

    default_loss = ConditionalNLL

    def _minimizer(self, layout: TableLayout) -> Callable[..., OptimizeOutcome]:
        """Return the Baum-Welch minimizer for the distributions of the layout."""
        return partial(minimize_ebw, layout=layout)


def minimize_ebw(
    fun: Callable[[FloatArray], tuple[float, FloatArray]],
    x0: FloatArray,
    *,
    layout: TableLayout,
    max_iter: int = 100,
    tol: float = 1e-5,
    callback: Callable[[FloatArray], Any] | None = None,
) -> OptimizeOutcome:
    """Minimize a function of normalized distributions by extended Baum-Welch updates.

    ``x0`` (n_cells,) contains finite log-probabilities and is not modified. ``fun`` returns the sum of the losses of
    all rows, because the 1 in ``D_h`` corresponds to one row, and a gradient whose sum over each distribution is zero.
    The search ends if no gradient entry exceeds ``tol``, or if the callback returns true.
    """
    distribution = layout.distributions()
    x = np.array(x0, dtype=np.float64)
    stopwatch = Stopwatch()
    value, gradient = fun(x)
    stopwatch.n_evaluations = 1
    history = [stopwatch.iteration(0, value)]
    multiple, n_iter, stopped = 2.0, 0, False
    while n_iter < max_iter and np.abs(gradient).max() > tol and not stopped and x.min() > _LEAST:
        # The gradient with respect to x is theta (g - sum theta g). Divided by theta, it differs from g by a constant
        # per distribution. This is equivalent to a change of D_h, and the denominator of the update is then D_h itself.
        g = -gradient * np.exp(-x)
        lowest = np.zeros(layout.n_cells)  # there are fewer distributions than cells
        np.minimum.at(lowest, distribution, g)
        d = 1.0 - lowest[distribution]
        # Start with half the multiple of the last iteration. If it is at least 2, probabilities at most halve, so they
        # do not reach zero.
        multiple = max(multiple / 4, 2.0)
        new_value = np.inf
        while not new_value <= value and multiple < 1e15:  # above, rounding errors exceed the step
            candidate = x + np.log1p(g / (multiple * d))
            new_value, new_gradient = fun(candidate)
            stopwatch.n_evaluations += 1
            multiple *= 2
        if not new_value <= value:
            break
        x, value, gradient = candidate, new_value, new_gradient
        n_iter += 1
        history.append(stopwatch.iteration(n_iter, value))
        stopped = callback is not None and bool(callback(x))
    grad_norm = float(np.abs(gradient).max())
    if stopped:
        message = "Stopped by the callback."
    elif grad_norm <= tol:
        message = "No entry of the gradient is larger than tol."
    elif x.min() <= _LEAST:
        message = "A probability is next to zero."
    else:
        message = "Reached max_iter." if n_iter == max_iter else "No multiple of D lowers the loss."
    return OptimizeOutcome(x, float(value), grad_norm, n_iter, not stopped and grad_norm <= tol, message, history)
