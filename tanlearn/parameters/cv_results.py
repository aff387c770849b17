"""The table of a search over settings, with the columns of scikit-learn's searches."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata

from tanlearn._typing import FloatArray

__all__ = ["cv_results"]


def cv_results(params: list[dict[str, Any]], split_scores: FloatArray, mean_score: FloatArray) -> dict[str, Any]:
    """Return what scikit-learn's searches call ``cv_results_``, without times; ``pandas.DataFrame`` makes it a table.

    Shapes: split_scores: (n_splits, n_settings); mean_score: (n_settings,); result: (n_settings,).
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
