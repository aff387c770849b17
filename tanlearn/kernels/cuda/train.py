"""CUDA version of ``train.py``: whole epochs of gradient TAN for several runs, without communication with the host.

Runs share the rows and differ in candidates, losses, rates and noise. Their arrays are concatenated, so that three
launches per step serve all runs, or five if whole trees are drawn (``train.cu``). Trained parameters are in
:class:`~tanlearn.kernels.train.Parameters`, as on the CPU. The other records of several runs are in this module.
"""
# Shapes: R runs, d features, F = R d features of all runs, T CPTs (candidate families) of all runs, M parameters of all
# runs, S steps of an epoch, B samples of a batch, C classes, n samples, N = 2 d + 1 nodes of a graph. "real" is the
# dtype of theta, float32 or float64.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tanlearn.kernels._cuda import BLOCK, WARP, launch, row_packing, struct, type_macros
from tanlearn.kernels.train import Parameters

_FILES = ("noise", "losses", "trees", "teams", "sweep", "train", "train_tables")
#: The most steps of a block. The launches of a block are captured once as a graph, whose size then does not grow with
#: the rows. Launching a graph takes as long as a few of its steps.
STEPS_PER_BLOCK = 64
#: A block instead of a warp processes a sample from this number of features, up to this number of classes, whose
#: scores it can hold, and up to this number of samples of all runs in a step. On usps (256 features, batches of 100), a
#: block takes 10 us and a warp 24 us for one run; for 64 runs, a block takes 68 us and a warp 46 us.
_MANY_FEATURES, _FEW_CLASSES, _FEW_SAMPLES = 64, 64, 2_000


class Problem(NamedTuple):
    """Constants of a training of several runs."""

    n_features: int
    n_tables: int
    most_tables: int  # the most CPTs of a run
    n_steps: int
    block_steps: int  # steps of a block, at most STEPS_PER_BLOCK
    batch_size: int
    batch_stride: int  # batch_size rounded up to whole chunks of row_packing
    n_samples: int
    team: int  # threads that process a CPT: a warp, or a block if rows are long
    codes: Any  # uint8 or uint16 (n, d), so the codes of a sample are read together
    y: Any  # int32 (n,) classes
    weight: Any  # float32 (n,) weights of the rows in the mean loss
    n_states: Any  # int32 (d,)
    group: Any  # int32 (F + 1,) the CPTs of feature i of run r are group[r d + i]:group[r d + i + 1]
    tables: Any  # int32 (T, 4) r d + i, r, i, and the length of a row, parent values times classes
    parents: Any  # int32 (T, 2) augmenting parents, -1 for none
    offset: Any  # int64 (T + 1,) CPT t is theta[offset[t]:offset[t + 1]]
    prior: Any  # int64 (R,) start of each run's prior in theta
    arborescence: Any  # int32 (R,) whether to draw whole trees
    loss: Any  # int32 (R,) numbers of built-in losses (losses.py)
    loss_parameters: Any  # real (R, 3)
    rounding: Any  # real (R, 2) step and largest number of steps of fixed-point numbers; zeros for none
    has_size_penalty: Any  # int32 (R,) whether the run has a penalty
    size_penalty: Any  # float64 (T,) penalty on the size of each CPT
    drawn_offset: Any  # int64 (F + 1,) start of the gradient of each feature's drawn CPT in Scratch.d_tables


class Steps(NamedTuple):
    """Batches, noise and step sizes of the steps of an epoch."""

    order: Any  # int32 (R, S, B) samples of each batch
    uniform: Any  # float32 (uniform_steps, T) uniform numbers of the Gumbel noise
    streams: Any  # uint64 (R, 6) state of NumPy's PCG64 from which the device draws them (training/noise_streams.py)
    is_streamed: Any  # int32 (R,) whether the device draws the run's uniform numbers
    step_sizes: Any  # real (R, S) of the CPTs
    structure_step_sizes: Any  # float64 (R, S)
    temperature: Any  # float64 (R,) of the softmax of the straight-through gradient
    is_active: Any  # int32 (R,) whether the run is trained; finished runs are unchanged
    decay: Any  # real (n_decay,) factor of a direction by steps since the last draw
    n_decay: int
    uniform_steps: int  # those of a block, whose numbers the device draws; or of an epoch, if the host draws them
    beta1: float
    beta2: float
    epsilon: float


