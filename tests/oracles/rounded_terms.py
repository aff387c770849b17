"""Boosted terms rounded to a few bits, by definition, and sums of their integers for rows without missing values.

Terms are dictionaries as in ``boosting``. The step is the smallest power of two from 2^-20 on, with which the integers
of no term and class have more than 2^bits different values from the smallest to the largest.
"""


def differences(term):
    """Return the values of each cell less that of the first class, by cell."""
    return {cell: [value - values[0] for value in values] for cell, (_, values) in term["cells"].items()}


def smallest_step(terms, bits):
    """Return the step of all terms."""
    exponent = -20
    while True:
        step = 2.0**exponent
        widest = 0
        for term in terms:
            rounded = [[round(value / step) for value in values] for values in differences(term).values()]
            for of_class in zip(*rounded, strict=True):
                widest = max(widest, max(of_class) - min(of_class))
        if widest < 2**bits:
            return step
        exponent += 1


def integer_scores(terms, row, prior, bits):
    """Return the integer score of each class of a complete row, in steps; 0 for the first class."""
    step = smallest_step(terms, bits)
    scores = [round((own - prior[0]) / step) for own in prior]
    for term in terms:
        cell = tuple(sides[row[feature]] for feature, sides in zip(term["features"], term["sides"], strict=True))
        scores = [a + round(value / step) for a, value in zip(scores, differences(term)[cell], strict=True)]
    return scores
