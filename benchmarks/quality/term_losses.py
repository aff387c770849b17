"""Losses of networks of terms on ten small raw data sets, for complete test rows and for rows with missing values.

    python -m benchmarks.quality.term_losses run       # ten minutes; resumes if interrupted
    python -m benchmarks.quality.term_losses report    # writes term_losses.md
    python -m benchmarks.quality.term_losses pack

`TermNetClassifier` is trained with each loss on three stratified folds. Test rows are predicted as they are, and with
30 % of their values removed at random.
"""

import time
import warnings

import numpy as np
from sklearn.model_selection import StratifiedKFold

from benchmarks.shared.command import add_choices, execute, parsers
from benchmarks.shared.data import load_table
from benchmarks.shared.reports import folded, joined, markdown_table, paragraph, write_sections
from benchmarks.shared.results import Results, line_key, read
from benchmarks.shared.versions import made_by
from tanlearn import ConditionalNLL, Margin, SoftHybrid, TermNetClassifier

from .runs import true_class

#: Data sets on which the trade-off of the hybrid loss is chosen, and others.
CHOOSING = "glass", "heart", "lymphography", "saheart", "vehicle"
HELD_OUT = "breast", "diabetes", "hepatitis", "ionosphere", "tae"
SETS = tuple(name for pair in zip(CHOOSING, HELD_OUT, strict=True) for name in pair)
DEFAULT, MARGIN = "conditional likelihood", "margin"
TRADE_OFFS = {f"hybrid, {trade_off}": trade_off for trade_off in (1, 10, 100)}
LOSSES = {
    DEFAULT: ConditionalNLL(),
    MARGIN: Margin(),
    **{name: SoftHybrid(trade_off=trade_off) for name, trade_off in TRADE_OFFS.items()},
}
#: Number of folds, and fraction of the values of test rows that are removed.
N_FOLDS, LOST = 3, 0.3
#: Measures of complete test rows, and of the same rows with missing values.
KINDS = {"complete": "complete test rows", "lost": f"test rows without {100 * LOST:.0f} % of their values"}
FILE = "term_losses.jsonl"
#: Probabilities below are raised to this, so that one row cannot decide the mean.
LEAST_PROBABILITY = 1e-6
key = line_key("set", "fold", "loss")


def judge(model, X, y):
    """Return error [%] and log loss of some rows."""
    proba = model.predict_proba(X)
    own = np.maximum(true_class(proba, model.classes_, y, 0.0), LEAST_PROBABILITY)
    return float(100 * (model.classes_[proba.argmax(axis=1)] != y).mean()), float(-np.log(own).mean())


def measure(X, y, train, test, loss):
    """Fit to training rows, and return the results on test rows."""
    started = time.process_time()
    model = TermNetClassifier(loss=loss).fit(X[train], y[train])
    found = {"seconds": time.process_time() - started, "n_test": len(test)}
    lost = X[test].copy()
    lost[np.random.default_rng(0).random(lost.shape) < LOST] = np.nan
    for kind, rows in (("complete", X[test]), ("lost", lost)):
        found[f"error_{kind}"], found[f"log_loss_{kind}"] = judge(model, rows, y[test])
    return found


