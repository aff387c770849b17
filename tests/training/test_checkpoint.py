"""A training that is interrupted, anywhere, and goes on: the model of an uninterrupted one, bit for bit."""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from support import processes
from support.interrupted_trainings import (
    ENGINES,
    N_EPOCHS,
    N_STEPS,
    SquaredLoss,
    assert_same_model,
    classifier,
    count_writings,
    files,
    fit,
    interrupt_at,
    on_call,
    problem,
)
from support.system_calls import patch_system

from tanlearn import CandidateSets, EncodedData, Hybrid, TANSearchCV, load
from tanlearn.files import archive, regular_files
from tanlearn.kernels import train as kernels
from tanlearn.training import checkpoint as module
from tanlearn.training.settings import TrainingSettings
from tanlearn.training.training import Training


@pytest.fixture(params=list(ENGINES))
def engine(request, monkeypatch):
    monkeypatch.setattr("tanlearn.training.engines.SHARED_ROWS", 1)  # so that two jobs share even these steps
    return request.param


# Going on ---------------------------------------------------------------------------------------------------


def test_training_interrupted_after_every_epoch_is_that_without_a_break(engine, tmp_path):
    whole = fit(engine)
    for epoch in range(1, N_EPOCHS + 1):
        seen = []
        with pytest.raises(KeyboardInterrupt):
            fit(engine, checkpoint=tmp_path / "training", callback=interrupt_at(epoch, seen))
        assert seen == [epoch]
    seen = []
    assert_same_model(fit(engine, checkpoint=tmp_path / "training", callback=seen.append), whole)
    assert seen == []
    assert list(files(tmp_path)) == ["training"]


#: Where an interruption may find each engine: what is called there, how often an epoch, and whether it has returned.
PLACES = {
    "fused": ("train_epoch", 1, True),  # Python raises when the compiled epoch returns
    "fused, trees": ("train_epoch", 1, True),
    "shared": ("finish_step", N_STEPS, False),
    "chosen": ("train_epoch", 1, True),
    "own loss": ("evaluate", N_STEPS, False),
    "float64": ("evaluate", N_STEPS, True),
    "gaps": ("train_epoch", 1, True),
    "gaps, fixed": ("train_epoch", 1, True),
}


