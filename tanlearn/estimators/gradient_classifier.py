"""Base class of gradient classifiers: candidate parents, held-out rows and progress reports."""

from __future__ import annotations

from copy import copy
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval, StrOptions

from tanlearn._progress import print_line
from tanlearn.counts.rounded_information import Information
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.splits import hold_out
from tanlearn.estimators.estimator_input import encode_training
from tanlearn.estimators.network_classifier import NetworkClassifier
from tanlearn.parameters.monotone_cpts import MonotoneCPTs, refuse_bits
from tanlearn.sources.validation import encode_labels
from tanlearn.structures.candidate_kinds import CANDIDATE_KINDS, Candidates, make_candidates
from tanlearn.structures.candidate_sets import CandidateSets
from tanlearn.structures.knowledge import Knowledge
from tanlearn.structures.large_candidates import leave_out_large
from tanlearn.structures.monotone_columns import read_knowledge, rules_without_children
from tanlearn.terms.held_out_gains import held_out_gains
from tanlearn.training.gradient_training import GradientTraining
from tanlearn.training.history import EpochReport
from tanlearn.training.settings import TrainingSettings

__all__ = ["LEARNING_RATE", "N_EPOCHS", "GradientClassifier", "enough_epochs"]

#: Default number of epochs and learning rate.
N_EPOCHS, LEARNING_RATE = 100, 0.01


