"""Pictures of comparisons: mean ranks, bars and points are those of tables that are ranked by hand."""

import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tanlearn.comparison import CellResult, Comparison
from tanlearn.displays import CriticalDifferenceDisplay, PairedErrorsDisplay

pytest.importorskip("matplotlib")
pytest.importorskip("scikit_posthocs")

#: Demsar (2006), table 6: AUC of C4.5 with two parameters tuned or not, on 14 data sets.
AUC = {
    "C4.5": [0.763, 0.599, 0.954, 0.628, 0.882, 0.936, 0.661, 0.583, 0.775, 1.000, 0.940, 0.619, 0.972, 0.957],
    "C4.5+m": [0.768, 0.591, 0.971, 0.661, 0.888, 0.931, 0.668, 0.583, 0.838, 1.000, 0.962, 0.666, 0.981, 0.978],
    "C4.5+cf": [0.771, 0.590, 0.968, 0.654, 0.886, 0.916, 0.609, 0.563, 0.866, 1.000, 0.965, 0.614, 0.9751, 0.946],
    "C4.5+m+cf": [0.798, 0.569, 0.967, 0.657, 0.898, 0.931, 0.685, 0.625, 0.875, 1.000, 0.962, 0.669, 0.975, 0.970],
}
ERRORS = {name: (1 - np.array(auc)).round(6) for name, auc in AUC.items()}


def figure_of(width, height):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=50)
    FigureCanvasAgg(figure)
    return figure


@pytest.fixture
def ax():
    return figure_of(6, 4).subplots()


def comparison_of(errors):
    """Return a comparison with errors (n_datasets, n_learners) of a single split; NaN is a failure."""
    splits = {"repeat": 1, "fold": 1, "n_folds": 1, "seed": 0, "n_train": 80, "n_test": 20}
    identity = {"data_id": "", "learner_id": "", "settings": "", "versions": ""}
    cells = []
    for (i, j), error in np.ndenumerate(errors):
        outcome = {"failure": "failed"} if np.isnan(error) else {"error": float(error)}
        cells.append(CellResult(dataset=f"set {i}", learner="abcd"[j], **splits, **identity, **outcome))
    return Comparison(cells)


def bars(ax):
    """Return the ends of the thick lines."""
    thick = [line for line in ax.lines if line.get_linewidth() == 3.0]
    return sorted((round(float(min(x)), 6), round(float(max(x)), 6)) for x in (line.get_xdata() for line in thick))


def test_mean_ranks_and_critical_difference_are_those_of_the_paper():
    display = CriticalDifferenceDisplay(ERRORS)
    rounded = {name: round(rank, 3) for name, rank in display.mean_ranks_.items()}
    assert rounded == {"C4.5+m+cf": 1.964, "C4.5+m": 2.0, "C4.5+cf": 2.893, "C4.5": 3.143}
    assert display.critical_difference_ == pytest.approx(1.25, abs=0.005)
    assert CriticalDifferenceDisplay(ERRORS, alpha=0.1).critical_difference_ == pytest.approx(1.12, abs=0.005)
    ranks = np.array([display.mean_ranks_[name] for name in ERRORS])
    chi_square = 12 * 14 / (4 * 5) * ((ranks**2).sum() - 4 * 25 / 4)
    assert chi_square == pytest.approx(9.28, abs=0.005)
    f = 13 * chi_square / (14 * 3 - chi_square)  # Iman and Davenport
    assert f == pytest.approx(3.69, abs=0.005)
    tied = stats.friedmanchisquare(*ERRORS.values()).statistic  # the paper does not correct it for ties
    assert display.friedman_p_value_ == pytest.approx(stats.f.sf(13 * tied / (14 * 3 - tied), 3, 39), rel=1e-9)


def test_picture_and_report_draw_the_same_conclusion(ax):
    """Friedman's chi-squared alone would have p = 0.09 here: not significant."""
    errors = np.array([[4, 3, 2, 1], [4, 2, 1, 3], [4, 2, 1, 3]], float)
    assert stats.friedmanchisquare(*errors.T).pvalue > 0.05
    comparison = comparison_of(errors)
    ranks = comparison.ranks()
    display = CriticalDifferenceDisplay(dict(zip(ranks.learners, ranks.values.T, strict=True))).plot(ax)
    assert display.friedman_p_value_ == ranks.p_value
    assert display.critical_difference_ == ranks.critical_difference
    np.testing.assert_array_equal(display.p_values_, ranks.nemenyi())
    assert f"Friedman test (Iman and Davenport): p = {ranks.p_value:.3f}" in ax.get_title()
    assert f"Friedman test (Iman and Davenport): p = {ranks.p_value:.3f}" in comparison.report()


