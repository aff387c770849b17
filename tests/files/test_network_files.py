"""Files of networks that others wrote: read whatever their syntax, and refused with line and rule if they break one."""

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.saved_models import fitted

from tanlearn import read_bif, read_xmlbif, write_bif, write_xmlbif
from tanlearn.files.discrete_network import log_of, text_of

#: A network of the family, in a syntax nobody would choose; ``rust`` does not depend on the class.
BIF = """\
// a comment { with marks ( in it
network "the car" { property "author = nobody; really" ; property date today; }
variable class { type discrete [2] { yes no }; } /* no commas
over two lines */ variable "rust spot" {
  property position = (7, 8) ;
  type discrete[ 3 ] { none, "a few", very many };
}
variable age{type discrete[2]{new old};}
variable noise { type discrete [ 2 ] { "<5", 5+ }; }
probability ( noise | age, class ) {
  default .5 5e-1 ;
  (old, yes) 0.125, 0.875;
}
probability(class){table 0.25,0.75;}
probability ( "rust spot" | age ) { table 0.5 0.25 0.25 0.25 0.25 0.5; }
probability ( age class ) { (no) 1 0.0; (yes) 0.75 0.25; }
"""
XML = """\
<?xml version="1.0"?>
<!DOCTYPE BIF [ <!ELEMENT BIF ( NETWORK )*> <!ATTLIST BIF VERSION CDATA #REQUIRED> ]>
<!-- a comment -->
<BIF VERSION="0.3"><NETWORK><NAME>the car</NAME><PROPERTY>author = nobody</PROPERTY>
<VARIABLE TYPE="nature"><NAME> class </NAME><OUTCOME>yes</OUTCOME><OUTCOME>no</OUTCOME></VARIABLE>
<DEFINITION><FOR>age</FOR><GIVEN>class</GIVEN><TABLE>0.75 0.25 <!-- yes --> 1.0 0 <!-- no --></TABLE></DEFINITION>
<VARIABLE><NAME>rust spot</NAME><OUTCOME>none</OUTCOME><OUTCOME>a few</OUTCOME><OUTCOME>very many</OUTCOME></VARIABLE>
<VARIABLE TYPE="nature"><NAME>age</NAME><OUTCOME>new</OUTCOME><OUTCOME>old</OUTCOME><PROPERTY>x</PROPERTY></VARIABLE>
<VARIABLE TYPE="nature"><NAME>noise</NAME><OUTCOME>&lt;5</OUTCOME><OUTCOME>5&#43;</OUTCOME></VARIABLE>
<DEFINITION><FOR>class</FOR><TABLE>.25 75E-2</TABLE></DEFINITION>
<DEFINITION><FOR>rust spot</FOR><GIVEN>age</GIVEN><TABLE>0.5 0.25 0.25
  0.25 0.25 0.5</TABLE></DEFINITION>
<DEFINITION><FOR>noise</FOR><GIVEN>age</GIVEN><GIVEN>class</GIVEN>
<TABLE>0.5 0.5 0.5 0.5 0.125 0.875 0.5 0.5</TABLE></DEFINITION>
</NETWORK></BIF>
"""
TEXTS = {"bif": BIF, "bifxml": XML}


def cars(rust, age, noise):
    return pd.DataFrame({"rust spot": [rust], "age": [age], "noise": [noise]})


@pytest.fixture
def parse(tmp_path):
    """Return a function that reads a text, whose first character tells the format."""

    def parse(text, **options):
        path = tmp_path / "network"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        read = read_xmlbif if path.read_bytes().lstrip()[:1] == b"<" else read_bif
        return read(path, **options)

    return parse


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_foreign_file_is_read(parse, text):
    model = parse(text)
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.feature_names_in_.tolist() == ["rust spot", "age", "noise"]
    assert model.structure_.parents.tolist() == [[1, -1], [-1, -1], [1, -1]]
    assert [known.tolist() for known in model.encoder_.categories_][::2] == [
        ["none", "a few", "very many"],
        ["<5", "5+"],
    ]
    scores = np.exp(model.predict_joint_log_proba(cars("very many", "old", "<5")))
    assert scores.ravel() == pytest.approx([0, 0.25 * 0.25 * 0.5 * 0.125], rel=1e-14)
    assert np.exp(model.score_samples(cars("a few", None, None))) == pytest.approx(0.25, rel=1e-14)
    assert model.predict_proba(cars(None, None, "5+"))[0, 0] == pytest.approx(
        0.375 / (0.375 + 0.25 * 0.59375), rel=1e-14
    )


