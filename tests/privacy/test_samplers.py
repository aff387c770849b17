"""Samplers of noise: all their random decisions are enumerated, and give the distributions of the equations."""

import math
from fractions import Fraction

import pytest
from oracles import discrete_noise

from tanlearn.privacy.samplers import ExactSampler


class UnfinishedError(Exception):
    """More decisions are needed than were made."""


class RejectedError(Exception):
    """The sampler rejected its attempt and begins another."""


class Scripted(ExactSampler):
    """Sampler whose decisions are given, with the probability of having made them.

    A decision is (number of choices or probability of True, choice). Parts of the sampler can be replaced by the exact
    distributions that other tests establish.
    """

    def __init__(self, script, exact=()):
        self.script, self.exact, self.open, self.probability, self.n_calls = iter(script), exact, None, 1, 0
        self._bits = lambda width: self.decide([Fraction(1, 2**width)] * 2**width)

    def decide(self, probabilities):
        self.open = probabilities
        try:
            choice = next(self.script)
        except StopIteration:
            raise UnfinishedError from None
        self.probability *= probabilities[choice]
        return choice

    def below(self, n):
        if "below" not in self.exact:
            return super().below(n)
        return self.decide([Fraction(1, n)] * n)

    def is_below_exp(self, numerator, denominator):
        if "is_below_exp" not in self.exact:
            return super().is_below_exp(numerator, denominator)
        p = math.exp(-numerator / denominator)
        return self.decide([1 - p, p]) == 1

    def laplace(self, scale):
        if "laplace" not in self.exact:
            return super().laplace(scale)
        self.begin()
        known = discrete_noise.laplace(float(scale), 60)
        return list(known)[self.decide(list(known.values()))]

    def begin(self):
        """Raise RejectedError when an attempt is not the first."""
        self.n_calls += 1
        if self.n_calls > 1:
            raise RejectedError


def enumerate_samples(sample, exact=(), least=1e-9):
    """Return the probabilities of all results, and of rejections, by following every sequence of decisions.

    Sequences less probable than ``least`` are not followed.
    """
    found, stack = {}, [()]
    while stack:
        script = stack.pop()
        sampler = Scripted(script, exact)
        try:
            result = sample(sampler)
        except UnfinishedError:
            for choice, probability in enumerate(sampler.open):
                if sampler.probability * probability > least:
                    stack.append((*script, choice))
            continue
        except RejectedError:
            result = None
        found[result] = found.get(result, 0) + sampler.probability
    return found


def accepted(found):
    """Return the distribution of the results of an attempt that is not rejected."""
    total = sum(p for result, p in found.items() if result is not None)
    return {result: float(p / total) for result, p in found.items() if result is not None}


@pytest.mark.parametrize("n", [1, 2, 3, 5, 8])
def test_integers_below_a_bound_are_uniform(n):
    def sample(sampler):
        decide = sampler._bits
        sampler._bits = lambda width: (sampler.begin(), decide(width))[1]
        return sampler.below(n)

    found = enumerate_samples(sample)
    assert {result for result in found if result is not None} == set(range(n))
    assert {found[result] for result in range(n)} == {Fraction(1, 2 ** (n - 1).bit_length())}


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 1), (1, 3), (1, 1), (5, 2), (3, 1)])
def test_coins_have_exponential_probabilities(numerator, denominator):
    found = enumerate_samples(lambda sampler: sampler.is_below_exp(numerator, denominator), {"below"}, 1e-7)
    rest = 1 - sum(found.values())  # of sequences that were not followed
    assert rest < 1e-3
    assert found.get(True, 0) <= math.exp(-numerator / denominator) + 1e-12
    assert found.get(True, 0) + rest >= math.exp(-numerator / denominator) - 1e-12


@pytest.mark.parametrize("scale", [Fraction(1), Fraction(3), Fraction(5, 2), Fraction(2, 3), Fraction(7, 10)])
def test_laplace_noise_has_the_distribution_of_the_equation(scale):
    def sample(sampler):
        below = sampler.below
        sampler.below = lambda n: (sampler.begin(), below(n))[1]
        return sampler.laplace(scale)

    found = accepted(enumerate_samples(sample, {"below", "is_below_exp"}, 1e-12))
    expected = discrete_noise.laplace(float(scale), 200)
    assert found.keys() >= {-2, -1, 0, 1, 2}
    for x in found:
        assert abs(found[x] - expected[x]) < 1e-9


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(1), Fraction(5, 2), Fraction(9), Fraction(1000, 81)])
def test_gaussian_noise_has_the_distribution_of_the_equation(variance):
    found = accepted(
        enumerate_samples(lambda sampler: sampler.gaussian(variance), {"laplace", "is_below_exp"}, least=1e-13)
    )
    expected = discrete_noise.gaussian(float(variance), 60)
    assert found.keys() >= {-1, 0, 1}
    for x in found:
        assert abs(found[x] - expected[x]) < 1e-9


def test_seeds_repeat_samples_and_other_samplers_use_random_bits_of_the_system():
    def samples(seed):
        sampler = ExactSampler(seed)
        return [sampler.laplace(Fraction(40, 3)) for _ in range(20)] + [sampler.gaussian(Fraction(90))]

    assert samples(3) == samples(3)
    assert samples(3) != samples(4)
    assert type(ExactSampler()._bits.__self__).__name__ == "SystemRandom"


def test_samples_of_extreme_scales_are_integers():
    sampler = ExactSampler(0)
    assert sampler.laplace(Fraction(1, 2000)) == 0
    assert type(sampler.laplace(Fraction(10**30))) is int
    assert type(sampler.gaussian(Fraction(10**30))) is int
