"""``tanlearn fit``: from a stranger's table to a model in a file."""

from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
from support.command_line import plain

import tanlearn
from tanlearn import SoftHybrid, TANClassifier, comparison
from tanlearn.baselines import find_learner
from tanlearn.cli import fitting
from tanlearn.files.encoders import encoder_difference
from tanlearn.sources.file_source import dates_as_days


def reference(text_path):
    """Return the tree of the shop's table, by hand."""
    frame = pd.read_csv(text_path, skipinitialspace=True)
    frame.columns = [name.strip() for name in frame.columns]
    frame["buys"], frame["town"] = frame["buys"].str.strip(), frame["town"].str.strip()
    frame = frame[frame["buys"].notna()].drop(columns="id")
    frame["signed up"] = (pd.to_datetime(frame["signed up"]) - pd.Timestamp(0)) / pd.Timedelta(days=1)
    return find_learner("TAN-CMI ML").make().fit(frame.drop(columns="buys"), frame["buys"].to_numpy())


def test_model_of_a_table_is_that_of_its_cleaned_rows(run, shop, model, shop_text):
    loaded, by_hand = tanlearn.load(model), reference(shop)
    assert loaded.feature_names_in_.tolist() == ["age", "town", "signed up", "spent", "newsletter"]
    assert loaded.classes_.tolist() == ["no", "yes"]
    assert loaded.structure_ == by_hand.structure_
    np.testing.assert_array_equal(loaded.tables_.cells, by_hand.tables_.cells)


def test_what_is_fitted_and_what_to_mind_is_reported(run, shop, tmp_path):
    done = run("fit", shop, "-t", "buys", "-l", "nb ml", "-o", tmp_path / "m.tan", "--folds", "3")
    assert done.exit_code == 0
    first, second, third = done.stdout.splitlines()
    assert first.startswith("shop: 298 rows, 6 columns, 2 classes (no, yes); ")
    assert second.startswith("NB ML: ")
    assert third.startswith("held out, 3 fold(s): ")
    notes = done.stderr.splitlines()
    assert notes[:3] == [
        "tanlearn: 2 of 300 rows have no 'buys' and are left out.",
        "tanlearn: dates are converted to days since 1970: signed up.",
        "tanlearn: 'id' looks like an identifier of rows. If so, use --drop to leave it out.",
    ]


def test_numbers_of_rows_and_quantities_as_targets_are_minded(run, tmp_path):
    path = tmp_path / "t.csv"
    pd.DataFrame({"n": range(10, 110), "x": [0, 1] * 50, "price": range(100)}).to_csv(path, index=False)
    done = run("fit", path, "-t", "price", "-l", "nb ml", "-o", tmp_path / "m.tan")
    assert "'n' looks like an identifier of rows" in done.stderr
    assert "'price' has 100 different values in 100 rows, so it may be a quantity" in done.stderr
    assert "'x'" not in done.stderr


def test_estimate_is_that_of_a_comparison(run, shop, model, tmp_path, monkeypatch):
    asked = []
    real = comparison.compare
    monkeypatch.setattr("tanlearn.comparison.compare", lambda *a, **k: asked.append(real(*a, **k)) or asked[-1])
    done = run("fit", shop, "-t", "buys", "--drop", "id", "-l", "tan-cmi ml", "-o", tmp_path / "m.tan", "--folds", "4")
    (result,) = asked[0].means()
    assert (result.n_folds, result.n_train + result.n_test, result.failure) == (4, 298, None)
    assert f"held out, 4 fold(s): {result.test_error:.2f} % wrong (standard deviation" in done.stdout
    assert (tmp_path / "m.tan").read_bytes() == model.read_bytes()


def test_a_pipe_and_other_formats_make_the_same_model(run, shop, model, shop_text, tmp_path):
    frame = pd.read_csv(shop, skipinitialspace=True).rename(columns=str.strip)
    frame["signed up"] = pd.to_datetime(frame["signed up"])
    frame.to_parquet(tmp_path / "shop.parquet")
    frame.to_feather(tmp_path / "shop.feather")
    path = tmp_path / "m.tan"
    for source, stdin in (("-", shop_text), (tmp_path / "shop.parquet", None), (tmp_path / "shop.feather", None)):
        done = run("fit", source, "-t", "buys", "--drop", "id", "-l", "TAN-CMI ML", "-o", path, stdin=stdin)
        assert done.exit_code == 0, done.output
        assert path.read_bytes() == model.read_bytes()


