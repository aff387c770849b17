"""The benchmark of cycles: programs in simulators find what Python finds, and are counted as they should be."""

import subprocess

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.tree import DecisionTreeClassifier
from support.integer_models import random_model

from benchmarks.embedded import classifiers, simulators, toolchain
from benchmarks.embedded.cycles import measured
from benchmarks.embedded.programs import AVR, M0, M3, TooLarge, build, classifier_bytes
from tanlearn import BayesNetClassifier, FixedPoint, NaiveBayesClassifier, TableEncoder
from tanlearn.baselines import ChowLiu
from tanlearn.models.log_joint import log_joint

N_ROWS = 40
PARTS = {part.name: part for part in (AVR, M0, M3)}
BY_HAND = """typedef uint8_t value; typedef int16_t score; enum { LENGTH = 2, N_SCORES = 1 };
static const uint8_t table[] FLASH = {3, 1, 4, 1, 5, 9, 2, 6};
static int16_t predict(const value *row) { return READ_8(&table[row[0] & 7]); }
static void get_scores(const value *row, score *scores) { scores[0] = (score)(row[1] - 300); }
"""


@pytest.fixture(params=PARTS)
def part(request, tmp_path):
    """A part whose compiler and simulator are here."""
    rows = np.zeros((1, 2), np.uint8)
    probe = classifiers.Classifier("probe", BY_HAND, rows[:, 0], rows[:, :1].astype(np.int16), rows)
    try:
        chosen = PARTS[request.param]
        simulators.run(build(BY_HAND, chosen, "-Os", tmp_path), chosen, probe)
    except toolchain.Missing as missing:
        pytest.skip(str(missing))
    return chosen


def test_a_program_by_hand_is_run_on_every_row(part, tmp_path):
    rows = np.arange(20, dtype=np.uint8).reshape(10, 2)
    labels = np.array([3, 1, 4, 1, 5, 9, 2, 6])[rows[:, 0] & 7]
    scores = rows[:, 1:].astype(np.int16) - 300
    by_hand = classifiers.Classifier("by hand", BY_HAND, labels, scores, rows)
    outcome = simulators.run(build(BY_HAND, part, "-Os", tmp_path), part, by_hand)
    assert outcome.labels.tolist() == labels.tolist()
    assert outcome.scores.tolist() == scores.tolist()
    assert (outcome.cycles == outcome.cycles[0]).all()
    assert 5 < outcome.cycles[0] < 60
    assert 0 <= outcome.stack < 40
    flash, ram = classifier_bytes(BY_HAND, part, "-Os", tmp_path)
    assert 8 < flash < 60
    assert ram == 0


@pytest.fixture(scope="module")
def digits():
    """Return codes and classes of digits, and classifiers of them."""
    X, y = load_digits(return_X_y=True)
    encoder = TableEncoder(discrete_features=False)
    tree = BayesNetClassifier(structure=ChowLiu(), encoder=encoder).fit(X[:1200], y[:1200])
    bayes = NaiveBayesClassifier(encoder=encoder).fit(X[:1200], y[:1200])
    codes, codes_train = (np.ascontiguousarray(tree.encoder_.encode(part).T) for part in (X[1200:], X[:1200]))
    return tree, bayes, codes[:N_ROWS], codes_train, y


def of_digits(digits, folder):
    """Yield classifiers of all kinds in C, of the first test rows of digits."""
    tree, bayes, codes, codes_train, _ = digits
    n_states = tree.tables_.layout.n_states
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(1 + n_states.sum(), 10))
    yield classifiers.integers("packed", tree.with_bits((3, 0)), codes, folder)
    yield classifiers.integers("bytes", tree.with_bits((4, 3)), codes, folder, packed=False)
    yield classifiers.floats("naive Bayes", bayes, codes)
    yield classifiers.floats("TAN", tree, codes)
    yield classifiers.linear("float", weights.astype(np.float32), codes, n_states)
    yield classifiers.linear("8 bits", classifiers.int8_weights(weights)[0], codes, n_states)
    layers = [
        (rng.normal(size=(n_states.sum(), 5)), rng.normal(size=5)),
        (rng.normal(size=(5, 10)), rng.normal(size=10)),
    ]
    yield classifiers.net("net", layers, codes, n_states, codes_train)


