"""The part of the report on how its figures were made."""

from benchmarks.shared.reports import paragraph

from . import peers
from .learners import BOOSTED, ENSEMBLE, FEW_ROWS, FOREST, NUMBERED
from .sets import MOST_ROWS, TWINS
from .tuning import LEAST, MOST_TREES, PATIENCE


def introduction(lines, outcomes):
    """Return how figures were made, and what they mean."""
    jobs = " or ".join(str(n) for n in sorted({line["jobs"] for line in lines}))
    seeds = " and ".join(str(seed) for seed in sorted({line["seed"] for line in lines}))
    data = f"""This page compares tanlearn with other libraries on {len(outcomes.sets)} raw data sets. Each data set has
    five stratified folds with seeds {seeds}, as far as they are finished. For data sets with more than {MOST_ROWS:,}
    rows, a stratified random sample of this size is used. Another {len(outcomes.published)} data sets are discretized,
    split or reduced as in papers. They are not included in means and ranks."""
    measures = f"""Results for a data set are means over its folds. Means and ranks use the data sets and seeds that all
    compared learners have finished. A learner that fails on a data set is ranked last there. Log losses are in nats,
    with probabilities of at least {LEAST:g}. The Brier score is the sum over classes of squared differences. The
    calibration error uses ten bins of the highest probability. Times are processor seconds of all threads, and
    wall-clock seconds on a shared machine. The number of threads is {jobs}. Sizes are bytes of uncompressed pickles."""
    twins = ", ".join(f"{name} with {twin}" for name, twin in TWINS.items())
    groups = f"""Settings of tanlearn were chosen on one group of data sets ("chosen on" or c). Results are reported for
    both groups. In alphabetical order, every second data set is held out ("held out" or h). Data sets that share rows
    or their generating distribution are in the same group ({twins})."""
    looked = f"""{FOREST}, {BOOSTED}, {ENSEMBLE} and networks of terms are exceptions. Settings of {FOREST} were
    evaluated on folds 1 and 2 of seed 0 of data sets with up to 8,124 rows in both groups. Settings of the others were
    evaluated on folds 1 to 3 of seed 0 of data sets in both groups. The other folds were not used."""
    return "\n\n".join(paragraph(text) for text in (data, measures, groups, looked))


def how_peers_are_run():
    """Return the encodings of the peers, and the settings they choose among."""
    plain = f"""Random forests have {peers.N_TREES} trees. Columns of up to {peers.MOST_COLUMNS} categories are one-hot
    encoded for them. "{NUMBERED}" uses integer codes instead, and equals the random forest on data without categories.
    Boosting receives categorical columns without encoding. Missing values are kept, and are a category of categorical
    columns. CatBoost, ChimeraBoost and EBM (InterpretML's explainable boosting machine) receive categories as strings.
    For logistic regression and support vector machines, missing values are replaced by medians, with an indicator
    column, and all numbers are standardized."""
    grids = {
        "forests": f"leaves of {peers.LEAVES} rows, {peers.SHARES} of the features per split, one-hot or integer "
        f"categories, with {peers.N_CHEAPER} trees during the selection",
        **{
            name: ", ".join(f"{what.removeprefix('model__')} {some}" for what, some in g.items())
            for name, g in peers.GRIDS.items()
        },
    }
    tuned = f"""Settings of tuned learners are selected by log loss on three folds of the training part: {
        "; ".join(f"{name}: {grid}" for name, grid in grids.items())
    }. Boosting has up to {MOST_TREES} trees per class. It stops if {
        PATIENCE
    } more trees do not lower the log loss of the held-out fold. The final model has the mean number of trees of the
    three folds. The support vector machine has radial basis functions and runs on up to {FEW_ROWS:,} training rows. A
    logistic regression on its held-out scores provides the probabilities."""
    return f"{paragraph(plain)}\n\n{paragraph(tuned)}"
