"""``tanlearn counts``, ``tanlearn merge`` and what ``fit`` makes of it: the model of all tables, whose rows stay."""

import numpy as np
import pandas as pd
import pytest

import tanlearn
from tanlearn import BayesForestClassifier, PairCounts, TableCounts
from tanlearn.counts.family_counts import FamilyCounts
from tanlearn.files import archive
from tanlearn.files.regular_files import SUMMARY
from tanlearn.files.summaries import load_summary


@pytest.fixture
def places(tmp_path):
    """Return paths of a table, and of its parts, one of which has what the other one lacks."""
    rng = np.random.default_rng(0)
    n = 400
    town = np.sort(rng.choice(["a", "b", "c"], n))
    y = np.where((rng.random(n) < 0.3) ^ (town == "b"), "yes", "no")
    born = rng.integers(0, 4000, n) + 1500 * (y == "no")
    frame = pd.DataFrame(
        {
            "town": town,
            "rooms": [1, 2] * 150 + [None] * 100,
            "area": rng.normal(size=n).round(2),
            "code": [*map(str, rng.integers(0, 5, 300)), *rng.choice(["x", "y"], 100)],
            "born": born.astype("M8[D]").astype(str),
            "y": y,
        }
    )
    frame["area"] += frame["y"] == "yes"
    frame.loc[[7, 350], "y"] = None
    frame.to_csv(tmp_path / "all.csv", index=False)
    frame[:250].to_csv(tmp_path / "a.csv", index=False)
    frame[250:].to_parquet(tmp_path / "b.parquet", index=False)
    return tmp_path


def told(done):
    """Return what was printed by a command that succeeded."""
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(done):
    """Return the line that a command was refused with."""
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    return line


def counted(run, places, *options):
    """Count both parts in what both have, and add that up."""
    for name in ("a.csv", "b.parquet"):
        told(run("counts", places / name, "-t", "y", "--summary", "--text", "code", "-o", places / f"{name}.summary"))
    parts = [places / f"{name}.summary" for name in ("a.csv", "b.parquet")]
    told(run("merge", *parts, "-o", places / "all.summary"))
    for name in ("a.csv", "b.parquet"):
        like = ["--like", places / "all.summary", *options, "--chunk-rows", 60]
        told(run("counts", places / name, "-t", "y", *like, "-o", places / f"{name}.counts"))
    return run("merge", *(places / f"{name}.counts" for name in ("a.csv", "b.parquet")), "-o", places / "all.counts")


@pytest.mark.parametrize("learner", ["NB ML", "TAN-CMI ML", "KDB-1 ML", "AODE"])
def test_counts_of_places_make_the_model_of_all_rows(run, places, learner):
    assert "2 files: 398 rows, 5 columns, 2 classes (no, yes)\n" in told(counted(run, places))
    done = run("fit", places / "all.counts", "-l", learner, "-o", places / "parts.tan")
    assert "all: 398 rows, 5 columns, 2 classes (no, yes); " in told(done)
    assert f"{learner}: " in done.stdout
    assert done.stderr == ""
    told(run("fit", places / "all.csv", "-t", "y", "-l", learner, "-o", places / "whole.tan"))
    one, two = (
        told(run("predict", places / name, places / "all.csv", "--proba")) for name in ("parts.tan", "whole.tan")
    )
    assert one == two
    assert len(set(one.splitlines())) > 20


def test_a_table_alone_is_counted_as_all_parts(run, places):
    told(counted(run, places))
    done = run("counts", places / "all.csv", "-t", "y", "-o", places / "whole.counts", "--chunk-rows", 90)
    assert "all: 398 rows, 5 columns, 2 classes (no, yes); " in told(done)
    assert " counts of values and pairs in " in done.stdout
    assert done.stderr.splitlines() == [
        f"tanlearn: note: {places / 'all.csv'}: text and other values are mixed in 'code', so all values are "
        "read as text.",
        "tanlearn: 2 of 400 rows have no 'y' and are left out.",
        "tanlearn: dates are converted to days since 1970: born.",
        "tanlearn: 'code' is read as text: besides numbers, it contains 'x', 'y'. --missing 'x' --missing 'y' reads "
        "these values as missing.",
    ]
    assert TableCounts.load(places / "whole.counts") == TableCounts.load(places / "all.counts")


