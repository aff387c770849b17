"""``tanlearn private-counts``: counts with noise in declared columns, which ``fit`` accepts."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from tanlearn import TableCounts, load

DECLARED = {
    "classes": ["no", "yes"],
    "columns": {"age": [30, 50], "town": ["Graz", "Linz"], "rooms": [1, 2, 3]},
    "categorical": ["rooms"],
}


@pytest.fixture
def files(tmp_path):
    """Return a folder with a table and the declaration of its columns."""
    rng = np.random.default_rng(0)
    age = rng.integers(18, 80, 400).astype(float)
    frame = pd.DataFrame(
        {
            "id": range(400),
            "age": age,
            "town": rng.choice(["Graz", "Linz", "Wien"], 400),
            "rooms": rng.integers(1, 4, 400),
            "late": np.where(age > 50, "yes", "no"),
        }
    )
    frame.loc[:5, "age"] = np.nan
    frame.to_csv(tmp_path / "rows.csv", index=False)
    (tmp_path / "declared.json").write_text(json.dumps(DECLARED), "utf-8")
    return tmp_path


def private(run, files, *options):
    """Run the command on the table."""
    return run(
        *("private-counts", files / "rows.csv", "-t", "late", "--declared", files / "declared.json"),
        *("-o", files / "out.counts", *options),
    )


def test_counts_have_noise_and_fit_a_model(run, files):
    done = private(run, files, "--epsilon", "2", "--chunk-rows", "150")
    assert done.exit_code == 0, done.output
    assert "3 columns, 2 classes (no, yes); discrete Laplace noise of standard deviation 4.93 in every" in done.stdout
    assert "privacy loss is epsilon 2, delta 0. Another run with these rows adds to the loss." in done.stderr
    assert re.search("unknown categories and count as missing: 'Wien'", done.stderr)
    counts = TableCounts.load(files / "out.counts")
    assert [noise.epsilon for noise in counts.noise] == [2.0]
    assert counts.encoder.n_states_.tolist() == [3, 2, 3]
    fitted = run("fit", files / "out.counts", "-o", files / "late.tan")
    assert fitted.exit_code == 0, fitted.output
    assert load(files / "late.tan").predict(pd.DataFrame({"age": [70.0], "town": ["Graz"], "rooms": [2]})) == ["yes"]


def test_single_counts_have_less_noise(run, files):
    done = private(run, files, "--epsilon", "2", "--single", "--delta", "1e-6")
    assert done.exit_code == 0, done.output
    assert "noise of standard deviation 2.8" in done.stdout  # 4 changed counts instead of 7


def test_classes_can_be_declared_in_any_order(run, files):
    (files / "declared.json").write_text(json.dumps({**DECLARED, "classes": ["yes", "no"]}), "utf-8")
    done = private(run, files, "--epsilon", "2")
    assert done.exit_code == 0, done.output
    assert TableCounts.load(files / "out.counts").classes.tolist() == ["no", "yes"]


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("{", r"declared\.json must be a JSON file: "),
        ([], r"must contain an object with the keys 'classes' and 'columns', .*, but has list\."),
        ({"classes": ["a"]}, r"but has no 'columns'\."),
        ({**DECLARED, "epsilon": 1}, r"but has an unknown key 'epsilon'\."),
        ({**DECLARED, "categorical": ["street"]}, r"'categorical' must be a list of some of these columns\."),
        ({"classes": ["a", "b"], "columns": {"age": []}}, r"'age' has no declared values\."),
        (
            {"classes": ["a", "b"], "columns": {"height": [1.5]}},
            r"must have all 1 columns of .*declared\.json, but 1 are absent: height\.",
        ),
        (
            {"classes": ["no", "yes"], "columns": {"age": [30], "late": ["no", "yes"]}},
            r"'columns' must not contain 'late', the column of the classes\. Remove it from 'columns'\.",
        ),
        ({**DECLARED, "classes": "no"}, r"'classes' must be a list of at least two different values, got 'no'\."),
        ({**DECLARED, "classes": ["no", "no"]}, r"'classes' must be a list .*, got \['no', 'no'\]\."),
    ],
)
def test_invalid_declarations_are_one_line(run, files, declared, message):
    text = declared if isinstance(declared, str) else json.dumps(declared)
    (files / "declared.json").write_text(text, "utf-8")
    done = private(run, files, "--epsilon", "1")
    assert done.exit_code == 2
    assert re.search(message, done.stderr)
    assert not (files / "out.counts").exists()


def test_losses_out_of_range_are_refused_before_rows_are_read(run, files):
    done = private(run, files, "--epsilon", "0")
    assert done.exit_code == 2
    assert "epsilon must be at least 1e-12, got 0" in done.stderr
