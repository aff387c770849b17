"""The table of a search, where a whole search is too much to make a case."""

import numpy as np

from tanlearn.parameters.cv_results import cv_results


def test_equals_share_the_better_rank_and_what_has_no_score_is_last():
    scores = np.array([[0.25, np.nan, 0.5, 0.75, 0.25], [0.25, 1.0, 0.5, 0.25, 0.75]])
    table = cv_results([{}] * 5, scores, scores.mean(axis=0))
    assert table["rank_test_score"].tolist() == [4, 5, 1, 1, 1]
    assert np.isnan(table["mean_test_score"]).tolist() == [False, True, False, False, False]
