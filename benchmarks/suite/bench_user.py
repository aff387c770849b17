"""What a user waits for: the import, the first fit of a process, and a prediction."""

import os
import subprocess
import sys
import tempfile

import numpy as np

from tanlearn import BayesNetClassifier, NaiveBayesClassifier, TableEncoder
from tanlearn.baselines import ChowLiu

from .shapes import SHAPES, make

LEARNERS = {
    "naive Bayes": "tanlearn.NaiveBayesClassifier()",
    "Chow-Liu": "tanlearn.BayesNetClassifier(structure=tanlearn.baselines.ChowLiu())",
    "gradient TAN": "tanlearn.TANClassifier(n_epochs=2)",
}
FIT = "import numpy, tanlearn.baselines; X = numpy.eye(4)[numpy.arange(40) % 4]; {}.fit(X, numpy.arange(40) % 4)"


def run(code, **variables):
    """Run code in a fresh process."""
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, **variables})


class Import:
    """The package, and what it cannot do without."""

    number, warmup_time = 1, 0

    def time_import(self):
        run("import tanlearn")

    def time_import_of_scikit_learn_and_numba(self):
        run("import sklearn.base, numba")


class FirstFit:
    """A small fit in a fresh process: with compiled kernels on disk, and without."""

    params, param_names = [list(LEARNERS)], ["learner"]
    timeout, number, warmup_time = 600, 1, 0

    def setup(self, learner):
        self.time_warm(learner)

    def time_warm(self, learner):
        run(FIT.format(LEARNERS[learner]))


class FirstFitCold:
    """The same with nothing compiled; seconds to minutes, so it is done once."""

    params, param_names = [list(LEARNERS)], ["learner"]
    timeout, number, repeat, warmup_time = 600, 1, 1, 0

    def time_cold(self, learner):
        with tempfile.TemporaryDirectory() as folder:
            run(FIT.format(LEARNERS[learner]), NUMBA_CACHE_DIR=folder)


class Predict:
    """``predict`` of the estimators, border included: one row at a time, and 10,000 at once."""

    learners = {
        "naive Bayes": NaiveBayesClassifier,
        "Chow-Liu": lambda **how: BayesNetClassifier(structure=ChowLiu(), **how),
    }
    params, param_names = [list(SHAPES), list(learners)], ["shape", "learner"]
    timeout = 300

    def setup(self, shape, learner):
        data = make(shape, 10_000)
        self.X = np.ascontiguousarray(data.codes.T).astype(int)
        self.model = self.learners[learner](encoder=TableEncoder(discrete_features=True)).fit(self.X, data.y)
        self.time_one_row(shape, learner)
        self.time_batch(shape, learner)

    def time_one_row(self, shape, learner):
        self.model.predict(self.X[:1])

    def time_batch(self, shape, learner):
        self.model.predict(self.X)


class PredictGaps:
    """``predict`` of a Chow-Liu tree on 10,000 rows of which a share of the cells is missing, beside complete ones."""

    params, param_names = [["letter", "usps"], [0.0, 0.1, 0.5]], ["shape", "missing"]
    timeout = 300

    def setup(self, shape, missing):
        data = make(shape, 10_000)
        X = np.ascontiguousarray(data.codes.T).astype(float)
        encoder = TableEncoder(discrete_features=True)
        self.model = BayesNetClassifier(structure=ChowLiu(), encoder=encoder).fit(X, data.y)
        self.X = np.where(np.random.default_rng(0).random(X.shape) < missing, np.nan, X)
        self.time_predict(shape, missing)

    def time_predict(self, shape, missing):
        self.model.predict(self.X)


class Stream:
    """``partial_fit`` of 10,000 rows of letter's shape, after a first chunk."""

    params, param_names = [["naive Bayes", "Chow-Liu"]], ["learner"]

    def setup(self, learner):
        data = make("letter", 10_000)
        self.X, self.y = np.ascontiguousarray(data.codes.T).astype(int), data.y
        self.model = Predict.learners[learner](encoder=TableEncoder(discrete_features=True))
        self.model.partial_fit(self.X, self.y, range(26))

    def time_chunk(self, learner):
        self.model.partial_fit(self.X, self.y)
