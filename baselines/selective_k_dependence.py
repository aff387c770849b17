"""Selective KDB: KDB with the number of parents and of features selected by leave-one-out loss.

Martinez, Webb, Chen, Zaidi, "Scalable learning of Bayesian network classifiers", JMLR 17, 2016. Features and parents
are ranked as in KDB. A network with fewer parents, or with the first features only, is a part of the largest network.
One more pass over the rows, in which each row is removed from the counts, therefore evaluates all of these networks.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from tanlearn._typing import IntArray
from tanlearn.counts.context_counts import ContextCounts
from tanlearn.counts.pair_counts import PairCounts
from tanlearn.counts.rounded_information import Information
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.estimators.classifier import Classifier
from tanlearn.estimators.counting_classifier import CountingClassifier
from tanlearn.estimators.network_classifier import NetworkClassifier
from tanlearn.estimators.row_sources import EncodedSource
from tanlearn.models.back_off import BackOffTables
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.leave_one_out import LeaveOneOut
from tanlearn.parameters.hierarchical_smoothing import (
    CONCENTRATIONS,
    dense_if_small,
    log_class_prior,
    read_concentrations,
)
from tanlearn.structures.structures import Structure

from .k_dependence import KDependence

__all__ = ["SelectiveKDependenceClassifier"]


class SelectiveKDependenceClassifier(CountingClassifier, NetworkClassifier):
    """KDB with the numbers of parents and features that have the lowest leave-one-out loss, and hierarchical smoothing.

    Parameters
    ----------
    max_k : int, default=5
        Largest evaluated number of augmenting parents per feature, from 0.
    loss : {"log-loss", "error"}, default="log-loss"
        Leave-one-out loss to minimize: the mean -log P(class | features), or the error rate. Ties are broken by fewer
        features, then by fewer parents.
    m : "auto", float or array-like of shape (max_k + 1,), default="auto"
        Weight with which a CPT is shrunk toward the CPT with one parent less, one weight for each number of parents.
        With ``"auto"``, the weights are selected. See :class:`~tanlearn.HierarchicalSmoothing`.
    sparse : "auto" or bool, default="auto"
        Whether to store counts of the contexts that occur, or dense CPTs, as in
        :class:`~tanlearn.HierarchicalSmoothing`.
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
        Seed for sampling rows from the model. Fitting is deterministic.

    Attributes
    ----------
    k_ : int
        Selected number of augmenting parents per feature.
    selected_ : ndarray of shape (n_selected,)
        Selected features, most informative first. All other features are independent of the class and of the selected
        features: their CPTs are equal for all classes.
    losses_ : ndarray of shape (n_features + 1, max_k + 1)
        Leave-one-out loss for each number of features and of parents.
    structure_ : Structure
        The selected network.
    tables_ : Tables
        Log probabilities of each feature given its parents and the class.
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

    References
    ----------
    Martinez, Webb, Chen, Zaidi: Scalable learning of Bayesian network classifiers. Journal of Machine Learning Research
    17, 2016.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn.baselines import SelectiveKDependenceClassifier
    >>> X = np.random.default_rng(0).integers(0, 2, (400, 5))
    >>> y = X[:, 0] ^ X[:, 1] ^ X[:, 2]  # no two features are informative together
    >>> model = SelectiveKDependenceClassifier(max_k=4).fit(X, y)
    >>> model.k_ >= 2, model.score(X, y)
    (True, 1.0)
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Classifier._parameter_constraints,
        "max_k": [Interval(Integral, 0, None, closed="left")],
        "loss": [StrOptions({"error", "log-loss"})],
        "m": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither"), "array-like"],
        "sparse": [StrOptions({"auto"}), "boolean"],
        "device": [StrOptions({"cpu"})],
    }

    def __init__(
        self,
        *,
        max_k: int = 5,
        loss: str = "log-loss",
        m: Any = "auto",
        sparse: Any = "auto",
        class_weight: Any = None,
        class_prior: Any = None,
        encoder: TableEncoder | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.max_k = max_k
        self.loss = loss
        self.m = m
        self.sparse = sparse
        self.class_weight = class_weight
        self.class_prior = class_prior
        self.encoder = encoder
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _check_needs(self, allowed: frozenset[str]) -> bool:
        """Raise an AttributeError where no sample of rows is available to select features and parents."""
        if "sample" not in allowed:
            raise AttributeError(
                f"{type(self).__name__} selects its network by leave-one-out errors, so it needs all rows at "
                f"once. Use fit."
            )
        return True

    def _learn(self, data: EncodedData, validation: EncodedData | None, rng: np.random.Generator) -> None:
        """Rank features and parents, evaluate all networks, and count the rows for the best one."""
        information = Information.of_rows(data, n_jobs=self.n_jobs)
        self._learn_from(information, lambda: data, lambda contexts: contexts.update(data, n_jobs=self.n_jobs))

    def _learn_batches(self, rows: EncodedSource) -> None:
        """Rank with all rows, select the network on a sample of rows, and count all rows for it."""
        pairs = rows.add_to(PairCounts(rows.n_states, rows.n_classes), n_jobs=self.n_jobs)
        pairs.names = getattr(self, "feature_names_in_", None)
        information = Information.of_counts(pairs, n_jobs=self.n_jobs)
        self._learn_from(information, lambda: rows.sample, lambda contexts: rows.add_to(contexts, n_jobs=self.n_jobs))

    def _learn_from(
        self,
        information: Information,
        rows: Callable[[], EncodedData],
        count: Callable[[ContextCounts], ContextCounts],
    ) -> None:
        """Learn from mutual information, the rows for leave-one-out evaluation, and a function that counts all rows."""
        data = rows()
        order = information.by_class
        largest = KDependence(k=self.max_k).from_information(information)
        judge = LeaveOneOut(data, largest.parents, max(len(CONCENTRATIONS), self.max_k + 1), n_jobs=self.n_jobs)
        m = read_concentrations(self.m, judge.n_levels)
        m = judge.choose(CONCENTRATIONS)[0] if m is None else m
        losses = judge.prefixes(order, m)
        self.losses_ = losses[:, :, int(self.loss == "error")]
        n_selected, self.k_ = (int(i) for i in np.unravel_index(self.losses_.argmin(), self.losses_.shape))
        self.selected_ = order[:n_selected]
        parents = np.full((data.n_features, max(1, self.k_)), -1)
        parents[self.selected_, : self.k_] = largest.parents[self.selected_, : self.k_]
        structure = Structure(parents)
        contexts = count(ContextCounts(structure.parents, data.n_states, data.n_classes))
        _forget_classes(contexts, order[n_selected:])
        m = m[: 1 + int((structure.parents >= 0).sum(axis=1).max())]
        tables = BackOffTables(contexts, m, log_class_prior(contexts.class_counts), n_jobs=self.n_jobs)
        self.model_ = BayesNet(structure, dense_if_small(tables, self.sparse))


def _forget_classes(contexts: ContextCounts, features: IntArray) -> None:
    """Replace the counts of features without parents by counts that are equal for all classes, in place."""
    for i in features.tolist():
        (values, _), counts = contexts.families[i]
        of_value = np.zeros(int(contexts.n_states[i]), counts.dtype)
        np.add.at(of_value, values, counts)
        seen = np.flatnonzero(of_value)
        every = np.tile(np.arange(contexts.n_classes), len(seen))
        contexts.families[i] = (
            np.stack([np.repeat(seen, contexts.n_classes), every]).astype(values.dtype),
            np.repeat(of_value[seen], contexts.n_classes),
        )
