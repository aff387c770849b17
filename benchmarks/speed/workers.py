"""Rate and peak memory of training on the Parquet files of a folder, by Dask on worker processes of this machine.

    python -m benchmarks.speed.workers run --folder FOLDER    # 10 million rows; resumes if interrupted
    python -m benchmarks.speed.memory report                  # writes the page of both commands
    python -m benchmarks.speed.workers pack

The table is the same as in benchmarks.speed.memory. Its Parquet files are written once, and each file is a partition.
"""

import os
import time
from pathlib import Path

from benchmarks.shared.command import add_choices, execute, parsers
from benchmarks.shared.reports import joined, markdown_table, paragraph
from benchmarks.shared.results import Results, line_key, read
from tanlearn.baselines import ChowLiu

from .memory import BLOCK, draw, memory, write_table

LEARNERS = ("Chow-Liu TAN", "forest")
#: Networks of the forest. A fit of 8 was stopped after 400 processor seconds, with its end unknown.
N_NETWORKS = 2
#: Rows of a file, which is a partition.
PARTITION = 2**20
FILE = "workers.jsonl"
SCAN = "scan"
key = line_key("learner", "rows", "columns", "workers", "memory_limit")


def make(learner):
    """Return a classifier that is trained on partitions."""
    from tanlearn import dask

    if learner == "forest":
        return dask.BayesForestClassifier(n_estimators=N_NETWORKS, weights=None, n_jobs=1, random_state=0)
    return dask.BayesNetClassifier(structure=ChowLiu(), n_jobs=1)


def write_folder(folder, n_rows, n_columns):
    """Write the files of the table that are not there; return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for number, first in enumerate(range(0, n_rows, PARTITION)):
        paths.append(folder / f"{n_columns}-columns-{number:04}.parquet")
        n_own = min(PARTITION, n_rows - first)
        write_table(paths[-1], n_own, n_columns, first_block=number * PARTITION // BLOCK)
    return [str(path) for path in paths]


def restart_peak():
    """Make the present memory of this process the largest one."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def used():
    """Return the processor seconds of this process, its present memory and its peak in MiB."""
    present = memory("VmRSS")
    return time.process_time(), present, max(present, memory("VmHWM"))


def measured(client, call):
    """Call a function that uses the workers; return seconds and memory of the workers and of this process."""
    client.run(restart_peak)
    restart_peak()
    before, own = client.run(used), used()
    started = time.perf_counter()
    call()
    wall = time.perf_counter() - started
    after, now = client.run(used), used()
    if after.keys() != before.keys():
        raise SystemExit("a worker was lost, probably by its memory limit. Increase --memory-limit.")
    return {
        "wall": round(wall, 2),
        "seconds": round(sum(after[worker][0] - before[worker][0] for worker in after) + now[0] - own[0], 2),
        "worker_before": round(max(found[1] for found in before.values()), 1),
        "worker_peak": round(max(found[2] for found in after.values()), 1),
        "client_before": round(own[1], 1),
        "client_peak": round(now[2], 1),
    }


def scan(frame):
    """Read all partitions, and only count their rows."""
    return frame.map_partitions(len).compute()


def run(arguments):
    """Measure everything that is not finished."""
    import dask.dataframe as dd
    from dask.distributed import Client, LocalCluster

    results = Results(arguments.results / FILE, key)
    size = {"rows": arguments.rows, "columns": arguments.columns, "workers": arguments.workers}
    size["memory_limit"] = arguments.memory_limit
    missing = results.missing([{"learner": learner, **size} for learner in (SCAN, *arguments.learners)])
    if not missing:
        return
    paths = write_folder(arguments.folder, arguments.rows, arguments.columns)
    os.environ["OMP_NUM_THREADS"] = "1"
    for start in missing:
        options = {"n_workers": arguments.workers, "threads_per_worker": 1, "dashboard_address": ":0"}
        with (
            LocalCluster(processes=True, memory_limit=arguments.memory_limit, **options) as cluster,
            Client(cluster) as client,
        ):
            frame = dd.read_parquet(paths, split_row_groups=False)
            if start["learner"] == SCAN:
                found = measured(client, lambda frame=frame: scan(frame))
            else:
                make(start["learner"]).fit(few_rows(arguments.columns, 2 * arguments.workers), "y")  # loads kernels
                model = make(start["learner"])
                found = measured(client, lambda model=model, frame=frame: model.fit(frame, "y"))
        line = results.append(start | found | {"partitions": len(paths)})
        print(", ".join(f"{name} {value}" for name, value in line.items() if name != "versions"), flush=True)


