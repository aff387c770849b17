"""Trees of questions: equal to `next_feature` after every sequence of answers, in Python and in C."""

import itertools
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from support.compilers import HOST, TARGETS

from tanlearn import (
    BayesForestClassifier,
    BayesNetClassifier,
    NaiveBayesClassifier,
    TableEncoder,
    TermNetClassifier,
    question_tree,
)
from tanlearn.baselines import ChowLiu, KDependence

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wsign-conversion", "-Werror", "-pedantic"]
SANITIZERS = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
compiled = pytest.mark.skipif(HOST is None, reason="there is no C compiler")
VALUES = {"town": ["Graz", "Linz", "Wels"], "size": [-5.0, 0.0, 5.0], "age": ["old", "young"], "rooms": [1, 2, 30]}
MODELS = {
    "naive": lambda: NaiveBayesClassifier(),
    "tree": lambda: BayesNetClassifier(structure=ChowLiu()),
    "2-dependence": lambda: BayesNetClassifier(structure=KDependence(k=2)),
    "terms": lambda: TermNetClassifier(),
}
SETTINGS = {
    "default": {},
    "all features": {"n_features": 4, "confidence": 1.0},
    "costs": {"n_features": 3, "confidence": 0.9, "costs": {"town": 3.0, "age": 0.2}},
    "accuracy": {"n_features": 2, "gain": "accuracy", "confidence": 0.99},
    "plans": {"n_features": 2, "gain": "accuracy", "depth": 2},
    "without town": {"n_features": 3, "unanswered": ["town"]},
}
PROGRAM = """
#include <stdio.h>
#include "ask.h"
static const ask_value rows[][ASK_N_FEATURES] = {{
{rows}}};
int main(void)
{{
    for (unsigned int row = 0; row < {n}u; ++row) {{
        ask_node node = ASK_FIRST;
        int16_t feature;
        while ((feature = ask_feature(node)) >= 0) {{
            printf("%d ", feature);
            if (ask_answer(&node, &rows[row][feature]) != 0) {{
                printf("? ");
                break;
            }}
        }}
        printf("%d %d\\n", ask_class(node), ask_is_sure(node));
    }}
    return 0;
}}
"""


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({name: rng.choice(values, 500) for name, values in VALUES.items()})
    X["size"] += rng.normal(size=500)
    y = np.where((X["size"] > 2.5) ^ (X["town"] == "Graz") ^ (rng.random(500) < 0.1), "yes", "no").astype(object)
    y[(X["rooms"] == 30) & (rng.random(500) < 0.5)] = "perhaps"
    return X, y


def every_row(model, table):
    """Return rows of all combinations of values, with a number from each interval."""
    cuts = model.encoder_.discretizer_.cut_points_
    values = {**VALUES, "size": [float(cuts[0][0]) - 1, *(cuts[0] + 1e-6).tolist()]}
    return pd.DataFrame(list(itertools.product(*values.values())), columns=list(values))


def asked_in_python(model, row, n_features=4, confidence=0.95, **options):
    """Return the numbers of the features that `next_feature` returns for a row, the class, and whether it is sure."""
    names, found = list(row.columns), []
    partial = pd.DataFrame([[None] * len(names)], columns=names)
    while True:
        probabilities = model.predict_proba(partial)[0]
        is_sure = probabilities.max() >= confidence
        feature = None if is_sure or len(found) == n_features else model.next_feature(partial, **options)[0]
        if feature is None:
            return [*map(names.index, found), int(probabilities.argmax()), int(is_sure)]
        partial[feature] = row[feature].to_numpy()
        found.append(feature)


def spelt(row):
    """Return a row as C."""
    town, size, age, rooms = row
    return (
        f'    {{{{.string = "{town}"}}, {{.number = {float(size).hex()}}}, {{.string = "{age}"}}, '
        f"{{.integer = {rooms}}}}},\n"
    )


