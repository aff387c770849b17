"""Rounding of log probabilities to fixed point: q = -min(rint(-theta 2^B_F), 2^B - 1) 2^-B_F ([RE] eq. 11)."""
# Shapes: M parameters; theta, rounded (at least M + LANES - 1,), because both are accessed in whole registers

from __future__ import annotations

from tanlearn.kernels._jit import kernel
from tanlearn.kernels._lanes import LANES, larger, load, nearest, splat, store, where_less


@kernel
def round_cells(theta, n_cells, step, most, rounded):  # type: ignore[no-untyped-def]
    """Write the first n_cells numbers rounded to multiples of ``step``, a power of two, from -most * step to 0."""
    per_step, step, most, zero = splat(-1.0 / step), splat(step), splat(most), splat(0.0)
    for j in range(0, n_cells, LANES):
        magnitude = nearest(load(theta, j) * per_step)
        magnitude = larger(where_less(magnitude, most, magnitude, most), zero)
        store(rounded, j, zero - magnitude * step)