def run(arguments):
    """Run everything that is not finished."""
    results = Results(arguments.results / FILE, key)
    for name in arguments.sets:
        X, y = load_table(name, arguments.data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about rare classes, columns with one interval, and values of test rows
            folds = StratifiedKFold(N_FOLDS, shuffle=True, random_state=0).split(X, y)
            for fold, (train, test) in enumerate(folds, start=1):
                for loss in LOSSES:
                    start = {"set": name, "fold": fold, "loss": loss}
                    if start not in results:
                        results.append(start | measure(X, y, train, test, LOSSES[loss]))
        print(name, flush=True)


def mean(lines, names, loss, what):
    """Return the mean over data sets of the mean over test rows."""
    means = []
    for name in names:
        own = [one for one in lines if (one["set"], one["loss"]) == (name, loss)]
        means.append(np.average([one[what] for one in own], weights=[one["n_test"] for one in own]))
    return float(np.mean(means))


def named(loss):
    """Return a loss in words."""
    classes = {MARGIN: "`Margin()`", **{name: f"`SoftHybrid(trade_off={value})`" for name, value in TRADE_OFFS.items()}}
    return classes.get(loss, loss)


def sentences(lines, names, kind, loss):
    """Return the comparison of a loss with the default."""
    (error, error_before), (log_loss, before) = (
        [mean(lines, names, one, f"{what}_{kind}") for one in (loss, DEFAULT)] for what in ("error", "log_loss")
    )
    ours, default = (
        np.array([mean(lines, [name], one, f"log_loss_{kind}") for name in names]) for one in (loss, DEFAULT)
    )
    largest = int(np.abs(ours - default).argmax())
    return (
        f"{named(loss)} {'lowers' if log_loss < before else 'raises'} the mean log loss from {before:.3f} to "
        f"{log_loss:.3f}. The log loss is lower on {(ours < default).sum()} of {len(names)} data sets. The largest "
        f"change is on {names[largest]}, from {default[largest]:.3f} to {ours[largest]:.3f}. The mean error changes "
        f"from {error_before:.1f} to {error:.1f} %."
    )


def findings(lines, parts):
    """Yield, for each kind of test rows, comparisons on the held-out data sets and a table of all means."""
    choosing, held_out = parts
    for kind, title in KINDS.items():
        best = min(TRADE_OFFS, key=lambda loss: mean(lines, choosing, loss, f"log_loss_{kind}"))
        yield f"## {title[0].upper()}{title[1:]}"
        yield paragraph(" ".join(sentences(lines, held_out, kind, loss) for loss in (best, MARGIN)))
        measures = [
            (f"{what}_{kind}", names, digits) for what, digits in (("error", 1), ("log_loss", 3)) for names in parts
        ]
        rows = [
            [loss, *(f"{mean(lines, names, loss, what):.{digits}f}" for what, names, digits in measures)]
            for loss in LOSSES
        ]
        header = [f"{what}, {part}" for what in ("error [%]", "log loss") for part in ("chosen on", "held out")]
        yield markdown_table(["loss", *header], rows)


def summary(lines, names):
    """Return the loss with the lowest mean log loss for each kind of test rows, in words."""
    best = [min(LOSSES, key=lambda loss: mean(lines, names, loss, f"log_loss_{kind}")) for kind in KINDS]
    lowest = joined([f"{named(loss)} for {title}" for loss, title in zip(best, KINDS.values(), strict=True)])
    return paragraph(
        f"The loss of `TermNetClassifier` with the lowest mean log loss on {len(names)} held-out data sets is {lowest}."
    )


def per_set(lines, names, kind):
    """Return the error and the log loss of each loss on each data set."""
    rows = []
    for name in names:
        values = [[mean(lines, [name], loss, f"{what}_{kind}") for what in ("error", "log_loss")] for loss in LOSSES]
        rows.append([name, *(f"{error:.1f} / {log_loss:.3f}" for error, log_loss in values)])
    return markdown_table(["set", *LOSSES], rows)


def write_report(lines, path):
    """Write the report of lines."""
    wanted = N_FOLDS * len(LOSSES)
    finished = [name for name in SETS if len([line for line in lines if line["set"] == name]) == wanted]
    parts = [[name for name in names if name in finished] for names in (CHOOSING, HELD_OUT)]
    if not all(parts):
        raise SystemExit("no data set of one half is finished: the command run does it.")
    sections = ["# Losses of networks of terms", summary(lines, parts[1]), *findings(lines, parts)]
    sections.append("## Results per data set")
    for kind, title in KINDS.items():
        sections.append(folded(f"Error [%] / log loss, {title}", per_set(lines, finished, kind)))
    seconds = joined([f"{mean(lines, finished, loss, 'seconds'):.1f} s ({loss})" for loss in LOSSES])
    text = f"""All models are `TermNetClassifier` with at most one parent per feature. Every data set has {N_FOLDS}
    stratified folds, and means over data sets are not weighted. The trade-off in the sentences has the lowest mean log
    loss on {joined(parts[0])} ("chosen on"). The sentences are about {joined(parts[1])} ("held out"), on which no
    trade-off was chosen. A fit takes {seconds} of processor time on average. Probabilities below
    {LEAST_PROBABILITY:g} count as this value."""
    made = made_by(lines, "benchmarks.quality.term_losses run", "benchmarks.quality.term_losses report")
    write_sections(path, [*sections, "## How it was measured", paragraph(text), made])


def report(arguments):
    """Write the report."""
    write_report(read(arguments.results / FILE), arguments.output / "term_losses.md")


def main(argv=None):
    """Parse the command line and run it."""
    parser, running = parsers(__doc__, __spec__, run, report)
    add_choices(running, "--sets", SETS)
    execute(parser, argv)


if __name__ == "__main__":
    main()
