"""Naive Bayes and Chow-Liu TAN in several libraries: one process, one thread each, the same rows.

    pip install -e ".[peers]"
    python -m benchmarks.peers                # measure; writes results.json, README.md and classics.png
    python -m benchmarks.peers --report-only  # table and plot from results.json, without the peers

Times are medians of a few calls. Before the measurement, each library is called with a few rows, so that it compiles
and loads. Each library receives the data in its own format. All libraries smooth CPTs with one count per entry, and the
report lists the differences."""

import json
import os
import platform
import time
import warnings
from dataclasses import dataclass
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks import DATA, command_line
from benchmarks.shared.data import n_values, published_folds
from tanlearn import BayesNetClassifier, EncodedData, NaiveBayesClassifier, PairCounts, TableEncoder
from tanlearn.baselines import ChowLiu
from tanlearn.models.log_joint import log_joint

from .report import COUNTS, NAIVE_BAYES, TAN, write_report

HERE = Path(__file__).parent
#: Calls are not repeated after so many seconds.
PATIENCE = 5.0
#: Columns of the fit from which the time of the whole fit is predicted.
PROBE = 16


@dataclass(frozen=True)
class Table:
    """Training and test part of a data set; codes start at 0."""

    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    n_states: np.ndarray

    @classmethod
    def load(cls, path):
        """Return the published first fold."""
        x, y, x_test, y_test = next(published_folds(path))
        return cls(x, y, x_test, y_test, n_values(x, x_test))

    def first_columns(self, n_columns, step=1):
        """Return the first columns of every ``step``-th training row, and the first of these rows as test part."""
        x, y = self.x[::step, :n_columns], self.y[::step]
        return Table(x, y, x[:5], y[:5], self.n_states[:n_columns])


class Tanlearn:
    """The estimators as a user calls them, with all checks of input."""

    name, tasks, n_rows = "tanlearn", (NAIVE_BAYES, TAN), None
    encoder = TableEncoder(discrete_features=True, n_jobs=1)
    learners = {
        NAIVE_BAYES: NaiveBayesClassifier(encoder=encoder, n_jobs=1),
        TAN: BayesNetClassifier(structure=ChowLiu(n_jobs=1), encoder=encoder, n_jobs=1),
    }

    def convert(self, table):
        return (table.x, table.y), table.x_test

    def fit(self, task, training):
        return self.learners[task].fit(*training)

    def predict(self, model, rows):
        return model.predict(rows)

    def n_edges(self, model):
        return int((model.structure_.parent >= 0).sum())


class TanlearnEncoded(Tanlearn):
    """The same estimators, fitted to codes as in searches."""

    name = "tanlearn, encoded"

    def convert(self, table):
        data = EncodedData.from_codes(table.x, table.y, n_states=table.n_states)
        return (data,), EncodedData.from_codes(table.x_test, table.y_test, n_states=table.n_states).codes

    def fit(self, task, training):
        return self.learners[task].fit_encoded(*training)

    def predict(self, model, rows):
        return log_joint(model.tables_, model.structure_, rows, n_jobs=1).argmax(axis=1)


class ScikitLearn:
    """CategoricalNB; scikit-learn has no TAN."""

    name, tasks, n_rows = "scikit-learn", (NAIVE_BAYES,), None

    def convert(self, table):
        return (table.x, table.y, table.n_states), table.x_test

    def fit(self, task, training):
        from sklearn.naive_bayes import CategoricalNB

        x, y, n_states = training
        return CategoricalNB(min_categories=n_states).fit(x, y)

    def predict(self, model, rows):
        return model.predict(rows)

    def n_edges(self, model):
        return 0


