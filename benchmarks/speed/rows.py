"""Time to predict single rows, compared with scikit-learn: python -m benchmarks.speed.rows

The table has 2,000 rows of 20 mixed columns and three classes. Each learner predicts single rows: through
``row_predictor()``, with all values present, with two missing values and with an unseen category, and through
``predict_proba`` of the classifier. The peer is a random forest of 300 trees, behind an ordinal encoder. Times are
medians of the process time.
"""

import statistics
import time
import warnings
from functools import partial

from sklearn.ensemble import RandomForestClassifier
from sklearn.preprocessing import OrdinalEncoder

from benchmarks import command_line
from benchmarks.suite.shapes import make_mixed_rows
from tanlearn import (
    BayesEnsembleClassifier,
    BayesForestClassifier,
    BayesNetClassifier,
    KTreeClassifier,
    NaiveBayesClassifier,
    TANClassifier,
    TermNetClassifier,
)
from tanlearn.baselines import ChowLiu

LEARNERS = {
    "naive Bayes": NaiveBayesClassifier(),
    "Chow-Liu": BayesNetClassifier(structure=ChowLiu()),
    "gradient TAN": TANClassifier(n_epochs=5, random_state=0),
    "gradient k-tree": KTreeClassifier(n_epochs=5, random_state=0),
    "network of terms": TermNetClassifier(random_state=0),
    "network of terms, two parents": TermNetClassifier(max_parents=2, random_state=0),
    "forest": BayesForestClassifier(random_state=0),
    "ensemble": BayesEnsembleClassifier(random_state=0),
}


def microseconds(work, repeats, least=0.05):
    """Return the median time of a call, from several runs of at least ``least`` seconds."""
    work()
    found = []
    n_calls = 1
    while len(found) < repeats:
        started = time.process_time()
        for _ in range(n_calls):
            work()
        seconds = time.process_time() - started
        if seconds >= least:
            found.append(seconds / n_calls * 1e6)
        else:
            n_calls *= 2
    return statistics.median(found)


def main():
    """Read the command line, and print the table."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--repeats", type=int, default=5, help="repeats of each measurement; the median is printed")
    parser.add_argument("--learners", nargs="+", choices=LEARNERS, default=list(LEARNERS), help="rows of the table")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y = make_mixed_rows(2_000, 20)
    complete = tuple(X[0])
    incomplete = (*complete[:2], None, float("nan"), *complete[4:])
    unseen = (*complete[:4], "new", *complete[5:])

    def timed(work):
        return f"{microseconds(work, arguments.repeats):,.1f}"

    print(
        "| µs per row | class | probabilities | two values missing | unseen category | `predict_proba` of the table |"
    )
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name in arguments.learners:
        model = LEARNERS[name].fit(X, y)
        predictor = model.row_predictor()
        found = [timed(partial(predictor.predict, complete))]
        found += [timed(partial(predictor.predict_proba, row)) for row in (complete, incomplete, unseen)]
        print(f"| {name} | {' | '.join(found)} | {timed(partial(model.predict_proba, X[:1]))} |", flush=True)
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1).fit(X)
    peer = RandomForestClassifier(300, random_state=0).fit(encoder.transform(X), y)
    print(
        f"| scikit-learn, RandomForest(300) | | | | | {timed(lambda: peer.predict_proba(encoder.transform(X[:1])))} |"
    )


if __name__ == "__main__":
    main()
