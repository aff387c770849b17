"""Letter on microcontrollers, in simulators: bytes of flash and RAM, cycles, microseconds, energy and errors.

    pip install "tanlearn[embedded]"    # simulates Cortex-M, writes trees as C
    python -m benchmarks.embedded.cycles --packages FOLDER    # compilers and simavr: Debian's packages, unpacked there

Compares TANs of 1, 2, 4 and 8 bits and of floats, naive Bayes, logistic regression, a tree and a forest by emlearn, and
a small net of 8 bits, all on the codes of letter's published parts. The command fails unless every program returns the
same class and scores as Python, bit for bit, on every test row. Models that cannot be measured on this machine are left
out, with the reason.

Results are appended to results/cycles.jsonl.xz; the command ``benchmarks.embedded.report`` writes the pages. Cycles
from simavr are exact. Cycles of Cortex-M are computed by a model (see `simulators.py`), as the median of the first 200
rows."""

import tempfile
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import OneHotEncoder
from sklearn.tree import DecisionTreeClassifier

from benchmarks import DATA, command_line
from benchmarks.embedded import classifiers
from benchmarks.embedded.programs import AVR, AVR_LARGE, LEVELS, PARTS, TooLarge, build, classifier_bytes
from benchmarks.embedded.simulators import run
from benchmarks.embedded.toolchain import Missing
from benchmarks.paper.differentiable_tan.letter import CHOSEN, ENCODER, base, load
from benchmarks.shared.results import Results, line_key, pack
from tanlearn import NaiveBayesClassifier
from tanlearn import load as load_model

#: Integer and fraction bits by their sum: those that `bits=1`, `2` and `8` choose in 30 epochs; of 4, the published.
SPLITS = {1: (3, -2), 2: (2, 0), 4: (3, 1), 8: (2, 6)}


def trained(bits, x, y, arguments):
    """Return the order-free TAN of letter, from the folder of models if it is there."""
    place = arguments.models and Path(arguments.models, f"tan-{bits}-{arguments.epochs}.tan")
    if place and place.exists():
        return load_model(place)
    make = base("order-free", arguments.epochs).set_params(**CHOSEN["order-free"], random_state=0)
    model = make.set_params(bits=SPLITS.get(bits)).fit(x, y)
    if place:
        place.parent.mkdir(exist_ok=True, parents=True)
        model.save(place)
    return model


def all_classifiers(arguments, folder):
    """Yield every classifier in C, with the test rows' codes; and the classes' numbers of these rows."""
    x, y, x_test, y_test = load(arguments.data)
    models = {bits: trained(bits, x, y, arguments) for bits in [*SPLITS, None]}
    reference = models[None]
    codes, codes_test = (np.ascontiguousarray(reference.encoder_.encode(part).T) for part in (x, x_test))
    numbers, n_states = np.searchsorted(reference.classes_, y), reference.tables_.layout.n_states
    yield np.searchsorted(reference.classes_, y_test)
    for bits in SPLITS:
        for packed in (True, False)[: 2 if bits == 4 else 1]:
            title = f"TAN, {bits} bit{'s' * (bits > 1)}{'' if packed or bits == 8 else ', a byte each'}"
            yield classifiers.integers(title, models[bits], codes_test, folder, packed=packed)
    yield classifiers.floats("TAN, 32-bit floats", reference, codes_test)
    bayes = NaiveBayesClassifier(encoder=ENCODER).fit(x, y)
    yield classifiers.integers("naive Bayes, 4 bits", bayes.with_bits(4, x, y), codes_test, folder)
    yield classifiers.floats("naive Bayes, 32-bit floats", bayes, codes_test)

    ones = OneHotEncoder(categories=[np.arange(n) for n in n_states], sparse_output=False).fit_transform(codes)
    regression = LogisticRegression(max_iter=1000).fit(ones, numbers)
    weights = np.vstack([regression.intercept_, regression.coef_.T])
    yield classifiers.linear("logistic regression, 32-bit floats", weights.astype(np.float32), codes_test, n_states)
    yield classifiers.linear("logistic regression, 8 bits", classifiers.int8_weights(weights)[0], codes_test, n_states)
    network = MLPClassifier(hidden_layer_sizes=(48,), max_iter=100, alpha=1e-3, random_state=0)
    network.set_params(early_stopping=True).fit(ones, numbers)
    layers = list(zip(network.coefs_, network.intercepts_, strict=True))
    yield classifiers.net("net of 48 rectifiers, 8 bits", layers, codes_test, n_states, codes)
    if find_spec("emlearn") is None:
        print("emlearn is not installed (pip install 'tanlearn[embedded]'): trees are left out.\n")
        return
    tree = DecisionTreeClassifier(max_leaf_nodes=1000, random_state=0).fit(codes, numbers)
    yield classifiers.trees("tree of 1,000 leaves, by emlearn", tree, codes_test, folder)
    # More leaves a tree, and AVR's compiler jumps farther than its instructions reach.
    forest = RandomForestClassifier(20, max_leaf_nodes=100, random_state=0).fit(codes, numbers)
    yield classifiers.trees("forest of 20 trees of 100 leaves, by emlearn", forest, codes_test, folder)


