"""Boosted terms with values that are few-bit integers times a power of two."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from tanlearn._typing import AnyArray, FloatArray
from tanlearn.models.boosted_terms import BoostedTerms
from tanlearn.models.quantization import MAX_BITS

__all__ = ["RoundedTerms", "check_terms_bits", "round_terms"]

#: Most fraction bits, so that integers of class priors have at most 31 bits.
_MAX_FRACTION_BITS = 20


class RoundedTerms(NamedTuple):
    """Boosted terms with class scores that are multiples of a step. Scores of the first class are 0."""

    terms: BoostedTerms
    step: float  # a power of two


def check_terms_bits(bits: int) -> None:
    """Raise ValueError if ``bits`` is not an integer from 2 to 16."""
    if isinstance(bits, bool) or not isinstance(bits, (int, np.integer)) or not 2 <= bits <= MAX_BITS:
        raise ValueError(f"bits must be an integer from 2 to {MAX_BITS}, got {bits!r}.")


def round_terms(terms: BoostedTerms, bits: int) -> RoundedTerms:
    """Round the differences between the scores of each class and the first class.

    For each term and class, the largest value minus the smallest value has at most ``bits`` bits. The step is the
    smallest possible power of two. Raises ValueError if a class has probability 0, or if ``bits`` is not from 2 to 16.
    """
    check_terms_bits(bits)
    impossible = np.flatnonzero(np.isneginf(terms.log_prior))
    if impossible.size:
        raise ValueError(
            f"every class must have a positive probability, because integers cannot represent the logarithm of 0, "
            f"but class {impossible[0]} (numbered from 0 to {len(terms.log_prior) - 1}) has probability 0. Give it a "
            f"positive probability, or leave the class out."
        )
    values = terms.values - terms.values[..., :1]
    is_cell = np.arange(values.shape[1]) < (1 << (terms.features >= 0).sum(axis=1))[:, np.newaxis]
    step = 2.0**-_MAX_FRACTION_BITS
    while _largest_range(np.rint(values / step), is_cell) >= 2**bits:
        step *= 2.0
    prior = step * np.rint((terms.log_prior - terms.log_prior[0]) / step)
    frequency = prior if np.array_equal(terms.log_prior, terms.log_frequency) else terms.log_frequency
    rounded = replace(terms, values=step * np.rint(values / step), log_prior=prior, log_frequency=frequency)
    return RoundedTerms(rounded, step)


def _largest_range(values: FloatArray, is_cell: AnyArray) -> float:
    """Return the largest difference between two cells of a term in a class, or 0 without terms."""
    own = is_cell[..., np.newaxis]
    highest = np.where(own, values, -np.inf).max(axis=1, initial=-np.inf)
    lowest = np.where(own, values, np.inf).min(axis=1, initial=np.inf)
    return float((highest - lowest).max(initial=0.0))
