"""CPT entries of observed parent values as sums of terms, and the transpose.

A term contains one number for each value of the child, each combination of its own parents' values in the rows
(``width``), and each class. Each entry of a CPT is the sum of one number of each of its terms.
"""
# Shapes: C classes, S terms of all CPTs, M CPT entries, P parameters; the first C entries and parameters are the prior
# terms (S, 5): start of the CPT in the entries, number of values of the child, contexts of the CPT, width, and start of
# the term in ``columns``, -1 if the term has all parents of the CPT; parameters (P,) has the terms in this order
# columns: for each context of a CPT, its combination of the parents' values of a term
# cells, d_cells (M,): entries [value of the child][context][class]

from __future__ import annotations

from tanlearn.kernels._jit import kernel


@kernel
def sum_terms(parameters, terms, columns, n_classes, cells):  # type: ignore[no-untyped-def]
    """Write the sums of the terms."""
    for c in range(n_classes):
        cells[c] = parameters[c]
    cells[n_classes:] = 0.0
    first = n_classes
    for s in range(terms.shape[0]):
        begin, n_values, n_contexts, width, start = terms[s]
        if start < 0:  # a number for each context
            for j in range(n_values * n_contexts * n_classes):
                cells[begin + j] += parameters[first + j]
            first += n_values * n_contexts * n_classes
            continue
        for x in range(n_values):
            own = first + x * width * n_classes
            out = begin + x * n_contexts * n_classes
            for k in range(n_contexts):
                at = own + columns[start + k] * n_classes
                for c in range(n_classes):
                    cells[out + k * n_classes + c] += parameters[at + c]
        first += n_values * width * n_classes


@kernel
def pull_back_terms(d_cells, terms, columns, n_classes, d_parameters):  # type: ignore[no-untyped-def]
    """Write the transpose of :func:`sum_terms` applied to ``d_cells``."""
    for c in range(n_classes):
        d_parameters[c] = d_cells[c]
    d_parameters[n_classes:] = 0.0
    first = n_classes
    for s in range(terms.shape[0]):
        begin, n_values, n_contexts, width, start = terms[s]
        if start < 0:  # a number for each context
            for j in range(n_values * n_contexts * n_classes):
                d_parameters[first + j] = d_cells[begin + j]
            first += n_values * n_contexts * n_classes
            continue
        for x in range(n_values):
            own = first + x * width * n_classes
            out = begin + x * n_contexts * n_classes
            for k in range(n_contexts):
                at = own + columns[start + k] * n_classes
                for c in range(n_classes):
                    d_parameters[at + c] += d_cells[out + k * n_classes + c]
        first += n_values * width * n_classes
