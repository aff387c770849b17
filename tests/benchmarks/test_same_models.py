"""The command that compares models before and after a change."""

import json

import pytest

from benchmarks.quality import same_models
from tanlearn import NaiveBayesClassifier, load

CHOICE = [
    "--models",
    "NB ML",
    "AODE",
    "TAN-CMI ML",
    "naive Bayes, quantiles",
    "--tables",
    "mixed",
    "whole weights",
    "tiny",
]


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    folder = tmp_path_factory.mktemp("before")
    same_models.main([str(folder), *CHOICE])
    return folder


def compared(before, folder):
    with pytest.raises(SystemExit) as ended:
        same_models.main([str(folder), *CHOICE, "--before", str(before)])
    return ended.value.code


def test_the_same_code_makes_the_same_models(before, tmp_path, capsys):
    assert compared(before, tmp_path) == 0
    assert "12 models, 0 differences" in capsys.readouterr().out


def test_other_digests_and_other_files_are_named(before, tmp_path, capsys):
    own = tmp_path / "changed"
    own.mkdir()
    digests = json.loads((before / "digests.json").read_text(encoding="utf-8"))
    digests["mixed/AODE"]["file"] = "other"
    digests["mixed/TAN-CMI ML"] = {"fit": "ValueError: other words"}
    (own / "digests.json").write_text(json.dumps(digests), encoding="utf-8")
    for path in before.glob("* NB ML.tan"):
        (own / path.name).write_bytes(path.read_bytes())
    model = load(before / "mixed NB ML.tan")
    assert isinstance(model, NaiveBayesClassifier)
    model.with_class_prior([0.9, 0.1]).save(own / "mixed NB ML.tan")
    assert compared(own, tmp_path / "after") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-5:] == [
        "12 models, 4 differences",
        "mixed/AODE: file",
        "mixed/NB ML: answers, new, of the file",
        "mixed/NB ML: answers, known, of the file",
        "mixed/TAN-CMI ML: answers, known, answers, new, cells, description, file, fit, parents",
    ]


def test_every_table_is_of_another_kind():
    tables = same_models.tables()
    assert len(tables) == 11
    counts = {name: len(rows.y) for name, rows in tables.items()}
    assert min(counts, key=counts.get) == "tiny"
    assert {name for name, rows in tables.items() if rows.weight is not None} == {"whole weights", "real weights"}
