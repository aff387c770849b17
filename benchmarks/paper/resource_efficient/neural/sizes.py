"""Bits and operations of a net, and the widths for a budget of either ([RE] V-C and V-D)."""

from dataclasses import dataclass
from math import sqrt

DENSE, CONVOLUTIONAL = "dense", "convolutional"
REAL, ONE_HOT = "real", "one-hot"
MEMORY, OPERATIONS = "memory", "operations"
#: Bits of a unit's scale and shift, and of a bias of the output layer.
BITS_PER_NORM, BITS_PER_BIAS = 64, 32
#: Parameters of naive Bayes ([RE] V-C, its code): C (1 + values of all features) at the paper's cut points.
NAIVE_BAYES = {"letter": 3822, "satimage": 2508, "usps": 8650, "mnist": 25800}


@dataclass(frozen=True)
class Shape:
    """The shape of a data set: features, their values, classes, and the side of an image if rows are images."""

    n_features: int
    n_values: int
    n_classes: int
    side: int | None = None


@dataclass(frozen=True)
class Net:
    """A net without widths and bits. Layers are those with weights; all except the last are hidden."""

    kind: str
    activation: str
    inputs: str
    n_layers: int
    batch_norm: bool

    @property
    def ratios(self):
        """Return the widths of hidden layers relative to the first."""
        return (1,) * (self.n_layers - 1) if self.kind == DENSE else (1, 2)[: self.n_layers - 1]


@dataclass(frozen=True)
class Layer:
    """Weights of shape (taps, n_in, n_out), applied to n_read nonzero inputs at each of some pixels."""

    taps: int
    n_in: int
    n_out: int
    places: int
    n_read: int

    @property
    def n_weights(self):
        return self.taps * self.n_in * self.n_out


@dataclass(frozen=True)
class Counts:
    """The parameters of a net by kind, and the operations of a prediction."""

    weights: int
    norms: int
    biases: int
    operations: int

    def bits(self, bits_per_weight):
        """Return the bits of all parameters."""
        return bits_per_weight * self.weights + BITS_PER_NORM * self.norms + BITS_PER_BIAS * self.biases

    @property
    def parameters(self):
        return self.weights + 2 * self.norms + self.biases


def layers(net, shape, widths):
    """Return the layers of a net, output last; sides are halved after a convolution, rounded down."""
    found = []
    if net.kind == DENSE:
        n_in = shape.n_features if net.inputs == REAL else shape.n_values
        for n_out in (*widths, shape.n_classes):
            n_read = n_in if found else shape.n_features  # one-hot rows select one weight per feature
            found.append(Layer(1, n_in, n_out, 1, n_read))
            n_in = n_out
        return found
    n_in, side = 1, shape.side
    for n_out in widths:
        found.append(Layer(9, n_in, n_out, side * side, 9 * n_in))
        n_in, side = n_out, side // 2
    return [*found, Layer(side * side, n_in, shape.n_classes, 1, side * side * n_in)]


def counts(net, shape, widths):
    """Count a net. An addition, a multiplication with addition, a bias and a normalized unit are one operation each."""
    found = layers(net, shape, widths)
    hidden = found[:-1] if net.batch_norm else []
    return Counts(
        weights=sum(layer.n_weights for layer in found),
        norms=sum(layer.n_out for layer in hidden),
        biases=shape.n_classes,
        operations=sum(layer.n_read * layer.n_out * layer.places for layer in found)
        + sum(layer.n_out * layer.places for layer in hidden)
        + shape.n_classes,
    )


def target(name, shape, budget, multiple):
    """Return a budget: bits of naive Bayes with so many per parameter, or a multiple of the additions of its scores."""
    return multiple * (NAIVE_BAYES[name] if budget == MEMORY else shape.n_classes * shape.n_features)


def solve_widths(net, bits, shape, budget, amount):
    """Return the rounded widths that come closest to an amount, or None if one of them is 0.

    The size of a net is a quadratic polynomial of the width of its first layer, given by its values at 0, 1 and 2.
    """

    def needs(width):
        found = counts(net, shape, [ratio * width for ratio in net.ratios])
        return found.bits(bits) if budget == MEMORY else found.operations

    constant, one, two = (needs(width) for width in range(3))
    square = (two - 2 * one + constant) / 2
    linear = one - constant - square
    missing = constant - amount
    if missing >= 0:
        return None
    width = -missing / linear if square == 0 else (sqrt(linear**2 - 4 * square * missing) - linear) / (2 * square)
    widths = tuple(round(ratio * width) for ratio in net.ratios)
    return widths if all(widths) else None


def padded_width(net, width):
    """Round a width up to 8, 12, 16, 24, 32, 48, ...; the few channels of images stay as they are below 8."""
    if net.kind == DENSE:
        width = max(width, 8)
    power = 2 ** (width - 1).bit_length()
    return width if width < 8 else power * 3 // 4 if width <= power * 3 // 4 else power
