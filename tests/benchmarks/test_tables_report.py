"""What is said of learners on all tables is counted from results: ranks, verdicts, duels and pictures."""

import numpy as np
import pytest
from scipy.stats import ttest_rel, wilcoxon
from support.results_files import write

from benchmarks.quality.tables import details, diagram, duels, rankings, ranks, report, verdicts
from benchmarks.quality.tables.__main__ import main
from benchmarks.quality.tables.learners import FOREST, NUMBERED, RANDOM_FOREST
from benchmarks.quality.tables.outcomes import Outcomes
from benchmarks.quality.tables.sets import HALF, LATER, RAW

OWN, BOOSTING, TUNED, SVM = "AODE", "XGBoost", "RandomForest, tuned", "SVM, tuned"
CHOSEN, HELD = ([name for name in RAW if HALF[name] == half] for half in ("chosen on", "held out"))


def line(name, learner, error, *, seed=0, fold=1, n_folds=1, **more):
    """Return a line of results; log loss and Brier score are shares of the error."""
    sizes = {"n_folds": n_folds, "n_train": 80, "n_test": 20, "n_features": 3, "n_categorical": 1, "jobs": 1}
    bins = [[0] * 9 + [20], [0] * 9 + [19], [0] * 9 + [18]]
    seconds = {"fit_seconds": 2.0, "fit_wall": 3.0, "predict_seconds": 4e-5, "predict_wall": 6e-5, "n_bytes": 5_000_000}
    measured = {"error": error, "log_loss": error / 10, "brier": error / 20, "ece": 5.0, "bins": bins}
    start = {"set": name, "seed": seed, "fold": fold, "learner": learner, "versions": "tanlearn 1 abc, numpy 2"}
    return start | sizes | measured | seconds | more


def rows(learners, sets, **more):
    """Return lines of learners with an error each on some sets."""
    return [line(name, learner, error, **more) for name in sets for learner, error in learners.items()]


def judged(lines, learner=OWN):
    """Return verdicts by what is asked and of which sets."""
    outcomes = Outcomes(lines)
    found = verdicts.judge(outcomes, outcomes.learners, learner)
    return {(one.asked, one.part): (one.found, one.is_missed) for one in found}


def test_whole_seeds_count_and_means_are_of_those_in_common():
    lines = [
        *(line("car", OWN, error, seed=seed, fold=fold, n_folds=2) for seed, fold, error in [(0, 1, 1), (0, 2, 3)]),
        *(line("car", OWN, error, seed=1, fold=fold, n_folds=2) for fold, error in [(1, 5), (2, 7)]),
        *(line("car", BOOSTING, 9, seed=0, fold=fold, n_folds=2) for fold in (2, 1)),
        line("car", BOOSTING, 99, seed=1, n_folds=2),
        line("usps, published", OWN, 2),
    ]
    outcomes = Outcomes(lines)
    assert (outcomes.sets, outcomes.published, outcomes.learners) == (["car"], ["usps, published"], [OWN, BOOSTING])
    assert outcomes.seeds("car", [OWN]) == [0, 1]
    assert outcomes.seeds("car", [OWN, BOOSTING]) == [0]
    assert outcomes.mean("car", OWN, "error") == 4.0
    assert outcomes.table([OWN, BOOSTING], "error").tolist() == [[2.0, 9.0]]
    assert outcomes.table([BOOSTING, OWN], "log_loss", HALF["car"]).tolist() == [[0.9, 0.2]]
    assert outcomes.table([OWN, TUNED], "error").shape == (0, 2)
    assert outcomes.calibration("car", OWN) == pytest.approx(5.0)


def test_who_fails_is_the_last():
    lines = [line("car", OWN, 5), {**line("car", BOOSTING, 0), "failure": "ValueError: why"}, line("car", TUNED, 3)]
    del lines[1]["error"]
    outcomes = Outcomes(lines)
    table = outcomes.table([OWN, BOOSTING, TUNED], "error")
    assert table.tolist() == [[5.0, np.inf, 3.0]]
    assert ranks.mean_ranks(table).tolist() == [2, 3, 1]
    assert outcomes.failures == {("car", BOOSTING): "ValueError: why"}
    assert duels.duel(outcomes, OWN, BOOSTING, "error") == "1/0/0 (1:0)"
    rows = details.everything(outcomes, lambda *one: outcomes.mean(*one, "error"), 2)
    assert rows == [["car", "h", "100", "5.00", "**3.00**", "fails"]]
    assert details.means(outcomes, [OWN, BOOSTING], "error", 1)[1] == [
        "mean, held out",
        "",
        "1 set",
        "**5.0**",
        "-",
        "fails",
    ]


