"""Deployment of fitted classifiers on microcontrollers: model size, rounding to few bits, and export to C.

[RE] Roth, Schindler, Froening, Pernkopf: On resource-efficient Bayesian network classifiers and deep neural networks.
ICPR 2020.
"""

from __future__ import annotations

import os
from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tanlearn._typing import AnyArray
from tanlearn.c_export.header import export_c
from tanlearn.data.estimator_input import encode_rows
from tanlearn.data.validation import number_classes
from tanlearn.network.calibration import Calibration, decision_tables
from tanlearn.network.inference import log_joint
from tanlearn.network.quantization import IntegerTables, round_tables
from tanlearn.network.structures import Structure
from tanlearn.network.tables import Tables
from tanlearn.training.few_bits import read_bits

__all__ = ["EmbeddedMixin"]


class EmbeddedMixin:
    """Methods of classifiers with a single structure and its tables."""

    structure_: Structure
    tables_: Tables
    calibration_: Calibration
    classes_: AnyArray
    device: str
    n_jobs: int | None

    @property
    def size_bits_(self) -> int:
        """Size of all CPT entries in bits: 32 bits per entry, as in [RE], or the bits that they were rounded to."""
        return self.tables_.n_cells * self.tables_.bits_per_cell

    @property
    def n_operations_(self) -> int:
        """Number of additions per prediction: one CPT entry per feature and class ([RE] V-D)."""
        return len(self.tables_) * self.tables_.layout.n_classes

    def with_bits(self, bits: Any, X: Any = None, y: Any = None) -> Self:
        """Return a copy of the fitted classifier with CPTs rounded to a few bits, without training.

        Training for few bits (``TANClassifier(bits=...)``, ``StochasticGradient(bits=...)``) usually gives fewer
        errors, and far fewer with one or two bits.

        Parameters
        ----------
        bits : int or tuple of (int, int)
            Integer and fraction bits ([RE] eq. 10), of which either may be negative; or their sum, 1 to 16.
        X : array-like or frame of shape (n_samples, n_features), optional
            Raw values. If ``bits`` is a sum, the split with the fewest errors on these rows is selected; ties go to the
            split with the fewest integer bits.
        y : array-like of shape (n_samples,), optional
            Classes of the rows.

        Returns
        -------
        object
            A new classifier, with :class:`~tanlearn.IntegerTables`.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If ``bits`` is invalid, or a sum without rows; or if a class has probability 0.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from tanlearn import NaiveBayesClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = NaiveBayesClassifier().fit(X, y)
        >>> small = model.with_bits(3, X, y)
        >>> small.tables_
        IntegerTables(n_features=4, n_classes=3, bits=(5, -2), n_cells=39)
        >>> model.size_bits_, small.size_bits_, round(small.score(X, y), 2)
        (1248, 117, 0.96)
        """
        check_is_fitted(self)
        formats = [found for found in read_bits(bits) if found is not None]
        if not formats:
            raise ValueError("bits must be a number of bits, or a pair of integer and fraction bits; got None.")
        twin = copy(self)
        # Integer scores are compared without calibration, so its shift is added to the class prior.
        tables, twin.calibration_ = decision_tables(self.tables_, self.calibration_), self.calibration_.unshifted()
        candidates = [round_tables(tables, fixed_point) for fixed_point in formats]
        twin.tables_ = candidates[0]
        vars(twin).pop("counts_", None)  # partial_fit would compute unrounded tables from them
        if len(candidates) > 1:
            if X is None or y is None:
                raise ValueError(
                    f"bits={bits} leaves the split into integer and fraction bits open: pass rows X, y to choose by, "
                    f"or a pair of bits."
                )
            codes = encode_rows(self, X)
            labels = number_classes(y, codes.shape[1], self.classes_)

            def n_errors(tables: IntegerTables) -> int:
                scores = log_joint(tables, self.structure_, codes, n_jobs=self.n_jobs, device=self.device)
                return int(np.count_nonzero(scores.argmax(axis=1) != labels))

            twin.tables_ = min(candidates, key=n_errors)
        return twin

    def export_c(
        self,
        path: str | os.PathLike[str],
        *,
        name: str | None = None,
        packed: bool = True,
        number_type: str = "double",
        test_rows: Any = None,
    ) -> None:
        """Write the fitted integer classifier as a C99 header that uses only additions and comparisons.

        The header is valid C99 and C++17. Its comments describe the functions, the format of a row, and the macros for
        constants in a separate memory. These macros are defined for AVR, where CPT entries of more than 32 KB are split
        into several arrays. For complete rows, the C function predicts the class that ``predict`` returns. For rows
        with missing or unseen values, it returns -1.

        Parameters
        ----------
        path : str or path
            Path of the header. An existing file is replaced.
        name : str, optional
            Prefix of all names in the header. By default the file name without its extension.
        packed : bool, default=True
            Whether to pack CPT entries bit by bit, or to store whole bytes, which are read faster.
        number_type : {"double", "float", "int32", "int16"}, default="double"
            C type of numbers in rows. Each number of this type is compared with cut points as in Python. With "double"
            and "float", columns of integer categories have the type int32_t, or int64_t if needed. Strings are UTF-8
            strings. For columns of other categories, and for encoders other than :class:`~tanlearn.TableEncoder` with
            its own discretizer, a row contains the code of the value.
        test_rows : array-like or frame of shape (n_samples, n_features), optional
            Raw values for a test program, ``<name of the file>_test.c``, written next to the header. The program
            returns 0 if codes, sums and classes of these rows are equal to those of Python, and otherwise prints the
            first difference.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If the CPTs are not integers, a category or cut point is not representable in its C type, a column had no
            value in training, or ``name`` is not a C identifier. No file is written then.
        OSError
            If a file cannot be written. An existing file is then unchanged.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from sklearn.datasets import load_iris
        >>> from tanlearn import NaiveBayesClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> small = NaiveBayesClassifier().fit(X, y).with_bits((3, 1))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     small.export_c(f"{folder}/iris.h", test_rows=X)
        ...     header = Path(folder, "iris.h").read_text()
        >>> "static inline int16_t iris_predict(const iris_value *row)" in header
        True
        """
        export_c(self, path, name=name, packed=packed, number_type=number_type, test_rows=test_rows)