class PyAgrum:
    """BNClassifier with one smoothing count per CPT entry."""

    name, tasks, n_rows = "pyAgrum", (NAIVE_BAYES, TAN), None

    def __init__(self):
        import pyagrum

        pyagrum.setNumberOfThreads(1)
        warnings.filterwarnings("ignore", message="A classifier with too many possible values")

    def convert(self, table):
        return (table.x, table.y), table.x_test

    def fit(self, task, training):
        from pyagrum.lib.discreteTypeProcessor import DiscreteTypeProcessor
        from pyagrum.skbn import BNClassifier

        method = "NaiveBayes" if task == NAIVE_BAYES else "TAN"
        as_they_are = DiscreteTypeProcessor(discretizationThreshold=1000)
        return BNClassifier(type_processor=as_they_are, learningMethod=method, prior="Smoothing", priorWeight=1).fit(
            *training
        )

    def predict(self, model, rows):
        return model.predict(rows)

    def n_edges(self, model):
        return model.bn_.sizeArcs() - model.n_features_in_


class Pgmpy:
    """DiscreteBayesianNetwork, for naive Bayes too: ``predict`` of pgmpy 1.1.2's own NaiveBayes raises a TypeError."""

    name, tasks, n_rows = "pgmpy", (NAIVE_BAYES, TAN), 50

    def __init__(self):
        os.environ["TQDM_DISABLE"] = "1"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            import pgmpy.estimators  # noqa: F401

    def convert(self, table):
        import pandas as pd

        names = [f"x{i}" for i in range(table.x.shape[1])]
        states = {name: list(range(k)) for name, k in zip(names, table.n_states, strict=True)}
        states["y"] = list(range(table.y.max() + 1))
        training = pd.DataFrame(table.x, columns=names).assign(y=table.y)
        return (training, states), pd.DataFrame(table.x_test, columns=names)

    def fit(self, task, training):
        from pgmpy.estimators import TreeSearch
        from pgmpy.models import DiscreteBayesianNetwork
        from pgmpy.parameter_estimator import DiscreteBayesianEstimator

        frame, states = training
        edges = [("y", name) for name in states if name != "y"]
        if task == TAN:
            search = TreeSearch(frame, root_node="x0", n_jobs=1)
            edges += search.estimate("tan", class_node="y", show_progress=False).edges()
        smoothed = DiscreteBayesianEstimator(state_names=states, prior_type="K2")
        return DiscreteBayesianNetwork(edges).fit(frame, smoothed)

    def predict(self, model, rows):
        return model.predict(rows, n_jobs=1)["y"].to_numpy()

    def n_edges(self, model):
        return sum(parent != "y" for parent, _ in model.edges())


PEERS = {"scikit-learn": ScikitLearn, "pyagrum": PyAgrum, "pgmpy": Pgmpy}


def clock(work, repeats):
    """Return the median seconds of a call and its result; slow calls are repeated less often.

    Processor seconds are used, because the machine is shared: the same fit of pyAgrum took 38 s by the wall clock in
    one run, and 21.5 s of processor time in the next.
    """
    seconds = []
    while not seconds or (len(seconds) < repeats and sum(seconds) < PATIENCE):
        started = time.process_time()
        result = work()
        seconds.append(time.process_time() - started)
    return float(np.median(seconds)), result


def predicted_seconds(peer, task, table):
    """Predict the seconds of a fit from a fit of the first columns; TAN grows with the pairs of columns."""
    n_columns = table.x.shape[1]
    if n_columns <= PROBE:
        return 0.0
    training, _ = peer.convert(table.first_columns(PROBE))
    seconds, _ = clock(lambda: peer.fit(task, training), 1)
    growth = n_columns / PROBE
    return seconds * (growth if task == NAIVE_BAYES else growth * (n_columns - 1) / (PROBE - 1))