def test_both_formats_of_a_network_are_read_alike(parse):
    assert np.array_equal(parse(BIF).tables_.cells, parse(XML).tables_.cells)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_any_variable_without_parents_may_be_the_class(parse, text):
    with pytest.raises(ValueError, match=r"the class must have no parents, but variable 'age' has parents \(class\)"):
        parse(text, class_name="age")
    message = r"no variable 'Class'\. Pass one of these names as class_name: class, rust spot, age, noise\."
    with pytest.raises(ValueError, match=message):
        parse(text, class_name="Class")


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_value_that_is_no_state_is_an_error_unless_it_may_be_missing(parse, text):
    with pytest.raises(ValueError, match="'rust spot' holds 'no' in row 0"):
        parse(text).predict(cars("no", "new", "5+"))
    lenient = parse(text, handle_unknown="missing")
    assert np.array_equal(
        lenient.predict_proba(cars("no", "new", "5+")), lenient.predict_proba(cars(None, "new", "5+"))
    )
    with pytest.raises(ValueError, match="handle_unknown"):
        parse(text, handle_unknown="ignore")


def test_two_parents_are_read_in_any_order(parse):
    columns = ["a", "b", "c"]
    text = "".join(f"variable {name} {{ type discrete [2] {{ 0, 1 }}; }}" for name in ["class", *columns])
    text += "probability (class) { table 0.5, 0.5; } probability (a) { table 0.5, 0.5; }"
    text += "probability (b | class) { (1) 0.25, 0.75; (0) 0.5, 0.5; }"
    text += "probability (c | b, class, a) { table 0.1 0.2 0.3 0.4 0.6 0.7 0.8 0.9  0.9 0.8 0.7 0.6 0.4 0.3 0.2 0.1; }"
    model = parse(text)
    assert model.structure_.parents.tolist() == [[-1, -1], [-1, -1], [1, 0]]
    X = pd.DataFrame([["1", "0", "0"]], columns=columns)
    expected = [0.25 * 0.5 * 0.2, 0.25 * 0.25 * 0.4]  # b = 0, class = 0 or 1, a = 1
    assert np.exp(model.predict_joint_log_proba(X)).ravel() == pytest.approx(expected, rel=1e-14)


def test_rounded_probabilities_are_divided_by_their_sum(parse):
    model = parse(BIF.replace("0.5 0.25 0.25 0.25 0.25 0.5", "0.333 0.25 0.333 0.25 0.333 0.5"))
    assert np.exp(model.predict_joint_log_proba(cars("none", "new", "5+")).sum()) > 0
    assert model.tables_.probabilities(0)[:, 0, 0] == pytest.approx([1 / 3] * 3, rel=1e-14)


