"""Structures that can be learned again without the held-out rows on which parameters are evaluated."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.base import clone

from tanlearn._threads import in_threads
from tanlearn._warnings import warn
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.structures.structures import Structure

__all__ = ["LearnedStructure", "are_relearned", "copy_generator", "structures_of_parts"]

#: Largest product of rows, features and classes for which structures are learned again for each split.
MOST_RELEARNED = 300_000


class LearnedStructure(Structure):
    """Structure that also contains the learner by which it was learned."""

    def __init__(self, structure: Structure, learner: Any, rng: np.random.Generator) -> None:
        super().__init__(structure.parents, allow_cycles=not structure.is_acyclic)
        # rng has the same state as when the learner started. Learning again starts from this state. The result
        # therefore does not depend on threads, and a learner that draws random structures finds the same structure.
        self._learner, self._rng = learner, rng

    def relearn(self, data: EncodedData) -> Structure:
        """Learn a structure from other rows, with a clone of the learner."""
        learner = clone(self._learner, safe=False)
        if hasattr(learner, "get_params") and "verbose" in learner.get_params(deep=False):
            learner.set_params(verbose=0)
        structure: Structure = learner.learn(data, copy_generator(self._rng))
        return structure


def are_relearned(parts: Sequence[tuple[EncodedData, EncodedData]]) -> bool:
    """Return whether the data are small enough to learn the structure again for each split."""
    if not parts:
        return False
    rest, held_out = parts[0]
    n_samples = rest.n_samples + held_out.n_samples
    return n_samples * rest.n_features * rest.n_classes <= MOST_RELEARNED


def structures_of_parts(
    structure: Structure, parts: Sequence[tuple[EncodedData, EncodedData]], n_jobs: int | None = None
) -> list[Structure]:
    """Return one structure per split, learned without its held-out rows if possible.

    The structure is learned again if it has a method ``relearn`` and the data are small. Otherwise, the structure
    itself is used for all splits. If no structure can be learned from the rows of a split, a UserWarning is issued, and
    the structure of all rows is used.
    """
    relearn = getattr(structure, "relearn", None)
    if relearn is None or not are_relearned(parts):
        return [structure] * len(parts)
    try:
        return in_threads(relearn, [rest for rest, _ in parts], n_jobs)
    except ValueError as error:
        warn(
            f"predicted probabilities may be too extreme, because held-out rows are evaluated with a structure that "
            f"was also learned from these rows. It cannot be learned without them ({error})"
        )
        return [structure] * len(parts)


def copy_generator(rng: np.random.Generator) -> np.random.Generator:
    """Return a copy of a generator in the same state, which also spawns the same child generators."""
    own = rng.bit_generator
    seed: Any = deepcopy(own.seed_seq)  # some supported versions of NumPy do not copy it with the generator
    duplicate = type(own)(seed)
    duplicate.state = own.state
    return np.random.Generator(duplicate)
