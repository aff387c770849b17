"""Monotone columns, along which the log odds of two classes rise or fall, with validation against the data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from tanlearn._typing import AnyArray, IntArray
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.structures.knowledge import ColumnNumbers, EdgeRules, Knowledge, read_rules

__all__ = [
    "has_directions",
    "numbers_of_ranked",
    "read_directions",
    "read_knowledge",
    "require_two_classes",
    "rules_without_children",
    "rules_without_edges",
]


def read_directions(increasing: Sequence[Any], decreasing: Sequence[Any], data: EncodedData) -> IntArray:
    """Return an array (n_features,) with 1 for increasing, -1 for decreasing, and 0 for all other features.

    Raises ``ValueError`` unless there are two classes, or if a column is unknown, is listed twice or has no order.
    """
    columns = ColumnNumbers(data.names, data.n_features)
    found = np.zeros(data.n_features, np.intp)
    for name, direction, given in (("increasing", 1, increasing), ("decreasing", -1, decreasing)):
        for k, column in enumerate(given):
            i = columns.find(f"{name}[{k}]", column)
            if found[i]:
                raise ValueError(f"{column!r} is listed twice in increasing and decreasing. List each column once.")
            found[i] = direction
            if data.is_ordered is None or not data.is_ordered[i]:
                raise ValueError(
                    f"{name}[{k}] is {data.label(i)}, which has no order, so log odds cannot be monotone. Pass "
                    f"numbers or ordered categories, or leave the column out. (Codes: "
                    f"EncodedData.from_codes(..., is_ordered=...).)"
                )
    if found.any():
        require_two_classes(data)
    return found


def has_directions(knowledge: Knowledge | None) -> bool:
    """Return whether knowledge contains monotone columns."""
    return knowledge is not None and bool(knowledge.increasing or knowledge.decreasing)


def read_knowledge(knowledge: Knowledge | None, data: EncodedData) -> IntArray:
    """Return the directions of the monotone columns in knowledge (see :func:`read_directions`)."""
    if knowledge is None:
        return np.zeros(data.n_features, np.intp)
    knowledge._validate_params()
    return read_directions(knowledge.increasing, knowledge.decreasing, data)


def require_two_classes(data: EncodedData) -> None:
    """Raise ValueError unless there are two classes."""
    if data.n_classes != 2:
        raise ValueError(
            f"monotone columns (increasing, decreasing) need exactly two classes, but the data have {data.n_classes}. "
            f"Merge classes, or fit one classifier for each class against the others."
        )


def rules_without_edges(rules: EdgeRules, is_monotone: AnyArray) -> EdgeRules:
    """Return rules that exclude all edges of monotone features (``is_monotone``, a mask of shape (n_features,)).

    Raises ``ValueError`` if such an edge is required.
    """
    _check_required(rules, is_monotone | is_monotone[:, np.newaxis], is_monotone, "edges")
    return rules.without_edges_of(is_monotone)


def rules_without_children(
    knowledge: Knowledge | None, data: EncodedData, is_monotone: AnyArray, *, max_parents: int | None = None
) -> EdgeRules | None:
    """Return rules in which monotone features (``is_monotone``, a mask of shape (n_features,)) have no children.

    None means no rules. Raises ``ValueError`` if an edge from a monotone feature is required.
    """
    if not is_monotone.any():
        return read_rules(knowledge, data, max_parents=max_parents)
    edges = Knowledge() if knowledge is None else clone(knowledge).set_params(increasing=(), decreasing=())
    rules = edges.rules(data.names, data.n_features, max_parents=max_parents)
    _check_required(rules, np.broadcast_to(is_monotone, rules.required.shape), is_monotone, "children")
    return rules.without_children_of(is_monotone)


def _check_required(rules: EdgeRules, is_excluded: AnyArray, is_monotone: AnyArray, what: str) -> None:
    """Raise ValueError if an excluded edge [child, parent] is required. ``what`` names the excluded edges."""
    for child, parent in np.argwhere(rules.required & is_excluded).tolist():
        monotone = rules.shown[child if what == "edges" and is_monotone[child] else parent]
        raise ValueError(
            f"the edge {rules.shown[parent]} -> {rules.shown[child]} is required, but {monotone} is in increasing "
            f"or decreasing, and such columns have no {what}. Remove the edge, or remove {monotone} from increasing "
            f"and decreasing."
        )


def numbers_of_ranked(data: EncodedData) -> IntArray:
    """Return the number of values (n_features,) of each feature without the category for missing values.

    The category for missing values is the last value, but has no position in the order.
    """
    has_missing: AnyArray | bool = False if data.has_missing_category is None else data.has_missing_category
    ranked: IntArray = data.n_states - np.asarray(has_missing, np.intp)
    return ranked
