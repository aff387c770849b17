"""Classifier with a network of terms, whose log parameters are sums of coarse, fine and smooth terms."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from tanlearn._memory import Need
from tanlearn._progress import reporter
from tanlearn._typing import AnyArray, FloatArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.quantile_discretizer import QuantileDiscretizer
from tanlearn.encoding.stored_values import check_array
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.estimators.bayes_net_classifier import StructureLearner
from tanlearn.estimators.class_prior import keep_offset
from tanlearn.estimators.estimator_input import generator
from tanlearn.estimators.network_classifier import NetworkClassifier
from tanlearn.estimators.network_learning import refuse_class
from tanlearn.models.calibration import Calibration
from tanlearn.structures.knowledge import Knowledge, read_rules
from tanlearn.structures.monotone_columns import read_directions, rules_without_edges
from tanlearn.structures.structures import Structure, check_structure
from tanlearn.terms.learning import NO_ROWS, learn_terms, term_needs
from tanlearn.terms.losses import is_calibrated, require_term_loss
from tanlearn.terms.user_structures import MOST_PARENTS, UserStructure
from tanlearn.training.history import Iteration
from tanlearn.training.losses import ConditionalNLL, Loss

__all__ = ["TermNetClassifier"]

#: Number of intervals of a numeric column.
N_INTERVALS = 32


class TermNetClassifier(NetworkClassifier):
    """Accurate, readable network, whose log odds are sums of a curve per feature and a table per interacting pair.

    Up to a constant per row, the log probability of class y is::

        log P(y | x) = b(y) + sum_i u_i(x_i, y) + sum_(i, j) v_ij(x_i, x_j, y) + constant

    u_i is the curve of feature i. v_ij is the interaction of two features that are connected by an edge of the network.
    Both are sums of terms from coarse to fine. The curve of a numeric column has a slope and a bend over its ranks
    (mapped to a normal distribution), and a number for each of 4, 8, 16 and 32 quantile intervals. Intervals are
    divided further at cut points that separate classes. An interaction of numeric columns has the product of their
    slopes, and a number for each combination of 2, 4 and 8 intervals. A categorical column has a number for each
    category. Each kind of term has a ridge penalty, which is selected on held-out rows. Curves are therefore smooth if
    there are few rows, and detailed if there are many rows.

    L-BFGS maximizes the conditional likelihood of the classes, which is a convex problem. See ``loss`` for other
    losses. An edge is added if the held-out residuals of the model without edges depend on the pair of features.
    Interactions are therefore found even if neither feature has an effect on its own. The number of parents per feature
    is also selected on held-out rows.

    With at most one parent per feature, the model is a Bayesian network with normalized CPTs. It can sample and
    complete rows, and compute their probability. For this purpose, it has additional terms that do not depend on the
    class. These terms maximize the likelihood of the rows, and do not change the predictions of complete rows.

    If missing values of a column depend on the class in the training rows, "missing" becomes a category of the column.
    Missing values of other columns are marginalized exactly.

    If there are more than 1,024 columns, only the 1,024 columns that predict the class best on their own are used.
    Networks with edges that would take more than 4 GiB are skipped. A warning is issued in both cases.

    Parameters
    ----------
    max_parents : int, default=1
        Maximum number of parents per feature besides the class, from 0 to 5. If 0, the model has only curves. The
        numbers 0, 1, 2, 3 and 5 are tried in this order as long as the held-out log loss falls (for the first parent,
        by more than one standard error of the difference). If there are two or more parents, triples (tables of a
        feature and two of its parents) are also tried. Several parents are more accurate if features interact, for
        example in rules. However, CPTs with several parents are not normalized. Predictions for rows with missing
        values are then less accurate, and slow if several values are missing.
    structure : "gain", StructureLearner or Structure, optional
        Edges of the network. The default is "gain": an edge is added if held-out residuals depend on the pair of
        features. To use other edges, pass a learner with ``learn(data, rng)``, such as the learners in
        :mod:`tanlearn.baselines`, or a fixed structure, with at most ``max_parents`` parents per feature. All of its
        edges are used, or no edges if they do not lower the held-out log loss by more than one standard error. A
        learner is fitted to the training rows of each fold, and to all rows (to a sample if there are more than
        20,000). For the learner, numeric columns are reduced to at most 8 intervals, and categorical columns to at most
        32 categories.
    loss : Loss, optional
        Loss of the training: :class:`~tanlearn.ConditionalNLL` (by default), :class:`~tanlearn.Margin`,
        :class:`~tanlearn.SoftHybrid` or :class:`~tanlearn.JointNLL`. The last two contain the joint likelihood of rows
        and classes, and need ``max_parents`` of at most 1. Use ``SoftHybrid(trade_off=1)`` if many values are missing
        in the rows to be predicted. The margin loss rarely improves the predictions. If the loss is not the default,
        all terms are divided by a temperature that minimizes the held-out log loss, so that probabilities are
        calibrated. Losses that are not differentiable everywhere and custom losses raise a ValueError.
    knowledge : Knowledge, optional
        Required and forbidden edges, and tiers of columns. All networks that are compared contain the required edges,
        and the first network contains no other edges. A feature may have at most ``max_parents`` required parents. An
        interaction is excluded only if the edges in both directions are forbidden. A ``structure`` must satisfy the
        knowledge. A structure learner uses this knowledge if its own ``knowledge`` is None.
    increasing : sequence of str or int, default=()
        Names or positions of columns. If the value of such a column rises and all other values stay the same, the log
        odds of ``classes_[1]`` never fall. The columns must contain numbers or ordered categories, and there must be
        exactly two classes. These columns have curves, but no interactions.
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
        Encoder of raw columns. The default is ``TableEncoder(discretizer=QuantileDiscretizer(max_bins=32,
        mdl_points=True), handle_missing="auto")``. If your encoder does not set ``discretizer`` or ``handle_missing``,
        these defaults are used.
    n_jobs : int, optional
        Number of threads for encoding, prediction and the folds of the selection, as in joblib. Results do not depend
        on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed for ``sample``, and for a randomized structure learner. All other parts of the fit are deterministic.
    verbose : int, default=0
        If 1, the held-out log loss and error for each number of parents and triples are printed; if 2, also the
        held-out log loss for all ridges that are tried.

    Attributes
    ----------
    structure_ : Structure
        The network. ``structure_.parents`` contains the parents of each feature, and :meth:`to_networkx` returns the
        graph.
    structure_learner_ : StructureLearner
        The fitted copy of a structure learner in ``structure``. It is set only if the network has the learned edges.
    tables_ : Tables
        CPTs, stored as sums of tables for features, edges and triples. ``tables_[i]`` is the CPT of feature i.
    ridges_ : dict
        Selected ridge penalty of each kind of term. A larger penalty means smaller terms. ``groups`` and
        ``edge_groups`` belong to the numbers for intervals or categories, in features and edges. ``smooth`` belongs to
        the slopes and bends of features, ``edge_smooth`` to the products of slopes of edges, and ``triple_groups`` to
        triples. If no network predicts held-out rows clearly better than the class frequencies, all penalties are
        4**10, so that features have no effect.
    standard_errors_ : list of ndarray of shape (n_values, n_classes)
        For each feature, the standard errors of the contributions of its values to the log odds of each class against
        the other classes. Contributions are relative to their mean over the training rows. The errors are a Laplace
        approximation with the ridges as priors. In this approximation, the ridges, the odds among the other classes,
        and the contributions of all other features, pairs and triples are fixed. The errors are therefore too small if
        features are correlated. The list is empty if ``loss_`` is not :class:`~tanlearn.ConditionalNLL`, which the
        approximation requires. :class:`~tanlearn.displays.ContributionDisplay` plots the errors as bands.
    cv_results_ : dict
        Results on held-out rows, with one entry per attempt: ``param_n_parents`` (maximum number of parents),
        ``param_n_triples`` (maximum number of triples), ``mean_test_score`` (accuracy) and ``mean_log_loss``. The
        format is the same as in scikit-learn. The dict is empty if there are no held-out rows (with a single row, or if
        a fold would leave only one class).
    n_iter_ : int
        Number of iterations of the final training.
    loss_ : Loss
        Loss of the final training: ``loss``, or :class:`~tanlearn.ConditionalNLL` if there are no held-out rows for the
        temperature, or if no network predicts held-out rows clearly better than the class frequencies.
    history_ : list of Iteration
        Mean loss per row, including its contribution to the ridge penalty, at the start and after each iteration.
    calibration_ : Calibration
        Map from scores to probabilities, whose temperature and power are 1.
    classes_ : ndarray of shape (n_classes,)
        Class labels in sorted order.
    encoder_ : TableEncoder
        The fitted encoder.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, set only if ``X`` had column names.
    n_parameters_ : int
        Number of stored parameters.

    See Also
    --------
    tanlearn.TANClassifier : A tree whose structure and CPTs are trained together by gradient.
    tanlearn.displays.ContributionDisplay : Plot of the curve of a feature.
    tanlearn.displays.PairContributionDisplay : Plot of the interaction of two features.

    Notes
    -----
    The curve of a column in ``increasing`` or ``decreasing`` is the monotone curve that is closest to the curve fitted
    without this restriction (isotonic regression of the log odds, weighted by the variances of the classes). Ridges and
    edges are selected with monotone curves. If no ``class_prior`` is set and all other values of the row are observed,
    the log odds of ``predict_joint_log_proba`` are exactly monotone in the column, even after rounding. Otherwise, they
    may change in the wrong direction only by rounding errors. The guarantee does not hold after conversion to few bits,
    which rounds each probability separately.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import TermNetClassifier
    >>> X = np.random.default_rng(0).normal(size=(600, 4))
    >>> y = X[:, 0] * X[:, 1] > 0  # neither column helps alone
    >>> model = TermNetClassifier().fit(X[:400], y[:400])
    >>> bool(model.score(X[400:], y[400:]) > 0.9), int(model.structure_.parent[1])
    (True, 0)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **{name: rule for name, rule in NetworkClassifier._parameter_constraints.items() if name != "device"},
        "max_parents": [Interval(Integral, 0, MOST_PARENTS, closed="both")],
        "structure": [StrOptions({"gain"}), Structure, HasMethods("learn"), None],
        "loss": "no_validation",
        "knowledge": [Knowledge, None],
        "increasing": [list, tuple],
        "decreasing": [list, tuple],
        "verbose": [Interval(Integral, 0, None, closed="left")],
    }

    device = "cpu"
    # In five folds with one parent, the error on soybean-large is 12.2 % with "marginalize", and 6.4 % with "auto" and
    # "category". If 30 % of the values of segment are removed at random, the log loss is 0.207, 0.207 and 0.225.
    _default_handle_missing = "auto"
    ridges_: dict[str, float]
    standard_errors_: list[FloatArray]
    cv_results_: dict[str, Any]
    n_iter_: int
    loss_: Loss
    history_: list[Iteration]

    def __init__(
        self,
        *,
        max_parents: int = 1,
        structure: StructureLearner | Structure | str | None = None,
        loss: Loss | None = None,
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
        self.max_parents = max_parents
        self.structure = structure
        self.loss = loss
        self.knowledge = knowledge
        self.increasing = increasing
        self.decreasing = decreasing
        self.class_weight = class_weight
        self.class_prior = class_prior
        self.encoder = encoder
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _validate_params(self) -> None:
        """Validate the parameters. If the structure learner is a class, the error suggests an instance."""
        refuse_class(self, "structure")
        super()._validate_params()

    def _default_discretizer(self) -> QuantileDiscretizer:
        """Return a quantile discretizer. Terms with fewer intervals use unions of its intervals."""
        return QuantileDiscretizer(max_bins=N_INTERVALS, mdl_points=True, n_jobs=self.n_jobs)

    def _learn(self, data: EncodedData, validation: EncodedData | None, rng: np.random.Generator) -> None:
        """Select ridges and the number of parents on held-out rows, and train on all rows."""
        self._fit_terms(data, rng=rng)

    def _memory_needs(self, data: EncodedData) -> list[Need]:
        """Return the memory needs of parameters and class scores."""
        return term_needs(data)

    def _fit_terms(
        self, data: EncodedData, needed: IntArray = NO_ROWS, rng: np.random.Generator | None = None
    ) -> FloatArray | None:
        """Fit to encoded rows, and return the held-out log posterior of selected rows (see ``learn_terms``).

        ``rng`` is used by structure learners. By default, it is created from ``random_state``.
        """
        loss = require_term_loss(self.loss, int(self.max_parents))
        directions = read_directions(self.increasing, self.decreasing, data)
        rules = read_rules(self.knowledge, data, max_parents=int(self.max_parents))
        if rules is not None and directions.any():
            rules = rules_without_edges(rules, directions != 0)
        options: dict[str, Any] = {"n_jobs": self.n_jobs, "needed": needed, "report": reporter(self.verbose)}
        options["user_structure"] = self._user_structure(data, directions, rng)
        outcome = learn_terms(data, int(self.max_parents), loss, directions=directions, rules=rules, **options)
        self.loss_ = outcome.loss
        self.model_ = outcome.network
        if outcome.structure_learner is not None:
            self.structure_learner_ = outcome.structure_learner
        names = ("groups", "smooth", "edge_groups", "edge_smooth", "triple_groups")
        self.ridges_ = dict(zip(names, outcome.chosen.ridges, strict=True))
        self.standard_errors_ = outcome.standard_errors
        self.cv_results_ = {
            "param_n_parents": np.array([trial.n_parents for trial in outcome.trials]),
            "param_n_triples": np.array([trial.n_triples for trial in outcome.trials]),
            "mean_test_score": np.array([1 - trial.error for trial in outcome.trials]),
            "mean_log_loss": np.array([trial.log_loss for trial in outcome.trials]),
        }
        self.history_ = outcome.history
        self.n_iter_ = len(outcome.history) - 1
        self.calibration_ = Calibration()
        if self.tables_.is_normalized:  # other tables store the trained part of the prior in their columns
            keep_offset(self, data.class_totals())
        return outcome.held_out

    def _user_structure(
        self, data: EncodedData, directions: IntArray, rng: np.random.Generator | None
    ) -> UserStructure | None:
        """Return the structure learner with the knowledge, the validated structure, or None to select edges by gain."""
        given = self.structure
        if given is None or isinstance(given, str):
            return None
        if isinstance(given, Structure):
            check_structure(given, data.n_features)
            _refuse_monotone_edges(given, directions != 0, data)
            return UserStructure(given)
        learner = clone(given, safe=False)
        if self.knowledge is not None and getattr(learner, "knowledge", self.knowledge) is None:
            learner.knowledge = self.knowledge
        rng = generator(self.random_state) if rng is None else rng
        return UserStructure(learner, int(rng.integers(2**63)))

    def _check_generative(self) -> bool:
        """Return True. Raise an AttributeError if features may have several parents or, after a fit, have several."""
        most = int(self.max_parents)
        if hasattr(self, "model_"):
            most = int((self.structure_.parents >= 0).sum(axis=1).max())
        if most > 1:
            raise AttributeError(
                f"the classifier cannot sample or complete rows, because the network has up to {most} parents per "
                f"feature, and CPTs of several parents are not normalized. Fit it with max_parents=1."
            )
        return True

    def _contribution_errors(self, feature: int) -> FloatArray | None:
        """Return the standard errors (n_values, n_classes) of the contributions of a feature, or None."""
        return self.standard_errors_[feature] if self.standard_errors_ else None

    def _get_state(self) -> dict[str, Any]:
        """Return the fitted attributes for a model file, except classes and encoder."""
        return {**super()._get_state(), "standard_errors": self._stacked_standard_errors()}

    def _set_state(self, state: dict[str, Any]) -> None:
        """Restore the fitted attributes from a file, after classes and encoder."""
        state = dict(state)
        errors = state.pop("standard_errors", None)
        super()._set_state(state)
        self._set_standard_errors(errors)

    def _stacked_standard_errors(self) -> FloatArray:
        """Return the standard errors (n_values of all features, or 0; n_classes) of all features for a file."""
        return np.concatenate([np.empty((0, len(self.classes_))), *self.standard_errors_])

    def _set_standard_errors(self, errors: Any) -> None:
        """Restore the standard errors of all features from a file, and the loss. Only ConditionalNLL has errors."""
        loss = require_term_loss(self.loss, int(self.max_parents))
        has_errors = isinstance(errors, np.ndarray) and bool(errors.size)
        self.loss_ = ConditionalNLL() if has_errors and not is_calibrated(loss) else loss
        if isinstance(errors, np.ndarray) and not errors.size:
            check_array("standard_errors", errors, np.float64, (0, len(self.classes_)))
            self.standard_errors_ = []
            return
        n_states = self.encoder_.n_states_
        check_array("standard_errors", errors, np.float64, (int(n_states.sum()), len(self.classes_)))
        if not (np.isfinite(errors) & (errors >= 0)).all():
            raise ValueError("standard_errors must be finite and nonnegative.")
        self.standard_errors_ = np.split(errors, np.cumsum(n_states)[:-1])

    def _histories(self) -> dict[str, list[Any]]:
        """Return the iterations of the final training."""
        return {"parameters": getattr(self, "history_", [])}


def _refuse_monotone_edges(structure: Structure, is_monotone: AnyArray, data: EncodedData) -> None:
    """Raise ValueError if a fixed structure has an edge to or from a monotone feature."""
    for child, row in enumerate(structure.parents.tolist()):
        for parent in row:
            if parent >= 0 and (is_monotone[child] or is_monotone[parent]):
                monotone, edge = (data.label(i) for i in ((child, parent) if is_monotone[child] else (parent, child)))
                raise ValueError(
                    f"structure has an edge between {monotone} and {edge}, but {monotone} is in increasing or "
                    f"decreasing, and such columns have no edges. Remove the edge, or remove {monotone} from "
                    f"increasing and decreasing."
                )
