"""Branch and bound for maximum-margin CPTs with few bits, after Tschiatschek, Paul and Pernkopf (ECML PKDD 2014).

Parameters are integer numbers of steps. A node of the search is a box of parameter vectors. A relaxation yields a lower
bound for the objective in the box. If its solution is rounded and improved one parameter at a time, it yields a
feasible value. If a box may contain a better solution, it is split at the parameter that is furthest from an integer.

Unlike the paper, the search does not require sub-normalization. Margins do not change if a constant is added to all
entries of a CPT, or to the entries of one value in all classes, so sub-normalization would only narrow the range of the
format.
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

from tanlearn._progress import print_line
from tanlearn._typing import FloatArray, IntArray
from tanlearn._warnings import warn
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.models.quantization import FixedPoint, IntegerTables
from tanlearn.models.tables import Tables
from tanlearn.parameters.integer_margin import SHARPNESS, Bound, IntegerMargin
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood
from tanlearn.parameters.parameter_learner import ParameterLearner
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout
from tanlearn.training.history import Iteration, Stopwatch

__all__ = ["IntegerBranchAndBound"]


class IntegerBranchAndBound(BaseEstimator):
    """Maximum-margin CPTs with few bits by branch and bound, with a bound for the distance from the optimum.

    The learner minimizes the mean hinge loss ``max(0, margin - (s_y - max s_k))``, over classes k other than y and with
    scores in steps, over all CPTs of the format. Small problems are solved to optimality. For large problems, the best
    CPTs found are returned, with a lower bound for the objective.

    Parameters
    ----------
    bits : tuple of (int, int), default=(2, 0)
        Integer and fraction bits per parameter, as in :class:`~tanlearn.FixedPoint`. The optimum depends only on their
        sum. The split determines the size of a step in nats, which affects ``start`` and the probabilities.
    margin : int, default=4
        Desired margin in steps of the format, at least 1. Margins of such CPTs are integer numbers of steps, so
        fractional margins would have no advantage. Tune this parameter, because more bits and more features require a
        larger margin.
    max_nodes : int, optional, default=100
        Maximum number of boxes (ranges of all parameters) that are evaluated, at least 1, or None for no limit. Without
        ``time_limit``, the result is deterministic.
    time_limit : float, optional
        Number of seconds after which the search ends, above 0. The current step is completed first. With a time limit,
        the result depends on the machine.
    start : ParameterLearner, optional
        Learner for the CPTs at the start of the search, such as ``StochasticGradient(bits=(2, 0))``. The default is
        ``MaximumLikelihood()``. Its CPTs are rounded to the format. CPT entries that no row uses keep their initial
        values.
    verbose : int, default=0
        If 1, one line is printed per improvement and at the end of the search; if 2, one line per node.

    Attributes
    ----------
    objective_ : float
        Weighted mean hinge loss per row, in steps.
    bound_ : float
        Lower bound for the objective over all CPTs of this format.
    gap_ : float
        ``(objective_ - bound_) / objective_``, from 0 (optimal) to 1.
    n_nodes_ : int
        Number of evaluated boxes, including boxes that HiGHS evaluated.
    n_iter_ : int
        Same as ``n_nodes_``.
    converged_ : bool
        Whether the CPTs have been proven to be optimal.
    history_ : list of Iteration
        One entry for the best CPTs after 0, 1, ... nodes, with their objective as ``loss``. A search by HiGHS is one
        entry. ``n_evaluations`` is the number of nodes.

    Warns
    -----
    UserWarning
        If the search is interrupted (Ctrl-C). The best CPTs so far are returned.

    Notes
    -----
    Each box is relaxed by L-BFGS-B on a smoothed hinge loss. The relaxation yields multipliers for the margins of the
    rows. The multipliers yield a lower bound, which is valid even if they are not optimal (see
    :mod:`tanlearn.parameters.integer_margin` for the proof). If a change of a parameter costs more than the difference
    between objective and bound, the range of the parameter is reduced (reduced costs).

    The problem is also an integer linear program, with ``2 (n_features + 1) (n_classes - 1)`` non-zeros per distinct
    row. With up to 20,000 non-zeros, as for 160 rows with 8 features and 3 classes, SciPy's HiGHS solves the program
    after the first box, usually in less than a second. Larger problems are rarely solved to optimality. The benchmark
    in benchmarks/paper/resource_efficient reports errors and ``gap_`` after a few seconds, for naive Bayes and trees on
    letter, usps and satimage, and compares the errors with few-bit gradient training. The authors of the paper report
    that the run time of their search did not allow tuning.

    References
    ----------
    Tschiatschek, Paul, Pernkopf: Integer Bayesian network classifiers. ECML PKDD 2014.

    Roth, Schindler, Fröning, Pernkopf: On resource-efficient Bayesian network classifiers and deep neural networks.
    ICPR 2020 (section V-C: gradient training for few bits outperforms this search).

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
    history_: list[Iteration]

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
        """Fit the CPTs of a structure.

        Parameters
        ----------
        structure : Structure
            The augmenting parents.
        data : EncodedData
            Complete rows of at least two classes.
        rng : numpy.random.Generator
            Random generator for ``start``. The search itself is deterministic.

        Returns
        -------
        IntegerTables

        Raises
        ------
        ValueError
            If ``bits`` is not a pair of integers with a sum from 1 to 16, a value is missing, or there is only one
            class.
        TableMemoryError
            If the CPTs exceed the memory limit: 8 GiB or half of the machine's memory, whichever is smaller. For arrays
            with more than 100 entries per training row, the limit is a quarter of that size. The environment variable
            ``TANLEARN_MAX_TABLE_GIB`` replaces these limits.
        """
        self._validate_params()
        if len(self.bits) != 2:
            raise ValueError(
                f"bits must be a tuple of integer and fraction bits, such as (2, 0), got {self.bits!r}. Any split "
                f"has the same optimal CPTs; tune margin instead."
            )
        fixed_point = FixedPoint(*self.bits)
        data.require_complete("Branch and bound")
        if data.n_classes < 2:
            raise ValueError(
                f"margins need at least 2 classes, but the data have {data.n_classes}. Add rows of another class."
            )
        start = MaximumLikelihood() if self.start is None else clone(self.start, safe=False)
        tables = start.fit(structure, data, rng)
        layout = TableLayout.of_parents(structure.parents, data.n_states, data.n_classes)
        problem = IntegerMargin(layout, data.in_whole_rows(), self.margin, 2**fixed_point.n_bits - 1)
        search = _Search(problem, fixed_point.encode(tables.cells).astype(np.int64))
        share = 1 / float(problem.weight.sum())
        deadline = np.inf if self.time_limit is None else time.monotonic() + self.time_limit
        stopwatch = Stopwatch()
        self.history_ = [stopwatch.iteration(0, search.value * share)]
        try:
            self._go_on(search, share, deadline, stopwatch)
        except KeyboardInterrupt:
            warn(
                f"branch and bound was interrupted in node {search.n_nodes + 1}, so the best CPTs so far are returned.",
                UserWarning,
            )
        self.n_nodes_ = self.n_iter_ = search.n_nodes
        self.converged_ = search.is_over
        self.objective_, self.bound_, self.gap_ = search.state(share)
        if self.verbose:
            self._print("optimal" if self.converged_ else "ended by a limit")
        return IntegerTables(layout, search.best, fixed_point)

    def _go_on(self, search: _Search, share: float, deadline: float, stopwatch: Stopwatch) -> None:
        """Evaluate boxes, for small problems with HiGHS, until the optimum is proven or a limit is reached."""

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
                search.split_box(is_late)
            stopwatch.n_evaluations = search.n_nodes
            self.history_.append(stopwatch.iteration(len(self.history_), search.value * share))
            self.n_nodes_, (self.objective_, self.bound_, self.gap_) = search.n_nodes, search.state(share)
            if self.verbose > (search.value == before):
                self._print("better" if search.value < before else "no better")
            is_enough |= self.max_nodes is not None and search.n_nodes >= self.max_nodes

    def _print(self, what: str) -> None:
        """Print the progress of the search."""
        print_line(
            f"{what}: mean hinge {self.objective_:.6g} steps, bound {self.bound_:.6g}, gap {self.gap_:.2%}, "
            f"{self.n_nodes_} nodes"
        )


