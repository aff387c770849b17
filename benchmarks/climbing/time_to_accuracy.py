"""Seconds and epochs until gradient TAN and climbers reach given errors on letter and usps.

    python -m benchmarks.climbing.time_to_accuracy run                 # nine minutes; resumes if interrupted
    python -m benchmarks.climbing.time_to_accuracy run --sets letter
    python -m benchmarks.climbing.time_to_accuracy report              # writes time_to_accuracy.md and its picture
    python -m benchmarks.climbing.time_to_accuracy pack

Learners are fitted to the training part of the published fold with one thread. Times are processor seconds, which other
processes do not change: the times of a history are multiplied by the ratio of processor time to wall-clock time of the
fit. Errors during training are measured in a second fit, after the timed fit."""

import time
from pathlib import Path

from sklearn.base import clone

from benchmarks.paper.differentiable_tan.cells import CELLS
from benchmarks.paper.differentiable_tan.complete_runs import best_on_test, complete_runs
from benchmarks.shared.command import add_choices, execute, parsers
from benchmarks.shared.data import BATCH_SIZES, load
from benchmarks.shared.reports import markdown_table, paragraph, picture, write_sections
from benchmarks.shared.results import Results, line_key, read
from benchmarks.shared.versions import made_by
from benchmarks.speed.training import TENSORFLOW
from tanlearn import TableEncoder
from tanlearn.baselines import LEARNERS

#: Test errors in percent, from those of trees with frequencies as parameters to those of table 1 of the paper.
LEVELS = {"letter": (20.0, 15.0, 12.0, 10.0, 9.0), "usps": (10.0, 5.0, 4.0, 3.0, 2.5)}
#: The cell of table 1 of differentiable TAN, and its name in the report.
CELL, PAPER, N_EPOCHS = "TAN Subset K=8", "TAN Subset, protocol of the paper", 500
GRADIENT = (PAPER, "TAN Subset HYB", "TAN Order-free HYB")
HYBRID = "TAN-OMI-MM HYB"
CLIMBERS = ("HC-BDeu ML", "TAN-OMI-CR ML", "TAN-CR ML", "TAN-CL ML", "TAN-SA-MM ML", HYBRID)
#: Greedy searches, which score d^3 structures: on usps, with 256 features, they would take over ten minutes each.
FEW_FEATURES = ("TAN-CR ML", "TAN-CL ML")
NAMES = ("TAN-CMI ML", *CLIMBERS, *GRADIENT)
STYLES = {
    PAPER: ("#0072b2", "-"),
    "TAN Subset HYB": ("#56b4e9", "-"),
    "TAN Order-free HYB": ("#009e73", "-"),
    "TAN-CMI ML": ("#666666", "-"),
    "HC-BDeu ML": ("#e69f00", "-"),
    "TAN-OMI-CR ML": ("#d55e00", "-"),
    "TAN-CR ML": ("#d55e00", "--"),
    "TAN-CL ML": ("#cc79a7", "--"),
    "TAN-SA-MM ML": ("#cc79a7", "-"),
    HYBRID: ("#8b3a00", "-"),
}
WARM_ROWS = 1_000
FILE = "time_to_accuracy.jsonl"
PAPER_RESULTS = Path(__file__).parents[1] / "paper" / "differentiable_tan" / "results"
key = line_key("set", "learner")


def best_published_run(name):
    """Return the settings of the run with the lowest test error, which the paper selects, of the paper's ranges."""
    runs = complete_runs(read(PAPER_RESULTS / f"{name}.jsonl"))
    return best_on_test([run for run in runs if (run.cell, run.settings) == (CELL, "published")]).parameters


