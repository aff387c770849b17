"""Distance of margin searches from the optimum, which ExactMarginSearch proves on sets of few features.

    python -m benchmarks.quality.exact_margin    # writes exact_margin.md, in about two minutes

All rows are training rows: the question is how well the searches maximize, not how well the result classifies.
"""

import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks import DATA, command_line
from benchmarks.shared.data import load_table
from benchmarks.shared.reports import markdown_table, paragraph, write_sections
from benchmarks.shared.versions import VERSIONS, made_by
from tanlearn import EncodedData, TableEncoder
from tanlearn.baselines import ExactMarginSearch, GreedySearch, OrderSearch, SimulatedAnnealing, SuperParent

HERE = Path(__file__).parent
SETS = ("iris", "balance-scale", "corral", "monk-2", "car", "pima", "yeast", "glass2", "tic-tac-toe", "mofn-3-7-10")
GAMMA = 1.0
#: Nodes after which the exact search ends with a bound: half a minute on tic-tac-toe.
MAX_NODES = 200
SEARCHES = {
    "greedy": lambda: GreedySearch(score="margin", gamma=GAMMA),
    "order": lambda: OrderSearch(score="margin", gamma=GAMMA),
    "super-parent": lambda: SuperParent(score="margin", gamma=GAMMA),
    "annealing": lambda: SimulatedAnnealing(gamma=GAMMA),
    "exact": lambda: ExactMarginSearch(gamma=GAMMA, max_nodes=MAX_NODES),
}
EXACT = "exact"
#: Scores that differ by less are equal, the tolerance of the exact search.
EQUAL = 1e-6


def load(name, folder=DATA):
    """Return the encoded rows of a set."""
    X, y = load_table(name, folder)
    encoder = TableEncoder()
    with warnings.catch_warnings(action="ignore"):  # of columns that are discretized to a single interval
        codes = encoder.fit(X, y).encode(X)
    return EncodedData.from_codes(codes.T.astype(int), np.unique(y, return_inverse=True)[1], n_states=encoder.n_states_)


def measure(data):
    """Return each search, fitted, and its seconds."""
    found = {}
    for name, make in SEARCHES.items():
        search, start = make(), time.perf_counter()
        with warnings.catch_warnings(action="ignore"):  # the exact search ends with a bound
            search.learn(data, np.random.default_rng(0))
        found[name] = search, time.perf_counter() - start
    return found


def report(found, data):
    """Return the sections of the page, given the searches by the names of sets."""
    rows, seconds = [], []
    optimal = {name: 0 for name in SEARCHES if name != EXACT}
    for name, searches in found.items():
        exact, best = searches[EXACT][0], max(search.score_ for search, _ in searches.values())
        bound = "proved" if exact.is_optimal_ else f"at most {exact.bound_:.4f}"
        cells = []
        for other, (search, _) in searches.items():
            is_best = search.score_ > best - EQUAL
            cells.append(f"**{search.score_:.4f}**" if is_best else f"{search.score_:.4f}")
            if other in optimal and exact.is_optimal_:
                optimal[other] += is_best
        shape = f"{data[name].n_features} / {data[name].n_samples:,} / {data[name].n_classes}"
        rows.append([name, shape, *cells, bound, f"{exact.n_nodes_:,}"])
        seconds.append([name, *(f"{elapsed:.2f}" for _, elapsed in searches.values())])
    n_proved = sum(searches[EXACT][0].is_optimal_ for searches in found.values())
    counts = ", ".join(f"{name} {number}" for name, number in optimal.items())
    return [
        "# How far margin searches are from the optimum",
        paragraph(
            f"""`ExactMarginSearch` proves the forest of maximum margin on {n_proved} of {len(found)} data sets. The
            other searches reach this optimum on the following numbers of data sets: {counts}."""
        ),
        markdown_table(["set", "features / rows / classes", *SEARCHES, "optimum", "nodes"], rows, left=range(2)),
        paragraph(
            f"""Scores are mean margins of the training rows in nats, capped at {GAMMA:g}. The best scores of each data
            set are in bold. If the search ended after {MAX_NODES} nodes of branch and bound, the column "optimum"
            contains an upper bound on the score of all forests. Annealing has the default number of steps and seed
            0."""
        ),
        "## Seconds",
        markdown_table(["set", *SEARCHES], seconds),
        "Times are wall-clock seconds of one thread on a shared 2-core x86_64 machine.",
        made_by([{"versions": VERSIONS}], "benchmarks.quality.exact_margin"),
    ]


def main(argv=None):
    """Run all searches, then write the page."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--output", type=Path, default=HERE, help="folder of exact_margin.md")
    arguments = parser.parse_args(argv)
    data = {name: load(name, arguments.data) for name in arguments.sets}
    found = {name: measure(rows) for name, rows in data.items()}
    write_sections(arguments.output / "exact_margin.md", report(found, data))


if __name__ == "__main__":
    main()
