"""Candidate sets of parents in structure learning.

"No parent" is always the first candidate (differentiable TAN, section 4.2: the additional phi for the empty set).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np

from tanlearn._typing import AnyArray, IntArray
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout

__all__ = ["CandidateSets"]


@dataclass(frozen=True, eq=False)
class CandidateSets:
    """Candidate sets of parents for each feature, with one CPT per set.

    Parameters
    ----------
    parents : ndarray of shape (n_tables, width)
        Parents in each candidate CPT, -1 for none. CPTs of the same child are adjacent.
    group : ndarray of shape (n_features + 1,)
        The CPTs of feature ``i`` are ``group[i]:group[i + 1]``.
    arborescence : bool
        Whether a whole tree without cycles is drawn instead of independent parents for each feature.
    allow_cycles : bool
        Whether independent draws may form a cycle.
    selectable : ndarray of shape (n_tables,), bool, optional
        Whether structures can contain a CPT. By default, all CPTs are selectable. A CPT is not selectable if it is only
        a term of a larger CPT, or lacks required parents. Each feature must have a selectable CPT.

    Examples
    --------
    >>> from tanlearn import CandidateSets
    >>> CandidateSets.from_lists([[], [0], [0, 1]])
    CandidateSets(n_features=3, n_tables=6, draws='independent')
    """

    parents: IntArray
    group: IntArray
    arborescence: bool = False
    allow_cycles: bool = False
    selectable: AnyArray | None = None

    @classmethod
    def from_lists(
        cls, lists: Sequence[Sequence[int]], *, allow_cycles: bool = False, n_parents: int = 1
    ) -> CandidateSets:
        """Create candidate sets from lists of parents.

        If single parents could form a cycle, whole trees (arborescences) are drawn, unless cycles are allowed.

        Parameters
        ----------
        lists : sequence of length n_features of sequences of int
            Candidate parents of each feature.
        allow_cycles : bool, default=False
            Whether to draw the parents of each feature independently, even if they may form a cycle.
        n_parents : {1, 2}, default=1
            Largest number of parents of a feature. If 2, there is also a CPT for each pair of parents, after the CPTs
            of single parents.

        Returns
        -------
        CandidateSets

        Raises
        ------
        ValueError
            If a parent is out of range, repeated or the feature itself.
        """
        n_features = len(lists)
        rows: list[tuple[int, int]] = []
        group = [0]
        for i, given in enumerate(lists):
            parents = [int(j) if isinstance(j, (int, np.integer)) else -1 for j in given]
            if len(set(parents)) < len(parents) or i in parents or any(not 0 <= j < n_features for j in parents):
                raise ValueError(
                    f"candidates[{i}] must contain distinct features from 0 to {n_features - 1} other than {i}, got "
                    f"{list(given)}. The candidate without parents is added automatically."
                )
            rows += [(-1, -1), *((j, -1) for j in parents)]
            rows += combinations(parents, 2) if n_parents == 2 else []
            group.append(len(rows))
        acyclic = allow_cycles or n_parents == 2 or _union_is_acyclic(lists)
        table, group_array = np.array(rows, dtype=np.intp), np.array(group, dtype=np.intp)
        return cls(table, group_array, arborescence=not acyclic, allow_cycles=allow_cycles)

    @classmethod
    def of_structure(cls, structure: Structure) -> CandidateSets:
        """Create the candidate sets of a fixed structure, with one CPT per feature.

        Parameters
        ----------
        structure : Structure
            Parents of each feature.

        Returns
        -------
        CandidateSets
        """
        return cls(
            structure.parents,
            np.arange(structure.n_features + 1),
            allow_cycles=not structure.is_acyclic,
        )

    def requiring(self, required: Sequence[Sequence[int]]) -> CandidateSets:
        """Return a copy in which only CPTs with all required parents can be selected.

        Parameters
        ----------
        required : sequence of length n_features of sequences of int
            Required parents of each feature. They must be among its candidates.

        Returns
        -------
        CandidateSets
            The same candidate sets, with ``selectable``.

        Raises
        ------
        ValueError
            If no candidate of a feature has all its required parents.
        """
        rows = zip(self.child.tolist(), self.parents.tolist(), strict=True)
        selectable = np.array([set(required[i]) <= set(row) for i, row in rows], np.bool_)
        missing = np.flatnonzero(~np.logical_or.reduceat(selectable, self.group[:-1]))
        if missing.size:
            i = int(missing[0])
            raise ValueError(
                f"no candidate of feature {i} has the required parents {list(required[i])}. Add them to its candidates."
            )
        return replace(self, selectable=selectable)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.group.shape[0] - 1

    @property
    def n_tables(self) -> int:
        """Number of candidate CPTs of all features."""
        return self.parents.shape[0]

    @property
    def has_choice(self) -> bool:
        """True if any feature has more than one candidate."""
        return self.n_tables > self.n_features

    @property
    def has_one_parent(self) -> bool:
        """True if no candidate has two or more augmenting parents."""
        return not (self.parents[:, 1] >= 0).any()

    @property
    def is_acyclic(self) -> bool:
        """True if no draw can form a cycle."""
        sets = (self.parents[first:last] for first, last in pairwise(self.group.tolist()))
        return self.arborescence or _union_is_acyclic([np.unique(parents[parents >= 0]) for parents in sets])

    @property
    def draws(self) -> str:
        """Method of drawing a structure.

        "arborescence" means that a whole tree is drawn. "independent" means that the parents of each feature are drawn
        independently, if no cycle can arise or cycles are allowed. "acyclic" means that parents are drawn for one
        feature after another, from the candidates that do not close a cycle.
        """
        if self.arborescence:
            return "arborescence"
        return "independent" if self.allow_cycles or self.is_acyclic else "acyclic"

    @property
    def members(self) -> IntArray:
        """For each CPT with two parents, indices (n_tables, 2) of the CPTs of both single parents, or -1 for none.

        Raises
        ------
        ValueError
            If the first candidate of a feature is not "no parent", if a pair does not come after both of its single
            parents, or if a candidate has more than two parents.
        """
        members = np.full((self.n_tables, 2), -1, dtype=np.intp)
        for i, (first, last) in enumerate(pairwise(self.group.tolist())):
            alone: dict[int, int] = {}
            for t in range(first, last):
                parents = self.parents[t][self.parents[t] >= 0].tolist()
                proper = len(parents) == 2 and all(j in alone for j in parents)
                if len(parents) == 1:
                    alone[parents[0]] = t
                elif proper:
                    members[t] = [alone[j] for j in parents]
                if (not parents) != (t == first) or (len(parents) > 1 and not proper):
                    raise ValueError(
                        f"candidate {t - first} of feature {i} is invalid: {parents}. The first candidate must be "
                        f"empty (no parent). Each other one must be a single parent, or a pair whose parents are "
                        f"listed before it as single parents. Create candidate sets with "
                        f"CandidateSets.from_lists(..., n_parents=2)."
                    )
        return members

    @property
    def child(self) -> IntArray:
        """Feature of each CPT, an array of shape (n_tables,)."""
        return np.repeat(np.arange(self.n_features), np.diff(self.group))

    def layout(self, n_states: IntArray, n_classes: int) -> TableLayout:
        """Return the layout of all candidate CPTs.

        Parameters
        ----------
        n_states : ndarray of shape (n_features,)
            Number of values of each feature.
        n_classes : int
            Number of classes.

        Returns
        -------
        TableLayout
        """
        return TableLayout(self.child, self.parents, n_states, n_classes)

    def structure(self, selected: IntArray) -> Structure:
        """Return the structure of the selected CPTs.

        Parameters
        ----------
        selected : ndarray of shape (n_features,)
            Index of one CPT per feature.

        Returns
        -------
        Structure
        """
        return Structure(self.parents[selected], allow_cycles=self.allow_cycles)

    def __repr__(self) -> str:
        return f"CandidateSets(n_features={self.n_features}, n_tables={self.n_tables}, draws={self.draws!r})"


def _union_is_acyclic(lists: Sequence[Sequence[int] | IntArray]) -> bool:
    """Return whether no choice of candidates can form a cycle."""
    import graphlib

    try:
        graphlib.TopologicalSorter({i: list(map(int, given)) for i, given in enumerate(lists)}).prepare()
    except graphlib.CycleError:
        return False
    return True