def test_data_sets_with_a_name_are_fitted_too(run, tmp_path):
    path = tmp_path / "m.tan"
    assert run("fit", "digits", "-l", "nb ml", "-o", path).exit_code == 0
    assert tanlearn.load(path).feature_names_in_[:2].tolist() == ["pixel_0_0", "pixel_0_1"]
    done = run("fit", "digits", "-l", "nb ml", "-o", path, "--drop", "pixel_0_0")
    assert done.exit_code == 2
    assert done.stderr == "tanlearn: --drop needs a data file, but digits is not a file. Leave out --drop.\n"


def test_parameters_are_set_by_name(run, shop, tmp_path):
    path = tmp_path / "m.tan"
    settings = [
        "n_epochs=2",
        "loss=SoftHybrid(trade_off=5, eta=0.5)",
        "candidates__n_candidates=3",
        "encoder__handle_unknown=error",
    ]
    options = [word for setting in settings for word in ("--set", setting)]
    options += ["--learner", "TAN Subset HYB", "--set", "calibrate=FALSE"]
    done = run("fit", shop, "-t", "buys", "--drop", "id,age", "-o", path, *options)
    assert done.exit_code == 0, done.output
    model = tanlearn.load(path)
    assert type(model) is TANClassifier
    assert (model.n_epochs, model.calibrate, model.training) == (2, False, None)
    assert repr(model.candidates) == "Candidates(n_candidates=3)"
    assert repr(model.loss) == repr(SoftHybrid(trade_off=5, eta=0.5))
    assert model.encoder.handle_unknown == "error"


def test_a_parameter_of_a_part_is_suggested(run, shop, tmp_path):
    done = run("fit", shop, "-t", "buys", "--drop", "id", "-l", "nb ml", "--set", "alpha=2", "-o", tmp_path / "m.tan")
    assert done.exit_code == 2
    assert "has no parameter 'alpha'. Did you mean 'parameters__alpha'? Its parameters are: class_prior," in done.stderr


def test_parameters_of_default_parts_are_suggested(run, shop, tmp_path):
    options = ["-t", "buys", "--drop", "id", "-l", "BayesEnsemble", "-o", tmp_path / "m.tan"]
    done = run("fit", shop, *options, "--set", "n_estimators=2")
    assert done.exit_code == 2
    assert "has no parameter 'n_estimators'. Did you mean 'forest__n_estimators'? Its parameters are:" in done.stderr
    several = run("fit", shop, *options, "--set", "max_terms=2").stderr
    assert "Did you mean 'boosting__max_terms'?" in several
    options[options.index("BayesEnsemble")] = "TAN-CMI ML"
    monotone = run("fit", shop, *options, "--set", "increasing=['age']").stderr
    assert "has no parameter 'increasing'. Use --learner BoostedTerms, or" in monotone


def test_former_parameters_are_set_with_a_note(run, shop, tmp_path):
    path = tmp_path / "m.tan"
    options = ["--set", "n_epochs=2", "--set", "batch_size=50", "--set", "candidates=Candidates('all')"]
    done = run("fit", shop, "-t", "buys", "--drop", "id,age", "-l", "tan subset hyb", "-o", path, *options)
    assert done.exit_code == 0, done.output
    assert "removed in version 0.4: batch_size. Use set_params(training__batch_size=...)." in done.stderr
    model = tanlearn.load(path)
    assert repr(model.training) == "GradientTraining(batch_size=50)"
    assert repr(model.candidates) == "Candidates(kind='all')"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            ["nepochs=3"],
            "TANClassifier has no parameter 'nepochs'. Did you mean 'n_epochs'? Its parameters are: bits",
        ),
        (["n_epochs"], "--set must be name=value, got 'n_epochs'."),
        # Python 3.13 parses deeper expressions, and returns the string as it is.
        (
            [f"n_epochs={'-' * 5000}1"],
            ("--set: the value must not be nested", "The 'n_epochs' parameter of TANClassifier must be"),
        ),
        (["n_epochs=-3"], "The 'n_epochs' parameter of TANClassifier must be"),
        (["loss=__import__('os')"], "loss must be an object, got the string \"__import__('os')\". Pass a loss"),
    ],
)
def test_wrong_parameters_are_refused(run, shop, tmp_path, settings, message):
    path = tmp_path / "m.tan"
    done = run("fit", shop, "-t", "buys", "-l", "tan subset hyb", "-o", path, "--set", *settings)
    assert done.exit_code == 2
    assert not path.exists()
    messages = (message,) if isinstance(message, str) else message
    assert done.stderr.splitlines()[-1].startswith(tuple(f"tanlearn: {text}" for text in messages))


