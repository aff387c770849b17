"""What is said of defaults is counted from results: which sets count, and what is a miss."""

import numpy as np
import pytest
from support.results_files import appended

from benchmarks.quality import defaults, outcomes, runs, verdicts

DEFAULTS, LEARNERS = verdicts.DEFAULTS, verdicts.LEARNERS


def line(name, learner, wrong, *, n=100, fold=1, n_folds=1, n_train=900, half="chosen on", log_loss=0.5, seconds=1.0):
    """Return a line of results: the first ``wrong`` of ``n`` test rows are wrong, or those that are listed."""
    flags = np.arange(n) < wrong if np.isscalar(wrong) else np.isin(np.arange(n), wrong)
    bins = runs.confidence_bins(np.full(n, 0.95), ~flags)
    sizes = {"n_folds": n_folds, "n_train": n_train, "n_test": n}
    measured = {"log_loss": log_loss, "seconds": seconds, "bins": bins.tolist(), "wrong": runs.packed(flags)}
    start = {"set": name, "fold": fold, "learner": learner, "half": half, "versions": "tanlearn 1 abc, numpy 2"}
    return start | sizes | measured


def row(name, wrong, *, others=10, learners=LEARNERS, **more):
    """Return the lines of all learners on a set, of which some err otherwise than the others."""
    return [line(name, learner, wrong.get(learner, others), **more) for learner in learners]


def judged(judge, lines, *arguments):
    return judge(outcomes.outcomes(lines), *arguments)


def test_only_whole_sets_of_folds_count():
    lines = [
        line("b", "TAN-CMI ML", 10, fold=2, n_folds=2, log_loss=1.0, seconds=3.0),
        line("b", "TAN-CMI ML", 30, fold=1, n_folds=2, n=300, n_train=700),
        line("b", "TAN-CMI HYB", 30, fold=1, n_folds=2),
        line("letter, published", "TAN-CMI ML", 10),
        line("a", "TAN-CMI ML", 10, n_train=1),
        {**line("c", "TAN-CMI ML", 10), "failure": "why"},
    ]
    found = outcomes.outcomes(lines)
    assert list(found) == ["a", "b", "letter, published"]
    assert list(found["b"]) == ["TAN-CMI ML"]
    outcome = found["b"]["TAN-CMI ML"]
    assert outcome.error == pytest.approx(10.0)  # 40 of 400 rows
    assert outcome.standard_error == pytest.approx(100 * np.sqrt(0.1 * 0.9 / 400))
    assert outcome.log_loss == pytest.approx((300 * 0.5 + 100 * 1.0) / 400)
    assert outcome.calibration == pytest.approx(5.0)  # 95 % sure, 90 % right
    assert (outcome.n_rows, outcome.seconds) == (1000, 2.0)
    assert outcome.wrong[:31].tolist() == [True] * 30 + [False]


def test_differences_are_paired():
    own, other = (outcomes.Outcome([line("a", "x", wrong)]) for wrong in ([0, 1, 2, 3], [3, 4]))
    difference, spread = outcomes.paired(own, other)
    assert difference == pytest.approx(2.0)
    d = np.zeros(100)
    d[:3], d[4] = 1, -1
    assert spread == pytest.approx(100 * np.sqrt(np.mean((d - 0.02) ** 2) / 100))


@pytest.mark.parametrize(
    ("wrong", "is_worse"),
    [
        (list(range(16)), True),  # six points more, on the same rows: 6 +- 2.4
        (list(range(9, 21)), False),  # two points more, on other rows
        (list(range(11)), False),  # one point, and no more
    ],
)
def test_clearly_worse_is_over_a_point_and_two_standard_errors(wrong, is_worse):
    lines = row("a", {"TAN-CMI HYB": wrong, "TAN-CMI CG-MM, fixed": 10}, others=20)
    found = outcomes.outcomes(lines)["a"]
    assert verdicts.best_tree(found) == "CG-MM"
    assert verdicts.is_clearly_worse(found, "TAN-CMI HYB") == is_worse
    del found["TAN-CMI ML"]  # the best of three is not known to be the best of four
    assert not verdicts.is_clearly_worse(found, "TAN-CMI HYB")


def test_mean_errors_are_those_of_the_same_sets():
    best = "TAN-CMI CG-CL, fixed"
    lines = [
        *row("a", {"TAN-CMI HYB": 9, best: 8}),
        *row("b", {"TAN-CMI HYB": 5, best: 7}, half="held out"),
        *row("c", {best: 90}, learners=[learner for learner in LEARNERS if learner != "TAN-CMI HYB"]),
        *row("letter, published", {"TAN-CMI HYB": 99}, half=None),
    ]
    half = {one["set"]: one["half"] for one in lines}
    found = judged(verdicts.mean_errors, lines, half)
    assert "| HYB | 7.00, CG-CL 7.50 | **9.00, CG-CL 8.00** | 5.00, CG-CL 7.00 |" in found.text
    assert "| Subset | 10.00, CG-MM 10.00 | 10.00, CG-MM 10.00 | **10.00, CG-CL 7.00** |" in found.text
    assert found.misses == dict.fromkeys(DEFAULTS, 0)
    assert judged(verdicts.mean_errors, lines[: len(LEARNERS)], half).misses["HYB"] == 1
    assert judged(verdicts.mean_errors, [], {}).misses == {}


