"""Parent dropout: the families of a structure come and go in every step, while its parameters are learnt.

Each feature keeps its family with some probability and else has, for one step, another one: no parent, or one of a few
features before it. What a table says of the class so depends less on what the others say, and they overfit less, as
with dropout in neural networks. Gradient TAN that learns its structure has this for nothing as long as nothing is
decided. In no paper; what it is worth: table 1 of benchmarks/paper/differentiable_tan, and
benchmarks/quality/parent_dropout.md.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tanlearn._typing import FloatArray
from tanlearn.network.candidates import CandidateSets
from tanlearn.network.structures import Structure
from tanlearn.training.settings import TrainingSettings

__all__ = ["cold", "with_alternatives"]

#: Single parents, drawn among the features before, that a feature may have for a step.
N_ALTERNATIVES = 8
#: So cold, no choice but the one drawn has a gradient to compute: the logits stay where they are.
_COLD = 1e-3


def with_alternatives(
    structure: Structure, parent_dropout: float, rng: np.random.Generator
) -> tuple[CandidateSets, FloatArray]:
    """Return what every feature may have for a step, its own family first, and the logits that these are drawn by.

    Shapes: result phi: (n_tables,).
    """
    if not structure.is_acyclic:
        raise ValueError(
            "parent_dropout draws other parents before a feature in an order, and this structure has a cycle. Set "
            "parent_dropout=0, or learn a structure without cycles."
        )
    width = structure.parents.shape[1]
    families, phi, group = [], [], [0]
    place = np.argsort(structure.order)
    for i, own in enumerate(structure.parents):
        none = np.full(width, -1)
        before = np.setdiff1d(structure.order[: place[i]], own if (own >= 0).sum() == 1 else none)
        drawn = rng.permutation(before)[:N_ALTERNATIVES]
        singles = np.full((len(drawn), width), -1)
        singles[:, 0] = drawn
        others = [none, *singles] if own[0] >= 0 else [*singles]
        families += [own, *others]
        logit = np.log(len(others) * (1 / parent_dropout - 1)) if others else 0.0
        phi += [logit, *np.zeros(len(others))]
        group.append(len(families))
    return CandidateSets(np.array(families, dtype=np.intp), np.array(group, dtype=np.intp)), np.array(phi)


def cold(settings: TrainingSettings) -> TrainingSettings:
    """Return settings under which logits stay as they are."""
    return replace(settings, structure_learning_rate=0.0, temperature=(_COLD, _COLD))
