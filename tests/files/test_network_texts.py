"""Texts of networks as other programs write them: rounded numbers, what comes before XML, and all spellings of BIF."""

import contextlib
import decimal
import itertools
import re
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tanlearn import read_bif, read_xmlbif, write_bif, write_xmlbif
from tanlearn.files import bif, discrete_network, xmlbif
from tanlearn.files.bif import parse_bif
from tanlearn.files.discrete_network import log_of
from tanlearn.files.fast_logarithms import fast_log
from tanlearn.files.xmlbif import parse_xmlbif

WRITERS = {"bif": (write_bif, read_bif), "bifxml": (write_xmlbif, read_xmlbif)}


def bif_of(*rows):
    """Return a network of a class with a feature of these distributions, one per class."""
    states = [", ".join(f"s{i}" for i in range(n)) for n in (len(rows), len(rows[0]))]
    lines = [f"variable class {{ type discrete [ {len(rows)} ] {{ {states[0]} }}; }}"]
    lines += [f"variable x {{ type discrete [ {len(rows[0])} ] {{ {states[1]} }}; }}"]
    lines += [f"probability ( class ) {{ table {', '.join(['1'] + ['0'] * (len(rows) - 1))}; }}"]
    given = [f"(s{i}) {', '.join(row)};" for i, row in enumerate(rows)]
    return "\n".join([*lines, "probability ( x | class ) {", *given, "}"])


def xml_of(*rows):
    """Return the same network in XMLBIF."""
    lines = ["<BIF><NETWORK>"]
    for name, n in (("class", len(rows)), ("x", len(rows[0]))):
        outcomes = "".join(f"<OUTCOME>s{i}</OUTCOME>" for i in range(n))
        lines.append(f"<VARIABLE><NAME>{name}</NAME>{outcomes}</VARIABLE>")
    lines.append(f"<DEFINITION><FOR>class</FOR><TABLE>{' '.join(['1'] + ['0'] * (len(rows) - 1))}</TABLE></DEFINITION>")
    numbers = " ".join(itertools.chain(*rows))
    lines.append(f"<DEFINITION><FOR>x</FOR><GIVEN>class</GIVEN><TABLE>{numbers}</TABLE></DEFINITION>")
    return "\n".join([*lines, "</NETWORK></BIF>"])


PARSERS = {"bif": (bif_of, parse_bif), "bifxml": (xml_of, parse_xmlbif)}


@pytest.mark.parametrize("spell", PARSERS)
@pytest.mark.parametrize(
    "row",
    [
        ["0.33"] * 3,
        ["0.34", "0.34", "0.33"],
        ["0.11"] * 9,
        ["0.99"],
        ["1.01"],
        ["1.01", "0"],
        ["0.03"] * 33,
        ["0.005"] * 198,
        ["0.005"] * 202,
        ["0.97", "0.01", "0.01"],
    ],
    ids=lambda row: f"{len(row)} of {row[0]}",
)
def test_distribution_that_misses_1_by_a_hundredth_is_divided_by_its_sum(spell, row):
    text_of, parse = PARSERS[spell]
    table = np.exp(parse(text_of(row, row).encode()).definitions["x"].log_table)
    values = np.array(row, float)
    assert table == pytest.approx(np.array([values / values.sum()] * 2), rel=1e-13)


@pytest.mark.parametrize("spell", PARSERS)
@pytest.mark.parametrize("row", [["0.3299", "0.33", "0.33"], ["0.3401", "0.34", "0.33"], ["0.11"] * 8, ["0.9899"]])
def test_distribution_that_misses_1_by_more_is_refused(spell, row):
    text_of, parse = PARSERS[spell]
    with pytest.raises(ValueError, match="must sum to 1, but distribution 2 of 2 sums to"):
        parse(text_of(["1", "0", "0", "0", "0", "0", "0", "0"][: len(row)], row).encode())


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("seed", range(5))
def test_what_is_read_is_written_and_read_again_to_the_last_bit(name, seed, tmp_path):
    """However rounded: to 9 digits, sums miss 1 by 1e-9, which is where reading begins to divide by them."""
    rng, rows = np.random.default_rng(seed), []
    for digits in (2, 3, 6, 8, 9, 9, 9, 10, 12, 17):
        found = np.round(rng.dirichlet(np.full(40, 0.3)), digits)
        found[-1] = 0
        found[-1] = max(0, np.round(1 - found.sum(), digits))
        rows += [[f"{p:.{digits}f}" for p in found]]
        unit = 10.0**-digits
        largest = found.argmax()
        for miss in (unit, -unit):
            changed = found.copy()
            changed[largest] += miss
            rows.append([f"{p:.{digits}f}" for p in changed])
    rows = [row for row in rows if abs(sum(map(decimal.Decimal, row)) - 1) <= decimal.Decimal("0.01")]
    assert len(rows) > 25
    source, path = tmp_path / "source.bif", tmp_path / "written"
    source.write_text(bif_of(*rows))
    write, read = WRITERS[name]
    model = read_bif(source)
    write(model, path)
    again = read(path)
    assert np.array_equal(again.tables_.cells, model.tables_.cells)
    content = path.read_bytes()
    write(again, path)
    assert path.read_bytes() == content


