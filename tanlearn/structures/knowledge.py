"""Knowledge about edges between features, validated against the columns and converted to masks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from tanlearn._typing import AnyArray, IntArray
from tanlearn.structures.structures import Structure, padded_parents

__all__ = ["ColumnNumbers", "EdgeRules", "Knowledge", "initial_structure", "read_rules"]


class Knowledge(BaseEstimator):
    """Knowledge about the edges between features: required and forbidden edges, and tiers of columns.

    Structure learners have a parameter ``knowledge``. They return the best structure they find that has all required
    edges and no forbidden edge. The class is always a parent of every feature, so knowledge refers only to edges
    between features.

    Columns are specified by name if the data have column names, or by position, counted from 0.

    Parameters
    ----------
    required : sequence of (parent, child), default=()
        Edges that the network must contain. Learners of trees allow one required parent per feature.
    forbidden : sequence of (parent, child), default=()
        Edges that the network must not contain. List both directions to exclude an edge completely.
    tiers : sequence of sequences of columns, default=()
        Groups of columns in temporal or causal order. A column is never a parent of a column in an earlier tier. Edges
        within a tier, and edges of columns without a tier, are unrestricted.
    increasing : sequence of columns, default=()
        Columns with rising log odds: if the value of such a column rises, the log odds of the second class (in sorted
        order) do not fall. The columns must contain numbers or ordered categories, and there must be two classes. Only
        :class:`~tanlearn.BayesForestClassifier`, :class:`~tanlearn.TANClassifier` and
        :class:`~tanlearn.KTreeClassifier` support this parameter.
    decreasing : sequence of columns, default=()
        Columns with falling log odds: if the value of such a column rises, these log odds do not rise.

    See Also
    --------
    tanlearn.Structure : A fixed structure with known edges.

    Notes
    -----
    Structures have no cycles, so required edges also exclude all edges that would close a cycle with the required
    edges.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import BayesNetClassifier, Knowledge
    >>> from tanlearn.baselines import ChowLiu
    >>> rng = np.random.default_rng(0)
    >>> age = rng.integers(0, 3, 500)
    >>> X = np.column_stack([age, (age + (rng.random(500) < 0.1)) % 3, rng.integers(0, 2, 500)])
    >>> y = rng.integers(0, 2, 500)
    >>> knowledge = Knowledge(required=[(2, 0)], tiers=[[0], [1]])  # by position, since an array has no column names
    >>> BayesNetClassifier(structure=ChowLiu(knowledge=knowledge)).fit(X, y).structure_.parent.tolist()
    [2, 0, -1]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "required": [list, tuple],
        "forbidden": [list, tuple],
        "tiers": [list, tuple],
        "increasing": [list, tuple],
        "decreasing": [list, tuple],
    }

    def __init__(
        self,
        *,
        required: Sequence[tuple[Any, Any]] = (),
        forbidden: Sequence[tuple[Any, Any]] = (),
        tiers: Sequence[Sequence[Any]] = (),
        increasing: Sequence[Any] = (),
        decreasing: Sequence[Any] = (),
    ) -> None:
        self.required = required
        self.forbidden = forbidden
        self.tiers = tiers
        self.increasing = increasing
        self.decreasing = decreasing

    def rules(self, names: Sequence[str] | None, n_features: int, *, max_parents: int | None = None) -> EdgeRules:
        """Validate the knowledge against the columns of the data, and return it as masks.

        Call this method in your own structure learner with ``data.names`` and ``data.n_features``.

        Parameters
        ----------
        names : sequence of str, or None
            Names of the columns, or None if columns have no names.
        n_features : int
            Number of columns.
        max_parents : int, optional
            Maximum number of augmenting parents of the learner. By default, there is no limit.

        Returns
        -------
        EdgeRules
            ``required`` and ``allowed``, both of shape (n_features, n_features), with the child as first index.

        Raises
        ------
        ValueError
            If a column is unknown or is its own parent, an edge is both required and forbidden, a required edge leads
            to an earlier tier, required edges form a cycle, a column is in two tiers, or a feature has more required
            parents than ``max_parents``. The error is also raised if there are ``increasing`` or ``decreasing``
            columns.
        """
        self._validate_params()
        if self.increasing or self.decreasing:
            raise ValueError(
                "this learner does not support increasing and decreasing of Knowledge. Use a BayesForestClassifier, "
                "TANClassifier or KTreeClassifier, or the parameters increasing and decreasing of the classifier."
            )
        columns = _Edges(names, n_features)
        shown = columns.shown
        required, forbidden = np.zeros((2, n_features, n_features), np.bool_)
        for mask, name in ((required, "required"), (forbidden, "forbidden")):
            for parent, child in columns.edges(name, getattr(self, name)):
                mask[child, parent] = True
        tier = columns.tiers(self.tiers)
        is_later = (tier >= 0) & (tier[:, np.newaxis] >= 0) & (tier > tier[:, np.newaxis])  # [child, parent]
        for wrong, reason in (
            (required & forbidden, "is both required and forbidden. Remove it from one of the two lists"),
            (required & is_later, "is required, but leads to an earlier tier. Remove it, or change the tiers"),
        ):
            for child, parent in np.argwhere(wrong).tolist():
                raise ValueError(f"the edge {shown[parent]} -> {shown[child]} {reason}.")
        ancestors = _ancestors(required, shown)
        allowed = ~(forbidden | is_later | ancestors.T)
        np.fill_diagonal(allowed, False)
        if max_parents is not None:
            n_required = required.sum(axis=1)
            for child in np.flatnonzero(n_required > max_parents).tolist():
                listed = ", ".join(shown[j] for j in np.flatnonzero(required[child]).tolist())
                raise ValueError(
                    f"{shown[child]} has {n_required[child]} required parents, {listed}, but this learner allows at "
                    f"most {max_parents}. Remove required edges, or use a learner with "
                    f"max_parents={n_required[child]}, such as HillClimbing."
                )
            is_full = n_required == max_parents
            allowed[is_full] = required[is_full]
        return EdgeRules(allowed, required, tier, tuple(shown))


