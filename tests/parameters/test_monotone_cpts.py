"""Isotonic regression of CPTs, and classifiers trained by gradient whose log odds are monotone."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from oracles import context_tries as oracle
from oracles import monotone
from sklearn.utils._param_validation import InvalidParameterError
from support.monotone_rows import draw_rows, passengers

from tanlearn import (
    BayesNetClassifier,
    Candidates,
    ConditionalNLL,
    ConjugateGradient,
    EncodedData,
    HybridCV,
    Knowledge,
    KTreeClassifier,
    Margin,
    MaximumLikelihood,
    MonotoneLikelihood,
    NaiveBayesClassifier,
    QuantileDiscretizer,
    Structure,
    TableEncoder,
    TANClassifier,
    load,
    save,
)
from tanlearn.baselines import ChowLiu
from tanlearn.models.tables import Tables
from tanlearn.parameters.monotone_cpts import MonotoneCPTs

N_STATES = (4, 3, 4, 3, 2)
DIRECTIONS = (1, 0, -1, 0, 0)
ENCODER = TableEncoder(discretizer=QuantileDiscretizer(max_bins=6))


def scores_of_grid(model):
    """Return the log joint of all combinations of values."""
    every = np.array(list(itertools.product(*map(range, N_STATES))))
    codes = EncodedData.from_codes(every, np.zeros(len(every), int), n_states=N_STATES).codes
    return model.model_.log_joint(codes)


def largest_violation(log_odds):
    """Return the largest step in the wrong direction between neighbors of the grid."""
    log_odds = log_odds.reshape(N_STATES)
    cells = {cell: float(log_odds[cell]) for cell in np.ndindex(*log_odds.shape)}
    return max((abs(cells[a] - cells[b]) for a, b in monotone.violations(cells, DIRECTIONS)), default=0.0)


def check_monotone(model):
    """Check that scores are exactly monotone, and that calibrated ones are except for rounding."""
    scores = scores_of_grid(model)
    assert largest_violation(scores[:, 1] - scores[:, 0]) == 0
    calibrated = model.calibration_.log_posterior(scores)
    assert largest_violation(calibrated[:, 1] - calibrated[:, 0]) < 1e-12
    assert np.ptp(scores[:, 1] - scores[:, 0]) > 1


@pytest.mark.parametrize("is_normalized", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_the_closest_monotone_cpts_have_pooled_odds(seed, is_normalized):
    data, rng = draw_rows(seed, N_STATES, 200), np.random.default_rng(seed)
    structure = Structure(np.array([[1, 3], [-1, -1], [3, -1], [1, -1], [-1, -1]]))
    tables = MaximumLikelihood(alpha=0.5).fit(structure, data, rng)
    cells = tables.cells + (0 if is_normalized else rng.normal(size=len(tables.cells)))
    tables = Tables(tables.layout, cells, is_normalized)
    rule = MonotoneCPTs(np.array(DIRECTIONS), np.array([4, 3, 3, 3, 2]))  # the last value of feature 2 has no order
    found = rule.apply(tables)
    assert found.is_normalized == is_normalized
    for i in range(5):
        before, after = np.exp(tables[i]), np.exp(found[i])
        if not DIRECTIONS[i]:
            np.testing.assert_allclose(after, before, rtol=1e-11)
            continue
        n_ranked, totals = int(rule.n_ranked[i]), before.sum(axis=0)
        order = [*np.arange(n_ranked)[:: DIRECTIONS[i]].tolist(), *range(n_ranked, len(before))]
        for parents in np.ndindex(*before.shape[1:-1]):
            own = (before / totals)[:, *parents][order]
            expected = np.array(oracle.rising_probabilities(own.tolist(), n_ranked)) * totals[parents]
            np.testing.assert_allclose(after[:, *parents][order], expected, rtol=1e-10)
            odds = DIRECTIONS[i] * (found[i][:, *parents][:, 1] - found[i][:, *parents][:, 0])[:n_ranked]
            assert (np.diff(odds) >= 0).all()
    again = rule.apply(found)
    np.testing.assert_allclose(again.cells, found.cells, atol=1e-11)


@pytest.mark.parametrize("loss", [None, ConditionalNLL(), Margin()])
def test_bayes_nets_trained_by_gradient_are_monotone(loss):
    data = draw_rows(0, N_STATES, 200, missing=0.05)
    structure = Structure(np.array([1, -1, 3, 1, -1]))
    learners = None if loss is None else [ConjugateGradient(loss=loss)]
    directions = {"increasing": [0], "decreasing": [2]}
    options = {"structure": structure, "random_state": 0}
    model = BayesNetClassifier(parameters=HybridCV(learners=learners, **directions), **options).fit_encoded(data)
    check_monotone(model)
    free = scores_of_grid(BayesNetClassifier(parameters=HybridCV(learners=learners), **options).fit_encoded(data))
    assert largest_violation(free[:, 1] - free[:, 0]) > 0.01


@pytest.mark.parametrize("options", [{}, {"kind": "order-free"}, {"loss": Margin(), "calibrate": False}])
def test_gradient_tan_is_monotone(options):
    data = draw_rows(1, N_STATES, 200, missing=0.05)
    options = dict(options)
    candidates = Candidates(options.pop("kind", "subset"), knowledge=Knowledge(increasing=[0], decreasing=[2]))
    model = TANClassifier(candidates=candidates, n_epochs=4, random_state=0, **options).fit_encoded(data)
    check_monotone(model)
    assert not np.isin(model.structure_.parents, [0, 2]).any()
    assert model.tables_.is_normalized
    assert all(model.tables_.probabilities(i).sum(axis=0) == pytest.approx(1, abs=1e-6) for i in range(5))


@pytest.mark.parametrize("options", [{}, {"loss": Margin(), "calibrate": False}])
def test_k_trees_are_monotone(options):
    data = draw_rows(2, N_STATES, 200)
    candidates = Candidates("order-free", knowledge=Knowledge(increasing=[0], decreasing=[2]))
    model = KTreeClassifier(candidates=candidates, n_epochs=3, random_state=0, **options).fit_encoded(data)
    check_monotone(model)
    assert not np.isin(model.structure_.parents, [0, 2]).any()


def test_files_keep_the_columns_and_raw_values_are_monotone(tmp_path):
    X, y = passengers(120, missing=0.0)
    X.loc[::9, "age"] = np.nan
    candidates = Candidates(knowledge=Knowledge(increasing=["fare"], decreasing=["age"]))
    model = TANClassifier(candidates=candidates, n_epochs=2, encoder=ENCODER, random_state=0).fit(X, y)
    rows = X.iloc[np.repeat(np.arange(1, 9), 40)].reset_index(drop=True)
    for name, direction, high in (("fare", 1, 200), ("age", -1, 90)):
        p = model.predict_proba(rows.assign(**{name: np.tile(np.linspace(0, high, 40), 8)}))[:, 1].reshape(8, 40)
        assert (direction * np.diff(p, axis=1) >= -1e-12).all()
    save(model, tmp_path / "model.tan")
    loaded = load(tmp_path / "model.tan")
    assert loaded.get_params()["candidates__knowledge__increasing"] == ["fare"]
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match=r"decreasing non-monotone\. Leave bits out"):
        model.with_bits((3, 3))


def test_invalid_columns_and_settings_are_refused():
    X, y = passengers(60, missing=0.0)
    for kind in (TANClassifier, KTreeClassifier):

        def classifier(kind=kind, *, bits=None, **knowledge):
            return kind(candidates=Candidates(knowledge=Knowledge(**knowledge)), bits=bits, encoder=ENCODER)

        with pytest.raises(ValueError, match=r"increasing\[0\] is X column 'port', which has no order"):
            classifier(increasing=["port"]).fit(X, y)
        with pytest.raises(ValueError, match="need exactly two classes, but the data have 3"):
            classifier(decreasing=["age"]).fit(X, np.resize(["a", "b", "c"], 60))
        with pytest.raises(ValueError, match=r"decreasing non-monotone\. Leave bits out"):
            classifier(increasing=["age"], bits=4).fit(X, y)
        with pytest.raises(ValueError, match=r"the edge 'age' -> 'port' is required, but 'age' .* have no children"):
            classifier(increasing=["age"], required=[("age", "port")]).fit(X, y)
    with pytest.raises(ValueError, match="this learner does not support increasing and decreasing of Knowledge"):
        BayesNetClassifier(structure=ChowLiu(knowledge=Knowledge(increasing=["age"])), encoder=ENCODER).fit(X, y)
    learner = HybridCV(increasing=["age"])
    with pytest.raises(ValueError, match=r"structure has an edge from X column 'age' to X column 'fare'"):
        BayesNetClassifier(structure=Structure([-1, 0, -1]), parameters=learner, encoder=ENCODER).fit(X, y)


def test_splits_with_other_cut_points_are_pooled_on_their_own(monkeypatch):
    seen, on = set(), MonotoneCPTs.on
    monkeypatch.setattr(MonotoneCPTs, "on", lambda self, data: seen.add(tuple(data.n_states)) or on(self, data))
    X, y = passengers(150, missing=0.0)  # the classes separate fares into two intervals, but not in all splits
    candidates = Candidates(knowledge=Knowledge(increasing=["fare"], decreasing=["age"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # columns of a single interval
        model = TANClassifier(candidates=candidates, n_epochs=2, random_state=0).fit(X, y)
    p = model.predict_proba(X.iloc[[0] * 40].assign(fare=np.linspace(0, 200, 40)))[:, 1]
    assert (np.diff(p) >= -1e-12).all()
    assert p[-1] > p[0]
    assert len(seen) > 1


@pytest.mark.parametrize("parameters", [HybridCV(increasing=["fare"]), MonotoneLikelihood(increasing=["fare"])])
def test_networks_with_a_monotone_parameter_learner_are_not_rounded(parameters):
    X, y = passengers(120, missing=0.0)
    model = NaiveBayesClassifier(parameters=parameters, encoder=ENCODER).fit(X, y)
    with pytest.raises(ValueError, match=r"decreasing non-monotone\. Leave bits out"):
        model.with_bits((3, 3))


def test_unused_values_keep_log_odds_monotone_for_tiny_pseudocounts():
    """The smallest probabilities of both classes must not vanish when they are pooled."""
    rng = np.random.default_rng(0)
    level = pd.Categorical(rng.choice([0, 1, 3, 4], 200), categories=range(6), ordered=True)
    X = pd.DataFrame({"level": level, "other": rng.integers(0, 2, 200)})
    y = np.where(X.level.cat.codes >= 3, "yes", "no")
    learner = ConjugateGradient(alpha=1e-170, loss=ConditionalNLL())
    parameters = HybridCV(increasing=["level"], learners=[learner])
    model = BayesNetClassifier(parameters=parameters).fit(X, y)
    rows = X.iloc[[0] * 6].assign(level=pd.Categorical(range(6), categories=range(6), ordered=True))
    log_p = model.predict_log_proba(rows)
    assert (np.diff(log_p[:, 1] - log_p[:, 0]) >= -1e-12).all()


@pytest.mark.parametrize("kind", [TANClassifier, KTreeClassifier])
def test_columns_must_be_lists(kind):
    X, y = passengers(60, missing=0.0)
    with pytest.raises(InvalidParameterError, match="'decreasing' parameter of Knowledge must be an"):
        kind(candidates=Candidates(knowledge=Knowledge(decreasing=None)), encoder=ENCODER).fit(X, y)