class GradientClassifier(NetworkClassifier):
    """Base class of classifiers whose structure and parameters are trained jointly on mini-batches."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **NetworkClassifier._parameter_constraints,
        "candidates": [StrOptions(set(CANDIDATE_KINDS)), list, tuple, CandidateSets, Candidates],
        "loss": "no_validation",
        "n_epochs": [None, Interval(Integral, 1, None, closed="left")],
        "training": [None, GradientTraining],
        "bits": "no_validation",
        "calibrate": ["boolean"],
        "verbose": [Interval(Integral, 0, None, closed="left")],
    }

    candidates: Any
    candidates_: CandidateSets
    n_epochs: int | None
    bits: Any
    training: GradientTraining | None
    verbose: int
    #: Maximum number of augmenting parents per feature.
    _n_parents: ClassVar[int] = 1

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the classifier.

        Parameters
        ----------
        deep : bool, default=True
            Whether to include nested parameters, such as ``training__learning_rate``. Parameters of ``training`` and
            ``candidates`` are included even if they are None or a string.

        Returns
        -------
        dict
        """
        params: dict[str, Any] = super().get_params(deep)
        for name, settings in self._implied_settings().items() if deep else ():
            params |= {f"{name}__{nested}": value for nested, value in settings.get_params().items()}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters. Nested parameters of training and candidates are set in separate copies."""
        nested = {name: value for name, value in params.items() if "__" in name}
        super().set_params(**{name: value for name, value in params.items() if name not in nested})
        for name in {key.partition("__")[0] for key in nested} & {"training", "candidates"}:
            settings = self._resolve_settings(name)
            if not isinstance(settings, BaseEstimator):
                raise ValueError(
                    f"explicit {name} have no parameters. First, set {name} to a kind, such as "
                    f"candidates='information'."
                )
            setattr(self, name, copy(settings))
        super().set_params(**nested)
        return self

    def _implied_settings(self) -> dict[str, Any]:
        """Return the settings that stand for ``training=None`` and for a string in ``candidates``, as a dictionary."""
        implied: dict[str, Any] = {} if self.training is not None else {"training": GradientTraining()}
        return implied | ({"candidates": Candidates(self.candidates)} if isinstance(self.candidates, str) else {})

    def _resolve_settings(self, name: str) -> Any:
        """Return the settings in ``training`` or ``candidates``, converted from None or a string if necessary."""
        return self._implied_settings().get(name, getattr(self, name))

    @property
    def _training(self) -> GradientTraining:
        """Settings of the training."""
        settings: GradientTraining = self._resolve_settings("training")
        return settings

    @property
    def _validation_fraction(self) -> float | None:
        """Fraction of the rows that are held out before encoding, or None."""
        return self._training.validation_fraction

    @property
    def _kind(self) -> str | None:
        """Kind of the candidates, or None for explicit candidates."""
        settings = self._resolve_settings("candidates")
        return settings.kind if isinstance(settings, Candidates) else None

    def _validate_params(self) -> None:
        """Validate the parameters of the estimator and of the settings."""
        super()._validate_params()
        for settings in (self.training, self.candidates):
            if isinstance(settings, (GradientTraining, Candidates)):
                settings._validate_params()

    def _make_candidates(self, data: EncodedData, rng: np.random.Generator, *, is_part: bool = False) -> CandidateSets:
        """Return the candidate parents of each feature, without warnings for a fold (``is_part``)."""
        settings = self._resolve_settings("candidates")
        knowledge: Knowledge | None = settings.knowledge if isinstance(settings, Candidates) else None
        directions = read_knowledge(knowledge, data)
        found = make_candidates(
            self._candidate_settings(data),
            data.n_features,
            rng=rng,
            information=lambda: Information.of_rows(data, n_jobs=self.n_jobs).matrix(),
            gains=lambda: held_out_gains(data, n_jobs=self.n_jobs),
            n_states=data.n_states,
            n_parents=self._n_parents,
            rules=rules_without_children(knowledge, data, directions != 0, max_parents=self._n_parents),
        )
        if self._kind is None:  # explicit candidates of the user
            return found
        label = None if is_part else data.label
        return leave_out_large(found, data.n_states, data.n_classes, data.n_samples, label)

    def _monotone_cpts(self, data: EncodedData) -> MonotoneCPTs | None:
        """Return the isotonic regression for the CPTs of monotone columns, or None if no column is monotone."""
        return MonotoneCPTs.of_columns(**self._directions(), data=data)

    def _directions(self) -> dict[str, Any]:
        """Return the monotone columns in the knowledge of the candidates."""
        settings = self._resolve_settings("candidates")
        knowledge = settings.knowledge if isinstance(settings, Candidates) else None
        names = "increasing", "decreasing"
        return {name: () if knowledge is None else getattr(knowledge, name) for name in names}

    def _candidates_of(self, part: EncodedData) -> CandidateSets:
        """Return the candidates for a fold. With "information" and "gain", they are selected again, on its rows."""
        if self._kind in ("information", "gain"):
            return self._make_candidates(part, np.random.default_rng(0), is_part=True)
        return self.candidates_

    def _candidate_settings(self, data: EncodedData) -> Any:
        """Return ``candidates``, with defaults that depend on the rows."""
        return self.candidates

    def _training_settings(self, n_epochs: int, learning_rate: float, **others: Any) -> TrainingSettings:
        """Return the settings of a training. ``others`` are settings that only some classifiers have."""
        given = self._training
        return TrainingSettings(
            learning_rate=learning_rate,
            structure_learning_rate=given.structure_learning_rate,
            n_epochs=n_epochs,
            batch_size=given.batch_size,
            temperature=(float(given.temperature[0]), float(given.temperature[1])),
            patience=given.patience,
            **others,
        )

    def _hold_out(
        self, data: EncodedData, validation: EncodedData | None, rng: np.random.Generator
    ) -> tuple[EncodedData, EncodedData | None]:
        """Return the training rows and the held-out rows (None without ``validation_fraction``)."""
        # In fit, rows are held out before encoding. In fit_encoded, they are held out here.
        fraction = self._validation_fraction
        if fraction is not None and validation is None:
            data = data.take(data.weights > 0)
            held_out = hold_out(data.y, data.n_classes, fraction, rng)
            data, validation = data.take(~held_out), data.take(held_out)
        if self._training.patience is not None and validation is None:
            raise ValueError(
                "patience needs held-out rows, because training stops after this number of epochs without a better "
                "validation error. Set validation_fraction, for example to 0.1."
            )
        return data, validation

    def _enough_epochs(self, data: EncodedData, n_steps: int) -> int:
        """Return the number of epochs according to :func:`enough_epochs`."""
        return enough_epochs(self.n_epochs, n_steps, data.n_samples, self._training.batch_size)

    def _check_settings(self) -> None:
        """Raise an error for invalid combinations of parameters."""
        if self.bits is not None:
            refuse_bits(self._directions())
        if self._training.checkpoint is not None and not isinstance(self.random_state, Integral):
            raise ValueError(
                f"a checkpoint needs an integer random_state, because the training must be repeatable, got "
                f"{self.random_state!r}. Set, for example, random_state=0."
            )

    def _report(self, report: EpochReport) -> Any:
        """Print the progress, and return the result of the user's callback."""
        every = 1 if self.verbose > 1 else max(1, report.n_epochs // 10)
        if self.verbose and (report.epoch % every == 0 or report.epoch == report.n_epochs):
            held_out = "" if report.validation_error is None else f", validation error {report.validation_error:.2%}"
            print_line(
                f"epoch {report.epoch}/{report.n_epochs}: loss {report.loss:.4g}, "
                f"structure entropy {report.structure_entropy:.3f}{held_out}"
            )
        callback = self._training.callback
        return callback(report) if callback is not None else False

    def _histories(self) -> dict[str, list[Any]]:
        """Return the reports of the epochs, which train structure and parameters together."""
        return {"training": getattr(self, "history_", [])}

    def _learning_errors(
        self, train: tuple[Any, Any], test: tuple[Any, Any], n_points: int
    ) -> dict[str, list[tuple[Any, float]]]:
        """Train a copy with the held-out rows as validation rows, and return their errors."""
        unset = [f"training__{name}" for name in ("validation_fraction", "patience", "callback", "checkpoint")]
        model = clone(self).set_params(**self._repeated_params(), **dict.fromkeys(unset))
        data, _ = encode_training(model, *train, validation_fraction=self._validation_fraction)
        codes = model.encoder_.encode(test[0])
        labels = encode_labels(test[1], codes.shape[1], model.classes_)
        rows = EncodedData(codes, data.n_states, labels, data.n_classes)
        model._learn_all(data, rows)
        own, repeated = self._histories()["training"], model._histories()["training"]
        pairs = zip(own, repeated, strict=False)  # patience may have stopped only the first training
        return {"training": [(report, of_copy.validation_error) for report, of_copy in pairs]}

    def _repeated_params(self) -> dict[str, Any]:
        """Return parameters for a copy that repeats the training without any selection on its validation rows."""
        return {"calibrate": False}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.non_deterministic = self.random_state is None
        return tags


def enough_epochs(n_epochs: int | None, n_steps: int, n_samples: int, batch_size: int) -> int:
    """Return ``n_epochs`` or, if it is None, enough epochs for ``n_steps`` steps, but at least ``N_EPOCHS``."""
    if n_epochs is not None:
        return int(n_epochs)
    return max(N_EPOCHS, -(-n_steps // max(1, n_samples // batch_size)))