def test_bars_join_learners_closer_than_the_critical_difference(ax):
    rng = np.random.default_rng(0)
    errors = {name: rng.normal(shift, 1, 20) for name, shift in zip("abcdefgh", np.linspace(0, 4, 8), strict=True)}
    display = CriticalDifferenceDisplay(errors).plot(ax)
    ranks = list(display.mean_ranks_.values())
    groups = [
        (a, max(b for b in ranks if b - a <= display.critical_difference_)) for a in ranks
    ]  # the farthest rank from each one that is not significantly different
    expected = [(a, b) for a, b in groups if b > a and not any(c < a and b <= d for c, d in groups)]
    assert bars(ax) == [(round(a, 6), round(b, 6)) for a, b in expected]
    assert len(bars(ax)) > 2
    heights = [line.get_ydata()[0] for line in ax.lines if line.get_linewidth() == 3.0]
    assert len(set(heights)) == len(heights)
    written = {text.get_text().strip() for text in ax.texts}
    assert {text.strip("0123456789. ") for text in written} == set(errors)
    assert all(f"{rank:.2f}" in " ".join(written) for rank in ranks)
    assert "20 data sets" in ax.get_title()
    assert "Nemenyi test" in ax.get_title()
    assert display.plot(ax) is display


def test_pairs_are_not_tested_without_a_difference_of_all(ax):
    rng = np.random.default_rng(1)
    display = CriticalDifferenceDisplay(pd.DataFrame(rng.normal(size=(12, 4)), columns=list("abcd"))).plot(ax)
    ranks = list(display.mean_ranks_.values())
    assert display.friedman_p_value_ > 0.05
    assert bars(ax) == [(round(ranks[0], 6), round(ranks[-1], 6))]
    assert "no significant differences at level 0.05\nFriedman test" in ax.get_title()


def test_equal_learners_have_equal_ranks(ax):
    display = CriticalDifferenceDisplay({name: [1.0, 2.0, 3.0] for name in "abc"}).plot(ax)
    assert set(display.mean_ranks_.values()) == {2}
    assert display.friedman_p_value_ == 1
    assert ax.get_xlim()[0] < 2 < ax.get_xlim()[1]


def test_other_tests_are_passed_as_p_values(ax):
    p_values = np.ones((4, 4))
    p_values[0, [1, 3]] = p_values[[1, 3], 0] = 0.01  # C4.5 differs from both learners with m
    display = CriticalDifferenceDisplay(ERRORS, alpha=0.02, p_values=p_values).plot(ax)
    assert (display.p_values_ == p_values).all()
    ranks = {name: round(rank, 6) for name, rank in display.mean_ranks_.items()}
    assert bars(ax) == [(ranks["C4.5+m+cf"], ranks["C4.5+cf"]), (ranks["C4.5+cf"], ranks["C4.5"])]
    assert "the given p-values" in ax.get_title()


def test_tables_that_cannot_be_ranked_are_refused():
    with pytest.raises(ValueError, match="at least 3 learners, got 'a', 'b'"):
        CriticalDifferenceDisplay({"a": [1, 2], "b": [1, 2]})
    with pytest.raises(ValueError, match=r"same data sets, got the shapes .*'c': \(1,\)"):
        CriticalDifferenceDisplay({"a": [1, 2], "b": [1, 2], "c": [1]})
    with pytest.raises(ValueError, match="at least 2 data sets, got 1"):
        CriticalDifferenceDisplay({"a": [1], "b": [1], "c": [1]})
    with pytest.raises(ValueError, match=r"got nan for 'b' on data set 1\. Leave out"):
        CriticalDifferenceDisplay({"a": [1, 2], "b": [1, np.nan], "c": [1, 3]})
    with pytest.raises(ValueError, match="alpha must be between 0 and 1, got 5"):
        CriticalDifferenceDisplay(ERRORS, alpha=5)
    with pytest.raises(ValueError, match=r"shape \(4, 4\), got \(3, 3\)"):
        CriticalDifferenceDisplay(ERRORS, p_values=np.ones((3, 3)))
    with pytest.raises(ValueError, match="symmetric"):
        CriticalDifferenceDisplay(ERRORS, p_values=np.triu(np.ones((4, 4))))


def test_without_scikit_posthocs_the_remedy_is_reported(monkeypatch):
    monkeypatch.setitem(sys.modules, "scikit_posthocs", None)
    with pytest.raises(ImportError, match=r"needs scikit-posthocs.*tanlearn\[compare\]"):
        CriticalDifferenceDisplay(ERRORS)


def test_paired_errors_are_points_of_three_kinds(ax):
    errors = {"Chow-Liu": [10, 8, 31, 4], "gradient": [9, 8, 28, 5]}
    display = PairedErrorsDisplay(errors, datasets=["adult", "letter", "satimage", "usps"]).plot(ax)
    assert (display.wins_, display.n_ties_) == ((1, 2), 1)
    first, second, ties = (points.get_offsets().tolist() for points in ax.collections)
    assert (first, second, ties) == ([[4, 5]], [[10, 9], [31, 28]], [[8, 8]])
    captions = [text.get_text() for text in ax.get_legend().get_texts()]
    assert captions == ["Chow-Liu better: 1", "gradient better: 2", "equal: 1"]
    assert {text.get_text() for text in ax.texts} == {"satimage", "adult", "usps"}
    assert ax.get_xlabel() == "Chow-Liu: error [%]"
    assert ax.get_ylabel() == "gradient: error [%]"
    other = PairedErrorsDisplay(errors, measure="log loss").plot(ax)
    assert not other.datasets
    assert other.ax_.get_xlabel() == "Chow-Liu: log loss"
    assert ax.get_xlim() == ax.get_ylim()
    diagonal = ax.lines[0].get_xydata()
    np.testing.assert_array_equal(diagonal[:, 0], diagonal[:, 1])


