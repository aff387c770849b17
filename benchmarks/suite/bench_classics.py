"""Wrapper searches, AODE, AnDE, and branch and bound. One warm call each in ``setup``."""

import numpy as np

from tanlearn import EncodedData
from tanlearn.baselines import ChowLiu, GreedySearch, KDependence, OrderSearch, SelectiveKDependenceClassifier
from tanlearn.baselines.aode import OneDependenceEnsemble
from tanlearn.baselines.feature_orderings import all_parents_ordering
from tanlearn.baselines.n_dependence import NDependenceEnsemble
from tanlearn.baselines.row_counts import RowCounts
from tanlearn.baselines.structure_scores import StructureScorer, single_parents
from tanlearn.counts.context_counts import ContextCounts
from tanlearn.counts.pair_counts import PairCounts
from tanlearn.models.log_joint import log_joint
from tanlearn.parameters.branch_and_bound import IntegerBranchAndBound
from tanlearn.parameters.hierarchical_dirichlet import HierarchicalDirichlet
from tanlearn.parameters.hierarchical_smoothing import HierarchicalSmoothing
from tanlearn.parameters.maximum_likelihood import MaximumLikelihood
from tanlearn.structures.structures import Structure

from .shapes import make, make_wide


class Families:
    """All parents of one child, for every score: what wrapper searches consist of."""

    params, param_names = (["letter", "usps"], ["accuracy", "margin", "conditional-likelihood"]), ["shape", "score"]
    timeout = 300

    def setup(self, shape, score):
        data = make(shape)
        self.scorer = StructureScorer(
            data,
            score=score,
            gamma=10.0,
            validation=None,
            smoothing=MaximumLikelihood(),
            initial=Structure.naive_bayes(data.n_features),
            rng=np.random.default_rng(0),
        )
        self.families = self.scorer.families(0, single_parents(0, np.arange(data.n_features)))
        self.time_try_families(shape, score)

    def time_try_families(self, shape, score):
        self.scorer.try_families(self.families)


class ManyParents:
    """KDB-5: counts of seen contexts, the ways to smooth them, scores of rows, complete and with missing values."""

    timeout = 300

    def setup(self):
        self.data = make("letter")
        self.structure = KDependence(k=5).learn(self.data, np.random.default_rng(0))
        self.tables = HierarchicalSmoothing(m=3.0).fit(self.structure, self.data, np.random.default_rng(0))
        self.missing = self.data.codes[:, :500].copy()
        self.missing[np.random.default_rng(0).random(self.missing.shape) < 0.05] = 255
        self.time_smooth(), self.time_dirichlet(), self.time_score(), self.time_score_missing(), self.time_selective()

    def time_count(self):
        ContextCounts(self.structure.parents, self.data.n_states, self.data.n_classes).update(self.data)

    def time_smooth(self):
        HierarchicalSmoothing().fit(self.structure, self.data, np.random.default_rng(0))

    def time_dirichlet(self):
        HierarchicalDirichlet().fit(self.structure, self.data, np.random.default_rng(0))

    def time_selective(self):
        SelectiveKDependenceClassifier().fit_encoded(self.data)

    def time_score(self):
        log_joint(self.tables, self.structure, self.data.codes)

    def time_score_missing(self):
        log_joint(self.tables, self.structure, self.missing)

    def peakmem_smooth(self):
        self.time_smooth()

    def peakmem_dirichlet(self):
        self.time_dirichlet()


class WideTrees:
    """Trees over 500 features of 1,000 rows: complete rows, rows with missing values, rows with weights."""

    params, param_names = [["complete", "missing values", "weights"]], ["rows"]
    timeout = 300

    def setup(self, rows):
        X, y = make_wide(1000, 500, 3)
        rng = np.random.default_rng(0)
        codes = np.where(rng.random(X.shape) < 0.1, -1, X.astype(int)) if rows == "missing values" else X
        weight = rng.uniform(0, 2, len(y)) if rows == "weights" else None
        self.data = EncodedData.from_codes(codes, y, sample_weight=weight)
        few = self.data.take_features(np.arange(20))
        for learner in (ChowLiu(), KDependence()):
            learner.learn(few, rng)

    def time_chow_liu(self, rows):
        ChowLiu().learn(self.data, np.random.default_rng(0))

    def time_chow_liu_two_threads(self, rows):
        ChowLiu(n_jobs=2).learn(self.data, np.random.default_rng(0))

    def time_k_dependence(self, rows):
        KDependence(k=2).learn(self.data, np.random.default_rng(0))

    def peakmem_chow_liu(self, rows):
        ChowLiu().learn(self.data, np.random.default_rng(0))


class Searches:
    """Searches of structures on rows in the shape of letter."""

    timeout = 300

    def setup(self):
        self.data = make("letter", 4_000)
        self.time_ordering()
        self.time_order_search()
        self.time_greedy_search()

    def time_ordering(self):
        all_parents_ordering(self.data)

    def time_order_search(self):
        OrderSearch().learn(self.data, np.random.default_rng(0))

    def time_greedy_search(self):
        GreedySearch().learn(self.data, np.random.default_rng(0))


class BranchAndBound:
    """One box of letter's naive Bayes: a relaxation, and a descent from its point."""

    timeout = 300

    def setup(self):
        self.data = make("letter")
        self.structure = Structure.naive_bayes(self.data.n_features)
        self.time_node()

    def time_node(self):
        IntegerBranchAndBound(bits=(2, 0), margin=2, max_nodes=1).fit(self.structure, self.data, None)


class OneDependence:
    """AODE: tables of counts, and predictions."""

    params, param_names = [["letter", "usps"]], ["shape"]
    timeout = 300

    def setup(self, shape):
        data = make(shape)
        self.codes = np.ascontiguousarray(data.codes[:, :1000])
        self.state = PairCounts(data.n_states, data.n_classes).update(data)
        self.time_tables(shape)
        self.time_predict_1000_rows(shape)

    def time_tables(self, shape):
        self.ensemble = OneDependenceEnsemble.from_counts(self.state, alpha=0.1, min_count=1)

    def time_predict_1000_rows(self, shape):
        self.ensemble.log_joint(self.codes)


class TwoAndThreeDependence:
    """A2DE and A3DE: fits, which keep the rows, and predictions, which count them."""

    params, param_names = [["letter", "satimage"], [2, 3]], ["shape", "n"]
    timeout = 600

    def setup(self, shape, n):
        self.data = make(shape)
        self.codes = np.ascontiguousarray(self.data.codes[:, :1000])
        self.time_fit(shape, n)
        self.ensemble.log_joint(self.codes[:, :1])

    def time_fit(self, shape, n):
        counts = RowCounts(self.data.n_states, self.data.n_classes).update(self.data)
        features = np.arange(self.data.n_features)
        self.ensemble = NDependenceEnsemble(counts, n, features, m=1.0, min_count=1, subsumption=False)

    def time_predict_1000_rows(self, shape, n):
        self.ensemble.log_joint(self.codes)

    def time_predict_one_row(self, shape, n):
        self.ensemble.log_joint(self.codes[:, :1])

    def peakmem_predict_1000_rows(self, shape, n):
        self.ensemble.log_joint(self.codes)
