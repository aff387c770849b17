"""Semi-naive Bayes: naive Bayes over selected and joined features (Pazzani 1996; FSSJ and BSEJ of bnclassify)."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from tanlearn._typing import FloatArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.estimators.classifier import Classifier
from tanlearn.estimators.network_classifier import NetworkClassifier
from tanlearn.kernels.mathematics import log_all
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.tables import Tables
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout

from .history import ParentChange
from .joined_features import Group, JoinSearch, joint_counts

__all__ = ["SemiNaiveBayesClassifier"]


class SemiNaiveBayesClassifier(NetworkClassifier):
    """Naive Bayes over selected features and Cartesian products of features, found by cross-validated accuracy.

    Joined features act as one feature whose values are all combinations of their values. In the network, the parents of
    a feature are the earlier features of its group, so that all operations of networks are available.

    Parameters
    ----------
    direction : {"forward", "backward"}, default="forward"
        "forward" is FSSJ, forward sequential selection and joining: it starts without features, and adds a feature,
        alone or joined with a group, in each step. "backward" is BSEJ, backward sequential elimination and joining: it
        starts with naive Bayes, and removes a feature or joins two groups in each step.
    validation : None, float or int, default=5
        Rows to score: the training rows (None), a held-out fraction of them (float), or each of this number of folds in
        turn (int). Except for None, the probabilities are estimated from the other rows. Cut points that depend on
        classes are fitted without the held-out rows. Pazzani uses leave-one-out.
    min_gain : float, default=0.0
        The search stops if no change increases the accuracy by this or more (``epsilon`` of bnclassify), or if the
        accuracy is 1. With 0, changes that leave the accuracy equal are made, too. On car, no single feature predicts
        better than the most frequent class, so FSSJ would otherwise use no feature (30 % error instead of 13 %).
    alpha : float, default=1.0
        Pseudo-count of each joint value of a group. The product is smoothed as a whole, as in bnclassify: a group of
        many values is smoothed more than the CPTs of its features would be.
    max_values : int, default=10000
        Maximum number of joint values of a group; larger products are not candidates. It limits the size of the CPTs.
    class_weight : None, "balanced" or dict, default=None
        Factor by which the sample weights of each class are multiplied. "balanced" gives all classes the same total
        weight.
    class_prior : array-like of shape (n_classes,), optional
        Class probabilities, in the order of ``classes_``. By default, they are the class frequencies of the training
        rows.
    encoder : TableEncoder, optional
        Encoder of raw columns. The default is ``TableEncoder()``.
    device : {"cpu"}, default="cpu"
        Accepted for compatibility with other classifiers. There are no CUDA kernels.
    n_jobs : int, optional
        Number of threads, as in joblib. Results do not depend on ``n_jobs``.
    random_state : int, RandomState, Generator or None, default=None
        Seed of the folds, and for sampling rows from the model.

    Attributes
    ----------
    groups_ : list of tuple of int
        Groups of joined features, in the order of joining. Features in no group are not used.
    score_ : float
        Accuracy of the final groups on the rows to score.
    n_evaluations_ : int
        Number of sets of groups that the search scored.
    history_ : list of ParentChange
        The features whose parents changed in each step. A feature that is added alone, or removed, has the parents
        ``()``.
    structure_ : Structure
        The network; each feature of a group has the earlier ones as parents.
    tables_ : Tables
        Log probabilities of each feature given its parents and the class; for unused features, equal in all classes.
    classes_ : ndarray of shape (n_classes,)
        Class labels in sorted order.
    encoder_ : TableEncoder
        The fitted encoder.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, set only if ``X`` had column names.
    n_parameters_ : int
        Number of free parameters.

    Raises
    ------
    ValueError
        From ``fit``, if a value is missing, or there are fewer rows than folds.

    Notes
    -----
    Let n(x, c) be the weight of the rows of class c with the joint value x of a group g, n(c) the weight of the class,
    and K the number of joint values. The posterior is::

        P(c | x) ~ P(c) * product over g of P(x_g | c),    P(x_g | c) = (n(x_g, c) + alpha) / (n(c) + K alpha)

    Each step evaluates O(d^2) changes of d features, and each change costs one lookup per row and class.

    References
    ----------
    Pazzani: Constructive induction of Cartesian product attributes. Information, Statistics and Induction in Science,
    1996.

    Mihaljevic, Bielza, Larranaga: bnclassify: Learning Bayesian network classifiers. The R Journal 10, 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn.baselines import SemiNaiveBayesClassifier
    >>> X = np.random.default_rng(0).integers(0, 2, (200, 3))
    >>> y = X[:, 0] ^ X[:, 2]  # features 0 and 2 are informative only together
    >>> model = SemiNaiveBayesClassifier(direction="backward", random_state=0).fit(X, y)
    >>> model.groups_, model.score(X, y)
    ([(0, 2), (1,)], 1.0)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Classifier._parameter_constraints,
        "direction": [StrOptions({"backward", "forward"})],
        "validation": [
            None,
            Interval(Integral, 2, None, closed="left"),
            Interval(RealNotInt, 0, 1, closed="neither"),
        ],
        "min_gain": [Interval(Real, 0, 1, closed="both")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "max_values": [Interval(Integral, 1, None, closed="left")],
        "device": [StrOptions({"cpu"})],
    }

    groups_: list[Group]
    score_: float
    n_evaluations_: int
    history_: list[ParentChange]

    def __init__(
        self,
        *,
        direction: str = "forward",
        validation: float | None = 5,
        min_gain: float = 0.0,
        alpha: float = 1.0,
        max_values: int = 10_000,
        class_weight: Any = None,
        class_prior: Any = None,
        encoder: TableEncoder | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.direction = direction
        self.validation = validation
        self.min_gain = min_gain
        self.alpha = alpha
        self.max_values = max_values
        self.class_weight = class_weight
        self.class_prior = class_prior
        self.encoder = encoder
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _learn(self, data: EncodedData, validation: EncodedData | None, rng: np.random.Generator) -> None:
        """Search the groups, then estimate their probabilities from all rows."""
        data.require_complete("A search of joined features")
        data = data.present()
        search = JoinSearch(
            data,
            validation=self.validation,
            alpha=self.alpha,
            max_values=self.max_values,
            rng=rng,
            n_jobs=self.n_jobs,
        )
        if self.direction == "backward":
            search.start_with([(i,) for i in search.by_name])
        search.climb(self.direction, self.min_gain)
        self.groups_, self.score_, self.history_ = search.groups, search.score, search.history
        self.n_evaluations_ = search.watch.n_evaluations
        self.model_ = BayesNet(*group_network(data, self.groups_, self.alpha))

    def _histories(self) -> dict[str, list[Any]]:
        """Return the history of the search."""
        return {"structure": getattr(self, "history_", [])}


def group_network(data: EncodedData, groups: list[Group], alpha: float) -> tuple[Structure, Tables]:
    """Return the network of groups: each product is smoothed as a whole, then written as a product of CPTs.

    A feature in no group has the same smoothed frequencies in all classes.
    """
    parents = np.full((data.n_features, max(1, max(map(len, groups), default=1) - 1)), -1)
    for group in groups:
        for k, i in enumerate(group):
            parents[i, :k] = group[:k]
    structure = Structure(parents)
    layout = TableLayout.of_parents(structure.parents, data.n_states, data.n_classes)
    layout.check_memory(data.n_samples, data.label)
    tables: list[FloatArray] = [np.empty(0)] * data.n_features
    for group in groups:
        smoothed = joint_counts(data, group) + alpha
        of_value = smoothed.reshape(*data.n_states[list(group)], data.n_classes)
        total = of_value.sum(axis=tuple(range(len(group))))
        for k, i in enumerate(group):
            upto = of_value.sum(axis=tuple(range(k + 1, len(group))))
            tables[i] = np.moveaxis(upto / total, k, 0)  # the last axis of the product becomes the first of the CPT
            total = upto[..., np.newaxis, :]
    used = {i for group in groups for i in group}
    for i in set(range(data.n_features)) - used:
        of_all = joint_counts(data, (i,)).sum(axis=1) + alpha
        tables[i] = np.tile((of_all / of_all.sum())[:, np.newaxis], data.n_classes)
    of_class = np.bincount(data.y, data.weights.astype(np.float64), data.n_classes) + alpha
    cells = np.concatenate([of_class / of_class.sum(), *(table.ravel() for table in tables)])
    log_all(cells, cells)
    return structure, Tables(layout, cells)
