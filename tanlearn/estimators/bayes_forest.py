"""Forest of random k-dependence networks, fitted by counting, with weights fitted to out-of-fold predictions."""

from __future__ import annotations

import os
import reprlib
from copy import copy
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from tanlearn._progress import reporter
from tanlearn.c_export.header import export_c
from tanlearn.counts.counts_base import Counts
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.quantile_discretizer import QuantileDiscretizer
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.estimators.classifier import Classifier
from tanlearn.estimators.counting_classifier import CountingClassifier
from tanlearn.estimators.deprecated_parameters import DeprecatedParameters, FormerOfForest
from tanlearn.estimators.estimator_input import generator
from tanlearn.estimators.forest_interpretation import ForestReadingMixin
from tanlearn.estimators.row_sources import EncodedSource
from tanlearn.forest.forest import Forest
from tanlearn.forest.forest_counts import ForestCounts
from tanlearn.forest.forest_network import DrawSettings
from tanlearn.forest.learning import FittedForest, ForestSettings, GrownNetworks, fit_forest_weights, grow_forest
from tanlearn.forest.rounded_forest import round_forest
from tanlearn.models.model import Model
from tanlearn.structures.knowledge import Knowledge
from tanlearn.structures.monotone_columns import has_directions, read_knowledge, rules_without_children
from tanlearn.structures.structures import Structure

__all__ = ["BayesForestClassifier"]

#: Class numbers are stored in 16 bits.
_MOST_CLASSES = 2**16 - 1
#: Decimal exponent of the smallest allowed probability. Numbers of type float64 have full precision down to 1e-307.
_LEAST_EXPONENT = -290
#: Minimum number of rows per context, and maximum number of contexts per level, for the default of ``min_samples``.
#: Contexts of four times as many rows on a data set of 100,000 rows and 50 columns, and of three times as many rows on
#: letter, hardly changed the log losses (from 0.885 to 0.880, and 0.117).
_LEAST_SAMPLES, _MOST_CONTEXTS = 5, 4096


