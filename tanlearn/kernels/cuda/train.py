"""CUDA version of ``train.py``: whole epochs of gradient TAN for several runs, without communication with the host.

Runs share the rows and differ in candidates, losses, rates and noise. Their arrays are concatenated, so that three
launches per step serve all runs (five if whole trees are drawn) (``train.cu``). Trained parameters are in
:class:`~tanlearn.kernels.train.Parameters`, as on the CPU; problem, steps and scratch are records of this module, for
several runs.
"""
# Shapes: R runs, d features, F = R d features of all runs, T CPTs (candidate families) of all runs, M parameters of all
# runs, S steps of an epoch, B samples of a batch, C classes, n samples, N = 2 d + 1 nodes of a graph. "real" is the
# dtype of theta, float32 or float64.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tanlearn.kernels._cuda import BLOCK, WARP, launch, row_packing, struct, type_macros

_FILES = ("noise", "losses", "trees", "teams", "sweep", "train", "train_tables")
#: Features from which a block processes a sample in place of a warp, and the most classes whose scores it can hold.
_MANY_FEATURES, _FEW_CLASSES = 64, 64


class Problem(NamedTuple):
    """Constants of a training of several runs."""

    n_features: int
    n_tables: int
    most_tables: int  # the most CPTs of a run
    n_steps: int
    batch_size: int
    batch_stride: int  # batch_size rounded up to whole chunks of row_packing
    n_samples: int
    team: int  # threads that process a CPT: a warp, or a block if rows are long
    codes: Any  # uint8 or uint16 (d, n)
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
    uniform: Any  # float32 (S, T) uniform numbers of the Gumbel noise, from the host or drawn on the device
    streams: Any  # uint64 (R, 6) state of NumPy's PCG64 from which the device draws them (training/noise_streams.py)
    is_streamed: Any  # int32 (R,) whether the device draws the run's uniform numbers
    step_sizes: Any  # real (R, S) of the CPTs
    structure_step_sizes: Any  # float64 (R, S)
    temperature: Any  # float64 (R,) of the softmax of the straight-through gradient
    is_active: Any  # int32 (R,) whether the run is trained; finished runs are unchanged
    decay: Any  # real (n_decay,) factor of a direction by steps since the last draw
    n_decay: int
    beta1: float
    beta2: float
    epsilon: float


class Scratch(NamedTuple):
    """Work arrays of a step, and results of an epoch."""

    codes: Any  # uint8 or uint16 (R, S, d, batch_stride) codes of an epoch's batches, zero beyond the batch
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
    edges: Any  # float64 (R, N, N) edge weights of trees; N = 0 if no trees are drawn
    ends: Any  # int32 (R, 2, N, N) original sources and targets of edges
    work: Any  # int32 (R, 6, N)
    is_finite: Any  # int32 (R,)


def train_epoch(problem, parameters, steps, scratch):  # type: ignore[no-untyped-def]
    """Train one epoch in place, and add the mean losses of the batches to ``scratch.total``."""
    n_runs, n_steps, size = steps.order.shape
    n_classes = scratch.d_scores.shape[2]
    n_tables, n_features = problem.n_tables, n_runs * problem.n_features
    macros = (*type_macros(REAL=parameters.theta.dtype, CODE=problem.codes.dtype), f"-DN_CLASSES={n_classes}")
    macros = *macros, f"-DPACK={row_packing(n_classes, parameters.theta.dtype)[0]}"
    team = problem.team
    sample_team = BLOCK if problem.n_features >= _MANY_FEATURES and n_classes <= _FEW_CLASSES else WARP
    macros = *macros, f"-DTEAM={team}", f"-DSAMPLE_TEAM={sample_team}"
    packed = struct(problem), struct(parameters), struct(steps), struct(scratch)
    n_codes = n_features * n_steps * problem.batch_stride
    launch(_FILES, "gather_batches", n_codes, packed[0], packed[2], packed[3], macros=macros)
    launch(_FILES, "draw_uniform", n_steps * n_tables, packed[0], packed[2], macros=macros)
    for s in range(n_steps):
        step = np.int32(s)
        launch(_FILES, "draw_structures", n_features, step, *packed, width=team, macros=macros)
        if scratch.edges.size:
            launch(_FILES, "draw_trees", n_runs, packed[0], packed[2], packed[3], width=BLOCK, macros=macros)
            launch(_FILES, "prepare_trees", n_features, step, *packed, width=team, macros=macros)
        launch(_FILES, "score_batches", n_runs * size, step, *packed, width=sample_team, macros=macros)
        launch(_FILES, "step_tables", n_runs * (1 + problem.most_tables), step, *packed, width=team, macros=macros)
    launch(_FILES, "draw_structures", n_features, np.int32(n_steps), *packed, width=team, macros=macros)
    launch(_FILES, "apply_all_pending", n_tables + n_runs, *packed, width=team, macros=macros)