def test_forest_stands_in_where_there_are_no_categories():
    outcomes = Outcomes([line("iris", RANDOM_FOREST, 4, n_categorical=0), line("car", RANDOM_FOREST, 5)])
    assert outcomes.mean("iris", NUMBERED, "error") == 4.0
    assert outcomes.seeds("car", [NUMBERED]) == []
    assert outcomes.learners == [RANDOM_FOREST, NUMBERED]


def test_ranks_are_shared_by_equal_figures():
    table = np.array([[1.0, 2.0, 3.0], [0.3, 0.1 + 0.2, 0.1]])
    assert ranks.mean_ranks(table).tolist() == [1.75, 2.25, 2.0]
    assert ranks.friedman(np.array([[1.0, 2.0, 3.0]] * 4)) == pytest.approx(np.exp(-4))  # chi-squared of 8, two degrees


def test_learners_are_told_apart_as_holm_says():
    rng = np.random.default_rng(0)
    table = rng.normal([0, 0.1, 0.9, 1.1, 3], size=(25, 5))
    found = ranks.apart(table)
    pairs = [(i, j) for i in range(5) for j in range(i)]
    p = {(i, j): wilcoxon(table[:, i], table[:, j]).pvalue for i, j in pairs}
    worst = 0.0
    for place, pair in enumerate(sorted(pairs, key=p.get)):
        worst = max(worst, p[pair] * (len(pairs) - place))
        assert found[pair] == found[pair[::-1]] == (worst <= 0.05)
    assert 0 < found.sum() < 18
    assert not ranks.apart(np.ones((6, 3))).any()


def test_infinite_figures_are_told_apart_from_finite_ones_only():
    table = np.array([[1.0, np.inf, np.inf]] * 12) + np.arange(12)[:, np.newaxis]
    assert ranks.apart(table).tolist() == [[False, True, True], [True, False, False], [True, False, False]]


def test_cliques_are_the_longest_runs_of_neighbors():
    is_apart = np.zeros((5, 5), bool)
    for i, j in [(3, 0), (3, 4), (1, 4), (1, 0), (3, 1)]:
        is_apart[i, j] = is_apart[j, i] = True
    assert (
        ranks.cliques(np.array([3.0, 1.5, 2.0, 1.0, 4.0]), is_apart)
        == [
            [
                3,
            ],
            [1, 2],
            [2, 0, 4],
        ][1:]
    )
    assert ranks.cliques(np.array([3.0, 1.5, 2.0, 1.0, 4.0]), is_apart) == [[1, 2], [2, 0, 4]]
    assert ranks.cliques(np.arange(3.0), np.ones((3, 3), bool)) == []
    assert ranks.cliques(np.arange(3.0), np.zeros((3, 3), bool)) == [[0, 1, 2]]


@pytest.mark.parametrize("shift", [0.0, 0.4, 0.8, 1.2])
def test_clear_differences_are_those_of_a_t_test_if_no_rows_are_shared(shift):
    gaps = np.random.default_rng(3).normal(size=10) + shift
    assert ranks.is_clear(gaps, np.zeros(10)) == (ttest_rel(gaps, np.zeros(10)).pvalue < 0.05)
    assert not ranks.is_clear(gaps, np.full(10, 100.0))  # hardly a training row of its own
    assert not ranks.is_clear(np.zeros(10), np.zeros(10))
    assert ranks.is_clear(np.ones(10), np.zeros(10))
    assert not ranks.is_clear(np.ones(1), np.zeros(1))


def test_diagram_has_the_best_on_top_and_bars_beside_equals():
    rng = np.random.default_rng(1)
    table = rng.normal([9, 0, 9, 0], size=(30, 4))
    found, order, bars = diagram.diagram(table)
    assert found.tolist() == ranks.mean_ranks(table).tolist()
    assert (set(order[:2]), set(order[2:])) == ({1, 3}, {0, 2})
    assert bars == [(0, 1), (2, 3)]