def make(learner, problem):
    """Return an unfitted classifier for codes, with one thread."""
    data = problem.folds[0].data
    encoder = TableEncoder(discrete_features=list(range(data.n_features)))
    if learner != PAPER:
        return LEARNERS[learner].make(random_state=0, n_jobs=1, encoder=encoder)
    cell = next(cell for cell in CELLS if cell.name == CELL)
    settings = cell.parameters(problem, data, best_published_run(problem.name), N_EPOCHS)
    return cell.estimator.set_params(**settings, n_jobs=1, encoder=encoder)


def measure(start, problem):
    """Return a finished line: the errors of a learner along its way, and of the fitted classifier."""
    part = problem.folds[0]
    train, test = (part.data.codes.T, part.data.y), (part.codes.T, part.y)
    model = make(start["learner"], problem)
    clone(model).fit(train[0][:WARM_ROWS], train[1][:WARM_ROWS])
    started, used = time.perf_counter(), time.process_time()
    model.fit(*train)
    seconds = time.process_time() - used
    rate = seconds / (time.perf_counter() - started)
    # Parameters by gradient would be trained for each structure of a search again.
    errors = {} if "parameters" in model.learning_history() else model.learning_errors(*train, *test)
    curve = [
        [round(entry.seconds * rate, 4), entry.step, round(100 * error, 3)]
        for pairs in errors.values()
        for entry, error in pairs
    ]
    error = round(100 * (1 - model.score(*test)), 3)
    return start | {"curve": curve, "seconds": round(seconds, 3), "error": error, "n_train": len(train[1])}


def reached(line, level):
    """Return seconds and step at which a learner first has at most this error, or None; the fit itself has no step."""
    for seconds, step, error in line["curve"]:
        if error <= level:
            return seconds, step
    return (line["seconds"], None) if line["error"] <= level else None


