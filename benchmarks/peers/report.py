"""The table and the plot of the command, from its results."""

from benchmarks.shared.reports import folded, joined, paragraph, table_head, table_row

NAIVE_BAYES, TAN, COUNTS = "naive Bayes", "Chow-Liu TAN", "pair counts"
REFERENCE = "tanlearn"
COLORS = {
    REFERENCE: "#0b6e4f",
    "tanlearn, encoded": "#6bbf94",
    "scikit-learn": "#f29f05",
    "pyAgrum": "#3d6fb4",
    "pgmpy": "#b2456e",
    "NumPy, one-hot product": "#7f7f7f",
}
TITLE = "# Naive Bayes and Chow-Liu TAN in other libraries"
PICTURE = "![Times of all libraries, on a logarithmic scale](classics.png)"
COMMANDS = """```console
$ pip install -e ".[peers]"
$ python -m benchmarks.peers
$ python -m benchmarks.peers --report-only  # from results.json, without the peers
```"""
NOTES = f"""## How to read it

- **tanlearn** calls `fit(X, y)` and `predict(X)`, which validate the data. **tanlearn, encoded** starts from codes, as
  searches do. The other libraries receive the data in their own format, and the conversion is not timed.
- The numbers in brackets are times relative to `{REFERENCE}`. *Same class* is the fraction of predicted rows with the
  class that {REFERENCE} predicts. *Edges* is the number of edges between features.
- Compilation, and the first calls on a few rows, are not timed.
- All libraries smooth with a pseudo-count of one per CPT entry. Some differences remain. pyAgrum leaves out edges with
  less than half the mean mutual information, and smooths counts before it computes the information. pgmpy leaves out
  features without information. Roots differ, and so do the directions of edges, which determine the CPT that is
  smoothed. scikit-learn does not smooth the class frequencies.
- pgmpy predicts only the first rows, and its accuracy is measured on these rows. Its naive Bayes is a
  `DiscreteBayesianNetwork` without edges between features, because the class `NaiveBayes` of pgmpy 1.1.2 raises a
  `TypeError` in `predict`.
- A fit is skipped if it would take longer than `--limit`. The estimate is a fit of the first 16 columns, scaled by the
  number of pairs of columns.
- *Pair counts* are the input of Chow-Liu: the joint counts of two values and a class, for all pairs of features. The
  one-hot product computes them with one float32 matrix product per class. Its time includes the one-hot encoding. """


def duration(seconds):
    """Return a time with three digits and a unit."""
    sizes = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9}
    unit = next((unit for unit, size in sizes.items() if seconds >= 0.9995 * size), "ns")
    value = seconds / sizes[unit]
    return f"{value:.0f} {unit}" if value >= 100 else f"{value:.3g} {unit}"


def ratio(seconds, reference):
    """Return the ratio to the reference."""
    times = seconds / reference
    return f"{times:.2g}" if times < 9.95 else f"{times:,.0f}"


def verdicts(measured):
    """Return a sentence per task with the range of times of each library, relative to tanlearn."""
    for task in (NAIVE_BAYES, TAN):
        rows = [row for row in measured["results"] if row["task"] == task and "skipped" not in row]
        base = {row["set"]: row["fit"] for row in rows if row["library"] == REFERENCE}
        ranges = []
        for library in dict.fromkeys(row["library"] for row in rows if not row["library"].startswith(REFERENCE)):
            own = sorted(row["fit"] / base[row["set"]] for row in rows if row["library"] == library)
            ranges.append(f"{ratio(own[0], 1)} to {ratio(own[-1], 1)} times as long in {library}")
        if ranges:
            yield f"Relative to {REFERENCE}, fitting {task} takes {joined(ranges)}."


def provenance(measured, commands):
    """Return the date, the versions and the commands behind a page, folded."""
    versions = ", ".join(f"{package} {number}" for package, number in measured["versions"].items())
    how = f"""The times were measured in one run on {measured["date"]}, on one thread of a shared
    {measured["cpus"]}-core {measured["machine"]} machine. Versions: Python {measured["python"]}, {versions}."""
    return folded("Commands and versions", commands, paragraph(how))


