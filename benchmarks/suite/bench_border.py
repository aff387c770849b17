"""Encoding: from raw tables to codes and cut points, in time and in peak memory."""

import numpy as np
import pandas as pd

from tanlearn import MDLPDiscretizer, NaiveBayesClassifier, TableEncoder
from tanlearn.encoding.summaries import TableSummary
from tanlearn.sources.columns import read_columns

from .shapes import n_rows


class NaiveBayes:
    """``fit`` and ``predict`` of naive Bayes on integers, where encoding is nearly all of the work."""

    params, param_names = [["int64", "float32", "float64"], ["C", "F"], [1, 2]], ["dtype", "order", "n_jobs"]
    timeout = 300

    def setup(self, dtype, order, n_jobs):
        rng = np.random.default_rng(0)
        self.X = np.asarray(rng.integers(0, 8, (n_rows(200_000), 20), np.int8), dtype, order=order)
        self.y = rng.integers(0, 2, len(self.X))
        self.model = NaiveBayesClassifier(n_jobs=n_jobs).fit(self.X, self.y)

    def time_fit(self, dtype, order, n_jobs):
        self.model.fit(self.X, self.y)

    def time_predict(self, dtype, order, n_jobs):
        self.model.predict(self.X)

    def peakmem_fit(self, dtype, order, n_jobs):
        self.model.fit(self.X, self.y)


class Strings:
    """``fit`` of naive Bayes on a frame of strings, and of categories."""

    params, param_names = [["str", "object", "category"]], ["dtype"]
    timeout = 300

    def setup(self, dtype):
        rng = np.random.default_rng(0)
        words = [f"value {i}" for i in range(12)]
        self.X = pd.DataFrame({j: rng.choice(words, n_rows(100_000)) for j in range(20)}).astype(dtype)
        self.y = rng.integers(0, 2, len(self.X))

    def time_fit(self, dtype):
        NaiveBayesClassifier().fit(self.X, self.y)

    def peakmem_fit(self, dtype):
        NaiveBayesClassifier().fit(self.X, self.y)


class Cuts:
    """Fayyad and Irani's cut points: many columns, and one long column."""

    params, param_names = [[(50_000, 20), (1_000_000, 1)], [1, 2]], ["shape", "n_jobs"]
    timeout = 300

    def setup(self, shape, n_jobs):
        rng, n = np.random.default_rng(0), n_rows(shape[0])
        self.y = rng.integers(0, 2, n)
        self.X = rng.normal(size=(n, shape[1])) + self.y[:, None] * np.linspace(0, 1, shape[1])

    def time_fit(self, shape, n_jobs):
        MDLPDiscretizer(n_jobs=n_jobs).fit(self.X, self.y)

    def peakmem_fit(self, shape, n_jobs):
        MDLPDiscretizer(n_jobs=n_jobs).fit(self.X, self.y)


class Summary:
    """The first pass over batches with eight numeric and eight categorical columns, and the encoder fitted from it."""

    params, param_names = [[5_000, 50_000]], ["rows per batch"]
    timeout = 300

    def setup(self, n_batch):
        rng, n = np.random.default_rng(0), n_rows(200_000)
        self.y = rng.integers(0, 2, n)
        words = [f"value {i}" for i in range(10)]
        frame = pd.DataFrame(rng.normal(size=(n, 8))).add_prefix("n")
        for j in range(8):
            frame[f"s{j}"] = pd.Categorical.from_codes(rng.integers(0, 10, n), words)
        firsts = range(0, n, n_batch)
        self.batches = [
            (read_columns(frame.iloc[first : first + n_batch]), self.y[first : first + n_batch]) for first in firsts
        ]
        self.summary = self.summarize()

    def summarize(self):
        summary = TableSummary()
        for columns, y in self.batches:
            summary.update(columns, y)
        return summary

    def time_update(self, n_batch):
        self.summarize()

    def peakmem_update(self, n_batch):
        self.summarize()

    def time_fit_encoder(self, n_batch):
        self.summary.fit_encoder(TableEncoder())
