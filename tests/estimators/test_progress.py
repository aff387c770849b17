"""Progress of long fits: messages with `verbose`, for the command line, and after an interrupt."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from tanlearn import (
    BayesEnsembleClassifier,
    BayesForestClassifier,
    BayesNetClassifier,
    BoostedTermsClassifier,
    ExpectationMaximization,
    Structure,
    TermNetClassifier,
)
from tanlearn._progress import listening, part_of_fit, reporter, silent

X = np.random.default_rng(0).normal(size=(90, 3))
Y = (X[:, 0] + X[:, 1] > 0).astype(int)

LEARNERS = {
    "terms": TermNetClassifier(),
    "boosted": BoostedTermsClassifier(max_terms=120, random_state=0),
    "ensemble": BayesEnsembleClassifier(
        forest=BayesForestClassifier(n_estimators=2), boosting=BoostedTermsClassifier(max_terms=20), random_state=0
    ),
}
#: Beginnings of lines that are printed with `verbose=1`, and with 2 only.
LINES = {
    "terms": (
        ["parents per feature up to 0", "parents per feature up to 1", "training the network"],
        ["ridges 16, 4", "computing gains"],
    ),
    "boosted": (["fitting "], ["10 terms: held-out log loss ", "term "]),
    "ensemble": (
        [
            "forest: weights of levels",
            "network: parents per feature up to 0",
            "boosted terms: fitting",
            "weights of forest, network and boosted terms: [",
        ],
        ["forest: growing 2 networks", "network: ridges 16, 4", "boosted terms: 10 terms: "],
    ),
}

each = pytest.mark.parametrize("name", LEARNERS)


def fit(name, verbose=0):
    from sklearn.base import clone

    return clone(LEARNERS[name]).set_params(verbose=verbose).fit(X, Y)


@each
def test_lines_of_each_level(name, capsys):
    models, printed = [], []
    for verbose in (0, 1, 2):
        models.append(fit(name, verbose))
        printed.append(capsys.readouterr().out.splitlines())
    assert not printed[0]
    few, more = LINES[name]
    for own, beginnings in ((printed[1], few), (printed[2], few + more)):
        assert all(any(line.startswith(one) for line in own) for one in beginnings), own
    assert not any(line.startswith(tuple(more)) for line in printed[1])
    assert len(printed[1]) <= 30
    for model in models[1:]:
        np.testing.assert_array_equal(model.predict_proba(X), models[0].predict_proba(X))


def test_boosted_terms_print_a_line_per_hundred_terms(capsys):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 2))
    y = ((X > 0).sum(axis=1) + rng.integers(0, 2, 400) > 1).astype(int)
    model = BoostedTermsClassifier(max_terms=100, learning_rate=0.003, random_state=0, verbose=1).fit(X, y)
    first, last = capsys.readouterr().out.splitlines()
    losses = model.cv_results_["mean_log_loss"]
    assert first == f"100 terms: held-out log loss {losses[-1]:.4f}, lowest {losses.min():.4f}"
    assert last == f"fitting {model.n_terms_} terms to 400 rows"


def test_a_part_prints_its_own_lines(capsys):
    boosting = BoostedTermsClassifier(max_terms=10, verbose=2)
    BayesEnsembleClassifier(forest=BayesForestClassifier(n_estimators=2), boosting=boosting, random_state=0).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("boosted terms: 10 terms") for line in lines)
    assert all(line.startswith("boosted terms: ") for line in lines)


@each
def test_a_listener_gets_all_messages_and_nothing_is_printed(name, capsys):
    messages = []
    with listening(messages.append):
        fit(name)
    few, more = LINES[name]
    assert all(any(message.startswith(one) for message in messages) for one in few + more)
    n_messages = len(messages)
    fit(name)
    assert len(messages) == n_messages
    assert capsys.readouterr().out == ""


@each
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_leaves_an_unfitted_estimator(name, n_jobs):
    def interrupt(message):
        raise KeyboardInterrupt

    model = LEARNERS[name].__class__(**LEARNERS[name].get_params(deep=False)).set_params(n_jobs=n_jobs).fit(X, Y)
    before = model.predict_proba(X)
    with pytest.raises(KeyboardInterrupt), listening(interrupt):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict_proba(X)
    np.testing.assert_array_equal(model.fit(X, Y).predict_proba(X), before)


def test_parts_of_parts(capsys):
    messages = []
    with listening(messages.append), part_of_fit("outer", 0), part_of_fit("inner", 2):
        reporter(1)("a", 2)
        reporter(0)("b", 3)
    reporter(0)("c")
    silent("d")
    assert messages == ["outer: inner: a", "outer: inner: b"]
    assert capsys.readouterr().out == "outer: inner: a\n"


def test_a_printer_replaces_printing(capsys):
    """Learners whose messages are not passed to listeners print with it, too."""
    messages, lines = [], []
    with listening(messages.append, lines.append), part_of_fit("outer", 0):
        reporter(1)("a", 1)
        reporter(0)("b", 1)
        model = BayesNetClassifier(structure=Structure([-1, 0]), parameters=ExpectationMaximization(verbose=1))
        model.fit([["a", "c"], ["b", None], [None, "d"], ["a", "d"]] * 5, [0, 1, 0, 1] * 5)
    assert messages == ["outer: a", "outer: b"]
    assert lines[0] == "outer: a"
    assert lines[1].startswith("iteration 1: mean log-likelihood ")
    assert capsys.readouterr().out == ""
