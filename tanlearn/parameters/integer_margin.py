"""Hinge loss of the margins of few-bit CPTs: values, lower bounds over boxes, and coordinate descent.

Parameters are magnitudes ``m``, integers from 0 to ``2**bits - 1`` in steps of the format. The cost of a class is the
sum of its magnitudes, ``c_nk = sum m``, and the class with the lowest cost is predicted. ``Gamma`` is the desired
margin, an integer number of steps, and ``p_n`` is the weight of a distinct row. The objective is::

    f(m) = sum_n p_n max(0, Gamma + c_ny - c_nk for all classes k other than y_n)

*Bound.* Take any multipliers ``alpha_nk >= 0``, k other than y_n, whose sum per row is at most p_n. The loss of a row
is at least the sum of its terms weighted by the multipliers. These sums are linear in m with gradient g, hence::

    f(m) >= Gamma sum alpha + g m >= Gamma sum alpha + sum_j min(g_j lower_j, g_j upper_j)

for every m in the box, integer or not. For the optimal multipliers, the dual solution of the linear relaxation, the
bound equals the minimum of f over the real points of the box. Multipliers of a smoothed or approximately solved
relaxation give a lower but valid bound. The derivatives of a smoothed hinge loss with respect to the margins are such
multipliers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tanlearn._threads import one_blas_thread
from tanlearn._typing import AnyArray, FloatArray, IntArray, missing_code
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.kernels import scores as kernels
from tanlearn.kernels.descent import descend
from tanlearn.parameters.convex_relaxation import distinct_rows, margin_rows
from tanlearn.structures.table_layout import TableLayout
from tanlearn.training.losses import ConditionalNLL

__all__ = ["Bound", "IntegerMargin"]

#: Maximum number of non-zeros of a program that HiGHS solves; 6,000 take 0.1 to 0.4 s. With 55,000 to 97,000, its
#: solutions after 15 s had 5 to 25 % higher costs than a search by :meth:`IntegerMargin.relax`, and bounds within 3 %.
LARGEST_PROGRAMME = 20_000
#: Sharpness of the smoothed hinge loss times the margin; each optimum is the start for the next.
SHARPNESS = (2.0, 8.0, 32.0, 128.0)


class Bound(NamedTuple):
    """Relaxation of the objective in a box."""

    value: float  # lower bound of the objective in the box
    gradient: FloatArray  # (n_cells,) change of ``value`` if the active side of the box moves by one
    magnitudes: FloatArray  # (n_cells,) point of the box with a small relaxed objective


class IntegerMargin:
    """Weighted hinge loss of the margins of a fixed structure, as a function of magnitudes.

    The rows must be complete. ``gamma`` is the desired margin in steps and ``largest`` the largest magnitude, both
    above 0.
    """

    def __init__(self, layout: TableLayout, data: EncodedData, gamma: int, largest: int) -> None:
        self._distinct, self.weight = distinct_rows(data)
        self.layout, self.gamma, self.largest = layout, float(gamma), largest
        self._codes, self._y = np.ascontiguousarray(self._distinct.codes), self._distinct.y
        self._own = np.arange(len(self._y)), self._y
        ratios = self.weight / self.weight.min()
        is_whole = np.abs(ratios - np.rint(ratios)).max() < 1e-9
        # Values at integer magnitudes are multiples of the unit; 0 if the weights are not multiples of the lowest.
        self.unit = float(self.weight.min()) if is_whole else 0.0
        self._families = self._rows_of_families()
        # (n_cells,) whether a row has the cell's value and parent values; the objective ignores other cells
        self.is_used = np.zeros(layout.n_cells, bool)
        self.is_used[(self._families[0][:, np.newaxis] + np.arange(layout.n_classes)).ravel()] = True
        self._programme: Any = None

    def _rows_of_families(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return the first cell of each observed family configuration (values of feature and parents), and its rows."""
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
        """Return the costs (n_distinct, n_classes) of the classes in each distinct row.

        Costs of integer magnitudes (n_cells,) are exact.
        """
        return self.layout.log_joint(self._codes, np.asarray(magnitudes, np.float64))

    def value(self, magnitudes: Any) -> float:
        """Return the objective f at magnitudes (n_cells,), integer or not."""
        costs = self.costs(magnitudes)
        own = costs[self._own]
        costs[self._own] = np.inf
        return float((self.weight * np.maximum(0, self.gamma + own - costs.min(axis=1))).sum())

    def next_value(self, bound: float) -> float:
        """Round a lower bound up to the next possible value of f at integer magnitudes."""
        return self.unit * float(np.ceil(bound / self.unit - 1e-6)) if self.unit else bound

    def bound(self, multipliers: FloatArray, lower: AnyArray, upper: AnyArray) -> tuple[float, FloatArray]:
        """Return the lower bound of the objective in a box, and its gradient (n_cells,), as in the module docstring.

        ``multipliers`` (n_distinct, n_classes) are at least 0, and the sum of a row is at most its weight. Entries of
        true classes are ignored. The array is overwritten.
        """
        multipliers[self._own] = 0
        sums = multipliers.sum(axis=1)
        constant = self.gamma * sums.sum()
        multipliers *= -1
        multipliers[self._own] = sums
        gradient = self._adjoint(multipliers)
        terms = np.minimum(gradient * lower, gradient * upper)
        # Upper bound of the rounding error of these sums.
        slack = 1e-12 * (constant + float(np.abs(terms).sum()))
        return float(constant + terms.sum() - slack), gradient

    def _adjoint(self, d_costs: FloatArray) -> FloatArray:
        """Return the gradient with respect to magnitudes, given the gradient with respect to costs."""
        layout, codes = self.layout, self._codes
        gradient, rows = np.zeros(layout.n_cells), np.empty(codes.shape[1], np.intp)
        families = *layout.arrays(), np.arange(layout.n_tables), missing_code(codes.dtype), rows
        kernels.log_joint_adjoint(codes, 0, d_costs, *families, gradient)
        return gradient

    @property
    def is_small(self) -> bool:
        """True if :meth:`solve` is fast."""
        margins = len(self.weight) * (self.layout.n_classes - 1)
        return 2 * (self.layout.n_tables + 1) * margins <= LARGEST_PROGRAMME

    def programme(self) -> tuple[Any, Any, FloatArray]:
        """Return the linear program of f: objective, constraint matrix and right-hand side.

        The variables are the cells, then the hinge loss of each row, (n_cells + n_distinct,). The sparse matrix has one
        inequality per row and other class, classes fastest, (n_distinct * (n_classes - 1), n_cells + n_distinct). Its
        product with the variables is at most the right-hand side, (n_distinct * (n_classes - 1),).
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
        """Solve the integer program with HiGHS. Return the best magnitudes, a lower bound and the number of nodes.

        The magnitudes (n_cells,) are None if HiGHS finds none within its limits. ``seconds`` may be infinite.
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
        """Minimize f approximately over a box by L-BFGS-B on smoothed hinge losses, and return the best bound found.

        The hinge loss becomes ``log(1 + sum_k exp(eta (Gamma + c_ny - c_nk))) / eta``. It exceeds f by at most
        ``log(n_classes) / eta`` per row, and its derivatives with respect to the margins are multipliers. ``lower``,
        ``upper`` and ``start`` are (n_cells,). There are ``n_iter`` iterations per sharpness; ``is_late()`` ends the
        search.
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
        """Return the smoothed hinge losses and their gradient with respect to costs, by conditional likelihood."""
        scores = self.costs(magnitudes)
        scores *= -eta
        scores[self._own] -= eta * self.gamma
        values, d_scores = ConditionalNLL().value_and_gradient(scores, self._y)
        return values / eta, -d_scores

    def descend(
        self, magnitudes: IntArray, lower: IntArray, upper: IntArray, *, is_late: Callable[[], bool] = bool
    ) -> IntArray:
        """Change single cells by powers of two until no such change improves the objective.

        All arrays are (n_cells,); the arguments are not changed. If ``is_late()`` is true, the descent ends early.
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
            for f in range(len(cell)):  # one at a time, because a pass over all families may take long
                if is_late():
                    return found
                n_changed += descend(
                    *(self._y, self.weight, self.gamma, cell, start, rows, f, f + 1),
                    *(steps, lower, upper, least_gain, *scratch, costs, found),
                )
        return found
