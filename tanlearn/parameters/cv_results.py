"""The table of a search over settings, with the columns of scikit-learn's searches."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata

from tanlearn._typing import FloatArray

__all__ = ["cv_results"]


def cv_results(params: list[dict[str, Any]], split_scores: FloatArray, mean_score: FloatArray) -> dict[str, Any]:
    """Return what scikit-learn's searches call ``cv_results_``, without times; ``pandas.DataFrame`` makes it a table.

    Parameters
    ----------
    params : list of dict
        The settings.
    split_scores : ndarray of shape (n_splits, n_settings)
        Held-out scores, the greater the better; nan where there is none.
    mean_score : ndarray of shape (n_settings,)
        Their means, in which splits may differ in weight.

    Returns
    -------
    dict of list or ndarray of shape (n_settings,)
        ``params``; ``param_<name>`` for every parameter, masked where a setting has none of this name;
        ``split<k>_test_score``, ``mean_test_score``, ``std_test_score``, and ``rank_test_score``, 1 for the best, nan
        last.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn.parameters.cv_results import cv_results
    >>> scores = np.array([[0.5, 1.0], [0.7, 0.8]])
    >>> table = cv_results([{"max_iter": 5}, {"max_iter": 9}], scores, scores.mean(axis=0))
    >>> table["param_max_iter"].tolist(), table["rank_test_score"].tolist()
    ([5, 9], [2, 1])
    """
    table: dict[str, Any] = {"params": params}
    for name in sorted({name for setting in params for name in setting}):
        values = table[f"param_{name}"] = np.ma.masked_all(len(params), dtype=object)
        for i, setting in enumerate(params):
            if name in setting:
                values[i] = setting[name]
    return {
        **table,
        **{f"split{k}_test_score": scores for k, scores in enumerate(split_scores)},
        "mean_test_score": mean_score,
        "std_test_score": split_scores.std(axis=0),
        "rank_test_score": rankdata(np.where(np.isnan(mean_score), np.inf, -mean_score), method="min").astype(int),
    }
