"""How often tables are wrong."""

import numpy as np

from tanlearn.network.inference import log_joint


def error_of(structure, part, tables):
    """Return the share of a part's rows that tables get wrong."""
    return round(float(np.mean(log_joint(tables, structure, part.codes).argmax(axis=1) != part.y)), 8)
