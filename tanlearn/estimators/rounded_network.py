"""Copies of fitted networks, with CPTs rounded to few bits."""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tanlearn.estimators.estimator_input import encode_rows
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.calibration import decision_tables
from tanlearn.models.quantization import round_tables
from tanlearn.models.tables import Tables
from tanlearn.parameters.monotone_cpts import refuse_bits
from tanlearn.sources.validation import encode_labels
from tanlearn.training.few_bits import read_bits

__all__ = ["round_network"]


def round_network(classifier: Any, bits: Any, X: Any, y: Any) -> Any:
    """Return a copy of a fitted classifier whose CPTs are rounded to a few bits (see ``with_bits``)."""
    check_is_fitted(classifier)
    refuse_bits(classifier._directions())
    formats = [found for found in read_bits(bits) if found is not None]
    if not formats:
        raise ValueError(
            "bits must be a number of bits, or a pair of integer and fraction bits, got None. Pass bits=6, for example."
        )
    twin = copy(classifier)
    # Integer scores are compared without calibration, so its shift is added to the class prior.
    tables = decision_tables(classifier.tables_, classifier.calibration_)
    twin.calibration_ = classifier.calibration_.unshifted()
    candidates = [round_tables(tables, fixed_point) for fixed_point in formats]
    twin.model_ = BayesNet(classifier.structure_, candidates[0])
    twin.__dict__.pop("counts_", None)  # with the counts, partial_fit would compute unrounded CPTs
    if len(candidates) > 1:
        if X is None or y is None:
            raise ValueError(
                f"bits={bits} is the total of integer and fraction bits. Pass X and y to select the split with the "
                f"fewest errors, or set the split, such as bits=(1, {bits - 1})."
            )
        codes = encode_rows(classifier, X)
        labels = encode_labels(y, codes.shape[1], classifier.classes_)

        def n_errors(tables: Tables) -> int:
            network = BayesNet(classifier.structure_, tables)
            scores = network.log_joint(codes, n_jobs=classifier.n_jobs, device=classifier.device)
            return int(np.count_nonzero(scores.argmax(axis=1) != labels))

        twin.model_ = BayesNet(classifier.structure_, min(candidates, key=n_errors))
    return twin
