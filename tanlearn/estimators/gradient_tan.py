"""Gradient TAN as a scikit-learn estimator."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils._param_validation import Interval, StrOptions

from tanlearn._threads import in_threads
from tanlearn.data.encoded_data import EncodedData
from tanlearn.data.table_encoder import TableEncoder
from tanlearn.estimators.generation import GenerativeMixin
from tanlearn.estimators.gradient import LEARNING_RATE, N_EPOCHS, GradientClassifier
from tanlearn.files.fingerprints import digest
from tanlearn.network.calibration import Calibration
from tanlearn.network.tables import Tables
from tanlearn.parameters.held_out import Trained, choose, held_out_parts
from tanlearn.parameters.hybrid_cv import MINI_BATCH_LOSS, HybridCV, default_learners
from tanlearn.parameters.learned_structure import are_relearned
from tanlearn.parameters.stochastic_gradient import StochasticGradient
from tanlearn.training.few_bits import best_split, train_in_bits, trainings_in_bits
from tanlearn.training.losses import Hybrid, Loss, check_loss, is_built_in
from tanlearn.training.settings import EpochReport, TrainingOutcome, TrainingSettings
from tanlearn.training.training import Training

__all__ = ["TANClassifier"]

#: What the structure of a small table gets, if it may: so many steps at least, at such a rate. After 1,300 steps at
#: 0.01, 2.0 (subset) and 2.7 % (order-free) of the test rows of car were wrong, five folds; after these, 0.8 and 1.0.
N_STEPS, FAST = 2_000, 0.1


class TANClassifier(GenerativeMixin, GradientClassifier):
    """Gradient TAN: tree structure and parameters learnt together (differentiable TAN, 2020).

    Every mini-batch draws one structure from a learnt distribution over candidate parents; the gradient of the loss
    reaches the drawn tables directly and the distribution straight through a Gumbel softmax. Afterwards the most
    probable structure is kept, with its tables only. Rate and temperature fall exponentially, as published. The
    defaults are not the published ones (``loss=Hybrid(...)``, ``init="uniform"``, 500 epochs, rates 0.03 and 0.001,
    temperature from 10): they start at the frequencies, with a structure that settles sooner, in a fifth of the epochs;
    and where no loss is named, held-out rows choose with which one, and for how long, the parameters of that structure
    are learnt, and how scores become probabilities. How both do beside fixed settings, on all sets at hand:
    benchmarks/quality/defaults.md.

    Rows may miss features. These are summed out under each drawn structure, and a row helps to choose between two
    parents where it has both and the feature. Where candidates have one parent, that takes little longer than on
    complete rows; of several parents, steps are not compiled as a whole and take several times as long, on one thread.

    Parameters
    ----------
    candidates : str, list or CandidateSets, default="subset"
        Parents that a feature may choose from, besides none:

        - ``"all"``: every feature before it in the ordering;
        - ``"subset"``: at most ``n_candidates`` random ones of these;
        - ``"heuristic"``: the ``n_candidates`` nearest pixels before it, for images;
        - ``"information"``: the ``n_candidates`` features that tell most about it where the class is known, of those
          before it in the ordering, or if there is none, of all: draws are arborescences then;
        - ``"order-free"``: any other feature; each draw is a maximum-weight arborescence, so the structure is
          a tree without an ordering fixed beforehand (here and above, features of one value are left out);
        - ``"unconstrained"``: any other feature, each choice by itself. The result may have cycles: it is a
          scorer (pseudo-TAN, section 4.5), no Bayesian network, and cannot sum out missing features;
        - a list with the candidate parents of every feature, or a :class:`~tanlearn.CandidateSets`. If they could
          form a cycle, draws are arborescences.
    n_candidates : int, optional
        At most so many candidate parents a feature, for the kinds other than ``"all"``. By default 8 for
        ``"subset"``, ``"heuristic"`` and ``"information"`` and no limit for ``"unconstrained"`` and ``"order-free"``.
        For one ``random_state``, smaller sets are subsets of larger ones.
    ordering : array-like of shape (n_features,) or {"A", "B", "C"}, optional
        Order of the features for ``"all"`` and ``"subset"`` (random by default) and ``"information"`` (none by
        default), or the pixel order for ``"heuristic"`` (C by default).
    image_shape : tuple of (height, width), optional
        For ``"heuristic"``; pixel (row, column) is feature ``row * width + column``.
    loss : Loss, optional
        Any loss, for structure and parameters. By default they are learnt with a :class:`~tanlearn.SoftHybrid`, and
        then held-out rows choose between these parameters and others for the same structure, with another loss and for
        as many iterations as they want: see :class:`~tanlearn.HybridCV`. (With ``bits``, ``Hybrid()``.)
    learning_rate : float, optional
        Adam's rate for the tables at the start; it falls exponentially to a thousandth. By default 0.01, or 0.1 where a
        small table's structure takes more than 100 epochs (see ``n_epochs``).
    structure_learning_rate : float, default=0.01
        Adam's rate for the structure logits, constant.
    n_epochs : int, optional
        Passes over the data; 100 by default. Where ``loss`` is left out, too, structures of small tables without gaps
        get as many as 2,000 steps take: not passes decide, but steps.
    batch_size : int, default=100
        Rows a step; the last partial batch of an epoch is dropped.
    temperature : tuple of (float, float), default=(1.0, 0.1)
        Softmax temperature of the first and the last epoch.
    init : {"uniform", "maximum-likelihood"}, default="maximum-likelihood"
        Start of the tables: random from U(-0.1, 0.1), or smoothed frequencies.
    validation_fraction : float, optional
        Share of the rows held out, by class, before categories and cuts are learnt. The parameters of the best
        epoch on them are kept.
    patience : int, optional
        With ``validation_fraction``: stop after that many epochs without a better validation error.
    dtype : {"float32", "float64"}, default="float32"
        Type of the parameters while training; the fitted tables are float64, or with ``bits`` integers.
    bits : int or tuple of (int, int), optional
        Train for tables of so few bits a number ([RE] III): integer and fraction bits, of which either may be negative,
        or their sum, 1 to 16. Then six splits are trained and the one with the fewest errors is kept, on held-out rows
        if there are any. ``verbose=1`` prints which, with the errors and losses of all.
    calibrate : bool, default=True
        Whether held-out rows find a scale by which scores become probabilities. They are those of
        ``validation_fraction``, or else folds (of large tables, a fifth of the rows once). Folds fit their own cut
        points; up to 300,000 numbers (rows times features times classes) they also train their own structures, so that
        held-out rows are as new as those of prediction.
    size_weight : float, default=0.0
        Price of a number in the tables, in the loss by which the structure is learnt ([RE] IV), in nats a number and
        row: from 0, any tree, to naive Bayes where it is large. It stands beside the mean loss of rows, ``mean loss +
        size_weight (expected numbers)``, so that an edge must save ``size_weight`` nats a row for every number that it
        adds; the lambda of [RE] eq. 17, which stands beside their sum, is ``n_samples size_weight``. The expected
        size ([RE] eq. 18) takes the choice of every feature by itself, which for ``"order-free"`` is an approximation.
        What is large depends on the loss: 0.05 on letter and 1 on usps, for the hybrid losses of
        benchmarks/paper/resource_efficient.
    warm_start : bool, default=False
        Start where the previous ``fit`` ended, as with another ``size_weight``: the same int ``random_state``,
        candidates, columns and categories are needed. It costs memory for all candidates' tables; files do not keep
        them.
    class_weight : None, "balanced" or dict, default=None
        Factors of the rows' weights by class; "balanced" gives all classes the same weight.
    class_prior : array-like of shape (n_classes,), optional
        Probabilities of the classes, in sorted order, in place of those learnt.
    encoder : TableEncoder, optional
        How raw columns become codes; by default ``TableEncoder()``.
    device : {"cpu", "cuda"}, default="cpu"
        Where rows are counted, tables are trained and classes are predicted. "cuda" needs an NVIDIA device and
        ``tanlearn[cuda12]`` or ``tanlearn[cuda13]``; what cannot be done there is refused, and nothing falls back.
        Encoding, and drawing, completing and explaining rows, stay on the CPU.
    n_jobs : int, optional
        Threads for encoding and prediction, for learners that held-out rows judge, and for steps that read 100,000
        table rows and more (tables times batch size: images), as in joblib. Results do not depend on it.
    random_state : int, RandomState, Generator or None, default=None
        Seed of ordering, candidates, start, batches and draws. The same rows, parameters and int give the same model,
        bit for bit, on the same machine. Another processor rounds otherwise: the same draws, and tables that agree to
        rounding until a draw tips over.
    verbose : int, default=0
        1 prints about ten lines of progress, 2 a line an epoch.
    callback : callable, optional
        Called after every epoch with an :class:`~tanlearn.EpochReport`; a true answer stops the training, and what
        held-out rows choose follows.
    checkpoint : str or path, optional
        A file that finished epochs are written to: before the first one, then at the first end of an epoch after ten
        seconds, or after 50 times what the last writing took if that is more, and at the end, by Ctrl-C or an error
        too. (SIGTERM and SIGKILL end a process without.) Another ``fit`` with the same rows, parameters and int
        ``random_state`` goes on from there, to the model of a training without a break, bit for bit; the file of one
        that is over goes on after its epochs. What a ``callback`` has stopped is not over. The file of any other
        training is refused: name one a training, and none in cross-validation. One path is for one process at a time:
        of two, the later writer would replace the other's epochs. (A loss of your own is known by its name and
        attributes, not by its code.)

    Attributes
    ----------
    structure_ : Structure
        The most probable structure; ``structure_.parent`` and ``structure_.to_networkx()``.
    tables_ : Tables
        Log-probabilities of every feature given its parents and the class.
    structure_probabilities_ : list of dict
        For every feature the softmax of its candidates' logits, by parent, -1 for none: the probability of being
        drawn, or where whole trees are drawn, the feature's preference before cycles are ruled out.
    loss_ : Loss
        What the parameters were learnt with: yours, or the one chosen.
    parameters_ : HybridCV
        What chose it, with ``cv_results_`` and the iterations in ``best_n_iter_``; not set with a ``loss`` of yours.
    calibration_ : Calibration
        How scores become probabilities; of temperature and power 1 without ``calibrate``.
    candidates_ : CandidateSets
        What there was to choose from.
    history_ : list of EpochReport
        One report an epoch.
    n_epochs_, n_iter_ : int
        Epochs that were trained: fewer than planned where ``patience`` or ``callback`` ended them.
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

    References
    ----------
    Roth, Pernkopf: Differentiable TAN structure learning for Bayesian network classifiers. PGM 2020.

    [RE] Roth, Schindler, Froening, Pernkopf: On resource-efficient Bayesian network classifiers and deep neural
    networks. ICPR 2020.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from tanlearn import Hybrid, TANClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = TANClassifier(candidates="order-free", loss=Hybrid(trade_off=10, gamma=1), batch_size=20,
    ...                       random_state=0)
    >>> bool(model.fit(X, y).score(X, y) > 0.95)
    True
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **GradientClassifier._parameter_constraints,
        "init": [StrOptions({"uniform", "maximum-likelihood"})],
        "dtype": [StrOptions({"float32", "float64"})],
        "warm_start": ["boolean"],
        "size_weight": [Interval(Real, 0, None, closed="left")],
    }

    _start: tuple[str, Any, int]

    def __init__(
        self,
        *,
        candidates: Any = "subset",
        n_candidates: int | None = None,
        ordering: Any = None,
        image_shape: tuple[int, int] | None = None,
        loss: Loss | None = None,
        learning_rate: float | None = None,
        structure_learning_rate: float = 0.01,
        n_epochs: int | None = None,
        batch_size: int = 100,
        temperature: tuple[float, float] = (1.0, 0.1),
        init: str = "maximum-likelihood",
        validation_fraction: float | None = None,
        patience: int | None = None,
        dtype: str = "float32",
        bits: Any = None,
        calibrate: bool = True,
        size_weight: float = 0.0,
        warm_start: bool = False,
        class_weight: Any = None,
        class_prior: Any = None,
        encoder: TableEncoder | None = None,
        device: str = "cpu",
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
        self.init = init
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.dtype = dtype
        self.bits = bits
        self.calibrate = calibrate
        self.size_weight = size_weight
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.class_prior = class_prior
        self.encoder = encoder
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
        self.checkpoint = checkpoint

    def _learn(self, data: EncodedData, validation: EncodedData | None, rng: np.random.Generator) -> None:
        """Train by gradient and keep the most probable structure."""
        arguments, options = self._arguments(data, validation, rng)
        options |= {"n_jobs": self.n_jobs, "checkpoint": self.checkpoint, "verbose": self.verbose}
        outcome = train_in_bits(*arguments, **options)
        self._take(outcome, arguments[1], options["validation"])

    def begin_encoded(self, data: EncodedData) -> list[Training]:
        """Return the trainings that :meth:`fit_encoded` would make, for CUDA, where many are made at once.

        Parameters
        ----------
        data : EncodedData
            Encoded rows and classes.

        Returns
        -------
        list of Training
            Not begun. Hand what comes of them to :meth:`end_encoded`.

        Raises
        ------
        ValueError
            As :meth:`fit_encoded`, and if there is a checkpoint, which only that one keeps.
        ImportError, RuntimeError
            If the device is not there.
        """
        self._begin()
        if self.checkpoint is not None:
            raise ValueError(f"checkpoint={self.checkpoint!r} is kept by fit and fit_encoded only: leave it out.")
        arguments, options = self._arguments(*self._take_rows(data, None))
        return list(trainings_in_bits(*arguments, **options))

    def end_encoded(self, trainings: Sequence[Training], outcomes: Sequence[TrainingOutcome | Exception]) -> Self:
        """Keep what has come of the trainings of :meth:`begin_encoded`.

        Parameters
        ----------
        trainings : sequence of Training
            Those.
        outcomes : sequence of TrainingOutcome or Exception
            One a training.

        Returns
        -------
        TANClassifier
            The estimator itself, as after :meth:`fit_encoded`.

        Raises
        ------
        Exception
            The first, if a training has failed.
        ValueError
            As :meth:`fit_encoded`, of which this is the end.
        """
        first = trainings[0]
        outcome = best_split(outcomes, first.data, first.validation, verbose=self.verbose)
        self._take(outcome, first.data, first.validation)
        return self._end(first.data.n_classes)

    def _arguments(
        self, data: EncodedData, validation: EncodedData | None, rng: np.random.Generator
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return what ``train_in_bits`` takes: positional arguments, and others by name."""
        self._check_settings()
        self.candidates_ = self._make_candidates(data, rng)
        data, validation = self._hold_out(data, validation, rng)
        settings = self._training_settings(data)
        default = clone(MINI_BATCH_LOSS) if self._is_open else Hybrid()
        self.loss_ = check_loss(default if self.loss is None else self.loss)
        self._key = self._start_key(data)
        none = self._key, None, 0
        before, start, _ = getattr(self, "_start", none) if self.warm_start else none
        if before != self._key:
            raise ValueError(
                "warm_start goes on where the previous fit ended, but candidates, columns, categories, cuts or classes "
                "are others now. Keep an int random_state and the columns, or set warm_start=False."
            )
        arguments = self.bits, data, self.candidates_, self.loss_, settings, rng
        return arguments, {"validation": validation, "callback": self._report, "start": start}

    def _training_settings(self, data: EncodedData) -> TrainingSettings:
        """Return the settings of a training on some rows."""
        n_epochs, learning_rate = self._plan(data)
        return TrainingSettings(
            learning_rate=learning_rate,
            structure_learning_rate=self.structure_learning_rate,
            n_epochs=n_epochs,
            batch_size=self.batch_size,
            temperature=(float(self.temperature[0]), float(self.temperature[1])),
            init=self.init,
            dtype=self.dtype,
            patience=self.patience,
            size_weight=self.size_weight,
        )

    def _take(self, outcome: TrainingOutcome, data: EncodedData, validation: EncodedData | None) -> None:
        """Keep the outcome of a training, and settle its tables."""
        self.structure_ = outcome.structure
        self.structure_probabilities_ = outcome.probabilities
        self.history_ = outcome.history
        self.n_iter_ = self.n_epochs_ = len(outcome.history)
        #: With those of earlier fits, where this one began at their end.
        self._n_epochs = self.n_iter_ + (self._start[2] if self.warm_start and hasattr(self, "_start") else 0)
        if self.warm_start:
            self._start = self._key, outcome.parameters, self._n_epochs
        self._settle(outcome.tables, data, validation)

    def _settle(self, tables: Tables, data: EncodedData, validation: EncodedData | None) -> None:
        """Have held-out rows choose what the user leaves open: loss and length for the structure found, a scale.

        The tables come last: a fit that is interrupted here leaves no model.
        """
        self.calibration_ = Calibration()
        parts: Any = []
        if self._is_open or self.calibrate:
            parts = held_out_parts(data) if validation is None else [(data, validation)]
        trained_parts = self._train_parts(data, parts, tables.bits) if validation is None else None
        settings: dict[str, Any] = {name: getattr(self, name) for name in ("batch_size", "init", "dtype")}
        settings |= {"bits": tables.bits, "loss": self.loss_, "learning_rate": self.learning_rate or LEARNING_RATE}
        if parts and self._is_open:
            # What took longer for the sake of the structure is no longer what its tables want.
            is_longer = self.n_epochs is None and self.n_iter_ > N_EPOCHS
            learners = default_learners(**settings, n_epochs=N_EPOCHS if is_longer else self._n_epochs)
            chosen = HybridCV(
                learners=learners, calibrate=self.calibrate, n_jobs=self.n_jobs, verbose=int(self.verbose > 0)
            )
            rng, trained = np.random.default_rng(0), None if is_longer else tables
            of_parts = None if is_longer and validation is None else trained_parts
            if validation is not None and trained is not None:
                of_parts = [Trained(trained)]
            structures = None if trained_parts is None else [one.structure or self.structure_ for one in trained_parts]
            tables = chosen.fit_on_parts(
                self.structure_, data, parts, rng=rng, trained=trained, trained_parts=of_parts, structures=structures
            )
            self.parameters_, self.loss_, self.calibration_ = chosen, chosen.loss_, chosen.calibration_
        elif parts:
            learner: Any = StochasticGradient(**settings, n_epochs=self._n_epochs, calibrate=False)
            if validation is not None:
                learner = Trained(tables)
            elif trained_parts is not None:
                learner = trained_parts
            self.calibration_ = choose([learner], self.structure_, parts, n_jobs=self.n_jobs).calibration
        self.tables_ = tables

    def _train_parts(
        self, data: EncodedData, parts: Sequence[tuple[EncodedData, EncodedData]], bits: Any
    ) -> list[Trained] | None:
        """Train structure and tables without the held-out rows of every part, if the data are small.

        A structure that was learned from the held-out rows too makes these look easier than new rows. Without held-out
        rows, order-free models of noise have 1.00 times the log loss of class frequencies (benchmarks.quality.noise,
        table "categories").
        """
        if not are_relearned(parts):
            return None
        settings = replace(self._training_settings(data), n_epochs=self._n_epochs, patience=None)

        def train(part: EncodedData) -> Trained:
            sets = self._candidates_of(part)
            outcome = train_in_bits(bits, part, sets, self.loss_, settings, np.random.default_rng(0))
            return Trained(outcome.tables, outcome.structure)

        return in_threads(train, [part for part, _ in parts], self.n_jobs)

    @property
    def _is_open(self) -> bool:
        """Whether loss and length are for held-out rows to choose."""
        return self.loss is None and self.bits is None

    def _plan(self, data: EncodedData) -> tuple[int, float]:
        """Return the number of epochs to train, and the rate to begin with."""
        # Small tables with gaps, six of them, err in 10.2 % of rows after 100 epochs, in 10.8 % after N_STEPS.
        n_steps = 0 if data.has_missing or not self._is_open else N_STEPS
        n_epochs = self._enough_epochs(data, n_steps)
        is_longer = self.n_epochs is None and n_epochs > N_EPOCHS
        return n_epochs, self.learning_rate or (FAST if is_longer else LEARNING_RATE)

    def _start_key(self, data: EncodedData) -> str:
        """Return a digest of what tables and logits of all candidates are about; none where no start is kept."""
        if not self.warm_start:
            return ""
        encoder = getattr(self, "encoder_", None)
        known = [getattr(self, name, None) for name in ("feature_names_in_", "classes_")]
        learnt = [getattr(encoder, "categories_", None)]
        learnt.append(getattr(getattr(encoder, "discretizer_", None), "cut_points_", None))
        return digest(
            "warm start", [self.candidates_.parents, data.n_states, data.n_classes, repr(known), repr(learnt)]
        )

    def _get_state(self) -> dict[str, Any]:
        """Return what a file of the model holds beside parameters, classes and encoder."""
        learnt = {"structure_probabilities": self.structure_probabilities_}
        # What cannot be written is the user's own, and refused with the parameters if it is one of them still.
        return {**super()._get_state(), **learnt, **({"loss": self.loss_} if is_built_in(self.loss_) else {})}

    def _set_state(self, state: dict[str, Any]) -> None:
        """Take what a file holds; classes and encoder are there already."""
        probabilities = state.pop("structure_probabilities", [])
        loss = state.pop("loss", None)  # files of 0.1.0.dev0 have none: theirs is the parameter
        self.loss_ = (Hybrid() if self.loss is None else self.loss) if loss is None else check_loss(loss)
        super()._set_state(state)
        legal = set(range(-1, self.structure_.n_features))
        pairs = [pair for choices in probabilities for pair in choices.items()]
        proper = all(type(j) is int and j in legal and type(p) is float and 0 <= p < np.inf for j, p in pairs)
        if type(probabilities) is not list or len(probabilities) != self.structure_.n_features or not proper:
            raise ValueError("structure_probabilities must give every feature a dict of parents and probabilities.")
        self.structure_probabilities_ = probabilities
