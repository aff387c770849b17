"""Comparisons of one learner with one peer over data sets: wins and losses, and Bayesian signed ranks."""

import numpy as np

from benchmarks.shared.reports import markdown_table, paragraph
from tanlearn.comparison.statistics import equivalence_probabilities

from .learners import LEARNERS, RANDOM_FOREST
from .outcomes import MEASURES, PARTS
from .ranks import differences, is_clear
from .verdicts import losses

#: Largest difference in log loss, in nats, that counts as equal in the Bayesian test.
EQUAL = 0.01


def duel(outcomes, own, peer, measure, part="all sets"):
    """Return clear wins, draws and clear losses of a learner, and the numbers of sets with lower and higher means."""
    counts, lower, higher = [0, 0, 0], 0, 0
    for name, seeds in outcomes.common([own, peer], part).items():
        if {(name, own), (name, peer)} & outcomes.failures.keys():
            found, clear = differences(*(np.array([outcomes.mean(name, one, measure)]) for one in (own, peer))), True
        else:
            pair = [outcomes.lines(name, one, seeds) for one in (own, peer)]
            found = differences(*(np.array([line[measure] for line in lines]) for lines in pair))
            clear = is_clear(found, [line["n_test"] / line["n_train"] for line in pair[0]])
        sign = np.sign(np.round(found.mean(), 9))
        lower, higher = lower + (sign < 0), higher + (sign > 0)
        counts[1 + int(sign) if clear else 1] += 1
    return f"{counts[0]}/{counts[1]}/{counts[2]} ({lower}:{higher})" if sum(counts) else "-"


def duels(outcomes, measure):
    """Return the table of our learners against every peer, on all sets and each group."""
    others = [name for name in outcomes.learners if not LEARNERS[name].is_ours]
    rows = [
        [own if part == PARTS[0] else part, *(duel(outcomes, own, peer, measure, part) for peer in others)]
        for own in outcomes.learners
        if LEARNERS[own].is_ours
        for part in PARTS
    ]
    return markdown_table(["learner", *others], rows) if rows and others else ""


def against_peers(outcomes, judged):
    """Return the table of one learner against each peer: wins and losses, and the Bayesian signed-ranks test."""
    rows = []
    for peer in (name for name in outcomes.learners if not LEARNERS[name].is_ours):
        results = outcomes.table([judged, peer], "log_loss")
        if not len(results):
            continue
        found = results[np.isfinite(results).all(axis=1)]
        chances = equivalence_probabilities(found[:, 0] - found[:, 1], EQUAL) if len(found) else (np.nan,) * 3
        counts = [duel(outcomes, judged, peer, measure) for measure in MEASURES]
        rows.append([peer, str(len(results)), *counts, *(f"{chance:.3f}" for chance in chances)])
    if not rows:
        return ""
    text = f"""Data sets on which {judged} is better / undecided / worse than the peer. A difference counts if a t-test
    at 5 %, corrected for overlapping training parts (Nadeau, Bengio 2003), is significant over folds and seeds. The
    numbers of data sets with a lower and a higher mean are in brackets. The last three columns are probabilities that,
    on another data set, the log loss of {judged} is lower, differs by at most {EQUAL:g} nats, or is higher (Bayesian
    signed-ranks test)."""
    measures = [f"by {title}" for title in MEASURES.values()]
    return f"{paragraph(text)}\n\n{markdown_table(['peer', 'sets', *measures, 'lower', 'equal', 'higher'], rows)}"


def great_losses(outcomes):
    """Return the table of sets on which our errors are much above those of a random forest, by group."""
    rows = []
    for learner in (name for name in outcomes.learners if LEARNERS[name].is_ours):
        for part in PARTS[1:]:
            found, n_sets = losses(outcomes, learner, part), len(outcomes.common([learner, RANDOM_FOREST], part))
            if n_sets:
                ordered = sorted(found.items(), key=lambda one: one[1][1] - one[1][0])
                pairs = ", ".join(f"{name} {own:.2f} / {other:.2f}" for name, (own, other, _) in ordered)
                rows.append([learner, part, f"{len(found)} of {n_sets}", pairs or "-"])
    if not rows:
        return ""
    text = """Each pair of numbers is the error of the learner / of the random forest on a data set, in %. For the
    random forest, the better of two encodings of categories is used. The largest differences come first."""
    header = ["learner", "group", "number of sets", "sets and errors"]
    return f"{paragraph(text)}\n\n{markdown_table(header, rows, left=(0, 1, 3))}"
