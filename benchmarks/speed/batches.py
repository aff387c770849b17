"""Time of `fit_batches` by stage: python -m benchmarks.speed.batches [--rows 3000000] [--jobs 2] [--file PATH]

A Parquet file with eight columns of numbers and eight of strings is read; read and summarized; read and encoded; read,
encoded and counted; and used for a fit. Times are medians of a few rounds, by the clock and of all threads' processors.
"""

import resource
import statistics
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks import command_line
from tanlearn import BayesNetClassifier, PairCounts, TableEncoder
from tanlearn.baselines import ChowLiu
from tanlearn.encoding.summaries import TableSummary
from tanlearn.estimators.row_sources import BatchSource, RowEncoder
from tanlearn.sources.batches import open_batches


def write(path, n_rows):
    """Write a table of three classes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, n_rows)
    names = pa.array(list("abcdefghij"))
    columns = {f"number {j}": rng.normal(size=n_rows) + y * (j % 3) for j in range(8)}
    columns |= {f"text {j}": names.take(pa.array((rng.integers(0, 10, n_rows) + y * j) % 10)) for j in range(8)}
    columns["y"] = pa.array(["no", "maybe", "yes"]).take(pa.array(y))
    pq.write_table(pa.table(columns), path, row_group_size=2**18)


def stages(path, batch_rows, n_jobs):
    """Return what is to be timed, by name."""
    batches = open_batches(path, "y", batch_rows=batch_rows)
    model = BayesNetClassifier(structure=ChowLiu(n_jobs=n_jobs), n_jobs=n_jobs)

    def read():
        for _ in batches:
            pass

    def summarize():
        summary = TableSummary()
        for batch in batches:
            summary.update(batch.columns, batch.target, batch.sample_weight, n_jobs=n_jobs)
        return summary

    summary = summarize()
    encoder = summary.fit_encoder(TableEncoder(n_jobs=n_jobs))
    encoded = BatchSource(batches).encoded(RowEncoder.of(summary, encoder, None, "cpu"))

    def encode():
        for _ in encoded:
            pass

    return {
        "read": read,
        "read, summarise": summarize,
        "encoder": lambda: summary.fit_encoder(TableEncoder(n_jobs=n_jobs)),
        "read, encode": encode,
        "read, encode, count": lambda: encoded.add_to(PairCounts(encoded.n_states, encoded.n_classes), n_jobs=n_jobs),
        "fit_batches": lambda: model.fit_batches(path, "y", batch_rows=batch_rows),
    }


def main():
    """Print a line a stage."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batch-rows", type=int, default=2**17)
    parser.add_argument("--file", type=Path, help="path of the table, which is written if absent")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", "discretization left")  # some numeric columns are noise
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.file or Path(folder) / "rows.parquet"
        if not path.exists():
            write(path, arguments.rows)
        for name, stage in stages(path, arguments.batch_rows, arguments.jobs).items():
            clock, processor = [], []
            for _ in range(arguments.rounds):
                began = time.perf_counter(), time.process_time()
                stage()
                clock.append(time.perf_counter() - began[0])
                processor.append(time.process_time() - began[1])
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            seconds = f"{statistics.median(clock):6.2f} s, {statistics.median(processor):6.2f} s of processor time"
            print(f"{name:20} {seconds}, peak so far {peak:5.0f} MiB")


if __name__ == "__main__":
    main()