XML = '<?xml version="1.0" encoding="US-ASCII"?>\n' + xml_of(["0.5", "0.5"], ["1", "0"])


@pytest.mark.parametrize(
    "before",
    ["", "\n", "\r\n\r\n", " \t\n", "\ufeff", "\ufeff\n", "\n\ufeff", "<!-- by hand -->", "\n<!-- a\n-b -> -->\n\n"],
    ids=repr,
)
def test_xml_may_begin_with_blank_lines_a_byte_order_mark_and_comments(before):
    network = parse_xmlbif((before + XML).encode())
    assert np.exp(network.definitions["x"].log_table).tolist() == [[0.5, 0.5], [1, 0]]
    line = (before + XML).count("\n") + 1
    with pytest.raises(ValueError, match=f"line {line}: invalid XML"):
        parse_xmlbif((before + XML).replace("</BIF>", "<BIF>").encode())


@pytest.mark.parametrize("before", ["x", "<a/>", "<!-- open", "\n<? xml ?>", "<!DOCTYPE BIF>", "<!-- --> x"])
def test_xml_may_not_begin_with_anything_else(before):
    with pytest.raises(ValueError, match="invalid XML"):
        parse_xmlbif((before + XML).encode())


def spelled(rows, between, end):
    """Return a network of three parents, with something between its words."""
    head = "".join(f"variable {name} {{ type discrete [2] {{ no, yes or no }}; }}\n" for name in ("class", "a", "b"))
    head += "variable x { type discrete [3] { 1, 2, 3 }; }\n"
    head += "".join(f"probability ({name}) {{ table 0.5, 0.5; }}\n" for name in ("class", "a", "b"))
    lines = [
        f"{between}({', '.join(states)}){between} {f',{between} '.join(numbers)} {between}{end}\n"
        for states, numbers in rows
    ]
    return f"{head}probability (x | a, class, b) {{\n{''.join(lines)}}}"


STATES = [*itertools.product(["no", "yes or no"], repeat=3)]
ROWS = [["0.25", "0.5", "0.25"], ["1", "0", "0"], ["0.2", "0.3", "0.5"]]
NUMBERS = ["0.25", "0.5", ".25", "2.5E-1", "+0.250", "0.5e0", "1", "0", "0.0", "-1", "x", "1.5", "1e999", "0.2.5", ""]


@settings(derandomize=True, max_examples=300, deadline=None)
@given(
    st.permutations(STATES),
    st.lists(st.lists(st.sampled_from(NUMBERS), min_size=3, max_size=3), min_size=8, max_size=8),
    st.lists(st.sampled_from(ROWS), min_size=8, max_size=8),
    st.integers(0, 12),
    st.sampled_from([";", ";;", "", "}"]),
)
def test_usual_spelling_is_read_as_any_other(states, strange, rows, n_strange, end):
    """The one is matched by entries, the other, here with comments, word by word."""
    rows = strange[: max(0, n_strange - 8)] + rows[max(0, n_strange - 8) :]
    found = []
    for between in ("", "/**/"):
        try:
            network = parse_bif(spelled(zip(states, rows, strict=True), between, end).encode())
            found.append(network.definitions["x"].log_table.tolist())
        except ValueError as error:
            found.append(str(error))
    assert found[0] == found[1]


