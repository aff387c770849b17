"""CVX-MM: the widest margin as a convex programme (maximum margin, section 5.3, eq. 9, after Guo et al. 2005).

With the log-probabilities w free to sum to less than one, the margins are linear in w and the constraints convex::

    minimise    1 / (2 gamma^2) + B sum_m eps_m
    subject to  (phi(y_m, x_m) - phi(c, x_m)) w >= gamma - eps_m   for all rows m and classes c other than y_m
                sum_i exp(w_i|h) <= 1                              for all distributions
                gamma >= 0,  eps_m >= 0

where phi(c, x) marks the cells that the log joint of class c adds up. Re-normalisation then moves what the
distributions lack from children to parents, without a change of the posteriors.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.special import logsumexp
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval

from tanlearn._typing import AnyArray, Codes, FloatArray, IntArray, missing_code
from tanlearn.data.encoded_data import EncodedData
from tanlearn.kernels.scores import family_rows
from tanlearn.network.structures import Structure
from tanlearn.network.tables import TableLayout, Tables

__all__ = ["ConvexRelaxation", "distinct_rows", "margin_rows", "renormalize"]


class ConvexRelaxation(BaseEstimator):
    """The convex relaxation of maximum-margin learning, solved by CVXPY (``pip install "tanlearn[convex]"``).

    For small data only: the programme has ``n_classes - 1`` inequalities of ``2 (n_features + 1)`` numbers for every
    distinct row and an exponential cone for every cell. 400 rows of 10 features and 10 classes take a second, 200
    rows of 64 features 10 s, and the paper reports 54 hours for MNIST. ``ConjugateGradient(loss=Margin())``
    reaches like accuracy on anything.

    Parameters
    ----------
    slack : float, default=1e-3
        Price of a nat by which a row of weight 1 misses the margin, the paper's B, above 0. The paper takes 1 and
        2^-8.
    epsilon : float or None, default=1e-5
        Least value of a probability before re-normalisation, to be below one over the number of values of every
        feature. None is eq. 9 as the paper has it; see the notes.
    solver : str, optional
        Name of an installed CVXPY solver of exponential cones; by default CVXPY's choice, Clarabel.

    Attributes
    ----------
    objective_ : float
        The value of eq. 9 that was reached.
    margin_ : float
        gamma, in nats.
    n_iter_ : int or None
        Iterations as the solver counts them, None if it does not tell. Values on the way it tells to nobody, so there
        is no ``history_``.
    converged_ : bool
        Whether the solver is sure of the optimum; if not, it warned.

    Notes
    -----
    Without ``epsilon`` nothing keeps w from growing: one number taken off all cells of a table leaves the margins as
    they are, so that the sums stay below one whatever the scale of w. Then gamma has no bound where the classes can
    be separated, and elsewhere ``slack`` scales w and does not change the decisions.

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
        """Return the tables of a structure.

        Parameters
        ----------
        structure : Structure
            The augmenting parents; where a feature has two, one of them must be the parent of the other.
        data : EncodedData
            Complete rows.
        rng : numpy.random.Generator
            Not used: there is nothing random.

        Returns
        -------
        Tables

        Raises
        ------
        ImportError
            If CVXPY is not installed.
        ValueError
            If a value is missing, the tables of this structure cannot be re-normalised, or ``epsilon`` is too large.
        RuntimeError
            If the solver finds no optimum.

        Warns
        -----
        UserWarning
            If the solver says that its optimum may be inaccurate.
        """
        self._validate_params()
        data.require_complete("The convex relaxation")
        _hosts(structure)  # whether it can be done at all, before it takes its time
        layout = TableLayout.of_parents(structure.parents, data.n_states, data.n_classes)
        layout.check_memory(data.n_samples)
        largest = int(layout.groups()[0].max())
        if self.epsilon is not None and self.epsilon * largest >= 1:
            raise ValueError(
                f"epsilon must be below one over the number of values, got {self.epsilon} and a distribution over "
                f"{largest} values. Lower it."
            )
        return renormalize(structure, Tables(layout, self._solve(layout, data.in_whole_rows())))

    def _solve(self, layout: TableLayout, data: EncodedData) -> FloatArray:
        """Return the optimal w and set ``objective_`` and ``margin_``."""
        from scipy.sparse import csr_array

        cvxpy = _cvxpy()
        # Equal rows have equal slack.
        distinct, price = distinct_rows(data)
        n_samples = distinct.n_samples
        delta, sample = margin_rows(layout, distinct)
        slack_of = csr_array((np.ones(len(sample)), (np.arange(len(sample)), sample)), shape=(len(sample), n_samples))
        sums = csr_array((np.ones(layout.n_cells), (layout.distributions(), np.arange(layout.n_cells))))

        w, gamma, eps = cvxpy.Variable(layout.n_cells), cvxpy.Variable(), cvxpy.Variable(n_samples, nonneg=True)
        # In units of all rows' slack, so that Clarabel failed or was inaccurate in 1 of 18 trials, and not in 9.
        unit = self.slack * price.sum()
        value = cvxpy.power(gamma, -2) / (2 * unit) + (price / price.sum()) @ eps
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
                f"the convex relaxation was not solved: {status}. Set epsilon or raise it, change slack (a margin of "
                f"about 1 nat suits solvers), or name another solver."
            )
        self.objective_, self.margin_ = float(problem.value) * unit, float(gamma.value)
        self.n_iter_, self.converged_ = problem.solver_stats.num_iters, status == cvxpy.OPTIMAL
        return np.asarray(w.value)


