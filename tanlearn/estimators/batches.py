"""Learning from data of any size: read batch by batch, and as often as what is learnt asks for.

The first reading finds classes, categories and cuts; the second counts. What counts cannot decide (how deep a forest's
members are, smoothing that is left to the rows) a sample of the rows decides, and what is counted only once a structure
is known costs a reading more.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from tanlearn.data.batches import open_batches
from tanlearn.data.border import forget, new_encoder
from tanlearn.data.encoded_data import EncodedData
from tanlearn.estimators.row_sources import BatchSource, EncodedSource, RowEncoder, RowSource
from tanlearn.kernels._cuda import check_device
from tanlearn.network.structures import Structure
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood

__all__ = ["BatchFitMixin", "refuse_what_needs_all_rows"]


def refuse_what_needs_all_rows(estimator: Any, *, of_contexts: bool, of_losses: bool = False) -> bool:
    """Return whether all that an estimator learns follows from counts, or say what does not."""
    structure, parameters = getattr(estimator, "structure", None), getattr(estimator, "parameters", None)
    weights = getattr(estimator, "weights", None)
    if weights is not None:
        raise AttributeError(
            f"weights={weights!r} are found by leaving rows out, which needs all of them at once. Use weights=None."
        )
    can = parameters is None or isinstance(parameters, MaximumLikelihood)
    can = can or (of_contexts and hasattr(parameters, "from_contexts"))
    if not (can or (of_losses and hasattr(parameters, "from_objective"))):
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
    _notation: Any

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
    ) -> Self:
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
            cuts are exact and weights whole, and rows that choose are all rows; typical values of intervals are
            equal but for rounding.

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
        self._check_parts()
        batches = open_batches(source, target, weight=sample_weight, columns=columns, batch_rows=batch_rows)
        self._learn_source(BatchSource(batches, self.n_jobs), exact)
        if batches.notation is not None:
            self._notation = batches.notation  # new rows in a file are read with it by the command line
        return self

    def _check_parts(self) -> None:
        """Refuse wrong parameters, of learners too, and a device that is not there."""
        self._validate_params()  # type: ignore[attr-defined]
        check_device(self.device)
        for part in ("structure", "parameters"):
            getattr(getattr(self, part, None), "_validate_params", bool)()

    def _learn_source(self, source: RowSource, exact: bool) -> Self:
        """Learn from rows that are read as often as they are asked for; what fails changes nothing."""
        twin = copy(self)
        forget(twin)
        summary = source.summarize(exact)
        _take_names(twin, source.names, len(summary.places))
        names = getattr(twin, "feature_names_in_", None)
        encoder = summary.fit_encoder(new_encoder(self), names)
        twin.encoder_, twin.classes_ = encoder, summary.classes_  # type: ignore[attr-defined]
        twin._learn_batches(source.encoded(RowEncoder.of(summary, encoder, self.class_weight, self.device)))
        twin._end(len(summary.classes_))  # type: ignore[attr-defined]
        vars(self).clear()
        vars(self).update(vars(twin))
        return self

    def _learn_batches(self, rows: EncodedSource) -> None:
        """Count all rows, and learn from the counts; ``counts_`` can go on with ``partial_fit``."""
        self.counts_ = rows.add_to(self._new_counts(rows.nothing), n_jobs=self.n_jobs)
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
