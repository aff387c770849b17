"""Splits of the benchmark have labels of each class, and sentences of its report follow from results."""

import numpy as np
import pytest
from support.results_files import write

from benchmarks.quality import unlabeled

#: Column of naive Bayes with unlabeled rows.
OURS = unlabeled.OURS, "naive Bayes"


def line(name, n_labels, seed, column, error):
    """Return a line of results."""
    method, network = column
    start = {"set": name, "labels": n_labels, "seed": seed, "method": method, "network": network}
    measured = {"n_rows": 300, "n_labels": n_labels, "error": error, "log_loss": error / 10, "seconds": 1.0}
    return start | measured | {"versions": "tanlearn 1, numpy 2"}


def errors_of(column, name):
    """Return an error that depends on the column and the data set."""
    method = column[0]
    if method == unlabeled.OURS:
        return 10.0 if name == "heart" else 23.0
    return dict(zip(unlabeled.METHODS, (20.0, 19.0, 18.0), strict=False)).get(method, 15.0)


def test_report_compares_networks_with_and_without_unlabeled_rows(tmp_path):
    lines = [
        line(name, n_labels, seed, column, errors_of(column, name) + 3.1 * (n_labels == 100) * (column == OURS))
        for name in ("heart", "vehicle")
        for n_labels in unlabeled.LABELS
        for seed in range(unlabeled.N_SPLITS)
        for column in unlabeled.COLUMNS
    ]
    lines += [line("german", 10, 0, unlabeled.COLUMNS[0], 50.0)]  # not finished
    write(tmp_path / unlabeled.FILE, lines)
    unlabeled.main(["report", "--results", str(tmp_path), "--output", str(tmp_path)])
    text = (tmp_path / "unlabeled.md").read_text(encoding="utf-8")
    sentences = " ".join(text.split())
    assert (
        "Use unlabeled rows with naive Bayes: its mean error is lower with 10, 30 and 100 labels. Use unlabeled rows "
        "with the Chow-Liu tree: its mean error is lower with 10, 30 and 100 labels. These are means over 2 data sets."
    ) in sentences
    assert (
        "the largest decrease is 10.0 points (heart, Chow-Liu tree, 10 labels), and the largest increase 6.1 points "
        "(vehicle, naive Bayes, 100 labels). The mean log loss of `SemiSupervisedClassifier` is the lowest of the 4 "
        "methods in 5 of 6 rows"
    ) in sentences
    assert "| naive Bayes | 30 | 20.0 | 19.0 | 18.0 | 16.5 | 2.00 | 1.90 | 1.80 | 1.65 | 1 | 1 |" in text
    assert "| LabelSpreading | 30 |  |  |  | 15.0 |  |  |  | 1.50 |  |  |" in text
    assert "| heart | 30 | 20.0 | 19.0 | 18.0 | 10.0 | 20.0 | 19.0 | 18.0 | 10.0 | 15.0 |" in text
    assert "| vehicle | 30 | 2.00 | 1.90 | 1.80 | 2.30 | 2.00 | 1.90 | 1.80 | 2.30 | 1.50 |" in text
    assert "german" not in text


def test_verdicts_name_where_unlabeled_rows_do_harm():
    tree, bayes = "Chow-Liu tree", "naive Bayes"
    found = unlabeled.verdict(tree, ["10"], ["30", "100"])
    assert found == (
        "Unlabeled rows raise the mean error of the Chow-Liu tree with 30 and 100 labels, and lower it with 10 labels."
    )
    assert unlabeled.verdict(bayes, [], ["30"]) == "Unlabeled rows raise the mean error of naive Bayes with 30 labels."


def test_nothing_is_reported_of_nothing(tmp_path):
    with pytest.raises(SystemExit, match="nothing is finished"):
        unlabeled.main(["report", "--results", str(tmp_path), "--output", str(tmp_path)])


@pytest.fixture
def folder(tmp_path):
    """Return a folder with a data set of three clusters."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 3
    X = np.column_stack([y + 0.3 * rng.normal(size=300), np.where(rng.random(300) < 0.7, y, 0)])
    (tmp_path / "raw").mkdir()
    np.savez(tmp_path / "raw" / "clusters.npz", X=X, y=y)
    return tmp_path


def test_splits_have_a_label_of_each_class(folder):
    X, known, X_test, y_test = unlabeled.split("clusters", folder, 10, seed=1)
    assert len(X) == len(known) == len(X_test) == len(y_test) == 150
    assert (known >= 0).sum() == 10
    assert set(known[known >= 0].tolist()) == {0, 1, 2}
    again = unlabeled.split("clusters", folder, 10, seed=1)
    assert again[1].tolist() == known.tolist()
    assert unlabeled.split("clusters", folder, 10, seed=2)[1].tolist() != known.tolist()


@pytest.mark.parametrize("column", unlabeled.COLUMNS)
def test_clusters_are_learned_from_few_labels(folder, column):
    found = unlabeled.measure("clusters", folder, 30, 0, *column)
    assert (found["n_rows"], found["n_labels"]) == (150, 30)
    assert found["error"] < 20
    assert 0 < found["log_loss"] < 1