BAD = {
    "empty": (b"", "cannot be read: it is empty"),
    "header": (b"a,b\n", "has no rows"),
    "ragged": (b"a,b\n1,x\n2\n", "line 3: the row has 1 field(s), but the header has 2"),
    "bytes": (b"a,b\n1,caf\xe9\n", "line 2 is not valid utf-8 text"),
    "one class": (
        b"a,b\n1,x\n2,x\n",
        "the target 'b' must have at least two classes, but has only one value, 'x', in 2 rows.",
    ),
    "no class": (b"a,b\n1,\n2,\n", "the target 'b' must have at least two classes, but has no value in 2 rows."),
    "one column": (b"b\nx\ny\n", "at least one column besides the target is needed"),
}


@pytest.mark.parametrize("chunks", [[], ["--chunk-rows", "100"]])
@pytest.mark.parametrize("name", BAD)
def test_a_bad_table_is_one_line_and_no_model(run, tmp_path, name, chunks):
    content, message = BAD[name]
    table, path = tmp_path / "bad.csv", tmp_path / "m.tan"
    table.write_bytes(content)
    path.write_text("what was there")
    done = run("fit", table, "-t", "b", "-l", "nb ml", "-o", path, *chunks)
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"tanlearn: {table}")
    assert message in line
    assert path.read_text() == "what was there"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-t", "buy"], "there is no column 'buy'. Did you mean 'buys'? The columns are: id, age,"),
        ([], "--target must name the column with the classes. The columns are: id, age,"),
        (["-t", "buys", "--drop", "idd"], "there is no column 'idd'. Did you mean 'id'?"),
        (["-t", "buys", "-l", "TAN CMI ML"], "there is no learner 'TAN CMI ML'. Did you mean 'TAN-CMI ML'?"),
        (["-t", "buys", "--chunk-rows", "50", "-l", "nb hyb"], "NB HYB cannot be fitted in chunks"),
        (["-t", "buys", "--chunk-rows", "50", "--folds", "3"], "--folds needs all rows in memory"),
        (["--set", "n_epochs=-3", "-l", "tan subset hyb"], "The 'n_epochs' parameter of TANClassifier must be"),
        (
            ["--set", "encoder__handle_unknown=x", "-l", "nb ml"],
            "The 'handle_unknown' parameter of TableEncoder must be",
        ),
    ],
)
def test_a_wrong_option_is_one_line(run, shop, tmp_path, options, message):
    done = run("fit", shop, "-o", tmp_path / "m.tan", *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "m.tan").exists()


def test_where_nothing_can_be_written_nothing_is_fitted(run, shop, tmp_path):
    for path, message in ((tmp_path / "no" / "m.tan", "does not exist. Create it first"), (tmp_path, "is a folder")):
        done = run("fit", shop, "-t", "buys", "-o", path)
        assert done.exit_code == 2
        assert message in done.stderr
        assert "rows have no" not in done.stderr


def test_folds_and_threads_are_checked_before_the_work(run, shop, tmp_path):
    done = run("fit", shop, "-t", "buys", "--drop", "id", "--folds", "299", "-o", tmp_path / "m.tan")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "at least one class must have 299 rows or more for 299 folds. Use at most" in done.stderr
    for command in (["fit", shop, "-t", "buys", "-o", tmp_path / "m.tan"], ["compare", shop, "-t", "buys"]):
        done = run(*command, "--jobs", "0")
        assert (done.exit_code, done.stdout) == (2, "")
        assert "it must be a positive number of threads" in plain(done.stderr)
    done = run("fit", "digits", "--chunk-rows", "50", "-o", tmp_path / "m.tan")
    assert "--chunk-rows needs a data file, but digits is not a file. Leave out --chunk-rows." in done.stderr
    assert not (tmp_path / "m.tan").exists()


