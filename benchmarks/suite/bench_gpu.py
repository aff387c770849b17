"""The same work on the CPU and on the device, until its results are back; without a device, asv prints n/a."""

from dataclasses import replace

import numpy as np

import tanlearn
from tanlearn import Hybrid, TANClassifier
from tanlearn.kernels._cuda import check_device
from tanlearn.models.log_joint import log_joint
from tanlearn.search.runs import Part

from .bench_training import train_runs
from .shapes import make

DEVICES = ["cpu", "cuda"]


def device_or_skip(device):
    """Raise NotImplementedError, with which asv skips a benchmark, if the device is absent."""
    try:
        check_device(device)
    except (ImportError, RuntimeError) as error:
        raise NotImplementedError(str(error)) from error


class Population:
    """Short trainings in the shape of letter, side by side: on two threads, or in step."""

    params, param_names = [[1, 16, 64], DEVICES], ["n_runs", "device"]
    timeout = 600

    def setup(self, n_runs, device):
        device_or_skip(device)
        data = make("letter")
        self.part = Part(data, np.ascontiguousarray(data.codes[:, :1000]), data.y[:1000])
        self.estimator = TANClassifier(loss=Hybrid(), n_epochs=3, device=device)
        self.time_trainings(1, device)  # compiles

    def time_trainings(self, n_runs, device):
        train_runs(self.estimator, self.part, n_runs, 2)


class PairCounts:
    """Pair counts of Chow-Liu trees, in the shape of usps."""

    params, param_names = [DEVICES], ["device"]
    timeout = 300

    def setup(self, device):
        device_or_skip(device)
        self.data = replace(make("usps"), device=device)
        self.time_counts(device)

    def time_counts(self, device):
        tanlearn.PairCounts(self.data.n_states, self.data.n_classes).update(self.data)


class Predict:
    """Log joints of a tree with 16 features, copies to and from the device included."""

    params, param_names = [DEVICES], ["device"]
    timeout = 300

    def setup(self, device):
        device_or_skip(device)
        data = make("letter")
        model = TANClassifier(loss=Hybrid(), n_epochs=1, calibrate=False, random_state=0).fit_encoded(data)
        self.arguments = model.tables_, model.structure_, np.ascontiguousarray(np.tile(data.codes, 50))
        self.time_log_joint(device)

    def time_log_joint(self, device):
        log_joint(*self.arguments, device=device)
