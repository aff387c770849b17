"""Candidate parents of each feature in structure learning.

"No parent" is always the first candidate (differentiable TAN, section 4.2: the additional phi for the empty set).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Any

import numpy as np

from tanlearn._typing import FloatArray, IntArray
from tanlearn.network.orderings import PIXEL_ORDERINGS, check_ordering, pixel_ordering
from tanlearn.network.structures import Structure
from tanlearn.network.table_layout import TableLayout

__all__ = ["CANDIDATE_KINDS", "CandidateSets", "make_candidates"]

#: Kinds of candidate sets, and the arguments that each uses.
_ARGUMENTS = {
    "all": ("ordering",),
    "subset": ("n_candidates", "ordering"),
    "heuristic": ("n_candidates", "ordering", "image_shape"),
    "information": ("n_candidates", "ordering"),
    "unconstrained": ("n_candidates",),
    "order-free": ("n_candidates",),
}
CANDIDATE_KINDS = tuple(_ARGUMENTS)
#: Default number of candidate parents per feature (in [DT], 8 are enough on every data set).
DEFAULT_SUBSET = 8


@dataclass(frozen=True, eq=False)
class CandidateSets:
    """Candidate sets of parents of each feature, one CPT per set.

    Parameters
    ----------
    parents : ndarray of shape (n_tables, width)
        Parents in each candidate CPT, -1 for none. CPTs of the same child are adjacent.
    group : ndarray of shape (n_features + 1,)
        The CPTs of feature ``i`` are ``group[i]:group[i + 1]``.
    arborescence : bool
        Whether a whole tree is drawn, which cannot have a cycle, instead of independent parents for each feature.
    allow_cycles : bool
        Whether independent draws may form a cycle.

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
            Draw the parents of each feature independently even if they may form a cycle.
        n_parents : {1, 2}, default=1
            Largest number of parents of a feature. With 2, there is also a CPT for each pair, after those of single
            parents.

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
                    f"candidates[{i}] must be different other features (0..{n_features - 1}), got {list(given)}; "
                    f"'no parent' is added automatically."
                )
            rows += [(-1, -1), *((j, -1) for j in parents)]
            rows += combinations(parents, 2) if n_parents == 2 else []
            group.append(len(rows))
        acyclic = allow_cycles or n_parents == 2 or _union_is_acyclic(lists)
        table, group_array = np.array(rows, dtype=np.intp), np.array(group, dtype=np.intp)
        return cls(table, group_array, arborescence=not acyclic, allow_cycles=allow_cycles)

    @classmethod
    def of_structure(cls, structure: Structure) -> CandidateSets:
        """Create the candidate sets of a fixed structure, one CPT per feature.

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
        """True if no candidate has two or more augmenting parents, so that draws are forests or cycles."""
        return not (self.parents[:, 1] >= 0).any()

    @property
    def is_acyclic(self) -> bool:
        """True if no draw can form a cycle."""
        sets = (self.parents[first:last] for first, last in pairwise(self.group.tolist()))
        return self.arborescence or _union_is_acyclic([parents[parents >= 0].tolist() for parents in sets])

    @property
    def draws(self) -> str:
        """Method of drawing a structure.

        "arborescence" draws a whole tree. "independent" draws the parents of each feature independently; either no
        cycle can arise, or cycles are allowed. "acyclic" draws one feature after another, among the candidates that
        close no cycle.
        """
        if self.arborescence:
            return "arborescence"
        return "independent" if self.allow_cycles or self.is_acyclic else "acyclic"

    @property
    def members(self) -> IntArray:
        """Indices of the CPTs of both single parents for each CPT with two parents, shape (n_tables, 2); -1 for none.

        Raises
        ------
        ValueError
            If the first candidate of a feature is not "no parent", a pair does not come after both of its single
            parents, or a candidate has more than two parents.
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
                        f"the candidates of feature {i} must be none, single parents, and pairs of these, in this "
                        f"order; got {parents} at index {t - first}. CandidateSets.from_lists(..., n_parents=2) "
                        f"creates such sets."
                    )
        return members

    @property
    def child(self) -> IntArray:
        """Feature of each CPT, shape (n_tables,)."""
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


