"""Configuration of the documentation site; ``make docs`` builds it."""

import inspect
import os
import re
import sys
import urllib.request
import warnings
from pathlib import Path
from urllib.parse import urlsplit

os.environ.setdefault("MPLBACKEND", "Agg")
ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "docs")]

import tanlearn  # noqa: E402

project, author, release = "tanlearn", "The tanlearn developers", tanlearn.__version__
project_copyright = "the tanlearn developers, BSD 3-Clause license"
version = release

#: Address of the published site and of the repository; GitHub's workflows define the second one.
SITE = os.environ.get("TANLEARN_SITE_URL", "")
REPOSITORY = "/".join(filter(None, map(os.environ.get, ("GITHUB_SERVER_URL", "GITHUB_REPOSITORY"))))
REPOSITORY = REPOSITORY if REPOSITORY.count("/") == 4 else ""

extensions = [
    "code_links",
    "myst_parser",
    "notfound.extension",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinx-mathjax-offline",
    *(["sphinx_sitemap", "sphinxext.opengraph"] if SITE else []),  # their tags contain the address of the site
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown"}
exclude_patterns = ["_build", "gallery/*.rst", "gallery/*.py"]
templates_path = ["templates"]
default_role = None
nitpicky = False
autosummary_generate = True
autodoc_typehints = "none"  # docstrings contain types, shapes and units
toc_object_entries_show_parents = "hide"  # names with their class are too long for the list of a page
autodoc_default_options = {"members": True}  # without show-inheritance: bases are private
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
myst_enable_extensions = ["colon_fence", "dollarmath", "deflist"]
myst_heading_anchors = 3
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "show_memory": False,
    "plot_gallery": "True",
    "abort_on_example_error": True,
    "image_scrapers": ("matplotlib",),
    "remove_config_comments": True,
    "write_computation_times": False,
    "capture_repr": (),  # only printed text is output
}
warnings.filterwarnings("ignore", "discretization left a single interval")  # the examples are about other topics

