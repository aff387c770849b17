"""A table of every kind of column, and its summaries, whole and in parts."""

import numpy as np
import pandas as pd

from tanlearn import QuantileDiscretizer
from tanlearn.encoding.summaries import TableSummary
from tanlearn.sources.columns import read_columns
from tanlearn.sources.validation import present_rows

N = 400
RNG = np.random.default_rng(0)
Y = RNG.choice(["home", "office", "beach"], N)
FRAME = pd.DataFrame(
    {
        "town": pd.Series(np.where(RNG.random(N) < 0.7, np.char.upper(Y.astype(str)), "WELS"), dtype=object),
        "size": RNG.normal(size=N) + 4 * (Y == "beach"),
        "single": (RNG.normal(size=N) + (Y == "home")).astype(np.float32),
        "doors": RNG.integers(2, 6, N).astype(np.int16),
        "rooms": RNG.integers(0, 40, N) * (Y == "office"),
        "owner": RNG.random(N) < 0.5,
        "grade": pd.Categorical(RNG.choice(["b", "a"], N), categories=["c", "b", "a"], ordered=True),
        "gone": np.full(N, np.nan),
    }
)
FRAME.loc[5:60, "town"] = None
FRAME.loc[50:100, "size"] = np.nan
FRAME.loc[90:120, "grade"] = None
FRAME.loc[N - 1, "town"] = "only in the last row"
WEIGHT = RNG.integers(0, 5, N)
DISCRETIZERS = {
    "default": None,
    "quantiles": QuantileDiscretizer(max_bins=7),
    "all quantiles": QuantileDiscretizer(),
}


class OwnQuantiles(QuantileDiscretizer):
    """Somebody's own, which the encoder fits to arrays."""

    def fit(self, X, y, sample_weight=None):
        assert type(X) is np.ndarray
        return super().fit(X, y, sample_weight)


def of(X, y, sample_weight=None, **options):
    """Return the summary of one table."""
    return TableSummary(**options).update(read_columns(X), y, sample_weight)


def parts_of(X, y, weight, rows, **options):
    """Return the summaries of some rows each, of which there may be none."""
    columns = read_columns(X)
    found = []
    for some in rows:
        mask = np.zeros(len(y), np.bool_)
        mask[some] = True
        own = None if weight is None else weight[mask]
        # Read by itself where that can be done, so that types are its own.
        part = read_columns(X[mask]) if type(X) is np.ndarray and mask.any() else columns.take(mask)
        found.append(TableSummary(**options).update(part, y[mask], own))
    return found


def merged(summaries, rng=None):
    """Return the sum of summaries, pair after pair in a random tree."""
    left = list(summaries)
    while len(left) > 1:
        i, j = (0, 1) if rng is None else rng.choice(len(left), 2, replace=False)
        left = [s for k, s in enumerate(left) if k not in (i, j)] + [left[i].merge(left[j])]
    return left[0]


def fitted(encoder, X, y, weight=None):
    """Return the encoder of the whole table, and its classes."""
    columns, codes, classes, weights, _ = present_rows(read_columns(X), y, weight)
    encoder.fit_columns(columns, codes, weights)
    return encoder, classes


def assert_same(one, other, *, exact=True):
    """Compare all that encoders have learnt, bit for bit but for means."""
    assert one.is_discrete_.tolist() == other.is_discrete_.tolist()
    assert one.n_states_.tolist() == other.n_states_.tolist()
    for a, b in zip(one.categories_, other.categories_, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype
            assert a.tolist() == b.tolist()
    cuts = [[] if encoder.discretizer_ is None else encoder.discretizer_.cut_points_ for encoder in (one, other)]
    for a, b in zip(*cuts, strict=True):
        assert np.array_equal(a, b) if exact else np.allclose(a, b)
    assert repr(one.value_ranges_) == repr(other.value_ranges_)  # nan where nothing is known of a column
    for a, b in zip(one.typical_values_, other.typical_values_, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