def make_candidates(
    candidates: Any,
    n_features: int,
    *,
    n_candidates: int | None,
    ordering: Any,
    image_shape: tuple[int, int] | None,
    rng: np.random.Generator,
    information: Callable[[], FloatArray] | None = None,
    n_states: IntArray | None = None,
    n_parents: int = 1,
) -> CandidateSets:
    """Create the candidate sets that a user selects by name, or validate those given as lists.

    The kinds are those of differentiable TAN: "all" and "subset" of section 4.2, "heuristic" of 4.4, and
    "unconstrained" of 4.5 (a pseudo-TAN). Two kinds are in no paper: "order-free", and "information", the parents with
    the most information about a feature given the class.

    ``n_candidates`` excludes "no parent"; None means 8 for "subset", "heuristic" and "information", and all other
    features for "unconstrained" and "order-free". With the same ``rng``, the sets for a smaller number are subsets of
    those for a larger one. ``ordering`` is a permutation (n_features,), or a pixel order "A", "B" or "C" for
    "heuristic" (None means C there). None is a random order for "all" and "subset", and no order for "information",
    where any other feature may be a parent. "heuristic" needs ``image_shape`` (height, width); "information" needs
    ``information``, which returns I(X_i; X_j | C), (n_features, n_features).

    If ``n_states`` (n_features,) is given, "order-free" and "information" leave out features of one value, as children
    and as parents. Unknown kinds and arguments that the kind does not use raise ValueError.
    """
    given = {"n_candidates": n_candidates, "ordering": ordering, "image_shape": image_shape}
    known = isinstance(candidates, str) and candidates in _ARGUMENTS
    used = _ARGUMENTS[candidates] if known else ()
    unused = [name for name, value in given.items() if value is not None and name not in used]
    if isinstance(candidates, str) and not known:
        raise ValueError(f"candidates must be one of {', '.join(CANDIDATE_KINDS)} or lists, got {candidates!r}.")
    if unused:
        kind = f"candidates={candidates!r}" if known else "an explicit list of candidates"
        raise ValueError(f"{kind} does not use {unused[0]}={given[unused[0]]!r}: leave it out.")
    if not isinstance(candidates, str):
        if not isinstance(candidates, CandidateSets):
            candidates = CandidateSets.from_lists(candidates, n_parents=n_parents)
        if candidates.n_features != n_features:
            raise ValueError(f"candidates must have {n_features} features, got {candidates.n_features}.")
        return candidates
    lists: Sequence[Sequence[int]]
    if candidates == "heuristic":
        lists = _nearest(n_features, image_shape, ordering, n_candidates or DEFAULT_SUBSET)
    elif candidates == "unconstrained":
        lists = _subsets(_others(n_features), n_candidates, rng)
    elif candidates == "order-free":
        lists = _subsets(_varied(_others(n_features), n_states), n_candidates, rng)
    elif candidates == "information":
        if information is None:
            raise ValueError(
                "candidates='information' needs rows to count: pass a function that returns I(X_i; X_j | C)."
            )
        among = _others(n_features) if ordering is None else _before(check_ordering(ordering, n_features))
        lists = _most_informed(information(), _varied(among, n_states), n_candidates or DEFAULT_SUBSET)
    else:
        order = rng.permutation(n_features) if ordering is None else check_ordering(ordering, n_features)
        lists = _subsets(_before(order), None if candidates == "all" else n_candidates or DEFAULT_SUBSET, rng)
    return CandidateSets.from_lists(lists, allow_cycles=candidates == "unconstrained", n_parents=n_parents)


def _others(n_features: int) -> list[IntArray]:
    """Return all other features for each feature."""
    return [np.delete(np.arange(n_features), i) for i in range(n_features)]


def _before(order: IntArray) -> list[IntArray]:
    """Return the features before each feature in an order."""
    return [order[: np.flatnonzero(order == i)[0]] for i in range(len(order))]


def _varied(lists: Sequence[IntArray], n_states: IntArray | None) -> Sequence[IntArray]:
    """Remove features of one value from the lists, and empty the lists of these."""
    if n_states is None:
        return lists
    return [parents[(n_states[parents] > 1) & (n_states[i] > 1)] for i, parents in enumerate(lists)]


def _most_informed(information: FloatArray, among: Sequence[IntArray], limit: int) -> list[list[int]]:
    """Return the parents with the most information about each feature; ties go to the first."""
    return [
        sorted(parents[np.lexsort((parents, -information[i, parents]))[:limit]].tolist())
        for i, parents in enumerate(among)
    ]


def _subsets(lists: Sequence[IntArray], limit: int | None, rng: np.random.Generator) -> list[list[int]]:
    """Draw at most ``limit`` random entries of each list; the whole list is shuffled, so limits nest."""
    return [sorted(rng.permutation(parents)[:limit].tolist()) for parents in lists]


def _nearest(n_features: int, image_shape: Any, ordering: Any, limit: int) -> list[list[int]]:
    """Return the nearest pixels before each pixel in the ordering; ties go to the earlier pixel."""
    sizes = [int(size) for size in image_shape or () if isinstance(size, (int, np.integer)) and size > 0]
    if len(sizes) != 2 or len(image_shape) != 2 or sizes[0] * sizes[1] != n_features:
        raise ValueError(
            f"candidates='heuristic' needs image_shape=(height, width) with height * width = {n_features} features, "
            f"got {image_shape}."
        )
    name = "C" if ordering is None else ordering
    if isinstance(name, str) and name in PIXEL_ORDERINGS:
        order = pixel_ordering(name, image_shape)
    else:
        order = check_ordering(name, n_features)
    pixels = np.stack(np.divmod(np.arange(n_features), image_shape[1]), axis=1)
    lists: list[list[int]] = [[] for _ in range(n_features)]
    for position, i in enumerate(order):
        before = order[:position]
        distance = ((pixels[before] - pixels[i]) ** 2).sum(axis=1)
        lists[i] = sorted(before[np.argsort(distance, kind="stable")[:limit]].tolist())
    return lists


def _union_is_acyclic(lists: Sequence[Sequence[int]]) -> bool:
    """Return whether no choice of candidates can form a cycle."""
    import graphlib

    try:
        graphlib.TopologicalSorter({i: list(map(int, given)) for i, given in enumerate(lists)}).prepare()
    except graphlib.CycleError:
        return False
    return True
