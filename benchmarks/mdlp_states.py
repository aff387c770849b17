"""How many values per feature the MDL discretisation leaves, next to the published numbers, and how fast.

python benchmarks/mdlp_states.py [--data ../shared/data] [--seed 0] [--n-jobs 2]

Fitted on a random part of the rows, not stratified: two thirds, four fifths of satimage (one fold of its five).
The published numbers are the means of "Differentiable TAN structure learning", section 4.1; which rows were
trained on is not published, so only the means can be compared. How MNIST came from 28x28 to 14x14 is not published
either. The mean of blocks of 2x2 pixels leaves far too few values; a Gaussian of width 1 and every other pixel comes
close to the published entropies of the pixels given the class (mean difference 0.16 nats, correlation 0.96).
"""

import argparse
import time
from pathlib import Path

import numpy as np
from scipy.ndimage import gaussian_filter

from tanlearn import MDLPDiscretizer

ROOT = Path(__file__).resolve().parents[1]
PUBLISHED = {
    "letter": (2 / 3, 9.1),
    "satimage": (4 / 5, 11.5),
    "usps": (2 / 3, 3.4),
    "mnist, block means": (2 / 3, 13.2),
    "mnist, smoothed": (2 / 3, 13.2),
}


def load(data, name):
    table = np.load(data / "raw" / f"{name.split(',')[0]}.npz")
    X, y = table["X"], table["y"]
    if name == "mnist, block means":
        X = X.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(-1, 14 * 14)
    if name == "mnist, smoothed":
        images = X.reshape(-1, 28, 28).astype(np.float32)
        X = gaussian_filter(images, sigma=(0, 1, 1))[:, ::2, ::2].reshape(-1, 14 * 14)
    return X, y


def fit(X, y, n_jobs):
    start = time.perf_counter()
    discretizer = MDLPDiscretizer(n_jobs=n_jobs).fit(X, y)
    return discretizer.n_states_, time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=ROOT.parent / "shared" / "data")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--n-jobs", type=int, default=2)
    arguments = parser.parse_args()
    fit(np.zeros((2, 1)), [0, 1], 1)  # compile, or load from the cache, outside the clock

    print(f"{'data':20}{'rows':>7}{'features':>10}{'published':>11}{'here':>7}{'least':>7}{'most':>6}{'seconds':>9}")
    for name, (share, published) in PUBLISHED.items():
        X, y = load(arguments.data, name)
        rows = np.random.default_rng(arguments.seed).permutation(len(y))[: round(share * len(y))]
        n_states, seconds = fit(X[rows], y[rows], arguments.n_jobs)
        print(
            f"{name:20}{len(rows):7}{X.shape[1]:10}{published:11}{n_states.mean():7.1f}{n_states.min():7}"
            f"{n_states.max():6}{seconds:9.2f}"
        )
        if name == "letter":
            codes = np.load(arguments.data / "discretized" / "letter.npz")["x_tr_fold1"]
            print(f"  letter, states per feature, published: {codes.max(axis=0).tolist()}")
            print(f"  letter, states per feature, here:      {n_states.tolist()}")
    _, seconds = fit(X[:60_000], y[:60_000], arguments.n_jobs)
    print(f"{name}, 60,000 rows: {seconds:.2f} s with n_jobs={arguments.n_jobs}")


if __name__ == "__main__":
    main()
