"""Training of the terms of a tree by losses that contain the joint likelihood of rows and classes.

The score is the sum S(x, y) of the terms. With class-independent terms f (see :mod:`tanlearn.terms.row_likelihood`),

    p(x, y) = exp(S(x, y) + f(x)) / Z,    Z = sum over all x and y of exp(S(x, y) + f(x)),

is a distribution, and -log p is convex in S and f. One pass of messages in each direction returns log Z and its
gradient, the marginals of p. Losses of posteriors do not depend on f and Z.
"""

from __future__ import annotations

import numpy as np

from tanlearn._typing import FloatArray, missing_code
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.models.term_tables import TermColumn
from tanlearn.structures.structures import Structure
from tanlearn.terms.basis import TermBasis
from tanlearn.terms.fitting import Ridges, TermFit
from tanlearn.terms.losses import is_generative
from tanlearn.terms.row_likelihood import add_row_terms, column_frequencies, independent_row_terms
from tanlearn.terms.term_tree import TermTree
from tanlearn.training.losses import JointNLL, Loss
from tanlearn.training.objectives import Objective
from tanlearn.training.parametrizations import Unnormalized

__all__ = ["JointTermFit", "build_fit", "joint_frequencies"]


def build_fit(basis: TermBasis, data: EncodedData, loss: Loss) -> TermFit:
    """Return the objective of the terms of a network for a loss."""
    return (JointTermFit if is_generative(loss) else TermFit)(basis, data, loss)


def joint_frequencies(column: TermColumn, data: EncodedData, p_class: FloatArray) -> FloatArray:
    """Return the smoothed frequencies (n_cells, n_classes) of cells and classes, with the sum ``p_class``.

    Frequencies are computed from the rows without a missing value in the column, and one additional row. The features
    of this row are independent, as in :func:`column_frequencies`, and its class is uniformly distributed.
    """
    n_classes = data.n_classes
    cell = column.cells_of([data.codes[i] for i in column.features], missing_code(data.codes.dtype))
    size = (column.n_cells + 1) * n_classes
    counts = np.bincount(cell * n_classes + data.y, data.in_whole_rows().weights, size).reshape(-1, n_classes)[:-1]
    of_cells = counts.sum(axis=1)
    one_more = column_frequencies(column, data) * (of_cells.sum() + 1) - of_cells
    # Rounding must not make frequencies negative.
    smoothed = counts + np.maximum(one_more, np.finfo(float).tiny)[:, np.newaxis] / n_classes
    frequencies: FloatArray = smoothed / smoothed.sum(axis=0) * p_class
    return frequencies


class JointTermFit(TermFit):
    """Objective of the terms of a tree: the joint likelihood, or its sum with a loss of posteriors.

    The parameters are a flat vector of the class prior, the terms and the class-independent terms of all columns. Only
    the terms have a penalty. Up to log Z, the likelihood of a row is linear in the scores, so only the frequencies of
    cells and classes matter. They are smoothed by one additional row, so that the likelihood has a maximum. The
    frequencies of a column are computed from the rows without a missing value in this column.
    """

    def __init__(self, basis: TermBasis, data: EncodedData, loss: Loss) -> None:
        super().__init__(basis, data, loss)
        n = data.n_classes
        parents = np.full(data.n_features, -1)
        for column in basis.columns[data.n_features :]:
            parents[column.features[0]] = column.features[1]
        self._tree = TermTree(basis.columns, Structure(parents))
        p_class = (np.bincount(data.y, data.in_whole_rows().weights, n) + 1 / n) / (self._total + 1)
        of_columns = [joint_frequencies(column, data, p_class) for column in basis.columns]
        of_classes = [self._tree.in_agreement([one[:, c] for one in of_columns]) for c in range(n)]
        frequencies = np.stack([np.concatenate(one) for one in of_classes], axis=1)
        self._frequencies: FloatArray = frequencies.sum(axis=1)
        ends = np.cumsum(basis.n_states)
        self._is_observed = np.ones(int(ends[-1]), np.bool_)
        self._is_observed[ends - 1] = False  # the last cell of a column stands for missing values
        # The loss contains -s_y of each row, of which the gradient are negative frequencies without smoothing.
        rows = EncodedData(basis.encode(data.codes), basis.n_states, data.y, n, data.sample_weight)
        likelihood = Objective(self._layout, rows, JointNLL(), parametrization=Unnormalized)
        _, of_rows = likelihood(np.zeros(self._layout.n_cells))
        self._correction = -of_rows - self._flat(p_class, frequencies)
        row_terms = independent_row_terms(basis.columns, self._tree.split(self._frequencies))
        self._n_own_cells = sum(len(one) for one in row_terms[: data.n_features])
        self.start = np.concatenate([self.start, *row_terms])

    def warm_start(self, parameters: FloatArray) -> FloatArray:
        """Return initial parameters, with class prior and curves of a network that has other edges."""
        start, n_own, first = self.start.copy(), self._n_own_parameters, self._terms.stop
        start[:n_own] = parameters[:n_own]
        if len(parameters) == n_own + self._n_own_cells:  # the other network has no edges
            start[first : first + self._n_own_cells] = parameters[n_own:]
        return start

    def _scale(self, ridges: Ridges) -> FloatArray:
        """Return the factors of all parameters. Factors of class-independent terms are roots of inverse curvatures."""
        return np.append(super()._scale(ridges), 1 / np.sqrt(self._total * self._frequencies))

    def _mean_loss(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """Return the mean loss of the rows, without the penalty, and its gradient."""
        n = self.n_classes
        cells, row_terms = self._cells(parameters), parameters[self._terms.stop :]
        value, d_cells = self._objective(cells)
        values = self.basis.split(cells[n:].reshape(-1, n))
        found = self._tree.marginals(cells[:n], add_row_terms(values, self._tree.split(row_terms)))
        marginals = np.concatenate(found.columns)
        value += found.log_z + float((self._correction * cells).sum() - (self._frequencies * row_terms).sum())
        d_cells = d_cells + self._correction + self._flat(found.p_class, marginals)
        return value, np.append(self._pull_back(d_cells), marginals.sum(axis=1) - self._frequencies)

    def _flat(self, of_prior: FloatArray, of_cells: FloatArray) -> FloatArray:
        """Return one vector of the values of the prior and of the cells of all columns, with 0 for missing values."""
        cells = np.zeros((len(self._is_observed), self.n_classes))
        cells[self._is_observed] = of_cells
        return np.append(of_prior, cells.ravel())
