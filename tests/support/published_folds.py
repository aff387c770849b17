"""The published folds, where they are at hand."""

from pathlib import Path

import numpy as np

from tanlearn import EncodedData

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "discretized"


def folds(name):
    """Training and test data of every fold; codes start at 1, and states are those of both parts."""
    with np.load(DATA / f"{name}.npz") as file:
        for k in range(1, int(file["n_folds"]) + 1):
            x, y, x_test, y_test = (file[f"{part}_fold{k}"].astype(int) for part in ("x_tr", "t_tr", "x_te", "t_te"))
            n_states = np.maximum(x.max(axis=0), x_test.max(axis=0))
            yield tuple(EncodedData.from_codes(a - 1, b, n_states=n_states) for a, b in ((x, y), (x_test, y_test)))
