"""Layouts: parents above children, nothing on top of each other, no crossing of the edges of trees; and their SVG."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest

from tanlearn import Structure, Tables
from tanlearn.structures.drawings import structure_svg
from tanlearn.structures.layered_layout import layered_positions, margins
from tanlearn.structures.table_layout import TableLayout


def random_structure(seed, n_features, n_parents=1, loneliness=0.2):
    rng = np.random.default_rng(seed)
    order = rng.permutation(n_features)
    parents = np.full((n_features, 2), -1)
    for place, i in enumerate(order):
        wanted = 0 if rng.random() < loneliness else min(place, n_parents)
        parents[i, :wanted] = rng.choice(order[:place], wanted, replace=False) if wanted else []
    return Structure(parents)


@pytest.mark.parametrize("n_parents", [1, 2])
@pytest.mark.parametrize("seed", range(12))
def test_nothing_covers_anything_and_parents_are_above(seed, n_parents):
    structure = random_structure(seed, [3, 8, 40, 256][seed % 4], n_parents, [0.02, 0.3, 0.9][seed % 3])
    positions = layered_positions(structure.parents, structure.order)
    assert np.isfinite(positions).all()
    distance = np.abs(positions[:, None] - positions[None])
    apart = (distance >= 1 - 1e-9).any(axis=2) | np.eye(len(positions), dtype=bool)
    assert apart.all()
    if n_parents == 1:  # others may have a parent in a tree beside theirs
        for i, row in enumerate(structure.parents.tolist()):
            assert all(positions[j, 1] >= positions[i, 1] + 1 - 1e-9 for j in row if j >= 0)


@pytest.mark.parametrize("seed", range(8))
def test_edges_of_a_tree_do_not_cross(seed):
    structure = random_structure(seed, 30, loneliness=0.0)
    x, y = layered_positions(structure.parents, structure.order).T
    child = np.flatnonzero(structure.parent >= 0)
    for a in child:
        for b in child:
            p, q = structure.parent[[a, b]]
            if y[a] == y[b] and p != q:
                assert (x[a] - x[b]) * (x[p] - x[q]) > 0
    for p in set(structure.parent[child]):
        children = x[structure.parent == p]
        assert x[p] == pytest.approx((children.min() + children.max()) / 2)


def test_a_wide_forest_is_broken_into_rows():
    structure = Structure.naive_bayes(100)
    positions = layered_positions(structure.parents, structure.order)
    left, right, bottom, top = margins(positions)
    assert 0.8 < (right - left) / (top - bottom) < 3


def test_svg_has_a_line_an_edge_and_escapes_names():
    structure = random_structure(3, 12, 2)
    names = [f"<b>{i}</b> & a very long name" for i in range(12)]
    root = ET.fromstring(structure_svg(structure.parents, structure.order, names))
    svg = "{http://www.w3.org/2000/svg}"
    assert len(root.findall(f".//{svg}line")) == structure.n_edges
    assert [title.text for title in root.iter(f"{svg}title")] == names
    assert all(len(text.text) <= 13 for text in root.iter(f"{svg}text"))
    assert str(structure.n_edges) in root.get("aria-label")
    large = random_structure(4, 100)
    root = ET.fromstring(structure_svg(large.parents, large.order))
    assert len(root.findall(f".//{svg}circle")) == 100
    assert not root.findall(f".//{svg}text")
    x0, y0, width, height = map(float, root.get("viewBox").split())
    for dot in root.iter(f"{svg}circle"):
        assert x0 < float(dot.get("cx")) < x0 + width
        assert y0 < float(dot.get("cy")) < y0 + height


def test_structures_and_tables_show_themselves_in_notebooks():
    assert "<svg" in Structure([-1, 0])._repr_html_()
    assert "cycle" in Structure([1, 0], allow_cycles=True)._repr_html_()
    layout = TableLayout.of_parents(Structure([-1, 0]).parents, np.array([2, 3]), 2)
    html = Tables(layout, np.log(np.full(layout.n_cells, 0.5)))._repr_html_()
    assert "<td>1</td><td>3</td><td>2</td><td>12</td>" in html
    many = TableLayout.of_parents(Structure.naive_bayes(25).parents, np.full(25, 2), 2)
    assert "and 5 more features" in Tables(many, np.log(np.full(many.n_cells, 0.5)))._repr_html_()
