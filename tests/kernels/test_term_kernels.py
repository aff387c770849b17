"""Gradient k-trees: the kernels of a step against dictionaries and loops, with gaps, few bits and cycles to avoid."""

import itertools
from functools import partial

import numpy as np
import pytest
from oracles import losses
from oracles import terms as naive

from tanlearn import CandidateSets, ConditionalNLL, EncodedData, FixedPoint, HingeMargin, Structure
from tanlearn.kernels import terms, trees
from tanlearn.training.tan_state import Plan
from tanlearn.training.term_engine import TermEngine
from tanlearn.training.term_state import TermState

N_STATES, N_CLASSES, SIZE = [3, 2, 4, 2], 3, 8
EARLIER = [[], [0], [0, 1], [0, 2]]
ANY = [[1, 2], [0, 3], [0, 1, 3], [0, 2]]


def make(lists=ANY, gaps=False, rounding=None, seed=0, n=40, loss=None):
    """Return an engine with terms and logits at random, and the oracle of the same."""
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, k, n) for k in N_STATES], axis=1)
    if gaps:
        X[rng.random(X.shape) < 0.3] = -1
    y = rng.integers(0, N_CLASSES, n)
    weight = rng.uniform(0.5, 1.5, n).astype(np.float32)
    data = EncodedData.from_codes(X, y, n_states=N_STATES, n_classes=N_CLASSES)
    sets = lists if isinstance(lists, CandidateSets) else CandidateSets.from_lists(lists, n_parents=2)
    state = TermState(data, sets, None if rounding is None else FixedPoint(*rounding))
    state.theta[:] = rng.normal(size=state.theta.shape)
    engine = TermEngine(state, data, weight, ConditionalNLL() if loss is None else loss, SIZE)
    candidates = [
        [tuple(j for j in row if j >= 0) for row in sets.parents[first:last].tolist()]
        for first, last in itertools.pairwise(sets.group.tolist())
    ]
    form = None if rounding is None else (state.fixed_point.step, 2**state.fixed_point.n_bits - 1)
    oracle = naive.Training(X, y, weight.astype(float), candidates, state.theta[:N_CLASSES], dictionaries(state), form)
    if loss is not None:
        oracle.loss = partial(losses.hinge_margin, gamma=loss.gamma, eta=loss.eta)
    return engine, oracle


def dictionaries(state, cells=None):
    """Return the terms of a state as the oracle has them."""
    cells, layout, found = state.theta if cells is None else cells, state.layout, {}
    for t in range(layout.n_tables):
        parents = tuple(j for j in layout.parents[t].tolist() if j >= 0)
        shape = [N_STATES[j] for j in (int(layout.child[t]), *parents)]
        rows = cells[layout.offset[t] : layout.offset[t + 1]].reshape(-1, N_CLASSES).astype(float)
        found[int(layout.child[t]), parents] = dict(
            zip(itertools.product(*map(range, shape)), rows.copy(), strict=True)
        )
    return found


def by_feature(values, group):
    """Return the values of every feature's candidates."""
    return [values[first:last] for first, last in itertools.pairwise(group.tolist())]


def plan(engine, n_steps, seed=1):
    """Return batches and noise."""
    rng = np.random.default_rng(seed)
    order = np.stack([rng.permutation(engine.data.n_samples)[:SIZE] for _ in range(n_steps)])
    return Plan(order, rng.random((n_steps, engine.state.candidates.n_tables), dtype=np.float32))


def follow(engine, oracle, n_steps=12, temperature=0.5):
    """Train both for an epoch, and return the losses."""
    found = plan(engine, n_steps)
    mean = engine.epoch(found, (0.05, 0.03), temperature)
    draw, group = engine.state.candidates.draws, engine.state.candidates.group
    losses = [
        oracle.step(batch, by_feature(noise.astype(float), group), draw, (0.05, 0.03), temperature)
        for batch, noise in zip(*found, strict=True)
    ]
    return mean, np.mean(losses)


