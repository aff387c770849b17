"""The command that compares models before and after a change."""

import json

import pytest

from benchmarks.quality import same_models
from tanlearn import NaiveBayesClassifier, load

LEARNERS = ["NB ML", "AODE", "Pseudo-TAN HYB"]


@pytest.fixture(scope="module")
def before(tmp_path_factory):
    folder = tmp_path_factory.mktemp("before")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(same_models, "LETTER", folder / "none.npz")
        same_models.main([str(folder), "--learners", *LEARNERS])
    return folder


def compared(before, tmp_path, monkeypatch):
    monkeypatch.setattr(same_models, "LETTER", before / "none.npz")
    with pytest.raises(SystemExit) as ended:
        same_models.main([str(tmp_path), "--learners", *LEARNERS, "--before", str(before)])
    return ended.value.code


def test_the_same_code_makes_the_same_models(before, tmp_path, monkeypatch, capsys):
    assert compared(before, tmp_path, monkeypatch) == 0
    assert "3 models, 0 differences" in capsys.readouterr().out


def test_other_digests_and_other_files_are_named(before, tmp_path, monkeypatch, capsys):
    own = tmp_path / "changed"
    own.mkdir()
    digests = json.loads((before / "digests.json").read_text(encoding="utf-8"))
    digests["digits/AODE"]["answers"] = "other"
    (own / "digests.json").write_text(json.dumps(digests), encoding="utf-8")
    for path in before.glob("*.tan"):
        (own / path.name).write_bytes(path.read_bytes())
    model = load(before / "digits_NB_ML.tan")
    assert isinstance(model, NaiveBayesClassifier)
    model.with_class_prior([0.91] + [0.01] * 9).save(own / "digits_NB_ML.tan")
    assert compared(own, tmp_path / "after", monkeypatch) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[-4] == "3 models, 3 differences"
    assert lines[-3:] == ["model of digits/AODE", "file of digits/NB ML", "file of digits/AODE"]
