"""Order-based learning on small tables: resumption, tests of table 2, the synthetic problem."""

import numpy as np
import pytest
from scipy.stats import t as student
from support.markdown import rows_of
from support.results_files import appended, cut_after

from benchmarks import DATA
from benchmarks.paper.order_based import __main__ as command
from benchmarks.paper.order_based import claims, data, orderings, rates, report
from benchmarks.paper.order_based import learners as definitions
from benchmarks.paper.order_based.learners import ORDERINGS
from tanlearn import EncodedData
from tanlearn.counts.rounded_information import Information

LEARNERS = ["NB", "TAN-RO-CR", "TAN-OMI-CR", "AODE"]


def write_set(folder, name, rng, *, n_samples=60, **arrays):
    """Write a set in the project's format: three features, of which one is a number, and two classes."""
    y = np.arange(n_samples) % 2
    X = np.stack([(y + rng.integers(0, 2, n_samples)) % 3, rng.integers(0, 2, n_samples), y + rng.normal(size=len(y))])
    (folder / "raw").mkdir(exist_ok=True)
    arrays = {"is_categorical": [True, True, False], **arrays}
    np.savez(folder / "raw" / f"{name}.npz", X=X.T, y=y, classes=["no", "yes"], **arrays)
    return X.T, y


@pytest.fixture
def run(tmp_path):
    """Return the command over generated sets; it returns the lines of the results, without times, by their keys."""
    rng = np.random.default_rng(0)
    missing = np.zeros((60, 3), bool)
    missing[:4, 0] = True
    write_set(tmp_path, "iris", rng, missing=missing)
    write_set(tmp_path, "mofn-3-7-10", rng, n_samples=320)

    def run(*options, sets=("iris", "mofn-3-7-10"), learners=LEARNERS):
        places = ["--data", str(tmp_path), "--results", str(tmp_path / "results")]
        command.main(["run", *options, "--sets", *sets, "--learners", *learners, "--orderings", "3", *places])
        return {command.key(line): line for line in appended(tmp_path / "results" / "order_based.jsonl", ["seconds"])}

    return run


def test_every_learner_runs_on_every_fold(run):
    lines = run("uci")
    assert len(lines) == (5 + 1) * len(LEARNERS)
    assert {(line["n_train"], line["n_test"]) for line in lines.values() if line["set"] == "mofn-3-7-10"} == {(300, 20)}
    assert sum(line["n_test"] for line in lines.values() if line["set"] == "iris" and line["learner"] == "NB") == 56
    assert {name: len(lines["iris", 1, name, 3 if "RO" in name else 1]["training"]) for name in LEARNERS} == {
        "NB": 1,
        "TAN-RO-CR": 3,
        "TAN-OMI-CR": 1,
        "AODE": 1,
    }
    assert all(0 <= rate <= 1 for line in lines.values() for rates in line["test"].values() for rate in rates)


def test_stopped_command_goes_on_to_the_same_lines(run, tmp_path, capsys):
    expected = run("uci")
    path = tmp_path / "results" / "order_based.jsonl"
    cut_after(path, 7)
    capsys.readouterr()
    assert run("uci") == expected
    assert len(capsys.readouterr().out.splitlines()) == len(expected) - 7


def test_interruption_keeps_what_is_finished(run, tmp_path, monkeypatch):
    def interrupt(*arguments):
        if arguments[2]["fold"] == 2:
            raise KeyboardInterrupt
        return measure(*arguments)

    measure = command.measure
    with monkeypatch.context() as patch:
        patch.setattr(command, "measure", interrupt)
        with pytest.raises(SystemExit, match="what is finished is in"):
            run("uci", sets=["iris"], learners=["NB"])
    assert len(appended(tmp_path / "results" / "order_based.jsonl")) == 1
    assert len(run("uci", sets=["iris"], learners=["NB"])) == 5


