"""Errors of CPTs."""

import numpy as np

from tanlearn.models.log_joint import log_joint


def error_of(structure, part, tables):
    """Return the share of wrongly classified rows of a part."""
    return round(float(np.mean(log_joint(tables, structure, part.codes).argmax(axis=1) != part.y)), 8)


def errors_of(structure, part, test, tables):
    """Return the errors on the rows of a part and on the test rows, which may be the same."""
    error = error_of(structure, part, tables)
    return {"error": error, "test_error": error if part is test else error_of(structure, test, tables)}