class BayesForestClassifier(DeprecatedParameters, ForestReadingMixin, CountingClassifier):
    """Forest of random Bayesian networks: accurate without tuning, and available for data larger than memory.

    Each network discretizes numeric features in its own way and draws an order of the features. Each feature gets up to
    ``max_parents`` parents from a random subset of the earlier features. The parents are the features in this subset
    that have the largest mutual information with the feature, given the class. For each family (a feature with its
    parents), the network counts the combinations of values that occur. A family has several levels: level 0 uses no
    parent, level 1 the first parent, and so on. Each level is smoothed toward the previous level.

    For each fold, all networks are grown again without the rows of the fold, and predict these rows. These out-of-fold
    predictions are used to fit weights of levels, features and single families by conditional likelihood. The final
    networks use all rows. If there are 524,288 rows or more, the networks are grown only once. The weights are then
    fitted to 8,192 random rows, which are left out when the networks are grown.

    Parameters
    ----------
    n_estimators : int, default=32
        Number of networks. More networks are more accurate if the class depends on many features. Time and memory are
        proportional to the number of networks. If all networks, including those for out-of-fold predictions, would take
        more than 4 GiB, fewer networks are grown, and a warning is issued. The limit is 1 GiB if there are more than
        100 combinations of values and classes of all columns per row. The environment variable
        ``TANLEARN_MAX_TABLE_GIB`` replaces these limits.
    max_parents : int or "auto", default="auto"
        Maximum number of parents per feature, at least 0. "auto" is 4. Out-of-fold predictions are used to fit the
        weight of each additional parent or, with ``weights=None``, to select the number of parents.
    max_features : float or "auto", default="auto"
        Fraction of the earlier features that are drawn as candidate parents. At most 32 features are drawn; if there
        are more than 256 features, this limit decreases down to 8. "auto" is half of the earlier features, but at least
        four.
    knowledge : Knowledge, optional
        Required and forbidden edges, tiers of columns, and monotone columns, which apply to every network. A feature
        may have at most ``max_parents`` required parents.
    n_cuts : int or array-like of two int, default=(3, 15)
        Minimum and maximum number of cut points of an ordered feature in a network, or one number for both. The number
        is drawn for each feature and limited by its number of distinct values. For half of the features, the cut points
        minimize the class entropy in a bootstrap sample. For the other half, they are random.
    smoothing : float, default=1.0
        Parameter m of hierarchical smoothing: pseudo-count, in rows, of the distribution with one fewer parent. It must
        be positive, and large enough that products over the levels do not underflow.
    min_samples : int or "auto", default="auto"
        Minimum number of rows, regardless of their weights, for which a combination of parent values is counted
        separately, from 1 to 2,147,483,647. "auto" is 5, or the number of rows divided by 4,096 if there are more than
        24,576 rows, which limits the memory.
    weights : {"auto", "shared"} or None, default="auto"
        Weights that are fitted to out-of-fold predictions. With "shared", weights of levels and features are fitted;
        with "auto", also weights of single families. Each set of weights is used only if it lowers the out-of-fold log
        loss. If None, the probabilities of the networks are averaged, with the number of parents that has the lowest
        out-of-fold log loss.
    class_weight : None, "balanced" or dict, default=None
        Factor by which the sample weights of each class are multiplied. "balanced" gives all classes the same total
        weight.
    class_prior : array-like of shape (n_classes,), optional
        Class probabilities, in the order of ``classes_``. By default, they are the class frequencies of the training
        rows.
    encoder : TableEncoder, optional
        Encoder of raw columns. By default, or if the encoder has no ``discretizer``, a
        :class:`~tanlearn.QuantileDiscretizer` computes up to 1,023 cut points per feature.
    n_jobs : int, optional
        Number of threads, as in joblib. With a backend of worker processes, such as
        ``joblib.parallel_config(backend="dask")``, the networks are grown in the workers, and the weights are fitted in
        this process. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed for networks and folds.
    warm_start : bool, default=False
        Keep the networks of the previous fit if the rows and all settings of the networks are unchanged. If
        ``n_estimators`` is larger, only the additional networks are grown, and only these depend on a new
        ``random_state``. With the same ``random_state``, the forest equals a forest that was grown at once. The weights
        are fitted again.
    verbose : int, default=0
        If 1, the out-of-fold log loss of each set of weights is printed.

    Attributes
    ----------
    forest_ : Forest
        Networks and weights.
    structures_ : list of Structure
        Structure of each network.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Mean increase in the out-of-fold log loss, in nats, if the feature is left out.
    counts_ : ForestCounts
        Counts in all networks, after ``partial_fit``, ``fit_batches`` or ``from_counts``. ``model.counts_.empty()``
        returns empty counts for other rows, and ``model.counts_.merge(...)`` adds them. See
        :class:`~tanlearn.forest.forest_counts.ForestCounts`.
    classes_ : ndarray of shape (n_classes,)
        Class labels in sorted order.
    encoder_ : TableEncoder
        The fitted encoder.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, set only if ``X`` had column names.
    n_parameters_ : int
        Number of parameters, that is, of all numbers that are added up in predictions.

    Notes
    -----
    If a column has missing values in training, "missing" becomes a category, because a missing value may be more
    informative than the value itself. In other columns, a missing value contributes nothing. If a parent is missing, a
    family uses only the levels before this parent.

    Networks merge adjacent values of ordered features: numbers, including integers with few distinct values, and pandas
    categoricals with ``ordered=True``. Strings, booleans, other categoricals, and numeric columns in
    ``discrete_features`` of the encoder are unordered. For codes (:meth:`fit_encoded`), ``is_ordered`` of the data
    determines which features are ordered.

    The weighted forest, the average of its networks and the class frequencies are compared by the log loss of at most
    2,048 out-of-fold rows, and the best of the three is kept. The average is kept only if it is better than the
    weighted forest by two standard errors. If the features are only noise, the forest therefore predicts the class
    frequencies. With ``weights=None``, only different numbers of parents are compared.

    With ``weights=None``, the forest supports :meth:`partial_fit`. The first batch determines cut points, parents, the
    combinations of values that are counted, and the number of parents. All batches are counted in these combinations,
    and the counts add up. Afterwards, only ``smoothing`` and ``class_prior`` can be changed. The feature importances
    are computed from the first batch only.

    Columns in ``Knowledge(increasing=..., decreasing=...)`` have parents but no children, so they do not interact with
    each other. For each combination of values of the parents, the log odds log p(x | 1, parents) - log p(x | 0,
    parents) of such a column are made monotone by isotonic regression. The weights of its levels are nonnegative and do
    not increase with the level, so that weighted sums over levels and networks are monotone, too, except for rounding
    errors in the last digits. This guarantee also holds if other values of the row are missing. Rounding to few bits
    would violate the guarantee, so :meth:`with_bits` and :meth:`export_c` raise an error. :meth:`partial_fit` and the
    other methods for batches are not available.

    References
    ----------
    Dykstra, Kochar, Robertson: Inference for likelihood ratio ordering in the two-sample problem. Journal of the
    American Statistical Association 90, 1995 (monotone log odds).

    Sahami: Learning limited dependence Bayesian classifiers. KDD 1996. Zaidi, Webb et al.: Efficient parameter learning
    of Bayesian network classifiers. Machine Learning 106, 2017 (discriminative weights of generative parameters).
    Petitjean, Buntine, Webb, Zaidi: Accurate parameter estimation for Bayesian network classifiers using hierarchical
    Dirichlet processes. Machine Learning 107, 2018 (smoothing from level to level).

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import BayesForestClassifier
    >>> X = np.random.default_rng(0).integers(0, 2, (300, 4))
    >>> y = X[:, 0] ^ X[:, 1] ^ X[:, 2]  # no two features are informative together
    >>> model = BayesForestClassifier(n_estimators=16, random_state=0).fit(X[:200], y[:200])
    >>> model.score(X[200:], y[200:])
    1.0
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{name: rule for name, rule in Classifier._parameter_constraints.items() if name != "device"},
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_parents": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "max_features": [Interval(Real, 0, 1, closed="both"), StrOptions({"auto"})],
        "knowledge": [Knowledge, None],
        "n_cuts": [tuple, list, np.ndarray, Interval(Integral, 1, None, closed="left")],
        "smoothing": [Interval(Real, 0, None, closed="neither")],
        "min_samples": [Interval(Integral, 1, 2**31 - 1, closed="both"), StrOptions({"auto"})],
        "weights": [StrOptions({"auto", "shared"}), None],
        "warm_start": ["boolean"],
        "verbose": [Interval(Integral, 0, None, closed="left")],
    }
    _removed: ClassVar[dict[str, list[Any]]] = {
        "ridge": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "device": [StrOptions({"cpu"})],
    }

    device = "cpu"
    #: Strength of the penalty (ridge) that shrinks weights of features and families toward their initial values. Half
    #: of the squared distance times the ridge, in nats, is added to the mean log loss. With "auto", the ridge is
    #: selected by the out-of-fold log loss.
    _ridge: float | str = "auto"
    #: Maximum number of folds. Large data sets need fewer folds, because the weights are fitted to 8,192 rows. Up to
    #: 2,048 rows, weights are also evaluated with networks that are grown without two folds.
    _n_folds = 5
    _count_types: ClassVar[tuple[type[Counts], ...]] = (ForestCounts,)
    _model_type: ClassVar[type[Model]] = Forest
    _grown: GrownNetworks | None = None
    #: Whether the forest was fitted with monotone columns; None for a file of an earlier version.
    _is_monotone: bool | None = None

    def __init__(
        self,
        *,
        n_estimators: int = 32,
        max_parents: int | str = "auto",
        max_features: float | str = "auto",
        knowledge: Knowledge | None = None,
        n_cuts: Any = (3, 15),
        smoothing: float = 1.0,
        min_samples: int | str = "auto",
        weights: str | None = "auto",
        class_weight: Any = None,
        class_prior: Any = None,
        encoder: TableEncoder | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        **deprecated: Unpack[FormerOfForest],
    ) -> None:
        self.n_estimators = n_estimators
        self.max_parents = max_parents
        self.max_features = max_features
        self.knowledge = knowledge
        self.n_cuts = n_cuts
        self.smoothing = smoothing
        self.min_samples = min_samples
        self.weights = weights
        self.class_weight = class_weight
        self.class_prior = class_prior
        self.encoder = encoder
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self._take_former(dict(deprecated))

    def _default_discretizer(self) -> QuantileDiscretizer:
        """Return a fine quantile discretizer, whose intervals each network merges."""
        return QuantileDiscretizer(n_jobs=self.n_jobs)

    def _learn(self, data: EncodedData, validation: EncodedData | None, rng: np.random.Generator) -> None:
        """Grow the networks and fit their weights."""
        self.model_ = self._fit_forest(data, rng).forest

    def _check_needs(self, allowed: frozenset[str]) -> bool:
        """Raise an AttributeError for fitted weights or monotone columns, which need all rows."""
        if has_directions(self.knowledge):
            raise AttributeError(
                "increasing and decreasing need all rows at once. Call fit of tanlearn.BayesForestClassifier on "
                "rows in memory."
            )
        if self.weights is not None:
            raise AttributeError(
                f"weights={self.weights!r} need all rows at once, because they are fitted to held-out rows. Use "
                f"weights=None."
            )
        return True

    def _new_counts(self, data: EncodedData) -> ForestCounts:
        """Grow a forest from the first batch, and return empty counts in its contexts."""
        if data.n_samples and (data.y == data.y[0]).all():
            raise ValueError(
                f"the networks are grown from the first batch, which must have several classes, but it has "
                f"{data.n_samples:,} row(s) of one class. Start with a larger batch."
            )
        return ForestCounts(self._fit_forest(data, generator(self.random_state), is_limited=False).forest)

    def _learn_batches(self, rows: EncodedSource) -> None:
        """Grow a forest from a sample of the rows, and count all rows in its contexts."""
        self.counts_ = rows.add_to(self._new_counts(rows.sample), n_jobs=self.n_jobs)
        self._learn_counts(self.counts_)

    def _learn_counts(self, counts: Any) -> None:
        """Set ``forest_`` from smoothed counts."""
        if len(counts.members) != self.n_estimators:
            raise ValueError(
                f"n_estimators is {self.n_estimators}, but earlier batches were counted with another number of "
                f"networks. Start with a new classifier: clone(model).partial_fit(...)."
            )
        n_levels = counts.forest.weights.shape[2]
        self._check_smoothing(counts.class_counts.max(), n_levels, counts.most_values)
        self.model_ = counts.smooth(float(self.smoothing), n_jobs=self.n_jobs)

    def _fit_forest(self, data: EncodedData, rng: np.random.Generator, *, is_limited: bool = True) -> FittedForest:
        """Grow the networks and fit their weights. Row positions in the result count only rows of positive weight.

        If ``is_limited``, fewer networks may be grown. Counts of batches need all networks.
        """
        if (data.weights == 0).any():  # rows of weight 0 must not affect contexts, folds and missing values
            data = data.take(data.weights > 0)
        if data.n_classes > _MOST_CLASSES:
            raise ValueError(
                f"a forest supports at most {_MOST_CLASSES:,} classes, got {data.n_classes:,}. y is probably an "
                f"identifier or a quantity: drop or merge rare classes, or discretize the quantity."
            )
        is_ordered = np.zeros(data.n_features, np.bool_) if data.is_ordered is None else data.is_ordered
        draws = DrawSettings(n_cuts=self._read_n_cuts())
        if not isinstance(self.max_parents, str):
            draws = replace(draws, max_parents=int(self.max_parents))
        if not isinstance(self.max_features, str):
            draws = replace(draws, max_features=float(self.max_features), min_candidates=0)
        directions = read_knowledge(self.knowledge, data)
        rules = rules_without_children(self.knowledge, data, directions != 0, max_parents=draws.max_parents)
        of_features = tuple(directions.tolist()) if directions.any() else None
        self._is_monotone = of_features is not None
        draws = replace(draws, rules=rules, directions=of_features)
        n_required = 0 if rules is None else max(map(len, rules.parents()))
        n_levels = 1 + min(draws.max_parents, n_required + draws.max_candidates, data.n_features - 1)
        self._check_smoothing(np.bincount(data.y, data.weights).max(), n_levels, data.n_states.max())
        least = max(_LEAST_SAMPLES, data.n_samples // _MOST_CONTEXTS)
        settings = ForestSettings(
            n_members=int(self.n_estimators),
            draws=draws,
            smoothing=float(self.smoothing),
            min_samples=least if isinstance(self.min_samples, str) else int(self.min_samples),
            weights=self.weights,
            ridge=None if isinstance(self._ridge, str) else float(self._ridge),
            n_folds=min(int(self._n_folds), data.n_samples),
            is_limited=is_limited,
        )
        report = reporter(self.verbose)
        report(f"growing {self.n_estimators} networks", 2)
        before = self._grown if self.warm_start else None
        grown = grow_forest(data, is_ordered, settings, rng, n_jobs=self.n_jobs, before=before)
        self._grown = grown if self.warm_start else None
        left_out = "without each fold" if grown.held_out is None else f"without {len(grown.held_out):,} held-out rows"
        report(f"predicting rows by {len(grown.members)} networks {left_out}", 2)
        return fit_forest_weights(data, is_ordered, settings, grown, rng, n_jobs=self.n_jobs, report=report)

    def _read_n_cuts(self) -> tuple[int, int]:
        """Return the minimum and maximum number of cut points."""
        given = self.n_cuts
        pair: list[Any] = [given, given] if np.ndim(given) == 0 else list(given)
        whole = len(pair) == 2 and all(isinstance(n, Integral) and not isinstance(n, bool) for n in pair)
        if not whole or not 1 <= pair[0] <= pair[1]:
            raise ValueError(
                f"n_cuts must be one or two positive integers (minimum and maximum number of cut points), got "
                f"{given!r}."
            )
        return min(int(pair[0]), 2**16), min(int(pair[1]), 2**16)  # no feature has more values

    def _check_smoothing(self, heaviest: float, n_levels: int, most_values: int) -> None:
        """Raise ValueError if probabilities could underflow. An unseen value has a factor m / (n + m) per level."""
        m = float(self.smoothing)
        least = n_levels * (np.log10(m) - np.log10(heaviest + m)) - np.log10(most_values)
        if least < _LEAST_EXPONENT:
            raise ValueError(
                f"smoothing={m:g} is too small: with up to {n_levels - 1} parents per feature and a total class weight "
                f"of up to {heaviest:.3g}, probabilities may be as small as 1e{least:.0f}, but must be at least "
                f"1e{_LEAST_EXPONENT}. Increase smoothing, decrease max_parents, or divide all sample weights by the "
                f"same number."
            )

    def with_bits(self, bits: int) -> Self:
        """Return a copy of the fitted forest whose numbers are few-bit integers times a power of two.

        Parameters
        ----------
        bits : int
            Number of bits per number, from 2 to 16, including the sign. All numbers are multiples of one step, which is
            the smallest power of two for which all numbers fit into ``bits`` bits.

        Returns
        -------
        object
            A new classifier. For complete rows, it predicts the same classes as the C code of
            ``export_c(bits=bits)``. The log odds of a row change by at most one step for each context that the row
            reaches.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If ``bits`` is not an integer from 2 to 16, or the forest was fitted with ``weights=None``, ``increasing``
            or ``decreasing``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from tanlearn import BayesForestClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = BayesForestClassifier(n_estimators=3, random_state=0).fit(X, y)
        >>> bool((model.with_bits(8).predict(X) == model.predict(X)).mean() > 0.98)
        True
        """
        check_is_fitted(self)
        self._refuse_rounding()
        rounded = copy(self)
        rounded.model_ = round_forest(self.model_, bits).forest
        rounded.__dict__.pop("counts_", None)  # with the counts, partial_fit would compute unrounded gains
        return rounded

    def _refuse_rounding(self) -> None:
        """Raise ValueError for monotone columns, whose log odds would not be monotone after rounding."""
        if has_directions(self.knowledge) if self._is_monotone is None else self._is_monotone:
            raise ValueError(
                "with few bits, gains are rounded one by one, so the log odds of columns in increasing and decreasing "
                "would not be monotone. Use BoostedTermsClassifier, whose rounded terms are monotone, or fit the "
                "forest without increasing and decreasing."
            )

    def export_c(
        self,
        path: str | os.PathLike[str],
        *,
        bits: int = 8,
        name: str | None = None,
        number_type: str = "double",
        test_rows: Any = None,
    ) -> None:
        """Write the fitted forest as a C99 header with integers, additions and comparisons only.

        Numbers are rounded as by ``with_bits(bits)``, which returns a classifier with the same predictions for complete
        rows. For rows with missing or unseen values, the C function returns -1. Ten networks take 0.4 to 5 MB, so only
        large microcontrollers can store a forest. The comment at the top of the header states the size in bytes.

        Parameters
        ----------
        path : str or path
            Path of the header. An existing file is replaced.
        bits : int, default=8
            Number of bits per number, from 2 to 16. Each number is stored in one or two bytes.
        name : str, optional
            Prefix of all names in the header. By default, it is the file name without its extension.
        number_type : {"double", "float", "int32", "int16"}, default="double"
            C type of the numbers in rows (see :meth:`tanlearn.NaiveBayesClassifier.export_c`).
        test_rows : array-like or frame of shape (n_samples, n_features), optional
            Raw values for a test program, ``<name of the file>_test.c``, written next to the header. The program
            returns 0 if it computes the same codes, sums and classes for these rows as Python.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If ``bits`` is not an integer from 2 to 16, the forest has ``weights=None`` or monotone columns, its class
            prior differs from the class frequencies in training, a column has a category for missing values or had no
            value in training, the C type cannot represent a category or cut point, or ``name`` is not a C identifier.
            No file is written in these cases.
        OSError
            If a file cannot be written. An existing file is then unchanged.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from sklearn.datasets import load_iris
        >>> from tanlearn import BayesForestClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> model = BayesForestClassifier(n_estimators=2, random_state=0).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.export_c(f"{folder}/iris.h", number_type="float", test_rows=X)
        ...     header = Path(folder, "iris.h").read_text()
        >>> "static inline int16_t iris_predict(const iris_value *row)" in header
        True
        """
        check_is_fitted(self)
        self._refuse_rounding()
        export_c(self, path, bits=bits, name=name, number_type=number_type, test_rows=test_rows)

    def _get_state(self) -> dict[str, Any]:
        """Return the fitted attributes for a model file, except classes and encoder."""
        state = super()._get_state()
        return state if self._is_monotone is None else {**state, "is_monotone": self._is_monotone}

    def _set_state(self, state: dict[str, Any]) -> None:
        """Restore the fitted attributes from a file, after classes and encoder."""
        state = dict(state)
        is_monotone = state.pop("is_monotone", None)
        if is_monotone is not None and type(is_monotone) is not bool:
            raise ValueError(f"is_monotone must be true or false, got {reprlib.repr(is_monotone)}.")
        super()._set_state(state)
        self._is_monotone = is_monotone

    def _check_joint(self) -> bool:
        """Raise an AttributeError, because a forest does not model the distribution of the features."""
        raise AttributeError(
            f"{type(self).__name__} models the class given the features, not the distribution of the features. Use "
            f"predict_log_proba, or a network such as NaiveBayesClassifier."
        )

    def _summary(self) -> dict[str, str]:
        """Return the number of networks, and the way in which they are combined."""
        forest = self.forest_
        combined = "averaged" if forest.is_average else "added"
        most = forest.weights.shape[2] - 1
        return {"networks": f"{len(forest.members)}, {combined}, at most {most} parents per column"}

    @property
    def structures_(self) -> list[Structure]:
        """Structure of each network."""
        parents = [member.tables.parents for member in self.forest_.members]
        return [Structure(own if own.size else np.full(len(own), -1)) for own in parents]
