"""Protocol for parameter learners, which fit the CPTs of a structure to data."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.kernels._cuda import device_kind
from tanlearn.models.tables import Tables
from tanlearn.structures.structures import Structure

__all__ = ["ParameterLearner", "check_learner_device", "counts_classes", "needs_of", "validate_settings"]


class ParameterLearner(Protocol):
    """Protocol for parameter learners, which fit the CPTs of a given structure.

    Iterative learners set these attributes in ``fit``, if they are available: ``n_iter_``, the number of iterations;
    ``converged_``, whether the iteration reached its tolerance; and ``history_``, a list of
    :class:`~tanlearn.Iteration` with the computed objectives after 0, 1, ... iterations. Learners trained on
    mini-batches store a list of :class:`~tanlearn.EpochReport` instead. No ConvergenceWarning is issued at the maximum
    number of iterations, because few iterations reduce overfitting. Learners that calibrate set ``calibration_``, a
    :class:`~tanlearn.Calibration` that converts scores to probabilities.

    A structure that was learned by an estimator has a method ``relearn(data)``. A learner that uses held-out rows
    passes the structure and the splits to :func:`~tanlearn.parameters.learned_structure.structures_of_parts`. It
    evaluates its parameters on each split with the structure of that split. Other learners ignore the method.

    A learner that can be fitted to sums over rows, and therefore in batches, has the attribute ``needs``:
    ``"families"`` with the method ``from_counts(layout, cells)``; ``"contexts"`` with ``from_contexts(contexts,
    rows)``; or ``"gradients"`` with ``from_objective(structure, layout, cells, rows)``. Without this attribute, ``fit``
    is called with all rows.

    A learner whose class prior consists of class frequencies has the attribute ``counts_classes = True``. Without this
    attribute, the class prior is treated as a trained parameter, whose ratio to the frequencies is kept if users set
    other class probabilities.
    """

    def fit(self, structure: Structure, data: EncodedData, rng: np.random.Generator) -> Tables:
        """Fit the CPTs of a structure.

        Parameters
        ----------
        structure : Structure
            The augmenting parents.
        data : EncodedData
            Training rows.
        rng : numpy.random.Generator
            Random generator for all random choices.

        Returns
        -------
        Tables
        """
        ...


def needs_of(learner: Any) -> str:
    """Return the kind of data that a learner needs, which is its attribute ``needs``, or ``"rows"`` without it."""
    needs: str = getattr(learner, "needs", "rows")
    return needs


def counts_classes(learner: Any) -> bool:
    """Return whether the class prior of a parameter learner consists of class frequencies (``counts_classes``)."""
    return bool(getattr(learner, "counts_classes", False))


def check_learner_device(learner: Any, device: str) -> None:
    """Raise ValueError if a structure or parameter learner has no kernels for a device.

    The attribute ``devices`` of a learner lists the supported devices, without their numbers. Without it, the learner
    supports only the CPU.
    """
    devices = getattr(learner, "devices", ("cpu",))
    if device_kind(device) not in devices:
        raise ValueError(
            f"{learner!r} supports only device={' or '.join(map(repr, devices))}, got device={device!r}. Use "
            f"device={devices[0]!r}, or learners that have kernels for {device!r}, such as ChowLiu() for structures, "
            f"MaximumLikelihood() and ConjugateGradient() for parameters."
        )


def validate_settings(learner: Any) -> None:
    """Validate the settings of a learner that declares their constraints; learners of users need not do so."""
    if hasattr(learner, "_parameter_constraints"):
        learner._validate_params()
