"""Ensemble of a Bayes forest, a network of terms, and boosted terms."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from tanlearn._memory import Need
from tanlearn._progress import part_of_fit, reporter
from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn._version import __version__
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.quantile_discretizer import QuantileDiscretizer
from tanlearn.encoding.stored_values import check_array
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.encoding.weights import weights_of_values
from tanlearn.estimators.bayes_forest import BayesForestClassifier
from tanlearn.estimators.boosted_terms import N_INTERVALS as N_INTERVALS_OF_SPLITS
from tanlearn.estimators.boosted_terms import BoostedTermsClassifier
from tanlearn.estimators.class_prior import read_offset, state_of_offset
from tanlearn.estimators.classifier import Classifier
from tanlearn.estimators.estimator_input import encode_rows, generator
from tanlearn.estimators.explanation_frame import explanation_frame
from tanlearn.estimators.merged_intervals import coarse_encoder, merge_intervals, typical_values
from tanlearn.estimators.term_net import N_INTERVALS, TermNetClassifier
from tanlearn.files.description import as_json, feature_names, given_parameters
from tanlearn.forest.ensemble import Ensemble, merged_values
from tanlearn.forest.pooling import MOST_ROWS, fit_pool_weights
from tanlearn.models.explanation import against_class
from tanlearn.models.model import Model
from tanlearn.structures.knowledge import Knowledge

__all__ = ["BayesEnsembleClassifier"]

#: Attributes of the network that model files contain.
_OF_NETWORK = "typical_values", "standard_errors", "prior_offset"

#: The three parts of the ensemble with their classes, and parameters that parts must not set.
_PARTS: dict[str, Any] = {
    "forest": BayesForestClassifier,
    "network": TermNetClassifier,
    "boosting": BoostedTermsClassifier,
}
_OF_WHOLE = ("class_weight", "class_prior", "encoder", "knowledge", "increasing", "decreasing", "warm_start")

#: Maximum number of edges that a summary shows.
_MOST_EDGES = 5


class BayesEnsembleClassifier(Classifier):
    """Ensemble of a Bayes forest, a readable network and boosted terms. Use it if accuracy matters most.

    A :class:`~tanlearn.BayesForestClassifier` averages many networks and therefore varies little with few rows. A
    :class:`~tanlearn.TermNetClassifier` represents smooth and additive effects of numbers with few parameters. A
    :class:`~tanlearn.BoostedTermsClassifier` represents rules with thresholds and several features. Each of the three
    models is best on some data sets. The ensemble adds their weighted log-probabilities::

        log P(class | x) = sum_m w_m log P_m(class | x) + constant,   m = forest, network, boosting

    The weights are nonnegative. They maximize the conditional likelihood of training rows, where each row is predicted
    by models that were trained without it. The weights are shrunk toward the model that predicts best, so a model that
    does not improve the predictions has a weight near 0. These three models are called the parts of the ensemble.

    Parameters
    ----------
    forest : BayesForestClassifier, optional
        Unfitted forest with your own parameters. If the ensemble also has a parameter, such as ``class_weight`` or
        ``knowledge``, set it only in the ensemble. Do not set ``warm_start``.
    network : TermNetClassifier, optional
        Unfitted network with your own parameters, such as ``TermNetClassifier(max_parents=5)``. If the ensemble also
        has a parameter, set it only in the ensemble. With several parents per feature, the fit takes longer, and rows
        with missing values cannot be explained.
    boosting : BoostedTermsClassifier, optional
        Unfitted boosted terms with your own parameters. If the ensemble also has a parameter, set it only in the
        ensemble.
    knowledge : Knowledge, optional
        Required and forbidden edges, and tiers of columns. They apply to the network and to all networks of the forest,
        but not to the boosted terms, which have no edges. If a feature has several required parents, pass a ``network``
        whose ``max_parents`` is at least that number.
    increasing : sequence of str or int, default=()
        Names or positions of columns. If the value of such a column rises and all other values stay the same, the log
        odds of ``classes_[1]`` never fall. The columns must contain numbers or ordered categories, and there must be
        exactly two classes.
    decreasing : sequence of str or int, default=()
        Names or positions of columns. If the value of such a column rises and all other values stay the same, the log
        odds of ``classes_[1]`` never rise.
    class_weight : None, "balanced" or dict, default=None
        Factor by which the sample weights of each class are multiplied. "balanced" gives all classes the same total
        weight.
    class_prior : array-like of shape (n_classes,), optional
        Class probabilities, in the order of ``classes_``. By default, they are the class frequencies of the training
        rows.
    encoder : TableEncoder, optional
        Encoder of raw columns. By default, or if the encoder has no ``discretizer``, a
        :class:`~tanlearn.QuantileDiscretizer` computes up to 1,023 cut points per feature. An encoder without
        ``handle_missing`` uses "auto". The network merges the intervals to at most 32 per feature.
    n_jobs : int, optional
        Number of threads, as in joblib. Results do not depend on it. If a part has its own ``n_jobs``, it uses this
        number instead.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the forest, the boosted terms, and samples from ``network_``. If a part has its own ``random_state``, it
        uses this seed instead.
    verbose : int, default=0
        1 prints about ten lines of progress per part, and 2 prints more. If a part has its own ``verbose``, the larger
        value is used.

    Attributes
    ----------
    forest_ : BayesForestClassifier
        The fitted forest. It can be used alone, for example to read ``feature_importances_``. (In
        :class:`~tanlearn.BayesForestClassifier`, the attribute of the same name contains the networks of the forest.)
    network_ : TermNetClassifier
        The fitted network. It can be used alone, for example to plot curves of features.
    boosting_ : BoostedTermsClassifier
        The fitted boosted terms. They can be used alone.
    weights_ : ndarray of shape (3,)
        Weights of the log-probabilities of the forest, the network and the boosted terms.
    classes_ : ndarray of shape (n_classes,)
        Class labels in sorted order.
    encoder_ : TableEncoder
        The fitted encoder of the ensemble and the forest. The encoder of the network has fewer intervals.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, set only if ``X`` had column names.
    n_parameters_ : int
        Total number of parameters of all parts.

    See Also
    --------
    tanlearn.TermNetClassifier : The network alone: readable, and almost as accurate on many data sets.
    tanlearn.BayesForestClassifier : The forest alone.
    tanlearn.BoostedTermsClassifier : The boosted terms alone: much faster, and almost as accurate on many data sets.

    Notes
    -----
    The three weights are fitted to at most 2,048 rows. If the network or the boosted terms do not predict better than
    the class frequencies, the weight of this part is 0. If the rows cannot be divided into folds, only the forest is
    used.

    A part of weight 0 is skipped in predictions, but it is fitted, stored and counted in ``n_parameters_``.

    If ``increasing`` or ``decreasing`` is set in the knowledge, all parts have monotone log odds. The weights are
    nonnegative, so the weighted sum is monotone, too. The log odds of ``predict_log_proba`` are therefore monotone
    except for rounding errors in the last digits. See :class:`~tanlearn.BayesForestClassifier`,
    :class:`~tanlearn.TermNetClassifier` and :class:`~tanlearn.BoostedTermsClassifier`.

    ``class_prior`` and :meth:`with_class_prior` change the predictions of the ensemble, but not the predictions of
    ``forest_``, ``network_`` and ``boosting_``.

    References
    ----------
    Genest, Zidek: Combining probability distributions: a critique and an annotated bibliography. Statistical Science 1,
    1986 (logarithmic opinion pools).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import BayesEnsembleClassifier
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = BayesEnsembleClassifier(random_state=0).fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{name: rule for name, rule in Classifier._parameter_constraints.items() if name != "device"},
        "forest": [BayesForestClassifier, None],
        "network": [TermNetClassifier, None],
        "boosting": [BoostedTermsClassifier, None],
        "knowledge": [Knowledge, None],
        "increasing": [list, tuple],
        "decreasing": [list, tuple],
        "verbose": [Interval(Integral, 0, None, closed="left")],
    }

    device = "cpu"
    _default_handle_missing = "auto"
    _model_type: ClassVar[type[Model]] = Ensemble
    forest_: BayesForestClassifier
    network_: TermNetClassifier
    boosting_: BoostedTermsClassifier

    def __init__(
        self,
        *,
        forest: BayesForestClassifier | None = None,
        network: TermNetClassifier | None = None,
        boosting: BoostedTermsClassifier | None = None,
        knowledge: Knowledge | None = None,
        increasing: Sequence[Any] = (),
        decreasing: Sequence[Any] = (),
        class_weight: Any = None,
        class_prior: Any = None,
        encoder: TableEncoder | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.forest = forest
        self.network = network
        self.boosting = boosting
        self.knowledge = knowledge
        self.increasing = increasing
        self.decreasing = decreasing
        self.class_weight = class_weight
        self.class_prior = class_prior
        self.encoder = encoder
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @property
    def weights_(self) -> FloatArray:
        """Weights of the log-probabilities of the forest, the network and the boosted terms, (3,).

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        """
        if not hasattr(self, "model_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet. Call fit first.")
        weights: FloatArray = self.model_.weights
        return weights

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the ensemble or of its parts, for example ``forest__n_estimators=100`` for the forest.

        Parameters
        ----------
        **params : dict
            Parameters by name. Names of parameters of the parts have the prefix ``forest__``, ``network__`` or
            ``boosting__``.

        Returns
        -------
        object
            The estimator itself.

        Examples
        --------
        >>> from tanlearn import BayesEnsembleClassifier
        >>> BayesEnsembleClassifier().set_params(network__max_parents=5)
        BayesEnsembleClassifier(network=TermNetClassifier(max_parents=5))
        """
        for name, default in _PARTS.items():
            if getattr(self, name) is None and any(given.startswith(f"{name}__") for given in params):
                setattr(self, name, default())
        result: Self = super().set_params(**params)
        return result

    def _default_discretizer(self) -> QuantileDiscretizer:
        """Return a fine quantile discretizer, whose intervals the parts merge."""
        return QuantileDiscretizer(n_jobs=self.n_jobs)

    def _begin(self) -> None:
        """Validate the parameters of the ensemble and of its parts, and delete the attributes of an earlier fit."""
        super()._begin()
        for part in self._new_parts():
            part._begin()

    def _learn(self, data: EncodedData, validation: EncodedData | None, rng: np.random.Generator) -> None:
        """Fit forest, network, boosted terms and their weights."""
        if (data.weights == 0).any():
            data = data.take(data.weights > 0)
        forest, network, boosting = self._new_parts()
        encoder = getattr(self, "encoder_", None)  # None after fit_encoded
        (coarse, of_network), (of_splits, of_boosting) = (
            merge_intervals(encoder, data, most, n_jobs=self.n_jobs) for most in (N_INTERVALS, N_INTERVALS_OF_SPLITS)
        )
        verbose = int(self.verbose)
        with part_of_fit("forest", verbose):
            fitted = forest._fit_forest(data, rng if forest.random_state is None else generator(forest.random_state))
        rows = fitted.rows[:MOST_ROWS]
        with part_of_fit("network", verbose):
            held_out = network._fit_terms(of_network, rows)
        seed = rng if boosting.random_state is None else generator(boosting.random_state)
        with part_of_fit("boosted terms", verbose):
            boosted = boosting._fit_boosting(of_boosting, seed, rows)
        boosting.model_ = boosted.model.on_finer_values(of_splits)
        weights = self._fit_weights((fitted.log_p[:MOST_ROWS], held_out, boosted.held_out), data, rows)
        reporter(verbose)(f"weights of forest, network and boosted terms: {np.round(weights, 3).tolist()}")
        forest.model_ = fitted.forest
        if encoder is not None:
            of_values = weights_of_values(data.codes, data.n_states, data.in_whole_rows().weights)
            typical = typical_values(encoder, coarse, of_values)
            self._share(forest, encoder)
            self._share(network, coarse_encoder(encoder, coarse, typical))
            self._share(boosting, encoder)
        self.forest_, self.network_, self.boosting_ = forest, network, boosting
        models = forest.model_, network.model_, boosting.model_
        self.model_ = Ensemble(*models, merged_values(coarse), weights, np.zeros(data.n_classes))

    def _memory_needs(self, data: EncodedData) -> list[Need]:
        """Return the memory needs of the largest part, because parts are fitted one after another."""
        needs = [part._memory_needs(data) for part in self._new_parts()]
        return max(needs, key=lambda own: sum(need.n_bytes for need in own))

    def _fit_weights(self, held_out: tuple[FloatArray | None, ...], data: EncodedData, rows: IntArray) -> FloatArray:
        """Fit the weights of the parts to held-out log posteriors of selected rows, with None for parts of weight 0."""
        weights = np.zeros(len(held_out))
        used = [k for k, log_p in enumerate(held_out) if log_p is not None]
        if used == [0]:
            weights[0] = 1.0
        else:
            log_p = np.array([held_out[k] for k in used])
            weights[used] = fit_pool_weights(log_p, data.y[rows], data.in_whole_rows().weights[rows])
        return weights

    def _new_parts(self) -> tuple[BayesForestClassifier, TermNetClassifier, BoostedTermsClassifier]:
        """Return unfitted parts. Raise ValueError for parameters that must be set in the ensemble."""
        parts = []
        for name, default in _PARTS.items():
            given = getattr(self, name)
            part = default() if given is None else clone(given)
            for parameter in _OF_WHOLE:
                if _is_set(value := getattr(part, parameter, None)):
                    raise ValueError(
                        f"{name} must not set {parameter} if it is part of an ensemble, got {parameter}={value!r}. "
                        f"Remove it from {name}. The ensemble itself has the parameters {', '.join(_OF_WHOLE[:-2])} "
                        f"and {_OF_WHOLE[-2]}."
                    )
            parts.append(part.set_params(n_jobs=self.n_jobs if part.n_jobs is None else part.n_jobs))
        forest, network, boosting = parts
        directions = {"increasing": self.increasing, "decreasing": self.decreasing}
        of_forest = self.knowledge
        if self.increasing or self.decreasing:
            of_forest = (Knowledge() if of_forest is None else clone(of_forest)).set_params(**directions)
        forest.set_params(knowledge=of_forest)
        network.set_params(knowledge=self.knowledge, **directions)
        boosting.set_params(**directions)
        if network.random_state is None:
            network.set_params(random_state=self.random_state)
        return forest, network, boosting

    def _share(self, part: Classifier, encoder: TableEncoder) -> None:
        """Set the classes, the column names and the encoder of a part, so that it can predict raw rows."""
        part.encoder_, part.classes_, part.n_features_in_ = encoder, self.classes_, self.n_features_in_
        if (names := getattr(self, "feature_names_in_", None)) is not None:
            part.feature_names_in_ = names

    def _check_joint(self) -> bool:
        """Raise an AttributeError, because the ensemble does not model the distribution of the features."""
        raise AttributeError(
            f"{type(self).__name__} models the class given the features, not the distribution of the features. Use "
            f"predict_log_proba, or network_.predict_joint_log_proba."
        )

    def explain(self, X: Any, *, against: Any = None) -> FloatArray:
        """Split each prediction into contributions of the features.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values; NaN, None and unseen categories count as missing.
        against : class, optional
            Split the log odds against this class instead of the log-probabilities.

        Returns
        -------
        ndarray of shape (n_samples, n_features + 1, n_classes)
            Contribution of each feature to the log-probabilities of the classes, or to the log odds of each class
            against ``against``. The last entry is the contribution of the class prior. The contributions add up to
            ``predict_log_proba``, or to the log odds. With a ``class_prior``, they add up to ``predict_log_proba``
            except for a constant per row. A contribution to the log odds is the weighted sum of the contributions in
            the parts.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If ``against`` is not a class, or if a row has missing values and features of the network have several
            parents.

        Examples
        --------
        >>> from tanlearn import BayesEnsembleClassifier
        >>> X = [["sun", 30.0], ["rain", 11.0], ["rain", 13.0], ["sun", 25.0]] * 5
        >>> model = BayesEnsembleClassifier(random_state=0).fit(X, ["beach", "home", "home", "beach"] * 5)
        >>> contributions = model.explain([["sun", 11.0]], against="home")[0, :, 0]  # evidence for the beach
        >>> (contributions > 0.1).tolist(), (contributions < -0.1).tolist()  # weather is for, temperature against it
        ([True, False, False], [False, True, False])
        """
        codes = encode_rows(self, X)
        return against_class(self.model_.explain(codes, n_jobs=self.n_jobs), against, self.classes_)

    def explain_frame(self, X: Any, *, against: Any = None) -> Any:
        """Return the contributions of ``explain`` as a data frame with the names of features and classes.

        Parameters
        ----------
        X : array-like or frame of shape (n_samples, n_features)
            Raw values; NaN, None and unseen categories count as missing.
        against : class, optional
            Split the log odds against this class instead of the log-probabilities. The contributions then add up to the
            log odds of ``predict_proba``.

        Returns
        -------
        pandas.DataFrame
            One line per row and feature, and one line per row for the class prior, named ``"(classes)"``. The columns
            are ``row`` (index of a pandas frame, or row number), ``feature``, and each class.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            As in :meth:`explain`.
        ImportError
            If pandas is not installed.
        """
        return explanation_frame(self, X, against)

    def describe(self) -> dict[str, Any]:
        """Return a summary of the weights and of all parts as a JSON-compatible dictionary.

        Returns
        -------
        dict
            The learner, the classes, ``weights`` of the parts, and their descriptions in ``forest``, ``network`` and
            ``boosting`` (see :meth:`tanlearn.BoostedTermsClassifier.describe`).
            See :mod:`tanlearn.forest.forest_description` and :mod:`tanlearn.files.description` for their keys.

        Raises
        ------
        NotFittedError
            If the classifier is not fitted.
        ValueError
            If a class or a category is not a string, a number or a boolean.

        Examples
        --------
        >>> from tanlearn import BayesEnsembleClassifier
        >>> X = [["sun", 30.0], ["rain", 11.0], ["rain", 13.0], ["sun", 25.0]] * 5
        >>> model = BayesEnsembleClassifier(random_state=0).fit(X, ["beach", "home", "home", "beach"] * 5)
        >>> sorted(model.describe()["weights"])
        ['boosting', 'forest', 'network']
        """
        check_is_fitted(self)
        return {
            "format": "tanlearn ensemble description",
            "version": 1,
            "tanlearn": __version__,
            "learner": {"class": type(self).__name__, "parameters": given_parameters(self)},
            "classes": as_json(self.classes_, "classes"),
            "n_parameters": self.n_parameters_,
            "weights": dict(zip(_PARTS, self.weights_.tolist(), strict=True)),
            "forest": self.forest_.describe(),
            "network": self.network_.describe(),
            "boosting": self.boosting_.describe(),
        }

    def _summary(self) -> dict[str, str]:
        """Return the weights of the parts, and a summary of each part."""
        names = feature_names(self)
        parents = self.network_.structure_.parents.tolist()
        edges = [f"{names[j]} - {names[i]}" for i, row in enumerate(parents) for j in row if j >= 0]
        shown = ", ".join(edges[:_MOST_EDGES]) + (" and more" if len(edges) > _MOST_EDGES else "")
        return {
            "weights": ", ".join(f"{one:.2f} {name}" for name, one in zip(_PARTS, self.weights_, strict=True)),
            "forest": self.forest_._summary()["networks"],
            "network": f"{len(edges)} edges{': ' if edges else ''}{shown}",
            "boosting": f"{self.boosting_.n_terms_} terms",
        }

    def _get_state(self) -> dict[str, Any]:
        """Return the fitted attributes for a model file, except classes and encoder."""
        typical = [own for own in self.network_.encoder_.typical_values_ if own is not None]
        return {
            **super()._get_state(),
            "typical_values": np.concatenate([np.empty(0), *typical]),
            "standard_errors": self.network_._stacked_standard_errors(),
            **state_of_offset(self.network_),
        }

    def _set_state(self, state: dict[str, Any]) -> None:
        """Restore the fitted attributes from a file, after classes and encoder."""
        state = dict(state)
        typical, errors, offset = (state.pop(name, None) for name in _OF_NETWORK)
        offset = read_offset(offset, len(self.classes_))
        super()._set_state(state)
        coarse, n_states = self.model_.coarse_values(), self.model_.discretization.n_states
        n_intervals = np.where(self.encoder_.is_discrete_, 0, n_states - self.encoder_.has_missing_category_)
        check_array("typical_values", typical, np.float64, (int(n_intervals.sum()),))
        parts: list[AnyArray] = np.split(typical, np.cumsum(n_intervals)[:-1])
        of_columns = [own if n else None for own, n in zip(parts, n_intervals.tolist(), strict=True)]
        forest, network, boosting = self._new_parts()
        self._share(forest, self.encoder_)
        self._share(network, coarse_encoder(self.encoder_, coarse, of_columns))
        self._share(boosting, self.encoder_)
        forest.model_, network.model_, boosting.model_ = self.model_.forest, self.model_.network, self.model_.boosting
        network._set_standard_errors(errors)
        network._prior_offset = offset
        self.forest_, self.network_, self.boosting_ = forest, network, boosting

    def __sklearn_is_fitted__(self) -> bool:
        return super().__sklearn_is_fitted__() and hasattr(self, "network_")


def _is_set(value: Any) -> bool:
    """Return whether a parameter is neither None nor False nor an empty list."""
    return value is not None and value is not False and not (isinstance(value, (list, tuple)) and not value)
