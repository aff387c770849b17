"""Files that claim more than they hold: memory and work, both counted, stay in proportion to the size of the file."""

import io
import json
import struct
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
from support.saved_models import FRAME, Y

from tanlearn import (
    BayesNetClassifier,
    EncodedData,
    NaiveBayesClassifier,
    PairCounts,
    Structure,
    TableCounts,
    load,
    read_bif,
)
from tanlearn.encoding.stored_values import read_arrays
from tanlearn.encoding.summaries import TableSummary
from tanlearn.files.archive import pack, unpack
from tanlearn.files.bif import parse_bif
from tanlearn.files.discrete_network import LARGEST_MODEL
from tanlearn.files.regular_files import COUNTS
from tanlearn.files.xmlbif import parse_xmlbif
from tanlearn.search.checkpoint import SearchCheckpoint
from tanlearn.search.runs import RunResult
from tanlearn.sources.columns import read_columns

DATA = EncodedData.from_codes([[0, 1], [1, 1], [1, 0]], [0, 1, 1])


def peak(function, *arguments, match):
    """Return the bytes that a function takes until it refuses its arguments."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=match):
            function(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def npy(array):
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, array, version=(1, 0))
    return buffer.getvalue()


def shared(content, n):
    """Return an archive of n members that are the same bytes."""
    members = [f"m{i:05d}.npy".encode() for i in range(n)]
    sizes = zlib.crc32(content), len(content), len(content), len(members[0])
    body = struct.pack("<4s5H3I2H", b"PK\3\4", 20, 0, 0, 0, 0, *sizes, 0) + members[0] + content
    directory = b"".join(
        struct.pack("<4s6H3I5H2I", b"PK\1\2", 20, 20, 0, 0, 0, 0, *sizes, 0, 0, 0, 0, 0, 0) + name for name in members
    )
    return body + directory + struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, n, n, len(directory), len(body), 0)


def claiming(shape, dtype="<f8", n_bytes=80, **others):
    """Return an archive of an array that claims a shape."""
    header = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape!r}, }}".encode().ljust(117) + b"\n"
    member = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + bytes(n_bytes)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("tanlearn_counts.npy", member)
        for name, array in others.items():
            archive.writestr(f"{name}.npy", npy(array))
    return buffer.getvalue()


@pytest.mark.parametrize("kind", [PairCounts, TableSummary])
def test_members_that_share_bytes_are_refused(kind):
    content = shared(npy(np.zeros(20_000)), 300)
    assert peak(kind.from_bytes, content, match="compressed or overlapping entries") < 4 * len(content)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        ((10**9,), "<f8"),
        ((10**5, 10**5), "<f8"),
        ((1,), "<U1000000000"),
        ((1,), "|S1000000000"),
        ((-1,), "<f8"),
        ((-2, -5), "<f8"),
        ((2**63,), "|b1"),
        ((10,), "|O"),
    ],
)
def test_arrays_that_claim_what_is_not_there_are_refused(shape, dtype):
    content = claiming(shape, dtype)
    assert peak(PairCounts.from_bytes, content, match="not a valid PairCounts") < 10**6


def test_other_archives_are_refused():
    with pytest.raises(ValueError, match="not a valid PairCounts"):
        PairCounts.from_bytes(claiming((1,), "<i8", 8))  # a format of 0, and nothing else
    state = PairCounts(DATA.n_states, DATA.n_classes).update(DATA)
    arrays = read_arrays(state.to_bytes())
    assert {name: array.dtype.str for name, array in arrays.items()}["cells"] == "<i8"
    assert all(array.flags.writeable for array in arrays.values())
    buffer = io.BytesIO()
    columns = np.asfortranarray(np.arange(6).reshape(2, 3))
    np.savez(buffer, columns=columns, scalar=np.array(3), empty=np.empty((0, 3)))
    found = read_arrays(buffer.getvalue())
    assert found["columns"].tolist() == columns.tolist()
    assert (found["scalar"].shape, found["empty"].shape) == ((), (0, 3))


@pytest.mark.parametrize("label", ["<U100000000", "|S500000000", "<f8", "M8[s]", "|V8", "x", 7])
def test_classes_of_a_summary_are_as_long_as_their_names(label):
    summary = TableSummary().update(read_columns([["Graz"], ["Linz"]]), np.array(["no", "yes"]))
    arrays = read_arrays(summary.to_bytes())
    state = json.loads(arrays["state"].tobytes())
    assert state["label_type"] == "<U3"
    arrays["state"] = np.frombuffer(json.dumps({**state, "label_type": label}).encode(), np.uint8)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    assert peak(lambda: TableSummary.from_bytes(buffer.getvalue()).classes_, match="not a valid TableSummary") < 10**6


def test_counts_of_families_that_are_not_there_are_refused(tmp_path):
    """Five parents of a file of a few kilobytes ask for gigabytes."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 10, (200, 8)), rng.integers(0, 2, 200)
    X[:10] = np.arange(10)[:, np.newaxis]
    TableCounts.of_source([(X, y)], pairs=False).save(tmp_path / "counts")
    description, arrays = unpack((tmp_path / "counts").read_bytes(), COUNTS)
    member = description["counts"]["structure"]["parents"]
    parents = np.full((8, 7), -1)
    parents[7] = np.arange(7)
    arrays[member] = parents.astype(arrays[member].dtype)
    content = pack(description, arrays, COUNTS)
    (tmp_path / "counts").write_bytes(content)
    assert peak(TableCounts.load, tmp_path / "counts", match="cells must have type") < 20 * len(content)