def lines(measured):
    """Return the tables of the tasks, line by line."""
    table = {(row["task"], row["set"], row["library"]): row for row in measured["results"]}
    for task in (NAIVE_BAYES, TAN, COUNTS):
        counting = task == COUNTS
        columns = ["set", "library", "count" if counting else "fit"]
        columns += ["same counts"] if counting else ["predict, per row", "rows", "accuracy", "same class", "edges"]
        yield from ["", f"## {task[0].upper()}{task[1:]}", "", *table_head(columns, left=(0, 1))]
        for (of_task, name, library), row in table.items():
            if of_task != task:
                continue
            if "skipped" in row:
                yield f"| {name} | {library} | skipped: {row['skipped']} |{' |' * (len(columns) - 3)}"
                continue
            base = table[task, name, "tanlearn, encoded" if counting else REFERENCE]
            cells = [name, library, f"{duration(row['fit'])} ({ratio(row['fit'], base['fit'])})"]
            if not counting:
                cells.append(f"{duration(row['predict'])} ({ratio(row['predict'], base['predict'])})")
                cells += [f"{row['rows']:,}", f"{100 * row['accuracy']:.2f} %"]
            cells.append(f"{100 * row['agreement']:.2f} %")
            if not counting:
                cells.append(str(row["edges"]))
            yield table_row(cells)


def plot(measured, path):
    """Draw one diagram per task and data set, with a common scale of each task."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    rows = measured["results"]
    sets = list(dict.fromkeys(row["set"] for row in rows))
    panels = [(task, what) for task in (NAIVE_BAYES, TAN) for what in ("fit", "predict")] + [(COUNTS, "fit")]
    titles = {"fit": "fit", "predict": "predict, a row"}
    libraries = {task: list(dict.fromkeys(row["library"] for row in rows if row["task"] == task)) for task, _ in panels}
    figure, axes = plt.subplots(
        len(panels),
        len(sets),
        figsize=(4.6 * len(sets) + 1, 1 + 0.42 * sum(len(libraries[task]) + 1 for task, _ in panels)),
        sharex="row",
        sharey="row",
        squeeze=False,
        layout="constrained",
        gridspec_kw={"height_ratios": [len(libraries[task]) + 1 for task, _ in panels]},
    )
    for (task, what), of_panel in zip(panels, axes, strict=True):
        longest = max(row.get(what, 0.0) for row in rows if row["task"] == task)
        shortest = min(row[what] for row in rows if row["task"] == task and what in row)
        for name, axis in zip(sets, of_panel, strict=True):
            for row in rows:
                if (row["task"], row["set"]) != (task, name):
                    continue
                place = libraries[task].index(row["library"])
                if "skipped" in row:
                    axis.text(shortest / 2, place, " skipped", va="center", fontsize=8, color="#777777", style="italic")
                    continue
                axis.barh(place, row[what], color=COLORS[row["library"]], height=0.75)
                axis.text(row[what], place, f" {duration(row[what])}", va="center", fontsize=8)
            axis.set_xscale("log")
            axis.set_xlim(shortest / 3, longest * 30)
            axis.set_yticks(range(len(libraries[task])), libraries[task], fontsize=9)
            axis.set_ylim(len(libraries[task]) - 0.4, -0.6)
            axis.set_title(
                f"{name}: {task}" if task == COUNTS else f"{name}: {task}, {titles[what]}", fontsize=10, loc="left"
            )
            axis.tick_params(axis="x", labelsize=8)
            axis.grid(axis="x", color="#dddddd", linewidth=0.6)
            axis.set_axisbelow(True)
            axis.spines[["top", "right", "left"]].set_visible(False)
            axis.tick_params(axis="y", length=0)
    figure.supxlabel("seconds, one thread, logarithmic scale: shorter is better", fontsize=9)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def write_report(measured, folder):
    """Write README.md and classics.png."""
    how = f"""Times are medians of the processor time of up to {measured["repeats"]} calls (fewer if a call takes
    seconds), on the published training and test parts. All libraries run in one process with one thread each."""
    left_out = [f"{name} is left out: {why}." for name, why in measured["left_out"].items()]
    start = [TITLE, paragraph(" ".join(verdicts(measured))), PICTURE, paragraph(how), *left_out]
    text = "\n".join(
        ["\n\n".join(filter(None, start)), *lines(measured), "", NOTES, provenance(measured, COMMANDS), ""]
    )
    (folder / "README.md").write_text(text, encoding="utf-8")
    plot(measured, folder / "classics.png")
