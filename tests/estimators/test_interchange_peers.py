"""pgmpy and pyAgrum read the files that we write, we read theirs, and all agree on the posteriors."""

import logging

import numpy as np
import pandas as pd
import pytest
from support.saved_models import FRAME, HOLED, fitted, odd_model

from tanlearn import read_bif, read_xmlbif, write_bif, write_xmlbif
from tanlearn.models.log_joint import log_posterior

FORMATS = {"bif": (write_bif, read_bif), "bifxml": (write_xmlbif, read_xmlbif)}
both_formats = pytest.mark.parametrize("ending", FORMATS)
MODELS = ["nb", "chow-liu", "two-parents", "tan", "odd"]


def sixty_fourths(rng, shape):
    """Return distributions of three states that six digits hold, as many as pyAgrum writes in XMLBIF."""
    return rng.multinomial(64, [0.2, 0.3, 0.5], shape) / 64


class PyAgrum:
    """Networks of pyAgrum."""

    def __init__(self):
        self.library = pytest.importorskip("pyagrum", reason='not installed: pip install -e ".[peers]"')

    def tolerance(self, ending):
        """Return how exactly numbers are read: from BIF, in single precision."""
        return {"rtol": 1e-4, "atol": 1e-6} if ending == "bif" else {"rtol": 1e-9, "atol": 1e-12}

    def read(self, path):
        return self.library.loadBN(str(path))

    def write(self, network, path):
        self.library.saveBN(network, str(path))

    def states(self, network):
        """Return the states of all variables, in the order of the file."""
        return {network.variable(i).name(): network.variable(i).labels() for i in range(network.size())}

    def posterior(self, network, target, evidence):
        inference = self.library.VariableElimination(network)
        inference.setEvidence(evidence)
        return np.array(inference.posterior(target).tolist())

    def random(self, edges):
        """Return a network of a class and features, of three states each."""
        network = self.library.fastBN(";".join(f"{parent}->{child}" for parent, child in edges), 3)
        rng = np.random.default_rng(5)
        for i in range(network.size()):
            shape = network.cpt(i).toarray().shape
            network.cpt(i).fillWith(sixty_fourths(rng, shape[:-1]).ravel().tolist())
        return network


class Pgmpy:
    """Networks of pgmpy."""

    def __init__(self):
        reason = 'not installed: pip install -e ".[peers]"'
        self.files = pytest.importorskip("pgmpy.readwrite", reason=reason)
        self.inference = pytest.importorskip("pgmpy.inference", reason=reason)
        self.models = pytest.importorskip("pgmpy.models", reason=reason)
        self.factors = pytest.importorskip("pgmpy.factors.discrete", reason=reason)
        logging.getLogger("pgmpy").setLevel(logging.ERROR)

    def tolerance(self, ending):
        return {"rtol": 1e-9, "atol": 1e-12}

    def read(self, path):
        reader = self.files.BIFReader if path.suffix == ".bif" else self.files.XMLBIFReader
        network = reader(str(path)).get_model()
        assert network.check_model()
        return network

    def write(self, network, path):
        writer = self.files.BIFWriter if path.suffix == ".bif" else self.files.XMLBIFWriter
        writer(network).write(str(path))

    def states(self, network):
        return {name: network.get_cpds(name).state_names[name] for name in network.nodes()}

    def posterior(self, network, target, evidence):
        query = self.inference.VariableElimination(network).query([target], evidence, show_progress=False)
        return query.values

    def random(self, edges):
        network = self.models.DiscreteBayesianNetwork(edges)
        rng = np.random.default_rng(6)
        for name in network.nodes():
            parents = network.get_parents(name)
            values = sixty_fourths(rng, (3 ** len(parents),)).T
            states = {node: ["low", "middle", "high"] for node in [name, *parents]}
            cpd = self.factors.TabularCPD(name, 3, values, parents, [3] * len(parents), state_names=states)
            network.add_cpds(cpd)
        return network


