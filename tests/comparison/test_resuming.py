"""Comparisons that are killed, interrupted and continued, and files whose results cannot be merged."""

import signal
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import FitFailedWarning
from sklearn.tree import DecisionTreeClassifier
from support import processes
from support.difficult_learners import Logged

from tanlearn import NaiveBayesClassifier
from tanlearn.comparison import CellResult, Comparison, compare
from tanlearn.comparison.results import ResultFile, to_csv

X, Y = load_iris(return_X_y=True)
PROGRAM = """
import sys
sys.path[:] = {path!r}
from support.difficult_learners import Logged
from tanlearn.comparison import compare
compare("iris", Logged({folder!r}), n_folds=3, n_repeats=2, path={file!r}, cell_time_limit={limit!r})
"""


@pytest.fixture
def folder(tmp_path):
    """Return a folder in which ``Logged`` waits in its fourth fit."""
    (tmp_path / "hang").write_text("4")
    return tmp_path


@pytest.fixture
def file(tmp_path):
    """Return the path of a results file."""
    return tmp_path / "results.csv"


def without_times(comparison):
    """Return the cells without their times."""
    return [replace(cell, fit_seconds=None, predict_seconds=None) for cell in comparison.cells]


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
@pytest.mark.parametrize("limit", [None, 3600.0], ids=["in this process", "in workers"])
def test_a_kill_loses_the_running_cell_only(folder, file, limit):
    program = PROGRAM.format(path=sys.path, folder=str(folder), file=str(file), limit=limit)
    with processes.started([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True) as process:
        while process.poll() is None and not ((folder / "fits").exists() and count_lines(folder / "fits") == 4):
            pass
        process.send_signal(signal.SIGKILL)
        _, errors = processes.output(process)  # ends when the workers have ended, too
    assert errors == ""
    before = Comparison.load(file)
    assert len(before.cells) == 3
    (folder / "hang").unlink()
    found = compare("iris", Logged(str(folder)), n_folds=3, n_repeats=2, path=file)
    fits = (folder / "fits").read_text().splitlines()
    assert len(fits) == 7  # the killed one twice
    assert len(set(fits)) == 6
    assert found.cells[:3] == before.cells
    assert without_times(found) == without_times(compare("iris", Logged(str(folder)), n_folds=3, n_repeats=2)) != []
    assert sorted(Comparison.load(file).cells, key=lambda cell: cell.key) == list(found.cells)


def count_lines(path):
    """Return the number of lines of a file."""
    return len(path.read_text().splitlines())


def test_finished_cells_are_not_run_again(tmp_path, file):
    learner = {"own": Logged(str(tmp_path))}
    first = compare("iris", learner, n_folds=2, path=file)
    reported = []
    again = compare("iris", {**learner, "tree": "TAN-CMI ML"}, n_folds=2, path=file, finished=reported.append)
    assert count_lines(tmp_path / "fits") == 2
    assert again.cells[:2] == first.cells
    assert sorted(reported, key=again.cells.index) == list(again.cells)
    more = compare("iris", learner, n_folds=2, n_repeats=2, path=file)
    assert count_lines(tmp_path / "fits") == 4
    assert [cell.seed for cell in more.cells] == [0, 0, 1, 1]
    assert len(Comparison.load(file).cells) == 6


def test_a_half_written_line_is_dropped(file):
    whole = compare("iris", ["NB ML", "TAN-CMI ML"], n_folds=2, path=file)
    content = file.read_bytes()
    for end in range(len(content)):
        if end % 97 == 0:  # at any byte, in steps that are coprime to the length of lines
            file.write_bytes(content[:end])
            n_whole = max(content[:end].count(b"\n") - 1, 0)
            if n_whole or b"\n" in content[:end]:
                assert Comparison.load(file).cells == whole.cells[:n_whole]
            found = compare("iris", ["NB ML", "TAN-CMI ML"], n_folds=2, path=file)
            assert found.cells[:n_whole] == whole.cells[:n_whole]
            assert without_times(found) == without_times(whole)
            assert len(Comparison.load(file).cells) == 4


def test_cells_are_read_as_they_were_written(file):
    cell = CellResult(
        dataset='odd, "name"',
        learner="ünïcode",
        repeat=1,
        fold=2,
        error=100 / 3,
        log_loss=5e-324,
        auc=None,
        n_parameters=7,
        failure="line\nbreak",
        n_train=10,
        n_test=5,
        n_folds=3,
        seed=0,
        data_id="00",
        learner_id="1e5",
        settings="",
        versions="",
    )
    Comparison([cell]).save(file)
    assert Comparison.load(file).cells == (replace(cell, failure="line break"),)
    assert file.read_text(encoding="utf-8").count("\n") == 2


def test_spreadsheets_and_pandas_read_the_file(file):
    pandas = pytest.importorskip("pandas", reason="needs tanlearn[frames]")
    comparison = compare(["iris", "wine"], ["NB ML"], n_folds=2, path=file)
    frame = pandas.read_csv(file)
    assert frame["dataset"].tolist() == ["iris"] * 2 + ["wine"] * 2
    assert frame["error"].tolist() == comparison.to_frame()["error"].tolist() == [c.error for c in comparison.cells]
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())  # as spreadsheets save
    assert Comparison.load(file).cells == comparison.cells


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (
            {"iris": (X[:-1], Y[:-1])},
            {},
            r"'iris' differs: 150 rows .* in .*results\.csv, but 149 .* in this comparison\.",
        ),
        ({"iris": (X + 1e-9, Y)}, {}, r"data set 'iris' differs: 150 rows \(digest \w+\).*150 rows \(digest"),
        ({"iris": (X, 2 - Y)}, {}, "the data set 'iris' differs"),
        ({"iris": (X, Y)}, {"n_folds": 3}, r"number of folds of 'iris' differs: 2 in .*, but 3 in this comparison"),
        ({"iris": (X, Y)}, {"random_state": 5}, r"the seed of repeat 1 differs: 0 in .*, but 5 in this comparison"),
        ({"iris": (X, Y)}, {"learner": DecisionTreeClassifier(max_depth=3)}, r"max_depth=2\).*max_depth=3\)"),
        ({"iris": (X, Y)}, {"learner": DecisionTreeClassifier(max_depth=2, random_state=1)}, "learner 'own' differs"),
        ({"iris": (X, Y)}, {"learner": NaiveBayesClassifier()}, "learner 'own' differs"),
    ],
)
def test_other_data_protocol_or_settings_are_refused(file, arguments, options, message):
    compare({"iris": (X, Y)}, {"own": DecisionTreeClassifier(max_depth=2)}, n_folds=2, path=file)
    content = file.read_bytes()
    learner = {"own": options.pop("learner", DecisionTreeClassifier(max_depth=2))}
    with pytest.raises(ValueError, match=message):
        compare(arguments, learner, **{"n_folds": 2, **options}, path=file)
    assert file.read_bytes() == content


