"""Ratios of log losses are those of scikit-learn, and tables have a signal where they say so."""

import numpy as np
import pytest
from sklearn.dummy import DummyClassifier
from sklearn.metrics import log_loss

from benchmarks.quality import noise
from tanlearn import NaiveBayesClassifier


def test_ratios_are_those_of_scikit_learn():
    kind = noise.Kind(40, 3, 3, is_numeric=False)
    X, y, X_test, y_test = noise.draw(kind, 1)
    assert X.shape == (40, 3)
    frequencies = (np.bincount(y) + 1) / 43
    by_frequency = log_loss(y_test, np.tile(frequencies, (len(y_test), 1)), labels=[0, 1, 2])
    assert noise.frequency_loss(y, y_test) == pytest.approx(by_frequency)
    model = NaiveBayesClassifier().fit(X, y)
    loss = log_loss(y_test, model.predict_proba(X_test), labels=[0, 1, 2])
    assert noise.ratio(NaiveBayesClassifier(), kind, 1) == pytest.approx(loss / by_frequency)


@pytest.mark.filterwarnings("ignore:.*discreti:UserWarning")
@pytest.mark.parametrize("name", noise.TABLES)
def test_a_signal_is_in_the_first_column_only(name):
    kind = noise.TABLES[name]._replace(n_rows=2000, n_columns=3)
    X, y, X_test, y_test = noise.draw(kind, 0)
    gains = []
    for column in range(3):
        model = NaiveBayesClassifier().fit(X[:, [column]], y)
        by_frequency = DummyClassifier(strategy="prior").fit(X, y).score(X_test, y_test)
        gains.append(model.score(X_test[:, [column]], y_test) - by_frequency)
    assert max(gains[1:]) < 0.05  # three standard errors of a share of 2,000 rows are 0.034
    assert (gains[0] > 0.15) == kind.has_signal


def test_the_command_prints_a_line_per_table_and_estimator(capsys):
    names = ["NaiveBayesClassifier()", "BayesNetClassifier(ChowLiu())"]
    noise.main(["--tables", "categories", "numeric", "--estimators", *names, "--seeds", "2"])
    lines = [line.split(" | ") for line in capsys.readouterr().out.splitlines()]
    assert [line[:2] for line in lines] == [[table, name] for table in ("categories", "numeric") for name in names]
    ratios = [noise.ratio(noise.ESTIMATORS[names[0]], noise.TABLES["categories"], seed) for seed in range(2)]
    assert lines[0][2] == f"{np.mean(ratios):.2f} ({max(ratios):.2f})"