def test_single_values_are_enough_for_naive_bayes(run, places):
    done = counted(run, places, "--single")
    assert " counts of values in " in told(done)
    assert isinstance(TableCounts.load(places / "all.counts").counts, FamilyCounts)
    assert "NB ML: " in told(run("fit", places / "all.counts", "-o", places / "m.tan"))
    line = refused(run("fit", places / "all.counts", "-l", "aode", "-o", places / "x.tan"))
    assert line.endswith(
        "AODE cannot be fitted to the counts in "
        + str(places / "all.counts")
        + ". Use one of these learners: NB ML, MANB."
    )
    assert not (places / "x.tan").exists()


def test_like_a_model_and_like_counts(run, places):
    told(run("fit", places / "all.csv", "-t", "y", "-l", "nb ml", "-o", places / "m.tan"))
    for name in ("a.csv", "b.parquet"):
        done = run("counts", places / name, "-t", "y", "--like", places / "m.tan", "-o", places / f"{name}.counts")
        assert "1 of " in done.stderr
        told(done)
    told(run("merge", places / "a.csv.counts", places / "b.parquet.counts", "-o", places / "all.counts"))
    model = tanlearn.load(places / "m.tan")
    found = tanlearn.NaiveBayesClassifier().from_counts(TableCounts.load(places / "all.counts"))
    np.testing.assert_array_equal(found.tables_.cells, model.tables_.cells)
    like = ["-t", "y", "--like", places / "all.counts", "-o", places / "again.counts"]
    told(run("counts", places / "a.csv", *like))
    assert TableCounts.load(places / "again.counts") == TableCounts.load(places / "a.csv.counts")
    told(run("counts", places / "a.csv", *like, "--single"))
    assert isinstance(TableCounts.load(places / "again.counts").counts, FamilyCounts)


def test_contexts_of_a_forest_are_filled(run, places):
    frame = pd.read_csv(places / "all.csv")[["town", "area", "y"]].dropna()
    forest = BayesForestClassifier(n_estimators=2, weights=None, random_state=0)
    forest.fit_batches(frame[:200], "y")
    TableCounts.of_model(forest).save(places / "f.counts")
    frame[200:].to_csv(places / "rest.csv", index=False)
    done = run("counts", places / "rest.csv", "-t", "y", "--like", places / "f.counts", "-o", places / "r.counts")
    assert "counts in ForestCounts in " in told(done)
    told(run("merge", places / "f.counts", places / "r.counts", "-o", places / "all.counts"))
    settings = [word for name in ("weights=None", "n_estimators=2") for word in ("--set", name)]
    told(run("fit", places / "all.counts", "-l", "BayesForest", *settings, "-o", places / "m.tan"))
    with pytest.warns(UserWarning, match="X column 'town'"):  # of which the first rows lack a category
        forest.partial_fit(frame[200:][["town", "area"]], frame[200:]["y"])
    X = frame[["town", "area"]]
    np.testing.assert_array_equal(tanlearn.load(places / "m.tan").predict_proba(X), forest.predict_proba(X))


