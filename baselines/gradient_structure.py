"""Structures learned by gradient, jointly with CPTs that are sums of terms (straight-through Gumbel-softmax).

Each mini-batch draws the parents of all features from the softmax of structure logits. The gradient of the loss is
passed to the terms of the drawn structure directly, and to the logits by the straight-through estimator (differentiable
TAN 2020, section 3; Jang, Gu and Poole, "Categorical reparameterization with Gumbel-softmax", ICLR 2017). A CPT entry
is ``w(x, y) + w(x, p, y) + w(x, q, y) + w(x, p, q, y)``, so that parents share the terms of smaller families. No paper
describes these terms. They are discarded after the training, and only the structure is kept.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from tanlearn._typing import IntArray
from tanlearn.counts.rounded_information import Information
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.estimators.gradient_classifier import LEARNING_RATE, enough_epochs
from tanlearn.estimators.k_tree import DISCRIMINATIVE, N_STEPS
from tanlearn.structures.candidate_kinds import CANDIDATE_KINDS, Candidates, make_candidates
from tanlearn.structures.candidate_sets import CandidateSets
from tanlearn.structures.knowledge import Knowledge, read_rules
from tanlearn.structures.large_candidates import leave_out_large
from tanlearn.structures.structures import Structure
from tanlearn.terms.held_out_gains import held_out_gains
from tanlearn.training.losses import ConditionalNLL, Loss, require_loss
from tanlearn.training.settings import TrainingSettings
from tanlearn.training.training import train

__all__ = ["GradientStructure"]


class GradientStructure(BaseEstimator):
    """Structure of up to two parents per feature, learned by gradient jointly with sums of terms.

    It is the structure of a :class:`~tanlearn.KTreeClassifier` that is trained once, for use with other parameter
    learners and with :class:`~tanlearn.TermNetClassifier`. The CPTs of the training are discarded.

    Parameters
    ----------
    candidates : str, Candidates, CandidateSets or list, default="order-free"
        Candidate parents of each feature: a kind of :class:`~tanlearn.Candidates` other than "unconstrained", or the
        candidates themselves. "order-free" allows all features as parents, "gain" and "information" only the most
        promising ones. With ``max_parents=2``, d features have d^3 / 2 order-free pairs of parents, so use "gain" or
        "information" for more than about 40 features.
    max_parents : {1, 2}, default=1
        Maximum number of augmenting parents per feature.
    loss : ConditionalNLL, Margin or HingeMargin, optional
        Loss of the training; by default :class:`~tanlearn.ConditionalNLL`.
    n_epochs : int, optional
        Passes over the data. The default is 100, or more on small data sets, so that there are 2,000 steps of 100 rows.
    knowledge : Knowledge, optional
        Required and forbidden edges, and tiers, with at most ``max_parents`` required parents per feature.
    n_jobs : int, optional
        Number of threads, as in joblib. The structure does not depend on ``n_jobs``.

    Attributes
    ----------
    structure_probabilities_ : list of dict
        For each feature, the softmax of the logits of its choices, by tuple of parents, before cycles are excluded.

    See Also
    --------
    tanlearn.TANClassifier : Gradient training of a tree and its normalized CPTs.
    tanlearn.KTreeClassifier : Gradient training of structures with two parents, with their terms.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import EncodedData
    >>> from tanlearn.baselines import GradientStructure
    >>> rng = np.random.default_rng(0)
    >>> x = rng.integers(0, 2, (300, 4))
    >>> data = EncodedData.from_codes(x, x[:, 1] ^ x[:, 3])  # features 1 and 3 are informative only together
    >>> parent = GradientStructure(n_epochs=100).learn(data, rng).parent
    >>> bool(parent[1] == 3 or parent[3] == 1)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "candidates": [StrOptions(set(CANDIDATE_KINDS) - {"unconstrained"}), list, tuple, CandidateSets, Candidates],
        "max_parents": [Interval(Integral, 1, 2, closed="both")],
        "loss": [None, *DISCRIMINATIVE],
        "n_epochs": [None, Interval(Integral, 1, None, closed="left")],
        "knowledge": [None, Knowledge],
        "n_jobs": [None, Integral],
    }

    structure_probabilities_: list[dict[Any, float]]

    def __init__(
        self,
        *,
        candidates: Any = "order-free",
        max_parents: int = 1,
        loss: Loss | None = None,
        n_epochs: int | None = None,
        knowledge: Knowledge | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.candidates = candidates
        self.max_parents = max_parents
        self.loss = loss
        self.n_epochs = n_epochs
        self.knowledge = knowledge
        self.n_jobs = n_jobs

    def learn(self, data: EncodedData, rng: np.random.Generator) -> Structure:
        """Train a structure and terms, and return the most probable structure.

        Parameters
        ----------
        data : EncodedData
            Training rows. Terms with a missing value are left out of the score of a row.
        rng : numpy.random.Generator
            Random numbers for candidates, mini-batches and draws.

        Returns
        -------
        Structure

        Raises
        ------
        ValueError
            If a parameter is invalid, ``candidates`` allow cycles or have several parents with ``max_parents=1``, or
            ``knowledge`` contradicts itself or does not fit the columns, or is given in ``candidates`` as well.
        TableMemoryError
            If the terms of all candidates do not fit in memory.
        """
        self._validate_params()
        data = data.present()
        candidates = self._make_candidates(data, rng)
        n_epochs = enough_epochs(self.n_epochs, N_STEPS, data.n_samples, TrainingSettings.batch_size)
        settings = TrainingSettings(learning_rate=LEARNING_RATE, n_epochs=n_epochs, terms=True)
        loss = ConditionalNLL() if self.loss is None else require_loss(self.loss)
        outcome = train(data, candidates, loss, settings, rng, n_jobs=self.n_jobs)
        self.structure_probabilities_ = outcome.probabilities
        return outcome.structure

    def _make_candidates(self, data: EncodedData, rng: np.random.Generator) -> CandidateSets:
        """Return the candidate parents of each feature."""
        given, n_parents = self.candidates, int(self.max_parents)
        is_kind = isinstance(given, (str, Candidates))
        if isinstance(given, str):
            given = Candidates(given)
        own = getattr(given, "knowledge", None)
        if self.knowledge is not None and own is not None:
            raise ValueError(
                "knowledge is given twice, in knowledge and in candidates. Combine both in one Knowledge object, and "
                "leave out the knowledge of candidates. (TermNetClassifier passes its knowledge on.)"
            )
        knowledge = self.knowledge or own
        if knowledge is not None and not is_kind:
            raise ValueError(
                "knowledge can be combined only with a kind of candidates, but the candidates are listed explicitly. "
                "Use a kind, such as candidates='order-free', or remove the candidates that the knowledge excludes."
            )
        rules = read_rules(knowledge, data, max_parents=n_parents)
        if rules is not None and n_parents == 1 and rules.required.any():
            given = _with_ordering(given, rules.ordered(rng.permutation(data.n_features)))
        found = make_candidates(
            given,
            data.n_features,
            rng=rng,
            information=lambda: Information.of_rows(data, n_jobs=self.n_jobs).matrix(),
            gains=lambda: held_out_gains(data, n_jobs=self.n_jobs),
            n_states=data.n_states,
            n_parents=n_parents,
            rules=rules,
        )
        if found.allow_cycles:
            raise ValueError(
                "the candidates allow cycles, but a structure must be acyclic. Use candidates='order-free'."
            )
        most = int((found.parents >= 0).sum(axis=1).max())
        if most > n_parents:
            raise ValueError(
                f"the candidates have sets of {most} parents, but max_parents is {n_parents}. Set max_parents={most}, "
                f"or pass candidates of single parents."
            )
        return leave_out_large(found, data.n_states, data.n_classes, data.n_samples, data.label) if is_kind else found


def _with_ordering(candidates: Candidates, ordering: IntArray) -> Candidates:
    """Return candidates with an ordering (n_features,), unless they have one.

    Features are drawn one after another. Without an ordering, earlier draws could close a cycle with required edges.
    """
    if candidates.kind not in ("order-free", "information", "gain") or candidates.ordering is not None:
        return candidates
    limit = candidates.n_candidates
    kind = candidates.kind
    if kind == "order-free":
        kind = "all" if limit is None else "subset"
    return Candidates(kind, n_candidates=limit, ordering=ordering)