WRONG = {
    "garbage": ("network", "net work", "line 2: expected network, variable or probability, found 'net'"),
    "comment": (
        "over two lines */",
        "",
        "line 3: a comment, a quoted name or a property that begins with '/. no commas",
    ),
    "quote": ('"a few"', '"a few', "line 6: a comment, a quoted name or a property that begins with '\"a few"),
    "property": ("property position = (7, 8) ;", "property position", "line 7: expected 'type', found '}'"),
    "type": ("type discrete[ 3 ]", "type continuous[ 3 ]", "line 6: expected 'discrete', found 'continuous'"),
    "count": ("[ 3 ]", "[ 4 ]", "line 4: variable 'rust spot' must have 4 states, got 3"),
    "huge count": ("[ 3 ]", f"[ {'9' * 5000} ]", "must have 99999"),
    "states": ("very many", "none", "line 4: variable 'rust spot': states must be distinct, but 'none' occurs twice"),
    "empty state": ("very many", "", "line 4: variable 'rust spot': states must have one or more nonempty names"),
    "declared twice": ("variable age", "variable class", "line 8: variable 'class' is declared twice"),
    "undeclared": (
        "noise | age",
        "noise | agee",
        "line 10: probability of 'noise': variables must be declared, but 'agee' is not",
    ),
    "own parent": ("| age, class", "| age, noise", "line 10: probability of 'noise': .* but 'noise' occurs twice"),
    "no default": (
        "default .5 5e-1 ;",
        "",
        r"line 10: probability of 'noise': the numbers for \(new, yes\) are missing",
    ),
    "two defaults": ("default .5 5e-1 ;", "default 1 0; default 0 1;", "line 11: .*two defaults"),
    "state": (
        "(old, yes)",
        "(olde, yes)",
        r"line 12: \(olde, yes\) must contain one state of each parent, \['age', 'class'\]",
    ),
    "few states": ("(old, yes)", "(old)", r"line 12: \(old\) must contain one state of each parent"),
    "row twice": ("(old, yes)", "(old, yes) 1, 0; (old, yes)", r"line 12: \(old, yes\) occurs twice"),
    "table and row": ("default .5", "table .5", "line 10: probability of 'noise': a table must be the only entry"),
    "numbers": ("0.125, 0.875;", "0.125, 0.875, 0;", "line 12: expected 2 numbers, found 3"),
    "table": ("0.25 0.25 0.5;", "0.25 0.25;", "line 15: expected 6 numbers, found 5"),
    "no number": ("0.875", "0,875x", "line 12: expected 2 numbers"),
    "word": ("0.875", "many", "line 12: expected a probability, a decimal number from 0 to 1, found 'many'"),
    "nan": ("0.875", "nan", "line 12: expected a probability, a decimal number from 0 to 1, found 'nan'"),
    "negative": ("0.875", "-0.875", "line 12: expected a probability, a decimal number from 0 to 1, found '-0.875'"),
    "large": ("0.875", "8.75", "line 12: a probability must be between 0 and 1, got 8.75"),
    "overflow": ("0.875", "1e999999", "line 12: a probability must be between 0 and 1, got 1e999999"),
    "sum": ("0.875", "0.8", "line 10: probability of 'noise': .*distribution 3 of 4 sums to 0.925"),
    "defined twice": ("( age class )", "( class )", "line 16: variable 'class' has two probability blocks"),
    "not defined": ("probability(class){table 0.25,0.75;}", "", "line 3: variable 'class' has no probabilities"),
    "cut off": ("0.75 0.25; }\n", "0.75 0.25;", "line 16: expected '.*', found 'the end of the file'"),
}


@pytest.mark.parametrize(("old", "new", "message"), WRONG.values(), ids=WRONG)
def test_bif_that_breaks_a_rule_is_refused_with_its_line(parse, tmp_path, old, new, message):
    assert BIF.count(old) == 1
    with pytest.raises(ValueError, match=message) as caught:
        parse(BIF.replace(old, new))
    assert str(tmp_path) in str(caught.value)


