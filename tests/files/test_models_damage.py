"""Files of classifiers that are damaged, forged, foreign or newer: refused, or predict as the original."""

import io
import json
import warnings
import zipfile
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from support.saved_models import CYCLE, FRAME, fitted

from tanlearn import TANClassifier
from tanlearn.files import archive
from tanlearn.files import values as file_values
from tanlearn.files.archive import read_archive, seal
from tanlearn.files.models import load, save


def content_of(name, folder):
    save(fitted(name), folder / "original.tan")
    return (folder / "original.tan").read_bytes()


def members_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as found:
        return {name: found.read(name) for name in found.namelist()}


def forge(content, change=None, **arrays):
    """Return a file with another manifest and other arrays, all checksums made right."""
    members = members_of(content)
    for name, member in arrays.items():
        members[f"{name[1:]}.npy"] = member if isinstance(member, bytes) else archive._npy(member)
    manifest = json.loads(members.pop("tanlearn.json"))
    manifest["members"] = [{"name": name, "sha256": sha256(member).hexdigest()} for name, member in members.items()]
    if change is not None:
        change(manifest)
    return seal({"tanlearn.json": json.dumps(manifest).encode(), **members})


def reseal(content):
    return content[:-64] + sha256(content[:-64]).hexdigest().encode()


class Suspect:
    """A file that is written again and again, and must be refused or predict as the original."""

    def __init__(self, folder, name="tan"):
        self.path = Path(folder) / "suspect.tan"
        self.content = content_of(name, Path(folder))
        self.rows = FRAME[fitted(name).feature_names_in_]
        self.expected = fitted(name).predict_joint_log_proba(self.rows)

    def refuses(self, content, match=None):
        self.path.write_bytes(content)
        with pytest.raises(ValueError, match=match) as caught:
            load(self.path)
        assert str(self.path) in str(caught.value)

    def survives(self, content, may_differ=False):
        """Return whether the file was refused."""
        self.path.write_bytes(content)
        try:
            found = load(self.path).predict_joint_log_proba(self.rows)
        except ValueError:
            return True
        except TypeError:  # categories of another kind than the values of the rows
            assert may_differ
            return False
        assert may_differ or np.array_equal(found, self.expected)
        return False


@pytest.fixture
def suspect(tmp_path):
    return Suspect(tmp_path)


def test_file_cut_off_anywhere_is_refused(tmp_path):
    suspect = Suspect(tmp_path, "small")
    for length in range(len(suspect.content)):
        suspect.refuses(suspect.content[:length])
    for more in (b"\0", b"\n", suspect.content):
        suspect.refuses(suspect.content + more)


def test_file_with_any_byte_changed_is_refused(tmp_path):
    suspect, rng = Suspect(tmp_path, "small"), np.random.default_rng(0)
    for place, flip in enumerate(rng.integers(1, 256, len(suspect.content))):
        content = bytearray(suspect.content)
        content[place] ^= flip
        suspect.refuses(bytes(content), "damaged" if place > 50 else "damaged|not a tanlearn model")


