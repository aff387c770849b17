"""How scores of classes become probabilities that are as frequent as they say."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from numbers import Real

from tanlearn._typing import FloatArray
from tanlearn.network.inference import log_posterior

__all__ = ["Calibration"]


@dataclass(frozen=True)
class Calibration:
    """A scale of scores: a class is as probable as ``exp(-d / temperature * (d / pivot) ** (power - 1))``, normalised.

    Its distance d is that of its joint log-probability from the largest in the row, so the order of the classes stays,
    up to rounding. Of power 1, a temperature divides joint log-probabilities. A power below 1 is for networks that are
    surer than they may be of what they think rare: distances beyond the pivot count less than by the temperature alone,
    those before it more.

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
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < math.inf:
                raise ValueError(f"the {field.name} of a calibration must be a positive number, got {value!r}.")
            object.__setattr__(self, field.name, float(value))

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
            return log_posterior(scores / self.temperature)
        # The distances are those of the posterior, too: of a row of -inf they are 0, and no nan.
        posterior = log_posterior(scores)
        distances = posterior.max(axis=1, keepdims=True) - posterior
        unit = math.exp((math.log(self.temperature) + (self.power - 1) * math.log(self.pivot)) / self.power)
        return log_posterior(-((distances / unit) ** self.power))