def measure(peer, task, table, reference, arguments):
    """Return the figures of one library, and its predictions; the first library has no reference."""
    small, few = peer.convert(table.first_columns(4, step=max(1, len(table.y) // 500)))
    peer.predict(peer.fit(task, small), few)
    if reference is not None and (expected := predicted_seconds(peer, task, table)) > arguments.limit:
        return {"skipped": f"a fit would take up to {expected:.0f} s, the limit is {arguments.limit:.0f} s"}, None
    training, rows = peer.convert(table)
    rows = rows if peer.n_rows is None else rows[: peer.n_rows]
    fit, model = clock(lambda: peer.fit(task, training), arguments.repeats)
    predict, classes = clock(lambda: peer.predict(model, rows), arguments.repeats)
    n_rows = len(classes)
    figures = {
        "fit": fit,
        "predict": predict / n_rows,
        "rows": n_rows,
        "accuracy": float((classes == table.y_test[:n_rows]).mean()),
        "agreement": float((classes == (classes if reference is None else reference[:n_rows])).mean()),
        "edges": peer.n_edges(model),
    }
    return figures, classes


def pair_counts(table, repeats):
    """Return the figures of counting all pairs of values per class, by tanlearn and by matrix products."""
    data = EncodedData.from_codes(table.x, table.y, n_states=table.n_states)
    offset = np.concatenate([[0], np.cumsum(table.n_states)])

    def count():
        return PairCounts(data.n_states, data.n_classes).update(data, n_jobs=1)

    def multiply():
        one_hot = np.zeros((len(table.x), offset[-1]), np.float32)
        one_hot[np.arange(len(table.x))[:, np.newaxis], table.x + offset[:-1]] = 1
        of_class = [one_hot[table.y == c] for c in range(data.n_classes)]
        return [rows.T @ rows for rows in of_class]

    count()
    seconds, state = clock(count, repeats)
    product_seconds, products = clock(multiply, repeats)
    product = np.stack(products, axis=2)
    blocks = [slice(*offset[i : i + 2]) for i in range(data.n_features)]
    pairs = [(i, j) for i in range(data.n_features) for j in range(i)]
    same = np.mean([np.array_equal(state.pair(i, j), product[blocks[i], blocks[j]]) for i, j in pairs])
    return {
        "tanlearn, encoded": {"fit": seconds, "agreement": 1.0},
        "NumPy, one-hot product": {"fit": product_seconds, "agreement": float(same)},
    }


def run(arguments):
    """Return the results of all libraries on all sets."""
    chosen, left_out = [Tanlearn(), TanlearnEncoded()], {}
    versions = {name: version(name) for name in ("tanlearn", "numpy", "numba")}
    for name in arguments.peers:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            left_out[name] = 'not installed, pip install -e ".[peers]"'
            print(f"{name} is left out: {left_out[name]}", flush=True)
        else:
            chosen.append(PEERS[name]())
    results = []
    for name in arguments.sets:
        table = Table.load(arguments.data / f"{name}.npz")
        found = {}
        for task in (NAIVE_BAYES, TAN):
            reference = None
            for peer in (peer for peer in chosen if task in peer.tasks):
                found[task, peer.name], classes = measure(peer, task, table, reference, arguments)
                reference = classes if reference is None else reference
        found |= {(COUNTS, library): figures for library, figures in pair_counts(table, arguments.repeats).items()}
        for (task, library), figures in found.items():
            results.append({"task": task, "set": name, "library": library, **figures})
            print(json.dumps(results[-1]), flush=True)
    return {
        "date": date.today().isoformat(),
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "versions": versions,
        "repeats": arguments.repeats,
        "left_out": left_out,
        "results": results,
    }


def main(argv=None):
    """Measure or read the results, then write the report."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--data", type=Path, default=DATA / "discretized")
    parser.add_argument("--sets", nargs="+", default=["letter", "satimage", "usps"])
    parser.add_argument("--peers", nargs="*", choices=list(PEERS), default=list(PEERS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds a fit may take, by a fit of 16 columns")
    parser.add_argument("--output", type=Path, default=HERE, help="folder of results.json, README.md and classics.png")
    parser.add_argument("--report-only", action="store_true")
    arguments = parser.parse_args(argv)
    results = arguments.output / "results.json"
    if not arguments.report_only:
        with threadpool_limits(1):
            measured = run(arguments)
        results.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    write_report(json.loads(results.read_text(encoding="utf-8")), arguments.output)


if __name__ == "__main__":
    main()
