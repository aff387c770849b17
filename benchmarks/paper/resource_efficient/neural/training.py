"""Nets trained side by side: with the same layers, batches and noise, each with its widths, bits, rate and weights."""

from dataclasses import dataclass
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax

from .network import forward, initial
from .quantisers import n_steps
from .sizes import CONVOLUTIONAL, ONE_HOT

#: By how much learning rates fall over a training ([RE] V-B).
DECAY = 1e-3
#: Rows are scored in blocks, and filled up to whole ones, so that folds of about as many share what is compiled.
BLOCK = 1000
OPTIMIZER = optax.scale_by_adam()


@dataclass(frozen=True)
class Run:
    """What tells a net from those beside it."""

    widths: tuple[int, ...]
    bits: int
    learning_rate: float
    rng: np.random.Generator


def train(net, shape, runs, part, batch_size, n_epochs, rng):
    """Return a function that counts the wrong rows of every run, trained on a part of the data.

    ``rng`` draws what runs share: the order of rows, and the noise of signs.
    """
    inputs = make_inputs(net, part.data)
    codes, y = filled(part.data.codes, part.data.y)
    n_batches = part.data.n_samples // batch_size
    # As wide as the widest, and of multiples of 8 so that fewer programs are compiled.
    padded = [-(-max(widths) // 8) * 8 for widths in zip(*(run.widths for run in runs), strict=True)]
    nets = [initial(net, shape, run.widths, padded, run.rng) for run in runs]
    parameters, moving, masks = jax.tree.map(lambda *leaves: jnp.stack(leaves), *nets)
    steps = jnp.array([n_steps(run.bits) for run in runs], jnp.float32)
    optimizer = OPTIMIZER.init(parameters)
    noise = jax.random.key(int(rng.integers(2**32)))
    for epoch, rates in enumerate(learning_rates([run.learning_rate for run in runs], n_epochs)):
        order = rng.permutation(part.data.n_samples)[: n_batches * batch_size].reshape(n_batches, batch_size)
        parameters, moving, optimizer = train_epoch(
            net,
            (parameters, moving, optimizer),
            (masks, steps, jnp.asarray(rates, jnp.float32)),
            (inputs, codes, y),
            jnp.asarray(order, jnp.int32),
            jax.random.fold_in(noise, epoch),
        )

    def wrong(codes, y):
        """Return how many of some rows every run gets wrong."""
        right = count_right(net, (parameters, moving, masks, steps), inputs, *filled(codes, y))
        return len(y) - np.asarray(right)

    return wrong


def learning_rates(first, n_epochs):
    """Yield the rates of every epoch: those first, and DECAY of them last."""
    return np.array(first) * np.logspace(0, np.log10(DECAY), n_epochs)[:, np.newaxis]


def make_inputs(net, data):
    """Return by what codes become inputs: feature and code of every column, or means and inverse deviations."""
    if net.inputs == ONE_HOT:
        feature = np.repeat(np.arange(data.n_features), data.n_states)
        code = np.concatenate([np.arange(n) for n in data.n_states])
        return jnp.asarray(feature, jnp.int32), jnp.asarray(code, jnp.uint8)
    std = data.codes.std(axis=1)
    return jnp.asarray(data.codes.mean(axis=1), jnp.float32), jnp.asarray(1 / np.where(std == 0, 1, std), jnp.float32)


def encode(net, inputs, codes):
    """Return rows of codes as inputs."""
    first, second = inputs
    if net.inputs == ONE_HOT:
        return (codes[:, first] == second).astype(jnp.float32)
    x = (codes - first) * second
    if net.kind == CONVOLUTIONAL:
        side = round(codes.shape[1] ** 0.5)
        x = x.reshape(-1, side, side, 1)
    return x


def filled(codes, y):
    """Return codes, a row a sample, and classes, up to a multiple of BLOCK; rows that are none have class -1."""
    n_rows = -(-len(y) // BLOCK) * BLOCK
    rows, classes = np.zeros((n_rows, len(codes)), np.uint8), np.full(n_rows, -1, np.int32)
    rows[: len(y)], classes[: len(y)] = codes.T, y
    return jnp.asarray(rows), jnp.asarray(classes)


def mean_loss(net, parameters, moving, masks, steps, x, y, key):
    """Return the mean cross-entropy of a net, and its moving means after the step."""
    scores, moving = forward(net, parameters, moving, masks, steps, x, key)
    return optax.softmax_cross_entropy_with_integer_labels(scores, y).mean(), moving


@partial(jax.jit, static_argnums=0, donate_argnums=1)
def train_epoch(net, state, runs, data, order, key):
    """Return parameters, moving means and optimizer after the batches of an epoch."""
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
    """Return how many rows every run gets right."""
    scores = jax.vmap(lambda run, x: forward(net, *run, x)[0], in_axes=(0, None))

    def block(rows):
        codes, y = rows
        return (scores(runs, encode(net, inputs, codes)).argmax(axis=-1) == y).sum(axis=-1)

    blocks = (codes.reshape(-1, BLOCK, codes.shape[1]), y.reshape(-1, BLOCK))
    return jax.lax.map(block, blocks).sum(axis=0)
