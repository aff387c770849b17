"""Numbers of values per feature after MDL discretization, compared with the published ones, and seconds.

    python -m benchmarks.paper.differentiable_tan.mdlp_states [--data ../shared/data] [--seed 0] [--n-jobs 2]

Fitted on a random part of the rows, not stratified: two thirds, four fifths of satimage (one fold of its five); of
mnist on its 60,000 training rows. The published numbers are the means of "Differentiable TAN structure learning",
section 4.1. The training rows are not published, so only means can be compared. For mnist, the entropies of the pixels
given the class are on the diagonal of a published matrix.
"""

import time
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import DATA, command_line
from benchmarks.shared.mnist import N_TRAIN, bicubic, block_means, every_other, load_mnist
from tanlearn import EncodedData, MDLPDiscretizer, PairCounts

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


def main():
    """Print the table."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--n-jobs", type=int, default=2)
    arguments = parser.parse_args()
    fit(np.zeros((2, 1)), [0, 1], 1)  # compile, or load from the cache, outside the clock
    with np.load(arguments.data / "discretized" / "mnist_mi.npz") as file:
        published_entropies = np.diag(file["mi_graph_1"])

    tables = {name: partial(load, arguments.data, name) for name in SHARES}
    for shrink in (bicubic, block_means, every_other):
        tables[f"mnist, {shrink.__name__.replace('_', ' ')}"] = partial(load_mnist, arguments.data, shrink)
    print(f"{'data':20}{'rows':>7}{'features':>10}{'published':>11}{'here':>7}{'least':>7}{'most':>6}{'seconds':>9}")
    for name, read in tables.items():
        X, y = read()
        of = name.split(",")[0]
        rows = np.random.default_rng(arguments.seed).permutation(len(y))[: round(SHARES.get(of, 0) * len(y))]
        rows = rows if of in SHARES else np.arange(N_TRAIN)
        discretizer, seconds = fit(X[rows], y[rows], arguments.n_jobs)
        n_states = discretizer.n_states_
        print(
            f"{name:20}{len(rows):7}{X.shape[1]:10}{PUBLISHED[of]:11}{n_states.mean():7.1f}{n_states.min():7}"
            f"{n_states.max():6}{seconds:9.2f}"
        )
        if name == "letter":
            codes = np.load(arguments.data / "discretized" / "letter.npz")["x_tr_fold1"]
            print(f"  letter, states per feature, published: {codes.max(axis=0).tolist()}")
            print(f"  letter, states per feature, here:      {n_states.tolist()}")
        if of == "mnist":
            difference = np.abs(entropies(discretizer, X[rows], y[rows]) - published_entropies)
            print(f"  entropy of a pixel given the class, mean difference from the published: {difference.mean():.4f}")


if __name__ == "__main__":
    main()
