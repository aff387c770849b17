"""What estimators ask of a learner of parameters: from a structure and data to tables."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from tanlearn.data.encoded_data import EncodedData
from tanlearn.network.structures import Structure
from tanlearn.network.tables import Tables

__all__ = ["ParameterLearner", "check_learner_device"]


class ParameterLearner(Protocol):
    """What an estimator asks of an object that learns tables.

    Learners that iterate keep after ``fit`` what they know, where they know it: ``n_iter_``, the iterations that were
    done; ``converged_``, whether they ended by themselves; ``history_``, a list of float, the objective after 0, 1, ...
    iterations, as far as it was computed anyway. (What trains by mini-batches keeps a list of
    :class:`~tanlearn.EpochReport`.) Reaching the last iteration is no ConvergenceWarning: few iterations regularise.
    What calibrates leaves ``calibration_``, a :class:`~tanlearn.Calibration`, by which scores become probabilities.

    A structure that an estimator has learned has a method ``relearn(data)``. A learner that uses held-out rows passes
    structure and parts to :func:`~tanlearn.parameters.learned_structure.structures_of_parts`, and judges its parameters
    on every part with the structure of that part. Other learners ignore the method.
    """

    def fit(self, structure: Structure, data: EncodedData, rng: np.random.Generator) -> Tables:
        """Return the tables of a structure.

        Parameters
        ----------
        structure : Structure
            The augmenting parents.
        data : EncodedData
            Rows.
        rng : numpy.random.Generator
            Where all randomness comes from.

        Returns
        -------
        Tables
        """
        ...


def check_learner_device(learner: Any, device: str) -> None:
    """Refuse a learner of structures or parameters that has no kernels for a device."""
    devices = getattr(learner, "devices", ("cpu",))
    if device not in devices:
        raise ValueError(
            f"{learner!r} works with device={' or '.join(map(repr, devices))} only, got device={device!r}. Use "
            f"device={devices[0]!r}, or learners that have kernels for {device!r}, such as ChowLiu() for structures, "
            f"MaximumLikelihood() and ConjugateGradient() for parameters."
        )
