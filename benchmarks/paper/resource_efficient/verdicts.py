"""Verdicts on few bits, on the size penalty and on branch and bound, from the figures of all data sets."""

from statistics import median

from benchmarks.paper.claims import Claim
from benchmarks.shared.reports import joined, markdown_table, paragraph

from .report import FLOAT, N_BITS, NB, ROUNDED, TAN, TRAINED, mean_error

#: Columns of the table of the summary.
SHOWN_BITS = (1, 2, 4, 8)
#: Points above the lowest error within which the smallest tree is named, and within which more bits do not matter.
NEAR_SIZE, NEAR_BITS = 0.3, 0.2
#: Processor time relative to float32 that counts as a negligible overhead.
OVERHEAD = 1.1


def errors(columns):
    """Return the errors in % by column of figure 6."""
    return {column: mean_error(folds) for column, folds in columns.items()}


def bits_in_words(bits):
    """Return what few bits cost, and what training for them gains, in sentences."""
    found = {name: errors(columns) for name, columns in bits.items()}
    if not found:
        return ""
    step = {name: one[TAN, TRAINED, 4] - one[TAN, FLOAT, None] for name, one in found.items()}
    worst = max(step, key=step.get)
    gains = {name: one[TAN, ROUNDED, 1] - one[TAN, TRAINED, 1] for name, one in found.items()}
    low, high = min(gains, key=gains.get), max(gains, key=gains.get)
    late = {
        name: max(abs(one[TAN, ROUNDED, n] - one[TAN, TRAINED, n]) for n in range(4, 9)) for name, one in found.items()
    }
    most = max(late, key=late.get)
    return (
        f"On {len(found)} data sets, the error of a TAN trained for 4 bits is at most {step[worst]:.2f} points above "
        f"the error with float32 (the largest difference is on {worst}). With 1 bit, training for few bits instead of "
        f"rounding lowers the error by {gains[low]:.2f} ({low}) to {gains[high]:.2f} points ({high}). With 4 bits or "
        f"more, both methods differ by at most {late[most]:.2f} points."
    )


def sizes_in_words(sizes):
    """Return how much smaller trees are within some points of the lowest error, in a sentence."""
    cuts = {}
    for name, points in sizes.items():
        near = [point for point in points if point[1] <= min(points[:, 1]) + NEAR_SIZE]
        cuts[name] = 100 - 100 * min(point[2] for point in near) / points[0][2]
    if not cuts:
        return ""
    listed = ", ".join(f"{name} {cut:.0f} %" for name, cut in cuts.items())
    return (
        f"If the error may be {NEAR_SIZE:g} points above the lowest error, the size penalty removes the following "
        f"part of the CPT entries of a tree: {listed}."
    )


def searches_in_words(bits, searched):
    """Return where branch and bound is better than training, in a sentence."""
    won = {name: [points > 0 for points in pairs.values()] for name, pairs in compared(bits, searched).items()}
    if not won:
        return ""
    listed = joined([f"{sum(found)} of {len(found)} comparisons on {name}" for name, found in won.items()])
    return f"Branch and bound has a lower error than training for few bits in {listed}."


def compared(bits, searched):
    """Return by how many points branch and bound is better than training, by data set, learner and number of bits."""
    return {
        name: {
            (learner, n_bits): mean_error(bits[name][learner, TRAINED, n_bits]) - error
            for (learner, n_bits), error in found.items()
        }
        for name, found in searched.items()
        if name in bits and found
    }


def enough_bits(columns, learner):
    """Return the smallest number of bits whose error is near that of the best."""
    found = {n: mean_error(columns[learner, TRAINED, n]) for n in N_BITS}
    return min(n for n, error in found.items() if error <= min(found.values()) + NEAR_BITS)


def claims(bits, sizes, searched, ratios):
    """Return all claims that results can decide."""
    points = compared(bits, searched)
    lost = {name: sum(value > 0 for value in found.values()) for name, found in points.items()}
    search = Claim(
        "training for few bits is better than branch and bound",
        "branch and bound is better: " + ", ".join(f"{name} {n} of {len(points[name])}" for name, n in lost.items()),
        not any(lost.values()) if points else None,
    )
    middle = {name: median(found) for name, found in ratios.items()}
    overhead = Claim(
        "training for few bits has a negligible overhead",
        "time relative to float32: " + ", ".join(f"{name} {ratio:.2f}" for name, ratio in middle.items()),
        all(ratio <= OVERHEAD for ratio in middle.values()) if middle else None,
    )
    enough = {learner: enough_bits(bits["letter"], learner) for learner in (NB, TAN)} if "letter" in bits else {}
    letter = Claim(
        "on letter, the error decreases up to 6 or 7 bits",
        f"within {NEAR_BITS:g} points of the best: " + ", ".join(f"{name} {n} bits" for name, n in enough.items()),
        all(n in (6, 7) for n in enough.values()) if enough else None,
    )
    last = {name: points[-1][2] for name, points in sizes.items()}
    naive = Claim(
        "a large size penalty leads to naive Bayes",
        "entries relative to naive Bayes: " + ", ".join(f"{name} {size:.2f}" for name, size in last.items()),
        all(round(size, 2) == 1 for size in last.values()) if last else None,
    )
    return [search, overhead, letter, naive]


def summary(bits, sizes, searched, checked_in_words):
    """Return the verdicts in sentences."""
    text = [bits_in_words(bits), sizes_in_words(sizes), searches_in_words(bits, searched), checked_in_words]
    return paragraph(" ".join(filter(None, text)) or "No figure is complete yet.")


def table(bits):
    """Return the errors by number of bits, trained and rounded, on all data sets."""
    rows = []
    for name, columns in bits.items():
        for learner in (NB, TAN):
            cells = [
                f"{mean_error(columns[learner, TRAINED, n]):.2f} ({mean_error(columns[learner, ROUNDED, n]):.2f})"
                for n in SHOWN_BITS
            ]
            rows.append([name, learner, *cells, f"{mean_error(columns[learner, FLOAT, None]):.2f}"])
    header = ["set", "learner", *(f"{n} bit{'s' * (n > 1)}" for n in SHOWN_BITS), FLOAT]
    return markdown_table(header, rows, left=(0, 1))
