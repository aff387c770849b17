"""Fits that need too much memory: refused before they start, or with a smaller model and a warning."""

import numpy as np
import pytest

from tanlearn import (
    BayesEnsembleClassifier,
    BayesForestClassifier,
    BoostedTermsClassifier,
    NaiveBayesClassifier,
    TermNetClassifier,
    _memory,
)
from tanlearn._memory import Need, TableMemoryError, check_fit

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)
MIB = 2**20


def test_the_message_names_the_total_the_shape_the_largest_array_and_the_limit(monkeypatch):
    monkeypatch.setenv("TANLEARN_MAX_TABLE_GIB", str(2 / 1024))
    needs = [Need("small arrays", 0.5 * MIB), Need("large arrays", 2 * MIB)]
    with pytest.raises(TableMemoryError) as error:
        check_fit("SomeClassifier", needs, (1000, 20, 3))
    assert str(error.value).startswith(
        "SomeClassifier would need about 2.5 MiB for 1,000 rows, 20 columns and 3 classes, of which large arrays take "
        "2.0 MiB, but a fit may take at most 2.0 MiB. Drop or merge rare classes"
    )
    assert "TANLEARN_MAX_TABLE_GIB" in str(error.value)
    check_fit("SomeClassifier", needs[1:], (1000, 20, 3))
    check_fit("SomeClassifier", [], (1000, 20, 3))


@pytest.mark.parametrize("learner", [BoostedTermsClassifier, TermNetClassifier, BayesEnsembleClassifier])
def test_fits_that_are_too_large_are_refused_before_they_start(learner, monkeypatch):
    monkeypatch.setenv("TANLEARN_MAX_TABLE_GIB", "1e-5")
    monkeypatch.setattr(learner, "_learn", None)
    with pytest.raises(TableMemoryError, match=f"{learner.__name__} would need about .* for 200 rows, 4 columns and 2"):
        learner().fit(X, Y)
    NaiveBayesClassifier().fit((X > 0).astype(int), Y)  # as the message advises


def test_an_ensemble_needs_the_memory_of_its_largest_part(monkeypatch):
    monkeypatch.setattr(BoostedTermsClassifier, "_memory_needs", lambda self, data: [Need("boosted arrays", 3.0)])
    monkeypatch.setattr(TermNetClassifier, "_memory_needs", lambda self, data: [Need("arrays of terms", 2.0)])
    assert BayesEnsembleClassifier()._memory_needs(None) == [Need("boosted arrays", 3.0)]


@pytest.mark.parametrize(
    ("restrictions", "limit"), [([], 8.0), ([6.0], 3.0), ([40.0, 6.0], 3.0), ([40.0], 8.0), ([1.0], 0.5)]
)
def test_the_limit_is_half_of_the_memory_of_the_process(restrictions, limit, monkeypatch):
    monkeypatch.delenv("TANLEARN_MAX_TABLE_GIB", raising=False)
    monkeypatch.setattr(_memory.os, "sysconf", lambda name: -1)
    monkeypatch.setattr(_memory, "_restrictions", lambda: [size * 2**30 for size in restrictions])
    check_fit("A fit", [Need("arrays", limit * 2**30)], (1, 1, 1))
    with pytest.raises(TableMemoryError):
        check_fit("A fit", [Need("arrays", limit * 2**30 + 1)], (1, 1, 1))


@pytest.mark.parametrize(("content", "found"), [("max\n", []), ("6442450944\n", [6 * 2**30]), ("", []), (None, [])])
def test_the_limit_of_a_container_is_read(content, found, tmp_path, monkeypatch):
    path = tmp_path / "memory.max"
    if content is not None:
        path.write_text(content, encoding="ascii")
    monkeypatch.setattr(_memory, "_CONTAINER_LIMITS", ())
    before = _memory._restrictions()
    monkeypatch.setattr(_memory, "_CONTAINER_LIMITS", (str(path),))
    assert _memory._restrictions() == before + found


def test_terms_whose_values_exceed_the_limit_are_not_fitted(monkeypatch):
    from tanlearn.terms import boosting_selection

    monkeypatch.setattr(boosting_selection, "fixed_limit", lambda: 8 * 20 * (8 * 2 * 32))
    with pytest.warns(
        UserWarning, match=r"ended at 20 instead of 2,000 terms to limit memory: each term has 32 values"
    ):
        model = BoostedTermsClassifier(random_state=0).fit(X, Y)
    assert model.n_terms_ <= 20


def test_networks_whose_edges_exceed_the_limit_are_not_tried(monkeypatch):
    from tanlearn.terms import selection

    free = TermNetClassifier().fit(X, Y)
    assert (free.structure_.parent >= 0).any()
    monkeypatch.setattr(selection, "fixed_limit", lambda: 1.0)
    pattern = r"networks with \d edges were not tried, because they would take .* for 2 classes"
    with pytest.warns(UserWarning, match=pattern) as caught:
        model = TermNetClassifier(max_parents=2).fit(X, Y)
    assert len(caught) == 1
    assert model.cv_results_["param_n_parents"].tolist() == [0]
    assert not (model.structure_.parent >= 0).any()


@pytest.mark.parametrize("learner", [TermNetClassifier(), BoostedTermsClassifier(random_state=0)])
def test_of_many_columns_the_strongest_ones_are_used(learner, monkeypatch):
    from tanlearn.terms import gains

    monkeypatch.setattr(gains, "MOST_FEATURES", 3)
    rng = np.random.default_rng(1)
    wide = rng.normal(size=(300, 7))
    y = (wide[:, 1] + wide[:, 4] + wide[:, 6] + 0.3 * rng.normal(size=300) > 0).astype(int)
    with pytest.warns(UserWarning, match="uses only the 3 of 7 columns that predict the class best on their own"):
        model = learner.fit(wide, y)
    largest = np.abs(model.explain(wide, against=0)[:, :7, 1]).max(axis=0)
    assert (largest > 0.1).tolist() == [i in (1, 4, 6) for i in range(7)]
    assert largest[[0, 2, 3, 5]].max() < 1e-9


def test_a_forest_has_no_needs_of_its_own():
    """It grows fewer networks instead."""
    assert BayesForestClassifier()._memory_needs(None) == []
