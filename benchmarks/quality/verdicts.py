"""Verdicts on defaults, counted from the results of defaults.py; misses are bold."""

from typing import NamedTuple

from benchmarks.shared.reports import markdown_table

from .outcomes import mean, paired
from .runs import PUBLISHED

FIXED = ", fixed"
#: The columns of the tables: a fixed setting and the default.
COLUMNS = {
    "ML": ("TAN-CMI ML",),
    "CG-CL": (f"TAN-CMI CG-CL{FIXED}", "TAN-CMI CG-CL"),
    "CG-MM": (f"TAN-CMI CG-MM{FIXED}", "TAN-CMI CG-MM"),
    "HYB": (f"TAN-CMI HYB{FIXED}", "TAN-CMI HYB"),
    "CrossTuned": ("TAN-CMI CrossTuned",),
    "Subset": (f"TAN Subset HYB{FIXED}", "TAN Subset HYB"),
    "Order-free": (f"TAN Order-free HYB{FIXED}", "TAN Order-free HYB"),
}
LEARNERS = [learner for pair in COLUMNS.values() for learner in pair]
DEFAULTS = {short: pair[-1] for short, pair in COLUMNS.items() if short != "ML"}
#: The fixed settings for the most likely tree; one of them is the best on each data set.
TREES = {short: COLUMNS[short][0] for short in ("ML", "CG-CL", "CG-MM", "HYB")}
REFERENCE = "TAN-CMI CG-CL"
HALVES = CHOSEN_ON, HELD_OUT = "chosen on", "held out"

#: Errors in %; above them is a miss.
BARS = {"car": 2.0, "tic-tac-toe": 1.5, "chess": 2.3, "spambase": 5.5, "krkopt": 37.0}
#: Points that a default may err more than a set's best fixed tree, and on published parts than the fixed setting.
WORSE, WORSE_PUBLISHED = 1.0, 0.2
#: Seconds of a fit to sets of fewer rows than SMALL, and points of calibration error on those of LARGE and more.
SMALL, SECONDS, LARGE, CALIBRATION = 2_000, 2.0, 5_000, 2.0
#: Shares of the reference's log loss that are a miss.
LOSS_RATIO = 1.05


class Verdict(NamedTuple):
    """A section of the report, its target, and the number of misses by default that has finished results."""

    title: str
    target: str
    text: str
    misses: dict


def marked(text, is_missed):
    """Return a text, in bold for a miss."""
    return f"**{text}**" if is_missed else text


def plus_minus(difference, spread):
    """Return a difference and its standard error in words."""
    return f"{difference:+.2f} \N{PLUS-MINUS SIGN} {spread:.2f}"


def having(found, learners):
    """Return the raw sets on which all given learners are finished."""
    return [name for name, row in found.items() if row.keys() >= set(learners) and not name.endswith(PUBLISHED)]


def parts(found, half, learners):
    """Return the raw sets on which learners are finished: all of them, and each half."""
    names = having(found, learners)
    return {"all sets": names, **{part: [name for name in names if half.get(name) == part] for part in HALVES}}


def best_tree(row):
    """Return the fixed setting with the lowest error on a data set."""
    return min(TREES, key=lambda short: row[TREES[short]].error)


def is_clearly_worse(row, learner):
    """Return whether the error is over one point and two standard errors above that of the best fixed setting."""
    if not row.keys() >= {learner, *TREES.values()}:
        return False
    difference, spread = paired(row[learner], row[TREES[best_tree(row)]])
    return difference > WORSE and difference > 2 * spread


def mean_errors(found, half):
    """Judge the mean error, compared with that of the fixed setting with the lowest mean error."""
    rows, misses = [], {}
    for short, learner in DEFAULTS.items():
        cells = []
        for part, names in parts(found, half, [learner, *TREES.values()]).items():
            if not names:
                cells.append("-")
                continue
            own = mean(found, names, learner)
            lowest, best = min((mean(found, names, tree), name) for name, tree in TREES.items())
            cells.append(marked(f"{own:.2f}, {best} {lowest:.2f}", own > lowest))
            if part == "all sets":
                misses[short] = int(own > lowest)
        rows.append([short, *cells])
    text = markdown_table(["default", "all sets", *HALVES], rows, left=range(4))
    title = "(a) Mean error, and that of the best fixed setting for the maximum-likelihood tree: bold if higher"
    return Verdict(title, "(a) mean error at most that of the best fixed tree", text, misses)


def clear_losses(found):
    """Judge on which sets the error of a default is clearly above that of the best fixed setting."""
    rows, misses = [], {}
    for short, learner in DEFAULTS.items():
        names = having(found, [learner, *TREES.values()])
        worse = [name for name in names if is_clearly_worse(found[name], learner)]
        if names:
            misses[short] = len(worse)
        shown = []
        for name in worse:
            best = best_tree(found[name])
            own, other = found[name][learner], found[name][TREES[best]]
            shown.append(f"{name}: {own.error:.2f}, {best} {other.error:.2f} ({plus_minus(*paired(own, other))})")
        rows.append([short, f"{len(worse)} of {len(names)}", "; ".join(shown) or "-"])
    target = "(b) no data set with a clearly higher error than the best fixed tree"
    title = f"(b) Sets with an error over {WORSE:g} point, and two standard errors, above that of the best fixed tree"
    header = ["default", "number of sets", "set: error [%], best fixed setting and its error (difference)"]
    return Verdict(title, target, markdown_table(header, rows, left=(0, 2)), misses)


