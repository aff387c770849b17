"""The structure of a Bayesian-network classifier: who is whose augmenting parent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tanlearn._typing import IntArray

if TYPE_CHECKING:
    import networkx

__all__ = ["Structure", "check_structure"]

#: Columns of ``parents`` that all structures have, filled or not: of those before any number was allowed.
_LEAST_WIDTH = 2


class Structure:
    """Every feature has the class as its parent, and any number of other features beside it.

    Naive Bayes has no augmenting parents; a tree-augmented naive Bayes (TAN) has at most one a feature, which
    together form a forest; a k-dependence network has at most k.

    Parameters
    ----------
    parent : array-like of shape (n_features,) or (n_features, k)
        Numbers of the augmenting parents, -1 for none. Their order is that of the axes of tables, and where tables back
        off to fewer parents, the last is left out first.
    allow_cycles : bool, default=False
        Accept parents that form a cycle. The result is a scorer (the pseudo-TAN of differentiable TAN, section
        4.5) and no Bayesian network: its scores are no log joint of anything.

    Attributes
    ----------
    parents : ndarray of shape (n_features, width)
        The augmenting parents, -1 for none, absent ones last. As wide as the feature with most parents needs, and 2 at
        least.

    Raises
    ------
    ValueError
        If a parent is out of range, is the feature itself or stands twice, or if the parents form a cycle.

    Examples
    --------
    >>> from tanlearn import Structure
    >>> chain = Structure([-1, 0, 1])
    >>> chain
    Structure(n_features=3, n_edges=2)
    >>> sorted(chain.to_networkx(["age", "income", "rent"]).edges)
    [('C', 'age'), ('C', 'income'), ('C', 'rent'), ('age', 'income'), ('income', 'rent')]
    """

    def __init__(self, parent: Any, *, allow_cycles: bool = False) -> None:
        parents = np.asarray(parent)
        if parents.ndim == 1:
            parents = parents[:, np.newaxis]
        if parents.ndim != 2 or 0 in parents.shape:
            raise ValueError(
                f"parent must have shape (n_features,) or (n_features, k), got {np.shape(parent)}. Give every feature "
                f"the number of its parent, or k of them, -1 for none."
            )
        if parents.dtype.kind not in "iu":
            raise ValueError(
                f"parent must hold feature numbers, got dtype {parents.dtype}. Number the features from 0, -1 is none."
            )
        n_features = parents.shape[0]
        width = max(_LEAST_WIDTH, int((parents != -1).sum(axis=1).max()))
        table = np.full((n_features, width), -1, dtype=np.intp)
        for i, row in enumerate(parents.tolist()):
            given = [j for j in row if j != -1]
            if any(not 0 <= j < n_features for j in given) or i in given or len(set(given)) < len(given):
                raise ValueError(
                    f"parent[{i}] must be different other features (0..{n_features - 1}), or -1 for none; got {given}."
                )
            table[i, : len(given)] = given
        self.parents: IntArray = table
        self._order = _topological_order(table)
        if self._order is None and not allow_cycles:
            raise ValueError(
                "parent forms a cycle, so this is no Bayesian network. Remove an edge of it, or pass "
                "allow_cycles=True if a mere scorer will do."
            )

    @classmethod
    def naive_bayes(cls, n_features: int) -> Structure:
        """Return the structure without any augmenting parent.

        Parameters
        ----------
        n_features : int
            Number of features, at least 1.

        Returns
        -------
        Structure
        """
        return cls(np.full(n_features, -1))

    @property
    def n_features(self) -> int:
        """Number of features."""
        return self.parents.shape[0]

    @property
    def n_edges(self) -> int:
        """Number of edges between features; those from the class are not counted."""
        return int((self.parents >= 0).sum())

    @property
    def parent(self) -> IntArray:
        """The one augmenting parent of every feature, -1 for none.

        Raises
        ------
        AttributeError
            If a feature has two or more; use ``parents`` then.
        """
        if (self.parents[:, 1] >= 0).any():
            raise AttributeError("this structure has features with two or more augmenting parents: use .parents")
        return np.ascontiguousarray(self.parents[:, 0])  # strided, kernels would compile once more

    @property
    def is_acyclic(self) -> bool:
        """Whether this is a Bayesian network; False only where ``allow_cycles`` was needed."""
        return self._order is not None

    @property
    def order(self) -> IntArray:
        """The features in an order in which parents come before their children.

        Raises
        ------
        ValueError
            If the structure has a cycle.
        """
        if self._order is None:
            raise ValueError("a structure with a cycle has no topological order; it is a scorer, not a network.")
        return self._order

    def to_networkx(self, feature_names: Sequence[Any] | None = None, *, class_name: Any = "C") -> networkx.DiGraph:
        """Return the network as a directed graph, the class included.

        Parameters
        ----------
        feature_names : sequence of length n_features, optional
            Names of the nodes; by default the numbers of the features.
        class_name : hashable, default="C"
            Name of the class.

        Returns
        -------
        networkx.DiGraph

        Raises
        ------
        ValueError
            If there are more or fewer names than features, or a name stands twice.
        """
        import networkx

        names = list(range(self.n_features)) if feature_names is None else list(feature_names)
        if len(names) != self.n_features:
            raise ValueError(f"feature_names must have {self.n_features} entries, got {len(names)}.")
        name, most = Counter([class_name, *names]).most_common(1)[0]
        if most > 1:
            raise ValueError(f"{name!r} names two nodes: rename a feature, or pass another class_name.")
        graph = networkx.DiGraph()
        graph.add_node(class_name)
        graph.add_nodes_from(names)
        graph.add_edges_from((class_name, name) for name in names)
        graph.add_edges_from((names[j], names[i]) for i, j in _edges(self.parents))
        return graph

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Structure) and np.array_equal(self.parents, other.parents)

    def __hash__(self) -> int:
        return hash(self.parents.tobytes())

    def _repr_html_(self) -> str:
        from tanlearn.network.drawings import structure_svg

        return f"<p>{self!r}</p>{structure_svg(self.parents, self._order)}"

    def __repr__(self) -> str:
        note = "" if self.is_acyclic else ", cyclic"
        return f"Structure(n_features={self.n_features}, n_edges={self.n_edges}{note})"


def _edges(parents: IntArray) -> list[tuple[int, int]]:
    """Return the pairs (child, parent)."""
    return [(i, j) for i, row in enumerate(parents.tolist()) for j in row if j >= 0]


def _topological_order(parents: IntArray) -> IntArray | None:
    """Return the features with parents before their children, or None if there is a cycle."""
    import graphlib

    sorter = graphlib.TopologicalSorter({i: row[row >= 0].tolist() for i, row in enumerate(parents)})
    try:
        return np.array(list(sorter.static_order()), dtype=np.intp)
    except graphlib.CycleError:
        return None


def check_structure(structure: Structure, n_features: int) -> None:
    """Refuse a structure of another table."""
    if structure.n_features != n_features:
        raise ValueError(
            f"the structure is of {structure.n_features} features, but X has {n_features} columns. Pass the "
            f"columns that it was made for, or learn one from this table, as with structure=ChowLiu()."
        )
