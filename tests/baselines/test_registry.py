"""The registry of learners: names, look-up, what the factories make, and the table of it."""

import importlib.util
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from tanlearn import Hybrid, NaiveBayesClassifier, TableEncoder, TANClassifier
from tanlearn.baselines import LEARNERS, find_learner

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def parity():
    """Return rows whose class is the parity of two features, beside one that says nothing."""
    X = np.random.default_rng(0).integers(0, 2, (200, 3))
    return X, X[:, 0] ^ X[:, 1]


def test_keys_are_the_names_and_every_entry_is_described():
    assert [learner.name for learner in LEARNERS.values()] == list(LEARNERS)
    assert all(learner.description and learner.citation for learner in LEARNERS.values())
    for learner in LEARNERS.values():
        papers = learner.citation.split("; ")
        assert len(papers) == len({*papers}), learner  # a structure and its parameters may be of one paper


@pytest.mark.parametrize("name", LEARNERS)
def test_learner_fits_predicts_and_can_be_cloned(name, parity):
    X, y = parity
    encoder = TableEncoder(discrete_features=True)
    model = clone(LEARNERS[name].make(random_state=1, n_epochs=3, n_jobs=2, encoder=encoder)).fit(X, y)
    assert model.predict(X).shape == y.shape
    assert model.n_features_in_ == 3
    assert model.encoder_.is_discrete_.all()
    assert model.random_state == 1
    assert model.n_jobs == 2


@pytest.mark.parametrize("name", LEARNERS)
def test_seed_alone_decides_the_outcome(name, parity):
    X, y = parity
    first, second = (LEARNERS[name].make(random_state=5, n_epochs=3).fit(X, y) for _ in range(2))
    codes = first.encoder_.encode(X)
    np.testing.assert_array_equal(first.model_.log_joint(codes), second.model_.log_joint(codes))


@pytest.fixture(autouse=True)
def _extras(request):
    """Skip a learner whose extra is not installed."""
    if "CVX-MM" in request.node.name:
        pytest.importorskip("cvxpy")


# A random tree joins the two features by luck only, and the tests of MMHC begin with pairs of nodes.
@pytest.mark.parametrize(
    "name", [name for name in LEARNERS if "NB" not in name and name not in ("TAN Random HYB", "MMHC")]
)
def test_trees_learn_parity_and_naive_bayes_cannot(name, parity):
    X, y = parity
    assert LEARNERS[name].make(n_epochs=200).fit(X, y).score(X, y) > 0.9
    assert LEARNERS["NB ML"].make().fit(X, y).score(X, y) < 0.8


@pytest.mark.parametrize("name", [name for name in LEARNERS if name.endswith("HYB")])
def test_epochs_reach_the_learners_by_stochastic_gradient(name):
    assert 7 in LEARNERS[name].make(n_epochs=7).get_params().values()


def test_subset_has_eight_candidates():
    learner = LEARNERS["TAN Subset HYB"].make()
    assert isinstance(learner, TANClassifier)
    assert learner.candidates == "subset"
    X, y = np.random.default_rng(0).integers(0, 2, (60, 12)), np.arange(60) % 2
    model = learner.set_params(n_epochs=1, calibrate=False, loss=Hybrid(), random_state=0).fit(X, y)
    n_parents = np.bincount(model.candidates_.child[model.candidates_.parents[:, 0] >= 0], minlength=12)
    assert n_parents.max() == 8


@pytest.mark.parametrize("spelling", ["TAN-CMI ML", "tan-cmi ml", "  Tan-CMI   ML "])
def test_look_up_ignores_case_and_spaces(spelling):
    assert find_learner(spelling) is LEARNERS["TAN-CMI ML"]


def test_unknown_name_gets_the_nearest_ones_or_all():
    with pytest.raises(ValueError, match=r"no learner 'TAN-CIM ML'\. Did you mean 'TAN-CMI ML'\? tanlearn compare"):
        find_learner("TAN-CIM ML")
    with pytest.raises(
        ValueError, match=r"no learner 'TAN'\. Did you mean 'TAN-[^']*' or 'TAN-.*\? tanlearn compare --list"
    ):
        find_learner("TAN")
    with pytest.raises(ValueError, match=r"no learner 'random forest'\. The learners are: NB ML"):
        find_learner("random forest")


@pytest.mark.parametrize(
    ("spelling", "names"),
    [
        ("NaiveBayesClassifier", "'NB ML' or 'NB CG-CL' or 'NB CG-MM'"),
        ("naive bayes", "'NB ML' or 'NB CG-CL' or 'NB CG-MM'"),
        ("KTreeClassifier", "'K-tree'"),
        ("TANClassifier", "'TAN Subset HYB' or 'TAN All HYB' or 'TAN Order-free HYB'"),
        ("TermNetClassifier", "'Term-NB' or 'Term-TAN' or 'Term-BN'"),
        ("BayesForestClassifier", "'BayesForest'"),
        ("BoostedTermsClassifier", "'BoostedTerms'"),
        ("most likely tree", "'TAN-CMI ML' or 'TAN-CMI CG-CL' or 'TAN-CMI EBW-CL'"),
    ],
)
def test_names_of_classes_and_words_of_descriptions_are_suggestions(spelling, names):
    with pytest.raises(ValueError, match=rf"no learner '{spelling}'\. Did you mean {names}\? tanlearn compare --list"):
        find_learner(spelling)


def test_made_without_arguments_is_the_plain_estimator():
    assert isinstance(LEARNERS["NB ML"].make(), NaiveBayesClassifier)
    assert LEARNERS["NB ML"].make().encoder is None


def table_of_learners() -> str:
    """Return what stands between the markers."""
    text = (ROOT / "docs" / "learners" / "table.md").read_text(encoding="utf-8")
    found = re.search(r"<!-- learners:begin -->\n(.*)<!-- learners:end -->", text, flags=re.DOTALL)
    assert found is not None, "the page has lost the markers of the learners' table"
    return found[1]


def test_learners_table_has_every_learner_with_its_description():
    expected = [[name, learner.description, learner.citation] for name, learner in LEARNERS.items()]
    rows = re.findall(r"^\| (.*) \|$", table_of_learners(), flags=re.MULTILINE)
    assert [row.split(" | ")[:3] for row in rows[2:]] == expected, (
        "run python -m benchmarks.quality.learners_table run, then report"
    )


def test_packages_that_the_site_names_exist():
    names = set(
        re.findall(r"`(tanlearn\.[a-z_]+)`", (ROOT / "docs" / "about" / "packages.md").read_text(encoding="utf-8"))
    )
    assert len(names) > 10
    assert [name for name in sorted(names) if importlib.util.find_spec(name) is None] == []


def test_learners_travel_to_other_processes():
    for learner in LEARNERS.values():
        again = pickle.loads(pickle.dumps(learner))
        assert repr(again.make(n_epochs=3)) == repr(learner.make(n_epochs=3))
