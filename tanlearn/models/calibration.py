"""Calibration of posterior probabilities by rescaling the log joint."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from tanlearn._typing import FloatArray
from tanlearn.models.log_joint import log_posterior
from tanlearn.models.tables import Tables

__all__ = ["Calibration", "EvidenceCalibration", "decision_tables"]


@dataclass(frozen=True)
class Calibration:
    """Rescaling of class scores. P(class) is proportional to ``exp(-d / temperature * (d / pivot) ** (power - 1))``.

    The distance d of a class is the largest log joint of the row minus the log joint of the class. The order of the
    classes stays the same up to rounding (unlike with an ``EvidenceCalibration``). With power 1, the log joint is
    divided by the temperature. A power below 1 corrects networks that are overconfident for large distances: compared
    with the temperature alone, distances beyond the pivot shrink more, and smaller distances less.

    Parameters
    ----------
    temperature : float, default=1.0
        Divisor of the distances, in nats, positive.
    power : float, default=1.0
        Exponent of the distances, positive.
    pivot : float, default=1.0
        Distance in nats at which the power has no effect, positive.

    Raises
    ------
    ValueError
        If a parameter is not a positive number.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import Calibration
    >>> np.exp(Calibration(temperature=2.0).log_posterior(np.log([[0.9, 0.1]]))).round(3).tolist()
    [[0.75, 0.25]]
    >>> np.exp(Calibration(power=0.5).log_posterior(np.log([[0.9, 0.1]]))).round(3).tolist()
    [[0.815, 0.185]]
    """

    temperature: float = 1.0
    power: float = 1.0
    pivot: float = 1.0

    def __post_init__(self) -> None:
        for name in ("temperature", "power", "pivot"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < math.inf:
                raise ValueError(f"the {name} of a calibration must be a positive number, got {value!r}.")
            object.__setattr__(self, name, float(value))

    @staticmethod
    def of_state(state: dict[str, Any]) -> Calibration:
        """Create the calibration that a file describes.

        Parameters
        ----------
        state : dict
            Fields of the calibration, as ``dataclasses.asdict`` returns them.

        Returns
        -------
        Calibration
        """
        return EvidenceCalibration(**state) if "prior_shift" in state else Calibration(**state)

    def unshifted(self) -> Calibration:
        """Return the calibration without its shift, for scores that are already shifted.

        Returns
        -------
        Calibration
        """
        return Calibration(self.temperature, self.power, self.pivot)

    def shifted(self, scores: FloatArray) -> FloatArray:
        """Return the scores whose maximum is the predicted class: the log joint itself.

        Parameters
        ----------
        scores : ndarray of shape (n_samples, n_classes)
            Log joint.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return scores

    def log_posterior(self, scores: FloatArray) -> FloatArray:
        """Compute log p(class | observed features).

        Parameters
        ----------
        scores : ndarray of shape (n_samples, n_classes)
            Log joint. For a row of -inf, the posterior is uniform; classifiers use the class probabilities instead.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        if self.power == 1:
            return log_posterior(self.shifted(scores) / self.temperature)
        # The posterior has the same distances; for a row of -inf they are 0 instead of nan.
        posterior = log_posterior(scores)
        distances = posterior.max(axis=1, keepdims=True) - posterior
        unit = math.exp((math.log(self.temperature) + (self.power - 1) * math.log(self.pivot)) / self.power)
        return log_posterior(-((distances / unit) ** self.power))


@dataclass(frozen=True)
class EvidenceCalibration(Calibration):
    """Temperature of the evidence of the features only: log p(c | x) = (s_c - log pi_c) / T + log pi_c + const.

    A temperature of the log joint also divides the log frequencies pi of the classes, so that with a large temperature,
    all classes become equally probable. With this calibration, probabilities tend to the class frequencies instead. The
    scores are shifted by ``(T - 1) log pi`` before they are divided by T, and the predicted class has the largest
    shifted score. The class prior of the network is unchanged.
    """

    prior_shift: tuple[float, ...] = ()  # (n_classes,) ``(T - 1) log pi``, finite

    def __post_init__(self) -> None:
        super().__post_init__()
        shift: tuple[Any, ...] = tuple(self.prior_shift)
        if (self.power, self.pivot) != (1.0, 1.0) or not all(
            type(value) is not bool and isinstance(value, Real) and math.isfinite(value) for value in shift
        ):
            raise ValueError(
                f"the prior_shift of a calibration must contain finite numbers, and needs power and pivot 1, got "
                f"{shift!r}, power {self.power} and pivot {self.pivot}."
            )
        object.__setattr__(self, "prior_shift", tuple(float(value) for value in shift))

    @classmethod
    def of_frequencies(cls, temperature: float, log_frequency: FloatArray) -> EvidenceCalibration:
        """Create the calibration from a temperature and log class frequencies (n_classes,)."""
        return cls(temperature, prior_shift=tuple(((temperature - 1.0) * log_frequency).tolist()))

    def shifted(self, scores: FloatArray) -> FloatArray:
        """Return the scores whose maximum is the predicted class: the log joint plus the shift."""
        return scores + np.array(self.prior_shift)


def decision_tables(tables: Tables, calibration: Calibration) -> Tables:
    """Return CPTs in which the predicted class has the largest log joint, for exports without calibration.

    Any shift of the calibration is added to the class prior.
    """
    prior = tables.log_prior[np.newaxis]
    shifted = calibration.shifted(prior)
    return tables if shifted is prior else tables.with_log_prior(log_posterior(shifted)[0])
