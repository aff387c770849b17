"""Common part of the estimators with a latent class: fitting and the attributes of the fitted network."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from tanlearn.density.coded_tables import encode_table
from tanlearn.density.latent_classes import CodedRows
from tanlearn.density.learning import LatentCandidate, learn_network
from tanlearn.density.stored_numbers import IntervalNumbers
from tanlearn.encoding.quantile_discretizer import QuantileDiscretizer
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.estimators.estimator_input import delete_fitted_attributes, generator
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.tables import Tables
from tanlearn.structures.structures import Structure

__all__ = ["LatentNetworkEstimator"]


class LatentNetworkEstimator(BaseEstimator):
    """Estimator with a network of all columns and a latent class."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        "n_components": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "encoder": [None, TableEncoder],
        "n_jobs": [None, Integral],
        "random_state": ["random_state", np.random.Generator],
    }

    #: Treatment of missing values by an encoder without ``handle_missing``: they are unknown values.
    _default_handle_missing: ClassVar[str | None] = None

    n_components: Any
    n_jobs: int | None
    random_state: Any
    encoder_: TableEncoder
    candidates_: list[LatentCandidate]
    model_: BayesNet
    interval_numbers_: IntervalNumbers

    @property
    def structure_(self) -> Structure:
        """Structure of the network."""
        return self.model_.structure

    @property
    def tables_(self) -> Tables:
        """CPTs of the network."""
        return self.model_.tables

    @property
    def n_components_(self) -> int:
        """Number of latent classes."""
        return self.model_.tables.layout.n_classes

    def _default_discretizer(self) -> Any:
        """Return the discretizer that is used if the encoder does not set one."""
        return QuantileDiscretizer(max_bins=12, n_jobs=self.n_jobs)

    def _fit_network(self, X: Any) -> CodedRows:
        """Validate the parameters, fit encoder and network to raw rows, and return the encoded rows."""
        self._validate_params()
        delete_fitted_attributes(self)
        rows, columns = encode_table(self, X)
        self.interval_numbers_ = IntervalNumbers.of(columns, rows.codes, self.encoder_)
        rng = generator(self.random_state)
        self.model_, self.candidates_ = learn_network(rows, self.n_components, rng, self.n_jobs)
        return rows
