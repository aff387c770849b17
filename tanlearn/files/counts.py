"""Storage of counts in files.

A file of counts is an archive, as described in :mod:`tanlearn.files.models`, with the format ``"tanlearn counts file"``
and version 1. Its object ``counts file`` has the keys ``classes``, ``feature_names`` and ``encoder``, as in model
files, ``kind``, and ``counts``, an object whose keys depend on the kind. Counts are int64, or float64 if weights were
not integers. If categories and cut points were declared, there is a key ``declared``, an object whose
``counts_rows_once`` is true if no row had a weight. Counts with noise for privacy have a key ``noise``, here and in
model files: a list of objects with ``mechanism``, ``standard_deviation``, ``epsilon`` and ``delta``.

- ``CountState``, of :class:`~tanlearn.PairCounts`: ``cells``, the counts of the classes, then the counts of each
  feature, indexed [value][class]; ``pairs``, the counts of the features (1, 0), (2, 0), (2, 1), (3, 0) and so on,
  indexed [value of the first][value of the second][class].
- ``FamilyCounts``: ``structure``, and ``cells`` in the order of the CPTs of a model.
- ``ForestCounts``: ``forest``, a dict as in the model file of a forest; ``class_counts``; ``n_cells``, the number of
  counts in each network; and the concatenated ``keys`` and ``counts`` of all networks. A key is (context * largest
  number of values of a feature in the network + value) * number of classes + class. The keys of a network are in
  ascending order.
"""

from __future__ import annotations

from typing import Any

from tanlearn._typing import IntArray
from tanlearn.counts.added_noise import read_noise, stored_noise
from tanlearn.counts.counts_base import Counts
from tanlearn.files.archive import ExplainedError
from tanlearn.files.values import Reader, Writer

__all__ = ["describe_counts", "restore_counts"]


def describe_counts(writer: Writer, counts: Counts, owner: str) -> dict[str, Any]:
    """Return ``kind``, ``counts`` and, if present, ``noise`` for a file. Messages refer to the counts as ``owner``."""
    if counts.kind is None:
        raise TypeError(
            f"a file can contain {', '.join(kind.__name__ for kind in _kinds().values())}, but not "
            f"{type(counts).__name__}. Save the model that was fitted to these counts instead."
        )
    return {
        "kind": counts.kind,
        "counts": {name: writer.encode(value, owner, name) for name, value in counts.state().items()},
        **({"noise": stored_noise(counts.noise)} if counts.noise else {}),
    }


def restore_counts(
    reader: Reader, kind: Any, state: Any, n_states: IntArray, n_classes: int, noise: Any = None
) -> Counts:
    """Return the counts in a description, or raise ValueError if it is invalid. Shapes: ``n_states``: (n_features,)."""
    if type(state) is not dict:
        raise ValueError("counts must be an object.")
    known = _kinds()
    if type(kind) is not str or kind not in known:
        raise ExplainedError(
            f"it contains counts of kind {kind!r}, which this version does not support. Upgrade tanlearn."
        )
    found = known[kind].from_state({name: reader.decode(value) for name, value in state.items()}, n_states, n_classes)
    found.noise = () if noise is None else read_noise(noise)
    return found


def _kinds() -> dict[str, type[Counts]]:
    """Return the classes of counts that a file can contain, as a dictionary from their names in files."""
    return {kind.kind: kind for kind in Counts.__subclasses__() if kind.kind is not None}
