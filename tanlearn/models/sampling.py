"""Ancestral sampling of rows from a fitted network."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, codes_dtype, missing_code
from tanlearn.models.elimination import Eliminator
from tanlearn.models.log_joint import log_joint
from tanlearn.models.tables import Tables
from tanlearn.structures.structures import Structure

__all__ = ["read_classes", "refuse_cycle", "sample"]

#: Rows that are drawn per block, if CPTs are not normalized: 13 MB of codes with 784 features.
_BLOCK = 2**14


def sample(
    tables: Tables, structure: Structure, n_samples: int, rng: np.random.Generator, *, y: Any = None
) -> tuple[Codes, IntArray]:
    """Draw rows from the model by ancestral sampling: the class first, then parents before their children.

    The classes are drawn from the prior unless ``y`` (n_samples,) contains class codes. A cycle, or an invalid ``y``,
    raises ValueError.

    Shapes: result codes: (n_features, n_samples), without missing values; result y: (n_samples,).
    """
    refuse_cycle(structure, "drawn from")
    layout = tables.layout
    if not tables.is_normalized:
        return _sample_rounded(tables, structure, n_samples, rng, y)
    if y is None:
        classes = _draw(tables.log_prior[:, np.newaxis], np.zeros(n_samples, np.intp), rng)
    else:
        classes = read_classes(y, n_samples, layout.n_classes)
    codes: Codes = np.empty((len(tables), n_samples), codes_dtype(int(layout.n_states.max())))
    for i in structure.order.tolist():
        codes[i] = _draw(*tables.conditional(i, codes, classes), rng)
    return codes, classes


def _sample_rounded(
    tables: Tables, structure: Structure, n_samples: int, rng: np.random.Generator, y: Any
) -> tuple[Codes, IntArray]:
    """Draw rows from CPTs that are not normalized.

    Ancestral sampling would draw from a different distribution, so empty rows are completed by random draws.
    """
    layout = tables.layout
    dtype = codes_dtype(int(layout.n_states.max()))
    codes: Codes = np.full((len(tables), n_samples), missing_code(dtype), dtype)
    if y is None:
        log_classes = log_joint(tables, structure, codes[:, :1], is_exact=True).T
        classes = _draw(log_classes, np.zeros(n_samples, np.intp), rng)
    else:
        classes = read_classes(y, n_samples, layout.n_classes)
    eliminator = Eliminator(structure, layout, is_normalized=False)
    for first in range(0, n_samples, _BLOCK):
        rows = np.arange(first, min(first + _BLOCK, n_samples))
        drawn = eliminator.sample(codes, rows, tables.cells, rng)
        codes[:, rows] = drawn[:, np.arange(len(rows)), classes[rows]]
    return codes, classes


def _draw(table: FloatArray, column: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw one value per sample from its column of a table of log probabilities (n_values, n_columns)."""
    bounds = np.exp(table).cumsum(axis=0)
    bounds /= bounds[-1]  # so that the last is exactly 1, and values of probability 0 are never drawn
    uniform = rng.random(len(column))
    value = np.zeros(len(column), np.intp)
    # Count the bounds that are at most the random number, by bisection: one step per bit of the number of values.
    for bit in reversed(range((len(bounds) - 1).bit_length())):
        probe = np.minimum(value + (1 << bit), len(bounds))
        value = np.where(bounds[probe - 1, column] <= uniform, probe, value)
    return value


def refuse_cycle(structure: Structure, done: str) -> None:
    """Raise ValueError if the structure has a cycle."""
    if not structure.is_acyclic:
        raise ValueError(
            f"samples cannot be {done} a structure with a cycle, because its scores are not log joint "
            f"probabilities. Use a structure without cycles."
        )


def read_classes(y: Any, n_samples: int, n_classes: int) -> IntArray:
    """Validate class codes and return a copy as intp."""
    classes: AnyArray = np.asarray(y)
    if classes.shape != (n_samples,) or classes.dtype.kind not in "iu":
        raise ValueError(
            f"y must contain one integer class code for each of the {n_samples} rows, got shape {classes.shape} of "
            f"dtype {classes.dtype}."
        )
    wrong = np.flatnonzero((classes < 0) | (classes >= n_classes))
    if wrong.size:
        raise ValueError(
            f"class codes in y must be from 0 to {n_classes - 1}, got {classes[wrong[0]]} in row {wrong[0]}."
        )
    return classes.astype(np.intp)
