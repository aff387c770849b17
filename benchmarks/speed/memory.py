"""Peak memory and rows per second of fit, partial_fit, predict and fit_batches on tables of millions of rows.

    python -m benchmarks.speed.memory run --rows 2000000 --columns 30    # resumes if interrupted
    python -m benchmarks.speed.memory run --rows 100000000 --columns 50 --operations scan fit_batches --file big.parquet
    python -m benchmarks.speed.memory report    # writes memory.md
    python -m benchmarks.speed.memory pack

Every operation runs in a new process, with kernels that an earlier process has compiled. The second command writes a
Parquet file, block by block, unless it exists. *scan* reads the file with Arrow alone, to compare rates. The report
includes the results of workers.py."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from sklearn.base import clone

from benchmarks import ROOT
from benchmarks.shared.command import add_choices, execute, parsers
from benchmarks.shared.reports import joined, markdown_table, paragraph, write_sections
from benchmarks.shared.results import Results, line_key, read
from benchmarks.shared.versions import made_by
from tanlearn import BayesNetClassifier, NaiveBayesClassifier
from tanlearn.baselines import ChowLiu

LEARNERS = {
    "naive Bayes": NaiveBayesClassifier,
    "Chow-Liu TAN": lambda **options: BayesNetClassifier(structure=ChowLiu(), **options),
}
OPERATIONS = ("fit", "partial_fit", "predict", "scan", "fit_batches")
#: Operations that read the Parquet file, and those without a learner.
FROM_FILE, WITHOUT_LEARNER = ("scan", "fit_batches"), ("scan",)
N_CLASSES, N_VALUES = 4, 10
#: One column in so many is of real numbers, all others are of small integers.
REAL_COLUMNS = 6
#: Rows that are drawn at once, and of a call of partial_fit.
BLOCK = 2**16
FILE = "memory.jsonl"
key = line_key("operation", "learner", "rows", "columns")
SETUP = f"""One column in {REAL_COLUMNS} contains real numbers, and the other columns contain integers from 0 to
{N_VALUES - 1}. There are {N_CLASSES} classes. In memory, the table is an array of float32. *table* is the memory of the
process before the operation, including the imports, the compiled kernels and the table (unless the table is a file).
*peak* is the largest memory during the operation, and *above* is the difference. partial_fit reads the table in calls
of {BLOCK:,} rows. predict predicts all rows at once. fit_batches reads a Parquet file twice, and scan is one pass of
Arrow over its batches. Seconds and rates are in processor time of all threads. tanlearn uses one thread. Other programs
ran on the machine at the same time."""


def draw(number, n_rows, n_columns):
    """Return a block of the table and its classes."""
    rng = np.random.default_rng([0, number])
    y = rng.integers(0, N_CLASSES, n_rows)
    X = np.empty((n_rows, n_columns), np.float32)
    before = rng.integers(0, N_VALUES, n_rows)
    for j in range(n_columns):
        before = np.where(rng.random(n_rows) < 0.5, before, (rng.integers(0, N_VALUES, n_rows) + y) % N_VALUES)
        X[:, j] = before + 2 * y + rng.normal(size=n_rows) if j % REAL_COLUMNS == 0 else before
    return X, y


def blocks(n_rows, n_columns, first_block=0):
    """Yield the first row and the rows of all blocks of a table, or of a part that starts at a block."""
    for number, first in enumerate(range(0, n_rows, BLOCK), start=first_block):
        yield first, *draw(number, min(BLOCK, n_rows - first), n_columns)


def make_table(n_rows, n_columns):
    """Return the table in memory."""
    X, y = np.empty((n_rows, n_columns), np.float32), np.empty(n_rows, np.int64)
    for first, some, classes in blocks(n_rows, n_columns):
        X[first : first + len(some)], y[first : first + len(some)] = some, classes
    return X, y


def write_table(path, n_rows, n_columns, first_block=0):
    """Write the table, or a part that starts at a block, as a Parquet file, all or nothing, unless it exists."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.exists():
        return
    begun, writer = path.with_suffix(".begun"), None
    for _, X, y in blocks(n_rows, n_columns, first_block):
        kinds = [np.float32 if j % REAL_COLUMNS == 0 else np.int8 for j in range(n_columns)]
        table = pa.table({**{f"x{j}": X[:, j].astype(kind) for j, kind in enumerate(kinds)}, "y": y.astype(np.int8)})
        writer = writer or pq.ParquetWriter(begun, table.schema)
        writer.write_table(table)
    writer.close()
    begun.rename(path)