@dataclass(frozen=True, eq=False)
class EdgeRules:
    """Required and allowed edges between features.

    An edge is not allowed if it is forbidden, leads to an earlier tier, would close a cycle with required edges, or
    would give a feature too many parents.
    """

    allowed: AnyArray  # (n_features, n_features) bool, [child, parent]; contains the required edges
    required: AnyArray  # (n_features, n_features) bool, [child, parent]
    tier: IntArray  # (n_features,) index of the tier of each feature, -1 for none
    shown: tuple[str, ...]  # name of each feature in messages

    def take(self, order: IntArray) -> EdgeRules:
        """Return the rules of the features in another ``order`` (n_features,)."""
        both = np.ix_(order, order)
        shown = tuple(self.shown[i] for i in order.tolist())
        return EdgeRules(self.allowed[both], self.required[both], self.tier[order], shown)

    def parents(self) -> list[list[int]]:
        """Return the required parents of each feature."""
        return [np.flatnonzero(row).tolist() for row in self.required]

    def with_most_parents(self, max_parents: int) -> EdgeRules:
        """Return rules for at most ``max_parents`` parents. A feature with so many required parents has no others."""
        is_full = (self.required.sum(axis=1) >= max_parents)[:, np.newaxis]
        return replace(self, allowed=np.where(is_full, self.required, self.allowed))

    def without_edges_of(self, mask: AnyArray) -> EdgeRules:
        """Return rules in which the features in ``mask`` (n_features,) have only required edges."""
        is_excluded = mask | mask[:, np.newaxis]
        return replace(self, allowed=np.where(is_excluded, self.required, self.allowed))

    def without_children_of(self, mask: AnyArray) -> EdgeRules:
        """Return rules in which only required edges start at the features in ``mask`` (n_features,)."""
        return replace(self, allowed=np.where(mask, self.required, self.allowed))

    def structure(self) -> Structure:
        """Return the structure of the required edges."""
        return Structure(padded_parents(self.parents()))

    def choices(self) -> AnyArray:
        """Return a mask (n_features, n_features + 1) that is True if feature i may have j as its only parent.

        The last column means no parent.
        """
        return np.column_stack([self.allowed, ~self.required.any(axis=1)])

    def permits_family(self, child: int, parents: Sequence[int]) -> bool:
        """Return whether all given parents are allowed for a feature, and include all required parents."""
        own = list(parents)
        return bool(self.allowed[child, own].all() and self.required[child].sum() == self.required[child, own].sum())

    def ordered(self, preferred: IntArray) -> IntArray:
        """Return an ordering in which required parents come before their children, and earlier tiers come first.

        Of the features that may come next, the first one in ``preferred`` (n_features,) is selected. If no ordering is
        compatible with both the tiers and the required edges of features without a tier, the required edges take
        precedence.
        """
        if not self.required.any() and (self.tier < 0).all():
            return preferred
        left, tier = preferred.tolist(), self.tier.tolist()
        n_waiting = self.required.sum(axis=1)  # number of required parents that have not come yet
        found: list[int] = []
        while left:
            first = min((tier[i] for i in left if tier[i] >= 0), default=-1)
            ready = [i for i in left if not n_waiting[i]]  # at least one, because required edges do not form a cycle
            best = next((i for i in ready if tier[i] in (-1, first)), ready[0])
            found.append(best)
            left.remove(best)
            n_waiting -= self.required[:, best]
        return np.array(found, dtype=np.intp)

    def check_ordering(self, ordering: IntArray) -> None:
        """Raise ValueError unless each required parent comes before its child in an ordering (n_features,)."""
        position = np.argsort(ordering)
        for child, parent in np.argwhere(self.required).tolist():
            if position[parent] > position[child]:
                raise ValueError(
                    f"the edge {self.shown[parent]} -> {self.shown[child]} is required, but {self.shown[child]} "
                    f"comes first in the ordering. Change the ordering, or remove the edge."
                )

    def permits(self, structure: Structure) -> bool:
        """Return whether a structure contains all required edges and only allowed edges."""
        return next(self._violations(structure), None) is None

    def check(self, structure: Structure, name: str) -> None:
        """Raise ValueError if a structure violates the knowledge. The message contains the parameter ``name``."""
        for child, parent in self._violations(structure):
            is_required = self.required[child, parent]
            found, rule = ("lacks", "requires") if is_required else ("contains", "does not allow")
            raise ValueError(
                f"{name} {found} the edge {self.shown[parent]} -> {self.shown[child]}, which the knowledge {rule}. "
                f"Pass a structure that was learned with the same knowledge, or leave {name} out."
            )

    def _violations(self, structure: Structure) -> Iterator[list[int]]:
        """Yield the child and the parent of each edge that violates the rules."""
        edges = np.zeros_like(self.allowed)
        child, column = np.nonzero(structure.parents >= 0)
        edges[child, structure.parents[child, column]] = True
        yield from np.argwhere((self.required & ~edges) | (edges & ~self.allowed)).tolist()


