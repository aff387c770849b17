"""Neural networks of few bits row by row and place by place, and their sizes one number at a time.

Weights are arrays (n_in, n_out), or (3, 3, n_in, n_out) of images; the output layer of images takes (side, side, n_in,
n_out).
"""

import numpy as np


def quantize(w, bits):
    """Return the nearest of 2**bits even values from -1 to 1, of two as near the greater one."""
    values = np.linspace(-1, 1, 2**bits)[::-1]
    nearest = [values[np.argmin(np.abs(values - number))] for number in np.ravel(w)]
    return np.reshape(nearest, np.shape(w))


def convolve(image, w):
    """Return the sums over 3 x 3 places, with zeros around an image (side, side, n_in)."""
    side = len(image)
    found = np.zeros((side, side, w.shape[-1]))
    for i in range(side):
        for j in range(side):
            for k in range(3):
                for m in range(3):
                    if 0 <= i + k - 1 < side and 0 <= j + m - 1 < side:
                        found[i, j] += image[i + k - 1, j + m - 1] @ w[k, m]
    return found


def maxima(image):
    """Return the maxima of 2 x 2 places, without the last line and column of odd sides."""
    half = len(image) // 2
    blocks = [[image[2 * i : 2 * i + 2, 2 * j : 2 * j + 2].max(axis=(0, 1)) for j in range(half)] for i in range(half)]
    return np.array(blocks)


def scores(weights, biases, rows, activate, normalize=None, pool=lambda layer, x: np.array(list(map(maxima, x)))):
    """Return the scores of rows, features or images; activate, normalise and pool take a layer's number and rows."""
    x = rows
    for layer, w in enumerate(weights[:-1]):
        a = np.array([convolve(row, w) if w.ndim == 4 else row @ w for row in x])
        if normalize:
            a = normalize(layer, a)
        x = activate(layer, a)
        if w.ndim == 4:
            x = pool(layer, x)
    return np.array([np.tensordot(row, weights[-1], axes=row.ndim) for row in x]) + biases


def mean_loss(scores, y):
    """Return the mean cross-entropy of softmax."""
    return np.mean([np.log(np.exp(row).sum()) - row[label] for row, label in zip(scores, y, strict=True)])


def dense_sizes(n_inputs, n_classes, n_layers, width, bits, norm):
    """Return bits and operations of a net whose hidden layers all have one width."""
    weights = n_inputs * width + (n_layers - 2) * width**2 + width * n_classes
    norms = (n_layers - 1) * width if norm else 0
    return bits * weights + 64 * norms + 32 * n_classes, weights + norms + n_classes


def image_sizes(side, n_classes, n_layers, channels, bits, norm):
    """Return bits and operations of a net of one or two convolutions, the second with twice the channels."""
    half, quarter = side // 2, side // 2 // 2
    if n_layers == 2:
        weights = 9 * channels + half**2 * channels * n_classes
        operations = side**2 * 9 * channels + half**2 * channels * n_classes + n_classes
        norms, norm_operations = channels, side**2 * channels
    else:
        weights = 9 * channels + 9 * channels * 2 * channels + quarter**2 * 2 * channels * n_classes
        operations = (
            side**2 * 9 * channels
            + half**2 * 9 * channels * 2 * channels
            + quarter**2 * 2 * channels * n_classes
            + n_classes
        )
        norms, norm_operations = 3 * channels, side**2 * channels + half**2 * 2 * channels
    if not norm:
        norms = norm_operations = 0
    return bits * weights + 64 * norms + 32 * n_classes, operations + norm_operations