class Scratch(NamedTuple):
    """Work arrays of a step, and results of an epoch."""

    position: Any  # int32 (1,) first step of the block of steps
    codes: Any  # uint8 or uint16 (R, block_steps, d, batch_stride) codes of a block's batches, zero beyond the batch
    noise: Any  # float32 (T,)
    perturbed: Any  # float64 (T,)
    d_choice: Any  # float64 (T,)
    top: Any  # float64 (F,) largest perturbed logit of each feature
    selected: Any  # int32 (F,) drawn CPT of each feature
    listed: Any  # int32 (T,) CPTs with a gradient or an Adam step, from each run's first CPT on
    n_found: Any  # int32 (R,) number of listed CPTs while they are found; zero between steps
    n_listed: Any  # int32 (R,) number of listed CPTs
    begin: Any  # int64 (F,) start of the drawn CPT in theta
    start: Any  # int32 (F, B) start of each sample's row in the drawn CPT
    d_scores: Any  # real (R, batch_stride, C) zero beyond the batch
    losses: Any  # float64 (R, B)
    d_tables: Any  # real (sum of each feature's longest CPT,)
    total: Any  # float64 (R,) sum of the mean losses of an epoch's batches
    edges: Any  # float64 (T,) weights of the edges of trees; empty if no trees are drawn
    work: Any  # int32 (R, 6, N) arrays of the nodes of trees; N = 0 if no trees are drawn
    is_finite: Any  # int32 (R,)


class Epoch:
    """Launches of one epoch in two parts: blocks of steps, which are all the same, and the end."""

    def __init__(self, problem: Problem, parameters: Parameters, steps: Steps, scratch: Scratch) -> None:
        self._problem, self._has_trees = problem, scratch.edges.size > 0
        self._n_runs, _, self._batch_size = steps.order.shape
        self._n_features = self._n_runs * problem.n_features
        n_classes, real = scratch.d_scores.shape[2], parameters.theta.dtype
        is_wide = problem.n_features >= _MANY_FEATURES and n_classes <= _FEW_CLASSES
        is_short = self._n_runs * self._batch_size <= _FEW_SAMPLES
        self._sample_team = BLOCK if is_wide and is_short else WARP
        sizes = {"N_CLASSES": n_classes, "PACK": row_packing(n_classes, real)[0]}
        sizes |= {"TEAM": problem.team, "SAMPLE_TEAM": self._sample_team}
        types = type_macros(REAL=real, CODE=problem.codes.dtype)
        self._macros = *types, *(f"-D{name}={value}" for name, value in sizes.items())
        self._packed = struct(problem), struct(parameters), struct(steps), struct(scratch)
        self.n_blocks = -(-problem.n_steps // problem.block_steps)

    def _launch(self, name: str, n_workers: int, *arguments: Any, width: int = 1) -> None:
        launch(_FILES, name, n_workers, *arguments, width=width, macros=self._macros)

    def run_block(self) -> None:
        """Run the next steps; those beyond the last step of the epoch do nothing."""
        problem, _, steps, scratch = self._packed
        n_tiles = -(-self._problem.batch_stride // WARP) * -(-self._problem.n_features // WARP)
        n_batches = self._n_runs * self._problem.block_steps
        self._launch("gather_batches", n_batches * n_tiles, problem, steps, scratch, width=BLOCK)
        self._launch("draw_uniform", self._problem.block_steps * self._problem.n_tables, problem, steps, scratch)
        team, n_teams = self._problem.team, self._n_runs * (1 + self._problem.most_tables)
        for number in range(self._problem.block_steps):
            step = np.int32(number)
            self._launch("draw_structures", self._n_features, step, *self._packed, width=team)
            if self._has_trees:
                self._launch("draw_trees", self._n_runs, step, problem, steps, scratch, width=BLOCK)
                self._launch("prepare_trees", self._n_features, step, *self._packed, width=team)
            n_samples = self._n_runs * self._batch_size
            self._launch("score_batches", n_samples, step, *self._packed, width=self._sample_team)
            self._launch("step_tables", n_teams, step, *self._packed, width=team)
        self._launch("next_block", 1, problem, scratch)

    def end(self) -> None:
        """Finish the last step, and apply all deferred updates."""
        self._launch("finish_structures", self._n_features, *self._packed, width=WARP)
        n_teams = self._problem.n_tables + self._n_runs
        self._launch("apply_all_pending", n_teams, *self._packed, width=self._problem.team)
