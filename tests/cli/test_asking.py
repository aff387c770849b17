"""``tanlearn ask``: questions in the order of their gain, answers of all kinds, and every end."""

import json

import pandas as pd
import pytest
from support.command_line import plain

import tanlearn
from tanlearn.cli import asking


@pytest.fixture
def classifier(model):
    return tanlearn.load(model)


def questions(done):
    """Return the names of the columns that were asked."""
    return [line.partition(". ")[2].partition("?")[0] for line in done.stderr.splitlines() if line[:1].isdigit()]


def row_of(classifier, **values):
    """Return a row with some values."""
    names = classifier.feature_names_in_.tolist()
    return pd.DataFrame({name: pd.Series([values.get(name)], dtype=object) for name in names}).infer_objects()


def test_the_most_informative_column_comes_first_and_answers_count(run, model, classifier):
    done = run("ask", model, "--sure", "1", "--json", stdin="150.5\n2024-05-01\nTrue\n")
    assert done.exit_code == 0, done.stderr
    result, names = json.loads(done.stdout), questions(done)
    seen = {}
    days = (pd.Timestamp("2024-05-01") - pd.Timestamp(0)).days
    for answer, name in (
        ({"spent": 150.5}, "spent"),
        ({"signed up": days}, "signed up"),
        ({"newsletter": True}, "newsletter"),
    ):
        assert names.pop(0) == classifier.next_feature(row_of(classifier, **seen))[0] == name
        seen |= answer
    seen = row_of(classifier, **seen)
    assert names == classifier.next_feature(seen).tolist()
    p = dict(zip(["no", "yes"], classifier.predict_proba(seen)[0].tolist(), strict=True))
    assert result["probabilities"] == pytest.approx(p, rel=1e-12)
    assert result["prediction"] == max(p, key=p.get)
    assert result["values"] == {"spent": 150.5, "newsletter": True, "signed up": "2024-05-01"}
    assert (result["unanswered"], result["n_questions"]) == ([], 3)
    assert done.stderr.endswith("tanlearn: after 3 of 5 questions: end of the input.\n")


def test_the_result_is_a_class_with_its_probability(run, model, classifier):
    done = run("ask", model, "newsletter=True", "spent=190", "--most", "0")
    p = classifier.predict_proba(row_of(classifier, newsletter=True, spent=190.0))[0]
    label = classifier.classes_[p.argmax()]
    shown = sorted(zip(p, classifier.classes_, strict=True), reverse=True)
    assert done.stdout == f"{label}   ({', '.join(f'{name} {share:.1%}' for share, name in shown)})\n"
    assert done.stderr == "tanlearn: after 0 of 5 questions: limit of --most reached.\n"


def test_questions_end_once_the_class_is_sure(run, model):
    done = run("ask", model, "--sure", "0.7", stdin="50\n2019-05-01\nFalse\n40\n\n")
    assert done.exit_code == 0
    assert 0 < len(questions(done)) < 5
    assert f"after {len(questions(done))} of 5 questions: a class has a probability of 0.7." in done.stderr


def test_all_questions_are_asked_if_only_certainty_suffices(run, model):
    done = run("ask", model, "--sure", "1", stdin="\n" * 5)
    assert sorted(questions(done)) == ["age", "newsletter", "signed up", "spent", "town"]
    assert "after 5 of 5 questions: no column is left." in done.stderr
    assert done.stderr.count("no 5") + done.stderr.count("no 6") >= 5  # the class frequencies after each question


def test_no_answer_is_no_evidence_and_is_not_asked_again(run, model, classifier):
    done = run("ask", model, "--sure", "1", "--most", "2", "--json", stdin="\n\n")
    result = json.loads(done.stdout)
    assert result["unanswered"] == questions(done)
    assert len({*questions(done)}) == 2
    assert result["values"] == {}
    p = classifier.predict_proba(row_of(classifier))[0]
    assert list(result["probabilities"].values()) == pytest.approx(p.tolist(), rel=1e-12)


