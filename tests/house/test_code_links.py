"""Code names in the prose of the site become links to their API pages."""

import importlib.util
from pathlib import Path
from types import SimpleNamespace

import pytest

nodes = pytest.importorskip("docutils.nodes", reason="needs the extra `docs`")
DOCS = Path(__file__).parents[2] / "docs"


def load_links():
    """Return the module of the extension."""
    spec = importlib.util.spec_from_file_location("code_links", DOCS / "code_links.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def linked(*children):
    """Return a paragraph and a title after the hook: titles and addresses of their links, by the linked text."""
    entries = {
        "tanlearn.TANClassifier": SimpleNamespace(objtype="class", docname="api/tan", node_id="tan"),
        "tanlearn.TANClassifier.fit": SimpleNamespace(objtype="method", docname="api/tan", node_id="tan.fit"),
        "tanlearn.load": SimpleNamespace(objtype="function", docname="api/load", node_id="load"),
        "tanlearn.dask.TANClassifier": SimpleNamespace(objtype="class", docname="api/dask", node_id="dask"),
    }
    others = {"sklearn.svm.SVC": "https://example.org/svc.html", "sklearn.Pipe": "https://example.org/pipe.html"}
    environment = SimpleNamespace(
        domains={"py": SimpleNamespace(objects=entries)},
        intersphinx_inventory={"py:class": {name: ("", "", address, "-") for name, address in others.items()}},
    )
    builder = SimpleNamespace(get_relative_uri=lambda source, page: f"{page}.html")
    document = nodes.section("", *children)
    document.document = None
    load_links().link_names(SimpleNamespace(env=environment, builder=builder), document, "guide/page")
    return {link.astext(): link["refuri"] for link in document.findall(nodes.reference)}


def paragraph(*codes):
    """Return a paragraph of code names."""
    return nodes.paragraph("", "", *(nodes.literal("", code) for code in codes))


def test_names_calls_and_methods_are_linked_to_the_shortest_name():
    assert linked(paragraph("TANClassifier", "TANClassifier(max_parents=1)", "TANClassifier.fit", "tanlearn.load")) == {
        "TANClassifier": "api/tan.html#tan",
        "TANClassifier(max_parents=1)": "api/tan.html#tan",
        "TANClassifier.fit": "api/tan.html#tan.fit",
        "tanlearn.load": "api/load.html#load",
    }


def test_names_of_other_libraries_are_linked_where_their_inventory_is_loaded():
    assert linked(paragraph("Pipe", "sklearn.svm.SVC")) == {
        "Pipe": "https://example.org/pipe.html",
        "sklearn.svm.SVC": "https://example.org/svc.html",
    }


def test_plain_words_options_titles_and_links_stay():
    title = nodes.title("", "", nodes.literal("", "TANClassifier"))
    link = nodes.paragraph("", "", nodes.reference("", "", nodes.literal("", "TANClassifier"), refuri="there"))
    assert linked(title, link, paragraph("load", "fit", "max_parents=1", "--target y")) == {"TANClassifier": "there"}