WRONG_XML = {
    "no XML": ("<GIVEN>age</GIVEN><GIVEN>", "<GIVEN>age</GIVEN><GIVEN", "line 13: invalid XML .not well-formed"),
    "cut off": ("</NETWORK></BIF>", "", "line 16: invalid XML .no element found"),
    "root": ('BIF VERSION="0.3"><NETWORK>', 'BIF VERSION="0.3"><NET>', "mismatched tag"),
    "entity": (
        "BIF ( NETWORK )*> ",
        'BIF ( NETWORK )*> <!ENTITY a "b">',
        "line 2: entity declarations are not allowed. Remove the declaration of 'a'",
    ),
    "decision": (
        'nature"><NAME> class',
        'decision"><NAME> class',
        "line 5: .*type 'decision', but the type must be 'nature'",
    ),
    "no name": ("<NAME> class </NAME>", "", "line 5: VARIABLE must contain one NAME, but has 0"),
    "no states": (
        "<OUTCOME>new</OUTCOME><OUTCOME>old</OUTCOME>",
        "",
        "line 8: variable 'age': states must have one or more nonempty names",
    ),
    "twice": ("<NAME>age</NAME>", "<NAME>class</NAME>", "line 8: variable 'class' is declared twice"),
    "no table": ("<TABLE>.25 75E-2</TABLE>", "", "line 10: DEFINITION must contain one TABLE, but has 0"),
    "undeclared": (
        "<FOR>class</FOR>",
        "<FOR>klass</FOR>",
        "line 10: the definition of 'klass' is invalid: variables must be declared, but 'klass' is not",
    ),
    "defined twice": ("<FOR>class</FOR>", "<FOR>age</FOR>", "line 10: variable 'age' has two definitions"),
    "numbers": (
        ".25 75E-2",
        ".25",
        "line 10: the definition of 'class' is invalid: its TABLE must have 2 numbers, but has 1",
    ),
    "word": (
        ".25 75E-2",
        ".25 x",
        "line 10: the definition of 'class' is invalid: expected a probability, a decimal number from 0 to 1, "
        "found 'x'",
    ),
    "encoding": ('<?xml version="1.0"?>', '<?xml version="1.0" encoding="no"?>', "line 1: unknown encoding: no. Save"),
}


@pytest.mark.parametrize(("old", "new", "message"), WRONG_XML.values(), ids=WRONG_XML)
def test_xmlbif_that_breaks_a_rule_is_refused_with_its_line(parse, tmp_path, old, new, message):
    assert XML.count(old) == 1
    with pytest.raises(ValueError, match=message) as caught:
        parse(XML.replace(old, new))
    assert str(tmp_path) in str(caught.value)


def network_of(*parents, n_classes=2):
    """Return the text of a network of uniform variables; each is given its name and those of its parents."""
    lines = [f"variable class {{ type discrete [{n_classes}] {{ {' '.join(map(str, range(n_classes)))} }}; }}"]
    lines += [f"variable {names[0]} {{ type discrete [2] {{ 0 1 }}; }}" for names in parents if names[0] != "class"]
    if all(names[0] != "class" for names in parents):
        lines.append(f"probability (class) {{ default {f'{1 / n_classes} ' * n_classes}; }}")
    lines += [f"probability ({name} | {', '.join(given)}) {{ default 0.5 0.5; }}" for name, *given in parents]
    return "\n".join(lines)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (network_of(), "at least one feature, but the class 'class' is its only variable"),
        (network_of(["a", "b"], ["b", "a"]), "the parents form a cycle"),
        (network_of(["a"], ["class", "a"]), r"the class must have no parents, but variable 'class' has parents \(a\)"),
        (network_of(["a"], n_classes=1), "the class 'class' must have at least two states"),
        (
            network_of(*"abcdefghijklmnopqrstuvwxy", "zabcdefghijklmnopqrstuvwxy"),
            "its table must have at most .* numbers, got 67108864",
        ),
    ],
)
def test_network_of_another_family_is_refused(parse, text, message):
    with pytest.raises(ValueError, match=message):
        parse(text)


def test_features_may_have_any_number_of_parents(parse):
    model = parse(network_of(["a"], ["b"], ["c"], ["d", "a", "b", "class", "c"]))
    assert model.structure_.parents.tolist() == [[-1] * 3, [-1] * 3, [-1] * 3, [0, 1, 2]]
    assert model.tables_[3].shape == (2, 2, 2, 2, 2)


def test_few_lines_cannot_stand_for_more_numbers_than_the_limit(parse):
    names = [f"v{i}" for i in range(6)]
    states = " ".join(map(str, range(1600)))
    text = "variable class { type discrete [2] { 0 1 }; } probability (class) { table 1 0; }"
    text += "".join(f"variable {name} {{ type discrete [1600] {{ {states} }}; }}" for name in names)
    row = "0 " * 1599 + "1"
    chain = [f"probability ({b} | {a}, class) {{ default {row}; }}" for a, b in itertools.pairwise(names)]
    with pytest.raises(ValueError, match="line 1: defaults may imply at most 16777216 numbers"):
        parse(text + "".join(chain))
    text += "".join(f"probability ({name}) {{ default {row}; }}" for name in names).replace("(v1)", "(v1 | v0)")
    wide = text.replace("variable class { type discrete [2] { 0 1 }; } probability (class) { table 1 0; }", "")
    with pytest.raises(ValueError, match="repeated for each of the 1600 classes if 'v5' is not a parent"):
        parse(wide, class_name="v5")
    few = "variable few { type discrete [10] { 0 1 2 3 4 5 6 7 8 9 }; }"
    few += "probability (few) { default 1 0 0 0 0 0 0 0 0 0; }"
    with pytest.raises(
        ValueError,
        match="a CPT must have at most 16777216 entries, but the CPT of 'v1', repeated for every class, has more",
    ):
        parse(few + wide, class_name="few")


