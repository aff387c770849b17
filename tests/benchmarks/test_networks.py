"""Reading generated networks is timed with each library that is installed."""

from benchmarks.speed import networks
from tanlearn import read_bif


def test_table_has_a_row_per_number_of_values(monkeypatch, capsys, tmp_path):
    seen = []

    def read(path):
        seen.append(read_bif(path).n_features_in_)

    monkeypatch.setattr(networks, "readers", lambda: {"tanlearn": read, "other": read})
    monkeypatch.setattr("sys.argv", ["networks", "--states", "2", "3", "--numbers", "100", "--repeats", "1"])
    networks.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "| values | variables | size [MB] | tanlearn | other |"
    assert [line.split(" | ")[:2] for line in lines[2:]] == [["| 2", "7"], ["| 3", "4"]]
    assert seen == [6, 6, 3, 3]
