"""Numbers of values per feature after MDL discretization, compared with the published ones, and seconds.

    python -m benchmarks.paper.differentiable_tan.mdlp_states [--data ../shared/data] [--seed 0] [--n-jobs 2]

The report of the package shows the results. Cut points are fitted to a random part of the rows, not stratified: two
thirds, four fifths of satimage (one fold of its five), and the 60,000 training rows of mnist. The published numbers are
the means of "Differentiable TAN structure learning", section 4.1. The training rows are not published, so only means
can be compared. For mnist, the entropies of the pixels given the class are on the diagonal of a published matrix.
"""

import time
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import DATA, command_line
from benchmarks.shared.mnist import N_TRAIN, bicubic, block_means, every_other, load_mnist
from benchmarks.shared.reports import console, decimals, markdown_table, paragraph
from benchmarks.shared.results import Results, line_key
from tanlearn import EncodedData, MDLPDiscretizer, PairCounts

RESULTS = Path(__file__).parent / "results" / "mdlp_states.jsonl"
PUBLISHED = {"letter": 9.1, "satimage": 11.5, "usps": 3.4, "mnist": 13.2}
SHARES = {"letter": 2 / 3, "satimage": 4 / 5, "usps": 2 / 3}


def load(folder, name):
    """Return the raw numbers of a data set."""
    with np.load(folder / "raw" / f"{name}.npz") as table:
        return table["X"], table["y"]


def fit(X, y, n_jobs):
    """Return the fitted discretizer, and the seconds of the fit."""
    start = time.perf_counter()
    discretizer = MDLPDiscretizer(n_jobs=n_jobs).fit(X, y)
    return discretizer, time.perf_counter() - start


def entropies(discretizer, X, y):
    """Return H(pixel | class) in nats, pixels column by column as in the published matrix."""
    data = EncodedData.from_codes(discretizer.transform(X), y, n_states=discretizer.n_states_)
    information = PairCounts(data.n_states, data.n_classes).update(data).conditional_mutual_information()
    return np.diag(information).reshape(14, 14).T.ravel()


def values_section(lines):
    """Return the table of the mean numbers of values; empty without results."""
    if not lines:
        return ""
    rows = [
        [
            line["set"],
            f"{line['rows']:,}",
            str(line["features"]),
            f"{PUBLISHED[of(line['set'])]:.1f}",
            f"{line['mean']:.1f}",
            f"{line['least']} to {line['most']}",
            decimals(line["entropy_difference"], 4),
        ]
        for line in lines
    ]
    text = paragraph(
        """The supervised discretization of Fayyad and Irani (`MDLPDiscretizer()`) is compared with the mean numbers of
        values per feature that the paper reports (section 4.1). Cut points are fitted to a random part of the rows: two
        thirds, four fifths of satimage, and the 60,000 training rows of mnist, whose images are reduced in three ways.
        The last column is the mean difference in nats of H(pixel | class) from the published matrix."""
    )
    header = ["set", "rows", "features", "published", "here", "fewest to most", "difference of entropies"]
    command = console("benchmarks.paper.differentiable_tan.mdlp_states")
    return "\n\n".join(("## Numbers of values per feature", text, markdown_table(header, rows), command))


def values_in_words(lines):
    """Return how far the mean numbers of values are from the published ones; empty without results."""
    chosen = {of(line["set"]): line["mean"] for line in lines if line["set"] in (*SHARES, "mnist, bicubic")}
    if not chosen:
        return ""
    listed = ", ".join(f"{name} {mean:.1f} ({PUBLISHED[name]:.1f})" for name, mean in chosen.items())
    return f"The mean numbers of values per feature, and the published ones in brackets, are: {listed}."


def of(name):
    """Return the data set of a line."""
    return name.split(",")[0]


def main(argv=None):
    """Append a line for each data set that is not finished."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--n-jobs", type=int, default=2)
    arguments = parser.parse_args(argv)
    fit(np.zeros((2, 1)), [0, 1], 1)  # compile, or load from the cache, outside the clock
    with np.load(arguments.data / "discretized" / "mnist_mi.npz") as file:
        published_entropies = np.diag(file["mi_graph_1"])

    tables = {name: partial(load, arguments.data, name) for name in SHARES}
    for shrink in (bicubic, block_means, every_other):
        tables[f"mnist, {shrink.__name__.replace('_', ' ')}"] = partial(load_mnist, arguments.data, shrink)
    results = Results(arguments.results, line_key("set", "seed"))
    for name, read in tables.items():
        line = {"set": name, "seed": arguments.seed}
        if line in results:
            continue
        X, y = read()
        rows = np.random.default_rng(arguments.seed).permutation(len(y))[: round(SHARES.get(of(name), 0) * len(y))]
        rows = rows if of(name) in SHARES else np.arange(N_TRAIN)
        discretizer, seconds = fit(X[rows], y[rows], arguments.n_jobs)
        n_states = discretizer.n_states_
        line |= {
            "rows": len(rows),
            "features": X.shape[1],
            "mean": round(float(n_states.mean()), 4),
            "least": int(n_states.min()),
            "most": int(n_states.max()),
            "seconds": round(seconds, 2),
            "entropy_difference": None,
        }
        if of(name) == "mnist":
            difference = np.abs(entropies(discretizer, X[rows], y[rows]) - published_entropies)
            line["entropy_difference"] = round(float(difference.mean()), 6)
        results.append(line)
        print(", ".join(f"{key} {value}" for key, value in line.items()), flush=True)


if __name__ == "__main__":
    main()
