"""Correctly rounded logarithms of short decimal fractions by integer arithmetic, ten times as fast as by ``decimal``.

If n = 2^b m with m in [1, 2), then log(n 10^k) = log m + b log 2 + k log 10. A lookup table contains log c for c = 1 +
i / 256, and log(m / c) = log(1 + r) is computed by a series in r < 1 / 256. All numbers are integers in units of 2^-96.
"""

from __future__ import annotations

import decimal
import functools
from typing import NamedTuple

__all__ = ["fast_log"]

_BITS = 96
_UNIT = 1 << _BITS
#: Coefficients 1/12, 1/11, ..., 1/2 of the series. The next term would be less than 2^-107.
_SERIES = [_UNIT // n for n in range(12, 1, -1)]
#: Bound for the error of log m + b log 2, in units of 2^-96: a few units for series and table, and b <= 96 for log 2.
_ERROR = 128


class _Constants(NamedTuple):
    """Logarithms in units of 2^-96."""

    table: list[int]  # log(1 + i / 256), i = 0 ... 255
    of_2: int  # log 2
    of_10: int  # log 10


def fast_log(n: int, power: int) -> float | None:
    """Return the correctly rounded logarithm of n 10^power for 1 <= n <= 2^96, or None if 96 bits do not suffice.

    96 bits do not suffice if the sum is so close to the midpoint of two doubles that its error may affect the rounding.
    """
    table, of_2, of_10 = _constants()
    b = n.bit_length() - 1
    m = n << (_BITS - b)
    i = (m >> (_BITS - 8)) - 256
    r = (m << 8) // (256 + i) - _UNIT
    series = _SERIES[0]
    for term in _SERIES[1:]:
        series = term - (series * r >> _BITS)
    total = table[i] + b * of_2 + power * of_10 + r - ((r * r >> _BITS) * series >> _BITS)
    error = _ERROR + abs(power)
    low, high = (total - error) / _UNIT, (total + error) / _UNIT
    return low if low == high else None


@functools.cache
def _constants() -> _Constants:
    """Compute the constants on first use."""
    context = decimal.Context(prec=40)

    def logarithm(x: decimal.Decimal) -> int:
        return int(context.multiply(context.ln(x), decimal.Decimal(_UNIT)))

    table = [logarithm(decimal.Decimal(256 + i) / 256) for i in range(256)]
    return _Constants(table, logarithm(decimal.Decimal(2)), logarithm(decimal.Decimal(10)))
