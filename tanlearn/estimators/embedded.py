"""What fitted models can do for embedded use: say what they cost, round themselves, turn into C.

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
from tanlearn.data.border import encode_rows
from tanlearn.data.validation import number_classes
from tanlearn.network.calibration import Calibration, decision_tables
from tanlearn.network.inference import log_joint
from tanlearn.network.quantization import IntegerTables, round_tables
from tanlearn.network.structures import Structure
from tanlearn.network.tables import Tables
from tanlearn.training.few_bits import read_bits

__all__ = ["EmbeddedMixin"]


class EmbeddedMixin:
    """Methods of classifiers of one structure and its tables."""

    structure_: Structure
    tables_: Tables
    calibration_: Calibration
    classes_: AnyArray
    device: str
    n_jobs: int | None

    @property
    def size_bits_(self) -> int:
        """Bits of all numbers of the tables: as many as they were rounded to, or 32 each, as [RE] counts."""
        return self.tables_.n_cells * self.tables_.bits_per_cell

    @property
    def n_operations_(self) -> int:
        """Additions for a prediction: a number of every feature, for every class ([RE] V-D)."""
        return len(self.tables_) * self.tables_.layout.n_classes

    def with_bits(self, bits: Any, X: Any = None, y: Any = None) -> Self:
        """Return a copy of the fitted classifier whose tables are rounded to a few bits, without training.

        Training for few bits (``TANClassifier(bits=...)``, ``StochasticGradient(bits=...)``) errs less as a rule, and
        by far with one or two.

        Parameters
        ----------
        bits : int or tuple of (int, int)
            Integer and fraction bits ([RE] eq. 10), of which either may be negative; or their sum, 1 to 16.
        X : array-like or frame of shape (n_samples, n_features), optional
            Raw values. Where only the sum is given, the split with the fewest errors on these rows is taken, of equals
            the one with the fewest integer bits.
        y : array-like of shape (n_samples,), optional
            Classes of the rows.

        Returns
        -------
        object
            A classifier like this one, with :class:`~tanlearn.IntegerTables`; this one stays as it is.

        Raises
        ------
        NotFittedError
            If there is nothing to round.
        ValueError
            If ``bits`` is nothing of the sort, or a sum without rows; or a class has probability 0.

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
        # Sums of integers are compared as they are, so the shift of the calibration joins the class prior.
        tables, twin.calibration_ = decision_tables(self.tables_, self.calibration_), self.calibration_.unshifted()
        candidates = [round_tables(tables, fixed_point) for fixed_point in formats]
        twin.tables_ = candidates[0]
        vars(twin).pop("counts_", None)  # partial_fit would go on with the counts, to tables that are not rounded
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
        """Write the fitted classifier of integers as one header of C99, with nothing but additions and comparisons.

        The header is C99 and C++17. It says how it is called, what a row holds, and what to define where constants lie
        in a memory of their own, which is done for AVR; cells of more than 32 KB are several arrays there. It predicts
        what ``predict`` does for complete rows; for those that miss a value, or have one that was not there in
        training, it returns -1.

        Parameters
        ----------
        path : str or path
            Where; what is there is replaced.
        name : str, optional
            What all names in the header begin with. By default the name of the file without its ending.
        packed : bool, default=True
            Whether a number of the tables takes as many bits as it has, or whole bytes, which are read faster.
        number_type : {"double", "float", "int32", "int16"}, default="double"
            The type of numbers in rows. Every number of that type falls on the same side of a cut as in Python.
            With "double" and "float", columns whose categories are integers are int32_t all the same, or int64_t if
            need be. Strings are strings, in UTF-8; a column of other categories, or of another encoder than
            :class:`~tanlearn.TableEncoder` with its own discretiser, takes the number of the state.
        test_rows : array-like or frame of shape (n_samples, n_features), optional
            Raw values. With them, a program is written beside the header, ``<name of the file>_test.c``, which returns
            0 if codes, sums and classes of these rows are those of Python, and otherwise prints the first that is not.

        Raises
        ------
        NotFittedError
            If there is nothing to export.
        ValueError
            If the tables hold no integers, a category or cut is no value of its type in C, a column had no value in
            training, or ``name`` is no name. Nothing is written then.
        OSError
            If a file cannot be written. What stood there before is unchanged.

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