def test_jobs_are_no_setting_of_a_learner(file):
    from sklearn.ensemble import RandomForestClassifier

    first = compare("iris", RandomForestClassifier(3), n_folds=2, path=file)
    assert compare("iris", RandomForestClassifier(3, n_jobs=2, verbose=0), n_folds=2, path=file).cells == first.cells


def test_epochs_are_a_setting_of_gradient_learners(file):
    compare("iris", ["NB ML", "TAN Subset HYB"], n_folds=2, n_epochs=2, path=file)
    compare("iris", "NB ML", n_folds=2, n_epochs=3, path=file)
    with pytest.raises(ValueError, match=r"'TAN Subset HYB' differs.*n_epochs=2.*n_epochs=3"):
        compare("iris", "TAN Subset HYB", n_folds=2, n_epochs=3, path=file)


def test_settings_that_cannot_be_recognized_are_refused(file):
    class Local(NaiveBayesClassifier):
        """A classifier that cannot be imported by its name."""

    with pytest.raises(
        ValueError,
        match=r"a digest is computed from the settings of each learner, .* for 'Local' .*or leave out path",
    ):
        compare("iris", Local(), path=file)
    assert not file.exists()
    assert len(compare("iris", Local()).cells) == 5
    with pytest.raises(ValueError, match="the learner 'Local' differs"):
        compare("iris", Local(), n_folds=2).merge(compare("wine", Local(), n_folds=2))


def test_results_of_another_version_are_reported(file):
    cells = compare("iris", "NB ML", n_folds=2).cells
    Comparison([replace(cell, versions="tanlearn 0.0.1") for cell in cells]).save(file)
    with pytest.warns(UserWarning, match=r"contains results of other versions: tanlearn 0\.0\.1\."):
        compare("iris", "NB ML", n_folds=2, path=file)


