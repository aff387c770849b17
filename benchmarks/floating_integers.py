"""Are whole numbers in a floating column with gaps categories, or a quantity? Errors by how many count as categories.

    python benchmarks/floating_integers.py    # ten seconds; digits is scikit-learn's, the others are raw data sets

3 % of the cells are deleted at random, so that pandas and NumPy make floating numbers of all columns. Categorical are
then those whose other values are whole numbers, with at most so many distinct ones as the limit says; the rest is
discretised. Printed: errors over five stratified folds. `TableEncoder` has the limit MAX_FLOATING_CATEGORIES.
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import StratifiedKFold, cross_val_score

from tanlearn import BayesNetClassifier, NaiveBayesClassifier, TableEncoder
from tanlearn.baselines import ChowLiu

DATA = Path(__file__).parents[2] / "shared" / "data" / "raw"
SETS = ["digits", "diabetes", "crx", "letter"]
LIMITS = [0, 10, 64]
SHARE = 0.03


def load(name, folder):
    """Return a table of floating numbers with gaps, and its classes."""
    if name == "digits":
        X, y = load_digits(return_X_y=True)
    else:
        with np.load(folder / f"{name}.npz", allow_pickle=True) as file:
            X, y = file["X"].astype(float), file["y"]
    X[np.random.default_rng(0).random(X.shape) < SHARE] = np.nan
    return X, y


def is_categorical(column, limit):
    """Return whether what is there are whole numbers, at most so many distinct ones."""
    values = np.unique(column[~np.isnan(column)])
    return (values == np.floor(values)).all() and len(values) <= limit


def error_rate(model, X, y):
    """Return the share of rows that are wrong over five folds."""
    return 1 - cross_val_score(model, X, y, cv=StratifiedKFold(5, shuffle=True, random_state=0)).mean()


def main(argv=None):
    """Print a row a data set and limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sets", nargs="+", default=SETS)
    arguments = parser.parse_args(argv)
    print("| data set | limit | categorical columns | naive Bayes [%] | Chow-Liu TAN [%] |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name in arguments.sets:
        X, y = load(name, arguments.data)
        for limit in LIMITS:
            mask = np.array([is_categorical(column, limit) for column in X.T])
            encoder = TableEncoder(discrete_features=mask)
            models = NaiveBayesClassifier(encoder=encoder), BayesNetClassifier(structure=ChowLiu(), encoder=encoder)
            errors = " | ".join(f"{100 * error_rate(model, X, y):.2f}" for model in models)
            print(f"| {name} | {limit} | {mask.sum()} of {len(mask)} | {errors} |", flush=True)


if __name__ == "__main__":
    main()
