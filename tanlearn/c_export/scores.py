"""Scores of a classifier as C99 code. Scores are sums of integers, and the smallest sum is the most probable class."""

from __future__ import annotations

from typing import Protocol

from tanlearn._typing import Codes, IntArray
from tanlearn.c_export.text import CText

__all__ = ["CHECK", "PREDICT_CODES", "Scores"]

#: Beginning of a function that returns -1 for invalid codes.
CHECK = """    for (model_index i = 0; i < MODEL_N_FEATURES; ++i) {
        if (codes[i] >= @n_states@) {
            return -1;
        }
    }"""

PREDICT_CODES = """
/* Return the most probable class, the first one in case of a tie; -1 if a code is invalid. */
static inline int16_t model_predict_codes(const model_code *codes)
{
    model_sum sums[MODEL_N_CLASSES];
    model_index best = 0;
    if (model_sums(codes, sums) != 0) {
        return -1;
    }
    model_sum least = sums[0]; /* not sums[best], whose address AVR's compiler computes by a multiplication */
    for (model_index c = 1; c < MODEL_N_CLASSES; ++c) {
        if (sums[c] < least) {
            least = sums[c];
            best = c;
        }
    }
    return (int16_t)best;
}"""


class Scores(Protocol):
    """Sums of magnitudes per class, in C and in Python."""

    n_classes: int
    n_states: list[int]  # number of codes of each feature
    title: str  # description of the classifier, for a comment
    largest_sum: int
    n_code_arrays: int  # number of arrays on the stack with one code per feature

    def codes(self, codes: Codes) -> Codes:
        """Convert codes of the encoder to codes in C."""

    def sums(self, codes: Codes) -> IntArray:
        """Return the sums that the C code computes for complete rows.

        Shapes: codes: (n_features, n_rows), as in C; result: (n_rows, n_classes).
        """

    def add(self, text: CText, n_states: str, *, packed: bool) -> None:
        """Append the constants and ``model_sums``, which writes the sums of a row of codes, or returns -1.

        ``n_states`` is the C expression for the number of states of feature ``i``. If ``packed`` is true, magnitudes
        are stored bit by bit, and otherwise in whole bytes. Raises ValueError if the magnitudes have 2**32 bits or
        more.
        """
