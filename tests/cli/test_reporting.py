"""``tanlearn report``: tables and tests of results files."""

import pytest

pytest.importorskip("typer", reason="the command line needs the extra `cli`")

from tanlearn.cli.reporting import MEASURE_NAMES
from tanlearn.comparison import Comparison, compare
from tanlearn.comparison.results import MEASURES


@pytest.fixture(scope="module")
def comparison():
    """Return a comparison on three data sets."""
    return compare(["iris", "wine", "digits"], ["NB ML", "TAN-CMI ML", "AODE"], n_folds=3)


@pytest.fixture
def file(comparison, tmp_path):
    """Return the path of its results file."""
    comparison.save(tmp_path / "results.csv")
    return tmp_path / "results.csv"


def test_the_report_is_that_of_the_comparison(run, comparison, file):
    done = run("report", file, "--measure", "log-loss", "--reference", "AODE", "--alpha", "0.1", "--rope", "0.02")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == comparison.report("log_loss", reference="AODE", alpha=0.1, rope=0.02)


@pytest.mark.parametrize("form", ["latex", "csv"])
def test_the_report_is_printed_in_other_formats(run, comparison, file, form):
    done = run("report", file, "--print", form, "--measure", "log_loss")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout == comparison.report("log_loss", format=form)


def test_an_unknown_measure_is_suggested(run, file):
    done = run("report", file, "--measure", "log_los")
    assert done.exit_code == 2
    assert "there is no measure 'log_los'. Did you mean 'log-loss'?" in " ".join(done.stderr.replace("│", "").split())


def test_measures_of_the_command_line_are_those_of_python():
    assert [name.replace("-", "_") for name in MEASURE_NAMES] == list(MEASURES)


def test_several_files_are_merged(run, comparison, file, tmp_path):
    parts = []
    for name in comparison.datasets:
        parts.append(tmp_path / f"{name}.csv")
        Comparison([cell for cell in comparison.cells if cell.dataset == name]).save(parts[-1])
    assert run("report", *parts).stdout == run("report", file).stdout
    done = run("report", file, parts[0])
    assert done.exit_code == 2
    assert "both have the cell iris, NB ML, repeat 1, fold 1" in done.stderr


def test_a_file_of_a_similar_name_is_suggested(run, file, tmp_path):
    done = run("report", tmp_path / "result.csv")
    assert done.stderr == f"tanlearn: there is no file {tmp_path / 'result.csv'}. Did you mean {file.name!r}?\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["absent.csv"], "there is no file absent.csv."),
        (["--reference", "AOD"], "there is no learner 'AOD'. Did you mean 'AODE'?"),
    ],
)
def test_errors_are_one_line(run, file, arguments, message):
    done = run("report", *([file] if arguments[0].startswith("-") else []), *arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert message in line


@pytest.mark.parametrize("learners", [["NB ML", "TAN-CMI ML", "AODE"], ["NB ML", "AODE"]])
def test_a_picture_is_written(run, comparison, tmp_path, learners):
    pytest.importorskip("matplotlib", reason="needs tanlearn[plot]")
    pytest.importorskip("scikit_posthocs", reason="needs tanlearn[compare]")
    Comparison([cell for cell in comparison.cells if cell.learner in learners]).save(tmp_path / "part.csv")
    done = run("report", tmp_path / "part.csv", "--picture", tmp_path / "ranks.png")
    assert done.exit_code == 0
    assert done.stderr == f"tanlearn: {tmp_path / 'ranks.png'} was written.\n"
    assert (tmp_path / "ranks.png").read_bytes().startswith(b"\x89PNG")


def test_two_learners_have_a_picture_of_errors_only(run, comparison, tmp_path):
    Comparison([cell for cell in comparison.cells if cell.learner != "AODE"]).save(tmp_path / "part.csv")
    done = run("report", tmp_path / "part.csv", "--measure", "auc", "--picture", tmp_path / "ranks.png")
    assert done.exit_code == 2
    assert "the picture of two learners shows their errors. Leave out --measure" in done.stderr
    assert not (tmp_path / "ranks.png").exists()


@pytest.mark.parametrize(
    ("picture", "message"),
    [
        ("ranks.txt", "--picture must end in .png, .pdf, .svg or another format of "),
        ("absent/ranks.png", "does not exist. Create it first"),
        ("results.csv", "results.csv is both. Name another output."),
    ],
)
def test_a_picture_that_cannot_be_written_is_refused_before_the_report(run, file, tmp_path, picture, message):
    pytest.importorskip("matplotlib", reason="needs tanlearn[plot]")
    done = run("report", file, "--picture", tmp_path / picture)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr


def test_one_data_set_has_a_report_and_no_picture(run, comparison, tmp_path):
    pytest.importorskip("matplotlib", reason="needs tanlearn[plot]")
    Comparison([cell for cell in comparison.cells if cell.dataset == "iris"]).save(tmp_path / "iris.csv")
    done = run("report", tmp_path / "iris.csv", "--picture", tmp_path / "ranks.png")
    assert done.exit_code == 0
    assert done.stdout.startswith("# Comparison of 3 learners on 1 data set\n")
    (line,) = done.stderr.splitlines()
    assert line.startswith("tanlearn: there is no picture, because ranks need at least two learners, and two data sets")
    assert not (tmp_path / "ranks.png").exists()


def test_learners_are_left_out_on_request(run, comparison, file):
    done = run("report", file, "--without", "AODE")
    kept = Comparison([cell for cell in comparison.cells if cell.learner != "AODE"])
    assert (done.exit_code, done.stdout) == (0, kept.report())
    done = run("report", file, "--without", "AODE,nb")
    assert done.exit_code == 2
    assert "--without: there is no learner 'nb'. The learners are: NB ML, TAN-CMI ML, AODE." in done.stderr