def test_training_interrupted_within_an_epoch_keeps_the_last_one_that_is_finished(engine, tmp_path, monkeypatch):
    name, calls, after = PLACES[engine]
    owner = "tanlearn.training.engines" if name == "evaluate" else "tanlearn.kernels.train"
    whole, path = fit(engine), tmp_path / "training"
    with monkeypatch.context() as patch:
        original = getattr(sys.modules[owner], name)
        patch.setattr(f"{owner}.{name}", on_call(2 * calls + max(1, calls // 2), original, after=after))
        with pytest.raises(KeyboardInterrupt):
            fit(engine, checkpoint=path)
    seen = []
    assert_same_model(fit(engine, checkpoint=path, callback=seen.append), whole)
    assert [report.epoch for report in seen] == [3, 4, 5]


def raw_table(n=150):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    X = np.empty((n, 3), dtype=object)
    X[:, 0], X[:, 1], X[:, 2] = y + rng.normal(size=n), rng.choice(["a", "b"], n), rng.integers(0, 3, n) * y
    return X, np.array(["no", "yes"])[y]


@pytest.mark.parametrize("patience", [None, 3])
def test_validation_and_patience_go_on_where_they_were(patience, tmp_path):
    X, y = raw_table()
    base = classifier(
        validation_fraction=0.3,
        patience=patience,
        n_epochs=40,
        class_weight="balanced",
        learning_rate=0.03,
        init="uniform",
        random_state=1,
    )
    weight = np.random.default_rng(1).uniform(0.5, 2, len(y))
    whole = clone(base).fit(X, y, weight)
    n_epochs = len(whole.history_)
    assert n_epochs == (8 if patience else 40)
    resumed = clone(base).set_params(training__checkpoint=str(tmp_path / "training"))
    for epoch in (1, n_epochs // 2, n_epochs - 1, n_epochs):
        with pytest.raises(KeyboardInterrupt):
            resumed.set_params(training__callback=interrupt_at(epoch)).fit(X, y, weight)
    assert_same_model(resumed.set_params(training__callback=None).fit(X, y, weight), whole)
    np.testing.assert_array_equal(resumed.predict_proba(X), whole.predict_proba(X))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_engine_takes_over_all_that_another_leaves(dtype):
    """Even what a short training leaves at nothing, such as ways that are too short to be gone."""
    sets = CandidateSets.from_lists([[], [0], [0, 1], [2]])
    settings = TrainingSettings(dtype=dtype)
    one, other = (
        Training(problem(), sets, Hybrid(), settings, np.random.default_rng(0))._make_engine(1) for _ in range(2)
    )
    state = {name: np.full_like(array, number) for number, (name, array) in enumerate(one.get_state().items())}
    other.set_state(state)
    for name, array in other.get_state().items():
        np.testing.assert_array_equal(array, state[name])
    assert not np.array_equal(one.get_state()["theta"], state["theta"])


def test_what_is_kept_of_an_epoch_stays_as_it_is_while_others_follow():
    sets, settings = CandidateSets.from_lists([[]] * 4), TrainingSettings(n_epochs=1)
    training = Training(problem(), sets, Hybrid(), settings, np.random.default_rng(0))
    training.run()
    get_state, expected = training.freeze(), training.freeze()()
    training.end_epoch(training.engine.epoch(training.plan(), *training.schedule()))
    assert len(training.freeze()()["history"]) == 2
    np.testing.assert_equal(get_state(), expected)
    assert len(expected["history"]) == 1


def test_checkpoint_of_a_finished_training_is_its_model_and_stays_as_it_is(tmp_path, monkeypatch):
    whole = fit(checkpoint=tmp_path / "training")
    before = files(tmp_path)
    monkeypatch.setattr(kernels, "train_epoch", on_call(1, print, error=AssertionError))
    monkeypatch.setattr(module, "write_file", on_call(1, print, error=AssertionError))
    assert_same_model(fit(checkpoint=tmp_path / "training"), whole)
    assert files(tmp_path) == before


def test_training_that_a_callback_stopped_goes_on(tmp_path):
    part = fit(checkpoint=tmp_path / "training", callback=lambda report: report.epoch == 2)
    assert len(part.history_) == 2
    assert_same_model(fit(checkpoint=tmp_path / "training"), fit())


def test_what_changes_no_model_may_change_in_between(tmp_path, monkeypatch):
    monkeypatch.setattr("tanlearn.training.engines.SHARED_ROWS", 1)
    with pytest.raises(KeyboardInterrupt):
        fit(checkpoint=tmp_path / "training", callback=interrupt_at(2), n_jobs=1)
    (tmp_path / "training").rename(tmp_path / "moved")
    prior = [0.2, 0.3, 0.5]
    resumed = fit(checkpoint=tmp_path / "moved", n_jobs=2, class_prior=prior)
    assert_same_model(resumed, fit(class_prior=prior))


# What is written when ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("interval", "n_written"), [(0.0, 1 + N_EPOCHS), (3600.0, 2)])
def test_epochs_are_written_from_time_to_time_and_the_last_always(interval, n_written, tmp_path, monkeypatch):
    written = count_writings(monkeypatch, interval)
    fit(checkpoint=tmp_path / "training")
    assert len(written) == n_written


def test_slow_disks_are_written_to_less_often(tmp_path, monkeypatch):
    now = iter(
        [0.0, 10.0, 12.0, 100.0, 111.9, 112.0, 112.0, 112.0]
    )  # first writing from 10 to 12: the next from 112 on
    checkpoint = module.TrainingCheckpoint(tmp_path / "training", "fingerprint")
    monkeypatch.setattr(module.time, "monotonic", now.__next__)
    found = []
    for epoch in range(4):
        checkpoint.keep(lambda epoch=epoch: epoch)
        module.TrainingCheckpoint(tmp_path / "training", "fingerprint").restore(found.append)
    assert found == [0, 0, 0, 3]


def test_interruption_of_a_writing_costs_nothing(tmp_path, monkeypatch):
    count_writings(monkeypatch, 0.0)
    with monkeypatch.context() as patch:
        patch_system(patch, replace=on_call(3, os.replace))
        with pytest.raises(KeyboardInterrupt):
            fit(checkpoint=tmp_path / "training")
    seen = []
    assert_same_model(fit(checkpoint=tmp_path / "training", callback=seen.append), fit())
    assert seen[0].epoch == 3
    assert list(files(tmp_path)) == ["training"]


def train_slowly(path):
    """Train two epochs, report it, and wait for a signal."""
    module.INTERVAL = module.PAUSE = 0
    # A shell that runs tests in the background may have its children ignore the signal.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def callback(report):
        if report.epoch == 2:
            sys.stdout.write("two\n")
            sys.stdout.flush()
            sys.stdin.read()  # until the end of this process, or of the one that has started it

    fit(checkpoint=path, callback=callback)


@pytest.mark.skipif(os.name != "posix", reason="signals are sent as POSIX systems do")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_process_that_is_ended_from_outside_leaves_a_checkpoint(number, tmp_path):
    path = tmp_path / "training"
    command, pipe = [sys.executable, __file__, path], subprocess.PIPE
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with processes.started(command, stdin=pipe, stdout=pipe, stderr=pipe, env=environment) as child:
        assert child.stdout.readline() == b"two\n"
        child.send_signal(number)
        error = child.stderr.read()
        child.wait()
    assert child.returncode == -number
    assert (b"KeyboardInterrupt" in error) is (number == signal.SIGINT)
    seen = []
    assert_same_model(fit(checkpoint=path, callback=seen.append), fit())
    assert [report.epoch for report in seen] == [3, 4, 5]
    assert list(files(tmp_path)) == ["training"]


# What is refused --------------------------------------------------------------------------------------------


OTHER = {
    "seed": {"random_state": 1},
    "rate": {"learning_rate": 0.02},
    "epochs": {"n_epochs": N_EPOCHS + 1},
    "loss": {"loss": Hybrid(gamma=3)},
    "type": {"dtype": "float64"},
    "candidates": {"candidates": "unconstrained"},
    "validation": {"validation_fraction": 0.2},
}


def assert_refused(path, message, data=None, **changes):
    """Fit to a file that must be refused, and be as before."""
    before = files(path.parent)
    with pytest.raises(ValueError, match=message) as caught:
        classifier(checkpoint=path, **changes).fit_encoded(problem() if data is None else data)
    assert repr(str(path)) in str(caught.value)
    assert files(path.parent) == before


@pytest.mark.filterwarnings("ignore:sample_weight adds up:UserWarning")
@pytest.mark.filterwarnings("ignore:discretization left")
def test_checkpoint_of_another_training_is_refused(tmp_path):
    fit(checkpoint=tmp_path / "training", callback=lambda report: True)
    refused = partial(assert_refused, tmp_path / "training", "of another training: the data, the settings, the seed")
    for changes in OTHER.values():
        refused(**changes)
    data = problem()
    fewer, unweighted = data.take(np.arange(20)), EncodedData.from_codes(data.codes.T, data.y, n_states=[3, 2, 4, 3])
    for other in (problem(seed=1), fewer, unweighted):
        refused(other)
    X, y = raw_table()
    path = tmp_path / "raw"
    classifier(checkpoint=path).fit(X, y)
    for changed in (np.where(np.arange(3) == 2, 0, X), np.flip(X, axis=0)):
        with pytest.raises(ValueError, match="the settings, the seed"):
            classifier(checkpoint=path).fit(changed, y)
    with pytest.raises(ValueError, match="the settings, the seed"):
        classifier(checkpoint=path).fit(X, y, np.arange(1.0, 151.0))


def test_damaged_checkpoint_is_refused(tmp_path):
    path, rng = tmp_path / "training", np.random.default_rng(0)
    fit(checkpoint=path, callback=lambda report: report.epoch == 2)
    content = path.read_bytes()
    for length in rng.integers(0, len(content), 20):
        path.write_bytes(content[:length])
        assert_refused(path, r"damaged \(truncated or altered\)|not a tanlearn checkpoint")
    for place in rng.integers(50, len(content), 60):
        altered = bytearray(content)
        altered[place] ^= 1 << rng.integers(8)
        path.write_bytes(altered)
        assert_refused(path, r"damaged \(truncated or altered\)\. Use an intact copy, or remove it to start again")


def test_foreign_files_are_refused(tmp_path):
    path = tmp_path / "training"
    for content in (b"", b"notes", b'{"tanlearn_search": 1, "fingerprint": "d"}\n'):
        path.write_bytes(content)
        assert_refused(path, "not a tanlearn checkpoint. Name another file")
    model = classifier().fit(*raw_table())
    model.save(path)
    assert_refused(path, "format 'tanlearn model' instead of format 'tanlearn checkpoint'. Name another file")
    path.unlink()
    fit(checkpoint=path)
    with pytest.raises(ValueError, match=r"format 'tanlearn checkpoint' instead of .*Name a file that tanlearn's save"):
        load(path)


def test_newer_and_forged_checkpoints_are_refused(tmp_path, monkeypatch):
    path = tmp_path / "training"
    fit(checkpoint=path, callback=lambda report: report.epoch == 2)
    description, arrays = archive.unpack(path.read_bytes(), regular_files.CHECKPOINT)
    for name, array in arrays.items():
        for forged in (array[:-1], array.astype(np.float16), -1 - array if array.dtype.kind == "i" else array * np.nan):
            path.write_bytes(archive.pack(description, {**arrays, name: forged}, regular_files.CHECKPOINT))
            assert_refused(path, "its contents are invalid")
    for forged in ({**description, "state": 1}, {**description, "more": 1}, {}):
        path.write_bytes(archive.pack(forged, arrays, regular_files.CHECKPOINT))
        assert_refused(path, "its contents are invalid")
    with monkeypatch.context() as patch:
        patch.setattr(archive, "_VERSION", 2)
        path.write_bytes(archive.pack(description, arrays, regular_files.CHECKPOINT))
    assert_refused(path, "format 2 of tanlearn .* Upgrade tanlearn")


@pytest.mark.parametrize("seed", [None, np.random.RandomState(0), np.random.default_rng(0)])
def test_random_state_must_be_a_number(seed, tmp_path):
    with pytest.raises(ValueError, match="a checkpoint needs an integer random_state, because"):
        fit(checkpoint=tmp_path / "training", random_state=seed)
    assert files(tmp_path) == {}


def test_loss_that_cannot_be_told_from_others_is_refused(tmp_path):
    loss = SquaredLoss()
    loss.weight = lambda y: 1.0
    with pytest.raises(ValueError, match=r"a checkpoint must identify the training.*Omit the checkpoint"):
        fit(checkpoint=tmp_path / "training", loss=loss)


def test_checkpoint_of_one_training_is_none_of_a_search(tmp_path):
    search = TANSearchCV(classifier(checkpoint=tmp_path / "training"), n_iter=1, random_state=0)
    with pytest.raises(ValueError, match="Set the checkpoint of the search instead"):
        search.fit(*raw_table())


# The parameter ----------------------------------------------------------------------------------------------


def test_copies_keep_the_path_and_files_of_models_do_not(tmp_path):
    path = tmp_path / "training"
    model = classifier(checkpoint=path).fit(*raw_table())
    assert clone(model).training.checkpoint == path
    assert classifier(checkpoint=str(path)).fit(*raw_table()).history_ == model.history_
    model.save(tmp_path / "model.tan")
    again = load(tmp_path / "model.tan")
    assert repr(again.get_params()) == repr(model.set_params(training__checkpoint=None).get_params())
    with pytest.raises(ValueError, match="'checkpoint' parameter"):
        fit(checkpoint=3)


if __name__ == "__main__":
    train_slowly(Path(sys.argv[1]))
