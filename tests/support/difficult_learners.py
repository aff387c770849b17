"""Classifiers for comparisons that never finish, end their process, or log their fits and wait in one of them."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import numba

from tanlearn import NaiveBayesClassifier

#: Most rows of a warm-up fit to iris.
WARM_ROWS = 30


@numba.njit(nogil=True)
def loop(step):
    """Run compiled code that no signal interrupts."""
    x = 1
    while x != 0:
        x = (x + step) % 1_000_003 + 1
    return x


class Endless(NaiveBayesClassifier):
    """Naive Bayes whose fit never ends, except for the warm-up."""

    def fit(self, X, y, sample_weight=None):
        if len(y) > WARM_ROWS:
            loop(1)
        return super().fit(X, y, sample_weight)


class EndlessAlways(NaiveBayesClassifier):
    """Naive Bayes whose fit and warm-up never end."""

    def fit(self, X, y, sample_weight=None):
        loop(1)
        return super().fit(X, y, sample_weight)


class EndlessWarmUp(NaiveBayesClassifier):
    """Naive Bayes whose warm-up never ends."""

    def fit(self, X, y, sample_weight=None):
        if len(y) <= WARM_ROWS:
            loop(1)
        return super().fit(X, y, sample_weight)


class Ending(NaiveBayesClassifier):
    """Naive Bayes whose fit ends the process, except for the warm-up."""

    def fit(self, X, y, sample_weight=None):
        sys.stdout.write("printed by a learner\n")
        if len(y) > WARM_ROWS:
            os._exit(3)
        return super().fit(X, y, sample_weight)


class Logged(NaiveBayesClassifier):
    """Naive Bayes that appends a line to ``fits`` in a folder for each fit, and never finishes the one of ``hang``."""

    def __init__(self, folder=None, *, random_state=None):
        super().__init__(random_state=random_state)
        self.folder = folder

    def fit(self, X, y, sample_weight=None):
        if len(y) > WARM_ROWS:
            log, hang = Path(self.folder, "fits"), Path(self.folder, "hang")
            with log.open("a") as file:
                file.write(f"{hashlib.sha256(X.tobytes()).hexdigest()}\n")
            if hang.exists() and len(log.read_text().splitlines()) >= int(hang.read_text()):
                loop(1)
        return super().fit(X, y, sample_weight)
