"""Equations 12 to 14: weights of few bits and stochastic signs, with gradients that pass straight through.

Functions without a useful gradient are constants for JAX; a term with value 0 and the straight-through gradient is
added, so that values are exactly those of the equations.
"""

import jax.numpy as jnp
from jax.lax import stop_gradient


def n_steps(bits):
    """Return the number of steps of q (eq. 13)."""
    return 2.0**bits - 1


def quantize(w, steps):
    """Return the nearest of steps + 1 equidistant values from -1 to 1 (eqs. 12 and 13), with the gradient of w.

    Ties are rounded up, so that a single bit of 0 is 1, as in ``sign``.
    """
    v = (jnp.clip(stop_gradient(w), -1, 1) + 1) / 2
    return jnp.floor(steps * v + 0.5) / steps * 2 - 1 + _nothing(w)


def sign(a):
    """Return 1 for non-negative a, else -1."""
    return jnp.where(a >= 0, 1.0, -1.0).astype(a.dtype)


def stochastic_sign(a, u):
    """Return 1 if u, uniform on [0, 1], is at most (1 + a) / 2, else -1 (eq. 14), with the gradient of tanh."""
    return jnp.where(u <= (1 + stop_gradient(a)) / 2, 1.0, -1.0).astype(a.dtype) + _nothing(jnp.tanh(a))


def _nothing(x):
    """Return 0, with the gradient of x."""
    return x - stop_gradient(x)
