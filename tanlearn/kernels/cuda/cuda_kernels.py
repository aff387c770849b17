"""CUDA versions of the kernels, with the same names and parameters, for arrays on a CUDA device.

Each function launches a kernel of ``cuda/*.cu`` and returns; its results are available to all later launches. Counts
equal those of the CPU. Floating-point sums are added in an order that depends on the problem and not on the device, so
results are reproducible bit by bit. The CPU kernels are the reference implementations.
"""
# Shapes and dtypes are those of the CPU kernel of the same name, such as codes (d, n) and scores (n, C)

from __future__ import annotations

import numpy as np

from tanlearn.kernels._cuda import BLOCK, WARP, cupy, launch, type_macros

# Prediction: upward.cu, pick_rows.cu, aode.cu


def log_joint_upward(  # type: ignore[no-untyped-def]
    codes,
    cells,
    probabilities,
    parent,
    upward,
    n_states,
    offset,
    start,
    is_normalized,
    most,
    missing,
    count,
    belief,
    message,
    product,
    scores,
):
    """Write the log joint of samples that may have missing features, with one warp per row of the scratch arrays.

    The scratch arrays are ``count``, ``belief`` and ``product``; ``message`` is ignored.
    """
    shape = scores.shape[0], parent.shape[0], scores.shape[1]
    tree = codes, cells, probabilities, parent, upward, n_states, offset, start
    rules = int(is_normalized), most, missing
    macros = type_macros(CODE=codes.dtype)
    arguments = *shape, *tree, *rules, count, belief, product, scores
    launch(("upward",), "log_joint_upward", count.shape[0], *arguments, width=WARP, macros=macros)


def pick_rows(codes, start, is_parent, missing, n_classes, parents, children, n_parents):  # type: ignore[no-untyped-def]
    """Write the rows of each sample's values; ``is_parent`` is uint8."""
    shape = codes.shape[1], codes.shape[0]
    found = parents, children, n_parents
    macros = type_macros(CODE=codes.dtype)
    launch(("pick_rows",), "pick_rows", *shape, codes, start, is_parent, missing, n_classes, *found, macros=macros)


def log_sum_joint(parents, children, log_parent, log_child, width, lanes, total, scores):  # type: ignore[no-untyped-def]
    """Write the log of the sum over estimators of p(y, x), one thread per sample and class.

    ``lanes`` and ``total`` are ignored.
    """
    n_samples, n_classes = scores.shape
    shape = parents.shape[0], n_samples, children.shape[1], n_classes
    arguments = parents, children, log_parent, log_child, width, scores
    launch(("aode",), "log_sum_joint", n_samples * n_classes, *shape, *arguments)


# Counting and batch learning: counts.cu, scores.cu, mathematics.cu

_COUNTS, _SCORES = ("families", "counts"), ("families", "scores")
#: Rows per block for integer counts. Real weights are added in order, all by one block.
_COUNTED_ROWS = 2**14
#: Minimum number of rows per partial sum, and maximum number of partial sums, each as large as all CPTs.
_CHUNK_ROWS, _MOST_CHUNKS = 1024, 16


