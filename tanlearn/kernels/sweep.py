"""One Adam step on one CPT of normalized log probabilities, in as few passes as possible.

* Normalization does not change if a constant is added to a column, so unnormalized parameters are not stored. Adam
  updates
  ``theta`` itself, and then the log of the sum of ``exp(theta)``, which is close to zero, is subtracted.
* Instead of Adam's first moment, the ``direction`` m / (sqrt(v) + epsilon) is stored. A step without a gradient
  multiplies m by beta1 and v by beta2, and hence the direction by the same factor in all entries. A CPT that is not
  drawn therefore moves along a constant direction, and its moments are neither read nor written. This factor is exact
  for epsilon = 0. If sqrt(v) is as small as epsilon (1e-7), a step is wrong by less than 0.05 % for each step since the
  last draw.
* Sums of exponentials are computed without subtraction of the maximum, because a step is far shorter than the 88 nats
  at which exp overflows, unless the learning rate is above one.
* Columns are processed one vector register at a time (_lanes.py). If a CPT has fewer columns than a register has lanes,
  as with two classes and few parent values, a register of columns would have unused lanes. Exponentials and moments are
  then computed for registers of consecutive numbers of several rows, and the numbers of a column are repeated in
  ``repeated``. The operations on each number and their order are the same, so the results have equal bits.
"""
# Shapes: a CPT has k = n_values rows, [child value][parent value(s) x classes]; all arrays have at least LANES - 1 more
# numbers than the CPT, because the last columns are read, but not written, as whole registers; probabilities have
# SWEEP_SCRATCH more

from __future__ import annotations

import numpy as np

from tanlearn.kernels._jit import kernel, shared_kernel
from tanlearn.kernels._lanes import LANES, load, magnitude, multiply_add, root, splat, store, store_first, where_less
from tanlearn.kernels.adam import SMALLEST_MOMENT
from tanlearn.kernels.vector import exp_lanes, log_lanes

#: Directions of smaller magnitude are set to 0, so that no product with a step size is denormal.
SLOWEST = 1e-25
#: Numbers beyond those of the CPT in ``probabilities``: the rest of a register, and repeated columns.
SWEEP_SCRATCH = 4 * LANES


@kernel
def repeat_columns(columns, width, repeated):  # type: ignore[no-untyped-def]
    """Write the first ``width`` lanes repeatedly, so that a register of them can begin with any column."""
    for j in range(0, width + LANES - 1, width):
        store(repeated, j, columns)


@kernel
def sum_columns(table, width, n_values):  # type: ignore[no-untyped-def]
    """Return the sums of the columns of a CPT with at most LANES columns; other lanes are undefined."""
    total = splat(0.0)
    for x in range(n_values):
        total = total + load(table, x * width)
    return total


@kernel
def sweep_undrawn(direction, theta, width, n_values, distance, probabilities):  # type: ignore[no-untyped-def]
    """Move theta by ``distance`` along the direction, and normalize."""
    back = splat(-distance)
    for j in range(0, width * n_values, LANES):  # sequential memory access; the other loops read from cache
        store(probabilities, j, exp_lanes(multiply_add(back, load(direction, j), load(theta, j))))
    if width < LANES:
        n_cells = width * n_values
        repeated = probabilities[n_cells + LANES :]
        repeat_columns(log_lanes(sum_columns(probabilities, width, n_values)), width, repeated)
        column, step = 0, LANES % width
        for j in range(0, n_cells, LANES):
            moved = multiply_add(back, load(direction, j), load(theta, j))
            store_first(theta, j, moved - load(repeated, column), n_cells - j)
            column += step
            if column >= width:
                column -= width
        return
    for j in range(0, width, LANES):
        total = splat(0.0)
        for x in range(n_values):
            total = total + load(probabilities, x * width + j)
        shift = log_lanes(total)
        for x in range(n_values):
            at = x * width + j
            store_first(theta, at, multiply_add(back, load(direction, at), load(theta, at)) - shift, width - j)


@shared_kernel
def sweep_drawn(  # type: ignore[no-untyped-def]
    d_theta, direction, v, theta, width, n_values, n_undrawn, step_size, beta1, beta2, epsilon, probabilities
):
    """Apply the adjoint of the normalization to the gradient, take an Adam step, and normalize.

    ``n_undrawn`` is the number of steps without a gradient since ``direction`` and ``v`` were written.
    """
    decay1, take1 = splat(np.float64(beta1) ** (n_undrawn + 1)), splat(1.0 - beta1)
    decay2, take2 = splat(np.float64(beta2) ** (n_undrawn + 1)), splat(1.0 - beta2)
    back, epsilon, zero = splat(-step_size), splat(epsilon), splat(0.0)
    slowest, smallest = splat(SLOWEST), splat(SMALLEST_MOMENT)
    if width < LANES:
        d_less, n_cells = zero, width * n_values
        for x in range(n_values):
            d_less = d_less - load(d_theta, x * width)
        repeated = probabilities[n_cells + LANES :]
        repeat_columns(d_less, width, repeated)
        column, step = 0, LANES % width
        for j in range(0, n_cells, LANES):
            before, second = load(theta, j), load(v, j)
            d_rho = multiply_add(exp_lanes(before), load(repeated, column), load(d_theta, j))
            first = multiply_add(decay1 * load(direction, j), root(second) + epsilon, take1 * d_rho)
            second = multiply_add(decay2, second, take2 * d_rho * d_rho)
            ahead = first / (root(second) + epsilon)
            moved = multiply_add(back, ahead, before)
            store(probabilities, j, exp_lanes(moved))
            store_first(direction, j, where_less(magnitude(ahead), slowest, zero, ahead), n_cells - j)
            store_first(v, j, where_less(second, smallest, zero, second), n_cells - j)
            store_first(theta, j, moved, n_cells - j)
            column += step
            if column >= width:
                column -= width
        repeat_columns(log_lanes(sum_columns(probabilities, width, n_values)), width, repeated)
        column = 0
        for j in range(0, n_cells, LANES):
            store_first(theta, j, load(theta, j) - load(repeated, column), n_cells - j)
            column += step
            if column >= width:
                column -= width
        return
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
