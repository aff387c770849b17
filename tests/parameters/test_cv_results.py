"""The table of a search, where a whole search is too much to make a case."""

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV

from tanlearn.parameters.cv_results import cv_results


def test_equals_share_the_better_rank_and_what_has_no_score_is_last():
    scores = np.array([[0.25, np.nan, 0.5, 0.75, 0.25], [0.25, 1.0, 0.5, 0.25, 0.75]])
    table = cv_results([{}] * 5, scores, scores.mean(axis=0))
    assert table["rank_test_score"].tolist() == [4, 5, 1, 1, 1]
    assert np.isnan(table["mean_test_score"]).tolist() == [False, True, False, False, False]


class Scored(BaseEstimator):
    """An estimator whose held-out scores follow from its parameters."""

    def __init__(self, slope=0.0, shift=0.0, form="line"):
        self.slope, self.shift, self.form = slope, shift, form

    def fit(self, X, y=None):
        return self

    def score(self, X, y=None):
        x = X.mean()
        return self.shift + self.slope * (x**2 if self.form == "square" else x)


def test_the_table_is_that_of_scikit_learn():
    grid = [{"slope": [0.5, -1.0, 0.5]}, {"shift": [2.0], "form": ["line", "square"]}, {"shift": [1.0, -9.0]}]
    search = GridSearchCV(Scored(), grid, cv=3).fit(np.arange(9.0)[:, np.newaxis])
    expected = search.cv_results_
    scores = np.array([expected[f"split{k}_test_score"] for k in range(3)])
    found = cv_results(expected["params"], scores, scores.mean(axis=0))
    assert set(found) == {name for name in expected if not name.endswith("_time")}
    for name, values in found.items():
        if name.startswith("param_"):
            assert values.mask.tolist() == expected[name].mask.tolist()
            assert values[~values.mask].tolist() == expected[name][~values.mask].tolist()
        elif name != "params":
            np.testing.assert_allclose(values, expected[name], rtol=1e-15)
    assert found["rank_test_score"].dtype.kind == "i"
