"""The margin of tables of few bits: its hinge at whole magnitudes, bounds of it over boxes, and moves cell by cell.

Cells are magnitudes ``m``, whole numbers from 0 to ``2**bits - 1``, in steps of the format. A class costs what its
cells add up to, ``c_nk = sum m``, and the cheapest is predicted. With ``Gamma``, the wanted margin, a whole number of
steps, and the weight ``p_n`` of a row that others may share::

    f(m) = sum_n p_n max(0, Gamma + c_ny - c_nk for all classes k other than y_n)

*Bound.* Take any multipliers ``alpha_nk >= 0``, k other than y_n, that sum up to at most p_n in a row. No row costs
less than its terms weighed by them, so with the gradient g of these sums, which are linear in m::

    f(m) >= Gamma sum alpha + g m >= Gamma sum alpha + sum_j min(g_j lower_j, g_j upper_j)

for every m in the box, whole or not. For the best multipliers, the dual solution of the linear relaxation, that is the
least value of f in the box (without whole numbers); those of a relaxation that is smoothed, or solved approximately,
bound as validly. The derivatives of a smoothed hinge by the margins are such multipliers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tanlearn._threads import one_blas_thread
from tanlearn._typing import AnyArray, FloatArray, IntArray, missing_code
from tanlearn.data.encoded_data import EncodedData
from tanlearn.kernels import scores as kernels
from tanlearn.kernels.descent import descend
from tanlearn.network.tables import TableLayout
from tanlearn.parameters.convex_relaxation import distinct_rows, margin_rows
from tanlearn.training.losses import ConditionalNLL

__all__ = ["Bound", "IntegerMargin"]

#: Non-zero numbers of a programme that HiGHS solves: 0.1 to 0.4 s at 6,000. At 55,000 to 97,000 of them it had found
#: after 15 s what cost 5 to 25 % more than the best of a search by :meth:`IntegerMargin.relax`, and bounds within 3 %.
LARGEST_PROGRAMME = 20_000
#: Sharpness of the smoothed hinge, times the margin; each optimum is the start of the next.
SHARPNESS = (2.0, 8.0, 32.0, 128.0)


class Bound(NamedTuple):
    """What a relaxation tells of a box."""

    value: float  # Below the objective of every point of the box
    gradient: FloatArray  # (n_cells,): What ``value`` grows by if the side of the box that it touches moves by one
    magnitudes: FloatArray  # (n_cells,): A point of the box where the relaxed objective is small


class IntegerMargin:
    """The weighted hinge of the margins of a fixed structure, as a function of magnitudes."""

    def __init__(self, layout: TableLayout, data: EncodedData, gamma: int, largest: int) -> None:
        self._distinct, self.weight = distinct_rows(data)
        # layout: One table a feature. gamma: The wanted margin in steps, above 0. largest: Of magnitudes, above 0.
        self.layout, self.gamma, self.largest = layout, float(gamma), largest
        self._codes, self._y = np.ascontiguousarray(self._distinct.codes), self._distinct.y
        self._own = np.arange(len(self._y)), self._y
        ratios = self.weight / self.weight.min()
        is_whole = np.abs(ratios - np.rint(ratios)).max() < 1e-9
        # Values at whole magnitudes are multiples of it; 0 if of none, because weights are no multiples of the least
        self.unit = float(self.weight.min()) if is_whole else 0.0
        self._families = self._rows_of_families()
        # (n_cells,): Whether a row has the cell's value and parents' values; nothing depends on other cells
        self.is_used = np.zeros(layout.n_cells, bool)
        self.is_used[(self._families[0][:, np.newaxis] + np.arange(layout.n_classes)).ravel()] = True
        self._programme: Any = None

    def _rows_of_families(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return the first cell of every family that rows show (values of a feature and its parents), and the rows."""
        layout, codes = self.layout, self._codes
        n = codes.shape[1]
        cell, lists = [0], [np.arange(n)]
        found: IntArray = np.empty(n, np.intp)
        for table in range(layout.n_tables):
            family = layout.child[table], layout.parents[table], layout.n_states
            kernels.family_rows(codes, 0, *family, missing_code(codes.dtype), found)
            order = np.argsort(found, kind="stable")
            starts = np.flatnonzero(np.diff(found[order], prepend=-1))
            cell += (layout.offset[table] + found[order[starts]] * layout.n_classes).tolist()
            lists += np.split(order, starts[1:])
        start = np.cumsum([0, *map(len, lists)])
        return np.array(cell), start, np.concatenate(lists)

    def costs(self, magnitudes: Any) -> FloatArray:
        """Return what the classes cost in every distinct row.

        Shapes: magnitudes: (n_cells,); result: (n_distinct, n_classes).
        """
        return self.layout.log_joint(self._codes, np.asarray(magnitudes, np.float64))

    def value(self, magnitudes: Any) -> float:
        """Return the objective f.

        Shapes: magnitudes: (n_cells,).
        """
        costs = self.costs(magnitudes)
        own = costs[self._own]
        costs[self._own] = np.inf
        return float((self.weight * np.maximum(0, self.gamma + own - costs.min(axis=1))).sum())

    def next_value(self, bound: float) -> float:
        """Return what whole magnitudes have at least, where no magnitudes have less than a bound."""
        return self.unit * float(np.ceil(bound / self.unit - 1e-6)) if self.unit else bound

    def bound(self, multipliers: FloatArray, lower: AnyArray, upper: AnyArray) -> tuple[float, FloatArray]:
        """Return a number below the objective in a box, by multipliers of the rows' margins (see the module).

        Shapes: multipliers: (n_distinct, n_classes); lower, upper: (n_cells,); result gradient: (n_cells,).
        """
        multipliers[self._own] = 0
        sums = multipliers.sum(axis=1)
        constant = self.gamma * sums.sum()
        multipliers *= -1
        multipliers[self._own] = sums
        gradient = self._adjoint(multipliers)
        terms = np.minimum(gradient * lower, gradient * upper)
        # What rounding of these sums may have added.
        slack = 1e-12 * (constant + float(np.abs(terms).sum()))
        return float(constant + terms.sum() - slack), gradient

    def _adjoint(self, d_costs: FloatArray) -> FloatArray:
        """Return the gradient by magnitudes of what has this gradient by costs."""
        layout, codes = self.layout, self._codes
        gradient, rows = np.zeros(layout.n_cells), np.empty(codes.shape[1], np.intp)
        families = *layout.arrays(), np.arange(layout.n_tables), missing_code(codes.dtype), rows
        kernels.log_joint_adjoint(codes, 0, d_costs, *families, gradient)
        return gradient

    @property
    def is_small(self) -> bool:
        """Whether :meth:`solve` is quick."""
        margins = len(self.weight) * (self.layout.n_classes - 1)
        return 2 * (self.layout.n_tables + 1) * margins <= LARGEST_PROGRAMME

    def programme(self) -> tuple[Any, Any, FloatArray]:
        """Return f as a linear programme: cells first, and the hinge of every row behind them.

        Shapes: result objective: (n_cells + n_distinct,); result matrix: (n_distinct (n_classes - 1); result right:
            (n_distinct (n_classes - 1).
        """
        if self._programme is None:
            from scipy.sparse import csr_array, hstack

            margins, row = margin_rows(self.layout, self._distinct)
            hinge = csr_array((-np.ones(len(row)), (np.arange(len(row)), row)), shape=(len(row), len(self.weight)))
            matrix = hstack([margins, hinge], format="csr")
            objective = np.concatenate([np.zeros(self.layout.n_cells), self.weight])
            self._programme = objective, matrix, np.full(len(row), -self.gamma)
        return self._programme

    def solve(self, max_nodes: int | None, seconds: float) -> tuple[IntArray | None, float, int]:
        """Return the best magnitudes that HiGHS finds by branch and bound, and its bound.

        Shapes: result magnitudes: (n_cells,).
        """
        from scipy.optimize import Bounds, LinearConstraint, milp

        objective, matrix, right = self.programme()
        n, n_cells = len(self.weight), self.layout.n_cells
        options: dict[str, Any] = {"mip_rel_gap": 0.0}
        options |= {} if max_nodes is None else {"node_limit": max_nodes}
        options |= {} if np.isinf(seconds) else {"time_limit": seconds}
        result = milp(
            objective,
            integrality=np.repeat([1, 0], [n_cells, n]),
            bounds=Bounds(0, np.repeat([float(self.largest), np.inf], [n_cells, n])),
            constraints=LinearConstraint(matrix, ub=right),
            options=options,
        )
        found = None if result.x is None else np.rint(result.x[:n_cells]).astype(np.int64)
        bound = max(0.0, self.next_value(result.mip_dual_bound or 0.0))
        return found, bound, int(result.mip_node_count or 0)

    def relax(
        self,
        lower: AnyArray,
        upper: AnyArray,
        start: FloatArray,
        *,
        sharpness: Sequence[float] = SHARPNESS,
        n_iter: int = 60,
        is_late: Callable[[], bool] = bool,
    ) -> Bound:
        """Return about the minimum of f in a box, and a bound, by L-BFGS-B on hinges whose kinks are rounded off.

        The hinge becomes ``log(1 + sum_k exp(eta (Gamma + c_ny - c_nk))) / eta``, above f by at most ``log(n_classes) /
        eta`` a row; its derivatives by the margins are multipliers.

        Shapes: lower, upper: (n_cells,); start: (n_cells,).
        """
        from scipy.optimize import minimize

        best, x = None, np.clip(np.asarray(start, np.float64), lower, upper)
        total = self.weight.sum()

        def end(_: FloatArray) -> None:
            if is_late():
                raise StopIteration

        for eta in np.array(sharpness) / self.gamma:

            def objective(x: FloatArray, eta: float = eta) -> tuple[float, FloatArray]:
                values, d_costs = self._soft_hinges(x, eta)
                d_costs *= self.weight[:, np.newaxis] / total
                return float((values * self.weight).sum()) / total, self._adjoint(d_costs)

            options = {"maxiter": n_iter, "maxcor": 10}
            with one_blas_thread():
                box = np.c_[lower, upper]
                x = minimize(objective, x, jac=True, method="L-BFGS-B", bounds=box, options=options, callback=end).x
            multipliers = np.maximum(0, -self._soft_hinges(x, eta)[1])
            multipliers[self._own] = 0
            multipliers *= (self.weight / np.maximum(1, multipliers.sum(axis=1)))[:, np.newaxis]
            found = Bound(*self.bound(multipliers, lower, upper), x)
            best = found if best is None or found.value > best.value else best._replace(magnitudes=x)
        assert best is not None
        return best

    def _soft_hinges(self, magnitudes: FloatArray, eta: float) -> tuple[FloatArray, FloatArray]:
        """Return the rounded hinges and their gradient by costs: conditional likelihood of what true classes lack."""
        scores = self.costs(magnitudes)
        scores *= -eta
        scores[self._own] -= eta * self.gamma
        values, d_scores = ConditionalNLL().value_and_gradient(scores, self._y)
        return values / eta, -d_scores

    def descend(
        self, magnitudes: IntArray, lower: IntArray, upper: IntArray, *, is_late: Callable[[], bool] = bool
    ) -> IntArray:
        """Return magnitudes that no change of a single cell by a power of two improves.

        Shapes: magnitudes: (n_cells,); lower, upper: (n_cells,); result: (n_cells,).
        """
        found, costs = magnitudes.copy(), self.costs(magnitudes)
        widest = int((upper - lower).max(initial=0)).bit_length()
        steps = np.array([sign << k for k in range(widest) for sign in (1, -1)], np.int64)
        least_gain = 1e-9 * (self.unit or float(self.weight.sum()))
        n = len(self._y)
        scratch = np.empty(n, np.intp), np.empty(n), np.empty(n), np.empty(len(steps))
        cell, start, rows = self._families
        n_changed = 1
        while n_changed:
            n_changed = 0
            for f in range(len(cell)):  # one by one, as a pass through all of a large set takes long
                if is_late():
                    return found
                n_changed += descend(
                    *(self._y, self.weight, self.gamma, cell, start, rows, f, f + 1),
                    *(steps, lower, upper, least_gain, *scratch, costs, found),
                )
        return found
