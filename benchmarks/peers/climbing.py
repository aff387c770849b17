"""Hill climbing over general networks by BDeu and BIC in several libraries: one process, one thread, the same rows.

    pip install -e ".[peers]"
    python -m benchmarks.peers.climbing                # measure; writes climbing.json and climbing.md
    python -m benchmarks.peers.climbing --report-only  # climbing.md from climbing.json, without the peers

All libraries start at the network without arcs, add, remove and reverse arcs between features and class, and allow at
most three parents per node. The resulting networks are scored by one function, which is independent of the libraries.
"""

import json
import os
import platform
import warnings
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np
from scipy.special import gammaln
from threadpoolctl import threadpool_limits

from benchmarks import DATA, command_line
from benchmarks.shared.data import load_table
from benchmarks.shared.reports import paragraph, table_head, table_row
from tanlearn import EncodedData
from tanlearn.baselines import HillClimbing, MarkovBlanketClassifier

from .__main__ import clock
from .report import duration, provenance, ratio

HERE = Path(__file__).parent
SETS = ("car", "tic-tac-toe", "flare", "led24", "chess", "letter")
SCORES = {"bdeu": "BDeu", "bic": "BIC"}
MAX_PARENTS = 3

HEAD = """# Hill climbing by BDeu and BIC in other libraries

The page compares scores and times of hill climbing over general networks. Each comparison is for one data set and one
score: """
COMMANDS = """```console
$ pip install -e ".[peers]"
$ python -m benchmarks.peers.climbing
$ python -m benchmarks.peers.climbing --report-only  # from climbing.json, without the peers
```"""
NOTES = """
## How to read it

- **score** is the score of the network in nats, computed from the rows by one function that is independent of the
  libraries. Larger is better, and the best score of each data set is in bold. **arcs** is the number of arcs between
  features and class. The number in brackets is the time relative to tanlearn.
- tanlearn is `MarkovBlanketClassifier(search=HillClimbing(max_parents=3), initial="empty")` on codes, including the
  estimation of the CPTs in the Markov blanket. With restarts, the search also has `tabu_length=10, n_restarts=20`. The
  others are `BNLearner` with greedy hill climbing (pyAgrum) and `HillClimbSearch` (pgmpy). Each library receives the
  rows in its own format, and the conversion is not timed.
- All searches start without arcs. In each step, they make the best of all additions, removals and reversals that lead
  to at most three parents per node. BDeu has an equivalent sample size of 1. Values that do not occur in the rows do
  not count as values of a node.
- Equal scores of two searches do not imply equal networks: the direction of some arcs does not change BDeu and BIC, so
  libraries break such ties differently and may end in different local optima.
"""


def network_score(rows, parents, name):
    """Return BDeu (equivalent sample size 1) or BIC of a network over the columns of an integer table."""
    n_values = rows.max(axis=0) + 1
    total = 0.0
    for child, given in enumerate(parents):
        r, q = n_values[child], float(np.prod(n_values[list(given)]))
        _, context = np.unique(rows[:, list(given)], axis=0, return_inverse=True) if given else (0, 0 * rows[:, 0])
        counts = np.zeros((context.max() + 1, r))
        np.add.at(counts, (context.ravel(), rows[:, child]), 1)
        of_context = counts.sum(axis=1)
        if name == "bdeu":
            total += (gammaln(counts + 1 / (r * q)) - gammaln(1 / (r * q))).sum()
            total -= (gammaln(of_context + 1 / q) - gammaln(1 / q)).sum()
        else:
            seen = counts > 0
            total += (counts * np.log(np.where(seen, counts, 1))).sum() - (of_context * np.log(of_context)).sum()
            total -= np.log(len(rows)) / 2 * (r - 1) * q
    return float(total)


class Tanlearn:
    """The class-free search of this library."""

    def __init__(self, name="tanlearn", **settings):
        self.name = name
        self.settings = {"max_parents": MAX_PARENTS, **settings}

    def convert(self, rows):
        return EncodedData.from_codes(rows[:, :-1], rows[:, -1])

    def learn(self, data, score):
        search = HillClimbing(score=score, **self.settings)
        model = MarkovBlanketClassifier(search=search, initial="empty", n_jobs=1, random_state=0)
        return model.fit_encoded(data).network_


class PyAgrum:
    """BNLearner with greedy hill climbing."""

    name = "pyAgrum"

    def __init__(self):
        import pyagrum

        pyagrum.setNumberOfThreads(1)

    def convert(self, rows):
        import pandas as pd
        import pyagrum

        template = pyagrum.BayesNet()
        for i, n_values in enumerate(rows.max(axis=0) + 1):
            template.add(pyagrum.RangeVariable(f"x{i}", "", 0, int(n_values) - 1))
        return pd.DataFrame(rows.astype(str), columns=[f"x{i}" for i in range(rows.shape[1])]), template

    def learn(self, training, score):
        import pyagrum

        learner = pyagrum.BNLearner(*training)
        {"bdeu": learner.useScoreBDeu, "bic": learner.useScoreBIC}[score]()
        learner.useNoPrior()
        learner.useGreedyHillClimbing()
        learner.setMaxIndegree(MAX_PARENTS)
        arcs = learner.learnDAG().arcs()
        return [tuple(tail for tail, head in arcs if head == i) for i in range(training[0].shape[1])]


