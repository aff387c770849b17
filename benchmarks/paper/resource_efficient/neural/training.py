"""Training of several nets at once, with equal layers, batches and noise, and different widths, bits and rates."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from .network import forward, initial
from .quantizers import n_steps
from .sizes import CONVOLUTIONAL, ONE_HOT, padded_width

#: Last learning rate relative to the first ([RE] V-B).
DECAY = 1e-3
#: Rows are scored in padded blocks, so that folds of similar size share compiled programs.
BLOCK = 1000
OPTIMIZER = optax.scale_by_adam()


@dataclass(frozen=True)
class Run:
    """The settings of one of the nets that are trained at once."""

    widths: tuple[int, ...]
    bits: int
    learning_rate: float
    rng: np.random.Generator


def train(net, shape, runs, part, batch_size, n_epochs, rng):
    """Train runs on a part of the data; return a function that counts the wrong rows of every run.

    Compilation takes seconds for each combination of shapes. So units are padded to few widths, and runs to a power of
    two with copies of the last one. ``rng`` draws the order of rows and the noise of signs, which all runs share.
    """
    inputs = make_inputs(net, part.data)
    codes, y = map(jnp.asarray, filled(part.data.codes, part.data.y))
    n_batches = part.data.n_samples // batch_size
    padded = [
        max(padded_width(net, width) for width in widths) for widths in zip(*(run.widths for run in runs), strict=True)
    ]
    n_runs = len(runs)
    runs = runs + [runs[-1]] * (2 ** (n_runs - 1).bit_length() - n_runs)
    nets = [initial(net, shape, run.widths, padded, run.rng) for run in runs]
    parameters, moving, masks = jax.tree.map(lambda *leaves: np.stack(leaves), *nets)
    steps = np.array([n_steps(run.bits) for run in runs], np.float32)
    optimizer = jax.tree.map(lambda a: np.zeros(a.shape, a.dtype), jax.eval_shape(OPTIMIZER.init, parameters))
    noise = jax.random.key(int(rng.integers(2**32)))
    for epoch, rates in enumerate(learning_rates([run.learning_rate for run in runs], n_epochs)):
        order = rng.permutation(part.data.n_samples)[: n_batches * batch_size].reshape(n_batches, batch_size)
        parameters, moving, optimizer = train_epoch(
            net,
            (parameters, moving, optimizer),
            (masks, steps, rates.astype(np.float32)),
            (inputs, codes, y),
            order.astype(np.int32),
            jax.random.fold_in(noise, epoch),
        )

    def wrong(codes, y):
        """Return the number of wrong rows of every run."""
        codes, classes = filled(codes, y)
        blocks = zip(codes.reshape(-1, BLOCK, codes.shape[1]), classes.reshape(-1, BLOCK), strict=True)
        right = sum(count_right(net, (parameters, moving, masks, steps), inputs, *block) for block in blocks)
        return len(y) - np.asarray(right)[:n_runs]

    return wrong


def learning_rates(first, n_epochs):
    """Return the rates of every epoch, from the first ones down to DECAY times them."""
    return np.array(first) * np.logspace(0, np.log10(DECAY), n_epochs)[:, np.newaxis]


def make_inputs(net, data):
    """Return the encoding of inputs: feature and code of every column, or means and inverse deviations."""
    if net.inputs == ONE_HOT:
        feature = np.repeat(np.arange(data.n_features), data.n_states)
        code = np.concatenate([np.arange(n) for n in data.n_states])
        return feature.astype(np.int32), code.astype(np.uint8)
    std = data.codes.std(axis=1)
    return data.codes.mean(axis=1, dtype=np.float32), (1 / np.where(std == 0, 1, std)).astype(np.float32)


def encode(net, inputs, codes):
    """Encode rows of codes as inputs, rows last."""
    first, second = inputs
    if net.inputs == ONE_HOT:
        return (codes[:, first] == second).astype(jnp.float32).T
    x = ((codes - first) * second).T
    if net.kind == CONVOLUTIONAL:
        side = round(len(x) ** 0.5)
        x = x.reshape(1, side, side, -1)
    return x


def filled(codes, y):
    """Return codes, one row per sample, and classes, padded to a multiple of BLOCK with class -1."""
    n_rows = -(-len(y) // BLOCK) * BLOCK
    rows, classes = np.zeros((n_rows, len(codes)), np.uint8), np.full(n_rows, -1, np.int32)
    rows[: len(y)], classes[: len(y)] = codes.T, y
    return rows, classes


def mean_loss(net, parameters, moving, masks, steps, x, y, key):
    """Return the mean cross-entropy of a net, and its updated moving means."""
    scores, moving = forward(net, parameters, moving, masks, steps, x, key)
    return optax.softmax_cross_entropy_with_integer_labels(scores, y).mean(), moving


@partial(jax.jit, static_argnums=0, donate_argnums=1)
def train_epoch(net, state, runs, data, order, key):
    """Train an epoch; return parameters, moving means and the state of the optimizer."""
    masks, steps, rates = runs
    inputs, codes, y = data
    gradient = jax.vmap(jax.grad(partial(mean_loss, net), has_aux=True), in_axes=(0, 0, 0, 0, None, None, None))

    def step(state, batch):
        parameters, moving, optimizer = state
        rows, key = batch
        x = encode(net, inputs, codes[rows])
        d_parameters, moving = gradient(parameters, moving, masks, steps, x, y[rows], key)
        updates, optimizer = OPTIMIZER.update(d_parameters, optimizer)
        parameters = jax.tree.map(lambda p, u: p - rates.reshape(-1, *[1] * (p.ndim - 1)) * u, parameters, updates)
        parameters["weights"] = [jnp.clip(w, -1, 1) for w in parameters["weights"]]
        return (parameters, moving, optimizer), None

    return jax.lax.scan(step, state, (order, jax.random.split(key, len(order))))[0]


@partial(jax.jit, static_argnums=0)
def count_right(net, runs, inputs, codes, y):
    """Return the number of correctly classified rows of every run."""
    scores = jax.vmap(lambda run, x: forward(net, *run, x)[0], in_axes=(0, None))
    return (scores(runs, encode(net, inputs, codes)).argmax(axis=-1) == y).sum(axis=-1)
