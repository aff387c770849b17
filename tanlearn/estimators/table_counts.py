"""Counts of raw data, with their categories, cut points, column names and classes."""

from __future__ import annotations

import itertools
import os
from copy import copy, deepcopy
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tanlearn._typing import AnyArray
from tanlearn.counts.added_noise import AddedNoise
from tanlearn.counts.counts_base import Counts
from tanlearn.counts.family_counts import FamilyCounts
from tanlearn.counts.pair_counts import PairCounts
from tanlearn.encoding.column_warnings import warn_of_new_categories, warn_of_new_missing_values
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.stored_values import fields
from tanlearn.encoding.summaries import TableSummary
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.estimators.row_sources import BatchSource
from tanlearn.files.archive import pack, read_archive
from tanlearn.files.counts import describe_counts, restore_counts
from tanlearn.files.encoders import column_label, describe_table, encoder_difference, restore_table
from tanlearn.files.regular_files import COUNTS, write_file
from tanlearn.files.values import Reader, Writer
from tanlearn.sources.batches import open_batches
from tanlearn.sources.columns import read_columns
from tanlearn.sources.frames import check_names
from tanlearn.sources.table import Table, shorten
from tanlearn.sources.validation import present_rows, read_labels, zero_weight_rows
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout

__all__ = ["TableCounts", "why_no_counts"]