def test_logarithms_of_short_fractions_are_rounded_correctly():
    context = decimal.Context(prec=60, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
    rng = np.random.default_rng(0)
    n_found = 0
    for _ in range(4000):
        digits = int(rng.integers(1, 29))
        text = "".join(map(str, rng.integers(0, 10, digits))).lstrip("0") or "1"
        if rng.random() < 0.3:
            text = "9" * digits  # near to 1, where logarithms are small
        power = -len(text) - int(rng.choice([0, 0, 1, 5, 300, 900]))
        exact = float(context.ln(decimal.Decimal(f"{text}e{power}")))
        found = fast_log(int(text), power)
        n_found += found is not None
        assert found in (None, exact)
        assert log_of(f"{text}e{power}") == exact
        if power > -400:
            assert log_of(f"0.{text.zfill(-power)}") == exact
    assert n_found > 3000


# Work, counted ---------------------------------------------------------------------------------------------


def calls(parse, content):
    """Return how many functions, of Python and of C, a parser calls for a content, which it may refuse."""
    count = 0

    def profile(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(profile)
    try:
        with contextlib.suppress(ValueError):
            parse(content)
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "text",
    [
        "property x ",
        'property "x ',
        "/*",
        '"',
        "(",
        "network ",
        "network {} ",
        "probability ( a ) { (a) ",
        "probability ( a ) { table 1 ",
        "probability (a) { (a) 1; (a ",
        "variable a { type discrete [ 2 ] { ",
        "variable a { property b; ",
        "table 1; ",
        "<a>",
        "<BIF><NETWORK><VARIABLE>",
        "<BIF>\n<!-- -->",
        "\n<!-- -->",
    ],
)
def test_work_grows_with_the_size_of_a_hostile_file_and_no_faster(text):
    parse = parse_xmlbif if "<" in text else parse_bif
    first, second = (calls(parse, (text * n).encode()) for n in (500, 2000))
    assert second <= 4 * first + 100
    assert second <= 40 * len(text) * 2000


def backtracking(parsed):
    """Yield the unbounded repetitions of a pattern that may be tried again when what follows fails."""
    for code, argument in parsed:
        name = str(code)
        if name == "MAX_REPEAT" and argument[1] > 500:
            yield argument
        for part in argument if isinstance(argument, (list, tuple)) else [argument]:
            if hasattr(part, "data"):
                yield from backtracking(part)
            elif isinstance(part, list):
                for branch in part:
                    if hasattr(branch, "data"):
                        yield from backtracking(branch)


def test_patterns_of_parsers_do_not_backtrack():
    """So a match takes time in proportion to the text that it looks at; lazy repetitions end at the first chance."""
    values = itertools.chain.from_iterable(vars(module).values() for module in (bif, discrete_network, xmlbif))
    patterns = [value for value in values if isinstance(value, re.Pattern)]
    assert len(patterns) >= 5
    for pattern in patterns:
        flags = pattern.flags & ~re.UNICODE if isinstance(pattern.pattern, bytes) else pattern.flags
        assert [*backtracking(re._parser.parse(pattern.pattern, flags))] == [], pattern.pattern
    assert [*backtracking(re._parser.parse("(?:a|b+)c"))] != []


@pytest.mark.parametrize("name", WRITERS)
def test_class_keeps_the_name_that_it_has_in_the_file(name, tmp_path):
    text = bif_of(["0.5", "0.5"], ["1", "0"]).replace("class", "sick leave").replace("x", "class")
    (tmp_path / "network.bif").write_text(text.replace("sick leave", '"sick leave"'))
    model = read_bif(tmp_path / "network.bif", class_name="sick leave")
    write, read = WRITERS[name]
    write(model, tmp_path / "written")
    again = read(tmp_path / "written", class_name="sick leave")
    assert again.feature_names_in_.tolist() == ["class"]
    assert np.array_equal(again.tables_.cells, model.tables_.cells)
    write(again, tmp_path / "written", class_name="other")
    assert read(tmp_path / "written", class_name="other").classes_.tolist() == ["s0", "s1"]
    with pytest.raises(ValueError, match="class"):
        write(model, tmp_path / "written", class_name="class")


def test_rows_of_a_network_that_was_read_are_predicted_as_its_file_says(tmp_path):
    path = tmp_path / "network.bif"
    path.write_text(bif_of(["0.33", "0.33", "0.33"], ["0.5", "0.25", "0.25"]).replace("table 1, 0", "table 0.5, 0.5"))
    found = read_bif(path).predict_proba(pd.DataFrame({"x": ["s0"]}))
    assert found == pytest.approx(np.array([[0.4, 0.6]]), rel=1e-13)
