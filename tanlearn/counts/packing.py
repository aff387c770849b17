"""Packing of samples into 64-bit words for counting, and the number of useful threads.

Each value of a packed feature is a bit set over the samples. Samples are numbered class by class, and each class starts
at a new word. An AND and a popcount therefore count a pair of values within a class.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tanlearn._threads import in_blocks, number_of_threads
from tanlearn._typing import AnyArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.kernels.bits import number_samples

__all__ = ["WORDS_A_SAMPLE", "are_packed", "each_child", "number_bits", "worth_threads"]

#: Counting a word of 64 samples costs an eighth of counting a single sample (0.15 ns versus 1.25 ns). Adding the count
#: of words to a pair count costs as much as counting one sample.
WORDS_A_SAMPLE = 8
_CELL_COST = 8
#: Minimum cost for another thread: 1.3 ms, because starting two threads takes 0.2 ms.
_WORTH_A_THREAD = 2**20


def are_packed(data: EncodedData) -> AnyArray:
    """Return a mask (n_features,) of the features to pack: with few values, on the CPU, and without weights."""
    words = data.n_states**2 * (data.n_samples // 64 + _CELL_COST * data.n_classes)
    is_packed: AnyArray = (words <= WORDS_A_SAMPLE * data.n_samples) & (data.sample_weight is None)
    return is_packed & (data.device == "cpu")


def number_bits(y: IntArray, n_classes: int) -> tuple[IntArray, IntArray]:
    """Assign a bit index to each sample, class by class, with an even number of words per class.

    The words of class ``c`` are ``class_word[c]:class_word[c + 1]``; ``bit`` is the bit index of each sample.

    Shapes: y: (n_samples,); result class_word: (n_classes + 1,); result bit: (n_samples,).
    """
    class_word = np.append(0, np.cumsum(2 * -(-np.bincount(y, minlength=n_classes) // 128)))
    bit = np.empty(len(y), np.intp)
    number_samples(y, 64 * class_word[:-1], bit)
    return class_word, bit


def worth_threads(cost: int, n_jobs: int | None) -> int:
    """Return the number of threads for a cost, in units of counting one sample."""
    return min(number_of_threads(n_jobs), 1 + cost // _WORTH_A_THREAD)


def each_child(work: Callable[[int], None], n_features: int, cost: int, n_jobs: int | None) -> None:
    """Call ``work`` in threads for each feature except the first, starting with the last and most expensive one."""
    in_blocks(lambda first, _: work(n_features - 1 - first), n_features - 1, 1, worth_threads(cost, n_jobs))
