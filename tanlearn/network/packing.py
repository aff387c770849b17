"""Which features are counted 64 samples at a time, where these stand, and how many threads that is worth."""

from __future__ import annotations

import numpy as np

from tanlearn._threads import number_of_threads
from tanlearn._typing import AnyArray, IntArray
from tanlearn.data.encoded_data import EncodedData
from tanlearn.kernels.bits import number_samples

__all__ = ["WORDS_A_SAMPLE", "are_packed", "number_bits", "worth_threads"]

#: A word of 64 samples of two values costs an eighth of counting one sample by itself (0.15 ns to 1.25 ns), and what
#: was counted in words costs as much as a sample for every cell that it is added to.
WORDS_A_SAMPLE = 8
_CELL_COST = 8
#: Samples, or what costs as much, that are worth a thread: 1.3 ms, as two take 0.2 ms to start.
_WORTH_A_THREAD = 2**20


def are_packed(data: EncodedData) -> AnyArray:
    """Return which features are counted in words of samples, against each other.

    Shapes: result: (n_features,).
    """
    words = data.n_states**2 * (data.n_samples // 64 + _CELL_COST * data.n_classes)
    is_packed: AnyArray = (words <= WORDS_A_SAMPLE * data.n_samples) & (data.sample_weight is None)
    return is_packed & (data.device == "cpu")


def number_bits(y: IntArray, n_classes: int) -> tuple[IntArray, IntArray]:
    """Return where samples stand in sets of bits: class by class, each in an even number of words of its own.

    Shapes: y: (n_samples,); result class_word: (n_classes + 1,); result bit: (n_samples,).
    """
    class_word = np.append(0, np.cumsum(2 * -(-np.bincount(y, minlength=n_classes) // 128)))
    bit = np.empty(len(y), np.intp)
    number_samples(y, 64 * class_word[:-1], bit)
    return class_word, bit


def worth_threads(cost: int, n_jobs: int | None) -> int:
    """Return how many threads are to share some work."""
    return min(number_of_threads(n_jobs), 1 + cost // _WORTH_A_THREAD)