def test_folds_share_no_checkpoint(run, shop, tmp_path, monkeypatch):
    made = []
    real = comparison.compare
    monkeypatch.setattr(
        "tanlearn.comparison.compare",
        lambda dataset, learners, **k: made.append(learners.make()) or real(dataset, learners, **k),
    )
    settings = ["--set", "n_epochs=2", "--set", f"training__checkpoint={tmp_path / 'c'}", "--set", "warm_start=true"]
    options = ["-t", "buys", "--drop", "id", "-l", "tan subset hyb", "--folds", "2", "-o", tmp_path / "m.tan"]
    done = run("fit", shop, *options, *settings, "--set", "loss=SoftHybrid()")
    assert done.exit_code == 0, done.output
    ((twin,),) = (made,)
    assert (twin.training.checkpoint, twin.warm_start, twin.n_epochs) == (None, False, 2)


def test_why_numbers_are_texts_is_reported(run, tmp_path):
    path = tmp_path / "t.csv"
    rows = [f"00{i % 7};{i},{i % 9};{'?' if i % 9 == 0 else i};{'ab'[i % 2]}" for i in range(60)]
    path.write_text("zip;share;age;y\n" + "\n".join(rows) + "\n")
    options = ["-t", "y", "-l", "nb ml", "-o", tmp_path / "m.tan"]
    assert (
        "'zip' is read as text, because it contains digits" in run("fit", path, *options, "--chunk-rows", "20").stderr
    )
    notes = run("fit", path, *options).stderr
    assert "'zip' is read as text, because it contains digits with leading zeros, or numbers stored as text." in notes
    assert (
        "'share' is read as text, because it contains commas, as in '0,0'. To read numbers, use --decimal ,." in notes
    )
    assert (
        "'age' is read as text: besides numbers, it contains '?'. --missing '?' reads this value as missing." in notes
    )
    assert "'age' looks like an identifier of rows" not in notes
    done = run("fit", path, *options, "--decimal", ",", "--missing", "?")
    assert done.exit_code == 0
    assert [known is None for known in tanlearn.load(tmp_path / "m.tan").encoder_.categories_] == [False, True, True]
    assert "is read as text" not in done.stderr.replace("'zip'", "")[100:]


def test_advice_is_in_words_of_the_command_line_and_given_once(run, tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"noise": rng.normal(size=200), "more": rng.normal(size=200), "y": [0, 1] * 100})
    frame.to_csv(tmp_path / "t.csv", index=False)
    done = run("fit", tmp_path / "t.csv", "-t", "y", "-l", "nb ml", "-o", tmp_path / "m.tan", "--folds", "3")
    assert done.exit_code == 0
    (line,) = [line for line in done.stderr.splitlines() if "discretization" in line]
    assert line.endswith("by such a column alone. --drop leaves such a column out.")


def test_a_column_that_equals_the_class_is_named_with_the_option(run, tmp_path):
    pd.DataFrame({"size": [1.5, 2.5] * 40, "buys": ["no", "yes"] * 40, "y": ["no", "yes"] * 40}).to_csv(
        tmp_path / "t.csv", index=False
    )
    done = run("fit", tmp_path / "t.csv", "-t", "y", "-l", "nb ml", "-o", tmp_path / "m.tan")
    assert "note: y equals a column in every row: 'buys'. --drop leaves it out." in done.stderr


def test_learners_that_count_by_chunks_are_named(run, shop, tmp_path):
    done = run("fit", shop, "-t", "buys", "--chunk-rows", "50", "-l", "nb hyb", "-o", tmp_path / "m.tan")
    trees = "TAN-CMI ML, FAN-CMI ML, TAN-EAR ML, KDB-1 ML, KDB-2 ML, KDB-5 HS, KDB-5 HDP"
    able = f"Use one of these learners: NB ML, {trees}, AODE, A2DE, A3DE, SKDB, MANB"
    assert f"NB HYB cannot be fitted in chunks, because it needs all rows at once. {able}, or read" in done.stderr


