"""Structures that are learned again without held-out rows: the same as by hand, and honest on tables of noise."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

from tanlearn import (
    LBFGS,
    BackOffRidge,
    BayesNetClassifier,
    ConditionalNLL,
    ConjugateGradient,
    CrossTuned,
    EncodedData,
    ExtendedBaumWelch,
    HybridCV,
    MaximumLikelihood,
    StochasticGradient,
    Structure,
)
from tanlearn.baselines import ChowLiu, GreedySearch, RandomTree, SimulatedAnnealing
from tanlearn.encoding.splits import validation_masks
from tanlearn.models.log_joint import log_joint
from tanlearn.parameters import learned_structure
from tanlearn.parameters.held_out_selection import choose, evaluation_iterations, held_out_parts
from tanlearn.parameters.learned_structure import LearnedStructure, copy_generator, structures_of_parts

N_ROWS = 90
LEARNERS = {
    "L-BFGS": LBFGS(loss=ConditionalNLL()),
    "conjugate gradient": ConjugateGradient(max_iter=4),
    "Baum-Welch": ExtendedBaumWelch(max_iter=5),
    "ridge": BackOffRidge(),
    "mini-batches": StochasticGradient(n_epochs=3),
    "HybridCV": HybridCV(),
    "CrossTuned": CrossTuned(learner=LBFGS(max_iter=5), param_grid={"loss__scale": [0.05, 0.5]}, cv=3),
}


class Recorder(BaseEstimator):
    """Chow-Liu trees, and the rows that they were learned from."""

    def __init__(self, seen=None):
        self.seen = seen

    def __sklearn_clone__(self):  # all copies fill one list
        return self

    def learn(self, data, rng):
        self.seen.append(data)
        return ChowLiu().learn(data, rng)


def noisy_table(seed=0):
    """Return values and classes of which the first column has some evidence."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, N_ROWS)
    X = rng.integers(0, 3, (N_ROWS, 6))
    X[:, 0] = np.where(rng.random(N_ROWS) < 0.5, y, X[:, 0])
    return X.astype(float), y


def encoded(X, y):
    return EncodedData.from_codes(X.astype(int), y, n_states=[3] * X.shape[1])


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_that_holds_rows_out_has_structures_without_them(name):
    X, y = noisy_table()
    recorder = Recorder([])
    model = BayesNetClassifier(structure=recorder, parameters=LEARNERS[name], random_state=0).fit(X, y)
    whole, *parts = recorder.seen
    assert whole.n_samples == N_ROWS
    assert len(parts) == (3 if name == "CrossTuned" else 5)  # once per part, and not once per setting
    assert sum(N_ROWS - part.n_samples for part in parts) == N_ROWS
    assert model.structure_ == ChowLiu().learn(whole, None)
    assert type(model.structure_) is Structure


@pytest.mark.parametrize("name", ["L-BFGS", "conjugate gradient", "Baum-Welch"])
def test_the_calibration_is_that_of_structures_learned_by_hand(name):
    X, y = noisy_table()
    data = encoded(X, y)
    learner = clone(LEARNERS[name])
    parts = held_out_parts(data)
    structures = [ChowLiu().learn(rest, None) for rest, _ in parts]
    whole = ChowLiu().learn(data, None)
    assert any(structure != whole for structure in structures)
    iterations = evaluation_iterations(100) if learner.max_iter is None else [learner.max_iter]
    by_hand = choose([learner], structures, parts, iterations=iterations)
    model = BayesNetClassifier(structure=ChowLiu(), parameters=learner).fit_encoded(data)
    assert model.calibration_ == by_hand.calibration
    assert learner.max_iter is not None or model.parameters_.n_iter_ == by_hand.n_iter
    assert model.calibration_ != choose([learner], whole, parts, iterations=iterations).calibration


def test_hybrid_cv_chooses_as_on_structures_learned_by_hand():
    X, y = noisy_table()
    data = encoded(X, y)
    parts = held_out_parts(data)
    structures = [ChowLiu().learn(rest, None) for rest, _ in parts]
    by_hand, rng = HybridCV(), np.random.default_rng(0)
    by_hand.fit_on_parts(ChowLiu().learn(data, None), data, parts, rng=rng, structures=structures)
    model = BayesNetClassifier(structure=ChowLiu(), parameters=HybridCV(), random_state=0).fit_encoded(data)
    for key in ("mean_test_score", "mean_log_loss", "best_n_iter"):
        np.testing.assert_array_equal(model.parameters_.cv_results_[key], by_hand.cv_results_[key])
    assert model.calibration_ == by_hand.calibration_


def test_cross_tuning_scores_the_structures_of_its_folds():
    data = encoded(*noisy_table())
    whole = LearnedStructure(ChowLiu().learn(data, None), ChowLiu(), np.random.default_rng(0))
    tuned = CrossTuned(learner=LBFGS(max_iter=2), param_grid={}, cv=3)
    tuned.fit(whole, data, np.random.default_rng(5))
    rates = []
    for is_relearned in (True, False):
        right = []
        for rows in validation_masks(data.y, 2, 3, np.random.default_rng(5)):
            rest, held_out = data.split(rows)
            structure = ChowLiu().learn(rest, None) if is_relearned else whole
            scores = log_joint(MaximumLikelihood().fit(structure, rest, None), structure, held_out.codes)
            right += (scores.argmax(axis=1) == held_out.y).tolist()
        rates.append(np.mean(right))
    assert tuned.score_path_[0, 0] == pytest.approx(rates[0], rel=1e-12)
    assert rates[0] != rates[1]