@compiled
@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("kind", MODELS)
def test_every_path_asks_what_next_feature_returns(table, kind, setting, tmp_path):
    model = MODELS[kind]().fit(*table)
    if any(values is None for values in model.encoder_.categories_[::2]):
        pytest.skip("columns of categories became numeric")
    options = SETTINGS[setting]
    tree = question_tree(model, **options)
    X = every_row(model, table).iloc[:: 1 if kind == "naive" else 3]
    expected = [asked_in_python(model, X.iloc[[k]], **options) for k in range(len(X))]
    codes = model.encoder_.transform(X)
    for row, own in zip(codes, expected, strict=True):
        *features, best, is_sure = own
        for k in range(len(features) + 1):
            answers = row[features[:k]].tolist()
            wanted = X.columns[features[k]] if k < len(features) else None
            assert tree.next_feature(answers) == wanted
        assert tree.classify(row[features].tolist()) == (model.classes_[best], bool(is_sure))
    tree.export_c(tmp_path / "ask.h")
    rows = "".join(spelt(row) for row in X.itertuples(index=False))
    (tmp_path / "main.c").write_text(PROGRAM.format(rows=rows, n=len(X)))
    subprocess.run([HOST, *STRICT, *SANITIZERS, "main.c", "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert [[int(n) for n in line.split()] for line in done.stdout.splitlines()] == expected
    assert max(len(own) - 2 for own in expected) <= tree.depth <= options.get("n_features", 4)


@compiled
def test_a_missing_or_unseen_value_leaves_the_node(tmp_path):
    X = pd.DataFrame({"town": ["Graz", "Linz"] * 20, "size": np.arange(40.0)})
    y = np.where((X["size"] > 25) | ((X["size"] > 15) & (X["town"] == "Graz")), 1, 0)
    tree = question_tree(BayesNetClassifier(structure=ChowLiu()).fit(X, y), confidence=1.0)
    tree.export_c(tmp_path / "ask.h", number_type="float")
    rows = '    {{.string = "Wien"}, {.number = NAN}},\n    {{.string = 0}, {.number = 1.0f}},\n'
    program = "#include <math.h>" + PROGRAM.format(rows=rows, n=2)
    (tmp_path / "main.c").write_text(program)
    subprocess.run([HOST, *STRICT, *SANITIZERS, "main.c", "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert all("?" in line for line in done.stdout.splitlines()[:1])


@pytest.mark.parametrize("target", ["avr-atmega1284p", "gcc-m0plus"])
def test_microcontrollers_compile_it_without_multiplications(tmp_path, target):
    if TARGETS[target] is None:
        pytest.skip("there is no such compiler")
    X, y = load_iris(return_X_y=True)
    question_tree(NaiveBayesClassifier().fit(10 * X, y)).export_c(tmp_path / "ask.h", number_type="int16")
    text = '#include "ask.h"\nint16_t go(ask_node *node, const ask_value *value);\n'
    text += "int16_t go(ask_node *node, const ask_value *value) { return ask_answer(node, value); }\n"
    (tmp_path / "part.c").write_text(text)
    command = [*TARGETS[target], *STRICT, "-Os", "-S", "part.c", "-o", "part.s"]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert "mul" not in Path(tmp_path, "part.s").read_text()


def test_equal_subtrees_are_stored_once():
    X = pd.DataFrame({"a": [0, 1] * 40, "b": [0, 0, 1, 1] * 20, "c": [0, 0, 0, 0, 1, 1, 1, 1] * 10})
    model = NaiveBayesClassifier(encoder=TableEncoder(discrete_features=True)).fit(X, np.where(X.index == 0, 1, X["a"]))
    tree = question_tree(model, n_features=3, confidence=1.0)
    assert tree.n_paths == 8
    assert tree.n_questions == 5
    assert repr(tree) == f"QuestionTree(depth=3, n_questions={tree.n_questions}, n_paths=8)"


def test_wrong_parameters_are_named(tmp_path):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(NotFittedError):
        question_tree(NaiveBayesClassifier())
    with pytest.raises(TypeError, match="with a single network, got BayesForestClassifier"):
        question_tree(BayesForestClassifier(n_estimators=2).fit(X, y))
    model = NaiveBayesClassifier().fit(X, y)
    for options, message in (
        ({"n_features": 0}, "n_features must be an integer of at least 1, got 0"),
        ({"confidence": 1.5}, "confidence must be above 0 and at most 1, got 1.5"),
        ({"max_paths": True}, "max_paths must be an integer of at least 1, got True"),
        ({"max_paths": 2}, "at most max_paths=2 paths, but has more after 1 questions. Decrease n_features"),
        ({"unanswered": ["x9"]}, "unanswered contains 'x9', which is not the name or number of a feature"),
        ({"depth": 0}, "depth must be an integer of at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            question_tree(model, **options)
    with pytest.raises(TypeError, match="unanswered must be a list of features, got 'x0'"):
        question_tree(model, unanswered="x0")
    tree = question_tree(model, n_features=1)
    with pytest.raises(ValueError, match="answer 0 must be a code of the requested feature, got 99"):
        tree.next_feature([99])
    with pytest.raises(ValueError, match="answer 1 must be a code"):
        tree.classify([0, 0])
    with pytest.raises(ValueError, match="number_type must be one of"):
        tree.export_c(tmp_path / "ask.h", number_type="int8")
    with pytest.raises(ValueError, match="a tree needs at least one question"):
        question_tree(model, confidence=0.1).export_c(tmp_path / "ask.h")
    assert list(tmp_path.iterdir()) == []