def test_counts_of_families_in_a_model_are_checked_alike(tmp_path):
    model = BayesNetClassifier(structure=Structure([-1, 0, 0, 0, 0, 0])).partial_fit(FRAME, Y, np.unique(Y))
    model.save(tmp_path / "model", counts=True)
    assert load(tmp_path / "model").counts_ == model.counts_
    description, arrays = unpack((tmp_path / "model").read_bytes())
    parents = np.full((6, 5), -1)
    parents[5] = np.arange(5)
    arrays[description["counts"]["counts"]["structure"]["parents"]] = parents
    content = pack(description, arrays)
    (tmp_path / "model").write_bytes(content)
    assert peak(load, tmp_path / "model", match="cells must have type") < 20 * len(content)


# Networks --------------------------------------------------------------------------------------------------


def variable(name, n_states):
    return f"variable {name} {{ type discrete [{n_states}] {{ {' '.join(f's{i}' for i in range(n_states))} }}; }}\n"


def test_tables_that_many_classes_repeat_have_a_limit(tmp_path):
    """70 kB of text stood for 5 GB."""
    text = variable("class", 1000) + f"probability (class) {{ default {'0.001 ' * 1000}; }}\n"
    text += variable("p", 4000) + f"probability (p) {{ default {'0.00025 ' * 4000}; }}\n"
    for i in range(40):
        text += variable(f"k{i}", 4) + f"probability (k{i} | p) {{ default 0.25 0.25 0.25 0.25; }}\n"
    (tmp_path / "network").write_text(text)
    message = rf"at most {LARGEST_MODEL} numbers.* repeated for each of the 1000 classes"
    used = peak(read_bif, tmp_path / "network", match=message)
    assert used < 200 * len(text)


@pytest.mark.parametrize("parse", [parse_bif, parse_xmlbif])
def test_parents_have_a_limit(parse):
    names = [f"v{i}" for i in range(40)]
    if parse is parse_bif:
        text = "".join(variable(name, 1) + f"probability ({name}) {{ table 1; }}\n" for name in names)
        text += variable("x", 1) + f"probability (x | {', '.join(names)}) {{ default 1; }}"
    else:
        text = "<BIF><NETWORK>"
        for name in [*names, "x"]:
            given = "".join(f"<GIVEN>{parent}</GIVEN>" for parent in names * (name == "x"))
            text += f"<VARIABLE><NAME>{name}</NAME><OUTCOME>s</OUTCOME></VARIABLE>"
            text += f"<DEFINITION><FOR>{name}</FOR>{given}<TABLE>1</TABLE></DEFINITION>"
        text += "</NETWORK></BIF>"
    with pytest.raises(ValueError, match="it must have at most 30 parents, got 40"):
        parse(text.encode())


class CountedName(str):
    """A name that counts how often one is compared with another."""

    n_compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        type(self).n_compared += 1
        return str.__eq__(self, other)


def test_names_that_stand_twice_are_found_without_comparing_all_with_all():
    from tanlearn.files.discrete_network import unique

    names = [CountedName(i) for i in range(5000)] + [CountedName(4999)]
    with pytest.raises(ValueError, match="'4999' occurs twice"):
        unique(names, "states")
    assert CountedName.n_compared < 20 * len(names)


