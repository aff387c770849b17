"""How scores of classes become probabilities that are as frequent as they say."""

from __future__ import annotations

from typing import NamedTuple

from tanlearn._typing import FloatArray
from tanlearn.network.inference import log_posterior

__all__ = ["Calibration"]


class Calibration(NamedTuple):
    """A scale of scores: a class has a probability proportional to ``exp(-(distance / temperature) ** power)``.

    Its distance is that of its joint log-probability from the largest in the row, so the order of the classes stays as
    it is. Of power 1, a temperature divides joint log-probabilities. A power below 1 is for scores whose large
    distances mean less than small ones: what a network thinks a thousand times less probable still happens.

    Parameters
    ----------
    temperature : float, default=1.0
        A distance in nats, positive.
    power : float, default=1.0
        Positive.

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

    def log_posterior(self, scores: FloatArray) -> FloatArray:
        """Return log p(class | observed features).

        Parameters
        ----------
        scores : ndarray of shape (n_samples, n_classes)
            Log joint. A row of -inf only gives the uniform posterior.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        if self.power == 1:
            return log_posterior(scores / self.temperature)
        # Powers of distances, which a posterior keeps: of a row of -inf they are 0, and no nan.
        posterior = log_posterior(scores)
        distances = posterior.max(axis=1, keepdims=True) - posterior
        return log_posterior(-((distances / self.temperature) ** self.power))

    def scores(self, log_probabilities: FloatArray) -> FloatArray:
        """Return scores, normalised, of which these log-probabilities come out.

        Parameters
        ----------
        log_probabilities : ndarray of shape (n_samples, n_classes)
            Of the classes; -inf is allowed.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        distances = log_probabilities.max(axis=1, keepdims=True) - log_probabilities
        return log_posterior(-self.temperature * distances ** (1 / self.power))
