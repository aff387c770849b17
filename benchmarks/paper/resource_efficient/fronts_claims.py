"""Verdicts on Bayesian and neural networks, and claims of the paper, from the models within budgets."""

from benchmarks.paper.claims import Claim
from benchmarks.shared.reports import markdown_table, paragraph

from .fronts import ADDITIONS, MEMORY_BUDGETS, OPERATION_BUDGETS, within
from .neural.sizes import NAIVE_BAYES

REAL, ONE_HOT = "dense, {}, real", "dense, {}, one-hot"
CONVOLUTION = "convolutional, relu, real"
#: Multiples of the operations of a Bayesian network that convolutional networks need to be better than naive Bayes.
PAPER_OPERATIONS = {"usps": (2, 4), "mnist": (4, 8)}
SHOWN_MEMORY = (1.0, 4.0, 16.0)


class Best:
    """Test errors in % of the models selected for budgets, by data set, families, unit and multiple."""

    def __init__(self, sets):
        self._sets, self._known = sets, {}
        self.names = list(sets)

    def __call__(self, name, choose, what, multiple):
        """Return the error of the families that a function of the first training of each chooses; None without any."""
        own = tuple(dict.fromkeys(one.family for one in self._sets[name] if choose(one)))
        key = name, own, what, multiple
        if key not in self._known:
            unit = NAIVE_BAYES[name] if what == "bits" else ADDITIONS[name]
            trainings = [one for one in self._sets[name] if one.family in own]
            point = within(trainings, what, multiple, unit)[0] if trainings else None
            self._known[key] = point and point.test
        return self._known[key]


def is_bayes(one):
    """Return whether a training is of this library."""
    return one.kind == "bayes"


def is_neural(one):
    """Return whether a training is of a neural network."""
    return one.kind != "bayes"


def is_naive_bayes(one):
    """Return whether a training is of naive Bayes."""
    return one.family.startswith("NB")


def dense(inputs):
    """Return a function that selects dense networks with some inputs."""
    return lambda one: one.kind == "dense" and one.family.endswith(inputs)


def is_convolution(one):
    """Return whether a training is of a convolutional network with ReLU."""
    return one.family == CONVOLUTION


def beside_naive_bayes(best, inputs):
    """Return whether dense networks are better than naive Bayes, for every data set and memory budget with both."""
    pairs = [
        (best(name, dense(inputs), "bits", multiple), best(name, is_naive_bayes, "bits", multiple))
        for name in best.names
        for multiple in MEMORY_BUDGETS
    ]
    return [net < bayes for net, bayes in pairs if net is not None and bayes is not None]


def dense_networks(best):
    """Check dense networks with real and with one-hot inputs."""
    real, one_hot = beside_naive_bayes(best, "real"), beside_naive_bayes(best, "one-hot")
    return [
        Claim(
            "dense networks with real inputs are better than naive Bayes for every memory budget",
            f"{sum(real)} of {len(real)} budgets",
            all(real) if real else None,
        ),
        Claim(
            "dense networks with one-hot inputs are better than naive Bayes for some memory budgets only",
            f"{sum(one_hot)} of {len(one_hot)} budgets",
            0 < sum(one_hot) < len(one_hot) if one_hot else None,
        ),
    ]


def smallest_convolution(best):
    """Check that the smallest convolutional network is better than all others of the largest budget."""
    claim, starts = "convolutional networks of the smallest memory budget are better than all others of the largest", {}
    for name in best.names:
        other = best(name, lambda one: one.kind != "convolutional", "bits", MEMORY_BUDGETS[-1])
        found = {multiple: best(name, is_convolution, "bits", multiple) for multiple in MEMORY_BUDGETS}
        if other is not None and any(error is not None for error in found.values()):
            better = [multiple for multiple, error in found.items() if error is not None and error < other]
            starts[name] = min(better, default=None)
    listed = ", ".join(
        f"{name} from {start:g} x memory on" if start else f"{name} never" for name, start in starts.items()
    )
    return Claim(claim, listed, all(start == MEMORY_BUDGETS[0] for start in starts.values()) if starts else None)


def needed_operations(best, other):
    """Return the last and the first budget of operations below and from which convolutional networks are better."""
    found = {}
    for name in best.names:
        better = [
            multiple
            for multiple in OPERATION_BUDGETS
            if None not in (pair := [best(name, one, "operations", multiple) for one in (is_convolution, other)])
            and pair[0] < pair[1]
        ]
        if any(best(name, is_convolution, "operations", multiple) is not None for multiple in OPERATION_BUDGETS):
            first = min(better, default=None)
            below = [multiple for multiple in OPERATION_BUDGETS if first is None or multiple < first]
            found[name] = max(below, default=0), first
    return found


