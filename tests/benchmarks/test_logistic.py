"""Logistic regression of resource-efficient classifiers: results, table and claim."""

import numpy as np
from support.markdown import rows_of

from benchmarks.paper.resource_efficient import logistic
from benchmarks.shared.data import Problem, split
from benchmarks.shared.results import Results
from tanlearn import EncodedData


def test_folds_are_fitted_once_and_reported(tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 120)
    data = EncodedData.from_codes((rng.integers(0, 2, (120, 4)) + y[:, np.newaxis]) % 3, y)
    problem = Problem("letter", (split(data, slice(0, 90), slice(90, None)),))
    for _ in range(2):
        results = Results(tmp_path / "logistic.jsonl", logistic.key)
        logistic.run_logistic(problem, results)
    lines = list(results)
    assert [(line["inputs"], line["rows"], line["n_weights"]) for line in lines] == [
        ("real", 30, 15),
        ("one-hot", 30, 39),
    ]
    rows = rows_of(logistic.logistic_section(lines))
    assert rows[1] == ["letter", f"{100 * lines[0]['error']:.2f}", "15", f"{100 * lines[1]['error']:.2f}", "39"]
    assert logistic.logistic_section([]) == ""


def test_claim_needs_both_other_errors():
    lines = [{"set": "usps", "inputs": "real", "error": 0.07, "rows": 100, "n_weights": 9, "n_folds": 1}]
    assert logistic.claim(lines, {"usps": 4.0}, {"usps": 2.0}).holds is True
    found = logistic.claim(lines, {"usps": 8.0}, {"usps": 2.0})
    assert (found.holds, found.evidence) == (False, "usps: 7.00, naive Bayes 8.00, dense network 2.00")
    assert logistic.claim(lines, {}, {"usps": 2.0}).holds is None
    assert logistic.errors([{**lines[0], "n_folds": 2}]) == {}
