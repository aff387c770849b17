"""Learning from data of any size: read batch by batch, and as often as what is learnt asks for.

The first reading finds classes, categories and cuts; the second counts. What counts cannot decide (how deep a forest's
members are, smoothing that is left to the rows) a sample of the rows decides, and what is counted only once a structure
is known costs a reading more.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from tanlearn._typing import IntArray, codes_dtype
from tanlearn.data.batches import Batches, open_batches
from tanlearn.data.border import forget, new_encoder
from tanlearn.data.class_weights import weigh_classes
from tanlearn.data.encoded_data import EncodedData, joined
from tanlearn.data.summaries import TableSummary
from tanlearn.data.validation import present_rows
from tanlearn.kernels._cuda import check_device
from tanlearn.network.structures import Structure
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood

__all__ = ["BatchFitMixin", "EncodedBatches", "refuse_what_needs_all_rows"]

#: Rows at most that decide what counts cannot.
SAMPLE_ROWS = 2**16


class EncodedBatches:
    """The encoded rows of a source, read as often as they are asked for.

    Parameters
    ----------
    batches : Batches
        The source.
    summary : TableSummary
        What the first reading has found.
    encoder : TableEncoder
        Fitted to that.
    class_weight : None, "balanced" or dict
        As for the estimators.
    device : {"cpu", "cuda"}
        Where rows are counted.

    Attributes
    ----------
    n_samples : int
        Rows of non-zero weight.
    n_states : ndarray of shape (n_features,), intp
        Values of every feature.
    n_classes : int
        Number of classes.
    """

    def __init__(self, batches: Batches, summary: TableSummary, encoder: Any, class_weight: Any, device: str) -> None:
        self.n_samples, self.n_states, self.n_classes = summary.n_samples, encoder.n_states_, len(summary.classes_)
        self._batches, self._classes, self._encoder, self._device = batches, summary.classes_, encoder, device
        self._is_ordered = summary.have_order(encoder)
        if isinstance(class_weight, str):  # "balanced", of all rows
            totals = summary.class_counts
            class_weight = dict(zip(self._classes.tolist(), totals.sum() / len(totals) / totals, strict=True))
        self._class_weight = class_weight

    def __iter__(self) -> Iterator[EncodedData]:
        for batch in self._batches:
            if batch.sample_weight is not None and not batch.sample_weight.any():
                continue
            with batch.located():
                table, weights = batch.columns, batch.sample_weight
                columns, y, _, weights, numbers = present_rows(table, batch.y, weights, self._classes)
                codes = self._encoder.encode_columns(columns)
                weights = weigh_classes(self._class_weight, y, self._classes, weights)
            rows = codes, self.n_states, y, self.n_classes, weights, columns.places, numbers
            yield EncodedData(*rows, self._device, is_ordered=self._is_ordered)

    def add_to(self, counts: Any, *, n_jobs: int | None = None) -> Any:
        """Count all rows.

        Parameters
        ----------
        counts : object
            With ``update(data, n_jobs=...)``.
        n_jobs : int, optional
            Threads, as in joblib.

        Returns
        -------
        object
            The same.
        """
        for data in self:
            counts.update(data, n_jobs=n_jobs)
        return counts

    @property
    def nothing(self) -> EncodedData:
        """No row of it."""
        codes = np.empty((len(self.n_states), 0), codes_dtype(int(self.n_states.max())))
        return EncodedData(codes, self.n_states, np.empty(0, np.intp), self.n_classes, device=self._device)

    @cached_property
    def sample(self) -> EncodedData:
        """At most 65,536 rows, drawn from all of them, in their order: the same of the same rows in the same order."""
        chosen: IntArray = np.arange(self.n_samples)
        if self.n_samples > SAMPLE_ROWS:
            chosen = np.sort(np.random.default_rng(0).choice(self.n_samples, SAMPLE_ROWS, replace=False))
        parts, first = [], 0
        for data in self:
            begin, end = np.searchsorted(chosen, [first, first + data.n_samples])
            parts.append(data.take(chosen[begin:end] - first))
            first += data.n_samples
        return joined(parts)


def refuse_what_needs_all_rows(estimator: Any, *, of_contexts: bool) -> bool:
    """Return whether all that an estimator learns follows from counts, or say what does not.

    Parameters
    ----------
    estimator : estimator
        What learns.
    of_contexts : bool
        Whether there may be counts of families whose structure is known only once pairs are counted.

    Returns
    -------
    bool
        True.

    Raises
    ------
    AttributeError
        If something does not.
    """
    structure, parameters = getattr(estimator, "structure", None), getattr(estimator, "parameters", None)
    weights = getattr(estimator, "weights", None)
    if weights is not None:
        raise AttributeError(
            f"weights={weights!r} are found by leaving rows out, which needs all of them at once. Use weights=None."
        )
    can = parameters is None or isinstance(parameters, MaximumLikelihood)
    if not (can or (of_contexts and hasattr(parameters, "from_contexts"))):
        raise AttributeError(f"{parameters!r} needs all rows at once. Use parameters=MaximumLikelihood().")
    if not (structure is None or isinstance(structure, Structure) or hasattr(structure, "from_counts")):
        raise AttributeError(
            f"{structure!r} needs all rows at once. Use a Structure, or a learner of counts such as ChowLiu()."
        )
    return True


class BatchFitMixin:
    """``fit_batches`` for classifiers that learn from counts."""

    encoder: Any
    class_weight: Any
    device: str
    n_jobs: int | None
    counts_: Any

    @available_if(lambda estimator: refuse_what_needs_all_rows(estimator, of_contexts=True))  # type: ignore[untyped-decorator]
    def fit_batches(
        self,
        source: Any,
        target: Any = None,
        *,
        sample_weight: Any = None,
        columns: Any = None,
        batch_rows: int = 2**17,
        exact: bool = False,
    ) -> Any:
        """Learn from data of any size, batch by batch.

        The source is read twice: first classes, categories and cuts are found, then rows are counted. What needs rows
        to decide (the contexts of forests, smoothing of hierarchical tables, selective KDB) asks a sample of 65,536
        rows, and what is counted once the structure is known (families of two parents and more) costs one reading more.

        Parameters
        ----------
        source : object
            Anything with an Arrow C stream (tables and record-batch readers of pyarrow, frames of pandas and polars,
            relations of DuckDB), a data set of pyarrow, a lazy frame of polars, the path of a file or of a folder of
            Parquet files; an iterable of (X, y) or (X, y, sample_weight); or a function without arguments that returns
            one of these, for what can be read only once.
        target : str, optional
            The column with the classes, if the source is a table.
        sample_weight : str, optional
            The column with the weights, if it is a table that has one.
        columns : list of str, optional
            The columns to learn from; by default all others.
        batch_rows : int, default=131072
            Rows at most that are held at once, from 1.
        exact : bool, default=False
            Whether cuts of numbers are found from all distinct values. Otherwise they are while there are 65,536 at
            most, and from a summary of them beyond, whose ranks are off by about a thousandth at most.

        Returns
        -------
        object
            The fitted estimator itself. It predicts what that of ``fit`` on the whole table does, to the last bit while
            cuts are exact and weights whole, and rows that choose are all rows; but ``class_weight`` has no say in
            cuts, and typical values of intervals are equal but for rounding.

        Raises
        ------
        AttributeError
            If the estimator's learners need all rows at once.
        ImportError
            If the source needs a package that is not installed, or the device is not there.
        ValueError, TypeError
            If a column, the classes or the weights break a rule of the border, batches differ in their columns, or the
            source can be read only once. The estimator stays as it was.

        Examples
        --------
        >>> from tanlearn import NaiveBayesClassifier
        >>> batches = [([["a"], ["b"]], ["no", "yes"]), ([["c"], ["b"]], ["no", "yes"])]
        >>> model = NaiveBayesClassifier().fit_batches(batches)
        >>> model.encoder_.categories_[0].tolist(), model.predict([["c"]]).tolist()
        (['a', 'b', 'c'], ['no'])
        """
        self._validate_params()  # type: ignore[attr-defined]
        check_device(self.device)
        for part in ("structure", "parameters"):
            getattr(getattr(self, part, None), "_validate_params", bool)()
        twin = copy(self)
        forget(twin)
        batches = open_batches(source, target, weight=sample_weight, columns=columns, batch_rows=batch_rows)
        summary = TableSummary(exact=exact)
        for batch in batches:
            with batch.located():
                summary.update(batch.columns, batch.y, batch.sample_weight)
        _take_names(twin, batches.names, len(summary.places))
        names = getattr(twin, "feature_names_in_", None)
        encoder = summary.fit_encoder(new_encoder(self), names)
        twin.encoder_, twin.classes_ = encoder, summary.classes_  # type: ignore[attr-defined]
        reading = EncodedBatches(batches, summary, encoder, self.class_weight, self.device)
        twin._learn_batches(reading)
        twin._end(reading.n_classes)  # type: ignore[attr-defined]
        vars(self).clear()
        vars(self).update(vars(twin))
        return self

    def _learn_batches(self, reading: EncodedBatches) -> None:
        """Count all rows, and learn from the counts; ``counts_`` can go on with ``partial_fit``."""
        self.counts_ = reading.add_to(self._new_counts(reading.nothing), n_jobs=self.n_jobs)
        self._learn_counts(self.counts_)

    def _new_counts(self, data: EncodedData) -> Any:
        """Return what rows are counted in."""
        raise NotImplementedError(type(self).__name__)

    def _learn_counts(self, counts: Any) -> None:
        """Learn from counts."""
        raise NotImplementedError(type(self).__name__)


def _take_names(estimator: Any, names: tuple[str, ...] | None, n_features: int) -> None:
    """Set what scikit-learn sets of a table's columns."""
    estimator.n_features_in_ = n_features
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
