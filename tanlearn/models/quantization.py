"""Log probabilities as fixed-point numbers with few bits, and CPTs that contain them.

[RE] Roth, Schindler, Fröning, Pernkopf: On resource-efficient Bayesian network classifiers and deep neural networks.
ICPR 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, FloatArray
from tanlearn.models.tables import Tables
from tanlearn.structures.table_layout import TableLayout

__all__ = ["MAX_BITS", "FixedPoint", "IntegerTables", "round_tables"]

#: Unpacked magnitudes are 16-bit integers.
MAX_BITS = 16
#: Far beyond any useful log probability; 2**60 is exact in float32.
_MAX_FRACTION_BITS = 60


@dataclass(frozen=True)
class FixedPoint:
    """Fixed-point format of nonpositive numbers: minus a magnitude of a few bits times a power of two ([RE] eq. 10).

    Parameters
    ----------
    integer_bits : int
        B_I. It may be negative if no magnitude reaches 1.
    fraction_bits : int
        B_F. It may be negative, for steps of 2, 4 and so on. B_I + B_F, the bits of a number, must be from 1 to 16.

    Raises
    ------
    ValueError
        If the bits are not integers, or their sum is out of range.

    Examples
    --------
    >>> from tanlearn import FixedPoint
    >>> fixed_point = FixedPoint(3, -1)
    >>> fixed_point
    FixedPoint(integer_bits=3, fraction_bits=-1)
    >>> fixed_point.n_bits, fixed_point.step, fixed_point.largest
    (2, 2.0, 6.0)
    >>> fixed_point.encode([-0.7, -1.1, -9.0]).tolist(), fixed_point.round([-0.7, -1.1, -9.0]).tolist()
    ([0, 1, 3], [0.0, -2.0, -6.0])
    """

    integer_bits: int
    fraction_bits: int

    def __post_init__(self) -> None:
        for name in ("integer_bits", "fraction_bits"):
            value = getattr(self, name)
            if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
                raise ValueError(f"{name} must be an integer, got {value!r}.")
            object.__setattr__(self, name, int(value))
        if not 1 <= self.n_bits <= MAX_BITS or abs(self.fraction_bits) > _MAX_FRACTION_BITS:
            raise ValueError(
                f"the sum of integer_bits and fraction_bits must be from 1 to {MAX_BITS}, and fraction_bits from "
                f"-{_MAX_FRACTION_BITS} to {_MAX_FRACTION_BITS}, got {self.integer_bits} and {self.fraction_bits}."
            )

    @property
    def n_bits(self) -> int:
        """Bits of a number, B_I + B_F."""
        return self.integer_bits + self.fraction_bits

    @property
    def step(self) -> float:
        """Distance between adjacent numbers, 2**-B_F."""
        return 2.0**-self.fraction_bits

    @property
    def largest(self) -> float:
        """Largest magnitude, U = 2**B_I - 2**-B_F."""
        return 2.0**self.integer_bits - self.step

    def encode(self, theta: Any) -> AnyArray:
        """Round log probabilities to magnitudes, in steps ([RE] eq. 11).

        Parameters
        ----------
        theta : array-like of any shape, float
            Log probabilities. Numbers out of range, such as -inf, are clipped.

        Returns
        -------
        ndarray of the same shape, uint8 or uint16
            ``min(max(rint(-theta / step), 0), 2**n_bits - 1)``. Ties are rounded to even, as in IEEE 754. uint8 for at
            most 8 bits.

        Raises
        ------
        ValueError
            If ``theta`` contains nan.
        """
        dtype = np.uint8 if self.n_bits <= 8 else np.uint16
        steps = -np.asarray(theta, dtype=np.float64) * 2.0**self.fraction_bits
        if np.isnan(steps).any():
            raise ValueError("theta must contain log probabilities, got nan. Use -inf for the logarithm of 0.")
        magnitudes: AnyArray = np.clip(np.rint(steps), 0, 2**self.n_bits - 1).astype(dtype)
        return magnitudes

    def decode(self, magnitudes: Any) -> FloatArray:
        """Convert magnitudes to numbers.

        Parameters
        ----------
        magnitudes : array-like of any shape, int
            Magnitudes from 0 to 2**n_bits - 1, or sums of them.

        Returns
        -------
        ndarray of the same shape, float64
            ``-magnitudes * step``, and 0.0 for 0.
        """
        return 0.0 - np.asarray(magnitudes) * self.step  # 0.0 instead of -0.0

    def pack(self, magnitudes: Any) -> AnyArray:
        """Pack magnitudes into ``n_bits`` bits each.

        Parameters
        ----------
        magnitudes : array-like of shape (n,), int
            Magnitudes from 0 to 2**n_bits - 1.

        Returns
        -------
        ndarray of shape (ceil(n * n_bits / 8),), uint8
            The highest bit of the first magnitude comes first. The last byte is padded with zeros.
        """
        shifts = np.arange(self.n_bits)[::-1]
        return np.packbits((np.asarray(magnitudes)[:, np.newaxis] >> shifts & 1).astype(np.uint8))

    def unpack(self, packed: AnyArray, n: int) -> AnyArray:
        """Unpack the first magnitudes of an array that :meth:`pack` returned.

        Parameters
        ----------
        packed : ndarray of shape (n_bytes,), uint8
            Packed magnitudes.
        n : int
            Number of magnitudes, at most ``8 * n_bytes // n_bits``.

        Returns
        -------
        ndarray of shape (n,), uint8 or uint16
            Magnitudes from 0 to 2**n_bits - 1; uint8 for at most 8 bits.
        """
        dtype = np.uint8 if self.n_bits <= 8 else np.uint16
        bits: AnyArray = np.unpackbits(packed, count=n * self.n_bits).reshape(-1, self.n_bits)
        magnitudes: AnyArray = (bits << np.arange(self.n_bits, dtype=dtype)[::-1]).sum(axis=1, dtype=dtype)
        return magnitudes

    def round(self, theta: Any) -> FloatArray:
        """Round log probabilities to the nearest numbers of this format ([RE] eq. 11).

        Parameters
        ----------
        theta : array-like of any shape, float
            Log probabilities.

        Returns
        -------
        ndarray of the same shape, float64
            ``decode(encode(theta))``: multiples of ``step`` from ``-largest`` to 0.

        Raises
        ------
        ValueError
            If ``theta`` contains nan.
        """
        return self.decode(self.encode(theta))


class IntegerTables(Tables):
    """CPTs of fixed-point log probabilities, packed into few bits.

    They are not normalized: the probabilities of a distribution need not sum to one. Predictions of complete rows add
    integers, which is exact, so ties are detected exactly and go to the first class.

    Parameters
    ----------
    layout : TableLayout
        Layout with one CPT per feature, in the order of the features.
    magnitudes : array-like of shape (n_cells,), int
        Magnitudes from 0 to 2**n_bits - 1.
    fixed_point : FixedPoint
        Format of the numbers.

    Attributes
    ----------
    packed : ndarray of shape (n_bytes,), uint8
        The magnitudes, ``fixed_point.n_bits`` bits each. The highest bit of the first magnitude comes first.

    Raises
    ------
    ValueError
        If the number of magnitudes is not n_cells, or a magnitude needs more bits.

    Examples
    --------
    >>> from tanlearn import FixedPoint, NaiveBayesClassifier, round_tables
    >>> tables = NaiveBayesClassifier().fit([["a"], ["b"], ["b"]], [0, 1, 1]).tables_
    >>> small = round_tables(tables, FixedPoint(1, 1))  # 2 bits: 0, -0.5, -1, -1.5
    >>> small
    IntegerTables(n_features=1, n_classes=2, bits=(1, 1), n_cells=6)
    >>> small.cells.tolist(), small.packed.nbytes
    ([-1.0, -0.5, -0.5, -1.5, -1.0, -0.5], 2)
    """

    def __init__(self, layout: TableLayout, magnitudes: Any, fixed_point: FixedPoint) -> None:
        values = np.asarray(magnitudes)
        if values.shape != (layout.n_cells,) or values.dtype.kind not in "iu":
            raise ValueError(
                f"magnitudes must be {layout.n_cells} integers, one per CPT entry, got {values.dtype} of shape "
                f"{values.shape}."
            )
        if values.min() < 0 or values.max() >= 2**fixed_point.n_bits:
            raise ValueError(
                f"magnitudes of {fixed_point.n_bits} bits must be from 0 to {2**fixed_point.n_bits - 1}, got "
                f"{values.min()}..{values.max()}."
            )
        object.__setattr__(self, "layout", layout)
        object.__setattr__(self, "fixed_point", fixed_point)
        object.__setattr__(self, "packed", fixed_point.pack(values))

    packed: AnyArray
    fixed_point: FixedPoint

    @cached_property
    def magnitudes(self) -> AnyArray:
        """Magnitudes of all CPT entries, uint8 or uint16, unpacked on first access."""
        return self.fixed_point.unpack(self.packed, self.layout.n_cells)

    @property
    def scoring_cells(self) -> AnyArray:
        """Magnitudes of all CPT entries. Shape: (n_cells,)."""
        return self.magnitudes

    @property
    def sum_dtype(self) -> Any:
        """Integer type that a sum of one magnitude per CPT cannot overflow."""
        return np.int32 if (len(self) + 1) << self.fixed_point.n_bits < 2**31 else np.int64

    @cached_property
    def cells(self) -> FloatArray:
        """Decoded log probabilities, float64."""
        return self.fixed_point.decode(self.magnitudes)

    #: Exponentials of rounded logarithms do not sum to one.
    is_normalized = False

    @property
    def bits(self) -> tuple[int, int]:
        """Integer and fraction bits of a number."""
        return self.fixed_point.integer_bits, self.fixed_point.fraction_bits

    @property
    def bits_per_cell(self) -> int:
        """Bits of a number."""
        return self.fixed_point.n_bits

    def decode(self, sums: AnyArray) -> FloatArray:
        """Convert sums of magnitudes to log joints.

        Parameters
        ----------
        sums : ndarray of any shape, of :attr:`sum_dtype`
            Sums of magnitudes: of one entry per CPT, and of the class prior.

        Returns
        -------
        ndarray of the same shape, float64
        """
        return self.fixed_point.decode(sums)

    def to_state(self) -> dict[str, Any]:
        """Return the fields that a file stores, apart from the structure.

        Returns
        -------
        dict
            ``cells``, the packed magnitudes, and ``bits``.
        """
        return {"cells": self.packed, "bits": self.bits}

    def with_log_prior(self, log_prior: FloatArray) -> IntegerTables:
        """Return a copy with other class probabilities, which are rounded too.

        Parameters
        ----------
        log_prior : ndarray of shape (n_classes,)
            Log probability of each class.

        Returns
        -------
        IntegerTables

        Raises
        ------
        ValueError
            If the probability of a class is below the smallest number of the format. Rounding it up could change
            predictions.
        """
        lowest = float(np.min(log_prior))
        if lowest < -self.fixed_point.largest - self.fixed_point.step / 2:
            raise ValueError(
                f"class probabilities must be at least {np.exp(-self.fixed_point.largest):.3g}, the smallest number "
                f"that {self.fixed_point} can represent, but class {int(np.argmin(log_prior))} (numbered from 0 to "
                f"{len(log_prior) - 1}) has probability {np.exp(lowest):.3g}. Use more integer bits, set a larger "
                f"probability, or leave the class out."
            )
        magnitudes = self.magnitudes.copy()
        magnitudes[: len(log_prior)] = self.fixed_point.encode(log_prior)
        return IntegerTables(self.layout, magnitudes, self.fixed_point)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out cached properties."""
        return {name: getattr(self, name) for name in ("layout", "fixed_point", "packed")}

    def __repr__(self) -> str:
        shape = f"n_features={len(self)}, n_classes={self.layout.n_classes}"
        return f"IntegerTables({shape}, bits={self.bits}, n_cells={self.layout.n_cells})"


