"""Gradient k-trees, two augmenting parents a feature, as a scikit-learn estimator."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from tanlearn._threads import in_threads
from tanlearn.data.encoded_data import EncodedData
from tanlearn.data.table_encoder import TableEncoder
from tanlearn.estimators.gradient import LEARNING_RATE, GradientClassifier
from tanlearn.estimators.reading import ReadingMixin
from tanlearn.network.calibration import Calibration
from tanlearn.network.elimination import Eliminator
from tanlearn.network.structures import Structure
from tanlearn.network.tables import TableLayout
from tanlearn.parameters.back_off_ridge import RIDGES, BackOffRidge
from tanlearn.parameters.cv_results import cv_results
from tanlearn.parameters.held_out import Choice, Trained, choose, held_out_parts, looks
from tanlearn.training.few_bits import train_in_bits
from tanlearn.training.losses import ConditionalNLL, HingeMargin, Loss, Margin, check_loss
from tanlearn.training.settings import EpochReport, TrainingOutcome, TrainingSettings

__all__ = ["KTreeClassifier"]

#: What held-out rows choose from. On letter the first errs less by two points, on usps and satimage the second, by one.
LOSSES: tuple[Loss, ...] = (ConditionalNLL(), Margin(scale=0.03, kappa=1, eta=10))
#: Those of differences between classes: likelihoods need probabilities that add up to one, which terms do not.
DISCRIMINATIVE = ConditionalNLL, Margin, HingeMargin
#: Steps that a small table gets at least.
N_STEPS = 2_000
#: Up to so many numbers (rows times features times classes), tables that are learnt anew for the structure compete: on
#: german and tic-tac-toe they are chosen in most folds.
MOST_NUMBERS = 3_000_000
#: And where gaps take no more microseconds to sum out, at each of up to 2,400 steps: german takes 10,000 with a tenth
#: of its values lost, and 40,000 with a fifth. With a twentieth lost, log losses fell on four of eleven small tables by
#: 0.03 to 0.13, and on none rose by 0.01, for 1.3 to 2.9 times the seconds; errors fell on glass from 34.6 to 27.1 %,
#: on balance-scale from 13.8 to 9.8, and changed elsewhere by -2.0 to 0.7 points.
MOST_SUMMED = 20_000
MAX_ITER = 100
#: Candidate parents that information chooses by default. With 14 in place of 8, held-out rows of usps erred in 2.8 and
#: not 3.3 %, of digits in 3.7 and not 4.5, of satimage in 9.6 and not 10.0; with 16 features, those of letter not less.
FEWEST, MOST = 8, 14


class KTreeClassifier(ReadingMixin, GradientClassifier):
    """Gradient k-trees: up to two augmenting parents a feature, learnt together with the parameters (in no paper).

    As :class:`~tanlearn.TANClassifier`, every mini-batch draws a structure and sends the gradient of the loss to its
    parameters, and straight through a Gumbel softmax to the choice. Features choose among no parent, single ones, and
    pairs of these. What tables hold is a sum of terms, ``w(x, y) + w(x, p, y) + w(x, q, y) + w(x, p, q, y)``, and pairs
    share the terms of their members: so what rows say of one pair is known to others, and rare combinations of values
    are as their parents are by themselves. The terms start at frequencies that back off in the same way.

    The sums are scores of classes and not normalised: that is worth two points on letter. So the model tells classes,
    and does not draw or complete rows. Where rows miss something in training by gradient, terms that need it are left
    out; in prediction missing features are marginalized exactly. Where so many missing features depend on each other
    that this would take more than 1e9 operations per row, as in rows that miss half of many features, the scores of the
    row are approximate, and an :class:`~tanlearn.InexactMarginalizationWarning` names it. The environment variable
    ``TANLEARN_MAX_ROW_OPERATIONS`` sets another limit. Where most values are missing, :class:`~tanlearn.TANClassifier`
    and :class:`~tanlearn.BayesForestClassifier` are faster.

    Where no loss is named, held-out rows choose between two; and on tables of up to 3,000,000 numbers (rows times
    features times classes) between these and :class:`~tanlearn.BackOffRidge` for the structure found, where summing out
    what rows miss would not take too long.

    Parameters
    ----------
    candidates : str, list or CandidateSets, default="information"
        Parents that a feature may choose from, by themselves and in pairs:

        - ``"information"``: the ``n_candidates`` that tell most about it where the class is known, of those before it
          in the ordering, or if there is none, of all;
        - ``"all"``: every feature before it in the ordering; with d features, d^3 / 6 pairs;
        - ``"subset"``: at most ``n_candidates`` random ones of these;
        - ``"heuristic"``: the ``n_candidates`` nearest pixels before it, for images;
        - ``"order-free"``: at most ``n_candidates`` random ones of all others, by default all;
        - a list with the candidate parents of every feature, or a :class:`~tanlearn.CandidateSets`.

        Without an ordering, features choose one after the other, those first that gain most, of what closes no cycle.
        ``"information"`` and ``"order-free"`` leave features of one value out.
    n_candidates : int, optional
        At most so many candidate parents a feature; all pairs of these are candidates, too. By default half the
        features, but from 8 to 14, for ``"information"``, and 8 for ``"subset"`` and ``"heuristic"``.
    ordering : array-like of shape (n_features,) or {"A", "B", "C"}, optional
        Order of the features: random by default for ``"all"`` and ``"subset"``, C for ``"heuristic"``, none for
        ``"information"``.
    image_shape : tuple of (height, width), optional
        For ``"heuristic"``; pixel (row, column) is feature ``row * width + column``.
    loss : ConditionalNLL, Margin or HingeMargin, optional
        By default held-out rows choose between ``ConditionalNLL()`` and ``Margin(scale=0.03, kappa=1, eta=10)``.
    learning_rate : float, default=0.01
        Rate of the terms at the start; it falls exponentially to a thousandth.
    structure_learning_rate : float, default=0.01
        Adam's rate for the structure logits, constant.
    n_epochs : int, optional
        Passes over the data; by default 100, or on small tables as many as 2,000 steps take.
    batch_size : int, default=100
        Rows a step; the last partial batch of an epoch is dropped.
    temperature : tuple of (float, float), default=(1.0, 0.1)
        Softmax temperature of the first and the last epoch.
    validation_fraction : float, optional
        Share of the rows held out, by class, before categories and cuts are learnt. The parameters of the best
        epoch on them are kept.
    patience : int, optional
        With ``validation_fraction``: stop after that many epochs without a better validation error.
    bits : int or tuple of (int, int), optional
        Train for tables of so few bits a number: integer and fraction bits, or their sum, 1 to 16, as of
        :class:`~tanlearn.TANClassifier`. With them the loss is not chosen; it is ``ConditionalNLL()`` by default.
    calibrate : bool, default=True
        Whether held-out rows find a scale by which scores become probabilities. They are those of
        ``validation_fraction``, or else folds (of large tables, a fifth of the rows once), of which each is a training.
    class_weight : None, "balanced" or dict, default=None
        Factors of the rows' weights by class; "balanced" gives all classes the same weight.
    class_prior : array-like of shape (n_classes,), optional
        Probabilities of the classes, in sorted order, in place of those learnt.
    encoder : TableEncoder, optional
        How raw columns become codes; by default ``TableEncoder()``.
    n_jobs : int, optional
        Threads for encoding and prediction, and one for each training that held-out rows judge, as in joblib. Results
        do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed of ordering, candidates, batches and draws. The same rows, parameters and int give the same model, bit for
        bit, on the same machine.
    verbose : int, default=0
        1 prints about ten lines of progress and what was chosen, 2 a line an epoch.
    callback : callable, optional
        Called after every epoch of the last training with an :class:`~tanlearn.EpochReport`; a true answer stops it.
    checkpoint : str or path, optional
        A file that finished epochs of the one training are written to, as of :class:`~tanlearn.TANClassifier`; with a
        ``loss`` of yours only.

    Attributes
    ----------
    structure_ : Structure
        The most probable structure; ``structure_.parents`` and ``structure_.to_networkx()``.
    tables_ : Tables
        Scores of every feature's values given those of its parents and the class, not normalised.
    structure_probabilities_ : list of dict
        For every feature the softmax of its choices' logits, by the tuple of parents: a preference before cycles are
        ruled out.
    loss_ : Loss
        What structure and parameters were learnt with.
    refit_ : BackOffRidge or None
        What has learnt the parameters anew for the structure, if held-out rows have chosen that. (Not where
        what rows miss cannot be summed out of the structure in time.)
    cv_results_ : dict
        What held-out rows were asked, as in scikit-learn: ``param_learner`` (a loss, or a ``BackOffRidge``),
        ``mean_test_score``, ``mean_log_loss`` and others; not set with a ``loss`` of yours.
    calibration_ : Calibration
        How scores become probabilities; of temperature and power 1 without ``calibrate``.
    candidates_ : CandidateSets
        What there was to choose from.
    history_ : list of EpochReport
        One report an epoch of the last training.
    n_epochs_, n_iter_ : int
        Epochs of it.
    classes_ : ndarray of shape (n_classes,)
        Classes in sorted order.
    encoder_ : TableEncoder
        The fitted encoder.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if ``X`` had any.
    n_parameters_ : int
        Free parameters.

    See Also
    --------
    tanlearn.TANClassifier : One augmenting parent a feature; a Bayesian network.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import KTreeClassifier
    >>> X = np.random.default_rng(0).integers(0, 2, (500, 6))
    >>> y = X[:, 0] ^ X[:, 1] ^ X[:, 2]  # no tree with one parent a feature can tell
    >>> model = KTreeClassifier(candidates="all", ordering=range(6), random_state=0).fit(X, y)
    >>> model.score(X, y), model.structure_.parents[2].tolist()
    (1.0, [0, 1])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        name: rule for name, rule in GradientClassifier._parameter_constraints.items() if name != "device"
    }
    _n_parents: ClassVar[int] = 2

    device = "cpu"
    refit_: BackOffRidge | None

    def __init__(
        self,
        *,
        candidates: Any = "information",
        n_candidates: int | None = None,
        ordering: Any = None,
        image_shape: tuple[int, int] | None = None,
        loss: Loss | None = None,
        learning_rate: float = LEARNING_RATE,
        structure_learning_rate: float = 0.01,
        n_epochs: int | None = None,
        batch_size: int = 100,
        temperature: tuple[float, float] = (1.0, 0.1),
        validation_fraction: float | None = None,
        patience: int | None = None,
        bits: Any = None,
        calibrate: bool = True,
        class_weight: Any = None,
        class_prior: Any = None,
        encoder: TableEncoder | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[[EpochReport], Any] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
    ) -> None:
        self.candidates = candidates
        self.n_candidates = n_candidates
        self.ordering = ordering
        self.image_shape = image_shape
        self.loss = loss
        self.learning_rate = learning_rate
        self.structure_learning_rate = structure_learning_rate
        self.n_epochs = n_epochs
        self.batch_size = batch_size
        self.temperature = temperature
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.bits = bits
        self.calibrate = calibrate
        self.class_weight = class_weight
        self.class_prior = class_prior
        self.encoder = encoder
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint

    def _learn(self, data: EncodedData, validation: EncodedData | None, rng: np.random.Generator) -> None:
        """Have held-out rows choose what is left open, and train by gradient."""
        self._check_settings()
        data, validation = self._hold_out(data, validation, rng)
        self.candidates_ = self._make_candidates(data, rng)
        seed = int(rng.integers(2**63))
        losses: Sequence[Loss] = [clone(loss) for loss in LOSSES]
        if self.loss is not None or self.bits is not None:
            losses = [losses[0] if self.loss is None else check_loss(self.loss)]
        self.calibration_ = Calibration()
        parts: Any = []
        if len(losses) > 1 or self.calibrate:
            parts = held_out_parts(data) if validation is None else [(data, validation)]
        self.loss_, refit, choice, by_gradient = losses[0], None, None, None
        if parts:
            refit, choice, by_gradient = self._choose(losses, self._train_parts(losses, parts, seed), parts)
        outcome = self._train(self.loss_, data, validation, seed, is_last=True)
        tables = outcome.tables
        if refit is not None and not _sums_out(outcome.structure, data, slack=10):  # unlike those of the parts
            refit, choice = None, by_gradient
            if self.verbose:
                print("the final structure ties too much of what rows miss: the tables stay those of the gradient")  # noqa: T201
        if refit is not None and choice is not None:
            start = refit.start(outcome.structure, data, np.random.default_rng(0))
            tables = refit.improve(start, data, n_iter=choice.n_iter)
        if choice is not None and self.calibrate:
            self.calibration_ = choice.calibration
        self.structure_, self.structure_probabilities_ = outcome.structure, outcome.probabilities
        self.history_ = outcome.history
        self.n_iter_ = self.n_epochs_ = len(outcome.history)
        self.refit_, self.tables_ = refit, tables

    def _most_candidates(self, data: EncodedData) -> int | None:
        """Return the user's number; or by default, where information chooses, what suits the number of features."""
        if self.n_candidates is None and self.candidates == "information":
            return min(max(data.n_features // 2, FEWEST), MOST)
        return self.n_candidates

    def _train(
        self, loss: Loss, data: EncodedData, validation: EncodedData | None, seed: int, *, is_last: bool = False
    ) -> TrainingOutcome:
        """Train structure and parameters with a loss."""
        settings = TrainingSettings(
            learning_rate=self.learning_rate,
            structure_learning_rate=self.structure_learning_rate,
            n_epochs=self._enough_epochs(data, N_STEPS),
            batch_size=self.batch_size,
            temperature=(float(self.temperature[0]), float(self.temperature[1])),
            patience=self.patience,
            terms=True,
        )
        options: dict[str, Any] = {"validation": validation}
        if is_last:
            options |= {
                "callback": self._report,
                "checkpoint": self.checkpoint,
                "verbose": self.verbose,
                "n_jobs": self.n_jobs,
            }
        rng = np.random.default_rng(seed)
        candidates = self.candidates_ if is_last else self._candidates_of(data)
        return train_in_bits(self.bits, data, candidates, loss, settings, rng, **options)

    def _train_parts(
        self, losses: Sequence[Loss], parts: Sequence[tuple[EncodedData, EncodedData]], seed: int
    ) -> list[list[Trained]]:
        """Train with every loss without the held-out rows of every part."""
        tasks = [(loss, data) for loss in losses for data, _ in parts]
        outcomes = in_threads(lambda task: self._train(task[0], task[1], None, seed), tasks, self.n_jobs)
        trained = [Trained(outcome.tables, outcome.structure) for outcome in outcomes]
        return [trained[first : first + len(parts)] for first in range(0, len(trained), len(parts))]

    def _choose(
        self,
        losses: Sequence[Loss],
        trained: list[list[Trained]],
        parts: Sequence[tuple[EncodedData, EncodedData]],
    ) -> tuple[BackOffRidge | None, Choice, Choice]:
        """Choose loss and calibration on held-out rows.

        Returns the learner that is to be refitted, if one is, the choice, and the choice among the trained models for
        the case that refitting is impossible.
        """
        data = parts[0][0]
        by_gradient = choice = choose(trained, Structure.naive_bayes(data.n_features), parts, n_jobs=self.n_jobs)
        self.loss_ = losses[choice.index]
        refits: list[BackOffRidge] = []
        structures = [one.structure for one in trained[choice.index] if one.structure is not None]
        is_small = (data.n_samples + parts[0][1].n_samples) * data.n_features * data.n_classes <= MOST_NUMBERS
        if len(losses) > 1 and is_small and all(map(_part_sums_out, structures, parts)):
            ways = itertools.product((ConditionalNLL(), Margin()), RIDGES)
            refits = [BackOffRidge(ridge=ridge, loss=loss, calibrate=False) for loss, ridge in ways]
            choice = choose([*trained, *refits], structures, parts, iterations=looks(MAX_ITER), n_jobs=self.n_jobs)
        refit = None
        if choice.index < len(losses):
            self.loss_ = losses[choice.index]
        else:
            refit = refits[choice.index - len(losses)]
        if len(losses) > 1:
            self._keep(choice, [*losses, *refits])
        return refit, choice, by_gradient

    def _keep(self, choice: Choice, learners: Sequence[Any]) -> None:
        """Keep the table of what held-out rows were asked, and say what they chose."""
        every, look = np.arange(len(learners)), choice.best_looks
        errors = choice.errors[every, look]
        settings = [{"learner": learner} for learner in learners]
        self.cv_results_ = {
            **cv_results(settings, 1 - choice.split_errors[:, every, look], 1 - errors),
            "mean_log_loss": choice.log_losses[every, look],
        }
        if self.verbose:
            print(  # noqa: T201
                f"chosen on held-out rows: {learners[choice.index]!r}, held-out error {errors[choice.index]:.2%}"
            )

    def _check_settings(self) -> None:
        """Refuse what cannot be learnt by terms."""
        super()._check_settings()
        if self.candidates == "unconstrained":
            raise ValueError("candidates='unconstrained' may form cycles, and k-trees have none: use 'order-free'.")
        if self.loss is not None and not isinstance(self.loss, DISCRIMINATIVE):
            raise ValueError(
                f"loss must be ConditionalNLL, Margin or HingeMargin, got {self.loss!r}: the scores of k-trees are not "
                f"normalised, so that only differences between classes mean something."
            )
        if self.checkpoint is not None and (self.loss is None or self.calibrate):
            raise ValueError(
                "a checkpoint is of one training, and held-out rows take several: name a loss, and set calibrate=False."
            )

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without dictionaries whose keys are tuples, which files other than pickles do not hold."""
        state: dict[str, Any] = super().__getstate__()
        if "structure_probabilities_" in state:
            choices = [list(choices.items()) for choices in state["structure_probabilities_"]]
            state = {**state, "structure_probabilities_": choices}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "structure_probabilities_" in state:
            choices = [dict(choices) for choices in state["structure_probabilities_"]]
            state = {**state, "structure_probabilities_": choices}
        super().__setstate__(state)

    def _get_state(self) -> dict[str, Any]:
        """Return what a file of the model holds beside parameters, classes and encoder."""
        learnt = {"structure_probabilities": self.structure_probabilities_, "loss": self.loss_}
        return {**super()._get_state(), **learnt}

    def _set_state(self, state: dict[str, Any]) -> None:
        """Take what a file holds; classes and encoder are there already."""
        probabilities, loss = state.pop("structure_probabilities", []), state.pop("loss", None)
        self.loss_ = check_loss(loss)
        super()._set_state(state)
        legal = set(range(self.structure_.n_features))
        proper = type(probabilities) is list and len(probabilities) == self.structure_.n_features
        if proper:
            pairs = [pair for choices in probabilities for pair in choices.items()]
            proper = all(
                type(key) is tuple and legal.issuperset(key) and type(p) is float and 0 <= p < np.inf
                for key, p in pairs
            )
        if not proper:
            raise ValueError("structure_probabilities must give every feature a dict of parents and probabilities.")
        self.structure_probabilities_ = probabilities


def _sums_out(structure: Structure, data: EncodedData, slack: int = 1) -> bool:
    """Return whether what rows miss can be summed out of a structure step by step in the time that there is.

    What is done less than a tenth as often, as the one training on all rows is, has ten times the time.
    """
    incomplete = np.flatnonzero(data.is_incomplete)
    if not incomplete.size:
        return True
    layout = TableLayout.of_parents(structure.parents, data.n_states, data.n_classes)
    return Eliminator(structure, layout).is_cheap(data.codes, incomplete, slack * MOST_SUMMED)


def _part_sums_out(structure: Structure, part: tuple[EncodedData, EncodedData]) -> bool:
    """Return the same of rows that are learnt from and of held-out ones, which are looked at some ten times."""
    return _sums_out(structure, part[0]) and _sums_out(structure, part[1], slack=10)
