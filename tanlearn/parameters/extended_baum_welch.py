"""Extended Baum-Welch: parameters of a fixed structure by multiplicative updates.

Pernkopf and Wohlmayr (On discriminative parameter learning of Bayesian network classifiers, ECML 2009) after
Gopalakrishnan, Kanevsky, Nadas and Nahamoo (IEEE Transactions on Information Theory 37, 1991); see also the
introduction of maximum margin 2012. With g, the derivative of the objective by a probability, distributions move by

    theta_i|h <- theta_i|h (g_i|h + D_h) / sum_l theta_l|h (g_l|h + D_h)

which raises the objective for every D_h that is large enough.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from tanlearn._typing import FloatArray
from tanlearn.network.tables import TableLayout
from tanlearn.parameters.batch import BatchLearner
from tanlearn.training.losses import ConditionalNLL
from tanlearn.training.optimizers import OptimizeOutcome

__all__ = ["ExtendedBaumWelch", "minimize_ebw"]

#: Log-probabilities may fall so low: exp(-x) is finite down to -709.
_LEAST = -700.0


class ExtendedBaumWelch(BatchLearner):
    """Extended Baum-Welch updates; no iteration lowers the conditional likelihood.

    Starts at the maximum-likelihood tables, like :class:`~tanlearn.ConjugateGradient`, and needs no line search
    along a direction: ``D_h`` is a multiple of ``1 + |min(0, min_i g_i|h)|``, as usual, and the multiple is
    doubled until the loss does not rise.

    Parameters
    ----------
    loss : Loss, optional
        Any loss; ``ConditionalNLL()`` by default, for which the method was made.
    max_iter : int, optional
        Most iterations. By default, held-out rows choose their number, up to 100: of those whose error is within a
        standard error of the least, the one that gives the classes the best probabilities. Few iterations regularise,
        so nothing warns of an end before convergence; ``converged_`` tells.
    tol : float, default=1e-6
        Stop when no entry of the mean loss's gradient is larger.
    alpha : float, default=1.0
        Smoothing of the maximum-likelihood start, positive: the start must be finite.
    calibrate : bool, default=True
        Whether held-out rows, on folds or of a large table once a fifth, find a scale by which scores become
        probabilities. All rows are learnt after that.

    Attributes
    ----------
    n_iter_ : int
        Iterations that were done.
    calibration_ : Calibration
        How scores become probabilities; of temperature and power 1 without ``calibrate``.
    converged_ : bool
        Whether they ended because of ``tol``.
    history_ : list of float
        Mean loss of a row at the start and after every iteration, weighted as in the search.

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
        """Return the updates, for the distributions that they need to know."""
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
    """Minimise a function of normalised distributions by extended Baum-Welch updates.

    Shapes: x0: (n_cells,).
    """
    distribution = layout.distributions()
    x = np.array(x0, dtype=np.float64)
    value, gradient = fun(x)
    history = [float(value)]
    multiple, n_iter, stopped = 2.0, 0, False
    while n_iter < max_iter and np.abs(gradient).max() > tol and not stopped and x.min() > _LEAST:
        # The gradient by x is theta (g - sum theta g). Its quotient by theta differs from g by one number in each
        # distribution, as good as added to D_h, and makes the denominator of the update D_h itself.
        g = -gradient * np.exp(-x)
        lowest = np.zeros(layout.n_cells)  # as many as cells is enough
        np.minimum.at(lowest, distribution, g)
        d = 1.0 - lowest[distribution]
        # Half of what the last iteration took; from 2 on no probability more than halves, so none reaches zero.
        multiple = max(multiple / 4, 2.0)
        new_value = np.inf
        while not new_value <= value and multiple < 1e15:  # beyond, rounding swallows the step
            candidate = x + np.log1p(g / (multiple * d))
            new_value, new_gradient = fun(candidate)
            multiple *= 2
        if not new_value <= value:
            break
        x, value, gradient = candidate, new_value, new_gradient
        n_iter += 1
        history.append(float(value))
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
    return OptimizeOutcome(x, history[-1], grad_norm, n_iter, not stopped and grad_norm <= tol, message, history)
