"""The tables of the comparison: at most 2,500 complete rows of each raw data set."""

from dataclasses import replace

import numpy as np
from sklearn.model_selection import train_test_split

from tanlearn.sources.datasets import load_npz

#: Largest number of rows; larger sets are replaced by a stratified random sample. Most searches score all rows in each
#: step, and a comparison of 40 tables is to end within hours.
MOST_ROWS = 2_500
#: All raw sets except those with 256 pixels or more (mnist, usps) and the one with classes of single rows (kddcup99).
NAMES = (
    *("adult", "ann-thyroid", "australian", "balance-scale", "breast", "car", "chess", "churn", "cleve", "cmc"),
    *("corral", "crx", "dermatology", "diabetes", "flare", "german", "glass", "glass2", "heart", "hepatitis"),
    *("ionosphere", "iris", "krkopt", "led24", "letter", "lymphography", "mofn-3-7-10", "mushroom", "optdigits"),
    *("page-blocks", "pima", "satimage", "segment", "shuttle", "sleep", "soybean-large", "spambase", "tic-tac-toe"),
    *("vehicle", "vote", "waveform-21", "waveform-40", "wine-quality-white", "yeast"),
)
#: Sets that share rows or their distribution with another set; statistics over data sets leave them out.
TWINS = ("crx", "pima", "glass2", "heart", "waveform-40")


def load(name, folder):
    """Return a data set without predefined splits.

    Rows with missing values are left out, as in the papers: wrapper searches need complete rows. Classes with fewer
    than five complete rows are left out, because each fold tests all classes.
    """
    dataset = load_npz(folder / "raw" / f"{name}.npz")
    rows = np.flatnonzero(~np.isnan(dataset.X.astype(float)).any(axis=1))
    _, codes, sizes = np.unique(dataset.y[rows], return_inverse=True, return_counts=True)
    rows = rows[sizes[codes] >= 5]
    if len(rows) > MOST_ROWS:
        rows, _ = train_test_split(rows, train_size=MOST_ROWS, stratify=dataset.y[rows], random_state=0)
        rows = np.sort(rows)
        _, codes, sizes = np.unique(dataset.y[rows], return_inverse=True, return_counts=True)
        rows = rows[sizes[codes] >= 5]  # a rare class may lose rows to the sample
    return replace(dataset, X=dataset.X[rows], y=dataset.y[rows], folds=None)
