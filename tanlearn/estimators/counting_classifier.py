"""Base class of classifiers that are fitted to counts: in batches, incrementally or from existing counts.

Counts of rows with integer weights, or without weights, are integers and do not depend on how rows are divided into
batches. The fitted model therefore equals, bit for bit, a model fitted to all rows with the same encoding.
``fit_batches`` reads its source twice: first to determine classes, categories and cut points, then to count. If
features have two or more parents, an additional pass counts their families. A sample of the rows is used for decisions
that need more than counts, such as the contexts of a forest.

A subclass defines what is counted (``_new_counts``) and how the model is fitted to the counts (``_learn_counts``).
Every method fits a copy, whose attributes are transferred to the classifier at the end, so that the classifier stays
unchanged after an error.
"""

from __future__ import annotations

from copy import copy, deepcopy
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from tanlearn._typing import AnyArray
from tanlearn.counts.counts_base import Counts
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.estimators.classifier import Classifier
from tanlearn.estimators.estimator_input import delete_fitted_attributes, encode_batch, new_encoder
from tanlearn.kernels._cuda import check_device
from tanlearn.parameters.parameter_learner import validate_settings
from tanlearn.sources.table import shorten
from tanlearn.sources.validation import read_labels

if TYPE_CHECKING:
    from tanlearn.estimators.row_sources import EncodedSource, RowSource

__all__ = ["FROM_COUNTS", "IN_BATCHES", "IN_PARTIAL_FIT", "CountingClassifier"]

#: Kinds of data that ``partial_fit`` and ``from_counts`` provide to learners. These are sums over rows.
IN_PARTIAL_FIT = FROM_COUNTS = frozenset({"pairs", "families"})
#: Kinds of data that ``fit_batches`` provides. They include counts of contexts, and a sample of the rows.
IN_BATCHES = frozenset({"pairs", "families", "contexts", "sample"})