@pytest.mark.parametrize("learner", ["nb ml", "tan-cmi ml", "kdb-2 ml", "kdb-5 hdp", "aode", "a2de"])
def test_chunks_make_the_model_of_all_rows(run, tmp_path, learner):
    """Sorted rows, so that later chunks have what the first one lacks: categories, gaps, texts among numbers, cuts."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "town": np.sort(rng.choice(["a", "b", "c", "d"], 200)),
            "month": np.sort(rng.integers(0, 9, 200)),
            "code": [*map(str, rng.integers(0, 5, 150)), *rng.choice(["x", "y"], 50)],
            "flag": [True, False] * 100,
            "gaps": [1, 2] * 90 + [None] * 20,
            "born": np.sort(rng.integers(0, 4000, 200)).astype("M8[D]").astype(str),
            "y": np.repeat([0, 1, 2, 0], 50),
        }
    )
    frame["area"] = (frame["y"] + rng.normal(size=200)).round(2)
    path, whole, parts = tmp_path / "t.csv", tmp_path / "whole.tan", tmp_path / "parts.tan"
    frame.to_csv(path, index=False)
    for output, n_rows in ((whole, 0), (parts, 30)):
        done = run("fit", path, "-t", "y", "-l", learner, "-o", output, "--chunk-rows", n_rows)
        assert done.exit_code == 0, done.output
    assert "text and other values are mixed in 'code', so all values are read as text." in done.stderr
    one, other = tanlearn.load(whole), tanlearn.load(parts)
    assert encoder_difference(one.encoder_, other.encoder_) is None
    assert {"born", "area"} <= {
        name for name, n in zip(one.feature_names_in_, one.encoder_.n_states_, strict=True) if n > 1
    }
    X = dates_as_days(frame.drop(columns="y").astype({"code": str}))[0]
    np.testing.assert_array_equal(one.predict_joint_log_proba(X), other.predict_joint_log_proba(X))


def test_chunks_take_dates_and_quantities_for_what_they_are(run, shop, tmp_path):
    path = tmp_path / "m.tan"
    done = run("fit", shop, "-t", "buys", "--drop", "id", "-o", path, "--chunk-rows", "200")
    assert done.exit_code == 0, done.output
    assert done.stderr.splitlines()[:2] == [
        "tanlearn: 2 of 300 rows have no 'buys' and are left out.",
        "tanlearn: dates are converted to days since 1970: signed up.",
    ]
    assert "TAN-CMI ML: " in done.stdout
    assert tanlearn.load(path).encoder_.is_discrete_.tolist() == [False, True, False, False, True]


def test_large_files_are_fitted_by_chunks(run, shop, tmp_path, monkeypatch):
    monkeypatch.setattr(fitting, "_LARGE", 1000)
    done = run("fit", shop, "-t", "buys", "--drop", "id", "-o", tmp_path / "m.tan")
    assert "is large and is read in chunks of 200,000 rows." in done.stderr
    assert "shop: 298 rows" in done.stdout


def test_chunks_keep_integers_integers(run, tmp_path):
    """Those above 2**53, as numbers of accounts are, would fall together as floats."""
    rng = np.random.default_rng(0)
    large = rng.integers(0, 3, 200) + 2**60
    frame = pd.DataFrame({"big": large, "y": rng.integers(0, 2, 200) + 2**60})
    gaps = frame.astype("Int64").mask(rng.random((200, 2)) < 0.1)
    frame.to_csv(tmp_path / "t.csv", index=False)
    gaps.to_parquet(tmp_path / "t.parquet")
    for source in ("t.csv", "t.parquet"):
        for n_rows in (0, 50):
            done = run("fit", tmp_path / source, "-t", "y", "-l", "nb ml", "-o", tmp_path / "m", "--chunk-rows", n_rows)
            assert done.exit_code == 0, done.output
            model = tanlearn.load(tmp_path / "m")
            assert model.classes_.tolist() == [2**60, 2**60 + 1]
            assert model.encoder_.categories_[0].tolist() == [2**60, 2**60 + 1, 2**60 + 2]


@pytest.mark.parametrize("chunks", [[], ["--chunk-rows", "2"]])
@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            [1.0, 2.0, np.inf, None],
            "holds inf, but class labels must be strings, integers or booleans. Replace it with",
        ),
        ([1.0, 2.5, 2.0, None], "holds 2.5, but class labels must be strings, integers or booleans. Round it, or"),
        ([b"a", b"b", b"a", None], "holds bytes. Decode them to strings."),
    ],
)
def test_classes_of_no_kind_are_refused(run, tmp_path, labels, message, chunks):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": [1, 2, 1, 2], "y": labels}).to_parquet(path)
    done = run("fit", path, "-t", "y", "-l", "nb ml", "-o", tmp_path / "m.tan", *chunks)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"tanlearn: {path}: the target 'y' {message}" in done.stderr


def test_whole_floats_are_integers_unless_they_are_too_large_for_that(run, tmp_path):
    for scale, kind in ((1.0, int), (1e17, float)):
        pd.DataFrame({"a": [1, 2, 1, 2], "y": [scale, 2 * scale, scale, None]}).to_parquet(tmp_path / "t.parquet")
        assert run("fit", tmp_path / "t.parquet", "-t", "y", "-l", "nb ml", "-o", tmp_path / "m").exit_code == 0
        assert [type(label) for label in tanlearn.load(tmp_path / "m").classes_.tolist()] == [kind, kind]


def test_in_chunks_gaps_are_no_texts_and_truths_no_numbers(run, tmp_path):
    path = tmp_path / "t.csv"
    pd.DataFrame({"n": [1, 2] * 20 + [None] * 40, "s": [None] * 40 + ["u", "v"] * 20, "y": ["a", "b"] * 40}).to_csv(
        path, index=False
    )
    options = ["-l", "nb ml", "-o", tmp_path / "m", "--chunk-rows", 20]
    done = run("fit", path, "-t", "y", *options)
    assert (done.exit_code, done.stderr) == (0, "")
    pd.DataFrame({"s": [None] * 40 + ["u", "v"] * 20, "y": ["a", "b"] * 40}).to_parquet(tmp_path / "t.parquet")
    done = run("fit", tmp_path / "t.parquet", "-t", "y", *options)
    assert (done.exit_code, done.stderr) == (0, "")
    path.write_text("a,y\n" + "1,True\n2,False\n" * 20 + "1,1\n2,0\n" * 20)
    done = run("fit", path, "-t", "y", *options)
    assert done.exit_code == 0
    assert tanlearn.load(tmp_path / "m").classes_.tolist() == ["0", "1", "False", "True"]


def test_metadata_is_stored_and_described(run, shop, tmp_path):
    base = ["fit", shop, "--target", "buys", "--drop", "id", "--learner", "NB ML", "-o", tmp_path / "shop.tan"]
    assert run(*base, "--metadata", "author=Ada = L", "--metadata", " source =shop.csv").exit_code == 0
    found = tanlearn.load(tmp_path / "shop.tan").metadata_
    assert found["user"] == {"author": "Ada = L", "source": "shop.csv"}
    assert found["rows"] == 298
    shown = run("describe", tmp_path / "shop.tan").stdout
    assert f"saved       {found['saved']}, from 298 rows\n" in shown
    assert "versions    tanlearn 0." in shown
    assert "author      Ada = L\n" in shown
    wrong = run(*base, "--metadata", "author")
    assert wrong.exit_code == 2
    assert "--metadata must be KEY=VALUE, such as author=Ada, got 'author'." in wrong.stderr


def test_lines_of_a_verbose_fit_do_not_mix_with_the_progress_bar(run, shop, tmp_path, monkeypatch):
    lines = []

    @contextmanager
    def progress_bar(title):
        yield lambda share, note="", line="": lines.append(line)

    monkeypatch.setattr(fitting, "progress_bar", progress_bar)
    options = "-t", "buys", "-l", "BoostedTerms", "--set", "max_terms=10", "--set", "verbose=1"
    done = run("fit", shop, *options, "-o", tmp_path / "m.tan")
    assert done.exit_code == 0, done.output
    assert any(lines)
    assert not any(line in done.output for line in lines if line)


def test_messages_of_a_fit_are_shown_by_the_progress_bar(run, shop, tmp_path, monkeypatch):
    """Each bar gets the messages of its own fit, which prints nothing."""
    notes = []

    @contextmanager
    def progress_bar(title):
        yield lambda share, note="": notes.append(f"{title}: {note}")

    monkeypatch.setattr(fitting, "progress_bar", progress_bar)
    options = "-t", "buys", "-l", "BoostedTerms", "--set", "max_terms=10", "-o", tmp_path / "m.tan"
    done = run("fit", shop, *options)
    assert done.exit_code == 0, done.output
    assert "held-out" not in done.output
    assert notes[0].startswith("BoostedTerms with max_terms=10: 10 terms: held-out log loss ")
    n_notes = len(notes)
    tanlearn.BoostedTermsClassifier(max_terms=10).fit([[0], [1]] * 20, [0, 1] * 20)
    assert len(notes) == n_notes