def memory(name):
    """Return a memory of this process in MiB: VmRSS is the present one, VmHWM the largest."""
    found = re.search(rf"^{name}:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="ascii"), re.MULTILINE)
    return int(found[1]) / 2**10


def measured(call):
    """Call a function; return its seconds, the memory before and the peak."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak is the present memory
    before, started = memory("VmRSS"), time.process_time()
    call()
    seconds = time.process_time() - started
    peak = max(before, memory("VmHWM"))  # the kernel counts pages in blocks per thread, so it may report slightly less
    return {"seconds": round(seconds, 3), "before": round(before, 1), "peak": round(peak, 1)}


def scan(path):
    """Read all batches of a file with Arrow, which otherwise keeps the whole file in memory."""
    import pyarrow.parquet as pq

    for _ in pq.ParquetFile(path, pre_buffer=False).iter_batches(BLOCK):
        pass


def do_one(operation, learner, n_rows, n_columns, file):
    """Measure an operation in this process, and print what it took as JSON."""
    few, classes = draw(0, 500, n_columns)
    if operation == "scan":
        found = measured(lambda: scan(file))
    else:
        model = LEARNERS[learner](n_jobs=1).fit(few, classes)
        model.predict(few)
        if operation == "fit_batches":
            found = measured(lambda: model.fit_batches(str(file), "y"))
        else:
            X, y = make_table(n_rows, n_columns)
            found = measured(lambda: in_memory(operation, model, X, y))
    print(json.dumps(found))


def in_memory(operation, model, X, y):
    """Fit or predict a table in memory."""
    if operation == "fit":
        model.fit(X, y)
    elif operation == "predict":
        model.predict(X)
    else:
        model = clone(model)
        for first in range(0, len(X), BLOCK):
            model.partial_fit(X[first : first + BLOCK], y[first : first + BLOCK], classes=range(N_CLASSES))


def measure(line, file):
    """Return the measures of an operation in a fresh process."""
    arguments = [line["operation"], line["learner"], str(line["rows"]), str(line["columns"]), str(file)]
    command = [sys.executable, "-m", "benchmarks.speed.memory", "run", "--one", *arguments]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, check=True, env=environment, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def run(arguments):
    """Measure everything that is not finished."""
    if arguments.one:
        operation, learner, n_rows, n_columns, file = arguments.one
        do_one(operation, learner, int(n_rows), int(n_columns), Path(file))
        return
    results = Results(arguments.results / FILE, key)
    size = {"rows": arguments.rows, "columns": arguments.columns}
    starts = [
        {"operation": operation, "learner": "" if operation in WITHOUT_LEARNER else learner, **size}
        for operation in arguments.operations
        for learner in (arguments.learners if operation not in WITHOUT_LEARNER else [""])
    ]
    missing = results.missing(starts)
    with tempfile.TemporaryDirectory() as folder:
        file = arguments.file or Path(folder) / "table.parquet"
        if any(start["operation"] in FROM_FILE for start in missing):
            write_table(file, arguments.rows, arguments.columns)
        for start in missing:
            found = measure(start, file)
            if start["operation"] in FROM_FILE:
                found["file"] = round(file.stat().st_size / 2**20, 1)
            line = results.append(start | found)
            print(", ".join(f"{name} {value}" for name, value in line.items() if name != "versions"), flush=True)


def report(arguments):
    """Write the report."""
    from . import workers

    lines = workers.read_lines(arguments.results)
    write_report(read(arguments.results / FILE), arguments.output / "memory.md", lines)


def write_report(lines, path, of_workers=()):
    """Write the report of some lines; ``of_workers`` are those of workers.py."""
    from . import workers

    order = sorted(lines, key=lambda line: (line["rows"], OPERATIONS.index(line["operation"]), line["learner"]))
    header = ["rows x columns", "operation", "learner", "seconds", "rows/s", "table [MiB]", "peak [MiB]", "above [MiB]"]
    rows = [
        [
            f"{line['rows']:,} x {line['columns']}",
            line["operation"],
            line["learner"],
            f"{line['seconds']:.2f}",
            f"{line['rows'] / line['seconds']:,.0f}",
            *(f"{line[name]:,.0f}" for name in ("before", "peak")),
            f"{line['peak'] - line['before']:,.0f}",
        ]
        for line in order
    ]
    summary = paragraph(verdict(order) + workers.verdict(of_workers))
    sections = ["# Memory of large tables", summary, markdown_table(header, rows, left=(0, 1, 2))]
    made = made_by(
        [*lines, *of_workers],
        "benchmarks.speed.memory run --rows 2000000 --columns 30",
        "benchmarks.speed.memory run --rows 100000000 --columns 50 --operations scan fit_batches --file big.parquet",
        *(["benchmarks.speed.workers run --folder FOLDER"] if of_workers else []),
        "benchmarks.speed.memory report",
    )
    write_sections(path, [*sections, workers.section(of_workers), "## How it was measured", paragraph(SETUP), made])


def verdict(lines):
    """Return the first sentences of the report: the memory of each operation on its largest table, and rates."""
    by_size = {}
    for operation in ("fit", "partial_fit", "predict", "fit_batches"):
        found = [line for line in lines if line["operation"] == operation]
        if found:
            rows, columns = max((line["rows"], line["columns"]) for line in found)
            above = max(line["peak"] - line["before"] for line in found if line["rows"] == rows)
            by_size.setdefault((rows, columns), []).append(f"{operation} {above:,.0f} MiB")
    sizes = [
        f"for {rows:,} rows of {columns} columns {joined(found)}" for (rows, columns), found in sorted(by_size.items())
    ]
    words = (
        "In addition to the memory of the table, the operations need at most the following peak memory: "
        f"{'; '.join(sizes)}."
    )
    most = max(line["rows"] for line in lines)
    own = [line for line in lines if line["rows"] == most]
    rates = {line["learner"]: most / line["seconds"] for line in own if line["operation"] == "fit_batches"}
    arrow = [most / line["seconds"] for line in own if line["operation"] == "scan"]
    if rates and arrow:
        listed = ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items())
        words += (
            " From Parquet files, fit_batches processes the following numbers of rows per processor second: "
            f"{listed}. Arrow reads "
        )
        words += f"{arrow[0]:,.0f} rows per processor second."
    return words


def main(argv=None):
    """Parse the command line and run it."""
    parser, running = parsers(__doc__, __spec__, run, report, data=False)
    running.add_argument("--rows", type=int, default=2_000_000)
    running.add_argument("--columns", type=int, default=30)
    add_choices(running, "--operations", OPERATIONS)
    add_choices(running, "--learners", LEARNERS)
    running.add_argument("--file", type=Path, help="path of the Parquet file, which is written if absent")
    running.add_argument("--one", nargs=5, help=argparse.SUPPRESS)
    execute(parser, argv)


if __name__ == "__main__":
    main()