class TableCounts:
    """Counts of raw data, with their categories, cut points, column names and classes.

    Counts from several sites or times can be added if their categories and cut points are equal, which ``merge``
    checks. With ``from_counts``, a classifier fits the same model to the sum as to all rows. Counts contain the number
    of rows with each value, or pair of values, in each class. They do not contain the rows themselves.

    Parameters
    ----------
    counts : object
        Counts of codes: a :class:`~tanlearn.PairCounts`, a :class:`~tanlearn.counts.family_counts.FamilyCounts`, or
        the ``counts_`` of a classifier.
    encoder : TableEncoder
        Fitted encoder of the codes.
    classes : array-like of shape (n_classes,)
        Class labels in sorted order.

    Attributes
    ----------
    counts : object
        The counts that were passed. :meth:`update` and :meth:`merge` modify them.
    encoder : TableEncoder
        A copy of the encoder.
    classes : ndarray of shape (n_classes,)
        Class labels.
    counts_rows_once : bool
        Whether every row was counted with a weight of 1. The value is False if this cannot be determined.

    Raises
    ------
    ValueError
        If ``encoder`` or ``classes`` is None, if the classes are not sorted, or if the counts have different numbers of
        values or classes.
    NotFittedError
        If the encoder is not fitted.

    Examples
    --------
    >>> from tanlearn import NaiveBayesClassifier, TableCounts
    >>> X, y = [["Graz", 1.5], ["Linz", 8.5], ["Graz", 9.5], ["Linz", 2.5]], ["no", "yes", "yes", "no"]
    >>> counts = TableCounts.of_source([(X, y)])
    >>> counts
    TableCounts(n_features=2, n_classes=2, counts=PairCounts, weight=4)
    >>> elsewhere = counts.empty().update([["Graz", 7.0]], ["yes"])
    >>> counts.merge(elsewhere).save("all.counts")
    >>> NaiveBayesClassifier().from_counts(TableCounts.load("all.counts")).predict([["Linz", 9.0]]).tolist()
    ['yes']
    """

    counts_rows_once = False  # default for counts that an earlier version pickled

    def __init__(self, counts: Counts, *, encoder: TableEncoder, classes: Any) -> None:
        if encoder is None or classes is None:
            absent, present = ("encoder", "classes") if encoder is None else ("classes", "encoder")
            raise ValueError(f"counts need {absent} and {present}, but {absent} is None. Pass both.")
        check_is_fitted(encoder)
        self.classes = _read_sorted(classes)
        self.encoder = copy(encoder)  # a later fit of the user's encoder must not change this one
        self.counts = counts
        self.counts_rows_once = not counts.class_counts.any()  # existing counts may include rows with other weights
        if counts.n_classes != len(self.classes):
            raise ValueError(
                f"classes must contain {counts.n_classes} classes, like the counts, got {len(self.classes)}: "
                f"{shorten(self.classes.tolist())}. Pass the classes of the counted rows."
            )
        n_states, known = counts.n_states.tolist(), encoder.n_states_.tolist()
        if n_states != known:
            place = next((i for i, pair in enumerate(zip(n_states, known, strict=False)) if pair[0] != pair[1]), None)
            what = f"{len(n_states)} columns, but the encoder {len(known)}"
            if place is not None:
                what = f"{n_states[place]} values of {column_label(encoder, place)}, but the encoder has {known[place]}"
            raise ValueError(
                f"counts and encoder must match, but the counts have {what}. Pass the encoder of the counted codes."
            )

    @classmethod
    def of_model(cls, model: Any) -> Self:
        """Return a copy of the counts of a classifier.

        Parameters
        ----------
        model : classifier
            Classifier after ``fit_batches``, ``partial_fit`` or ``from_counts``.

        Returns
        -------
        TableCounts

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If the classifier has no counts, for example after ``fit``.
        """
        check_is_fitted(model)
        if not hasattr(model, "counts_"):
            raise ValueError(
                f"{why_no_counts(model)}. Count the rows with its categories and cut points: "
                f"TableCounts.of_source(..., like=model)."
            )
        return cls(deepcopy(model.counts_), encoder=model.encoder_, classes=model.classes_)

    @classmethod
    def of_summary(
        cls, summary: TableSummary, names: Any = None, *, encoder: TableEncoder | None = None, pairs: bool = True
    ) -> Self:
        """Return empty counts with the categories and cut points of a summary.

        Parameters
        ----------
        summary : TableSummary
            Summary of all rows, which may be a sum of several summaries.
        names : sequence of str, optional
            Names of the columns.
        encoder : TableEncoder, optional
            Unfitted encoder of raw columns.
        pairs : bool, default=True
            Whether to count pairs of values, not only single values.

        Returns
        -------
        TableCounts

        Raises
        ------
        ValueError
            Under the same conditions as in :meth:`TableSummary.fit_encoder`.
        TableMemoryError
            If the counts of all pairs do not fit into memory.
        """
        known = None if names is None else np.array(names, dtype=object)
        fitted = summary.fit_encoder(TableEncoder() if encoder is None else encoder, known)
        return cls.of_encoder(fitted, summary.classes_, pairs=pairs)

    @classmethod
    def of_encoder(cls, encoder: TableEncoder, classes: Any, *, pairs: bool = True) -> Self:
        """Return empty counts with the categories and cut points of an encoder.

        Parameters
        ----------
        encoder : TableEncoder
            Fitted encoder.
        classes : array-like of shape (n_classes,)
            Class labels in sorted order.
        pairs : bool, default=True
            Whether to count pairs of values, not only single values.

        Returns
        -------
        TableCounts

        Raises
        ------
        TableMemoryError
            If the counts of all pairs do not fit into memory.
        """
        check_is_fitted(encoder)
        n_states, n_classes = encoder.n_states_, len(classes)
        if pairs:
            return cls(PairCounts(n_states, n_classes), encoder=encoder, classes=classes)
        given = Structure.naive_bayes(len(n_states))
        layout = TableLayout.of_parents(given.parents, n_states, n_classes)
        return cls(FamilyCounts(layout), encoder=encoder, classes=classes)

    @classmethod
    def of_source(
        cls,
        source: Any,
        target: Any = None,
        *,
        sample_weight: Any = None,
        columns: Any = None,
        batch_rows: int = 2**17,
        exact: bool = False,
        like: Any = None,
        encoder: TableEncoder | None = None,
        pairs: bool = True,
        n_jobs: int | None = None,
    ) -> Self:
        """Count data of any size, batch by batch.

        Parameters
        ----------
        source, target, sample_weight, columns, batch_rows, exact : object
            As for ``fit_batches`` of the classifiers. The source is read twice: first to determine categories and cut
            points, then to count.
        like : TableCounts or classifier, optional
            Counts or classifier whose categories, cut points, classes and type of counts are used. The source is then
            read only once, and its columns are matched by name. Unseen categories are treated as missing.
        encoder : TableEncoder, optional
            Unfitted encoder of raw columns. The default is ``TableEncoder()``.
        pairs : bool, default=True
            Whether to count pairs of values, not only single values, which are sufficient for naive Bayes.
        n_jobs : int, optional
            Number of threads, as in joblib.

        Returns
        -------
        TableCounts

        Raises
        ------
        ValueError, TypeError
            As in ``fit_batches``. They are also raised if the columns differ from the columns of ``like``, or if
            ``like`` is combined with a parameter that it determines.
        ImportError
            If the source needs a package that is not installed.

        Examples
        --------
        >>> import pandas as pd
        >>> from tanlearn import TableCounts
        >>> first = pd.DataFrame({"town": ["Graz", "Linz"], "late": ["no", "yes"]})
        >>> later = pd.DataFrame({"late": ["yes", "yes"], "town": ["Linz", "Graz"]})
        >>> here = TableCounts.of_source(first, "late")
        >>> here.merge(TableCounts.of_source(later, "late", like=here)).counts.class_counts.tolist()
        [1, 3]
        """
        own = None if like is None else _like(cls, like)
        if own is not None:
            if encoder is not None or columns is not None or exact or not pairs:
                raise ValueError(
                    "encoder, columns, exact and pairs must not be passed with like, which determines columns, "
                    "categories, cut points and type of counts. Leave them out."
                )
            columns = None if target is None or own.names is None else own.names.tolist()
        string_columns = [] if own is None else own._string_columns()
        if own is not None and target is not None and own.classes.dtype.kind in "OU":
            string_columns.append(target)
        notation = getattr(like, "_notation", None)  # the notation of the file to which a classifier was fitted
        batches = open_batches(
            source,
            target,
            weight=sample_weight,
            columns=columns,
            batch_rows=batch_rows,
            string_columns=string_columns,
            notation=notation,
        )
        if own is None:
            own = cls.of_summary(
                BatchSource(batches, n_jobs).summarize(exact), batches.names, encoder=encoder, pairs=pairs
            )
        for batch in batches:
            with batch.located():
                own._check_names(batches.names)
                own._add(batch.columns, batch.target, batch.sample_weight, n_jobs)
        return own

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Load counts from a file written by :meth:`save`, without executing code from it.

        Parameters
        ----------
        path : str or path
            Path of the file.

        Returns
        -------
        TableCounts

        Raises
        ------
        ValueError
            If the file does not contain counts, is damaged or altered, or has a newer version.
        OSError
            If the file cannot be read.
        """
        return read_archive(path, cls._restore, COUNTS)

    @property
    def noise(self) -> tuple[AddedNoise, ...]:
        """Noise of each release that was added to these counts (see :meth:`~tanlearn.PrivacyBudget.release`).

        Empty for exact counts.
        """
        return self.counts.noise

    @property
    def names(self) -> AnyArray | None:
        """Names (n_features,) of the columns, or None."""
        return getattr(self.encoder, "feature_names_in_", None)

    def _string_columns(self) -> list[str]:
        """Return the names of the columns whose categories are strings."""
        if self.names is None:
            return []
        known = zip(self.names.tolist(), self.encoder.categories_, strict=True)
        return [name for name, own in known if own is not None and any(isinstance(one, str) for one in own.tolist())]

    def empty(self) -> Self:
        """Return empty counts with the same categories, cut points and classes.

        Returns
        -------
        TableCounts
        """
        return type(self)(self.counts.empty(), encoder=self.encoder, classes=self.classes)

    def update(self, X: Any, y: Any, sample_weight: Any = None, *, n_jobs: int | None = None) -> Self:
        """Add counts of rows.

        Parameters
        ----------
        X : array-like, pandas or polars frame of shape (n_samples, n_features)
            Raw values in the same columns. Unseen categories count as missing, or raise an error, depending on
            ``handle_unknown`` of the encoder.
        y : array-like of shape (n_samples,)
            Class labels, all of which must be in ``classes``.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights. Rows of weight 0 are ignored.
        n_jobs : int, optional
            Number of threads, as in joblib.

        Returns
        -------
        TableCounts
            The updated counts themselves.

        Raises
        ------
        ValueError, TypeError
            If a column, a class label or the weights are invalid, or the counts have noise. The counts are then
            unchanged.
        """
        columns = read_columns(X, n_jobs=n_jobs, ignored=zero_weight_rows(sample_weight))
        check_names(self.encoder, X)
        self._add(columns, y, sample_weight, n_jobs)
        return self

    def merge(self, other: TableCounts) -> Self:
        """Add other counts.

        Parameters
        ----------
        other : TableCounts
            Counts with the same categories, cut points and classes. They are not modified.

        Returns
        -------
        TableCounts
            The updated counts themselves.

        Raises
        ------
        TypeError
            If the other counts are of another type.
        ValueError
            If categories, cut points or classes differ (the message contains the difference), if only one of the two
            has noise, or if the sum of integer weights would overflow. The counts are then unchanged.
        """
        found = self._difference(other)
        if found is not None:
            raise ValueError(
                f"counts can be added only if categories, cut points and classes are the same, but {found}. Count one "
                f"of them again with the categories of the other: TableCounts.of_source(..., like=other), or tanlearn "
                f"counts --like."
            )
        self.counts.merge(other.counts)
        self.counts_rows_once &= other.counts_rows_once
        self.encoder = self.encoder.with_ranges(other.encoder.value_ranges_)
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the counts to a file, atomically and without pickle.

        Parameters
        ----------
        path : str or path
            Path of the file, with any extension. An existing file is replaced.

        Raises
        ------
        ValueError
            If the encoder has parts of classes outside tanlearn, or if a category is not a string, a number or a
            boolean.
        TypeError
            If a file cannot contain counts of this type.
        OSError
            If the file cannot be written. An existing file is then unchanged.
        """
        writer = Writer()
        counts = describe_counts(writer, self.counts, "counts")
        if getattr(self.encoder, "is_declared_", False):
            counts["declared"] = {"counts_rows_once": self.counts_rows_once}
        description = {**describe_table(writer, self.encoder, self.classes, self.names, "counts"), **counts}
        write_file(path, pack(description, writer.arrays, COUNTS), COUNTS)

    def _add(self, columns: Table, y: Any, sample_weight: Any, n_jobs: int | None) -> None:
        """Add counts of rows whose columns have been read."""
        if sample_weight is not None and not np.any(sample_weight):  # all rows are ignored
            return
        columns, codes, _, weights, numbers = present_rows(columns, y, sample_weight, self.classes)
        table = self.encoder.encode_columns(columns)
        warn_of_new_categories(columns, self.encoder.categories_, table)
        warn_of_new_missing_values(self.encoder, columns)
        rows = table, self.encoder.n_states_, codes, len(self.classes)
        self.counts.update(EncodedData(*rows, weights, columns.labels, numbers), n_jobs=n_jobs)
        self.counts_rows_once &= weights is None or bool((weights == 1).all())
        self.encoder = self.encoder.with_ranges_of(columns)

    def _check_names(self, names: tuple[str, ...] | None) -> None:
        """Raise an error if the names of the columns differ from the names in the counts."""
        own = None if self.names is None else tuple(self.names.tolist())
        if names != own and names is not None and own is not None:
            raise ValueError(
                f"the columns must have the names of the counts, {shorten(list(own))}, in this order, got "
                f"{shorten(list(names))}."
            )

    @classmethod
    def _restore(cls, description: Any, arrays: dict[str, AnyArray]) -> Self:
        """Return the counts in a file."""
        reader = Reader(arrays)
        declared, noise = (
            description.pop(key, None) if type(description) is dict else None for key in ("declared", "noise")
        )
        classes, names, encoder, kind, state = fields(
            description, "classes", "feature_names", "encoder", "kind", "counts"
        )
        known, labels = restore_table(reader, classes, names, encoder)
        counts = restore_counts(reader, kind, state, known.n_states_, len(labels), noise)
        reader.finish()
        found = cls(counts, encoder=known, classes=labels)
        if declared is not None:
            (rows_once,) = fields(declared, "counts_rows_once")
            if type(rows_once) is not bool:
                raise ValueError("counts_rows_once must be true or false")
            found.encoder.is_declared_, found.counts_rows_once = True, rows_once
        return found

    def _difference(self, other: TableCounts) -> str | None:
        """Describe the first difference between categories, cut points or classes, or return None."""
        found = encoder_difference(self.encoder, other.encoder)
        if found is None and self.classes.tolist() != other.classes.tolist():
            return f"the classes are {shorten(self.classes.tolist())} here and {shorten(other.classes.tolist())} there"
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TableCounts) and self._difference(other) is None and self.counts == other.counts

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return (
            f"TableCounts(n_features={self.encoder.n_features_in_}, n_classes={len(self.classes)}, "
            f"counts={type(self.counts).__name__}, weight={self.counts.class_counts.sum()}"
            f"{''.join(f', noise={own.mechanism!r}' for own in self.noise)})"
        )