class _Search:
    """State of the search between two boxes.

    Bounds are multiples of a unit, so many boxes have the same bound. Of these boxes, the most recent box is evaluated
    first, so that the search also reaches single points.
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
        """Lower bound for the objective over all open boxes."""
        return self._heap[0][0] if self._heap else self.value

    def state(self, share: float) -> tuple[float, float, float]:
        """Return the objective, its bound and ``gap_``. The factor ``share`` converts sums to means per row."""
        bound = self.value if self.is_over else self.bound
        gap = 0.0 if bound == self.value else 1 - bound / self.value
        return self.value * share, bound * share, gap

    @property
    def is_over(self) -> bool:
        """True if no open box can contain a better solution."""
        return not self._heap or self._is_closed(self._heap[0][0])

    def _is_closed(self, bound: float) -> bool:
        """Return whether a bound excludes all solutions that are better than the best solution so far."""
        # Any improvement is at least one unit, or more than the tolerance of HiGHS.
        least = 0.999999 * self._problem.unit or 1e-6 * self.value
        return bound > self.value - least or self.value == 0

    def split_box(self, is_late: Callable[[], bool]) -> None:
        """Evaluate the box with the lowest bound, and put the halves of its remainder on the heap."""
        bound, _, lower, upper, point = self._heap[0]
        sharpness = SHARPNESS[-1:] if self.n_nodes else SHARPNESS
        found = self._problem.relax(lower, upper, point, sharpness=sharpness, is_late=is_late)
        self._improve(found.magnitudes, is_late)
        bound = max(bound, self._problem.next_value(found.value))
        heapq.heappop(self._heap)  # not earlier, because the bound of an interrupted search must include this box
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
        """True if HiGHS can solve the problem."""
        return self._problem.is_small

    def solve(self, max_nodes: int | None, seconds: float) -> None:
        """Solve the whole problem with HiGHS."""
        found, bound, n_nodes = self._problem.solve(max_nodes, seconds)
        lower, upper = self._all
        if found is not None:
            self._take(np.where(self._problem.is_used, found, lower))
        self.n_nodes += n_nodes
        self._heap = [(max(bound, self.bound), 0, lower, upper, self.best.astype(np.float64))]

    def _improve(self, point: FloatArray, is_late: Callable[[], bool]) -> None:
        """Round a point, and improve it one parameter at a time. Before the first node, also improve the start."""
        for magnitudes in [np.rint(point).astype(np.int64), *([] if self.n_nodes else [self.best])]:
            self._take(self._problem.descend(magnitudes, *self._all, is_late=is_late))

    def _take(self, magnitudes: IntArray) -> None:
        """Keep the magnitudes if they are better than the best so far."""
        value = self._problem.value(magnitudes)
        if value < self.value:
            self.best, self.value = magnitudes, value

    def _tighten(self, found: Bound, lower: IntArray, upper: IntArray) -> tuple[IntArray, IntArray]:
        """Return the box without parameter values that cannot improve on the best solution so far (reduced costs)."""
        room, slope = self.value - found.value, np.abs(found.gradient)
        with np.errstate(divide="ignore"):
            reach = np.floor(np.minimum(room / slope + 1e-6, upper - lower)).astype(np.int64)
        reach = np.maximum(reach, 0)
        rises = found.gradient > 0
        return np.where(rises, lower, np.maximum(lower, upper - reach)), np.where(rises, lower + reach, upper)


def _cut(found: Bound, lower: IntArray, upper: IntArray) -> tuple[int, int]:
    """Return the index of the parameter to branch on, and its largest magnitude in the lower half of the box."""
    width = upper - lower
    distance = np.where(width > 0, np.abs(found.magnitudes - np.rint(found.magnitudes)), -1.0)
    if distance.max() < 1e-6:  # the point is integer, but smoothing keeps the bound below its value
        distance = np.abs(found.gradient) * width
    if distance.max() <= 0:
        distance = width.astype(np.float64)
    cell = int(distance.argmax())
    return cell, int(np.clip(np.floor(found.magnitudes[cell]), lower[cell], upper[cell] - 1))