def test_what_is_not_known_is_reported(run, places):
    told(run("counts", places / "a.csv", "-t", "y", "--text", "code", "-o", places / "a.counts"))
    frame = pd.read_parquet(places / "b.parquet")[["y", "rooms", "town", "area", "code", "born"]].assign(more=1)
    frame["town"] = np.where(np.arange(len(frame)) < 3, "Wien", frame["town"])
    frame.to_csv(places / "b.csv", index=False)
    like = ["-t", "y", "--like", places / "a.counts", "-o", places / "b.counts"]
    done = run("counts", places / "b.csv", *like, "--chunk-rows", 50)
    told(done)
    assert "tanlearn: not used: more." in done.stderr
    line = next(line for line in done.stderr.splitlines() if "'town' are unknown categories" in line)
    assert line.startswith("tanlearn: ")
    assert "count as missing: " in line
    assert "'Wien'" in line
    assert "when the encoder was fitted" not in done.stderr
    frame.drop(columns="area").to_csv(places / "b.csv", index=False)
    line = refused(run("counts", places / "b.csv", *like))
    assert "must have all 5 columns of " in line
    assert "are absent: area" in line
    frame.assign(area="large", y="maybe").to_csv(places / "b.csv", index=False)
    assert (
        "'area' must contain numbers, but row 1 contains the text 'large'."
        in run("counts", places / "b.csv", *like).stderr
    )
    frame.assign(y="maybe").to_csv(places / "b.csv", index=False)
    done = run("counts", places / "b.csv", *like)
    assert done.exit_code == 2
    assert "y holds 'maybe' in row 0, which is not among the classes: 'no', 'yes'." in done.stderr


def test_one_place_may_have_one_class_only(run, places):
    frame = pd.read_csv(places / "all.csv", dtype={"code": str}).dropna(subset="y")
    for label, part in frame.groupby("y"):
        part.to_csv(places / f"{label}.csv", index=False)
        told(run("counts", places / f"{label}.csv", "-t", "y", "--summary", "--text", "code", "-o", places / label))
    told(run("merge", places / "no", places / "yes", "-o", places / "all"))
    for label in ("no", "yes"):
        options = ["-t", "y", "--like", places / "all", "-o", places / f"{label}.counts"]
        told(run("counts", places / f"{label}.csv", *options))
    told(run("merge", places / "no.counts", places / "yes.counts", "-o", places / "all.counts"))
    assert TableCounts.load(places / "all.counts").counts.class_counts.sum() == 398
    assert (
        "must have at least two classes"
        in refused(run("counts", places / "no.csv", "-t", "y", "-o", places / "x")).lower()
    )
    line = refused(run("fit", places / "no.counts", "-o", places / "x"))
    assert "the counts must contain rows of at least two classes, got 1" in line


def test_what_does_not_add_up_names_the_file(run, places):
    for name, options in (("one", []), ("two", ["--drop", "born"]), ("three", ["--single"]), ("sum", ["--summary"])):
        told(run("counts", places / "all.csv", "-t", "y", *options, "-o", places / name))
    told(run("counts", places / "a.csv", "-t", "y", "--text", "code", "-o", places / "four"))
    one, output = places / "one", places / "output"
    for files, message in (
        ([one, places / "two"], f"{places / 'two'} (there) cannot be added to {one} (here): counts can be added only"),
        (
            [one, one, places / "three"],
            f"{places / 'three'} (there) cannot be added to {one}, {one} (here): counts of type",
        ),
        ([one, places / "four"], ", or tanlearn counts --like."),
        (
            [one, places / "sum"],
            f"only files of the same kind can be merged, but {one} is a counts file and {places / 'sum'} a summary.",
        ),
        (
            [one, places / "a.csv"],
            f"{places / 'a.csv'} must be a counts file or a summary. Create counts or a summary with tanlearn",
        ),
        ([one, places / "nothing"], f"there is no file {places / 'nothing'}."),
    ):
        assert message in refused(run("merge", *files, "-o", output))
    assert "the output must not be an input, but" in refused(run("merge", one, one, "-o", one))
    damaged = places / "damaged"
    damaged.write_bytes(one.read_bytes()[:-200])
    line = refused(run("merge", one, damaged, "-o", output))
    assert (
        f"'{damaged}' cannot be loaded: it is damaged (truncated or altered). Use an intact copy, or count again."
        in line
    )
    assert not output.exists()