def why_no_counts(model: Any) -> str:
    """Return the reason for which a fitted classifier has no ``counts_``, for error messages."""
    reason = "it was fitted from all rows at once"
    if getattr(model, "_was_loaded", False):
        reason = "it was read from a file without counts (to keep existing counts, use save(path, counts=True))"
    return f"this {type(model).__name__} has no counts, because {reason}"


def _read_sorted(classes: Any) -> AnyArray:
    """Return the class labels. Raise ValueError unless there are at least two labels in ascending order."""
    known = read_labels(classes)
    values = known.tolist()
    if len(values) < 2 or not all(low < high for low, high in itertools.pairwise(values)):
        raise ValueError(
            f"classes must contain at least two different classes in sorted order, got {shorten(values)}. Pass "
            f"classes_ of the counted model."
        )
    return known


def _like(kind: type[TableCounts], like: Any) -> Any:
    """Return empty counts compatible with ``like``."""
    if isinstance(like, TableCounts):
        return like.empty()
    if not hasattr(like, "encoder_") or not hasattr(like, "classes_"):
        raise TypeError(f"like must be a TableCounts or a fitted classifier, got {type(like).__name__}.")
    if hasattr(like, "counts_"):
        return kind(like.counts_.empty(), encoder=like.encoder_, classes=like.classes_)
    return kind.of_encoder(like.encoder_, like.classes_)