def round_tables(tables: Tables, fixed_point: FixedPoint) -> IntegerTables:
    """Round CPTs to fixed-point numbers, without further training ([RE] eq. 11).

    Numbers of CPTs that are not normalized may be positive, which the format cannot represent. They are shifted first,
    by the same amount in all classes, so that the largest number of each row of a CPT is 0. The posterior of complete
    rows is unchanged by the shift.

    Parameters
    ----------
    tables : Tables
        CPTs to round.
    fixed_point : FixedPoint
        Format of the result.

    Returns
    -------
    IntegerTables

    Raises
    ------
    ValueError
        If a class has probability 0, which the format cannot represent.
    """
    impossible = np.flatnonzero(np.isneginf(tables.log_prior))
    if impossible.size:
        raise ValueError(
            f"every class must have a positive probability, because fixed-point numbers cannot represent the "
            f"logarithm of 0, but class {impossible[0]} (numbered from 0 to {tables.layout.n_classes - 1}) has "
            f"probability 0. Give it a positive probability, or leave the class out."
        )
    cells = tables.cells
    if not tables.is_normalized and tables.bits is None:
        rows = cells.reshape(-1, tables.layout.n_classes)
        cells = (rows - rows.max(axis=1, keepdims=True)).ravel()
    return IntegerTables(tables.layout, fixed_point.encode(cells), fixed_point)
