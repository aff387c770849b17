"""Base class of gradient classifiers: candidate parents, held-out rows and progress reports."""

from __future__ import annotations

import os
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from tanlearn.data.encoded_data import EncodedData
from tanlearn.data.splits import hold_out
from tanlearn.estimators.network_classifier import NetworkClassifier
from tanlearn.network.candidates import CANDIDATE_KINDS, CandidateSets, make_candidates
from tanlearn.network.information import Information
from tanlearn.training.settings import EpochReport

__all__ = ["LEARNING_RATE", "N_EPOCHS", "GradientClassifier"]

#: Default number of epochs and learning rate.
N_EPOCHS, LEARNING_RATE = 100, 0.01


class GradientClassifier(NetworkClassifier):
    """Base class of classifiers whose structure and parameters are trained jointly on mini-batches."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **NetworkClassifier._parameter_constraints,
        "candidates": [StrOptions(set(CANDIDATE_KINDS)), list, tuple, CandidateSets],
        "n_candidates": [None, Interval(Integral, 1, None, closed="left")],
        "ordering": [None, "array-like", StrOptions({"A", "B", "C"})],
        "image_shape": [None, tuple, list],
        "loss": "no_validation",
        "learning_rate": [None, Interval(Real, 0, None, closed="neither")],
        "structure_learning_rate": [Interval(Real, 0, None, closed="left")],
        "n_epochs": [None, Interval(Integral, 1, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "temperature": [tuple, list],
        "validation_fraction": [None, Interval(Real, 0, 1, closed="neither")],
        "patience": [None, Interval(Integral, 1, None, closed="left")],
        "bits": "no_validation",
        "calibrate": ["boolean"],
        "verbose": [Interval(Integral, 0, None, closed="left")],
        "callback": [None, callable],
        "checkpoint": [None, str, os.PathLike],
    }

    candidates: Any
    candidates_: CandidateSets
    n_candidates: int | None
    ordering: Any
    image_shape: tuple[int, int] | None
    n_epochs: int | None
    batch_size: int
    temperature: tuple[float, float]
    validation_fraction: float | None
    patience: int | None
    verbose: int
    callback: Callable[[EpochReport], Any] | None
    checkpoint: str | os.PathLike[str] | None
    #: Maximum number of augmenting parents per feature.
    _n_parents: ClassVar[int] = 1

    def _make_candidates(self, data: EncodedData, rng: np.random.Generator) -> CandidateSets:
        """Return the candidate parents of each feature."""
        return make_candidates(
            self.candidates,
            data.n_features,
            n_candidates=self._most_candidates(data),
            ordering=self.ordering,
            image_shape=self.image_shape,
            rng=rng,
            information=lambda: Information.of_rows(data, n_jobs=self.n_jobs).matrix(),
            n_states=data.n_states,
            n_parents=self._n_parents,
        )

    def _candidates_of(self, part: EncodedData) -> CandidateSets:
        """Return the candidates for a fold; kind "information" selects them again, from the rows of the fold."""
        if isinstance(self.candidates, str) and self.candidates == "information":
            return self._make_candidates(part, np.random.default_rng(0))
        return self.candidates_

    def _most_candidates(self, data: EncodedData) -> int | None:
        """Return the maximum number of candidate parents per feature, or None for the default of the kind."""
        return self.n_candidates

    def _hold_out(
        self, data: EncodedData, validation: EncodedData | None, rng: np.random.Generator
    ) -> tuple[EncodedData, EncodedData | None]:
        """Return the training rows and the held-out rows (None without ``validation_fraction``)."""
        # fit holds rows out before encoding, fit_encoded only here.
        if self.validation_fraction is not None and validation is None:
            data = data.take(data.weights > 0)
            held_out = hold_out(data.y, data.n_classes, self.validation_fraction, rng)
            data, validation = data.take(~held_out), data.take(held_out)
        if self.patience is not None and validation is None:
            raise ValueError("patience counts epochs without a better validation error: set validation_fraction too.")
        return data, validation

    def _enough_epochs(self, data: EncodedData, n_steps: int) -> int:
        """Return ``n_epochs``, or by default as many epochs as ``n_steps`` steps need, at least ``N_EPOCHS``."""
        n_epochs = self.n_epochs or N_EPOCHS
        if self.n_epochs is None:
            n_epochs = max(n_epochs, -(-n_steps // max(1, data.n_samples // self.batch_size)))
        return n_epochs

    def _check_settings(self) -> None:
        """Raise an error for invalid combinations of parameters."""
        numbers = all(isinstance(t, (int, float, np.number)) and 0 < t < np.inf for t in self.temperature)
        if len(self.temperature) != 2 or not numbers:
            raise ValueError(f"temperature must be two positive numbers (first, last epoch), got {self.temperature}.")
        if self.checkpoint is not None and not isinstance(self.random_state, Integral):
            raise ValueError(
                f"a checkpoint needs an int random_state, got {self.random_state!r}: no other value repeats the "
                f"same training."
            )

    def _report(self, report: EpochReport) -> Any:
        """Print the progress, and return the result of the user's callback."""
        every = 1 if self.verbose > 1 else max(1, report.n_epochs // 10)
        if self.verbose and (report.epoch % every == 0 or report.epoch == report.n_epochs):
            held_out = "" if report.validation_error is None else f", validation error {report.validation_error:.2%}"
            print(  # noqa: T201
                f"epoch {report.epoch}/{report.n_epochs}: loss {report.loss:.4g}, "
                f"structure entropy {report.structure_entropy:.3f}{held_out}"
            )
        return self.callback(report) if self.callback is not None else False

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None
        return tags