def test_clear_losses_are_listed():
    found = judged(verdicts.clear_losses, [*row("a", {"TAN-CMI HYB": 16}), *row("b", {"TAN-CMI HYB": 11})])
    assert "| HYB | 1 of 2 | a: 16.00, ML 10.00 (+6.00 ± 2.37) |" in found.text
    assert "| CG-CL | 0 of 2 | - |" in found.text
    assert found.misses == {**dict.fromkeys(DEFAULTS, 0), "HYB": 1}


def test_bars_are_met_or_missed():
    lines = [*row("car", {"TAN-CMI HYB": 3}, others=2), line("chess", "TAN Subset HYB", 50)]
    found = judged(verdicts.single_sets, lines)
    assert "| car | 2 | 2.00 | 2.00 | **3.00** | 2.00 | 2.00 | 2.00 |" in found.text
    assert "| chess | 2.3 | - | - | - | - | **50.00** | - |" in found.text
    assert "| krkopt | 37 | - | - | - | - | - | - |" in found.text
    assert found.misses == {**dict.fromkeys(DEFAULTS, 0), "HYB": 1, "Subset": 1}


def test_published_parts_are_compared_with_the_fixed_setting():
    lines = row("usps, published", {"TAN Subset HYB": 13, "TAN Order-free HYB": 2}, n=1000)
    found = judged(verdicts.published_parts, lines)
    assert "| Subset | **1.30, fixed 1.00 (+0.30 ± 0.17)** |" in found.text
    assert "| Order-free | 0.20, fixed 1.00 (-0.80 ± 0.28) |" in found.text
    assert "| CrossTuned | - |" in found.text
    assert found.misses == {**{short: 0 for short in DEFAULTS if short != "CrossTuned"}, "Subset": 1}


def test_seconds_are_those_of_letter_and_of_small_sets():
    lines = [
        line("letter", "TAN-CMI HYB, fixed", 1, n_train=20_000, seconds=2.0),
        line("letter", "TAN-CMI HYB", 1, n_train=20_000, seconds=5.0),
        line("iris", "TAN-CMI HYB", 1, seconds=2.5),
        line("crx", "TAN-CMI HYB", 1, seconds=1.5),
        line("crx", "TAN Subset HYB", 1, seconds=1.0),
        line("iris", "TAN Subset HYB", 1, seconds=0.5),
    ]
    found = judged(verdicts.seconds, lines)
    assert "| HYB | 5.0 / 2.0 = 2.5 | **iris 2.50** |" in found.text
    assert "| Subset | - | crx 1.00 |" in found.text
    assert found.misses == {"HYB": 1, "Subset": 0}


def test_log_losses_are_compared_with_conditional_likelihood():
    losses = {"a": 0.53, "b": 0.52, "usps, published": 1.0}
    lines = [line(name, "TAN-CMI CG-CL", 1) for name in losses]
    lines += [line(name, "TAN Subset HYB", 1, log_loss=loss) for name, loss in losses.items()]
    found = judged(verdicts.log_losses, lines)
    assert found.text.endswith("| Subset | 2 of 3 | usps, published: 1 / 0.5 (+100 %); a: 0.53 / 0.5 (+6 %) |")
    assert found.misses == {"Subset": 2}


def test_calibration_is_judged_on_large_sets():
    lines = [line("a", "TAN-CMI HYB", 5), line("b", "TAN-CMI HYB", 8, n_train=5000), line("b", "TAN-CMI CG-CL", 6)]
    lines[2]["n_train"] = 5000
    found = judged(verdicts.calibration, lines)
    assert found.text.splitlines()[2:] == ["| b | 2 | 1.00 | - | **3.00** | - | - | - |"]
    assert found.misses == {"CG-CL": 0, "HYB": 1}


def test_summary_counts_misses():
    some = [
        verdicts.Verdict("(a) One", "(a) first", "", {"HYB": 0, "Subset": 3}),
        verdicts.Verdict("(b) Two", "(b) second", "", {"HYB": 1}),
    ]
    text = verdicts.summary(some)
    assert text.startswith("| target | CG-CL | CG-MM | HYB |")
    assert "| (a) first | - | - | 0 | - | **3** | - |" in text
    assert "| (b) second | - | - | **1** | - | - | - |" in text


