"""Parent dropout: random replacement of the parents of each feature, in each training step of a fixed structure.

In each step, a feature keeps its parents with a given probability. Otherwise, it has no parent, or a single parent from
a few features that precede it in the order of the structure. As with dropout in neural networks, features adapt less to
each other, which reduces overfitting. In gradient TAN with a learned structure, random structures have the same effect
until the structure logits have converged.

The method is not from a paper. For its benefit, see table 1 of benchmarks/paper/differentiable_tan, and
benchmarks/quality/parent_dropout.md.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tanlearn._typing import FloatArray
from tanlearn.structures.candidate_sets import CandidateSets
from tanlearn.structures.structures import Structure
from tanlearn.training.settings import TrainingSettings

__all__ = ["with_alternatives", "with_fixed_logits"]

#: Maximum number of alternative single parents per feature, drawn from the features that precede it.
N_ALTERNATIVES = 8
#: Temperature at which only the drawn candidate has a gradient, so that the logits need no update.
_LOWEST_TEMPERATURE = 1e-3


def with_alternatives(
    structure: Structure, parent_dropout: float, rng: np.random.Generator
) -> tuple[CandidateSets, FloatArray]:
    """Return candidates (the own parents of each feature first, then alternatives) and structure logits (n_tables,).

    ``parent_dropout`` is the probability of an alternative, above 0 and at most 0.5. No drawn structure has a cycle.
    Raises ValueError if ``structure`` has a cycle.
    """
    if not structure.is_acyclic:
        raise ValueError(
            "parent_dropout needs an order of the features, but this structure has a cycle. Set parent_dropout=0, "
            "or learn a structure without cycles."
        )
    width = structure.parents.shape[1]
    families, phi, group = [], [], [0]
    position = np.argsort(structure.order)
    for i, own in enumerate(structure.parents):
        none = np.full(width, -1)
        before = np.setdiff1d(structure.order[: position[i]], own if (own >= 0).sum() == 1 else none)
        drawn = rng.permutation(before)[:N_ALTERNATIVES]
        singles = np.full((len(drawn), width), -1)
        singles[:, 0] = drawn
        others = [none, *singles] if own[0] >= 0 else [*singles]
        families += [own, *others]
        logit = np.log(len(others) * (1 / parent_dropout - 1)) if others else 0.0
        phi += [logit, *np.zeros(len(others))]
        group.append(len(families))
    return CandidateSets(np.array(families, dtype=np.intp), np.array(group, dtype=np.intp)), np.array(phi)


def with_fixed_logits(settings: TrainingSettings) -> TrainingSettings:
    """Return settings that keep the structure logits fixed."""
    return replace(settings, structure_learning_rate=0.0, temperature=(_LOWEST_TEMPERATURE, _LOWEST_TEMPERATURE))