def measured(classifier, part, folder, packages):
    """Return bytes of flash and RAM, and cycles of both levels of a prediction."""
    cycles, sizes = [], None
    for level in LEVELS:
        program = build(classifier.source, part, level, folder, packages)
        outcome = run(program, part, classifier, packages)
        if not np.array_equal(outcome.labels, classifier.labels):
            raise RuntimeError(f"{classifier.name} finds other classes on {part.name} than in Python")
        if outcome.scores.tobytes() != classifier.scores.tobytes():
            raise RuntimeError(f"{classifier.name} finds other scores on {part.name} than in Python")
        cycles.append(float(np.median(outcome.cycles)))
        if sizes is None:
            flash, ram = classifier_bytes(classifier.source, part, level, folder, packages)
            sizes = flash, ram + outcome.stack
    return *sizes, *cycles


def line(classifier, labels, part, folder, packages):
    """Return a line of results: a model on a microcontroller."""
    start = {"microcontroller": part.name, "model": classifier.name}
    start["error"] = round(100 * float(np.mean(classifier.labels != labels)), 4)
    try:
        try:
            figures = measured(classifier, part, folder, packages)
        except TooLarge:
            if part is not AVR:
                raise
            figures, start = measured(classifier, AVR_LARGE, folder, packages), {**start, "on": AVR_LARGE.name}
    except TooLarge as reason:
        return {**start, "failure": str(reason)}
    flash, ram, *cycles = figures
    return {**start, "flash": int(flash), "ram": int(ram), "cycles": cycles}


def main():
    """Parse the command line and run it."""
    parser = command_line(__doc__, __spec__)
    parser.add_argument("--data", type=Path, default=DATA / "discretized")
    parser.add_argument("--epochs", type=int, default=300)
    parser.add_argument("--models", type=Path, help="folder to keep trained TANs in")
    parser.add_argument("--packages", type=Path, help="folder to unpack compilers and simavr in")
    parser.add_argument("--rows", type=int, help="test rows, all by default")
    parser.add_argument("--results", type=Path, default=Path(__file__).parent / "results", help="folder of results")
    arguments = parser.parse_args()
    results = Results(arguments.results / "cycles.jsonl", line_key("microcontroller", "model"))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        labels, *found = all_classifiers(arguments, folder)
        found = [classifiers.first_rows(classifier, arguments.rows) for classifier in found]
        for part in PARTS:
            try:
                for classifier in found:
                    own = labels[: len(classifier.rows)]
                    print(results.append(line(classifier, own, part, folder, arguments.packages)), flush=True)
            except Missing as missing:
                print(f"\nLeft out: {missing}.")
    pack(results.path)


if __name__ == "__main__":
    main()
