"""The scorer of wrapper searches against structures that are scored from raw rows."""

import numpy as np
import pytest
from support.wrapper_searches import SCORES, SMOOTHINGS, VALIDATIONS, naive_score, random_data, scorer_of, varied_data

from tanlearn import BayesNetClassifier, EncodedData, MaximumLikelihood, NaiveBayesClassifier, Structure
from tanlearn.baselines import (
    GreedySearch,
    HillClimbing,
    K2Search,
    OrderSearch,
    ParentChange,
    SimulatedAnnealing,
    SuperParent,
    structure_scores,
    structures_along,
)
from tanlearn.baselines.structure_scores import first_best, single_parents
from tanlearn.encoding.splits import validation_masks
from tanlearn.estimators.estimator_input import encode_training
from tanlearn.models.log_joint import log_joint


def random_families(rng, scorer, child):
    """Families of a child with none, one and two parents that close no cycle: parents have lower numbers."""
    given = [[-1, -1], *([j, -1] for j in range(child)), *([j, k] for k in range(child) for j in range(k))]
    return scorer.families(child, np.array(given)[rng.permutation(len(given))])


def random_walk(scorer, n_steps, seed=1):
    """Exchange families at random."""
    rng = np.random.default_rng(seed)
    for _ in range(n_steps):
        families = random_families(rng, scorer, int(rng.integers(len(scorer.parents))))
        values = scorer.try_families(families)
        number = int(rng.integers(len(values)))
        scorer.take(families, number, float(values[number]))


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("validation", VALIDATIONS)
@pytest.mark.parametrize("weight", [None, "whole", "real"])
@pytest.mark.parametrize("smoothing", SMOOTHINGS, ids=["alpha", "epsilon"])
def test_scores_equal_those_of_raw_rows(score, validation, weight, smoothing):
    data = random_data(0, weight=weight)
    expected = naive_score(data, score, validation, smoothing)
    scorer = scorer_of(data, score, validation, smoothing)
    for parents in ([(-1, -1)] * 4, [(-1, -1), (0, -1), (1, -1), (1, -1)], [(3, -1), (0, 3), (0, -1), (-1, -1)]):
        assert scorer.score(np.array(parents)) == pytest.approx(expected(parents), rel=1e-12)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("validation", VALIDATIONS)
@pytest.mark.parametrize("weight", [None, "real"])
def test_after_many_exchanges_the_scorer_is_the_one_built_anew_to_the_last_bit(score, validation, weight):
    data = random_data(1, weight=weight)
    walked = scorer_of(data, score, validation)
    random_walk(walked, 60)
    anew = scorer_of(data, score, validation, initial=Structure(walked.parents))
    assert (walked.parents >= 0).any()
    for ours, fresh in zip(walked._parts, anew._parts, strict=True):
        np.testing.assert_array_equal(ours.scores, fresh.scores)
    families = single_parents(0, np.arange(4))
    np.testing.assert_array_equal(
        walked.try_families(walked.families(0, families)), anew.try_families(anew.families(0, families))
    )
    assert walked.value == pytest.approx(anew.value, rel=0 if weight is None and score != SCORES[2] else 1e-14)


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("validation", VALIDATIONS)
def test_tried_families_score_as_structures_with_them(score, validation):
    data = random_data(2, weight="real")
    scorer = scorer_of(data, score, validation)
    random_walk(scorer, 5)
    families = random_families(np.random.default_rng(0), scorer, 3)
    selected = np.array([4, 0, 2])
    expected = []
    for number in selected:
        parents = scorer.parents.copy()
        parents[3] = families.parents[number]
        expected.append(scorer.score(parents))
    np.testing.assert_allclose(scorer.try_families(families, selected), expected, rtol=1e-12)