def renormalize(structure: Structure, tables: Tables) -> Tables:
    """Return tables of the same posteriors whose distributions sum to one.

    Children come before their parents. What the values of a feature add up to, given its parents and the class, is
    taken out of its table and put into that of a parent, which depends on all of these, or into the class prior.
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
    """Return CVXPY, which an extra installs."""
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
    """Return for every feature the parent whose table depends on all its parents, or -1 if it has none."""
    if not structure.is_acyclic:
        raise ValueError(
            "the structure has a cycle, so its tables cannot be re-normalised. Remove an edge of it, or learn with "
            "ConjugateGradient(loss=Margin())."
        )
    hosts = []
    for i in range(structure.n_features):
        given = _given(structure, i)
        able = [j for j in given if set(given) <= {j, *_given(structure, j)}]
        if given and not able:
            raise ValueError(
                f"feature {i} has the parents {' and '.join(map(str, given))}, none of which has the others as its "
                f"parents, so its table cannot be re-normalised without a change of the posteriors. Add such edges, or "
                f"learn with ConjugateGradient(loss=Margin())."
            )
        hosts.append(able[0] if able else -1)
    return hosts


def distinct_rows(data: EncodedData) -> tuple[EncodedData, FloatArray]:
    """Return rows of positive weight of which no two are equal, and what their equals weigh together.

    Shapes: result weight: (n_distinct,).
    """
    _, first, row = np.unique(np.vstack([data.codes, data.y]), axis=1, return_index=True, return_inverse=True)
    weight: AnyArray = np.bincount(row.ravel(), data.weights)
    return data.take(first[weight > 0]), weight[weight > 0]


def margin_rows(layout: TableLayout, data: EncodedData) -> tuple[Any, IntArray]:
    """Return what cells are multiplied by in the margins of true classes over all others.

    Shapes: result margins: (n_samples * (n_classes - 1); result sample: (n_samples * (n_classes - 1).
    """
    n_classes = layout.n_classes
    phi = _indicators(layout, data.codes)
    other = np.flatnonzero(np.arange(n_classes) != data.y[:, np.newaxis])
    sample = other // n_classes
    return phi[sample * n_classes + data.y[sample]] - phi[other], sample


def _indicators(layout: TableLayout, codes: Codes) -> Any:
    """Return phi: a row for every sample and class (classes fastest), a one in every cell that its log joint adds."""
    from scipy.sparse import csr_array

    n_samples, n_classes = codes.shape[1], layout.n_classes
    cells = np.zeros((1 + layout.n_tables, n_samples), np.intp)  # of class 0; the prior first
    for table, rows in enumerate(cells[1:]):
        family = layout.child[table], layout.parents[table], layout.n_states
        family_rows(codes, 0, *family, missing_code(codes.dtype), rows)
        rows *= n_classes
        rows += layout.offset[table]
    columns = (cells.T[:, np.newaxis, :] + np.arange(n_classes)[:, np.newaxis]).ravel()
    starts = np.arange(0, columns.size + 1, len(cells))
    return csr_array((np.ones(columns.size), columns, starts), shape=(n_samples * n_classes, layout.n_cells))