@pytest.mark.parametrize("lists", [EARLIER, ANY], ids=["independent", "acyclic"])
@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
@pytest.mark.parametrize("rounding", [None, (2, 2)], ids=["floats", "bits"])
def test_an_epoch_is_that_of_the_oracle(lists, gaps, rounding):
    engine, oracle = make(lists, gaps, rounding)
    mean, expected = follow(engine, oracle)
    assert mean == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(engine.state.phi, np.concatenate(oracle.phi), atol=2e-4)
    np.testing.assert_allclose(engine.state.theta[:N_CLASSES], oracle.prior, atol=2e-4)
    found = dictionaries(engine.state)
    for name, term in oracle.terms.items():
        np.testing.assert_allclose(list(found[name].values()), list(term.values()), atol=2e-4, err_msg=str(name))


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
def test_rows_without_a_gradient_change_nothing(gaps):
    """They are left out of the second half of a step, in which the oracle touches their rows and adds zeros."""
    engine, oracle = make(gaps=gaps, loss=HingeMargin(gamma=0.5, eta=2.0))
    mean, expected = follow(engine, oracle, 20)
    assert 0 < engine._scratch.n_moving[0] < SIZE
    assert mean == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(engine.state.phi, np.concatenate(oracle.phi), atol=2e-4)
    found = dictionaries(engine.state)
    for name, term in oracle.terms.items():
        np.testing.assert_allclose(list(found[name].values()), list(term.values()), atol=2e-4, err_msg=str(name))


def test_a_batch_without_any_gradient_moves_nothing():
    engine, _ = make()
    engine.problem.weight[:] = 0
    before = engine.state.theta.copy()
    assert engine.epoch(plan(engine, 3), (0.05, 0.03), 0.5) == 0
    assert engine._scratch.n_moving[0] == 0
    np.testing.assert_array_equal(engine.state.theta, before)
    assert not engine.state.phi.any()


def test_epochs_go_on_where_the_last_one_ended():
    """Steps count on, and rows remember when they were last touched."""
    engine, oracle = make()
    follow(engine, oracle, 5)
    follow(engine, oracle, 5)
    assert engine.adam.t == oracle.t == 10
    np.testing.assert_allclose(engine.state.phi, np.concatenate(oracle.phi), atol=2e-4)


def test_a_candidate_far_behind_is_not_looked_at():
    """At a low temperature all but the best have no share, and what they would say changes nothing."""
    engine, oracle = make()
    mean, expected = follow(engine, oracle, 6, temperature=0.01)
    assert mean == pytest.approx(expected, rel=1e-5)
    assert not engine._scratch.is_used.all()
    np.testing.assert_allclose(engine.state.phi, np.concatenate(oracle.phi), atol=1e-3)


def test_a_row_that_was_touched_after_the_last_step_is_refused():
    engine, _ = make()
    state = engine.get_state()
    state["touched"][0] = state["n_steps"][0] + 1
    with pytest.raises(ValueError, match=r"touched must contain at most n_steps \(0\) steps"):
        engine.set_state(state)


def test_without_a_choice_there_are_no_logits_to_step():
    engine, oracle = make(CandidateSets.of_structure(Structure.naive_bayes(4)))
    mean, expected = follow(engine, oracle)
    assert mean == pytest.approx(expected, rel=1e-5)
    assert not engine.state.phi.any()


def steps_without_a_rate(found):
    """Return the settings of the steps of a plan, which change no parameter."""
    return terms.TermSteps(
        order=found.order,
        uniform=found.noise,
        n_done=0,
        rate=np.float32(0),
        decay_powers=(0.75 ** np.arange(9)).astype(np.float32),
        prior_step_sizes=np.zeros(1, np.float32),
        structure_step_sizes=np.zeros(1),
        beta1=np.float32(0.9),
        beta2=np.float32(0.999),
        epsilon=np.float32(1e-7),
        temperature=50.0,
    )


def one_step(engine, seed=1):
    """Run the parts of a step by themselves, with no rate, and return what they leave in the scratch."""
    found = plan(engine, 1, seed)
    steps = steps_without_a_rate(found)
    loss = terms.begin_term_step(0, engine.problem, engine.parameters, steps, engine._scratch)
    terms.step_terms(0, engine.problem, engine.parameters, steps, engine._scratch)
    assert terms.train_terms(engine.problem, engine.parameters, steps, engine._scratch) == pytest.approx(loss)
    return found.order[0], loss, engine._scratch


