"""A forest of networks on a table of letter's shape. One warm call each in ``setup``."""

from tanlearn import BayesForestClassifier
from tanlearn.data.border import encode_rows
from tanlearn.forest.reading import losses_without

from .shapes import make

ROWS = 2_000


class Forest:
    """Growing and weighing eight members, scoring rows, and reading what was learnt."""

    params, param_names = [1, 2], ["threads"]
    timeout = 600

    def setup(self, threads):
        data = make("letter")
        self.X, self.y = data.codes.T.astype(float), data.y
        self.model = BayesForestClassifier(n_estimators=8, n_jobs=threads, random_state=0)
        self.stream = BayesForestClassifier(n_estimators=8, weights=None, n_jobs=threads, random_state=0)
        self.stream.partial_fit(self.X[:ROWS], self.y[:ROWS], range(data.n_classes))
        self.time_fit(threads), self.time_predict(threads), self.time_partial_fit(threads)
        self.codes = encode_rows(self.model, self.X)

    def time_fit(self, threads):
        self.model.fit(self.X, self.y)

    def peakmem_fit(self, threads):
        self.model.fit(self.X, self.y)

    def time_predict(self, threads):
        self.model.predict_proba(self.X[:ROWS])

    def time_partial_fit(self, threads):
        self.stream.partial_fit(self.X[ROWS:], self.y[ROWS:])

    def time_explain(self, threads):
        self.model.explain(self.X[:ROWS])

    def peakmem_explain(self, threads):
        self.model.explain(self.X[:ROWS])

    def time_dependences(self, threads):
        self.model.dependences(self.X[:ROWS])

    def time_losses_without_features(self, threads):
        losses_without(self.model.forest_, self.codes[:, :ROWS], self.y[:ROWS], n_jobs=threads)

    def peakmem_losses_without_features(self, threads):
        losses_without(self.model.forest_, self.codes[:, :ROWS], self.y[:ROWS], n_jobs=threads)

    def track_parameters(self, threads):
        return self.model.n_parameters_
