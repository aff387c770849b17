"""Measurements: seconds of readings and fits on workers, transferred bytes, and peaks of memory."""

import gc
import pickle
import time
from contextlib import contextmanager
from pathlib import Path

from tanlearn import TableEncoder
from tanlearn.baselines import ChowLiu
from tanlearn.counts.pair_counts import PairCounts
from tanlearn.dask import BayesNetClassifier, NaiveBayesClassifier
from tanlearn.dask.partitions import Partitions
from tanlearn.encoding.summaries import TableSummary
from tanlearn.estimators.row_sources import BatchSource, RowEncoder
from tanlearn.sources.batches import open_batches

from .rows import BLOCK, TARGET

FITS = {"Chow-Liu": BayesNetClassifier(structure=ChowLiu()), "naive Bayes": NaiveBayesClassifier()}
READINGS = ("first reading", "second reading")
TASKS = (*READINGS, *FITS)
#: Bytes that this process has read from others, once they are counted.
_received = None


@contextmanager
def cluster(n_workers):
    """Start workers, processes of one thread, and yield their client."""
    import dask
    from distributed import Client, LocalCluster

    options = {"distributed.admin.large-graph-warning-threshold": "1GB"}
    kind = {"n_workers": n_workers, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with dask.config.set(options), LocalCluster(**kind) as workers, Client(workers) as client:
        client.wait_for_workers(n_workers)
        client.run(count_received)
        yield client


def count_received():
    """Count the bytes that this process reads from others by TCP from now on.

    Dask reports estimated sizes of transfers, in which any object of an unknown type has 56 bytes.
    """
    global _received
    if _received is not None:
        return
    from distributed.comm import tcp

    _received, read = 0, tcp.read_bytes_rw

    async def count(stream, n):
        global _received
        _received += n
        return await read(stream, n)

    tcp.read_bytes_rw = count


class Table:
    """A table in Parquet files, with its source and summary."""

    def __init__(self, folder):
        import dask.dataframe as dd

        self.folder, self.frame = folder, dd.read_parquet(folder)
        self.source = self.summary = None

    @property
    def first_file(self):
        return min(self.folder.glob("*.parquet"))

    def summarize(self):
        """Read all rows for classes, categories and values."""
        self.source = Partitions(self.frame, TARGET)
        self.summary = self.source.summarize(False)
        return self.summary

    def prepare(self):
        """Return a function that counts pairs, after a summary."""
        if self.summary is None:
            self.summarize()
        rows = self.source.encoded(encoder_of(self.summary))
        return lambda: rows.add_to(PairCounts(rows.n_states, rows.n_classes))

    def task(self, name):
        """Return the function to time."""
        if name == READINGS[0]:
            return self.summarize
        if name == READINGS[1]:
            return self.prepare()
        from sklearn.base import clone

        return lambda: clone(FITS[name]).fit(self.frame, TARGET)


def encoder_of(summary):
    """Return the encoder of the summarized rows."""
    return RowEncoder.of(summary, summary.fit_encoder(TableEncoder()), None, "cpu")


def warm_up(client, table, n_workers):
    """Compile kernels, import packages and send a graph on every worker before times are measured."""
    client.run(work_of_partition, str(table.first_file), BLOCK)
    for name in FITS:
        few = Table(table.folder)
        few.frame = few.frame.partitions[: 2 * n_workers]
        few.task(name)()


def measure(client, table, task):
    """Return seconds, processor seconds, bytes, and peaks in MiB of a task."""
    count_received()
    do = table.task(task)
    gc.collect()
    client.run(gc.collect)
    before, own = client.run(_gauge, True), _gauge(True)
    started = time.perf_counter()
    found = do()
    seconds = time.perf_counter() - started
    own_after, after = _gauge(False), client.run(_gauge, False)

    def grown(what):
        return sum(after[worker][what] - before[worker][what] for worker in after)

    return {
        "seconds": seconds,
        **({"result_bytes": len(pickle.dumps(found))} if task in READINGS else {}),
        "worker_cpu": grown("cpu"),
        "client_cpu": own_after["cpu"] - own["cpu"],
        "received": grown("received"),
        "client_received": own_after["received"] - own["received"],
        "idle_worker": max(gauge["now"] for gauge in before.values()),
        "peak_worker": max(gauge["peak"] for gauge in after.values()),
        "peak_client": own_after["peak"],
    }


def work_of_partition(path, most_rows=None):
    """Return processor seconds of the work on a partition in this process, and bytes of its results."""
    import pandas as pd

    seconds = {}

    def clock(name, do):
        started = time.process_time()
        found = do()
        seconds[name] = time.process_time() - started
        return found

    frame = clock("read", lambda: pd.read_parquet(path)).head(most_rows or None)
    rows = frame.drop(columns=TARGET), frame[TARGET]

    def source():
        return BatchSource(open_batches([rows], part=0))

    summary = clock("summarize", lambda: source().summarize(False))
    encoder = encoder_of(summary)
    (data,) = clock("encode", lambda: list(source().encoded(encoder)))
    counts = clock("count", lambda: PairCounts(data.n_states, data.n_classes).update(data, n_jobs=1))
    total, sums = TableSummary().merge(summary), pickle.loads(pickle.dumps(counts))
    clock("merge summaries", lambda: total.merge(summary))
    clock("merge counts", lambda: sums.merge(counts))
    n_pairs = len(data.n_states) * (len(data.n_states) - 1) // 2
    return {
        "cpu": seconds,
        "pair_rate": data.n_samples * n_pairs / seconds["count"],
        "n_states": data.n_states.tolist(),
        "n_classes": data.n_classes,
        "n_rows": data.n_samples,
        "summary_bytes": len(pickle.dumps(summary)),
        "counts_bytes": len(pickle.dumps(counts)),
        "encoder_bytes": len(pickle.dumps(encoder)),
    }


def _gauge(is_start):
    """Return the resources used by this process so far; the peak of memory is reset at a start."""
    if is_start:
        Path("/proc/self/clear_refs").write_text("5")
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {
        "cpu": time.process_time(),
        "now": int(status["VmRSS"].split()[0]) / 1024,
        "peak": int(status["VmHWM"].split()[0]) / 1024,
        "received": _received,
    }