def batch_loss(oracle, batch, choices):
    """Return the mean loss of a batch; ``choices(i, sample)`` is what feature i adds to the scores."""
    total = 0.0
    for n in batch:
        parts = [choices(i, oracle.X[n]) for i in range(4)]
        total += oracle.weight[n] / len(batch) * naive.conditional_nll(oracle.prior + sum(parts), oracle.y[n])[0]
    return total


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
def test_choice_gradients_are_differences_of_the_loss(gaps):
    """The score of a feature is moved a little from the choice drawn towards another."""
    engine, oracle = make(gaps=gaps)
    batch, _, scratch = one_step(engine)
    group = engine.state.candidates.group
    drawn = [oracle.candidates[i][t - group[i]] for i, t in enumerate(scratch.selected)]
    h = 1e-5
    for t, i in enumerate(engine.state.candidates.child.tolist()):
        other = oracle.candidates[i][t - group[i]]

        def mixed(j, sample, h, i=i, other=other):
            own = naive.feature_sum(sample, j, drawn[j], oracle.terms, N_CLASSES)
            if j != i:
                return own
            return own + h * (naive.feature_sum(sample, i, other, oracle.terms, N_CLASSES) - own)

        ahead_of, behind = (batch_loss(oracle, batch, partial(mixed, h=moved)) for moved in (h, -h))
        slope = (ahead_of - behind) / (2 * h)
        ahead = scratch.d_choice[t] - scratch.d_choice[scratch.selected[i]]
        assert ahead == pytest.approx(slope, abs=1e-5), (i, t)


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
def test_choice_gradients_of_a_feature_depend_on_no_other_feature(gaps):
    """The kernel writes the gradients of one feature, in any order of the features."""
    engine, _ = make(gaps=gaps)
    _, _, scratch = one_step(engine)
    expected = scratch.d_choice.copy()
    scratch.d_choice[:] = np.nan
    steps = steps_without_a_rate(plan(engine, 1, 1))
    for i in (2, 0, 3, 1):
        terms.choice_gradients(i, engine.problem, engine.parameters.theta, steps, scratch)
    np.testing.assert_allclose(scratch.d_choice, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
def test_squares_hold_the_gradient_of_every_number(gaps):
    """After a first step a mean of squares is the gradient's square times 1 - decay; zero where nothing was touched."""
    engine, oracle = make(gaps=gaps)
    found = plan(engine, 1)
    oracle_terms, group = dictionaries(engine.state), engine.state.candidates.group
    engine.epoch(found, (1e-12, 0.0), 50.0)
    drawn = [oracle.candidates[i][t - group[i]] for i, t in enumerate(engine.state.selected)]
    squares = dictionaries(engine.state, engine.parameters.v)
    h = 1e-5
    for name, term in oracle_terms.items():
        for row, numbers in term.items():
            for c in range(N_CLASSES):
                before = numbers[c]
                values = []
                for moved in (before + h, before - h):
                    numbers[c] = moved
                    values.append(
                        batch_loss(
                            oracle,
                            found.order[0],
                            lambda i, sample: naive.feature_sum(sample, i, drawn[i], oracle_terms, N_CLASSES),
                        )
                    )
                numbers[c] = before
                slope = (values[0] - values[1]) / (2 * h)
                gradient = np.sqrt(squares[name][row][c] / (1 - np.float32(0.99)))
                assert gradient == pytest.approx(abs(slope), abs=1e-5), (name, row, c)


@pytest.mark.parametrize("gaps", [False, True], ids=["complete", "gaps"])
def test_scores_and_gradients_are_adjoint(gaps):
    """<J dtheta, g> = <dtheta, J' g>: scores move with terms as gradients of scores come back to them."""
    engine, _ = make(gaps=gaps)
    batch, _, scratch = one_step(engine)
    state, rng = engine.state, np.random.default_rng(3)
    scratch.batch_codes[:] = engine.data.codes[:, batch]
    moved, cells = np.zeros_like(state.cells), state.layout.n_cells
    moved[:cells] = rng.normal(size=cells)
    terms.score_terms(engine.problem, moved, scratch)
    g = scratch.d_scores[:, :N_CLASSES]
    forward = float((scratch.scores[:, :N_CLASSES] * g).sum())
    group = state.candidates.group
    gradient = {}
    for k, n in enumerate(batch):
        sample = np.where(engine.data.codes[:, n] == 255, -1, engine.data.codes[:, n].astype(int))
        for i, t in enumerate(scratch.selected):
            choice = tuple(j for j in state.candidates.parents[t].tolist() if j >= 0)
            for subset in naive.terms_of(choice):
                row = naive.row_of(sample, i, subset)
                if row is not None:
                    gradient[(i, subset), row] = gradient.get(((i, subset), row), 0) + g[k]
    tables = dictionaries(state, moved[:cells])
    backward = sum(tables[name][row] @ d for (name, row), d in gradient.items()) + moved[:N_CLASSES] @ g.sum(axis=0)
    assert forward == pytest.approx(backward, rel=1e-4)
    assert group[-1] == len(state.members)


@pytest.mark.parametrize("parents", [[-1, -1], [2, -1], [0, -1], [0, 2], [2, 0]])
@pytest.mark.parametrize(("dtype", "missing"), [(np.uint8, 255), (np.int16, -1)])
def test_starts_of_terms_and_of_what_is_missing(parents, dtype, missing):
    rng = np.random.default_rng(0)
    n_states, n_classes, start_if_missing = np.array([3, 2, 5]), 7, 9_999
    codes = np.array([rng.integers(0, size, 101) for size in n_states], dtype)
    codes[rng.random(codes.shape) < 0.2] = missing
    start = np.empty(101, np.intp)
    terms.term_starts(
        codes, 1, np.array(parents), n_states, n_classes, codes.dtype.type(missing), start_if_missing, start
    )
    members = [1, *(j for j in parents if j >= 0)]
    shape = [*(int(n_states[j]) for j in members), n_classes]
    for k in range(101):
        values = [int(codes[j, k]) for j in members]
        expected = start_if_missing if missing in values else np.ravel_multi_index([*values, 0], shape)
        assert start[k] == expected


def test_rows_are_rounded_below_their_largest():
    sums = np.zeros(2 * 16 + 16, np.float32)
    sums[:3], sums[16:19] = [1.0, 0.6, -9.0], [-4.0, -4.2, -3.1]
    out = sums.copy()
    terms.round_rows(sums[:32], 3, 16, np.float32(0.5), np.float32(7), out[:32])
    for first, values in ((0, [1.0, 0.6, -9.0]), (16, [-4.0, -4.2, -3.1])):
        np.testing.assert_array_equal(out[first : first + 3], naive.rounded(values, 0.5, 7))


@pytest.mark.parametrize("d", [1, 2, 5, 70])
@pytest.mark.parametrize("seed", range(4))
def test_acyclic_draws_are_those_of_the_oracle(d, seed):
    """70 features need two words of ancestors."""
    rng = np.random.default_rng(seed)
    lists = [rng.permutation(np.delete(np.arange(d), i))[: min(d - 1, 3)].tolist() for i in range(d)]
    sets = CandidateSets.from_lists(lists, n_parents=2)
    perturbed = rng.normal(size=sets.n_tables)
    selected, above = np.empty(d, np.intp), np.empty((d, -(-d // 64)), np.uint64)
    trees.draw_acyclic(perturbed, sets.group, sets.parents, np.empty(d), above, selected)
    candidates = [
        [tuple(j for j in row if j >= 0) for row in sets.parents[first:last].tolist()]
        for first, last in itertools.pairwise(sets.group.tolist())
    ]
    expected = naive.draw_acyclic([part.tolist() for part in by_feature(perturbed, sets.group)], candidates)
    assert [tuple(j for j in row if j >= 0) for row in sets.parents[selected].tolist()] == expected
    assert Structure(sets.parents[selected]).is_acyclic


def test_rows_that_two_samples_share_are_stepped_once():
    """The sum of their gradients moves them, as one step."""
    engine, _ = make(CandidateSets.of_structure(Structure.naive_bayes(4)), n=SIZE)
    engine.problem.codes[:] = 0
    order, powers = np.arange(SIZE)[np.newaxis], (0.9 ** np.arange(9)).astype(np.float32)
    steps = terms.TermSteps(order, None, 0, np.float32(0.5), powers, *[None] * 2, *map(np.float32, (0, 0, 1e-12)), 0)
    scratch = engine._scratch
    scratch.batch_codes[:] = 0
    scratch.d_scores[:, :N_CLASSES] = np.array([0.25, -0.5, 0.25]) / SIZE
    scratch.start[:] = 0
    before = engine.state.theta.copy()
    terms.step_rows(0, 0, scratch.start, engine.problem, engine.parameters, steps, scratch)
    moved = engine.state.theta - before
    np.testing.assert_allclose(moved[N_CLASSES : 2 * N_CLASSES], [-0.5, 0.5, -0.5], atol=1e-5)
    assert not moved[2 * N_CLASSES :].any()