def epoch_seconds(line):
    """Return the seconds of an epoch of the authors' TensorFlow code."""
    return TENSORFLOW[line["set"]] / 1000 * (line["n_train"] // BATCH_SIZES[line["set"]])


def planned(sets, learners):
    """Yield the lines to measure, without their results."""
    for name in sets:
        for learner in learners:
            if name == "letter" or learner not in FEW_FEATURES:
                yield {"set": name, "learner": learner}


def run(arguments):
    """Run everything that is not finished."""
    results = Results(arguments.results / FILE, key)
    for name in arguments.sets:
        todo = results.missing(planned([name], arguments.learners))
        problem = load(name, arguments.data) if todo else None
        for start in todo:
            line = results.append(measure(start, problem))
            print(f"{name}, {line['learner']}: {line['error']:.2f} % in {line['seconds']:.2f} s", flush=True)


def in_words(seconds):
    """Return seconds with two significant digits."""
    digits = 2 if seconds < 1 else 1 if seconds < 10 else 0
    return "under 0.01 s" if seconds < 0.005 else f"{seconds:,.{digits}f} s"


def field(line, level):
    """Return a field of the table: seconds, and epochs of a training; a dash if the error is never reached."""
    found = reached(line, level)
    if found is None:
        return "-"
    seconds, step = found
    is_epoch = line["learner"] in GRADIENT and step is not None
    return in_words(seconds) + (f" ({step:,} epoch{'' if step == 1 else 's'})" if is_epoch else "")


def table(lines, levels):
    """Return the table of a data set."""
    rows = []
    for line in lines:
        fields = [field(line, level) for level in levels]
        rows.append([line["learner"], *fields, in_words(line["seconds"]), f"{line['error']:.2f}"])
        if line["learner"] == PAPER:
            times = [_tensorflow(line, level) for level in levels]
            fields = ["-" if seconds is None else in_words(seconds) for seconds in times]
            rows.append(["the same in TensorFlow, estimated", *fields, in_words(N_EPOCHS * epoch_seconds(line)), ""])
    return markdown_table(["learner", *(f"{level:g} %" for level in levels), "whole fit", "error [%]"], rows)


def _tensorflow(line, level):
    """Return the estimated seconds of the authors' code until an error, or None."""
    found = reached(line, level)
    return None if found is None or found[1] is None else found[1] * epoch_seconds(line)


def fastest(lines, names, level):
    """Return the line of the learner that first has at most this error, or None."""
    own = [line for line in lines if line["learner"] in names and reached(line, level)]
    return min(own, key=lambda line: reached(line, level)[0], default=None)


def winners(lines, levels):
    """Return the fastest gradient learner and the fastest climber of each level."""
    return {level: tuple(fastest(lines, names, level) for names in (GRADIENT, CLIMBERS)) for level in levels}


def _is_gradient_first(pair, level):
    """Return whether the gradient learner of a pair has the error first."""
    gradient, climber = pair
    return gradient is not None and (climber is None or reached(gradient, level)[0] <= reached(climber, level)[0])


def answer(lines):
    """Return the answer for all data sets in sentences."""
    counts = []
    for name, levels in LEVELS.items():
        pairs = winners(lines[name], levels)
        n_first = sum(_is_gradient_first(pair, level) for level, pair in pairs.items())
        counts.append(f"{n_first} of {len(levels)} errors on {name}")
    whole = []
    for name, own in lines.items():
        by_name = {line["learner"]: line for line in own}
        ends = (by_name[learner] for learner in (HYBRID, "TAN Subset HYB"))
        texts = [f"{line['error']:.2f} % after {in_words(line['seconds'])}" for line in ends]
        whole.append(f"On {name}, {HYBRID} has {texts[0]}, and TAN Subset HYB has {texts[1]}.")
    return paragraph(
        f"During training, gradient TAN is the first learner to reach {' and '.join(counts)}. A learner cannot stop "
        "at these errors, because they are measured on test rows. The order of complete fits with defaults is "
        f"different. {HYBRID} searches a structure by margin, given an ordering of the features, and then trains its "
        f"parameters by gradient. {' '.join(whole)}"
    )


def verdict(name, lines, levels):
    """Return the answer for a data set in sentences."""
    paper = next(line for line in lines if line["learner"] == PAPER)
    hardest = [level for level in levels if _tensorflow(paper, level) is not None][-1]
    seconds, epochs = reached(paper, hardest)
    theirs = _tensorflow(paper, hardest)
    best = min((line for line in lines if line["learner"].endswith(" ML")), key=_lowest)
    return paragraph(
        f"With the protocol of the paper, gradient TAN first has at most {hardest:g} % errors on {name} after "
        f"{epochs} epochs, which take {in_words(seconds)}. The authors' TensorFlow code takes an estimated "
        f"{in_words(theirs)} for the same epochs, {theirs / seconds:.0f} times as long. The lowest error of a search "
        f"that uses frequencies as parameters is {_lowest(best):.1f} % ({best['learner']})."
    )


def first_table(lines, levels):
    """Return the table of the fastest learners."""
    rows = []
    for level, pair in winners(lines, levels).items():
        fields = ["none" if one is None else f"{one['learner']}: {field(one, level)}" for one in pair]
        rows.append([f"{level:g} %", *fields])
    return markdown_table(["error", "first gradient learner", "first climber"], rows, left=(0, 1, 2))


def _lowest(line):
    """Return the lowest error of a learner, along its way or in the end."""
    return min([line["error"], *(error for _, _, error in line["curve"])])


def draw(lines, path):
    """Draw the errors of all learners over seconds, one pair of axes per data set, with logarithmic axes."""
    with picture(path, 9.5, 4.4) as figure:
        for ax, (name, levels) in zip(figure.subplots(1, len(LEVELS)), LEVELS.items(), strict=True):
            own = {line["learner"]: line for line in lines if line["set"] == name}
            for level in levels:
                ax.axhline(level, color="#dddddd", linewidth=0.8, zorder=0)
            for learner, line in own.items():
                _draw_line(ax, learner, line)
            ax.set(xscale="log", yscale="log", xlabel="processor time [s]", ylabel="test error [%]", title=name)
            ax.set_yticks(levels, [f"{level:g}" for level in levels])
            ax.minorticks_off()
            ax.spines[["top", "right"]].set_visible(False)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize="small", frameon=False)


