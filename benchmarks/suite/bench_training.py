"""One epoch of gradient TAN, and what a user waits for at the start of a process."""

import subprocess
import sys

import numpy as np

from tanlearn import Hybrid
from tanlearn.candidates import make_candidates
from tanlearn.epochs import State, fused_epoch, plan_epoch, unfused_epoch

from .shapes import SHAPES, make

ENGINES = {"fused": fused_epoch, "unfused": unfused_epoch}


class Step:
    """Ten steps of TAN Subset, K = 8, float32, in the published batch size; divide by ten."""

    params, param_names = [list(SHAPES), list(ENGINES)], ["shape", "engine"]
    timeout = 300

    def setup(self, shape, engine):
        batch_size = SHAPES[shape][3]
        self.data = make(shape, 10 * batch_size)
        rng = np.random.default_rng(0)
        sets = make_candidates("subset", self.data.n_features, n_candidates=8, ordering=None, image_shape=None, rng=rng)
        self.state = State(self.data, sets, "uniform", "float32", rng)
        self.plan = plan_epoch(self.data.n_samples, batch_size, sets.n_tables, rng)
        self.weights = np.ones(self.data.n_samples, np.float32)
        self.time_ten_steps(shape, engine)

    def time_ten_steps(self, shape, engine):
        ENGINES[engine](self.state, self.data, self.weights, Hybrid(), self.plan, (3e-3, 1e-3), 1.0)


class Start:
    """Fresh processes: the import, and a small fit with the compiled kernels on disk."""

    timeout = 300
    number = 1
    fit = "import tanlearn, numpy; X = numpy.eye(4)[numpy.arange(40) % 4]; tanlearn.{}.fit(X, numpy.arange(40) % 4)"

    def setup(self):
        self.time_gradient_fit()

    def run(self, code):
        subprocess.run([sys.executable, "-c", code], check=True)

    def time_import(self):
        self.run("import tanlearn")

    def time_import_of_scikit_learn_and_numba(self):
        self.run("import sklearn.base, numba")

    def time_naive_bayes_fit(self):
        self.run(self.fit.format("NaiveBayesClassifier()"))

    def time_gradient_fit(self):
        self.run(self.fit.format("TANClassifier(n_epochs=2)"))