@pytest.fixture(params=[PyAgrum, Pgmpy], ids=["pyAgrum", "pgmpy"])
def peer(request, recwarn):
    """Return a library; what it warns of is not our concern."""
    return request.param()


def model_and_rows(name):
    if name == "odd":
        model, frame = odd_model()
        frame.loc[::3, frame.columns[:5]] = None
        return model, frame.head(6)
    return fitted(name), pd.concat([FRAME.head(4), HOLED.head(8)])[fitted(name).feature_names_in_]


@both_formats
@pytest.mark.parametrize("name", MODELS)
def test_peer_reads_our_file_and_finds_the_same_posteriors(peer, tmp_path, ending, name):
    model, rows = model_and_rows(name)
    write, _ = FORMATS[ending]
    write(model, tmp_path / f"network.{ending}", class_name="the class")
    network = peer.read(tmp_path / f"network.{ending}")
    states = peer.states(network)
    target, *features = list(states)
    assert target == "the_class"
    rows = rows[model.score_samples(rows) > -np.inf]  # of impossible rows, each program says something else
    codes = model.encoder_.encode(rows)
    expected = np.exp(log_posterior(model.predict_joint_log_proba(rows)))  # peers know of no calibration
    assert len(rows) > 3
    for row, posterior in zip(codes.T.tolist(), expected, strict=True):
        known = {name: states[name][code] for name, code in zip(features, row, strict=True) if code != 255}
        np.testing.assert_allclose(peer.posterior(network, target, known), posterior, **peer.tolerance(ending))


EDGES = [
    *((("class", name)) for name in "abcdf"),  # e depends on a alone
    ("a", "b"),
    ("a", "c"),
    ("b", "c"),
    ("c", "d"),
    ("a", "e"),
    ("e", "f"),
]


@both_formats
def test_we_read_the_file_of_a_peer_and_find_the_same_posteriors(peer, tmp_path, ending):
    path = tmp_path / f"network.{ending}"
    peer.write(peer.random(EDGES), path)
    network = peer.read(path)
    states = peer.states(network)
    model = FORMATS[ending][1](path)
    order = [list(states["class"]).index(label) for label in model.classes_]
    rng = np.random.default_rng(7)
    for missing in (0.1, 0.3, 0.6):
        for _ in range(5):
            row = {name: None if rng.random() < missing else str(rng.choice(states[name])) for name in "abcdef"}
            frame = pd.DataFrame([row])[model.feature_names_in_]
            known = {name: state for name, state in row.items() if state is not None}
            posterior = peer.posterior(network, "class", known)[order]
            np.testing.assert_allclose(model.predict_proba(frame)[0], posterior, **peer.tolerance(ending))


@both_formats
def test_our_file_comes_back_from_a_peer(peer, tmp_path, ending):
    """Values, names and order of the columns come back where the peer keeps our properties, and else as strings."""
    model = fitted("chow-liu")
    write, read = FORMATS[ending]
    write(model, tmp_path / f"network.{ending}")
    network = peer.read(tmp_path / f"network.{ending}")
    peer.write(network, tmp_path / f"again.{ending}")
    found = read(tmp_path / f"again.{ending}")
    rows = FRAME.head(10)
    keeps_properties = isinstance(peer, Pgmpy) and ending == "bifxml"
    if keeps_properties:
        assert found.feature_names_in_.tolist() == model.feature_names_in_.tolist()
        assert found.encoder_.is_discrete_.tolist() == model.encoder_.is_discrete_.tolist()
    else:
        states, codes = peer.states(network), dict(zip(rows, model.encoder_.encode(rows), strict=True))
        rows = pd.DataFrame({name: [states[name][code] for code in codes[name]] for name in found.feature_names_in_})
    written = (
        {"rtol": 1e-4, "atol": 1e-6} if isinstance(peer, PyAgrum) else peer.tolerance(ending)
    )  # of XMLBIF, 6 digits
    np.testing.assert_allclose(found.predict_proba(rows), model.predict_proba(FRAME.head(10)), **written)
