"""Logistic regression, a network with one layer, on codes as real numbers and one-hot ([RE] V-C).

    python -m benchmarks.paper.resource_efficient run logistic --sets letter

The paper mentions its errors to show that deeper networks gain by their intermediate layers. Weights are floats with
scikit-learn's default penalty, fitted to all training rows of a fold.
"""

import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from benchmarks.paper.claims import Claim
from benchmarks.shared.reports import markdown_table, paragraph
from benchmarks.shared.results import line_key, pooled_error

INPUTS = {"real": StandardScaler, "one-hot": lambda: OneHotEncoder(handle_unknown="ignore")}
MAX_ITER = 200
key = line_key("set", "inputs", "fold")


def run_logistic(problem, results):
    """Run everything that is not finished on a data set."""
    for fold, part in enumerate(problem.folds, start=1):
        for inputs, encoder in INPUTS.items():
            line = {"set": problem.name, "inputs": inputs, "fold": fold}
            if line in results:
                continue
            model = make_pipeline(encoder(), LogisticRegression(max_iter=MAX_ITER))
            started = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # errors hardly change by then
                model.fit(part.data.codes.T, part.data.y)
            found = {
                "error": round(float(np.mean(model.predict(part.codes.T) != part.y)), 8),
                "rows": len(part.y),
                "n_weights": int(model[-1].coef_.size + model[-1].intercept_.size),
                "n_iter": int(model[-1].n_iter_.max()),
                "seconds": round(time.process_time() - started, 2),
                "n_folds": len(problem.folds),
            }
            results.append({**line, **found})
            print(f"{problem.name}, {inputs} inputs, fold {fold}: {100 * found['error']:.2f} %", flush=True)


def errors(lines):
    """Return the test errors in % by data set and inputs, for data sets with all folds."""
    found = {}
    for line in lines:
        found.setdefault((line["set"], line["inputs"]), []).append(line)
    return {
        cell: (100 * pooled_error(some), some[0]["n_weights"])
        for cell, some in found.items()
        if len(some) == some[0]["n_folds"]
    }


def claim(lines, naive_bayes, networks):
    """Check that logistic regression on real inputs is worse than naive Bayes and than deeper networks.

    ``naive_bayes`` and ``networks`` are errors in % by data set.
    """
    text = "logistic regression, a network with one layer, performs poorly on real inputs"
    found = {name: error for (name, inputs), (error, _) in errors(lines).items() if inputs == "real"}
    found = {name: error for name, error in found.items() if name in naive_bayes and name in networks}
    listed = "; ".join(
        f"{name}: {error:.2f}, naive Bayes {naive_bayes[name]:.2f}, dense network {networks[name]:.2f}"
        for name, error in found.items()
    )
    holds = all(error > max(naive_bayes[name], networks[name]) for name, error in found.items())
    return Claim(text, listed, holds if found else None)


def logistic_section(lines):
    """Return the table of test errors; empty without results."""
    found = errors(lines)
    if not found:
        return ""
    rows = [
        [name, *(text for inputs in INPUTS for text in _cells(found.get((name, inputs))))]
        for name in dict.fromkeys(name for name, _ in found)
    ]
    text = paragraph(
        f"""`make_pipeline(StandardScaler(), LogisticRegression(max_iter={MAX_ITER}))` and the same with
        `OneHotEncoder()`, of scikit-learn, on codes, with the default penalty. With one-hot inputs, the model is naive
        Bayes with unnormalized weights, trained by conditional likelihood."""
    )
    header = ["set", "real: error", "weights", "one-hot: error", "weights"]
    return f"## Logistic regression\n\n{text}\n\n{markdown_table(header, rows)}"


def _cells(found):
    """Return an error and a number of weights as strings."""
    return ("", "") if found is None else (f"{found[0]:.2f}", f"{found[1]:,}")
