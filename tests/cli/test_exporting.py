"""``tanlearn export-sql``, ``export-js`` and ``export-onnx``."""

import sqlite3
import sys

import pandas as pd
import pytest
from support.odd_tables import odd_table

import tanlearn


@pytest.fixture
def odd_model(tmp_path):
    """Return a classifier of odd columns, and the path of its file."""
    X, y = odd_table(300, 0, missing=0.1)
    classifier = tanlearn.NaiveBayesClassifier().fit(X, y)
    classifier.save(tmp_path / "odd.tan")
    return classifier, tmp_path / "odd.tan"


def test_a_statement_on_the_standard_output_predicts(run, odd_model):
    classifier, path = odd_model
    done = run(
        "export-sql", path, "--table", "o'dd \"table", "--dialect", "sqlite", "--keep", "x-y", "--keep", "select"
    )
    assert done.exit_code == 0, done.output
    assert done.stdout.endswith(";\n")
    X, _ = odd_table(30, 1, missing=0.2)
    database = sqlite3.connect(":memory:")
    X.to_sql("o'dd \"table", database, index=False)
    found = pd.read_sql(done.stdout.rstrip(";\n"), database)
    database.close()
    assert found["prediction"].tolist() == classifier.predict(X).tolist()
    assert found.columns.tolist() == ["x-y", "select", "prediction", *(f"probability_{c}" for c in classifier.classes_)]


def test_a_file_and_chosen_results(run, odd_model, tmp_path):
    _, path = odd_model
    options = ["--result", "log_joint", "--null-missing", "--schema", "clinic", "-o", tmp_path / "predict.sql"]
    done = run("export-sql", path, "--table", "visits", "--dialect", "postgresql", *options)
    assert done.exit_code == 0, done.output
    text = (tmp_path / "predict.sql").read_text("utf-8")
    assert done.stdout.endswith(f"predict.sql: {len(text.encode()):,} bytes\n")
    assert '"clinic"."visits"' in text
    assert '"prediction"' not in text
    assert "log_joint_it's" in text


def test_errors_name_the_options(run, odd_model, tmp_path):
    _, path = odd_model
    base = ["export-sql", path, "--table", "visits", "--dialect", "sqlite"]
    small = run(*base, "--max-bytes", "100")
    assert small.exit_code == 2
    assert "more than --max-bytes=100" in small.stderr
    assert "Pass a larger --max-bytes, or fit" in small.stderr
    X = [["a", "x"], ["b", "y"], ["a", "y"], ["b", "x"], ["a", "x"]]
    tree = tanlearn.BayesNetClassifier(structure=tanlearn.baselines.ChowLiu()).fit(X, [0, 1, 0, 1, 1])
    tree.save(tmp_path / "tree.tan")
    of_tree = run("export-sql", tmp_path / "tree.tan", *base[2:], "--max-bytes", "100")
    assert "more than --max-bytes=100" in of_tree.stderr
    assert "Pass --null-missing, a larger --max-bytes, or fit" in of_tree.stderr
    over = run(*base, "-o", path)
    assert over.exit_code == 2
    assert "odd.tan is both. Name another output" in over.stderr
    assert run("export-sql", tmp_path / "absent", "--table", "t", "--dialect", "duckdb").exit_code == 2


def test_a_module_is_that_of_python(run, odd_model, tmp_path):
    classifier, path = odd_model
    module = tanlearn.to_javascript(classifier)
    assert run("export-js", path).stdout == module
    done = run("export-js", path, "-o", tmp_path / "odd.mjs")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "odd.mjs").read_text("utf-8") == module
    assert "more than --max-bytes=10" in run("export-js", path, "--max-bytes", "10").stderr


def test_an_onnx_model_is_that_of_python(run, odd_model, tmp_path):
    pytest.importorskip("onnx", reason="exports to ONNX need the extra `onnx`")
    classifier, path = odd_model
    done = run("export-onnx", path, "-o", tmp_path / "odd.onnx")
    assert done.exit_code == 0, done.output
    assert (tmp_path / "odd.onnx").read_bytes() == tanlearn.to_onnx(classifier).SerializeToString()
    large = run("export-onnx", path, "-o", tmp_path / "odd.onnx", "--max-bytes", "100")
    assert large.exit_code == 2
    assert "more than --max-bytes=100" in large.stderr
    assert "Pass a larger --max-bytes" in large.stderr


def test_an_absent_package_for_onnx_is_named(run, odd_model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    done = run("export-onnx", odd_model[1], "-o", tmp_path / "odd.onnx")
    assert done.exit_code == 2
    assert 'to_onnx needs the package onnx. Install it with: pip install "tanlearn[onnx]"' in done.stderr
