"""Gradient TAN as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self, Unpack

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval

from tanlearn._threads import in_threads
from tanlearn.encoding.encoded_data import EncodedData
from tanlearn.encoding.table_encoder import TableEncoder
from tanlearn.estimators.class_prior import keep_offset
from tanlearn.estimators.deprecated_parameters import MOVED_OF_TAN, DeprecatedParameters, FormerOfTAN
from tanlearn.estimators.gradient_classifier import LEARNING_RATE, N_EPOCHS, GradientClassifier
from tanlearn.files.fingerprints import digest
from tanlearn.models.bayes_net import BayesNet
from tanlearn.models.calibration import Calibration
from tanlearn.models.tables import Tables
from tanlearn.parameters.held_out_selection import FittedTables, choose, held_out_parts
from tanlearn.parameters.hybrid_cv import MINI_BATCH_LOSS, HybridCV, default_learners
from tanlearn.parameters.learned_structure import are_relearned
from tanlearn.parameters.stochastic_gradient import StochasticGradient
from tanlearn.structures.structures import Structure
from tanlearn.training.few_bits import best_split, train_in_bits, trainings_in_bits
from tanlearn.training.gradient_training import GradientTraining
from tanlearn.training.losses import Hybrid, Loss, is_built_in, require_loss
from tanlearn.training.settings import TrainingOutcome, TrainingSettings
from tanlearn.training.training import Training

__all__ = ["TANClassifier"]

#: Minimum number of steps, and the learning rate, for structures of small data sets without a fixed ``n_epochs``. On
#: car (five folds), the test error fell from 2.0 % (subset) and 2.7 % (order-free), after 1,300 steps with a learning
#: rate of 0.01, to 0.8 % and 1.0 %.
N_STEPS, FAST = 2_000, 0.1


class TANClassifier(DeprecatedParameters, GradientClassifier):
    """Gradient TAN: tree structure and parameters trained jointly (differentiable TAN, 2020).

    For each mini-batch, one structure is drawn from a distribution over candidate parents. The gradient of the loss is
    passed directly to the CPTs of the drawn structure, and to the structure logits by a straight-through Gumbel-softmax
    estimator. After training, the most probable structure and its CPTs are kept. Learning rate and temperature decay
    exponentially, as in the paper.

    The defaults differ from the published settings (``loss=Hybrid(...)``, ``init="uniform"``, 500 epochs, rates 0.03
    and 0.001, temperature from 10). Training starts at smoothed frequencies, so that the structure converges in a fifth
    of the epochs. If ``loss`` is not set, the loss and the number of iterations for the parameters of the final
    structure are selected on held-out rows, and the probabilities are calibrated. See benchmarks/quality/defaults.md
    for a comparison of both settings on all data sets.

    Use :class:`~tanlearn.TermNetClassifier` instead if you want one accurate network. On the 39 data sets of
    benchmarks/quality/tables.md, its mean error is 13.32 % and its mean log loss is 0.324 nats, compared with 14.66 %
    and 0.355 nats for this class. Use this class for CPTs with few bits, for training on a GPU, or to reproduce
    published results.

    Missing values are marginalized in each drawn structure. A row contributes to the comparison of two candidate
    parents only if both parents and the feature are observed. If the candidates are single parents, a step takes little
    longer than on complete rows. If they are sets of several parents, a step takes several times as long, and uses one
    thread.

    Parameters
    ----------
    candidates : str, list, Candidates or CandidateSets, default="subset"
        Candidate parents of each feature. A feature may also have no parent. Pass one of:

        - a kind: ``"all"``, ``"subset"``, ``"heuristic"``, ``"information"``, ``"gain"``, ``"order-free"`` or
          ``"unconstrained"``;
        - a :class:`~tanlearn.Candidates`, with a kind, the number of candidates, the ordering, the image size, and
          required and forbidden edges;
        - a list with the candidate parents of each feature, or a :class:`~tanlearn.CandidateSets`.

        If the candidates can form a cycle, each drawn structure is a maximum-weight arborescence, that is, a tree. The
        exception is ``"unconstrained"``: parents are drawn independently and may form cycles. The model then only
        scores classes (pseudo-TAN, section 4.5). It is not a Bayesian network and cannot marginalize missing features.
    loss : Loss, optional
        Loss for structure and parameters. By default, both are trained with a :class:`~tanlearn.SoftHybrid`. For the
        same structure, parameters are then also trained with other losses and numbers of iterations, and the best
        parameters on held-out rows are kept (see :class:`~tanlearn.HybridCV`). With ``bits``, the default is
        ``Hybrid()``.
    n_epochs : int, optional
        Number of passes over the data. The default is 100. For small data sets without missing values, if neither
        ``loss`` nor ``bits`` is set, it is the number of epochs that gives 2,000 steps, because structure learning
        depends on the number of steps.
    training : GradientTraining, optional
        Learning rates, batch size, temperature, initialization, early stopping, callback and checkpoint; by default
        ``GradientTraining()``.
    bits : int or tuple of (int, int), optional
        Number of bits per CPT entry ([RE] III). By default, entries are floating-point numbers. A tuple contains the
        numbers of integer and fraction bits, either of which may be negative. An int from 1 to 16 is the sum of both
        numbers. In this case, six splits of the sum are trained, and the split with the fewest errors on held-out rows,
        or else on training rows, is kept. ``verbose=1`` prints the errors and losses of all splits.
    size_weight : float, default=0.0
        Penalty per CPT entry in the loss for structure learning ([RE] IV), in nats per entry and row. If 0, the size is
        not penalized. Large values lead to naive Bayes. The objective is ``mean loss + size_weight * expected number of
        entries``. An edge must therefore reduce the mean loss by ``size_weight`` for each entry that it adds. The
        lambda of [RE] eq. 17 refers to the sum over rows and equals ``n_samples * size_weight``. The expected size
        ([RE] eq. 18) treats the choices of the features as independent, which is an approximation for ``"order-free"``.
        The scale depends on the loss. With the hybrid losses of benchmarks/paper/resource_efficient, for example, 0.05
        is a large value on letter, and 1 on usps.
    calibrate : bool, default=True
        Whether to calibrate the probabilities on held-out rows. These are the rows of ``validation_fraction`` if it is
        set, and otherwise the folds of a cross-validation (for large data sets, only one fold with a fifth of the
        rows). Cut points are fitted within each fold. If rows times features times classes are at most 300,000,
        structures are also trained within each fold, so that held-out rows are equivalent to new rows.
    warm_start : bool, default=False
        Start from the result of the previous ``fit``, for example with another ``size_weight``. This requires an int
        ``random_state`` and the same candidates, columns and categories. The CPTs of all candidates are kept in memory,
        but not stored in model files.
    class_weight : None, "balanced" or dict, default=None
        Factor by which the sample weights of each class are multiplied. "balanced" gives all classes the same total
        weight.
    class_prior : array-like of shape (n_classes,), optional
        Class probabilities, in the order of ``classes_``. By default, they are the class frequencies of the training
        rows.
    encoder : TableEncoder, optional
        Encoder of raw columns. The default is ``TableEncoder()``.
    device : {"cpu", "cuda", "cuda:0", "cuda:1", ...}, default="cpu"
        Device for counting, training and prediction. "cuda" needs an NVIDIA GPU and ``tanlearn[cuda12]`` or
        ``tanlearn[cuda13]``. It is the first GPU, or the current device of CuPy. "cuda:1" is the second GPU. An
        operation that does not support CUDA raises an error. There is no fallback to the CPU. Encoding, sampling,
        completion and explanations always run on the CPU.
    n_jobs : int, optional
        Number of threads for encoding, prediction and cross-validation, and for training steps that read at least
        100,000 CPT rows (candidate CPTs times batch size, as for images), as in joblib. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed for ordering, candidates, initialization, batches and draws. The same rows, parameters and integer seed
        give the same model, bit for bit, on the same machine. Other processors may round differently. The CPTs then
        agree up to rounding, unless a rounding error changes a random choice.
    verbose : int, default=0
        If 1, about ten lines of progress are printed; if 2, one line per epoch.

    Attributes
    ----------
    structure_ : Structure
        The most probable structure, with ``structure_.parent`` and ``structure_.to_networkx()``.
    tables_ : Tables
        CPTs: log-probabilities of each feature given its parents and the class.
    structure_probabilities_ : list of dict
        For each feature, a dictionary from candidate parents (-1 for no parent) to the softmax of their logits. If
        parents are drawn independently, these are the probabilities of the parents. If trees are drawn, they are the
        probabilities before cycles are excluded.
    loss_ : Loss
        Loss with which the parameters were trained: ``loss``, or the selected loss.
    parameters_ : HybridCV
        The learner that selected the loss, with ``cv_results_`` and the number of iterations ``best_n_iter_``. It is
        set only if ``loss`` is None.
    calibration_ : Calibration
        Map from scores to probabilities. Its temperature and power are 1 if ``calibrate`` is False.
    candidates_ : CandidateSets
        Candidate parents of each feature.
    history_ : list of EpochReport
        One report per epoch.
    n_epochs_, n_iter_ : int
        Number of trained epochs, which is lower than planned if ``patience`` or ``callback`` stopped the training.
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

    References
    ----------
    Roth, Pernkopf: Differentiable TAN structure learning for Bayesian network classifiers. PGM 2020.

    [RE] Roth, Schindler, Fröning, Pernkopf: On resource-efficient Bayesian network classifiers and deep neural
    networks. ICPR 2020.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import GradientTraining, Hybrid, TANClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TANClassifier(candidates="order-free", loss=Hybrid(trade_off=10, gamma=1),
    ...                       training=GradientTraining(batch_size=20), random_state=0)
    >>> bool(model.fit(X, y).score(X, y) > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **GradientClassifier._parameter_constraints,
        "warm_start": ["boolean"],
        "size_weight": [Interval(Real, 0, None, closed="left")],
    }

    _moved: ClassVar[dict[str, str]] = MOVED_OF_TAN
    _start: tuple[str, Any, int]

    def __init__(
        self,
        *,
        candidates: Any = "subset",
        loss: Loss | None = None,
        n_epochs: int | None = None,
        training: GradientTraining | None = None,
        bits: Any = None,
        size_weight: float = 0.0,
        calibrate: bool = True,
        warm_start: bool = False,
        class_weight: Any = None,
        class_prior: Any = None,
        encoder: TableEncoder | None = None,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        **deprecated: Unpack[FormerOfTAN],
    ) -> None:
        self.candidates = candidates
        self.loss = loss
        self.n_epochs = n_epochs
        self.training = training
        self.bits = bits
        self.size_weight = size_weight
        self.calibrate = calibrate
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.class_prior = class_prior
        self.encoder = encoder
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self._take_former(dict(deprecated))

    def _learn(self, data: EncodedData, validation: EncodedData | None, rng: np.random.Generator) -> None:
        """Train by gradient, and keep the most probable structure."""
        arguments, options = self._arguments(data, validation, rng)
        options |= {"n_jobs": self.n_jobs, "checkpoint": self._training.checkpoint, "verbose": self.verbose}
        outcome = train_in_bits(*arguments, **options)
        self._take(outcome, arguments[1], options["validation"])

    def begin_encoded(self, data: EncodedData) -> list[Training]:
        """Return the trainings of :meth:`fit_encoded` without starting them, so that many can run together on CUDA.

        Parameters
        ----------
        data : EncodedData
            Encoded rows and classes.

        Returns
        -------
        list of Training
            Trainings that have not started. Pass their outcomes to :meth:`end_encoded`.

        Raises
        ------
        ValueError
            As in :meth:`fit_encoded`, or if ``checkpoint`` is set, which only :meth:`fit` and :meth:`fit_encoded`
            support.
        ImportError, RuntimeError
            If the device is not available.
        """
        self._begin()
        checkpoint = self._training.checkpoint
        if checkpoint is not None:
            raise ValueError(
                f"only fit and fit_encoded support a checkpoint, but checkpoint={checkpoint!r} is set. Set "
                f"checkpoint=None in GradientTraining."
            )
        arguments, options = self._arguments(*self._take_rows(data, None))
        return list(trainings_in_bits(*arguments, **options))

    def end_encoded(self, trainings: Sequence[Training], outcomes: Sequence[TrainingOutcome | Exception]) -> Self:
        """Fit the classifier from the outcomes of the trainings of :meth:`begin_encoded`.

        Parameters
        ----------
        trainings : sequence of Training
            Trainings from :meth:`begin_encoded`.
        outcomes : sequence of TrainingOutcome or Exception
            One outcome per training.

        Returns
        -------
        TANClassifier
            The fitted estimator, as after :meth:`fit_encoded`.

        Raises
        ------
        Exception
            The first exception in ``outcomes``.
        ValueError
            As in :meth:`fit_encoded`.
        """
        first = trainings[0]
        outcome = best_split(outcomes, first.data, first.validation, verbose=self.verbose)
        self._take(outcome, first.data, first.validation)
        return self._end(first.data.n_classes)

    def _arguments(
        self, data: EncodedData, validation: EncodedData | None, rng: np.random.Generator
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the positional and the keyword arguments of ``train_in_bits``."""
        self._check_settings()
        self.candidates_ = self._make_candidates(data, rng)
        data, validation = self._hold_out(data, validation, rng)
        settings = self._settings_of(data)
        default = clone(MINI_BATCH_LOSS) if self._is_open else Hybrid()
        self.loss_ = require_loss(default if self.loss is None else self.loss)
        self._key = self._start_key(data)
        none = self._key, None, 0
        before, start, _ = getattr(self, "_start", none) if self.warm_start else none
        if before != self._key:
            raise ValueError(
                "warm_start requires the same candidates, columns, categories, cut points and classes as the "
                "previous fit, but some of them have changed. Keep an integer random_state and the columns, or set "
                "warm_start=False."
            )
        arguments = self.bits, data, self.candidates_, self.loss_, settings, rng
        return arguments, {"validation": validation, "callback": self._report, "start": start}

    def _settings_of(self, data: EncodedData) -> TrainingSettings:
        """Return the settings of a training on some rows."""
        given = self._training
        return self._training_settings(
            *self._plan(data), init=given.init, dtype=given.dtype, size_weight=self.size_weight
        )

    def _take(self, outcome: TrainingOutcome, data: EncodedData, validation: EncodedData | None) -> None:
        """Set the fitted attributes from the outcome of a training."""
        self.structure_probabilities_ = outcome.probabilities
        self.history_ = outcome.history
        self.n_iter_ = self.n_epochs_ = len(outcome.history)
        #: Includes the epochs of earlier fits with ``warm_start``.
        self._n_epochs = self.n_iter_ + (self._start[2] if self.warm_start and hasattr(self, "_start") else 0)
        if self.warm_start:
            self._start = self._key, outcome.parameters, self._n_epochs
        self._settle(outcome.structure, outcome.tables, data, validation)

    def _settle(self, structure: Structure, tables: Tables, data: EncodedData, validation: EncodedData | None) -> None:
        """Select the loss, training length and calibration of the parameters on held-out rows, and set ``model_``."""
        self.calibration_, monotone = Calibration(), self._monotone_cpts(data)
        parts: Any = []
        if self._is_open or self.calibrate:
            parts = held_out_parts(data) if validation is None else [(data, validation)]
        trained_parts = self._train_parts(data, parts, tables.bits) if validation is None else None
        given = self._training
        settings: dict[str, Any] = {name: getattr(given, name) for name in ("batch_size", "init", "dtype")}
        settings |= {"learning_rate": given.learning_rate or LEARNING_RATE, "bits": tables.bits, "loss": self.loss_}
        if parts and self._is_open:
            # The additional epochs are needed only for the structure. CPTs are trained for the default number of
            # epochs.
            is_longer = self.n_epochs is None and self.n_iter_ > N_EPOCHS
            learners = default_learners(**settings, n_epochs=N_EPOCHS if is_longer else self._n_epochs)
            options: dict[str, Any] = self._directions()
            options |= {"calibrate": self.calibrate, "n_jobs": self.n_jobs, "verbose": int(self.verbose > 0)}
            chosen = HybridCV(learners=learners, **options)
            rng, trained = np.random.default_rng(0), None if is_longer else tables
            of_parts = None if is_longer and validation is None else trained_parts
            if validation is not None and trained is not None:
                of_parts = [FittedTables(trained)]
            structures = None if trained_parts is None else [one.structure or structure for one in trained_parts]
            tables = chosen.fit_on_parts(
                structure, data, parts, rng=rng, trained=trained, trained_parts=of_parts, structures=structures
            )
            self.parameters_, self.loss_, self.calibration_ = chosen, chosen.loss_, chosen.calibration_
        elif parts:
            learner: Any = StochasticGradient(**settings, n_epochs=self._n_epochs, calibrate=False)
            if validation is not None:
                learner = FittedTables(tables)
            elif trained_parts is not None:
                learner = trained_parts
            self.calibration_ = choose([learner], structure, parts, n_jobs=self.n_jobs, monotone=monotone).calibration
        if monotone is not None:
            tables = monotone.apply(tables)
        self.model_ = BayesNet(structure, tables)
        keep_offset(self, data.class_totals())

    def _train_parts(
        self, data: EncodedData, parts: Sequence[tuple[EncodedData, EncodedData]], bits: Any
    ) -> list[FittedTables] | None:
        """Train structure and CPTs on the training rows of each split, or return None if the data set is large.

        If the structure were learned with the held-out rows, their errors would be too optimistic. With structures that
        are learned without these rows, order-free models of noise have 1.00 times the log loss of the class frequencies
        (benchmarks.quality.noise, table "categories").
        """
        if not are_relearned(parts):
            return None
        settings = replace(self._settings_of(data), n_epochs=self._n_epochs, patience=None)

        def train(part: EncodedData) -> FittedTables:
            sets = self._candidates_of(part)
            rng = np.random.default_rng(0)
            outcome = train_in_bits(bits, part, sets, self.loss_, settings, rng, is_format_given=False)
            return FittedTables(outcome.tables, outcome.structure)

        return in_threads(train, [part for part, _ in parts], self.n_jobs)

    @property
    def _is_open(self) -> bool:
        """True if loss and training length are selected on held-out rows."""
        return self.loss is None and self.bits is None

    def _plan(self, data: EncodedData) -> tuple[int, float]:
        """Return the number of epochs and the initial learning rate."""
        # On six small data sets with missing values, the error is 10.2 % after 100 epochs, and 10.8 % after N_STEPS
        # steps.
        n_steps = 0 if data.has_missing or not self._is_open else N_STEPS
        n_epochs = self._enough_epochs(data, n_steps)
        is_longer = self.n_epochs is None and n_epochs > N_EPOCHS
        return n_epochs, self._training.learning_rate or (FAST if is_longer else LEARNING_RATE)

    def _start_key(self, data: EncodedData) -> str:
        """Return a digest of candidates, columns and categories, or an empty string without ``warm_start``."""
        if not self.warm_start:
            return ""
        encoder = getattr(self, "encoder_", None)
        known = [getattr(self, name, None) for name in ("feature_names_in_", "classes_")]
        learnt = [getattr(encoder, "categories_", None)]
        learnt.append(getattr(getattr(encoder, "discretizer_", None), "cut_points_", None))
        learnt.append(None if data.has_missing_category is None else data.has_missing_category.tolist())
        return digest(
            "warm start",
            [
                self.candidates_.parents,
                self.candidates_.selectable,
                data.n_states,
                data.n_classes,
                repr(known),
                repr(learnt),
            ],
        )

    def _get_state(self) -> dict[str, Any]:
        """Return the fitted attributes for a model file, except classes and encoder."""
        learnt = {"structure_probabilities": self.structure_probabilities_}
        # A custom loss cannot be stored. save raises an error if it is still a parameter.
        return {**super()._get_state(), **learnt, **({"loss": self.loss_} if is_built_in(self.loss_) else {})}

    def _set_state(self, state: dict[str, Any]) -> None:
        """Restore the fitted attributes from a file, after classes and encoder."""
        probabilities = state.pop("structure_probabilities", [])
        loss = state.pop("loss", None)  # in files of 0.1.0.dev0, only the parameter contains the loss
        self.loss_ = (Hybrid() if self.loss is None else self.loss) if loss is None else require_loss(loss)
        super()._set_state(state)
        legal = set(range(-1, self.structure_.n_features))
        pairs = [pair for choices in probabilities for pair in choices.items()]
        proper = all(type(j) is int and j in legal and type(p) is float and 0 <= p < np.inf for j, p in pairs)
        if type(probabilities) is not list or len(probabilities) != self.structure_.n_features or not proper:
            raise ValueError("structure_probabilities must have a dict of parents and probabilities for each feature.")
        self.structure_probabilities_ = probabilities
