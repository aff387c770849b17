"""The published figures of bnclassify that do not depend on chance, and the page about them."""

import numpy as np
import pytest

from benchmarks import DATA
from benchmarks.peers import bnclassify

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not DATA.exists(), reason="the real data sets are not beside the project"),
]


def test_log_likelihood_parameters_and_posteriors_are_equal():
    data = bnclassify.load()
    tree = bnclassify.forest(0.01).fit_encoded(data)
    assert round(bnclassify.log_likelihood(tree, data), 2) == bnclassify.LOG_LIKELIHOOD
    assert tree.n_parameters_ == bnclassify.N_PARAMETERS
    assert tree.structure_.n_edges == 9 - 6
    np.testing.assert_allclose(bnclassify.posteriors(tree, data, 3), bnclassify.POSTERIORS, rtol=5e-7)


def test_averaging_keeps_the_edges_of_bnclassify():
    assert bnclassify.edge_probabilities(bnclassify.load()).round().tolist() == list(bnclassify.EDGES)


def test_page_has_all_sections(tmp_path):
    bnclassify.main(["--repeats", "2", "--output", str(tmp_path)])
    text = (tmp_path / "bnclassify.md").read_text(encoding="utf-8")
    assert "| -13280.39 | -13280.39 |" in text
    assert "equal up to" in text
    assert text.count(" \N{PLUS-MINUS SIGN} ") == 3