@pytest.mark.parametrize("size", [(3, 3), (5, 5), (8, 5)])
def test_names_cover_no_points_and_stay_inside(size):
    rng = np.random.default_rng(0)
    for n_datasets in (2, 8, 30):
        ax = figure_of(*size).subplots()
        errors = {"a": rng.gamma(2, 8, n_datasets), "b": rng.gamma(2, 8, n_datasets)}
        errors["a"][:2], errors["b"][:2] = [0, 60], [50, 0]  # at the axes
        names = [f"a_table_with_a_long_name_{k}" for k in range(n_datasets)]
        PairedErrorsDisplay(errors, datasets=names).plot(ax)
        ax.figure.draw_without_rendering()
        largest = np.argsort(-np.abs(errors["a"] - errors["b"]))[:4]
        assert 0 < len(ax.texts) <= len(largest)
        assert {text.get_text() for text in ax.texts} <= {names[k] for k in largest}
        boxes = [text.get_window_extent() for text in ax.texts]
        pixels = ax.transData.transform(np.stack([*errors.values()], axis=1))
        assert not any(box.count_contains(pixels) for box in boxes)
        assert not any(box.count_overlaps([o for o in boxes if o is not box]) for box in boxes)
        assert all(ax.bbox.x0 <= box.x0 and box.x1 <= ax.bbox.x1 for box in boxes)
        assert all(ax.bbox.y0 <= box.y0 and box.y1 <= ax.bbox.y1 for box in boxes)


def test_data_sets_are_named_by_the_index_or_by_keys(ax):
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 5.0]}, index=["iris", "wine"])
    assert PairedErrorsDisplay(frame).datasets == ["iris", "wine"]
    assert PairedErrorsDisplay(frame.reset_index(drop=True)).datasets is None
    nested = {"a": {"iris": 1, "wine": 2}, "b": {"wine": 5, "iris": 3}}
    display = PairedErrorsDisplay(nested).plot(ax)
    assert display.errors.tolist() == [[1, 3], [2, 5]]
    assert {text.get_text() for text in ax.texts} == {"iris", "wine"}
    assert PairedErrorsDisplay(nested, datasets=["x", "y"]).datasets == ["x", "y"]
    with pytest.raises(ValueError, match="on the same data sets, but 'iris' is missing"):
        PairedErrorsDisplay({"a": {"iris": 1}, "b": {"shop": 1}})
    with pytest.raises(ValueError, match="got nan for 'b' on data set 'wine'"):
        PairedErrorsDisplay({"a": {"iris": 1, "wine": 2}, "b": {"iris": 1, "wine": np.nan}})


def test_comparisons_are_drawn_as_they_are():
    comparison = comparison_of(np.array([[4, 3, 2], [4, 2, 1], [3, np.nan, 2], [1, 2, 3]]))
    display = CriticalDifferenceDisplay(comparison)
    assert display.names == ["a", "b", "c"]
    assert display.errors.tolist() == [[4, 3, 2], [4, 2, 1], [1, 2, 3]]  # b is not complete on set 2
    pair = PairedErrorsDisplay(comparison.errors(["a", "c"]))
    assert pair.datasets == ["set 0", "set 1", "set 2", "set 3"]
    with pytest.raises(ValueError, match=r"got 'a', 'b', 'c'\. Select two of them"):
        PairedErrorsDisplay(comparison)
    with pytest.raises(ValueError, match=r"complete results of all learners \(a, b\)"):
        comparison_of(np.array([[1, np.nan]])).errors()
    with pytest.raises(ValueError, match="there is no learner 'e'"):
        comparison.errors(["e"])
    with pytest.raises(TypeError, match="errors must be a comparison, a dict or a DataFrame, got list"):
        PairedErrorsDisplay([[1, 2], [3, 4]])


def test_tables_that_are_no_pairs_are_refused():
    with pytest.raises(ValueError, match="exactly two learners, got 'a', 'b', 'c'"):
        PairedErrorsDisplay({"a": [1], "b": [1], "c": [1]})
    with pytest.raises(ValueError, match="datasets must contain 2 names, one per error, got 1"):
        PairedErrorsDisplay({"a": [1, 2], "b": [1, 2]}, datasets=["iris"])
    with pytest.raises(ValueError, match="finite numbers, got inf for 'b' on data set 0"):
        PairedErrorsDisplay({"a": [1], "b": [np.inf]})
