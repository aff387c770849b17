"""Verdicts on a learner, counted from results for each group of sets."""

from typing import NamedTuple

import numpy as np

from ..verdicts import marked
from .learners import LEARNERS, NUMBERED, RANDOM_FOREST
from .outcomes import MEASURES, PARTS
from .ranks import mean_ranks

#: Largest difference in points from the error of a random forest on any data set.
WORSE = 2.0
#: Errors in % on published parts.
BARS = {"letter, published": 3.0, "satimage, published": 7.2, "usps, published": 1.9}


class Verdict(NamedTuple):
    """A requirement, its sets, the result, and whether it is missed; None if nothing is finished."""

    asked: str
    part: str
    found: str
    is_missed: bool | None

    def row(self):
        """Return cells of a table."""
        word = {None: "open", True: "missed", False: "met"}[self.is_missed]
        return [self.asked, self.part, marked(self.found, self.is_missed), marked(word, self.is_missed)]


def is_default_peer(name):
    """Return whether a learner is a peer with default settings."""
    return not LEARNERS[name].is_ours and not LEARNERS[name].is_tuned


def first_in_rank(outcomes, learners, judged, measure, part):
    """Judge whether no learner has a lower mean rank."""
    asked, ranks = f"first in mean rank of {MEASURES[measure]}", ranks_of(outcomes, learners, measure, part)
    if judged not in ranks:
        return Verdict(asked, part, "-", None)
    own = ranks[judged]
    ahead = sorted((rank, name) for name, rank in ranks.items() if rank < own)
    best = f"; {len(ahead)} before it, first {ahead[0][1]} {ahead[0][0]:.2f}" if ahead else ""
    return Verdict(asked, part, f"{own:.2f} of {len(ranks)}{best}", bool(ahead))


def not_behind(outcomes, learners, judged, part):
    """Judge whether no peer with defaults has a lower mean rank of error."""
    asked, ranks = "not behind the best default peer in mean rank of error", ranks_of(outcomes, learners, "error", part)
    peers = {name: rank for name, rank in ranks.items() if is_default_peer(name)}
    if judged not in ranks or not peers:
        return Verdict(asked, part, "-", None)
    best = min(peers, key=peers.get)
    found = f"{ranks[judged]:.2f}; {best} {peers[best]:.2f}"
    return Verdict(asked, part, found, ranks[judged] > peers[best])


def best_calibrated(outcomes, learners, judged, part):
    """Judge whether no peer has a lower mean rank of the calibration error."""
    asked = "not behind a peer in mean rank of calibration error"
    compared = [name for name in learners if name == judged or not LEARNERS[name].is_ours]
    errors = [[outcomes.calibration(name, one) for one in compared] for name in outcomes.common(learners, part)]
    if judged not in compared or len(compared) < 2 or not errors:
        return Verdict(asked, part, "-", None)
    ranks = dict(zip(compared, map(float, mean_ranks(np.array(errors))), strict=True))
    own = ranks.pop(judged)
    best = min(ranks, key=ranks.get)
    return Verdict(asked, part, f"{own:.2f}; {best} {ranks[best]:.2f}", own > ranks[best])


def ranks_of(outcomes, learners, measure, part):
    """Return mean ranks by learner; empty without a common data set."""
    table = outcomes.table(learners, measure, part)
    return dict(zip(learners, map(float, mean_ranks(table)), strict=True)) if len(table) else {}


def losses(outcomes, learner, part="all sets"):
    """Return our error, the forest's error and its name for sets with a difference over WORSE points.

    The random forest has the encoding of categories with the lower error.
    """
    found = {}
    for peer in (RANDOM_FOREST, NUMBERED):
        for name, seeds in outcomes.common([learner, peer], part).items():
            own, other = (outcomes.mean(name, one, "error", seeds) for one in (learner, peer))
            if round(own - other, 9) > WORSE and other < found.get(name, (own, own, peer))[1]:
                found[name] = own, other, peer
    return found


def in_words(found):
    """Return sets and errors in words, the largest difference first."""
    ordered = sorted(found.items(), key=lambda one: one[1][1] - one[1][0])
    return "; ".join(f"{name} {own:.2f} ({peer} {other:.2f})" for name, (own, other, peer) in ordered)


def no_great_loss(outcomes, judged, part):
    """Judge whether no error is clearly above a random forest's with either encoding of categories."""
    asked = f"no set over {WORSE:g} points behind {RANDOM_FOREST}"
    n_sets = len(outcomes.common([judged, RANDOM_FOREST], part))
    if not n_sets:
        return Verdict(asked, part, "-", None)
    found = losses(outcomes, judged, part)
    said = f"{len(found)} of {n_sets} sets" + (f": {in_words(found)}" if found else "")
    return Verdict(asked, part, said, bool(found))


def published(outcomes, judged):
    """Judge errors on published parts."""
    for name, bar in BARS.items():
        asked = f"{name}: at most {bar:g} %"
        if outcomes.seeds(name, [judged]):
            error = outcomes.mean(name, judged, "error")
            over = f", {error - bar:.2f} over" if error > bar else ""
            yield Verdict(asked, "test part", f"{error:.2f} %{over}", error > bar)
        else:
            yield Verdict(asked, "test part", "-", None)


def judge(outcomes, learners, judged):
    """Return all verdicts on a learner among others."""
    return [
        *(first_in_rank(outcomes, learners, judged, measure, p) for measure in ("log_loss", "brier") for p in PARTS),
        *(not_behind(outcomes, learners, judged, part) for part in PARTS),
        *(best_calibrated(outcomes, learners, judged, part) for part in PARTS),
        *(no_great_loss(outcomes, judged, part) for part in PARTS),
        *published(outcomes, judged),
    ]
