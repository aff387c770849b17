"""The classifiers that learn from Dask's collections; of anything else they do what those of the same names do."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tanlearn import baselines
from tanlearn.dask.partitions import Partitions, collection_kind
from tanlearn.dask.predicting import apply_lazily
from tanlearn.estimators import bayes_forest, composed
from tanlearn.estimators.batches import refuse_what_needs_all_rows

__all__ = ["AODEClassifier", "BayesForestClassifier", "BayesNetClassifier", "NaiveBayesClassifier"]


class _DaskMixin:
    """Learning and prediction where partitions are."""

    #: The class of this process.
    _local: ClassVar[type[Any]]

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from partitions, on the cluster of the current client, or in Dask's threads where there is none.

        Partitions are read twice: first classes, categories and cuts are found, then rows are counted. Each of these
        asks for one reading more: families that a structure learnt has, a sample of rows, and a search by gradient. Who
        has the memory spares them by ``X = X.persist()``.

        Parameters
        ----------
        X : dask DataFrame, Array or Bag of shape (n_samples, n_features)
            Rows. Of a Bag, items are rows; without ``y``, tuples (X, y) or (X, y, sample_weight), each a batch. What is
            not of Dask is learnt from in this process.
        y : dask Series, Array or Bag of shape (n_samples,), or str
            Classes, in partitions like those of X, or the name of the column of X that holds them.
        sample_weight : dask Series, Array or Bag of shape (n_samples,), or str, optional
            Non-negative weights, in the same way.

        Returns
        -------
        object
            The fitted estimator itself. It predicts what that of ``fit`` of all rows in one process does, with the
            exceptions that ``fit_batches`` names.

        Raises
        ------
        ImportError
            If Dask is not installed.
        ValueError, TypeError
            If the learners need all rows at once, a partition breaks a rule of the border, partitions differ in their
            columns, or one has another number of rows when it is read again. The message names the partition, and the
            estimator stays as it was.
        """
        if collection_kind(X) is None:
            return super().fit(X, y, sample_weight)  # type: ignore[misc]
        return self.fit_batches(X, y, sample_weight=sample_weight)

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
        """Learn from partitions, or from whatever else can be read in batches.

        Parameters
        ----------
        source : dask DataFrame, Array or Bag, or object
            As for :meth:`fit`; what is not of Dask is read by this process, batch by batch.
        target : dask Series, Array or Bag, or str, optional
            The classes.
        sample_weight : dask Series, Array or Bag, or str, optional
            The weights.
        columns : list of str, optional
            The columns of a DataFrame to learn from; by default all others.
        batch_rows : int, default=131072
            Rows at most that are held at once of what is not of Dask; a partition is read in whole.
        exact : bool, default=False
            Whether cuts of numbers are found from all distinct values, however many there are.

        Returns
        -------
        object
            The fitted estimator itself.

        Raises
        ------
        ImportError, ValueError, TypeError
            As by :meth:`fit`.
        """
        if collection_kind(source) is None:
            options = {"sample_weight": sample_weight, "columns": columns, "batch_rows": batch_rows, "exact": exact}
            return super().fit_batches(source, target, **options)  # type: ignore[misc]
        self._check_parts()  # type: ignore[attr-defined]
        try:
            refuse_what_needs_all_rows(self, of_contexts=True, of_losses=True)
        except AttributeError as error:
            raise ValueError(str(error)) from error
        return self._learn_source(Partitions(source, target, sample_weight, columns), exact)  # type: ignore[attr-defined]

    @available_if(lambda estimator: super().partial_fit is not None)  # type: ignore[misc, untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Go on with a chunk that is in memory.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            The chunk.
        y : array-like of shape (n_samples,)
            Classes.
        classes : array-like of shape (n_classes,), optional
            All classes that will ever come; needed in the first call.
        sample_weight : array-like of shape (n_samples,), optional
            Non-negative weights.

        Returns
        -------
        object
            The estimator itself.

        Raises
        ------
        TypeError
            If the chunk is a collection of Dask's.
        ValueError
            As by that of the estimator in memory.
        """
        if collection_kind(X) is not None:
            raise TypeError(
                "partial_fit takes chunks that are in memory, and X is a collection of Dask's. Learn all partitions by "
                "fit, or pass X.compute() and y.compute()."
            )
        return super().partial_fit(X, y, classes, sample_weight)  # type: ignore[misc]

    def predict(self, X: Any) -> Any:
        """Return the most probable classes.

        Parameters
        ----------
        X : dask DataFrame, Array or Bag, or array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        dask Series, Array or Bag, or ndarray, of shape (n_samples,)
            Of a collection one like it, not computed yet: one block for every block.

        Raises
        ------
        NotFittedError
            If there is nothing to predict by.
        """
        return self._apply("predict", X)

    def predict_proba(self, X: Any) -> Any:
        """Return the probabilities of the classes.

        Parameters
        ----------
        X : dask DataFrame, Array or Bag, or array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        dask DataFrame, Array or Bag, or ndarray, of shape (n_samples, n_classes)
            Of a collection one like it, not computed yet; a DataFrame has the classes as columns.

        Raises
        ------
        NotFittedError
            If there is nothing to predict by.
        """
        return self._apply("predict_proba", X)

    def predict_log_proba(self, X: Any) -> Any:
        """Return the logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : dask DataFrame, Array or Bag, or array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        dask DataFrame, Array or Bag, or ndarray, of shape (n_samples, n_classes)
            Of a collection one like it, not computed yet; a DataFrame has the classes as columns.

        Raises
        ------
        NotFittedError
            If there is nothing to predict by.
        """
        return self._apply("predict_log_proba", X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows, or of their weight, whose class is predicted.

        Parameters
        ----------
        X, y, sample_weight : object
            As for :meth:`fit`.

        Returns
        -------
        float
            Computed.

        Raises
        ------
        NotFittedError
            If there is nothing to predict by.
        ValueError, TypeError
            As by :meth:`fit`.
        """
        if collection_kind(X) is None:
            return float(super().score(X, y, sample_weight))  # type: ignore[misc]
        return Partitions(X, y, sample_weight).score(self._to_predict())

    def to_local(self) -> Any:
        """Return the fitted classifier of this process that this one is, for pickle and for others.

        Returns
        -------
        Classifier
            Of :mod:`tanlearn` or :mod:`tanlearn.baselines`; it shares what is learnt.

        Raises
        ------
        NotFittedError
            If nothing is learnt yet.
        """
        check_is_fitted(self)
        local = object.__new__(self._local)
        vars(local).update(vars(self))
        return local

    def _apply(self, method: str, X: Any) -> Any:
        """Call a method of the local classifier, here or on workers."""
        if collection_kind(X) is None:
            return getattr(super(), method)(X)
        return apply_lazily(self._to_predict(), method, X)

    def _to_predict(self) -> Any:
        """Return what workers predict by: without counts, many times as large as tables; and a task has one thread."""
        local = self.to_local()
        vars(local).pop("counts_", None)
        local.n_jobs = 1
        return local