def test_random_orderings_keep_the_best_and_worst_on_the_training_rows():
    folds = [
        {"n_test": 10, "training": [0.5, 0.9, 0.7], "test": {"ML": [0.8, 0.2, 0.5]}},
        {"n_test": 30, "training": [0.6, 0.5, 0.4], "test": {"ML": [0.4, 0.6, 0.8]}},
    ]
    assert rates.set_rates({"TAN-RO-CR": folds}) == pytest.approx(
        {
            "TAN-RO-CR-ML Mean": 100 * (0.5 * 10 + 0.6 * 30) / 40,
            "TAN-RO-CR-ML Min": 100 * (0.8 * 10 + 0.8 * 30) / 40,
            "TAN-RO-CR-ML Max": 100 * (0.2 * 10 + 0.4 * 30) / 40,
        }
    )


def test_tests_of_table_2_are_one_sided_and_paired():
    rng = np.random.default_rng(0)
    row, column = rng.uniform(80, 90, (2, 25))
    column += 0.5
    difference = column - row
    t = difference.mean() / (difference.std(ddof=1) / np.sqrt(25))
    assert report.significance(row, column) == pytest.approx(student.sf(t, 24))
    assert report.significance(column, row) == pytest.approx(-student.sf(t, 24))
    assert report.significance(row, row) is None
    arrows = "\N{UPWARDS DOUBLE ARROW}", "\N{UPWARDS ARROW}", "\N{LEFTWARDS ARROW}", "\N{LEFTWARDS DOUBLE ARROW}"
    shown = [report.arrow(p) for p in (0.0154, 0.12, -0.153, -0.0024)]
    assert shown == [f"{arrow}{p}" for arrow, p in zip(arrows, ("0.0154", "0.120", "0.153", "0.00240"), strict=True)]
    assert report.arrow(None) == "="


def test_report_says_what_went_against_the_paper():
    names = rates.labels(command.TABLE_1)

    def said(points):
        """Return what is said where some learners have more points than the others, which are about equal."""
        noise = np.random.default_rng(0).normal(size=(12, len(names)))
        more = [points.get(name, 0) for name in names]
        rows = 80 + noise - noise.mean(axis=0) + more
        small = {f"set {i}": dict(zip(names, row, strict=True)) for i, row in enumerate(rows)}
        return report.against_the_paper(small).replace("\n", " ")

    below = said({"TAN-OMI-CR-ML": 0.2, "TAN-RO-CR-ML Mean": 0.5, "TAN-RO-CR-ML Max": 0.1, "TAN-RO-CR-ML Min": 0.1})
    assert below.startswith("Differences from the paper: TAN-OMI-CR-ML is 0.30 points below TAN-RO-CR-ML Mean (p =")
    assert (
        "In the paper, it is 0.13 points above. On these data sets, an ordering" in below
    )  # and nothing of Min and Max
    above = said({"TAN-OMI-CR-ML": 50.0})
    assert "better than a random ordering" not in above
    in_the_paper, here = above.removeprefix("Differences from the paper: ").split(
        " The following differences are significant here only: "
    )
    assert "; NB-ML and TAN-OMI-CR-ML;" not in in_the_paper  # significant in both
    assert "TAN-CMI-ML and TAN-OMISP-CR-ML" in in_the_paper
    assert "TAN-RO-CR-ML Max and TAN-OMI-CR-ML" in here
    assert report.against_the_paper({"iris": {}}) == ""


def test_synthetic_problem_follows_equations_1_to_4():
    p = data.synthetic_probabilities()
    x1, x2, x3 = np.indices((2, 2, 2))
    np.testing.assert_allclose(p.sum(axis=(2, 3)), 0.25)  # class and x1 are independent fair coins
    given = p / p.sum(axis=3, keepdims=True)  # p(x3 | class, x1, x2)
    np.testing.assert_allclose(p.sum(axis=3) / 0.25, np.broadcast_to([[0.75, 0.25], [0.25, 0.75]], (2, 2, 2)))
    np.testing.assert_allclose(given[0][(x1 == x3) & (x2 == x3)], 0.9)
    np.testing.assert_allclose(given[0][(x1 != x3) & (x2 == x3)], 0.6)
    np.testing.assert_allclose(given[1][(x1 != x3) & (x2 == x3)], 0.9)
    np.testing.assert_allclose(given[1][(x1 != x3) & (x2 != x3)], 0.4)
    # What makes it hard: the stronger dependence is of no use.
    assert information(p.sum(axis=1)) > information(p.sum(axis=2))
    assert p.max(axis=0).sum() == pytest.approx(0.65)