def _draw_line(ax, learner, line):
    """Draw a learner: the best error so far, and a marker for the fitted classifier."""
    color, dashes = STYLES[learner]
    seconds, errors = [], []
    for at, _, error in line["curve"]:
        seconds.append(max(at, 1e-3))
        errors.append(min([error, *errors[-1:]]))
    style = {"color": color, "linestyle": dashes, "linewidth": 1.4, "drawstyle": "steps-post"}
    ax.plot([*seconds, line["seconds"]], [*errors, line["error"]], label=learner, markevery=[-1], marker="o", **style)
    if learner == PAPER:
        ratio = epoch_seconds(line)
        epochs = [step * ratio for _, step, _ in line["curve"]]
        ax.plot(epochs, errors, color=color, linestyle=":", drawstyle="steps-post", label="the same in TensorFlow")


def report(arguments):
    """Write the report and its picture."""
    order = {name: number for number, name in enumerate(NAMES)}
    lines = sorted(read(arguments.results / FILE), key=lambda line: order[line["learner"]])
    draw(lines, arguments.output / "time_to_accuracy.png")
    own = {name: [line for line in lines if line["set"] == name] for name in LEVELS}
    sections = ["# Time to a given accuracy", answer(own)]
    sections.append("![Test errors over processor seconds on letter and usps, by learner](time_to_accuracy.png)")
    for name, levels in LEVELS.items():
        sections += [f"## {name}", verdict(name, own[name], levels), first_table(own[name], levels)]
        sections.append(table(own[name], levels))
    write_sections(arguments.output / "time_to_accuracy.md", [*sections, *notes(own, lines)])


def notes(own, lines):
    """Return how the numbers were measured."""
    steps = " and ".join(
        f"{TENSORFLOW[name]:g} ms per step on {name}, with {found[0]['n_train'] // BATCH_SIZES[name]} steps per epoch"
        for name, found in own.items()
    )
    return [
        "## Measurement",
        paragraph(
            f"""Times are processor seconds of one thread, from the start of a training or of a structure search. The
            column "whole fit" contains the time of the complete `fit`, including the selection of a loss on held-out
            rows and the calibration. An error is reached at the first epoch, or at the first structure of a search,
            with at most this error on the test rows of the published fold, or else by the fitted classifier. CPTs of
            these structures are fitted to counts within milliseconds, which are left out. {HYBRID} was measured at its
            end only."""
        ),
        paragraph(
            f"""The protocol of the paper trains {N_EPOCHS} epochs for {CELL}, with the settings of the best of 100 runs
            from the ranges of the paper by test error, as the paper selects them (see the [report on differentiable
            TAN](../paper/differentiable_tan/report.md)). Other learners have their defaults. Levels are errors on test
            rows, so no learner could use them to stop. Greedy searches ({" and ".join(FEW_FEATURES)}) score d^3
            structures for d features; they were left out on usps, where they would take over ten minutes."""
        ),
        paragraph(
            f"""Seconds of TensorFlow are estimates: {steps}. These constants are in `benchmarks/speed/training.py`.
            They were measured once with the code of the authors, on a shared 2-core machine (AVX-512, znver5), on
            2026-11-21 or before, after tracing. The version of TensorFlow is not known. Tracing took another 226 s on
            usps."""
        ),
        made_by(lines, "benchmarks.climbing.time_to_accuracy run", "benchmarks.climbing.time_to_accuracy report"),
    ]


def main(argv=None):
    """Parse the command line and run it."""
    parser, running = parsers(__doc__, __spec__, run, report)
    add_choices(running, "--sets", tuple(LEVELS))
    add_choices(running, "--learners", NAMES)
    execute(parser, argv)


if __name__ == "__main__":
    main()
