"""Networks of terms with the structure of a learner, or a fixed one."""

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from support.family_searches import parents_of
from support.term_networks import N_STATES, random_rows

from tanlearn import BayesEnsembleClassifier, EncodedData, Knowledge, Structure, TermNetClassifier, load, save
from tanlearn.baselines import ChowLiu, GradientStructure, HillClimbing, RandomTree
from tanlearn.terms.basis import Resolutions
from tanlearn.terms.learning import learn_terms
from tanlearn.terms.user_structures import UserStructure, coarse_rows, family_triples


class Recorder:
    """Learner of a fixed structure that keeps the rows of each call."""

    def __init__(self, parents, calls):
        self.parents = parents
        self.calls = calls  # of all copies

    def __deepcopy__(self, memo):
        return Recorder(self.parents, self.calls)

    def learn(self, data, rng):
        self.calls.append((data, int(rng.integers(2**63))))
        return Structure(self.parents)


def parity(n_together, n_samples=300, n_features=4, seed=0):
    """Return rows of ordered values of which the first ones are informative only together."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 4, (n_samples, n_features))
    y = np.bitwise_xor.reduce(X[:, :n_together] >= 2, axis=1).astype(int)
    return EncodedData.from_codes(X, y, n_states=[4] * n_features, is_ordered=True)


def noise(n_samples=200):
    rng = np.random.default_rng(0)
    return EncodedData.from_codes(rng.integers(0, 3, (n_samples, 3)), rng.integers(0, 2, n_samples), n_states=[3] * 3)


def frame(n_samples=200, seed=0):
    """Return a frame whose class depends on a pair of columns, with missing values."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n_samples, 4)), columns=list("abcd"))
    y = np.where(X["a"] * X["b"] > 0, "same", "other")
    X.loc[rng.random(n_samples) < 0.05, "c"] = np.nan
    return X, y


@pytest.mark.parametrize("has_missing", [None, [True, False, False, False, False, False]])
def test_learners_see_the_groups_of_edges(has_missing):
    _, _, _, data = random_rows(300, missing=0.1, has_missing=has_missing)
    resolutions = Resolutions(data, np.array([0, 0, 0, 1, 0, 0]))
    coarse = coarse_rows(data, resolutions)
    for i, n_values in enumerate(N_STATES):
        groups = np.append(np.zeros(n_values, int) if i == 3 else resolutions.finest(i), -1)
        expected = groups[np.where(data.codes[i] < n_values, data.codes[i], n_values)]
        found = np.where(coarse.codes[i] < coarse.n_states[i], coarse.codes[i].astype(int), -1)
        np.testing.assert_array_equal(found, expected)
        assert coarse.n_states[i] == groups.max() + 1
    assert (coarse.n_states <= [9, 3, 1, 1, 5, 32]).all()
    assert coarse.n_states[0] > 4
    assert coarse.has_missing_category.tolist() == (has_missing or [False] * 6)


def test_triples_are_features_with_two_of_their_parents_by_name():
    parents = np.array([[-1, -1, -1], [0, -1, -1], [1, 0, -1], [0, 2, 1]])
    assert family_triples(parents, np.arange(4)) == [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]
    assert family_triples(parents, np.array([3, 2, 1, 0])) == [(3, 2, 1), (3, 2, 0), (3, 1, 0), (2, 1, 0)]


def test_learners_are_applied_to_each_fold_and_to_all_rows():
    calls = []
    data = parity(2)
    outcome = learn_terms(data, 1, user_structure=UserStructure(Recorder([-1, 0, -1, -1], calls), seed=3))
    assert [own.n_samples for own, _ in calls[:-1]] == [240] * 5
    assert calls[-1][0].n_samples == 300
    assert len({number for _, number in calls}) == 1  # the same random numbers in each call
    assert len(calls) == 6
    assert parents_of(outcome.network.structure) == [(), (0,), (), ()]
    assert isinstance(outcome.structure_learner, Recorder)
    assert [trial.n_parents for trial in outcome.trials] == [0, 1]
    assert outcome.trials[1].error < 0.1
    assert outcome.network.tables.is_normalized


def test_edges_are_left_out_where_folds_cannot_tell():
    calls = []
    outcome = learn_terms(noise(), 1, user_structure=UserStructure(Recorder([-1, 0, 1], calls)))
    assert parents_of(outcome.network.structure) == [(), (), ()]
    assert outcome.structure_learner is None
    assert len(calls) == 5  # not for all rows, because they are not needed
    none = learn_terms(parity(2), 1, user_structure=UserStructure(Structure.naive_bayes(4)))
    assert [trial.n_parents for trial in none.trials] == [0]


