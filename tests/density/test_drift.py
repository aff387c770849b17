"""Drift of columns and dependences, against sums over single values."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, chi2_contingency
from sklearn.exceptions import NotFittedError

from tanlearn import TANDensity, drift_report


def table(n, seed, follows=0.9, shift=0.0, **changes):
    """Return rows in which ``b`` often equals ``a``, and a number that depends on nothing."""
    rng = np.random.default_rng(seed)
    a = rng.choice(["x", "y", "z"], n)
    b = np.where(rng.random(n) < follows, a, rng.choice(["x", "y", "z"], n))
    return pd.DataFrame({"a": a, "b": b, "size": rng.normal(shift, 1, n), **changes})


REFERENCE = table(600, 0)
DENSITY = TANDensity(n_components=1).fit(REFERENCE)


def lines(new):
    return drift_report(DENSITY, REFERENCE, new).set_index("column")


def test_ratios_are_sums_over_values():
    new = table(300, 1, follows=0.5)
    found = lines(new)
    parent = found.loc["b", "parent"] or found.loc["a", "parent"]
    child = "b" if found.loc["b", "parent"] else "a"
    both = pd.concat([REFERENCE, new])
    for given, name in (([], "log_ratio"), ([parent], "log_ratio_given_parent")):
        expected = 0.0
        for rows, sign in ((REFERENCE, 1), (new, 1), (both, -1)):
            for _, row in rows.iterrows():
                context = rows[(rows[given] == row[given]).all(axis=1)] if given else rows
                expected += sign * math.log((context[child] == row[child]).sum() / len(context))
        assert found.loc[child, name] == pytest.approx(expected)
    counts = [frame["a"].value_counts().sort_index() for frame in (REFERENCE, new)]
    assert found.loc["a", "p_value"] == pytest.approx(
        chi2_contingency(np.array(counts), correction=False, lambda_="log-likelihood").pvalue
    )
    assert found.loc[child, "p_value_given_parent"] == pytest.approx(
        chi2.sf(2 * found.loc[child, "log_ratio_given_parent"], 6), rel=1e-6
    )


def test_a_changed_dependence_is_found_where_columns_did_not_change():
    found = lines(table(600, 1, follows=0.3))
    child = "b" if found.loc["b", "parent"] else "a"
    assert found.loc[child, "p_value"] > 1e-3
    assert found.loc[child, "p_value_given_parent"] < 1e-20
    assert found["distance"].max() < 0.15


def test_a_changed_column_is_found():
    found = drift_report(DENSITY, REFERENCE, table(600, 1, shift=1.0))
    assert found["column"].tolist()[0] == "size"
    assert found["p_value"].tolist()[0] < 1e-20
    assert found["p_value"].tolist()[1] > 1e-3


def test_equal_tables_have_no_drift():
    found = lines(REFERENCE)
    assert (found[["distance", "log_ratio", "log_ratio_given_parent"]].abs() < 1e-9).all(axis=None)
    assert (found[["p_value", "p_value_given_parent"]] == 1).all(axis=None)


def test_missing_and_unseen_values():
    new = table(600, 1, a="new")
    new.loc[:299, "size"] = np.nan
    with pytest.warns(UserWarning, match=r"no value in 1 column\(s\) was seen in fit"):
        found = lines(new)
    assert found.loc["a", "distance"] == pytest.approx(1)
    assert found.loc["size", "missing_new"] == 0.5
    assert found.loc["size", "missing_reference"] == 0


def test_unfitted_densities_are_refused():
    with pytest.raises(NotFittedError):
        drift_report(TANDensity(), REFERENCE, REFERENCE)
