"""Reading alone of what does not fit the memory: batches of 1,000,000 rows of eight numbers and eight texts."""

import tempfile
from pathlib import Path

import numpy as np

from tanlearn.data.batches import open_batches

N = 1_000_000


class Read:
    """A Parquet file by its path, as a data set, and a table in memory."""

    params, param_names = [["path", "data set", "Table"]], ["source"]

    def setup(self, source):
        try:
            import pyarrow as pa
            import pyarrow.dataset as ds
            import pyarrow.parquet as pq
        except ImportError as error:
            raise NotImplementedError("needs the extra `frames`") from error
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name) / "rows.parquet"
        rng = np.random.default_rng(0)
        words = pa.array([f"word {k}" for k in range(10)])
        columns = {f"number {j}": rng.normal(size=N) for j in range(8)}
        columns |= {f"text {j}": words.take(pa.array(rng.integers(0, 10, N))) for j in range(8)}
        pq.write_table(pa.table(columns | {"y": rng.integers(0, 2, N)}), path)
        self.source = {
            "path": lambda: path,
            "data set": lambda: ds.dataset(path),
            "Table": lambda: pq.read_table(path),
        }[source]()
        self.time_batches(source)

    def teardown(self, source):
        self.folder.cleanup()

    def time_batches(self, source):
        assert sum(batch.n_samples for batch in open_batches(self.source, "y")) == N

    def peakmem_batches(self, source):
        self.time_batches(source)
