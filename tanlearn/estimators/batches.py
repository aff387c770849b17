"""Fitting to data of any size, batch by batch, in as many passes as the model needs.

The first pass determines classes, categories and cut points, the second pass counts. A sample of the rows is used for
decisions that counts cannot make, such as the depth of the networks of a forest, or smoothing that is chosen by leaving
rows out. Counts that depend on a learned structure need one more pass.
"""

from __future__ import annotations

from copy import copy
from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from tanlearn.data.batches import open_batches
from tanlearn.data.encoded_data import EncodedData
from tanlearn.data.estimator_input import delete_fitted_attributes, new_encoder
from tanlearn.estimators.row_sources import BatchSource, EncodedSource, RowEncoder, RowSource
from tanlearn.kernels._cuda import check_device
from tanlearn.network.structures import Structure
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood

__all__ = ["BatchFitMixin", "refuse_what_needs_all_rows"]


def refuse_what_needs_all_rows(estimator: Any, *, of_contexts: bool, of_losses: bool = False) -> bool:
    """Return True if counts determine all that an estimator learns; otherwise raise an AttributeError."""
    structure, parameters = getattr(estimator, "structure", None), getattr(estimator, "parameters", None)
    weights = getattr(estimator, "weights", None)
    if weights is not None:
        raise AttributeError(
            f"weights={weights!r} are fitted by leaving rows out, which needs all rows at once. Use weights=None."
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
    """``fit_batches`` for classifiers based on counts."""

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
        """Fit the classifier to data of any size, batch by batch.

        The source is read twice: the first pass determines classes, categories and cut points, the second pass counts.
        A random sample of 65,536 rows is used for decisions that need rows: contexts of forests, smoothing of
        hierarchical CPTs, and selective KDB. Counts of families with two or more parents need one more pass, once the
        structure is known.

        Parameters
        ----------
        source : object
            One of:

            - an object with an Arrow C stream: tables and record-batch readers of pyarrow, frames of pandas and polars,
              relations of DuckDB;
            - a pyarrow data set, or a polars lazy frame;
            - the path of a file, or of a folder of Parquet files;
            - an iterable of (X, y) or (X, y, sample_weight);
            - a function without arguments that returns one of these and is called once per pass, for sources that can
              be iterated only once.
        target : str, optional
            Column of the classes, if the source has columns.
        sample_weight : str, optional
            Column of the weights, if the source has one.
        columns : list of str, optional
            Columns of the features; by default all others.
        batch_rows : int, default=131072
            Maximum number of rows in memory, from 1.
        exact : bool, default=False
            Whether cut points are computed from all distinct numbers. By default, columns of more than 65,536 distinct
            numbers are summarized, with rank errors of at most about a thousandth.

        Returns
        -------
        object
            The fitted estimator. It predicts the same as after ``fit`` on all rows, bit for bit, if cut points are
            exact, weights are integers and the sample contains all rows. Typical values of intervals are equal up to
            rounding.

        Raises
        ------
        AttributeError
            If a learner of the estimator needs all rows at once.
        ImportError
            If the source needs a package that is not installed, or the device is not available.
        ValueError, TypeError
            If a column, the classes or the weights are invalid, batches have different columns, or the source can be
            read only once. The estimator is then unchanged.

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
        """Validate the parameters, also those of nested learners, and the device."""
        self._validate_params()  # type: ignore[attr-defined]
        check_device(self.device)
        for part in ("structure", "parameters"):
            getattr(getattr(self, part, None), "_validate_params", bool)()

    def _learn_source(self, source: RowSource, exact: bool) -> Self:
        """Fit to a row source; the estimator is unchanged if fitting fails."""
        twin = copy(self)
        delete_fitted_attributes(twin)
        summary = source.summarize(exact)
        _take_names(twin, source.names, len(summary.labels))
        names = getattr(twin, "feature_names_in_", None)
        encoder = summary.fit_encoder(new_encoder(self), names)
        twin.encoder_, twin.classes_ = encoder, summary.classes_  # type: ignore[attr-defined]
        twin._learn_batches(source.encoded(RowEncoder.of(summary, encoder, self.class_weight, self.device)))
        twin._end(len(summary.classes_))  # type: ignore[attr-defined]
        vars(self).clear()
        vars(self).update(vars(twin))
        return self

    def _learn_batches(self, rows: EncodedSource) -> None:
        """Count all rows and fit to the counts; ``partial_fit`` can continue from ``counts_``."""
        self.counts_ = rows.add_to(self._new_counts(rows.nothing), n_jobs=self.n_jobs)
        self._learn_counts(self.counts_)

    def _new_counts(self, data: EncodedData) -> Any:
        """Return empty counts of the type that the classifier needs."""
        raise NotImplementedError(type(self).__name__)

    def _learn_counts(self, counts: Any) -> None:
        """Fit to counts."""
        raise NotImplementedError(type(self).__name__)


def _take_names(estimator: Any, names: tuple[str, ...] | None, n_features: int) -> None:
    """Set ``n_features_in_`` and, if there are names, ``feature_names_in_``."""
    estimator.n_features_in_ = n_features
    if names is not None:
        estimator.feature_names_in_ = np.array(names, dtype=object)
