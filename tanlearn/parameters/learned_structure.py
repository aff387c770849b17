"""Structures that can be learned again without the held-out rows that parameters are judged by."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

import numpy as np
from sklearn.base import clone

from tanlearn._threads import in_threads
from tanlearn._warnings import warn
from tanlearn.data.encoded_data import EncodedData
from tanlearn.network.structures import Structure

__all__ = ["LearnedStructure", "are_relearned", "copy_generator", "structures_of_parts"]

#: Numbers (rows times features times classes) up to which structures are learned again for every part.
MOST_RELEARNED = 300_000


class LearnedStructure(Structure):
    """A structure together with the learner that found it."""

    def __init__(self, structure: Structure, learner: Any, rng: np.random.Generator) -> None:
        super().__init__(structure.parents, allow_cycles=not structure.is_acyclic)
        # learner: Cloned whenever a structure is learned again. rng: In the state in which the learner began.
        # Learning again begins there too, so that the result does not depend on threads, and a learner that draws
        # structures without looking at rows finds the same one.
        self._learner, self._rng = learner, rng

    def relearn(self, data: EncodedData) -> Structure:
        """Learn a structure from other rows."""
        learner = clone(self._learner, safe=False)
        if hasattr(learner, "get_params") and "verbose" in learner.get_params(deep=False):
            learner.set_params(verbose=0)
        structure: Structure = learner.learn(data, copy_generator(self._rng))
        return structure


def are_relearned(parts: Sequence[tuple[EncodedData, EncodedData]]) -> bool:
    """Return whether structures are learned again for every part, as on small data."""
    if not parts:
        return False
    rest, held_out = parts[0]
    n_samples = rest.n_samples + held_out.n_samples
    return n_samples * rest.n_features * rest.n_classes <= MOST_RELEARNED


def structures_of_parts(
    structure: Structure, parts: Sequence[tuple[EncodedData, EncodedData]], n_jobs: int | None = None
) -> list[Structure]:
    """Return a structure for each part that does not depend on its held-out rows, if the data are small."""
    relearn = getattr(structure, "relearn", None)
    if relearn is None or not are_relearned(parts):
        return [structure] * len(parts)
    try:
        return in_threads(relearn, [rest for rest, _ in parts], n_jobs)
    except ValueError as error:
        warn(
            f"held-out rows are judged with a structure that was learned from them too, so that predicted "
            f"probabilities may be too extreme: the structure cannot be learned without them ({error})"
        )
        return [structure] * len(parts)


def copy_generator(rng: np.random.Generator) -> np.random.Generator:
    """Return a generator in the same state, which also spawns the same generators."""
    own = rng.bit_generator
    seed: Any = deepcopy(own.seed_seq)  # some supported versions of NumPy lose it in copies of generators
    twin = type(own)(seed)
    twin.state = own.state
    return np.random.Generator(twin)
