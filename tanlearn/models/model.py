"""Interface of fitted models over codes. Every classifier predicts with its ``model_``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, codes_dtype, missing_code
from tanlearn.models.new_values import bound_new_values

__all__ = ["Model"]


class Model(ABC):
    """Fitted model of classes and features, over codes.

    Shapes: codes are (n_features, n_samples), feature-major; scores are (n_samples, n_classes).
    """

    @abstractmethod
    def numbers_of_values(self) -> IntArray:
        """Return the number of values of each feature. Shape: (n_features,)."""

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """Number of free parameters."""

    @abstractmethod
    def log_joint(self, codes: Codes, *, n_jobs: int | None = None, device: str = "cpu") -> FloatArray:
        """Compute log p(class, observed features) of each row; the result does not depend on ``n_jobs``."""

    @abstractmethod
    def with_log_prior(self, log_prior: FloatArray) -> Self:
        """Return a copy with the log class probabilities ``log_prior`` (n_classes,)."""

    @abstractmethod
    def to_state(self) -> dict[str, Any]:
        """Return the values that a file stores; arrays are not copied."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: dict[str, Any], n_states: IntArray, n_classes: int) -> Self:
        """Restore a model from the output of :meth:`to_state`; raise ValueError for inconsistent values."""

    def write_to(self, writer: Any) -> Any:
        """Call the method of an export for this kind of model, and return its result.

        The methods are ``network``, ``forest``, ``boosted_terms`` and ``ensemble``. Raise NotImplementedError for other
        models, which cannot be exported.
        """
        raise NotImplementedError(type(self).__name__)

    def row_scorer(self) -> Callable[[IntArray], FloatArray]:
        """Return a function that computes the log joint (n_classes,) of a row of valid codes (n_features,), intp.

        Its results equal :meth:`log_joint`. Quantities that do not depend on the row are computed here.
        """
        dtype = codes_dtype(int(self.numbers_of_values().max()))

        def score(row: IntArray) -> FloatArray:
            column: AnyArray = row.astype(dtype)[:, np.newaxis]
            return self.log_joint(column, n_jobs=1)[0]

        return score

    def log_joint_without_features(self) -> FloatArray:
        """Compute the log joint of a row in which every feature is missing. Shape: (n_classes,)."""
        return self.log_joint(self._codes_without_features())[0]

    def log_normalizer(self, *, device: str = "cpu") -> float:
        """Return the log of the sum of exp(log joint) over all rows and classes: 0 if probabilities sum to one."""
        return 0.0

    def log_joint_of_new_values(
        self, codes: Codes, is_unseen: AnyArray, *, n_jobs: int | None = None, device: str = "cpu"
    ) -> FloatArray:
        """Compute the log joint of rows in which ``is_unseen`` (n_features, n_samples) marks unseen values.

        An unseen value is marginalized, and the score is multiplied by a lower bound of all probabilities of the
        feature. A row with an unseen value therefore never has a higher score than with a seen value.
        """
        scores = self.log_joint(codes, n_jobs=n_jobs, device=device)
        if is_unseen.any():
            least = self.least_log_probabilities()
            log_new = np.minimum(least, bound_new_values(least))
            for i in np.flatnonzero(is_unseen.any(axis=1)).tolist():
                scores[is_unseen[i]] += log_new[i]
        return scores

    def least_log_probabilities(self) -> FloatArray:
        """Return lower bounds of the log probabilities of all values. Shape: (n_features, n_classes)."""
        raise NotImplementedError(type(self).__name__)

    def _codes_without_features(self) -> Codes:
        """Return the codes of one row in which every feature is missing."""
        n_states = self.numbers_of_values()
        dtype = codes_dtype(int(n_states.max()))
        return np.full((len(n_states), 1), missing_code(dtype), dtype)
