"""One step of Adam on one table of normalised log-probabilities, in as few passes as possible.

* Normalisation does not see a constant added to a column, so unnormalised parameters need not be kept: Adam moves
  ``theta`` itself, and the logarithm of the sum of ``exp(theta)``, which is close to zero, is taken off again.
* Instead of Adam's first moment the ``direction`` m / (sqrt(v) + epsilon) is kept. A step without a gradient
  multiplies m by beta1 and v by beta2, hence the direction by the same number in all cells: a table that is not drawn
  moves along a direction that stays as it is, and its moments are neither read nor written. That number holds for
  epsilon = 0; where sqrt(v) is as small as epsilon (1e-7), a step is off by less than 0.05 % for every step
  since the last draw.
* No maximum is taken out of the sums, because a step is far shorter than the 88 nats at which exp overflows: that takes
  a learning rate above one.
* Columns are gone through a vector register at a time (_lanes.py).
"""
# Shapes: a table is k = n_values rows, [child value][parent value(s) x classes]; all arrays are (cells + LANES - 1,)
# at least, because the last columns are read, but not written, as whole registers

from __future__ import annotations

import numpy as np

from tanlearn.kernels._jit import kernel
from tanlearn.kernels._lanes import LANES, load, magnitude, multiply_add, root, splat, store, store_first, where_less
from tanlearn.kernels.adam import SMALLEST_MOMENT
from tanlearn.kernels.vector import exp_lanes, log_lanes

#: Slower directions are set to 0, so that no product with a step size is denormal.
SLOWEST = 1e-25


@kernel
def sweep_undrawn(direction, theta, width, n_values, way, shares):  # type: ignore[no-untyped-def]
    """Go some way along the direction, and normalise."""
    back = splat(-way)
    for j in range(0, width * n_values, LANES):  # straight through, as memory likes it; the rest is in cache
        store(shares, j, exp_lanes(multiply_add(back, load(direction, j), load(theta, j))))
    for j in range(0, width, LANES):
        total = splat(0.0)
        for x in range(n_values):
            total = total + load(shares, x * width + j)
        shift = log_lanes(total)
        for x in range(n_values):
            at = x * width + j
            store_first(theta, at, multiply_add(back, load(direction, at), load(theta, at)) - shift, width - j)


@kernel
def sweep_drawn(  # type: ignore[no-untyped-def]
    d_theta, direction, v, theta, width, n_values, n_undrawn, step_size, beta1, beta2, epsilon
):
    """Pull the gradient back through the normalisation, take an Adam step, and normalise.

    ``n_undrawn`` steps without a gradient have gone by since ``direction`` and ``v`` were written.
    """
    decay1, take1 = splat(np.float64(beta1) ** (n_undrawn + 1)), splat(1.0 - beta1)
    decay2, take2 = splat(np.float64(beta2) ** (n_undrawn + 1)), splat(1.0 - beta2)
    back, epsilon, zero = splat(-step_size), splat(epsilon), splat(0.0)
    slowest, smallest = splat(SLOWEST), splat(SMALLEST_MOMENT)
    for j in range(0, width, LANES):
        d_less, total = zero, zero
        for x in range(n_values):
            d_less = d_less - load(d_theta, x * width + j)
        for x in range(n_values):
            at = x * width + j
            before, second = load(theta, at), load(v, at)
            d_rho = multiply_add(exp_lanes(before), d_less, load(d_theta, at))
            first = multiply_add(decay1 * load(direction, at), root(second) + epsilon, take1 * d_rho)
            second = multiply_add(decay2, second, take2 * d_rho * d_rho)
            ahead = first / (root(second) + epsilon)
            moved = multiply_add(back, ahead, before)
            total = total + exp_lanes(moved)
            store_first(direction, at, where_less(magnitude(ahead), slowest, zero, ahead), width - j)
            store_first(v, at, where_less(second, smallest, zero, second), width - j)
            store_first(theta, at, moved, width - j)
        shift = log_lanes(total)
        for x in range(n_values):
            store_first(theta, x * width + j, load(theta, x * width + j) - shift, width - j)
