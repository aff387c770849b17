"""Waiting times of users: the import, the first fit of a process, predictions, and C code."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from tanlearn import BayesForestClassifier, BayesNetClassifier, NaiveBayesClassifier, TableEncoder
from tanlearn.baselines import AODEClassifier, ChowLiu

from .shapes import SHAPES, make, make_mixed, make_mixed_rows

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
    """The package, and the dependencies that it always imports, each in a fresh process."""

    number, warmup_time = 1, 0

    def time_import(self):
        run("import tanlearn")

    def time_import_of_scikit_learn_and_numba(self):
        run("import sklearn.base, numba")


class FirstFit:
    """A fit to 40 rows in a fresh process that finds compiled kernels on disk, import included."""

    params, param_names = [list(LEARNERS)], ["learner"]
    timeout, number, warmup_time = 600, 1, 0

    def setup(self, learner):
        self.time_warm(learner)

    def time_warm(self, learner):
        run(FIT.format(LEARNERS[learner]))


class FirstFitCold:
    """A fit to 40 rows in a fresh process that must compile all kernels; it takes seconds, so it is run once."""

    params, param_names = [list(LEARNERS)], ["learner"]
    timeout, number, repeat, rounds, warmup_time = 600, 1, 1, 1, 0

    def time_cold(self, learner):
        with tempfile.TemporaryDirectory() as folder:
            run(FIT.format(LEARNERS[learner]), NUMBA_CACHE_DIR=folder)


class OneRow:
    """``predict`` of one row at a time, encoding included."""

    learners = {
        "naive Bayes": NaiveBayesClassifier,
        "Chow-Liu": lambda: BayesNetClassifier(structure=ChowLiu()),
        "AODE": AODEClassifier,
        "forest": lambda: BayesForestClassifier(n_estimators=8, random_state=0),
    }
    params, param_names = [list(learners)], ["learner"]
    timeout = 300

    def setup(self, learner):
        X, y = make_mixed(500, 0)
        self.model, self.row = self.learners[learner]().fit(X, y), X[:1]
        self.time_predict(learner)

    def time_predict(self, learner):
        self.model.predict(self.row)


class RowPredictor:
    """The predictor of single rows of naive Bayes: from a tuple of raw values, and from codes."""

    def setup(self):
        rng = np.random.default_rng(0)
        X, y = rng.integers(0, 4, (2000, 16)), rng.integers(0, 2, 2000)
        model = NaiveBayesClassifier().fit(X, y)
        self.predictor, self.row = model.row_predictor(), tuple(X[0].tolist())
        self.codes = model.encoder_.encode(X[:1])[:, 0].tolist()

    def time_row(self):
        self.predictor.predict(self.row)

    def time_codes(self):
        self.predictor.predict_codes(self.codes)


class MixedRows:
    """The predictor of single rows of 20 mixed columns: complete, with missing values, and with an unseen category."""

    params = [["naive Bayes", "Chow-Liu", "forest"], ["complete", "missing", "unseen"]]
    param_names = ["learner", "row"]
    timeout = 300

    def setup(self, learner, row):
        X, y = make_mixed_rows(2_000, 20)
        self.predictor = OneRow.learners[learner]().fit(X, y).row_predictor()
        first = tuple(X[0])
        rows = {"missing": (*first[:2], None, float("nan"), *first[4:]), "unseen": (*first[:4], "new", *first[5:])}
        self.row = rows.get(row, first)
        self.time_probabilities(learner, row)

    def time_class(self, learner, row):
        self.predictor.predict(self.row)

    def time_probabilities(self, learner, row):
        self.predictor.predict_proba(self.row)


class ExportC:
    """Writing a Chow-Liu tree of letter's shape as C, with parameters of four bits."""

    params, param_names = [[True, False]], ["packed"]

    def setup(self, packed):
        data = make("letter", 4_000)
        X = np.ascontiguousarray(data.codes.T).astype(int)
        encoder = TableEncoder(discrete_features=True)
        self.model = BayesNetClassifier(structure=ChowLiu(), encoder=encoder).fit(X, data.y).with_bits((3, 1))
        self.folder = tempfile.TemporaryDirectory()
        self.time_export(packed)

    def teardown(self, packed):
        self.folder.cleanup()

    def time_export(self, packed):
        self.model.export_c(Path(self.folder.name, "model.h"), packed=packed)

    def track_size(self, packed):
        return Path(self.folder.name, "model.h").stat().st_size

    track_size.unit = "bytes of C"


class Predict:
    """``predict`` of the estimators, encoding included: one row, and 10,000 at once."""

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


class PredictMissing:
    """``predict`` of a Chow-Liu tree on 10,000 rows, by the share of missing values."""

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