def test_the_equal_structure_gives_the_network_by_gain():
    """The structure of gains is a tree, so both networks have the same terms, ridges and CPTs."""
    data = parity(2)
    by_gain = learn_terms(data, 1)
    fixed = learn_terms(data, 1, user_structure=UserStructure(Structure([-1, 0, -1, -1])))
    assert {0, 1} in [{i, *own} for i, own in enumerate(parents_of(by_gain.network.structure))]
    assert fixed.trials[0] == by_gain.trials[0]
    assert fixed.trials[1].log_loss == pytest.approx(by_gain.trials[1].log_loss, rel=0.2)


def test_a_family_of_two_parents_gets_its_triple():
    """No pair of the three features is informative, so edges alone do not help."""
    data = parity(3, 500)
    structure = Structure([[-1, -1], [0, -1], [1, 0], [-1, -1]])
    outcome = learn_terms(data, 2, user_structure=UserStructure(structure))
    assert outcome.network.structure == structure
    assert outcome.chosen.n_parents == 2
    assert outcome.chosen.n_triples
    assert outcome.chosen.error < 0.1
    columns = [column.features for column in outcome.network.tables.columns if len(column.features) > 1]
    assert sorted(columns) == [(1, 0), (2, 0), (2, 0, 1), (2, 1)]


def test_edges_of_features_with_one_value_are_left_out():
    X = np.column_stack([parity(2).codes.T, np.zeros(300, int)])
    data = EncodedData.from_codes(X, parity(2).y, n_states=[4, 4, 4, 4, 1], is_ordered=True)
    outcome = learn_terms(data, 1, user_structure=UserStructure(Structure([4, 0, -1, -1, -1])))
    assert parents_of(outcome.network.structure) == [(), (0,), (), (), ()]
    required = Knowledge(required=[(4, 2)])
    rules = required.rules(None, 5, max_parents=1)
    outcome = learn_terms(data, 1, user_structure=UserStructure(Structure([4, 0, 4, -1, -1])), rules=rules)
    assert parents_of(outcome.network.structure) == [(), (0,), (4,), (), ()]


@pytest.mark.parametrize(
    ("structure", "rule", "error", "message"),
    [
        (Structure([[-1, -1], [0, -1], [0, 1], [2, -1]]), {}, ValueError, "has up to 2 parents per feature, but max_"),
        (Structure([1, 0, -1, -1], allow_cycles=True), {}, ValueError, "structure must not have a cycle"),
        (Structure([-1, 0]), {}, ValueError, "the structure has 2 features, but X has 4 columns"),
        (Recorder([-1, 0, 1], []), {}, ValueError, "the structure has 3 features, but X has 4 columns"),
        (Structure([-1, 0, -1, -1]), {"required": [(0, 2)]}, ValueError, "structure lacks the edge 0 -> 2"),
        (Structure([-1, 0, -1, -1]), {"forbidden": [(0, 1)]}, ValueError, "contains the edge 0 -> 1"),
    ],
)
def test_unsuitable_structures_are_refused(structure, rule, error, message):
    rules = Knowledge(**rule).rules(None, 4, max_parents=1) if rule else None
    with pytest.raises(error, match=message):
        learn_terms(parity(2, 120), 1, user_structure=UserStructure(structure), rules=rules)


def test_networks_of_more_than_five_parents_are_refused():
    parents = np.full((7, 6), -1)
    parents[6] = range(6)
    with pytest.raises(ValueError, match="up to 6 parents per feature, but a network of terms has at most 5"):
        learn_terms(parity(2, 60, 7), 5, user_structure=UserStructure(Structure(parents)))


def test_the_result_of_a_learner_is_checked():
    class Wrong(Recorder):
        def __deepcopy__(self, memo):
            return self

        def learn(self, data, rng):
            return self.parents

    with pytest.raises(TypeError, match="must return a Structure, got an object of type list"):
        learn_terms(parity(2, 60), 1, user_structure=UserStructure(Wrong([-1, 0, 1, 2], [])))


def test_gain_is_the_default():
    X, y = frame(120)
    first, second = (TermNetClassifier(structure=given).fit(X, y) for given in (None, "gain"))
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))
    assert first.structure_ == second.structure_
    assert not hasattr(second, "structure_learner_")


