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

    Parameters
    ----------
    structure : Structure
        The families to learn; acyclic.
    parent_dropout : float
        Probability of another one, above 0 and at most 0.5.
    rng : numpy.random.Generator
        Draws other parents.

    Returns
    -------
    candidates : CandidateSets
        Nothing that is drawn has a cycle: alternatives come before a feature in ``structure.order``.
    phi : ndarray of shape (n_tables,)

    Raises
    ------
    ValueError
        If the structure has a cycle.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import Structure
    >>> from tanlearn.training.parent_dropout import with_alternatives
    >>> sets, phi = with_alternatives(Structure([-1, 0, 1]), 0.25, np.random.default_rng(0))
    >>> sets.parents[sets.group[2] :, 0].tolist(), (np.exp(phi[3:]) / np.exp(phi[3:]).sum()).round(3).tolist()
    ([1, -1, 0], [0.75, 0.125, 0.125])
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
    """Return settings under which logits stay as they are.

    Parameters
    ----------
    settings : TrainingSettings
        Of the tables.

    Returns
    -------
    TrainingSettings

    Examples
    --------
    >>> from tanlearn.training.parent_dropout import cold
    >>> from tanlearn.training.settings import TrainingSettings
    >>> cold(TrainingSettings()).structure_learning_rate
    0.0
    """
    return replace(settings, structure_learning_rate=0.0, temperature=(_COLD, _COLD))
