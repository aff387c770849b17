"""Exact maximum-margin structure by branch and bound in a linear program (Peharz and Pernkopf 2012).

The score is the mean soft margin of the rows (x_n, y_n) with weights w_n, as in the other margin searches:

    score = sum_n w_n min(gamma, min over c of log p(y_n, x_n) - log p(c, x_n)) / sum_n w_n

With one binary variable z_f per family f of each feature, the leads of classes over others are linear in z. The best
structure is therefore the solution of a mixed-integer linear program with one margin variable m_n per distinct row:

    maximize   sum_n w_n m_n
    subject to m_n <= gamma,   m_n <= lead_n,c(z) for all classes c other than y_n,
               sum over the families of a feature of z_f = 1,
               sum over i in S, and over the families f of i without parents in S, of z_f >= 1
               for all sets S of two or more features.

The last constraints exclude all cycles: in a cycle S, every feature has a parent in S. There are 2^d such constraints,
so the number of features is limited. They are tighter than the order variables of the paper. The upper bound in each
node of the search is the optimum of the program with 0 <= z_f <= 1.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from tanlearn._memory import check_memory
from tanlearn._threads import one_blas_thread
from tanlearn._typing import FloatArray, IntArray
from tanlearn._warnings import warn
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood
from tanlearn.structures.knowledge import EdgeRules, Knowledge, read_rules
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout
from tanlearn.training.history import Stopwatch

from .history import ParentChange
from .row_counts import RowCounts
from .structure_scores import StructureScorer

if TYPE_CHECKING:
    from scipy.optimize import OptimizeResult

__all__ = ["ExactMarginSearch"]

#: Largest number of features: the program has 2^d constraints that exclude cycles, 4,096 for 12 features.
_MOST_FEATURES = 12
#: Smallest difference of scores between the structure and the bound that is reported as a gap.
_TOLERANCE = 1e-6


class ExactMarginSearch(BaseEstimator):
    """Structure of maximum margin among all structures with few parents, by branch and bound, for up to 12 features.

    Use it to measure how close heuristic searches come to the optimum. The time grows quickly with the numbers of
    features and of distinct rows. On car (6 features, 1,728 rows, 4 classes) it takes 5 to 10 s with one parent and 50
    s with two; on pima (8 features, 175 distinct rows) 1 s with one parent.

    Parameters
    ----------
    max_parents : int, default=1
        Maximum number of augmenting parents of each feature: 1 for forests, or 2.
    gamma : float, default=1.0
        Cap of the margin of each row, in nats, from 1e-6 to 1e6.
    smoothing : MaximumLikelihood, optional
        Estimator of the CPTs, which must not be zero; by default ``MaximumLikelihood(alpha=1)``.
    knowledge : Knowledge, optional
        Required and forbidden edges, and tiers. The result is the best of the structures that they permit.
    max_nodes : int, optional
        Maximum number of nodes of branch and bound. The search then ends with the best structure found, and ``bound_``
        limits its distance from the optimum. By default, it runs until the optimum is proved.

    Attributes
    ----------
    structure_ : Structure
        The structure.
    score_ : float
        Mean capped margin of ``structure_`` on the training rows.
    bound_ : float
        Upper bound of the scores of all structures. It equals ``score_`` up to 1e-6 if the optimum is proved.
    is_optimal_ : bool
        Whether the optimum is proved.
    n_nodes_ : int
        Number of nodes of branch and bound.
    history_ : list of ParentChange
        The final parents of all features with augmenting parents, each with the final score. ``n_evaluations`` is the
        number of nodes, each of which solves a linear program.

    Notes
    -----
    The search solves this program with HiGHS (``scipy.optimize.milp``)::

        maximize sum_n w_n m_n subject to m_n <= gamma and m_n <= log p(y_n, x_n) - log p(c, x_n) for all c != y_n

    over one family per feature without cycles. The upper bound of a node is the optimum of the program with fractional
    families. Among structures whose scores differ by less than 1e-6 nats, the one that HiGHS finds is returned. HiGHS
    receives the features in the order of their names, so the result does not depend on the order of the columns.

    References
    ----------
    Peharz, Pernkopf: Exact maximum margin structure learning of Bayesian networks. ICML, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData
    >>> from tanlearn.baselines import ExactMarginSearch, GreedySearch
    >>> rng = np.random.default_rng(2)
    >>> x = rng.integers(0, 2, (60, 4))
    >>> data = EncodedData.from_codes(x, (x[:, 0] + x[:, 1] + x[:, 2] + rng.integers(0, 2, 60)) % 2)
    >>> greedy, exact = GreedySearch(score="margin"), ExactMarginSearch()
    >>> _ = greedy.learn(data, rng), exact.learn(data, rng)
    >>> greedy.score_ <= exact.score_, exact.is_optimal_
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_parents": [Interval(Integral, 1, 2, closed="both")],
        "gamma": [Interval(Real, 1e-6, 1e6, closed="both")],
        "smoothing": [None, MaximumLikelihood],
        "knowledge": [None, Knowledge],
        "max_nodes": [None, Interval(Integral, 1, None, closed="left")],
    }

    structure_: Structure
    score_: float
    bound_: float
    is_optimal_: bool
    n_nodes_: int
    history_: list[ParentChange]

    def __init__(
        self,
        *,
        max_parents: int = 1,
        gamma: float = 1.0,
        smoothing: MaximumLikelihood | None = None,
        knowledge: Knowledge | None = None,
        max_nodes: int | None = None,
    ) -> None:
        self.max_parents = max_parents
        self.gamma = gamma
        self.smoothing = smoothing
        self.knowledge = knowledge
        self.max_nodes = max_nodes

    def learn(self, data: EncodedData, rng: np.random.Generator) -> Structure:
        """Search the structure.

        Parameters
        ----------
        data : EncodedData
            Complete rows of up to 12 features.
        rng : numpy.random.Generator
            Ignored.

        Returns
        -------
        Structure

        Raises
        ------
        ValueError
            If there are more than 12 features, a value is missing, ``smoothing`` allows zero probabilities, or
            ``knowledge`` contradicts itself or does not fit the columns.
        RuntimeError
            If the solver finds no structure, for example because of ``max_nodes``.

        Warns
        -----
        UserWarning
            If ``max_nodes`` ended the search before the optimum was proved.
        """
        self._validate_params()
        if data.n_features > _MOST_FEATURES:
            raise ValueError(
                f"ExactMarginSearch supports up to {_MOST_FEATURES} features, because its program has one constraint "
                f"per set of features, but the data have {data.n_features}. Leave out features, or use "
                "GreedySearch(score='margin')."
            )
        smoothing = MaximumLikelihood() if self.smoothing is None else self.smoothing
        if smoothing.alpha == 0 and smoothing.epsilon is None:
            raise ValueError(
                f"smoothing must keep all probabilities above zero, because margins would otherwise be infinite, "
                f"got {smoothing!r}. Pass MaximumLikelihood(alpha=1), or MaximumLikelihood(alpha=0, epsilon=1e-5)."
            )
        rules = read_rules(self.knowledge, data, max_parents=self.max_parents)
        watch = Stopwatch()
        scorer = StructureScorer(
            data,
            score="margin",
            gamma=self.gamma,
            validation=None,
            smoothing=smoothing,
            initial=Structure.naive_bayes(data.n_features),
            rng=rng,
        )
        data = data.present()
        program = _Program(data, smoothing, self.max_parents, float(self.gamma), rules)
        found = program.solve(self.max_nodes)
        if found.x is None:
            remedy = "" if self.max_nodes is None else " Increase max_nodes."
            raise RuntimeError(f"the solver HiGHS found no structure ({found.message.rstrip('.')}).{remedy}")
        parents = np.full((data.n_features, 2), -1)
        for i, own in program.chosen(found.x):
            parents[i, : len(own)] = own
        self.structure_, self.score_ = Structure(parents), scorer.score(parents)
        self.bound_ = max(self.score_, -float(found.mip_dual_bound))
        self.n_nodes_ = int(found.mip_node_count)
        self.is_optimal_ = self.bound_ - self.score_ < _TOLERANCE
        watch.n_evaluations = self.n_nodes_
        self.history_ = [
            ParentChange(i, own, self.score_, 1, watch.n_evaluations, watch.seconds)
            for i in data.by_name.tolist()
            if (own := tuple(j for j in parents[i].tolist() if j >= 0))
        ]
        if not self.is_optimal_:
            warn(
                f"the search ended after {self.n_nodes_:,} nodes before the optimum was proved: the score is "
                f"{self.score_:.6g}, and no structure has a score above {self.bound_:.6g}. Use a larger max_nodes.",
                UserWarning,
            )
        return self.structure_