def information(p):
    """Return I(A; B | C) of a table p(c, a, b), in nats."""
    both = p * np.log(
        p * p.sum(axis=(1, 2), keepdims=True) / (p.sum(axis=1, keepdims=True) * p.sum(axis=2)[:, :, None])
    )
    return both.sum()


def test_synthetic_rows_have_the_probabilities():
    x, y = data.sample_synthetic(20_000, np.random.default_rng(0))
    counts = np.zeros((2, 2, 2, 2))
    np.add.at(counts, (y, *x.T), 1)
    np.testing.assert_allclose(counts / 20_000, data.synthetic_probabilities(), atol=0.006)  # 3 standard errors


def test_simulations_draw_new_rows_and_give_all_learners_the_same():
    problem = data.Simulation(20)
    first, again, second = (problem.part(1, run) for run in (0, 0, 1))
    np.testing.assert_array_equal(first.data.codes, again.data.codes)
    assert not np.array_equal(first.codes, second.codes)
    assert (first.data.n_samples, first.codes.shape) == (20, (3, 1000))


def test_question_mark_of_vote_is_a_value(tmp_path):
    missing = np.zeros((60, 3), bool)
    missing[3, 0] = missing[7, 1] = True
    write_set(tmp_path, "vote", np.random.default_rng(0), missing=missing, is_categorical=[True] * 3)
    problem = data.uci("vote", tmp_path)
    assert sum(len(part.y) for part in problem.parts) == 60
    assert problem.parts[0].data.n_states[1] == 3


def test_mnist_is_trained_on_its_first_rows_and_tested_on_its_last(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "N_TRAIN", 40)
    y = np.arange(60) % 7 % 2
    images = (y[:, np.newaxis] * 99 + np.random.default_rng(0).integers(0, 99, (60, 784))).astype(np.uint8)
    (tmp_path / "raw").mkdir()
    np.savez(tmp_path / "raw" / "mnist.npz", X=images, y=y)
    problem = data.mnist(tmp_path, 30)
    (part,) = problem.parts
    assert problem.name == "mnist, 30 rows"
    assert part.data.y.tolist() == y[:30].tolist()
    assert part.y.tolist() == y[40:].tolist()
    assert part.data.n_features == 196


def test_timit_comes_from_a_file_of_the_user(run, tmp_path):
    with pytest.raises(SystemExit, match="licensed"):
        run("timit")
    X, y = write_set(tmp_path, "male", np.random.default_rng(1))
    np.savez(tmp_path / "male.npz", X=X, y=y, train_idx=np.arange(40), test_idx=np.arange(40, 60))
    np.savez(tmp_path / "whole.npz", X=X, y=y)
    with pytest.raises(SystemExit, match="must hold train_idx and test_idx"):
        run("timit", "--timit", str(tmp_path / "whole.npz"))
    lines = run("timit", "--timit", str(tmp_path / "male.npz"))
    assert {line["set"] for line in lines.values()} == {"timit: male"}
    assert {line["n_test"] for line in lines.values()} == {20}


def test_unknown_experiment_is_named(capsys):
    with pytest.raises(SystemExit):
        command.main(["run", "cifar"])
    assert "got cifar" in capsys.readouterr().err


