"""A forest of networks on a table of letter's shape. One warm call each in ``setup``."""

from tanlearn import BayesForestClassifier

from .shapes import make

ROWS = 2_000


class Forest:
    """Growing and weighing eight members, and scoring rows."""

    params, param_names = [1, 2], ["threads"]
    timeout = 600

    def setup(self, threads):
        data = make("letter")
        self.X, self.y = data.codes.T.astype(float), data.y
        self.model = BayesForestClassifier(n_estimators=8, n_jobs=threads, random_state=0)
        self.time_fit(threads), self.time_predict(threads)

    def time_fit(self, threads):
        self.model.fit(self.X, self.y)

    def peakmem_fit(self, threads):
        self.model.fit(self.X, self.y)

    def time_predict(self, threads):
        self.model.predict_proba(self.X[:ROWS])

    def track_parameters(self, threads):
        return self.model.n_parameters_