class CountingClassifier(Classifier):
    """Base class of classifiers that are fitted to counts."""

    #: Types of counts that ``from_counts`` accepts.
    _count_types: ClassVar[tuple[type[Counts], ...]] = ()

    _notation: Any

    @available_if(lambda estimator: estimator._check_needs(IN_BATCHES))  # type: ignore[untyped-decorator]
    def fit_batches(
        self,
        source: Any,
        target: Any = None,
        *,
        sample_weight: Any = None,
        columns: Any = None,
        batch_rows: int = 2**17,
        exact: bool = False,
    ) -> Self:
        """Fit the classifier to data of any size, batch by batch.

        The source is read twice: first to determine classes, categories and cut points, then to count. A random sample
        of 65,536 rows is used for decisions that need rows: contexts of forests, smoothing of hierarchical CPTs, and
        selective KDB. If features have two or more parents, an additional pass counts the families after the structure
        has been learned.

        Parameters
        ----------
        source : object
            One of:

            - an object with an Arrow C stream, such as a table or record-batch reader of pyarrow, a frame of pandas or
              polars, or a relation of DuckDB;
            - a pyarrow data set, or a polars lazy frame;
            - the path of a file, or of a folder of Parquet files;
            - an iterable of (X, y) or (X, y, sample_weight);
            - a function without arguments that returns one of these and is called once per pass, for sources that can
              be iterated only once.
        target : str, optional
            Name of the column with the classes, if the source has columns.
        sample_weight : str, optional
            Name of the column with the weights, if the source has such a column.
        columns : list of str, optional
            Names of the columns with the features. By default, all other columns are features.
        batch_rows : int, default=131072
            Maximum number of rows per batch, at least 1.
        exact : bool, default=False
            Whether to compute cut points from all distinct numbers. By default, columns with more than 65,536 distinct
            numbers are summarized. The error in the ranks of their cut points is then at most about a thousandth of the
            number of rows.

        Returns
        -------
        object
            The fitted estimator. It makes the same predictions as after ``fit`` on all rows, bit for bit, if the cut
            points are exact, the weights are integers, and the sample contains all rows. The mean training values of
            intervals (``encoder_.typical_values_``) are equal up to rounding. In ``fit``, if the default encoder finds
            no cut points for a numeric column, it searches again, together with one other column
            (``MDLPDiscretizer(interactions=True)``). This search is skipped for batches, so such columns stay constant.

        Raises
        ------
        AttributeError
            If a learner of the estimator needs all rows at once.
        ImportError
            If the source needs a package that is not installed, or the device is not available.
        ValueError, TypeError
            If a column, the classes or the weights are invalid, if batches have different columns, or if the source can
            be read only once. The estimator is then unchanged.

        Examples
        --------
        >>> from tanlearn import NaiveBayesClassifier
        >>> batches = [([["a"], ["b"]], ["no", "yes"]), ([["c"], ["b"]], ["no", "yes"])]
        >>> model = NaiveBayesClassifier().fit_batches(batches)
        >>> model.encoder_.categories_[0].tolist(), model.predict([["c"]]).tolist()
        (['a', 'b', 'c'], ['no'])
        """
        from tanlearn.estimators.row_sources import BatchSource
        from tanlearn.sources.batches import open_batches

        self._check_parts()
        batches = open_batches(source, target, weight=sample_weight, columns=columns, batch_rows=batch_rows)
        self._learn_source(BatchSource(batches, self.n_jobs), exact)
        if batches.notation is not None:
            self._notation = batches.notation  # the command line uses it to read new rows from a file
        return self

    @available_if(lambda estimator: estimator._check_needs(IN_PARTIAL_FIT))  # type: ignore[untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add the counts of a batch, and fit the classifier to all counts so far.

        Parameters
        ----------
        X : array-like, pandas or polars frame of shape (n_samples, n_features)
            Raw values. The first batch determines categories and cut points. Pass a representative sample of a few
            thousand rows first, or declare the categories (pandas ``category``, polars ``Enum``). In later batches,
            unseen categories are treated as missing, with a warning, or raise an error, depending on ``handle_unknown``
            of the encoder.
        y : array-like of shape (n_samples,)
            Class labels.
        classes : array-like of shape (n_classes,)
            All class labels of this and later batches. Pass them in the first call. In later calls, leave them out or
            pass the same labels.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights. Rows of weight 0 are ignored.

        Returns
        -------
        object
            The fitted estimator.

        Raises
        ------
        AttributeError
            If a learner of the estimator needs all rows at once.
        ValueError
            If a label is not in ``classes``, ``classes`` is missing or changes, the classifier is fitted but has no
            counts, its counts have noise for privacy, or a column, ``y`` or the weights are invalid. The estimator is
            then unchanged.

        Examples
        --------
        >>> from tanlearn import NaiveBayesClassifier
        >>> model = NaiveBayesClassifier()
        >>> for batch in ([["a"], ["b"]], [["b"], ["b"]]):
        ...     model = model.partial_fit(batch, ["no", "yes"], classes=["no", "yes"])
        >>> model.counts_.cells.tolist()  # no, yes; a with no, a with yes; b with no, b with yes
        [2, 2, 1, 0, 1, 2]
        """
        self._validate_params()
        check_device(self.device)
        fitted = copy(self)
        data = _read_batch(fitted, X, y, classes, sample_weight)
        fitted.counts_ = deepcopy(self.counts_) if hasattr(self, "counts_") else fitted._new_counts(data)
        fitted.counts_.update(data, n_jobs=self.n_jobs)
        fitted._learn_counts(fitted.counts_)
        return self._become(fitted, data.n_classes)

    @available_if(lambda estimator: estimator._check_needs(estimator._needs_from_counts()))  # type: ignore[untyped-decorator]
    def from_counts(self, counts: Any, *, encoder: Any = None, classes: Any = None) -> Self:
        """Fit the classifier to counts, for example to the sum of counts of several sites.

        Parameters
        ----------
        counts : TableCounts or object
            Counts of raw data with their categories, cut points and classes, or one of the following kinds of counts of
            codes. The counts are not modified.

            - counts of pairs (:class:`~tanlearn.PairCounts`) for naive Bayes, structure learners and structures with at
              most one augmenting parent per feature, and AODE;
            - counts of families (:class:`~tanlearn.counts.family_counts.FamilyCounts`) for a fixed structure with these
              families;
            - for all other classifiers, counts of the type of their ``counts_``.
        encoder : TableEncoder, optional
            Fitted encoder of the codes. Leave it out for :class:`~tanlearn.TableCounts`.
        classes : array-like of shape (n_classes,), optional
            Class labels in sorted order. Without encoder and classes, the classifier can predict only codes, as after
            ``fit_encoded``, not raw values.

        Returns
        -------
        object
            The fitted estimator. With integer weights, it equals, bit for bit, an estimator fitted to the counted rows.
            With an encoder, ``partial_fit`` can add rows, if the classifier has this method.

        Raises
        ------
        AttributeError
            If a learner of the estimator needs all rows at once.
        TypeError
            If the estimator needs counts of another type.
        ValueError
            If the families or numbers of values differ, if fewer than two classes have rows, or if ``class_weight`` is
            set, because class weights can be applied only when rows are counted. The estimator is then unchanged.

        Examples
        --------
        >>> from tanlearn import NaiveBayesClassifier, TableCounts
        >>> here = TableCounts.of_source([([["a"], ["b"], ["b"]], ["no", "yes", "yes"])])
        >>> there = here.empty().update([["a"], ["a"]], ["no", "yes"])
        >>> model = NaiveBayesClassifier().from_counts(here.merge(there))
        >>> model.predict([["a"], ["b"]]).tolist()
        ['no', 'yes']
        """
        from tanlearn.estimators.table_counts import TableCounts

        self._validate_params()
        check_device(self.device)
        if self.class_weight is not None:
            raise ValueError(
                f"class_weight must be None for counts, because rows are weighted when they are counted, got "
                f"{self.class_weight!r}. Pass weights when you count the rows, or set the class frequencies with "
                f"class_prior."
            )
        if isinstance(counts, TableCounts):
            if encoder is not None or classes is not None:
                raise ValueError(
                    "encoder and classes must not be passed with TableCounts, which contain them. Leave them out."
                )
            table = counts
        elif encoder is not None or classes is not None:
            table = TableCounts(counts, encoder=encoder, classes=classes)
        else:
            table = None
        own = deepcopy(self._convert_counts(counts if table is None else table.counts))
        n_with_rows = np.count_nonzero(own.class_counts)
        if n_with_rows < 2:
            raise ValueError(
                f"the counts must contain rows of at least two classes, got {n_with_rows}. Merge counts of other rows."
            )
        fitted = copy(self)
        delete_fitted_attributes(fitted)
        if table is not None:
            fitted.encoder_, fitted.classes_ = table.encoder, table.classes
            fitted._set_names(table.encoder.n_features_in_, table.names)
        fitted.counts_ = own
        fitted._learn_counts(own)
        return self._become(fitted, own.n_classes)

    def _check_needs(self, allowed: frozenset[str]) -> bool:
        """Return True if the learners need only data in ``allowed``. Otherwise, raise an AttributeError."""
        return True

    def _needs_from_counts(self) -> frozenset[str]:
        """Return the kinds of data that ``from_counts`` can provide to learners."""
        return FROM_COUNTS

    def _new_counts(self, data: EncodedData) -> Any:
        """Return empty counts of the type that the classifier needs. ``data`` contains the first rows, or no rows."""
        raise NotImplementedError(type(self).__name__)

    def _learn_counts(self, counts: Any) -> None:
        """Fit the classifier to counts."""
        raise NotImplementedError(type(self).__name__)

    def _learn_batches(self, rows: EncodedSource) -> None:
        """Count all rows and fit to the counts. ``partial_fit`` can continue from ``counts_``."""
        self.counts_ = rows.add_to(self._new_counts(rows.nothing), n_jobs=self.n_jobs)
        self._learn_counts(self.counts_)

    def _convert_counts(self, counts: Any) -> Any:
        """Return counts converted to the type that the classifier needs, or raise an error."""
        self._check_type(counts, *self._count_types)
        return counts

    def _check_type(self, counts: Any, *types: type) -> None:
        """Raise a TypeError for counts of other types."""
        if not isinstance(counts, types):
            known = " or ".join(kind.__name__ for kind in types)
            raise TypeError(
                f"{self!r} needs counts of type {known}, got {type(counts).__name__}. Use counts_ of a fitted "
                f"classifier of this kind, after fit_batches or partial_fit."
            )

    def _check_parts(self) -> None:
        """Validate the device, the parameters, and the parameters of nested learners."""
        self._validate_params()
        check_device(self.device)
        for part in ("structure", "parameters"):
            validate_settings(getattr(self, part, None))

    def _learn_source(self, source: RowSource, exact: bool) -> Self:
        """Fit the classifier to a source of rows."""
        from tanlearn.estimators.row_sources import RowEncoder

        fitted = copy(self)
        delete_fitted_attributes(fitted)
        summary = source.summarize(exact)
        fitted._set_names(len(summary.labels), source.names)
        encoder = summary.fit_encoder(new_encoder(self), getattr(fitted, "feature_names_in_", None))
        fitted.encoder_, fitted.classes_ = encoder, summary.classes_
        fitted._learn_batches(source.encoded(RowEncoder.of(summary, encoder, self.class_weight, self.device)))
        return self._become(fitted, len(summary.classes_))

    def _set_names(self, n_features: int, names: Any) -> None:
        """Set ``n_features_in_`` and, if there are names, ``feature_names_in_``."""
        self.n_features_in_ = n_features
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _become(self, fitted: Self, n_classes: int) -> Self:
        """Finish a fitted copy, and transfer all its attributes to the classifier."""
        fitted._end(n_classes)
        self.__dict__.clear()
        self.__dict__.update(fitted.__dict__)
        return self


def _read_all_classes(classes: Any) -> AnyArray:
    """Return the sorted labels in ``classes``."""
    try:
        found = np.unique(read_labels(classes))
        with np.errstate(invalid="ignore"):  # the check casts floats of any size to integers
            check_classification_targets(np.tile(found, 2))  # repeated, because it warns if most labels differ
        return found
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"classes must be a list of the classes of all batches, got {shorten(classes)}: {error}"
        ) from error


def _read_batch(estimator: Any, X: Any, y: Any, classes: Any, sample_weight: Any) -> EncodedData:
    """Check that ``partial_fit`` is possible, and encode the batch."""
    is_first = not hasattr(estimator, "counts_")
    if is_first and estimator.__sklearn_is_fitted__():  # a failed fit may have left attributes
        from tanlearn.estimators.table_counts import why_no_counts

        raise ValueError(
            f"partial_fit adds rows to counts, but {why_no_counts(estimator)}. Start with a new classifier: "
            f"clone(model).partial_fit(...). To keep the earlier rows, count them first: "
            f"model.from_counts(TableCounts.of_source(..., like=model)) returns a classifier with counts."
        )
    if not is_first and not hasattr(estimator, "encoder_"):
        raise ValueError(
            "partial_fit needs categories and cut points, but the classifier was fitted to counts of codes. Pass "
            "encoder and classes to from_counts."
        )
    if is_first and classes is None:
        raise ValueError("the first call of partial_fit must get the classes of all batches. Pass classes=[...].")
    if estimator.class_weight == "balanced":
        raise ValueError(
            "class_weight='balanced' needs all rows at once. Pass weights that balance the classes, or a uniform "
            "class_prior."
        )
    known = estimator.classes_ if classes is None else _read_all_classes(classes)
    if is_first:
        delete_fitted_attributes(estimator)
    elif not np.array_equal(known, estimator.classes_):
        raise ValueError(
            f"classes must be the same as in the first call, {estimator.classes_.tolist()}, got {known.tolist()}. "
            f"Do not pass classes after the first call. For other classes, use a new classifier: "
            f"clone(model).partial_fit(...)."
        )
    return encode_batch(estimator, X, y, known, sample_weight)