class _Program:
    """Mixed-integer linear program.

    Its variables are one 0/1 indicator per family, followed by the margins of the distinct rows.
    """

    def __init__(
        self,
        data: EncodedData,
        smoothing: MaximumLikelihood,
        max_parents: int,
        gamma: float,
        rules: EdgeRules | None,
    ) -> None:
        self.order, self.gamma = data.by_name, gamma
        # Ordered by name, so that the solver gets the same program whatever the order of the columns.
        data = replace(data, codes=np.ascontiguousarray(data.codes[self.order]), n_states=data.n_states[self.order])
        features = range(data.n_features)
        # position in the order, and positions of the augmenting parents, of each family
        self.families: list[tuple[int, tuple[int, ...]]] = [
            (i, own)
            for i in features
            for size in range(min(max_parents, data.n_features - 1) + 1)
            for own in itertools.combinations([j for j in features if j != i], size)
        ]
        if rules is not None:
            by_name = rules.take(self.order)
            self.families = [(i, own) for i, own in self.families if by_name.permits_family(i, own)]
        rows = RowCounts(data.n_states, data.n_classes).update(data)
        self.weights = rows.weights / rows.weights.sum()  # (n_rows,) of the distinct rows
        n_leads = len(rows.y) * (data.n_classes - 1)
        check_memory(
            n_leads * len(self.families),
            40 * n_leads * len(self.families),  # the leads, and their sparse copies in SciPy and HiGHS
            0.0,
            f"a program of {n_leads:,} leads and {len(self.families):,} families",
            "Use fewer features or rows, or GreedySearch(score='margin')",
        )
        self.leads, self.prior = self._leads(data, rows, smoothing)

    def solve(self, max_nodes: int | None) -> OptimizeResult:
        """Maximize the mean margin."""
        from scipy.optimize import Bounds, LinearConstraint, milp
        from scipy.sparse import csc_array, eye_array, hstack, kron

        n_families, n_rows = len(self.families), len(self.weights)
        margins = kron(eye_array(n_rows), np.ones((len(self.prior) // n_rows, 1)))
        one_each, no_cycle = self._one_family_each(), self._no_cycle()
        constraints = [
            LinearConstraint(hstack([csc_array(-self.leads), margins], format="csc"), -np.inf, self.prior),
            LinearConstraint(_padded(one_each, n_rows), 1.0, 1.0),
            LinearConstraint(_padded(no_cycle, n_rows), 1.0, np.inf),
        ]
        lowest = np.append(np.zeros(n_families), np.full(n_rows, -np.inf))
        highest = np.append(np.ones(n_families), np.full(n_rows, self.gamma))
        with one_blas_thread():
            return milp(
                np.append(np.zeros(n_families), -self.weights),
                integrality=np.append(np.ones(n_families), np.zeros(n_rows)),
                bounds=Bounds(lowest, highest),
                constraints=constraints,
                options={"mip_rel_gap": 0.0, **({} if max_nodes is None else {"node_limit": max_nodes})},
            )

    def chosen(self, solution: FloatArray) -> list[tuple[int, tuple[int, ...]]]:
        """Return the features and their augmenting parents in a solution."""
        found = [self.families[f] for f in np.flatnonzero(solution[: len(self.families)] > 0.5).tolist()]
        number = self.order.tolist()
        return [(number[i], tuple(number[j] for j in own)) for i, own in found]

    def _leads(self, data: EncodedData, rows: RowCounts, smoothing: MaximumLikelihood) -> tuple[FloatArray, FloatArray]:
        """Return the contributions of each family, and of the class prior, to the leads over the other classes.

        Shapes: result: (n_rows * (n_classes - 1), n_families) and (n_rows * (n_classes - 1),).
        """
        parents = np.full((len(self.families), 2), -1)
        for f, (_, own) in enumerate(self.families):
            parents[f, : len(own)] = own
        child = np.array([i for i, _ in self.families])
        layout = TableLayout(child, parents, data.n_states, data.n_classes)
        layout.check_memory(data.n_samples)
        cells = smoothing.from_counts(layout, layout.count(data.codes, data.y, data.weights)).cells
        prior = _over_others(np.tile(cells[: data.n_classes], (len(rows.y), 1)), rows.y)
        cells[: data.n_classes] = 0.0
        leads = np.empty((len(prior), len(self.families)))
        for f in range(len(self.families)):
            one = np.array([f])
            scores = layout.select(one).log_joint(rows.codes, layout.select_cells(cells, one))
            leads[:, f] = _over_others(scores, rows.y)
        return leads, prior

    def _one_family_each(self) -> FloatArray:
        """Return the coefficients of the constraints that each feature has one family, (n_features, n_families)."""
        child = np.array([i for i, _ in self.families])
        return (child == np.unique(child)[:, np.newaxis]).astype(np.float64)

    def _no_cycle(self) -> FloatArray:
        """Return the coefficients of the constraints that exclude cycles. Shape: (n_sets, n_families)."""
        features = sorted({i for i, _ in self.families})
        sets = [set(own) for size in range(2, len(features) + 1) for own in itertools.combinations(features, size)]
        coefficients = np.zeros((len(sets), len(self.families)))
        for s, members in enumerate(sets):
            coefficients[s] = [i in members and members.isdisjoint(own) for i, own in self.families]
        return coefficients


def _padded(coefficients: FloatArray, n_rows: int) -> Any:
    """Return sparse coefficients of families, followed by zeros for the margins of the rows."""
    from scipy.sparse import csc_array, hstack

    return hstack([csc_array(coefficients), csc_array((len(coefficients), n_rows))], format="csc")


def _over_others(scores: FloatArray, y: IntArray) -> FloatArray:
    """Return the lead of the class of each row over each other class.

    Shapes: scores: (n_rows, n_classes); result: (n_rows * (n_classes - 1),), row by row.
    """
    is_other = np.arange(scores.shape[1]) != y[:, np.newaxis]
    own = np.take_along_axis(scores, y[:, np.newaxis], 1)
    return (own - scores)[is_other]
