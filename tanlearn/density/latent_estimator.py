"""Base class of the estimators with a latent class, with the fit and the attributes of the network."""

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
from tanlearn.encoding.column_kinds import LARGEST_N_STATES
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

    #: Files contain no classes.
    _has_classes: ClassVar[bool] = False

    #: Default of the encoder's ``handle_missing``: missing values are unknown, not a category.
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

    def _get_state(self) -> dict[str, Any]:
        """Return the fitted attributes for a model file, except the encoder."""
        return {"n_components": int(self.n_components_), **self.interval_numbers_.to_state(), **self.model_.to_state()}

    def _set_state(self, state: dict[str, Any]) -> None:
        """Restore the fitted attributes from a file, after the encoder. Raise ValueError for inconsistent values."""
        n_components, state = state.get("n_components"), dict(state)
        n_states = self.encoder_.n_states_
        if type(n_components) is not int or not 1 <= n_components <= LARGEST_N_STATES:
            raise ValueError(f"n_components must be an integer from 1 to {LARGEST_N_STATES}, got {n_components!r}.")
        stored = {name: state.pop(name, None) for name in ("n_components", "numbers", "n_numbers")}
        sizes = {i: int(n_states[i]) for i in np.flatnonzero(~self.encoder_.is_discrete_).tolist()}
        self.interval_numbers_ = IntervalNumbers.from_state(stored["numbers"], stored["n_numbers"], sizes)
        self.model_ = BayesNet.from_state(state, n_states, n_components)
        self.candidates_ = []

    def _fit_network(self, X: Any, sample_weight: Any = None) -> CodedRows:
        """Validate the parameters, fit encoder and network to raw rows, and return the encoded rows."""
        self._validate_params()
        delete_fitted_attributes(self)
        rows, columns = encode_table(self, X, sample_weight)
        self._n_rows = columns.n_samples
        self.interval_numbers_ = IntervalNumbers.of(columns, rows.codes, self.encoder_)
        rng = generator(self.random_state)
        self.model_, self.candidates_ = learn_network(rows, self.n_components, rng, self.n_jobs)
        return rows