def range_in_words(low, high):
    """Return a range of multiples in words."""
    return f"more than {low:g} times" if high is None else f"{low:g} to {high:g} times"


def operations(best):
    """Check the operations that convolutional networks need to be better than naive Bayes."""
    claim = (
        "convolutional networks need 2 to 4 (usps) and 4 to 8 times (mnist) the operations of naive Bayes to be better"
    )
    found = {name: one for name, one in needed_operations(best, is_naive_bayes).items() if name in PAPER_OPERATIONS}
    listed = ", ".join(f"{name} {range_in_words(*one)}" for name, one in found.items())
    holds = all(
        low <= PAPER_OPERATIONS[name][1] and (high is None or high >= PAPER_OPERATIONS[name][0])
        for name, (low, high) in found.items()
    )
    return Claim(claim, listed, holds if found else None)


def accuracy(best):
    """Check that neural networks are the most accurate of the largest budgets on every data set."""
    claim, found = "neural networks are the most accurate, and need more operations", {}
    for name in best.names:
        pairs = {
            m: (best(name, is_neural, "operations", m), best(name, is_bayes, "operations", m)) for m in (1.0, 32.0)
        }
        if None not in (*pairs[1.0], *pairs[32.0]):
            found[name] = pairs[1.0][0] > pairs[1.0][1] and pairs[32.0][0] < pairs[32.0][1], pairs[32.0]
    listed = "; ".join(f"{name}: {net:.2f}, this library {bayes:.2f}" for name, (_, (net, bayes)) in found.items())
    return Claim(
        claim, f"with 32 times the operations: {listed}", all(one for one, _ in found.values()) if found else None
    )


def all_classes(fronts):
    """Check that each kind of model is on the Pareto front."""
    shares = {
        name: {kind: sum(one.kind == kind for one in front) for kind in dict.fromkeys(one.kind for one in chosen)}
        for name, (front, chosen) in fronts.items()
    }
    words = {"bayes": "this library"}
    listed = "; ".join(
        f"{name}: {', '.join(f'{n} {words.get(kind, kind)}' for kind, n in kinds.items())}"
        for name, kinds in shares.items()
    )
    holds = all(n for kinds in shares.values() for n in kinds.values()) if shares else None
    return Claim("each kind of model is on the Pareto front", f"models on the front: {listed}", holds)


def claims(best, fronts):
    """Return all claims that results can decide; ``fronts`` has the front and all selected models by data set."""
    return [*dense_networks(best), smallest_convolution(best), operations(best), accuracy(best), all_classes(fronts)]


def of_one_layer(best):
    """Return the errors of naive Bayes and of dense networks with real inputs in the largest memory budget."""
    found = [
        {name: best(name, choose, "bits", MEMORY_BUDGETS[-1]) for name in best.names}
        for choose in (is_naive_bayes, dense("real"))
    ]
    return [{name: error for name, error in errors.items() if error is not None} for errors in found]


def summary(best, checked_in_words):
    """Return the verdicts in sentences."""
    text = []
    for multiple in (1.0, 32.0):
        pairs = {
            name: (best(name, is_bayes, "operations", multiple), best(name, is_neural, "operations", multiple))
            for name in best.names
        }
        pairs = {name: pair for name, pair in pairs.items() if None not in pair}
        if not pairs:
            continue
        n_won = sum(bayes < net for bayes, net in pairs.values())
        listed = ", ".join(f"{name} {bayes:.2f} and {net:.2f} %" for name, (bayes, net) in pairs.items())
        number = "the number of operations of a Bayesian network" if multiple == 1 else f"{multiple:g} times as many"
        text.append(
            f"With {number}, the best network of this library has a lower error than the best neural network on "
            f"{n_won} of {len(pairs)} data sets ({listed})."
        )
    needed = needed_operations(best, is_bayes)
    if needed:
        listed = " and ".join(f"{range_in_words(*one)} the operations on {name}" for name, one in needed.items())
        text.append(f"To be better than every network of this library, convolutional networks need {listed}.")
    return paragraph(" ".join([*text, checked_in_words]))


def table(best):
    """Return the errors of the best models of both kinds by memory and operations."""
    columns = [("bits", m, f"memory x {m:g}") for m in SHOWN_MEMORY]
    columns += [("operations", m, f"operations x {m:g}") for m in (1.0, 8.0, 32.0)]
    rows = []
    for name in best.names:
        for title, choose in (("this library", is_bayes), ("neural networks", is_neural)):
            found = [best(name, choose, what, multiple) for what, multiple, _ in columns]
            rows.append([name, title, *("" if error is None else f"{error:.2f}" for error in found)])
    return markdown_table(["set", "models", *(title for *_, title in columns)], rows, left=(0, 1))