def test_report_averages_complete_sets_and_draws_figure_1(run, tmp_path):
    table = list(command.TABLE_1)
    lines = run("uci", learners=table)
    run("synthetic", "--simulations", "2", learners=["NB", "TAN-CMI", "TAN-OMI-CR", "SVM"])
    command.main(["report", "--results", str(tmp_path / "results"), "--output", str(tmp_path)])
    summary, text = ((tmp_path / name).read_text(encoding="utf-8") for name in ("report.md", "report_details.md"))
    rows = {label: cells for label, *cells in rows_of(text)}
    folds = [lines["iris", fold, "NB", 1] for fold in range(1, 6)]
    iris = np.average([line["test"]["ML"][0] for line in folds], weights=[line["n_test"] for line in folds])
    mofn = lines["mofn-3-7-10", 1, "NB", 1]["test"]["ML"][0]
    assert rows["iris"][0] == f"{100 * iris:.2f}"
    assert "| NB-ML | 83.82 | " + f"{50 * (iris + mofn):.2f} |" in summary
    assert "\n\nOn 2 data sets, " in summary
    assert rows["1000"][-2].endswith("%")
    assert rows["2 sets, sum of seconds"][2] == "100 (100)"
    assert (tmp_path / "figures" / "order-based-figure1.png").stat().st_size > 5000


def test_other_partitions_are_drawn_and_their_rates_compared(run, monkeypatch, tmp_path):
    sets = ("iris", "mofn-3-7-10")
    lines = run("partitions", "--partitions", "2", sets=sets, learners=list(ORDERINGS))
    assert {key[0] for key in lines} == {f"{name}, partition {number}" for name in sets for number in (1, 2)}
    sizes = {(line["n_train"], line["n_test"]) for (name, *_), line in lines.items() if name.startswith("mofn")}
    assert sizes == {(300, 20)}
    rows = [data.uci(sets[1], tmp_path, number).part(1, 0).data.codes.tolist() for number in (0, 1, 2)]
    assert rows[0] != rows[1] != rows[2]
    monkeypatch.setattr(orderings, "UCI", sets)
    found = rates.latest(lines.values())
    _, cells, *others = rows_of(orderings.table_of_partitions(found))
    differences = []
    for number in (1, 2):
        means = {}
        for learner in ("TAN-OMI-CR", "TAN-RO-CR"):
            pooled = []
            for name in sets:
                folds = found[f"{name}, partition {number}"][learner]
                right = [np.mean(line["test"]["ML"]) * line["n_test"] for line in folds]
                pooled.append(100 * sum(right) / sum(line["n_test"] for line in folds))
            means[learner] = np.mean(pooled)
        differences.append(means["TAN-OMI-CR"] - means["TAN-RO-CR"])
    assert cells[:2] == ["as in table 1", "2"]
    assert cells[5] == f"{np.mean(differences):+.2f} +- {np.std(differences, ddof=1):.2f}"
    assert cells[6] == str(sum(difference > 0 for difference in differences))
    assert len(others) == 2
    assert orderings.orderings_section({}) == orderings.ways_section({}) == ""


def test_search_stands_among_drawn_orderings(monkeypatch):
    def line(*right):
        return {
            "test": {"ML": list(right), "CL": list(right)},
            "n_test": 10,
            "training": [0] * len(right),
            "n_folds": 1,
        }

    monkeypatch.setattr(orderings, "UCI", ("a", "b"))
    found = {
        "a": {"TAN-OMI-CR": [line(0.5)], "TAN-RO-CR": [line(0.2, 0.4, 0.6, 0.8)]},
        "b": {"TAN-OMI-CR": [line(0.5)], "TAN-RO-CR": [line(0.4, 0.4, 0.6, 0.6)]},
    }
    said = orderings._among_orderings(found).replace("\n", " ")
    assert "is 50.00, which is above the rates of 50 % of these orderings. The difference is +0.00." in said
    assert "mean rate of 50.00 with a standard deviation of 18.26" in said
    for number, (search, mean) in enumerate([(0.6, 0.5), (0.7, 0.5), (0.8, 0.5)], start=1):
        for name in ("a", "b"):
            found[f"{name}, partition {number}"] = {"TAN-OMI-CR": [line(search)], "TAN-RO-CR": [line(mean)]}
    found["a"]["TAN-OMI-CR"] = found["b"]["TAN-OMI-CR"] = [line(0.4)]
    said = orderings._among_orderings(found).replace("\n", " ")
    assert (
        "The difference is -10.00, 3.0 standard deviations from the mean of the other partitions. The partition" in said
    )


