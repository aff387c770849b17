"""TAN multinets: a separate network for each class (Friedman, Geiger and Goldszmidt 1997, section 4.2).

In a TAN, the tree is the same in all classes. In a multinet, each class c has its own tree, learned from its rows only:

    P(c, x) = P(c) * product over i of P_c(x_i | x_pa_c(i))
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import HasMethods, StrOptions

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.stored_values import check_array, fields
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.estimators.bayes_net_classifier import StructureLearner
from tanlearn.estimators.classifier import Classifier
from tanlearn.estimators.network_learning import validate_params
from tanlearn.kernels.mathematics import log_all
from tanlearn.models.bayes_net import BayesNet, restore_tables
from tanlearn.models.model import Model
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood
from tanlearn.parameters.parameter_learner import ParameterLearner
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import n_table_cells

from .chow_liu import ChowLiu

__all__ = ["Multinet", "MultinetClassifier"]


@dataclass(frozen=True, eq=False)
class Multinet(Model):
    """One network per class, over encoded rows of that class."""

    log_prior: FloatArray  # (n_classes,)
    networks: tuple[BayesNet, ...]  # of one class each, whose log prior is 0

    def numbers_of_values(self) -> IntArray:
        """Return the number of values of each feature. Shape: (n_features,)."""
        return self.networks[0].numbers_of_values()

    @property
    def n_parameters(self) -> int:
        """Number of free parameters of all networks and of the class prior."""
        return len(self.networks) - 1 + sum(network.n_parameters for network in self.networks)

    def log_joint(self, codes: Codes, *, n_jobs: int | None = None, device: str = "cpu") -> FloatArray:
        """Compute log p(class, observed features) of each row, with missing values marginalized in each network."""
        of_class = [network.log_joint(codes, n_jobs=n_jobs, device=device) for network in self.networks]
        return np.concatenate(of_class, axis=1) + self.log_prior

    def with_log_prior(self, log_prior: FloatArray) -> Multinet:
        """Return a copy with the log class probabilities ``log_prior`` (n_classes,)."""
        return replace(self, log_prior=log_prior)

    def log_joint_of_new_values(
        self, codes: Codes, is_unseen: AnyArray, *, n_jobs: int | None = None, device: str = "cpu"
    ) -> FloatArray:
        """Compute the log joint of rows with unseen values, in each network."""
        rule: dict[str, Any] = {"n_jobs": n_jobs, "device": device}
        of_class = [network.log_joint_of_new_values(codes, is_unseen, **rule) for network in self.networks]
        return np.concatenate(of_class, axis=1) + self.log_prior

    def to_state(self) -> dict[str, Any]:
        """Return the prior, the parents of each class, and the CPTs of all classes one after another."""
        parents = [network.structure.parents for network in self.networks]
        width = max(own.shape[1] for own in parents)
        padded = [np.pad(own, ((0, 0), (0, width - own.shape[1])), constant_values=-1) for own in parents]
        cells = [network.tables.cells[1:] for network in self.networks]  # without the log prior of their one class
        return {
            "log_prior": self.log_prior,
            "parents": np.stack(padded).astype(np.int64),
            "cells": np.concatenate(cells),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any], n_states: IntArray, n_classes: int) -> Multinet:
        """Restore a multinet from the output of :meth:`to_state`; raise ValueError for inconsistent values."""
        log_prior, parents, cells = fields(state, "log_prior", "parents", "cells")
        check_array("log_prior", log_prior, np.float64, (n_classes,))
        width = np.shape(parents)[-1] if np.ndim(parents) else 0
        check_array("parents", parents, np.int64, (n_classes, len(n_states), width))
        structures = [Structure(own) for own in parents]
        sizes = [n_table_cells(structure.parents, n_states, 1) - 1 for structure in structures]
        check_array("cells", cells, np.float64, (sum(sizes),))
        of_class = np.split(cells, np.cumsum(sizes)[:-1])
        networks = (
            BayesNet(structure, restore_tables(structure, n_states, 1, np.append(0.0, own)))
            for structure, own in zip(structures, of_class, strict=True)
        )
        return cls(log_prior, tuple(networks))


class MultinetClassifier(Classifier):
    """Bayesian multinet: each class has its own tree and CPTs, learned from the rows of that class.

    A multinet fits dependences that differ from class to class. Each tree is fitted to the rows of one class only.
    A multinet therefore needs more rows than a TAN.

    Parameters
    ----------
    structure : StructureLearner, optional
        Learner of the structure of each class; by default ``ChowLiu()``. It receives only the rows of one class, so it
        must model the features and not the class, such as ``ChowLiu(penalty="bic")``.
    parameters : ParameterLearner, optional
        Learner of the CPTs of each class; by default ``MaximumLikelihood(alpha=1)``. It receives only the rows of one
        class, so discriminative learners cannot be used.
    class_weight : None, "balanced" or dict, default=None
        Factor by which the sample weights of each class are multiplied. "balanced" gives all classes the same total
        weight.
    class_prior : array-like of shape (n_classes,), optional
        Class probabilities, in the order of ``classes_``. By default, they are the class frequencies of the training
        rows.
    encoder : TableEncoder, optional
        Encoder of raw columns. The default is ``TableEncoder()``.
    device : {"cpu"}, default="cpu"
        Accepted for compatibility with the other classifiers.
    n_jobs : int, optional
        Number of threads for encoding and prediction, as in joblib. Results do not depend on ``n_jobs``.
    random_state : int, RandomState, Generator or None, default=None
        Seed of randomized structure learners.

    Attributes
    ----------
    structures_ : list of Structure
        Structure of each class.
    model_ : Multinet
        The networks.
    classes_ : ndarray of shape (n_classes,)
        Class labels in sorted order.
    encoder_ : TableEncoder
        The fitted encoder.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, set only if ``X`` had column names.
    n_parameters_ : int
        Number of free parameters of all networks.

    Notes
    -----
    A multinet has no single structure. It predicts, marginalizes missing values, scores rows and can be saved. It
    cannot explain or sample rows, and has no export to BIF or C.

    References
    ----------
    Friedman, Geiger, Goldszmidt: Bayesian network classifiers. Machine Learning 29, 1997.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn.baselines import MultinetClassifier
    >>> X = np.random.default_rng(0).integers(0, 2, (300, 3))
    >>> y = X[:, 0] ^ X[:, 1]  # equal in class 0, different in class 1
    >>> model = MultinetClassifier().fit(X, y)
    >>> model.score(X, y), [structure.n_edges for structure in model.structures_]
    (1.0, [2, 2])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **Classifier._parameter_constraints,
        "structure": [None, HasMethods("learn")],
        "parameters": [None, HasMethods("fit")],
        "device": [StrOptions({"cpu"})],
    }
    _model_type: ClassVar[type[Model]] = Multinet

    def __init__(
        self,
        *,
        structure: StructureLearner | None = None,
        parameters: ParameterLearner | None = None,
        class_weight: Any = None,
        class_prior: Any = None,
        encoder: TableEncoder | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.structure = structure
        self.parameters = parameters
        self.class_weight = class_weight
        self.class_prior = class_prior
        self.encoder = encoder
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state

    _validate_params = validate_params

    def _learn(self, data: EncodedData, validation: EncodedData | None, rng: np.random.Generator) -> None:
        """Learn a network from the rows of each class."""
        structure = ChowLiu(n_jobs=self.n_jobs) if self.structure is None else self.structure
        parameters = MaximumLikelihood() if self.parameters is None else self.parameters
        networks = []
        for c in range(data.n_classes):
            of_class = _rows_of_class(data, c)
            found = clone(structure, safe=False).learn(of_class, rng)
            networks.append(BayesNet(found, clone(parameters, safe=False).fit(found, of_class, rng)))
        weight = np.bincount(data.y, data.weights.astype(np.float64), data.n_classes) + 1.0
        log_prior = np.empty(data.n_classes)
        log_all(weight / weight.sum(), log_prior)
        self.model_ = Multinet(log_prior, tuple(networks))

    @property
    def structures_(self) -> list[Structure]:
        """Structure of each class."""
        return [network.structure for network in self.model_.networks]

    @property
    def size_bits_(self) -> int:
        """Size of the CPTs of all classes and of the class prior in bits, 32 per entry."""
        n_classes = len(self.model_.networks)
        return 32 * (n_classes + sum(network.tables.n_cells - 1 for network in self.model_.networks))

    @property
    def n_operations_(self) -> int:
        """Number of additions per prediction: one CPT entry per feature and class."""
        return len(self.model_.networks) * len(self.model_.numbers_of_values())


def _rows_of_class(data: EncodedData, c: int) -> EncodedData:
    """Return the rows of a class as data of a single class, or one row of weight 0 if the class has no rows."""
    rows = np.flatnonzero(data.y == c)
    if len(rows):
        own = data.take(rows)
    else:
        own = replace(data.take(np.zeros(1, np.intp)), sample_weight=np.zeros(1, np.int64), base_weight=None)
    return replace(own, y=np.zeros_like(own.y), n_classes=1)