def _count(name, n_tables, code_type, weight, *arguments):  # type: ignore[no-untyped-def]
    """Launch a counting kernel, one block per table and run of rows.

    The length of a run is inserted before the last argument.
    """
    n = weight.shape[0]
    n_rows = _COUNTED_ROWS if weight.dtype.kind == "i" else max(n, 1)
    macros = type_macros(CODE=code_type, WEIGHT=weight.dtype)
    arguments = *arguments[:-1], n_rows, arguments[-1]
    launch(_COUNTS, name, n_tables * -(-n // n_rows), *arguments, width=BLOCK, macros=macros)


def count_classes(y, weight, counts):  # type: ignore[no-untyped-def]
    """Add the weight (int64 or float64) of each sample to its class; ``counts`` may be longer than n_classes."""
    _count("count_classes", 1, "uint8", weight, y, weight, y.shape[0], counts.shape[0], counts)


def count_families(codes, y, weight, child, parents, n_states, offset, missing, rows, counts):  # type: ignore[no-untyped-def]
    """Add the counts of each family; ``rows`` is ignored."""
    tables = child, child.shape[0], parents, n_states, offset
    arguments = codes, y, weight, y.shape[0], *tables, missing, counts
    _count("count_families", child.shape[0], codes.dtype, weight, *arguments)


def count_pairs(codes, y, weight, i, others, n_states, n_classes, pair_offset, missing, counts):  # type: ignore[no-untyped-def]
    """Add the counts of feature i with each of the others."""
    pairs = i, others, others.shape[0], n_states, n_classes, pair_offset
    arguments = codes, y, weight, y.shape[0], *pairs, missing, counts
    _count("count_pairs", others.shape[0], codes.dtype, weight, *arguments)


def log_joint(  # type: ignore[no-untyped-def]
    codes, first, cells, child, parents, n_states, offset, selected, missing, rows, scores
):
    """Write the log joint of complete samples, one thread per sample and class; ``rows`` is ignored."""
    tables = cells, child, parents, n_states, offset, selected, selected.shape[0]
    arguments = codes, codes.shape[1], first, *tables, missing, scores.shape[1], scores
    macros = type_macros(CODE=codes.dtype, CELL=cells.dtype, SUM=scores.dtype)
    launch(_SCORES, "log_joint", scores.size, *arguments, macros=macros)


def log_joint_adjoint(  # type: ignore[no-untyped-def]
    codes, first, d_scores, child, parents, n_states, offset, selected, missing, rows, d_cells
):
    """Add the transpose of :func:`log_joint`, by partial sums over rows; ``rows`` is ignored."""
    n, n_selected, n_cells = d_scores.shape[0], selected.shape[0], d_cells.shape[0]
    n_chunks = min(max(n // _CHUNK_ROWS, 1), _MOST_CHUNKS)
    chunks = cupy().empty((n_chunks, n_cells), d_cells.dtype)
    samples = codes, codes.shape[1], first, d_scores, *d_scores.shape
    tables = child, parents, n_states, offset, selected, n_selected
    arguments = *samples, *tables, missing, -(-n // n_chunks), n_cells, chunks
    macros = type_macros(CODE=codes.dtype, CELL=d_cells.dtype, SUM=d_scores.dtype)
    launch(_SCORES, "log_joint_adjoint", (n_selected + 1) * n_chunks, *arguments, width=WARP, macros=macros)
    arguments = chunks, n_chunks, n_cells, offset, selected, n_selected, d_cells
    launch(_SCORES, "add_chunks", n_selected + 1, *arguments, width=BLOCK, macros=macros)


def choice_gradient(  # type: ignore[no-untyped-def]
    codes, first, d_scores, cells, child, parents, n_states, offset, missing, rows, d_choice
):
    """Write the choice gradient of each table, one warp each; ``d_choice`` is float64, and ``rows`` is ignored."""
    samples = codes, codes.shape[1], first, d_scores, *d_scores.shape
    arguments = *samples, cells, child, parents, n_states, offset, missing, d_choice
    macros = type_macros(CODE=codes.dtype, CELL=cells.dtype, SUM=d_scores.dtype)
    launch(_SCORES, "choice_gradient", child.shape[0], *arguments, width=WARP, macros=macros)


def normalize(rho, n_values, offset, scratch, theta):  # type: ignore[no-untyped-def]
    """Write normalized log probabilities, one block per group; ``scratch`` is ignored."""
    macros = type_macros(REAL=rho.dtype)
    launch(("mathematics",), "normalize", n_values.shape[0], rho, n_values, offset, theta, width=BLOCK, macros=macros)


def normalize_adjoint(theta, d_theta, groups, n_values, offset, scratch, d_rho):  # type: ignore[no-untyped-def]
    """Write the adjoint in the given groups; ``d_rho`` may be ``d_theta``, and ``scratch`` is ignored."""
    arguments = theta, d_theta, groups, n_values, offset, d_rho
    macros = type_macros(REAL=theta.dtype)
    launch(("mathematics",), "normalize_adjoint", groups.shape[0], *arguments, width=BLOCK, macros=macros)


def loss_rows(kind, parameters, scores, y, loss, d_scores):  # type: ignore[no-untyped-def]
    """Write the loss and gradient of each row, one warp per row; returns -1 always, as classes are not validated."""
    macros = (*type_macros(REAL=scores.dtype), f"-DN_CLASSES={scores.shape[1]}")
    arguments = np.int32(kind), parameters, scores, y, loss, d_scores
    launch(("losses",), "loss_rows", scores.shape[0], *arguments, width=WARP, macros=macros)
    return -1


def weigh_rows(row_weight, d_scores):  # type: ignore[no-untyped-def]
    """Multiply the gradient of each row by the row's weight in the mean, one thread per sample and class; float64."""
    launch(("objective",), "weigh_rows", d_scores.size, row_weight, d_scores.shape[1], d_scores)


# Drawing structures, and steps: trees.cu, draws.cu, steps.cu

_DRAWS, _STEPS = ("trees", "draws"), ("sweep", "steps")


def gumbel(uniform, noise):  # type: ignore[no-untyped-def]
    """Write Gumbel noise from uniform numbers."""
    launch(_DRAWS, "gumbel", uniform.size, uniform, noise)


def perturb(phi, noise, group, perturbed):  # type: ignore[no-untyped-def]
    """Write log softmax(phi) + noise, one warp per feature."""
    launch(_DRAWS, "perturb", group.size - 1, phi, noise, group, perturbed, width=WARP)


def draw_independent(perturbed, group, selected):  # type: ignore[no-untyped-def]
    """Choose the best table of each feature, one warp each."""
    launch(_DRAWS, "draw_independent", group.size - 1, perturbed, group, selected, width=WARP)


def draw_arborescence(perturbed, group, table_parent, weight, source, target, work, selected):  # type: ignore[no-untyped-def]
    """Choose the tables of the tree of maximum weight, with one warp.

    ``weight`` and ``work`` (6, N) int32 are scratch; ``source`` and ``target`` are ignored.
    """
    graph = np.int32(group.size - 1), weight, work
    launch(_DRAWS, "draw_arborescence", 1, perturbed, group, table_parent, *graph, selected, width=WARP)


def structure_gradient(perturbed, group, temperature, d_choice, d_phi):  # type: ignore[no-untyped-def]
    """Write the straight-through gradient of phi, one warp per feature."""
    arguments = perturbed, group, np.float64(temperature), d_choice, d_phi
    launch(_DRAWS, "structure_gradient", group.size - 1, *arguments, width=WARP)


def size_penalty_gradient(perturbed, noise, group, size_penalty, d_phi):  # type: ignore[no-untyped-def]
    """Add the gradient of the expected penalty, one warp per feature."""
    launch(_DRAWS, "size_penalty_gradient", group.size - 1, perturbed, noise, group, size_penalty, d_phi, width=WARP)


def adam_step(x, d_x, step_size, beta1, beta2, epsilon, m, v):  # type: ignore[no-untyped-def]
    """Update a vector by an Adam step, one thread per number."""
    rates = (np.float64(rate) for rate in (step_size, beta1, beta2, epsilon))
    launch(_STEPS, "adam_step", x.size, x, d_x, *rates, m, v, macros=type_macros(REAL=x.dtype))


def round_cells(theta, n_cells, step, most, rounded):  # type: ignore[no-untyped-def]
    """Round the first n_cells numbers to fixed point, one thread each."""
    real = theta.dtype.type
    launch(_STEPS, "round_cells", n_cells, theta, real(step), real(most), rounded, macros=type_macros(REAL=theta.dtype))


def sweep_undrawn(direction, theta, width, n_values, distance, probabilities):  # type: ignore[no-untyped-def]
    """Move one CPT along its direction and normalize it, with one warp; ``probabilities`` is ignored."""
    arguments = direction, theta, np.int32(width), np.int32(n_values), theta.dtype.type(distance)
    launch(_STEPS, "sweep_undrawn", 1, *arguments, width=WARP, macros=type_macros(REAL=theta.dtype))


def sweep_drawn(  # type: ignore[no-untyped-def]
    d_theta, direction, v, theta, width, n_values, n_undrawn, step_size, beta1, beta2, epsilon, probabilities
):
    """Take an Adam step of one CPT and normalize it, with one warp; ``probabilities`` is ignored."""
    sizes = np.int32(width), np.int32(n_values), np.int32(n_undrawn)
    rates = map(theta.dtype.type, (step_size, beta1, beta2, epsilon))
    arguments = d_theta, direction, v, theta, *sizes, *rates
    launch(_STEPS, "sweep_drawn", 1, *arguments, width=WARP, macros=type_macros(REAL=theta.dtype))