def test_explaining_away_joins_what_the_class_makes_tell_about_each_other():
    """The class is x xor z: they are independent, and given the class copies; 2 and 3 are copies in either case."""
    x, z, w = np.random.default_rng(0).integers(0, 2, (3, 400))
    rows = EncodedData.from_codes(np.stack([x, z, w, w], axis=1), x ^ z)
    assert definitions.LEARNERS["TAN-EAR"].structure.learn(rows, None).parent.tolist()[:2] == [-1, 0]
    information = Information.of_rows(rows).matrix()
    assert information[2, 3] == pytest.approx(information[0, 1], rel=0.02)


@pytest.mark.data
@pytest.mark.skipif(not DATA.exists(), reason="the real data sets are not beside the project")
@pytest.mark.parametrize(
    ("name", "n_rows", "n_classes"),
    [("breast", 683, 2), ("corral", 128, 2), ("soybean-large", 562, 15), ("shuttle-small", 5800, 7), ("vote", 435, 2)],
)
def test_sets_have_the_sizes_that_friedman_prints(name, n_rows, n_classes):
    parts = data.uci(name, DATA).parts
    assert parts[0].data.n_samples + len(parts[0].y) == n_rows
    assert parts[0].data.n_classes == n_classes


def test_claims_and_sentences_follow_from_results():
    def small(**changes):
        rng = np.random.default_rng(0)
        means = dict.fromkeys(rates.labels(command.TABLE_1), 85.0) | {"TAN-CMI-ML": 83.0, "2-tree-OMI-CR-ML": 87.0}
        means |= {"TAN-RO-CR-ML Mean": 84.9, **changes}
        return {f"set {k}": {label: value + 0.1 * rng.random() for label, value in means.items()} for k in range(9)}

    mnist = {"NB-ML": 83.9, "NB-CL": 91.0, "TAN-CMI-ML": 91.0, "TAN-CMI-CL": 91.02, "2-tree-OMI-CR-ML": 93.0}
    mnist |= dict.fromkeys(claims.SEARCHES, 92.0)
    times = {"mnist": np.array([1.0, 2.0, 40.0])}

    def checked(small, mnist):
        found = {**{name: np.array([0.1, 1.0, 12.0]) for name in small}, **times}
        arguments = (small, found, {"mnist": mnist}, ["mnist"], {20: {"TAN-OMI-CR-ML": 60, "TAN-CMI-ML": 55}})
        return claims.claims(*arguments, report.significance, np.asarray, 0.05)

    found = checked(small(), mnist)
    assert [one.holds for one in found] == [True, True, True, True, True, False, True, True]
    assert found[5].evidence == "NB +7.10, TAN-CMI +0.02"
    assert found[6].evidence == "9 data sets 12.0 times, mnist 20.0 times"
    assert found[7].evidence == "difference in points: 20 rows +5.00"
    changed = small(**{"TAN-CMI-ML": 85.5, "TAN-CR-ML": 88.0, "TAN-RO-CR-ML Mean": 86.0})
    found = checked(changed, {**mnist, "NB-CL": 83.92, "TAN-CR-ML": 91.4})
    assert [one.holds for one in found] == [False, False, False, False, False, True, True, True]

    text = " ".join(report.summary(small(), {"mnist": mnist}, checked(small(), mnist)).split())
    assert "On mnist, the 6 rates of ML parameters differ by 0.58 points at most." in text
    assert "NB-CL has 91.00 % on mnist where the paper has 83.77 %; the maximum-margin paper of 2012 reports" in text
    assert 'confirm 7 of 8 claims of the paper. They do not confirm this claim: "CL parameters change the rate' in text
    text = " ".join(report.summary({}, {"mnist": {**mnist, "NB-CL": 84.0}}, []).split())
    assert "NB-CL has 84.00 % on mnist" in text
    assert report.summary({}, {}, []) == "No data set is finished yet."