def test_log_probabilities_are_rounded_to_multiples_of_two_to_the_minus_32():
    data = random_data(3)
    exact = MaximumLikelihood().fit(Structure([-1, 0, 1, -1]), data, None)
    for i, parent in enumerate([-1, 0, 1, -1]):
        (cells,) = scorer_of(data).families(i, np.array([[parent, -1]])).cells
        np.testing.assert_array_equal(cells * 2**32, np.rint(cells * 2**32))
        np.testing.assert_allclose(cells[3:], exact[i].ravel(), rtol=0, atol=2.0**-33)
        assert not cells[:3].any()  # the prior is in the scores already


@pytest.fixture
def shares(monkeypatch):
    """Return a list to which every look for undecided rows adds their share."""
    found = []

    def spy(*arguments):
        settled = find_undecided(*arguments)
        found.append(arguments[-1].mean())
        return settled

    find_undecided = structure_scores.kernels.find_undecided
    monkeypatch.setattr(structure_scores.kernels, "find_undecided", spy)
    return found


def assert_leaving_out_changes_nothing(scorer, n_features, shares, atol):
    for child in range(n_features):
        families = scorer.families(child, single_parents(child, np.arange(n_features)))
        together = scorer.try_families(families)
        n_calls = len(shares)
        alone = [scorer.try_families(families, np.array([number]))[0] for number in range(n_features - 1)]
        assert len(shares) == n_calls  # one family is tried on all rows
        np.testing.assert_allclose(together, alone, rtol=0, atol=atol)
    assert 0 < np.mean(shares) < 1


@pytest.mark.parametrize("validation", VALIDATIONS)
@pytest.mark.parametrize("weight", [None, "whole", "real"])
@pytest.mark.parametrize("score", ["accuracy", "margin"])
@pytest.mark.parametrize("seed", range(3))
def test_leaving_decided_rows_out_changes_no_value(validation, weight, score, seed, shares):
    data = random_data(seed, n=80, n_states=(2, 3, 2, 3, 2), weight=weight)
    scorer = scorer_of(data, score, validation, gamma=0.1)
    assert_leaving_out_changes_nothing(scorer, 5, shares, atol=0 if weight != "real" else 1e-14)


