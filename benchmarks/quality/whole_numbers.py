"""When are whole numbers categories, and when a quantity to be discretised? Errors by the rule, which sees values only.

    python -m benchmarks.quality.whole_numbers                    # three minutes
    python -m benchmarks.quality.whole_numbers --sets digits car  # errors of these, one by one

Every column of a table comes as floating numbers, codes of categories too, as `OrdinalEncoder` makes them. A column is
categorical if its values are whole, and at most so many distinct ones as the limit says. All others are discretised.
digits is scikit-learn's, the others are raw data sets. The rule was chosen on one half of the tables (those of one kin,
like heart and cleve, lie in the same half), the other half had no part in the choice. Printed: means over the tables of
the errors over five stratified folds, of 5,000 rows at most; conditional likelihood is trained on small tables only.
`TableEncoder` has the limit MAX_NUMERIC_CATEGORIES. `whole_numbers.md` is what this printed.
"""

import warnings
from pathlib import Path

import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_score

from benchmarks import DATA, command_line
from benchmarks.shared.data import load_table
from benchmarks.shared.reports import decimals, markdown_table
from tanlearn import BayesNetClassifier, ConditionalNLL, ConjugateGradient, NaiveBayesClassifier, TableEncoder
from tanlearn.baselines import ChowLiu

CHOOSING = [
    "australian", "balance-scale", "churn", "cleve", "cmc", "corral", "crx", "digits", "heart", "hepatitis", "led24",
    "letter", "lymphography", "mofn-3-7-10", "optdigits", "satimage", "shuttle", "sleep", "tic-tac-toe", "vehicle",
]  # fmt: skip
HELD_OUT = [
    "adult", "ann-thyroid", "breast", "car", "chess", "dermatology", "diabetes", "flare", "german", "ionosphere",
    "krkopt", "mushroom", "page-blocks", "pima", "segment", "soybean-large", "spambase", "vote",
]  # fmt: skip
LIMITS = (0, 2, 5, 8, 10, 12, 16, 24, 64)
N_ROWS = 5000
SMALL = 40_000


def load(name, folder):
    """Return a table of floating numbers with gaps, and its classes of at least five rows."""
    X, y = load_table(name, folder)
    rows = np.random.default_rng(0).permutation(len(y))[:N_ROWS]
    rows = rows[np.bincount(y[rows])[y[rows]] >= 5]
    return X[rows], y[rows]


def is_categorical(column, limit):
    """Return what the rule says of a column."""
    values = np.unique(column[~np.isnan(column)])
    return len(values) <= limit and (values == np.floor(values)).all()


def errors_by_limit(name, folder):
    """Return for every limit how many columns are categorical, and the errors of the learners."""
    X, y = load(name, folder)
    found, known = {}, {}
    for limit in LIMITS:
        mask = np.array([is_categorical(column, limit) for column in X.T])
        if mask.tobytes() not in known:
            encoder = TableEncoder(discrete_features=mask)
            likelihood = ConjugateGradient(loss=ConditionalNLL(), max_iter=20)
            models = [
                NaiveBayesClassifier(encoder=encoder),
                BayesNetClassifier(structure=ChowLiu(), encoder=encoder),
                BayesNetClassifier(structure=ChowLiu(), parameters=likelihood, encoder=encoder),
            ]
            models = models[: 3 if X.size * len(set(y)) < SMALL else 2]
            folds = StratifiedKFold(5, shuffle=True, random_state=1)
            rates = [100 - 100 * cross_val_score(model, X, y, cv=folds, error_score="raise").mean() for model in models]
            known[mask.tobytes()] = rates + [np.nan] * (3 - len(rates))
        found[limit] = mask.sum(), known[mask.tobytes()]
    return found


def main(argv=None):
    """Print a row a limit, for both halves or for every table asked for."""
    warnings.filterwarnings("ignore", message="discretization left|no value in")
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sets", nargs="+")
    arguments = parser.parse_args(argv)
    halves = {"choosing": CHOOSING, "held out": HELD_OUT}
    parts = {name: [name] for name in arguments.sets} if arguments.sets else halves
    for part, names in parts.items():
        print(f"\n{part}: {len(names)} table(s)\n")
        rows = []
        found = [errors_by_limit(name, arguments.data) for name in names]
        for limit in LIMITS:
            columns = sum(table[limit][0] for table in found)
            rates = zip(*(table[limit][1] for table in found), strict=True)
            means = [np.mean([rate for rate in kind if rate == rate] or [np.nan]) for kind in rates]
            rows.append([f"{limit}", f"{columns}", *map(decimals, means)])
        header = ["limit", "categorical columns", "naive Bayes [%]", "Chow-Liu TAN [%]"]
        print(markdown_table([*header, "by conditional likelihood [%]"], rows), flush=True)


if __name__ == "__main__":
    main()
