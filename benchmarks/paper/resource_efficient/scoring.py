"""How often tables are wrong."""

import numpy as np

from tanlearn.network.inference import log_joint


def error_of(structure, part, tables):
    """Return the share of a part's rows that tables get wrong."""
    return round(float(np.mean(log_joint(tables, structure, part.codes).argmax(axis=1) != part.y)), 8)


def errors_of(structure, part, test, tables):
    """Return a line's errors: on its part's rows, and on the test rows, which the part's may be."""
    error = error_of(structure, part, tables)
    return {"error": error, "test_error": error if part is test else error_of(structure, test, tables)}
