"""Classifiers in C: compiled with all warnings for errors, run under sanitizers, and equal to Python on every row."""

import re
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError
from support.compilers import HOST
from support.integer_models import random_model, random_parents

from tanlearn import (
    BayesNetClassifier,
    FixedPoint,
    IntegerTables,
    NaiveBayesClassifier,
    TableEncoder,
)
from tanlearn.baselines import AODEClassifier, ChowLiu, KDependence
from tanlearn.c_export import cells as c_cells
from tanlearn.c_export import header as c_export
from tanlearn.models.bayes_net import BayesNet

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "discretized"
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-pedantic"]
SANITIZERS = ["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
compiled = pytest.mark.skipif(HOST is None, reason="there is no C compiler")
X_IRIS, Y_IRIS = load_iris(return_X_y=True)


def run(folder, programs):
    """Compile programs of several headers as one, and return what it prints."""
    parts = [f'#define main main_{i}\n#include "{name}_test.c"\n#undef main\n' for i, name in enumerate(programs)]
    calls = " || ".join(f"main_{i}()" for i in range(len(parts)))
    Path(folder, "all.c").write_text(f"{''.join(parts)}int main(void) {{ return {calls}; }}\n")
    subprocess.run([HOST, *STRICT, *SANITIZERS, "all.c", "-o", "all"], cwd=folder, check=True)
    done = subprocess.run(["./all"], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def numbers_of(path, array):
    """Return the numbers of an array in a file of C."""
    return [int(number) for number in re.findall(r"-?\d+", re.search(rf"{array}\[.*?= {{(.*?)}};", path, re.DOTALL)[1])]


@compiled
@pytest.mark.parametrize("number_type", ["float", "double"])
def test_every_type_of_constant_has_its_way_to_be_read_on_avr(tmp_path, number_type):
    rng = np.random.default_rng(0)
    wide = rng.choice([2**40, -(2**50), 7], 60)
    X = pd.DataFrame(
        {"wide": wide, "short": rng.integers(0, 300, 60) % 9 * 300, "number": rng.normal(size=60).round(2)}
    )
    y = X["number"] > X["number"].median()
    encoder = TableEncoder(discrete_features=[0, 1])
    model = NaiveBayesClassifier(encoder=encoder).fit(X, y).with_bits((3, 0))
    model.export_c(tmp_path / "m.h", number_type=number_type, test_rows=X)
    header = (tmp_path / "m.h").read_text()
    asked = {*re.findall(r"\bM_READ_(?:\d+|FLOAT|DOUBLE)", header)}
    assert "M_READ_64" in asked
    assert ("M_READ_DOUBLE" in asked) == (number_type == "double")
    for reader in asked:  # whatever is not defined for AVR would read memory in place of flash, without a word
        assert re.search(rf"^#define {reader}\(pointer\) (pgm_read_|m_read_)", header, re.MULTILINE)
    options = ["-D__AVR__", f"-I{Path(__file__).parent / 'stand_ins' / 'flash'}"]
    subprocess.run([HOST, *STRICT, *SANITIZERS, *options, "m_test.c", "-o", "m"], cwd=tmp_path, check=True)
    done = subprocess.run(["./m"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "60 rows of m agree\n", done.stderr


@compiled
def test_random_models_agree_with_python_on_random_codes(tmp_path):
    rng = np.random.default_rng(0)
    names = []
    for n_bits in range(1, 17):
        for packed in (True, False):
            n_features, n_parents = int(rng.integers(1, 6)), int(rng.integers(0, 5))
            n_states = rng.integers(1, 7, n_features).tolist()
            n_classes = int(rng.choice([3, 5, 7, 11]))  # odd: rows of packed numbers begin at every bit of a byte
            parents = random_parents(rng, n_features, n_parents)
            fixed_point = FixedPoint(3, n_bits - 3)
            model = random_model(rng, n_states, n_classes, parents, fixed_point, ties=n_bits % 3 == 0)
            X = np.stack([rng.integers(0, k, 40) for k in n_states], axis=1)
            names.append(f"m{n_bits}{'' if packed else '_bytes'}")
            model.export_c(tmp_path / f"{names[-1]}.h", packed=packed, test_rows=X)
            found = numbers_of((tmp_path / f"{names[-1]}_test.c").read_text(), "_test_class")
            assert found == np.searchsorted(model.classes_, model.predict(X)).tolist()
    assert run(tmp_path, names).count("40 rows of") == 32


@compiled
@pytest.mark.parametrize(("n_states", "n_bits"), [([300, 2, 40], 5), ([2, 255, 3], 12), ([256, 256], 1)])
def test_many_states_agree_with_python(tmp_path, n_states, n_bits):
    rng = np.random.default_rng(1)
    parents = random_parents(rng, len(n_states), 2)
    model = random_model(rng, n_states, 3, parents, FixedPoint(n_bits, 0))
    X = np.stack([rng.integers(-1, k + 1, 500) for k in n_states], axis=1)  # -1 and k are unseen
    model.export_c(tmp_path / "wide.h", test_rows=X)
    assert "-1" in re.search(r"_test_class\[.*", (tmp_path / "wide_test.c").read_text(), re.DOTALL)[0]
    run(tmp_path, ["wide"])


@compiled
def test_a_tie_goes_to_the_first_class(tmp_path):
    model = random_model(np.random.default_rng(0), [3, 2], 3, [-1, 0], FixedPoint(2, 0))
    model.model_ = BayesNet(
        model.structure_,
        IntegerTables(model.tables_.layout, np.full(model.tables_.layout.n_cells, 3), FixedPoint(2, 0)),
    )
    X = [[0, 0], [1, 1], [2, 0]]
    model.export_c(tmp_path / "tie.h", test_rows=X)
    assert numbers_of((tmp_path / "tie_test.c").read_text(), "_test_class") == [0, 0, 0]
    run(tmp_path, ["tie"])


STRINGS = ['a "quoted" \\ back', "", "a", "ab", "größe", "??/", "*/ \n", "model_name", "@n_rows@", "7"]


@compiled
def test_raw_values_of_all_kinds_are_encoded_as_in_python(tmp_path):
    rng = np.random.default_rng(2)
    n = 300
    y = rng.permutation(np.array(STRINGS[:3]).repeat(100))
    columns = {
        "size [m*m]": rng.normal(size=n) + 3 * (y == ""),
        "town */": rng.choice(np.array(STRINGS, dtype=object), n),
        "big": rng.choice([2**40, -(2**63) + 1, 7], n),
        "small": rng.choice([-3, 5, 100], n),
        "flag": rng.random(n) < 0.5,
        "few": rng.choice([0.5, 2.0, np.nan], n),
        "span": pd.cut(rng.random(n), 3),
        "grade": pd.Categorical(rng.choice(["low", "high"], n), categories=["low", "mid", "high"]),
        "constant": np.full(n, 1.25),
    }
    X = pd.DataFrame(columns)
    encoder = TableEncoder(discrete_features=[name for name in columns if name not in ("size [m*m]", "constant")])
    model = BayesNetClassifier(structure=ChowLiu(), encoder=encoder).fit(X, y).with_bits((3, 2))
    rows = X.copy()
    rows.loc[0, "town */"] = "unseen"
    rows.loc[1, "town */"] = None
    rows.loc[2, "small"] = 2**31 - 1
    rows.loc[3, "size [m*m]"] = np.nan
    rows.loc[4, "span"] = None
    rows.loc[5, "few"] = 0.25
    model.export_c(tmp_path / "model_x.h", test_rows=rows)
    model.export_c(tmp_path / "single.h", test_rows=rows, number_type="float", packed=False)
    found = numbers_of((tmp_path / "model_x_test.c").read_text(), "_test_class")
    assert found[:6] == [-1] * 6
    assert (np.array(found) == -1).sum() == 6 + X["few"].isna()[6:].sum()
    present = rows.notna().all(axis=1) & (np.arange(n) > 5)
    assert np.searchsorted(model.classes_, model.predict(rows[present])).tolist() == np.array(found)[present].tolist()
    run(tmp_path, ["model_x", "single"])
    header = (tmp_path / "model_x.h").read_text()
    assert "[0] .number double: size [m_m]" in header
    assert "[6] .code model_x_code, the code that encoder_.transform returns" in header
    assert "MODEL_X_CLASS_a_quoted_back = 2," in header


@compiled
@pytest.mark.parametrize("number_type", ["double", "float", "int32", "int16"])
def test_numbers_fall_on_the_same_side_of_every_cut(tmp_path, number_type):
    rng = np.random.default_rng(3)
    X = rng.normal(scale=100, size=(400, 2))
    X[:, 1] = np.rint(X[:, 1])
    y = (X[:, 0] > 12.3).astype(int) + (X[:, 1] > 40) + 2 * (X[:, 1] > -17)
    model = NaiveBayesClassifier().fit(X, y).with_bits((4, 0))
    cuts = np.concatenate(model.encoder_.discretizer_.cut_points_)
    assert len(cuts) >= 3
    if number_type in ("double", "float"):
        dtype = np.float32 if number_type == "float" else np.float64
        near = [np.nextafter(dtype(cut), dtype(way)) for cut in cuts for way in (-np.inf, np.inf)]
        values = np.array([*near, *cuts.astype(dtype), 0, -0.0, np.nan, np.finfo(dtype).max, np.finfo(dtype).min])
    else:
        values = np.array([*np.floor(cuts), *np.ceil(cuts), 0, 2**15 - 1, -(2**15)])
    model.export_c(tmp_path / "near.h", number_type=number_type, test_rows=np.stack([values, values[::-1]], axis=1))
    run(tmp_path, ["near"])


@compiled
def test_every_row_of_the_test_part_of_digits_agrees(tmp_path):
    X, y = load_digits(return_X_y=True)
    encoder = TableEncoder(
        discrete_features=False
    )  # pixels at the border have few values, and new ones in the test part
    tree = BayesNetClassifier(structure=ChowLiu(), encoder=encoder).fit(X[:1200], y[:1200])
    two = BayesNetClassifier(structure=KDependence(k=2), encoder=encoder).fit(X[:1200], y[:1200])
    tree.with_bits((4, 0)).export_c(tmp_path / "tree.h", number_type="int16", test_rows=X[1200:])
    two.with_bits((4, 1)).export_c(tmp_path / "two.h", test_rows=X[1200:])
    assert run(tmp_path, ["tree", "two"]) == "597 rows of tree agree\n597 rows of two agree\n"
    found = numbers_of((tmp_path / "two_test.c").read_text(), "_test_class")
    assert found == two.with_bits((4, 1)).predict(X[1200:]).tolist()


@compiled
@pytest.mark.data
@pytest.mark.skipif(not DATA.exists(), reason="the real data sets are not beside the project")
def test_every_row_of_the_test_part_of_letter_agrees(tmp_path):
    with np.load(DATA / "letter.npz") as file:
        X, y, X_test = (file[f"{part}_fold1"] for part in ("x_tr", "t_tr", "x_te"))
    encoder = TableEncoder(discrete_features=True)
    model = BayesNetClassifier(structure=ChowLiu(), encoder=encoder).fit(X, y).with_bits((3, 1))
    model.export_c(tmp_path / "letter.h", test_rows=X_test)
    assert run(tmp_path, ["letter"]) == f"{len(X_test)} rows of letter agree\n"
    found = numbers_of((tmp_path / "letter_test.c").read_text(), "_test_class")
    assert model.classes_[found].tolist() == model.predict(X_test).tolist()


@compiled
def test_the_self_test_finds_a_wrong_number(tmp_path):
    model = NaiveBayesClassifier().fit(X_IRIS, Y_IRIS).with_bits((3, 5))
    model.export_c(tmp_path / "iris.h", packed=False, test_rows=X_IRIS)
    header = (tmp_path / "iris.h").read_text()
    (tmp_path / "iris.h").write_text(re.sub(r"(iris_cells\[\d+\] IRIS_ATTRIBUTE = {\n    )\d+", r"\g<1>255", header))
    subprocess.run([HOST, "-std=c99", "iris_test.c", "-o", "iris"], cwd=tmp_path, check=True)
    done = subprocess.run(["./iris"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert re.fullmatch(r"row \d+: iris_\w+ gives \d+ instead of \d+\n", done.stdout)


def test_arrays_are_read_by_macros_only(tmp_path):
    model = random_model(np.random.default_rng(0), [3, 4, 300], 3, [-1, 0, 0], FixedPoint(4, 1))
    model.export_c(tmp_path / "m.h")
    text = (tmp_path / "m.h").read_text()
    arrays = re.findall(r"static const \w+ (m_\w+)\[\d+\] M_ATTRIBUTE", text)
    assert {"m_cells", "m_offset", "m_multiples", "m_parent0", "m_integers"} <= {*arrays}
    for array in arrays:
        uses = [
            text[found.end() - len(array) - 20 :][:20] for found in re.finditer(rf"\b{array}\b(?!\[\d*\] M_A)", text)
        ]
        assert uses
        assert all(re.search(r"M_READ_\d+\(&$| = &$", use) for use in uses)  # the latter are pointers, read by macros


def test_equal_models_make_equal_files(tmp_path):
    for name in ("a", "b"):
        model = BayesNetClassifier(structure=ChowLiu()).fit(X_IRIS, Y_IRIS).with_bits((3, 2))
        model.export_c(tmp_path / f"{name}.h", name="iris")
    assert (tmp_path / "a.h").read_bytes() == (tmp_path / "b.h").read_bytes()


class Halves:
    """A discretiser of one's own."""

    def fit(self, X, y, sample_weight=None):
        self.n_states_ = np.full(X.shape[1], 2)
        return self

    def transform(self, X):
        return (X > 3).astype(np.uint8)

    def get_params(self, deep=True):
        return {}


@compiled
def test_columns_of_another_discretiser_take_the_numbers_of_states(tmp_path):
    model = NaiveBayesClassifier(encoder=TableEncoder(discretizer=Halves())).fit(X_IRIS, Y_IRIS).with_bits((3, 2))
    model.export_c(tmp_path / "halves.h", test_rows=X_IRIS)
    assert "typedef halves_code halves_value" in (tmp_path / "halves.h").read_text()
    run(tmp_path, ["halves"])


def small(X, **options):
    """Return a classifier of rows in two classes."""
    encoder = TableEncoder(**options)
    return NaiveBayesClassifier(encoder=encoder).fit(X, np.arange(len(X)) % 2).with_bits((2, 1))


@pytest.mark.parametrize(
    ("X", "options", "message"),
    [
        ([["a"], ["b"]], {"name": "2nd"}, "name must be a C identifier .* got '2nd'"),
        ([["a"], ["b"]], {"name": "int x"}, "name must be a C identifier .* got 'int x'"),
        ([["a"], ["b"]], {"number_type": "int8"}, "number_type must be one of 'double', 'float', .* got 'int8'"),
        ([["a\0"], ["b"]], {}, r"const char \* cannot represent 'a\\x00' in column 'x0'"),
        ([["\ud800"], ["b"]], {}, r"const char \* cannot represent '\\ud800' in"),
        ([[0.1], [None], [2.5]], {"number_type": "float"}, "float cannot represent the category 0.1"),
        ([[0.5], [2.5]], {"number_type": "int16"}, "int16_t cannot represent 0.5 in column"),
        ([[40000], [1]], {"number_type": "int16"}, "int16_t cannot represent 40000 in column"),
        ([[2**63], [1]], {}, "int64_t cannot represent 9223372036854775808 in column"),
        ([["a", None], ["b", None]], {}, "columns must have values in training, but column 'x1' had none"),
        ([["a"], ["b"]], {"test_rows": [[1]]}, r"const char \* cannot represent 1 in X column 0, row 0\."),
        ([[1], [2]], {"test_rows": [[1.5]]}, r"int32_t cannot represent 1\.5 in X column 0, row 0\."),
        ([[1], [2]], {"test_rows": [[1], [None]]}, "X column 0 has a missing value in row 1"),
        ([[1], [2]], {"test_rows": [[1, 2]]}, "X has 2 features"),
    ],
)
def test_what_c_cannot_hold_is_refused_and_nothing_written(tmp_path, X, options, message):
    model = small(X, discrete_features=True)
    with pytest.raises(ValueError, match=message):
        model.export_c(tmp_path / "m.h", **options)
    assert list(tmp_path.iterdir()) == []


def test_cuts_beyond_the_type_of_numbers_are_refused(tmp_path):
    X = np.repeat([[1.0], [1e6]], 20, axis=0)
    model = NaiveBayesClassifier(encoder=TableEncoder(discrete_features=False)).fit(X, X[:, 0] > 5).with_bits((2, 1))
    with pytest.raises(
        ValueError, match=r"must be in the range of int16_t, but column 'x0' has the cut point 500000.5. Pass a wider"
    ):
        model.export_c(tmp_path / "m.h", number_type="int16")
    model.export_c(tmp_path / "m.h", number_type="int32")


def test_more_than_c_can_count_is_refused(tmp_path, monkeypatch):
    model = NaiveBayesClassifier().fit(X_IRIS, Y_IRIS).with_bits((3, 2))
    monkeypatch.setattr(c_export, "_MOST", 3)
    with pytest.raises(
        ValueError, match="there must be at most 3 features and classes, because a C int may have 16 bits, got 4"
    ):
        model.export_c(tmp_path / "m.h")
    monkeypatch.undo()
    monkeypatch.setattr(c_cells, "_LARGEST_POSITION", 100)
    with pytest.raises(ValueError, match=r"because positions in C have 32 bits, got \d+ bits"):
        model.export_c(tmp_path / "m.h")


def test_only_fitted_classifiers_of_integers_are_exported(tmp_path):
    with pytest.raises(NotFittedError):
        NaiveBayesClassifier().export_c(tmp_path / "m.h")
    with pytest.raises(ValueError, match=r"Train with bits=.*model.with_bits"):
        NaiveBayesClassifier().fit(X_IRIS, Y_IRIS).export_c(tmp_path / "m.h")
    model = small([["a"], ["b"]])
    with pytest.raises(ValueError, match="to be included in C"):
        model.export_c(tmp_path / 'a"b.h', name="m", test_rows=[["a"]])
    with pytest.raises(OSError, match="Make the folder first"):
        model.export_c(tmp_path / "none" / "m.h")


def test_classifiers_without_a_single_network_are_refused(tmp_path):
    model = AODEClassifier().fit(X_IRIS, Y_IRIS)
    message = r"exported to C, got AODEClassifier\. .* Ensembles can be exported with to_javascript"
    with pytest.raises(TypeError, match=message):
        c_export.export_c(model, tmp_path / "m.h")
    assert not (tmp_path / "m.h").exists()
