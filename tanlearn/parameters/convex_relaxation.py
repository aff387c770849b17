"""CVX-MM: maximum margin as a convex program (maximum margin, section 5.3, eq. 9, after Guo et al. 2005).

If the log-probabilities w may sum to less than one, the margins are linear in w and the constraints are convex::

    minimize    1 / (2 gamma^2) + B sum_m eps_m
    subject to  (phi(y_m, x_m) - phi(c, x_m)) w >= gamma - eps_m   for all rows m and classes c other than y_m
                sum_i exp(w_i|h) <= 1                              for all distributions
                gamma >= 0,  eps_m >= 0

where phi(c, x) marks the CPT entries whose sum is the log joint of class c. Renormalization then moves the missing mass
of the distributions from children to parents, without changing the posteriors.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, missing_code
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.kernels.scores import family_rows
from tanlearn.models.tables import Tables
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout

__all__ = ["ConvexRelaxation", "distinct_rows", "margin_rows", "renormalize"]


class ConvexRelaxation(BaseEstimator):
    """Convex relaxation of maximum-margin learning, solved by CVXPY (``pip install "tanlearn[convex]"``).

    Use this learner only for small data sets. The program has ``n_classes - 1`` inequalities with ``2 (n_features +
    1)`` non-zeros per distinct row, and one exponential cone per CPT entry. Solving it takes 1 s for 400 rows with 10
    features and 10 classes, and 10 s for 200 rows with 64 features. The paper reports 54 hours for MNIST.
    ``ConjugateGradient(loss=Margin())`` has a similar accuracy on data sets of any size.

    Parameters
    ----------
    slack : float, default=1e-3
        Cost per nat by which a row of weight 1 falls short of the margin, above 0. This is B in the paper, which uses 1
        and 2^-8.
    epsilon : float or None, default=1e-5
        Lower bound for a probability before renormalization, below 1 / k, where k is the largest number of values of a
        feature or the class. None corresponds to eq. 9 of the paper (see the notes).
    solver : str, optional
        Name of an installed CVXPY solver for exponential cones. The default is CVXPY's choice, Clarabel.

    Attributes
    ----------
    objective_ : float
        Value of eq. 9 at the solution.
    margin_ : float
        The margin gamma, in nats.
    n_iter_ : int or None
        Number of iterations that the solver reports, or None if it does not report this number. Solvers do not report
        intermediate values, so there is no ``history_``.
    converged_ : bool
        Whether the solver reports the optimum as accurate. Otherwise, a warning is issued.

    Notes
    -----
    Without ``epsilon``, the scale of w is unbounded, because a constant can be subtracted from all entries of a CPT
    without changing the margins, so that sums stay below one for any scale. If the classes are separable, gamma is then
    unbounded. Otherwise, ``slack`` only scales w and does not change the predicted classes.

    References
    ----------
    Guo, Wilkinson, Schuurmans: Maximum margin Bayesian networks. UAI 2005.

    Examples
    --------
    >>> from tanlearn import ConvexRelaxation, NaiveBayesClassifier
    >>> X = [["a", "u"], ["a", "v"], ["b", "u"], ["b", "v"], ["b", "v"]]
    >>> model = NaiveBayesClassifier(parameters=ConvexRelaxation()).fit(X, [0, 0, 1, 1, 0])
    >>> model.predict([["a", "v"], ["b", "u"]]).tolist()
    [0, 1]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "slack": [Interval(Real, 0, None, closed="neither")],
        "epsilon": [None, Interval(Real, 0, 1, closed="neither")],
        "solver": [None, str],
    }

    objective_: float
    margin_: float
    n_iter_: int | None
    converged_: bool

    def __init__(self, *, slack: float = 1e-3, epsilon: float | None = 1e-5, solver: str | None = None) -> None:
        self.slack = slack
        self.epsilon = epsilon
        self.solver = solver

    def fit(self, structure: Structure, data: EncodedData, rng: np.random.Generator) -> Tables:
        """Fit the CPTs of a structure.

        Parameters
        ----------
        structure : Structure
            The augmenting parents. If a feature has two augmenting parents, one must be the parent of the other.
        data : EncodedData
            Complete rows.
        rng : numpy.random.Generator
            Not used, because the result is deterministic.

        Returns
        -------
        Tables

        Raises
        ------
        ImportError
            If CVXPY is not installed.
        ValueError
            If a value is missing, the CPTs of this structure cannot be renormalized, or ``epsilon`` is too large.
        RuntimeError
            If the solver does not find the optimum.

        Warns
        -----
        UserWarning
            If the solver reports that its optimum may be inaccurate.
        """
        self._validate_params()
        data.require_complete("The convex relaxation")
        _hosts(structure)  # raises ValueError early if CPTs cannot be renormalized
        layout = TableLayout.of_parents(structure.parents, data.n_states, data.n_classes)
        layout.check_memory(data.n_samples, data.label)
        largest = int(layout.groups()[0].max())
        if self.epsilon is not None and self.epsilon * largest >= 1:
            raise ValueError(
                f"epsilon must be below one over the number of values, got {self.epsilon} and a distribution over "
                f"{largest} values. Lower epsilon."
            )
        return renormalize(structure, Tables(layout, self._solve(layout, data.in_whole_rows())))

    def _solve(self, layout: TableLayout, data: EncodedData) -> FloatArray:
        """Return the optimal w (n_cells,) and set the fitted attributes."""
        from scipy.sparse import csr_array

        cvxpy = _cvxpy()
        # Equal rows have equal slack, so one variable per distinct row is sufficient.
        distinct, weight = distinct_rows(data)
        n_samples = distinct.n_samples
        delta, sample = margin_rows(layout, distinct)
        slack_of = csr_array((np.ones(len(sample)), (np.arange(len(sample)), sample)), shape=(len(sample), n_samples))
        sums = csr_array((np.ones(layout.n_cells), (layout.distributions(), np.arange(layout.n_cells))))

        w, gamma, eps = cvxpy.Variable(layout.n_cells), cvxpy.Variable(), cvxpy.Variable(n_samples, nonneg=True)
        # The unit is the total slack cost. With this unit, Clarabel failed or was inaccurate in 1 of 18 trials, without
        # it in 9.
        unit = self.slack * weight.sum()
        value = cvxpy.power(gamma, -2) / (2 * unit) + (weight / weight.sum()) @ eps
        constraints = [delta @ w + slack_of @ eps >= gamma, sums @ cvxpy.exp(w) <= 1]
        if self.epsilon is not None:
            constraints.append(w >= np.log(self.epsilon))
        problem = cvxpy.Problem(cvxpy.Minimize(value), constraints)
        try:
            problem.solve(solver=self.solver)
            status = problem.status
        except cvxpy.error.SolverError as error:
            status = str(error)
        if status not in (cvxpy.OPTIMAL, cvxpy.OPTIMAL_INACCURATE):
            raise RuntimeError(
                f"the convex relaxation was not solved: {status}. Set or increase epsilon, change slack (solvers "
                f"work best at a margin of about 1 nat), or use another solver."
            )
        self.objective_, self.margin_ = float(problem.value) * unit, float(gamma.value)
        self.n_iter_, self.converged_ = problem.solver_stats.num_iters, status == cvxpy.OPTIMAL
        return np.asarray(w.value)