def test_summaries_that_do_not_add_up_name_the_file(run, places):
    options = ["-t", "y", "--summary", "-o"]
    told(run("counts", places / "a.csv", *options, places / "one"))
    told(run("counts", places / "b.parquet", *options, places / "two"))
    told(run("counts", places / "a.csv", *options, places / "three", "--drop", "town"))
    line = refused(run("merge", places / "one", places / "two", "-o", places / "all"))
    assert f"{places / 'two'} cannot be merged with {places / 'one'}: 'code' holds int" in line
    assert line.endswith("To read a column as text, use tanlearn counts --summary --text.")
    line = refused(run("merge", places / "one", places / "three", "-o", places / "all"))
    assert f"{places / 'three'} has rooms, area, code, born, and {places / 'one'} has town, rooms" in line
    assert not (places / "all").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["all.csv"], "--target must name the column with the classes"),
        (["all.csv", "-t", "z"], "there is no column 'z'"),
        (["all.csv", "-t", "y", "--text", "z"], "there is no column 'z'"),
        (["all.csv", "-t", "y", "--summary", "--single"], "--single has no effect with --summary"),
        (
            ["all.csv", "-t", "y", "--like", "m", "--drop", "born"],
            "--drop has no effect with --like, because m determines",
        ),
        (["all.csv", "-t", "y", "--like", "m"], "there is no file m"),
        (["all.csv", "-t", "y", "--like", "a.csv"], "a.csv must be"),
        (["digits"], "digits must be a data file"),
        (["one"], "one is a tanlearn counts file, not a data file. Name a data file, such as"),
        (["all.csv", "-t", "y", "-o", "no/x"], "the folder no does not exist"),
    ],
)
def test_wrong_options_are_one_line(run, places, monkeypatch, options, message):
    told(run("counts", places / "all.csv", "-t", "y", "-o", places / "one"))
    monkeypatch.chdir(places)
    assert message in refused(run("counts", "-o", "x", *options))
    assert not (places / "x").exists()


@pytest.mark.parametrize(
    ("file", "options", "message"),
    [
        ("one", ["-t", "y"], "--target needs rows, but one contains counts. Leave out --target."),
        ("one", ["--folds", "3"], "--folds needs rows"),
        (
            "one",
            ["-l", "skdb"],
            "SKDB cannot be fitted to the counts in one. Use one of these learners: NB ML, TAN-CMI ML, FAN-CMI ML, "
            "TAN-EAR ML, "
            "KDB-1 ML, AODE, MANB.",
        ),
        ("one", ["-l", "kdb-2 ml"], "CPTs of several parents"),
        ("sum", [], "fit needs rows or counts, but sum is a summary. Count with: tanlearn counts TABLE --like sum."),
        ("m.tan", [], "m.tan is a model. Name a data file or a counts file."),
    ],
)
def test_fit_says_what_it_cannot_learn_from(run, places, monkeypatch, file, options, message):
    monkeypatch.chdir(places)
    told(run("counts", "all.csv", "-t", "y", "-o", "one"))
    told(run("counts", "all.csv", "-t", "y", "--summary", "-o", "sum"))
    told(run("fit", "one", "-o", "m.tan"))
    assert message in refused(run("fit", file, *options, "-o", "x.tan"))
    assert not (places / "x.tan").exists()


def test_summaries_are_kept_with_their_names(run, places):
    told(run("counts", places / "all.csv", "-t", "y", "--summary", "-o", places / "sum"))
    summary, names = load_summary(places / "sum")
    assert (summary.n_samples, names) == (398, ["town", "rooms", "area", "code", "born"])
    found = TableCounts.of_summary(summary, names)
    assert isinstance(found.counts, PairCounts)
    description, arrays = archive.unpack((places / "sum").read_bytes(), SUMMARY)
    for wrong, members in (
        ({**description, "names": names[1:]}, arrays),
        ({**description, "names": [1, *names[1:]]}, arrays),
        ({**description, "summary": "1.npy"}, arrays),
        (description, {"0.npy": arrays["0.npy"][:-1]}),
        (description, {"0.npy": arrays["0.npy"].astype(np.int64)}),
    ):
        (places / "sum").write_bytes(archive.pack(wrong, members, SUMMARY))
        with pytest.raises(ValueError, match="cannot be loaded"):
            load_summary(places / "sum")
