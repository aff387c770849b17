"""Margins of tables of few bits by branch and bound, after Tschiatschek, Paul and Pernkopf (ECML PKDD 2014).

Cells are whole numbers of steps. A node is a box of them; a relaxation says how good its points can be at best, and its
point, rounded and improved cell by cell, how good one is. A box that may hold a better one is cut in two at the cell
that is furthest from a whole number. The sub-normalisation of the paper is not asked for: a number that is added to all
cells of a table, or to those of a value in all classes, changes no margin, so that it would do no more than narrow the
range of the format.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval

from tanlearn._typing import FloatArray, IntArray
from tanlearn._warnings import warn
from tanlearn.data.encoded_data import EncodedData
from tanlearn.network.quantization import FixedPoint, IntegerTables
from tanlearn.network.structures import Structure
from tanlearn.network.tables import TableLayout, Tables
from tanlearn.parameters.integer_margin import SHARPNESS, Bound, IntegerMargin
from tanlearn.parameters.learner import ParameterLearner
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood

__all__ = ["IntegerBranchAndBound"]


class IntegerBranchAndBound(BaseEstimator):
    """Tables of few bits whose margins are the widest, or as wide as could be found, and how far from the widest.

    Minimises the mean hinge of the margins, ``max(0, margin - (s_y - max s_k))`` over classes k other than y with
    scores in steps, over all tables of the format. Small problems are solved; of large ones the best tables found are
    returned, with a bound.

    Parameters
    ----------
    bits : tuple of (int, int), default=(2, 0)
        Integer and fraction bits of a number, as of :class:`~tanlearn.FixedPoint`. The best tables depend on their sum
        only, for the split says how many nats a step is; ``start`` and probabilities depend on it.
    margin : int, default=4
        The wanted margin, in steps of the format, at least 1. Margins of such tables are whole numbers of steps, and
        the hinge of a fraction would be the mixture of those of its neighbours. Tune it: the more bits and features,
        the more is right.
    max_nodes : int, optional, default=100
        Boxes to look at, at least 1. With these, and no ``time_limit``, the outcome is the same whenever it is run.
    time_limit : float, optional
        Seconds after which the search ends, above 0: with it the outcome depends on the machine. What has begun
        is finished first.
    start : ParameterLearner, optional
        What learns the tables that the search starts from, such as ``StochasticGradient(bits=(2, 0))``; rounded to the
        format, if they are not. ``MaximumLikelihood()`` by default. Cells that no row uses keep its numbers.
    verbose : int, default=0
        1 prints every better table that is found, and the end; 2 every node.

    Attributes
    ----------
    objective_ : float
        Mean hinge of a row in steps, weighted as the rows are.
    bound_ : float
        No table of this format has a lower one.
    gap_ : float
        ``(objective_ - bound_) / objective_``, from 0, where the tables are optimal, to 1.
    n_nodes_ : int
        Boxes that were looked at, by HiGHS too.
    n_iter_ : int
        The same.
    converged_ : bool
        Whether the tables are known to be optimal.
    history_ : list of float
        The objective of the best tables after 0, 1, ... nodes; HiGHS's search is one entry.

    Warns
    -----
    UserWarning
        If the search is interrupted (Ctrl-C); the best tables so far are returned.

    Notes
    -----
    A box is relaxed by L-BFGS-B on a smoothed hinge. That gives multipliers of the rows' margins, and these a bound
    that is valid however near the optimum they are (:mod:`tanlearn.parameters.integer_margin` has the proof). Where a
    cell's change must cost more than the gap, its range is cut (reduced costs).

    The objective is a linear programme of whole numbers, too. Up to 20,000 non-zero numbers, ``2 (n_features + 1)
    (n_classes - 1)`` a distinct row, as of 160 rows of 8 features and 3 classes, SciPy's HiGHS solves it after the
    first box, mostly in less than a second. What is larger is rarely proven: benchmarks/paper/resource_efficient has
    errors and gaps of naive Bayes and trees of letter, usps and satimage after some seconds, beside training for few
    bits; the paper says of its own such search that its time did not allow for tuning.

    References
    ----------
    Tschiatschek, Paul, Pernkopf: Integer Bayesian network classifiers. ECML PKDD 2014.

    Roth, Schindler, Froening, Pernkopf: On resource-efficient Bayesian network classifiers and deep neural networks.
    ICPR 2020 (where training for few bits by gradient does better than that search, section V-C).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import IntegerBranchAndBound, NaiveBayesClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NaiveBayesClassifier(parameters=IntegerBranchAndBound(bits=(2, 0), margin=2)).fit(X, y)
    >>> found = model.parameters_
    >>> round(found.objective_, 4), found.gap_, found.converged_
    (0.16, 0.0, True)
    >>> model.tables_
    IntegerTables(n_features=4, n_classes=3, bits=(2, 0), n_cells=39)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "bits": [tuple, list],
        "margin": [Interval(Integral, 1, None, closed="left")],
        "max_nodes": [None, Interval(Integral, 1, None, closed="left")],
        "time_limit": [None, Interval(Real, 0, None, closed="neither")],
        "start": "no_validation",  # type: ignore[dict-item]
        "verbose": [Interval(Integral, 0, None, closed="left")],
    }

    objective_: float
    bound_: float
    gap_: float
    n_nodes_: int
    n_iter_: int
    converged_: bool
    history_: list[float]

    def __init__(
        self,
        *,
        bits: tuple[int, int] = (2, 0),
        margin: int = 4,
        max_nodes: int | None = 100,
        time_limit: float | None = None,
        start: ParameterLearner | None = None,
        verbose: int = 0,
    ) -> None:
        self.bits = bits
        self.margin = margin
        self.max_nodes = max_nodes
        self.time_limit = time_limit
        self.start = start
        self.verbose = verbose

    def fit(self, structure: Structure, data: EncodedData, rng: np.random.Generator) -> Tables:
        """Return the tables of a structure.

        Parameters
        ----------
        structure : Structure
            The augmenting parents.
        data : EncodedData
            Complete rows of two classes or more.
        rng : numpy.random.Generator
            For ``start``; the search has nothing random.

        Returns
        -------
        IntegerTables

        Raises
        ------
        ValueError
            If ``bits`` are no two integers that add up to 1 to 16, a value is missing, or there is only one class.
        TableMemoryError
            If the tables would need more memory than they may take (8 GiB, or 2 where rows cannot fill them).
        """
        self._validate_params()
        if len(self.bits) != 2:
            raise ValueError(
                f"bits must be a tuple of integer and fraction bits, such as (2, 0), got {self.bits!r}. The "
                f"best tables depend on their sum only: choose a split, and tune margin."
            )
        fixed_point = FixedPoint(*self.bits)
        data.require_complete("Branch and bound")
        if data.n_classes < 2:
            raise ValueError(f"margins need at least 2 classes, the data have {data.n_classes}. Add rows of another.")
        start = MaximumLikelihood() if self.start is None else clone(self.start, safe=False)
        tables = start.fit(structure, data, rng)
        layout = TableLayout.of_parents(structure.parents, data.n_states, data.n_classes)
        problem = IntegerMargin(layout, data.in_whole_rows(), self.margin, 2**fixed_point.n_bits - 1)
        search = _Search(problem, fixed_point.encode(tables.cells).astype(np.int64))
        share = 1 / float(problem.weight.sum())
        deadline = np.inf if self.time_limit is None else time.monotonic() + self.time_limit
        self.history_ = [search.value * share]
        try:
            self._go_on(search, share, deadline)
        except KeyboardInterrupt:
            warn(
                f"branch and bound was interrupted in node {search.n_nodes + 1}: the best tables so far are returned.",
                UserWarning,
            )
        self.n_nodes_ = self.n_iter_ = search.n_nodes
        self.converged_ = search.is_over
        self.objective_, self.bound_, self.gap_ = search.state(share)
        if self.verbose:
            self._print("optimal" if self.converged_ else "ended by a limit")
        return IntegerTables(layout, search.best, fixed_point)

    def _go_on(self, search: _Search, share: float, deadline: float) -> None:
        """Look at boxes until none may hold better tables, or it is enough; HiGHS looks at those of small problems."""

        def is_late() -> bool:
            return time.monotonic() > deadline

        is_enough = False
        while not (is_enough or search.is_over or is_late()):
            before = search.value
            if search.is_small and search.n_nodes:
                search.solve(
                    None if self.max_nodes is None else self.max_nodes - 1, max(0.0, deadline - time.monotonic())
                )
                is_enough = True
            else:
                search.look(is_late)
            self.history_.append(search.value * share)
            self.n_nodes_, (self.objective_, self.bound_, self.gap_) = search.n_nodes, search.state(share)
            if self.verbose > (search.value == before):
                self._print("better" if search.value < before else "no better")
            is_enough |= self.max_nodes is not None and search.n_nodes >= self.max_nodes

    def _print(self, what: str) -> None:
        """Say how far the search is."""
        print(  # noqa: T201
            f"{what}: mean hinge {self.objective_:.6g} steps, bound {self.bound_:.6g}, gap {self.gap_:.2%}, "
            f"{self.n_nodes_} nodes"
        )


