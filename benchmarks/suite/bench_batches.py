"""Learning from batches: rows with eight numeric columns and eight columns of strings."""

import tempfile
from pathlib import Path

import numpy as np

from tanlearn import BayesNetClassifier
from tanlearn.baselines import ChowLiu
from tanlearn.estimators.row_sources import BatchSource
from tanlearn.sources.batches import open_batches

from .shapes import n_rows

N = 200_000


def write(folder):
    """Write the rows, and return the path."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise NotImplementedError("needs the extra `frames`") from error
    path = Path(folder) / "rows.parquet"
    rng, n = np.random.default_rng(0), n_rows(N)
    y = rng.integers(0, 2, n)
    words = pa.array([f"word {k}" for k in range(10)])
    columns = {f"number {j}": rng.normal(y * j, 8) for j in range(8)}
    columns |= {f"text {j}": words.take(pa.array((rng.integers(0, 10, n) + y * j) % 10)) for j in range(8)}
    pq.write_table(pa.table(columns | {"y": words.take(pa.array(y))}), path)
    return path


class Read:
    """A Parquet file by its path, as a data set, and a table in memory."""

    params, param_names = [["path", "data set", "Table"]], ["source"]

    def setup(self, source):
        self.folder = tempfile.TemporaryDirectory()
        path = write(self.folder.name)
        import pyarrow.dataset as ds
        import pyarrow.parquet as pq

        self.source = {
            "path": lambda: path,
            "data set": lambda: ds.dataset(path),
            "Table": lambda: pq.read_table(path),
        }[source]()
        self.time_batches(source)

    def teardown(self, source):
        self.folder.cleanup()

    def time_batches(self, source):
        assert sum(batch.n_samples for batch in open_batches(self.source, "y")) == n_rows(N)

    def peakmem_batches(self, source):
        self.time_batches(source)


class Fit:
    """Both passes over a Parquet file, and the first one alone."""

    params, param_names = [[1, 2]], ["n_jobs"]

    def setup(self, n_jobs):
        self.folder = tempfile.TemporaryDirectory()
        self.path = write(self.folder.name)
        self.model = BayesNetClassifier(structure=ChowLiu(n_jobs=n_jobs), n_jobs=n_jobs)
        self.time_fit(n_jobs)

    def teardown(self, n_jobs):
        self.folder.cleanup()

    def time_summary(self, n_jobs):
        BatchSource(open_batches(self.path, "y"), n_jobs).summarize(exact=False)

    def time_fit(self, n_jobs):
        self.model.fit_batches(self.path, "y")

    def peakmem_fit(self, n_jobs):
        self.time_fit(n_jobs)


class SmallBatches:
    """Batches of 1,000 rows with 30,000 different words."""

    def setup(self):
        rng = np.random.default_rng(0)
        words = np.array([f"word {k}" for k in range(30_000)], object)
        self.batches = [
            (words[rng.integers(0, len(words), (1000, 1))], rng.integers(0, 2, 1000))
            for _ in range(n_rows(100_000) // 1000 + 1)
        ]

    def time_summary(self):
        BatchSource(open_batches(self.batches)).summarize(exact=False)
