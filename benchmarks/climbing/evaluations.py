"""Structures that searches score, over the number of features.

    python -m benchmarks.climbing.evaluations run                    # six minutes; resumes if interrupted
    python -m benchmarks.climbing.evaluations run --features 8 16 32
    python -m benchmarks.climbing.evaluations report                 # writes evaluations.md and its picture
    python -m benchmarks.climbing.evaluations pack

Counts of score evaluations do not depend on the machine. All searches maximize the conditional likelihood of 300
training rows of binary features, which are drawn from a random tree. The dependence of each feature on the class is
divided by the square root of the number of features, so that classification is about equally difficult for all numbers
of features, and nearly all features get a parent."""

import time

import numpy as np

from benchmarks.shared.command import execute, parsers
from benchmarks.shared.reports import markdown_table, paragraph, picture, write_sections
from benchmarks.shared.results import Results, line_key, read
from tanlearn import EncodedData
from tanlearn.baselines import GreedySearch, OrderSearch, SimulatedAnnealing, SuperParent

FEATURES, N_ROWS, N_STEPS, SCORE = (8, 16, 32, 64, 128), 300, 20_000, "conditional-likelihood"
#: Searches in the order of the report, each with its order of growth.
SEARCHES = {
    "greedy search": (GreedySearch(score=SCORE), "d^3"),
    "super-parent": (SuperParent(score=SCORE), "d^2"),
    "order search": (OrderSearch(score=SCORE), "d^2"),
    "simulated annealing": (SimulatedAnnealing(score=SCORE, n_steps=N_STEPS, initial=None), "1"),
}
STYLES = {
    "greedy search": ("#d55e00", "s"),
    "super-parent": ("#009e73", "^"),
    "order search": ("#0072b2", "o"),
    "simulated annealing": ("#cc79a7", "D"),
}
FILE = "evaluations.jsonl"
key = line_key("features", "search")


def random_tree_data(n_features):
    """Return rows of binary features, each of which depends on the class and on one random earlier feature."""
    rng = np.random.default_rng(n_features)
    y = rng.integers(0, 2, N_ROWS)
    X = np.zeros((N_ROWS, n_features), int)
    for i in range(n_features):
        given = X[:, rng.integers(i)] - 0.5 if i else 0.0
        X[:, i] = rng.random(N_ROWS) < 0.5 + 0.6 * given + 0.35 * (2 * y - 1) / np.sqrt(n_features)
    return EncodedData.from_codes(X, y, n_states=[2] * n_features)


def measure(start):
    """Return a finished line: the evaluations and the result of one search."""
    search = SEARCHES[start["search"]][0]
    started = time.perf_counter()
    structure = search.learn(random_tree_data(start["features"]), np.random.default_rng(0))
    found = {"evaluations": search.n_evaluations_, "edges": structure.n_edges, "score": search.score_}
    return start | found | {"seconds": time.perf_counter() - started}


def exponent(features, counts):
    """Return the exponent of the power of the number of features that fits counts, by least squares of logarithms."""
    slope, _ = np.polyfit(np.log(features), np.log(counts), 1)
    return float(slope)


def run(arguments):
    """Run everything that is not finished."""
    results = Results(arguments.results / FILE, key)
    for n_features in sorted(arguments.features):
        for start in results.missing({"features": n_features, "search": name} for name in SEARCHES):
            line = results.append(measure(start))
            print(f"{n_features} features, {line['search']}: {line['evaluations']:,} evaluations", flush=True)


def counts_of(lines, name, field="evaluations"):
    """Return the numbers of features of a search, and a field of its lines."""
    own = sorted((line for line in lines if line["search"] == name), key=lambda line: line["features"])
    return [line["features"] for line in own], [line[field] for line in own]


