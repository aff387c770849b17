"""Optimizers that minimize a function of a vector, given its gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from tanlearn._threads import one_blas_thread
from tanlearn._typing import FloatArray
from tanlearn.kernels._backends import backend_of
from tanlearn.kernels._cuda import on_device
from tanlearn.training.history import Iteration, Stopwatch

__all__ = ["Adam", "OptimizeOutcome", "minimize_cg", "minimize_lbfgs", "require_finite"]


class Adam:
    """Adam as in TensorFlow, which produced the results of differentiable TAN (section 4.2).

    Step t changes x by ``-learning_rate sqrt(1 - beta2^t) / (1 - beta1^t) m / (sqrt(v) + epsilon)``. Epsilon is added
    to the root of the biased moment. It corresponds to "epsilon hat" of Kingma and Ba (2015, end of section 2), not to
    epsilon in their algorithm 1.

    The moments have the shape and dtype of ``x``, a float32 or float64 vector of shape (n,).
    """

    def __init__(
        self,
        x: FloatArray,
        *,
        learning_rate: float = 3e-3,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-7,
        device: str = "cpu",
    ) -> None:
        if x.ndim != 1 or x.dtype not in (np.float32, np.float64):
            raise ValueError(f"x must be a float32 or float64 vector, got shape {x.shape} and type {x.dtype}.")
        for name, value, legal, rule in (
            ("learning_rate", learning_rate, 0 <= learning_rate < math.inf, "at least 0 and finite"),
            ("beta1", beta1, 0 <= beta1 < 1, "from 0 to below 1"),
            ("beta2", beta2, 0 <= beta2 < 1, "from 0 to below 1"),
            ("epsilon", epsilon, 0 < epsilon < math.inf, "above 0 and finite"),
        ):
            if not legal:
                raise ValueError(f"{name} must be {rule}, got {value}.")
        # Bound on the change of each entry in early steps, at least 0; :meth:`step` may override it.
        self.learning_rate = learning_rate
        self.beta1 = beta1  # beta1, beta2: decay of the first and second moment, in [0, 1)
        self.beta2 = beta2
        self.epsilon = epsilon  # added to the root of the second moment, above 0
        # (n,) moving averages of the gradient and of its square. Values below 1.2e-38 are stored as 0.
        with on_device(device):
            self.m, self.v = (backend_of(device).empty(x.shape, x.dtype) for _ in range(2))
            self.m.fill(0)
            self.v.fill(0)
        # Device of x, gradients and moments. It is a name, not a backend, so that the optimizer can be pickled.
        self._device = device
        self.t = 0  # number of steps so far

    def step(self, x: FloatArray, gradient: FloatArray, learning_rate: float | None = None) -> None:
        """Update x (n,) in place with its gradient (n,). Both have the dtype of the moments.

        In this step, ``learning_rate`` replaces the default rate. Raises ValueError if a shape or dtype differs.
        """
        for name, array in (("x", x), ("gradient", gradient)):
            if array.shape != self.m.shape or array.dtype != self.m.dtype:
                raise ValueError(
                    f"{name} must have shape {self.m.shape} and type {self.m.dtype} like the moments, got "
                    f"{array.shape} and {array.dtype}. Create a new Adam for another vector."
                )
        rate = self.learning_rate if learning_rate is None else learning_rate
        step_size = float(self.advance(1, rate)[0])
        move = backend_of(self._device).kernels.adam_step
        with on_device(self._device):
            move(x, gradient, step_size, self.beta1, self.beta2, self.epsilon, self.m, self.v)

    def advance(self, n_steps: int, learning_rate: float) -> FloatArray:
        """Count steps that a fused kernel takes, and return their bias-corrected step sizes (n_steps,)."""
        t = np.arange(self.t + 1, self.t + n_steps + 1)
        self.t += n_steps
        return learning_rate * np.sqrt(1 - self.beta2**t) / (1 - self.beta1**t)


class OptimizeOutcome(NamedTuple):
    """Result of a minimization."""

    x: FloatArray  # (n,) best point
    fun: float  # value at x
    grad_norm: float  # largest absolute entry of the gradient at x
    n_iter: int
    converged: bool  # grad_norm <= tol, and the callback did not stop the search
    message: str  # reason for which the search ended
    history: list[Iteration]  # start and each iteration; ``loss`` is the value


def minimize_cg(
    fun: Callable[[FloatArray], tuple[float, FloatArray]],
    x0: FloatArray,
    *,
    max_iter: int = 100,
    tol: float = 1e-5,
    callback: Callable[[FloatArray], Any] | None = None,
) -> OptimizeOutcome:
    """Minimize by nonlinear conjugate gradients (Polak-Ribiere+) with a Wolfe line search, as in SciPy.

    This is the method of maximum margin, section 3.2. ``x0`` (n,) is not modified. ``callback(x)`` is called after each
    iteration. The search ends if no gradient entry exceeds ``tol``, or if the callback returns true. Raises ValueError
    if the value or gradient at x0 is not finite.
    """
    return _minimize("CG", {}, fun, x0, max_iter, tol, callback)


def minimize_lbfgs(
    fun: Callable[[FloatArray], tuple[float, FloatArray]],
    x0: FloatArray,
    *,
    max_iter: int = 100,
    tol: float = 1e-5,
    least_decrease: float = 0.0,
    callback: Callable[[FloatArray], Any] | None = None,
) -> OptimizeOutcome:
    """Minimize by L-BFGS, a quasi-Newton method based on the last ten steps, with the arguments of :func:`minimize_cg`.

    The search also ends if an iteration lowers the value by less than the fraction ``least_decrease``.
    """
    # With SciPy's defaults, the search would end before tol or max_iter, after a small relative gain or 15,000
    # evaluations.
    options = {"ftol": least_decrease, "maxfun": np.iinfo(np.int32).max}
    return _minimize("L-BFGS-B", options, fun, x0, max_iter, tol, callback)


def _minimize(
    method: Literal["CG", "L-BFGS-B"],
    options: dict[str, float],
    fun: Callable[[FloatArray], tuple[float, FloatArray]],
    x0: FloatArray,
    max_iter: int,
    tol: float,
    callback: Callable[[FloatArray], Any] | None,
) -> OptimizeOutcome:
    """Run one of SciPy's minimizers and convert its result."""
    from scipy.optimize import minimize

    start = np.array(x0, dtype=np.float64)
    if start.ndim != 1:
        raise ValueError(f"x0 must be a vector, got shape {start.shape}. Flatten it with ravel().")
    if max_iter < 1 or not tol >= 0:
        raise ValueError(f"max_iter must be at least 1 and tol at least 0, got {max_iter} and {tol}.")
    history: list[Iteration] = []
    stopwatch = Stopwatch()
    stopped = False

    def evaluate(x: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = fun(x)
        stopwatch.n_evaluations += 1
        if not history:
            require_finite(value, gradient)
            history.append(stopwatch.iteration(0, value))
        # The gradient is copied, because SciPy keeps a reference to it, but fun may reuse its array.
        return float(value), np.array(gradient, dtype=np.float64)

    def halt(intermediate_result: Any) -> None:  # SciPy passes the value only to a parameter of this name
        nonlocal stopped
        history.append(stopwatch.iteration(len(history), intermediate_result.fun))
        stopped = callback is not None and bool(callback(intermediate_result.x.copy()))
        if stopped:
            raise StopIteration

    limits: Any = {"maxiter": max_iter, "gtol": tol, **options}
    with one_blas_thread():
        result = minimize(evaluate, start, method=method, jac=True, callback=halt, options=limits)
    grad_norm = float(np.abs(result.jac).max(initial=0.0))
    message = "Stopped by the callback." if stopped else str(result.message)
    converged = not stopped and grad_norm <= tol
    return OptimizeOutcome(result.x, float(result.fun), grad_norm, int(result.nit), converged, message, history)


def require_finite(value: float, gradient: FloatArray) -> None:
    """Raise ValueError unless the value and the gradient at the start are finite."""
    n_wrong = np.count_nonzero(~np.isfinite(gradient))
    if n_wrong or not math.isfinite(value):
        raise ValueError(
            f"the loss and its gradient must be finite at the initial parameters. The loss is {value}, and {n_wrong} "
            f"of {np.size(gradient)} entries of the gradient are not finite. Start where no probability is zero, for "
            f"example with smoothed frequencies."
        )
