"""Isotonic regression by its formula of minima and maxima."""


def isotonic_regression(values, weights):
    """Return the non-decreasing fit: the maximum over starts of the minimum over ends of weighted means around i."""
    n = len(values)

    def mean(first, last):
        total = sum(weights[first : last + 1])
        return sum(v * w for v, w in zip(values[first : last + 1], weights[first : last + 1], strict=True)) / total

    return [max(min(mean(first, last) for last in range(i, n)) for first in range(i + 1)) for i in range(n)]