def test_targets_are_met_or_missed_by_so_much():
    best = {OWN: 5.0, RANDOM_FOREST: 6.0, NUMBERED: 6.5, BOOSTING: 5.5, TUNED: 5.2}
    lines = rows(best, [*CHOSEN[:3], *HELD[:2]])
    assert not any(missed for _, missed in judged(lines).values())
    worse = {**best, OWN: 8.3}
    found = judged([*lines, *rows(worse, HELD[2:3])])
    log_loss, brier = (f"first in mean rank of {what}" for what in ("log loss", "Brier score"))
    assert found[log_loss, "chosen on"] == ("1.00 of 5", False)
    assert found[log_loss, "held out"] == (f"2.33 of 5; 1 before it, first {TUNED} 1.67", True)
    assert found[log_loss, "all sets"] == ("1.67 of 5", False)
    assert found[brier, "held out"][1] is True
    behind = "not behind the best default peer in mean rank of error"
    assert found[behind, "held out"] == (f"2.33; {BOOSTING} 2.67", False)
    lost = f"no set over 2 points behind {RANDOM_FOREST}"
    assert found[lost, "chosen on"] == ("0 of 3 sets", False)
    assert found[lost, "held out"] == (f"1 of 3 sets: {HELD[2]} 8.30 ({RANDOM_FOREST} 6.00)", True)


def test_defaults_are_held_against_default_peers_only():
    lines = rows({OWN: 5.0, RANDOM_FOREST: 6.0, TUNED: 4.0, "NB ML": 3.0}, CHOSEN[:3])
    found = judged(lines)
    assert found["not behind the best default peer in mean rank of error", "all sets"] == (
        f"3.00; {RANDOM_FOREST} 4.00",
        False,
    )
    assert found["first in mean rank of log loss", "all sets"] == ("3.00 of 4; 2 before it, first NB ML 1.00", True)
    assert found["first in mean rank of log loss", "held out"] == ("-", None)


def test_a_forest_that_numbers_categories_counts_too():
    lines = rows({OWN: 8.0, RANDOM_FOREST: 7.0, NUMBERED: 5.9}, CHOSEN[:1]) + rows(
        {OWN: 8.0, RANDOM_FOREST: 6.0}, HELD[:1]
    )
    assert verdicts.losses(Outcomes(lines), OWN) == {CHOSEN[0]: (8.0, 5.9, NUMBERED)}  # 2 points are not over 2


def test_published_parts_have_bars():
    lines = [*rows({OWN: 5.0}, CHOSEN[:1]), line("letter, published", OWN, 3.0), line("usps, published", OWN, 2.5)]
    found = judged(lines)
    assert found["letter, published: at most 3 %", "test part"] == ("3.00 %", False)
    assert found["satimage, published: at most 7.2 %", "test part"] == ("-", None)
    assert found["usps, published: at most 1.9 %", "test part"] == ("2.50 %, 0.60 over", True)


def test_who_is_not_finished_is_not_judged():
    found = judged(rows({RANDOM_FOREST: 5.0, BOOSTING: 4.0}, CHOSEN[:2]), FOREST)
    assert {missed for _, missed in found.values()} == {None}


def test_duels_count_clear_differences():
    def folds(name, learner, errors):
        return [line(name, learner, error, fold=fold, n_folds=5) for fold, error in enumerate(errors, 1)]

    lines = [
        *folds("car", OWN, [1, 2, 3, 2, 1]),
        *folds("car", BOOSTING, [7, 8, 9.5, 8, 7]),
        *folds("iris", OWN, [1, 9, 1, 9, 1]),
        *folds("iris", BOOSTING, [4, 4, 4, 4, 4]),
        *folds("crx", OWN, [5] * 5),
        *folds("crx", BOOSTING, [5] * 5),
    ]
    outcomes = Outcomes(lines)
    assert duels.duel(outcomes, OWN, BOOSTING, "error") == "1/2/0 (1:1)"
    assert duels.duel(outcomes, BOOSTING, OWN, "log_loss") == "0/2/1 (1:1)"
    assert duels.duel(outcomes, OWN, TUNED, "error") == "-"


def test_learners_take_part_when_they_have_finished_most_sets():
    lines = rows({OWN: 5.0, RANDOM_FOREST: 6.0, BOOSTING: 4.0}, RAW[:10])
    lines += rows({TUNED: 3.0}, RAW[:7]) + rows({SVM: 3.0}, RAW[:2])
    found = rankings.pools(Outcomes(lines))
    assert found == {
        "All learners": [OWN, RANDOM_FOREST, BOOSTING],
        f"With {TUNED}, on its data sets": [OWN, RANDOM_FOREST, BOOSTING, TUNED],
        f"With {SVM}, on its data sets": [OWN, RANDOM_FOREST, BOOSTING, SVM],
    }
    found = rankings.pools(Outcomes(lines + rows({TUNED: 3.0}, RAW[7:8])))
    assert found["All learners"] == [OWN, RANDOM_FOREST, TUNED, BOOSTING]
    assert found["Learners of tanlearn and peers with defaults"] == [OWN, RANDOM_FOREST, BOOSTING]


