"""Where the noise of an epoch comes from, so that CUDA can draw it: a place in the stream of NumPy's generator."""

from __future__ import annotations

import numpy as np

from tanlearn._typing import AnyArray

__all__ = ["skip_uniform"]

_WORD = 2**64


def skip_uniform(rng: np.random.Generator, n: int) -> AnyArray | None:
    """Skip what ``rng.random(n, dtype=numpy.float32)`` would draw, and return where that begins.

    Parameters
    ----------
    rng : numpy.random.Generator
        Left as it would be after drawing.
    n : int
        How many numbers, at least 1.

    Returns
    -------
    ndarray of shape (6,), uint64, or None
        State and increment, the high half of each first, whether half a word is held from before (0 or 1), and that
        half. None, and nothing is skipped, unless the generator is a PCG64, as that of ``numpy.random.default_rng`` is.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn.training.noise_streams import skip_uniform
    >>> rng, other = np.random.default_rng(0), np.random.default_rng(0)
    >>> start, _ = skip_uniform(rng, 5), other.random(5, dtype=np.float32)
    >>> rng.bit_generator.state == other.bit_generator.state
    True
    """
    source = rng.bit_generator
    if not isinstance(source, np.random.PCG64):
        return None
    state = source.state
    held = state["has_uint32"]
    halves = [half for name in ("state", "inc") for half in divmod(state["state"][name], _WORD)]
    start = np.array([*halves, held, state["uinteger"]], np.uint64)
    n_words = (n - held + 1) // 2
    if n_words:
        source.advance(n_words - 1)
        last = int(source.random_raw())
        state = source.state | {"uinteger": last >> 32}
    source.state = state | {"has_uint32": (n - held) % 2}
    return start
