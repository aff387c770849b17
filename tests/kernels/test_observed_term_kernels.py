"""Sums of terms of observed parent values, and their transpose, for a CPT by hand."""

import numpy as np

from tanlearn.kernels.observed_terms import pull_back_terms, sum_terms

#: Two classes, a child with two values, and three observed contexts of two parents: (0, 0), (0, 1) and (1, 1).
TERMS = np.array([[2, 2, 3, 1, 0], [2, 2, 3, 2, 3], [2, 2, 3, 2, 6], [2, 2, 3, 3, -1]])
COLUMNS = np.array([0, 0, 0, 0, 0, 1, 0, 1, 1])
PARAMETERS = np.arange(2 + 2 * 2 * (1 + 2 + 2 + 3), dtype=float) ** 2


def by_hand(parameters):
    prior, alone, first, second, both = np.split(parameters, np.cumsum([2, 4, 8, 8]))
    alone, first, second, both = (term.reshape(2, -1, 2) for term in (alone, first, second, both))
    table = alone + first[:, [0, 0, 1]] + second[:, [0, 1, 1]] + both
    return np.append(prior, table)


def test_sums_and_their_transpose_equal_a_matrix():
    cells, d_parameters = np.full(14, np.nan), np.full(len(PARAMETERS), np.nan)
    sum_terms(PARAMETERS, TERMS, COLUMNS, 2, cells)
    np.testing.assert_array_equal(cells, by_hand(PARAMETERS))
    matrix = np.stack([by_hand(unit) for unit in np.eye(len(PARAMETERS))], axis=1)
    d_cells = np.arange(14.0)
    pull_back_terms(d_cells, TERMS, COLUMNS, 2, d_parameters)
    np.testing.assert_array_equal(d_parameters, matrix.T @ d_cells)
