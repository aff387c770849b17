"""Gradient k-trees with two augmenting parents per feature, as a scikit-learn estimator."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np
from sklearn.base import clone

from tanlearn._progress import print_line
from tanlearn._threads import in_threads
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.estimators.class_prior import keep_offset
from tanlearn.estimators.deprecated_parameters import MOVED, DeprecatedParameters, FormerOfGradient
from tanlearn.estimators.gradient_classifier import LEARNING_RATE, GradientClassifier
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.calibration import Calibration
from tanlearn.models.elimination import Eliminator
from tanlearn.parameters.back_off_ridge import RIDGES, BackOffRidge
from tanlearn.parameters.cv_results import cv_results
from tanlearn.parameters.held_out_selection import Choice, FittedTables, choose, evaluation_iterations, held_out_parts
from tanlearn.parameters.monotone_cpts import MonotoneCPTs
from tanlearn.structures.candidate_kinds import Candidates
from tanlearn.structures.structures import Structure
from tanlearn.structures.table_layout import TableLayout
from tanlearn.training.few_bits import train_in_bits
from tanlearn.training.gradient_training import GradientTraining
from tanlearn.training.losses import ConditionalNLL, HingeMargin, Loss, Margin, require_loss
from tanlearn.training.settings import TrainingOutcome

__all__ = ["KTreeClassifier"]

#: Losses that are compared on held-out rows. The error of the first loss is two percentage points lower on letter. The
#: error of the second loss is one percentage point lower on usps and satimage.
LOSSES: tuple[Loss, ...] = (ConditionalNLL(), Margin(scale=0.03, kappa=1, eta=10))
#: Losses that depend only on differences between class scores. Sums of terms are not normalized, so losses with the
#: joint likelihood are excluded.
DISCRIMINATIVE = ConditionalNLL, Margin, HingeMargin
#: Maximum size (rows times features times classes) up to which only the first loss is trained. On 14 data sets of up to
#: 300,000, the second loss was chosen in only 2 of 70 folds, because parameters are nearly always fitted again.
ONE_LOSS = 500_000
#: Minimum number of steps on small data sets.
N_STEPS = 2_000
#: Fraction of the default number of epochs in the trainings of splits, and size of data from which it applies, up to
#: ``ONE_LOSS``, if BackOffRidge is an option. On vehicle (61,000), half of the epochs increased the error by 0.8 points
#: (three folds); on krkopt (2,400,000), by 0.6 points (one fold).
SHORTER, SHORTER_FROM = 0.5, 70_000
#: Maximum size (rows times features times classes) up to which BackOffRidge is an option. It is chosen in most folds of
#: german and tic-tac-toe.
MOST_NUMBERS = 3_000_000
#: Maximum time, in microseconds, for marginalizing missing values at each of up to 2,400 steps of BackOffRidge. On
#: german, it takes 10,000 if a tenth of the values are missing, and 40,000 if a fifth are missing. With a twentieth of
#: the values missing, BackOffRidge reduced the log loss on four of eleven small data sets by 0.03 to 0.13, did not
#: increase it by 0.01 on any data set, and took 1.3 to 2.9 times as long. Errors fell on glass from 34.6 to 27.1 %, and
#: on balance-scale from 13.8 to 9.8 %. On the other data sets, they changed by -2.0 to 0.7 percentage points.
MOST_SUMMED = 20_000
MAX_ITER = 100


class _Comparison(NamedTuple):
    """Extent of the comparison of BackOffRidge learners."""

    n_refits: int  # number of learners that are compared on all splits
    n_splits: int  # number of first splits, on which these learners are chosen
    n_iter: int  # number of iterations on these splits
    patience: int  # number of iterations without a lower held-out error or log loss after which a run ends


#: With 2, 4 and all 6 learners, the error on german was 26.1, 25.4 and 25.3 % (ten folds).
FULL = _Comparison(n_refits=4, n_splits=2, n_iter=26, patience=20)
#: Comparison on data of more than ``SMALL_SIZE`` and up to ``ONE_LOSS``, where the full comparison would take three
#: times as long as a gradient TAN. With one instead of two learners, the error was 3.94 instead of 3.85 % on segment
#: (log loss 0.116 and 0.115) and equal on waveform-40 (three folds). On krkopt (2,400,000), the error would increase
#: from 27.3 to 28.8 %, and a gradient TAN takes longer (two folds).
MEDIUM = _Comparison(n_refits=1, n_splits=1, n_iter=17, patience=12)
SMALL_SIZE = 300_000
#: Bounds of the default number of candidate parents for "information". With 14 instead of 8 candidates, the held-out
#: error fell on usps from 3.3 to 2.8 %, on digits from 4.5 to 3.7 %, and on satimage from 10.0 to 9.6 %. On letter,
#: which has 16 features, it did not fall.
FEWEST, MOST = 8, 14


class KTreeClassifier(DeprecatedParameters, GradientClassifier):
    """Gradient k-trees: up to two augmenting parents per feature, trained jointly with the parameters.

    This model is not published in a paper. As in :class:`~tanlearn.TANClassifier`, a structure is drawn for each
    mini-batch. The gradient of the loss is passed to the parameters directly, and to the structure logits by a
    straight-through Gumbel-softmax estimator. The candidates of a feature are no parent, single parents and pairs of
    parents. A CPT entry is a sum of terms, ``w(x, y) + w(x, p, y) + w(x, q, y) + w(x, p, q, y)``. Pairs share the terms
    of their single parents, so all pairs with the same parent use the same evidence. For rare combinations of values,
    the terms of single parents dominate. The terms start at frequencies with the same back-off.

    The sums are unnormalized class scores. Normalization would reduce the accuracy on letter by two percentage points.
    The model can therefore predict classes, but cannot sample or complete rows. During training by gradient, terms with
    a missing value are left out. In prediction, missing features are marginalized exactly. If many missing features
    depend on each other, exact marginalization can take more than 1e9 operations per row. The scores of such a row are
    approximate, and an :class:`~tanlearn.InexactMarginalizationWarning` names the row. The environment variable
    ``TANLEARN_MAX_ROW_OPERATIONS`` sets another limit. If most values are missing, :class:`~tanlearn.TANClassifier` and
    :class:`~tanlearn.BayesForestClassifier` are faster.

    If ``loss`` is not set and rows times features times classes exceed 500,000, one of two losses is chosen on held-out
    rows. For smaller data sets, the loss is ``ConditionalNLL()``. Up to 3,000,000, :class:`~tanlearn.BackOffRidge` for
    the learned structure is another option, provided that marginalizing the missing values of the training rows is fast
    enough.

    Parameters
    ----------
    candidates : str, list, Candidates or CandidateSets, default="information"
        Candidate parents of each feature, which are used alone and in pairs. Pass one of:

        - a kind: ``"information"``, ``"gain"``, ``"all"`` (with d features, d^3 / 6 pairs), ``"subset"``,
          ``"heuristic"`` or ``"order-free"``. The default number of candidates for ``"information"`` is half the number
          of features, but at least 8 and at most 14;
        - a :class:`~tanlearn.Candidates`, with a kind, the number of candidates, the ordering, the image size, and
          required and forbidden edges;
        - a list with the candidate parents of each feature, or a :class:`~tanlearn.CandidateSets`.

        Without an ordering, parents are assigned to one feature after another, by decreasing gain. Parents that would
        close a cycle are skipped.
    loss : ConditionalNLL, Margin or HingeMargin, optional
        Loss for structure and parameters. The default is ``ConditionalNLL()``. If rows times features times classes
        exceed 500,000, held-out rows are used to choose between this loss and ``Margin(scale=0.03, kappa=1, eta=10)``.
    n_epochs : int, optional
        Number of passes over the data. The default is 100 or, on small data sets, the number that gives 2,000 steps. If
        rows times features times classes are between 70,000 and 500,000, and :class:`~tanlearn.BackOffRidge` is an
        option, the trainings on splits have half as many epochs by default.
    training : GradientTraining, optional
        Learning rates, batch size, temperature, early stopping, callback and checkpoint; by default
        ``GradientTraining()``. A checkpoint needs a ``loss`` and ``calibrate=False``, because selection and calibration
        need several trainings.
    bits : int or tuple of (int, int), optional
        Number of bits per CPT entry: integer and fraction bits, or their sum from 1 to 16, as in
        :class:`~tanlearn.TANClassifier`. If ``bits`` is set, the default loss is ``ConditionalNLL()``, and no loss is
        selected.
    calibrate : bool, default=True
        Whether to calibrate the probabilities on held-out rows. These are the rows of ``validation_fraction`` if it is
        set, and otherwise the folds of a cross-validation (for large data sets, only one fold with a fifth of the
        rows). Each fold requires one training.
    class_weight : None, "balanced" or dict, default=None
        Factor by which the sample weights of each class are multiplied. "balanced" gives all classes the same total
        weight.
    class_prior : array-like of shape (n_classes,), optional
        Class probabilities, in the order of ``classes_``. By default, they are the class frequencies of the training
        rows.
    encoder : TableEncoder, optional
        Encoder of raw columns. The default is ``TableEncoder()``.
    n_jobs : int, optional
        Number of threads for encoding and prediction, and for the trainings of cross-validation, as in joblib. Results
        do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed for ordering, candidates, batches and draws. The same rows, parameters and integer seed give the same
        model, bit for bit, on the same machine.
    verbose : int, default=0
        If 1, about ten lines of progress and the selected learner are printed; if 2, one line per epoch.

    Attributes
    ----------
    structure_ : Structure
        The most probable structure. ``structure_.parents`` contains the parents of each feature, and
        ``structure_.to_networkx()`` returns the graph.
    tables_ : Tables
        Unnormalized scores of the values of each feature given its parents and the class.
    structure_probabilities_ : list of dict
        For each feature, a dictionary from candidates (tuples of parents) to the softmax of their logits, before cycles
        are excluded.
    loss_ : Loss
        Loss with which structure and parameters were trained.
    refit_ : BackOffRidge or None
        Learner that fitted the parameters again for the final structure. It is None if this was not better on held-out
        rows, or if missing values of the training rows cannot be marginalized fast enough in this structure.
    cv_results_ : dict
        Results on held-out rows, as in scikit-learn: ``param_learner`` (a loss, or a ``BackOffRidge``),
        ``mean_test_score``, ``mean_log_loss`` and others. It is set only if ``loss`` is None. If there are several
        splits, it contains the learners that are compared on all of them: one loss, and the four ``BackOffRidge``
        learners with the lowest log loss on the first two splits. If rows times features times classes are between
        300,000 and 500,000, it contains only the learner with the lowest log loss on the first split.
    calibration_ : Calibration
        Map from scores to probabilities. Its temperature and power are 1 if ``calibrate`` is False.
    candidates_ : CandidateSets
        Candidate parents of each feature.
    history_ : list of EpochReport
        One report per epoch of the final training.
    n_epochs_, n_iter_ : int
        Number of epochs of the final training.
    classes_ : ndarray of shape (n_classes,)
        Class labels in sorted order.
    encoder_ : TableEncoder
        The fitted encoder.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, set only if ``X`` had column names.
    n_parameters_ : int
        Number of free parameters.

    See Also
    --------
    tanlearn.TANClassifier : At most one augmenting parent per feature; a Bayesian network.

    Examples
    --------
    >>> import numpy as np
    >>> from tanlearn import Candidates, KTreeClassifier
    >>> X = np.random.default_rng(0).integers(0, 2, (500, 6))
    >>> y = X[:, 0] ^ X[:, 1] ^ X[:, 2]  # a tree with one parent per feature cannot represent it
    >>> model = KTreeClassifier(candidates=Candidates("all", ordering=range(6)), random_state=0).fit(X, y)
    >>> model.score(X, y), model.structure_.parents[2].tolist()
    (1.0, [0, 1])
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        name: rule for name, rule in GradientClassifier._parameter_constraints.items() if name != "device"
    }
    _moved: ClassVar[dict[str, str]] = MOVED
    _n_parents: ClassVar[int] = 2

    device = "cpu"
    refit_: BackOffRidge | None

    def __init__(
        self,
        *,
        candidates: Any = "information",
        loss: Loss | None = None,
        n_epochs: int | None = None,
        training: GradientTraining | None = None,
        bits: Any = None,
        calibrate: bool = True,
        class_weight: Any = None,
        class_prior: Any = None,
        encoder: TableEncoder | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        **deprecated: Unpack[FormerOfGradient],
    ) -> None:
        self.candidates = candidates
        self.loss = loss
        self.n_epochs = n_epochs
        self.training = training
        self.bits = bits
        self.calibrate = calibrate
        self.class_weight = class_weight
        self.class_prior = class_prior
        self.encoder = encoder
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self._take_former(dict(deprecated))

    def _learn(self, data: EncodedData, validation: EncodedData | None, rng: np.random.Generator) -> None:
        """Select loss, refit and calibration on held-out rows, and train by gradient on all rows."""
        self._check_settings()
        data, validation = self._hold_out(data, validation, rng)
        self.candidates_ = self._make_candidates(data, rng)
        seed = int(rng.integers(2**63))
        self.loss_ = clone(LOSSES[0]) if self.loss is None else require_loss(self.loss)
        self.calibration_, monotone = Calibration(), self._monotone_cpts(data)
        parts: Any = []
        if self._is_open or self.calibrate:
            parts = held_out_parts(data) if validation is None else [(data, validation)]
        refit, choice, by_gradient = None, None, None
        if parts:
            losses, trained = self._train_parts(parts, seed, monotone)
            refit, choice, by_gradient = self._choose(losses, trained, parts, monotone)
        outcome = self._train(self.loss_, data, validation, seed, is_last=True)
        tables = outcome.tables
        if refit is not None and not _sums_out(outcome.structure, data, slack=10):  # unlike in the folds
            refit, choice = None, by_gradient
            if self.verbose:
                print_line("not refitted: marginalizing missing values in the final structure takes too long")
        if refit is not None and choice is not None:
            start = refit.start(outcome.structure, data, np.random.default_rng(0))
            tables = refit.improve(start, data, n_iter=choice.n_iter)
        if choice is not None and self.calibrate:
            self.calibration_ = choice.calibration
        self.structure_probabilities_ = outcome.probabilities
        self.history_ = outcome.history
        self.n_iter_ = self.n_epochs_ = len(outcome.history)
        self.refit_ = refit
        self.model_ = BayesNet(outcome.structure, tables if monotone is None else monotone.apply(tables))
        keep_offset(self, data.class_totals())

    def _repeated_params(self) -> dict[str, Any]:
        """Return parameters for a copy that repeats the training without any selection on its validation rows."""
        return {"loss": self.loss_, "calibrate": False}

    def _check_generative(self) -> bool:
        """Raise an AttributeError, because the scores of a k-tree are not log probabilities of rows."""
        raise AttributeError(
            "KTreeClassifier cannot sample or complete rows, because it does not model the distribution of rows. "
            "Use TANClassifier or NaiveBayesClassifier."
        )

    def _candidate_settings(self, data: EncodedData) -> Any:
        """Return ``candidates``. The default number for "information" is half the number of features, from 8 to 14."""
        settings = self._resolve_settings("candidates")
        if self._kind == "information" and settings.n_candidates is None:
            limit = min(max(data.n_features // 2, FEWEST), MOST)
            return Candidates("information", n_candidates=limit, ordering=settings.ordering)
        return self.candidates

    def _train(
        self,
        loss: Loss,
        data: EncodedData,
        validation: EncodedData | None,
        seed: int,
        *,
        is_last: bool = False,
        fraction: float = 1.0,
    ) -> TrainingOutcome:
        """Train structure and parameters with one loss, for a fraction of the default number of epochs."""
        learning_rate = self._training.learning_rate or LEARNING_RATE
        n_epochs = self._enough_epochs(data, N_STEPS)
        n_epochs = n_epochs if self.n_epochs is not None else math.ceil(fraction * n_epochs)
        settings = self._training_settings(n_epochs, learning_rate, terms=True)
        options: dict[str, Any] = {"validation": validation}
        if is_last:
            options |= {
                "callback": self._report,
                "checkpoint": self._training.checkpoint,
                "verbose": self.verbose,
                "n_jobs": self.n_jobs,
            }
        rng = np.random.default_rng(seed)
        candidates = self.candidates_ if is_last else self._candidates_of(data)
        return train_in_bits(self.bits, data, candidates, loss, settings, rng, **options)

    @property
    def _is_open(self) -> bool:
        """True if the learner is selected on held-out rows."""
        return self.loss is None and self.bits is None

    def _train_parts(
        self, parts: Sequence[tuple[EncodedData, EncodedData]], seed: int, monotone: MonotoneCPTs | None
    ) -> tuple[list[Loss], list[list[FittedTables]]]:
        """Train on the training rows of each split.

        Returns the losses and, for each loss, one model per split. If there are several splits, only one loss is
        trained on all of them. On small data sets, this is the first loss, because parameters are nearly always fitted
        again. Otherwise, it is the loss that is better on the first split.
        """

        def train(losses: Sequence[Loss], parts: Sequence[tuple[EncodedData, EncodedData]]) -> list[list[FittedTables]]:
            tasks = [(loss, data) for loss in losses for data, _ in parts]
            outcomes = in_threads(
                lambda task: self._train(task[0], task[1], None, seed, fraction=fraction), tasks, self.n_jobs
            )
            trained = [FittedTables(outcome.tables, outcome.structure) for outcome in outcomes]
            return [trained[first : first + len(parts)] for first in range(0, len(trained), len(parts))]

        is_shorter = self._is_open and SHORTER_FROM < _size(parts) <= ONE_LOSS
        fraction = SHORTER if is_shorter else 1.0
        if not self._is_open or _size(parts) <= ONE_LOSS:
            return [self.loss_], train([self.loss_], parts)
        losses: list[Loss] = [clone(loss) for loss in LOSSES]
        trained = train(losses, parts[:1])
        if len(parts) > 1:
            structure = Structure.naive_bayes(parts[0][0].n_features)
            best = choose(trained, structure, parts[:1], n_jobs=self.n_jobs, monotone=monotone).index
            losses = [losses[best]]
            trained = [trained[best] + train(losses, parts[1:])[0]]
        return losses, trained

    def _choose(
        self,
        losses: Sequence[Loss],
        trained: list[list[FittedTables]],
        parts: Sequence[tuple[EncodedData, EncodedData]],
        monotone: MonotoneCPTs | None,
    ) -> tuple[BackOffRidge | None, Choice, Choice]:
        """Select learner and calibration on held-out rows.

        Returns the learner for refitting (None for a model trained by gradient), the selection, and, in case refitting
        is impossible, the selection among only the models trained by gradient.
        """
        data = parts[0][0]
        options: dict[str, Any] = {"n_jobs": self.n_jobs, "monotone": monotone}
        by_gradient = choice = choose(trained, Structure.naive_bayes(data.n_features), parts, **options)
        self.loss_ = losses[choice.index]
        refits: list[BackOffRidge] = []
        structures = [one.structure for one in trained[choice.index] if one.structure is not None]
        if self._is_open and _size(parts) <= MOST_NUMBERS and all(map(_part_sums_out, structures, parts)):
            ways = itertools.product((ConditionalNLL(), Margin()), RIDGES)
            refits = [BackOffRidge(ridge=ridge, loss=loss, calibrate=False) for loss, ridge in ways]
            extent = MEDIUM if SMALL_SIZE < _size(parts) <= ONE_LOSS else FULL
            options["patience"] = extent.patience
            if len(parts) > 2:  # compare the learners that are best on few splits
                few, n_splits = evaluation_iterations(extent.n_iter), extent.n_splits
                screened = choose(refits, structures[:n_splits], parts[:n_splits], iterations=few, **options)
                losses_of = screened.log_losses[np.arange(len(refits)), screened.best_evaluations]
                refits = [refits[i] for i in np.sort(np.argsort(losses_of, kind="stable")[: extent.n_refits])]
            iterations = evaluation_iterations(MAX_ITER)
            choice = choose([*trained, *refits], structures, parts, iterations=iterations, **options)
        refit = None
        if choice.index < len(losses):
            self.loss_ = losses[choice.index]
        else:
            refit = refits[choice.index - len(losses)]
        if self._is_open:
            self._keep(choice, [*losses, *refits])
        return refit, choice, by_gradient

    def _keep(self, choice: Choice, learners: Sequence[Any]) -> None:
        """Set ``cv_results_``, and print the chosen learner if ``verbose``."""
        every, best = np.arange(len(learners)), choice.best_evaluations
        errors = choice.errors[every, best]
        settings = [{"learner": learner} for learner in learners]
        self.cv_results_ = {
            **cv_results(settings, 1 - choice.split_errors[:, every, best], 1 - errors),
            "mean_log_loss": choice.log_losses[every, best],
        }
        if self.verbose:
            print_line(
                f"chosen on held-out rows: {learners[choice.index]!r}, held-out error {errors[choice.index]:.2%}"
            )

    def _check_settings(self) -> None:
        """Raise an error for settings that k-trees do not support."""
        super()._check_settings()
        if self._kind == "unconstrained":
            raise ValueError(
                "k-trees must not have cycles, which candidates='unconstrained' may form. Use candidates='order-free'."
            )
        if self.loss is not None and not isinstance(self.loss, DISCRIMINATIVE):
            raise ValueError(
                f"loss must be ConditionalNLL, Margin or HingeMargin, because scores of k-trees are not normalized "
                f"and only differences between classes are meaningful, got {self.loss!r}."
            )
        for name in ("init", "dtype"):
            given, only = getattr(self._training, name), getattr(GradientTraining(), name)
            if given != only:
                raise ValueError(f"k-trees support only {name}={only!r}, got {given!r}. Leave {name} out.")
        if self._training.checkpoint is not None and (self.loss is None or self.calibrate):
            raise ValueError(
                "a checkpoint can store only one training, but selection on held-out rows needs several. Set loss, "
                "and set calibrate=False."
            )

    def __getstate__(self) -> dict[str, Any]:
        """Return the state. Lists of pairs replace dictionaries, because only pickle supports tuples as keys."""
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
        """Return the fitted attributes for a model file, except classes and encoder."""
        learnt = {"structure_probabilities": self.structure_probabilities_, "loss": self.loss_}
        return {**super()._get_state(), **learnt}

    def _set_state(self, state: dict[str, Any]) -> None:
        """Restore the fitted attributes from a file, after classes and encoder."""
        probabilities, loss = state.pop("structure_probabilities", []), state.pop("loss", None)
        self.loss_ = require_loss(loss)
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
            raise ValueError("structure_probabilities must have a dict of parents and probabilities for each feature.")
        self.structure_probabilities_ = probabilities


def _size(parts: Sequence[tuple[EncodedData, EncodedData]]) -> int:
    """Return rows times features times classes for the rows of a split."""
    data, held_out = parts[0]
    return (data.n_samples + held_out.n_samples) * data.n_features * data.n_classes


def _sums_out(structure: Structure, data: EncodedData, slack: int = 1) -> bool:
    """Return whether missing values of rows can be marginalized in a structure with at most ``MOST_SUMMED`` operations.

    The limit is multiplied by ``slack``, which is 10 for steps that run at most a tenth as often, such as the final
    training on all rows.
    """
    incomplete = np.flatnonzero(data.is_incomplete)
    if not incomplete.size:
        return True
    layout = TableLayout.of_parents(structure.parents, data.n_states, data.n_classes)
    return Eliminator(structure, layout).is_cheap(data.codes, incomplete, slack * MOST_SUMMED)


def _part_sums_out(structure: Structure, part: tuple[EncodedData, EncodedData]) -> bool:
    """Apply ``_sums_out`` to training rows, and to held-out rows, which are scored less often, with a slack of 10."""
    return _sums_out(structure, part[0]) and _sums_out(structure, part[1], slack=10)