class Pgmpy:
    """HillClimbSearch without a tabu list."""

    name = "pgmpy"

    def __init__(self):
        os.environ["TQDM_DISABLE"] = "1"

    def convert(self, rows):
        import pandas as pd

        return pd.DataFrame(rows, columns=[f"x{i}" for i in range(rows.shape[1])]).astype("category")

    def learn(self, frame, score):
        from pgmpy.causal_discovery import HillClimbSearch
        from pgmpy.structure_score import BIC, BDeu

        scoring = BDeu(frame, equivalent_sample_size=1) if score == "bdeu" else BIC(frame)
        search = HillClimbSearch(
            scoring_method=scoring,
            tabu_length=0,
            max_indegree=MAX_PARENTS,
            return_type="dag",
            show_progress=False,
        )
        edges = search.fit(frame).causal_graph_.edges()
        return [tuple(int(a[1:]) for a, b in edges if b == name) for name in frame]


PEERS = {"pyagrum": PyAgrum, "pgmpy": Pgmpy}


def integers(X, y):
    """Return the features and, as last column, the class as codes from 0, without values that no row has."""
    return np.stack([np.unique(column, return_inverse=True)[1] for column in (*X.T, y)], axis=1)


def run(arguments):
    """Return the results of all libraries on all sets."""
    chosen, left_out = [Tanlearn(), Tanlearn("tanlearn, 20 restarts", tabu_length=10, n_restarts=20)], {}
    versions = {name: version(name) for name in ("tanlearn", "numpy", "numba")}
    for name in arguments.peers:
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            left_out[name] = 'not installed, pip install -e ".[peers]"'
        else:
            chosen.append(PEERS[name]())
    results = []
    for name in arguments.sets:
        rows = integers(*load_table(name, arguments.data))
        for score in SCORES:
            for peer in chosen:
                peer.learn(peer.convert(rows[:200, -4:]), score)  # compilation and first calls
                training = peer.convert(rows)
                seconds, parents = clock(lambda p=peer, t=training, s=score: p.learn(t, s), arguments.repeats)
                row = {"set": name, "score": score, "library": peer.name, "seconds": seconds}
                row |= {"reached": network_score(rows, parents, score), "arcs": sum(map(len, parents))}
                row |= {"rows": len(rows), "nodes": rows.shape[1]}
                results.append(row)
                print(json.dumps(row), flush=True)
    software = {"python": platform.python_version(), "machine": platform.machine(), "cpus": os.cpu_count()}
    return {
        "date": date.today().isoformat(),
        **software,
        "versions": versions,
        "left_out": left_out,
        "results": results,
    }


def lines(measured):
    """Return the tables of the scores, line by line."""
    for score, title in SCORES.items():
        yield from ["", f"## {title}", ""]
        yield from table_head(["set", "rows", "nodes", "library", "score", "arcs", "time"], left=(0, 3))
        rows = [row for row in measured["results"] if row["score"] == score]
        for row in rows:
            group = [other for other in rows if other["set"] == row["set"]]
            best = max(other["reached"] for other in group)
            reached = f"{row['reached']:,.2f}"
            reached = f"**{reached}**" if row["reached"] > best - 0.005 else reached
            time = f"{duration(row['seconds'])} ({ratio(row['seconds'], group[0]['seconds'])})"
            cells = [row["set"], f"{row['rows']:,}", str(row["nodes"]), row["library"], reached, str(row["arcs"]), time]
            yield table_row(cells)


def summary(measured):
    """Return how often each library reaches the best score, and the range of its times relative to tanlearn."""
    rows = measured["results"]
    best, base = {}, {}
    for row in rows:
        task = row["set"], row["score"]
        best[task] = max(best.get(task, -np.inf), row["reached"])
        base.setdefault(task, row["seconds"])
    for name in dict.fromkeys(row["library"] for row in rows):
        own = [row for row in rows if row["library"] == name]
        times = sorted(row["seconds"] / base[row["set"], row["score"]] for row in own)
        n_best = sum(row["reached"] > best[row["set"], row["score"]] - 0.005 for row in own)
        took = "" if name == "tanlearn" else f" It takes {times[0]:.2g} to {times[-1]:.2g} times as long as *tanlearn*."
        text = f"- *{name}* has the best score of all searches in {n_best} of {len(own)} comparisons.{took}"
        yield paragraph(text, indent=2)


def write_report(measured, folder):
    """Write climbing.md."""
    how = "Times are medians of up to three calls (fewer for calls of seconds), in processor time."
    left_out = [f"{name} is left out: {why}." for name, why in measured["left_out"].items()]
    text = "\n".join(
        [HEAD, *summary(measured), "", how, *left_out, *lines(measured), NOTES, provenance(measured, COMMANDS), ""]
    )
    (folder / "climbing.md").write_text(text, encoding="utf-8")


def main(argv=None):
    """Parse the command line, measure and report."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--output", type=Path, default=HERE, help="folder of climbing.json and climbing.md")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=tuple(PEERS))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--report-only", action="store_true", help="write the report from climbing.json")
    arguments = parser.parse_args(argv)
    path = arguments.output / "climbing.json"
    if not arguments.report_only:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path.write_text(json.dumps(run(arguments), indent=1) + "\n", encoding="utf-8")
    write_report(json.loads(path.read_text(encoding="utf-8")), arguments.output)


if __name__ == "__main__":
    main()
