"""Gradient training: one step, populations of trainings, and memory."""

import numpy as np

from tanlearn import (
    ConditionalNLL,
    EncodedData,
    GradientTraining,
    Hybrid,
    KTreeClassifier,
    Structure,
    TANClassifier,
)
from tanlearn.search.runs import Part, Run, run_population
from tanlearn.structures.candidate_kinds import Candidates, make_candidates
from tanlearn.structures.candidate_sets import CandidateSets
from tanlearn.structures.table_layout import TableLayout
from tanlearn.training.engines import FusedEngine, UnfusedEngine
from tanlearn.training.objectives import Objective
from tanlearn.training.tan_state import State, plan_epoch
from tanlearn.training.term_engine import TermEngine
from tanlearn.training.term_state import TermState

from .shapes import SHAPES, make

ENGINES = ["unfused", "fused", "fused, two threads"]


def train_runs(estimator, part, n_runs, threads):
    """Train that many times from different seeds."""
    runs = [Run(i, 0, {"random_state": i}) for i in range(n_runs)]
    failures = [result.failure for result in run_population(estimator, [part], runs, n_jobs=threads) if result.failure]
    if failures:
        raise RuntimeError(failures[0])


class Step:
    """One step of TAN Subset, K = 8, float32, in the published batch size, the draw of its noise left out."""

    params, param_names = [list(SHAPES), ENGINES], ["shape", "engine"]
    timeout = 300

    def setup(self, shape, engine):
        batch_size = SHAPES[shape][3]
        data = make(shape, batch_size)
        rng = np.random.default_rng(0)
        sets = make_candidates(Candidates("subset", n_candidates=8), data.n_features, rng=rng)
        state, weights = State(data, sets, "uniform", "float32", rng), np.ones(data.n_samples, np.float32)
        self.plan = plan_epoch(data.n_samples, batch_size, sets.n_tables, rng)
        if engine == "unfused":
            self.engine = UnfusedEngine(state, data, weights, Hybrid())
        else:
            self.engine = FusedEngine(state, data, weights, Hybrid(), batch_size, 2 if "two" in engine else 1)
        self.time_step(shape, engine)

    def time_step(self, shape, engine):
        self.engine.epoch(self.plan, (3e-3, 1e-3), 1.0)


class Terms:
    """One step of a gradient k-tree, K = 8 in pairs, in the published batch size."""

    params, param_names = [["letter", "satimage", "usps"], ["order-free", "subset"]], ["shape", "candidates"]
    timeout = 300

    def setup(self, shape, candidates):
        batch_size = SHAPES[shape][3]
        data = make(shape, batch_size)
        rng = np.random.default_rng(0)
        sets = make_candidates(Candidates(candidates, n_candidates=8), data.n_features, rng=rng, n_parents=2)
        self.plan = plan_epoch(data.n_samples, batch_size, sets.n_tables, rng)
        weights = np.ones(data.n_samples, np.float32)
        self.engine = TermEngine(TermState(data, sets), data, weights, ConditionalNLL(), batch_size)
        self.time_step(shape, candidates)

    def time_step(self, shape, candidates):
        self.engine.epoch(self.plan, (1e-2, 1e-2), 1.0)


class Wide:
    """Fits of a tree and of a k-tree to few rows of columns with many values. The limit of the ratio is 3."""

    params, param_names = [["TAN", "k-tree"], ["150 x 6, 50 values", "400 x 5, 10 values"]], ["learner", "rows"]
    timeout = 300

    def setup(self, learner, rows):
        n, d, n_values, n_classes = (150, 6, 50, 3) if rows.startswith("150") else (400, 5, 10, 10)
        rng = np.random.default_rng(0)
        X, y = rng.integers(0, n_values, (n, d)), rng.integers(0, n_classes, n)
        self.data = EncodedData.from_codes(X, y, n_states=[n_values] * d, n_classes=n_classes)
        self.model = (TANClassifier if learner == "TAN" else KTreeClassifier)(random_state=0)
        self.time_fit(learner, rows)

    def time_fit(self, learner, rows):
        self.model.fit_encoded(self.data)


class Gaps:
    """One step on a chain, and the loss of one batch with its gradient, by the share of rows with missing values."""

    params, param_names = [["letter", "satimage"], [0.0, 0.07, 0.5]], ["shape", "rows with missing values"]
    timeout = 300

    def setup(self, shape, share):
        batch_size = SHAPES[shape][3]
        data = make(shape, batch_size)
        rng = np.random.default_rng(0)
        d = data.n_features
        rate = 1 - (1 - share) ** (1 / d)
        table = np.where(rng.random((data.n_samples, d)) < rate, -1, data.codes.T.astype(int))
        data = EncodedData.from_codes(table, data.y, n_states=data.n_states, n_classes=data.n_classes)
        structure = Structure(np.arange(-1, d - 1))
        sets, weights = CandidateSets.of_structure(structure), np.ones(data.n_samples, np.float32)
        state = State(data, sets, "maximum-likelihood", "float32", rng)
        self.engine = FusedEngine(state, data, weights, Hybrid(), batch_size)
        self.plan = plan_epoch(data.n_samples, batch_size, sets.n_tables, rng)
        layout = TableLayout.of_parents(structure.parents, data.n_states, data.n_classes)
        self.objective, self.rho = Objective(layout, data, ConditionalNLL()), np.zeros(layout.n_cells)
        self.time_step(shape, share)
        self.time_objective(shape, share)

    def time_step(self, shape, share):
        self.engine.epoch(self.plan, (3e-3, 1e-3), 1.0)

    def time_objective(self, shape, share):
        self.objective(self.rho)

    def peakmem_objective(self, shape, share):
        self.objective(self.rho)


class Population:
    """Four short trainings in the shape of letter, side by side."""

    params, param_names = [[1, 2]], ["threads"]
    timeout = 300

    def setup(self, threads):
        data = make("letter")
        self.part = Part(data, np.ascontiguousarray(data.codes[:, :1000]), data.y[:1000])
        self.time_four_trainings(threads)

    def time_four_trainings(self, threads):
        train_runs(
            TANClassifier(loss=Hybrid(), n_epochs=5, training=GradientTraining(batch_size=250), calibrate=False),
            self.part,
            4,
            threads,
        )


class Memory:
    """Peak memory of the process at the shape of mnist; the data, 4 MB, are made in another process."""

    timeout = 300

    def setup_cache(self):
        data = make("mnist", 20_000)
        return Part(data, np.ascontiguousarray(data.codes[:, :1000]), data.y[:1000])

    def peakmem_data(self, part):
        pass

    def peakmem_one_training(self, part):
        TANClassifier(
            loss=Hybrid(), n_epochs=2, training=GradientTraining(batch_size=250), calibrate=False, random_state=0
        ).fit_encoded(part.data)

    def peakmem_four_trainings_on_two_threads(self, part):
        train_runs(
            TANClassifier(loss=Hybrid(), n_epochs=2, training=GradientTraining(batch_size=250), calibrate=False),
            part,
            4,
            2,
        )
