"""Small trainings by gradient that are interrupted, for tests of what goes on from their checkpoints."""

import numpy as np

from tanlearn import CandidateSets, EncodedData, GradientTraining, Hybrid, Structure, TANClassifier
from tanlearn.training import checkpoint as module

N_EPOCHS, N_STEPS = 5, 6


class SquaredLoss:
    """A user's own loss."""

    def value_and_gradient(self, scores, y):
        d_scores = scores - 3.0 * (np.arange(scores.shape[1]) == y[:, np.newaxis])
        return 0.5 * (d_scores**2).sum(axis=1), d_scores


def problem(missing=False, seed=0, n=20 * N_STEPS + 7):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = np.stack([(y * rng.integers(0, 2, n) + rng.integers(0, k, n)) % k for k in (3, 2, 4, 3)], axis=1)
    if missing:
        X[rng.random(X.shape) < 0.1] = -1
    return EncodedData.from_codes(X, y, n_states=[3, 2, 4, 3], sample_weight=rng.uniform(0.5, 2, n))


def classifier(**changes):
    """Return a small classifier; parameters of its training are taken by their own names."""
    settings = {"loss": Hybrid(), "n_epochs": N_EPOCHS, "batch_size": 20, "calibrate": False, "random_state": 0}
    settings |= changes
    training = {name: settings.pop(name) for name in GradientTraining().get_params() if name in settings}
    return TANClassifier(**settings, training=GradientTraining(**training))


#: Parameters by the name of what trains: the compiled epoch, steps shared by threads, and steps of kernels.
ENGINES = {
    "fused": {},
    "fused, trees": {"candidates": "order-free", "init": "uniform"},
    "shared": {"n_jobs": 2},
    "chosen": {"loss": None, "calibrate": True},
    "own loss": {"loss": SquaredLoss(), "learning_rate": 0.1},
    "float64": {"dtype": "float64", "candidates": "all"},
    "gaps": {},
    "gaps, fixed": {"candidates": CandidateSets.of_structure(Structure([-1, 0, 1, 0]))},
}


def fit(engine="fused", **changes):
    return classifier(**{**ENGINES[engine], **changes}).fit_encoded(problem("gaps" in engine))


def assert_same_model(found, expected):
    np.testing.assert_array_equal(found.tables_.cells, expected.tables_.cells)
    assert found.structure_ == expected.structure_
    assert found.structure_probabilities_ == expected.structure_probabilities_
    assert found.history_ == expected.history_


def interrupt_at(epoch, seen=None):
    def callback(report):
        if seen is not None:
            seen.append(report.epoch)
        if report.epoch == epoch:
            raise KeyboardInterrupt

    return callback


def on_call(number, function, error=KeyboardInterrupt, after=False):
    """Return a function that fails once, before or after it has done what it does."""
    calls = []

    def wrapped(*arguments):
        calls.append(arguments)
        if len(calls) == number and not after:
            raise error
        answer = function(*arguments)
        if len(calls) == number:
            raise error
        return answer

    return wrapped


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def count_writings(monkeypatch, interval):
    written = []
    monkeypatch.setattr(module, "INTERVAL", interval)
    monkeypatch.setattr(module, "PAUSE", 0)
    write = module.write_file
    monkeypatch.setattr(module, "write_file", lambda *arguments: written.append(write(*arguments)))
    return written
