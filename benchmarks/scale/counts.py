"""Scaling of counts over partitions: rows per second by rows, partitions and workers of one machine, and a model.

    pip install -e ".[dask]"
    python -m benchmarks.scale.counts run                      # hours, on an idle machine; resumes if interrupted
    python -m benchmarks.scale.counts run --rows 100000 1000000 --repeats 2 --time-limit 600
    python -m benchmarks.scale.counts run --folder tables      # keeps tables; else each is removed when done
    python -m benchmarks.scale.counts report                   # writes counts.md and its picture from what is finished
    python -m benchmarks.scale.counts pack

Tables of 16 features, half of them numeric, and three classes are written once in Parquet files, one per partition,
with 45 bytes per row. Workers are processes of one thread; new ones are started and warmed up for every repetition. The
command needs Linux, which reports peaks of memory and bytes between processes.
"""

import shutil
import tempfile
import time
from itertools import product
from pathlib import Path

import dask
import distributed

from benchmarks.shared.command import execute, parsers
from benchmarks.shared.results import Results, line_key, read
from benchmarks.shared.versions import VERSIONS

from .measure import TASKS, Table, cluster, measure, warm_up, work_of_partition
from .report import write_report
from .rows import write_table

ROWS, PARTITIONS, N_CLASSES = (10**5, 10**6, 10**7, 10**8), (8, 32, 128, 512), 3
#: Smallest and largest partitions in rows: smaller ones measure only overhead, larger ones take too much memory.
LEAST, MOST = 5_000, 2_000_000
FILE = "counts.jsonl"
#: A partition by itself is a line without workers.
key = line_key("rows", "partitions", "workers", "task", "repeat")
ALONE = "partition"


def versions():
    """Return the versions of all packages in words."""
    return f"{VERSIONS}, dask {dask.__version__}, distributed {distributed.__version__}"


def tables(rows, partitions):
    """Return useful pairs (rows, partitions), few rows first."""
    return [(n, k) for n, k in product(sorted(rows), sorted(partitions)) if LEAST <= n // k <= MOST]


def unfinished(n_rows, n_partitions, workers, repeats, results):
    """Return what is not finished of a table: a list of (workers, starts of lines), each for a cluster of its own."""
    found = []
    for repeat, n_workers in product(range(repeats), workers):
        start = {"rows": n_rows, "partitions": n_partitions, "workers": n_workers, "repeat": repeat}
        found.append((n_workers, results.missing(start | {"task": task} for task in TASKS)))
    alone = {"rows": n_rows, "partitions": n_partitions, "workers": 0, "task": ALONE, "repeat": 0}
    return [one for one in [*found, (0, results.missing([alone]))] if one[1]]


def lines_of(table, n_workers, starts):
    """Yield finished lines."""
    if not n_workers:
        work_of_partition(str(table.first_file))  # to warm up
        yield starts[0] | work_of_partition(str(table.first_file))
        return
    with cluster(n_workers) as client:
        warm_up(client, table, n_workers)
        for start in starts:
            yield start | measure(client, table, start["task"])


def in_words(line):
    """Return a finished line in words."""
    if not line["workers"]:
        return f"a partition alone: {sum(line['cpu'].values()):.3f} s"
    rate = line["rows"] / line["seconds"]
    return f"{line['workers']} worker(s), {line['task']}: {line['seconds']:.2f} s, {rate:,.0f} rows a second"


def run_tables(arguments, folder, results):
    """Yield every line that is not finished, up to the time limit."""
    limit = float("inf") if arguments.time_limit is None else arguments.time_limit
    end = time.monotonic() + limit
    for n_rows, n_partitions in tables(arguments.rows, arguments.partitions):
        todo = unfinished(n_rows, n_partitions, arguments.workers, arguments.repeats, results)
        if not todo:
            continue
        place = folder / f"{n_rows}_{n_partitions}"
        for number, (n_workers, starts) in enumerate(todo):
            if time.monotonic() >= end:
                print(f"stopped after {limit:g} s; the same command goes on", flush=True)
                return
            if number == 0:
                write_table(place, n_rows, n_partitions, N_CLASSES, arguments.jobs)
            yield from lines_of(Table(place), n_workers, starts)
        if arguments.folder is None:
            shutil.rmtree(place)


def run(arguments):
    """Run everything that is not finished."""
    results = Results(arguments.results / FILE, key, versions())
    with tempfile.TemporaryDirectory() as temporary:
        for line in run_tables(arguments, Path(arguments.folder or temporary), results):
            results.append(line)
            print(f"{line['rows']:,} rows in {line['partitions']} partitions, {in_words(line)}", flush=True)


def report(arguments):
    """Write the report."""
    write_report(read(arguments.results / FILE), arguments.output)


def main(argv=None):
    """Parse the command line and run it."""
    parser, running = parsers(__doc__, __spec__, run, report, data=False)
    running.add_argument("--rows", type=int, nargs="+", default=ROWS, help="by default 10^5 to 10^8")
    running.add_argument("--partitions", type=int, nargs="+", default=PARTITIONS, help="by default 8 32 128 512")
    running.add_argument("--workers", type=int, nargs="+", default=(1, 2), help="by default 1 2")
    running.add_argument("--repeats", type=int, default=3, help="of every measurement; by default 3")
    running.add_argument("--folder", type=Path, help="where tables are kept; by default a temporary one")
    running.add_argument("--jobs", type=int, default=2, help="processes that write tables; by default 2")
    running.add_argument("--time-limit", type=float, metavar="SECONDS", help="begin nothing after that")
    execute(parser, argv)


if __name__ == "__main__":
    main()
