"""Conversion of a forest to arrays, and validation of loaded arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tanlearn._typing import AnyArray, IntArray, codes_dtype
from tanlearn.counts.context_tries import as_index
from tanlearn.encoding.stored_values import check_array, fields
from tanlearn.forest.context_tables import IMPLIED, ContextTables
from tanlearn.forest.forest_network import Discretization, ForestNetwork
from tanlearn.kernels.context_trie import ContextTrie

__all__ = ["read_state", "to_state"]

#: Arrays of the tries, concatenated over networks, with their data types.
_LISTS = {
    "root": np.intp,
    "children": np.intp,
    "branch": np.uint16,
    "class_start": np.intp,
    "classes": np.uint16,
    "value_start": np.intp,
    "values": np.uint16,
    "cell_start": np.intp,
    "gain": np.float32,
    "unseen": np.float32,
}


def to_state(forest: Any) -> dict[str, Any]:
    """Convert a forest to a dictionary of arrays. Arrays of networks are concatenated, and their sizes are stored."""
    lists = [_lists(member.tables) for member in forest.members]
    n_levels = forest.weights.shape[2]
    tables = [member.tables.parents for member in forest.members]
    parents = [np.pad(own, ((0, 0), (0, n_levels - 1 - own.shape[1])), constant_values=-1) for own in tables]
    return {
        "log_prior": forest.log_prior,
        "log_frequency": forest.log_frequency,
        "shift": forest.shift,
        "weights": forest.weights,
        "doubt": float(forest.label_noise),
        "is_average": bool(forest.is_average),
        "importances": forest.importances,
        "merged": np.array([member.cuts.merged for member in forest.members], np.uint16),
        "n_states": np.array([member.cuts.n_states for member in forest.members]),
        "parents": np.array(parents),
        "sizes": np.array([[len(own[name]) for name in _LISTS] for own in lists]),
        **{name: np.concatenate([own[name] for own in lists]) for name in _LISTS},
    }


def read_state(state: dict[str, Any], n_states: IntArray, n_classes: int) -> dict[str, Any]:
    """Convert the dictionary of :func:`to_state` back to the fields of a forest.

    ``n_states`` (n_features,) contains the numbers of values of the encoder. Missing fields and invalid indices raise
    ValueError.
    """
    names = (
        "log_prior",
        "log_frequency",
        "shift",
        "weights",
        "doubt",
        "is_average",
        "importances",
        "merged",
        "n_states",
        "parents",
        "sizes",
    )
    found = fields(state, *names, *_LISTS)
    log_prior, log_frequency, shift, weights, doubt, is_average, importances = found[:7]
    merged, own_states, parents, sizes, *lists = found[7:]
    d = len(n_states)
    n_members, n_levels = (weights.shape[0], weights.shape[2]) if np.ndim(weights) == 3 else (0, 0)
    if n_members < 1 or n_levels < 1:
        raise ValueError("weights must have at least one network and one level.")
    for name, array in (("log_prior", log_prior), ("log_frequency", log_frequency)):
        _check_finite(check_array(name, array, np.float64, (n_classes,)), name)
    if not (check_array("shift", shift, np.float64, (n_classes,)) > -np.inf).any():  # -inf for a prior of 0
        raise ValueError("shift must leave at least one possible class.")
    _check_finite(check_array("weights", weights, np.float64, (n_members, d, n_levels)), "weights")
    if importances is not None:
        _check_finite(check_array("importances", importances, np.float64, (d,)), "importances")
    check_array("merged", merged, np.uint16, (n_members, int((n_states + 1).sum())))
    check_array("n_states", own_states, np.intp, (n_members, d))
    check_array("parents", parents, np.intp, (n_members, d, n_levels - 1))
    if ((parents < -1) | (parents >= d)).any():
        raise ValueError("parents must be feature indices, or -1.")
    check_array("sizes", sizes, np.intp, (n_members, len(_LISTS)))
    if (sizes < 0).any() or type(is_average) is not bool or type(doubt) is not float or not 0 <= doubt < 1:
        raise ValueError("sizes must be nonnegative, doubt in [0, 1), and is_average a boolean.")
    pieces = []
    for (name, dtype), array, own in zip(_LISTS.items(), lists, sizes.T, strict=True):
        check_array(name, array, dtype, (int(own.sum()),))
        pieces.append(np.split(array, np.cumsum(own)[:-1]))
    members = []
    for e in range(n_members):
        own = dict(zip(_LISTS, [piece[e] for piece in pieces], strict=True))
        _check_lists(own, own_states[e], n_classes)
        tables = _tables(own_states[e], parents[e], own)
        members.append(ForestNetwork(_cuts(merged[e], n_states, own_states[e]), tables))
    return {
        "members": members,
        "log_prior": log_prior,
        "log_frequency": log_frequency,
        "shift": shift,
        "weights": weights,
        "label_noise": doubt,
        "is_average": is_average,
        "importances": importances,
    }


def _lists(tables: ContextTables) -> dict[str, AnyArray]:
    """Return the arrays of all contexts by name. The gains of context g begin at ``cell_start[g]``."""
    trie = tables.trie
    cell_start = trie.entry_start[trie.value_start]
    lists = {**trie._asdict(), "root": tables.root, "cell_start": cell_start, "gain": tables.gain}
    return {name: lists.get(name, tables.unseen).astype(dtype) for name, dtype in _LISTS.items()}


def _tables(n_states: IntArray, parents: IntArray, lists: dict[str, AnyArray]) -> ContextTables:
    """Create tries from arrays."""
    n_classes, n_values = np.diff(lists["class_start"]), np.diff(lists["value_start"])
    entry_start = np.append(0, np.cumsum(np.repeat(n_classes, n_values)))
    starts = {name: as_index(lists[name]) for name in ("children", "class_start", "value_start")}
    own = {name: lists[name] for name in ("branch", "classes", "values")}
    trie = ContextTrie(**starts, **own, entry_start=as_index(entry_start), entry_class=IMPLIED)
    most = int((parents >= 0).sum(axis=1).max(initial=0))
    parents = np.ascontiguousarray(parents[:, :most])
    return ContextTables(n_states, parents, lists["root"], trie, lists["gain"], lists["unseen"])


def _cuts(merged: AnyArray, n_states: IntArray, own_states: IntArray) -> Discretization:
    """Create a discretization, with the smallest data type for its codes."""
    dtype = codes_dtype(int(own_states.max()))
    return Discretization(merged.astype(dtype), np.append(0, np.cumsum(n_states + 1)), own_states)


def _check_finite(array: AnyArray, name: str) -> None:
    """Raise ValueError if a number is not finite."""
    if not np.isfinite(array).all():
        raise ValueError(f"{name} must be finite.")


def _check_lists(lists: dict[str, AnyArray], n_states: IntArray, n_classes: int) -> None:
    """Raise ValueError if the arrays of all contexts are inconsistent or an index is out of range."""
    n_contexts, root = len(lists["branch"]), lists["root"]
    ends = {
        "children": n_contexts,
        "class_start": len(lists["classes"]),
        "value_start": len(lists["values"]),
        "cell_start": len(lists["gain"]),
    }
    for name, end in ends.items():
        start = lists[name]
        is_whole = len(start) == n_contexts + 1 and start[-1] == end and (start[1:] >= start[:-1]).all()
        if not is_whole or (start[0] != 0 and name != "children") or start[0] < 0:
            first = "" if name == "children" else " and start with 0"
            raise ValueError(
                f"{name} must contain {n_contexts + 1} non-negative numbers that never decrease "
                f"and end with {end}{first}."
            )
    if (lists["children"][:-1] <= np.arange(n_contexts)).any():
        raise ValueError("the children of a context must come after it.")
    n_own_classes, n_own_values = np.diff(lists["class_start"]), np.diff(lists["value_start"])
    if (np.diff(lists["cell_start"]) != n_own_classes * n_own_values).any() or len(lists["unseen"]) != len(
        lists["classes"]
    ):
        raise ValueError("each context must have a gain for each of its classes and values.")
    if (lists["classes"] >= n_classes).any() or (n_states < 1).any():
        raise ValueError("class codes must be below the number of classes, and features must have values.")
    if len(root) != len(n_states) or root[0] != 0 or (np.diff(root) <= 0).any() or root[-1] >= n_contexts:
        raise ValueError("each family must have a root among the contexts, in ascending order.")
    if (n_own_classes[root] != n_classes).any() or (n_own_values[root] != n_states).any():
        raise ValueError("each root must have all classes and all values.")
    for name in ("gain", "unseen"):
        _check_finite(lists[name], name)