class _Search:
    """A search under way, between two boxes.

    Of boxes with the same bound, of which there are many since bounds are multiples of a unit, the last one is looked
    at first, so that the search also goes down to single points.
    """

    def __init__(self, problem: IntegerMargin, start: IntArray) -> None:
        self._problem = problem
        lower, upper = np.zeros_like(start), np.full_like(start, problem.largest)
        lower[~problem.is_used] = upper[~problem.is_used] = start[~problem.is_used]
        self._all = lower, upper
        self.best, self.value = start, problem.value(start)
        self._heap: list[tuple[float, int, IntArray, IntArray, FloatArray]] = [
            (0.0, 0, lower, upper, start.astype(np.float64))
        ]
        self._number, self.n_nodes = 0, 0

    @property
    def bound(self) -> float:
        """What no open box goes below."""
        return self._heap[0][0] if self._heap else self.value

    def state(self, share: float) -> tuple[float, float, float]:
        """Return the objective, its bound, and their gap, relative to the first, in means of a row."""
        bound = self.value if self.is_over else self.bound
        gap = 0.0 if bound == self.value else 1 - bound / self.value
        return self.value * share, bound * share, gap

    @property
    def is_over(self) -> bool:
        """Whether no box can hold anything better."""
        return not self._heap or self._is_closed(self._heap[0][0])

    def _is_closed(self, bound: float) -> bool:
        """Return whether a bound rules out whatever is better than the best so far."""
        # Better is by a unit, or by more than HiGHS's tolerance.
        least = 0.999999 * self._problem.unit or 1e-6 * self.value
        return bound > self.value - least or self.value == 0

    def look(self, is_late: Callable[[], bool]) -> None:
        """Look at the box with the lowest bound, and put what is left of it back."""
        bound, _, lower, upper, point = self._heap[0]
        sharpness = SHARPNESS[-1:] if self.n_nodes else SHARPNESS
        found = self._problem.relax(lower, upper, point, sharpness=sharpness, is_late=is_late)
        self._improve(found.magnitudes, is_late)
        bound = max(bound, self._problem.next_value(found.value))
        heapq.heappop(self._heap)  # not before: an interrupted search still has to account for it
        self.n_nodes += 1
        if self._is_closed(bound):
            return
        lower, upper = self._tighten(found, lower, upper)
        if (lower == upper).all():
            self._take(lower)
            return
        cell, last = _cut(found, lower, upper)
        low, high = upper.copy(), lower.copy()
        low[cell], high[cell] = last, last + 1
        for first, second in ((lower, low), (high, upper)):
            self._number -= 1
            heapq.heappush(self._heap, (bound, self._number, first, second, found.magnitudes))

    @property
    def is_small(self) -> bool:
        """Whether HiGHS can be told to search."""
        return self._problem.is_small

    def solve(self, max_nodes: int | None, seconds: float) -> None:
        """Have HiGHS search all the rest."""
        found, bound, n_nodes = self._problem.solve(max_nodes, seconds)
        lower, upper = self._all
        if found is not None:
            self._take(np.where(self._problem.is_used, found, lower))
        self.n_nodes += n_nodes
        self._heap = [(max(bound, self.bound), 0, lower, upper, self.best.astype(np.float64))]

    def _improve(self, point: FloatArray, is_late: Callable[[], bool]) -> None:
        """Round a point and improve it cell by cell; before the first node the start, too."""
        for magnitudes in [np.rint(point).astype(np.int64), *([] if self.n_nodes else [self.best])]:
            self._take(self._problem.descend(magnitudes, *self._all, is_late=is_late))

    def _take(self, magnitudes: IntArray) -> None:
        """Keep magnitudes if they are better than the best so far."""
        value = self._problem.value(magnitudes)
        if value < self.value:
            self.best, self.value = magnitudes, value

    def _tighten(self, found: Bound, lower: IntArray, upper: IntArray) -> tuple[IntArray, IntArray]:
        """Return the box without cells' values that cannot be better than the best so far (reduced costs)."""
        room, slope = self.value - found.value, np.abs(found.gradient)
        with np.errstate(divide="ignore"):
            reach = np.floor(np.minimum(room / slope + 1e-6, upper - lower)).astype(np.int64)
        reach = np.maximum(reach, 0)
        rises = found.gradient > 0
        return np.where(rises, lower, np.maximum(lower, upper - reach)), np.where(rises, lower + reach, upper)


def _cut(found: Bound, lower: IntArray, upper: IntArray) -> tuple[int, int]:
    """Return a cell, and the largest magnitude that it has in the lower half of the box."""
    width = upper - lower
    distance = np.where(width > 0, np.abs(found.magnitudes - np.rint(found.magnitudes)), -1.0)
    if distance.max() < 1e-6:  # the point is whole, and the bound below it all the same: it was smoothed
        distance = np.abs(found.gradient) * width
    if distance.max() <= 0:
        distance = width.astype(np.float64)
    cell = int(distance.argmax())
    return cell, int(np.clip(np.floor(found.magnitudes[cell]), lower[cell], upper[cell] - 1))