def test_what_holds_no_row_out_learns_one_structure():
    X, y = noisy_table()
    for parameters in (MaximumLikelihood(), LBFGS(max_iter=3, calibrate=False), StochasticGradient(calibrate=False)):
        recorder = Recorder([])
        BayesNetClassifier(structure=recorder, parameters=parameters, random_state=0).fit(X, y)
        assert len(recorder.seen) == 1


def test_structures_of_large_tables_are_learned_once(monkeypatch):
    X, y = noisy_table()
    for most, n_learned in ((N_ROWS * 6 * 2, 6), (N_ROWS * 6 * 2 - 1, 1)):
        monkeypatch.setattr(learned_structure, "MOST_RELEARNED", most)
        recorder = Recorder([])
        BayesNetClassifier(structure=recorder, parameters=LBFGS()).fit(X, y)
        assert len(recorder.seen) == n_learned


@pytest.mark.parametrize("learner", [SimulatedAnnealing(n_steps=60), RandomTree(), GreedySearch(validation=3)])
def test_threads_and_repetitions_change_nothing(learner):
    data = encoded(*noisy_table())
    parts = held_out_parts(data)
    rng = np.random.default_rng(4)
    rng.spawn(2)
    learned = LearnedStructure(clone(learner).learn(data, copy_generator(rng)), learner, rng)
    one, two = (structures_of_parts(learned, parts, n_jobs) for n_jobs in (1, 2))
    assert one == two
    assert one[3] == clone(learner).learn(parts[3][0], copy_generator(rng))
    if isinstance(learner, RandomTree):  # it ignores rows, so that parameters are judged on the tree of the model
        assert one == [learned] * 5


class Fixed:
    """A learner that is no estimator of scikit-learn, and finds a structure with a cycle."""

    def __init__(self):
        self.n_rows = []

    def learn(self, data, rng):
        self.n_rows.append(data.n_samples)
        return Structure([1, 2, 0, -1, 3, -1], allow_cycles=True)


def test_learners_of_any_class_and_structures_with_cycles_are_learned_again():
    data, rng, learner = encoded(*noisy_table()), np.random.default_rng(0), Fixed()
    learned = LearnedStructure(learner.learn(data, rng), learner, rng)
    assert not learned.is_acyclic
    assert learned == Structure([1, 2, 0, -1, 3, -1], allow_cycles=True)
    again = learned.relearn(data.take(np.arange(N_ROWS) < 40))
    assert (again, again.is_acyclic) == (learned, False)
    assert learner.n_rows == [N_ROWS]  # a copy has learned
    tree = LearnedStructure(ChowLiu().learn(data, rng), ChowLiu(), rng)
    assert tree.is_acyclic
    assert tree == ChowLiu().learn(data, rng)


def test_copies_of_generators_draw_and_spawn_the_same():
    for bits in (np.random.PCG64(3), np.random.MT19937(3), np.random.Philox(3)):
        rng = np.random.Generator(bits)
        rng.random(5), rng.spawn(3)
        twin = copy_generator(rng)
        assert twin.random() == rng.random()
        assert twin.spawn(1)[0].random() == rng.spawn(1)[0].random()


def test_a_learner_that_needs_more_rows_is_judged_with_its_structure_and_a_warning():
    X, y = noisy_table()
    arguments = {"parameters": LBFGS(loss=ConditionalNLL())}
    search = GreedySearch(validation=N_ROWS - 1)  # as many folds as all rows but one, and more than rows of a part
    with pytest.warns(UserWarning, match=r"cannot be learned without them \(89 folds need at least 89 rows") as caught:
        model = BayesNetClassifier(structure=search, **arguments, random_state=0).fit(X, y)
    assert caught[0].filename == __file__
    plain = BayesNetClassifier(structure=model.structure_, **arguments).fit(X, y)
    assert model.calibration_ == plain.calibration_


def test_progress_is_printed_of_the_structure_of_all_rows_only(capsys):
    X, y = noisy_table()
    search = GreedySearch(score="conditional-likelihood", verbose=1)
    model = BayesNetClassifier(structure=search, parameters=LBFGS()).fit(X, y)
    assert len(capsys.readouterr().out.splitlines()) == len(model.structure_learner_.history_)


def test_models_of_noise_are_close_to_the_class_frequencies():
    """Mean log loss of new rows on eight tables of noise, relative to that of class frequencies.

    The means are 1.003 to 1.022, with standard errors of 0.002 to 0.017. With the structure of all rows for every part,
    they are 1.135 to 1.217. The bar lies between the two.
    """
    learners = {
        "L-BFGS": LBFGS(loss=ConditionalNLL()),
        "mini-batches": StochasticGradient(n_epochs=20),
        "CrossTuned": CrossTuned(learner=LBFGS(loss=ConditionalNLL(), max_iter=20)),
        "HybridCV": HybridCV(learners=[LBFGS(loss=ConditionalNLL()), LBFGS()]),
    }
    ratios = {name: [] for name in learners}
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X, y = rng.integers(0, 4, (1120, 12)).astype(float), rng.choice(3, 1120, p=[0.5, 0.3, 0.2])
        frequencies = (np.bincount(y[:120]) + 1) / 123
        for name, learner in learners.items():
            search = GreedySearch(score="conditional-likelihood")
            model = BayesNetClassifier(structure=search, parameters=learner, random_state=seed).fit(X[:120], y[:120])
            losses = -model.predict_log_proba(X[120:])[np.arange(1000), y[120:]]
            ratios[name].append(losses.mean() / -np.log(frequencies[y[120:]]).mean())
    for name, found in ratios.items():
        assert 0.99 < np.mean(found) < 1.07, name
