"""Exact samples of discrete Laplace and Gaussian distributions, computed from random bits and integers only.

Floating-point Laplace noise is unsafe: its low-order bits reveal the number to which it is added (Mironov 2012, "On
significance of the least significant bits for differential privacy"). Here, every probability is a fraction of
integers, and every decision compares a uniform random integer with an integer. The algorithms are from Canonne, Kamath
and Steinke 2020, "The discrete Gaussian for differential privacy".
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt
from random import Random, SystemRandom

__all__ = ["ExactSampler"]


class ExactSampler:
    """Sampler of integer noise.

    Without a seed, random bits come from the operating system (``os.urandom``), which provides a cryptographic
    generator. With a seed, they come from the Mersenne Twister, which is reproducible but not secret.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._bits = (SystemRandom() if seed is None else Random(seed)).getrandbits

    def below(self, n: int) -> int:
        """Return a uniform integer from 0 to n - 1."""
        width = (n - 1).bit_length()
        while (found := self._bits(width)) >= n:
            pass
        return found

    def is_below_exp(self, numerator: int, denominator: int) -> bool:
        """Return True with probability exp(-numerator / denominator), for a nonnegative fraction (algorithm 1)."""
        while numerator > denominator:  # exp(-g) is exp(-1) exp(-(g - 1))
            if not self.is_below_exp(1, 1):
                return False
            numerator -= denominator
        # The first k with no success of probability g / k is odd with probability exp(-g).
        k = 1
        while self.below(denominator * k) < numerator:
            k += 1
        return k % 2 == 1

    def laplace(self, scale: Fraction) -> int:
        """Return a sample with P(x) proportional to exp(-abs(x) / scale) (algorithm 2)."""
        t, s = scale.numerator, scale.denominator
        while True:
            remainder = self.below(t)
            if not self.is_below_exp(remainder, t):
                continue
            quotient = 0
            while self.is_below_exp(1, 1):
                quotient += 1
            size = (remainder + t * quotient) // s
            if self._bits(1):
                return size
            if size:  # otherwise, 0 would be drawn with both signs, and thus twice as often
                return -size

    def gaussian(self, variance: Fraction) -> int:
        """Return a sample with P(x) proportional to exp(-x ** 2 / (2 variance)) (algorithm 3).

        The variance of the samples is at most ``variance``, and nearly equal to it if ``variance`` is at least 1.
        """
        a, b = variance.numerator, variance.denominator
        t = isqrt(a // b) + 1
        scale = Fraction(t)
        while True:
            found = self.laplace(scale)
            # Accepted with probability exp(-(abs(x) - variance / t) ** 2 / (2 variance)).
            if self.is_below_exp((abs(found) * b * t - a) ** 2, 2 * a * b * t * t):
                return found
