"""Are predicted probabilities as frequent as they say? Learners on the digits, stratified splits, a third held out.

    python -m benchmarks.quality.calibration    # one split, ten seconds
    python -m benchmarks.quality.calibration --seeds 0 1 2 3 4 5 6 7 8 9 --figure benchmarks/quality/calibration.png

Confidence is the probability of the predicted class. The expected calibration error (ECE) puts confidences into ten
bins of equal width, and averages over rows how far mean confidence and accuracy of their bin lie apart. It is never 0:
beside it stands what a model with the same confidences would show if they were true, by chance. "Temperature" divides
log-probabilities by one number, chosen by scikit-learn (1.8 or newer) on five folds.
"""

from pathlib import Path

import numpy as np
import sklearn
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from benchmarks import command_line
from benchmarks.paper.shared.report_parts import picture
from tanlearn.baselines import LEARNERS

NAMES = [
    "NB ML",
    "NB CG-CL",
    "TAN-CMI ML",
    "TAN-CMI CG-CL",
    "TAN-CMI CG-MM",
    "TAN-CMI HYB",
    "TAN Order-free HYB",
    "AODE",
]
HAS_TEMPERATURE = tuple(map(int, sklearn.__version__.split(".")[:2])) >= (1, 8)
RESCALED = ["NB ML", "TAN-CMI ML", "TAN-CMI CG-CL"]
#: Whose ECE are compared split by split.
COMPARED = "TAN-CMI CG-CL", "TAN-CMI ML"
DRAWN = ["NB ML", "TAN-CMI ML", "TAN-CMI CG-CL", "TAN-CMI CG-MM", "NB ML, temperature"]
HEADERS = ["learner", "error [%]", "mean confidence [%]", "ECE [%]", "by chance [%]", "log loss", "Brier score"]
N_BINS, N_CHANCES = 10, 200


def models(seed):
    """Return unfitted classifiers by name."""
    plain = {name: LEARNERS[name].make(random_state=seed, n_epochs=100) for name in NAMES}
    if not HAS_TEMPERATURE:
        return plain
    options = {"method": "temperature", "ensemble": False, "cv": 5}
    return {**plain, **{f"{name}, temperature": CalibratedClassifierCV(plain[name], **options) for name in RESCALED}}


def reliability(p, happened):
    """Return size, mean probability and frequency of every bin that has rows."""
    place = np.minimum((p * N_BINS).astype(int), N_BINS - 1)
    n = np.bincount(place, minlength=N_BINS)
    full = n > 0
    return n[full], *(np.bincount(place, values, N_BINS)[full] / n[full] for values in (p, happened))


def calibration_error(p, happened):
    """Return how far probabilities and frequencies lie apart, on average over rows."""
    n, mean, share = reliability(p, happened)
    return float(np.average(np.abs(mean - share), weights=n))


def chance_errors(p, rng):
    """Return calibration errors of draws in which the probabilities are true."""
    return [calibration_error(p, rng.random(len(p)) < p) for _ in range(N_CHANCES)]


def measure(model, X, y, seed):
    """Return confidences, whether predictions were right, and the figures of the table."""
    X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=seed)
    p = model.fit(X, y).predict_proba(X_test)
    confidence, right = p.max(axis=1), model.classes_[p.argmax(axis=1)] == y_test
    chance = np.mean(chance_errors(confidence, np.random.default_rng(seed)))
    error = calibration_error(confidence, right)
    brier = np.sum((p - (y_test[:, np.newaxis] == model.classes_)) ** 2, axis=1).mean()
    shares = [100 * share for share in (1 - right.mean(), confidence.mean(), error, chance)]
    return confidence, right, [*shares, log_loss(y_test, p), brier]


def draw_reliability(found, path):
    """Draw the accuracy of every bin over its mean confidence; bins of few rows say little, and are left out."""
    with picture(path, 6, 5.5) as figure:
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color="#999999", linestyle="--", label="as confident as right")
        for name in filter(found.get, DRAWN):
            n, mean, share = reliability(*found[name])
            axes.plot(mean[n >= 20], share[n >= 20], marker="o", label=name)
        axes.set(xlabel="mean confidence", ylabel="accuracy", title="digits", xlim=(0, 1.02), ylim=(0, 1.02))
        axes.legend(fontsize="small")


def main(argv=None):
    """Print a row a learner; draw what was asked for."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], help="of the splits; figures are means")
    parser.add_argument("--figure", type=Path, help="where to draw accuracy over confidence")
    arguments = parser.parse_args(argv)
    X, y = load_digits(return_X_y=True)
    print(f"| {' | '.join(HEADERS)} |\n| --- |{' ---: |' * (len(HEADERS) - 1)}")
    drawn, errors = {}, {}
    for name in models(0):
        splits = [measure(models(seed)[name], X, y, seed) for seed in arguments.seeds]
        drawn[name] = [np.concatenate(parts) for parts in list(zip(*splits, strict=True))[:2]]
        errors[name] = np.array([figures[2] for *_, figures in splits])
        *shares, loss, brier = np.mean([figures for *_, figures in splits], axis=0)
        print(f"| {name} | {' | '.join(f'{share:.2f}' for share in shares)} | {loss:.3f} | {brier:.3f} |", flush=True)
    if not HAS_TEMPERATURE:
        print(f"\nscikit-learn {sklearn.__version__} has no calibration by temperature, which came with 1.8.")
    if errors.keys() >= set(COMPARED):
        n_lower = np.count_nonzero(errors[COMPARED[0]] < errors[COMPARED[1]])
        print(f"\n{COMPARED[0]} has a lower ECE than {COMPARED[1]} in {n_lower} of {len(arguments.seeds)} split(s).")
    if arguments.figure:
        draw_reliability(drawn, arguments.figure)


if __name__ == "__main__":
    main()