@pytest.mark.parametrize(
    "text",
    [
        "property x " * 50_000,
        'property "x ' * 50_000,
        "variable a { " + "property x " * 50_000,
        "/*" * 30_000,
        '"' * 30_001,
        "(" * 30_000,
        "probability ( a" + " a" * 30_000,
        "variable a { type discrete [ 2 ] { " + "{" * 30_000,
        "network " + "/" * 30_000,
        "<a>" * 30_000,
        "<BIF><NETWORK>" + "<VARIABLE>" * 30_000,
        '<!DOCTYPE BIF [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]><BIF>&b;</BIF>',
        '<!DOCTYPE BIF [<!ENTITY a SYSTEM "/etc/passwd">]><BIF>&a;</BIF>',
        '<!DOCTYPE BIF SYSTEM "/etc/passwd" [<!ENTITY % a SYSTEM "/etc/passwd"> %a;]><BIF></BIF>',
        "<BIF>" + "<a>" * 30_000 + "</a>" * 30_000 + "</BIF>",
        b"\xff\xfe<\0?\0",
        b"\x80network",
        "",
        "\0",
    ],
    ids=lambda text: repr(text[:20]),
)
def test_hostile_file_is_refused(parse, text):
    """The work is counted in ``test_network_texts.py``."""
    with pytest.raises(ValueError, match="cannot be read as a network"):
        parse(text)


@pytest.mark.parametrize("name", TEXTS)
def test_mutated_files_are_refused_or_predict(parse, tmp_path, name):
    (write_bif if name == "bif" else write_xmlbif)(fitted("small"), tmp_path / "small")
    contents = [(tmp_path / "small").read_bytes(), TEXTS[name].encode()]
    n_read = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        content = bytearray(contents[seed % 2])
        for _ in range(rng.integers(1, 4)):
            start, stop = np.sort(rng.integers(0, len(content), 2)).tolist()
            stop = min(stop, start + 40)
            pieces = {
                0: b"",
                1: rng.choice(np.frombuffer(b'0123456789.e-{}()[]|,;"/*<>&=_ \n\xc3', np.uint8), 3).tobytes(),
                2: bytes(content[start:stop]) * 2,
                3: bytes(content[stop : stop + 20]),
            }
            content[start : stop if rng.integers(2) else start + 1] = pieces[int(rng.integers(4))]
        try:
            model = parse(bytes(content), handle_unknown="missing")
        except ValueError as error:
            assert "cannot be read as a network" in str(error)  # noqa: PT017
            continue
        n_read += 1
        rows = pd.DataFrame(np.full((1, model.n_features_in_), None), columns=getattr(model, "feature_names_in_", None))
        assert model.predict_proba(rows).sum() == pytest.approx(1)
    assert 0 < n_read < 300


@settings(derandomize=True, max_examples=300, deadline=None)
@given(st.floats(-1e4, 1e-15) | st.floats(-1e-12, 0.0) | st.floats(-1e-320, 0.0))
def test_logarithm_is_read_as_it_was_written(log_probability):
    assert log_of(text_of(log_probability)) == log_probability


def test_logarithms_of_frequencies_are_read_as_they_were_written():
    frequencies = np.arange(1, 1000) / 1000
    assert [log_of(text_of(x)) for x in np.log(frequencies).tolist()] == np.log(frequencies).tolist()
    assert float(text_of(float(np.log(1 / 3)))) == pytest.approx(1 / 3, rel=1e-16)