html_theme = "pydata_sphinx_theme"
html_title = f"tanlearn {release}"
html_static_path = ["static"]
html_favicon = "static/favicon.svg"
html_css_files = ["tanlearn.css"]
html_js_files = ["tanlearn.js"]
html_theme_options = {
    "logo": {"text": "tanlearn"},
    "navigation_with_keys": True,
    "show_toc_level": 2,
    "header_links_before_dropdown": 8,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
    "secondary_sidebar_items": ["page-toc", "edit-this-page"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_show_sourcelink = html_copy_source = False
html_baseurl = ogp_site_url = SITE
sitemap_url_scheme = "{link}"
ogp_enable_meta_description = True  # of the first sentences of a page
ogp_social_cards = {"enable": bool(SITE), "line_color": "#00567f"}
notfound_urls_prefix = f"{urlsplit(SITE).path.rstrip('/')}/"
notfound_context = {
    "title": "Page not found",
    "body": """<h1>Page not found</h1>
<p>This page does not exist, or it has another address in this version. Search for it, or use the start page.</p>""",
}
if REPOSITORY:
    html_theme_options |= {"use_edit_page_button": True}
    html_context = {
        "edit_page_url_template": f"{REPOSITORY}/edit/main/{{{{ edited_file or file_name }}}}",
        "edit_page_provider_name": "GitHub",
    }

#: Documentation whose inventories are loaded if it is reachable, so that names of these libraries become links.
LIBRARIES = {
    "python": "https://docs.python.org/3/",
    "numpy": "https://numpy.org/doc/stable/",
    "pandas": "https://pandas.pydata.org/docs/",
    "sklearn": "https://scikit-learn.org/stable/",
}


def is_reachable(address):
    """Return whether an inventory can be read now."""
    try:
        with urllib.request.urlopen(f"{address}objects.inv", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


if is_reachable(LIBRARIES["python"]):  # a single wait where there is no network
    extensions.append("sphinx.ext.intersphinx")
    intersphinx_mapping = {name: (address, None) for name, address in LIBRARIES.items() if is_reachable(address)}

#: Where files of the repository stand on the site; what is not here is named, and no link.
PAGES = {
    "README.md": "index",
    "CONTRIBUTING.md": "about/contributing",
    "CHANGELOG.md": "about/changelog",
    "SECURITY.md": "about/security",
    "LICENSE": None,
    "docs/which.md": "which",
    "docs/large.md": "large",
    "docs/small.md": "small",
    "benchmarks/quality/tables.md": "benchmarks/tables",
    "benchmarks/quality/tables_details.md": "benchmarks/tables_details",
    "benchmarks/quality/anomalies.md": "benchmarks/anomalies",
    "benchmarks/quality/imputation.md": "benchmarks/imputation",
    "benchmarks/quality/prediction_sets.md": "benchmarks/prediction_sets",
    "benchmarks/quality/private_counts.md": "benchmarks/private_counts",
    "benchmarks/quality/term_losses.md": "benchmarks/term_losses",
    "benchmarks/quality/term_structures.md": "benchmarks/term_structures",
    "benchmarks/quality/unlabeled.md": "benchmarks/unlabeled",
    "benchmarks/quality/k_trees.md": "benchmarks/k_trees",
    "benchmarks/quality/k_trees_details.md": "benchmarks/k_trees_details",
    "benchmarks/quality/calibration.md": "benchmarks/calibration",
    "benchmarks/quality/defaults.md": "benchmarks/defaults",
    "benchmarks/quality/defaults_details.md": "benchmarks/defaults_details",
    "benchmarks/quality/parent_dropout.md": "benchmarks/parent_dropout",
    "benchmarks/quality/parent_dropout_details.md": "benchmarks/parent_dropout_details",
    "benchmarks/quality/exact_margin.md": "benchmarks/exact_margin",
    "benchmarks/peers/README.md": "benchmarks/peers",
    "benchmarks/peers/climbing.md": "benchmarks/peers_climbing",
    "benchmarks/peers/bnclassify.md": "benchmarks/bnclassify",
    "benchmarks/embedded/README.md": "benchmarks/embedded",
    "benchmarks/embedded/details.md": "benchmarks/embedded_details",
    "benchmarks/speed/large_tables.md": "benchmarks/large_tables",
    "benchmarks/speed/memory.md": "benchmarks/memory",
    "benchmarks/scale/counts.md": "benchmarks/counts",
    "benchmarks/scale/counts_details.md": "benchmarks/counts_details",
    "benchmarks/README.md": "benchmarks/speed",
    "examples/README.md": "guide/devices",
    "benchmarks/climbing/README.md": "benchmarks/climbing",
    "benchmarks/climbing/details.md": "benchmarks/climbing_details",
    "benchmarks/climbing/evaluations.md": "benchmarks/evaluations",
    "benchmarks/climbing/time_to_accuracy.md": "benchmarks/time_to_accuracy",
    "benchmarks/paper/calls.md": "benchmarks/paper_calls",
    "benchmarks/paper/differentiable_tan/report.md": "benchmarks/differentiable_tan",
    "benchmarks/paper/differentiable_tan/report_details.md": "benchmarks/differentiable_tan_details",
    "benchmarks/paper/resource_efficient/report.md": "benchmarks/few_bits",
    "benchmarks/paper/resource_efficient/report_details.md": "benchmarks/few_bits_details",
    "benchmarks/paper/resource_efficient/fronts.md": "benchmarks/fronts",
    "benchmarks/paper/resource_efficient/fronts_details.md": "benchmarks/fronts_details",
    "benchmarks/paper/maximum_margin/report.md": "benchmarks/maximum_margin",
    "benchmarks/paper/maximum_margin/report_details.md": "benchmarks/maximum_margin_details",
    "benchmarks/paper/maximum_margin/missing_features.md": "benchmarks/missing_features",
    "benchmarks/paper/maximum_margin/missing_features_details.md": "benchmarks/missing_features_details",
    "benchmarks/paper/order_based/report.md": "benchmarks/order_based",
    "benchmarks/paper/order_based/report_details.md": "benchmarks/order_based_details",
}
#: Search words of pages in addition to their text, as entries of the index: the search lists these pages first.
KEYWORDS = {
    "about/limits": ["regression", "multi-label", "limitations", "FAQ", "cite", "license"],
    "about/related": [
        "EBM",
        "explainable boosting",
        "LightGBM",
        "XGBoost",
        "CatBoost",
        "pgmpy",
        "pyAgrum",
        "InterpretML",
    ],
    "guide/comparing": ["significance test", "critical difference", "cross-validation"],
    "guide/databases": ["SQL", "database"],
    "guide/explaining": ["SHAP", "feature importance", "interpretability", "explanation"],
    "guide/gpu": ["GPU", "CUDA"],
    "guide/high_cardinality": ["high cardinality", "many categories", "target encoding"],
    "guide/imbalance": ["class imbalance", "imbalanced", "threshold", "class_weight", "cost-sensitive", "oversampling"],
    "guide/unlabeled": ["semi-supervised", "unlabeled", "unlabelled", "few labels", "self-training"],
    "guide/imputing": ["imputation", "impute"],
    "guide/install": ["installation", "pip", "compilation"],
    "guide/javascript": ["JavaScript", "browser"],
    "guide/missing_values": ["missing values", "NaN"],
    "guide/onnx": ["ONNX"],
    "guide/own_parts": ["custom loss", "own structure learner"],
    "guide/private_counts": ["differential privacy", "privacy", "epsilon", "anonymization", "federated"],
    "guide/probabilities": ["calibration", "reliability", "density", "outlier detection"],
    "guide/save_and_serve": ["save model", "load model", "pickle", "deploy", "serialization"],
    "guide/tables": [
        "categorical",
        "one-hot",
        "ordinal",
        "discretize",
        "discretise",
        "discretisation",
        "sample weights",
    ],
    "guide/tuning": ["hyperparameter", "grid search", "tuning"],
    "large": ["large data", "out of core", "streaming", "Dask", "partial_fit"],
    "learners/classic": ["hill climbing", "structure learning", "AODE", "tabu search"],
    "small": ["C code", "microcontroller", "Arduino", "quantization", "quantisation"],
}
INCLUDED = {page: name for name, page in PAGES.items() if page and not name.startswith("docs/") and name != "README.md"}
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")
FILE = re.compile(r"(?<![\w/`])(?:benchmarks|docs)/[\w/]+\.md\b")


def read_links(app, docname, source):
    """Turn links to files of the repository into links to pages, or into names where there is no page."""
    home = ROOT / INCLUDED.get(docname, f"docs/{docname}.md")
    if docname in INCLUDED:
        source[0] = home.read_text(encoding="utf-8")
        app.env.note_dependency(str(home))  # a new report makes a new page

    def replace(match):
        words, target = match[1], match[2]
        path = (home.parent / target).resolve()
        name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else target
        if PAGES.get(name):
            suffix = ".rst" if PAGES[name] == "index" else ".md"
            return f"[{words}](/{PAGES[name]}{suffix}{match[3] or ''})"
        if name.startswith("docs/gallery/") and path.suffix == ".py":
            return f"[{words}](/auto_examples/{path.stem}.rst)"
        if name.startswith("docs/") and docname not in INCLUDED:
            return match[0]
        if name.startswith("docs/") and path.suffix == ".md" and path.exists():
            return f"[{words}]({name.removeprefix('docs')}{match[3] or ''})"
        if path.suffix == ".csv" and path.exists():
            return f"{{download}}`{words} </{'../' + name}>`"
        return f"{words} (`{name}`)"

    if home.suffix == ".md" and home.exists():  # and not of the API or the gallery; labels may be broken over two lines
        source[0] = LINK.sub(replace, source[0])
    if docname in KEYWORDS:
        entries = "\n".join(f"```{{index}} ! single: {word}\n```" for word in KEYWORDS[docname])
        source[0] = re.sub(r"\A(# .+\n)", rf"\1\n{entries}\n", source[0])  # at the top, where a result leads
    if docname in INCLUDED:
        up = "../" * docname.count("/")
        folder = Path(INCLUDED[docname]).parent.as_posix()
        source[0] = re.sub(r"!\[([^\]]*)\]\((?!https?:)([^)]+)\)", rf"![\1]({up}../{folder}/\2)", source[0])


def skip_inherited(app, what, name, thing, skip, options):
    """Leave out what scikit-learn brings along."""
    module = getattr(inspect.unwrap(thing) if callable(thing) else thing, "__module__", "") or ""
    return True if module.startswith("sklearn.") else skip


def link_pages(app, what, name, thing, options, lines):
    """Turn file names of pages in docstrings into links."""
    for number, line in enumerate(lines):
        lines[number] = FILE.sub(lambda match: f":doc:`/{PAGES[match[0]]}`" if PAGES.get(match[0]) else match[0], line)


def escape_names(app, what, name, thing, options, lines):
    """Keep ``n_features_in_`` in shapes from being read as a reference."""
    lines[:] = [re.sub(r"(?<!`)\bn_features_in_,", r"n_features_in\\_,", line) for line in lines]


def add_edited_file(app, pagename, templatename, context, doctree):
    """Let "edit this page" lead to the file whose text a page has; pages made from docstrings have no such link."""
    source = Path(INCLUDED.get(pagename, f"docs/{pagename}{context.get('page_source_suffix') or ''}"))
    is_generated = not (ROOT / source).is_file() or "generated" in source.parts or "auto_examples" in source.parts
    context["edited_file"] = source.as_posix()
    if is_generated:
        context["theme_use_edit_page_button"] = False


def setup(app):
    """Register the hooks."""
    app.connect("html-page-context", add_edited_file, priority=400)
    app.connect("autodoc-process-docstring", escape_names, priority=900)
    app.connect("autodoc-process-docstring", link_pages)
    app.connect("source-read", read_links)
    app.connect("autodoc-skip-member", skip_inherited)