def test_merging():
    iris, wine = (compare(name, ["NB ML", "TAN-CMI ML"], n_folds=2) for name in ("iris", "wine"))
    both = iris.merge(wine)
    assert both.cells == iris.cells + wine.cells
    assert (both.datasets, both.learners) == (["iris", "wine"], ["NB ML", "TAN-CMI ML"])
    with pytest.raises(ValueError, match="both have the cell iris, NB ML, repeat 1, fold 1"):
        both.merge(iris)
    with pytest.raises(ValueError, match=r"folds of 'iris' differs: 2 in this comparison, but 3 in the other"):
        both.merge(compare("iris", "AODE", n_folds=3))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda text: text.replace("log_loss", "logloss"), r"lacks the column\(s\) log_loss"),
        (lambda text: text + text.splitlines()[1] + "\n", r"the same cell in lines 2 and 4: iris, NB ML, repeat 1"),
        (lambda text: text + "a,b\n", r"line 4: there must be 24 fields, got 2\. Remove the line"),
        (lambda text: text.replace(",75,", ",many,", 1), r"line 2: n_train must be a number, got 'many'"),
        (
            lambda text: "x,y\n1,2\n",
            r"must be a results file, but its columns are x, y\. Name a file that tanlearn compare",
        ),
        (
            lambda text: text.replace(",", ";"),
            "its fields are separated by semicolons, as some spreadsheets do. Save it",
        ),
        (lambda text: "\x89PNG\r\0\n", "must be a results file, but it is not text"),
    ],
)
def test_damaged_files_are_explained(file, change, message):
    compare("iris", "NB ML", n_folds=2, path=file)
    file.write_text(change(file.read_text()))
    content = file.read_bytes()
    for read in (Comparison.load, lambda path: compare("iris", "NB ML", n_folds=2, path=path)):
        with pytest.raises(ValueError, match=message):
            read(file)
        assert file.read_bytes() == content


def test_tables_are_never_overwritten(tmp_path):
    path = tmp_path / "shop.csv"
    path.write_text("age,buys\n3,yes\n")
    with pytest.raises(ValueError, match="must be a results file"):
        compare("iris", "NB ML", path=path)
    assert path.read_text() == "age,buys\n3,yes\n"


@pytest.mark.skipif(sys.platform == "win32", reason="files are not locked")
def test_one_comparison_at_a_time_writes_to_a_file(file):
    with (
        ResultFile.opened(file),
        pytest.raises(ValueError, match=r"is used by another comparison\. Wait until it ends"),
    ):
        compare("iris", "NB ML", path=file)
    assert len(compare("iris", "NB ML", path=file).cells) == 5


def test_an_interrupt_leaves_finished_cells_in_the_file(file):
    def interrupt(cell):
        if cell.fold == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare("iris", "NB ML", n_folds=3, path=file, finished=interrupt)
    assert [cell.fold for cell in Comparison.load(file).cells] == [1, 2]


def test_failures_are_finished_cells_and_reported_as_such(file):
    learner = DecisionTreeClassifier(max_depth=-1)
    with pytest.warns(
        FitFailedWarning, match=r"2 of 2 cells failed. The first is iris, DecisionTreeClassifier, .*max_depth"
    ):
        failed = compare("iris", learner, n_folds=2, path=file)
    assert all("max_depth" in cell.failure for cell in failed.failures)
    assert len(failed.failures) == 2
    with pytest.warns(
        UserWarning, match=r"2 failed cell\(s\) of .*results\.csv are kept .*Set retry_failed=True to run them"
    ):
        assert compare("iris", learner, n_folds=2, path=file).cells == failed.cells
    assert to_csv(failed.cells).count("\n") == 3


def test_failed_cells_are_run_again_on_request(tmp_path, file):
    learner = {"good": Logged(str(tmp_path)), "bad": DecisionTreeClassifier(max_depth=2)}
    whole = compare("iris", learner, n_folds=2)
    (tmp_path / "fits").unlink()
    broken = [replace(cell, error=None, failure="bad luck") if cell.fold == 2 else cell for cell in whole.cells]
    Comparison(broken).save(file)
    found = compare("iris", learner, n_folds=2, path=file, retry_failed=True)
    assert count_lines(tmp_path / "fits") == 1
    assert (found.failures, without_times(found)) == ([], without_times(whole))
    assert count_lines(file) == 1 + 4 + 2  # the header, and both results of the failed cells
    assert {cell.key: cell for cell in Comparison.load(file).cells} == {cell.key: cell for cell in found.cells}


def test_the_refused_file_is_named_whatever_was_compared_first(file):
    compare({"a": (X, Y), "b": (X, Y)}, "NB ML", n_folds=2, path=file)
    with pytest.raises(ValueError, match=r"'b' differs: 150 rows .* in .*results\.csv, but 149 .* in this comparison"):
        compare({"a": (X, Y), "b": (X[1:], Y[1:])}, "NB ML", n_folds=2, path=file)


def test_digests_depend_on_all_values():
    from tanlearn.comparison.inputs import data_digest, named_datasets

    rows = np.array([["a", 1], ["b", None], ["a", 2]], dtype=object)
    changed = [rows.copy() for _ in range(3)]
    changed[0][0, 0], changed[1][1, 1], changed[2][2, 1] = "c", 0, 3
    digests = {data_digest(named_datasets((table, [0, 1, 0]))[0]) for table in (rows, rows.copy(), *changed)}
    assert len(digests) == 4
