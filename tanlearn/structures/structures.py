"""Structure of a Bayesian-network classifier: the augmenting parents of each feature."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tanlearn._typing import IntArray

if TYPE_CHECKING:
    import networkx

__all__ = ["Structure", "check_structure", "padded_parents", "read_structure"]

#: Smallest width of ``parents``, because many kernels read two columns.
_LEAST_WIDTH = 2


class Structure:
    """Structure of a Bayesian-network classifier: each feature has the class and possibly other features as parents.

    These other features are called augmenting parents. Naive Bayes has no augmenting parents. In a tree-augmented naive
    Bayes (TAN), each feature has at most one augmenting parent, so that the edges form a forest. In a k-dependence
    network, each feature has at most k augmenting parents.

    Parameters
    ----------
    parent : array-like of shape (n_features,) or (n_features, k)
        Augmenting parents of each feature, -1 for none, in the order of the axes of the CPT. If a CPT backs off to
        fewer parents, the last parent is left out first.
    allow_cycles : bool, default=False
        Whether to accept parents that form a cycle (the pseudo-TAN of differentiable TAN, section 4.5). A structure
        with a cycle is not a Bayesian network. Its scores rank classes, but are not log joint probabilities.

    Attributes
    ----------
    parents : ndarray of shape (n_features, width)
        Augmenting parents of each feature, followed by -1. The width is the largest number of parents, but at least 2.

    Raises
    ------
    ValueError
        If a parent is out of range, repeated, or the feature itself, or if the parents form a cycle.

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
                f"parent must have shape (n_features,) or (n_features, k), got {np.shape(parent)}. Pass the indices "
                f"of the parents of each feature, and -1 for no parent."
            )
        if parents.dtype.kind not in "iu":
            raise ValueError(
                f"parent must contain feature indices from 0, or -1 for no parent, got dtype {parents.dtype}. "
                f"Convert it to int."
            )
        n_features = parents.shape[0]
        width = max(_LEAST_WIDTH, int((parents != -1).sum(axis=1).max()))
        table = np.full((n_features, width), -1, dtype=np.intp)
        for i, row in enumerate(parents.tolist()):
            given = [j for j in row if j != -1]
            if any(not 0 <= j < n_features for j in given) or i in given or len(set(given)) < len(given):
                raise ValueError(
                    f"parent[{i}] must contain distinct features from 0 to {n_features - 1} other than {i}, or -1 "
                    f"for none, got {given}."
                )
            table[i, : len(given)] = given
        self.parents: IntArray = table
        self._order = _topological_order(table)
        if self._order is None and not allow_cycles:
            raise ValueError(
                "the parents form a cycle, so this is not a Bayesian network. Remove an edge of the cycle, or pass "
                "allow_cycles=True if you only need to rank classes."
            )

    @classmethod
    def naive_bayes(cls, n_features: int) -> Structure:
        """Create the structure without augmenting parents.

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
        """Number of edges between features, without edges from the class."""
        return int((self.parents >= 0).sum())

    @property
    def parent(self) -> IntArray:
        """Augmenting parent of each feature (-1 for none), if no feature has more than one.

        Raises
        ------
        AttributeError
            If a feature has two or more augmenting parents. Use ``parents`` instead.
        """
        if (self.parents[:, 1] >= 0).any():
            raise AttributeError(
                "parent requires at most one augmenting parent per feature, but a feature of this "
                "structure has two or more. Use parents."
            )
        return np.ascontiguousarray(self.parents[:, 0])  # for strided arrays, kernels would be compiled again

    @property
    def is_acyclic(self) -> bool:
        """True for a Bayesian network, and False for a structure with a cycle (``allow_cycles=True``)."""
        return self._order is not None

    @property
    def order(self) -> IntArray:
        """Features in topological order, with parents before their children.

        Raises
        ------
        ValueError
            If the structure has a cycle.
        """
        if self._order is None:
            raise ValueError("a structure with a cycle has no topological order, because it is not a Bayesian network.")
        return self._order

    def to_networkx(self, feature_names: Sequence[Any] | None = None, *, class_name: Any = "C") -> networkx.DiGraph:
        """Return the network as a directed graph that includes the class.

        Parameters
        ----------
        feature_names : sequence of length n_features, optional
            Names of the nodes. By default, they are the indices of the features.
        class_name : hashable, default="C"
            Name of the class.

        Returns
        -------
        networkx.DiGraph

        Raises
        ------
        ValueError
            If the number of names is not n_features, or a name is repeated.
        """
        import networkx

        names = list(range(self.n_features)) if feature_names is None else list(feature_names)
        if len(names) != self.n_features:
            raise ValueError(f"feature_names must have {self.n_features} entries, got {len(names)}.")
        name, most = Counter([class_name, *names]).most_common(1)[0]
        if most > 1:
            raise ValueError(f"{name!r} is the name of two nodes: rename a feature, or pass another class_name.")
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
        from tanlearn.structures.drawings import structure_svg

        return f"<p>{self!r}</p>{structure_svg(self.parents, self._order)}"

    def __repr__(self) -> str:
        note = "" if self.is_acyclic else ", cyclic"
        return f"Structure(n_features={self.n_features}, n_edges={self.n_edges}{note})"


def padded_parents(parents: Sequence[Sequence[int]]) -> IntArray:
    """Return lists of parents as an array (len(parents), width), in which each list is followed by -1."""
    table = np.full((len(parents), max([_LEAST_WIDTH, *map(len, parents)])), -1)
    for row, given in zip(table, parents, strict=True):
        row[: len(given)] = given
    return table


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


def read_structure(value: Any, n_features: int) -> Structure:
    """Validate a structure from a file, and return it. Raise ValueError for other values or numbers of features."""
    if not isinstance(value, Structure) or value.n_features != n_features:
        raise ValueError(f"the structure must have {n_features} features, got {value!r}.")
    return value


def check_structure(structure: Structure, n_features: int) -> None:
    """Raise ValueError if a structure that the user has passed has another number of features than the data."""
    if structure.n_features != n_features:
        raise ValueError(
            f"the structure has {structure.n_features} features, but X has {n_features} columns. Pass the columns "
            f"of the structure, or learn a structure from these data, for example with structure=ChowLiu()."
        )