def few_rows(n_columns, n_partitions):
    """Return a small table in as many partitions."""
    import dask.dataframe as dd
    import pandas as pd

    X, y = draw(0, 500 * n_partitions, n_columns)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(n_columns)]).assign(y=y.astype("int8"))
    return dd.from_pandas(frame, npartitions=n_partitions)


def section(lines):
    """Return the section of the page on memory, or an empty string without results."""
    if not lines:
        return ""
    header = [
        *("rows x columns", "learner", "wall seconds", "processor seconds", "rows per wall second"),
        *("peak per worker [MiB]", "above start [MiB]", "peak of the client [MiB]"),
    ]
    rows = [
        [
            f"{line['rows']:,} x {line['columns']}",
            named(line["learner"]),
            f"{line['wall']:.1f}",
            f"{line['seconds']:.1f}",
            f"{line['rows'] / line['wall']:,.0f}",
            f"{line['worker_peak']:,.0f}",
            f"{line['worker_peak'] - line['worker_before']:,.0f}",
            f"{line['client_peak']:,.0f}",
        ]
        for line in sorted(lines, key=lambda line: (line["rows"], (SCAN, *LEARNERS).index(line["learner"])))
    ]
    return (
        f"## Dask on worker processes\n\n{paragraph(setup(lines[-1]))}\n\n{markdown_table(header, rows, left=(0, 1))}"
    )


def named(learner):
    """Return the name of a learner, with the networks of a forest."""
    return f"forest of {N_NETWORKS} networks" if learner == "forest" else learner


def setup(line):
    """Return how the table of workers was measured."""
    return f"""A LocalCluster of {line["workers"]} worker processes with one thread each, and a memory limit of
    {line["memory_limit"]} per worker, trains on {line["partitions"]} Parquet files of at most {PARTITION:,} rows. The
    classifiers are `tanlearn.dask.BayesNetClassifier(structure=ChowLiu())` and
    `tanlearn.dask.BayesForestClassifier(n_estimators={N_NETWORKS}, weights=None)`, with compiled kernels. The default
    forest has 32 networks and takes longer: a fit of 8 networks was stopped after 400 processor seconds. *scan* reads
    the files with Dask and counts their rows, whereas a fit reads them two to five times. Processor seconds include the
    workers and the client. Other programs ran on both cores, so wall-clock times are longer than on an idle machine. If
    a worker is killed during a fit, Dask counts its partitions again, and the model is the same, bit for bit
    (`tests/dask/test_cluster.py`)."""


def verdict(lines):
    """Return a sentence on the rate and the peak memory with Dask."""
    fits = [line for line in lines if line["learner"] != SCAN]
    if not fits:
        return ""
    rates = joined(
        [f"{named(line['learner'])} {line['rows'] / line['seconds']:,.0f} rows per processor second" for line in fits]
    )
    peak = max(line["worker_peak"] for line in fits)
    return (
        f" With Dask on {fits[0]['workers']} worker processes, {fits[0]['rows']:,} rows are fitted at the following "
        f"rates: {rates}. A worker uses at most {peak:,.0f} MiB."
    )


def read_lines(folder):
    """Return the finished lines of a folder of results."""
    return read(folder / FILE)


def report(arguments):
    """Print the section of the page on memory."""
    print(section(read_lines(arguments.results)))


def main(argv=None):
    """Parse the command line and run it."""
    parser, running = parsers(__doc__, __spec__, run, report, data=False)
    running.add_argument("--rows", type=int, default=10_000_000)
    running.add_argument("--columns", type=int, default=30)
    running.add_argument("--workers", type=int, default=2)
    running.add_argument("--memory-limit", default="2GiB", help="memory limit of each worker, in the notation of Dask")
    running.add_argument(
        "--folder", type=Path, required=True, help="folder of the Parquet files, which are written if absent"
    )
    add_choices(running, "--learners", LEARNERS)
    execute(parser, argv)


if __name__ == "__main__":
    main()