@pytest.mark.parametrize("validation", VALIDATIONS)
def test_leaving_sure_rows_out_changes_no_likelihood(validation, shares):
    """Forty noisy copies of the class make most rows surer than float64 can tell from certain."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 90)
    noisy = rng.random((90, 40)) < rng.uniform(0, 0.8, (90, 1))
    data = EncodedData.from_codes(np.where(noisy, rng.integers(0, 3, (90, 40)), y[:, np.newaxis]), y)
    assert_leaving_out_changes_nothing(scorer_of(data, "conditional-likelihood", validation), 40, shares, atol=1e-15)


def test_weight_two_is_the_row_twice():
    weight = np.random.default_rng(4).integers(1, 3, 50)
    plain = random_data(4)
    weighted = EncodedData.from_codes(plain.codes.T.astype(int), plain.y, n_states=plain.n_states, sample_weight=weight)
    repeated = plain.take(np.repeat(np.arange(50), weight))
    for structure in (Structure([-1, 0, 1, 1]), Structure([2, 0, -1, -1])):
        values = {scorer_of(data).score(structure.parents) for data in (weighted, repeated)}
        assert len(values) == 1
    ours, theirs = GreedySearch(), GreedySearch()
    assert ours.learn(weighted, None) == theirs.learn(repeated, None)
    assert ours.history_ == theirs.history_
    assert GreedySearch().learn(plain, None) != ours.structure_


def test_a_copy_goes_its_own_way():
    scorer = scorer_of(random_data(7), validation=3)
    random_walk(scorer, 5)
    twin, parents, value = scorer.copy(), scorer.parents.copy(), scorer.value
    random_walk(twin, 20, seed=2)
    np.testing.assert_array_equal(scorer.parents, parents)
    assert scorer.value == value
    assert (twin.parents != parents).any()
    random_walk(scorer, 20, seed=2)
    np.testing.assert_array_equal(scorer.parents, twin.parents)
    assert scorer.value == twin.value


def test_single_parents_and_the_first_of_the_best():
    assert single_parents(1, np.arange(3)).tolist() == [[0, -1], [2, -1]]
    assert single_parents(0, np.arange(1)).shape == (0, 2)
    assert first_best([0.0, 0.3, 0.1 + 0.2, 0.3]) == 1
    assert first_best([0.0, 0.1 + 0.2, 0.3]) == 1
    assert first_best([0.3 - 1e-9, 0.3]) == 1
    assert first_best([-np.inf, -np.inf]) == 0


SEARCHES = [GreedySearch, OrderSearch, SuperParent, SimulatedAnnealing]


@pytest.mark.parametrize("search", SEARCHES)
def test_histories_have_one_shape(search):
    model = BayesNetClassifier(structure=search(score="margin"), random_state=0)
    data = varied_data(3)
    model.fit(data.codes.T, data.y)
    learnt = model.structure_learner_
    assert len(learnt.history_) > 1
    for edge in learnt.history_:
        assert type(edge) is ParentChange
        assert [type(value) for value in vars(edge).values()] == [int, tuple, float, int, int, float]
        assert {type(j) for j in edge.parents} <= {int}
    assert learnt.history_[-1].score == learnt.score_
    assert (np.diff([edge.n_evaluations for edge in learnt.history_]) >= 0).all()
    assert (np.diff([0.0, *(edge.seconds for edge in learnt.history_)]) >= 0).all()
    assert model.learning_history() == {"structure": learnt.history_}
    steps, scores = np.diff([edge.step for edge in learnt.history_]), np.diff([edge.score for edge in learnt.history_])
    assert ((scores > 0) | ((scores == 0) & (search is SimulatedAnnealing))).all()  # a reversal takes two entries
    assert learnt.history_[0].step >= (search is not SimulatedAnnealing)
    assert ((steps > 0) | ((steps == 0) & (search is SimulatedAnnealing))).all()
    given = [tuple(j for j in own if j >= 0) for own in learnt.structure_.parents.tolist()]
    assert given[learnt.history_[-1].child] == learnt.history_[-1].parents


@pytest.mark.parametrize("starts_at_forest", [False, True])
@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize("seed", range(3))
def test_the_history_leads_to_the_structure(search, starts_at_forest, seed):
    data = varied_data(seed)
    search = search_of(search, score="conditional-likelihood")
    starts_at_forest &= not isinstance(search, OrderSearch)  # which starts at naive Bayes
    initial = Structure([-1, 0, -1, 1, -1][: data.n_features])
    if starts_at_forest:
        search.set_params(initial=initial)
    search.learn(data, np.random.default_rng(seed))
    along = list(structures_along(search.history_, data.n_features))
    assert along[-1][1] == search.structure_
    assert [change.step for change, _ in along] == sorted({change.step for change in search.history_})
    for change, structure in along:
        expected = naive_score(data, "conditional-likelihood")(structure.parents.tolist())
        assert change.score == pytest.approx(expected, rel=1e-12)
    if starts_at_forest:
        start = [(change.child, change.parents) for change in search.history_ if change.step == 0]
        assert start == [(1, (0,)), (3, (1,))]
        assert along[0][1] == initial
    assert search.n_evaluations_ >= along[-1][0].n_evaluations


def test_all_scored_structures_are_counted():
    data = varied_data(3)
    d = data.n_features
    for search, n_evaluations in [
        (OrderSearch(score="margin"), d * (d - 1) // 2),
        (OrderSearch(score="margin", ordering=list(range(d)), max_parents=2), sum(p * (p + 1) // 2 for p in range(d))),
    ]:
        search.learn(data, np.random.default_rng(0))
        assert search.n_evaluations_ == n_evaluations
    none = EncodedData.from_codes(np.zeros((20, 4), int), np.arange(20) % 2, n_states=[2] * 4)
    for search, n_evaluations in [(GreedySearch(), 4 * 3), (SuperParent(), 4 + 3)]:
        search.learn(none, None)
        assert (search.history_, search.n_evaluations_) == ([], n_evaluations)
    for search in (HillClimbing(score="bic"), K2Search(score="bic")):  # all families of at most one parent
        search.learn(none, np.random.default_rng(0))
        assert (search.history_, search.n_evaluations_) == ([], 4 + 4 * 3)
    chains = []
    for n_chains in (1, 3):
        search = SimulatedAnnealing(n_chains=n_chains, n_steps=40, initial=None, temperature=(0.1, 0.01))
        search.learn(data, np.random.default_rng(0))
        chains.append(search.n_evaluations_)
    assert chains[0] < chains[1] <= 3 * 40


def search_of(search, **parameters):
    """Return a search that takes no time."""
    return search(**parameters, **({"n_steps": 50} if search is SimulatedAnnealing else {}))


@pytest.mark.parametrize("search", SEARCHES)
def test_missing_values_are_refused(search):
    data = EncodedData.from_codes([[0, 1], [1, -1], [1, 0]], [0, 1, 1])
    with pytest.raises(
        ValueError, match=r"complete rows only, but 1 values are missing, the first of feature 1 in row 1"
    ):
        search_of(search).learn(data, np.random.default_rng(0))


@pytest.mark.parametrize("search", SEARCHES)
def test_smoothing_that_leaves_zeros_is_refused(search):
    with pytest.raises(
        ValueError, match=r"smoothing must keep all probabilities above zero.*MaximumLikelihood\(alpha=0.0\)"
    ):
        search_of(search, smoothing=MaximumLikelihood(alpha=0.0)).learn(random_data(), np.random.default_rng(0))


@pytest.mark.parametrize("search", SEARCHES)
def test_more_folds_than_rows_are_refused(search):
    with pytest.raises(ValueError, match="51 folds need at least 51 rows of positive weight, got 50"):
        search_of(search, validation=51).learn(random_data(), np.random.default_rng(0))


@pytest.mark.parametrize("search", [GreedySearch, SuperParent, SimulatedAnnealing])
@pytest.mark.parametrize(
    ("initial", "message"),
    [
        (Structure([[-1, -1], [0, -1], [0, 1], [-1, -1]]), r"initial must be a forest.*n_edges=3\)"),
        (Structure([1, 0, -1, -1], allow_cycles=True), r"initial must be a forest.*cyclic\)"),
        (Structure.naive_bayes(3), "initial has 3 features, but the data have 4"),
        (Structure.naive_bayes(5), "initial has 5 features, but the data have 4"),
    ],
    ids=["two parents", "cycle", "fewer features", "more features"],
)
def test_an_initial_structure_that_is_no_forest_of_the_features_is_refused(search, initial, message):
    with pytest.raises(ValueError, match=message):
        search_of(search, initial=initial).learn(random_data(), np.random.default_rng(0))


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize(
    "parameters",
    [{"score": "f1"}, {"gamma": 0.0}, {"validation": 1}, {"validation": 1.0}, {"smoothing": 1.0}, {"n_jobs": "all"}],
    ids=str,
)
def test_bad_parameters_are_named(search, parameters):
    (name,) = parameters
    with pytest.raises(ValueError, match=f"'{name}' parameter of {search.__name__} must be"):
        search_of(search, **parameters).learn(random_data(), np.random.default_rng(0))


@pytest.mark.parametrize("search", SEARCHES)
def test_progress_is_printed_if_asked_for(search, capsys):
    search_of(search).learn(random_data(), np.random.default_rng(0))
    assert capsys.readouterr().out == ""
    search_of(search, verbose=1).learn(random_data(), np.random.default_rng(0))
    lines = capsys.readouterr().out.splitlines()
    assert lines
    assert all(line.startswith(f"{search.__name__}: ") for line in lines)


@pytest.mark.parametrize("search", SEARCHES)
def test_a_single_feature_stays_alone(search):
    data = EncodedData.from_codes([[0], [1], [1]], [0, 1, 0])
    assert search_of(search).learn(data, np.random.default_rng(0)) == Structure([-1])


@pytest.mark.parametrize("validation", [None, 0.3, 5])
def test_rows_of_weight_zero_are_as_good_as_absent(validation):
    weight = np.ones(100)
    weight[60:] = 0
    data = random_data(0, n=100)
    weighted = EncodedData.from_codes(data.codes.T.astype(int), data.y, n_states=data.n_states, sample_weight=weight)
    learnt = [
        GreedySearch(validation=validation).learn(table, np.random.default_rng(0))
        for table in (weighted, data.take(np.arange(60)))
    ]
    assert learnt[0] == learnt[1]


@pytest.mark.parametrize("score", ["accuracy", "margin", "conditional-likelihood"])
@pytest.mark.parametrize("validation", [None, 0.3, 3])
def test_parents_with_more_joint_values_than_rows_are_scored_by_those_that_occur(score, validation, monkeypatch):
    rng = np.random.default_rng(0)
    x = 4 * rng.integers(0, 3, (80, 4))
    x[:, 2] = 4 * ((x[:, 0] + x[:, 1]) // 4 % 3)
    y = (x[:, 3] + x[:, 0] * x[:, 1]) // 4 % 3
    data = EncodedData.from_codes(x, y, n_states=[9] * 4)
    search = OrderSearch(max_parents=2, score=score, validation=validation, ordering=[1, 0, 2, 3])
    calls = []
    join = structure_scores._join_wide_parents
    monkeypatch.setattr(structure_scores, "_join_wide_parents", lambda *given: calls.append(join(*given)) or calls[-1])
    found = search.learn(data, np.random.default_rng(1)), search.score_, search.history_
    assert max(joined.n_states.max() for joined, *_ in calls) == 9  # the joint values that occur, of 81
    assert max(joined.n_features for joined, *_ in calls) == 7
    apart = lambda part, parents: (part.counted, part.data, parents)  # noqa: E731
    monkeypatch.setattr(structure_scores, "_join_wide_parents", apart)
    assert found == (search.learn(data, np.random.default_rng(1)), search.score_, search.history_)
    assert (found[0].parents[:, 1] >= 0).any()


def test_a_family_of_joined_parents_can_be_exchanged_again():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 9, (60, 4))
    data = EncodedData.from_codes(x, (x[:, 0] + x[:, 3]) % 3, n_states=[9] * 4)
    scorer = scorer_of(data, "margin")
    families = scorer.families(3, np.array([[0, 1], [1, 2]]))
    value = scorer.try_families(families)[1]
    scorer.take(families, 1, value)
    assert scorer.parents.tolist()[3] == [1, 2]
    assert value == scorer.score(scorer.parents)
    exchanged = scorer.parents.copy()
    exchanged[3] = 0, -1
    assert scorer.try_families(scorer.families(3, exchanged[3:]))[0] == scorer.score(exchanged)


@pytest.mark.parametrize("validation", [0.3, 4])
def test_folds_fit_their_own_cut_points(validation):
    """Scores are those of tables and cut points that are fitted without the held-out rows, and so are exchanges."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 120)
    X = rng.normal(size=(120, 12)) + 0.8 * y[:, np.newaxis]
    X[:, 1] = X[:, 0] + 0.3 * X[:, 1]
    data, _ = encode_training(NaiveBayesClassifier(), X, y, None)
    scorer = scorer_of(data, "accuracy", validation)
    parts = [data.split(rows) for rows in validation_masks(y, 3, validation, np.random.default_rng(0))]
    assert len({tuple(rest.n_states) for rest, _ in parts} | {tuple(data.n_states)}) > 1

    def value(structure):
        right = []
        for rest, held_out in parts:
            scores = log_joint(MaximumLikelihood().fit(structure, rest, None), structure, held_out.codes)
            right += (scores.argmax(axis=1) == held_out.y).tolist()
        return np.mean(right)

    random_walk(scorer, 20)
    assert (scorer.parents >= 0).any()
    assert scorer.value == pytest.approx(value(Structure(scorer.parents)), rel=1e-12)
    assert scorer.score(scorer.parents) == scorer.value
