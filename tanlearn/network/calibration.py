"""How scores of classes become probabilities that are as frequent as they say."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from tanlearn._typing import FloatArray
from tanlearn.network.inference import log_posterior
from tanlearn.network.tables import Tables

__all__ = ["Calibration", "EvidenceCalibration", "decision_tables"]


@dataclass(frozen=True)
class Calibration:
    """A scale of scores: a class is as probable as ``exp(-d / temperature * (d / pivot) ** (power - 1))``, normalised.

    Its distance d is that of its joint log-probability from the largest in the row, so the order of the classes stays,
    up to rounding (unlike with an ``EvidenceCalibration``). Of power 1, a temperature divides joint log-probabilities.
    A power below 1 is for networks that are surer than they may be of what they think rare: distances beyond the pivot
    count less than by the temperature alone, those before it more.

    Parameters
    ----------
    temperature : float, default=1.0
        In nats, positive.
    power : float, default=1.0
        Positive.
    pivot : float, default=1.0
        In nats, positive: where a power changes nothing.

    Raises
    ------
    ValueError
        If one of them is no positive number.

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
        """Return the calibration that a file describes.

        Parameters
        ----------
        state : dict
            What ``dataclasses.asdict`` returned of it.

        Returns
        -------
        Calibration
        """
        return EvidenceCalibration(**state) if "prior_shift" in state else Calibration(**state)

    def unshifted(self) -> Calibration:
        """Return the scale alone, for scores that are shifted already.

        Returns
        -------
        Calibration
        """
        return Calibration(self.temperature, self.power, self.pivot)

    def shifted(self, scores: FloatArray) -> FloatArray:
        """Return the scores of which the largest is the predicted class: the log joint itself.

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
        """Return log p(class | observed features).

        Parameters
        ----------
        scores : ndarray of shape (n_samples, n_classes)
            Log joint. A row of -inf only gives the uniform posterior; classifiers take the class probabilities instead.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        if self.power == 1:
            return log_posterior(self.shifted(scores) / self.temperature)
        # The distances are those of the posterior, too: of a row of -inf they are 0, and no nan.
        posterior = log_posterior(scores)
        distances = posterior.max(axis=1, keepdims=True) - posterior
        unit = math.exp((math.log(self.temperature) + (self.power - 1) * math.log(self.pivot)) / self.power)
        return log_posterior(-((distances / unit) ** self.power))


@dataclass(frozen=True)
class EvidenceCalibration(Calibration):
    """A temperature that divides the evidence of the features alone: log p(c | x) = (s_c - log pi_c) / T + log pi_c.

    A temperature of the log joint also divides the log frequencies pi of the classes, so that a large one predicts
    equally frequent classes. This one tends to the class frequencies instead. Scores of classes are shifted by
    ``(T - 1) log pi`` before they are divided by T, and the predicted class is the largest of the shifted scores. The
    tables of the network keep their class prior.
    """

    prior_shift: tuple[float, ...] = ()  # ``(T - 1) log pi``, finite

    def __post_init__(self) -> None:
        super().__post_init__()
        shift: tuple[Any, ...] = tuple(self.prior_shift)
        if (self.power, self.pivot) != (1.0, 1.0) or not all(
            type(value) is not bool and isinstance(value, Real) and math.isfinite(value) for value in shift
        ):
            raise ValueError(
                f"the prior_shift of a calibration must be finite numbers, of power and pivot 1, got {shift!r}, "
                f"{self.power} and {self.pivot}."
            )
        object.__setattr__(self, "prior_shift", tuple(float(value) for value in shift))

    @classmethod
    def of_frequencies(cls, temperature: float, log_frequency: FloatArray) -> EvidenceCalibration:
        """Return the calibration of a temperature and class frequencies.

        Shapes: log_frequency: (n_classes,).
        """
        return cls(temperature, prior_shift=tuple(((temperature - 1.0) * log_frequency).tolist()))

    def shifted(self, scores: FloatArray) -> FloatArray:
        """Return the scores of which the largest is the predicted class: the log joint and the shift.

        Shapes: scores: (n_samples, n_classes); result: (n_samples, n_classes).
        """
        return scores + np.array(self.prior_shift)


def decision_tables(tables: Tables, calibration: Calibration) -> Tables:
    """Return tables whose largest log joint is the predicted class, for programs that know no calibration."""
    prior = tables.log_prior[np.newaxis]
    shifted = calibration.shifted(prior)
    return tables if shifted is prior else tables.with_log_prior(log_posterior(shifted)[0])