def test_questions_show_values_and_ranges(run, model, classifier):
    done = run("ask", model, "--sure", "1", stdin="\n" * 5)
    assert "town? (Graz, Linz; empty: no answer)" in done.stderr
    assert "newsletter? (False, True; empty: no answer)" in done.stderr
    i = classifier.feature_names_in_.tolist().index("age")
    low, high = classifier.encoder_.value_ranges_[i]
    assert f"age? (a number, {low:g} to {high:g} in training; empty: no answer)" in done.stderr


@pytest.mark.parametrize("answer", ["Graz", " graz ", "g", "GRA"])
def test_categories_may_be_shortened(run, model, answer):
    options = ["--without", "age,spent", "--without", "signed up", "--json"]
    done = run("ask", model, "newsletter=True", *options, "--sure", "1", stdin=f"{answer}\n")
    assert json.loads(done.stdout)["values"] == {"newsletter": True, "town": "Graz"}
    assert questions(done) == ["town"]
    assert "after 1 of 5 questions: no column is left." in done.stderr


def test_costs_change_the_order(run, model):
    free = run("ask", model, "--most", "1", stdin="\n")
    costly = run("ask", model, "--most", "1", "--cost", "spent=50,age=2", "--cost", "newsletter=50", stdin="\n")
    assert questions(free) == ["spent"]
    assert questions(costly) == ["signed up"]


@pytest.mark.parametrize("options", [["--gain", "accuracy"], ["--depth", "2"]])
def test_other_gains_are_those_of_the_classifier(run, model, classifier, options):
    done = run("ask", model, *options, "--most", "1", stdin="\n")
    key, value = options[0][2:], options[1]
    wanted = classifier.next_feature(row_of(classifier), **{key: int(value) if value.isdigit() else value})
    assert questions(done) == wanted.tolist()


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        (["--without", "spent,signed up,town,age"], "oui\n", "'newsletter' must be one of False, True, got 'oui'."),
        (
            ["--without", "newsletter,signed up,town,age"],
            "much\n",
            "'spent' must be a finite number, or a date in a column of dates, got 'much'.",
        ),
        (
            ["--without", "newsletter,signed up,town,age"],
            "inf\n",
            "'spent' must be a finite number, or a date in a column of dates, got 'inf'.",
        ),
        (["newslettr=True"], "", "the model has no column 'newslettr'. Did you mean 'newsletter'?"),
        (["new"], "", "a row must be a JSON object or name=value, got 'new'."),
        (["--without", "ago"], "", "the model has no column 'ago'. Did you mean 'age'?"),
        (["--cost", "age"], "", "--cost must be NAME=COST with a positive number, such as age=2, got 'age'."),
        (["--cost", "age=-1"], "", "got 'age=-1'."),
        (["--cost", "ago=1"], "", "the model has no column 'ago'."),
    ],
)
def test_invalid_input_is_one_line_and_exit_code_2(run, model, arguments, stdin, message):
    done = run("ask", model, *arguments, stdin=stdin)
    assert done.exit_code == 2
    assert message in done.stderr.splitlines()[-1]
    assert done.stdout == ""


def test_on_a_terminal_a_wrong_answer_is_asked_again(run, model, monkeypatch):
    monkeypatch.setattr(asking, "is_terminal", lambda: True)
    done = run("ask", model, "--most", "1", "--json", stdin="perhaps\n5e1\n")
    assert questions(done) == ["spent", "spent"]
    assert "got 'perhaps'." in done.stderr
    assert json.loads(done.stdout)["values"] == {"spent": 50}


def test_unseen_values_are_noted(run, model):
    done = run("ask", model, "town=Paris", "--most", "0")
    assert "'town' is 'Paris', which did not occur in training" in done.stderr
    assert "town" not in questions(run("ask", model, "town=Paris", "--sure", "1", stdin="\n" * 5))


def test_forests_have_no_questions(run, shop, tmp_path):
    path = tmp_path / "forest.tan"
    run("fit", shop, "--target", "buys", "--drop", "id", "--learner", "BayesForest", "-o", path)
    done = run("ask", path)
    assert done.exit_code == 2
    assert "questions need a single network, but" in done.stderr


def test_help_names_the_options(run):
    shown = plain(run("ask", "--help").stdout)
    assert "--sure" in shown
    assert "An empty line means no answer." in shown
