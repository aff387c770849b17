"""The report: seconds, speed-ups, bytes, memory, the model, compared with measurements, and its extrapolation."""

from statistics import median

from benchmarks.shared.reports import decimals, markdown_table, paragraph, picture, write_sections
from benchmarks.shared.versions import made_by
from tanlearn.dask.tree import FAN_IN

from . import model
from .cells import Cells
from .measure import FITS, READINGS
from .rows import N_FEATURES, N_VALUES

#: Required speed-up of two workers.
TARGET = 1.8
#: Extrapolation: rows, workers, rows per partition, bytes per second of a worker's network, and its memory.
ROWS, WORKERS, PARTITION_ROWS, NETWORK, MEMORY = 10**10, 100, 10**6, 1.25e9, 16 * 2**30
#: Extrapolation to wide tables: numbers of features, values per feature, and classes.
FEATURES, N_STATES, N_CLASSES = (16, 100, 300, 1000, 3000, 10_000), 10, 3
#: Rows of a sample for the structure of very many features.
SAMPLE = 10**7
COLORS = {1: "#0072b2", 2: "#d55e00"}


def size(n_bytes):
    """Return bytes in words."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if n_bytes < 999.5 or unit == "TB":
            return f"{n_bytes:,.0f} {unit}" if n_bytes >= 99.5 or unit == "B" else f"{n_bytes:.2g} {unit}"
        n_bytes /= 1000
    return None


def span(seconds):
    """Return seconds in words."""
    for most, unit, n_seconds in ((1, "ms", 1e-3), (120, "s", 1), (7200, "min", 60), (2 * 86_400, "h", 3600)):
        if seconds < most:
            return f"{seconds / n_seconds:.3g} {unit}"
    return f"{seconds / 86_400:,.0f} days"


def summary(cells):
    """Return the verdicts in sentences."""
    most = max(n_rows for n_rows, _ in cells.tables)
    n_workers, text = max(cells.workers), []
    best = {
        task: min(
            seconds for n_rows, _, workers, seconds in cells.of_task(task) if (n_rows, workers) == (most, n_workers)
        )
        for task in FITS
        if any((n_rows, workers) == (most, n_workers) for n_rows, _, workers, _ in cells.of_task(task))
    }
    if best:
        listed = " and ".join(
            f"{task} in {seconds:.1f} s ({most / seconds:,.0f} rows/s)" for task, seconds in best.items()
        )
        text.append(f"From Parquet files, {most:,} rows are fitted on {n_workers} workers: {listed}.")
    ratios = best_speed_ups(cells)
    if ratios:
        listed = " and ".join(f"{ratio:.2f} for {task}" for task, ratio in ratios.items())
        n_met = sum(ratio >= TARGET for ratio in ratios.values())
        text.append(
            f"The best speed-up with two workers is {listed}. The target of {TARGET:g} is met for {n_met} of "
            f"{len(ratios)} fits."
        )
    peaks = {
        table: cells.largest((*table, n_workers), "peak_worker")
        for table in cells.tables
        if table[0] == most and any(cell[:3] == (*table, n_workers) for cell in cells.lines)
    }
    listed = " and ".join(f"{peak:,.0f} MiB with {table[1]} partitions" for table, peak in peaks.items())
    text.append(f"A worker needs at most {listed}.")
    if cells.alone:
        task = next(task for task in FITS if task in cells.tasks)
        seconds, fitting = predicted_seconds(cells, task), fitting_features()
        text.append(
            f"By the cost model, {ROWS:,} rows on {WORKERS} workers take {span(seconds)} ({task}). Counts of all "
            f"pairs of {fitting:,} features fit into {MEMORY / 2**30:g} GiB per worker; with many more features, "
            "pairs must be counted in blocks."
        )
    return paragraph(" ".join(text))


def best_speed_ups(cells):
    """Return the best speed-up of two workers on the largest data, by fit."""
    most, found = max(n_rows for n_rows, _ in cells.tables), {}
    for task in FITS:
        ratios = [cells.speed_up(*table, task) for table in cells.tables if table[0] == most]
        if any(ratios):
            found[task] = max(filter(None, ratios))
    return found


def predicted_seconds(cells, task):
    """Return the predicted seconds of a task with many rows on many workers."""
    return cells.costs(task).seconds(ROWS, ROWS // PARTITION_ROWS, WORKERS, result_bytes(cells)[task][1], NETWORK)


def fitting_features():
    """Return the largest number of features whose counts of all pairs can be merged in the memory of a worker."""
    sizes = {n: model.reduction_bytes(model.count_bytes([N_STATES] * n, N_CLASSES)) for n in FEATURES}
    return max((n for n, n_bytes in sizes.items() if n_bytes <= MEMORY), default=0)


def method(cells):
    """Return how the figures were made."""
    what = """This page measures counting with `tanlearn.dask`. The first pass over the data summarizes the columns, and
    the second pass counts all pairs of features. A fit consists of both passes and the estimation of the model. Naive
    Bayes counts single features only."""
    how = f"""The data have {N_FEATURES} features: {len(N_VALUES)} numeric features, half of which contain real numbers,
    and {len(N_VALUES)} features with {N_VALUES[0]} to {N_VALUES[-1]} different strings. Each partition is a Parquet
    file. Workers are processes with one thread. Workers, scheduler and client run on the same machine. Entries are the
    median and (in brackets) the minimum of the wall-clock seconds of {min(map(len, cells.lines.values()))} or more runs
    after a warm-up. The text uses minima."""
    return f"{paragraph(what)}\n\n{paragraph(how)}"


def times(cells):
    """Return the table of seconds, and of rows per second of fits."""
    rows = []
    for n_rows, n_partitions in cells.tables:
        for n_workers in cells.workers:
            own = [(n_rows, n_partitions, n_workers, task) for task in cells.tasks]
            found = [f"{cells.median(*one):.2f} ({cells.least(*one):.2f})" if cells.has(*one) else "-" for one in own]
            rates = [f"{n_rows / cells.least(*one):,.0f}" if cells.has(*one) else "-" for one in own if one[3] in FITS]
            rows.append([f"{n_rows:,}", f"{n_partitions:,}", f"{n_workers}", *found, *rates])
    fits = [task for task in cells.tasks if task in FITS]
    header = [
        "rows",
        "partitions",
        "workers",
        *(f"{task} [s]" for task in cells.tasks),
        *(f"{f}, rows/s" for f in fits),
    ]
    return markdown_table(header, rows, left=())


def speed_ups(cells):
    """Return the speed-ups of two workers over one by the least seconds, and whether the target is met."""
    rows = []
    for table in cells.tables:
        found = [cells.speed_up(*table, task) for task in cells.tasks]
        if any(found):
            rows.append([*(f"{n:,}" for n in table), *(decimals(one, missing="-") for one in found)])
    if not rows:
        return ""
    most = max(table[0] for table in cells.tables)
    ratios = {(table, task): cells.speed_up(*table, task) for table in cells.tables for task in cells.tasks}
    found = {task: [r for (table, one), r in ratios.items() if one == task and r and table[0] == most] for task in FITS}
    verdicts = "; ".join(
        f"{task} {max(some):.2f} at best, {'met' if max(some) >= TARGET else f'{TARGET - max(some):.2f} short'}"
        for task, some in found.items()
        if some
    )
    said = f"The target is a speed-up of at least {TARGET:g}. On the largest data, of {most:,} rows: {verdicts}."
    return f"{paragraph(said)}\n\n{markdown_table(['rows', 'partitions', *cells.tasks], rows, left=())}"


def partitions_alone(cells):
    """Return the times of the work on one partition by stage, and the sizes of its results."""
    rows, stages = [], []
    for (n_rows, _), line in sorted(cells.alone.items()):
        stages = list(line["cpu"])
        rows.append(
            [
                f"{n_rows:,}",
                f"{line['n_rows']:,}",
                *(f"{1e3 * line['cpu'][stage]:.1f}" for stage in stages),
                *(size(line[what]) for what in ("summary_bytes", "counts_bytes", "encoder_bytes")),
            ]
        )
    said = """Times are processor milliseconds in one process. The stages are reading a file, summarizing it, encoding
    its rows, counting all pairs of codes, merging two summaries, and merging two counts. Sizes are bytes of pickles.
    Summaries and counts are sent between workers, and the encoder to every worker."""
    header = ["rows", "rows per partition", *(f"{stage} [ms]" for stage in stages), "summary", "counts", "encoder"]
    return f"{paragraph(said)}\n\n{markdown_table(header, rows, left=())}" if rows else ""


def travel(cells):
    """Return the transferred bytes, compared with their upper bounds."""
    rows = []
    for n_rows, n_partitions in cells.tables:
        alone = cells.alone.get((n_rows, n_partitions))
        for n_workers in cells.workers:
            both = [(n_rows, n_partitions, n_workers, task) for task in READINGS]
            if alone is None or not all(cells.has(*one) for one in both):
                continue
            rows.append([f"{n_rows:,}", f"{n_partitions:,}", f"{n_workers}"])
            for cell in both:
                whole, *found = (
                    cells.median(*cell, what=what) for what in ("result_bytes", "received", "client_received")
                )
                part = alone["summary_bytes"] if cell[3] == READINGS[0] else whole
                bound = model.sent_bytes(n_partitions, n_workers, part, max(whole, part))
                rows[-1] += map(size, (part, whole, found[0], bound, found[1]))
    said = """For each pass over the data, the table has five columns. *Part* is the size of the result of the first
    partition, and *sum* is the size of the merged result. *Received* is the number of bytes that workers received from
    each other and from the scheduler. *At most* is the upper bound of the model for transfers between workers. *Client
    received* is the number of bytes that client and scheduler received, which are one process. A result for the client
    passes through the scheduler and is counted twice."""
    parts = ["part", "sum", "received", "at most", "client received"]
    header = ["rows", "partitions", "workers", *(f"{task}: {part}" for task in READINGS for part in parts)]
    return f"{paragraph(said)}\n\n{markdown_table(header, rows, left=())}" if rows else ""


def memory(cells):
    """Return peaks of memory."""
    rows = []
    for table in sorted({cell[:3] for cell in cells.lines}):
        found = (cells.largest(table, what) for what in ("idle_worker", "peak_worker", "peak_client"))
        rows.append([*(f"{n:,}" for n in table), f"{table[0] // table[1]:,}", *(f"{n:.0f}" for n in found)])
    header = ["rows", "partitions", "workers", "rows per partition", "worker, idle", "worker, peak", "client, peak"]
    return (
        "The table shows resident memory in MiB, the maximum over workers and "
        f"tasks.\n\n{markdown_table(header, rows, left=())}"
    )


def checked(cells):
    """Return the costs, and their predictions for the largest tables, compared with measurements."""
    costs = {task: cells.costs(task) for task in cells.tasks}
    rows = []
    for task, found in costs.items():
        errors = [abs(error) for error in cells.errors(task)]
        numbers = (found.fixed, 1e3 * found.task, 1e3 * found.partition, 1e6 * found.row, 1e3 * found.merge)
        shares = (median(errors), max(errors))
        rows.append([task, *(f"{number:.3g}" for number in numbers), *(f"{100 * share:.0f} %" for share in shares)])
    header = ["task", "fixed [s]", "task [ms]", "partition [ms]", "row [µs]", "merge [ms]", "median error", "largest"]
    fitted = markdown_table(header, rows)
    rows, errors = [], []
    for task in cells.tasks:
        for n_rows, n_partitions, n_workers, seconds, predicted in cells.check(task):
            errors.append(predicted / seconds - 1)
            where = f"{n_rows:,}", f"{n_partitions:,}", f"{n_workers}"
            rows.append([task, *where, f"{seconds:.2f}", f"{predicted:.2f}", f"{100 * errors[-1]:+.0f} %"])
    if not rows:
        return fitted
    said = f"""Predictions for the largest data, computed from smaller data only, have a median error of
    {100 * median(map(abs, errors)):.0f} %, and at most {100 * max(map(abs, errors)):.0f} %."""
    header = ["task", "rows", "partitions", "workers", "measured [s]", "predicted [s]", "error"]
    return f"{fitted}\n\n{paragraph(said)}\n\n{markdown_table(header, rows)}"


def result_bytes(cells):
    """Return the bytes of the result of a partition and of all rows on many workers, by task."""
    alone = max(cells.alone.values(), key=lambda line: line["n_rows"])
    summary = model.summary_bytes(len(N_VALUES) / 2, alone["n_classes"], ROWS, ROWS // PARTITION_ROWS)
    counts = max(line["result_bytes"] for cell in cells.lines if cell[3] == READINGS[1] for line in cells.lines[cell])
    n_bytes = {READINGS[0]: (alone["summary_bytes"], summary), READINGS[1]: (counts, counts)}
    return n_bytes | dict.fromkeys(FITS, n_bytes[READINGS[0]])


def at_scale(cells):
    """Return the predictions of the model for many rows on many workers."""
    n_partitions, n_bytes = ROWS // PARTITION_ROWS, result_bytes(cells)
    summary = n_bytes[READINGS[0]][1]
    rows = []
    for task in cells.tasks:
        costs, (part, whole) = cells.costs(task), n_bytes[task]
        seconds = costs.seconds(ROWS, n_partitions, WORKERS, whole, NETWORK)
        travelling = model.sent_bytes(n_partitions, WORKERS, part, whole) / WORKERS
        shares = seconds, costs.task * n_partitions, model.chain(n_partitions) * (costs.merge + whole / NETWORK)
        room = model.reduction_bytes(whole)
        rows.append([task, *map(span, shares), size(travelling), span(travelling / NETWORK), size(room)])
    client = cells.client_seconds(next(task for task in FITS if task in cells.tasks))
    said = f"""These predictions are for {ROWS:,} rows in {n_partitions:,} partitions of {PARTITION_ROWS:,}, on
    {WORKERS} workers of one thread with a network of {8 * NETWORK / 1e9:g} Gbit/s each. There are
    {len(model.levels(n_partitions)) - 1} levels of merges with up to {FAN_IN} parts each. After the last partition,
    {model.chain(n_partitions)} merges follow one after the other. The costs are those above, with files as fast as in
    the measurements. Client and scheduler take {1e3 * client:.1f} ms of processor time per partition of a fit, in total
    {span(n_partitions * client)}. More workers do not reduce this time. A summary has at most {size(summary)} for any
    distribution of the rows, and the size of the counts does not change."""
    header = [
        "task",
        "time",
        "scheduler",
        "merges at the end",
        "sent per worker",
        "transfer time",
        "memory of the largest merge",
    ]
    return f"{paragraph(said)}\n\n{markdown_table(header, rows)}"


def wide(cells):
    """Return the limits of counts of all pairs, and the unit of reduction beyond them."""
    rate = median(line["pair_rate"] for line in cells.alone.values())
    n_partitions, rows = ROWS // PARTITION_ROWS, []
    for n_features in FEATURES:
        part = model.count_bytes([N_STATES] * n_features, N_CLASSES)
        room, travelling = model.reduction_bytes(part), model.sent_bytes(n_partitions, WORKERS, part) / WORKERS
        work = model.counting_seconds(ROWS, n_features, WORKERS, rate)
        fits = "yes" if room <= MEMORY else "**no**"
        cells_of = (size(part), size(room), fits, size(travelling), span(travelling / NETWORK), span(work))
        rows.append([f"{n_features:,}", *cells_of])
    most = FEATURES[-1]
    blocks = model.Blocks.of(most, N_STATES, N_CLASSES, WORKERS, MEMORY)
    before = f"""The table shows the costs of counting all pairs of features with {N_STATES} values in {N_CLASSES}
    classes, for the same partitions and workers, with {MEMORY / 2**30:g} GiB each. A merge holds {FAN_IN} parts and
    their sum. A worker counts {rate / 1e6:,.0f} million rows times pairs per second, as measured above."""
    after = f"""The memory for merges is the first limit. The network is the second limit, because every partition sends
    its own counts. Blocks of pairs avoid both limits. A block of {blocks.width} by {blocks.width} features has
    {size(blocks.unit_bytes)} of counts, and a merge of {FAN_IN} blocks takes half of a worker's memory. {most:,}
    features have {blocks.units:,} blocks. For each block, a worker sums the counts of all its partitions. Then
    {WORKERS} parts are merged in {len(model.levels(WORKERS)) - 1} levels, and the mutual information is computed on the
    worker with the sum. The client receives {size(blocks.information_bytes)} of information in total, and no counts.
    Each worker sends {size(blocks.sent_bytes)} in {span(blocks.sent_bytes / NETWORK)}, instead of {rows[-1][5]}. A
    block reads two groups of columns, so the data are read {blocks.readings:.0f} times, or are kept on the workers
    after encoding."""
    then = f"""Counting is the next limit: {rows[-1][6]} on {WORKERS} workers, with or without blocks. The structure can
    then be learned on a sample. Counting {SAMPLE:,} rows takes
    {span(model.counting_seconds(SAMPLE, most, WORKERS, rate))}, and the mutual information of independent features is
    overestimated by about {(N_STATES - 1) ** 2 * N_CLASSES / (2 * SAMPLE):.1g} nats. All rows are then counted for the
    families of the structure, with {size(model.NUMBER * N_CLASSES * N_STATES**2 * most)} of counts in one reading."""
    header = ["features", "counts", "memory of a merge", "fits", "sent per worker", "transfer time", "counting"]
    return "\n\n".join([paragraph(before), markdown_table(header, rows, left=()), paragraph(after), paragraph(then)])


def draw(path, cells):
    """Draw rows per second against rows, by workers, with the best number of partitions."""
    with picture(path, 4.2 * len(cells.tasks), 3.8) as figure:
        for axes, task in zip(
            figure.subplots(1, len(cells.tasks), sharey=True, squeeze=False)[0], cells.tasks, strict=True
        ):
            for n_workers in cells.workers:
                best = {}
                for n_rows, _, workers, seconds in cells.of_task(task):
                    if workers == n_workers:
                        best[n_rows] = max(best.get(n_rows, 0), n_rows / seconds)
                label = f"{n_workers} worker{'s' * (n_workers > 1)}"
                axes.plot(list(best), list(best.values()), "o-", color=COLORS.get(n_workers), label=label)
            axes.set(title=task, xscale="log", yscale="log", xlabel="rows")
            axes.grid(color="#dddddd", which="both", linewidth=0.5)
            axes.spines[["top", "right"]].set_visible(False)
        figure.axes[0].set_ylabel("rows per second")
        figure.axes[0].legend(frameon=False)


def sections(lines, cells, folder):
    """Yield the sections of the summary, and draw their picture."""
    yield from ("# Counting over partitions", summary(cells))
    yield "![Rows per second against rows, by workers, in the best number of partitions](counts.png)"
    draw(folder / "counts.png", cells)
    yield times(cells)
    yield paragraph("""Speed-ups, transfers, memory, the cost model and its predictions are on [a separate
    page](counts_details.md).""")
    yield f"## How it was measured\n\n{method(cells)}"
    yield made_by(lines, "benchmarks.scale.counts run", "benchmarks.scale.counts report")


def details(cells):
    """Yield the sections of the page of details."""
    yield "# Counting over partitions: details"
    yield "The [summary](counts.md) contains the main results, and explains tasks, data and machine."
    yield from ("## Speed-up with two workers", speed_ups(cells))
    yield from ("## Costs of one partition", partitions_alone(cells))
    yield from ("## Transfers", travel(cells), "## Memory", memory(cells))
    yield "## Cost model and measurements"
    yield model.__doc__.split("\n\n", 1)[1].rstrip().replace("::\n", ":\n").replace("``", "`")
    yield checked(cells)
    if cells.alone:
        yield from (f"## {ROWS:,} rows on {WORKERS} workers", at_scale(cells))
        yield from ("## Limits for many features", wide(cells))


def write_report(lines, folder):
    """Write the summary with its picture, and the page of details."""
    cells = Cells(lines)
    if not cells.lines:
        raise SystemExit("nothing is finished: the command run does it.")
    write_sections(folder / "counts.md", sections(lines, cells, folder))
    write_sections(folder / "counts_details.md", details(cells))
