"""The site's sources fit the library: examples use public names, pages that conf.py reads exist, names are listed."""

import ast
import importlib
import itertools
import re
from pathlib import Path

import pytest

import tanlearn
import tanlearn.baselines
import tanlearn.displays

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLES = sorted((DOCS / "gallery").glob("plot_*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_of_the_gallery_take_public_names_and_draw(path):
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    assert re.match(r".+\n=+\n\n\S", ast.get_docstring(tree)), "a title, and what is to be seen"
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imported = [node for node in imports if node.module.startswith("tanlearn")]
    assert imported
    for node in imported:
        module = importlib.import_module(node.module)
        assert {alias.name for alias in node.names} <= {*module.__all__}
    assert "plt." in source or "Display" in source
    assert "figure.suptitle(" in source or "figure_.suptitle(" in source, "what those hear who cannot see the picture"


def test_there_are_at_least_29_examples():
    assert len(EXAMPLES) >= 29


def test_every_public_name_has_a_page():
    listed = {
        line.strip()
        for page in (DOCS / "api").glob("*.rst")
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("   ")
    }
    public = {*tanlearn.__all__, *tanlearn.baselines.__all__, *tanlearn.displays.__all__} - {"LEARNERS"}
    assert public <= listed


def read_setting(name):
    """Return a literal of conf.py."""
    tree = ast.parse((DOCS / "conf.py").read_text(encoding="utf-8"))
    (found,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == name
    )
    return found


def read_pages():
    """Return which files of the repository are pages, as conf.py names them."""
    return read_setting("PAGES")


def test_the_page_about_the_command_line_names_the_default_learners():
    learners = pytest.importorskip("tanlearn.cli.learners", reason="the command line needs the extra `cli`")
    page = " ".join((DOCS / "guide" / "command_line.md").read_text(encoding="utf-8").split())
    names = [learners.default_learner(n_numbers).name for n_numbers in (1_000_000, 10_000_000, 10_000_001)]
    sentence = "{} for up to 1,000,000 values, {} for up to 10,000,000, and {}, a Chow-Liu tree"
    assert sentence.format(*names) in page


#: Words that newcomers search for, and the page that answers them.
SEARCHES = {
    "class imbalance": "guide/imbalance",
    "missing values": "guide/missing_values",
    "save model": "guide/save_and_serve",
    "feature importance": "guide/explaining",
    "categorical": "guide/tables",
    "discretise": "guide/tables",
    "discretize": "guide/tables",
    "calibration": "guide/probabilities",
    "GPU": "guide/gpu",
    "C code": "small",
    "EBM": "about/related",
    "SHAP": "guide/explaining",
    "hill climbing": "learners/classic",
}


@pytest.mark.parametrize("words", SEARCHES)
def test_searches_of_newcomers_lead_to_the_right_page_first(words):
    """Sphinx's search puts main entries of the index (!) first, by the share of the words in their letters."""
    assert "! single: {word}" in (DOCS / "conf.py").read_text(encoding="utf-8")
    scores = {}
    for page, entries in read_setting("KEYWORDS").items():
        found = [len(words) / len(entry) for entry in entries if words.lower() in entry.lower()]
        scores[page] = max((share for share in found if share >= 0.5), default=0)
    assert max(scores, key=scores.get) == SEARCHES[words]
    assert scores[SEARCHES[words]] == 1
    assert sum(score > 0 for score in scores.values()) <= 3


def test_pages_with_search_words_exist_and_begin_with_a_title():
    for page in read_setting("KEYWORDS"):
        assert (DOCS / f"{page}.md").read_text(encoding="utf-8").startswith("# ")


def test_columns_and_pictures_have_words_for_those_who_hear_the_page():
    paths = {ROOT / name for name in read_pages() if name.endswith(".md")} | {
        path for path in DOCS.rglob("*.md") if not {"_build", "auto_examples"} & {*path.relative_to(DOCS).parts}
    }
    n_tables = 0
    for path in paths:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert not [line for line in lines if "![](" in line], path
        for header, rule in itertools.pairwise(lines):
            if re.fullmatch(r"\|( *:?-+:? *\|)+", rule):
                n_tables += 1
                assert all(cell.strip() for cell in header.split("|")[1:-1]), (path, header)
                assert header.count("|") == rule.count("|"), (path, header)
    assert n_tables > 50


def test_pages_that_are_read_from_elsewhere_exist():
    pages = read_pages()
    assert [name for name in pages if not (ROOT / name).exists()] == []
    stubs = [page for page in pages.values() if page and page != "index"]
    assert [page for page in stubs if not (DOCS / f"{page}.md").exists()] == []


def test_ranks_of_the_readme_are_those_of_the_report():
    report = (ROOT / "benchmarks" / "quality" / "tables_details.md").read_text(encoding="utf-8")
    section = report.partition("## Mean ranks: all learners")[2].partition("\n## ")[0].replace("**", "")
    found = {line.split(" | ")[0]: line.split(" | ") for line in section.splitlines()}
    rows = [
        line.split(" | ")
        for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| ")
    ][2:]
    assert len(rows) == 6
    for learner, _, error, log_loss in rows:
        assert [error, log_loss.removesuffix(" |")] == [found[learner][1], found[learner][4]]


def rows_of(page, heading):
    """Return the rows of the first table below a heading of a report on tables, by their first cell."""
    text = (ROOT / "benchmarks" / "quality" / page).read_text(encoding="utf-8")
    section = re.split(r"\n(?=#|!\[)", text.partition(heading)[2])[0].replace("**", "")  # up to a heading or a picture
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return {row[0]: row[1:] for row in rows}


def test_verdicts_of_the_readme_are_those_of_the_report():
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    duels = rows_of("tables_details.md", "### By log loss\n")
    duel = duels["BayesEnsemble"][duels["learner"].index("LightGBM, tuned")]
    found = re.search(r"better than tuned LightGBM on (\d+) data sets and worse on (\d+); (\d+) are undecided", readme)
    assert duel.startswith(f"{found[1]}/{found[3]}/{found[2]}")
    duel = duels["BayesEnsemble"][duels["learner"].index("CatBoost")]
    pattern = r"It is better than CatBoost on (\d+) of (\d+) data sets, and worse on (\d+)"
    better, n_sets, worse = re.search(pattern, readme).groups()
    assert re.fullmatch(rf"{better}/{int(n_sets) - int(better) - int(worse)}/{worse} .*", duel)
    times = rows_of("tables_details.md", "## Time and size: all learners")
    own, peer = (float(times[learner][0]) for learner in ("BayesEnsemble", "LightGBM"))
    fit, ratio = re.search(r"takes ([\d.]+) s on average, (\d+) times as long as LightGBM", readme).groups()
    assert (f"{own:.1f}", f"{own / peer:.0f}") == (fit, ratio)


def test_the_readme_names_the_best_learners_on_data_sets_kept_apart():
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    page = " ".join((ROOT / "benchmarks" / "quality" / "tables.md").read_text(encoding="utf-8").split())
    ranks = rows_of("tables.md", "## Data sets kept apart\n")
    n_learners = len(ranks) - 2
    n_sets, with_ebm = re.search(
        rf"On (\d+) other data sets, BayesEnsemble is first of {n_learners} learners by error, log loss and "
        r"Brier score. EBM, measured on (\d+) of them, is the best other library",
        readme,
    ).groups()
    assert f"are those of the {n_sets} of" in page
    for column in (0, 2, 4):  # by error, log loss, Brier score
        found = {name: float(row[column]) for name, row in ranks.items() if re.fullmatch(r"[\d.]+", row[column])}
        assert min(found, key=found.get) == "BayesEnsemble"
    best = r"BayesEnsemble is the best of \d+ learners by error, log loss and Brier score \([^)]*\)\. "
    best += r'The best peer by error \([\d.]+\) and by log loss \([\d.]+\) is "EBM"'
    assert re.search(rf'On the {with_ebm} of these data sets that "EBM" also completed, {best}', page)


def test_the_readme_is_of_one_screen():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 80


def test_each_command_of_a_page_is_on_its_own_line():
    for page in sorted(path for path in DOCS.rglob("*.md") if "_build" not in path.parts):
        for block in re.findall(
            r"^```console\n(.*?)^```", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
        ):
            assert not re.search(r"\S +\$ ", block), f"{page.name}: several commands on one line"