class NaiveBayesClassifier(_DaskMixin, composed.NaiveBayesClassifier):
    """Naive Bayes of Dask's collections: :class:`tanlearn.NaiveBayesClassifier`, with the same parameters.

    Beside maximum likelihood, ``ConjugateGradient()`` and ``LBFGS()`` learn its tables: partitions are then kept
    encoded on the workers, and every step adds up their losses and gradients.

    Parameters
    ----------
    parameters, class_weight, class_prior, encoder, device, n_jobs, random_state : object
        As for :class:`tanlearn.NaiveBayesClassifier`.

    Examples
    --------
    >>> import dask.dataframe as dd, pandas as pd
    >>> from tanlearn.dask import NaiveBayesClassifier
    >>> frame = pd.DataFrame({"sky": ["sun", "rain", "sun", "rain"], "where": ["beach", "home", "beach", "home"]})
    >>> days = dd.from_pandas(frame, npartitions=2)
    >>> model = NaiveBayesClassifier().fit(days, "where")
    >>> model.predict(days[["sky"]]).compute().tolist()
    ['beach', 'home', 'beach', 'home']
    """

    _local = composed.NaiveBayesClassifier


class BayesNetClassifier(_DaskMixin, composed.BayesNetClassifier):
    """Networks of Dask's collections: :class:`tanlearn.BayesNetClassifier`, with the same parameters.

    The structure is given, or learnt from counts, as by ``ChowLiu()`` or ``KDependence(k)``; parameters are
    ``MaximumLikelihood()``, ``HierarchicalSmoothing()``, ``HierarchicalDirichlet()``, ``ConjugateGradient()`` or
    ``LBFGS()``.

    Parameters
    ----------
    structure, parameters, class_weight, class_prior, encoder, device, n_jobs, random_state : object
        As for :class:`tanlearn.BayesNetClassifier`.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn.baselines import ChowLiu
    >>> from tanlearn.dask import BayesNetClassifier
    >>> X, y = (da.from_array(values, chunks=50) for values in load_iris(return_X_y=True))
    >>> model = BayesNetClassifier(structure=ChowLiu()).fit(X, y)
    >>> model.predict_proba(X)
    dask.array<_of_array, shape=(150, 3), dtype=float64, chunksize=(50, 3), chunktype=numpy.ndarray>
    """

    _local = composed.BayesNetClassifier


class AODEClassifier(_DaskMixin, baselines.AODEClassifier):
    """AODE of Dask's collections: :class:`tanlearn.baselines.AODEClassifier`, with the same parameters.

    Parameters
    ----------
    alpha, min_count, class_weight, class_prior, encoder, device, n_jobs, random_state : object
        As for :class:`tanlearn.baselines.AODEClassifier`.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn.dask import AODEClassifier
    >>> X, y = (da.from_array(values, chunks=50) for values in load_iris(return_X_y=True))
    >>> AODEClassifier().fit(X, y).score(X, y) > 0.9
    True
    """

    _local = baselines.AODEClassifier


class BayesForestClassifier(_DaskMixin, bayes_forest.BayesForestClassifier):
    """Forests of Dask's collections: :class:`tanlearn.BayesForestClassifier`, with the same parameters.

    ``weights`` must be None: others are found by leaving rows out, which needs all of them at once. A sample of 65,536
    rows grows the members, all rows are counted in them.

    Parameters
    ----------
    n_estimators, max_parents, max_features, n_cuts, smoothing, min_samples, weights, ridge, n_folds : object
        As for :class:`tanlearn.BayesForestClassifier`.
    class_weight, class_prior, encoder, device, n_jobs, random_state, warm_start, verbose : object
        As for :class:`tanlearn.BayesForestClassifier`.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn.dask import BayesForestClassifier
    >>> X, y = (da.from_array(values, chunks=50) for values in load_iris(return_X_y=True))
    >>> model = BayesForestClassifier(n_estimators=4, weights=None, random_state=0).fit(X, y)
    >>> model.to_local().score(X.compute(), y.compute()) > 0.9
    True
    """

    _local = bayes_forest.BayesForestClassifier
