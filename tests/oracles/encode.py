"""Slow and obvious encoding: one cell after the other, by dictionaries and by counting cuts."""

import bisect
import math


def is_missing(value):
    return value is None or (isinstance(value, float) and math.isnan(value))


def categories(values):
    """Return the distinct values, sorted."""
    return sorted({value for value in values if not is_missing(value)})


def look_up(values, known, missing):
    """Return the number of every value among the known ones."""
    number = {value: code for code, value in enumerate(known)}
    return [missing if is_missing(value) else number.get(value, missing) for value in values]


def count_cuts_below(values, cuts, missing):
    """Return how many cuts every value exceeds, as a double."""
    return [missing if is_missing(value) else bisect.bisect_left(cuts, float(value)) for value in values]


def means(values, codes, weights, n_states, missing):
    """Return the weighted mean of the values in every state, nan where there is none."""
    found = []
    for state in range(n_states):
        rows = [row for row, code in enumerate(codes) if code == state and code != missing]
        total = math.fsum(weights[row] for row in rows)
        found.append(math.fsum(values[row] * weights[row] for row in rows) / total if total else math.nan)
    return found
