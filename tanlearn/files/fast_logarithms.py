"""Correctly rounded logarithms of short decimal fractions, in integers, ten times as fast as those of ``decimal``.

With m in [1, 2) and 2^b m = n, log(n 10^k) = log m + b log 2 + k log 10. A table has log c for c = 1 + i / 256, and
log(m / c) = log(1 + r) is a series in r < 1 / 256. All are integers in units of 2^-96.
"""

from __future__ import annotations

import decimal
import functools
from typing import NamedTuple

__all__ = ["fast_log"]

_BITS = 96
_UNIT = 1 << _BITS
#: 1/12, 1/11, ..., 1/2: the next term is less than 2^-107.
_SERIES = [_UNIT // n for n in range(12, 1, -1)]
#: Of the sum, in units of 2^-96: a few for the series and the table, b <= 96 for log 2, and the power of ten besides.
_ERROR = 128


class _Constants(NamedTuple):
    """Logarithms in units of 2^-96."""

    table: list[int]
    of_2: int
    of_10: int


def fast_log(n: int, power: int) -> float | None:
    """Return the logarithm of n 10^power, correctly rounded, if 96 bits suffice to round it."""
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
    """Return the constants, computed when they are first needed."""
    context = decimal.Context(prec=40)

    def logarithm(x: decimal.Decimal) -> int:
        return int(context.multiply(context.ln(x), decimal.Decimal(_UNIT)))

    table = [logarithm(decimal.Decimal(256 + i) / 256) for i in range(256)]
    return _Constants(table, logarithm(decimal.Decimal(2)), logarithm(decimal.Decimal(10)))
