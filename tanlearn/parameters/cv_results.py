"""Results of a search over settings in the format of scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import rankdata

from tanlearn._typing import FloatArray

__all__ = ["cv_results"]


def cv_results(params: list[dict[str, Any]], split_scores: FloatArray, mean_score: FloatArray) -> dict[str, Any]:
    """Return a dictionary like scikit-learn's ``cv_results_``, without times.

    ``split_scores`` (n_splits, n_settings) are held-out scores, which may be nan. Higher scores are better.
    ``mean_score`` (n_settings,) contains their means, in which splits may have different weights. Each array in the
    result has length n_settings. ``param_<name>`` is masked for settings without this parameter. Settings whose mean
    score is nan are ranked last.
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
