"""A forest of networks on data in the shape of letter. ``setup`` has one warm call of each benchmark."""

from tanlearn import BayesForestClassifier
from tanlearn.estimators.estimator_input import encode_rows
from tanlearn.forest.interpretation import losses_without

from .shapes import make

ROWS = 2_000


class Forest:
    """Fitting and weighting eight networks, predictions, and explanations."""

    params, param_names = [1, 2], ["threads"]
    timeout = 600

    def setup(self, threads):
        data = make("letter")
        self.X, self.y = data.codes.T.astype(float), data.y
        self.n_rows = min(ROWS, data.n_samples // 2)
        self.model = BayesForestClassifier(n_estimators=8, n_jobs=threads, random_state=0)
        self.stream = BayesForestClassifier(n_estimators=8, weights=None, n_jobs=threads, random_state=0)
        self.stream.partial_fit(self.X[: self.n_rows], self.y[: self.n_rows], range(data.n_classes))
        self.time_fit(threads), self.time_predict(threads), self.time_partial_fit(threads)
        self.codes = encode_rows(self.model, self.X)

    def time_fit(self, threads):
        self.model.fit(self.X, self.y)

    def peakmem_fit(self, threads):
        self.model.fit(self.X, self.y)

    def time_predict(self, threads):
        self.model.predict_proba(self.X[: self.n_rows])

    def time_partial_fit(self, threads):
        self.stream.partial_fit(self.X[self.n_rows :], self.y[self.n_rows :])

    def time_explain(self, threads):
        self.model.explain(self.X[: self.n_rows])

    def peakmem_explain(self, threads):
        self.model.explain(self.X[: self.n_rows])

    def time_dependences(self, threads):
        self.model.dependences(self.X[: self.n_rows])

    def time_losses_without_features(self, threads):
        losses_without(self.model.forest_, self.codes[:, : self.n_rows], self.y[: self.n_rows], n_jobs=threads)

    def peakmem_losses_without_features(self, threads):
        losses_without(self.model.forest_, self.codes[:, : self.n_rows], self.y[: self.n_rows], n_jobs=threads)

    def track_parameters(self, threads):
        return self.model.n_parameters_

    track_parameters.unit = "parameters"
