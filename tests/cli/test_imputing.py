"""``tanlearn impute``: observed values stay as they are written, and missing ones are those of ``TANImputer``."""

import io

import numpy as np
import pandas as pd
import pytest

from tanlearn import TANImputer


@pytest.fixture
def frame():
    """Return an id, categories, numbers and dates that depend on each other, with missing values."""
    rng = np.random.default_rng(0)
    kind = rng.choice(["small", "large"], 150)
    found = pd.DataFrame({"id": [f"{i:04}" for i in range(150)], "kind": kind})
    found["weight"] = np.round(np.where(kind == "small", 10, 90) + rng.normal(size=150), 2)
    found["since"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, 150), unit="D")
    found["used"] = rng.random(150) < np.where(kind == "small", 0.2, 0.9)
    found["stars"] = np.where(kind == "small", 1, 3) + rng.integers(0, 2, 150)
    is_missing = rng.random((150, 5)) < 0.15
    return found.assign(**{name: found[name].astype(object) for name in ("used", "stars")}).mask(
        np.column_stack([np.zeros(150, bool), is_missing])
    )


def by_hand(frame, train=None, **options):
    """Return the frame that the imputer completes, with dates as days."""
    own = []
    for each in (frame, frame if train is None else train):
        X = each.drop(columns="id")
        days = (pd.to_datetime(X["since"]) - pd.Timestamp(0)) / pd.Timedelta(days=1)
        own.append(X.assign(since=days, stars=X["stars"].astype(float)))
    return TANImputer(random_state=0, **options).fit(own[1]).transform(own[0])


@pytest.mark.parametrize("strategy", ["mean", "joint"])
def test_missing_values_are_those_of_the_imputer(run, frame, tmp_path, strategy):
    path = tmp_path / "rows.csv"
    frame.to_csv(path, index=False)
    options = ["--strategy", strategy] if strategy != "mean" else []
    done = run("impute", path, "--drop", "id", "-o", tmp_path / "full.csv", *options)
    assert done.exit_code == 0, done.output
    lines, full = (pd.read_csv(own, dtype=str, keep_default_na=False) for own in (path, tmp_path / "full.csv"))
    assert list(full.columns) == list(frame.columns)
    is_missing = (lines == "").to_numpy()
    assert (full.to_numpy()[~is_missing] == lines.to_numpy()[~is_missing]).all()  # text is unchanged
    assert not (full == "").any(axis=None)
    expected = by_hand(frame, strategy=strategy)
    np.testing.assert_allclose(full["weight"].astype(float), expected["weight"], rtol=1e-8)
    np.testing.assert_allclose(full["stars"].astype(float), expected["stars"].astype(float), rtol=1e-8)
    assert full["kind"].tolist() == expected["kind"].tolist()
    assert full["used"].tolist() == [str(value) for value in expected["used"]]
    days = (pd.to_datetime(full["since"]) - pd.Timestamp(0)) / pd.Timedelta(days=1)
    np.testing.assert_allclose(days, expected["since"].astype(float).round())
    n_rows = is_missing.any(axis=1).sum()
    assert f"{is_missing.sum():,} values were imputed, in {n_rows} of 150 rows: {tmp_path / 'full.csv'}." in done.stderr


def test_rows_of_another_table_and_binary_files(run, frame, tmp_path):
    pytest.importorskip("pyarrow")
    typed = frame.assign(used=frame["used"].astype("boolean"), stars=frame["stars"].astype("Float64"))
    typed.to_parquet(tmp_path / "train.parquet")
    typed.iloc[:20].to_parquet(tmp_path / "new.parquet")
    done = run(
        "impute",
        tmp_path / "new.parquet",
        "--train",
        tmp_path / "train.parquet",
        "--drop",
        "id",
        "-o",
        tmp_path / "f.parquet",
    )
    assert done.exit_code == 0, done.output
    full = pd.read_parquet(tmp_path / "f.parquet")
    assert not full.isna().any(axis=None)
    expected = by_hand(frame.iloc[:20], frame)
    np.testing.assert_allclose(full["weight"], expected["weight"].astype(float), rtol=1e-12)
    assert full["since"].dtype.kind == "M"
    assert full["kind"].tolist() == expected["kind"].tolist()


def test_a_decimal_comma_and_columns_without_values(run, tmp_path):
    rows = [f"{'ab'[i % 2]};{10 + 70 * (i % 2)},{i % 10};" for i in range(60)]
    rows[3] = "b;;"
    done = run("impute", "-", "--decimal", ",", stdin="\n".join(["kind;size;empty", *rows]) + "\n")
    assert done.exit_code == 0, done.output
    full = pd.read_csv(io.StringIO(done.stdout), dtype=str)
    assert full["size"][0] == "10,0"
    assert 75 < float(full["size"][3].replace(",", ".")) < 85
    assert "columns without any value in training stay missing: empty." in done.stderr
    assert "1 value was imputed, in 1 of 60 rows." in done.stderr


@pytest.mark.parametrize(
    ("written", "options"),
    [("%d.%m.%Y", ["--dates", "day-first"]), ("%m/%d/%Y", ["--dates", "month-first"]), ("%Y-%m-%d", [])],
)
def test_dates_are_written_in_the_format_of_their_column(run, tmp_path, written, options):
    days = pd.Timestamp("2024-01-03") + pd.to_timedelta(np.arange(80) % 40, unit="D")
    frame = pd.DataFrame({"kind": np.where(np.arange(80) % 40 < 20, "early", "late"), "since": days.strftime(written)})
    frame.loc[[5, 25], "since"] = ""
    frame.to_csv(tmp_path / "rows.csv", index=False)
    done = run("impute", tmp_path / "rows.csv", *options)
    assert done.exit_code == 0, done.output
    full = pd.read_csv(io.StringIO(done.stdout), dtype=str)["since"]
    found = pd.to_datetime(full, format=written)  # raises ValueError for another format
    assert found[5] < pd.Timestamp("2024-01-24") <= found[25] + pd.Timedelta(days=1)


def test_invalid_options_are_one_line(run, frame, tmp_path):
    frame.to_csv(tmp_path / "rows.csv", index=False)
    for arguments, message in (
        (["--drop", "idd"], "there is no column 'idd'. Did you mean 'id'?"),
        (["--train", "no.csv"], "there is no file no.csv."),
        (["-o", tmp_path / "rows.csv"], "the output must not be an input, but"),
    ):
        done = run("impute", tmp_path / "rows.csv", *arguments)
        assert done.exit_code == 2
        assert message in done.stderr
    done = run("impute", "-", "--train", "-", stdin="a\n1\n")
    assert "only one of TABLE and --train can be standard input. Name a file for the other." in done.stderr
