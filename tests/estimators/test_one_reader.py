"""A table in a file gives one model, whichever entry point reads it."""

import numpy as np
import pytest

import tanlearn
from tanlearn import NaiveBayesClassifier, TableCounts
from tanlearn.sources.datasets import load_dataset

pd = pytest.importorskip("pandas")
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of rows without a class, and of columns of strings


def nasty_rows():
    """Yield rows with leading zeros, spaces, line breaks, missing marks, dates and, late, a string among numbers."""
    rng = np.random.default_rng(0)
    for i in range(120):
        late = rng.random() < 0.5
        town = rng.choice(["Graz", " Linz", '"Bad\nAussee"'])
        age = rng.choice(["", "NA", str(rng.integers(20, 90))], p=[0.1, 0.1, 0.8])
        note = "old" if i == 110 else str(rng.integers(0, 3) + 2 * late)
        yield [f"0{rng.integers(0, 4)}{'1' if late else '2'}", town, age, f"2024-0{rng.integers(1, 10)}-10", note,
               f"{rng.normal() + 2 * late:.2f}", " late" if late else "on time "]  # fmt: skip


@pytest.fixture(params=[".", ","])
def table(request, tmp_path):
    """Return the path of a file, and the options that read it: numbers with either decimal mark."""
    comma = request.param == ","
    lines = [["zip", " town", "age", "since", "note", "delay", "state"], *nasty_rows(),
             ["none", "Wien", "old", "never", "x", "?", " "], ["Total", "", "many", "", "", "", ""]]  # fmt: skip
    if comma:
        for line in lines[1:]:
            line[5] = line[5].replace(".", ",")
    path = tmp_path / "nasty.csv"
    path.write_text("\n".join((";" if comma else ",").join(line) for line in lines) + "\n")
    return path, {"decimal": ","} if comma else {}


def assert_same(model, expected, frame):
    """Compare encoders, classes and probabilities, the last bit for bit."""
    for own, other in zip(model.encoder_.categories_, expected.encoder_.categories_, strict=True):
        assert (own is None) == (other is None)
        assert own is None or own.tolist() == other.tolist()
    assert model.encoder_.n_states_.tolist() == expected.encoder_.n_states_.tolist()
    assert model.classes_.tolist() == expected.classes_.tolist() == ["late", "on time"]
    np.testing.assert_array_equal(model.predict_proba(frame), expected.predict_proba(frame))


@pytest.fixture
def expected(table):
    """Return naive Bayes of the table in memory, and its rows."""
    path, options = table
    frame = tanlearn.read_table(path, target="state", **options)
    X = frame.drop(columns="state")
    model = NaiveBayesClassifier().fit(X, frame["state"])
    kinds = [
        "strings" if own is not None and own.dtype.kind in "OU" else "numbers" for own in model.encoder_.categories_
    ]
    assert kinds == ["strings", "strings", "numbers", "numbers", "strings", "numbers"]
    assert model.score(X, frame["state"]) > 0.8
    return model, X


def test_fit_batches_of_a_path_or_an_open_table(table, expected):
    path, options = table
    for source in [tanlearn.open_table(path, **options), *([] if options else [path, str(path), [path]])]:
        model = NaiveBayesClassifier().fit_batches(source, "state", batch_rows=16)
        assert_same(model, *expected)


def test_counts_of_a_path_or_an_open_table(table, expected):
    path, options = table
    found = TableCounts.of_source(tanlearn.open_table(path, **options), "state", batch_rows=16, pairs=False)
    assert_same(NaiveBayesClassifier().from_counts(found), *expected)
    again = TableCounts.of_source(tanlearn.open_table(path, **options), "state", batch_rows=16, like=found)
    assert again == found


def test_counts_of_a_part_whose_strings_look_like_numbers(tmp_path):
    rows = [("07", "n"), ("b", "y"), ("1", "n"), ("1", "y")] * 10
    for name, part in (("all", rows), ("numbers", [row for row in rows if row[0] == "1"])):
        (tmp_path / f"{name}.csv").write_text("a,y\n" + "".join(f"{a},{y}\n" for a, y in part))
    whole = TableCounts.of_source(tmp_path / "all.csv", "y")
    part = TableCounts.of_source(tmp_path / "numbers.csv", "y", like=whole)
    assert part.encoder.categories_[0].tolist() == ["07", "1", "b"]
    assert part.counts.class_counts.tolist() == [10, 10]
    model = NaiveBayesClassifier().from_counts(part)
    assert model.predict_proba(pd.DataFrame({"a": ["1", "b"]})).shape == (2, 2)


def test_load_dataset(table, expected):
    path, options = table
    if not options:
        dataset = load_dataset(path, target="state")
        assert_same(NaiveBayesClassifier().fit(dataset.X, dataset.y), *expected)


@pytest.mark.parametrize("chunks", [[], ["--chunk-rows", "16"]], ids=["whole", "chunks"])
def test_command_line(table, expected, tmp_path, chunks):
    testing = pytest.importorskip("typer.testing", reason="the command line needs the extra `cli`")
    from tanlearn.cli.app import build_app

    path, options = table
    output = tmp_path / "model.tan"
    decimal = ["--decimal", ","] if options else []
    arguments = ["fit", str(path), "-t", "state", "-o", str(output), "-l", "NB ML", *decimal, *chunks]
    done = testing.CliRunner().invoke(build_app(), arguments)
    assert done.exit_code == 0, done.output
    assert_same(tanlearn.load(output), *expected)


def test_predictions_of_the_command_line_for_a_model_of_batches(table, expected, tmp_path):
    testing = pytest.importorskip("typer.testing", reason="the command line needs the extra `cli`")
    from tanlearn.cli.app import build_app

    path, options = table
    model, X = expected
    own = NaiveBayesClassifier().fit_batches(tanlearn.open_table(path, **options), "state", batch_rows=16)
    own.save(tmp_path / "model.tan")
    new = tmp_path / "new.csv"
    new.write_text("\n".join(path.read_text().split("\n")[:-3]) + "\n")  # without the rows that have no class
    arguments = ["predict", str(tmp_path / "model.tan"), str(new), "--proba", "-o", str(tmp_path / "found.csv")]
    done = testing.CliRunner().invoke(build_app(), arguments)
    assert done.exit_code == 0, done.output
    found = pd.read_csv(tmp_path / "found.csv")
    np.testing.assert_allclose(found[["p_late", "p_on time"]], model.predict_proba(X), rtol=1e-12)


def test_dask(table, expected):
    dask_frame = pytest.importorskip("dask.dataframe")
    pytest.importorskip("distributed")
    from tanlearn import dask as with_dask

    path, options = table
    frame = tanlearn.read_table(path, target="state", **options)
    parts = dask_frame.from_pandas(frame, npartitions=3)
    model = with_dask.NaiveBayesClassifier().fit(parts, "state")
    assert_same(model, *expected)
