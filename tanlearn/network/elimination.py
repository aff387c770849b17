"""Missing features of any structure summed out exactly, the gradient of that, and completions: probable, and drawn."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tanlearn._threads import in_blocks, in_threads
from tanlearn._typing import Codes, FloatArray, IntArray, missing_code
from tanlearn.kernels import completions
from tanlearn.kernels import elimination as kernels
from tanlearn.network.structures import Structure
from tanlearn.network.tables import TableLayout

__all__ = ["Eliminator"]

#: Numbers that a sample's factors may take, 64 MB a thread.
_CAPACITY = 2**22
#: Features that a factor may have; with two values each they would be 2**22 numbers.
_MAX_WIDTH = 22
#: Samples a thread takes at a time.
_BLOCK = 128
#: Parts that gradients are added up in, fewer if they are large.
_PARTS = 8


class Eliminator:
    """Sums missing features out of the tables of a structure.

    Parameters
    ----------
    structure : Structure
        A network; with one augmenting parent a feature missing ones cost O(n_states^2), with more as much as the
        elimination takes.
    layout : TableLayout
        Its tables.
    is_normalized : bool, default=True
        Whether every distribution sums to one; then missing features without observed ones below are left out.

    Attributes
    ----------
    capacity : int
        Numbers that the factors of a sample may take, one more than they need if they fit.

    Raises
    ------
    ValueError
        If the structure has a cycle.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData, MaximumLikelihood, Structure
    >>> from tanlearn.network.elimination import Eliminator
    >>> data = EncodedData.from_codes([[0, 0], [1, 1], [1, 0]], [0, 1, 1])
    >>> tables = MaximumLikelihood(alpha=0).fit(Structure([-1, 0]), data, np.random.default_rng(0))
    >>> eliminator = Eliminator(Structure([-1, 0]), tables.layout)
    >>> codes = np.array([[255], [1]], dtype=np.uint8)  # the first feature is missing
    >>> np.exp(eliminator.log_joint(codes, np.array([0]), tables.cells)).round(3).tolist()
    [[0.0, 0.333]]
    """

    def __init__(self, structure: Structure, layout: TableLayout, *, is_normalized: bool = True) -> None:
        if not structure.is_acyclic:
            raise ValueError(
                "values are missing, and cannot be summed out of a structure with a cycle, which is a scorer and no "
                "network. Impute them, or use a structure that is a tree."
            )
        self._layout = layout
        self._is_normalized = is_normalized
        order, self._max_width, self.capacity = _plan(structure, layout)
        self._reserve = _reserve(structure, layout)
        self._network = kernels.Network(
            parents=structure.parents,
            n_states=layout.n_states,
            offset=layout.offset,
            order=order,
            rank=np.argsort(order),
            downward=structure.order,
            belief=np.append(0, np.cumsum(layout.n_states)) * layout.n_classes,
        )

    def log_joint(
        self,
        codes: Codes,
        samples: IntArray,
        cells: FloatArray,
        *,
        is_exact: bool = True,
        n_jobs: int | None = None,
    ) -> FloatArray:
        """Return the log joint of some samples.

        Parameters
        ----------
        codes : ndarray of shape (n_features, n_all)
            Feature-major codes.
        samples : ndarray of shape (n_samples,)
            Which of them.
        cells : ndarray of shape (n_cells,)
            Log-probabilities of the layout.
        is_exact : bool, default=True
            False takes a missing feature apart whose factors would be too large together: in each of them it is a
            feature of its own, all of whose values are as probable. What comes out is no log joint any more. (Of a
            k-tree on letter with half of the values lost and 150,000 numbers, one row in 29 is taken apart, and 35.4 in
            place of 35.1 % of all rows are wrong.)
        n_jobs : int, optional
            Threads, as in joblib. The result does not depend on it.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)

        Raises
        ------
        ValueError
            If ``is_exact``, and the factors of a sample would be too large.
        """
        scores = np.empty((len(samples), self._layout.n_classes))
        tables, reserve = (cells, self._network, self._is_normalized), 0 if is_exact else self._reserve

        def score(first: int, last: int) -> None:
            self._run(kernels.eliminate, codes, samples[first:last], tables, reserve, scores[first:last])

        in_blocks(score, len(samples), _BLOCK, n_jobs)
        return scores

    def is_cheap(self, codes: Codes, samples: IntArray, most: int) -> bool:
        """Tell whether there is room for all of some samples, and no more than so much to do.

        Parameters
        ----------
        codes, samples : as for :meth:`log_joint`
        most : int
            Microseconds of log joint and gradient on one core of 2024, roughly: one for every value that eliminated
            features take together with those that they are tied to, more with many classes; and one for 16 features of
            a sample.

        Returns
        -------
        bool
        """
        n_classes, missing = self._layout.n_classes, missing_code(codes.dtype)
        how = n_classes, self._is_normalized, missing, self._max_width, self.capacity
        left = most
        for first in range(0, len(samples), _BLOCK):
            block = samples[first : first + _BLOCK]
            n_values = np.empty(len(block), np.int64)
            if kernels.count_values(codes, block, self._network, *how, n_values) < len(block):
                return False
            left -= int((n_values * (20 + n_classes) // 20 + codes.shape[0] // 16).sum())
            if left < 0:
                return False
        return True

    def log_joint_adjoint(
        self,
        codes: Codes,
        samples: IntArray,
        cells: FloatArray,
        d_scores: FloatArray,
        *,
        n_jobs: int | None = None,
    ) -> FloatArray:
        """Return the gradient for the cells, given that for the log joint.

        Parameters
        ----------
        codes, samples, cells : as for :meth:`log_joint`
        d_scores : ndarray of shape (n_samples, n_classes)
            Gradient for :meth:`log_joint`. With the weight of the row for its class and 0 elsewhere, the result are
            expected counts.
        n_jobs : as for :meth:`log_joint`

        Returns
        -------
        ndarray of shape (n_cells,)
            Without what normalised tables of features with nothing observed below would add, the same to all
            distributions in proportion to themselves.

        Raises
        ------
        ValueError
            If the factors of a sample would be too large.
        """
        # The same parts for any number of threads: sums of other parts would differ by rounding.
        n_parts = min(_PARTS, len(samples) // _BLOCK + 1, max(1, 4 * _CAPACITY // self._layout.n_cells))
        parts = np.array_split(np.arange(len(samples)), n_parts)
        d_cells = np.zeros((len(parts), self._layout.n_cells))
        tables = cells, self._network, self._is_normalized

        def add(part: int) -> None:
            rows = parts[part]
            self._run(kernels.eliminate_adjoint, codes, samples[rows], tables, d_scores[rows], d_cells[part])

        in_threads(add, range(len(parts)), n_jobs)
        return d_cells.sum(axis=0)

    def complete(
        self, codes: Codes, samples: IntArray, cells: FloatArray, y: IntArray, *, n_jobs: int | None = None
    ) -> Codes:
        """Return codes in which some samples are filled in with their most probable values, all of a sample together.

        Parameters
        ----------
        codes, samples, cells : as for :meth:`log_joint`
        y : ndarray of shape (n_all,), intp
            Classes; a -1 is replaced by the class that is most probable together with the completion.
        n_jobs : as for :meth:`log_joint`

        Returns
        -------
        ndarray of shape (n_features, n_all)
            A copy.

        Raises
        ------
        ValueError
            If the factors of a sample would be too large.
        """
        completed = codes.copy()

        def fill(first: int, last: int) -> None:
            self._run(completions.most_probable, codes, samples[first:last], (cells, self._network), y, completed)

        in_blocks(fill, len(samples), _BLOCK, n_jobs)
        return completed

    def sample(self, codes: Codes, samples: IntArray, cells: FloatArray, rng: np.random.Generator) -> Codes:
        """Draw what some samples miss from its posterior, once for every class.

        Parameters
        ----------
        codes, samples, cells : as for :meth:`log_joint`
        rng : numpy.random.Generator
            Where randomness comes from; the classes share it.

        Returns
        -------
        ndarray of shape (n_features, n_samples, n_classes)
            Complete codes.

        Raises
        ------
        ValueError
            If the factors of a sample would be too large.
        """
        drawn = np.empty((codes.shape[0], len(samples), self._layout.n_classes), codes.dtype)
        uniform = rng.random((len(samples), codes.shape[0]))
        self._run(completions.sample_completions, codes, samples, (cells, self._network), uniform, drawn)
        return drawn

    def _run(
        self, kernel: Callable[..., int], codes: Codes, samples: IntArray, tables: tuple[Any, ...], *rest: Any
    ) -> None:
        """Run a kernel; raise if a sample was too large for it."""
        missing = missing_code(codes.dtype)
        n_done = kernel(codes, samples, *tables, missing, self._max_width, self.capacity, *rest)
        if n_done < len(samples):
            row = int(samples[n_done])
            n_missing = int((codes[:, row] == missing).sum())
            if n_missing == len(codes):  # as in score_samples of tables that are not normalised
                raise ValueError(
                    f"all {n_missing} features have to be summed out, because a row misses them all, or because the "
                    f"scores are not normalised and a probability of rows is asked for. They depend on each other "
                    f"through two parents or more, so that this would take more than {_CAPACITY:,} numbers. Rank rows "
                    f"by predict_joint_log_proba instead, or learn a structure with one augmenting parent."
                )
            raise ValueError(
                f"row {row} misses {n_missing} features that depend on each other through two parents or more, so that "
                f"doing without them would take more than {_CAPACITY:,} numbers. Impute some of them, or learn a "
                f"structure with one augmenting parent."
            )


def _reserve(structure: Structure, layout: TableLayout) -> int:
    """Return the numbers that all tables leave of which a feature is summed out, at most; at least 1."""
    states, total = layout.n_states.tolist(), 1
    for i, row in enumerate(structure.parents.tolist()):
        family = [states[j] for j in (i, *row) if j >= 0]
        total += math.prod(family) // min(family) * layout.n_classes
    return total


def _plan(structure: Structure, layout: TableLayout) -> tuple[IntArray, int, int]:
    """Return an order of elimination, and what it takes at most: features of a factor, and numbers for all of them."""
    n_states, n_classes = layout.n_states, layout.n_classes
    if not (structure.parents[:, 1] >= 0).any():  # a leaf leaves a factor of its parent alone
        return np.ascontiguousarray(structure.order[::-1]), 2, int(n_states.max()) * n_classes
    neighbours: list[set[int]] = [set() for _ in range(structure.n_features)]
    for i, row in enumerate(structure.parents.tolist()):
        family = {i, *(j for j in row if j >= 0)}
        for j in family:
            neighbours[j] |= family - {j}
    # The feature that leaves the smallest factor goes first; in a chain or tree of cliques that adds no neighbours.
    # (Integers of Python: products of many numbers of states do not overflow, and are the same on every CPU.)
    states = n_states.tolist()
    cost = {i: math.prod(states[j] for j in near) for i, near in enumerate(neighbours)}
    order, width, size = [], 1 + structure.parents.shape[1], max(states)
    while cost:
        v = min(cost, key=cost.__getitem__)
        size += cost.pop(v)
        order.append(v)
        width = max(width, 1 + len(neighbours[v]))
        for j in neighbours[v]:
            neighbours[j] |= neighbours[v] - {j}
            neighbours[j].discard(v)
            cost[j] = math.prod(states[k] for k in neighbours[j])
    return np.array(order), min(width, _MAX_WIDTH), int(min(size * n_classes, _CAPACITY)) + 1