def renormalize(structure: Structure, tables: Tables) -> Tables:
    """Return CPTs with the same posteriors, but whose distributions sum to one.

    Children are processed before parents. The CPT of a feature is divided by its sum over the values of the feature.
    The CPT of a parent that depends on all other parents, or the class prior, is multiplied by this sum. Raises
    ValueError if the structure has a cycle, or if no parent of a feature depends on all its other parents (the moral
    graph then has an additional edge; Wettig et al. 2003).
    """
    layout = tables.layout
    moved = Tables(layout, tables.cells.copy())
    hosts = _hosts(structure)
    for i in structure.order[::-1].tolist():
        table = moved[i]
        log_z = logsumexp(table, axis=0)
        table -= log_z
        host = hosts[i]
        if host < 0:
            moved.log_prior[:] += log_z
            continue
        axes = [host, *_given(structure, host)]
        given = _given(structure, i)
        order = [given.index(j) for j in axes if j in given]
        widths = [int(layout.n_states[j]) if j in given else 1 for j in axes]
        moved[host][:] += log_z.transpose([*order, len(given)]).reshape([*widths, layout.n_classes])
    moved.log_prior[:] -= logsumexp(moved.log_prior)
    return moved


def _cvxpy() -> Any:
    """Import and return CVXPY, an optional dependency."""
    try:
        import cvxpy
    except ImportError as error:
        raise ImportError(
            'the convex relaxation needs cvxpy. Install it with: pip install "tanlearn[convex]"'
        ) from error
    return cvxpy