def read_rules(knowledge: Knowledge | None, data: Any, *, max_parents: int | None = None) -> EdgeRules | None:
    """Return the rules for the features of data or counts, or None without knowledge."""
    return None if knowledge is None else knowledge.rules(data.names, data.n_features, max_parents=max_parents)


def initial_structure(initial: Structure | None, rules: EdgeRules | None) -> Structure | None:
    """Validate the initial structure of a search. By default, return the required edges, or None without rules."""
    if rules is None:
        return initial
    if initial is None:
        return rules.structure()
    if initial.n_features == len(rules.tier):  # for another number of features, searches raise their own error
        rules.check(initial, "initial")
    return initial


class ColumnNumbers:
    """Indices of columns that users specify by name or position. ``shown`` contains their names in messages."""

    def __init__(self, names: Sequence[str] | None, n_features: int) -> None:
        self.shown = [str(i) for i in range(n_features)] if names is None else [repr(str(name)) for name in names]
        self._number = {} if names is None else {str(name): i for i, name in enumerate(names)}
        self._n_features = n_features

    def find(self, place: str, column: Any) -> int:
        """Return the index of a column. If it is unknown, raise ValueError with ``place``, such as "required[0]"."""
        if isinstance(column, (int, np.integer)) and not isinstance(column, bool):
            if not 0 <= column < self._n_features:
                raise ValueError(
                    f"{place} contains column {column}, but the data have {self._n_features} columns: positions are "
                    f"from 0 to {self._n_features - 1}."
                )
            return int(column)
        if not isinstance(column, str):
            raise ValueError(f"{place} must contain column names or positions, got {column!r}.")
        if not self._number:
            raise ValueError(
                f"{place} contains the name {column!r}, but the data have no column names. Pass a frame, or use "
                f"positions from 0 to {self._n_features - 1}."
            )
        if column not in self._number:
            import difflib

            near = difflib.get_close_matches(column, list(self._number), n=1)
            hint = (
                f"Did you mean {near[0]!r}?"
                if near
                else f"The columns are {', '.join(self.shown[:8])}"
                + (f" and {self._n_features - 8} more." if self._n_features > 8 else ".")
            )
            raise ValueError(f"{place} contains {column!r}, which is not a column of the data. {hint}")
        return self._number[column]


