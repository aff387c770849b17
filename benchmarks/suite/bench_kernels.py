"""Counting, scoring, losses and discretization by themselves. ``setup`` has one warm call of each."""

import numpy as np

from tanlearn import (
    ConditionalNLL,
    HingeMargin,
    Hybrid,
    JointNLL,
    Margin,
    MaximumLikelihood,
    MDLPDiscretizer,
    PairCounts,
    Structure,
)
from tanlearn.baselines import ChowLiu
from tanlearn.kernels import scores
from tanlearn.models.log_joint import log_joint

from .shapes import SHAPES, make

RNG = np.random.default_rng(0)


class Statistics:
    """Pair counts, mutual information, and the Chow-Liu tree of pair counts."""

    params, param_names = [list(SHAPES)], ["shape"]
    timeout = 300

    def setup(self, shape):
        self.data = make(shape)
        self.state = PairCounts(self.data.n_states, self.data.n_classes).update(self.data)
        self.time_information(shape)
        self.time_chow_liu_of_counts(shape)

    def time_counts(self, shape):
        PairCounts(self.data.n_states, self.data.n_classes).update(self.data)

    def time_counts_two_threads(self, shape):
        PairCounts(self.data.n_states, self.data.n_classes).update(self.data, n_jobs=2)

    def time_information(self, shape):
        self.state.conditional_mutual_information()

    def time_chow_liu_of_counts(self, shape):
        ChowLiu().from_counts(self.state)

    def peakmem_counts(self, shape):
        PairCounts(self.data.n_states, self.data.n_classes).update(self.data)


class Scores:
    """Prediction of 10,000 complete rows, their adjoint, and rows of which a tenth of the values is missing."""

    params, param_names = [list(SHAPES), ["naive Bayes", "chain"]], ["shape", "structure"]

    def setup(self, shape, structure):
        data = make(shape, 10_000)
        parent = np.arange(-1, data.n_features - 1) if structure == "chain" else np.full(data.n_features, -1)
        self.structure = Structure(parent)
        self.tables = MaximumLikelihood().fit(self.structure, data, RNG)
        self.codes = data.codes
        self.missing = np.where(np.random.default_rng(0).random(data.codes.shape) < 0.1, 255, data.codes)
        self.missing = self.missing.astype(data.codes.dtype)
        d_scores, d_cells = np.ones((data.n_samples, data.n_classes)), np.zeros_like(self.tables.cells)
        layout, selected, rows = self.tables.layout, np.arange(data.n_features), np.empty(data.n_samples, np.intp)
        self.arguments = data.codes, 0, d_scores, *layout.arrays(), selected, 255, rows, d_cells
        self.time_predict(shape, structure)
        self.time_predict_missing(shape, structure)
        self.time_adjoint(shape, structure)

    def time_predict(self, shape, structure):
        log_joint(self.tables, self.structure, self.codes)

    def time_predict_missing(self, shape, structure):
        log_joint(self.tables, self.structure, self.missing)

    def time_adjoint(self, shape, structure):
        scores.log_joint_adjoint(*self.arguments)


class Losses:
    """Value and gradient of 10,000 rows of 26 scores."""

    losses = {
        loss.__class__.__name__: loss for loss in (JointNLL(), ConditionalNLL(), HingeMargin(), Margin(), Hybrid())
    }
    params, param_names = [list(losses), ["float32", "float64"]], ["loss", "dtype"]

    def setup(self, loss, dtype):
        rng = np.random.default_rng(0)
        self.scores = (5 * rng.normal(size=(10_000, 26))).astype(dtype)
        self.y = rng.integers(0, 26, 10_000)
        self.time_value_and_gradient(loss, dtype)

    def time_value_and_gradient(self, loss, dtype):
        self.losses[loss].value_and_gradient(self.scores, self.y)


class Discretize:
    """MDLP on 20,000 rows of 20 continuous columns and of 20 columns of 256 values."""

    params, param_names = [["continuous", "pixels"]], ["columns"]

    def setup(self, columns):
        rng = np.random.default_rng(0)
        self.y = rng.integers(0, 10, 20_000)
        self.X = rng.normal(size=(20_000, 20)) + 0.3 * self.y[:, np.newaxis]
        if columns == "pixels":
            self.X = np.clip(np.round(64 * self.X), 0, 255)
        self.time_fit(columns)

    def time_fit(self, columns):
        MDLPDiscretizer().fit(self.X, self.y)