def test_file_with_stretches_moved_or_overwritten_is_refused(suspect):
    rng = np.random.default_rng(1)
    n = len(suspect.content)
    for _ in range(300):
        a, b, length = rng.integers(0, n, 3)
        content = bytearray(suspect.content)
        content[a : a + length // 8] = content[b : b + length // 8]
        if bytes(content) != suspect.content:
            suspect.refuses(bytes(content))


def test_file_changed_anywhere_with_a_new_seal_is_refused_or_predicts_the_same(tmp_path):
    suspect, rng, refused = Suspect(tmp_path, "small"), np.random.default_rng(2), 0
    places = rng.choice(len(suspect.content) - 64, 1500, replace=False)
    for place in places:
        content = bytearray(suspect.content)
        content[place] ^= 1 << rng.integers(8)
        refused += suspect.survives(reseal(bytes(content)))
    assert refused > 0.8 * len(places)  # what is left are dates and the like


@pytest.mark.parametrize("content", [b"", b"\0" * 64, b"PK\5\6" + bytes(18), b"x" * 10**5, b"\x80\x04N."])
def test_foreign_files_are_refused(content, suspect):
    suspect.refuses(content, "not a tanlearn model. Name a file")


def test_another_archive_is_refused(suspect):
    buffer = io.BytesIO()
    np.savez(buffer, a=np.arange(3))
    suspect.refuses(buffer.getvalue(), "not a tanlearn model")
    suspect.refuses(seal({"a.npy": b""}), "the first entry")
    suspect.refuses(seal({}), "the first entry")
    suspect.refuses(reseal(b"PK\3\4" + bytes(100)), "not a zip")


def nodes(value, path=()):
    """Yield the paths of everything in JSON."""
    yield path
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from nodes(item, (*path, key))


def put(path, value):
    """Return a change that puts a value somewhere in the manifest."""

    def change(manifest):
        for key in path[:-1]:
            manifest = manifest[key]
        manifest[path[-1]] = value

    return change


NASTY = (
    None, True, False, -1, 0, 1, 2, 10**30, -0.5, 1e308, "", "x", "0.npy", "1.npy", "TANClassifier", "os.system", [],
    [[]], [None], {}, {"kind": "array", "member": "0.npy"}, {"kind": "float", "value": "nan"}, {"kind": "os.system"},
    {"kind": "tuple", "items": []}, {"kind": "object", "class": "TableEncoder", "parameters": {}},
    {"kind": "object", "class": "TANSearchCV", "parameters": {}}, {"kind": "bytes", "hex": "00"},
    {"kind": "scalar", "type": "uint64", "value": 1}, {"kind": "objects", "items": [1, 2, 3]},
)  # fmt: skip


@pytest.mark.filterwarnings("ignore:X has feature names, but")  # and the file none, which is as good
@pytest.mark.parametrize("name", ["tan", "aode", "a2de", "chow-liu", "cyclic", "term-tan"])
def test_manifest_with_anything_anywhere_is_refused_or_predicts_the_same(name, tmp_path):
    suspect, rng = Suspect(tmp_path, name), np.random.default_rng(3)
    places = [path for path in nodes(json.loads(members_of(suspect.content)["tanlearn.json"])) if path]
    refused = 0
    for _ in range(350):
        path, value = places[rng.integers(len(places))], NASTY[rng.integers(len(NASTY))]
        # Other categories make another model.
        refused += suspect.survives(forge(suspect.content, put(path, value)), may_differ="columns" in path)
    assert refused > 100


def test_members_swapped_or_missing_are_refused(suspect):
    members = members_of(suspect.content)
    arrays = [name for name in members if name != "tanlearn.json"]
    for a in arrays:
        suspect.refuses(seal({k: v for k, v in members.items() if k != a}))
        suspect.refuses(seal({**members, a: members[a] + b"\0"}))
        for b in arrays:
            if members[a] != members[b]:
                swapped = {**members, a: members[b], b: members[a]}
                suspect.refuses(seal(swapped), "SHA-256")
                suspect.survives(forge(seal(swapped)))  # the checksums of the manifest made right
    suspect.refuses(seal({**members, "extra.npy": members["0.npy"]}), "the entries must")
    suspect.refuses(seal(dict(reversed(members.items()))), "first entry")
    more = {f"{len(arrays)}.npy": members["0.npy"]}
    suspect.refuses(forge(seal({**members, **more})), "all entries must be referenced")


def rezip(members, **options):
    """Return an archive that zip programs make, sealed."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **options) as made:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of the same name twice
            for name, content in members:
                made.writestr(name, content)
        made.comment = bytes(64)
    return reseal(buffer.getvalue())


def test_bombs_are_refused(suspect):
    members = members_of(suspect.content)
    bomb = [(name, b"\0" * 10**7 if name == "0.npy" else content) for name, content in members.items()]
    suspect.refuses(rezip(bomb, compression=zipfile.ZIP_DEFLATED), "without compression")
    deflated = rezip(members.items())
    assert not suspect.survives(deflated)
    for method in (8, 12, 14, 99):  # said of every member but the manifest
        content, place = bytearray(deflated), deflated.index(b"PK\1\2") + 1
        while (place := content.find(b"PK\1\2", place)) > 0:
            content[place + 10] = method
            place += 1
        suspect.refuses(reseal(bytes(content)), "without compression")
    suspect.refuses(rezip([*members.items(), ("0.npy", members["0.npy"])]), "the entries must")
    deep = b"[" * 10**5 + b"]" * 10**5
    suspect.refuses(seal({**members, "tanlearn.json": deep}), "Recursion")
    nested = forge(
        suspect.content,
        put(("model", "parameters", "candidates", "parameters", "ordering"), json.loads("[" * 900 + "]" * 900)),
    )
    suspect.survives(nested)
    suspect.refuses(seal({**members, "tanlearn.json": b'{"version": ' + b"9" * 5000 + b"}"}), "digits")


def header(text, version=b"\1\0"):
    padded = text.encode() + b" " * 3 + b"\n"
    return b"\x93NUMPY" + version + len(padded).to_bytes(2, "little") + padded


CELLS = "{'descr': '<f8', 'fortran_order': False, 'shape': (%s), }"


@pytest.mark.parametrize(
    "member",
    [
        header(CELLS % "1000000000000,"),
        header(CELLS % "1000000, 1000000"),
        header(CELLS % "999999999999999999, 999999999999999999"),
        header(CELLS % "0, 999999999999999999, 999999999999999999, 999999999999999999"),
        header(CELLS % "-1,"),
        header(CELLS % "1.0,") + bytes(8),
        header(CELLS % "1L,") + bytes(8),
        header(CELLS % "1," + "; __import__('os')") + bytes(8),
        header((CELLS % "1,").replace("<f8", "|O")) + bytes(8),
        header((CELLS % "1,").replace("<f8", ">f8")) + bytes(8),
        header((CELLS % "1,").replace("<f8", "<U0")),
        header((CELLS % "1,").replace("<f8", "<U9999999999")),
        header((CELLS % "1,").replace("False", "True")) + bytes(8),
        header(CELLS % "1,", b"\2\0") + bytes(8),
        header(CELLS % "1,") + bytes(7),
        header(CELLS % "1,") + bytes(9),
        header(CELLS % ("(" * 500 + ")" * 500)),
        b"\x93NUMPY\1\0\xff\xff",
        b"",
        b"cnumpy\n",
    ],
)
def test_arrays_that_claim_what_is_not_there_are_refused(member, suspect):
    for name in members_of(suspect.content):
        if name != "tanlearn.json":
            suspect.refuses(forge(suspect.content, **{f"_{name[:-4]}": member}))


def where(content, *path):
    """Return the name of the array at a place of the model."""
    value = json.loads(members_of(content)["tanlearn.json"])["model"]
    for key in path:
        value = value[key]
    return "_" + value[:-4]


def test_arrays_with_illegal_values_are_refused(suspect):
    content = suspect.content
    cells, parents = where(content, "state", "cells", "member"), where(content, "state", "structure", "parents")
    good = fitted("tan").tables_.cells
    bad = np.where(np.arange(len(good)) == 3, np.nan, good)
    for array in (bad, np.full_like(good, np.inf), good[:-1], good[np.newaxis], good.astype("f4"), good.view("i8")):
        suspect.refuses(forge(content, **{cells: array}), "cells")
    none = np.full((6, 2), -1)
    for row, chosen, message in (
        (0, [6, -1], r"parent\[0\]"),
        (1, [-2, -1], r"parent\[1\]"),
        (2, [2, -1], r"parent\[2\]"),
        (3, [1, 1], r"parent\[3\]"),
        (4, [2**62, -1], r"parent\[4\]"),
    ):
        table = none.copy()
        table[row] = chosen
        suspect.refuses(forge(content, **{parents: table}), message)
    cycle = CYCLE.parents
    for table in (cycle, none[:5], none[:, :1], none.astype("i4"), none.astype(float), np.full((6, 3), -1)):
        suspect.refuses(forge(content, **{parents: table}))
    suspect.refuses(forge(content, put(("model", "state", "structure", "cyclic"), True)), "cyclic")
    assert suspect.survives(forge(content, **{parents: np.repeat([[0, -1], [-1, -1]], [5, 1], axis=0)}))


def test_columns_and_classes_with_illegal_values_are_refused(suspect):
    content = suspect.content
    at = ("model", "encoder", "columns")
    model = json.loads(members_of(content)["tanlearn.json"])["model"]
    town, income, rooms, *_ = model["encoder"]["columns"]
    objects = lambda *items: {"categories": {"kind": "objects", "items": [*items]}}  # noqa: E731
    nan = {"kind": "float", "value": "nan"}
    for column in (
        objects("Graz", "Graz", "Wels"), objects(1, True, "x"), objects("Graz", "Linz", nan),
        objects("Graz", "Linz", None),
        objects("Graz", "Linz", {"kind": "tuple", "items": []}), objects("Graz", "Linz"), objects("Graz", "Linz", []),
        {"categories": ["Graz", "Linz", "Wels"]}, {**town, **income}, {}, income, {"categories": income["cut_points"]},
        {**income, "cut_points": rooms["categories"]}, {**income, "cut_points": [1.5, 2.5]},
        {"cut_points": income["cut_points"]}, {**income, "typical_values": income["cut_points"]},
    ):  # fmt: skip
        suspect.refuses(forge(content, put((*at, 0), column)))
    cuts = "_" + income["cut_points"]["member"][:-4]
    n = len(fitted("tan").encoder_.discretizer_.cut_points_[0])
    for array in (np.zeros(n), np.arange(n)[::-1] * 1.0, np.full(n, np.nan), np.arange(n), np.arange(n + 1.0)):
        suspect.refuses(forge(content, **{cuts: array}))
    typical = "_" + income["typical_values"]["member"][:-4]
    for array in (np.zeros(n), np.zeros(n + 1, int), np.zeros((n + 1, 1)), np.array([0.0, np.inf, 1.0])):
        suspect.refuses(forge(content, **{typical: array}), "typical values of column 1")
    assert n == 2
    suspect.refuses(forge(content, **{cuts: np.array([0.0, np.inf])}), "finite")
    numbers = "_" + rooms["categories"]["member"][:-4]
    for array in (np.array([1, 2, 2, 3, 4]), np.array([1, 2, 3, 4, np.nan]), np.array(list("abcde")), np.ones((5, 1))):
        suspect.refuses(forge(content, **{numbers: array}), "column 2 must")
    many = np.arange(65536)
    suspect.refuses(forge(content, **{numbers: many}), "at most 65535")
    names = "_" + model["classes"]["member"][:-4]
    for array in (np.array(["b", "a", "c"]), np.array(["a", "a", "b"]), np.array(["a"]), np.array([[0], [1], [2]]),
                  np.array([0.0, 1.0, np.nan]), np.array(["a", "b"]), np.array(list("abcd"))):  # fmt: skip
        suspect.refuses(forge(content, **{names: array}))
    suspect.refuses(
        forge(content, **{names: archive._npy(np.array(["low", "mid", "zzz"]))[:-12] + b"\xff" * 12}), "characters"
    )
    ranges = model["encoder"]["value_ranges"]
    assert ranges[0] is None
    pair = ranges[1]
    infinite = {"kind": "float", "value": "inf"}
    for own in ([pair[1], pair[0]], [pair[0]], [1, 2], [pair[0], infinite], "wide", [nan, 1.0]):
        suspect.refuses(forge(content, put(("model", "encoder", "value_ranges", 1), own)), "range of column 1")
    suspect.refuses(forge(content, put(("model", "encoder", "value_ranges", 0), pair)), "range of column 0")
    suspect.refuses(forge(content, put(("model", "encoder", "value_ranges"), ranges[1:])), "value_ranges")
    for path, value in (
        (("encoder", "discretizer"), None),
        (("encoder", "columns"), []),
        (("feature_names",), ["a"] * 6),
        (("feature_names",), "abcdef"),
        (("feature_names",), [1, 2, 3, 4, 5, 6]),
        (("classes",), {"kind": "objects", "items": ["a", 1, b"x".hex()]}),
    ):
        suspect.refuses(forge(content, put(("model", *path), value)))


def test_bools_are_zero_or_one(tmp_path):
    suspect = Suspect(tmp_path, "aode")
    is_parent = where(suspect.content, "state", "is_parent", "member")
    good = archive._npy(fitted("aode").ensemble_.is_parent)
    suspect.refuses(forge(suspect.content, **{is_parent: good[:-2] + b"\2\0"}), "0 and 1")
    suspect.refuses(forge(suspect.content, **{is_parent: good[:-1] + b"\1"}), "constant feature")
    log_child = where(suspect.content, "state", "log_child", "member")
    suspect.refuses(forge(suspect.content, **{log_child: fitted("aode").ensemble_.log_child}), "log_child must have")


def test_newer_and_unknown_things_say_what_to_do(suspect, monkeypatch):
    content = suspect.content
    suspect.refuses(forge(content, put(("version",), 2)), "format 2 of tanlearn .*reads format 1. Upgrade")
    suspect.refuses(forge(content, put(("version",), True)), "a version")
    suspect.refuses(forge(content, put(("format",), "other")), "format 'tanlearn model'")
    suspect.refuses(
        forge(content, put(("model", "class"), "Novelty")), "'Novelty', which this version does not have.*Upgrade"
    )
    suspect.refuses(forge(content, put(("model", "class"), "Hybrid")), "parameter")
    suspect.refuses(forge(content, put(("model", "parameters", "novelty"), 1)), "'novelty'.*Upgrade")
    suspect.refuses(
        forge(content, put(("model", "parameters", "candidates", "parameters", "ordering"), {"kind": "novelty"})),
        "'novelty'.*Upgrade",
    )
    manifest = members_of(content)["tanlearn.json"]
    for text in (
        manifest.replace(b'{"format"', b'{"format": 1, "format"'),
        manifest.replace(b'"patience": null', b'"patience": NaN'),
        b"\xff",
    ):
        suspect.refuses(seal({**members_of(content), "tanlearn.json": text}))
    save(fitted("chow-liu"), suspect.path)
    monkeypatch.delitem(file_values._CLASSES, "ChowLiu")  # as in a version without it
    with pytest.raises(ValueError, match=r"'ChowLiu', which this version does not have.*Upgrade"):
        load(suspect.path)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("it has a cycle."), r"invalid: it has a cycle\. Use an intact copy"),
        (ValueError("it has a cycle"), r"invalid: it has a cycle\. Use an intact copy"),
        (KeyError("name"), r"invalid: KeyError\('name'\)\. Use an intact copy"),
    ],
)
def test_reasons_end_with_one_full_stop(suspect, error, reason):
    def restore(description, arrays):
        raise error

    suspect.path.write_bytes(suspect.content)
    with pytest.raises(ValueError, match=reason):
        read_archive(suspect.path, restore)


def test_older_files_give_new_parameters_their_defaults(suspect):
    def forget(manifest):
        parameters = manifest["model"]["parameters"]
        del parameters["training"]["parameters"]["patience"], parameters["n_epochs"]

    suspect.path.write_bytes(forge(suspect.content, forget))
    assert load(suspect.path).get_params()["n_epochs"] == TANClassifier().n_epochs