class _Edges(ColumnNumbers):
    """Indices of the columns in edges and tiers."""

    def edges(self, name: str, given: Sequence[Any]) -> Iterator[tuple[int, int]]:
        """Yield the indices of the parent and the child of each edge in a list."""
        for k, edge in enumerate(given):
            if not isinstance(edge, (tuple, list)) or len(edge) != 2:
                raise ValueError(f"{name}[{k}] must be a pair (parent, child) of columns, got {edge!r}.")
            parent, child = (self.find(f"{name}[{k}]", column) for column in edge)
            if parent == child:
                raise ValueError(
                    f"{name}[{k}] leads from {self.shown[child]} to itself. Pass two different columns as (parent, "
                    f"child)."
                )
            yield parent, child

    def tiers(self, given: Sequence[Any]) -> IntArray:
        """Return the index (n_features,) of the tier of each feature, or -1 for none."""
        found = np.full(self._n_features, -1, dtype=np.intp)
        for k, tier in enumerate(given):
            if not isinstance(tier, (tuple, list)):
                raise ValueError(f"tiers[{k}] must be a list of columns, got {tier!r}. Pass [{tier!r}] for one column.")
            for column in tier:
                i = self.find(f"tiers[{k}]", column)
                if found[i] >= 0:
                    raise ValueError(f"{self.shown[i]} is in tiers[{found[i]}] and in tiers[{k}]. Remove one of them.")
                found[i] = k
        return found


def _ancestors(required: AnyArray, shown: Sequence[str]) -> AnyArray:
    """Return a mask [feature, ancestor] of the ancestors of each feature along required edges."""
    import graphlib

    sorter = graphlib.TopologicalSorter({i: np.flatnonzero(required[i]).tolist() for i in range(len(required))})
    try:
        order = list(sorter.static_order())
    except graphlib.CycleError as error:
        cycle = " -> ".join(shown[i] for i in error.args[1])
        raise ValueError(f"the required edges form the cycle {cycle}. Remove one of them.") from None
    found = required.copy()
    for i in order:
        for j in np.flatnonzero(required[i]).tolist():
            found[i] |= found[j]
    return found