def test_classifiers_find_what_python_finds_bit_for_bit(part, digits, tmp_path):
    tree, *_ = digits
    found = {}
    for classifier in of_digits(digits, tmp_path):
        found[classifier.name] = measured(classifier, part, tmp_path, None)  # raises if a class or score differs
    assert np.isfinite(list(found.values())).all()
    cells = tree.tables_.n_cells
    assert cells * 3 / 8 < found["packed"][0] < found["bytes"][0] < found["TAN"][0]
    assert found["packed"][2] < found["TAN"][2]  # cycles: floats are functions of a library
    wrong = classifiers.integers("packed", tree.with_bits((3, 0)), digits[2], tmp_path)
    wrong.scores[3, 0] += 1
    with pytest.raises(RuntimeError, match="packed finds other scores on"):
        measured(wrong, part, tmp_path, None)


def test_what_c_must_find_is_what_the_models_predict(digits, tmp_path):
    tree, bayes, codes, *_ = digits
    integers, _, naive, floats, *_ = of_digits(digits, tmp_path)
    models = [(integers, tree.with_bits((3, 0))), (naive, bayes), (floats, tree)]
    for classifier, model in models:
        joint = log_joint(model.tables_, model.structure_, np.ascontiguousarray(codes.T))
        assert classifier.labels.tolist() == joint.argmax(axis=1).tolist()
    np.testing.assert_allclose(floats.scores, joint, rtol=1e-5)


def test_trees_of_emlearn_find_the_class_that_most_trees_name(part, digits, tmp_path):
    pytest.importorskip("emlearn")
    _, _, codes, codes_train, y = digits
    tree = DecisionTreeClassifier(max_leaf_nodes=20, random_state=0).fit(codes_train, y[:1200])
    classifier = classifiers.trees("tree", tree, codes, tmp_path)
    assert classifier.labels.tolist() == tree.predict(codes).tolist()
    measured(classifier, part, tmp_path, None)


def test_cells_beyond_64_kb_are_read_on_avr(tmp_path):
    rng = np.random.default_rng(0)
    n_states = [3, 29, 52]
    model = random_model(rng, n_states, 51, [-1, 0, 1], FixedPoint(8, 0))
    codes = np.stack([rng.integers(0, n, 200) for n in n_states], axis=1).astype(np.uint8)
    classifier = classifiers.integers("long", model, codes, tmp_path, packed=False)
    try:
        flash, *_ = measured(classifier, AVR, tmp_path, None)
    except toolchain.Missing as missing:
        pytest.skip(str(missing))
    assert flash > model.tables_.n_cells > 2**16 + 2**13


def test_categories_of_64_bits_are_read_from_the_flash_of_avr(tmp_path):
    rng = np.random.default_rng(0)
    values = np.array([2**40, -(2**50), 7])
    X = values[rng.integers(0, 3, (60, 2))]
    model = NaiveBayesClassifier(encoder=TableEncoder(discrete_features=True)).fit(X, X[:, 0] > 0).with_bits((3, 0))
    model.export_c(tmp_path / "wide.h")
    rows = np.vstack([X[:20], [[7, 8]]])  # a value that is none of its column's
    labels = np.append(model.predict(X[:20]).astype(int), -1)
    source = f"""#include "{tmp_path / "wide.h"}"
typedef wide_value value; typedef int16_t score; enum {{ LENGTH = 2, N_SCORES = 1 }};
static int16_t predict(const value *row) {{ return wide_predict(row); }}
static void get_scores(const value *row, score *scores) {{ scores[0] = wide_predict(row); }}
"""
    classifier = classifiers.Classifier("wide", source, labels, labels[:, None].astype(np.int16), rows)
    try:
        outcome = simulators.run(build(source, AVR, "-Os", tmp_path), AVR, classifier)
    except toolchain.Missing as missing:
        pytest.skip(str(missing))
    assert outcome.labels.tolist() == labels.tolist()