def test_text_that_spells_its_numbers_out_has_no_limit_but_that_of_single_tables(monkeypatch):
    monkeypatch.setattr("tanlearn.files.bif.LARGEST_NETWORK", 30)
    head = "".join(variable(name, 5) for name in ("class", *"abcdef"))
    head += "probability (class) { table 0.2 0.2 0.2 0.2 0.2; }\n"
    spelled = "".join(
        f"probability ({name} | class) {{ {' '.join(f'(s{i}) 1 0 0 0 0;' for i in range(5))} }}\n" for name in "abcdef"
    )
    assert len(parse_bif((head + spelled).encode()).definitions) == 7
    implied = "".join(f"probability ({name} | class) {{ (s1) 1 0 0 0 0; default 0 1 0 0 0; }}\n" for name in "abcdef")
    with pytest.raises(ValueError, match="line 10: defaults may imply at most 30 numbers"):
        parse_bif((head + implied).encode())


# Search checkpoints ----------------------------------------------------------------------------------------

RESULT = {"setting": 0, "part": 0, "score": 0.5, "n_parameters": 1, "seconds": 1.0}


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        '{"setting": ' + "[" * 100_000,
        json.dumps({**RESULT, "setting": "0"}),
        json.dumps({**RESULT, "setting": -1}),
        json.dumps({**RESULT, "part": True}),
        json.dumps({**RESULT, "part": 0.0}),
        json.dumps({**RESULT, "score": "0.5"}),
        json.dumps({**RESULT, "score": None}),
        json.dumps({**RESULT, "seconds": [1]}),
        json.dumps({**RESULT, "failure": 1}),
        json.dumps({**RESULT, "more": 1}),
        json.dumps([RESULT]),
        "9" * 10_000,
        "",
    ],
    ids=lambda line: line[:40],
)
def test_lines_of_a_search_are_checked(line, tmp_path):
    path = tmp_path / "search"
    SearchCheckpoint(path, "d").append(RunResult(**RESULT))
    SearchCheckpoint(path, "d").append(RunResult(0, 1, float("nan"), 1, 1, "failed"))
    assert len(SearchCheckpoint(path, "d").finished) == 2
    with path.open("a") as file:
        file.write(f"{line}\n")
    content = path.read_bytes()
    with pytest.raises(ValueError, match="is not a search checkpoint, or is damaged"):
        SearchCheckpoint(path, "d")
    assert path.read_bytes() == content


# Every part of every format --------------------------------------------------------------------------------


def numbers(value, path=()):
    """Yield the paths of all integers in JSON."""
    if type(value) is int:
        yield path
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from numbers(item, (*path, key))


def files(folder):
    """Yield files with a function that reads them."""
    NaiveBayesClassifier().fit(FRAME, Y).with_bits((3, 2)).save(folder / "bits")
    yield folder / "bits", unpack((folder / "bits").read_bytes()), lambda *found: pack(*found), load
    model = NaiveBayesClassifier().partial_fit(FRAME, Y, np.unique(Y))
    model.save(folder / "model", counts=True)
    yield folder / "model", unpack((folder / "model").read_bytes()), lambda *found: pack(*found), load
    TableCounts.of_model(model).save(folder / "counts")
    found = unpack((folder / "counts").read_bytes(), COUNTS)
    yield folder / "counts", found, lambda *found: pack(*found, COUNTS), TableCounts.load


def test_no_number_in_a_file_makes_memory(tmp_path):
    """Every integer of the manifest and of arrays, one at a time, is set to others, small and huge."""
    n_read = n_refused = 0
    for path, (description, arrays), write, read in files(tmp_path):
        variants = []
        for place in numbers(description):
            for number in (-1, 0, 2**16, 2**40, 2**62, 10**30):
                changed = json.loads(json.dumps(description))
                parent = changed
                for key in place[:-1]:
                    parent = parent[key]
                parent[place[-1]] = number
                variants.append((changed, arrays))
        rng = np.random.default_rng(0)
        for name, array in arrays.items():
            for number in (-1, 0, 2**15, 2**40, 2**62) * (array.dtype.kind in "iu" and array.size > 0):
                if np.iinfo(array.dtype).min <= number <= np.iinfo(array.dtype).max:
                    changed = array.copy()
                    changed.flat[rng.integers(array.size)] = number
                    variants.append((description, {**arrays, name: changed}))
        for changed, forged in variants:
            content = write(json.loads(json.dumps(changed)), forged)
            path.write_bytes(content)
            tracemalloc.start()
            try:
                read(path)
                n_read += 1
            except ValueError as error:
                assert str(path) in str(error)  # noqa: PT017
                n_refused += 1
            finally:
                used = tracemalloc.get_traced_memory()[1]
                tracemalloc.stop()
            assert used < 40 * len(content) + 10**6
    assert n_read > 10
    assert n_refused > 20
