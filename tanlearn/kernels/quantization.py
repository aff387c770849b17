"""Log-probabilities rounded to fixed-point numbers: q = -min(rint(-theta 2^B_F), 2^B - 1) 2^-B_F ([RE] eq. 11)."""
# Shapes: M cells; theta, rounded (M + LANES - 1 at least,): both are gone through in whole registers

from __future__ import annotations

from tanlearn.kernels._jit import kernel
from tanlearn.kernels._lanes import LANES, larger, load, nearest, splat, store, where_less


@kernel
def round_cells(theta, n_cells, step, most, rounded):  # type: ignore[no-untyped-def]
    """Write the first cells as multiples of ``step``, a power of two, up to ``most`` of them below zero."""
    per_step, step, most, zero = splat(-1.0 / step), splat(step), splat(most), splat(0.0)
    for j in range(0, n_cells, LANES):
        magnitude = nearest(load(theta, j) * per_step)
        magnitude = larger(where_less(magnitude, most, magnitude, most), zero)
        store(rounded, j, zero - magnitude * step)
