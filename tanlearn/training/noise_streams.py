"""Where the noise of an epoch comes from, so that CUDA can draw it: a position in the stream of NumPy's generator."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

__all__ = ["NoiseStream", "skip_uniform"]

_WORD = 2**64


class NoiseStream(NamedTuple):
    """A place in the stream of a PCG64: uniform float32 numbers are drawn from there on."""

    # state_high, state_low, increment_high, increment_low: State and increment of the generator, in halves of 64 bits
    state_high: int
    state_low: int
    increment_high: int
    increment_low: int
    is_held: int  # 1 if half a word is held from before, else 0
    held: int  # That half


def skip_uniform(rng: np.random.Generator, n: int) -> NoiseStream | None:
    """Skip what ``rng.random(n, dtype=numpy.float32)`` would draw, and return where that begins."""
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
