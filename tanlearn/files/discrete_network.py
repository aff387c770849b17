"""Networks of discrete variables as files of other programs describe them, whatever the syntax.

Files hold probabilities as decimal fractions, models hold logarithms. A probability that is the double nearest to
exp(x) does not give x back in one of ten cases, and nothing of it where x < -745. So :func:`text_of` writes as many
digits as tell x from other doubles, 17 mostly, and :func:`log_of` rounds the logarithm of that fraction correctly,
on every machine. Programs that read doubles round what they read.
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
    "Definition",
    "Logarithms",
    "Network",
    "Texts",
    "Variable",
    "log_of",
    "look_up",
    "normalize",
    "text_of",
    "unique",
]

#: Numbers of one table, and numbers of all tables that defaults stand for without being spelled out: 128 MB.
LARGEST_NETWORK = 2**24
#: Numbers of all tables of a classifier, repeated for every class where the class is no parent: 512 MB.
LARGEST_MODEL = 2**26
#: Of a variable. Tables of more parents have too many numbers, unless parents have one state only.
MOST_PARENTS = 30
#: Sums of probabilities that miss 1 by more are no rounding. Files of the well-known networks miss it by up to 0.001.
LARGEST_ERROR = 0.01
#: Sums that miss it by less come from logarithms in double precision, and stay as they are.
ROUNDING = 1e-9
#: 400 digits, because 1 - 1e-300 takes 300.
_NUMBER = re.compile(r"\+?(?=\.?[0-9])([0-9]{0,400})\.?([0-9]{0,400})(?:[eE]([+-]?[0-9]{1,6}))?")
_LOGARITHM = decimal.Context(prec=25, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)


class Variable(NamedTuple):
    """A variable and its states."""

    name: str  # Its name
    states: tuple[str, ...]  # The names of its states, all different
    note: str | None  # What tanlearn noted about it, if tanlearn wrote the file
    place: str  # Where it is declared, for messages


class Definition(NamedTuple):
    """The distribution of a variable given its parents."""

    parents: tuple[str, ...]  # Their names
    log_table: FloatArray  # (states of 1st parent, states of 2nd parent ..., states of the variable): Log-probabilities


class Network(NamedTuple):
    """Variables and their distributions."""

    variables: dict[str, Variable]  # By their names, in the order of the file
    definitions: dict[str, Definition]  # By the names of the variables


def log_of(text: str) -> float:
    """Return the logarithm of a decimal fraction, correctly rounded."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise ValueError(f"{text[:40]!r} stands where a probability belongs: a decimal number from 0 to 1.")
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
        raise ValueError(f"{text[:40]} is no probability: it must lie between 0 and 1.")
    return float(_LOGARITHM.ln(probability))


class Logarithms(dict[str, float]):
    """Logarithms of decimal fractions by their texts, each computed once, as files repeat most of their numbers."""

    def __missing__(self, text: str) -> float:
        self[text] = found = log_of(text)
        return found

    def of(self, words: Sequence[str]) -> FloatArray:
        """Return the logarithms of several fractions, as :func:`log_of` does.

        Shapes: result: (len(words).
        """
        return np.fromiter(map(self.__getitem__, words), np.float64, len(words))


def text_of(log_probability: float) -> str:
    """Return a decimal fraction whose logarithm :func:`log_of` rounds to exactly this number."""
    if log_probability == -math.inf:
        return "0.0"
    text, digits = repr(math.exp(log_probability)), 18
    if log_of(text) != log_probability:
        digits -= min(0, math.floor(math.log10(abs(log_probability))))
        context = decimal.Context(prec=digits, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
        text = str(context.exp(decimal.Decimal(log_probability))).lower()
    return text


class Texts(dict[float, str]):
    """Decimal fractions by their logarithms, as :func:`text_of` returns them, each computed once."""

    def __missing__(self, log_probability: float) -> str:
        self[log_probability] = text = text_of(log_probability)
        return text


def unique(names: Sequence[str], what: str) -> tuple[str, ...]:
    """Return names after checking that there are some, and none twice."""
    if not names or not all(names):
        raise ValueError(f"{what} must have names, at least one.")
    if len({*names}) < len(names):
        seen: set[str] = set()
        twice = next(name for name in names if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"{what} must differ, but {twice!r} stands twice.")
    return tuple(names)


def look_up(variables: dict[str, Variable], child: str, parents: Sequence[str]) -> tuple[int, ...]:
    """Return the shape of the table of a variable, after checking that all of it exists."""
    for name in unique([*parents, child], "a variable and its parents"):
        if name not in variables:
            known = ", ".join([*variables][:10])
            raise ValueError(f"{name!r} is not declared; the first variables are {known}. Declare it, or correct it.")
    if len(parents) > MOST_PARENTS:
        raise ValueError(f"it has {len(parents)} parents, more than {MOST_PARENTS}. Remove some.")
    shape = tuple(len(variables[name].states) for name in (*parents, child))
    if math.prod(shape) > LARGEST_NETWORK:
        raise ValueError(f"its table has {math.prod(shape)} numbers, more than {LARGEST_NETWORK}. Remove parents.")
    return shape


def normalize(log_table: FloatArray) -> FloatArray:
    """Return the table with distributions that sum to one, where the file has rounded them.

    Shapes: log_table: (..., n_states).
    """
    total = np.exp(log_table).sum(axis=-1, keepdims=True)
    error = np.abs(total - 1)
    if not (error <= LARGEST_ERROR + ROUNDING).all():  # three times 0.33 miss it by 0.01 and a bit
        worst = int(error.argmax())
        raise ValueError(
            f"the probabilities must sum to 1, but number {worst + 1} of its {error.size} distributions sums to "
            f"{total.ravel()[worst]:.6g}. Correct it."
        )
    return np.where(error > ROUNDING, log_table - np.log(total), log_table)
