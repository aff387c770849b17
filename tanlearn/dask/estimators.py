"""Classifiers for Dask collections. On other data, they behave like the classifiers with the same names."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from tanlearn import baselines
from tanlearn.dask.partitions import Partitions, collection_kind
from tanlearn.dask.predicting import apply_lazily
from tanlearn.estimators import bayes_forest, bayes_net_classifier, naive_bayes
from tanlearn.estimators.counting_classifier import IN_BATCHES

__all__ = ["AODEClassifier", "BayesForestClassifier", "BayesNetClassifier", "NaiveBayesClassifier"]


class _DaskMixin:
    """Mixin for training and prediction on the workers that hold the partitions."""

    #: Corresponding class for data in memory.
    _local: ClassVar[type[Any]]

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Fit the classifier to partitions, on the cluster of the current client, or in threads without a client.

        Partitions are read twice: first to find classes, categories and cut points, then to count rows. An additional
        pass is needed for each of these steps: counting the families of a learned structure, sampling rows, and
        training by gradient. If the data fit into memory, call ``X = X.persist()`` first, so that partitions are loaded
        only once.

        Parameters
        ----------
        X : dask DataFrame, Array or Bag of shape (n_samples, n_features)
            Rows. If ``y`` is given, the items of a Bag are rows. Otherwise, each item is a batch, that is, a tuple (X,
            y) or (X, y, sample_weight). If X is not a Dask collection, the classifier is fitted in this process.
        y : dask Series, Array or Bag of shape (n_samples,), or str
            Classes, with the same partitions as X, or the name of the column of X that contains them.
        sample_weight : dask Series, Array or Bag of shape (n_samples,), or str, optional
            Nonnegative weights, in the same form as ``y``.

        Returns
        -------
        object
            The fitted estimator itself. It makes the same predictions as after ``fit`` on all rows in one process,
            except in the cases that ``fit_batches`` documents.

        Raises
        ------
        ImportError
            If Dask is not installed.
        ValueError, TypeError
            If a learner needs all rows at once, a partition contains invalid data, partitions have different columns,
            or the number of rows of a partition changes between passes. The message contains the number of the
            partition. The estimator stays unchanged.
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
        """Fit the classifier to partitions, or to any other source of batches.

        Parameters
        ----------
        source : dask DataFrame, Array or Bag, or object
            Rows, as for :meth:`fit`. Sources other than Dask collections are read in this process, batch by batch.
        target : dask Series, Array or Bag, or str, optional
            Classes, like ``y`` of :meth:`fit`.
        sample_weight : dask Series, Array or Bag, or str, optional
            Weights, as for :meth:`fit`.
        columns : list of str, optional
            Columns of a DataFrame that are used as features. By default, these are all columns except target and
            weights.
        batch_rows : int, default=131072
            Maximum number of rows per batch, for sources other than Dask collections. Partitions are read as a whole.
        exact : bool, default=False
            If True, cut points are computed from all distinct values, even if there are many.

        Returns
        -------
        object
            The fitted estimator itself.

        Raises
        ------
        ImportError, ValueError, TypeError
            As in :meth:`fit`.
        """
        if collection_kind(source) is None:
            options = {"sample_weight": sample_weight, "columns": columns, "batch_rows": batch_rows, "exact": exact}
            return super().fit_batches(source, target, **options)  # type: ignore[misc]
        self._check_parts()  # type: ignore[attr-defined]
        try:
            self._check_needs(IN_BATCHES | {"gradients"})  # type: ignore[attr-defined]
        except AttributeError as error:
            raise ValueError(str(error)) from error
        return self._learn_source(Partitions(source, target, sample_weight, columns), exact)  # type: ignore[attr-defined]

    @available_if(lambda estimator: super().partial_fit is not None)  # type: ignore[misc, untyped-decorator]
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Continue training with a batch in memory.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows in memory, as for ``partial_fit`` of the corresponding classifier without Dask.
        y : array-like of shape (n_samples,)
            Class labels.
        classes : array-like of shape (n_classes,), optional
            The classes of all batches. Required if the classifier is not fitted.
        sample_weight : array-like of shape (n_samples,), optional
            Weights.

        Returns
        -------
        object
            The estimator itself.

        Raises
        ------
        TypeError
            If X is a Dask collection.
        """
        if collection_kind(X) is not None:
            raise TypeError(
                "X must be a batch in memory, got a Dask collection. Fit all partitions with fit, or pass "
                "X.compute() and y.compute()."
            )
        return super().partial_fit(X, y, classes, sample_weight)  # type: ignore[misc]

    def predict(self, X: Any) -> Any:
        """Predict the most probable classes.

        Parameters
        ----------
        X : dask DataFrame, Array or Bag, or array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        dask Series, Array or Bag, or ndarray, of shape (n_samples,)
            For a collection, a lazy collection of the same kind with the same blocks.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        """
        return self._apply("predict", X)

    def predict_proba(self, X: Any) -> Any:
        """Predict class probabilities.

        Parameters
        ----------
        X : dask DataFrame, Array or Bag, or array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        dask DataFrame, Array or Bag, or ndarray, of shape (n_samples, n_classes)
            For a collection, a lazy collection of the same kind. The columns of a DataFrame are the classes.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        """
        return self._apply("predict_proba", X)

    def predict_log_proba(self, X: Any) -> Any:
        """Predict log class probabilities.

        Parameters
        ----------
        X : dask DataFrame, Array or Bag, or array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        dask DataFrame, Array or Bag, or ndarray, of shape (n_samples, n_classes)
            For a collection, a lazy collection of the same kind. The columns of a DataFrame are the classes.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        """
        return self._apply("predict_log_proba", X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the weighted accuracy.

        Parameters
        ----------
        X, y, sample_weight : object
            As for :meth:`fit`.

        Returns
        -------
        float
            Weighted fraction of rows whose class is predicted correctly. It is computed immediately.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError, TypeError
            As in :meth:`fit`.
        """
        if collection_kind(X) is None:
            return float(super().score(X, y, sample_weight))  # type: ignore[misc]
        return Partitions(X, y, sample_weight).score(self._to_predict())

    def to_local(self) -> Any:
        """Return the corresponding fitted classifier without Dask, for example to pickle it.

        Returns
        -------
        Classifier
            A classifier of :mod:`tanlearn` or :mod:`tanlearn.baselines` that shares the fitted attributes.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        """
        check_is_fitted(self)
        local = object.__new__(self._local)
        vars(local).update(vars(self))
        return local

    def _apply(self, method: str, X: Any) -> Any:
        """Call a prediction method, locally or lazily on the workers."""
        if collection_kind(X) is None:
            return getattr(super(), method)(X)
        return apply_lazily(self._to_predict(), method, X)

    def _to_predict(self) -> Any:
        """Return a classifier for predictions on workers: single-threaded, and without counts, which can be large."""
        local = self.to_local()
        vars(local).pop("counts_", None)
        local.n_jobs = 1
        return local


class NaiveBayesClassifier(_DaskMixin, naive_bayes.NaiveBayesClassifier):
    """Naive Bayes on Dask collections: :class:`tanlearn.NaiveBayesClassifier` with the same parameters.

    The parameter learner is ``MaximumLikelihood()``, ``HierarchicalSmoothing()``, ``HierarchicalDirichlet()``,
    ``ConjugateGradient()`` or ``LBFGS()``. For the last two learners, the workers keep the encoded partitions, and the
    losses and gradients of the partitions are added up in each step.

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

    _local = naive_bayes.NaiveBayesClassifier


class BayesNetClassifier(_DaskMixin, bayes_net_classifier.BayesNetClassifier):
    """Bayesian network on Dask collections: :class:`tanlearn.BayesNetClassifier` with the same parameters.

    The structure is given, or learned from counts, for example by ``ChowLiu()`` or ``KDependence(k)``. The parameter
    learner is ``MaximumLikelihood()``, ``HierarchicalSmoothing()``, ``HierarchicalDirichlet()``,
    ``ConjugateGradient()`` or ``LBFGS()``.

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

    _local = bayes_net_classifier.BayesNetClassifier


class AODEClassifier(_DaskMixin, baselines.AODEClassifier):
    """AODE on Dask collections: :class:`tanlearn.baselines.AODEClassifier` with the same parameters.

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
    """Forest on Dask collections: :class:`tanlearn.BayesForestClassifier` with the same parameters.

    ``weights`` must be None, because weights are fitted to held-out predictions, which need all rows at once. The
    networks are grown on a sample of 65,536 rows. Then their CPTs are estimated from the counts of all rows.

    Parameters
    ----------
    n_estimators, max_parents, max_features, knowledge, n_cuts, smoothing, min_samples, weights : object
        As for :class:`tanlearn.BayesForestClassifier`.
    class_weight, class_prior, encoder, n_jobs, random_state, warm_start, verbose : object
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