def draw(lines, path):
    """Draw the counts with logarithmic axes, and reference lines of the orders in the papers."""
    features = sorted({line["features"] for line in lines})
    with picture(path, 6.5, 4.4) as figure:
        ax = figure.subplots()
        ends = np.array([features[0], features[-1]], float)
        for power, name in [(3, "greedy search"), (2, "order search")]:
            start = counts_of(lines, name)[1][0] * 0.45
            line = start * (ends / ends[0]) ** power
            ax.plot(ends, line, color="#999999", linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
            ax.annotate(
                f"d$^{power}$", (ends[1], line[1]), (5, -3), textcoords="offset points", color="#666666", zorder=1
            )
        for name, (color, marker) in STYLES.items():
            own, counts = counts_of(lines, name)
            ax.plot(own, counts, color=color, marker=marker, markersize=5, label=f"{name}: {in_words(own, counts)}")
        ax.set(xscale="log", yscale="log", xlabel="features d", ylabel="scored structures")
        ax.set_xticks(features, map(str, features))
        ax.minorticks_off()
        ax.legend(fontsize="small", frameon=False)
        ax.grid(alpha=0.3)
        ax.spines[["top", "right"]].set_visible(False)


def in_words(features, counts):
    """Return the growth of counts in words."""
    return f"d to the power of {exponent(features, counts):.2f}"


def report(arguments):
    """Write the report and its picture, and print the exponents."""
    lines = read(arguments.results / FILE)
    draw(lines, arguments.output / "evaluations.png")
    features = sorted({line["features"] for line in lines})
    rows, exponents = [], {}
    for name, (_, order) in SEARCHES.items():
        own, counts = counts_of(lines, name)
        exponents[name] = exponent(own, counts)
        known = dict(zip(own, counts, strict=True))
        cells = [f"{known[n]:,}" if n in known else "" for n in features]
        rows.append([name, *cells, f"{exponents[name]:.2f}", f"O({order})"])
        print(f"{name}: {in_words(own, counts)}")
    most = features[-1]
    greedy, order, annealing = (
        next(line for line in lines if line["features"] == most and line["search"] == name)
        for name in ("greedy search", "order search", "simulated annealing")
    )
    write_sections(
        arguments.output / "evaluations.md",
        [
            "# Structures scored by wrapper searches",
            paragraph(
                "For d features, the number of structures that greedy search scores grows with d to the power of "
                f"{exponents['greedy search']:.2f}. The exponent is {exponents['super-parent']:.2f} for super-parent "
                f"and {exponents['order search']:.2f} for order search. These exponents agree with the complexities "
                "O(d^3) and O(d^2) in the papers. Simulated annealing scores at most one structure per step, so its "
                "count depends on `n_steps` and not on d."
            ),
            paragraph(
                f"With {most} features, order search scores {greedy['evaluations'] / order['evaluations']:,.0f} times "
                "fewer structures than greedy search, and reaches a lower mean log likelihood of the classes in the "
                f"training rows: {order['score']:.3f} instead of {greedy['score']:.3f} nats. Simulated annealing "
                f"reaches {annealing['score']:.3f} with {N_STEPS:,} steps from naive Bayes."
            ),
            "![Scored structures over the number of features, by search](evaluations.png)",
            markdown_table(["search", *(f"d = {n}" for n in features), "exponent", "expected"], rows),
            paragraph(
                f"Searches maximize the conditional likelihood of {N_ROWS} training rows of binary features, drawn "
                "from a random tree in which nearly all features get a parent. On data where few edges improve the "
                "score, greedy search and super-parent end earlier and score fewer structures. Exponents are fitted "
                "to the logarithms of all counts by least squares. The time per structure differs: super-parent "
                "scores whole structures, and the other searches score only the family that changes. The commands "
                "`python -m benchmarks.climbing.evaluations run` and `report` reproduce this page."
            ),
        ],
    )


def main(argv=None):
    """Parse the command line and run it."""
    parser, running = parsers(__doc__, __spec__, run, report, data=False)
    running.add_argument("--features", type=int, nargs="+", default=FEATURES, help="by default 8 to 128")
    execute(parser, argv)


if __name__ == "__main__":
    main()
