"""The CUDA twin of ``train.py``: whole epochs of gradient TAN for a population of runs, without a word to the host.

Runs share the rows and differ in candidates, losses, rates and noise. What they have of each lies one run behind the
other, so that three launches a step serve all of them (five where whole trees are drawn) (``train.cu``). What training
changes is :class:`~tanlearn.kernels.train.Parameters` on both sides; problem, steps and scratch are of many runs here.
"""
# Shapes: R runs, d features, F = R d of all runs, T tables of all runs, M cells of all runs, S steps of an epoch,
# B samples of a batch, C classes, n samples; N = 2 d + 1 nodes of a graph. Arrays are int32 where nothing else is said.

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tanlearn.kernels._cuda import BLOCK, WARP, launch, row_packing, struct, type_macros

_FILES = ("noise", "losses", "trees", "sweep", "train")


class Problem(NamedTuple):
    """What training does not change."""

    n_features: int
    n_tables: int
    n_steps: int
    batch_size: int
    batch_stride: int  # batch_size rounded up to whole chunks of row_packing
    n_samples: int
    codes: Any  # (d, n) uint8 or uint16
    y: Any  # (n,)
    weight: Any  # (n,) float32
    n_states: Any  # (d,)
    group: Any  # (F + 1,): the tables of feature i of run r are group[r d + i]:group[r d + i + 1]
    tables: Any  # (T, 4): r d + i, r, i, and numbers of a row, parent values times classes
    parents: Any  # (T, 2)
    offset: Any  # (T + 1,) int64: table t is theta[offset[t]:offset[t + 1]]
    prior: Any  # (R,) int64: and the prior of run r begins here
    arborescence: Any  # (R,): draw whole trees
    loss: Any  # (R,): numbers of built-in losses
    loss_parameters: Any  # (R, 3) real
    rounding: Any  # (R, 2) real: step and most steps of fixed-point numbers, or zeros
    has_price: Any  # (R,)
    price: Any  # (T,) float64
    drawn_offset: Any  # (F + 1,) int64: where the gradient of a drawn table is written


class Steps(NamedTuple):
    """Batches, noise and rates of the steps of an epoch."""

    order: Any  # (R, S, B): samples of every batch
    uniform: Any  # (S, T) float32: what the Gumbel noise is made of, unless it is drawn here:
    streams: Any  # (R, 6) uint64: where in the stream of NumPy's PCG64 the noise begins (training/noise_streams.py)
    is_streamed: Any  # (R,)
    step_sizes: Any  # (R, S) real
    structure_step_sizes: Any  # (R, S) float64
    temperature: Any  # (R,) float64
    is_active: Any  # (R,): runs that are over are left alone
    decay: Any  # (n_decay,) real: of a direction, by steps since the last draw
    n_decay: int
    beta1: float
    beta2: float
    epsilon: float


class Scratch(NamedTuple):
    """Memory that a step works in, and what an epoch leaves to be read."""

    codes: Any  # (R, S, d, stride): of an epoch's batches, zero beyond them as the gradients below
    noise: Any  # (T,) float32
    perturbed: Any  # (T,) float64
    d_choice: Any  # (T,) float64
    top: Any  # (F,) float64
    selected: Any  # (F,)
    begin: Any  # (F,) int64
    start: Any  # (F, B)
    d_scores: Any  # (R, stride, C) real
    losses: Any  # (R, B) float64
    d_tables: Any  # (longest table of every feature of all runs,) real
    total: Any  # (R,) float64: mean losses of an epoch's batches, added up
    edges: Any  # (R, N, N) float64, or nothing where no trees are drawn
    ends: Any  # (R, 2, N, N)
    work: Any  # (R, 6, N)
    is_finite: Any  # (R,)


def train_epoch(problem, parameters, steps, scratch):  # type: ignore[no-untyped-def]
    """Train one epoch in place, and add the batches' mean losses to ``scratch.total``."""
    n_runs, n_steps, size = steps.order.shape
    n_classes = scratch.d_scores.shape[2]
    n_tables, n_features = problem.n_tables, n_runs * problem.n_features
    macros = (*type_macros(REAL=parameters.theta.dtype, CODE=problem.codes.dtype), f"-DN_CLASSES={n_classes}")
    macros = *macros, f"-DPACK={row_packing(n_classes, parameters.theta.dtype)[0]}"
    packed = struct(problem), struct(parameters), struct(steps), struct(scratch)
    n_codes = n_features * n_steps * problem.batch_stride
    launch(_FILES, "gather_batches", n_codes, packed[0], packed[2], packed[3], macros=macros)
    launch(_FILES, "draw_uniform", n_steps * n_tables, packed[0], packed[2], macros=macros)
    for s in range(n_steps):
        step = np.int32(s)
        launch(_FILES, "draw_structures", n_features, step, *packed, width=WARP, macros=macros)
        if scratch.edges.size:
            launch(_FILES, "draw_trees", n_runs, packed[0], packed[2], packed[3], width=BLOCK, macros=macros)
            launch(_FILES, "look_up_trees", n_features, step, *packed, width=WARP, macros=macros)
        launch(_FILES, "score_batches", n_runs * size, step, *packed, width=WARP, macros=macros)
        launch(_FILES, "step_tables", n_tables + n_runs, step, *packed, width=WARP, macros=macros)
    launch(_FILES, "draw_structures", n_features, np.int32(n_steps), *packed, width=WARP, macros=macros)
    launch(_FILES, "settle", n_tables + n_runs, *packed, width=WARP, macros=macros)
