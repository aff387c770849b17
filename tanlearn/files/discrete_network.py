"""Networks of discrete variables in a form shared by all interchange formats, and exact logarithms of decimals.

Files contain probabilities as decimal fractions, but models contain logarithms. In one of ten cases, the logarithm of
the double nearest to exp(x) is not x. In addition, exp(x) underflows for x < -745. :func:`text_of` therefore writes as
many digits of exp(x) as are needed to distinguish x from other doubles, usually 17. :func:`log_of` rounds the logarithm
of such a fraction correctly on every machine. Other programs round the fractions to doubles.
"""

from __future__ import annotations

import decimal
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tanlearn._typing import FloatArray
from tanlearn.files.fast_logarithms import fast_log

__all__ = [
    "DecimalStrings",
    "Definition",
    "Logarithms",
    "Network",
    "Variable",
    "cpt_shape",
    "log_of",
    "normalize",
    "text_of",
    "unique",
]

#: Maximum number of entries in one CPT, and of entries that are given only by defaults in all CPTs: 128 MB.
LARGEST_NETWORK = 2**24
#: Maximum number of CPT entries in a classifier: 512 MB. Entries are repeated for each class if the class is not a
#: parent.
LARGEST_MODEL = 2**26
#: Maximum number of parents of a variable. CPTs with more parents are too large, unless parents have a single state.
MOST_PARENTS = 30
#: Largest deviation of a sum of probabilities from 1 that is accepted as a rounding error. Files of well-known networks
#: have deviations of up to 0.001.
LARGEST_ERROR = 0.01
#: Deviations up to this limit come from logarithms in double precision, and are not corrected.
ROUNDING = 1e-9
#: Decimal string with up to 400 digits, because 1 - 1e-300 has 300 digits.
_NUMBER = re.compile(r"\+?(?=\.?[0-9])([0-9]{0,400})\.?([0-9]{0,400})(?:[eE]([+-]?[0-9]{1,6}))?")
_LOGARITHM = decimal.Context(prec=25, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)


class Variable(NamedTuple):
    """Discrete variable of a network."""

    name: str
    states: tuple[str, ...]  # distinct names of the states
    note: str | None  # value of tanlearn's own property, if tanlearn wrote the file
    position: str  # position of the declaration in messages, such as "line 3"


class Definition(NamedTuple):
    """Distribution of a variable given its parents."""

    parents: tuple[str, ...]  # names
    log_table: FloatArray  # log probabilities (states of 1st parent, states of 2nd parent ..., states of the variable)


class Network(NamedTuple):
    """Variables and their distributions."""

    variables: dict[str, Variable]  # by name, in the order of the file
    definitions: dict[str, Definition]  # by the name of the variable


def log_of(text: str) -> float:
    """Return the correctly rounded logarithm of a probability given as a decimal string of up to 400 digits.

    Raises ValueError if the string is not a number from 0 to 1.01. Probabilities above 1 may be due to rounding.
    """
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise ValueError(f"expected a probability, a decimal number from 0 to 1, found {text[:40]!r}.")
    whole, fraction, exponent = found.groups()
    digits, power = (whole + fraction).lstrip("0"), int(exponent or 0) - len(fraction)
    if not digits:
        return -math.inf
    if len(digits) + power <= 0 and len(digits) <= 28 and power > -1000:  # below 1
        rounded = fast_log(int(digits), power)
        if rounded is not None:
            return rounded
    probability = decimal.Decimal(text)
    if probability > 1 + LARGEST_ERROR:
        raise ValueError(f"a probability must be between 0 and 1, got {text[:40]}.")
    return float(_LOGARITHM.ln(probability))


class Logarithms(dict[str, float]):
    """Cache of the logarithms of decimal strings, because most numbers occur several times in a file."""

    def __missing__(self, text: str) -> float:
        self[text] = found = log_of(text)
        return found

    def of(self, words: Sequence[str]) -> FloatArray:
        """Return the logarithms (len(words),) of several strings (see :func:`log_of`)."""
        return np.fromiter(map(self.__getitem__, words), np.float64, len(words))


def text_of(log_probability: float) -> str:
    """Return a decimal string whose logarithm :func:`log_of` rounds to exactly this number."""
    if log_probability == -math.inf:
        return "0.0"
    text, digits = repr(math.exp(log_probability)), 18
    if log_of(text) != log_probability:
        digits -= min(0, math.floor(math.log10(abs(log_probability))))
        context = decimal.Context(prec=digits, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
        text = str(context.exp(decimal.Decimal(log_probability))).lower()
    return text


class DecimalStrings(dict[float, str]):
    """Cache of the decimal strings of logarithms, as returned by :func:`text_of`."""

    def __missing__(self, log_probability: float) -> str:
        self[log_probability] = text = text_of(log_probability)
        return text


def unique(names: Sequence[str], what: str) -> tuple[str, ...]:
    """Return the names as a tuple. Raise ValueError if there is no name, or if a name is empty or occurs twice."""
    if not names or not all(names):
        raise ValueError(f"{what} must have one or more nonempty names.")
    if len({*names}) < len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"{what} must be distinct, but {twice!r} occurs twice.")
    return tuple(names)


def cpt_shape(variables: dict[str, Variable], child: str, parents: Sequence[str]) -> tuple[int, ...]:
    """Return the shape of the CPT of a variable: the number of states of each parent, then of the variable.

    Raises ValueError if a variable is not declared or occurs twice, or if the CPT would be too large.
    """
    for name in unique([*parents, child], "a variable and its parents"):
        if name not in variables:
            known = ", ".join([*variables][:10])
            raise ValueError(
                f"variables must be declared, but {name!r} is not (the first variables are {known}). "
                f"Declare it, or correct the name."
            )
    if len(parents) > MOST_PARENTS:
        raise ValueError(f"it must have at most {MOST_PARENTS} parents, got {len(parents)}. Remove parents.")
    shape = tuple(len(variables[name].states) for name in (*parents, child))
    if math.prod(shape) > LARGEST_NETWORK:
        raise ValueError(
            f"its table must have at most {LARGEST_NETWORK} numbers, got {math.prod(shape)}. Remove parents."
        )
    return shape


def normalize(log_table: FloatArray) -> FloatArray:
    """Normalize distributions whose sums differ from 1 by more than 1e-9. A difference above 0.01 raises ValueError.

    Shapes: log_table: (..., n_states), not modified; result: the same.
    """
    total = np.exp(log_table).sum(axis=-1, keepdims=True)
    error = np.abs(total - 1)
    if not (error <= LARGEST_ERROR + ROUNDING).all():  # 3 * 0.33 differs from 1 by slightly more than 0.01
        worst = int(error.argmax())
        raise ValueError(
            f"the probabilities must sum to 1, but distribution {worst + 1} of {error.size} sums to "
            f"{total.ravel()[worst]:.6g}. Correct this distribution."
        )
    return np.where(error > ROUNDING, log_table - np.log(total), log_table)
