"""Are columns of integers categorical, or numeric and discretized? Errors by the limit of the rule.

    python -m benchmarks.quality.whole_numbers                    # three minutes
    python -m benchmarks.quality.whole_numbers --sets digits car  # errors of these, one by one

All columns are floating-point numbers, including codes of categories, as `OrdinalEncoder` returns them. A column is
categorical if its values are integers and their number is at most the limit. All others are discretized. digits is
scikit-learn's, the others are raw data sets. The limit was chosen on one half of the tables; related tables, such as
heart and cleve, are in the same half. The command prints means over the tables of the errors over five stratified
folds, of at most 5,000 rows; conditional likelihood is trained on small tables only. `TableEncoder` has the limit
MAX_NUMERIC_CATEGORIES. `whole_numbers.md` is the output of this command.
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
    """Return a table of numbers with missing values, and its classes with at least five rows."""
    X, y = load_table(name, folder)
    rows = np.random.default_rng(0).permutation(len(y))[:N_ROWS]
    rows = rows[np.bincount(y[rows])[y[rows]] >= 5]
    return X[rows], y[rows]


def is_categorical(column, limit):
    """Return whether a column is categorical by the rule."""
    values = np.unique(column[~np.isnan(column)])
    return len(values) <= limit and (values == np.floor(values)).all()


def errors_by_limit(name, folder):
    """Return the number of categorical columns and the errors of the learners for every limit."""
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
    """Print one row per limit, for both halves or for the given tables."""
    warnings.filterwarnings("ignore", message="discretization left|no value in")
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sets", nargs="+")
    arguments = parser.parse_args(argv)
    halves = {"choosing": CHOOSING, "held out": HELD_OUT}
    parts = {name: [name] for name in arguments.sets} if arguments.sets else halves
    for part, names in parts.items():
        print(f"\n{part}: {len(names)} data set{'s' * (len(names) != 1)}\n")
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