def test_slow_learners_are_ranked_on_the_sets_that_they_have_finished():
    lines = rows({OWN: 5.0, RANDOM_FOREST: 6.0, BOOSTING: 4.0}, RAW[:10])
    few, half = rows({TUNED: 3.0}, RAW[:4]), rows({TUNED: 3.0}, RAW[:5])
    others = [OWN, RANDOM_FOREST, BOOSTING]
    assert rankings.slow(Outcomes(lines), others) == rankings.slow(Outcomes(lines + few), others) == []
    outcomes = Outcomes(lines + half)
    assert rankings.slow(outcomes, others) == [TUNED]
    text = report.summary(outcomes, Outcomes([]), OWN).replace("\n", " ")
    assert f'On the 5 of these data sets that "{TUNED}" also completed, the mean ranks of {OWN} among 4 ' in text
    assert "are 3.00 by error (2 are better)" in text


def test_report_shows_verdicts_and_the_best_learners(tmp_path):
    errors = {FOREST: 5.0, OWN: 9.0, RANDOM_FOREST: 6.0, BOOSTING: 5.5}
    lines = [*rows(errors, [*CHOSEN[:3], *HELD[:3]]), line("usps, published", FOREST, 2.5)]
    lines.append({**line("usps, published", OWN, 0), "failure": "MemoryError: 9 GiB"})
    write(tmp_path / "tables.jsonl", lines)
    main(["report", "--results", str(tmp_path), "--output", str(tmp_path), "--judge", FOREST])
    text = (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert f"<summary>Targets for {FOREST}</summary>" in text
    assert "| first in mean rank of log loss | held out | 1.00 of 4 | met |" in text
    assert "| usps, published: at most 1.9 % | test part | **2.50 %, 0.60 over** | **missed** |" in text
    assert "| letter, published: at most 3 % | test part | - | open |" in text
    sentences = " ".join(text.split())
    assert (
        f"On 6 data sets, {FOREST} is the best of 4 learners by error, log loss and Brier score (mean ranks 1.00, 1.00 "
        f'and 1.00). The best peer by error (2.00) and by log loss (2.00) is "{BOOSTING}".'
    ) in sentences
    assert f"Fitting {FOREST} takes 2.0 processor seconds on average, 1 times as long as" in sentences
    assert f"| {FOREST} | **1.00** | **5.00** | **1.00** | **0.500** | **1.00** | **0.250** |" in text
    assert f"| {BOOSTING} | 6 | 0/6/0 (6:0) | 0/6/0 (6:0) | 0/6/0 (6:0) | 1.000 |" in text  # one fold proves nothing
    assert text.count("(tables.png)") == 1
    assert (tmp_path / "tables.png").stat().st_size > 5000


def test_details_contain_groups_duels_costs_and_all_sets(tmp_path):
    errors = {FOREST: 5.0, OWN: 9.0, RANDOM_FOREST: 6.0, BOOSTING: 5.5}
    lines = [*rows(errors, [*CHOSEN[:3], *HELD[:3]]), line("usps, published", FOREST, 2.5)]
    lines.append({**line("usps, published", OWN, 0), "failure": "MemoryError: 9 GiB"})
    apart = rows({OWN: 20}, LATER[:1])
    details.write_details(Outcomes(lines), Outcomes(apart), tmp_path)
    text = (tmp_path / "tables_details.md").read_text(encoding="utf-8")
    assert f"| {FOREST} | {' | '.join(['**1.00**'] * 9)} |" in text
    assert f"| {OWN} | {' | '.join(['4.00'] * 9)} |" in text
    words = "mean ranks over the 6 data sets (3 chosen on, 3 held out) that all of these learners have finished."
    assert words in text.replace("\n", " ")
    assert "| AODE | 0/6/0 (0:6) | 0/6/0 (0:6) |" in text
    assert "| AODE | held out | 3 of 3 | " in text
    assert " 9.00 / 6.00, " in text
    assert f"| {FOREST} | chosen on | 0 of 3 | - |" in text
    assert f"| {FOREST} | 2.000 | 3.000 | 2.0 | 3.0 | 5.00 |" in text
    assert "| mean, chosen on |  | 3 sets | 9.00 | **5.00** | 6.00 | 5.50 |" in text
    assert "| chosen on | 0/3/0 (0:3) | 0/3/0 (0:3) |" in text
    assert f"| {CHOSEN[0]} | c | 100 | 9.00 | **5.00** | 6.00 | 5.50 |" in text
    assert "| usps, published |  | 100 | fails | **2.50** | - | - |" in text
    assert "- AODE fails on usps, published: MemoryError: 9 GiB" in text
    details.write_details(Outcomes(lines), Outcomes(apart), tmp_path)  # replaces the file
    table = (tmp_path / "tables.csv").read_text(encoding="utf-8").splitlines()
    assert table[0] == "set,group,rows,learner,error,log_loss,brier,calibration_error,fit_seconds"
    assert len(table) == 1 + 24 + 2 + 1
    assert f"{CHOSEN[0]},chosen on,100,{BOOSTING},5.5000,0.5500,0.2750,5.0000,2.0000" in table
    assert '"usps, published",published,100,AODE,,,,,' in table
    assert table[-1] == f"{LATER[0]},kept apart,100,AODE,20.0000,2.0000,1.0000,5.0000,2.0000"


def test_areas_are_ranked_among_learners_that_have_them():
    areas = {FOREST: 0.9, BOOSTING: 0.8}
    lines = [line(name, learner, 5.0, auc=area) for name in CHOSEN[:3] for learner, area in areas.items()]
    lines += [*rows({OWN: 1.0, RANDOM_FOREST: 2.0}, CHOSEN[:5]), line(CHOSEN[0], OWN, 5.0, seed=1, auc=1.0)]
    text = rankings.ranking_by_area(Outcomes(lines))
    assert text.startswith("The table shows means over the 3 data sets")
    assert text.splitlines()[-2:] == [f"| {FOREST} | **1.00** | **0.9000** |", f"| {BOOSTING} | 2.00 | 0.8000 |"]
    assert rankings.ranking_by_area(Outcomes(rows({OWN: 1.0}, CHOSEN[:2]))) == ""


def test_calibration_is_judged_beside_peers_only():
    sure = [[0] * 9 + [20], [0] * 9 + [19], [0] * 9 + [19]]
    lines = rows({FOREST: 5.0, RANDOM_FOREST: 5.0}, CHOSEN[:2]) + rows({OWN: 5.0}, CHOSEN[:2], bins=sure)
    asked = "not behind a peer in mean rank of calibration error", "chosen on"
    assert judged(lines, FOREST)[asked] == (f"1.50; {RANDOM_FOREST} 1.50", False)
    lines += rows({BOOSTING: 5.0}, CHOSEN[:2], bins=sure)
    assert judged(lines, FOREST)[asked] == (f"2.50; {BOOSTING} 1.00", True)


def test_data_sets_kept_apart_are_ranked_separately(tmp_path):
    lines = rows({OWN: 5, BOOSTING: 6, TUNED: 7}, RAW[:5]) + rows({OWN: 20, BOOSTING: 10}, LATER[:4])
    lines += rows({TUNED: 1}, LATER[:1])  # has not finished most of them
    text = rankings.ranking_apart(Outcomes([one for one in lines if one["set"] in LATER]), 12)
    assert f"the 4 of {len(LATER)} data sets" in text.replace("\n", " ")
    assert text.splitlines()[-2:] == [
        f"| {BOOSTING} | **1.00** | **10.00** | **1.00** | **1.000** | **1.00** | **0.500** |",
        f"| {OWN} | 2.00 | 20.00 | 2.00 | 2.000 | 2.00 | 1.000 |",
    ]
    write(tmp_path / "tables.jsonl", lines)
    main(["report", "--results", str(tmp_path), "--output", str(tmp_path), "--judge", OWN])
    page = (tmp_path / "tables.md").read_text(encoding="utf-8")
    assert "on 5 raw data sets" in page
    assert text in page
    assert page.count("(tables_times.png)") == 1
    assert (tmp_path / "tables_times.png").stat().st_size > 5000
    assert "On 4 data sets that were not used to choose any setting" in page
    assert "| mean, all sets |  | 5 sets |" in (tmp_path / "tables_details.md").read_text(encoding="utf-8")


def test_nothing_is_reported_of_nothing(tmp_path):
    with pytest.raises(SystemExit, match="nothing is finished"):
        main(["report", "--results", str(tmp_path), "--output", str(tmp_path)])