def beside_bars(title, target, found, value, bars):
    """Judge a measure of every default on some sets by an upper limit."""
    rows, misses = [], {}
    for name, bar in bars.items():
        row, cells = found.get(name, {}), []
        for short, learner in DEFAULTS.items():
            if learner not in row:
                cells.append("-")
                continue
            measured = getattr(row[learner], value)
            misses[short] = misses.get(short, 0) + (measured > bar)
            cells.append(marked(f"{measured:.2f}", measured > bar))
        rows.append([name, f"{bar:g}", *cells])
    return Verdict(title, target, markdown_table(["set", "at most", *DEFAULTS], rows), misses)


def single_sets(found):
    """Judge errors on sets that can be learned well, or that are hard for trees."""
    title = "(c) Errors on five data sets: bold if above the target"
    return beside_bars(title, "(c) limits of the error on five data sets", found, "error", BARS)


def published_parts(found):
    """Judge errors on published parts, compared with those of the fixed setting."""
    names, rows, misses = [name for name in found if name.endswith(PUBLISHED)], [], {}
    for short, learner in DEFAULTS.items():
        fixed, cells = COLUMNS[short][0], []
        for name in names:
            if fixed == learner or not found[name].keys() >= {learner, fixed}:
                cells.append("-")
                continue
            own, other = found[name][learner], found[name][fixed]
            difference, spread = paired(own, other)
            misses[short] = misses.get(short, 0) + (difference > WORSE_PUBLISHED)
            text = f"{own.error:.2f}, fixed {other.error:.2f} ({plus_minus(difference, spread)})"
            cells.append(marked(text, difference > WORSE_PUBLISHED))
        rows.append([short, *cells])
    title = f"(d) Errors on published parts: bold if over {WORSE_PUBLISHED:g} points above those of the fixed setting"
    target = f"(d) errors on published parts at most {WORSE_PUBLISHED:g} points above those of the fixed setting"
    return Verdict(title, target, markdown_table(["default", *names], rows, left=range(1 + len(names))), misses)


def seconds(found):
    """Judge the seconds of fits: on letter, compared with the fixed setting, and on small sets."""
    rows, misses = [], {}
    for short, learner in DEFAULTS.items():
        ratio, pair = "-", [found.get("letter", {}).get(name) for name in COLUMNS[short]]
        if len(pair) == 2 and all(pair):
            before, after = (outcome.seconds for outcome in pair)
            ratio = f"{after:.1f} / {before:.1f} = {after / before:.1f}"
        small = {name: found[name][learner].seconds for name in having(found, [learner])}
        small = {name: taken for name, taken in small.items() if found[name][learner].n_rows < SMALL}
        slow = [name for name in small if small[name] > SECONDS]
        if small:
            misses[short] = len(slow)
        shown = slow or sorted(small, key=small.get)[-1:]
        rows.append([short, ratio, marked(", ".join(f"{name} {small[name]:.2f}" for name in shown) or "-", slow)])
    title = f"(e) Seconds per fit; for sets below {SMALL:,} rows, those over {SECONDS:g} s (bold), or the longest"
    header = ["default", "letter: default / fixed", "small sets"]
    target = f"(e) at most {SECONDS:g} s per fit on sets below {SMALL:,} rows"
    return Verdict(title, target, markdown_table(header, rows, left=range(3)), misses)


def log_losses(found):
    """Judge log losses, compared with those of conditional likelihood."""
    rows, misses = [], {}
    for short, learner in DEFAULTS.items():
        names = [name for name, row in found.items() if learner != REFERENCE and row.keys() >= {learner, REFERENCE}]
        if not names:
            continue
        pairs = {name: [found[name][which].log_loss for which in (learner, REFERENCE)] for name in names}
        worse = {name: pair for name, pair in pairs.items() if pair[0] > LOSS_RATIO * pair[1]}
        misses[short] = len(worse)
        ratios = {name: own / max(other, 1e-9) for name, (own, other) in worse.items()}
        shown = [
            f"{name}: {worse[name][0]:.3g} / {worse[name][1]:.3g} ({100 * ratios[name] - 100:+.0f} %)"
            for name in sorted(ratios, key=ratios.get, reverse=True)
        ]
        rows.append([short, f"{len(worse)} of {len(names)}", "; ".join(shown) or "-"])
    header = ["default", "number of sets", f"set: log loss of the default / of {REFERENCE} (difference)"]
    target = f"(f) log loss at most {100 * LOSS_RATIO - 100:.0f} % above that of CG-CL"
    title = f"(f) Sets whose log loss is over {100 * LOSS_RATIO - 100:.0f} % above that of the default of {REFERENCE}"
    return Verdict(title, target, markdown_table(header, rows, left=(0, 2)), misses)


def calibration(found):
    """Judge calibration errors on large sets."""
    large = [name for name, row in found.items() if next(iter(row.values())).n_rows >= LARGE]
    title = f"(g) Expected calibration errors in points, sets of {LARGE:,} rows and more: bold above {CALIBRATION:g}"
    target = f"(g) calibration error at most {CALIBRATION:g} points on sets of {LARGE:,} rows and more"
    return beside_bars(title, target, found, "calibration", dict.fromkeys(large, CALIBRATION))


def judge(found, half):
    """Return all verdicts."""
    others = (clear_losses, single_sets, published_parts, seconds, log_losses, calibration)
    return [mean_errors(found, half), *(judgement(found) for judgement in others)]


def summary(judged):
    """Return the table of the misses of every default, with one row per target."""
    rows = []
    for one in judged:
        counts = [one.misses.get(short, "-") for short in DEFAULTS]
        rows.append([one.target, *(marked(str(count), count not in (0, "-")) for count in counts)])
    return markdown_table(["target", *DEFAULTS], rows)