def test_cycles_of_avr_are_those_of_its_timer(digits, tmp_path):
    timer = """typedef uint8_t value; typedef uint16_t score; enum { LENGTH = 1, N_SCORES = 1 };
static volatile uint16_t spent;
static int16_t predict(const value *row)
{
    TCNT1 = 0;
    TCCR1B = 1; /* a count a cycle */
    for (volatile uint8_t k = row[0]; k > 0; --k) {}
    const uint16_t now = TCNT1; /* before it is stopped */
    TCCR1B = 0;
    spent = now;
    return 0;
}
static void get_scores(const value *row, score *scores) { scores[0] = spent; }
"""
    rows = np.array([[1], [10], [200]], np.uint8)
    classifier = classifiers.Classifier("timer", timer, np.zeros(3), np.zeros((3, 1), np.uint16), rows)
    try:
        outcome = simulators.run(build(timer, AVR, "-Os", tmp_path), AVR, classifier)
    except toolchain.Missing as missing:
        pytest.skip(str(missing))
    # What lies around the timer is the same for all rows.
    assert np.ptp(outcome.cycles.astype(int) - outcome.scores[:, 0].astype(int)) <= 2
    assert outcome.scores[2, 0] > 1000


def test_what_is_too_large_for_a_part_says_so(tmp_path):
    large = "typedef uint8_t value; typedef uint8_t score; enum { LENGTH = 1, N_SCORES = 1 };\n"
    arrays = "".join(f"static const uint8_t t{k}[30000] FLASH = {{1}};\n" for k in range(5))
    sums = " + ".join(f"READ_8(&t{k}[row[0]])" for k in range(5))
    body = f"static int16_t predict(const value *row) {{ return {sums}; }}\n"
    rest = "static void get_scores(const value *row, score *scores) { scores[0] = row[0]; }\n"
    try:
        with pytest.raises(TooLarge):
            build(large + arrays + body + rest, AVR, "-Os", tmp_path)
    except toolchain.Missing as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize(
    ("line", "on_m0", "on_m3"),
    [
        ("adds r0, r0, r1", (1, 2), (1, 3)),
        ("ldrb r0, [r1, r2]", (2, 3), (2, 4)),
        ("beq #0x20", (1, 2), (1, 3)),
        ("bics r0, r1", (1, 2), (1, 3)),
        ("bl #0x20", (3, 3), (3, 3)),
        ("push {r4, r5, r6, lr}", (5, 7), (5, 8)),
        ("stm r0!, {r1-r3}", (4, 6), (4, 7)),
        ("umull r0, r1, r2, r3", (5, 5), (5, 5)),
        ("muls r0, r1, r0", (1, 2), (1, 3)),
        ("bx lr", (1, 2), (1, 3)),
    ],
)
def test_the_model_of_cycles(line, on_m0, on_m3):
    mnemonic, operands = line.split(" ", 1)
    assert simulators.instruction_cycles(mnemonic, operands, True) == on_m0
    assert simulators.instruction_cycles(mnemonic, operands, False) == on_m3


def test_tools_that_cannot_be_had_say_why(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(toolchain.Missing, match="avr-gcc is not installed; name a folder to unpack"):
        toolchain.prepare("avr-gcc")
    with pytest.raises(toolchain.Missing, match="its Debian packages need apt-get and dpkg"):
        toolchain.prepare("avr-gcc", tmp_path)
    for name, body in (("apt-get", 'echo "E: no such package" >&2; exit 100'), ("dpkg", "exit 0")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    with pytest.raises(toolchain.Missing, match="apt-get cannot download avr-gcc: E: no such package"):
        toolchain.prepare("avr-gcc", tmp_path)
    assert subprocess.run(["apt-get"], check=False, capture_output=True).returncode == 100
