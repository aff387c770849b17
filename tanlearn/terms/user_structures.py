"""Structures given by the user for networks of terms: fixed, or learned by a structure learner from coarse columns."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from tanlearn._typing import AnyArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.forest.ensemble import merged_values
from tanlearn.structures.knowledge import EdgeRules
from tanlearn.structures.structures import Structure, check_structure, padded_parents
from tanlearn.terms.basis import Resolutions, TermStructure

__all__ = ["MOST_PARENTS", "LearnedEdges", "UserStructure", "coarse_rows", "family_triples"]

#: Maximum number of parents per feature of a network of terms.
MOST_PARENTS = 5


class LearnedEdges(NamedTuple):
    """Edges of a structure learner or of a fixed structure, with the same methods as `EdgeGains`."""

    structure: TermStructure
    learner: Any = None  # fitted; None for a fixed structure

    def network(self, n_parents: int, by_name: IntArray, rules: EdgeRules | None) -> TermStructure:
        """Return the only network, which has all edges."""
        return self.structure

    def triples(self, by_name: IntArray) -> list[tuple[int, ...]]:
        """Return each feature with any two of its parents, see :func:`family_triples`."""
        return family_triples(self.structure.parents, by_name)


@dataclass(frozen=True)
class UserStructure:
    """Structure learner or fixed structure."""

    learner: Any  # unfitted, with ``learn(data, rng)``; or a Structure
    seed: int = 0  # seed of the random numbers of each call

    def learn(
        self, data: EncodedData, resolutions: Resolutions, max_parents: int, rules: EdgeRules | None
    ) -> tuple[TermStructure, Any]:
        """Return the structure for the given rows, and the fitted copy of the learner (None for a fixed structure).

        Learners get coarse columns, which are just fine enough for the terms of edges. Edges of features without such
        terms are left out, unless ``rules`` require them.

        Raises ValueError if the structure has a cycle or more than ``max_parents`` parents, or violates ``rules``.
        Raises TypeError if a learner does not return a structure.
        """
        coarse, learner = coarse_rows(data, resolutions), None
        if isinstance(self.learner, Structure):
            found = self.learner
        else:
            learner = clone(self.learner, safe=False)
            found = learner.learn(coarse, np.random.default_rng(self.seed))
            if not isinstance(found, Structure):
                raise TypeError(
                    f"{type(learner).__name__}.learn must return a Structure, got an object of type "
                    f"{type(found).__name__}. Convert the result: return Structure(parents)."
                )
        return self._checked(found, coarse, max_parents, rules), learner

    def check_fixed(
        self, data: EncodedData, resolutions: Resolutions, max_parents: int, rules: EdgeRules | None
    ) -> None:
        """Raise the errors of :meth:`learn` for a fixed structure; accept any learner."""
        if isinstance(self.learner, Structure):
            self._checked(self.learner, coarse_rows(data, resolutions), max_parents, rules)

    @staticmethod
    def _checked(found: Structure, coarse: EncodedData, max_parents: int, rules: EdgeRules | None) -> TermStructure:
        """Return the edges of features with terms of edges, after checking them."""
        check_structure(found, coarse.n_features)
        if not found.is_acyclic:
            raise ValueError("structure must not have a cycle. Remove an edge of the cycle.")
        kept = _with_terms(found, coarse.n_states > 1, rules)
        n_parents = int((kept >= 0).sum(axis=1).max())
        if n_parents > max_parents:
            _raise_of_parents(n_parents, max_parents)
        if rules is not None:
            rules.check(Structure(kept), "structure")
        return TermStructure(kept[:, : max(1, n_parents)])


def coarse_rows(data: EncodedData, resolutions: Resolutions) -> EncodedData:
    """Return the rows with the groups of the finest terms of edges as values.

    Ordered features have at most 8 values, other features at most 32. Monotone features have one value, because they
    have no edges.
    """
    is_free = resolutions.directions == 0
    groups = [resolutions.finest(i) if is_free[i] else np.zeros(n, np.intp) for i, n in enumerate(data.n_states)]
    values = merged_values(groups)
    has_missing = np.array(resolutions.has_missing) & (values.n_states > 1)
    codes = values.encode(data.codes)
    return replace(data, codes=codes, n_states=values.n_states, has_missing_category=has_missing, raw=None)


def family_triples(parents: IntArray, by_name: IntArray) -> list[tuple[int, ...]]:
    """Return each feature with any two of its parents, all in the order of names.

    Shapes: parents: (n_features, width), -1 for none; by_name: (n_features,).
    """
    rank = np.argsort(by_name).tolist()
    found = [
        sorted((child, *pair), key=rank.__getitem__)
        for child, row in enumerate(parents.tolist())
        for pair in itertools.combinations([j for j in row if j >= 0], 2)
    ]
    return [tuple(own) for own in sorted(found, key=lambda own: [rank[i] for i in own])]


def _with_terms(structure: Structure, is_divided: AnyArray, rules: EdgeRules | None) -> IntArray:
    """Return the parents (n_features, width) without edges of features with one group, unless they are required."""
    kept = []
    for child, row in enumerate(structure.parents.tolist()):
        required = np.zeros(len(is_divided), np.bool_) if rules is None else rules.required[child]
        kept.append([j for j in row if j >= 0 and (required[j] or (is_divided[child] and is_divided[j]))])
    return padded_parents(kept)


def _raise_of_parents(n_parents: int, max_parents: int) -> None:
    """Raise the error for a structure with too many parents."""
    found = f"structure has up to {n_parents} parent{'s' if n_parents > 1 else ''} per feature"
    if n_parents > MOST_PARENTS:
        raise ValueError(
            f"{found}, but a network of terms has at most {MOST_PARENTS}. Limit the parents of the structure learner, "
            f"such as HillClimbing(max_parents=2), and set max_parents of the classifier to the same number."
        )
    other = f"limit the parents of the structure to {max_parents}" if max_parents else "leave out the structure"
    raise ValueError(f"{found}, but max_parents is {max_parents}. Set max_parents={n_parents}, or {other}.")
