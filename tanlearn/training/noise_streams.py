"""Positions in the random number stream of a NumPy generator, from which CUDA draws the noise of an epoch."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["NoiseStream", "skip_uniform"]

_WORD = 2**64


class NoiseStream(NamedTuple):
    """Position in the stream of a PCG64 generator from which uniform float32 numbers are drawn."""

    # 128-bit state and increment of the generator, each in two halves of 64 bits
    state_high: int
    state_low: int
    increment_high: int
    increment_low: int
    is_held: int  # 1 if the generator has buffered half of a 64-bit word, otherwise 0
    held: int  # the buffered half


def skip_uniform(rng: np.random.Generator, n: int) -> NoiseStream | None:
    """Advance ``rng`` like ``rng.random(n, dtype=numpy.float32)``, and return its previous position.

    Returns None, without advancing, unless the generator is a PCG64, as in ``numpy.random.default_rng``.
    """
    source = rng.bit_generator
    if not isinstance(source, np.random.PCG64):
        return None
    state = source.state
    is_held = state["has_uint32"]
    halves = *divmod(state["state"]["state"], _WORD), *divmod(state["state"]["inc"], _WORD)
    start = NoiseStream(*halves, is_held, state["uinteger"])
    n_words = (n - is_held + 1) // 2
    if n_words:
        source.advance(n_words - 1)
        last = int(source.random_raw())
        state = source.state | {"uinteger": last >> 32}
    source.state = state | {"has_uint32": (n - is_held) % 2}
    return start
