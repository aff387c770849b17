"""``tanlearn outliers``: the scores of ``TANDensity`` for the rows of a table, in their order."""

import io

import numpy as np
import pandas as pd
import pytest

from tanlearn import TANDensity


@pytest.fixture
def rows(tmp_path):
    """Return the path of a table with an id, dates, missing values and one wrong value, and its frame."""
    rng = np.random.default_rng(0)
    kind = rng.choice(["small", "large"], 120)
    frame = pd.DataFrame({"id": [f"C{i:03}" for i in range(120)], "kind": kind})
    frame["weight"] = np.round(np.where(kind == "small", 10, 90) + rng.normal(size=120), 2)
    frame["height"] = np.round(np.where(kind == "small", 1, 7) + 0.2 * rng.normal(size=120), 2)
    frame["since"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 120), unit="D")
    frame.loc[5, "kind"] = "large" if kind[5] == "small" else "small"
    frame.loc[7, ["weight", "since"]] = None
    frame.to_csv(tmp_path / "rows.csv", index=False)
    return tmp_path / "rows.csv", frame


def expected(frame, train=None, **options):
    """Return scores and surprises by hand."""
    columns = [own.drop(columns="id") for own in (frame, frame if train is None else train)]
    X, of_training = (own.assign(since=(own["since"] - pd.Timestamp(0)) / pd.Timedelta(days=1)) for own in columns)
    model = TANDensity(**{"contamination": 0.05, "random_state": 0, **options}).fit(of_training)
    return model.decision_function(X), model.surprises(X), X.columns


def test_scores_and_unusual_values_are_those_of_the_density(run, rows):
    path, frame = rows
    done = run("outliers", path, "--drop", "id", "--keep", "id,kind")
    assert done.exit_code == 0, done.output
    found = pd.read_csv(io.StringIO(done.stdout))
    scores, surprises, columns = expected(frame)
    assert list(found.columns) == ["id", "kind", "outlier", "score", "column", "surprise"]
    assert found["id"].tolist() == frame["id"].tolist()
    np.testing.assert_allclose(found["score"], scores)
    assert found["outlier"].tolist() == (scores < 0).tolist()
    np.testing.assert_allclose(found["surprise"], surprises.max(axis=1))
    assert found["column"].tolist() == columns[surprises.argmax(axis=1)].tolist()
    assert found.loc[5, "surprise"] > 2
    assert found.loc[5, "column"] in ("kind", "weight", "height")
    assert "dates are converted to days since 1970: since." in done.stderr
    assert f"{(scores < 0).sum()} of 120 rows are outliers." in done.stderr


def test_new_rows_are_compared_with_a_training_table(run, rows, tmp_path):
    path, frame = rows
    new = frame[["height", "since", "weight", "kind", "id"]].iloc[:10]
    new.to_csv(tmp_path / "new.csv", index=False)
    options = ["--drop", "id", "--contamination", "0.1", "-o", tmp_path / "out.csv"]
    done = run("outliers", tmp_path / "new.csv", "--train", path, *options)
    assert done.exit_code == 0, done.output
    scores, _, _ = expected(frame.iloc[:10], frame, contamination=0.1)
    np.testing.assert_allclose(pd.read_csv(tmp_path / "out.csv")["score"], scores)
    assert "not used" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--drop", "idd"], "there is no column 'idd'. Did you mean 'id'?"),
        (["--train", "no.csv"], "there is no file no.csv."),
        (["--contamination", "0.7"], "The 'contamination' parameter of TANDensity must be a float in the range"),
        (
            ["--drop", "id,kind,weight,height,since"],
            "at least one column is needed, but all are dropped. Drop fewer columns.",
        ),
        (["-o", "out.txt"], "--output must be - (standard output) or end in"),
    ],
)
def test_invalid_options_are_one_line(run, rows, arguments, message):
    done = run("outliers", rows[0], *arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stdout == ""