def test_sentences_follow_from_results(tmp_path):
    fixed = {learner: 30 for learner in LEARNERS if learner.endswith(verdicts.FIXED)}
    slow = {"TAN Subset HYB": 3.0, "TAN Order-free HYB": 1.5}
    lines = [
        line(
            "letter", learner, fixed.get(learner, 20 if learner != "TAN-CMI HYB" else 10), seconds=slow.get(learner, 1)
        )
        for learner in LEARNERS
    ]

    def sentences(lines):
        defaults.write_report(lines, tmp_path)
        return " ".join((tmp_path / "defaults.md").read_text(encoding="utf-8").split())

    text = sentences(lines)
    assert "On average over 1 raw data sets, HYB has the lowest error of all defaults, 10.00 %." in text
    assert "The best fixed setting for the maximum-likelihood tree, ML, has 20.00 %." in text
    assert "For 5 of 5 learners, the defaults have a lower mean error than the fixed setting of the same" in text
    assert "6 of 6 defaults never have a clearly higher error" in text
    assert "a fit with defaults takes 1.0 to 3.0 times as long as with fixed settings" in text
    assert "| HYB | 30.00 → 10.00 | 30.00 → 10.00 | 0.500 → 0.500 |" in text
    changed = [line("letter", "TAN-CMI HYB", 40) if one["learner"] == "TAN-CMI HYB" else one for one in lines]
    text = sentences(changed)
    assert "CG-CL has the lowest error of all defaults, 20.00 %." in text
    assert "For 4 of 5 learners, the defaults" in text
    assert "5 of 6 defaults never have a clearly higher error; HYB has a clearly higher error on 1 data sets." in text


def test_halves_are_every_second_set():
    assert defaults.halves(["c", "a", "b"]) == {"a": "chosen on", "b": "held out", "c": "chosen on"}


def test_models_are_fixed_or_defaults():
    assert {learner for learner in LEARNERS if learner.endswith(verdicts.FIXED)} == {
        f"{learner}{verdicts.FIXED}" for learner in defaults.FIXED_MODELS
    }
    for learner in LEARNERS:
        parameters = defaults.model(learner).get_params()
        calibrate = [value for name, value in parameters.items() if name.rpartition("__")[2] == "calibrate"]
        assert parameters["random_state"] == 0
        assert False not in calibrate or learner.endswith(verdicts.FIXED)
        assert True not in calibrate or not learner.endswith(verdicts.FIXED)
        assert calibrate or learner in ("TAN-CMI ML", "TAN-CMI CrossTuned") or "HYB" in learner


def test_report_shows_pairs_misses_and_what_is_not_finished(tmp_path):
    lines = [*row("a", {"TAN-CMI HYB": 16}), line("b", "TAN-CMI ML", 1, half="held out")]
    lines.append({**line("b", "TAN-CMI HYB", 1, half="held out"), "failure": "no rows"})
    defaults.write_report(lines, tmp_path)
    text = (tmp_path / "defaults_details.md").read_text(encoding="utf-8")
    assert "| a | 1,000 | 3.7 | 10.00 | 10.00 → 10.00 | 10.00 → 10.00 | 10.00 → **16.00** | 10.00 |" in text
    assert "| b | 1,000 | 1.0 | 1.00 | - → - |" in text
    assert "| mean, chosen on | 1 set |  | 10.00 | 10.00 → 10.00 | 10.00 → 10.00 | 10.00 → 16.00 |" in text
    assert "| a | 1,000 | 0.500 | 0.500 → 0.500 |" in text
    assert "mean, held out" not in text
    assert "- b lacks TAN-CMI CG-CL, fixed, TAN-CMI CG-CL," in text
    assert "- TAN-CMI HYB fails on b: no rows" in text


def test_command_does_what_is_missing_and_reports(tmp_path, capsys):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 2
    (tmp_path / "raw").mkdir()
    for name in ("b", "a"):
        np.savez(tmp_path / "raw" / f"{name}.npz", X=np.stack([y, rng.integers(0, 3, 60)], axis=1), y=y)
    places = ["--results", str(tmp_path / "results")]
    asked = ["run", "--sets", "b", "--data", str(tmp_path), *places, "--learners", "TAN-CMI ML", "TAN-CMI CG-CL"]
    defaults.main(asked)
    assert len(capsys.readouterr().out.splitlines()) == 10
    defaults.main(asked)
    assert capsys.readouterr().out == ""
    lines = appended(tmp_path / "results" / "defaults.jsonl")
    assert {one["half"] for one in lines} == {"held out"}
    assert lines[-1]["chosen"].startswith("n_iter=")
    defaults.main(["report", *places, "--output", str(tmp_path)])
    text = (tmp_path / "defaults_details.md").read_text(encoding="utf-8")
    assert "| b | 60 | 0.0 | 0.00 | - → 0.00 |" in text
    assert "Too few data sets are finished" in (tmp_path / "defaults.md").read_text(encoding="utf-8")