def _given(structure: Structure, feature: int) -> list[int]:
    """Return the augmenting parents of a feature."""
    return [j for j in structure.parents[feature].tolist() if j >= 0]


def _hosts(structure: Structure) -> list[int]:
    """Return, for each feature, the parent whose CPT depends on all its other parents, or -1 without parents."""
    if not structure.is_acyclic:
        raise ValueError(
            "CPTs of a structure with a cycle cannot be renormalized. Remove an edge of the cycle, or learn with "
            "ConjugateGradient(loss=Margin())."
        )
    hosts = []
    for i in range(structure.n_features):
        given = _given(structure, i)
        able = [j for j in given if set(given) <= {j, *_given(structure, j)}]
        if given and not able:
            raise ValueError(
                f"one of the parents {' and '.join(map(str, given))} of feature {i} must have all the others as "
                f"parents, because otherwise the CPT of feature {i} cannot be renormalized without changing the "
                f"posteriors. Add the missing edges between these parents, or learn with "
                f"ConjugateGradient(loss=Margin())."
            )
        hosts.append(able[0] if able else -1)
    return hosts


def distinct_rows(data: EncodedData) -> tuple[EncodedData, FloatArray]:
    """Return the distinct rows of positive weight, sorted by codes, and the total weight (n_distinct,) of each."""
    _, first, row = np.unique(np.vstack([data.codes, data.y]), axis=1, return_index=True, return_inverse=True)
    weight: AnyArray = np.bincount(row.ravel(), data.weights)
    return data.take(first[weight > 0]), weight[weight > 0]


def margin_rows(layout: TableLayout, data: EncodedData) -> tuple[Any, IntArray]:
    """Return the coefficients of the margins of each true class over each other class, and the row of each margin.

    ``margins`` is a sparse matrix (n_samples * (n_classes - 1), n_cells), in which classes vary fastest. ``sample`` has
    shape (n_samples * (n_classes - 1),).
    """
    n_classes = layout.n_classes
    phi = _indicators(layout, data.codes)
    other = np.flatnonzero(np.arange(n_classes) != data.y[:, np.newaxis])
    sample = other // n_classes
    return phi[sample * n_classes + data.y[sample]] - phi[other], sample


def _indicators(layout: TableLayout, codes: Codes) -> Any:
    """Return the matrix phi, with a row per sample and class (classes fastest), and 1 for cells in the log joint."""
    from scipy.sparse import csr_array

    n_samples, n_classes = codes.shape[1], layout.n_classes
    cells = np.zeros((1 + layout.n_tables, n_samples), np.intp)  # cells of class 0, with the prior first
    for table, rows in enumerate(cells[1:]):
        family = layout.child[table], layout.parents[table], layout.n_states
        family_rows(codes, 0, *family, missing_code(codes.dtype), rows)
        rows *= n_classes
        rows += layout.offset[table]
    columns = (cells.T[:, np.newaxis, :] + np.arange(n_classes)[:, np.newaxis]).ravel()
    starts = np.arange(0, columns.size + 1, len(cells))
    return csr_array((np.ones(columns.size), columns, starts), shape=(n_samples * n_classes, layout.n_cells))