@pytest.mark.parametrize(
    "learner", [ChowLiu(), HillClimbing(max_parents=1), GradientStructure(n_epochs=60), Structure([-1, 0, -1, -1])]
)
def test_learners_of_the_library_files_and_copies(learner, tmp_path):
    X, y = frame()
    model = TermNetClassifier(structure=learner, random_state=0).fit(X, y)
    again = clone(model).fit(X, y)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert repr(clone(model)) == repr(model)
    save(model, tmp_path / "model.tan")
    loaded = load(tmp_path / "model.tan")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert type(loaded.structure) is type(learner)
    if not isinstance(learner, (ChowLiu, HillClimbing)):  # these do not see that the pair predicts the class
        assert {0, 1} in [{i, *own} for i, own in enumerate(parents_of(model.structure_))]
        assert model.score(X, y) > 0.9
    has_edges = model.structure_.n_edges > 0
    assert hasattr(model, "structure_learner_") == (has_edges and not isinstance(learner, Structure))


def test_random_state_is_that_of_the_learner():
    data = parity(2, 150)
    calls = []
    for seed in (0, 0, 1):
        TermNetClassifier(structure=Recorder([-1, 0, -1, -1], calls), random_state=seed).fit_encoded(data)
    numbers = [number for _, number in calls]
    assert len(set(numbers)) == 2
    assert numbers[0] != numbers[-1]
    model = TermNetClassifier(structure=RandomTree(), random_state=2)
    assert model.fit_encoded(data).structure_ == clone(model).fit_encoded(data).structure_


def test_knowledge_is_passed_on_to_learners():
    X, y = frame()
    knowledge = Knowledge(required=[("d", "a")], forbidden=[("a", "b"), ("b", "a")])
    model = TermNetClassifier(structure=ChowLiu(), knowledge=knowledge).fit(X, y)
    assert parents_of(model.structure_)[0] == (3,)
    edges = {frozenset((i, j)) for i, own in enumerate(parents_of(model.structure_)) for j in own}
    assert frozenset((0, 1)) not in edges
    with pytest.raises(ValueError, match="structure lacks the edge 'd' -> 'a'"):
        TermNetClassifier(structure=ChowLiu(knowledge=Knowledge()), knowledge=knowledge).fit(X, y)


@pytest.mark.parametrize("n_samples", [3, 60])
def test_fixed_structures_are_checked_for_any_number_of_rows(n_samples):
    """Three rows cannot be divided into folds."""
    X, y = frame(n_samples)
    y[:2] = ["same", "other"]
    structure = Structure([-1, 0, -1, -1])
    for knowledge, message in (
        (Knowledge(required=[("c", "d")]), "structure lacks the edge 'c' -> 'd'"),
        (Knowledge(forbidden=[("a", "b")]), "structure contains the edge 'a' -> 'b'"),
    ):
        with pytest.raises(ValueError, match=message):
            TermNetClassifier(structure=structure, knowledge=knowledge).fit(X, y)
    with pytest.raises(ValueError, match="structure must not have a cycle"):
        TermNetClassifier(structure=Structure([1, 0, -1, -1], allow_cycles=True)).fit(X, y)


def test_monotone_columns_have_no_edges():
    X, y = frame()
    model = TermNetClassifier(structure=ChowLiu(), increasing=["c"]).fit(X, y)
    own = parents_of(model.structure_)
    assert not own[2]
    assert all(2 not in parents for parents in own)
    model.set_params(structure=Structure([2, 0, -1, -1]))
    with pytest.raises(
        ValueError, match="edge between X column 'c' and X column 'a', but X column 'c' is in increasing"
    ):
        model.fit(X, y)


def test_an_ensemble_has_a_network_with_the_structure():
    X, y = frame(150)
    model = BayesEnsembleClassifier(network=TermNetClassifier(structure=Structure([-1, 0, -1, -1])), random_state=0)
    model.fit(X, y)
    edges = list(itertools.chain(*parents_of(model.network_.structure_)))
    assert edges in ([], [0])


@pytest.mark.parametrize(
    ("structure", "message"),
    [
        ("tree", "The 'structure' parameter of TermNetClassifier must be"),
        (ChowLiu, "got the class ChowLiu"),
        (3, "must"),
    ],
)
def test_other_values_are_refused(structure, message):
    X, y = frame(30)
    with pytest.raises(ValueError, match=message):
        TermNetClassifier(structure=structure).fit(X, y)
